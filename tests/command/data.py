"""Data of one's own by the command: folders of images, masks and tar shards, from a folder to what a picture shows."""
import io
import json
import math
import os
import signal
import tarfile
import time
import wave

import harness
import npz
import pictures

TRAIN = ("--input", "3x16x16", "--batch", "12", "--lr", "0.01", "--devices", "0")


class Folders(harness.CommandTest):
    def setUp(self):
        super().setUp()
        pictures.write_classes(self.folder / "set", 10)

    def train(self, *arguments):
        return self.good("train", "lenet", "--data", "set", *TRAIN, *arguments)

    def test_from_a_folder_to_a_picture(self):
        (self.folder / "set" / "red" / "notes.txt").write_text("no picture")
        lines = self.train("--epochs", "6", "--save", "m", "--json", "--augment", "crop,flip").lines()
        self.assertEqual(lines[-2]["test_accuracy"], 1)
        known = json.loads(self.metadata("m.safetensors")["data"])
        self.assertEqual((known["classes"], known["shape"]), (["blue", "green", "red"], [3, 16, 16]))
        result, = self.good("eval", "lenet", "--data", "set", "--weights", "m.safetensors", "--json").lines()
        self.assertEqual((result["samples"], result["accuracy"]), (6, 1))
        outcome = self.good("infer", "lenet", "--weights", "m.safetensors", "set/red/000.ppm", "set/green/001.ppm")
        lines = outcome.output.splitlines()
        self.assertEqual(len(lines), 8, outcome)
        self.assertEqual((lines[0], lines[1].split()[0], lines[5].split()[0]), ("set/red/000.ppm", "red", "green"))
        self.assertIn("###", lines[1])
        self.assertNotIn("\033", outcome.output)
        tone(self.folder / "a.wav", 8000, 440)
        self.refused(1, ["a.wav", "not trained on recordings"], "infer", "lenet", "--weights", "m.safetensors", "a.wav")
        line, = self.good("infer", "lenet", "--weights", "m.safetensors", "--json", "set/blue/003.ppm").lines()
        self.assertEqual((line["sample"], line["likeliest"][0]["name"]), ("set/blue/003.ppm", "blue"))
        lines = self.good("infer", "lenet", "--weights", "m.safetensors", "--data", "set", "--part", "train", "--json").lines()
        self.assertEqual((len(lines), lines[0]["label_name"]), (24, "blue"))

    def metadata(self, name):
        content = (self.folder / name).read_bytes()
        return json.loads(content[8:8 + int.from_bytes(content[:8], "little")])["__metadata__"]

    def test_other_classes_are_refused(self):
        self.train("--epochs", "1", "--save", "m")
        (self.folder / "set" / "green").rename(self.folder / "set" / "grass")
        self.refused(1, ["'green'", "'grass'"], "eval", "lenet", "--data", "set", "--weights", "m.safetensors")
        self.refused(1, ["'green'", "'grass'"], "train", "lenet", "--data", "set", "--resume", "m", "--epochs", "2")
        (self.folder / "set" / "red").rename(self.folder / "red")
        self.refused(1, ["'red'", "missing"], "train", "lenet", "--data", "set", "--resume", "m", "--epochs", "2",
                     before=lambda: (self.folder / "set" / "grass").rename(self.folder / "set" / "green"))

    def test_folders_with_built_in_names(self):
        """A folder called as built-in data is not taken for them, and without --data these are used; models are not paths."""
        (self.folder / "set").rename(self.folder / "digits")
        (self.folder / "lenet").mkdir()
        errors = self.good("train", "lenet", "--data", "./digits", *TRAIN, "--steps", "1", "--save", "m").errors
        self.assertIn("images: 24 training", errors)
        for arguments in (("train", "lenet", "--data", "digits", "--steps", "1"),
                          ("infer", "lenet", "--weights", "m.safetensors", "digits")):
            self.refused(1, ["\"digits\" is a folder here", "./digits", "builtin:digits"], *arguments)
        for words in ((), ("--data", "builtin:digits")):
            self.assertIn("digits: 10000 training", self.good("train", "mlp", "--steps", "1", *words).errors)

    def test_a_decoder_that_is_missing(self):
        (self.folder / "set" / "red" / "0.webp").write_bytes(b"RIFF\4\0\0\0WEBP")
        words = ["set/red/0.webp is WebP", "'/nowhere', cannot be started"]
        self.refused(1, words, "train", "lenet", "--data", "set", *TRAIN, "--steps", 1, "--split", 0.001, TUTTI_DECODER="/nowhere")

    def test_classes_that_cannot_be_read(self):
        (self.folder / "set" / "grey").mkdir()
        self.refused(1, ["set/grey", "fill or remove it"], "train", "lenet", "--data", "set", *TRAIN)
        for name in ("0.jxl", "1.jxl", "2.svg"):
            (self.folder / "set" / "grey" / name).write_bytes(b"x")
        self.refused(1, ["set/grey", "2 .jxl files, 1 .svg file"], "train", "lenet", "--data", "set", *TRAIN)
        (self.folder / "set" / "grey").rename(self.folder / "set" / "red" / "grey")
        self.assertIn("ignored: 1 folder, such as set/red/grey\n", self.train("--steps", "1").errors)
        for name in ("blue", "green"):
            (self.folder / "set" / name).rename(self.folder / name)
        self.refused(1, ["set", "one class, 'red'"], "train", "lenet", "--data", "set", *TRAIN)

    def test_damaged_files(self):
        pictures.write_classes(self.folder / "set" / "train", 8)
        pictures.write_classes(self.folder / "set" / "val", 2, seed=2)
        (self.folder / "set" / "train" / "red" / "003.ppm").write_bytes(b"P6\n20 20\n255\ncut")
        self.refused(1, "set/train/red/003.ppm", "train", "lenet", "--data", "set", *TRAIN, "--epochs", "1")
        # The first file of each class before devices are opened.
        (self.folder / "set" / "train" / "green" / "000.ppm").write_bytes(b"no picture")
        for command in (("train", "lenet", *TRAIN), ("eval", "lenet", "--weights", "m.safetensors", "--part", "train")):
            (self.folder / "m.safetensors").write_bytes(b"\2\0\0\0\0\0\0\0{}")
            self.refused(1, "set/train/green/000.ppm", *command, "--data", "set", OCL_ICD_VENDORS="/nonexistent")
        errors = self.train("--skip-damaged", "--epochs", "2").errors
        self.assertEqual(errors.count("train/red/003.ppm"), 1, errors)
        self.assertNotIn("measured without", errors)

    def test_measured_without_damaged_files(self):
        """As infer predicts those that can be read; nothing stands in for the others, even if a class has no other."""
        pictures.write_classes(self.folder / "set" / "train", 8)
        pictures.write_classes(self.folder / "set" / "val", 9, seed=2)
        for name in ("red", "green", "blue"):
            for i in range(0, 9, 2) if name != "green" else range(9):
                (self.folder / "set" / "val" / name / f"{i:03}.ppm").write_bytes(b"P6\n20 20\n255\ncut")
        said = "measured without 19 damaged samples of 27\n"
        for batch in ("4", "12"):
            outcome = self.train("--batch", batch, "--skip-damaged", "--epochs", "1", "--save", "m", "--json")
            self.assertEqual(outcome.errors.count(said), 1, outcome)
            words = ("lenet", "--data", "set", "--weights", "m.safetensors", "--part", "val", "--batch", batch, "--json")
            lines = self.tutti("infer", *words).lines()
            right = sum(line["likeliest"][0]["name"] == line["label_name"] for line in lines)
            measured = self.good("eval", *words, "--skip-damaged")
            result, = measured.lines()
            support = sum(row["support"] for row in result["scores"]["classes"])
            self.assertEqual((len(lines), result["samples"], support), (8, 8, 8), result)
            self.assertIn(said, measured.errors)
            self.assertAlmostEqual(result["accuracy"], right / 8)
            self.assertAlmostEqual(outcome.lines()[0]["test_accuracy"], right / 8)
        for name in ("red", "blue"):
            for i in range(9):
                (self.folder / "set" / "val" / name / f"{i:03}.ppm").write_bytes(b"")
        self.refused(1, "none of the 27 samples to measure can be read", "eval", *words, "--skip-damaged")

    def test_killed_and_resumed(self):
        """Wherever it is killed, the same bytes come out, with augmentation, whatever threads and cache."""
        words = ("--augment", "crop,flip,color=0.4,erase=0.2", "--epochs", "8", "--seed", "3")
        self.train(*words, "--save", "whole", "--data-threads", "1", "--cache", "0")
        for delay in (0.05, 0.4):
            process = self.start("train", "lenet", "--data", "set", *TRAIN, *words, "--save", "part")
            while process.poll() is None and not (self.folder / "part.state.safetensors").exists():
                time.sleep(0.02)
            time.sleep(delay)
            process.send_signal(signal.SIGKILL)
            process.communicate()
            self.train(*words, "--resume", "part")
            self.assertEqual(self.pair("whole"), self.pair("part"))
            os.remove(self.folder / "part.state.safetensors")

    def test_mixed_images(self):
        words = ("--augment", "crop,flip,mixup=0.4,cutmix=1", "--seed", "5")
        lines = self.train(*words, "--epochs", "8", "--save", "m", "--json").lines()
        self.assertLess(lines[-2]["loss"], lines[0]["loss"])
        self.assertGreater(lines[-2]["test_accuracy"], 0.6)
        result, = self.good("eval", "lenet", "--data", "set", "--weights", "m.safetensors", "--json").lines()
        self.assertEqual(result["accuracy"], lines[-2]["test_accuracy"])
        self.assertAlmostEqual(result["loss"], lines[-2]["test_loss"], places=4)

    def test_what_infer_does_not_read(self):
        """A damaged file of another class does not matter; a recording among pictures is refused once, not freed twice."""
        self.train("--epochs", "1", "--save", "m")
        (self.folder / "set" / "red" / "000.ppm").write_bytes(b"")
        self.good("infer", "lenet", "--weights", "m.safetensors", "--data", "set", "--part", "train", "--count", "1")
        tone(self.folder / "a.wav", 8000, 440)
        self.refused(3, "a.wav", "infer", "lenet", "--weights", "m.safetensors", "set/blue/000.ppm", "a.wav")

    def test_outputs_that_are_no_files(self):
        os.mkfifo(self.folder / "pipe")
        self.refused(1, ["pipe", "not a file"], "train", "lenet", "--data", "set", *TRAIN, "--report", "pipe")
        self.assertTrue((self.folder / "pipe").is_fifo())

    def test_wrong_uses(self):
        self.refused(1, "CxHxW", "train", "lenet", "--data", "set", "--input", "16")
        self.refused(1, "wobble", "train", "lenet", "--data", "set", *TRAIN, "--augment", "wobble")
        self.refused(1, "set/red", "train", "lenet", "--data", "set/red", *TRAIN)
        self.refused(2, "classes for each pixel", "train", "unet", "--data", "set", "--input", "3x32x32")
        self.refused(2, "--part", "eval", "lenet", "--data", "set", "--weights", "m.safetensors", "--part", "some")


