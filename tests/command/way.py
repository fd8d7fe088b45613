"""The way of a new user, from data to another program: inspect, train, report, infer on new files, export with preparation, and
the file on raw data. It is computed by onnxruntime where it is installed, else by Tutti and the reader of nodes.py."""
import csv
import json
import math
import random
import re
import struct
import wave

import harness
import nodes
import npz
import pictures

try:
    import numpy
    import onnxruntime
except ImportError:
    onnxruntime = None

LIMIT = 1e-5
WEIGHTS = ("--weights", "m.safetensors")
RATE = 8000


def softmax(scores):
    powers = [math.exp(score - max(scores)) for score in scores]
    return [power / sum(powers) for power in powers]


def rows_of(values, width):
    return [values[i:i + width] for i in range(0, len(values), width)]


class Way(harness.CommandTest):
    def learn(self, model, data, *options):
        """Until there is a file. Returns what inspect says, and the file."""
        facts, = self.good("inspect", data, "--json").lines()
        self.assertIn(model, facts["models"])
        self.assertTrue(facts["next"].startswith("tutti train "), facts)
        self.good("train", model, "--data", data, "--devices", "0", "--save", "m", "--report", "m.html", "--log", "m.csv", *options)
        self.good("report", "m.html", "m.csv", "--output", "both.html")
        for page in ("m.html", "both.html"):
            self.assertIn(f"--data {data} ", (self.folder / page).read_text(encoding="utf-8"))
        self.good("export", *WEIGHTS, "--output", "m.onnx", "--with-preparation")
        return facts, nodes.File(self.folder / "m.onnx")

    def scores(self, *model, **arrays):
        """What Tutti makes of arrays."""
        npz.write(self.folder / "in.npz", **arrays)
        self.good("infer", *model, "--inputs", "in.npz", "--outputs", "out.npz")
        found = npz.read(self.folder / "out.npz")
        _, shape, values = found.get("probabilities") or found["output"]
        return rows_of(values, shape[-1])

    def run_file(self, feeds):
        session = onnxruntime.InferenceSession(str(self.folder / "m.onnx"), providers=["CPUExecutionProvider"])
        return [list(map(float, row)) for row in session.run(["probabilities"], feeds)[0]]

    def run_array(self, name, kind, shape, values):
        """The file, of one array."""
        if onnxruntime:
            return self.run_file({name: numpy.array(values, dtype=numpy.dtype(kind)).reshape(shape)})
        return self.scores("m.onnx", **{name: (kind, shape, values)})

    def same(self, probabilities, new, right):
        """The command says the same of new files, which it knows."""
        lines = self.good("infer", *WEIGHTS, *new, "--json").lines()
        self.assertEqual([line["likeliest"][0]["name"] for line in lines], right)
        for row, line in zip(probabilities, lines, strict=True):
            for found in line["likeliest"]:
                self.assertLess(abs(row[found["class"]] - found["probability"]), LIMIT)
        self.good("infer", *WEIGHTS, *new, "--output", "out.csv")
        with open(self.folder / "out.csv", newline="", encoding="utf-8") as file:
            self.assertEqual([row["prediction"] for row in csv.DictReader(file)], right)

    def test_pictures(self):
        """Of 18 x 18, which are not resized for a network of 16 x 16: their centres are taken."""
        dice = random.Random(1)
        def put(path, name):
            pixels = pictures.noise(dice, 18, 18, pictures.COLOURS[name])
            pictures.ppm(self.folder / path, 18, 18, pixels)
            return pixels
        for name in pictures.COLOURS:
            for i in range(10):
                put(f"photos/{name}/{i}.ppm", name)
        facts, file = self.learn("lenet", "photos", "--input", "3x16x16", "--batch", 8, "--lr", 0.01, "--epochs", 4)
        self.assertEqual((facts["kind"], facts["samples"]), ("images", 30))
        self.assertEqual((file.inputs, file.outputs), (["pixels"], ["probabilities", "label"]))
        right = ["green", "blue", "red", "green"]
        new = [f"new/{i}.ppm" for i in range(len(right))]
        raw = []
        for path, name in zip(new, right):
            pixels = put(path, name)
            raw += [pixels[(y * 18 + x) * 3 + c] for c in range(3) for y in range(1, 17) for x in range(1, 17)]
        self.same(self.run_array("pixels", "|u1", (len(new), 3, 16, 16), raw), new, right)

    def test_recordings(self):
        """Longer and shorter ones than the piece, with one channel and with two."""
        for i in range(8):
            tone(self.folder / "set" / "low" / f"{i}.wav", 300 + 10 * i, 3000 + 100 * i)
            tone(self.folder / "set" / "high" / f"{i}.wav", 1500 + 10 * i, 3800 - 100 * i, 1 + i % 2)
        facts, file = self.learn("mlp", "set", "--batch", 4, "--lr", 0.01, "--epochs", 5)
        self.assertEqual((facts["kind"], facts["rate"], facts["rates"]), ("recordings", RATE, [{"name": "8000 Hz", "files": 16}]))
        self.assertEqual(facts["channels"], [{"name": "mono", "files": 12}, {"name": "stereo", "files": 4}])
        self.assertRegex(self.good("inspect", "set").output, r"(?m)^  lengths  0.375 to 0.475, median .* s; 6.* s in all$")
        self.assertEqual((file.inputs, file.outputs), (["waveform"], ["probabilities", "label"]))
        says = self.good("export", *WEIGHTS, "--output", "m.onnx", "--with-preparation").errors
        length = int(re.search(r"takes (\d+) samples of one channel, 8000 a second, from -1 to 1", says)[1])
        self.assertEqual(length, (json.loads(file.metadata["tutti.data"])["shape"][2] - 1) * 128)
        new, right = ["new/deep/a.wav", "new/b.wav", "new/c.wav"], ["high", "low", "high"]
        raw = [value for path, sound in zip(new, ((1520, 5000), (320, 2001), (1600, length, 2)))
               for value in piece(tone(self.folder / path, *sound), length)]
        self.same(self.run_array("waveform", "<f4", (len(new), length), raw), new, right)
        pictures.ppm(self.folder / "new" / "picture.ppm", 2, 2, bytes(12))
        (self.folder / "cut.wav").write_bytes((self.folder / "new" / "b.wav").read_bytes()[:30])
        outcome = self.tutti("infer", *WEIGHTS, "new/b.wav", "cut.wav", "new", "--output", "out.csv")
        self.assertEqual(outcome.status, 3, outcome)
        with open(self.folder / "out.csv", newline="", encoding="utf-8") as found:
            self.assertEqual([(row["file"], row["prediction"]) for row in csv.DictReader(found)],
                             [("new/b.wav", "low"), ("cut.wav", ""), ("new/b.wav", "low"), ("new/c.wav", "high"), ("new/deep/a.wav", "high")])

    def test_table(self):
        """With texts and missing values."""
        dice = random.Random(2)
        def row(kind):
            port = "Cherbourg Zürich Ålesund".split()[kind]
            return [f"{50 + 30 * kind + dice.gauss(0, 4):.2f}" if dice.random() > .1 else "", port if dice.random() > .1 else "NA"]
        def put(name, rows):
            (self.folder / name).write_text("\n".join(map(",".join, rows)) + "\n", encoding="utf-8")
        put("t.csv", [["size", "port", "fate"], *(row(i % 3) + ["abc"[i % 3]] for i in range(150))])
        facts, file = self.learn("tabular", "t.csv", "--epochs", 12)
        self.assertEqual((facts["kind"], facts["samples"], facts["target"]), ("table", 150, "fate"))
        self.assertEqual((file.inputs, file.outputs), (["size", "port"], ["probabilities", "label"]))
        new = [["50", "Cherbourg"], ["", "Zürich"], ["111.5", "Paris"], ["80", ""]]
        put("new.csv", [["port", "size"], *([port, size] for size, port in new)])
        sizes, ports = ([[float(size or "nan")] for size, _ in new], [[port] for _, port in new])
        if onnxruntime:
            probabilities = self.run_file({"size": numpy.array(sizes), "port": numpy.array(ports, dtype=object)})
        else:
            features = file.compute({"size": sizes, "port": ports}, file.metadata["tutti.network_input"])
            array = ("<f4", (len(new), len(features[0])), sum(features, []))
            probabilities = [softmax(row) for row in self.scores(*WEIGHTS, input=array)]
        self.same(probabilities, ["new.csv"], ["a", "b", "c", "b"])


def tone(path, hertz, count, channels=1):
    """Writes a recording, and returns its samples."""
    path.parent.mkdir(parents=True, exist_ok=True)
    values = [int(8000 * math.sin(2 * math.pi * hertz * i / RATE)) for i in range(count)]
    with wave.open(str(path), "wb") as file:
        file.setparams((channels, 2, RATE, 0, "NONE", ""))
        file.writeframes(b"".join(struct.pack("<h", value) * channels for value in values))
    return [value / 32768 for value in values]


def piece(samples, length):
    """The middle of a recording; a shorter one lies in the middle of silence."""
    more = len(samples) - length
    left = -more // 2
    return samples[more // 2:][:length] if more >= 0 else [0] * left + samples + [0] * (-more - left)


harness.main()
