"""What notebooks show, and networks and trainings as bytes."""
import concurrent.futures
import copy
import multiprocessing
import pickle
import re
import xml.etree.ElementTree

import numpy
import pytest

import tutti


def everything():
    """A network with a call of every form: scopes, options with arrays and tensors, outputs besides, constants, a model's text."""
    network = tutti.Network()
    x, ids = network.input("x", (3, 8, 8)), network.input("ids", 5, "int32")
    shared = network.parameter("shared", (6,), values=numpy.arange(6) / 10)
    with network.scope("body"):
        h = tutti.relu(tutti.batch_norm(tutti.conv2d(tutti.normalise(x, mean=[0.1, 0.2, 0.3], std=[1, 2, 3]), 4, 3, padding=1, name="first")))
        h = tutti.dropout(tutti.flatten(tutti.max_pool(h, 2)), 0.3)
    states, last = tutti.lstm(tutti.embedding(ids, 20, 6), 6, last_h=True)
    h = tutti.concat([tutti.dense(h, 6), tutti.reshape(last, (6,)) * shared + network.constant(numpy.ones(6))], 0)
    network.output(tutti.dense(tutti.reduce_mean(tutti.reshape(h, (2, 6)), axes=0, keepdims=True), 4, name="fc"), "logits")
    network.freeze("body.first*")
    return network


def samples():
    random = numpy.random.default_rng(5)
    return {"x": random.normal(size=(12, 3, 8, 8)).astype("float32"), "ids": random.integers(0, 20, (12, 5))}, random.integers(0, 4, 12)


def test_networks_as_bytes():
    one = everything()
    two = pickle.loads(pickle.dumps(one))
    assert two.layers() == one.layers() and list(two.inputs) == list(one.inputs) and two.parameter_count == one.parameter_count
    x, _ = samples()
    assert numpy.array_equal(tutti.Trainer(one).predict(x), tutti.Trainer(two).predict(x))
    model = tutti.models.resnet18(classes=3, input=(3, 32, 32))
    assert copy.deepcopy(model).layers() == model.layers() and copy.copy(model).defaults == model.defaults


def trained(**options):
    network = everything()
    trainer = tutti.Trainer(tutti.flatten(network.outputs[0]), **{"loss": "cross_entropy", "optimizer": tutti.Adam(0.01), **options})
    x, y = samples()
    trainer.fit({**x, "targets": y}, epochs=3, batch_size=4)
    return trainer


def test_trainers_as_bytes(tmp_path):
    """The copy predicts the same and goes on as the first does, with the optimizer's states and dropout."""
    one = trained()
    two = pickle.loads(pickle.dumps(one))
    x, y = samples()
    assert two.history == one.history and two.position == one.position._replace(epoch=0)
    assert numpy.array_equal(one.predict(x), two.predict(x))
    for _ in range(2):
        assert one.step(x, y) == two.step(x, y)
    assert all(numpy.array_equal(one.parameters[name], two.parameters[name]) for name in one.parameters)
    assert one.fit({**x, "targets": y}, epochs=2, batch_size=4) == two.fit({**x, "targets": y}, epochs=2, batch_size=4)
    one.export(tmp_path / "m.onnx")
    loaded = tutti.Trainer(tutti.load(tmp_path / "m.onnx"))
    assert numpy.array_equal(pickle.loads(pickle.dumps(loaded)).predict(x), loaded.predict(x))
    fresh = pickle.loads(pickle.dumps(tutti.Trainer(everything(), seed=7)))     # one that was never compiled
    assert numpy.array_equal(fresh.predict(x), tutti.Trainer(everything(), seed=7).predict(x))
    losses = everything()
    logits = tutti.flatten(losses.outputs[0])
    loss = [tutti.cross_entropy(logits, losses.input("a", (), "int32")), tutti.mean(logits ** 2)]
    many = tutti.Trainer(logits, loss=loss, loss_weights=[1.0, 0.5])
    many.step({**x, "a": y})
    assert copy.deepcopy(many).step({**x, "a": y}) == many.step({**x, "a": y})


def predicted(trainer):
    return trainer.predict(samples()[0])


def test_spawn():
    """A trainer goes to a process that was spawned."""
    trainer = trained()
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        assert numpy.array_equal(pool.submit(predicted, trainer).result(60), predicted(trainer))


def parsed(page):
    """Pages are well formed."""
    return xml.etree.ElementTree.fromstring(f"<div>{page}</div>")


def test_pages(small):
    make, x, y = small
    devices = tutti.devices()
    rows = parsed(devices._repr_html_()).findall(".//tbody/tr")
    assert len(rows) == len(devices) and isinstance(devices, list)
    parsed(make().network.runtime._repr_html_())
    page = everything()._repr_html_()
    assert re.search('src="data:image/svg', page)
    parsed(page)
    trainer = make()
    assert "no epoch" in trainer.history._repr_html_()
    for epochs in (1, 900):
        history = trainer.fit(x, y, epochs=epochs, validation_data=(x, y), batch_size=32)
        drawn = parsed(history._repr_html_())
        assert len(drawn.findall(".//{*}svg")) == 2 and len(history._repr_html_()) < 40000
    parsed(tutti.History(loss=[float("nan"), float("inf"), 1.0])._repr_html_())
    assert "svg" in trainer._repr_html_()


def test_texts_of_kernels(small):
    make, x, y = small
    trainer = make()
    trainer.step(x, y)
    assert "dense" in trainer.why() and "dense" in trainer.profile()
    with pytest.raises(tutti.Error):
        trainer.why(99)
