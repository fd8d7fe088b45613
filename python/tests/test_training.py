"""The whole way: digits train as the command trains them, and what is saved, exported and read gives the same."""
import json
import subprocess
import warnings

import numpy
import pytest

import tutti


def trainer_of(digits, **options):
    network = tutti.models.mlp(classes=10, input=(1, 10, 10))
    return tutti.Trainer(network, loss="cross_entropy", optimizer=tutti.SGD(0.05, momentum=0.9), **{"seed": 3, **options})


@pytest.fixture(scope="module")
def trained(digits):
    _, x, y, xt, yt = digits
    trainer = trainer_of(digits)
    return trainer, trainer.fit(x, y, epochs=5, batch_size=64, validation_data=(xt, yt))


def test_digits(trained, digits):
    trainer, history = trained
    assert len(history["loss"]) == 5 and history["loss"][-1] < history["loss"][0] / 5
    assert history["val_accuracy"][-1] > 0.97
    assert trainer.evaluate(digits[3], digits[4]).accuracy == pytest.approx(history["val_accuracy"][-1])


def test_same_as_the_command(trained, digits, command):
    """The same seed gives the same losses, also those of the test data, to the last digit that is printed."""
    ran = subprocess.run([command, "train", "mlp", "--data", digits[0], "--epochs", "5", "--batch", "64", "--lr", "0.05", "--momentum", "0.9",
                          "--seed", "3", "--json"], stdout=subprocess.PIPE, text=True, check=True)
    epochs = [json.loads(line) for line in ran.stdout.splitlines()][:5]
    for there, here in (("loss", "loss"), ("test_loss", "val_loss"), ("test_accuracy", "val_accuracy")):
        assert [epoch[there] for epoch in epochs] == [float(f"{number:.9g}") for number in trained[1][here]]


def test_predict(trained, digits):
    trainer, _ = trained
    logits = trainer.predict(digits[3])
    assert logits.shape == (200, 10) and logits.dtype == numpy.float32
    assert (logits.argmax(1) == digits[4]).mean() == trainer.evaluate(digits[3], digits[4]).accuracy


def test_save_and_load(trained, digits, tmp_path):
    trainer, _ = trained
    trainer.save(tmp_path / "model")
    trainer.save(tmp_path / "alone.safetensors")
    for name in ("model", "alone.safetensors"):
        other = trainer_of(digits, seed=9, batch_size=64)
        other.load(tmp_path / name)
        assert numpy.array_equal(other.predict(digits[3]), trainer.predict(digits[3]))
    with pytest.raises(tutti.FileError):
        other.load(tmp_path / "none")


def test_lora(trained, digits, tmp_path):
    """Adapters learn other digits, the weights stay; merged, they give the same in a network without them."""
    trainer, _ = trained
    trainer.save(tmp_path / "base.safetensors")
    network = tutti.models.mlp(classes=10, input=(1, 10, 10))
    network.lora("fc*", rank=4, alpha=8)
    tuned = tutti.Trainer(network, loss="cross_entropy", optimizer=tutti.Adam(0.01), seed=3, batch_size=64)
    for name in ("fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias", "fc3.weight", "fc3.bias"):
        tuned.parameters[name][:] = trainer.parameters[name]
    assert numpy.allclose(tuned.predict(digits[3]), trainer.predict(digits[3]), atol=1e-4)
    history = tuned.fit(digits[1], (digits[2] + 3) % 10, epochs=8)
    assert history["loss"][-1] < history["loss"][0] / 3
    assert numpy.array_equal(tuned.parameters["fc1.weight"], trainer.parameters["fc1.weight"])
    tuned.save_adapter(tmp_path / "adapter")
    assert json.loads((tmp_path / "adapter" / "adapter_config.json").read_text())["r"] == 4
    tuned.save_merged(tmp_path / "merged.safetensors")
    merged = trainer_of(digits, batch_size=64)
    merged.load(tmp_path / "merged.safetensors")
    assert numpy.allclose(merged.predict(digits[3]), tuned.predict(digits[3]), atol=1e-3)


def test_lora_on_bytes(digits):
    """Adapters next to weights in bytes learn."""
    network = tutti.models.mlp(classes=10, input=(1, 10, 10))
    network.lora("fc*", rank=4, base="int8")
    tuned = tutti.Trainer(network, loss="cross_entropy", optimizer=tutti.Adam(0.01), seed=3, batch_size=64)
    history = tuned.fit(digits[1], digits[2], epochs=4)
    assert history["loss"][-1] < history["loss"][0] / 2
    with pytest.raises(ValueError, match="storage is"):
        network.store("*", "int3")


