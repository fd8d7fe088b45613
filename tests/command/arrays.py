"""tutti infer on files of arrays; onnx.py has those of models with several inputs and outputs."""
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

    def test_wrong_use(self):
        npz.write(self.folder / "in.npz", input=("<f4", (5, 1), [0, 1, 2, 3, -1]))
        self.refused(2, "--outputs is missing", "infer", "linear", "--inputs", "in.npz")
        self.refused(2, "--inputs is missing", "infer", "linear", "--outputs", "out.npz")
        both = ("--inputs", "in.npz", "--outputs", "out.npz")
        self.refused(2, "--weights is missing", "infer", "linear", *both)
        self.refused(2, "--count", "infer", "linear", *both, "--weights", "m.safetensors", "--count", 3)
        self.refused(2, "--inputs", "infer", "linear", "--weights", "m.safetensors", "--classes", 3)


harness.main()
