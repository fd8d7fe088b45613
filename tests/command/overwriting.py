"""Outputs that a command would write over what it reads, or twice to one file: they are refused before any work."""
import json
import os
import re
import subprocess

import harness
import pictures

NO_DEVICE = {"OCL_ICD_VENDORS": "/nonexistent"}

# Each use: a command without its output; an option; outputs, and what the message says of each.
DATA = {"d.csv": "this file is also d.csv", "./d.csv": "this file is also d.csv", "symbolic.csv": "this file is also d.csv",
        "hard.csv": "this file is also d.csv"}
WEIGHTS = {"m.safetensors": "this file is also m.safetensors", "symbolic.safetensors": "this file is also m.safetensors"}
MODEL = {"net.onnx": "this file is also net.onnx", "net.onnx.data": "this file is also net.onnx.data"}
TABLE = {"tuning.txt": "this file is also tuning.txt"}
ARRAYS = {"i.npz": "this file is also i.npz", "hard.npz": "this file is also i.npz"}
PARTS = {"parts/train.csv": "this file is in parts", "parts/test.tsv": "this file is in parts"}
USES = [
    ("train mlp --data d.csv", "log", DATA),
    ("train mlp --data d.csv", "report", DATA),
    ("train mlp --data d.csv", "find-lr", DATA),
    ("train mlp --data d.fold2.csv --folds 2", "log", {"d.csv": "d.fold2.csv is also d.fold2.csv"}),
    ("train mlp --data folds --folds 3", "report", {"folds/a.ppm": "folds/a.fold3.ppm is in folds"}),
    ("train mlp --weights m.fold1.safetensors --folds 2", "save", {"m": "m.fold1.safetensors is also m.fold1.safetensors"}),
    ("train mlp --data parts", "log", PARTS),
    ("train mlp --data sole", "log", {"sole/s.csv": "this file is in sole"}),
    ("train lenet --data pets", "report", {"pets/cat/0.ppm": "this file is in pets"}),
    ("train mlp --weights m", "report", WEIGHTS),
    ("train mlp --weights m --lora 2", "merge", WEIGHTS),
    ("train mlp --weights m.safetensors", "save",
     {"m": "m.safetensors is also m.safetensors", "symbolic.state.safetensors": "symbolic.safetensors is also m.safetensors"}),
    ("train mlp --resume m", "log", {**WEIGHTS, "m.state.safetensors": "this file is also m.state.safetensors"}),
    ("train net.onnx --data d.csv", "log", {**MODEL, **DATA}),
    ("train net.onnx --data d.csv --known x=1,y=k.npy", "log", {"k.npy": "this file is also k.npy"}),
    ("train mlp --data d.csv --tuning tuning.txt", "log", TABLE),
    ("eval --weights m --data d.csv", "scores", {**DATA, **WEIGHTS}),
    ("eval --weights of_file.safetensors --data d.csv", "scores", {"net.onnx": "this file is also net.onnx"}),
    ("infer --weights m d.csv", "output", DATA),
    ("infer --weights m --data d.csv", "output", DATA),
    ("infer --weights m parts", "output", PARTS),
    ("infer --weights m --inputs i.npz", "outputs", {**ARRAYS, **WEIGHTS}),
    ("infer net.onnx --inputs i.npz --expect e.npz", "outputs", {"e.npz": "this file is also e.npz", **MODEL}),
    ("inspect d.csv", "report", DATA),
    ("inspect pets", "report", {"pets/dog/1.ppm": "this file is in pets"}),
    ("export mlp --weights m", "output", WEIGHTS),
    ("export net.onnx", "output", MODEL),
    ("export --weights of_file.safetensors", "output", {"net.onnx": "this file is also net.onnx"}),
    ("show --weights m", "svg", WEIGHTS),
    ("show --weights m", "html", WEIGHTS),
    ("show net.onnx", "svg", MODEL),
    ("bench net.onnx --tuning tuning.txt", "trace", {**MODEL, **TABLE}),
    ("tune net.onnx", "output", MODEL),
    ("tokenize --train d.csv", "save", DATA),
    ("train lstm --data d.csv --tokenizer tuning.txt", "log", TABLE),
    ("report r.html l.csv", "output", {"r.html": "this file is also r.html", "l.csv": "this file is also l.csv"}),
    # Two outputs of one name, which is not there yet, or is.
    ("train mlp --save n", "log", {"n.safetensors": "this file is also written by --save n",
                                   "./n.state.safetensors": "this file is also written by --save n"}),
    ("train mlp --report a", "log", {"a": "this file is also written by --report a", "../{}/a": "this file is also"}),
    ("train mlp --report l.csv", "log", {"l.csv": "this file is also written by --report l.csv"}),
    ("train mlp --find-lr l.csv", "log", {"symbolic_log": "this file is also written by --find-lr l.csv"}),
    ("show mlp --svg a", "html", {"a": "this file is also written by --svg a"}),
]
OTHERS = {"optimizer", "sizes", "tensorboard"} # the last one makes a new file in its folder
READ = {"config", "data", "expect", "inputs", "known", "resume", "tokenizer", "train", "tuning", "weights"}


