"""Predictions with saved weights: MODEL left out, new tables and pictures, and files of predictions."""
import csv
import json
import subprocess

import flowers
import harness
import pictures

WEIGHTS = ("--weights", "m.safetensors")


class WithTables(harness.CommandTest):
    def setUp(self):
        super().setUp()
        self.rows = flowers.rows(150, 1)
        self.new = flowers.rows(30, 2)
        flowers.write(self.folder / "train.csv", self.rows, "sepal", "petal", "species")
        flowers.write(self.folder / "new.csv", self.new, "petal", "sepal")

    def train(self, *arguments):
        return self.good("train", "mlp", "--data", "train.csv", "--devices", "0", "--lr", "0.01", *arguments)

    def metadata(self, name):
        content = (self.folder / name).read_bytes()
        return json.loads(content[8:8 + int.from_bytes(content[:8], "little")])["__metadata__"]


class Models(WithTables):
    def test_left_out(self):
        """Weights say their model, shape and outputs."""
        self.train("--epochs", "2", "--schedule", "constant", "--save", "m")
        known = json.loads(self.metadata("m.safetensors")["model"])
        self.assertEqual(known, {"name": "mlp", "shape": [2], "outputs": 3})
        data = ("--data", "train.csv", "--json")
        known, = self.good("eval", *WEIGHTS, *data).lines()
        self.assertEqual(known["model"], "mlp")
        self.assertEqual(known["loss"], self.good("eval", "mlp", *WEIGHTS, *data).lines()[0]["loss"])
        self.good("infer", *WEIGHTS, *data)
        lines = self.good("show", *WEIGHTS, "--json").lines()
        self.assertEqual((lines[-1]["model"], lines[-2]["shape"]), ("mlp", [3]))
        self.good("train", "--data", "train.csv", "--devices", "0", "--lr", "0.01", "--schedule", "constant", "--resume", "m", "--epochs", "3")
        self.good("train", "--data", "train.csv", "--devices", "0", "--steps", "1", *WEIGHTS)
        self.train("--epochs", "3", "--schedule", "constant", "--save", "whole")
        self.assertTrue(self.pair("whole") == self.pair("m"), "the resumed training differs from the whole one")
        shown = self.good("show", *WEIGHTS).output
        self.assertEqual(self.good("show", "mlp", *WEIGHTS).output, shown)
        self.assertEqual(self.good("show", "--weights", "m").output, shown)

    def test_older_weights(self):
        """They say what their data were, but not their model."""
        self.train("--epochs", "1", "--save", "m")
        content = (self.folder / "m.safetensors").read_bytes()
        end = 8 + int.from_bytes(content[:8], "little")
        header = json.loads(content[8:end])
        known = header["__metadata__"].pop("model")
        def save(name):
            text = json.dumps(header).encode()
            (self.folder / name).write_bytes(len(text).to_bytes(8, "little") + text + content[end:])
        save("old.safetensors")
        old = ("--weights", "old.safetensors")
        self.refused(2, ["old.safetensors does not say", "name it"], "infer", *old, "new.csv")
        self.assertEqual(self.good("infer", "mlp", *old, "new.csv").output, self.good("infer", *WEIGHTS, "new.csv").output)
        self.assertEqual(self.good("show", "mlp", *old).output, self.good("show", *WEIGHTS).output)
        for damage, words in ((known[:-1], "damaged"), (known.replace("mlp", "gone.onnx"), "\"gone.onnx\", which is not here"),
                              (known.replace("[2]", "[-2]"), "damaged"), (known.replace("mlp", "vgg99"), "vgg99")):
            header["__metadata__"]["model"] = damage
            save("bad.safetensors")
            self.refused(1 if words == "damaged" else 2, words, "eval", "--weights", "bad.safetensors", "--data", "train.csv")

    def test_refused(self):
        self.refused(2, ["MODEL is missing", harness.MODELS, "--weights"], "infer")
        self.refused(2, ["--weights is missing", "new.csv", "not a MODEL"], "infer", "new.csv")
        self.refused(1, ["--weights none", "cannot be read"], "infer", "--weights", "none")
        self.refused(1, ["--weights none", "cannot be read"], "show", "mlp", "--weights", "none")
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
        self.train("--optimizer", "sgd", "--steps", "1", "--split", "0.3", "--seed", "5", "--save", "m")
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
        for split, said in (("0.3", False), ("0.5", True)):
            errors = self.good("eval", *words, "--split", split).errors
            self.assertEqual("warning: --split 0.5 is not that of the training of m.safetensors, 0.3" in errors, said, errors)
        for division, said in ((("--split", "0.3", "--seed", "5"), False), (("--split", "0.3"), True), (("--seed", "5", "--folds", "2"), True)):
            errors = self.train("--steps", "1", *WEIGHTS, *division).errors
            self.assertEqual("warning: m.safetensors was trained on as many samples, divided by --split 0.3 --seed 5: if" in errors, said, errors)
        self.assertRegex(self.good("eval", *words[:-1], "--part", "all").output, r"worst: row \d+: \w+ taken for \w+")
        self.assertRegex(self.good("infer", *words[:-1], "--part", "all").output, r"(?m)^149 \w+ [01]\.\d{4}  row 150$")


    def test_a_table_for_tests(self):
        """It is divided, too, unless all of it is asked for; a line says so."""
        flowers.write(self.folder / "set" / "train.csv", self.rows, "sepal", "petal", "species")
        flowers.write(self.folder / "set" / "val.csv", self.new, "sepal", "petal", "species")
        flowers.write(self.folder / "test.csv", flowers.rows(20, 3), "sepal", "petal", "species")
        self.good("train", "mlp", "--data", "set", "--devices", "0", "--lr", "0.01", "--steps", "1", "--save", "m")
        words = ("eval", *WEIGHTS, "--json", "--data")
        for part, count, said in (((), 3, True), (("--part", "val"), 3, False), (("--part", "all"), 20, False)):
            outcome = self.good(*words, "test.csv", *part)
            self.assertEqual(outcome.lines()[0]["samples"], count)
            self.assertEqual("measured: part val, 3 of 20 samples; --part all measures all\n" in outcome.errors, said, outcome)
        self.assertIn("part val, 30 of 180 samples", self.good(*words, "set").errors)