def test_export_and_load(trained, digits, tmp_path):
    trainer, _ = trained
    trainer.export(tmp_path / "model.onnx")
    network = tutti.load(tmp_path / "model.onnx")
    assert list(network.inputs) == ["input"] and network.outputs[0].shape == (10,)
    assert numpy.allclose(tutti.Trainer(network).predict(digits[3]), trainer.predict(digits[3]), atol=1e-5)


def test_larger_batches_go_on(small):
    """A larger batch than before makes plans anew; parameters and momentum stay."""
    make, x, y = small
    one, two = (make(optimizer=tutti.SGD(0.1, momentum=0.9), **given) for given in ({}, {"batch_size": 32}))
    for count in (8, 16, 32):
        assert one.step(x[:count], y[:count]) == two.step(x[:count], y[:count])
    assert numpy.array_equal(one.parameters["fc.weight"], two.parameters["fc.weight"])
    assert len(one.fit(x, y, epochs=3, batch_size=8)["loss"]) == 3
    assert len(one.fit(numpy.concatenate([x, x]), numpy.concatenate([y, y]), epochs=2, batch_size=64)["loss"]) == 2     # not from epoch 3 on


def test_parameters(small):
    make, x, y = small
    trainer = make()
    weight = trainer.parameters["fc.weight"]
    assert dict(trainer.parameters).keys() == {"fc.weight", "fc.bias"} and weight.shape == (3, 6)
    weight[:] = 0
    weight[1, 2] = 5
    assert weight.numpy()[1, 2] == 5 and numpy.abs(weight).sum() == 5
    trainer.parameters["fc.bias"] = numpy.arange(3)
    before = numpy.asarray(weight)
    trainer.step(x, y)
    assert numpy.allclose(before - 0.5 * trainer.gradients["fc.weight"].numpy(), weight, atol=1e-6)
    with pytest.raises(tutti.InvalidError):
        trainer.gradients["fc.weight"][:] = 0       # those of a step that is done
    with pytest.raises(ValueError):
        trainer.parameters["fc.bias"] = numpy.zeros(4)


def test_same_as_numpy(small):
    make, x, _ = small
    trainer = make()
    weight, bias = (numpy.asarray(trainer.parameters[f"fc.{name}"]) for name in ("weight", "bias"))
    assert numpy.allclose(trainer.predict(x), x @ weight.T + bias, atol=1e-5)


@pytest.mark.parametrize("numbers, classes", [(">f4", ">i8"), (">f8", ">i4"), ("<f2", ">u2")])
def test_bytes_of_numbers_in_any_order(small, numbers, classes):
    make, x, y = small
    x = x.astype("float16").astype("float32")
    given = x.astype(numbers), y.astype(classes)
    trainer = make(seed=1)
    assert numpy.array_equal(trainer.predict(given[0]), trainer.predict(x))
    assert trainer.evaluate(*given) == trainer.evaluate(x, y)
    assert make(seed=1).fit(*given, epochs=2, batch_size=8, verbose=0)["loss"] == make(seed=1).fit(x, y, epochs=2, batch_size=8, verbose=0)["loss"]


@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("rule", ["SGD", "Adagrad"])
def test_rows_that_a_step_does_not_read(rule, decay):
    """Their gradients are 0: they stay as they are, or decay."""
    network = tutti.Network()
    rows = tutti.embedding(network.input("ids", 5, "int32"), 60, 23, name="table")
    optimizer = getattr(tutti, rule)(0.1, weight_decay=decay)
    trainer = tutti.Trainer(tutti.dense(tutti.flatten(rows), 3), loss="cross_entropy", optimizer=optimizer, batch_size=4, seed=1)
    random, sums = numpy.random.default_rng(1), numpy.zeros((60, 23))
    for step in range(4):
        before = trainer.parameters["table.weight"][:]
        trainer.step(random.integers(20 * (step % 3), 20 * (step % 3) + 9, (4, 5)), random.integers(0, 3, 4))
        gradient = trainer.gradients["table.weight"][:]
        g = gradient + decay * before
        sums += g * g
        after = trainer.parameters["table.weight"][:]
        expected = before - 0.1 * (g if rule == "SGD" else g / (numpy.sqrt(sums) + 1e-10))
        assert numpy.allclose(after, expected, rtol=1e-5, atol=1e-6)
        unread = (gradient == 0).all(1)
        assert unread.sum() >= 40 and (after[unread] == before[unread]).all() == (decay == 0)


def test_losses(small):
    _, x, labels = small
    for loss, y in (("mse", x[:, :3]), ("huber", x[:, :3]), ("bce_with_logits", (x[:, :3] > 0).astype("float32")), ("cross_entropy", labels)):
        trainer = small[0](loss=loss, optimizer="adam")
        losses = [trainer.step(x, y).loss for _ in range(5)]
        assert losses[-1] < losses[0], loss
    network = tutti.Network()      # a tensor as the loss, and inputs by their names
    given, wanted = network.input("given", 6), network.input("wanted", 3)
    y = tutti.dense(given, 3)
    trainer = tutti.Trainer(y, loss=tutti.l1(y, wanted), optimizer=tutti.Adam(0.05))
    losses = [trainer.step({"given": x, "wanted": x[:, :3]}).loss for _ in range(5)]
    assert losses[-1] < losses[0] and trainer.predict({"given": x}).shape == (32, 3)


