"""Schedules, clipping, averages, stopping and accumulation by the command."""
import random
import time

import harness
import npz

STEERED = ("--schedule", "cosine", "--warmup", "3", "--clip", "0.5", "--ema", "0.9", "--save-best", "--patience", "9")


class Schedules(harness.CommandTest):
    def setUp(self):
        super().setUp()
        self.data = harness.write_mnist(self.folder / "data")

    def train(self, *arguments, **environment):
        return self.good("train", "mlp", "--data", self.data, "--batch", "40", *arguments, **environment)

    def weights(self, name):
        return npz.safetensors(self.folder / f"{name}.safetensors")

    def check_near(self, a, b):
        a, b = self.weights(a), self.weights(b)
        for name, (_, _, values) in a.items():
            for one, other in zip(values, b[name][2]):
                self.assertAlmostEqual(one, other, delta=1e-5)

    def test_resumed(self):
        """Stopped within an epoch, at its end, and by its steps; then killed at random."""
        self.train("--epochs", "4", "--save", "whole", *STEERED)
        for step, resume in ((7, ()), (3, ("--resume", "part")), (0, ("--resume", "part"))):
            self.train("--epochs", "4", "--save", "part", *STEERED, *(("--steps", step) if step else ()), *resume)
        self.assertEqual(self.pair("whole"), self.pair("part"))
        self.assertEqual(self.weights("whole.best"), self.weights("part.best"))
        process = self.start("train", "mlp", "--data", self.data, "--batch", "40", "--epochs", "4", "--save", "killed", *STEERED)
        for _ in range(600):
            if (self.folder / "killed.state.safetensors").exists() or process.poll() is not None:
                break
            time.sleep(0.05)
        time.sleep(0.05 * random.random())
        process.kill()
        process.communicate()
        self.train("--epochs", "4", "--resume", "killed", *STEERED)
        self.assertEqual(self.pair("whole"), self.pair("killed"))
        self.assertEqual(self.weights("whole.best"), self.weights("killed.best"))

    def test_schedule_by_steps(self):
        """With --steps alone, the schedule ends where they end; a resumed training goes on along it."""
        self.train("--steps", "12", "--save", "whole", "--schedule", "one-cycle")
        self.train("--steps", "12", "--save", "plain")
        self.assertNotEqual(self.pair("whole")[0], self.pair("plain")[0])
        self.train("--epochs", "3", "--steps", "5", "--save", "part", "--schedule", "step", "--step-size", "1", "--gamma", "0.5")
        self.train("--epochs", "3", "--save", "part", "--resume", "part", "--schedule", "step", "--step-size", "1", "--gamma", "0.5")
        self.train("--epochs", "3", "--save", "steps", "--schedule", "step", "--step-size", "1", "--gamma", "0.5")
        self.assertEqual(self.pair("steps"), self.pair("part"))

    def test_stops(self):
        errors = self.train("--epochs", "9", "--lr", "1e-30", "--no-shuffle", "--patience", "2", "--save", "m").errors
        self.assertIn("stopped after epoch 3 of 9: no better result for 2 epochs", errors)

    def test_accumulates(self):
        """Accumulation gives the parameters of one large batch, up to rounding: the network has no batch normalisation."""
        self.good("train", "mlp", "--data", self.data, "--batch", "80", "--epochs", "2", "--save", "large")
        self.train("--accumulate", "2", "--epochs", "2", "--save", "small")
        self.check_near("large", "small")

    def test_refusals(self):
        for words, options in (("--warmup 5x", ["--warmup", "5x"]), ("--warmup e", ["--warmup", "e"]), ("--warmup 0", ["--warmup", "0"]),
                               ("--schedule step", ["--gamma", "0.5"]), ("--save NAME", ["--save-best"]),
                               ("lower it", ["--accumulate", "6"]), ("--accumulate", ["--accumulate", "2", "--sync-batchnorm"])):
            with self.subTest(options):
                self.refused(2, words, "train", "mlp", "--data", self.data, "--batch", "40", *options)
        self.refused(1, "warm-up", "train", "mlp", "--data", self.data, "--batch", "40", "--warmup", "100e")


harness.main()
