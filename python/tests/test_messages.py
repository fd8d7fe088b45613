"""What a caller reads who gave something wrong: what was asked, what was found, what to do."""
import numpy
import pytest

import tutti

x = numpy.random.default_rng(0).normal(size=(32, 6)).astype("float32")
y = numpy.arange(32) % 3


def output(**options):
    return tutti.dense(tutti.Network().input("x", 6), 3, name="fc", **options)


def trainer(loss="cross_entropy", **options):
    return tutti.Trainer(output(), loss=loss, **options)


@pytest.fixture(scope="module")
def one():
    made = trainer(optimizer=tutti.SGD(0.1))
    made.step(x, y)
    return made


WRONG = {
    "epochs are whole": (TypeError, r"epochs is 1\.5: it must be a whole number", lambda t: t.fit(x, y, epochs=1.5)),
    "epochs are no text": (TypeError, "epochs is '2': it must be a whole number", lambda t: t.fit(x, y, epochs="2")),
    "batches are whole": (TypeError, r"batch_size is 1\.5", lambda t: t.fit(x, y, batch_size=1.5)),
    "batches of the trainer": (TypeError, "batch_size is 'a'", lambda t: trainer(batch_size="a")),
    "negative batch": (ValueError, "batch_size is -1: it must be at least 1", lambda t: trainer(batch_size=-1)),
    "larger than the data": (ValueError, "1000, is larger than the data: there are 32", lambda t: t.fit(x, y, batch_size=1000)),
    "a batch that memory has no room for": (ValueError, "2147483647, is larger than the data: there are 32", lambda t: t.fit(x, y, batch_size=2 ** 31 - 1)),
    "batch of fit": (TypeError, "no option 'batch': write batch_size", lambda t: t.fit(x, y, batch=256)),
    "no_shuffle": (TypeError, "no option 'no_shuffle': write shuffle=False", lambda t: t.fit(x, y, no_shuffle=True)),
    "progress": (TypeError, "no option 'progress': write callbacks", lambda t: t.fit(x, y, progress=print)),
    "begin_epoch": (TypeError, "no option 'begin_epoch': write callbacks", lambda t: t.fit(x, y, begin_epoch=print)),
    "test": (TypeError, "no option 'test': write validation_data", lambda t: t.fit(x, y, test=(x, y))),
    "batch of the trainer": (TypeError, "no option 'batch': write batch_size", lambda t: trainer(batch=256)),
    "near batch_size": (TypeError, r"no option 'batchsize': did you mean 'batch_size'\?$", lambda t: trainer(batchsize=256)),
    "number of losses": (TypeError, "no option 'loss_count'", lambda t: trainer(loss_count=2)),
    "carries": (TypeError, "it must be a list of pairs of tensors", lambda t: trainer(carries=[t])),
    "parameter": (KeyError, "no parameter 'nope': there are fc.weight, fc.bias", lambda t: t.parameters["nope"]),
    "near parameter": (KeyError, "did you mean 'fc.weight'", lambda t: t.parameters["fc.weights"]),
    "parameter that is set": (KeyError, "did you mean 'fc.bias'", lambda t: t.parameters.__setitem__("bias", 0)),
    "gradient": (KeyError, "did you mean 'fc.weight'", lambda t: t.gradients["weight"]),
    "state": (KeyError, "no state 'exp_avg': there is none", lambda t: t.states["exp_avg"]),
    "part of a parameter": (ValueError, r"fc.weight\[3, 6\] takes the shape \[6\] there, the array is \[4\]", lambda t: t.parameters["fc.weight"].__setitem__(0, [0] * 4)),
    "parameters of a list": (TypeError, "parameters is a dictionary", lambda t: setattr(t, "parameters", [1, 2])),
    "categorical_crossentropy": (ValueError, r'write "cross_entropy".*softmax.*y\.argmax\(1\)', lambda t: trainer("categorical_crossentropy")),
    "sparse_categorical_crossentropy": (ValueError, 'write "cross_entropy".*softmax', lambda t: trainer("sparse_categorical_crossentropy")),
    "binary_crossentropy": (ValueError, 'write "bce_with_logits".*sigmoid', lambda t: trainer("binary_crossentropy")),
    "name of a layer as loss": (ValueError, "the loss 'add' is not known: it is one of", lambda t: trainer("add")),
    "number as loss": (TypeError, "the loss is 3: give a name", lambda t: trainer(3)),
    "list of names": (TypeError, "the loss is a list.*list of tensors", lambda t: trainer(["mse"])),
    "metrics": (TypeError, r"no option 'metrics': fit\(\) and evaluate\(\) give", lambda t: trainer(metrics=["accuracy"])),
    "option": (TypeError, "did you mean 'learning_rate'", lambda t: trainer(learningrate=1)),
    "option of fit": (TypeError, "did you mean 'epochs'", lambda t: t.fit(x, y, epoch=3)),
    "size is no option": (TypeError, "no option 'size'", lambda t: trainer(size=1)),
    "seed": (OverflowError, "seed is -1: it must be from 0 to", lambda t: trainer(seed=-1).step(x, y)),
    "flag": (TypeError, "sync_batchnorm is 'no': it must be True or False", lambda t: trainer(sync_batchnorm="no").step(x, y)),
    "rate": (TypeError, r"learning_rate is '0\.1': it must be a number", lambda t: trainer(optimizer=tutti.SGD("0.1")).step(x, y)),
    "rate that is set": (TypeError, "learning_rate is 'a'", lambda t: setattr(t, "learning_rate", "a")),
    "precision": (ValueError, "precision is 'half': it must be one of fp32", lambda t: trainer(precision="half").step(x, y)),
    "function of C": (TypeError, "building is for programs in C", lambda t: trainer(building=print).step(x, y)),
    "class as optimizer": (TypeError, "not the class SGD", lambda t: trainer(optimizer=tutti.SGD)),
    "no network": (TypeError, "takes a network, or the tensor to train, not 3", lambda t: tutti.Trainer(3)),
    "units": (TypeError, "units is 'many': it must be a whole number", lambda t: tutti.dense(tutti.Network().input("x", 6), "many")),
    "units that are too many": (OverflowError, "units is 1180591620717411303424: it must be from", lambda t: tutti.dense(tutti.Network().input("x", 6), 2 ** 70)),
    "sizes": (TypeError, r"a size is 3\.7: it must be a whole number", lambda t: tutti.Network().input("x", (3.7,))),
    "runtime": (TypeError, r"runtime is 3: it must be a tutti\.Runtime", lambda t: tutti.Network(3)),
    "runtime of a file": (TypeError, "runtime is 3", lambda t: tutti.load("x.onnx", runtime=3)),
    "output": (TypeError, "a tensor is needed, not 0.5", lambda t: t.network.output(0.5)),
    "constant": (TypeError, "a constant is an object: it must be a number", lambda t: tutti.Network().constant(object())),
    "classes": (TypeError, r"classes is 2\.5: it must be a whole number", lambda t: tutti.models.lenet(classes=2.5)),
    "input of texts": (ValueError, "texts has no input of another shape", lambda t: tutti.models.lstm(input=(7,))),
    "vocabulary": (ValueError, "vocabulary is -1", lambda t: tutti.models.gpt(vocabulary=-1)),
    "dtype": (KeyError, "dtype is complex64: it must be one of float32", lambda t: tutti.Network().input("x", 3, "complex64")),
    "initialiser": (ValueError, "init is 'he': it must be one of default, he_normal", lambda t: output(init="he")),
    "objects": (TypeError, r"not object: convert it, as array\.astype\('float32'\)", lambda t: t.step(x.astype(object), y)),
    "complex": (TypeError, r"complex128: its real and imaginary parts are two arrays", lambda t: t.step(x.astype(complex), y)),
    "texts": (TypeError, "convert texts to numbers", lambda t: t.step(x.astype(str), y)),
    "labels that are texts": (TypeError, "as 'a': give class numbers, as numpy.unique", lambda t: t.step(x, numpy.array(["a", "b"] * 16))),
    "a name": (TypeError, r"not 'digits'; tutti\.data\.open\('digits'\)", lambda t: t.fit("digits")),
    "nothing": (TypeError, '"x" takes an array of numbers, not None', lambda t: t.predict(None)),
    "a number": (ValueError, "3 is a single number", lambda t: t.fit(3, 4)),
    "lengths": (ValueError, r"different shapes, \[2\] and \[1\]", lambda t: t.predict([[1, 2], [3]])),
    "a pair": (ValueError, r"give x and y as two arguments, as fit\(x, y\)", lambda t: t.fit((x, y))),
    "numbers of samples": (ValueError, "x 32, targets 9: each sample needs one of each", lambda t: t.fit(x, y[:9])),
    "labels that are NaN": (TypeError, "it has NaN, 11 of 32; leave these samples out, or give them the class -100", lambda t: t.step(x, numpy.where(y == 0, numpy.nan, y))),
    "indices that are floats": (TypeError, r"convert it, as ids\.astype\('int32'\)", lambda t: tutti.Trainer(tutti.embedding(tutti.Network().input("ids", 4, "int32"), 5, 3)).predict(numpy.zeros((2, 4)))),
    "validation without y": (ValueError, r"validation_data has no y: give \(x, y\)", lambda t: t.fit(x, y, validation_data=x)),
    "validation with None": (ValueError, r"validation_data has no y: give \(x, y\)", lambda t: t.fit(x, y, validation_data=(x, None))),
    "validation of one": (ValueError, r"has 1 part: give \(x, y\)", lambda t: t.fit(x, y, validation_data=(x,))),
    "validation of three": (ValueError, r"has 3 parts: give \(x, y\)", lambda t: t.fit(x, y, validation_data=(x, y, y))),
    "validation number": (TypeError, r"validation_data is 0\.2: give \(x, y\)", lambda t: t.fit(x, y, validation_data=0.2)),
    "targets without a loss": (ValueError, "the trainer has no loss that reads targets: leave out y, or make it with Trainer", lambda t: trainer(None).step(x, y)),
    "no folder": (OSError, "choose a folder that exists", lambda t: t.save("/no/such/folder/m")),
    "no name": (TypeError, "a name or a path, not None", lambda t: t.save(None)),
    "flag as name": (TypeError, "a name or a path, not True", lambda t: t.fit(x, y, save=True)),
    "function as schedule": (TypeError, r"callbacks=\[tutti\.callbacks\.Schedule\(function\)\]", lambda t: t.fit(x, y, schedule=lambda epoch: 0.1)),
    "schedule": (ValueError, "schedule is 'cosin': it must be one of", lambda t: t.fit(x, y, schedule="cosin")),
    "class as callback": (TypeError, r"write EarlyStopping\(\)", lambda t: t.fit(x, y, callbacks=tutti.callbacks.EarlyStopping)),
    "position": (TypeError, r"position is 3: it must be \(steps, updates, epoch\)", lambda t: setattr(t, "position", 3)),
    "device": (ValueError, "device 77 is not there: there are", lambda t: t.why(77)),
    "C's names": (ValueError, r"call backward\(\) first", lambda t: t.apply()),
    "list as out": (TypeError, "out is a list, which cannot be written to", lambda t: t.predict(x, out=[[0] * 3] * 32)),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong(one, name):
    kind, text, call = WRONG[name]
    with pytest.raises(kind, match=text) as raised:
        call(one)
    assert "\n" not in str(raised.value) and len(str(raised.value)) < 300


def test_names_of_losses():
    """Names of Keras and PyTorch mean the same losses."""
    for theirs, ours in (("mean_squared_error", "mse"), ("MSELoss", "mse"), ("mae", "l1"), ("mean_absolute_error", "l1"), ("smooth_l1", "huber")):
        losses = [trainer(name, seed=3).step(x, x[:, :3]).loss for name in (theirs, ours)]
        assert losses[0] == losses[1], theirs
    assert trainer("CrossEntropyLoss", seed=3).step(x, y) == trainer(seed=3).step(x, y)


def test_no_samples(one):
    assert one.predict(x[:0]).shape == (0, 3)


def test_numbers_of_numpy():
    made = trainer(optimizer=tutti.SGD(numpy.float32(0.1), momentum=numpy.float64(0.9), nesterov=numpy.bool_(True)), seed=numpy.int64(3), batch_size=numpy.int16(8))
    assert len(made.fit(x, y, epochs=numpy.int32(2), batch_size=numpy.uint8(8))["loss"]) == 2


def test_fewer_samples_than_a_usual_batch():
    assert len(trainer().fit(x[:5], y[:5], epochs=2)["loss"]) == 2


def test_lists(one):
    assert numpy.array_equal(one.predict(x.tolist()), one.predict(x))
    assert one.evaluate(x.tolist(), y.tolist()) == one.evaluate(x, y)


class Frame:
    """What numpy sees of a DataFrame of pandas."""
    def __init__(self, values):
        self.values, self.iloc, self.columns = values, None, []

    def __array__(self, dtype=None, copy=None):
        return numpy.asarray(self.values, dtype)

    def __len__(self):
        return len(self.values)

    def __iter__(self):
        return iter("abcdef")


def test_frames(one):
    assert one.evaluate(Frame(x), Frame(y)) == one.evaluate(x, y)
    assert len(one.fit(Frame(x), Frame(y), validation_data=(Frame(x), Frame(y)))["loss"]) == 1


def test_closed():
    """Also one that was never compiled."""
    for steps in (0, 1):
        made = trainer()
        for _ in range(steps):
            made.step(x, y)
        made.close()
        for call in (lambda: made.step(x, y), lambda: made.fit(x, y), lambda: made.predict(x), lambda: made.parameters, lambda: made.save("m"), lambda: made.why()):
            with pytest.raises(ValueError, match="this Trainer was closed"):
                call()
