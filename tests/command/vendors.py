"""ONNX files on the devices of two vendors: run by tests/vendors, with tests/vendors/two-vendors."""
import harness

FILE = harness.SOURCE / "tests" / "onnx" / "files" / "networks" / "lenet.onnx"
DIVISION = 1024 / 2 ** 24 # of tests/tolerance.h


class TwoVendors(harness.CommandTest):
    def losses(self, devices):
        line = self.good("train", FILE, "--data", self.folder / "data", "--batch", 64, "--steps", 20, "--lr", 0.01, "--shares", "equal",
                         "--devices", devices, "--json").lines()[0]
        return line["loss"], line["test_loss"]

    def test_losses_are_those_of_one(self):
        self.assertEqual(len({line["platform"] for line in self.good("devices", "--json").lines()}), 2)
        harness.write_mnist(self.folder / "data", 640, 50, side=28)
        one, other, both = (self.losses(devices) for devices in ("0", "1", "0,1"))
        for losses in (other, both):
            for got, wanted in zip(losses, one):
                self.assertAlmostEqual(got, wanted, delta=DIVISION * wanted)


    def test_sequence_models(self):
        """Dropout drops the same elements on every device."""
        for model, words in harness.sequence_models(self.folder).items():
            def losses(devices):
                line = self.good(*words, "--steps", 12, "--shares", "equal", "--devices", devices, "--json").lines()[-1]
                return line["loss"], line["test_loss"]
            one, other, both = (losses(devices) for devices in ("0", "1", "0,1"))
            for found in (other, both):
                for got, wanted in zip(found, one):
                    self.assertAlmostEqual(got, wanted, delta=DIVISION * wanted, msg=model)


harness.main()