def tone(path, rate, hertz, seconds=0.5):
    path.parent.mkdir(parents=True, exist_ok=True)
    values = (int(8000 * math.sin(2 * math.pi * hertz * i / rate)) for i in range(int(rate * seconds)))
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(b"".join(value.to_bytes(2, "little", signed=True) for value in values))


class Others(harness.CommandTest):
    def test_arrays_of_keras(self):
        images = [(i * 7 + k // 784 % 2) % 5 / 5 for i in range(2) for k in range(12 * 784)]
        npz.write(self.folder / "k.npz", x=("<f4", (24, 28, 28, 1), images), y=("<i4", (24,), [1, -1] * 12))
        words = ("train", "lenet", "--data", "k.npz", "--steps", 2, "--batch", 8, "--devices", 0)
        outcome = self.tutti(*words)
        self.assertEqual(outcome.status, 1, outcome)
        self.assertIn("'x' looks like [n, h, w, c], channels last as Keras has them", outcome.errors)
        self.assertIn("the 2 classes have the names of their labels, '-1' to '1'", self.good(*words, "--layout", "nhwc", "--save", "m").errors)
        lines = self.good("eval", "lenet", "--weights", "m.safetensors", "--data", "k.npz", "--json").lines()
        self.assertIn('"-1"', json.dumps(lines))

    def test_masks(self):
        """With little to compute, of a large network; its kernels are those of the bench in training.py."""
        pictures.write_masks(self.folder / "set", 5)
        words = ("--data", "set", "--input", "3x16x17")
        lines = self.good("train", "unet", *words, "--batch", "4", "--epochs", "2", "--json", "--save", "m",
                          "--momentum", "0", "--lr", "0.02", "--devices", "0").lines()
        self.assertLess(lines[-2]["loss"], lines[0]["loss"])
        result, = self.good("eval", "unet", "--data", "set", "--weights", "m.safetensors", "--json").lines()
        self.assertEqual(result["samples"], 1)
        self.assertAlmostEqual(result["loss"], lines[-2]["test_loss"], places=4)
        line, = self.good("infer", "unet", "--weights", "m.safetensors", "--json", "set/images/0.png").lines()
        self.assertAlmostEqual(sum(share["share"] for share in line["shares"]), 1, places=5)
        self.refused(2, "class for each pixel", "train", "lenet", *words)

    def test_tables(self):
        rows = [(i % 7 - 3, i * 5 % 11 - 5) for i in range(80)]
        text = "a,y,b\n" + "".join(f"{a},{0.5 * a - 0.25 * b + 1},{b}\n" for a, b in rows)
        (self.folder / "plane.csv").write_text(text)
        words = ("--data", "plane.csv", "--target", "y")
        lines = self.good("train", "linear", *words, "--epochs", "40", "--batch", "8", "--lr", "0.05", "--json", "--save", "m",
                          "--devices", "0").lines()
        self.assertLess(lines[-2]["test_loss"], 1e-3)
        result, = self.good("eval", "linear", "--data", "plane.csv", "--weights", "m.safetensors", "--json").lines()
        self.assertAlmostEqual(result["loss"], lines[-2]["test_loss"], places=4)
        self.assertGreater(result["scores"]["r2"], 0.99)
        self.refused(1, "'z'", "train", "linear", "--data", "plane.csv", "--target", "z")
        (self.folder / "bare.safetensors").write_bytes(b"\2\0\0\0\0\0\0\0{}")  # does not say its model
        for command in (("train", "resnet18"), ("eval", "resnet18", "--weights", "bare.safetensors")):
            self.refused(2, ["resnet18 needs images [C, H, W]; these data are a table of 2 columns: use linear", "mlp"], *command, *words)
        self.refused(2, "lenet needs images [C, H, W]; these data are points of a line", "train", "lenet", "--data", "line")
        self.refused(2, "lenet needs images [C, H, W]; --input is [7]", "show", "lenet", "--input", 7)

    def test_recordings(self):
        """Files of two rates, augmented and mixed; killed and resumed, the same bytes come out; eval keeps the rate."""
        for i in range(12):
            tone(self.folder / "set" / "high" / f"{i:02}.wav", 8000 if i < 6 else 11025, 1500 + 20 * i)
            tone(self.folder / "set" / "low" / f"{i:02}.wav", 8000 if i < 6 else 11025, 300 + 10 * i)
        words = ("--data", "set", "--augment", "gain=6,noise=0.01,mask-time=0.2,mask-frequency=0.2,mixup=0.2", "--epochs", "8",
                 "--batch", "4", "--seed", "3", "--lr", "0.01", "--input", "1x64x16", "--devices", "0")
        lines = self.good("train", "lenet", *words, "--save", "whole", "--data-threads", "1", "--json").lines()
        process = self.start("train", "lenet", *words, "--save", "part")
        while process.poll() is None and not (self.folder / "part.state.safetensors").exists():
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        self.good("train", "lenet", *words, "--resume", "part")
        self.assertEqual(self.pair("whole"), self.pair("part"))
        (self.folder / "set" / "high" / "00.wav").unlink()
        tone(self.folder / "set" / "high" / "00.wav", 16000, 1500)
        result, = self.good("eval", "lenet", "--data", "set", "--weights", "whole.safetensors", "--json").lines()
        self.assertEqual(result["accuracy"], lines[-2]["test_accuracy"])
        self.refused(1, ["rotate=5", "mask-time=PART"], "train", "lenet", "--data", "set", "--augment", "rotate=5")
        self.infer_recordings("infer", "lenet", "--weights", "whole.safetensors")

    def infer_recordings(self, *words):
        """By name, prepared as those of the data: files of three rates, and one that is longer than a piece."""
        lines = self.good(*words, "set/high/00.wav", "set/high/03.wav", "set/low/07.wav").output.splitlines()
        self.assertEqual([lines[i] for i in (0, 3, 6)], ["set/high/00.wav", "set/high/03.wav", "set/low/07.wav"])
        self.assertEqual([lines[i].split()[0] for i in (1, 4, 7)], ["high", "high", "low"])
        self.assertIn("###", lines[1])
        known = self.good(*words, "--data", "set", "--json").lines()
        self.assertGreater(len(known), 3)
        named = self.good(*words, "--json", *(line["sample"] for line in known)).lines()
        for one, other in zip(named, known, strict=True):
            self.assertEqual((one["sample"], one["likeliest"][0]["name"]), (other["sample"], other["likeliest"][0]["name"]))
            self.assertAlmostEqual(one["likeliest"][0]["probability"], other["likeliest"][0]["probability"], places=5)
        (self.folder / "all").mkdir()
        (self.folder / "set" / "low" / "01.wav").rename(self.folder / "all" / "b.wav")
        (self.folder / "set" / "high" / "01.wav").rename(self.folder / "all" / "a.wav")
        lines = self.good(*words, "--json", "all").lines()
        self.assertEqual([(line["sample"], line["likeliest"][0]["name"]) for line in lines], [("all/a.wav", "high"), ("all/b.wav", "low")])
        self.refused(2, "files without classes", "eval", *words[1:], "--data", "all")
        pictures.ppm(self.folder / "a.ppm", 2, 2, bytes(12))
        self.refused(1, ["trained on recordings", "images"], *words, "a.ppm")
        (self.folder / "cut.wav").write_bytes((self.folder / "all" / "a.wav").read_bytes()[:40])
        self.refused(1, "cut.wav", *words, "cut.wav")
        content = (self.folder / "whole.safetensors").read_bytes()
        end = 8 + int.from_bytes(content[:8], "little")
        header = json.loads(content[8:end])
        known = json.loads(header["__metadata__"]["data"])
        del known["shape"]  # then the first file says it
        header["__metadata__"]["data"] = json.dumps(known)
        text = json.dumps(header).encode()
        (self.folder / "bare.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + content[end:])
        tone(self.folder / "short.wav", 8000, 1500, 0.24)
        tone(self.folder / "long.wav", 8000, 1500, 2)
        self.good("infer", "lenet", "--weights", "bare.safetensors", "short.wav", "short.wav")
        self.refused(3, ["long.wav", "another size"], "infer", "lenet", "--weights", "bare.safetensors", "short.wav", "long.wav")
        for name in ("t.csv", "x.npy"):
            self.refused(2, [name, "--data", "--inputs"], *words, name)

    def test_published_sets(self):
        names = "airplane automobile bird cat deer dog frog horse ship truck".split()
        data = self.folder / "cifar"
        data.mkdir()
        for name in [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]:
            (data / name).write_bytes(b"".join(bytes([label]) + bytes([20 * label]) * 3072 for label in range(10)))
        (data / "batches.meta.txt").write_text("\n".join(names) + "\n\n")
        self.good("train", "mlp", "--data", data, "--batch", "25", "--epochs", "3", "--augment", "pad=4,flip,mixup=0.2",
                  "--oversample", "--save", "m", "--report", "m.html", "--devices", "0")
        self.assertIn("taken for <b>", (self.folder / "m.html").read_text())
        result, = self.good("eval", "mlp", "--data", data, "--weights", "m.safetensors", "--part", "val", "--json").lines()
        self.assertEqual([line["name"] for line in result["scores"]["classes"]], names)
        lines = self.good("infer", "mlp", "--data", data, "--weights", "m.safetensors").output.splitlines()
        self.assertEqual(len(lines), 10)
        self.assertTrue(all(line.split()[1] in names for line in lines), lines)

    def test_shards(self):
        pictures.write_classes(self.folder / "set", 6)
        for shard in range(2):
            with tarfile.open(self.folder / f"{shard}.tar", "w") as archive:
                for path in sorted((self.folder / "set").rglob("*.ppm"))[shard::2]:
                    archive.add(path, f"{path.parent.name}{path.stem}.ppm")
                    text = path.parent.name.encode()
                    info = tarfile.TarInfo(f"{path.parent.name}{path.stem}.cls")
                    info.size = len(text)
                    archive.addfile(info, io.BytesIO(text))
        errors = self.good("train", "lenet", "--data", ".", *TRAIN, "--epochs", "1").errors
        self.assertIn("15 training and 3 test samples", errors)


if __name__ == "__main__":
    harness.main()
