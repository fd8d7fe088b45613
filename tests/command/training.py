"""Training by the command: its lines, saving, resuming, interrupting."""
import json
import random
import shutil
import signal
import subprocess
import time

import harness
import npz

EPOCH_FIELDS = ("epoch", "loss", "accuracy", "test_loss", "test_accuracy", "samples_per_s")


class Training(harness.CommandTest):
    def setUp(self):
        super().setUp()
        self.data = harness.write_mnist(self.folder / "data")

    def train(self, *arguments, **environment):
        return self.good("train", "mlp", "--data", self.data, "--batch", "40", *arguments, **environment)

    def test_json(self):
        lines = self.train("--epochs", "3", "--save", "m", "--json").lines()
        self.assertEqual([line["epoch"] for line in lines[:-1]], [1, 2, 3])
        for line in lines[:-1]:
            for field in EPOCH_FIELDS:
                self.assertIsInstance(line[field], (int, float), field)
        self.assertLess(lines[2]["loss"], lines[0]["loss"])
        last = lines[-1]
        self.assertEqual(last["saved"], "m")
        self.assertEqual(sum(device["samples"] for device in last["devices"]), 600)
        for device in last["devices"]:
            self.assertEqual([type(device[field]) for field in ("index", "name", "samples")], [int, str, int])
            self.assertGreater(device["samples_per_s"], 0)

    def test_last_smaller_batch_counts(self):
        """200 samples in batches of 64: none is dropped, none counted twice."""
        lines = self.good("train", "mlp", "--data", self.data, "--batch", "64", "--epochs", "1", "--json").lines()
        self.assertEqual((lines[0]["samples"], lines[0]["steps"], lines[-1]["samples"]), (200, 4, 200))

    def test_text(self):
        outcome = self.train("--epochs", "2", "--save", "m")
        self.assertEqual(outcome.output, "")
        for words in ("epoch 2/2", "test accuracy", "samples/s", "together:", "saved m.safetensors"):
            self.assertIn(words, outcome.errors)

    def test_steps(self):
        lines = self.train("--steps", "7", "--json").lines()
        self.assertEqual(lines[-1]["samples"], 7 * 40)
        self.assertIsNone(lines[-1]["saved"])
        self.assertIsNotNone(lines[-1]["test_accuracy"])

    def test_same_seed_same_bytes(self):
        for name, seed in (("a", 3), ("b", 3), ("c", 4)):
            self.train("--epochs", "2", "--save", name, "--seed", seed)
        self.assertEqual(self.pair("a"), self.pair("b"))
        self.assertNotEqual(self.pair("a")[0], self.pair("c")[0])

    def test_frozen_parameters(self):
        errors = self.train("--steps", 1, "--save", "a", "--freeze", "fc[12].*").errors
        self.assertIn("froze 4 of 6 parameter tensors", errors)
        self.train("--steps", 2, "--save", "b", "--freeze", "fc[12].*")
        a, b = (npz.safetensors(self.folder / f"{name}.safetensors") for name in "ab")
        self.assertEqual({name for name in a if a[name] != b[name]}, {"fc3.weight", "fc3.bias"})
        self.refused(2, ["--freeze", "conv"], "train", "mlp", "--freeze", "conv*")
        self.refused(2, "no parameter is left", "train", "mlp", "--freeze", "*")

    def test_optimizers(self):
        for options in (["--optimizer", "adam"], ["--optimizer", "adamw", "--weight-decay", "0.1", "--lr", "0.002"],
                        ["--optimizer", "sgd", "--momentum", "0.8", "--nesterov", "--lr", "0.02"], ["--no-shuffle"],
                        ["--optimizer", "rmsprop", "--momentum", "0.5", "--centered", "--lr", "0.001"],
                        ["--optimizer", "adamw", "--amsgrad"]):
            with self.subTest(options):
                lines = self.train("--epochs", "3", "--json", *options).lines()
                self.assertLess(lines[2]["loss"], lines[0]["loss"])

    def test_linear(self):
        lines = self.good("train", "linear", "--epochs", "20", "--json").lines()
        self.assertLess(lines[-2]["test_loss"], 1e-4)
        self.assertIsNone(lines[-2]["test_accuracy"])

    def test_two_devices(self):
        two = {"POCL_DEVICES": "pthread pthread"}
        last = self.train("--epochs", "1", "--json", "--devices", "0,1", "--shares", "equal", **two).lines()[-1]
        self.assertEqual([device["samples"] for device in last["devices"]], [100, 100])
        last = self.train("--epochs", "1", "--json", "--devices", "0,1", "--shares", "3,1", **two).lines()[-1]
        self.assertEqual([device["samples"] for device in last["devices"]], [150, 50])

    def test_three_devices(self):
        three = {"POCL_DEVICES": "pthread pthread pthread"}
        one = self.train("--epochs", "2", "--json", "--devices", "0", **three).lines()[-1]
        for shares in ("2,1,1", "1,0,3", "1,1,1"):
            all = self.train("--epochs", "2", "--json", "--devices", "0,1,2", "--shares", shares, **three).lines()[-1]
            self.assertEqual(sum(device["samples"] for device in all["devices"]), 400)
            self.assertAlmostEqual(all["loss"], one["loss"], delta=1e-5)
            self.assertAlmostEqual(all["test_loss"], one["test_loss"], delta=1e-5)

    def test_automatic_shares(self):
        two = {"POCL_DEVICES": "pthread pthread"}
        last = self.train("--epochs", "12", "--json", "--devices", "0,1", **two).lines()[-1]
        self.assertEqual(sum(device["samples"] for device in last["devices"]), 12 * 200)
        self.assertEqual(sum(device["share"] for device in last["devices"]), 40)
        for device in last["devices"]:
            times = [device[name] for name in ("compute_ms", "transfer_ms", "idle_ms")]
            self.assertTrue(all(time >= 0 for time in times), times)
        steps = [sum(device[name] for name in ("compute_ms", "transfer_ms", "idle_ms")) for device in last["devices"]]
        self.assertAlmostEqual(steps[0], steps[1], places=6)
        text = self.train("--epochs", "1", "--devices", "0,1", **two).errors
        self.assertRegex(text, r"to repeat this division: --shares \d+,\d+")

    def test_eval_and_infer(self):
        last = self.train("--epochs", "3", "--save", "m", "--json").lines()[-1]
        weights = ("--data", self.data, "--weights", "m.safetensors", "--json")
        line, = self.good("eval", "mlp", *weights).lines()
        self.assertEqual(line["samples"], 50)
        self.assertAlmostEqual(line["loss"], last["test_loss"], places=4)
        self.assertAlmostEqual(line["accuracy"], last["test_accuracy"], places=6)
        lines = self.good("infer", "mlp", *weights).lines()
        self.assertEqual([line["index"] for line in lines], list(range(50)))
        self.assertAlmostEqual(sum(line["class"] == line["label"] for line in lines) / 50, last["test_accuracy"], places=6)
        self.assertTrue(all(0.1 <= line["probability"] <= 1 for line in lines))
        few = self.good("infer", "mlp", *weights, "--first", "10", "--count", "5", "--batch", "2").lines()
        self.assertEqual([line["class"] for line in few], [line["class"] for line in lines[10:15]])
        text = self.good("infer", "mlp", *weights[:-1], "--count", "3").output
        self.assertRegex(text, r"^0 \d [01]\.\d{4}  test image 0\n1 \d [01]\.\d{4}  test image 1\n2 \d [01]\.\d{4}  test image 2\n$")


