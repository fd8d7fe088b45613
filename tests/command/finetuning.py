"""Fine-tuning by the command: weights with another head, thawing, rates of patterns, losses of labels, folds."""
import json
import re
import struct
import xml.etree.ElementTree

import harness
import npz

SIDE = 10


def write(folder, **parts):
    folder.mkdir()
    for name, labels in parts.items():
        (folder / f"{name}-images-idx3-ubyte").write_bytes(harness.idx(len(labels), SIDE, SIDE, data=harness.columns(labels, SIDE)))
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(harness.idx(len(labels), data=labels))
    return folder


class Finetuning(harness.CommandTest):
    def setUp(self):
        super().setUp()
        self.ten = write(self.folder / "ten", train=[i * 7 % 10 for i in range(200)], t10k=[i * 3 % 10 for i in range(50)])
        self.common = ("train", "mlp", "--data", self.ten, "--batch", "40")

    def train(self, *arguments, **environment):
        return self.good(*self.common, *arguments, **environment)

    def weights(self, name):
        return npz.safetensors(self.folder / f"{name}.safetensors")

    def test_eight_classes_become_ten(self):
        """The trunk stays as eight classes have made it, and tells ten apart."""
        eight = write(self.folder / "eight", train=[i * 7 % 8 for i in range(200)], t10k=[i * 3 % 8 for i in range(50)])
        self.good("train", "mlp", "--data", eight, "--batch", "40", "--epochs", "10", "--lr", "0.1", "--save", "eight8")
        outcome = self.train("--weights", "eight8.safetensors", "--freeze", "fc1.*,fc2.*", "--epochs", "15", "--lr", "0.1",
                             "--save", "ten10", "--json")
        for words in ("another shape: fc3.weight is [10, ", "another shape: fc3.bias is [10], in the file [8]",
                      "loaded 4 arrays from eight8.safetensors", "0 missing, 0 not used, 2 of another shape",
                      "froze 4 of 6 parameter tensors"):
            self.assertIn(words, outcome.errors)
        self.assertNotIn("warning", outcome.errors)
        self.assertGreater(outcome.lines()[-1]["test_accuracy"], 0.9)
        old, new = self.weights("eight8"), self.weights("ten10")
        self.assertEqual({name for name in old if old[name] != new[name]}, {"fc3.weight", "fc3.bias"})

    def test_adapters(self):
        """Adapters and a new head train, the other weights stay. A checkpoint says which adapters it has; merged weights need none."""
        self.train("--epochs", "5", "--lr", "0.1", "--save", "base")
        arguments = ("--weights", "base.safetensors", "--lora", "3", "--lora-layers", "fc1*,fc2.*", "--lora-train", "fc3.bias", "--lora-alpha", "6",
                     "--lora-dropout", "0.1", "--epochs", "2", "--merge", "merged.safetensors", "--save", "tuned")
        outcome = self.train(*arguments)
        trained = 3 * (100 + 512 + 512 + 512) + 10
        for words in ("loaded 6 arrays from base.safetensors", f"adapters of rank 3: {trained} parameters train instead of", "adapters saved in tuned.adapter",
                      "merged weights saved as merged.safetensors"):
            self.assertIn(words, outcome.errors)
        base, tuned, merged = self.weights("base"), self.weights("tuned"), self.weights("merged")
        self.assertEqual({name for name in base if base[name] != tuned[name]}, {"fc3.bias"})
        self.assertEqual({name for name in base if base[name] != merged[name]}, {"fc1.weight", "fc2.weight", "fc3.bias"})
        self.assertEqual(set(merged), set(base))
        alone = npz.safetensors(self.folder / "tuned.adapter" / "adapter_model.safetensors")
        self.assertEqual({f"base_model.model.{name}" for name in tuned if "lora" in name} | {"base_model.model.fc3.bias"}, set(alone))
        config = json.loads((self.folder / "tuned.adapter" / "adapter_config.json").read_text())
        self.assertEqual((config["r"], config["lora_alpha"], config["target_modules"], config["modules_to_save"]), (3, 6, ["fc1", "fc2"], ["fc3"]))
        scores = [self.good("eval", "--weights", f"{name}.safetensors", "--data", self.ten, "--json").lines()[-1] for name in ("tuned", "merged")]
        self.assertAlmostEqual(scores[0]["loss"], scores[1]["loss"], places=5)
        self.train("--resume", "tuned", "--epochs", "3")
        self.refused(2, "has an adapter already", *self.common, *arguments[:4], "--lora-layers", "fc1*,fc1.weight")
        self.refused(2, "no dense layer has a weight with a name like 'conv*'", *self.common, *arguments[:4], "--lora-layers", "conv*")
        self.refused(2, "--merge needs --lora", *self.common, "--merge", "m.safetensors")
        self.refused(2, "--merge writes one file", *self.common, "--lora", "2", "--merge", "m.safetensors", "--folds", "2")
        self.refused(2, "--lora and --freeze", *self.common, "--lora", "2", "--freeze", "fc1*")
        self.refused(2, "this file is also base.safetensors", *self.common, *arguments[:4], "--merge", "base.safetensors")

    def rename(self, name, change):
        """Changes the names in the header of a file of weights."""
        data = (self.folder / f"{name}.safetensors").read_bytes()
        length, = struct.unpack_from("<Q", data)
        header = change(data[8:8 + length].decode()).encode()
        (self.folder / "renamed.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + data[8 + length:])

    def test_names_of_weights(self):
        self.train("--steps", "1", "--save", "m")
        self.rename("m", lambda text: text.replace('"fc', '"model.module.fc'))
        errors = self.train("--steps", "1", "--weights", "renamed.safetensors").errors
        self.assertIn("loaded 6 arrays from renamed.safetensors: 100.00 %", errors)
        self.rename("m", lambda text: text.replace('"fc2', '"other.fc2'))
        errors = self.train("--steps", "1", "--weights", "renamed.safetensors").errors
        for words in ("not in the file: fc2.weight", "not in the network: other.fc2.weight", "2 missing, 2 not used",
                      "warning: most of the network begins with random weights"):
            self.assertIn(words, errors)
        self.rename("m", lambda text: text.replace('"fc', '"conv'))
        self.refused(1, "none of the 6 arrays", *self.common, "--weights", "renamed.safetensors")
        self.refused(1, "nothing.safetensors", *self.common, "--weights", "nothing.safetensors")
        self.refused(2, ["--weights", "--resume"], *self.common, "--weights", "m.safetensors", "--resume", "m")

    def test_thawing(self):
        """Stopped before the thaw, at it and after it: the same bytes as without a stop."""
        for optimizer, stops in (("sgd", (3, 10, 13)), ("adam", (10,))):
            like = ("--freeze", "fc1.*,fc2.weight", "--unfreeze-after", "2", "--epochs", "4", "--optimizer", optimizer)
            outcome = self.train(*like, "--save", "whole", "--json")
            self.assertIn("after 2 epochs: 3 parameter tensors more train", outcome.errors)
            lines = outcome.lines()
            self.assertEqual([line["epoch"] for line in lines], [1, 2, 3, 4, 4])
            self.assertEqual(lines[-1]["samples"], 800)
            for steps in stops:
                with self.subTest(optimizer=optimizer, steps=steps):
                    self.train(*like, "--save", "part", "--steps", steps)
                    self.train(*like, "--resume", "part")
                    self.assertEqual(self.pair("whole"), self.pair("part"))
        self.train(*like, "--save", "frozen", "--steps", "10")
        first = self.train(*like, "--save", "first", "--steps", "1", "--json")
        self.assertNotIn("more train", first.errors)
        frozen, before, whole = (self.weights(name) for name in ("frozen", "first", "whole"))
        self.assertEqual({name for name in frozen if frozen[name] != before[name]}, {"fc2.bias", "fc3.weight", "fc3.bias"})
        self.assertEqual({name for name in frozen if frozen[name] != whole[name]}, set(whole))

    def test_thawing_a_part(self):
        like = ("--freeze", "fc1.*,fc2.*", "--unfreeze-after", "1", "--unfreeze", "fc2.*", "--save")
        self.train(*like, "a", "--epochs", "1")
        self.train(*like, "b", "--epochs", "2")
        a, b = self.weights("a"), self.weights("b")
        self.assertEqual({name for name in a if a[name] == b[name]}, {"fc1.weight", "fc1.bias"})
        self.refused(2, "--freeze", *self.common, "--unfreeze-after", "1")
        self.refused(2, "--unfreeze-after", *self.common, "--freeze", "fc1.*", "--unfreeze", "fc1.*")
        self.refused(2, "no parameter", *self.common, "--freeze", "fc1.*,conv*")
        self.refused(2, "patterns", *self.common, "--freeze", "fc1.*,")

    def test_rates(self):
        self.train("--steps", "1", "--save", "a", "--no-shuffle")
        self.train("--steps", "1", "--save", "b", "--no-shuffle", "--rate", "fc1.*=0.5,fc3.bias=2")
        self.train("--steps", "1", "--save", "start", "--no-shuffle", "--lr", "1e-30")
        a, b, start = (self.weights(name) for name in ("a", "b", "start"))
        for name, factor in (("fc1.bias", 0.5), ("fc2.bias", 1), ("fc3.bias", 2)):
            for x, y, s in zip(a[name][2], b[name][2], start[name][2]):
                self.assertAlmostEqual(factor * (x - s), y - s, delta=1e-6)
        for wrong in ("fc1.*", "fc1.*=0", "fc1.*=x", "=2", "fc1.*=2,"):
            self.refused(2, "PATTERN=X", *self.common, "--rate", wrong)
        self.refused(2, "no parameter", *self.common, "--rate", "conv*=2")

    def test_losses_of_labels(self):
        last = {}
        for options in ((), ("--label-smoothing", "0.2"), ("--class-weights", "balanced"),
                        ("--class-weights", "1,1,1,1,1,1,1,1,1,0"), ("--ignore-label", "9")):
            last[options] = self.train("--epochs", "6", "--lr", "0.1", "--no-shuffle", "--json", *options).lines()[-1]
        plain, smooth, balanced, without, ignored = last.values()
        self.assertGreater(smooth["loss"], plain["loss"] + 0.2)
        self.assertAlmostEqual(balanced["loss"], plain["loss"], delta=1e-5)  # the classes are equally frequent
        self.assertAlmostEqual(without["loss"], ignored["loss"], delta=1e-5)
        self.assertLess(without["test_accuracy"], 0.95)
        # 90 % of the samples count, and the network is right on these.
        self.assertEqual(ignored["test_accuracy"], 1)
        self.refused(2, ["--class-weights", "3 numbers", "10 classes"], *self.common, "--class-weights", "1,2,3")
        self.refused(2, "--class-weights", *self.common, "--class-weights", "balance")
        self.refused(2, "--label-smoothing", "train", "linear", "--label-smoothing", "0.1")

    def test_weights_of_rare_classes(self):
        """One sample of class 1 for nine of class 0: balanced, both count the same."""
        rare = write(self.folder / "rare", train=[int(i % 10 == 9) for i in range(200)], t10k=[0, 1] * 20)
        balanced = self.good("train", "mlp", "--data", rare, "--batch", "40", "--steps", "3", "--class-weights", "balanced",
                             "--save", "a")
        by_hand = self.good("train", "mlp", "--data", rare, "--batch", "40", "--steps", "3", "--class-weights",
                            f"{200 / 360:.9g},5", "--save", "b")
        self.assertEqual(self.weights("a"), self.weights("b"), (balanced, by_hand))

    def test_learning_rates(self):
        outcome = self.train("--find-lr", "rates.svg", "--optimizer", "adam", "--json")
        found = re.search(r"suggested --lr (\S+) \(valley\)", outcome.errors)
        self.assertTrue(found, outcome)
        self.assertTrue(1e-5 < float(found[1]) < 0.5, found[1])
        line, = outcome.lines()
        self.assertGreater(len(line["steps"]), 30)
        picture = xml.etree.ElementTree.parse(self.folder / "rates.svg").getroot()
        text = "".join(picture.itertext())
        for words in ("learning rate", "loss", "suggested (valley)", "prefers-color-scheme:dark", "mlp"):
            self.assertIn(words, text)
        self.assertNotIn("nan", text)
        self.refused(2, ["--find-lr", "--folds"], *self.common, "--find-lr", "a.svg", "--folds", "3")
        self.refused(1, "none/a.svg", *self.common, "--find-lr", "none/a.svg")

    def test_folds(self):
        outcome = self.train("--folds", "3", "--epochs", "3", "--lr", "0.1", "--save", "m", "--json")
        lines = outcome.lines()
        self.assertEqual([line["epoch"] for line in lines[:-1]], [1, 2, 3, 3] * 3)
        self.assertEqual(lines[-1]["folds"], 3)
        ends = [lines[i]["test_accuracy"] for i in (3, 7, 11)]
        self.assertAlmostEqual(lines[-1]["test_accuracy"], sum(ends) / 3, places=6)
        self.assertIn("133 training and 67 test samples", outcome.errors)
        self.assertRegex(outcome.errors, r"mean of 3 folds: accuracy \d+\.\d\d \+- \d+\.\d\d %, loss")
        self.assertEqual({path.name for path in self.folder.glob("m.*")},
                         {f"m.fold{i}{end}" for i in (1, 2, 3) for end in (".safetensors", ".state.safetensors")})
        again = [self.train("--folds", "2", "--steps", "2", "--json", "--seed", seed).lines()[-1] for seed in (0, 0, 5)]
        self.assertEqual(again[0], again[1])
        self.assertNotEqual(again[0], again[2])
        self.refused(1, ["100 folds", "199 samples"], *self.common, "--folds", "100", "--data",
                     write(self.folder / "few", train=[0, 1] * 99 + [0], t10k=[0, 1]))
        self.refused(2, "--folds", *self.common, "--folds", "1")
        numbers = self.good("train", "linear", "--folds", "2", "--epochs", "2").errors
        self.assertRegex(numbers, r"mean of 2 folds: loss")


if __name__ == "__main__":
    harness.main()
