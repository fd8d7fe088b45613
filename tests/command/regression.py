"""Numbers to predict, in units of their own: what people see has those units, whatever the network computes with."""
import json
import random
import statistics

import harness
import npz

WORDS = ("mlp", "--weights", "m.safetensors")


def price(area, rooms, age):
    """About 300,000 +- 80,000."""
    return 60000 + 2400 * area + 15000 * rooms - 1200 * age


def write_houses(path, count, seed, least=50, most=150):
    """Returns the prices."""
    dice = random.Random(seed)
    rows = [(dice.uniform(least, most), dice.randint(1, 7), dice.randint(0, 80)) for _ in range(count)]
    path.parent.mkdir(exist_ok=True)
    path.write_text("area,rooms,price,age\n" +
                    "".join(f"{area:.2f},{rooms},{price(area, rooms, age):.2f},{age}\n" for area, rooms, age in rows))
    return [price(*row) for row in rows]


class Regression(harness.CommandTest):
    def setUp(self):
        super().setUp()
        self.prices = write_houses(self.folder / "houses" / "train.csv", 2000, 1)
        self.wanted = write_houses(self.folder / "houses" / "test.csv", 200, 2)

    def train(self, *arguments):
        return self.good("train", "mlp", "--data", "houses", "--target", "price", "--devices", "0", *arguments)

    def infer(self, data):
        lines = self.good("infer", *WORDS, "--data", data, "--json").lines()
        self.assertEqual([line["index"] for line in lines], list(range(len(lines))))
        return [line["value"] for line in lines]

    def header(self, name):
        """That of a file of weights, and what follows."""
        content = (self.folder / name).read_bytes()
        end = 8 + int.from_bytes(content[:8], "little")
        return json.loads(content[8:end]), content[end:]

    def test_prices(self):
        outcome = self.train("--epochs", "5", "--json", "--save", "m", "--report", "r.html", "--log", "l.csv")
        lines = outcome.lines()
        scores = lines[-1]["scores"]
        self.assertGreater(scores["r2"], 0.9)
        self.assertRegex(outcome.errors, r"epoch 5/5 .*  test loss \d\.\d+  test MAE \d+")
        known = json.loads(self.header("m.safetensors")[0]["__metadata__"]["data"])
        mean, std = statistics.fmean(self.prices), statistics.pstdev(self.prices)
        self.assertAlmostEqual(known["target_mean"][0] / mean, 1, places=6)
        self.assertAlmostEqual(known["target_std"][0] / std, 1, places=6)
        self.assertAlmostEqual(scores["rmse"] / std, lines[-1]["test_loss"] ** 0.5, places=4)
        found = self.infer("houses")
        errors = [abs(a - b) for a, b in zip(found, self.wanted)]
        self.assertLess(max(errors), 100000)
        self.assertAlmostEqual(statistics.fmean(errors) / scores["mae"], 1, places=3)
        self.assertAlmostEqual(max(errors) / scores["worst"][0]["error"], 1, places=3)
        told, = self.good("eval", *WORDS, "--data", "houses", "--json").lines()
        for name in ("loss", "r2", "mae", "rmse"):
            self.assertAlmostEqual(told["scores"][name] / scores[name], 1, places=4)
        self.assertRegex(self.good("eval", *WORDS, "--data", "houses").output, r"worst: test\.csv row \d+: off by \d+")
        rows = (self.folder / "l.csv").read_text().splitlines()
        row = dict(zip(rows[0].split(","), rows[-1].split(",")))
        self.assertAlmostEqual(float(row["mae"]) / scores["mae"], 1, places=5)
        self.assertIn(f">{scores['mae']:.4g}<", (self.folder / "r.html").read_text())

        # Other data have other means: those of the weights count.
        write_houses(self.folder / "small" / "train.csv", 100, 3, 5, 40)
        wanted = write_houses(self.folder / "small" / "test.csv", 100, 4, 60, 90)
        errors = [abs(a - b) for a, b in zip(self.infer("small"), wanted)]
        self.assertLess(statistics.fmean(errors), 2 * scores["mae"])

    def test_several_numbers(self):
        """Each with a unit of its own: a million and its thousands, and fives."""
        dice = random.Random(5)
        x = [[dice.uniform(-1, 1) for _ in range(2)] for _ in range(200)]
        y = [[1e6 + 1000 * a, 5 * b - a] for a, b in x]
        arrays = {}
        for part, first, end in (("train", 0, 160), ("test", 160, 200)):
            arrays[f"{part}_x"] = ("<f4", (end - first, 2), sum(x[first:end], []))
            arrays[f"{part}_y"] = ("<f8", (end - first, 2), sum(y[first:end], []))
        npz.write(self.folder / "a.npz", **arrays)
        self.good("train", "linear", "--data", "a.npz", "--epochs", 20, "--save", "m", "--devices", "0")
        words = ("infer", "linear", "--weights", "m.safetensors")
        lines = self.good(*words, "--data", "a.npz", "--json").lines()
        self.assertEqual(len(lines), 40)
        for line, row in zip(lines, y[160:]):
            self.assertAlmostEqual(line["values"][0], row[0], delta=20)
            self.assertAlmostEqual(line["values"][1], row[1], delta=0.1)
        text = self.good(*words, "--data", "a.npz", "--count", 1).output.split()
        self.assertEqual((text[0], text[-1], lines[0]["sample"]), ("0", lines[0]["sample"], "test_x[0]"))
        for number, value in zip(text[1:-1], lines[0]["values"], strict=True):
            self.assertAlmostEqual(float(number) / value, 1, places=5)
        npz.write(self.folder / "in.npz", input=("<f4", (1, 2), x[160])) # the network by itself
        self.good(*words, "--inputs", "in.npz", "--outputs", "out.npz", "--input", "2", "--classes", "2")
        (_, _, plain), = npz.read(self.folder / "out.npz").values()
        self.assertLess(abs(plain[0]), 3)

    def test_other_numbers_are_refused(self):
        self.train("--steps", "1", "--save", "m")
        header, rest = self.header("m.safetensors")
        known = json.loads(header["__metadata__"]["data"])
        for mean, std, words in (([1, 2], [1, 2], "the targets"), ([1], [0], "the targets"), ([1], [1, 2], "damaged"),
                                 ([], [], None)): # none: targets as they stand
            known["target_mean"], known["target_std"] = mean, std
            header["__metadata__"]["data"] = json.dumps(known)
            text = json.dumps(header).encode()
            (self.folder / "m.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + rest)
            if words:
                self.refused(1, words, "eval", *WORDS, "--data", "houses")
            else:
                line, = self.good("eval", *WORDS, "--data", "houses", "--json").lines()
                self.assertGreater(line["loss"], 1e9)

    def test_resumed(self):
        self.train("--epochs", "2", "--save", "whole", "--schedule", "constant")
        self.train("--epochs", "1", "--save", "part", "--schedule", "constant")
        self.train("--epochs", "2", "--resume", "part", "--schedule", "constant")
        self.assertEqual(self.pair("whole"), self.pair("part"))


harness.main()
