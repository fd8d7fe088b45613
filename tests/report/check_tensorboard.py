"""The event file of a training, as the real TensorBoard reads it, next to the table that the same training writes."""
import csv
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "command"))
import harness  # noqa: E402
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # noqa: E402


class Scalars(harness.CommandTest):
    def test_scalars_are_those_of_the_table(self):
        self.good("train", "mlp", "--epochs", "2", "--report", "r.html", "--tensorboard", "board", "--log", "m.csv")
        events = EventAccumulator(str(self.folder / "board"), size_guidance={"scalars": 0})
        events.Reload()
        rows = list(csv.DictReader((self.folder / "m.csv").read_text().splitlines()))
        for kind, tag, column, step in (("step", "step/loss", "loss", "step"), ("step", "step/accuracy", "accuracy", "step"),
                                        ("step", "step/learning_rate", "learning_rate", "step"), ("epoch", "epoch/loss", "loss", "epoch"),
                                        ("epoch", "test/loss", "test_loss", "epoch"), ("epoch", "test/accuracy", "test_accuracy", "epoch"),
                                        ("epoch", "test/f1", "f1", "epoch")):
            with self.subTest(tag):
                wanted = [(int(row[step]), float(row[column])) for row in rows if row["kind"] == kind]
                found = [(event.step, event.value) for event in events.Scalars(tag)]
                self.assertGreater(len(wanted), 0)
                self.assertEqual([step for step, _ in found], [step for step, _ in wanted])
                for (_, value), (_, other) in zip(found, wanted):
                    self.assertTrue(math.isclose(value, other, rel_tol=1e-6, abs_tol=1e-30), (value, other))


harness.main()