class Tables(WithTables):
    def setUp(self):
        super().setUp()
        self.train("--epochs", "10", "--save", "m")

    def table(self, name):
        with open(self.folder / name, newline="") as file:
            return list(csv.DictReader(file))

    def test_new_rows(self):
        """All rows in their order, without the target or with anything in its column; the output has their columns."""
        words = ("infer", *WEIGHTS, "new.csv")
        lines = self.good(*words, "--json").lines()
        self.assertEqual([line["sample"] for line in lines], [f"row {i}" for i in range(1, 31)])
        right = [line["likeliest"][0]["name"] == row["species"] for line, row in zip(lines, self.new)]
        self.assertGreater(sum(right), 28)
        outcome = self.good(*words, "--output", "out.csv")
        self.assertEqual(outcome.output, "")
        self.assertIn("out.csv: 30 predictions", outcome.errors)
        rows = self.table("out.csv")
        self.assertEqual(list(rows[0]), ["petal", "sepal", "prediction"] + [f"probability_{name}" for name in sorted(flowers.KINDS)])
        for row, line, new in zip(rows, lines, self.new, strict=True):
            self.assertEqual((row["petal"], row["sepal"]), (new["petal"], new["sepal"]))
            self.assertEqual(row["prediction"], line["likeliest"][0]["name"])
            for likely in line["likeliest"]:
                self.assertAlmostEqual(float(row[f"probability_{likely['name']}"]), likely["probability"], places=6)
        (self.folder / "some.csv").write_text("species;note;petal;sepal\n?;\"a; \"\"b\"\", c\";100;5\nrose;;70;6\n")
        self.good("infer", *WEIGHTS, "some.csv", "--output", "some_out.csv")
        rows = self.table("some_out.csv")
        self.assertEqual([(row["species"], row["note"]) for row in rows], [("?", 'a; "b", c'), ("rose", "")])
        flowers.write(self.folder / "ONE.CSV", self.new[:1], "petal", "sepal")
        self.assertIn("TWO.CSV: 1 prediction\n", self.good("infer", *WEIGHTS, "ONE.CSV", "--output", "TWO.CSV").errors)
        self.good("infer", *WEIGHTS, "out.csv", "--output", "again.tsv")
        self.assertIn("\tprediction\t", (self.folder / "again.tsv").read_text().splitlines()[0])
        self.assertIn("\tprediction_2\t", (self.folder / "again.tsv").read_text().splitlines()[0])

    def test_bad_rows(self):
        """They keep their place, without a prediction."""
        (self.folder / "bad.csv").write_text("petal,sepal\n100,5\n70,six\n40\n,\n40,7\n")
        outcome = self.tutti("infer", *WEIGHTS, "bad.csv", "none.csv", "train.pdf", "--output", "out.csv")
        self.assertEqual(outcome.status, 3, outcome)
        for words in ("row 2 (line 3): column 'sepal': 'six'", "none.csv: this cannot be opened", "train.pdf: this cannot"):
            self.assertIn(words, outcome.errors)
        rows = self.table("out.csv")
        self.assertEqual([bool(row["prediction"]) for row in rows], [True, False, False, True, True])
        self.assertEqual([row["petal"] for row in rows], ["100", "70", "40", "", "40"])
        outcome = self.good("infer", *WEIGHTS, "--data", "train.csv", "--part", "val", "--output", "val.csv", "--json")
        self.assertEqual([line["label_name"] for line in outcome.lines()], [row["species"] for row in self.table("val.csv")])

    def test_tables_as_data(self):
        """From standard input, and in a folder whose part is of one table, the output has the table's columns."""
        flowers.write(self.folder / "set" / "train.csv", self.rows, "petal", "sepal", "species")
        new = [{**row, "note": f"n{i}"} for i, row in enumerate(self.new)]
        flowers.write(self.folder / "set" / "test.csv", new, "species", "note", "sepal", "petal")
        words = ("infer", *WEIGHTS, "--output", "out.csv", "--data")
        done = self.tutti(*words, "-", "--part", "all", given=(self.folder / "new.csv").read_bytes())
        self.assertEqual(done.status, 0, done)
        rows = self.table("out.csv")
        self.assertEqual([(row["petal"], row["sepal"]) for row in rows], [(row["petal"], row["sepal"]) for row in self.new])
        self.good(*words, "set")
        rows = self.table("out.csv")
        self.assertEqual(list(rows[0])[:5], ["species", "note", "sepal", "petal", "prediction"])
        self.assertEqual([row["petal"] for row in rows], [row["petal"] for row in self.new])
        self.good(*words, "set", "--part", "all")
        rows = self.table("out.csv")
        self.assertEqual(list(rows[0])[:6], ["file", "petal", "sepal", "species", "note", "prediction"])
        for row, given in zip(rows, [*self.rows, *new], strict=True):
            file = "test" if "note" in given else "train"
            given = {"note": "", "file": f"set/{file}.csv", **{name: given[name] for name in given if name != "id"}}
            self.assertEqual({name: row[name] for name in given}, given)

    def test_several_tables(self):
        """In folders and in a list of names; the output says the file of each row."""
        flowers.write(self.folder / "deep" / "a.csv", self.new[:4], "petal", "sepal")
        flowers.write(self.folder / "deep" / "b.csv", self.new[4:6], "sepal", "petal")
        (self.folder / "deep" / "notes.txt").write_text("no table")
        outcome = self.tutti("infer", *WEIGHTS, "deep", "new.csv", "--output", "out.csv")
        self.assertEqual(outcome.status, 3, outcome)
        self.assertIn("deep/b.csv: its columns are not those of the table before", outcome.errors)
        rows = self.table("out.csv")
        self.assertEqual([row["file"] for row in rows], ["deep/a.csv"] * 4 + ["new.csv"] * 30)
        done = subprocess.run([harness.TUTTI, "infer", *WEIGHTS, "-", "--json"], cwd=self.folder, input="new.csv\r\n\ndeep\n",
                              capture_output=True, text=True, check=True)
        self.assertEqual(len(done.stdout.splitlines()), 36)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([line["index"] for line in lines], list(range(36)))
        self.assertEqual([(line["file"], line["sample"]) for line in lines[29:32]],
                         [("new.csv", "row 30"), ("deep/a.csv", "row 1"), ("deep/a.csv", "row 2")])
        lines = self.tutti("infer", *WEIGHTS, "deep").output.splitlines()
        self.assertRegex(lines[3], r"^3 \w+ [01]\.\d{4}  deep/a\.csv row 4$")
        self.assertRegex(lines[4], r"^4 \w+ [01]\.\d{4}  deep/b\.csv row 1$")
        self.assertNotIn("file", self.good("infer", *WEIGHTS, "new.csv", "--json").lines()[0])

    def test_refused_before_any_work(self):
        def refused(status, words, *arguments):
            self.refused(status, words, "infer", *WEIGHTS, *arguments, OCL_ICD_VENDORS="/nonexistent")
        before = (self.folder / "new.csv").read_bytes()
        (self.folder / "link.csv").symlink_to("new.csv")
        refused(2, ["new.csv", "which is read"], "new.csv", "--output", "new.csv")
        refused(2, ["link.csv", "new.csv, which is read"], "new.csv", "--output", "link.csv")
        refused(2, ["train.csv, which is read"], "--data", "train.csv", "--output", "train.csv")
        refused(2, ["new.csv", "which is read"], ".", "--output", "new.csv")
        refused(2, ["out.xlsx", ".csv or .tsv"], "new.csv", "--output", "out.xlsx")
        refused(1, ["none/out.csv", "folder none"], "new.csv", "--output", "none/out.csv")
        refused(2, ["--inputs", "--outputs"], "--inputs", "a.npz", "--outputs", "b.npz", "--output", "out.csv")
        refused(2, "--part", "new.csv", "--part", "val")
        refused(2, ["the data are missing", "trained on a table", "as FILE, or by --data"])
        refused(1, "none.csv: this cannot be opened", "none.csv")
        refused(2, "these are weights", "m.state.safetensors")
        self.assertEqual((self.folder / "new.csv").read_bytes(), before)
        self.assertFalse((self.folder / "out.csv").exists())

    def test_numbers(self):
        self.good("train", "mlp", "--data", "train.csv", "--target", "petal", "--devices", "0", "--lr", "0.01", "--save", "n",
                  "--epochs", "10")
        flowers.write(self.folder / "rest.csv", self.new, "species", "sepal")
        words = ("infer", "--weights", "n.safetensors", "rest.csv")
        lines = self.good(*words, "--json").lines()
        self.assertEqual((lines[4]["index"], lines[4]["sample"]), (4, "row 5"))
        self.good(*words, "--output", "out.csv")
        for row, line, new in zip(self.table("out.csv"), lines, self.new, strict=True):
            self.assertEqual(list(row), ["species", "sepal", "prediction"])
            self.assertAlmostEqual(float(row["prediction"]) / line["value"], 1, places=6)
            self.assertLess(abs(line["value"] - float(new["petal"])), 60)


