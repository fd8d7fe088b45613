"""ONNX files where the name of a model is expected."""
import math
import warnings
import zipfile

import harness
import npz

FILES = harness.SOURCE / "tests" / "onnx" / "files" / "networks"
DIGITS, TOKENS = FILES / "digits.onnx", FILES / "transformer.onnx"


class Onnx(harness.CommandTest):
    def test_training(self):
        data = ("--data", harness.write_mnist(self.folder / "data", 1000, 200, side=28), "--json")
        lines = self.good("train", DIGITS, *data, "--epochs", 5, "--batch", 20, "--save", "m").lines()
        self.assertGreater(lines[-1]["test_accuracy"], 0.9)
        weights = ("--weights", "m.safetensors", *data)
        saved = self.good("eval", DIGITS, *weights).lines()[0]
        self.assertAlmostEqual(saved["accuracy"], lines[-1]["test_accuracy"], places=6)
        own = self.good("eval", DIGITS, *data).lines()[0] # the file's weights, which were never trained
        self.assertLess(own["accuracy"], 0.5)
        classes = self.good("infer", DIGITS, *weights, "--count", 100).lines()
        self.assertGreater(sum(line["class"] == line["label"] for line in classes), 80)

    def test_other_commands(self):
        lines = self.good("show", DIGITS, "--json").lines()
        self.assertEqual(lines[-1]["parameters"], 4 * 25 + 4 + 196 * 10 + 10)
        self.assertNotIn("softmax", [line.get("operation") for line in lines]) # the loss has it
        self.good("show", TOKENS, "--mode", "infer")
        rows = self.good("show", FILES / "counted.onnx", "--mode", "infer", "--json").lines()
        self.assertEqual(rows[0]["layer"], "/first/MatMul")  # no row of a node that nothing reads
        self.good("bench", DIGITS, "--steps", 2, "--warm-up", 0, "--mode", "infer")

    def test_refused(self):
        self.refused(1, ["none.onnx", "No such file"], "show", "none.onnx")
        self.refused(2, "1 input of integers", "bench", TOKENS, "--classes", 5)
        self.refused(2, ["10 outputs", "100 classes"], "bench", DIGITS, "--classes", 100)
        self.refused(1, ["axis 2 has size 28", "32"], "bench", DIGITS, "--input", "1x32x28")
        (self.folder / "text.onnx").write_text("no protobuf")
        self.refused(1, "not an ONNX file", "train", "text.onnx")

    def close(self, got, wanted):
        limit = 2e-5 * max(0.01, *map(abs, wanted[2]))
        self.assertEqual((got[1], len(got[2])), (wanted[1], len(wanted[2])))
        self.assertLessEqual(max(abs(a - b) for a, b in zip(got[2], wanted[2])), limit)

    def written(self, name, **arrays):
        npz.write(self.folder / name, **arrays)
        return name

    def infer(self, name, status=0, **arrays):
        npz.write(self.folder / "in.npz", deflated=True, **arrays)
        outcome = self.tutti("infer", FILES / f"{name}.onnx", "--inputs", "in.npz", "--outputs", "out.npz")
        self.assertEqual(outcome.status, status, outcome)
        return outcome

    def zipped(self, *members):
        with warnings.catch_warnings(), zipfile.ZipFile(self.folder / "some.npz", "w") as file:
            warnings.simplefilter("ignore") # of the same name
            for member in members:
                file.writestr("x.npy", member)
        return (self.folder / "some.npz").read_bytes()

    def damaged(self, words, data):
        (self.folder / "in.npz").write_bytes(data)
        self.refused(1, ["in.npz", words], "infer", FILES / "products.onnx", "--inputs", "in.npz", "--outputs", "out.npz")

    def test_files_of_arrays_that_cannot_be_read(self):
        good = {"x": ("<f4", (2, 6), [0] * 12), "m": ("<f4", (2, 3, 6), [0] * 36)}
        whole = (self.folder / self.written("good.npz", **good)).read_bytes()
        self.damaged("it is cut", whole[:len(whole) // 2])
        self.damaged("it is cut", b"")
        x = npz.pack(*good["x"])
        for kind in (b"'|O' ", b"'<c8'"): # objects, which NumPy pickles; complex numbers
            self.damaged(f"array \"x\": its elements have type {kind.decode().strip()}", self.zipped(x.replace(b"'<f4'", kind)))
        self.damaged("two members have the name \"x.npy\"", self.zipped(x, x))

    def test_graphs_that_cannot_be_trained(self):
        outcome = self.good("train", FILES / "two_heads.onnx", "--steps", 1, "--batch", 8)
        self.assertIn("parameter 'w1' has no gradient: the loss does not depend on it", outcome.errors)
        self.refused(2, ["has 2 inputs, 'x' and 't'", "without targets and loss"], "train", FILES / "with_loss.onnx")
        self.refused(2, ["7 outputs for a sample, 'gemm2_0'", "--head 10"], "train", FILES / "seven.onnx")

    def test_arrays(self):
        for name in ("transformer", "products", "shapes", "types", "digits"):
            with self.subTest(name):
                inputs, outputs = npz.recorded(FILES / f"{name}.safetensors")
                self.infer(name, **inputs)
                got = npz.read(self.folder / "out.npz")
                self.assertEqual(got.keys(), outputs.keys())
                for output, wanted in outputs.items():
                    self.close(got[output], wanted)

    def test_open_sizes(self):
        for length in (6, 9): # the arrays tell it
            inputs, outputs = npz.recorded(FILES / f"lengths+{length}.safetensors")
            self.infer("lengths", **inputs)
            self.close(npz.read(self.folder / "out.npz")["y"], outputs["y"])
        lengths = FILES / "lengths.onnx"
        for size in ("length=7", "ids.1=7", "valid.1=7,length=7", "other=3,length=7"):
            self.good("show", lengths, "--sizes", size, "--mode", "infer")
        self.refused(1, ["axis 1 has an open size, 'length'"], "show", lengths)
        self.refused(1, ["'length', has the sizes 7 and 8"], "show", lengths, "--sizes", "ids.1=7,valid.1=8")
        for wrong in ("length", "=3", "length=", "length=0", "length=3x", "length=99999999999"):
            self.refused(2, "--sizes needs NAME=N", "show", lengths, "--sizes", wrong)
        self.refused(2, "--sizes needs an ONNX file", "show", "lenet", "--sizes", "length=7")

    def test_new_head(self):
        mlp = FILES / "residual.onnx" # 4 classes
        lines = self.good("show", mlp, "--head", 7, "--json").lines()
        self.assertEqual(lines[-1]["parameters"] - self.good("show", mlp, "--json").lines()[-1]["parameters"], 3 * 9)
        data = ("--data", harness.write_mnist(self.folder / "data", side=28))
        self.good("train", DIGITS, *data, "--head", 10, "--steps", 2, "--freeze", "*conv*", "--save", "m")
        self.good("eval", DIGITS, *data, "--head", 10, "--weights", "m.safetensors")
        self.good("export", DIGITS, "--head", 10, "--weights", "m.safetensors", "--output", "m.onnx")
        self.refused(1, "cannot be replaced", "show", FILES / "convolutions.onnx", "--head", 3)
        self.refused(1, ["cannot be replaced: output 'normalizer1_0'", "LinearClassifier 'node0'", "lists its classes"], "train", FILES / "classifier.onnx",
                     "--head", 5)
        self.refused(1, ["cannot be replaced", "ZipMap", "lists its classes"], "train", FILES / "sklearn_mlp.onnx", "--head", 5)
        self.refused(2, "--head needs an ONNX file", "train", "lenet", "--head", 3)

    def test_expected_outputs(self):
        inputs, outputs = npz.recorded(FILES / "products.safetensors")
        npz.write(self.folder / "in.npz", **inputs)
        npz.write(self.folder / "both.npz", **inputs, **outputs)
        errors = self.good("show", FILES / "products.onnx", "--expect", "both.npz").errors
        self.assertEqual(errors.count("as expected"), len(outputs), errors)
        last = list(outputs)[-1]
        kind, shape, values = outputs[last]
        values[3] += 1
        npz.write(self.folder / "wrong.npz", **inputs, **{last: (kind, shape, values)})
        infer = ("infer", FILES / "products.onnx", "--inputs", "in.npz", "--outputs", "out.npz")
        self.refused(1, [f"\"{last}\" differs from wrong.npz by at most 1", "more than 1e-4"], *infer, "--expect", "wrong.npz")
        self.assertFalse((self.folder / "out.npz").exists())
        self.good(*infer, "--expect", "both.npz")
        self.assertTrue((self.folder / "out.npz").exists())
        self.refused(2, "no array of an output", *infer, "--expect", "in.npz")
        self.refused(2, "another shape", *infer, "--expect", self.written("shape.npz", **inputs, **{last: ("<f4", (1,), [0])}))
        self.refused(2, "ONNX file", "show", "lenet", "--expect", "both.npz")

    def test_batch_axes(self):
        # Batches on axis 1 of x, axis 0 of mask, and joined with the steps in the output rows; scale is a constant.
        inputs, outputs = npz.recorded(FILES / "batch_axes.safetensors")
        scale = inputs["scale"][2][0]
        npz.write(self.folder / "both.npz", **inputs, **outputs)
        del inputs["scale"]
        npz.write(self.folder / "in.npz", **inputs)
        known, axes = ("--known", f"scale={scale!r}"), ("--batch-axis", "1,mask=0")
        for batch in (axes, ("--batch-axis=x=1",), ("--batch-axis", "x=1", "--batch-axis", "mask=0")):
            errors = self.good("show", FILES / "batch_axes.onnx", *batch, *known, "--expect", "both.npz", "--mode", "infer").errors
            self.assertEqual(errors.count("as expected"), 3, errors)
        self.good("infer", FILES / "batch_axes.onnx", *axes, *known, "--inputs", "in.npz", "--outputs", "out.npz")
        got = npz.read(self.folder / "out.npz")
        for output, wanted in outputs.items():
            self.close(got[output], wanted)
        (self.folder / "scale.npy").write_bytes(npz.pack("<f4", (), [scale]))
        errors = self.good("show", FILES / "batch_axes.onnx", *axes, "--known", "scale=scale.npy", "--expect", "both.npz").errors
        self.assertEqual(errors.count("as expected"), 3, errors)
        for wrong in ("mask=1", "0"):
            self.assertEqual(self.tutti("show", FILES / "batch_axes.onnx", *known, "--batch-axis", wrong).status, 1)
        errors = self.tutti("infer", FILES / "batch_axes.onnx", *axes, *known, "--inputs", "both.npz", "--outputs", "out.npz").errors
        self.assertIn("array \"scale\" is of no input", errors)

    def test_inputs_made_for_bench(self):
        steps = ("--steps", 1, "--warm-up", 0, "--batch", 4)
        self.good("bench", FILES / "batch_axes.onnx", "--batch-axis", "1,mask=0", "--known", "scale=2", *steps)
        self.good("bench", TOKENS, "--mode", "infer", *steps)
        self.good("bench", FILES / "sample.onnx", "--whole", "--mode", "infer", *steps)

    def test_a_sample_is_all_of_an_input(self):
        inputs, outputs = npz.recorded(FILES / "sample.safetensors")
        npz.write(self.folder / "both.npz", **inputs, **outputs)
        self.good("show", FILES / "sample.onnx", "--whole", "--expect", "both.npz")
        twice = {name: (kind, (2, *shape), 2 * values) for name, (kind, shape, values) in inputs.items()}
        for arrays, shape in ((inputs, (3,)), (twice, (2, 3))):
            npz.write(self.folder / "in.npz", **arrays)
            self.good("infer", FILES / "sample.onnx", "--whole", "--inputs", "in.npz", "--outputs", "out.npz")
            y = npz.read(self.folder / "out.npz")["y"]
            self.assertEqual(y[1], shape)
            self.close((None, (3,), y[2][-3:]), outputs["y"])

    def test_options_of_files_that_are_wrong(self):
        show, batch_axes = ("show", FILES / "batch_axes.onnx"), ("show", FILES / "batch_axes.onnx", "--batch-axis", "1,mask=0")
        for wrong in ("-1", "8", "x", "x=", "=1", "1x"):
            self.refused(2, "--batch-axis needs N or NAME=N", *show, f"--batch-axis={wrong}")
        for wrong in ("scale", "=1", "scale=", "scale=1,", "scale=1x", "scale=" + "1," * 64 + "1"):
            self.refused(2, "--known needs NAME=VALUE", *batch_axes, f"--known={wrong}")
        self.refused(2, "do not go together", *show, "--whole", "--batch-axis", 1)
        self.refused(1, "no input 'other'", *batch_axes, "--known", "scale=1,other=2")
        self.refused(1, "no input 'other'", *batch_axes, "--known", "scale=1", "--batch-axis", "other=1")
        self.refused(1, "'scale' has not the shape", *batch_axes, "--known", "scale=1,2")
        self.refused(1, "none.npy", *batch_axes, "--known", "scale=none.npy")
        self.refused(1, ["'scale'", "known"], *batch_axes)
        for option in (("--known", "x=1"), ("--batch-axis", 1), ("--whole",), ("--train-constants",)):
            self.refused(2, f"{option[0]} needs an ONNX file", "show", "mlp", *option)

    def test_classifiers_train_with_their_scores(self):
        # The softmax of the logits is what onnxruntime computed: label is the first output, the probabilities the second.
        for name in ("classifier", "sklearn_logistic", "sklearn_mlp"):
            with self.subTest(name):
                inputs, outputs = npz.recorded(FILES / f"{name}.safetensors")
                (x,), (probabilities,) = inputs.values(), (array for array in outputs.values() if len(array[1]) == 2)
                samples, classes = probabilities[1]
                labels = [i % classes for i in range(samples)]
                y = ("<i8", (samples,), labels)
                npz.write(self.folder / "data.npz", x_train=x, y_train=y, x_val=x, y_val=y)
                loss = -sum(math.log(probabilities[2][i * classes + label]) for i, label in enumerate(labels)) / samples
                found = self.good("eval", FILES / f"{name}.onnx", "--data", "data.npz", "--part", "val", "--json").lines()[0]
                self.assertLess(abs(found["loss"] - loss), 1e-5 * max(loss, 1))
                self.good("train", FILES / f"{name}.onnx", "--data", "data.npz", "--steps", 1, "--batch", 2)

    def test_export(self):
        npz.write(self.folder / "in.npz", input=("<f4", (3, 1, 28, 28), [i % 17 / 17 for i in range(3 * 784)]))
        data = ("--data", harness.write_mnist(self.folder / "data", side=28))
        self.good("train", "lenet", *data, "--steps", 3, "--batch", 16, "--save", "m")
        weights = ("--weights", "m.safetensors")
        self.good("export", "lenet", *weights, "--output", "m.onnx")
        self.good("export", *weights, "--output", "same.onnx") # weights say their model
        self.assertEqual((self.folder / "same.onnx").read_bytes(), (self.folder / "m.onnx").read_bytes())
        self.good("infer", "lenet", *weights, "--inputs", "in.npz", "--outputs", "a.npz")
        self.good("infer", "m.onnx", "--inputs", "in.npz", "--outputs", "b.npz")
        self.close(npz.read(self.folder / "b.npz")["output"], npz.read(self.folder / "a.npz")["output"])
        self.good("eval", "m.onnx", *weights, *data) # parameters keep their names
        self.refused(1, "none", "export", DIGITS, "--output", "none/m.onnx")

    def test_arrays_that_do_not_fit(self):
        x = "<f4", (2, 6), [0] * 12
        errors = self.infer("products", 2, x=("<f4", (2, 7), [0] * 14), other=x).errors.splitlines()
        self.assertEqual(len(errors), 3, errors)
        self.assertIn("\"x\" is [2, 7]: the input is [N, 6]", errors[0])
        self.assertIn("no array \"m\": the input is of f32, [N, 3, 6]", errors[1])
        self.assertIn("\"other\" is of no input of the model: it has \"x\", \"m\"", errors[2])
        errors = self.infer("products", 2, x=("<i4", *x[1:]), m=("<f4", (3, 3, 6), [0] * 54)).errors.splitlines()
        self.assertEqual(len(errors), 2, errors)
        self.assertIn("\"x\" is of int32: the input is of f32", errors[0])
        self.assertIn("\"m\" has 3 samples, but another one has 2", errors[1])
        self.assertIn("\"x\" is [2, 6, 1]", self.infer("products", 2, x=("<f4", (2, 6, 1), [0] * 12), m=("<f4", (2, 3, 6), [0] * 36)).errors)
        self.assertIn("no samples", self.infer("products", 2, x=("<f4", (0, 6), []), m=("<f4", (0, 3, 6), [])).errors)
        ids = [0, 1, 2, 3, 4, 5]
        self.infer("transformer", x=("|u1", (1, 6), ids))
        self.assertIn("element 5", self.infer("transformer", 1, x=("<i8", (1, 6), [*ids[:5], 1 << 40])).errors)
        (self.folder / "in.npz").write_bytes(b"no zip")
        self.refused(1, "not a ZIP file", "infer", FILES / "products.onnx", "--inputs", "in.npz", "--outputs", "out.npz")


harness.main()
