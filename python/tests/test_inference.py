"""Inference of programs that infer often: outputs without a copy, state that stays on the device, and readers of another trainer's
parameters."""
import gc
import pickle
import threading

import numpy
import pytest

import tutti


def dense(**options):
    net = tutti.Network()
    h = tutti.tanh(tutti.dense(net.input("x", (6,)), 5))
    return tutti.Trainer(tutti.dense(h, 3, name="fc"), optimizer=tutti.SGD(0.2, momentum=0.9), seed=3, **options), h


def data(samples=12):
    random = numpy.random.default_rng(5)
    return random.standard_normal((samples, 6)).astype("float32"), random.integers(0, 3, samples).astype("int32")


# ----------------------------------------------------------------------------------------------------------- outputs ----

def test_view():
    """A view shows what predict() gives. While one is open, nothing is computed; arrays of it keep it open."""
    trainer, h = dense(batch_size=8)
    x, _ = data()
    wanted = trainer.predict(x)
    with trainer.predict_view(x) as y:
        assert y.shape == (12, 3) and len(y) == 12 and numpy.array_equal(y, wanted) and numpy.array_equal(y[3], wanted[3])
        assert not y.array.flags.writeable and numpy.asarray(y, "float64").dtype == "float64"
        with pytest.raises(tutti.InvalidError, match="view"):
            trainer.predict(x)
    with pytest.raises(ValueError, match="this view was closed"):
        y.array
    assert "closed" in repr(y)
    with trainer.predict_view(x[:4]) as y:
        kept = y.array[1:]
    with pytest.raises(tutti.InvalidError, match="view"):
        trainer.predict(x)
    with pytest.raises(tutti.InvalidError, match="view"):      # it would be made anew
        trainer.predict_view(numpy.zeros((4, 6)))
    assert numpy.array_equal(kept, wanted[1:4])
    del kept
    assert numpy.array_equal(trainer.predict(x), wanted)
    view = trainer.predict_view(x)
    trainer.close()
    array = view.array
    del view, trainer
    gc.collect()
    assert numpy.array_equal(array, wanted)
    with pytest.raises(tutti.InvalidError):
        dense()[0].predict_view(x, h)       # no output of the trainer


def test_view_of_another_output():
    net = tutti.Network()
    h = tutti.tanh(net.input("x", (6,)))
    trainer, x = tutti.Trainer(tutti.dense(h, 3), outputs=[h]), data()[0]
    with trainer.predict_view(x, h) as y:
        assert numpy.allclose(y, numpy.tanh(x), atol=1e-6)


# ------------------------------------------------------------------------------------------------------------- state ----

def recurrent(**options):
    """y = tanh(h W + x), which is also the next h, with a count of the steps next to it."""
    net = tutti.Network()
    x, h, count = net.input("x", (4,)), net.input("h", (4,)), net.input("count", (1,))
    y, more = tutti.tanh(tutti.dense(h, 4, name="fc") + x), count + 1.0
    return tutti.Trainer(y, carries=[(y, h), (more, count)], seed=3, **options)


def steps(trainer, xs):
    weight, bias = trainer.parameters["fc.weight"].numpy(), trainer.parameters["fc.bias"].numpy()
    h = numpy.zeros_like(xs[0])
    for x in xs:
        h = numpy.tanh(h @ weight.T + bias + x)
        yield h


def test_state():
    """It is the recurrence in numpy, is read and set, and begins anew with another number of samples."""
    trainer, random = recurrent(), numpy.random.default_rng(2)
    for samples in (3, 5):
        xs = random.standard_normal((4, samples, 4)).astype("float32")
        for number, (x, wanted) in enumerate(zip(xs, steps(trainer, xs))):
            assert numpy.allclose(trainer.predict(x), wanted, atol=1e-5)
            assert (trainer.carried["count"] == number + 1).all() and numpy.allclose(trainer.carried["h"], wanted, atol=1e-5)
        with pytest.raises((ValueError, tutti.InvalidError), match="reset_carried"):
            trainer.predict(numpy.zeros((samples + 1, 4)))
        assert numpy.allclose(trainer.carried["h"], wanted, atol=1e-5)
        trainer.reset_carried()
        with pytest.raises(ValueError, match="has not begun"):
            trainer.carried["h"]
    xs = random.standard_normal((2, 7, 4)).astype("float32")
    trainer.carried["h"] = xs[0]
    assert (trainer.carried["count"] == 0).all()
    with trainer.predict_view(xs[1]) as y:
        assert numpy.allclose(y, numpy.tanh(xs[0] @ trainer_weight(trainer).T + trainer_bias(trainer) + xs[1]), atol=1e-5)
    assert (trainer.carried["count"] == 1).all() and sorted(trainer.carried) == ["count", "h"]


def trainer_weight(trainer):
    return trainer.parameters["fc.weight"].numpy()


def trainer_bias(trainer):
    return trainer.parameters["fc.bias"].numpy()


