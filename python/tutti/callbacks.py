"""What fit() calls while it trains: fit(..., callbacks=[tutti.callbacks.EarlyStopping(patience=3)]).

A function(epoch, numbers) is a callback, too. What returns True ends the training."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from . import _html
from ._native import ffi, lib
from ._values import shown
from .errors import made

if TYPE_CHECKING:
    from collections.abc import Callable

    from ._fit import Progress
    from ._trainer import Trainer
    from ._types import Path


class History(dict[str, list[float]]):
    """Lists by name, with a number for each epoch: loss, accuracy, val_loss, val_accuracy."""

    def add(self, **numbers: float) -> None:
        for name, number in numbers.items():
            self.setdefault(name, []).append(number)

    def _repr_html_(self) -> str:
        """Curves of the losses and of the accuracies."""
        return _html.curves(self)


class Callback:
    """To derive from: `self.trainer` is the trainer; it can evaluate, predict, save, and read and write parameters and the rate."""
    trainer: Trainer

    def begin(self, epochs: int) -> None:
        """Before the first step."""

    def step(self, progress: Progress) -> bool | None:
        """After each step but an epoch's end: progress.epoch, .step, .train.loss, as tutti_progress."""

    def epoch(self, epoch: int, numbers: dict[str, float]) -> bool | None:
        """After each epoch, counted from 1, with loss, accuracy, val_loss, val_accuracy, as far as there are such."""

    def end(self, history: History) -> None:
        """After the last step, also of a training that failed."""


class Lambda(Callback):
    """Functions in place of a class: begin(epochs), step(progress), epoch(epoch, numbers), end(history)."""

    def __new__(cls, epoch: Callable[[int, dict[str, float]], object] | None = None, *, begin: Callable[[int], object] | None = None,
                step: Callable[[Progress], object] | None = None, end: Callable[[History], object] | None = None) -> Lambda:
        given = {"epoch": epoch, "begin": begin, "step": step, "end": end}
        kind = type("Lambda", (cls,), {name: staticmethod(function) for name, function in given.items() if function is not None})
        return object.__new__(kind)

    def __init__(self, *_: Any, **__: Any) -> None:
        pass


class Best(Callback):
    """Keeps the best epoch: writes its weights to `path`, or with None sets them again at the end.

    monitor: loss, accuracy, val_loss or val_accuracy, of which less is better if it is a loss; None: val_loss, or loss without
    validation data."""

    def __init__(self, path: Path | None = None, monitor: str | None = None) -> None:
        self.path, self.monitor = path, monitor
        self.snapshot: Any = None
        self.best: float | None = None
        self.best_epoch: int | None = None

    def begin(self, epochs: int) -> None:
        self.best = self.best_epoch = None

    def improved(self, epoch: int, numbers: dict[str, float], least: float = 0.0) -> bool:
        """Whether this epoch is better than those before, by more than `least`."""
        name = self.monitor or ("val_loss" if "val_loss" in numbers else "loss")
        if name not in numbers:
            raise ValueError(f"there is no {name!r} to monitor: there are {', '.join(numbers)}")
        number = numbers[name] if "accuracy" in name else -numbers[name]
        if self.best is not None and not number > self.best + least:
            return False
        self.best, self.best_epoch = number, epoch
        return True

    def epoch(self, epoch: int, numbers: dict[str, float]) -> bool | None:
        if self.improved(epoch, numbers):
            self.keep()
        return None

    def keep(self) -> None:
        if self.path is not None:
            self.trainer.save(self.path)
            return
        self.free()
        self.snapshot = made(lib.tutti_snapshot_take(self.trainer.pointer))

    def free(self) -> None:
        lib.tutti_snapshot_free(self.snapshot or ffi.NULL)
        self.snapshot = None

    def end(self, history: History) -> None:
        if self.snapshot is not None:
            try:
                self.trainer.restore(self.snapshot)
            finally:
                self.free()


class EarlyStopping(Best):
    """Ends the training after `patience` epochs in a row that were not better than the best by more than min_delta. restore_best:
    the trainer then has the best epoch's weights and optimizer states."""

    def __init__(self, monitor: str | None = None, patience: int = 5, min_delta: float = 0.0, restore_best: bool = False) -> None:
        super().__init__(None, monitor)
        self.patience, self.min_delta, self.restore_best = patience, min_delta, restore_best

    def epoch(self, epoch: int, numbers: dict[str, float]) -> bool | None:
        if self.improved(epoch, numbers, self.min_delta) and self.restore_best:
            self.keep()
        return self.best_epoch is not None and epoch - self.best_epoch >= self.patience


class Schedule(Callback):
    """Sets the learning rate: function(epoch) or, with by="step", function(step), both counted from 0 in this fit(). The schedules
    of the library, fit(schedule="cosine"), need no callback."""

    def __init__(self, function: Callable[[int], float], by: Literal["epoch", "step"] = "epoch") -> None:
        if by not in ("epoch", "step"):
            raise ValueError(f"a schedule is by 'epoch' or 'step', not {by!r}")
        self.function, self.by, self.count = function, by, 0
        self.first: int | None = None
        if by == "step":
            self.__class__ = StepSchedule

    def begin(self, epochs: int) -> None:
        self.count, self.first = 0, None
        self.trainer.learning_rate = self.function(0)

    def epoch(self, epoch: int, numbers: dict[str, float]) -> None:
        self.first = epoch if self.first is None else self.first
        self.trainer.learning_rate = self.function(epoch - self.first + 1)


