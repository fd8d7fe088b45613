"""How far a fit() is: a line on a terminal, a bar in a notebook."""
import sys
import time

from .callbacks import Callback

WIDTH = 24


def in_notebook():
    kernel = sys.modules.get("IPython")
    shell = kernel.get_ipython() if kernel is not None and hasattr(kernel, "get_ipython") else None
    return getattr(shell, "kernel", None) is not None


def shown(verbose):
    """The callback that shows progress; None: nothing is shown. verbose None: on a terminal, and in a notebook."""
    if in_notebook() and verbose is not False and verbose != 0:
        return Notebook()
    return Line(sys.stderr) if (sys.stderr.isatty() if verbose is None else verbose) else None


def numbers_of(numbers):
    return ", ".join(f"{name} {number:.4f}" for name, number in numbers.items())


class Line(Callback):
    def __init__(self, file):
        self.file, self.printed, self.epochs = file, 0.0, 0

    def begin(self, epochs):
        self.epochs = epochs

    def step(self, progress):
        if time.monotonic() < self.printed + 0.2:
            return
        self.printed = time.monotonic()
        done = int(WIDTH * progress.step / progress.steps_in_epoch) if progress.steps_in_epoch else 0
        bar = f" [{'=' * done}{'.' * (WIDTH - done)}]" if progress.steps_in_epoch else ""
        of = f"/{progress.steps_in_epoch}" if progress.steps_in_epoch else ""
        print(f"\repoch {progress.epoch}/{progress.epochs}{bar} step {progress.step}{of}, loss {progress.train.loss:.4f}, "
              f"{progress.samples_per_s:.0f} samples/s", end="\033[K", file=self.file, flush=True)

    def epoch(self, epoch, numbers):
        print(f"\repoch {epoch}/{self.epochs}: {numbers_of(numbers)}", end="\033[K\n", file=self.file, flush=True)


class Notebook(Line):
    """A bar over all epochs, the numbers of the last one, and at the end the curves."""

    def __init__(self):
        super().__init__(None)
        from IPython.display import HTML, display
        self.html, self.shown, self.text, self.done = HTML, display(HTML(""), display_id=True), "", 0.0

    def show(self, ended=False):
        bar = "" if ended else f'<progress value="{self.done:.4f}" max="1" style="width:20em"></progress> '
        if self.shown is not None:
            self.shown.update(self.html(f'<div style="font-family:monospace">{bar}{self.text}</div>'))

    def step(self, progress):
        if time.monotonic() < self.printed + 0.2:
            return
        self.printed = time.monotonic()
        part = progress.step / progress.steps_in_epoch if progress.steps_in_epoch else 0
        self.done = (progress.epoch - 1 + part) / max(progress.epochs, 1)
        self.text = f"epoch {progress.epoch}/{progress.epochs}, loss {progress.train.loss:.4f}, {progress.samples_per_s:.0f} samples/s"
        self.show()

    def epoch(self, epoch, numbers):
        self.done, self.text = epoch / max(self.epochs, 1), f"epoch {epoch}/{self.epochs}: {numbers_of(numbers)}"
        self.show()

    def end(self, history):
        self.show(ended=True)
