"""What `tutti inspect` says of tables, pictures and arrays, and of what is none of these."""
import json
import os
import random

import harness
import npz

NO_DEVICE = {"OCL_ICD_VENDORS": "/nonexistent"}


class Inspect(harness.CommandTest):
    def facts(self, *arguments):
        line, = self.good("inspect", *arguments, "--json", **NO_DEVICE).lines()
        return line

    def put(self, name, *rows):
        (self.folder / name).write_text("\n".join(",".join(map(str, row)) for row in rows) + "\n")

    def put_table(self):
        dice = random.Random(1)
        rows = [("id", "when", "size", "colour", "ok", "kind")]
        for i in range(120):
            rows.append((f"row {i}", f"2001-03-{1 + i % 28:02}", "" if i % 10 == 3 else i % 10, dice.choice("rgb") if i % 40 else "",
                         "yes" if i % 3 else "no", ("cat", "dog", "bird")[i % 3]))
        self.put("t.csv", *rows)

    def test_table(self):
        self.put_table()
        facts = self.facts("t.csv")
        columns = {column["name"]: column for column in facts["columns"]}
        self.assertEqual((facts["kind"], facts["samples"], facts["target"]), ("table", 120, "kind"))
        self.assertEqual({c["name"]: c["samples"] for c in facts["classes"]}, {"cat": 40, "dog": 40, "bird": 40})
        self.assertEqual(sum(facts["parts"].values()), 120)
        self.assertEqual(columns["id"]["becomes"], "left out: each row has another text")
        size = columns["size"]
        self.assertEqual((size["least"], size["largest"], size["missing"], size["inputs"]), (0, 9, 12, 2))
        self.assertEqual(size["quartiles"], [2, 5, 7])
        self.assertAlmostEqual(size["mean"], 42 / 9)
        self.assertEqual(size["histogram"], [12, 12, 12, 0, 12, 12, 12, 12, 12, 12])
        self.assertEqual(size["becomes"], "standardised; missing: median + an input")
        self.assertEqual((columns["when"]["least"], columns["when"]["largest"], columns["when"]["inputs"]),
                         ("2001-03-01", "2001-03-28", 6))
        colour = columns["colour"]
        self.assertEqual((colour["kind"], colour["different"], colour["missing"]), ("text", 3, 3))
        self.assertEqual(sum(one["samples"] for one in colour["categories"]), 117)
        self.assertEqual(columns["ok"]["categories"], [{"name": "true", "samples": 80}, {"name": "false", "samples": 40}])
        self.assertEqual(facts["shape"], [sum(column.get("inputs", 0) for column in columns.values())])
        self.assertEqual((facts["models"][0], facts["next"]), ("tabular", "tutti train tabular --data t.csv"))
        text = self.good("inspect", "t.csv", **NO_DEVICE)
        self.assertEqual(text.errors, "")
        for words in (r"^t.csv: a table of 120 rows and 6 columns, separated by commas$", r"^  target   kind: 3 classes;",
                      r"^  classes  bird \(40\), cat \(40\), dog \(40\)$", r"^  id      left out: each row has another text$",
                      r"^  size    number +12  0 \.\. 2 5 7 \.\. 9, mean 4\.667 +standardised \*$",
                      r"^  when    date +-  2001-03-01 \.\. .*2001-03-28.* 6 parts of the date$", r"^  \* A missing value ",
                      r"^  next     tutti train tabular --data t.csv$"):
            self.assertRegex(text.output, "(?m)" + words)
        self.assertLessEqual(max(map(len, text.output.splitlines())), 110)

    def test_options_of_a_training(self):
        self.put_table()
        facts = self.facts("t.csv", "--target", "size:class", "--drop", "when", "--id", "id")
        becomes = {column["name"]: column["becomes"] for column in facts["columns"]}
        self.assertEqual(becomes["when"], "left out: --drop names it")
        self.assertEqual(becomes["id"], "names the rows")
        self.assertEqual(becomes["size"], "the target: 9 classes")
        self.assertEqual(facts["next"], "tutti train tabular --data t.csv --target size:class --drop when --id id")
        self.good(*facts["next"].split()[1:], "--steps", "1", "--devices", "0")
        self.refused(1, ["'weight'", "id, when"], "inspect", "t.csv", "--target", "weight", **NO_DEVICE)
        facts = self.facts("t.csv", "--missing", "refuse")
        self.assertIn("'colour': the value is missing: --missing fill", facts["problem"])
        self.assertEqual(facts["next"], "tutti train tabular --data t.csv --missing refuse --skip-damaged")

    def test_numbers_and_wide_tables(self):
        names = [f"v{i}" for i in range(60)]
        self.put("a table.csv", names, *([i + k for k in range(60)] for i in range(12)))
        text = self.good("inspect", "a table.csv", **NO_DEVICE).output
        self.assertIn("--target 'v59:class' would make its values classes", text)
        self.assertIn("\n  ... and 20 more columns; --all shows them\n", text)
        self.assertIn("\n  next     tutti train tabular --data 'a table.csv'\n", text)
        self.assertIn("\n  v59 ", self.good("inspect", "a table.csv", "--all", **NO_DEVICE).output)

    def test_standard_input(self):
        rows = [("a", "b", "y"), *((i, "oops" if i == 50 else 2 * i, i % 2) for i in range(100))]
        given = "\n".join(",".join(map(str, row)) for row in rows).encode()
        line, = self.tutti("inspect", "-", "--json", given=given, **NO_DEVICE).lines()
        self.assertEqual((line["path"], line["samples"], line["damaged"]), ("-", 99, 1))
        self.assertEqual(line["next"], "tutti train tabular --data - --skip-damaged")
        self.refused(1, "the file is empty", "inspect", "-", **NO_DEVICE)
        self.refused(2, 'unknown MODEL "-"', "show", "-", **NO_DEVICE)
        self.refused(2, "unknown option -x", "inspect", "-x", **NO_DEVICE)

    def test_damaged_rows(self):
        self.put("t.csv", ("a", "b", "y"), *((i, "oops" if i == 50 else 2 * i, i % 2) for i in range(100)))
        facts = self.facts("t.csv")
        self.assertEqual((facts["samples"], facts["damaged"]), (99, 1))
        self.assertRegex(facts["problem"], r"row 51 \(line 52\).*'oops'.*--skip-damaged leaves such rows out")
        self.assertTrue(any("2 different whole numbers" in note for note in facts["notes"]), facts["notes"])
        self.good(*facts["next"].split()[1:], "--steps", "1", "--devices", "0")

    def put_pictures(self, counts):
        for name, count in counts.items():
            (self.folder / "photos" / name).mkdir(parents=True)
            for i in range(count):
                width = 40 + 10 * (i % 2)
                (self.folder / "photos" / name / f"{i}.ppm").write_bytes(b"P6 %d 30 255\n" % width + bytes(width * 90))

    def test_pictures(self):
        self.put_pictures({"cat": 4, "dog": 40})
        (self.folder / "photos/cat/read me.txt").write_text("x")
        (self.folder / "photos/dog/1.svg").write_text("x")
        (self.folder / "photos/dog/2.SVG").write_text("x")
        facts = self.facts("photos")
        self.assertEqual((facts["kind"], facts["samples"]), ("images", 44))
        self.assertEqual(facts["sizes"], [{"name": "40x30", "files": 22}, {"name": "50x30", "files": 22}])
        self.assertEqual(facts["width"], {"least": 40, "median": 50, "largest": 50})
        self.assertEqual((facts["formats"], facts["colours"]), ([{"name": "PPM", "files": 44}], [{"name": "colour", "files": 44}]))
        self.assertEqual(facts["ignored"], {"text": "2 .svg files, 1 .txt file", "examples":
                         ["photos/cat/read me.txt", "photos/dog/1.svg", "photos/dog/2.SVG"]})
        self.assertEqual(facts["next"], "tutti train resnet18 --data photos --input 3x32x32")
        self.assertIn("resnet50", facts["models"])
        self.assertIn("mlp", facts["models"])
        self.assertNotIn("tabular", facts["models"]) # which was made for tables
        text = self.good("inspect", "photos", **NO_DEVICE).output
        self.assertRegex(text, r"(?m)^photos: 44 pictures, 2 classes$")
        self.assertRegex(text, r"(?m)^  ignored  2 .svg files, 1 .txt file, such as photos/cat/read me.txt,")
        self.assertRegex(text, r"(?m)^  balance  class 'cat' has 4 samples and 'dog' 40: --oversample")

    def test_damaged_pictures(self):
        self.put_pictures({"cat": 3, "dog": 3})
        (self.folder / "photos/cat/bad.png").write_bytes(b"\x89PNG\r\n\x1a\n")
        (self.folder / "photos/dog/empty.jpg").write_bytes(b"")
        facts = self.facts("photos")
        self.assertEqual(facts["opened"]["damaged"], 2)
        self.assertIn("photos/cat/bad.png", facts["opened"]["example"])
        self.assertTrue(facts["next"].endswith(" --skip-damaged"))
        self.assertIn("2 cannot be read and stop a training without --skip-damaged", self.good("inspect", "photos", **NO_DEVICE).output)

    def test_damaged_class(self):
        """Its only picture cannot be read: leaving it out leaves no class, and no training is suggested."""
        self.put_pictures({"cat": 0, "dog": 6, "fox": 6})
        (self.folder / "photos/cat/bad.png").write_bytes(b"\x89PNG\r\n\x1a\n")
        for options in ((), ("--skip-damaged",), ("--report", "p.html")):
            facts = self.facts("photos", *options)
            self.assertNotIn("next", facts)
            self.assertIn("all samples of a class are damaged, among them this one: photos/cat/bad.png", facts["problem"])
            self.assertEqual(facts["notes"], self.facts("photos")["notes"])
        self.refused(1, facts["problem"], "train", "lenet", "--data", "photos", "--skip-damaged", **NO_DEVICE)

    def test_one_class(self):
        self.put_pictures({"cat": 3})
        facts = self.facts("photos")
        self.assertIn("of one class, 'cat'", facts["problem"])
        self.assertNotIn("next", facts)
        self.good("inspect", "photos", "--report", "p.html", **NO_DEVICE)
        self.assertEqual(self.facts("photos/cat")["next"], "tutti infer MODEL --weights FILE.safetensors photos/cat")

    def test_other_data(self):
        npz.write(self.folder / "a.npz", x=("<f4", (10, 3), [float(i) for i in range(30)]), y=("<f8", (10,), [5.0 + i for i in range(10)]))
        facts = self.facts("a.npz")
        self.assertEqual((facts["kind"], facts["shape"]), ("arrays", [3]))
        self.assertEqual(facts["values"], {"least": 0, "mean": 14.5, "largest": 29})
        self.assertAlmostEqual(facts["targets"]["largest"], 14, 4)
        harness.write_mnist(self.folder / "set")
        facts = self.facts("set")
        self.assertEqual((facts["shape"], facts["parts"], facts["next"]), ([1, 10, 10], {"train": 200, "val": 0, "test": 50}, "tutti train lenet --data set"))
        self.assertEqual(self.facts("line")["next"], "tutti train linear --data line")
        self.assertEqual((self.facts("digits")["opened"]["read"], self.facts("digits", "--all")["opened"]["read"]), (1000, 12000))

    def test_page(self):
        self.put_table()
        self.put_pictures({"cat": 4, "<dog>": 6})
        outcome = self.good("inspect", "t.csv", "--report", "t.html", **NO_DEVICE)
        self.assertEqual(outcome.errors, "wrote t.html\n")
        page = (self.folder / "t.html").read_text()
        for words in ("<title>t.csv</title>", "Histogram of size", "left out: each row has another text", "Samples of each class"):
            self.assertIn(words, page)
        self.good("inspect", "photos", "--report", "p.html", "--json", **NO_DEVICE)
        page = (self.folder / "p.html").read_text()
        self.assertIn("data:image/png;base64,", page)
        self.assertIn("&#60;dog&#62;", page)
        self.assertNotIn("<dog>", page)
        self.refused(1, ["--report none/t.html", "folder none"], "inspect", "t.csv", "--report", "none/t.html", **NO_DEVICE)

    def test_what_is_no_data(self):
        """One line: what was asked, what was found."""
        dice = random.Random(2)
        noise = bytes(dice.randrange(256) for _ in range(3000))
        for name, content in (("empty.csv", b""), ("noise.csv", noise), ("noise", noise), ("noise.npz", noise), ("noise.wav", noise),
                              ("noise.jpg", b""), ("names.csv", b"a,b,c\n")):
            (self.folder / name).write_bytes(content)
        (self.folder / "folder").mkdir()
        for name, words in (("empty.csv", "the file is empty"), ("noise.csv", "not text"), ("noise", "not a file of data"),
                            ("noise.npz", "noise.npz"), ("noise.wav", "noise.wav"), ("names.csv", "no rows"),
                            ("folder", "this folder is empty"), ("nothing", "there is no such file or folder")):
            with self.subTest(name):
                outcome = self.refused(1, [name, words], "inspect", name, **NO_DEVICE)
                self.assertEqual((outcome.output, outcome.errors.count("\n")), ("", 1), outcome)
        self.assertEqual(self.facts("noise.jpg")["opened"]["damaged"], 1)
        self.refused(2, "DATA is missing", "inspect", **NO_DEVICE)

    def test_names_do_not_reach_the_terminal(self):
        for name in ("a\033[31m", "b\n"):
            (self.folder / "set" / name).mkdir(parents=True)
            (self.folder / "set" / name / "1.ppm").write_bytes(b"P6 2 2 255\n" + bytes(12))
        text = self.good("inspect", "set", **NO_DEVICE).output
        self.assertNotIn("\033", text)
        self.assertIn("a?[31m (1), b? (1)", text)
        json.loads(self.good("inspect", "set", "--json", **NO_DEVICE).output)

    def test_names_that_are_not_utf8(self):
        name = os.fsdecode(b"t\xff.csv")
        self.put(name, ("a", "b"), *((i, "x" if i == 3 else i) for i in range(9)))
        facts = self.facts(name)
        self.assertEqual((facts["path"], facts["next"]), ("t?.csv", "tutti train tabular --data 't?.csv' --skip-damaged"))
        (self.folder / os.fsdecode(b"p\xff") / "a").mkdir(parents=True)
        (self.folder / os.fsdecode(b"p\xff") / "a" / os.fsdecode(b"\xfe.ppm")).write_bytes(b"P6 2 2 255\n")
        self.assertIn("p?/a/?.ppm: ", self.facts(os.fsdecode(b"p\xff"))["opened"]["example"])


harness.main()
