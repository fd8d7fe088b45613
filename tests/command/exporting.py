"""Files of `tutti export` that say what the data were, and nodes in them that prepare raw data."""
import json
import math
import random
import re
import shutil
import struct
import subprocess
import unittest
import wave

import harness
import nodes
import npz

LIMIT = 1e-5
WEIGHTS = ("--weights", "m.safetensors")


def softmax(scores):
    powers = [math.exp(score - max(scores)) for score in scores]
    return [power / sum(powers) for power in powers]


class Export(harness.CommandTest):
    def write(self, name, *rows):
        (self.folder / name).write_text("".join(f"{';'.join(row)}\n" for row in rows), encoding="utf-8")

    def export(self, model, data, *options):
        self.good("train", model, "--data", data, "--save", "m", "--steps", 4, "--batch", 8, *options)
        self.good("export", model, *WEIGHTS, "--output", "m.onnx", "--with-preparation")
        return nodes.File(self.folder / "m.onnx")

    def infer(self, *arguments):
        return self.good("infer", *arguments, "--json").lines()

    def computed(self, model, **arrays):
        npz.write(self.folder / "in.npz", **arrays)
        outcome = self.good("infer", *model, "--inputs", "in.npz", "--outputs", "out.npz")
        return {name: [values[i:i + shape[-1]] for i in range(0, len(values), shape[-1])] if len(shape) > 1 else values
                for name, (_, shape, values) in npz.read(self.folder / "out.npz").items()}, outcome.errors

    def probabilities(self, features):
        """Returns the class probabilities that the mlp with two classes computes."""
        width = len(features[0])
        model = ["mlp", *WEIGHTS, "--input", width, "--classes", 2]
        outputs, _ = self.computed(model, input=("<f4", (len(features), width), sum(features, [])))
        return [softmax(row) for row in outputs["output"]]

    def same_classes(self, probabilities, lines):
        self.assertEqual(len(probabilities), len(lines))
        for row, line in zip(probabilities, lines):
            for found in line["likeliest"]:
                self.assertLess(abs(row[found["class"]] - found["probability"]), LIMIT)

    def same_lines(self, lines, others):
        self.assertEqual([line["class"] for line in lines], [line["class"] for line in others])
        self.assertLess(max(abs(a["probability"] - b["probability"]) for a, b in zip(lines, others)), LIMIT)

    def test_pictures(self):
        for part, count in (("train", 40), ("t10k", 12)):
            pictures, labels = harness.images(count, 28)
            (self.folder / f"{part}-images-idx3-ubyte").write_bytes(pictures)
            (self.folder / f"{part}-labels-idx1-ubyte").write_bytes(labels)
        file = self.export("lenet", ".", "--normalise", "measured")
        self.assertEqual((file.inputs, file.outputs), (["pixels"], ["probabilities", "label"]))
        self.assertEqual(json.loads(file.metadata["tutti.data"])["kind"], "IDX")
        lines = self.infer("lenet", *WEIGHTS, "--data", ".")
        outputs, errors = self.computed(["m.onnx"], pixels=("|u1", (12, 1, 28, 28), list(pictures[16:])))
        self.assertIn("prepared by nodes of the file", errors)
        self.same_classes(outputs["probabilities"], lines)
        self.assertEqual(outputs["label"], [line["class"] for line in lines])
        self.same_lines(self.infer("m.onnx", "--data", "."), lines) # whose nodes are left out
        self.refused(2, "already", "infer", "m.onnx", "--inputs", "in.npz", "--outputs", "out.npz", "--prepare")
        # Constants are not parameters, and the file trains as the network does.
        counts = [self.good("show", model, "--json").lines()[-1]["parameters"] for model in ("m.onnx", "lenet")]
        self.assertEqual(*counts)
        self.good("train", "m.onnx", "--data", ".", "--steps", 1)
        self.good("export", "m.onnx", "--output", "again.onnx", "--with-preparation")
        again = nodes.File(self.folder / "again.onnx")
        self.assertEqual((again.inputs, again.outputs, again.metadata), (file.inputs, file.outputs, file.metadata))

    def test_recordings(self):
        """The network in the file is that of the weights, and trains; way.py computes the nodes before it."""
        for i in range(12):
            path = self.folder / "set" / "ab"[i % 2] / f"{i}.wav"
            path.parent.mkdir(parents=True, exist_ok=True)
            with wave.open(str(path), "wb") as file:
                file.setparams((1, 2, 8000, 0, "NONE", ""))
                file.writeframes(b"".join(struct.pack("<h", int(9000 * math.sin((.1 + .5 * (i % 2)) * t))) for t in range(2500 + 100 * i)))
        file = self.export("mlp", "set", "--input", "1x64x9")
        self.assertEqual((file.inputs, file.outputs), (["waveform"], ["probabilities", "label"]))
        lines = self.infer(*WEIGHTS, "--data", "set")
        self.same_lines(self.infer("m.onnx", "--data", "set"), lines)
        counts = [self.good("show", *model, "--json").lines()[-1]["parameters"] for model in (["m.onnx"], WEIGHTS)]
        self.assertEqual(*counts)
        self.good("train", "m.onnx", "--data", "set", "--input", "1x64x9", "--steps", 1)
        errors = self.good("export", "m.onnx", "--output", "again.onnx", "--with-preparation").errors
        self.assertIn("the file takes 1024 samples of one channel, 8000 a second, from -1 to 1: decode, resample and cut", errors)
        again = nodes.File(self.folder / "again.onnx")
        self.assertEqual((again.inputs, again.outputs, again.metadata), (file.inputs, file.outputs, file.metadata))
        npz.write(self.folder / "in.npz", waveform=("<f4", (1, 1000), [0.0] * 1000))
        self.refused(2, ["waveform", "1024"], "infer", "m.onnx", "--inputs", "in.npz", "--outputs", "out.npz")

    @unittest.skipUnless(shutil.which("cc"), "no compiler")
    def test_the_program_of_the_documentation(self):
        program = re.search(r"```c\n(.*?)```", (harness.SOURCE / "docs" / "deploy.md").read_text(encoding="utf-8"), re.S)[1]
        (self.folder / "names.c").write_text(program, encoding="utf-8")
        library = harness.TUTTI.parent.parent
        subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", "-Wno-missing-field-initializers", "-Werror", "names.c", "-o", "names",
                        f"-I{harness.SOURCE}/include", f"-L{library}", "-ltutti", f"-Wl,-rpath,{library}"], cwd=self.folder, check=True)
        self.good("train", "lenet", "--save", "m", "--steps", 2, "--batch", 8)
        self.good("export", "lenet", *WEIGHTS, "--output", "m.onnx", "--with-preparation")
        pixels = [[(i * k) % 256 for i in range(784)] for k in (3, 5)]
        for name, picture in zip("ab", pixels):
            (self.folder / name).write_bytes(bytes(picture))
        outputs, _ = self.computed(["m.onnx"], pixels=("|u1", (2, 1, 28, 28), sum(pixels, [])))
        printed = subprocess.run(["./names", "m.onnx", "a", "b"], cwd=self.folder, check=True, capture_output=True, text=True).stdout
        wanted = [f"{name}: {row.index(max(row))}, {max(row):.6f}" for name, row in zip("ab", outputs["probabilities"])]
        self.assertEqual(printed.splitlines(), wanted)

    def test_a_table_of_numbers(self):
        random.seed(3)
        rows = [[str(random.randrange(50)) if i % 5 else "", f"{random.gauss(1e4, 1):.2f}", random.choice("ab")] for i in range(60)]
        self.write("t.csv", ["one", "two", "which"], *rows)
        self.write("new.csv", ["two", "one"], *([b, a] for a, b, _ in rows))
        file = self.export("mlp", "t.csv")
        self.assertEqual((file.inputs, file.outputs), (["columns"], ["probabilities", "label"]))
        lines = self.infer("mlp", *WEIGHTS, "--data", "new.csv")
        self.same_lines(self.infer("m.onnx", "--data", "new.csv"), lines)
        numbers = [float(text or "nan") for row in rows for text in row[:2]]
        features = file.compute({"columns": [numbers[i:i + 2] for i in range(0, len(numbers), 2)]}, file.metadata["tutti.network_input"])
        self.assertEqual([len(row) for row in features], [3] * 60)
        self.same_classes(self.probabilities(features), lines)
        outputs, _ = self.computed(["m.onnx"], columns=("<f8", (60, 2), numbers)) # in floats: some digits are lost
        for row, line in zip(outputs["probabilities"], lines):
            self.assertLess(abs(row[line["class"]] - line["probability"]), 1e-3)

    def test_texts_and_missing_values(self):
        random.seed(4)
        words = ["Cherbourg", "Zürich", "4", "NA", "", "none", "a b"]
        rows = [[random.choice(words), random.choice(["yes", "NO", "n/a"]), random.choice(["1,5", "2.000,25", ""]), str(i % 7),
                 random.choice("ab")] for i in range(80)]
        self.write("t.csv", ["port", "alone", "fare", "port.1", "which"], *rows)
        new = [["Paris", "YES", "7", "3"], ["4.0", "No", "", "?"], ["-", "nO", "2.000,25", "5"], ["4", "null", "1,5", "1"],
               ["Zürich", "", "-3,5", "2"], ["a b", ".", "0", "0"], ["A B", "yeS", "12", "NaN"]]
        self.write("new.csv", ["port", "alone", "fare", "port.1"], *new)
        file = self.export("mlp", "t.csv")
        self.assertEqual(file.inputs, ["port", "alone", "fare", "port.1"])
        lines = self.infer("mlp", *WEIGHTS, "--data", "new.csv")
        self.assertEqual(len(lines), len(new))
        columns = {"port": [[row[0]] for row in new], "alone": [[row[1]] for row in new],
                   "fare": [[float(row[2].replace(".", "").replace(",", ".") or "nan")] for row in new],
                   "port.1": [[float(row[3]) if row[3] not in ("?", "NaN") else math.nan] for row in new]}
        features = file.compute(columns, file.metadata["tutti.network_input"])
        self.same_classes(self.probabilities(features), lines)
        self.same_lines(self.infer("m.onnx", "--data", "new.csv"), lines)
        self.refused(1, ["'port'", "STRING"], "infer", "m.onnx", "--inputs", "in.npz", "--outputs", "out.npz")

    def test_texts_with_control_characters(self):
        """The file knows such texts with blanks, and the command says so."""
        texts = ["one\ttwo", '"one\ntwo three"', "plain"]
        self.write("t.csv", ["text", "plain", "which"], *([texts[i % 3], "xyz"[i % 3], "ab"[i % 2]] for i in range(40)))
        self.good("train", "mlp", "--data", "t.csv", "--save", "m", "--steps", 4, "--batch", 8)
        words = "export", "mlp", *WEIGHTS, "--output", "m.onnx"
        self.assertNotIn("warning", self.good(*words).errors)
        errors = self.good(*words, "--with-preparation").errors
        self.assertIn("warning: texts of column 'text' had tabs or ends of lines", errors)
        self.assertNotIn("'plain'", errors)
        file = nodes.File(self.folder / "m.onnx")
        given = {"text": [["one two"], ["one two three"], ["plain"]], "plain": [["x"], ["y"], ["z"]]}
        self.write("new.csv", ["text", "plain"], *zip(texts, "xyz"))
        features = file.compute(given, file.metadata["tutti.network_input"])
        self.same_classes(self.probabilities(features), self.infer("mlp", *WEIGHTS, "--data", "new.csv"))

    def test_columns_called_as_outputs(self):
        """They get other names: outputs keep theirs."""
        rows = [["xy"[i % 2], str(i), "uv"[i % 2], str(i % 3)] for i in range(40)]
        self.write("t.csv", ["label", "probabilities", "values", "which"], *rows)
        file = self.export("mlp", "t.csv", "--target", "which:class")
        self.assertEqual(file.inputs, ["label.1", "probabilities.1", "values"])
        self.assertEqual(file.outputs, ["probabilities", "label"])
        self.same_lines(self.infer("m.onnx", "--data", "t.csv"), self.infer("mlp", *WEIGHTS, "--data", "t.csv"))
        file = self.export("mlp", "t.csv")
        self.assertEqual((file.inputs, file.outputs), (["label", "probabilities", "values.1"], ["values"]))

    def test_regression(self):
        self.write("t.csv", ["x", "y"], *([f"{i / 10}", f"{1e6 + 3 * i + .5}"] for i in range(50)))
        file = self.export("mlp", "t.csv")
        self.assertEqual((file.inputs, file.outputs), (["columns"], ["values"]))
        self.write("new.csv", ["x"], *([f"{i / 7}"] for i in range(20)))
        lines = self.infer("mlp", *WEIGHTS, "--data", "new.csv")
        again = self.infer("m.onnx", "--data", "new.csv")
        outputs, _ = self.computed(["m.onnx"], columns=("<f8", (20, 1), [i / 7 for i in range(20)]))
        for line, other, (value,) in zip(lines, again, outputs["values"], strict=True):
            self.assertLess(abs(line["value"] - other["value"]), 1e-3)
            self.assertLess(abs(line["value"] - value), 1) # floats of 1e6

    def test_what_the_data_were(self):
        self.write("t.csv", ["day", "x", "y"], *([f"2001-02-{i % 28 + 1:02}", str(i), "ab"[i % 2]] for i in range(40)))
        self.good("train", "mlp", "--data", "t.csv", "--save", "m", "--steps", 2, "--batch", 8)
        self.refused(1, ["column 'day' has dates", "--drop"], "export", "mlp", *WEIGHTS, "--output", "m.onnx", "--with-preparation")
        self.assertFalse((self.folder / "m.onnx").exists())
        self.good("export", "mlp", *WEIGHTS, "--output", "m.onnx")
        file = nodes.File(self.folder / "m.onnx")
        self.assertEqual((file.inputs, file.outputs, list(file.metadata)), (["input"], ["output"], ["tutti.data"]))
        data = json.loads(file.metadata["tutti.data"])
        self.assertEqual((data["kind"], data["classes"], data["columns"]), ("table", ["a", "b"], ["day", "x"]))
        self.write("new.csv", ["x", "day"], *([str(i), f"2001-03-{i + 1:02}"] for i in range(9)))
        self.same_lines(self.infer("m.onnx", "--data", "new.csv"), self.infer("mlp", *WEIGHTS, "--data", "new.csv"))
        self.write("less.csv", ["x"], ["1"])
        self.refused(1, "'day'", "infer", "m.onnx", "--data", "less.csv")

    def test_refused(self):
        self.refused(1, "not known what the network was trained on", "export", harness.SOURCE / "tests/onnx/files/networks/digits.onnx",
                     "--output", "m.onnx", "--with-preparation")


harness.main()
