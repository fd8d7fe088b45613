"""What fit() calls: stopping, the best epoch, rates, logs, progress, and Ctrl-C."""
import io
import json
import os
import signal
import sys
import types

import numpy
import pytest

import tutti
from tutti import _progress, callbacks


def weight(trainer):
    return numpy.asarray(trainer.parameters["fc.weight"])


def batches(x, y):
    return [(x[begin:begin + 8], y[begin:begin + 8]) for begin in range(0, len(x), 8)]


@pytest.fixture(params=["arrays", "batches"])
def fit(request, small):
    """fit() of a new trainer by the library's loop, and by that over batches: (trainer, fit(epochs, ...))."""
    make, x, y = small
    trainer = make(optimizer=tutti.SGD(0.1))
    given = (x, y) if request.param == "arrays" else (batches(x, y),)
    return trainer, lambda epochs, *called, **options: trainer.fit(*given, epochs=epochs, callbacks=called, **({"batch_size": 8} | options))


class Worse(callbacks.Callback):
    """Spoils the weights after two epochs."""
    def epoch(self, epoch, numbers):
        if epoch >= 2:
            self.trainer.parameters["fc.weight"][:] = epoch


def test_early_stopping(fit):
    trainer, run = fit
    history = run(50, Worse(), callbacks.EarlyStopping(patience=3, monitor="loss", restore_best=True))
    assert len(history["loss"]) == 5 and (weight(trainer) == 2).all()
    assert history is trainer.history and len(run(2)["loss"]) == 2
    with pytest.raises(ValueError, match="there is no 'val_loss' to monitor: there are loss, accuracy"):
        run(2, callbacks.EarlyStopping("val_loss"))


def test_best(fit, tmp_path):
    trainer, run = fit
    kept, seen = callbacks.Best(), []
    run(4, lambda epoch, numbers: seen.append(weight(trainer)), Worse(), kept, callbacks.Best(tmp_path / "best.safetensors"))
    assert kept.best_epoch == 2 and (weight(trainer) == 2).all()        # the loss of epoch 2 was that before Worse
    trainer.parameters["fc.weight"][:] = 9
    trainer.load(tmp_path / "best.safetensors")
    assert (weight(trainer) == 2).all() and len(seen) == 4


def test_schedules(fit):
    trainer, run = fit
    rates, by_step = [], []
    run(3, callbacks.Schedule(lambda epoch: 0.1 / (1 + epoch)), callbacks.Lambda(step=lambda progress: rates.append(trainer.learning_rate) if progress.step == 1 else None))
    assert numpy.allclose(rates, [0.1, 0.05, 0.1 / 3]) and trainer.learning_rate == pytest.approx(0.025)
    run(2, callbacks.Schedule(lambda step: 0.1 + step, by="step"), lambda epoch, numbers: by_step.append(trainer.learning_rate))
    assert len(by_step) == 2 and by_step[1] - by_step[0] == pytest.approx(4, abs=1.1)
    with pytest.raises(ValueError, match="by 'epoch' or 'step'"):
        callbacks.Schedule(abs, by="batch")


def test_loggers(fit, small, tmp_path):
    trainer, run = fit
    _, x, y = small
    history = run(3, callbacks.CSVLogger(tmp_path / "log.csv"), callbacks.JSONLogger(tmp_path / "log.jsonl"), validation_data=(x, y))
    rows = (tmp_path / "log.csv").read_text().splitlines()
    assert rows[0] == "epoch,learning_rate,loss,accuracy,val_loss,val_accuracy" and len(rows) == 4
    assert [json.loads(line)["val_loss"] for line in (tmp_path / "log.jsonl").read_text().splitlines()] == history["val_loss"]
    run(2, callbacks.CSVLogger(tmp_path / "log.csv", append=True), validation_data=(x, y))
    assert len((tmp_path / "log.csv").read_text().splitlines()) == 6


def test_tensorboard(fit, tmp_path, monkeypatch):
    trainer, run = fit
    for name in ("tensorboard", "tensorboard.compat.proto", "tensorboardX"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match="pip install tensorboard"):
        callbacks.TensorBoard(tmp_path)
    written = []

    class SummaryWriter:
        def __init__(self, folder):
            self.folder = folder

        def add_scalar(self, *row):
            written.append(row)

        def close(self):
            written.append(self.folder)
    monkeypatch.setitem(sys.modules, "tensorboardX", types.SimpleNamespace(SummaryWriter=SummaryWriter))
    run(2, callbacks.TensorBoard(tmp_path, by_step=True))
    assert written[-1] == str(tmp_path) and ("learning_rate", trainer.learning_rate, 2) in written
    assert {row[0] for row in written[:-1]} == {"step_loss", "loss", "accuracy", "learning_rate"}


def test_progress(fit, monkeypatch):
    trainer, run = fit
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    run(2, verbose=True)
    assert "epoch 1/2 [" in sys.stderr.getvalue() and "epoch 2/2: loss 0." in sys.stderr.getvalue()
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    run(2)
    assert sys.stderr.getvalue() == ""
    pages = []
    shell = types.SimpleNamespace(kernel=True)
    display = types.SimpleNamespace(HTML=str, display=lambda *_, **__: types.SimpleNamespace(update=pages.append))
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    assert _progress.in_notebook()
    run(2)
    assert "<progress" in pages[0] and "epoch 2/2: loss" in pages[-1] and "<progress" not in pages[-1]


def test_interrupt_and_failure(fit, tmp_path):
    """Ctrl-C saves and ends; what was trained is kept, ends are called, and the training goes on."""
    trainer, run = fit
    ended = []

    def interrupt(epoch, numbers):
        if epoch == 3:
            os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        run(1000, interrupt, callbacks.Lambda(end=ended.append), save=tmp_path / "m")
    assert 3 <= len(trainer.history["loss"]) <= 4 and ended == [trainer.history] and (tmp_path / "m.state.safetensors").exists()
    with pytest.raises(ZeroDivisionError):
        run(9, lambda epoch, numbers: 1 / 0)
    assert len(run(9, lambda epoch, numbers: epoch == 2)["loss"]) == 2
    assert len(run(9, callbacks.Lambda(step=lambda progress: progress.step == 2)).get("loss", [])) <= 1


def test_steps_within(small):
    make, x, y = small
    trainer = make()
    with pytest.raises(ValueError, match="larger than that of the running fit"):
        trainer.fit(x, y, batch_size=8, callback=lambda epoch, numbers: trainer.step(x, y))
    with pytest.raises(tutti.InvalidError):
        trainer.fit(x, y, batch_size=8, callback=lambda epoch, numbers: trainer.step(x[:8], y[:8]))


def test_patience_and_best_files(fit, small, tmp_path):
    trainer, run = fit
    _, x, y = small
    history = run(60, Worse(), patience=2, save=tmp_path / "m", save_best=True, validation_data=batches(x, y))
    assert len(history["loss"]) < 60 and (tmp_path / "m.best.safetensors").exists()
