"""Tables by the command: what weights know of their columns and classes counts for every other table."""
import gzip
import json
import pathlib
import random

import flowers
import harness
import npz

MODEL = ("mlp", "--weights", "m.safetensors")


class Tables(harness.CommandTest):
    def setUp(self):
        super().setUp()
        self.rows = flowers.rows(300, 1)
        self.test_rows = flowers.rows(60, 2)
        self.put("plain", "sepal", "petal", "species")

    def put(self, name, *names, train=None, test=None):
        flowers.write(self.folder / name / "train.csv", train or self.rows, *names)
        flowers.write(self.folder / name / "test.csv", test or self.test_rows, *names)

    def train(self, *arguments):
        return self.good("train", "mlp", "--data", "plain", "--devices", "0", "--lr", "0.01", *arguments)

    def evaluate(self, data, *arguments):
        outcome = self.good("eval", *MODEL, "--data", data, "--json", *arguments)
        return outcome.lines()[0], outcome.errors

    def test_defaults(self):
        """Iris is learned without an option; what was not given is told, and what was given counts."""
        iris = ("train", "mlp", "--data", pathlib.Path(__file__).with_name("iris.csv"), "--devices", "0")
        outcome = self.good(*iris, "--json")
        self.assertGreaterEqual(outcome.lines()[-1]["test_accuracy"], 0.95)
        self.assertIn("not given: --batch 16 --epochs 20 --optimizer adamw --lr 0.001 --weight-decay 0.3 --schedule cosine\n",
                      outcome.errors)
        few = (*iris, "--epochs", "1", "--batch", "40")
        self.assertIn("not given: --lr 0.001 --weight-decay 0.3 --schedule cosine\n", self.good(*few, "--optimizer", "adamw").errors)
        self.assertIn("not given: --optimizer adamw --weight-decay 0.3\n",
                      self.good(*few, "--lr", "0.01", "--schedule", "constant").errors)
        for words in (("--optimizer", "sgd"), ("--momentum", "0.5"), ("--optimizer", "lion", "--lr", "0.001")):
            self.assertIn("not given: --schedule cosine\n", self.good(*few, *words).errors)
        self.assertNotIn("not given", self.good(*few, "--optimizer", "sgd", "--schedule", "constant").errors)
        self.assertNotIn("not given", self.good("train", "mlp", "--steps", "1", "--batch", "4", "--devices", "0").errors)

    def test_tabular(self):
        self.good("train", "tabular", "--data", "plain", "--devices", "0", "--save", "m")
        words = ("tabular", "--weights", "m.safetensors", "--data", "plain")
        result, = self.good("eval", *words, "--json").lines()
        self.assertGreater(result["accuracy"], 0.95)
        lines = self.good("infer", *words, "--json").lines()
        right = sum(line["likeliest"][0]["name"] == row["species"] for line, row in zip(lines, self.test_rows, strict=True))
        self.assertAlmostEqual(right / len(lines), result["accuracy"], places=6)
        self.refused(2, "use linear, mlp or tabular; tabular was made for tables", "train", "lenet", "--data", "plain")

    def test_embedded_texts(self):
        """Many texts of a column are embedded by `tabular`, and the weights know their codes."""
        dice = random.Random(5)
        rows = [{"shop": f"s{i * 7 % 120}", "x": f"{dice.random():.3f}", "kind": "abc"[i % 3], "sales": (i * 7 % 120) % 9 + i % 3}
                for i in range(720)]
        names = "shop", "x", "kind", "sales"
        flowers.write(self.folder / "t.csv", rows, *names)
        train = ("train", "tabular", "--data", "t.csv", "--devices", "0", "--schedule", "constant")
        self.good(*train, "--save", "m", "--epochs", "6")
        content = (self.folder / "m.safetensors").read_bytes()
        model = json.loads(json.loads(content[8:8 + int.from_bytes(content[:8], "little")])["__metadata__"]["model"])
        self.assertEqual((model["shape"], model["codes"]), ([6], [121]))
        weights = ("--weights", "m.safetensors")
        result, = self.good("eval", *weights, "--data", "t.csv", "--json").lines()
        self.assertGreater(result["scores"]["r2"], 0.7)
        unseen = [{**rows[0], "shop": "s999"}, {**rows[0], "shop": ""}]
        flowers.write(self.folder / "new.csv", [*rows[:5], *unseen], "kind", "shop", "x")
        values = [line["value"] for line in self.good("infer", *weights, "--data", "new.csv", "--json").lines()]
        for row, value in zip(rows, values[:5]):
            self.assertAlmostEqual(row["sales"], value, delta=2)
        self.assertEqual(values[5], values[6])
        self.good(*train, "--save", "part", "--epochs", "3")
        self.good(*train, "--resume", "part", "--epochs", "6")
        self.assertEqual(self.pair("m"), self.pair("part"))
        self.assertIn("embedded, 121 codes", self.good("inspect", "t.csv").output)
        self.refused(1, "--augment", *train, "--resume", "part", "--epochs", "7", "--augment", "noise=0.1")

    def test_columns_by_name(self):
        self.train("--epochs", "10", "--save", "m")
        before, _ = self.evaluate("plain")
        self.assertGreater(before["accuracy"], 0.95)
        predicted = self.good("infer", *MODEL, "--data", "plain", "--json").lines()
        self.put("swapped", "species", "id", "petal", "sepal")
        after, errors = self.evaluate("swapped")
        self.assertEqual((after["loss"], after["accuracy"]), (before["loss"], before["accuracy"]))
        self.assertIn("'id' is left out", errors)
        found = self.good("infer", *MODEL, "--data", "swapped", "--json").lines()
        self.assertEqual([line["likeliest"] for line in found], [line["likeliest"] for line in predicted])
        self.put("short", "sepal", "species")
        self.refused(1, ["lacks the column 'petal'", "'species'"], "eval", *MODEL, "--data", "short")
        self.refused(1, ["'species'", "not 'petal'"], "eval", *MODEL, "--data", "plain", "--target", "petal")

    def test_resumed_by_name(self):
        constant = "--schedule", "constant"
        self.train("--epochs", "2", "--save", "whole", *constant)
        self.train("--epochs", "1", "--save", "part", *constant)
        self.put("plain", "species", "petal", "id", "sepal")
        self.train("--epochs", "2", "--resume", "part", *constant)
        whole, part = self.pair("whole"), self.pair("part")
        self.assertEqual(whole, part)
        self.put("plain", "petal", "species")
        self.refused(1, "'sepal'", "train", "mlp", "--data", "plain", "--resume", "part", "--epochs", "3")

    def test_classes_by_name(self):
        self.train("--epochs", "10", "--save", "m")
        some = [row for row in self.test_rows if row["species"] != "setosa"]
        self.put("some", "sepal", "petal", "species", train=some, test=some)
        result, _ = self.evaluate("some")
        self.assertGreater(result["accuracy"], 0.95)
        for row, line in zip(some, self.good("infer", *MODEL, "--data", "some", "--json").lines(), strict=True):
            self.assertEqual(line["label_name"], row["species"])
        self.refused(1, ["'setosa'", "missing"], "train", "mlp", "--data", "some", "--resume", "m", "--epochs", "11")
        other = [{**row, "species": row["species"].replace("setosa", "rose")} for row in self.test_rows]
        self.put("other", "sepal", "petal", "species", train=other, test=other)
        self.refused(1, ["'rose'", "'setosa', 'versicolor', 'virginica'"], "eval", *MODEL, "--data", "other")

    def test_rows_to_predict(self):
        """A table without the target: all rows in their order."""
        self.train("--epochs", "10", "--save", "m")
        flowers.write(self.folder / "new.csv", self.test_rows, "petal", "sepal")
        lines = self.good("infer", *MODEL, "--data", "new.csv", "--json").lines()
        self.assertEqual(len(lines), len(self.test_rows))
        right = sum(line["likeliest"][0]["name"] == row["species"] for line, row in zip(lines, self.test_rows))
        self.assertGreater(right, 0.95 * len(lines))
        self.refused(1, "'species'", "eval", *MODEL, "--data", "new.csv")
        self.good("train", "mlp", "--data", "plain", "--target", "petal", "--devices", "0", "--lr", "0.01", "--save", "n")
        flowers.write(self.folder / "new.csv", self.test_rows, "species", "sepal")
        lines = self.good("infer", "mlp", "--weights", "n.safetensors", "--data", "new.csv", "--json").lines()
        errors = [abs(line["value"] - float(row["petal"])) for line, row in zip(lines, self.test_rows, strict=True)]
        self.assertLess(sum(errors) / len(errors), 12)

    def test_columns_of_all_kinds(self):
        """Texts, dates and missing values, and the same in another table, with what the training has not seen."""
        dice = random.Random(3)
        rows = []
        for i in range(400):
            colour, day = dice.choice(("red", "blue", "green")), dice.randint(1, 28)
            value = {"red": 10, "blue": 20, "green": 30}[colour] + day
            rows.append({"name": f"n{i}", "colour": "" if i % 50 == 7 else colour, "when": f"2001-03-{day:02}",
                         "rate": "NA" if i % 40 == 3 else f"{dice.randint(0, 9)}%", "value": value if i != 9 else ""})
        names = "name", "colour", "when", "rate", "value"
        flowers.write(self.folder / "train.csv", rows[:300], *names)
        flowers.write(self.folder / "val.csv", rows[300:], *names)
        words = ("train", "mlp", "--data", ".", "--devices", "0")
        outcome = self.good(*words, "--epochs", "40", "--lr", "0.01", "--save", "m", "--json")
        self.assertIn("'name' is left out: each row has another text", outcome.errors)
        self.assertEqual(outcome.errors.count("left out 1 row: "), 1, outcome.errors)
        self.assertGreater(outcome.lines()[-1]["scores"]["r2"], 0.9)
        flowers.write(self.folder / "new" / "train.csv", rows[:2], *reversed(names[1:]))
        flowers.write(self.folder / "new" / "test.csv", [{**rows[301], "colour": "purple"}], *reversed(names[1:]))
        line, = self.good("infer", *MODEL, "--data", "new", "--json").lines()
        self.assertIn("value", line)
        width = json.loads(self.metadata("m.safetensors")["data"])["shape"][0]
        npz.write(self.folder / "raw.npz", input=("<f4", (1, width), [0] * width))
        raw = ("infer", *MODEL, "--inputs", "raw.npz", "--outputs", "o.npz", "--input", width, "--classes", 1)
        self.refused(2, ["--prepare", "use --data"], *raw, "--prepare")
        self.assertIn("inputs are not prepared: the training's table has texts", self.good(*raw).errors)
        self.refused(1, ["row 4", "'rate'", "--missing fill"], *words, "--missing", "refuse")
        outcome = self.good(*words, "--epochs", "1", "--only", "colour,when", "--id", "name", "--save", "n")
        known = json.loads(self.metadata("n.safetensors")["data"])
        self.assertEqual(known["columns"], ["colour", "when"])
        self.refused(1, "'colours'", *words, "--drop", "colours")

    def test_columns_of_weights(self):
        """A training that begins with weights says that its columns are others; options of the data are the training's."""
        self.train("--epochs", "1", "--save", "m")
        words = ("--epochs", "1", "--weights", "m.safetensors")
        self.assertNotIn("input column", self.train(*words).errors)
        self.put("plain", "petal", "sepal", "species")
        self.assertIn("warning: input column 1 is 'petal', but in the training of m.safetensors it was 'sepal'\n",
                      self.train(*words).errors)
        self.refused(1, ["--drop", "of the training"], "train", "mlp", "--data", "plain", "--resume", "m", "--drop", "sepal",
                     "--epochs", "2")
        self.refused(1, ["'species' is the target", "--target"], "train", "mlp", "--data", "plain", "--drop", "species")

    def test_options_given_again(self):
        """The command of a training can be repeated with --resume; other options of columns are refused."""
        self.put("plain", "id", "sepal", "petal", "species")
        words = ("train", "mlp", "--data", "plain", "--devices", "0")
        self.train("--epochs", "1", "--drop", "petal", "--id", "id", "--save", "m")
        for again in (("--drop", "petal", "--id", "id"), ("--drop", "petal"), ("--only", "sepal"), ("--normalise", "measured"), ()):
            self.good(*words, "--epochs", "2", "--resume", "m", *again)
        for other, message in ((("--drop", "sepal"), "'sepal' was an input"), (("--only", "petal"), "'sepal' was an input"),
                               (("--id", "petal"), "'petal' was left out"), (("--drop", "petals"), "did you mean petal?"),
                               (("--normalise", "none"), "where it was measured")):
            self.refused(1, message, *words, "--epochs", "2", "--resume", "m", *other)

    def test_standard_input(self):
        """A table from standard input trains as the same file does, plain and packed, by folds, and is predicted."""
        flowers.write(self.folder / "flowers.csv", self.rows, "sepal", "petal", "species")
        content = (self.folder / "flowers.csv").read_bytes()
        words = "train", "mlp", "--devices", "0", "--epochs", "2", "--lr", "0.01"
        self.good(*words, "--data", "flowers.csv", "--save", "file")
        for name, given in (("plain", content), ("packed", gzip.compress(content)), ("tabs", content.replace(b",", b"\t"))):
            self.good(*words, "--data", "-", "--save", name, given=given)
            self.assertEqual(self.pair(name), self.pair("file"), name)
        self.good(*words, "--data", "-", "--folds", "2", given=content)
        infer = ("infer", "mlp", "--weights", "file", "--json", "--data")
        self.assertEqual(self.good(*infer, "-", given=content).output, self.good(*infer, "flowers.csv").output)
        self.refused(1, ["standard input: the file is empty"], *words, "--data", "-")
        self.refused(1, ["standard input has no column 'kind'"], *words, "--data", "-", "--target", "kind", given=content)
        self.refused(1, ["standard input: line 1", "zero byte"], *words, "--data=-", given=b"\0\1\2" * 100)
        self.refused(1, ["TMPDIR"], *words, "--data", "-", given=content, TMPDIR=self.folder / "none")

    def test_pivot_tables(self):
        """Names that are numbers after an empty one: other tables are read by them, in any order."""
        rows = [f"{i},{i % 7},{i * 3 % 11},{i % 7 + i * 3 % 11}" for i in range(40)]
        (self.folder / "pivot.csv").write_text("\n".join([",2001,2002,2003", *rows]), encoding="utf-8")
        words = "train", "mlp", "--data", "pivot.csv", "--devices", "0", "--epochs", "1", "--save", "m"
        self.assertIn("taken as names of columns: they are numbers in order", self.good(*words).errors)
        lines = self.good("infer", *MODEL, "pivot.csv", "--json").lines()
        self.assertEqual(len(lines), len(rows))
        swapped = [f"{i},{i * 3 % 11},{i % 7}" for i in range(40)]
        (self.folder / "new.csv").write_text("\n".join([",2002,2001", *swapped]), encoding="utf-8")
        found = self.good("infer", *MODEL, "new.csv", "--json").lines()
        self.assertEqual([line["value"] for line in found], [line["value"] for line in lines])

    def test_equal_names(self):
        """Columns of one name are told apart by their order; none of them gives the target away."""
        dice = random.Random(5)
        numbers = [(dice.randint(0, 9), dice.randint(0, 9), dice.randint(0, 9)) for _ in range(60)]

        def put(name, header, *order):
            rows = [",".join(str(row[i]) for i in order) for row in numbers]
            (self.folder / name).write_text("\n".join([header, *rows]), encoding="utf-8")

        def train(name, *options):
            outcome = self.good("train", "mlp", "--data", name, "--devices", "0", "--epochs", "1", "--save", "m", *options)
            return json.loads(self.metadata("m.safetensors")["data"])["columns"], outcome.errors

        put("leak.csv", "y,b,y", 0, 1, 0)
        columns, errors = train("leak.csv")
        self.assertEqual(columns, ["b"])
        self.assertIn("column 1 is left out: it is called 'y', as the target is", errors)
        self.assertEqual(train("leak.csv", "--target", "3")[0], ["b"])
        self.assertEqual(train("leak.csv", "--target", "1", "--only", "2,3")[0], ["b", "y"])
        self.refused(1, ["columns 1 and 3 are both called 'y'", "--target 3"], "train", "mlp", "--data", "leak.csv", "--target", "y")
        train("leak.csv")
        put("once.csv", "b,y", 1, 0)
        self.good("eval", *MODEL, "--data", "once.csv")
        put("twice.csv", "a,b,a,y", 0, 1, 2, 1)
        columns, errors = train("twice.csv")
        self.assertEqual(columns, ["a", "b", "a"])
        self.assertIn("several columns are called 'a': in other tables they are found by their order", errors)
        lines = self.good("infer", *MODEL, "twice.csv", "--json").lines()
        put("new.csv", "b,a,a", 1, 0, 2)
        self.assertEqual([line["value"] for line in self.good("infer", *MODEL, "new.csv", "--json").lines()],
                         [line["value"] for line in lines])
        put("new.csv", "b,a", 1, 0)
        self.refused(1, "lacks the column 'a' (one more of this name)", "infer", *MODEL, "new.csv")
        self.assertEqual(train("twice.csv", "--drop", "a")[0], ["b"])
        self.assertEqual(train("twice.csv", "--only", "a")[0], ["a", "a"])
        self.assertEqual(train("twice.csv", "--drop", "3")[0], ["a", "b"])

    def test_other_kinds(self):
        self.train("--epochs", "1", "--save", "m")
        self.refused(1, ["trained on a table", "digits"], "eval", *MODEL, "--data", "digits")
        known = json.loads(self.metadata("m.safetensors")["data"])
        self.assertEqual((known["kind"], known["target"]), ("table", "species:class"))

    def metadata(self, name):
        content = (self.folder / name).read_bytes()
        return json.loads(content[8:8 + int.from_bytes(content[:8], "little")])["__metadata__"]


harness.main()
