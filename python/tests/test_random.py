"""Layers and operations with arguments by chance: calls raise or work. TUTTI_SEED and TUTTI_CALLS choose others, and more."""
import inspect
import os
import random

import numpy

import tutti

NUMBERS = [0, 1, 2, 3, -1, -2, 5, 100, 2 ** 31, 2 ** 40, -2 ** 63, 2 ** 64, 0.0, 0.5, -1.5, float("nan"), float("inf"), 1e30]
TEXTS = ["", "x", "a b", "\u00e9", "ij,jk->ik", "max", "he_normal", "\0", "x" * 5000]


def value(chance, tensors):
    if chance.random() < 0.4:
        return chance.choice(tensors)
    return chance.choice([
        lambda: chance.choice(NUMBERS), lambda: chance.choice(TEXTS), lambda: None, lambda: True, object,
        lambda: [chance.choice(tensors) for _ in range(chance.randrange(10))],
        lambda: tuple(chance.choice([1, 2, 3, -1, -2, 0, 10 ** 9]) for _ in range(chance.randrange(10))),
        lambda: numpy.ones(chance.randrange(4)), lambda: [chance.randrange(4) for _ in range(3)]])()


def call(chance, function, tensors):
    given, named = [], {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind == parameter.VAR_POSITIONAL:
            given += [value(chance, tensors) for _ in range(chance.randrange(1, 4))]
        elif parameter.kind == parameter.KEYWORD_ONLY:
            if chance.random() < 0.25:
                named[parameter.name] = value(chance, tensors)
        else:
            given.append(value(chance, tensors))
    if given and chance.random() < 0.7:
        given[0] = chance.choice(tensors)
    function(*given, **named)


def test_random_calls():
    chance = random.Random(int(os.environ.get("TUTTI_SEED", 1)))
    functions = [getattr(tutti.layers, name) for name in tutti.layers.__all__] + [getattr(tutti.ops, name) for name in dir(tutti.ops)]
    made = 0
    for _ in range(int(os.environ.get("TUTTI_CALLS", 500))):
        network = tutti.Network()
        tensors = [network.input(None, shape) for shape in ((3, 8, 8), (4,), (5, 6), ())] + [network.input(None, 7, "int32")]
        try:
            call(chance, chance.choice(functions), tensors)
            made += 1
        except (tutti.Error, TypeError, ValueError, OverflowError):
            pass
        network.close()
    assert made > 20