def weights(path, **texts):
    """A file of weights without any."""
    head = json.dumps({"__metadata__": texts}).encode()
    path.write_bytes(len(head).to_bytes(8, "little") + head)


class Outputs(harness.CommandTest):
    def setUp(self):
        super().setUp()
        for folder in ("parts", "sole", "folds", "pets/cat", "pets/dog"):
            (self.folder / folder).mkdir(parents=True)
        for name in ("d.csv", "parts/train.csv", "parts/test.tsv", "sole/s.csv", "l.csv", "net.onnx", "net.onnx.data", "k.npy",
                     "i.npz", "e.npz", "tuning.txt", "r.html", "d.fold2.csv", "folds/a.fold3.ppm"):
            (self.folder / name).write_text("".join(f"{i},{i * 2}\n" for i in range(30)))
        for i in range(2):
            for kind in ("cat", "dog"):
                pictures.ppm(self.folder / "pets" / kind / f"{i}.ppm", 2, 2, bytes(12))
        model = {"shape": [1], "outputs": 1}
        weights(self.folder / "m.safetensors", model=json.dumps({"name": "mlp", **model}))
        weights(self.folder / "m.state.safetensors")
        weights(self.folder / "m.fold1.safetensors")
        weights(self.folder / "of_file.safetensors", model=json.dumps({"name": "net.onnx", **model}))
        for link, name in (("symbolic.csv", "d.csv"), ("symbolic.safetensors", "m.safetensors"), ("symbolic_log", "l.csv")):
            (self.folder / link).symlink_to(name)
        for link, name in (("hard.csv", "d.csv"), ("hard.npz", "i.npz")):
            os.link(self.folder / name, self.folder / link)

    def files(self):
        return {path: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}

    def test_refused(self):
        before = self.files()
        for words, option, outputs in USES:
            for path, what in outputs.items():
                path = path.format(self.folder.name)
                with self.subTest(f"{words} --{option} {path}"):
                    outcome = self.tutti(*words.split(), f"--{option}", path, **NO_DEVICE)
                    self.assertEqual((outcome.status, outcome.output), (2, ""), outcome)
                    line, = outcome.errors.splitlines()
                    self.assertTrue(line.startswith(f"tutti {words.split()[0]}: --{option} {path}: {what}"), outcome)
                    self.assertTrue(line.endswith(": choose another name"), outcome)
                    self.assertEqual("which is read" in line, "written by" not in line, outcome)
        self.assertEqual(self.files(), before)

    def test_defaults_and_standard_input(self):
        (self.folder / "comparison.html").write_text("a page")
        self.refused(2, "--output comparison.html: this file is also comparison.html", "report", "comparison.html")
        for words in ("infer --weights m --data - --output d.csv", "eval --weights m --data - --scores hard.csv"):
            with open(self.folder / "d.csv", "rb") as file:
                done = subprocess.run([harness.TUTTI, *words.split()], cwd=self.folder, stdin=file, capture_output=True,
                                      env=self.environment(NO_DEVICE), check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn(b"this file is also standard input, which is read", done.stderr)
        self.refused(2, "--output d.csv: this file is also d.csv", "infer", "--weights", "m", "-", "--output", "d.csv",
                            given=b"parts\nd.csv\n", **NO_DEVICE)

    def test_not_refused(self):
        """Logs next to data, a checkpoint that goes on, and devices: what stops these is that there is no device."""
        (self.folder / "pets" / "log.csv").write_text("kind,epoch\n")
        (self.folder / "parts" / "log.csv").write_text("kind,epoch\n")
        for words in ("train mlp --data pets --log pets/log.csv", "train mlp --data parts --log parts/log.csv",
                      "train mlp --data d.csv --save m --resume m", "train mlp --log /dev/null --report new.html",
                      "train mlp --data d.csv --weights m --save d",
                      "train mlp --data d.fold2.csv --log e.csv --folds 2", "show mlp --svg a.svg --html b.html"):
            with self.subTest(words):
                outcome = self.tutti(*words.split(), **NO_DEVICE)
                self.assertNotEqual(outcome.status, 0)
                for part in ("which is read", "written by"):
                    self.assertNotIn(part, outcome.errors)

    def test_all_options(self):
        """Each option whose value is a file is one of those above, or is read."""
        written = {(words.split()[0], option) for words, option, _ in USES}
        written |= {("train", "save"), ("show", "svg")}
        for path in sorted((harness.SOURCE / "tests/command/expected").glob("*.txt")):
            for option in re.findall(r"^ +--([a-z-]+) (?:FILE|DIR|NAME)", path.read_text(), re.MULTILINE):
                if option not in READ | OTHERS:
                    self.assertIn((path.stem, option), written)


harness.main()
