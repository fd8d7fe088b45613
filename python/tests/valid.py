"""Calls that work, for fuzzed.py to change: of each layer and operation one that is found by trying, and of networks, trainers and
data by hand. A call is (name, function, make), where make(network) returns the arguments."""
import functools
import inspect
import os
import random
import tempfile

import numpy

import tutti
from tutti import _options

TRIES = 600
SHAPES = [(3, 8, 8), (4,), (5, 6), (), (8,), (6, 6), (3, 8), (2, 3, 4, 5), (5, 6, 2), (8, 8, 2)]
X, Y = numpy.random.default_rng(1).normal(size=(8, 6)).astype("float32"), numpy.arange(8) % 3
KEPT = tempfile.TemporaryDirectory()     # until the process ends
FOLDER = KEPT.name
# What more than a few tries would find.
KNOWN = {
    "einsum": lambda n: ([n.input(None, (3, 4)), n.input(None, (4, 5))], {"equation": "ij,jk->ik"}),
    "scatter_nd": lambda n: ([n.input(None, (5, 6)), n.input(None, (2, 1), "int32"), n.input(None, (2, 6))], {}),
    "affine_grid": lambda n: ([n.input(None, (2, 3))], {"size": (4, 4)}),
    "irfft2_modes": lambda n: ([n.input(None, (3, 4, 3, 2))], {"height": 8, "width": 8}),
    "rotary_embedding": lambda n: ([n.input(None, (2, 5, 6)), n.constant(numpy.ones((5, 3))), n.constant(numpy.ones((5, 3)))], {}),
    "conv": lambda n: ([n.input(None, (3, 8, 8)), n.parameter("w", (4, 3, 3, 3))], {}),
    "conv_transpose": lambda n: ([n.input(None, (3, 8, 8)), n.parameter("w", (3, 4, 3, 3))], {}),
    "embedding": lambda n: ([n.input(None, 4, "int32"), n.parameter("w", (7, 3))], {}),
    "spectral_product": lambda n: ([n.input(None, (3, 4, 2)), n.parameter("w", (3, 5, 4, 2))], {}),
    "ctc": lambda n: ([n.input(None, (5, 6)), n.input(None, 2, "int32")], {}),
    "custom": lambda n: ([[n.input(None, 5)]], {"operation": "soft", "attributes": "T=0.5", "forward": "y[i] = x[i] * T;"}),
}
LAYERS = {"irfft2_modes": lambda n: ([n.input(None, (3, 4, 3, 2)), 8, 8], {}), "einsum": lambda n: (["ij,jk->ik", [n.input(None, (3, 4)), n.input(None, (4, 5))]], {})}


def argument(one, dice, network, shape):
    """A value that may do for a parameter, by what its type says; tensors have mostly the same shape."""
    hint = str(one.annotation)
    if "Sequence[Operand" in hint:
        return [network.input(None, shape) for _ in range(dice.choice([1, 2, 2]))]
    if "Operand" in hint or one.annotation is one.empty and one.kind in (one.POSITIONAL_ONLY, one.VAR_POSITIONAL):
        return network.input(None, shape if dice.random() < 0.6 else dice.choice(SHAPES), dice.choice(["float32", "float32", "float32", "int32"]))
    if "Shape" in hint or "Sequence[int" in hint:
        return dice.choice([1, 2, (2,), (2, 2), (24,), (1, 2)])
    if "int" in hint:
        return dice.choice([1, 2, 3, -1, 0, 4])
    if "float" in hint:
        return dice.choice([1.0, 0.5])
    if hint in vars(_options):
        return dice.choice(vars(_options)[hint].__args__)
    return dice.choice([1, 2, 0, (1, 2), (2, 2), "float32"])


def arguments(network, function, seed):
    dice, given, named = random.Random(seed), [], {}
    shape = dice.choice(SHAPES)
    for one in inspect.signature(function).parameters.values():
        if one.name == "network":
            given, named = ([*given, network], named) if one.default is one.empty else (given, {**named, "network": network})
        elif one.default is not one.empty:
            continue
        elif one.kind == one.KEYWORD_ONLY:
            named[one.name] = argument(one, dice, network, shape)
        else:
            given += [argument(one, dice, network, shape) for _ in range(dice.choice([1, 2]) if one.kind == one.VAR_POSITIONAL else 1)]
    return given, named


def found(function):
    """A function(network) that returns arguments with which the call works."""
    known = LAYERS if function.__module__ == "tutti.layers" else KNOWN
    if function.__name__ in known:
        return known[function.__name__]
    if function.__name__ == "custom":
        return KNOWN["custom"]
    for seed in range(TRIES):
        with tutti.Network() as network:
            try:
                given, named = arguments(network, function, seed)
                function(*given, **named)
                return functools.partial(arguments, function=function, seed=seed)
            except (tutti.Error, TypeError, ValueError, KeyError):
                pass
    raise ValueError(f"no call of {function.__name__} works: name one in KNOWN")


def layers():
    functions = [getattr(tutti, name) for name in tutti.layers.__all__] + [getattr(tutti.ops, name) for name in dir(tutti.ops)]
    return [(function.__name__, lambda network, trainer, function=function: function, found(function)) for function in functions]


