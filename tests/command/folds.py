"""k-fold evaluation by the command: data of one's own that are mixed, killed runs, what all folds leave to be looked at."""
import json
import re
import signal
import struct
import time

import harness
import pictures

WORDS = ("train", "lenet", "--data", "set", "--input", "3x16x16", "--batch", "12", "--lr", "0.01", "--devices", "0",
         "--folds", "3")
MIXED = ("--augment", "crop,flip,mixup=0.4,cutmix=1", "--label-smoothing", "0.1", "--class-weights", "balanced")


class Folds(harness.CommandTest):
    def setUp(self):
        super().setUp()
        pictures.write_classes(self.folder / "set", 12)

    def test_mixed_images(self):
        """Labels are those of the data; the test part of a fold is read as in any evaluation."""
        outcome = self.good(*WORDS, *MIXED, "--epochs", "3", "--save", "m", "--json", "--report", "r.html", "--log", "l.csv",
                            "--tensorboard", "board")
        lines = outcome.lines()
        self.assertEqual(lines[-1]["folds"], 3)
        self.assertEqual(outcome.errors.count("20 training and 10 test samples"), 3, outcome.errors)
        ends = [line for line in lines if "saved" in line]
        self.assertEqual([line["saved"] for line in ends], ["m.fold1", "m.fold2", "m.fold3"])
        for line in ends:
            weights = line["saved"] + ".safetensors"
            data = (self.folder / weights).read_bytes()
            header = json.loads(data[8:8 + struct.unpack_from("<Q", data)[0]])
            known = json.loads(header["__metadata__"]["data"])
            self.assertEqual((known["folds"], known["fold"]), (3, int(line["saved"][-1]) - 1))
            result, = self.good("eval", "lenet", "--data", "set", "--weights", weights, "--json").lines()
            self.assertEqual((result["samples"], result["accuracy"]), (10, line["test_accuracy"]))
            named, = self.good("infer", "lenet", "--weights", weights, "--json", "set/red/000.ppm").lines()
            self.assertIn(named["likeliest"][0]["name"], pictures.COLOURS)
        self.check_files(lines[-1])
        self.refused(1, "16 folds are too many for 30 samples", *WORDS[:-1], "16")
        self.refused(2, ["--ignore-label", "mixup", "probabilities", "leave out"], *WORDS, *MIXED, "--ignore-label", "1")

    def check_files(self, result):
        """One page of all folds, and files for each."""
        page = (self.folder / "r.html").read_text()
        for words in ("3 of 3 trainings are complete", "fold 3", "mean", "deviation", "Test accuracy", "Training loss",
                      f"{100 * result['test_accuracy']:.2f} %", "tutti train lenet"):
            self.assertIn(words, page)
        self.assertNotIn('http-equiv="refresh"', page)
        tested = [int(count) for count in re.findall(r"taken for [a-z]+: (\d+) of", page)]
        self.assertEqual(sum(tested), 30)  # each sample once
        for i in (1, 2, 3):
            self.assertIn("All operations as a table", (self.folder / f"r.fold{i}.html").read_text())
            table = (self.folder / f"l.fold{i}.csv").read_text().splitlines()
            self.assertEqual(sum(line.startswith("epoch,") for line in table), 3)
            self.assertEqual(len(list((self.folder / "board" / f"fold{i}").iterdir())), 1)

    def test_killed_and_resumed(self):
        """Killed in any fold, the rerun ends with the same bytes and results."""
        words = (*WORDS, *MIXED, "--epochs", "4", "--json")
        whole = self.good(*words, "--save", "whole").lines()[-1]
        for fold, delay in ((1, 0.1), (3, 0)):
            process = self.start(*words, "--save", "part")
            while process.poll() is None and not (self.folder / f"part.fold{fold}.state.safetensors").exists():
                time.sleep(0.02)
            time.sleep(delay)
            process.send_signal(signal.SIGKILL)
            process.communicate()
            again = self.good(*words, "--resume", "part").lines()[-1]
            self.assertEqual(again, whole)
            for i in (1, 2, 3):
                self.assertEqual(self.pair(f"whole.fold{i}"), self.pair(f"part.fold{i}"))
            for path in self.folder.glob("part.*"):
                path.unlink()
        self.refused(1, "none.fold1.state.safetensors", *words, "--resume", "none")
        self.refused(2, "--steps", *words, "--resume", "whole", "--steps", "3")
        self.refused(1, ["whole.fold1 is fold 1 of 3, not fold 1 of 4", "give --folds 3"], *words, "--folds", "4", "--resume", "whole")
        for path in self.folder.glob("whole.fold2.*"):
            path.rename(self.folder / path.name.replace("fold2", "fold1"))
        self.refused(1, "whole.fold1 is fold 2 of 3", *words, "--resume", "whole")


if __name__ == "__main__":
    harness.main()
