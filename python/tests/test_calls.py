"""Wrong calls raise, objects are freed, Ctrl-C ends a training, and threads and children are safe."""
import gc
import multiprocessing
import os
import re
import resource
import signal
import subprocess
import sys
import threading

import numpy
import pytest

import tutti
from tutti import _drivers


def layer(*shape, dtype="float32"):
    return tutti.Network().input("x", shape, dtype)


WRONG = [
    (tutti.ShapeError, lambda: tutti.conv2d(layer(3, 8, 8), 16, 99)),
    (tutti.ShapeError, lambda: tutti.dense(tutti.reshape(layer(3, 8), (5, 5)), 2)),
    (tutti.InvalidError, lambda: tutti.dropout(layer(3), 2.0)),
    (tutti.UnsupportedError, lambda: tutti.Network().op("no_such_operation", 1.0)),
    (ValueError, lambda: layer(3).network.op("add", layer(3), layer(3))),
    (ValueError, lambda: tutti.pool(layer(3, 8, 8), "largest", 2)),
    (ValueError, lambda: tutti.normalise(layer(3, 8, 8), mean=[1, 2, 3], std=[1, 2])),
    (ValueError, lambda: tutti.Network().parameter("p", (3, 4), values=[1, 2])),
    (ValueError, lambda: tutti.dense(layer(3), 2, weight=layer(2, 3))),
    (ValueError, lambda: layer(1, 2, 3, 4, 5, 6, 7, 8)),
    (ValueError, lambda: layer(1, 2, 3, 4, 5, 6, 7, 8, 9)),
    (KeyError, lambda: layer(3, dtype="complex64")),
    (TypeError, lambda: layer(3, dtype="nonsense")),
    (TypeError, lambda: tutti.dense(layer(3), "many")),
    (TypeError, lambda: tutti.dense(layer(3), 2, units=3)),
    (TypeError, lambda: tutti.dense(3, 2)),
    (TypeError, lambda: tutti.relu(None)),
    (TypeError, lambda: tutti.concat([], 0)),
    (OverflowError, lambda: tutti.dense(layer(3), 2 ** 70)),
    (TypeError, lambda: tutti.reduce_mean(layer(3), axs=0)),
    (ValueError, lambda: tutti.reduce_mean(layer(3), axes="a b")),
    (tutti.InvalidError, lambda: tutti.reduce_mean(layer(3), axes=7)),
    (tutti.InvalidError, lambda: layer(3).network.find_parameter("none")),
    (AttributeError, lambda: tutti.no_such_operation),
    (AttributeError, lambda: tutti.models.no_such_model),
    (tutti.FileError, lambda: tutti.load("no/such.onnx")),
    (TypeError, lambda: tutti.load("x.onnx", logit=True)),
    (TypeError, lambda: tutti.SGD(0.1, 0.9)),
    (TypeError, lambda: tutti.SGD(0.1, beta1=0.9)),
    (tutti.NoDeviceError, lambda: tutti.devices("no such device")),
    (tutti.Error, lambda: tutti.Runtime("no such device")),
    (ValueError, lambda: tutti.Trainer(tutti.Network())),
]
TRAINER = [
    (ValueError, {"loss": "none"}), (ValueError, {"optimizer": "none"}), (TypeError, {"optimizer": 3}), (TypeError, {"no_option": 1}),
]
FEEDS = [
    (ValueError, lambda t, x, y: t.step(x[:, :5], y)), (ValueError, lambda t, x, y: t.step(x, y[:9])), (ValueError, lambda t, x, y: t.step({"z": x}, y)),
    (ValueError, lambda t, x, y: t.step([x, x], y)), (TypeError, lambda t, x, y: t.step("text", y)), (TypeError, lambda t, x, y: t.step(x, y + 0.5)),
    (TypeError, lambda t, x, y: t.step(x.astype("complex64"), y)), (tutti.InvalidError, lambda t, x, y: t.step(x)), (ValueError, lambda t, x, y: t.predict(x[0])),
    (tutti.InvalidError, lambda t, x, y: t.step(x[:0], y[:0])), (tutti.InvalidError, lambda t, x, y: t.step(x, y + 7)),
    (tutti.NotFiniteError, lambda t, x, y: t.step(x * numpy.nan, y)), (TypeError, lambda t, x, y: t.fit(x, y, epoch=3)),
    (ValueError, lambda t, x, y: t.fit(x, y, validation_data=(x[:, :2], y))), (ValueError, lambda t, x, y: t.fit(x, y, schedule="cosinus")),
    (KeyError, lambda t, x, y: t.parameters["none"]), (tutti.InvalidError, lambda t, x, y: setattr(t, "learning_rate", -1.0)),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_wrong_layers(number):
    with pytest.raises(WRONG[number][0]):
        WRONG[number][1]()


def test_wrong_trainings(small):
    make, x, y = small
    for kind, options in TRAINER:
        with pytest.raises(kind):
            make(**options)
    with pytest.raises(ValueError, match="shares"):
        make(shares=[1.0] * 99).step(x, y)
    trainer = make(batch_size=32)
    for number, (kind, call) in enumerate(FEEDS):
        with pytest.raises(kind):
            call(trainer, x, y)
            pytest.fail(f"call {number} does not raise")
    trainer.step(x, y)
    with pytest.raises(tutti.InvalidError, match="cannot grow"):
        tutti.relu(trainer.output)
    trainer.close()
    with pytest.raises(ValueError, match="closed"):
        trainer.step(x, y)


def test_messages():
    with pytest.raises(tutti.ShapeError, match="reshape") as raised:
        tutti.reshape(layer(3, 8), (5, 5))
    assert raised.value.status == 2 and raised.value.name == "TUTTI_SHAPE" and isinstance(raised.value, (tutti.Error, ValueError))


def test_operations():
    assert "gelu" in dir(tutti.ops) and "relu" in dir(tutti)
    assert "axes" in tutti.reduce_mean.__doc__
    x = layer(4)
    y = (2 * x + 1 - x / 2) @ x.network.constant(numpy.ones((4, 3), "float32"))
    values = numpy.arange(8, dtype="float32").reshape(2, 4)
    assert numpy.allclose(tutti.Trainer(y).predict(values), (1.5 * values + 1) @ numpy.ones((4, 3)))


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def memory():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def nothing_is_left(cycle, cycles=1000):
    """A cycle leaves memory and descriptors as they were."""
    for number in range(60):
        cycle(number)
    before, files = memory(), descriptors()
    for number in range(cycles):
        cycle(number)
    assert memory() - before < 3e6 and descriptors() <= files


def test_nothing_is_left(small):
    """Networks and trainers are freed, in any order, whether they were closed or forgotten."""
    make, x, y = small

    def cycle(number):
        trainer = make(batch_size=32)
        trainer.step(x, y)
        loop = [trainer.network, trainer]
        loop.append(loop)           # for the collector of garbage
        if number % 3 == 0:
            trainer.network.close()
        if number % 2:
            trainer.close()
    nothing_is_left(cycle)


def test_nothing_of_a_training_is_left(small):
    """Also with callbacks, snapshots, operations of one's own, and values that outlive their trainer."""
    _, x, y = small
    held = []

    def cycle(number):
        network = tutti.Network()
        hidden = tutti.custom([tutti.dense(network.input("x", 6), 4)], operation="twice", forward="y[i] = 2 * x[i];", backward="dx[i] = 2 * dy[i];", no_check=True)
        trainer = tutti.Trainer(tutti.dense(hidden, 3, name="fc"), loss="cross_entropy", optimizer=tutti.Adam(0.01), batch_size=32)
        callbacks = [tutti.callbacks.Best(), tutti.callbacks.EarlyStopping(patience=1, restore_best=True), lambda epoch, numbers: False]
        trainer.fit(x, y, epochs=2, batch_size=32, callbacks=callbacks, validation_data=(x, y), verbose=False)
        held[:] = [trainer.parameters, trainer.gradients["fc.weight"], trainer.states, numpy.asarray(trainer.parameters["fc.weight"])]
        if number % 2:
            trainer.close()
        if number % 3 == 0:
            network.close()
    nothing_is_left(cycle)


def test_interrupt(small, tmp_path):
    """Ctrl-C ends the training after its step, which was saved; the trainer can go on."""
    make, x, y = small
    trainer, seen = make(batch_size=32), []

    def callback(epoch, numbers):
        seen.append(epoch)
        if epoch == 3:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        trainer.fit(x, y, epochs=1000, callback=callback, save=tmp_path / "m")
    assert 3 <= len(seen) <= 4 and (tmp_path / "m.state.safetensors").exists()
    assert len(trainer.fit(x, y, epochs=2)["loss"]) == 2


def test_callback_fails_or_ends(small):
    make, x, y = small
    trainer = make(batch_size=32)
    with pytest.raises(ZeroDivisionError):
        trainer.fit(x, y, epochs=9, callback=lambda epoch, numbers: 1 / 0)
    assert len(trainer.fit(x, y, epochs=9, callback=lambda epoch, numbers: epoch == 2)["loss"]) == 2


def test_threads(small):
    """Python goes on while devices work, and two threads that use one trainer take turns."""
    make, x, y = small
    trainer, counted, done = make(batch_size=32), 0, threading.Event()
    workers = [threading.Thread(target=lambda: [trainer.step(x, y) for _ in range(50)]) for _ in range(2)]

    def count():
        nonlocal counted
        while not done.wait(0.0001):
            counted += 1
    counter = threading.Thread(target=count)
    for thread in (counter, *workers):
        thread.start()
    for thread in workers:
        thread.join()
    done.set()
    counter.join()
    assert counted > 10


def test_fork(small):
    """A child of fork() gets a sentence."""
    make, x, y = small
    trainer = make(batch_size=32)
    trainer.step(x, y)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            trainer.step(x, y)
        except tutti.UnsupportedError as error:
            os.write(write, str(error).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    assert b"fork" in os.read(read, 1000)
    os.close(read)


def test_driver_of_pip(tmp_path, monkeypatch):
    """A driver in the environment of Python is named besides others; the system's loader is kept."""
    monkeypatch.setenv("OCL_ICD_FILENAMES", "other.so")
    assert not _drivers.add(tmp_path) and os.environ["OCL_ICD_FILENAMES"] == "other.so"
    (tmp_path / "libintelocl.so").touch()
    for _ in range(2):
        assert _drivers.add(tmp_path) and os.environ["OCL_ICD_FILENAMES"] == f"other.so:{tmp_path}/libintelocl.so"


def test_fuzzed_calls():
    """1,000 calls with arguments at boundaries; python/tests/fuzzed.py makes more of them."""
    script = os.path.join(os.path.dirname(__file__), "fuzzed.py")
    done = subprocess.run([sys.executable, "-B", "-W", "ignore", script, "1000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    found = re.match(r"1000 calls, (\d+) reached the library: .*\n$", done.stdout)
    assert done.returncode == 0 and found and int(found[1]) >= 500, done.stdout + done.stderr


def spawned(to, x):
    trainer = tutti.Trainer(tutti.dense(tutti.Network().input("x", 6), 3), loss="cross_entropy")
    to.send(trainer.step(x, numpy.zeros(len(x), "int32")).loss)


def test_spawn(small):
    """A child of "spawn" opens the devices anew, where one of fork() gets a sentence."""
    make, x, y = small
    make().step(x, y)
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    child = context.Process(target=spawned, args=(there, x))
    child.start()
    assert here.poll(60) and numpy.isfinite(here.recv())
    child.join()
    assert child.exitcode == 0