def test_sequences():
    """A length that differs from call to call, an embedding and a recurrent layer."""
    network = tutti.Network()
    ids = network.input("ids", tutti.SEQUENCE, "int32")
    states, last = tutti.lstm(tutti.embedding(ids, 11, 4), 5, last_h=True)
    trainer = tutti.Trainer(tutti.dense(tutti.flatten(last), 2), loss="cross_entropy", sequence=7)
    assert states.shape == (tutti.SEQUENCE, 5) and last.shape == (1, 5)
    for length in (7, 4):
        trainer.step(numpy.ones((3, length), int), numpy.zeros(3, int))
        assert trainer.predict(numpy.ones((3, length), int)).shape == (3, 2)


def test_classes_of_each_position():
    """An output [SEQUENCE, classes] has its classes last."""
    tokens = numpy.random.default_rng(1).integers(0, 7, (6, 9))
    found = []
    for loss in ("cross_entropy", None):
        network = tutti.Network()
        x = tutti.embedding(network.input("ids", tutti.SEQUENCE, "int32"), 7, 12)
        logits = tutti.dense(x, 7)
        loss = loss or tutti.cross_entropy(logits, network.input("targets", tutti.SEQUENCE, "int32"), class_axis=-1)
        trainer = tutti.Trainer(logits, loss=loss, optimizer="sgd", sequence=8, seed=1)
        found.append([trainer.step(tokens[:, :-1], tokens[:, 1:]) for _ in range(3)])
    assert found[0] == found[1]
    gpt = tutti.Trainer(tutti.models.gpt(vocabulary=7), sequence=8, seed=1)
    assert gpt.step(tokens[:, :-1], tokens[:, 1:]).loss == pytest.approx(numpy.log(7), rel=0.2)


def test_lengths_of_samples(monkeypatch):
    """Batches that are cut to their longest sample train a masked mean as whole ones do; the same arrays read batch by batch, too."""
    def made():
        network = tutti.Network()
        words, mask = network.input("words", tutti.SEQUENCE, "int32"), network.input("mask", tutti.SEQUENCE)
        states = tutti.embedding(words, 11, 4) * tutti.reshape(mask, (tutti.SEQUENCE, 1))
        mean = tutti.reduce_sum(states, axes=0, keepdims=False) / tutti.reduce_sum(mask, axes=0, keepdims=True)
        return tutti.Trainer(tutti.dense(mean, 2, name="fc"), loss="cross_entropy", optimizer=tutti.SGD(0.1), seed=1)

    random = numpy.random.default_rng(1)
    lengths = random.integers(1, 10, 30)
    words, mask = random.integers(0, 11, (30, 9)), (numpy.arange(9) < lengths[:, None]).astype("float64")
    x, y = {"words": words, "mask": mask}, random.integers(0, 2, 30)

    def fitted(**options):
        trainer = made()
        history = trainer.fit(x, y, epochs=2, batch_size=8, validation_data=(x, y), **options)
        return [*history["loss"], *history["val_loss"]], numpy.asarray(trainer.parameters["fc.weight"])

    whole, cut = fitted(), fitted(lengths=lengths, val_lengths=lengths)
    assert cut[0] == pytest.approx(whole[0], rel=1e-5) and numpy.allclose(cut[1], whole[1], atol=1e-6)
    sorted_by = fitted(lengths=lengths, val_lengths=lengths, buckets=3)
    monkeypatch.setattr(tutti._feeds, "AT_ONCE", 0)
    by_batch = fitted(lengths=lengths, val_lengths=lengths, buckets=3)
    assert by_batch[0] == sorted_by[0] and (by_batch[1] == sorted_by[1]).all()
    for wrong, message in ((dict(buckets=3), "buckets needs lengths"), (dict(lengths=lengths[:7]), "one whole number for each of the 30 samples")):
        with pytest.raises(ValueError, match=message):
            made().fit(x, y, batch_size=8, **wrong)
    last, first = int(numpy.argmax(lengths)), int(numpy.argmin(lengths))
    for at_once in (0, 1 << 20):
        monkeypatch.setattr(tutti._feeds, "AT_ONCE", at_once)
        for name, given, wrong in (("lengths", lengths + 1, last), ("val_lengths", lengths + 1, last), ("lengths", lengths - 1, first), ("val_lengths", lengths - 1, first)):
            with pytest.raises(ValueError, match=f"^{name} has {given[wrong]} for sample {wrong}: 1 to 9, the length"):
                made().fit(x, y, batch_size=8, validation_data=(x, y), **{name: given})
    with pytest.raises(ValueError, match="val_lengths needs validation_data"):
        made().fit(x, y, batch_size=8, val_lengths=lengths)
    for buckets in (2.5, "4"):
        with pytest.raises(TypeError, match="buckets is .*: it must be a whole number"):
            made().fit(x, y, batch_size=8, lengths=lengths, buckets=buckets)
    trainer = tutti.Trainer(tutti.dense(tutti.Network().input("x", 4), 3), loss="mse")
    with pytest.raises(ValueError, match="val_lengths: no input of the network has tutti.SEQUENCE"):
        trainer.fit(numpy.zeros((30, 4)), numpy.zeros((30, 3)), validation_data=(numpy.zeros((30, 4)), numpy.zeros((30, 3))), val_lengths=lengths)
    with pytest.raises(TypeError, match="tutti.data and batches have lengths of their own"):
        made().fit([(x, y)], lengths=lengths)


