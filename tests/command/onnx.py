"""ONNX files where the name of a model is expected."""
import harness

FILES = harness.SOURCE / "tests" / "onnx" / "files"
DIGITS, TOKENS = FILES / "digits.onnx", FILES / "transformer.onnx"


class Onnx(harness.CommandTest):
    def test_training(self):
        lines = self.good("train", DIGITS, "--epochs", 2, "--save", "m", "--json").lines()
        self.assertGreater(lines[-1]["test_accuracy"], 0.9)
        weights = ("--weights", "m.safetensors", "--json")
        saved = self.good("eval", DIGITS, *weights).lines()[0]
        self.assertAlmostEqual(saved["accuracy"], lines[-1]["test_accuracy"], places=6)
        own = self.good("eval", DIGITS, "--json").lines()[0] # the file's weights, which were never trained
        self.assertLess(own["accuracy"], 0.5)
        classes = self.good("infer", DIGITS, *weights, "--count", 100).lines()
        self.assertGreater(sum(line["class"] == line["label"] for line in classes), 80)

    def test_other_commands(self):
        lines = self.good("show", DIGITS, "--json").lines()
        self.assertEqual(lines[-1]["parameters"], 4 * 25 + 4 + 196 * 10 + 10)
        self.assertNotIn("softmax", [line.get("operation") for line in lines]) # the loss has it
        self.good("show", TOKENS, "--mode", "infer")
        self.good("bench", DIGITS, "--steps", 2, "--warm-up", 0, "--mode", "infer")

    def test_refused(self):
        self.refused(1, ["none.onnx", "No such file"], "show", "none.onnx")
        self.refused(2, "1 input of integers", "bench", TOKENS)
        self.refused(2, ["10 outputs", "100 classes"], "bench", DIGITS, "--classes", 100)
        self.refused(1, ["axis 2 has size 28", "32"], "bench", DIGITS, "--input", "1x32x28")
        (self.folder / "text.onnx").write_text("no protobuf")
        self.refused(1, "no ONNX file", "train", "text.onnx")


harness.main()
