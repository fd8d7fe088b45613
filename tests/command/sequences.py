"""gpt and lstm: resumed to the same bytes, on two devices as on one, and with a device that is lost."""
import os
import pathlib

import harness

# Sums in another order: relative to a tensor's largest number, after two dozen steps of AdamW.
TOLERANCE = 2e-4
LAYER = pathlib.Path(os.environ["TUTTI_BUILD"]) / "tests" / "faults" / "liblayer.so"
TWO = {"POCL_DEVICES": "pthread pthread"}


class Sequences(harness.CommandTest):
    def each(self):
        return [[*words, "--epochs", "3"] for words in harness.sequence_models(self.folder).values()]

    def test_resumed_within_an_epoch(self):
        """To the same bytes, on one device and on two; also after a kill."""
        for words in self.each():
            for environment in ({}, TWO):
                several = [*words, "--shares", "equal"] if environment else words
                self.good(*several, "--save", "whole", **environment)
                self.good(*several, "--save", "part", "--steps", "4", **environment)
                self.good(*several, "--resume", "part", "--steps", "5", **environment)
                self.good(*several, "--resume", "part", **environment)
                self.assertEqual(self.pair("part"), self.pair("whole"))

    def test_killed(self):
        for words in self.each():
            self.good(*words, "--save", "whole")
            process = self.start(*words, "--save", "part", "--json")
            process.stdout.readline()
            process.kill()
            process.communicate()
            self.good(*words, "--resume", "part")
            self.assertEqual(self.pair("part"), self.pair("whole"))

    def test_two_devices_are_one(self):
        for words in self.each():
            self.good(*words, "--save", "one")
            self.good(*words, "--save", "two", "--shares", "equal", **TWO)
            self.same("one", "two", TOLERANCE)

    def test_faults(self):
        """The other device does the whole step, or the step is retried."""
        for words in self.each():
            self.good(*words, "--save", "one")
            for kind, at, action, message in (("launch", 150, "lose", "is lost, 1 of 2 go on"), ("launch", 333, "fail", ""), ("launch", 200, "nan", "")):
                order = {"LAYER_DEVICE": 1, "LAYER_KIND": kind, "LAYER_AT": at, "LAYER_ACTION": action, "OPENCL_LAYERS": LAYER}
                outcome = self.good(*words, "--save", "two", "--shares", "equal", **TWO, **order)
                self.assertIn("layer: ", outcome.errors)
                self.assertIn(message, outcome.errors)
                self.same("one", "two", TOLERANCE)


harness.main()