def test_between_steps(small):
    """backward() and apply() are a step; changed gradients change what is applied; a step is written out with the states."""
    make, x, y = small
    one, two = make(optimizer=tutti.SGD(0.1, momentum=0.9)), make(optimizer=tutti.SGD(0.1, momentum=0.9))
    for _ in range(2):
        assert one.step(x, y).loss == pytest.approx(two.backward(x, y).loss)
        two.apply()
        assert numpy.allclose(one.parameters["fc.weight"], two.parameters["fc.weight"], atol=1e-6)
    weight, momentum = numpy.asarray(two.parameters["fc.weight"]), numpy.asarray(two.states["momentum_buffer"]["fc.weight"])
    two.backward(x, y)
    two.gradients["fc.weight"][:] = 1
    two.states["momentum_buffer"]["fc.weight"][0] = 0
    momentum[0] = 0
    two.apply()
    assert numpy.allclose(two.parameters["fc.weight"], weight - 0.1 * (0.9 * momentum + 1), atol=1e-6)
    with pytest.raises(tutti.InvalidError):
        two.apply()
    network = tutti.Network()       # a loss of one's own, with weights of samples
    given, weights = network.input("x", 6), network.input("weights", ())
    output = tutti.dense(given, 1)
    trainer = tutti.Trainer(output, loss=tutti.mean((output - 3) ** 2, weights=weights), optimizer=tutti.Adam(0.1))
    losses = [trainer.step({"x": x, "weights": numpy.ones(32)}).loss for _ in range(20)]
    assert losses[-1] < losses[0] / 2


def test_targets_and_losses_of_other_packages_are_refused_with_advice():
    net = tutti.Network()
    output = tutti.dense(net.input("x", (4,)), 3)
    trainer = tutti.Trainer(output, loss="cross_entropy")
    x, y = numpy.zeros((6, 4), "float32"), numpy.arange(6) % 3
    for one_hot in (numpy.eye(3)[y], numpy.eye(3, dtype=int)[y]):
        with pytest.raises((TypeError, ValueError), match=r"y\.argmax\(1\)"):
            trainer.step(x, one_hot)
    with pytest.raises(TypeError, match=r"y\.astype\(int\)"):
        trainer.step(x, y.astype(float))
    with pytest.raises(TypeError, match="the loss is a function"):
        tutti.Trainer(output, loss=lambda output, targets: output)


def test_numbers_that_would_mean_something_else():
    net = tutti.Network()
    trainer = tutti.Trainer(tutti.dense(net.input("x", (4,)), 3), loss="cross_entropy", batch_size=6)
    x, y = numpy.zeros((6, 4), "float32"), numpy.arange(6) % 3
    for wrong in ({"epochs": 0}, {"epochs": -1}, {"batch_size": 0}):
        with pytest.raises(ValueError, match="must be at least 1|negative"):
            trainer.fit(x, y, **wrong)
    with pytest.raises(ValueError, match="trains nothing"):
        tutti.SGD(0)
    with pytest.warns(UserWarning, match="class -1: 2 of 6"):
        trainer.step(x, y - 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trainer.step(x, numpy.where(y == 0, -100, y))


def test_options_of_other_packages_are_refused_with_advice():
    with pytest.raises(TypeError, match="it has learning_rate"):
        tutti.SGD(lr=0.1)
    net = tutti.Network()
    trainer = tutti.Trainer(tutti.dense(net.input("x", (4,)), 3), loss="cross_entropy")
    with pytest.raises(TypeError, match="validation_data="):
        trainer.fit(numpy.zeros((6, 4), "float32"), numpy.arange(6) % 3, validation_split=0.1)
