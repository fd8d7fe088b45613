"""Predictions with saved weights: MODEL left out, new tables, pictures and recordings, and files of predictions."""
import json
import random

import harness

KINDS = "versicolor", "setosa", "virginica"
WEIGHTS = ("--weights", "m.safetensors")


def flowers(count, seed):
    """Rows whose class follows from both lengths."""
    dice = random.Random(seed)
    rows = []
    for i in range(count):
        kind = i % 3
        rows.append({"sepal": f"{5 + kind + dice.gauss(0, 0.2):.3f}", "petal": f"{100 - 30 * kind + dice.gauss(0, 5):.3f}",
                     "species": KINDS[kind]})
    return rows


def put(path, rows, *names):
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join([",".join(names)] + [",".join(str(row[name]) for name in names) for row in rows]) + "\n")


class WithTables(harness.CommandTest):
    def setUp(self):
        super().setUp()
        self.rows = flowers(150, 1)
        self.new = flowers(30, 2)
        put(self.folder / "train.csv", self.rows, "sepal", "petal", "species")
        put(self.folder / "new.csv", self.new, "petal", "sepal")

    def train(self, *arguments):
        return self.good("train", "mlp", "--data", "train.csv", "--devices", "0", "--lr", "0.01", *arguments)

    def metadata(self, name):
        content = (self.folder / name).read_bytes()
        return json.loads(content[8:8 + int.from_bytes(content[:8], "little")])["__metadata__"]


class Models(WithTables):
    def test_left_out(self):
        """Weights say their model, shape and outputs."""
        self.train("--epochs", "2", "--save", "m")
        known = json.loads(self.metadata("m.safetensors")["model"])
        self.assertEqual(known, {"name": "mlp", "shape": [2], "outputs": 3})
        data = ("--data", "train.csv", "--json")
        known, = self.good("eval", *WEIGHTS, *data).lines()
        self.assertEqual(known["model"], "mlp")
        self.assertEqual(known["loss"], self.good("eval", "mlp", *WEIGHTS, *data).lines()[0]["loss"])
        self.good("infer", *WEIGHTS, *data)
        lines = self.good("show", *WEIGHTS, "--json").lines()
        self.assertEqual((lines[-1]["model"], lines[-2]["shape"]), ("mlp", [3]))
        self.good("train", "--data", "train.csv", "--devices", "0", "--lr", "0.01", "--resume", "m", "--epochs", "3")
        self.good("train", "--data", "train.csv", "--devices", "0", "--steps", "1", *WEIGHTS)
        self.train("--epochs", "3", "--save", "whole")
        self.assertEqual(self.pair("whole"), self.pair("m"))
        self.assertEqual(self.good("show", "mlp", *WEIGHTS).output, self.good("show", *WEIGHTS).output)

    def test_refused(self):
        self.refused(2, ["MODEL is missing", harness.MODELS, "--weights"], "infer")
        self.refused(1, ["--weights none", "cannot be read"], "infer", "--weights", "none")
        self.refused(1, ["--resume none.safetensors", "cannot be read"], "train", "--resume", "none")
        (self.folder / "bare.safetensors").write_bytes(b"\2\0\0\0\0\0\0\0{}")
        self.refused(2, ["bare.safetensors does not say", "name it"], "eval", "--weights", "bare.safetensors")
        self.refused(2, ["these are weights", "--weights bare.safetensors"], "infer", "bare.safetensors", "new.csv")
        self.train("--steps", "1", "--save", "m")
        other = ["the weights of mlp, not of linear", "leave MODEL out"]
        for command in (("eval",), ("infer",), ("show",), ("export", "--output", "m.onnx")):
            self.refused(1, other, command[0], "linear", *command[1:], *WEIGHTS, OCL_ICD_VENDORS="/nonexistent")
        self.refused(1, other, "train", "linear", "--resume", "m", "--data", "train.csv")
        self.refused(2, ["\"resnet\"", "did you mean resnet18?"], "infer", "resnet", *WEIGHTS)


class Parts(WithTables):
    def test_parts(self):
        """As the training divided the rows; all are in the order of the table, and have names."""
        self.train("--steps", "3", "--split", "0.3", "--seed", "5", "--save", "m")
        words = (*WEIGHTS, "--data", "train.csv", "--json")
        rows = {part: [line["sample"] for line in self.good("infer", *words, "--part", part).lines()]
                for part in ("train", "val", "all")}
        self.assertEqual(len(rows["val"]), 45)
        self.assertEqual(sorted(rows["train"] + rows["val"]), sorted(rows["all"]))
        self.assertEqual(rows["all"], [f"row {i}" for i in range(1, 151)])
        for part, names in rows.items():
            result, = self.good("eval", *words, "--part", part).lines()
            self.assertEqual(result["samples"], len(names))
            for mistake in result["scores"]["worst"]:
                self.assertEqual(mistake["sample"], names[mistake["index"]])
        self.assertRegex(self.good("eval", *words[:-1], "--part", "all").output, r"worst: row \d+: \w+ taken for \w+")
        self.assertRegex(self.good("infer", *words[:-1], "--part", "all").output, r"(?m)^149 \w+ [01]\.\d{4}  row 150$")


harness.main()