class Files(harness.CommandTest):
    def output(self, *arguments):
        outcome = self.tutti("infer", *WEIGHTS, *arguments, "--output", "out.csv")
        with open(self.folder / "out.csv", newline="") as file:
            return outcome, list(csv.DictReader(file))

    def test_pictures(self):
        """Files, folders and what is below them, in order; those that cannot be read are named, the rest is predicted."""
        pictures.write_classes(self.folder / "set", 10)
        self.good("train", "lenet", "--data", "set", "--input", "3x16x16", "--batch", "8", "--lr", "0.01", "--devices", "0",
                  "--epochs", "6", "--save", "m")
        below = self.folder / "new" / "below"
        below.mkdir(parents=True)
        (self.folder / "set" / "red" / "000.ppm").rename(self.folder / "new" / "b.ppm")
        (self.folder / "set" / "blue" / "000.ppm").rename(below / "a.ppm")
        (below / "again").symlink_to("..")
        (self.folder / "new" / "notes.txt").write_text("no picture")
        (self.folder / "cut.ppm").write_bytes(b"P6\n16 16\n255\n")
        (self.folder / "a.wav").write_bytes(b"RIFF")
        (below / "gone.ppm").symlink_to("nowhere")
        outcome, rows = self.output("first.ppm", "set/green/001.ppm", "cut.ppm", "a.wav", "new", "none.ppm")
        self.assertEqual(outcome.status, 3, outcome)
        for name in ("first.ppm", "cut.ppm", "a.wav", "new/below/gone.ppm", "none.ppm"):
            self.assertEqual(outcome.errors.count(f"tutti infer: {name}"), 1, outcome)
        self.assertIn("tutti infer: 5 could not be predicted, and 3 were\n", outcome.errors)
        self.assertEqual([(row["file"], row["prediction"]) for row in rows],
                         [("first.ppm", ""), ("set/green/001.ppm", "green"), ("cut.ppm", ""), ("a.wav", ""), ("new/b.ppm", "red"),
                          ("new/below/a.ppm", "blue"), ("new/below/gone.ppm", ""), ("none.ppm", "")])
        self.assertTrue(all(row["probability_red"] == "" for row in rows if not row["prediction"]))
        (below / "gone.ppm").unlink()
        self.assertIn("new: 1 file is left out, of other kinds", outcome.errors)
        self.assertEqual(list(rows[0]), ["file", "prediction", "probability_blue", "probability_green", "probability_red"])
        self.assertEqual(self.tutti("infer", *WEIGHTS, "--skip-damaged", "cut.ppm", "new").status, 0)
        self.assertEqual(self.tutti("infer", *WEIGHTS, "--skip-damaged", "cut.ppm").status, 1)
        lines = self.good("infer", *WEIGHTS, "--json", "new").lines()
        self.assertEqual([line["sample"] for line in lines], ["new/b.ppm", "new/below/a.ppm"])
        result, = self.good("eval", *WEIGHTS, "--data", "set", "--part", "all", "--json").lines()
        self.assertEqual(result["samples"], 28)
        self.some_classes()

    def some_classes(self):
        """eval on data with one of the classes, and with one that the network does not know."""
        (self.folder / "set" / "green").rename(self.folder / "green")
        result, = self.good("eval", *WEIGHTS, "--data", "set", "--part", "all", "--json").lines()
        support = {row["name"]: row["support"] for row in result["scores"]["classes"]}
        self.assertEqual((support, result["accuracy"]), ({"blue": 9, "green": 0, "red": 9}, 1))
        (self.folder / "green").rename(self.folder / "set" / "grass")
        self.refused(1, ["class", "'grass'", "'green'"], "eval", *WEIGHTS, "--data", "set")


harness.main()
