"""tutti infer on files of arrays; onnx.py has those of models with several inputs and outputs."""
import math

import harness
import npz


class Arrays(harness.CommandTest):
    def test_models_by_name(self):
        self.good("train", "linear", "--steps", 1, "--save", "m")
        weights = ("--weights", "m.safetensors", "--batch", 2)
        npz.write(self.folder / "in.npz", input=("<f4", (5, 1), [0, 1, 2, 3, -1]))
        self.good("infer", "linear", *weights, "--inputs", "in.npz", "--outputs", "out.npz")
        (kind, shape, y), = npz.read(self.folder / "out.npz").values()
        self.assertEqual((kind, shape), ("<f4", (5, 1)))
        for x, number in zip((0, 1, 2, 3, -1), y):
            self.assertAlmostEqual(number, y[0] + x * (y[1] - y[0]), places=5)
        (self.folder / "in.npy").write_bytes(npz.pack("<f8", (5, 1), [0, 1, 2, 3, -1])) # alone, and wider
        self.good("infer", "linear", *weights, "--inputs", "in.npy", "--outputs", "out.npy")
        self.assertEqual(npz.unpack((self.folder / "out.npy").read_bytes())[2], y)

    def outputs(self, model, *words):
        """What the model says of in.npz: numbers, and the line on standard error."""
        outcome = self.good("infer", model, "--weights", "m.safetensors", "--inputs", "in.npz", "--outputs", "out.npz", *words)
        (_, _, numbers), = npz.read(self.folder / "out.npz").values()
        return numbers, outcome.errors

    def test_prepared_tables(self):
        """As --data has them: columns are standardised, and numbers are in the units of the data."""
        rows = [(1000 + i % 7, i * 5 % 11 - 5) for i in range(40)]
        (self.folder / "t.csv").write_text("a,b,y\n" + "".join(f"{a},{b},{500 + 3 * a - b}\n" for a, b in rows))
        self.good("train", "linear", "--data", "t.csv", "--epochs", 3, "--save", "m")
        wanted = [float(line.split()[1]) for line in
                  self.good("infer", "linear", "--weights", "m.safetensors", "--data", "t.csv", "--part", "train").output.splitlines()]
        names = self.good("infer", "linear", "--weights", "m.safetensors", "--data", "t.csv", "--part", "train", "--json").lines()
        self.assertEqual(len(names), len(wanted))
        npz.write(self.folder / "in.npz", input=("<f8", (40, 2), [float(number) for row in rows for number in row]))
        numbers, errors = self.outputs("linear", "--input", 2, "--prepare")
        self.assertIn("inputs are prepared as in training: (x - mean) / std; outputs are in the units", errors)
        for value in wanted:
            self.assertLess(min(abs(number - value) for number in numbers), 0.01)
        numbers, errors = self.outputs("linear", "--input", 2)
        self.assertIn("inputs are not prepared: in training a number x became (x - mean) / std", errors)
        self.assertGreater(min(abs(number - wanted[0]) for number in numbers), 100)

    def test_prepared_images(self):
        pixels = [i * 37 % 256 for i in range(6 * 64)]
        npz.write(self.folder / "set.npz", x=("|u1", (6, 8, 8), pixels), y=("|u1", (6,), [0, 1, 0, 1, 0, 1]))
        self.good("train", "mlp", "--data", "set.npz", "--epochs", 2, "--save", "m", "--batch", 2)
        wanted = {line["index"]: line["likeliest"] for line in
                  self.good("infer", "mlp", "--weights", "m.safetensors", "--data", "set.npz", "--part", "train", "--json").lines()}
        npz.write(self.folder / "in.npz", input=("|u1", (6, 1, 8, 8), pixels))
        words = ("--input", "1x8x8", "--classes", 2)
        logits, errors = self.outputs("mlp", *words, "--prepare")
        self.assertIn("inputs are prepared as in training: (x / 255 - mean) / std\n", errors)
        found = [1 / (1 + math.exp(logits[2 * i + 1] - logits[2 * i])) for i in range(6)]
        for classes in wanted.values():
            first = next(entry["probability"] for entry in classes if entry["class"] == 0)
            self.assertLess(min(abs(number - first) for number in found), 1e-4)
        npz.write(self.folder / "in.npz", input=("<f4", (6, 1, 8, 8), [pixel / 255 for pixel in pixels]))
        self.assertIn("inputs are not prepared", self.outputs("mlp", *words)[1])
        self.refused(2, ["--prepare needs bytes", "float32"], "infer", "mlp", "--weights", "m.safetensors", "--inputs", "in.npz",
                     "--outputs", "out.npz", *words, "--prepare")

    def test_bytes_that_are_no_images(self):
        """Their floats are not taken for them, and numbers that are not finite are refused as in training."""
        numbers = [i * 37 % 256 for i in range(60 * 4)]
        npz.write(self.folder / "set.npz", x=("|u1", (60, 4), numbers), y=("<i4", (60,), [i % 2 for i in range(60)]))
        words = ("--input", 4, "--classes", 2)
        for options in ((), ("--normalise", "measured")):
            self.good("train", "mlp", "--data", "set.npz", "--epochs", 1, "--save", "m", *options)
            npz.write(self.folder / "in.npz", input=("|u1", (2, 4), numbers[:8]))
            _, errors = self.outputs("mlp", *words, "--prepare")
            self.assertIn("x / 255", errors)
            npz.write(self.folder / "in.npz", input=("<f4", (2, 4), [float(number) for number in numbers[:8]]))
            self.refused(2, "not uint8", "infer", "mlp", "--weights", "m.safetensors", "--inputs", "in.npz", "--outputs", "out.npz",
                         *words, "--prepare")

    def test_numbers_that_are_not_finite(self):
        npz.write(self.folder / "set.npz", x=("<f4", (40, 3), [i * 7 % 11 for i in range(120)]), y=("<i4", (40,), [i % 2 for i in range(40)]))
        self.good("train", "mlp", "--data", "set.npz", "--epochs", 1, "--save", "m", "--normalise", "measured")
        for number in (math.nan, math.inf):
            npz.write(self.folder / "in.npz", input=("<f4", (2, 3), [1, 2, 3, 4, number, 6]))
            self.refused(2, ["sample 1", "not finite"], "infer", "mlp", "--weights", "m.safetensors", "--inputs", "in.npz",
                         "--outputs", "out.npz", "--input", 3, "--classes", 2, "--prepare")
        self.refused(1, "standardised otherwise", "train", "mlp", "--data", "set.npz", "--resume", "m", "--epochs", 2, "--normalise", "none")
        self.good("train", "mlp", "--data", "set.npz", "--resume", "m", "--epochs", 2)

    def test_standardised(self):
        """What --normalise did is kept with the weights."""
        rows = [(1000.0 + i % 7, float(i * 5 % 11 - 5)) for i in range(40)]
        npz.write(self.folder / "set.npz", x=("<f8", (40, 2), [number for row in rows for number in row]),
                  y=("<f4", (40,), [a - b for a, b in rows]))
        words = ("--data", "set.npz", "--lr", "0.05", "--batch", 4)
        trained, = [line for line in self.good("train", "linear", *words, "--normalise", "measured", "--epochs", 20, "--save", "m",
                                               "--json").lines() if line.get("epoch") == 20 and "test_loss" in line][:1]
        self.assertLess(trained["test_loss"], 1e-3)
        result, = self.good("eval", "linear", "--data", "set.npz", "--weights", "m.safetensors", "--json").lines()
        self.assertAlmostEqual(result["loss"], trained["test_loss"], places=5)
        self.refused(1, ["imagenet", "2 means"], "train", "linear", *words, "--normalise", "imagenet")
        self.refused(1, "not normalised", "train", "linear", "--normalise", "measured")

    def test_wrong_use(self):
        npz.write(self.folder / "in.npz", input=("<f4", (5, 1), [0, 1, 2, 3, -1]))
        self.refused(2, "--outputs is missing", "infer", "linear", "--inputs", "in.npz")
        self.refused(2, "--inputs is missing", "infer", "linear", "--outputs", "out.npz")
        both = ("--inputs", "in.npz", "--outputs", "out.npz")
        self.refused(2, "--weights is missing", "infer", "linear", *both)
        self.refused(2, "--prepare", "infer", "linear", "--weights", "m.safetensors", "--prepare")
        self.refused(2, "--count", "infer", "linear", *both, "--weights", "m.safetensors", "--count", 3)
        self.refused(2, "--inputs", "infer", "linear", "--weights", "m.safetensors", "--classes", 3)


harness.main()