class StepSchedule(Schedule):
    def step(self, progress: Progress) -> None:
        self.counted()

    def epoch(self, epoch: int, numbers: dict[str, float]) -> None:
        self.counted()

    def counted(self) -> None:
        self.count += 1
        self.trainer.learning_rate = self.function(self.count)


class CSVLogger(Callback):
    """Writes a row for each epoch: epoch, learning_rate, loss, ... append: goes on with a file that is there."""

    def __init__(self, path: Path, append: bool = False) -> None:
        self.path, self.append = path, append
        self.file: Any = None
        self.names: list[str] | None = None

    def begin(self, epochs: int) -> None:
        self.file = open(self.path, "a" if self.append else "w", encoding="utf-8", newline="")
        self.names = None

    def epoch(self, epoch: int, numbers: dict[str, float]) -> None:
        row = {"epoch": epoch, "learning_rate": self.trainer.learning_rate, **numbers}
        self.write(row)
        self.file.flush()

    def write(self, row: dict[str, Any]) -> None:
        if self.names is None:
            self.names = [*row]
            if not self.file.tell():
                self.file.write(",".join(self.names) + "\n")
        self.file.write(",".join(f"{row.get(name, '')}" for name in self.names) + "\n")

    def end(self, history: History) -> None:
        if self.file:
            self.file.close()
            self.file = None


class JSONLogger(CSVLogger):
    """Writes a JSON object for each epoch, one a line."""

    def write(self, row: dict[str, Any]) -> None:
        import json
        self.file.write(json.dumps(row) + "\n")


class TensorBoard(Callback):
    """Writes event files for TensorBoard into a folder, by the package tensorboard or tensorboardX, which must be installed:
    losses, accuracies and the learning rate of each epoch, by_step: also the loss of steps."""

    def __init__(self, folder: Path, by_step: bool = False) -> None:
        self.folder, self.writer, self.steps = folder, tensorboard_writer(), 0
        self.scalar: Any = None
        self.close: Any = None
        if by_step:
            self.__class__ = StepTensorBoard

    def begin(self, epochs: int) -> None:
        self.scalar, self.close = self.writer(str(self.folder))
        self.steps = 0

    def epoch(self, epoch: int, numbers: dict[str, float]) -> None:
        for name, number in {**numbers, "learning_rate": self.trainer.learning_rate}.items():
            self.scalar(name, number, epoch)

    def end(self, history: History) -> None:
        if self.close:
            self.close()


class StepTensorBoard(TensorBoard):
    def step(self, progress: Progress) -> None:
        self.steps += 1
        self.scalar("step_loss", progress.train.loss, self.steps)


def tensorboard_writer() -> Callable[[str], tuple[Any, Any]]:
    """A function that opens a folder, and returns (scalar(name, number, step), close())."""
    try:
        from tensorboard.compat.proto import event_pb2, summary_pb2
        from tensorboard.summary.writer.event_file_writer import EventFileWriter
    except ImportError:
        try:
            from tensorboardX import SummaryWriter
        except ImportError:
            raise ImportError("TensorBoard() writes by the package tensorboard: pip install tensorboard; "
                              "JSONLogger and CSVLogger need no package") from None

        def opened_by_x(folder):
            writer = SummaryWriter(folder)
            return writer.add_scalar, writer.close
        return opened_by_x

    def opened(folder):
        import time
        writer = EventFileWriter(folder)

        def scalar(name, number, step):
            value = summary_pb2.Summary.Value(tag=name, simple_value=number)
            writer.add_event(event_pb2.Event(wall_time=time.time(), step=step, summary=summary_pb2.Summary(value=[value])))
        return scalar, writer.close
    return opened


def called_by(given, verbose):
    """The callbacks of a fit(): a callback, a function of (epoch, numbers), or several; and the progress, if it is shown."""
    from ._progress import shown as progress_shown
    given = [] if given is None else list(given) if isinstance(given, (list, tuple)) else [given]
    made_of = [one if isinstance(one, Callback) else Lambda(one) for one in given]
    for one in given:
        if not callable(one) and not isinstance(one, Callback):
            raise TypeError(f"a callback is a tutti.callbacks.Callback or a function(epoch, numbers), not {shown(one)}")
        if isinstance(one, type) and issubclass(one, Callback):
            raise TypeError(f"a callback is an object: write {one.__name__}() for the class {one.__name__}")
    progress = progress_shown(verbose)
    return [progress, *made_of] if progress else made_of


__all__ = ["Best", "CSVLogger", "Callback", "EarlyStopping", "History", "JSONLogger", "Lambda", "Schedule", "TensorBoard"]
