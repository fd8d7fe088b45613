"""Runs the command and looks at what it says: shared by the tests of this folder, which need Python's library only."""
import gzip
import json
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["TUTTI_SOURCE"])
TUTTI = pathlib.Path(os.environ["TUTTI_BUILD"]) / "tools" / "tutti"
MODELS = ("linear, mlp, tabular, lenet, vgg16, resnet18, resnet50, mobilenet_v2, efficientnet_b0, convnext_tiny, vit_b_16, unet, fno2d, speech, lstm, gru, "
          "fasttext, bert_tiny, bert_mini, bert_small, bert_base, distilbert, roberta_base, gpt, gpt2, llama")


class Outcome:
    def __init__(self, status, output, errors):
        self.status, self.output, self.errors = status, output, errors

    def lines(self):
        """Standard output as JSON objects: any line that is none is an error of its own."""
        return [json.loads(line) for line in self.output.splitlines()]

    def __str__(self):
        return f"status {self.status}\n--- output\n{self.output}\n--- errors\n{self.errors}"


class CommandTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tutti-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def environment(self, extra):
        return {**os.environ, **{key: str(value) for key, value in extra.items()}}

    def tutti(self, *arguments, before=None, given=b"", **environment):
        """Runs tutti in the test's own folder; `given` is its standard input."""
        done = subprocess.run([TUTTI, *map(str, arguments)], cwd=self.folder, env=self.environment(environment), timeout=600,
                              input=given, capture_output=True, preexec_fn=before, check=False)
        return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())

    def start(self, *arguments, **environment):
        return subprocess.Popen([TUTTI, *map(str, arguments)], cwd=self.folder, env=self.environment(environment), text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def good(self, *arguments, **environment):
        outcome = self.tutti(*arguments, **environment)
        self.assertEqual(outcome.status, 0, outcome)
        return outcome

    def refused(self, status, words, *arguments, **keywords):
        """The command ends with this status, and its last line is one sentence that has these words in it."""
        outcome = self.tutti(*arguments, **keywords)
        self.assertEqual(outcome.status, status, outcome)
        line = (outcome.errors.splitlines() or [""])[-1]
        self.assertTrue(line.startswith("tutti"), outcome)
        for word in [words] if isinstance(words, str) else words:
            self.assertIn(word, line, outcome)
        self.assertNotIn("Segmentation", outcome.errors)
        return outcome

    def same(self, one, other, tolerance):
        """Both files of two checkpoints hold the same numbers, relative to the largest of each tensor."""
        for end in (".safetensors", ".state.safetensors"):
            expected, found = (dict(tensors(self.folder / (name + end))) for name in (one, other))
            self.assertEqual(expected.keys(), found.keys())
            for name, values in expected.items():
                largest = max(abs(value) for value in values)
                self.assertGreater(largest, 0, name)
                worst = max(abs(a - b) for a, b in zip(values, found[name]))
                self.assertLessEqual(worst, tolerance * largest, f"{name}{end}")

    def pair(self, name):
        """The bytes of a checkpoint's two files."""
        return tuple((self.folder / f"{name}{end}").read_bytes() for end in (".safetensors", ".state.safetensors"))


def tensors(path):
    """The floats of a safetensors file, by name."""
    content = path.read_bytes()
    length = struct.unpack("<Q", content[:8])[0]
    data = content[8 + length:]
    for name, entry in json.loads(content[8:8 + length]).items():
        if entry.get("dtype") == "F32":
            begin, end = entry["data_offsets"]
            yield name, struct.unpack(f"<{(end - begin) // 4}f", data[begin:end])


def sequence_models(folder):
    """The words that train a small gpt, a language model with dropout, and a small lstm, two layers in both directions that classify
    texts of several lengths, by model. No parameter's gradient is zero but for rounding, as that of a bias before a softmax is: AdamW would
    make whole steps of it."""
    draw = random.Random(1)
    words = {"yes": ["good", "fine", "great work"], "no": ["bad", "poor", "dull beyond words"]}
    rows = [(f"a {draw.choice(words[label])} film", label) for label in ("yes", "no") for _ in range(30)]
    (folder / "reviews.tsv").write_text("text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in rows))
    (folder / "book.txt").write_text("".join(f"line {number} of {draw.choice(words['yes'])}\n" for number in range(70)))
    configs = {"gpt": {"vocab_size": 256, "n_layer": 2, "n_head": 2, "n_embd": 24, "block_size": 23, "dropout": 0.1},
               "lstm": {"embedding_size": 12, "hidden_size": 20, "num_hidden_layers": 2, "bidirectional": True, "pooling": "mean", "dropout": 0.1}}
    for name, config in configs.items():
        (folder / f"{name}.json").write_text(json.dumps(config))
    like = ("--batch", "8", "--seed", "3", "--lr", "0.003")
    return {"gpt": ["train", "gpt", "--config", "gpt.json", "--data", "book.txt", "--length", "23", *like],
            "lstm": ["train", "lstm", "--config", "lstm.json", "--data", "reviews.tsv", "--text", "text", "--target", "label", *like]}


def idx(*sizes, data):
    return struct.pack(">HBB", 0, 8, len(sizes)) + struct.pack(f">{len(sizes)}I", *sizes) + bytes(data)


def columns(labels, side):
    """Grey images whose brightest column tells the label."""
    return bytes((255 if column // (side // 10) == label else (i * 31 + row * 17 + column * 3) % 64)
                 for i, label in enumerate(labels) for row in range(side) for column in range(side))


def images(samples, side):
    """Such images, and the labels."""
    labels = [i * 7 % 10 for i in range(samples)]
    pixels = columns(labels, side)
    return idx(samples, side, side, data=pixels), idx(samples, data=labels)


def write_mnist(folder, training=200, test=50, packed=False, side=10):
    """A small data set with MNIST's file names; with its size of images for networks that need it."""
    folder.mkdir(exist_ok=True)
    for name, samples in (("train", training), ("t10k", test)):
        for kind, content in zip(("images-idx3", "labels-idx1"), images(samples, side)):
            path = folder / f"{name}-{kind}-ubyte"
            if packed:
                path.with_name(path.name + ".gz").write_bytes(gzip.compress(content))
            else:
                path.write_bytes(content)
    return folder


def main():
    """As unittest.main(), with the last line that tests/summary.py reads."""
    program = unittest.main(module="__main__", exit=False, verbosity=2, argv=[sys.argv[0], *sys.argv[1:]])
    result = program.result
    bad = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - bad} passed, {bad} failed", flush=True)
    sys.exit(1 if bad or not result.testsRun else 0)
