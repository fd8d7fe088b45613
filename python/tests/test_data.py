"""What trainings take: arrays of every kind, memory maps, batches of Python, and the library's own readers; and what they refuse."""
import subprocess

import numpy
import pytest

import tutti


class Loader:
    """As PyTorch's DataLoader: batches of tensors, which give themselves by DLPack alone."""

    class Tensor:
        def __init__(self, array):
            self.array, self.__dlpack__, self.__dlpack_device__ = array, array.__dlpack__, array.__dlpack_device__

        def __len__(self):
            return len(self.array)

    def __init__(self, x, y, batch_size=8):
        self.x, self.y, self.batch_size, self.given = x, y, batch_size, 0

    def __len__(self):
        return -(-len(self.x) // self.batch_size)

    def __iter__(self):
        for begin in range(0, len(self.x), self.batch_size):
            self.given += 1
            chosen = slice(begin, begin + self.batch_size)
            yield [self.Tensor(self.x[chosen].copy()), self.Tensor(self.y[chosen].copy())]


def weights_of(trainer):
    return numpy.asarray(trainer.parameters["fc.weight"])


def test_batches(small, tmp_path):
    """Batches of a loader, a function, a list and a generator train as the array does; the history is the same."""
    make, x, y = small
    one = make()
    wanted = one.fit(x, y, epochs=3, batch_size=8, shuffle=False, validation_data=(x, y))

    def batches():
        for begin in range(0, 32, 8):
            yield {"x": x[begin:begin + 8].astype("float64"), "targets": y[begin:begin + 8]}

    for given in (Loader(x, y), batches, list(batches()), [(batch["x"], batch["targets"]) for batch in batches()]):
        two = make()
        history = two.fit(given, epochs=3, validation_data=Loader(x, y, 12))
        assert numpy.allclose(weights_of(one), weights_of(two), atol=1e-6)
        assert history.keys() == wanted.keys() and all(numpy.allclose(history[name], wanted[name], atol=1e-6) for name in wanted)
    assert two.evaluate(Loader(x, y, 5)).loss == pytest.approx(one.evaluate(x, y).loss, abs=1e-6)
    assert numpy.allclose(two.predict(Loader(x, y, 5)), one.predict(x), atol=1e-5)
    three = make()
    assert len(three.fit(batches(), epochs=1)["loss"]) == 1
    with pytest.raises(ValueError, match="gives its batches once"):
        three.fit(batches(), epochs=2)

    def endless():
        while True:
            yield from batches()
    three = make()
    three.fit(endless(), epochs=3, steps_per_epoch=4, save=tmp_path / "m")
    assert numpy.allclose(weights_of(one), weights_of(three), atol=1e-6) and three.position == (12, 12, 3)
    assert len(make().fit(Loader(x, y), epochs=5, resume=tmp_path / "m")["loss"]) == 2
    with pytest.raises(TypeError, match="Schedule"):
        make().fit(Loader(x, y), schedule="cosine")


def test_memory_maps(small, tmp_path):
    """A map of another type than the network's is converted batch by batch."""
    make, x, y = small
    mapped = numpy.memmap(tmp_path / "x", "float64", "w+", shape=x.shape)
    mapped[:] = x
    one, two = make(), make()
    assert one.fit(x, y, epochs=2, batch_size=8) == two.fit(mapped, y, epochs=2, batch_size=8, validation_data=None)
    assert one.evaluate(x, y) == two.evaluate(mapped, y) and numpy.array_equal(one.predict(x), two.predict(mapped))
    mapped = numpy.memmap(tmp_path / "x", "float64", "r", shape=x.shape)
    two.fit(x, y, validation_data=(mapped, y))


def test_dlpack(small):
    """Tensors of other packages go in and come out without a copy through Python's numbers."""
    make, x, y = small
    trainer = make()
    assert trainer.step(Loader.Tensor(x), Loader.Tensor(y)).loss > 0
    assert numpy.array_equal(trainer.predict(Loader.Tensor(x)), numpy.from_dlpack(trainer.predict(x)))
    room = numpy.empty((32, 3), "float32")
    assert trainer.predict(x, out=room) is room and numpy.array_equal(room, trainer.predict(x))
    assert numpy.array_equal(numpy.from_dlpack(trainer.parameters["fc.weight"]), weights_of(trainer))
    trainer.parameters["fc.bias"] = numpy.from_dlpack(Loader.Tensor(numpy.ones(3, "float32")))
    trainer.parameters = {"fc.bias": Loader.Tensor(numpy.full(3, 2, "float32"))}
    assert (numpy.asarray(trainer.parameters["fc.bias"]) == 2).all()
    with pytest.raises(ValueError, match="out has the shape"):
        trainer.predict(x, out=room[:5])


def test_pictures(digits):
    """A folder trains as the command trains it; parts give arrays that predict the same."""
    data = tutti.data.folder(digits[0], normalise="measured")
    assert data.classes == 10 and data.kind == "IDX" and data.shape == (1, 10, 10) and len(data.train) == 640 and len(data.tests) == 200
    network = tutti.models.mlp(classes=data.classes, input=data.shape)
    trainer = tutti.Trainer(network, loss="cross_entropy", optimizer=tutti.SGD(0.05, momentum=0.9), seed=3)
    history = trainer.fit(data, epochs=2, batch_size=64)
    assert history["val_accuracy"][-1] > 0.9
    x, y = data.tests.arrays()
    assert x.dtype == numpy.float32 and list(y[:5]) == list(data.tests.labels()[:5]) == list(digits[4][:5])
    assert trainer.evaluate(data).loss == pytest.approx(trainer.evaluate(x, y).loss, rel=1e-5)
    assert numpy.allclose(trainer.predict(data.tests), trainer.predict(x))
    assert "classes" in data.inspect() and data.train.name(0) and "640" in repr(data)
    with pytest.raises(ValueError, match="input=data.shape"):
        tutti.Trainer(tutti.models.mlp(classes=10, input=(1, 9, 9)), loss="cross_entropy").fit(data)
    with pytest.raises(IndexError):
        data.train.arrays([640])


def test_tables_and_arrays(tmp_path, command):
    random = numpy.random.default_rng(3)
    x = random.normal(size=(120, 4)).astype("float32")
    rows = ["a,b,colour,size,price"] + [f"{a},{b},{'red' if c > 0 else 'blue'},{d},{3 * a - 2 * b + (c > 0)}" for a, b, c, d in x]
    (tmp_path / "homes.csv").write_text("\n".join(rows) + "\n")
    numpy.savez(tmp_path / "rows.npz", x=x, y=(x[:, 0] > 0).astype("int64"))
    data = tutti.data.table(tmp_path / "homes.csv", "price", seed=4)
    trainer = tutti.Trainer(tutti.models.linear(classes=1, input=data.shape), loss="mse", optimizer=tutti.Adam(0.05))
    history = trainer.fit(data, epochs=30, batch_size=32)
    assert history["val_loss"][-1] < 0.05
    x_test, y_test = data.tests.arrays()
    prices = data.in_units(trainer.predict(data.tests))
    assert numpy.abs(prices - data.in_units(y_test)).mean() < 0.8
    trainer.save(tmp_path / "homes.safetensors")    # the command knows the columns
    told = subprocess.run([command, "infer", "linear", "--weights", tmp_path / "homes.safetensors", "--data", tmp_path / "homes.csv"],
                          stdout=subprocess.PIPE, text=True, check=True)
    assert numpy.allclose([float(line.split()[1]) for line in told.stdout.splitlines()], prices[:, 0], rtol=1e-4, atol=1e-4)
    arrays = tutti.data.arrays(tmp_path / "rows.npz")
    assert arrays.classes == 2 and arrays.shape == (4,)
    with pytest.raises(ValueError, match="read as arrays"):
        tutti.data.table(tmp_path / "rows.npz")
    with pytest.raises(tutti.FileError):
        tutti.data.folder(tmp_path / "none")


def test_texts(tmp_path):
    rows = [f"{'good' if i % 2 else 'bad'} number {'x' * (i % 7)}\t{'yes' if i % 2 else 'no'}" for i in range(40)]
    (tmp_path / "texts.tsv").write_text("\n".join(["text\tlabel", *rows, "\tyes"]) + "\n")
    data = tutti.data.text(tmp_path / "texts.tsv", "text", "label", tokenizer="bytes")
    assert (data.kind, data.classes, data.vocabulary, data.length, data.pairs) == ("text", 2, 256, 24, False)
    assert data.notes and "left out 1 row" in data.notes[0]
    ids, labels = data.all.arrays()
    assert ids.dtype == numpy.int32 and bytes(ids[1][ids[1] >= 0].astype("uint8")) == b"good number x" and labels[1] == 1
    (tmp_path / "pairs.tsv").write_text("\n".join(["text\tother\tlabel", *(f"{row.split(chr(9))[0]}\tmore\t{row.split(chr(9))[1]}" for row in rows)]) + "\n")
    pairs = tutti.data.text(tmp_path / "pairs.tsv", ["text", "other"], "label", tokenizer="bytes")
    assert pairs.pairs and pairs.length == 24
    (tmp_path / "book.txt").write_text("".join(rows))
    book = tutti.data.text(tmp_path / "book.txt", length=16)
    ids, targets = book.train.arrays()
    assert book.tokens_are_classes and book.classes == 256 and (ids[:, 1:] == targets[:, :-1]).all()
    (tmp_path / "ner.conll").write_text("Bo\tB-PER\nis\tO\n\nin\tO\nX\tB-LOC\n\nX\tB-LOC\n")
    tagged = tutti.data.text(tmp_path / "ner.conll", tokenizer="bytes")
    ids, tags = tagged.all.arrays()
    assert tagged.tags and tagged.class_names == ["B-LOC", "B-PER", "O"] and tagged.all.words(0) == [("Bo", 0), ("is", 3)]
    assert tags[0].tolist() == [1, -1, -1, 2, -1] + [-1] * (tagged.length - 5)
    with pytest.raises(ValueError, match="the network needs one input of int32"):
        tutti.Trainer(tutti.models.mlp(classes=2, input=(24,)), loss="cross_entropy").fit(data)
    with pytest.raises(ValueError, match="read as text"):
        tutti.data.folder(tmp_path / "book.txt", length=16)


def test_validation_batches(small):
    """Lists of one, two or three batches are batches; a list of x and y is one, too."""
    make, x, y = small
    wanted = make().fit(x, y, batch_size=8, validation_data=(x, y))["val_loss"]
    for count in (1, 2, 3):
        parts = [(x[part], y[part]) for part in numpy.array_split(numpy.arange(len(x)), count)]
        assert make().fit(x, y, batch_size=8, validation_data=parts)["val_loss"] == pytest.approx(wanted, rel=1e-5)
    assert make().fit(x, y, batch_size=8, validation_data=[x, y])["val_loss"] == pytest.approx(wanted, rel=1e-5)


def test_a_new_users_errors(small):
    """One line says what was asked, what was found and what to do."""
    make, x, y = small
    trainer, holes = make(batch_size=32), x.copy()
    holes[5, 2] = numpy.nan
    images = tutti.Trainer(tutti.models.mlp(classes=3, input=(1, 4, 4)), loss="cross_entropy")
    for failure, said, call in (
            (ValueError, r'"x" takes samples of the shape \[6\]; the array is \[32, 5\]', lambda: trainer.fit(x[:, :5], y)),
            (ValueError, r"one sample is array\[None\]", lambda: trainer.predict(x[0])),
            (ValueError, r"channels come first, array.transpose\(0, 3, 1, 2\)", lambda: images.predict(numpy.zeros((2, 4, 4, 1)))),
            (ValueError, r"the channel is missing, array\[:, None\]", lambda: images.predict(numpy.zeros((2, 4, 4)))),
            (ValueError, "x 32, targets 9: each sample needs one of each", lambda: trainer.fit(x, y[:9])),
            (TypeError, "as 'cat': give class numbers", lambda: trainer.fit(x, ["cat"] * 32)),
            (TypeError, "as 'a': convert texts", lambda: trainer.fit([["a"] * 6] * 32, y)),
            (ValueError, "samples must have equal shapes", lambda: trainer.fit([[1.0] * 6, [1.0] * 5], y[:2])),
            (TypeError, "takes int32, not float64: class numbers from 0", lambda: trainer.fit(x, y + 0.5)),
            (TypeError, "not complex64", lambda: trainer.fit(x.astype("complex64"), y)),
            (tutti.InvalidError, "3", lambda: trainer.fit(x, y + 1)),
            (tutti.NotFiniteError, '"x" has NaN or infinite numbers in 1 of 32 samples, the first is sample 5', lambda: trainer.fit(holes, y)),
            (tutti.NotFiniteError, "the first is sample 5", lambda: trainer.step(holes, y)),
            (ValueError, r"a batch has 3 parts; the network takes 1 inputs and targets: give \(x, y\)", lambda: trainer.fit([(x, y, y)])),
            (TypeError, "no option 'epoch'", lambda: trainer.fit(x, y, epoch=3)),
            (TypeError, "a callback is", lambda: trainer.fit(x, y, callbacks=[3])),
            (TypeError, "steps_per_epoch is for", lambda: trainer.fit(x, y, steps_per_epoch=3))):
        with pytest.raises(failure, match=said) as raised:
            call()
        assert "\n" not in str(raised.value)