def test_state_is_refused():
    trainer = recurrent(batch_size=4)
    x = numpy.zeros((4, 4), "float32")
    with pytest.raises(ValueError, match="no input 'h'"):
        trainer.predict({"x": x, "h": x})
    with pytest.raises(KeyError, match="no state is carried to 'g'"):
        trainer.carried["g"]
    for wrong, kind, said in ((numpy.zeros((4, 3)), ValueError, "takes samples of the shape"), (numpy.zeros(()), ValueError, "takes samples"),
                              (numpy.zeros((4, 4), "complex64"), TypeError, "takes numbers")):
        with pytest.raises(kind, match=said):
            trainer.carried["h"] = wrong
    with pytest.raises(ValueError, match="come in 2 parts"):
        trainer.predict(iter([(x,), (x,)]))
    net = trainer.network
    y, h = trainer.output, net.inputs["h"]
    for wrong, said in (([y, h], "list of pairs"), ([(y, y)], "not an input"), ([(y, 3)], "list of pairs"), (3, "list of pairs")):
        with pytest.raises((TypeError, ValueError), match=said):
            tutti.Trainer(y, carries=wrong)
    with pytest.raises(tutti.InvalidError, match="carries no state"):
        tutti.Trainer(y, loss="mse", carries=[(y, h)]).predict({"x": x, "count": x[:, :1]})
    plain, _ = dense()
    with pytest.raises(tutti.InvalidError, match="carries"):
        plain.reset_carried()
    assert not list(plain.carried)


# ----------------------------------------------------------------------------------------------------------- readers ----

def trained(**options):
    net = tutti.Network()
    h = tutti.tanh(tutti.dense(net.input("x", (6,)), 5))
    return tutti.Trainer(tutti.dense(h, 3, name="fc"), loss="cross_entropy", optimizer=tutti.SGD(0.2, momentum=0.9), seed=3, **options), h


@pytest.mark.parametrize("options", ({}, {"ema_decay": 0.5}), ids=("plain", "ema"))
def test_reader(options):
    """A reader follows the steps of its owner, also where this is made anew for a larger batch, and changes nothing of them."""
    (trainer, h), (alone, _) = trained(**options), trained(**options)
    x, y = data()
    reader, hidden = trainer.reader(batch_size=2, loss="cross_entropy"), trainer.reader(h)
    for samples in (4, 8, 12):
        assert trainer.step(x[:samples], y[:samples]) == alone.step(x[:samples], y[:samples])
        assert numpy.allclose(reader.predict(x), alone.predict(x), atol=1e-6)
        assert hidden.predict(x).shape == (12, 5)
    assert reader.evaluate(x, y).loss == pytest.approx(alone.evaluate(x, y).loss, rel=1e-5)
    assert numpy.array_equal(reader.parameters["fc.bias"].numpy(), trainer.parameters["fc.bias"].numpy())
    trainer.parameters["fc.bias"] = [5, 0, 0]
    assert (reader.predict(x).argmax(1) == 0).all() or options
    for call in (lambda: reader.step(x, y), lambda: reader.fit(x, y, verbose=0), lambda: reader.load("never"),
                 lambda: reader.parameters.__setitem__("fc.bias", [0, 0, 0])):
        with pytest.raises(tutti.Error, match="parameters of another"):
            call()
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(reader)
    assert isinstance(reader.reader(), type(reader)) and reader.reader().owner is trainer
    trainer.close()
    with pytest.raises((ValueError, tutti.InvalidError)):
        reader.predict(x)
    reader.close()


def test_reader_in_callbacks_and_threads():
    """It infers between the steps of fit() and while it trains, and each time with the parameters of one step."""
    trainer, _ = trained()
    x, y = data(64)
    reader, found, failed, ended = trainer.reader(), [], [], threading.Event()
    first = reader.predict(x)

    def infer():
        try:
            while not ended.is_set():
                found.append(reader.predict(x))
        except Exception as failure:    # noqa: BLE001
            failed.append(failure)

    thread = threading.Thread(target=infer)
    thread.start()
    seen = []
    trainer.fit(x, y, epochs=8, batch_size=8, verbose=0, callbacks=lambda epoch, numbers: seen.append(reader.predict(x)) and False)
    ended.set()
    thread.join(60)
    assert not thread.is_alive() and not failed and found and len(seen) == 8
    assert not numpy.array_equal(seen[0], seen[-1]) and not numpy.array_equal(first, seen[0])
    assert numpy.array_equal(reader.predict(x), seen[-1])


def test_reader_carries():
    """Texts are tried while their network trains: a reader of the training's parameters carries the state."""
    net = tutti.Network()
    x, h = net.input("x", (4,)), net.input("h", (4,))
    y = tutti.tanh(tutti.dense(h, 4, name="fc") + x)
    trainer = tutti.Trainer(y, loss="mse", optimizer=tutti.SGD(0.1), seed=3)
    reader, random = trainer.reader(carries=[(y, h)]), numpy.random.default_rng(2)
    for _ in range(2):
        trainer.step({"x": random.standard_normal((3, 4)), "h": random.standard_normal((3, 4)), "targets": random.standard_normal((3, 4))})
        xs = random.standard_normal((3, 2, 4)).astype("float32")
        for one, wanted in zip(xs, steps(trainer, xs)):
            assert numpy.allclose(reader.predict(one), wanted, atol=1e-5)
        reader.reset_carried()
    reader.predict(xs[0])
    trainer.step({"x": numpy.zeros((50, 4)), "h": numpy.zeros((50, 4)), "targets": numpy.zeros((50, 4))})   # made anew
    with pytest.raises(ValueError, match="call reset_carried"):
        reader.predict(xs[1])
    reader.reset_carried()
    assert numpy.allclose(reader.predict(xs[0]), next(steps(trainer, xs)), atol=1e-5)