def network_calls():
    yield "input", lambda n: (["x", (3, 4)], {"dtype": "float32"})
    yield "op", lambda n: (["gelu", n.input(None, 4)], {})
    yield "op", lambda n: (["reduce_mean", n.input(None, (3, 4))], {"axes": -1, "keepdims": True})
    yield "parameter", lambda n: (["p", (3, 4)], {"init": "normal", "init_scale": 0.5, "frozen": False})
    yield "parameter", lambda n: (["p", (2, 2)], {"values": [1.0, 2.0, 3.0, 4.0]})
    yield "constant", lambda n: ([numpy.ones((3, 4), "float32")], {"name": "c"})
    yield "output", lambda n: ([tutti.relu(n.input(None, 4)), "y"], {})
    yield "lora", lambda n: ([tutti.dense(n.input(None, 4), 2, name="fc") and "fc.*"], {"rank": 2, "alpha": 4.0, "dropout": 0.1})
    yield "store", lambda n: (["fc.*" if tutti.dense(n.input(None, 4), 2, name="fc") and not n.freeze("fc.*") else "", "bf16"], {})
    yield "freeze", lambda n: ([tutti.dense(n.input(None, 4), 2, name="fc") and "fc.*"], {})
    yield "find_parameter", lambda n: ([tutti.dense(n.input(None, 4), 2, name="fc") and "fc.weight"], {})
    yield "scope_push", lambda n: (["block"], {})


def trained(n, **options):
    x = n.input("x", 6)
    return [tutti.dense(tutti.relu(tutti.dense(x, 4)), 3, name="fc")], {"loss": "cross_entropy", "optimizer": tutti.SGD(0.1), "batch_size": 8, **options}


def trainer_calls():
    yield "step", lambda n: ([X, Y], {})
    yield "step", lambda n: ([{"x": X, "targets": Y}], {})
    yield "backward", lambda n: ([X, Y], {})
    yield "evaluate", lambda n: ([X, Y], {})
    yield "evaluate", lambda n: ([[(X, Y)]], {})
    yield "predict", lambda n: ([X], {})
    yield "predict", lambda n: ([X], {"out": numpy.empty((8, 3), "float32")})
    yield "fit", lambda n: ([X, Y], {"epochs": 1, "batch_size": 4, "validation_data": (X, Y), "shuffle": True, "verbose": False})
    yield "fit", lambda n: ([[(X, Y)]], {"epochs": 1, "steps_per_epoch": 1, "verbose": False})
    yield "fit", lambda n: ([X, Y], {"epochs": 2, "schedule": {"kind": "step", "step_size": 1, "factor": 0.5}, "steps": 2, "verbose": False})
    yield "fit", lambda n: ([X, Y], {"epochs": 2, "callbacks": [tutti.callbacks.EarlyStopping(patience=1)], "patience": 1, "verbose": False})
    yield "save", lambda n: ([os.path.join(FOLDER, "m")], {})
    yield "load", lambda n: ([os.path.join(FOLDER, "m")], {})
    yield "export", lambda n: ([os.path.join(FOLDER, "m.onnx")], {})
    yield "why", lambda n: ([0], {})
    yield "profile", lambda n: ([0], {})
    yield "set_loss", lambda n: (["cross_entropy"], {})


class Few(tutti.callbacks.Callback):
    """Ends a training of any number of epochs and steps."""
    steps = 0

    def step(self, progress):
        self.steps += 1
        return self.steps > 20

    def epoch(self, epoch, numbers):
        return self.step(None)


def assigned(trainer):
    """Calls that set what a trainer has."""
    def set_parameter(name, index, values):
        trainer.parameters[name][index] = values

    def set_whole(name, values):
        trainer.parameters[name] = values

    def set_state(rate, position):
        trainer.learning_rate = rate
        trainer.position = position
    return {"set_parameter": set_parameter, "set_whole": set_whole, "set_state": set_state}


def assignments():
    yield "set_parameter", lambda n: (["fc.weight", 0, numpy.ones(4)], {})
    yield "set_whole", lambda n: (["fc.bias", numpy.ones(3)], {})
    yield "set_state", lambda n: ([0.1, (3, 3, 1)], {})


def others():
    """Constructors and readers; options of trainers are set one by one."""
    yield "Trainer", tutti.Trainer, trained
    for name in _options.TrainingOptions.__annotations__:
        yield "Trainer", tutti.Trainer, lambda n, name=name: trained(n, **{name: {"float": 0.5, "int": 4, "bool": True, "Precision": "fp32", "Sharing": "equal"}.get(
            _options.TrainingOptions.__annotations__[name].__forward_arg__, None)})
    for kind in (tutti.SGD, tutti.Adam, tutti.RMSprop, tutti.Lion):
        yield kind.__name__, kind, lambda n: ([0.1], {"weight_decay": 0.1})
    yield "load", tutti.load, lambda n: ([os.path.join(FOLDER, "m.onnx")], {"input": 6, "logits": True})
    yield "arrays", tutti.data.arrays, lambda n: ([os.path.join(FOLDER, "data.npz")], {"split": 0.25, "seed": 3})
    yield "Schedule", tutti.callbacks.Schedule, lambda n: ([lambda epoch: 0.1], {"by": "epoch"})
    yield "lenet", tutti.models.lenet, lambda n: ([10], {"input": (1, 28, 28), "samples": 100})
    yield "tabular", tutti.models.tabular, lambda n: ([10], {"input": 5, "samples": 100})


def calls():
    """(name, a function of network and trainer that returns what is called, make)."""
    numpy.savez(os.path.join(FOLDER, "data.npz"), x=X, y=Y)
    listed = layers()
    listed += [(name, lambda network, trainer, name=name: getattr(network, name), make) for name, make in network_calls() for _ in range(3)]
    listed += [(name, lambda network, trainer, name=name: functools.partial(trainer.fit, callback=Few()) if name == "fit" else getattr(trainer, name), make)
               for name, make in trainer_calls() for _ in range(6)]
    listed += [(name, lambda network, trainer, name=name: assigned(trainer)[name], make) for name, make in assignments() for _ in range(6)]
    listed += [(name, lambda network, trainer, function=function: function, make) for name, function, make in others() for _ in range(2)]
    return listed
