"""LeNet as ONNX files, trained as the built-in one is: one written by tutti export, and a narrower one by PyTorch.

    MNIST=DIR python3 tests/command/lenet.py    with MNIST's digits, not with those that the command draws
"""
import json
import os
import time

import harness

FILE = harness.SOURCE / "tests" / "onnx" / "files" / "networks" / "lenet.onnx"
DATA = ("--data", os.environ.get("MNIST", "digits"), "--batch", 64)


def tensors(content):
    """Returns the header of a safetensors file, without the metadata, which name the model, and the data."""
    begin = 8 + int.from_bytes(content[:8], "little")
    entries = json.loads(content[8:begin])
    del entries["__metadata__"]
    return entries, content[begin:]


class Lenet(harness.CommandTest):
    def train(self, model, *arguments):
        return self.good("train", model, *DATA, *arguments, "--json").lines()[-1]

    def test_written_file_is_the_built_in_network(self):
        """From the same weights, to the same numbers."""
        self.train("lenet", "--steps", 1, "--lr", 1e-30, "--momentum", 0, "--save", "start")
        self.good("export", "lenet", "--weights", "start.safetensors", "--output", "lenet.onnx")
        like = ("--steps", 60, "--lr", 0.05, "--momentum", 0.9)
        built_in, file = self.train("lenet", *like, "--save", "a"), self.train("lenet.onnx", *like, "--save", "b")
        self.assertEqual((file["loss"], file["test_loss"]), (built_in["loss"], built_in["test_loss"]))
        for of_file, of_built_in in zip(self.pair("b"), self.pair("a")):
            self.assertTrue(tensors(of_file) == tensors(of_built_in), "the numbers differ")
        self.assertGreater(file["test_accuracy"], 0.7)

    def test_file_of_pytorch_learns(self):
        self.assertGreater(self.train(FILE, "--epochs", 3, "--lr", 0.05)["test_accuracy"], 0.95)

    def killed(self, *options):
        like = (FILE, *DATA, "--epochs", 2, *options)
        self.good("train", *like, "--save", "whole")
        process = self.start("train", *like, "--save", "part", "--json")
        process.stdout.readline()
        time.sleep(0.05)
        process.kill()
        process.communicate()
        self.assertEqual(process.returncode, -9)
        self.good("train", *like, "--resume", "part")
        self.assertEqual(self.pair("part"), self.pair("whole"))

    def test_killed_within_an_epoch(self):
        self.killed()

    def test_killed_with_frozen_layers_and_another_head(self):
        self.killed("--head", 10, "--freeze", "conv*", "--optimizer", "adam")


harness.main()