class Resuming(harness.CommandTest):
    @classmethod
    def setUpClass(cls):
        cls.undisturbed = cls()
        cls.undisturbed.setUp()
        cls.addClassCleanup(cls.undisturbed.doCleanups)
        data = harness.write_mnist(cls.undisturbed.folder / "data")
        cls.common = ("train", "mlp", "--data", data, "--batch", "40", "--optimizer", "adam")
        cls.undisturbed.good(*cls.common, "--epochs", "6", "--save", "whole")

    def setUp(self):
        super().setUp()
        if self is not self.undisturbed:
            for file in self.undisturbed.folder.glob("whole.*"):
                shutil.copy(file, self.folder)

    def test_after_an_epoch(self):
        self.good(*self.common, "--epochs", "2", "--save", "part")
        lines = self.good(*self.common, "--epochs", "6", "--resume", "part", "--json").lines()
        self.assertEqual([line["epoch"] for line in lines[:-1]], [3, 4, 5, 6])
        self.assertEqual(lines[-1]["saved"], "part")
        self.assertEqual(self.pair("part"), self.pair("whole"))

    def test_within_an_epoch(self):
        self.good(*self.common, "--epochs", "6", "--steps", "13", "--save", "part")
        self.good(*self.common, "--epochs", "6", "--resume", "part", "--save", "rest")
        self.assertEqual(self.pair("rest"), self.pair("whole"))
        self.assertNotEqual(self.pair("part"), self.pair("whole"))

    def test_nothing_left(self):
        before = self.pair("whole")
        outcome = self.good(*self.common, "--epochs", "6", "--resume", "whole")
        self.assertIn("nothing was left to train", outcome.errors)
        self.assertIn("has completed 6 of 6 epochs; raise --epochs", outcome.errors)
        outcome = self.good(*self.common, "--epochs", "2", "--resume", "whole")
        self.assertIn("has completed 6 epochs, more than 2; raise --epochs", outcome.errors)
        self.assertEqual(self.pair("whole"), before)

    def test_interrupted(self):
        process = self.start(*self.common, "--epochs", "100000", "--save", "part", "--json")
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 130, errors)
        self.assertIn("--resume part", errors.splitlines()[-1])
        epochs = max([1] + [json.loads(line)["epoch"] for line in rest.splitlines()]) + 1
        for arguments in (["--save", "straight"], ["--resume", "part"]):
            self.good(*self.common, "--epochs", str(epochs), *arguments)
        self.assertEqual(self.pair("part"), self.pair("straight"))

    def test_terminated(self):
        process = self.start(*self.common, "--epochs", "100000", "--save", "part", "--json")
        process.stdout.readline()
        process.terminate()
        _, errors = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 143, errors)
        self.good(*self.common, "--steps", "1", "--resume", "part")

    def test_hung_up(self):
        """A terminal that closes; under nohup the signal stays ignored."""
        self.addCleanup(signal.signal, signal.SIGHUP, signal.signal(signal.SIGHUP, signal.SIG_DFL)) # the tests may run under nohup
        process = self.start(*self.common, "--epochs", "100000", "--save", "part", "--json")
        process.stdout.readline()
        process.send_signal(signal.SIGHUP)
        _, errors = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 129, errors)
        self.good(*self.common, "--steps", "1", "--resume", "part")
        process = subprocess.Popen(["nohup", harness.TUTTI, *map(str, self.common), "--epochs", "100000", "--save", "part", "--json"],
                                   cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        process.stdout.readline()
        process.send_signal(signal.SIGHUP)
        process.stdout.readline()
        process.terminate()
        _, errors = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 143, errors)

    def test_names_of_checkpoints(self):
        """NAME and its two files mean the same."""
        self.good(*self.common, "--epochs", "2", "--save", "part.safetensors")
        part = self.pair("part")
        for name in ("part", "part.safetensors", "part.state.safetensors"):
            lines = self.good(*self.common, "--epochs", "6", "--resume", name, "--json").lines()
            self.assertEqual(lines[-1]["saved"], "part")
            self.assertEqual(self.pair("part"), self.pair("whole"))
            for end, content in zip((".safetensors", ".state.safetensors"), part):
                (self.folder / f"part{end}").write_bytes(content)

    def test_killed_at_the_first_save(self):
        """Between the renames of the two files, the weights have another name yet."""
        self.good(*self.common, "--epochs", "2", "--save", "part")
        (self.folder / "part.safetensors").rename(self.folder / "part.safetensors.new")
        self.good(*self.common, "--epochs", "6", "--resume", "part")
        self.assertEqual(self.pair("part"), self.pair("whole"))

    def test_two_trainings_with_one_name(self):
        """The second one is refused while the first one lives, however it ends."""
        process = self.start(*self.common, "--epochs", "100000", "--save", "part", "--json")
        process.stdout.readline()
        self.refused(1, "another training saves to part:", *self.common, "--save", "part")
        self.refused(1, "another training saves to part:", *self.common, "--resume", "part.safetensors")
        self.good(*self.common, "--steps", "1", "--save", "other")
        process.kill()
        process.communicate()
        self.good(*self.common, "--steps", "1", "--resume", "part")
        self.assertEqual(list(self.folder.glob("*.lock")), [])

    def test_killed(self):
        """At any moment, a good pair is there: it resumes, and ends as the run that was never stopped."""
        moments = random.Random(1)
        self.good(*self.common, "--epochs", "1", "--save", "part")
        for _ in range(8):
            process = self.start(*self.common, "--epochs", "100000", "--resume", "part", "--json")
            process.stdout.readline()
            time.sleep(moments.uniform(0, 0.15))
            process.kill()
            process.communicate()
            lines = self.good(*self.common, "--steps", "1", "--resume", "part", "--save", "next", "--json").lines()
            self.assertEqual(lines[-1]["samples"], 40)
        reached = lines[0]["epoch"] + 1
        self.good(*self.common, "--epochs", reached, "--resume", "part")
        self.good(*self.common, "--epochs", reached, "--save", "straight")
        self.assertEqual(self.pair("part"), self.pair("straight"))


