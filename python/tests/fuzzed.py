"""Calls every function and class of the package with wrong arguments, from a seed. A call raises or returns; a crash ends the
process, and the last line tells the call.

    tests/python/with-package build-tests python/tests/fuzzed.py [CALLS [SEED]]"""
import collections
import faulthandler
import inspect
import random
import sys

import numpy

import tutti

WORDS = ["", "x", "mean", "\0", "ä" * 300, "float32", "no/such.file", "1,2", "a b", "-1"]
NUMBERS = [0, -1, 1, 3, -2, 2 ** 31 - 1, 2 ** 31, -2 ** 31, 2 ** 63 - 1, 2 ** 63, -2 ** 64, 10 ** 30, 0.5, -1.0, 1e300, float("nan"), float("inf")]
NETWORK = ["input", "op", "parameter", "find_parameter", "constant", "output", "freeze", "unfreeze", "tensor_info", "scope"]
TRAINER = ["step", "backward", "evaluate", "predict", "load", "restore", "set_loss"]
# What makes threads or reads whole folders is tested elsewhere.
OWN = [tutti.Network, tutti.Trainer, tutti.Runtime, tutti.load, tutti.devices, tutti.SGD, tutti.Adam, tutti.AdamW, tutti.RMSprop, tutti.Adagrad, tutti.NAdam, tutti.Lion]


def value(dice, network, depth=0):
    kind = dice.randrange(12 if depth < 2 else 9)
    if kind < 3:
        return dice.choice(NUMBERS)
    if kind == 3:
        return dice.choice(WORDS)
    if kind == 4:
        return dice.choice([None, True, False, b"bytes", object(), len, {}, 1j])
    if kind == 5:
        return numpy.zeros(dice.choice([(), (0,), (3,), (2, 3), (1,) * 12]), dice.choice(["float32", "int64", "complex64", "U3", "bool"]))
    if kind == 6:
        return tutti.Network().input("other", 3)
    if kind < 9:
        return network.input(None, dice.choice([(), 4, (3, 8), (3, 8, 8), (2, 3, 4, 5)]), dice.choice(["float32", "int32"]))
    return [value(dice, network, depth + 1) for _ in range(dice.choice([0, 1, 2, 3, 9]))]


def likely(one, dice, network):
    """A value of the type that the parameter says, mostly."""
    hint = str(one.annotation)
    if dice.random() < 0.3:
        return value(dice, network)
    if one.kind == one.VAR_POSITIONAL or one.name in ("x", "output", "input"):
        return value(dice, network) if dice.random() < 0.2 else network.input(None, dice.choice([(), 4, (3, 8), (3, 8, 8), (2, 3, 4, 5)]), dice.choice(["float32", "int32"]))
    if "Sequence[Tensor" in hint:
        return [network.input(None, 4) for _ in range(dice.choice([0, 1, 2, 3, 200]))]
    if "Tensor" in hint:
        return network.input(None, dice.choice([(), 4, (3, 8), (3, 8, 8), (2, 3, 4, 5)]), dice.choice(["float32", "int32"]))
    if "Sequence[int" in hint:
        return [dice.choice(NUMBERS[:11]) for _ in range(dice.choice([0, 1, 2, 3, 8]))]
    if "int" in hint:
        return dice.choice(NUMBERS[:9])
    if "float" in hint:
        return dice.choice(NUMBERS)
    return dice.choice(WORDS) if "str" in hint or one.name in ("name", "path", "pattern", "operation") else value(dice, network)


def called(function, dice, network):
    """Arguments for the parameters of a function, and sometimes too many."""
    parameters = list(inspect.signature(function).parameters.values())
    given = [likely(one, dice, network) for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD) and (one.default is one.empty or dice.random() < 0.2)]
    given += [likely(one, dice, network) for one in parameters if one.kind == one.VAR_POSITIONAL for _ in range(dice.choice([0, 1, 1, 2, 2, 3]))]
    named = {one.name: likely(dice, network) for one in parameters if one.kind == one.KEYWORD_ONLY and dice.random() < 0.3}
    if dice.random() < 0.1:
        named[dice.choice(["nonsense", "name", "size", "batch"])] = value(dice, network)
    return given, named


def targets():
    functions = [getattr(tutti, name) for name in tutti.layers.__all__] + [getattr(tutti.ops, name) for name in dir(tutti.ops) if not name.startswith("_")]
    yield from ((function.__name__, lambda network, trainer, function=function: function) for function in [*filter(inspect.isfunction, functions), *OWN])
    for name in NETWORK:
        yield name, lambda network, trainer, name=name: getattr(network, name)
    for name in TRAINER:
        yield name, lambda network, trainer, name=name: getattr(trainer, name)


def main(calls=1000, seed=1):
    faulthandler.enable()
    dice, found, kinds = random.Random(seed), list(targets()), collections.Counter()
    base = tutti.Network()
    trainer = tutti.Trainer(tutti.dense(base.input("x", 6), 3), loss="cross_entropy", batch_size=4)
    trainer.step(numpy.zeros((4, 6), "float32"), numpy.zeros(4, "int32"))
    for number in range(calls):
        name, target = found[number % len(found)]
        network = tutti.Network()
        try:
            function = target(network, trainer)
            given, named = called(function, dice, network)
            shown = f"{number}: {name}(*{given!r}, **{named!r})"
            if "-v" in sys.argv:
                print(shown[:2000], file=sys.stderr, flush=True)
            function(*given, **named)
            kinds["returned"] += 1
        except Exception as error:
            kinds[type(error).__name__] += 1
            if isinstance(error, (SystemError, AssertionError)) or not str(error) or "\n" in str(error).strip():
                print(f"{number}: {name}: {type(error).__name__}: {error}", flush=True)
        network.close()
    print(f"{calls} calls, {calls - kinds['returned']} raised: {dict(kinds)}")


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:] if word.isdigit()))
