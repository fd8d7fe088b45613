"""Scores: what eval and train tell is what infer's predictions give."""
import csv
import math

import harness

CLASSES = 10


class Scores(harness.CommandTest):
    def setUp(self):
        super().setUp()
        self.data = harness.write_mnist(self.folder / "data")
        train = ("train", "mlp", "--data", self.data, "--batch", "40", "--steps", "3", "--save", "m", "--json")
        self.lines = self.good(*train).lines()
        self.weights = ("mlp", "--data", self.data, "--weights", "m.safetensors")
        self.samples = self.good("infer", *self.weights, "--json").lines()

    def matrix(self):
        counts = [[0] * CLASSES for _ in range(CLASSES)]
        for sample in self.samples:
            counts[sample["label"]][sample["class"]] += 1
        return counts

    def test_json(self):
        scores = self.good("eval", *self.weights, "--json").lines()[0]["scores"]
        counts = self.matrix()
        self.assertEqual(scores["confusion"], counts)
        for i, row in enumerate(scores["classes"]):
            support, predicted = sum(counts[i]), sum(line[i] for line in counts)
            self.assertEqual((row["class"], row["support"]), (i, support))
            if support + predicted:
                self.assertAlmostEqual(row["f1"], 2 * counts[i][i] / (support + predicted), places=7)
        wrong = {sample["index"]: sample for sample in self.samples if sample["class"] != sample["label"]}
        self.assertGreater(len(wrong), 0)
        self.assertEqual(len(scores["worst"]), min(16, len(wrong)))
        for mistake in scores["worst"]:
            sample = wrong[mistake["index"]]
            self.assertEqual((mistake["label"], mistake["class"]), (sample["label"], sample["class"]))
            self.assertAlmostEqual(mistake["probability"], sample["probability"], places=5)
        losses = [mistake["loss"] for mistake in scores["worst"]]
        self.assertEqual(losses, sorted(losses, reverse=True))
        told = self.lines[-1]["scores"]
        self.assertEqual(told["confusion"], counts)
        self.assertEqual(self.lines[-2]["scores"]["f1"], told["f1"])
        self.assertAlmostEqual(told["f1"], scores["f1"], places=7)

    def test_text_and_file(self):
        outcome = self.good("eval", *self.weights, "--scores", "scores.csv")
        counts = self.matrix()
        lines = outcome.output.splitlines()
        self.assertRegex(lines[0], r"^loss [\d.]+  accuracy [\d.]+ %  50 samples, \d+ samples/s$")
        self.assertRegex(lines[1], r"^top-5 [\d.]+ %  precision [\d.]+  recall [\d.]+  F1 [\d.]+  IoU [\d.]+$")
        table = lines[3:3 + CLASSES]
        self.assertEqual([int(line.split()[1]) for line in table], [sum(row) for row in counts])
        matrix = lines[3 + CLASSES + 2:][:CLASSES]
        self.assertEqual([[int(cell) for cell in line.replace(".", "0").split()[1:]] for line in matrix], counts)
        with open(self.folder / "scores.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([[int(row[f"as_{i}"]) for i in range(CLASSES)] for row in rows], counts)
        self.assertEqual([row["name"] for row in rows], [str(i) for i in range(CLASSES)])
        self.refused(1, "no/scores.csv", "eval", *self.weights, "--scores", "no/scores.csv")

    def test_numbers(self):
        lines = self.good("train", "linear", "--epochs", "2", "--save", "l", "--json").lines()
        scores = self.good("eval", "linear", "--weights", "l.safetensors", "--json").lines()[0]["scores"]
        self.assertAlmostEqual(scores["rmse"], math.sqrt(lines[-1]["test_loss"]), places=5)
        self.assertNotIn("confusion", scores)
        self.assertNotIn("class", scores["worst"][0])
        text = self.good("eval", "linear", "--weights", "l.safetensors", "--scores", "l.csv").output
        self.assertRegex(text.splitlines()[1], r"^R2 \S+  MAE \S+  RMSE \S+$")
        self.assertEqual(len((self.folder / "l.csv").read_text().splitlines()), 2)


harness.main()