class Bench(harness.CommandTest):
    FIELDS = {"model": str, "mode": str, "batch": int, "ms_per_step_min": float, "ms_per_step_median": float,
              "samples_per_s": float, "build_s": float, "ready_s": float, "first_step_s": float,
              "device_memory_bytes": int, "devices": list}

    def bench(self, *arguments):
        line, = self.good("bench", *arguments, "--json").lines()
        for field, kind in self.FIELDS.items():
            self.assertIsInstance(line[field], (int, float) if kind is float else kind, field)
        self.assertLessEqual(line["ms_per_step_min"], line["ms_per_step_median"])
        self.assertLess(line["ready_s"], line["first_step_s"])
        return line

    def test_modes(self):
        for mode in ("train", "infer"):
            line = self.bench("lenet", "--mode", mode, "--batch", "8", "--steps", "3")
            self.assertEqual((line["model"], line["mode"], line["batch"], len(line["devices"])), ("lenet", mode, 8, 1))

    def test_input_and_classes(self):
        self.bench("lenet", "--input", "3x20x18", "--classes", "7", "--batch", "2", "--steps", "1", "--warm-up", "1")
        self.bench("linear", "--batch", "4", "--steps", "2")

    def test_classes_for_each_pixel(self):
        self.bench("unet", "--input", "3x16x17", "--classes", "2", "--batch", "4", "--steps", "1", "--warm-up", "0")

    def test_seconds(self):
        line = self.bench("linear", "--batch", "4", "--steps", "2", "--seconds", "0.2")
        self.assertGreater(line["steps"], 2)

    def test_text(self):
        self.assertIn("ms per step", self.good("bench", "mlp", "--batch", "4", "--steps", "2").output)


class Show(harness.CommandTest):
    PARAMETERS = {"linear": 2, "mlp": 669706, "lenet": 454922, "mobilenet_v2": 3504872}

    def test_parameters(self):
        for model, parameters in self.PARAMETERS.items():
            with self.subTest(model):
                lines = self.good("show", model, "--batch", "1", "--mode", "infer", "--json").lines()
                self.assertEqual(lines[-1]["parameters"], parameters)
                self.assertEqual(sum(line["parameters"] for line in lines[:-1]), parameters)
                self.assertGreater(lines[-1]["devices"][0]["memory_bytes"], 4 * parameters - 1)

    def test_text(self):
        output = self.good("show", "lenet", "--batch", "4", "--why").output
        for words in ("conv1", "[32, 28, 28]", "454922 parameters", "MiB to train", "device 0"):
            self.assertIn(words, output)

    def test_bf16(self):
        why = ("show", "linear", "--batch", "64", "--precision", "bf16", "--why")
        wide = {"TUTTI_DEVICE_CLASS": "cpu", "TUTTI_VECTOR_WIDTH": "16"}
        output = self.good(*why, TUTTI_BF16_DOTS="plain", **wide).output
        self.assertRegex(output, r"dense +bf16\n        by .*\n        it multiplies bfloat16 numbers by plain code\n        not ")
        output = self.good(*why, TUTTI_BF16_DOTS="off", **wide).output
        self.assertNotIn("it multiplies", output)
        self.assertIn("        not bf16: TUTTI_BF16_DOTS is off\n", output)

    def test_passes(self):
        output = self.good("show", "lenet", "--batch", "4", "--passes").output
        self.assertIn(" conv2d ", output)
        commands = [line.split()[1:] for line in output.split("-- commands\n")[1].split("\n\n")[0].splitlines()]
        self.assertEqual([command[0] for command in commands[:5]], ["copy", "copy", "copy", "marker", "piece"])
        self.assertEqual({command[0] for command in commands[5:-2]}, {"kernel"})
        self.assertIn("conv1", commands[5])
        self.assertEqual([command[0] for command in commands[-2:]], ["bucket", "copy"])


harness.main()
