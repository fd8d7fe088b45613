"""Calls the package with arguments that work but for one or two, which are set to boundary values, from a seed (valid.py has the calls
that work). A call raises or returns; a crash ends the process, and with -v the last line tells the call. One of fifty networks that
such a call has built predicts.

    tests/python/with-package build-tests python/tests/fuzzed.py [CALLS [SEED]] [-v]"""
import collections
import faulthandler
import inspect
import os
import random
import sys

import numpy

import tutti
import valid

INTEGERS = [0, -1, 1, 2, 7, -2, 100, 2 ** 31 - 1, 2 ** 31, -2 ** 31, 2 ** 63 - 1, 2 ** 63, -2 ** 63, 10 ** 30, 1.5, "3", True, None, numpy.int64(3), numpy.uint8(255)]
FLOATS = [0.0, -0.0, 1.0, -1.0, 1e-45, 1e300, -1e38, float("nan"), float("inf"), float("-inf"), 3, 2 ** 70, "0.5", None, numpy.float16(0.5)]
TEXTS = ["", "x", "mean", "\0", "ä" * 300, "no/such.file", "1,2", "a b", "-1", "%s%n", None, 3]
LARGE = 1 << 20     # numbers of an output that is computed
FRESH = 40          # calls with one trainer


def tensor(dice, network):
    return network.input(None, dice.choice([(), 4, 1, (3, 8), (1, 1), (3, 8, 8), (2, 3, 4, 5), (tutti.SEQUENCE, 3), (1,) * 7]), dice.choice(["float32", "int32", "float32", "bool"]))


def array(dice, given):
    """The array, otherwise laid out, of another type, or with other numbers or sizes."""
    changed = dice.choice([
        lambda: given[:0], lambda: given[:1], lambda: given[..., :-1], lambda: given[::-1], lambda: numpy.asfortranarray(given), lambda: given[None], lambda: given.reshape(-1),
        lambda: given.astype(dice.choice(["float64", "float16", "int8", "int64", "uint64", "bool", "complex64", "U5", "O", ">f4", ">i8", "longdouble"])), lambda: given * numpy.nan,
        lambda: numpy.full_like(given, 2 ** 31 - 1), lambda: numpy.full_like(given, -5), lambda: numpy.broadcast_to(given[:1], given.shape), lambda: numpy.float32(3),
        lambda: numpy.concatenate([given] * 9), lambda: given.tolist(), lambda: None, lambda: numpy.ma.masked_array(given), lambda: numpy.zeros((0, 0, 0))])
    with numpy.errstate(all="ignore"):
        return changed()


def boundary(dice, given, network):
    """A value of the same kind at a boundary of it, and sometimes of another kind."""
    if dice.random() < 0.05:
        return dice.choice([None, object(), {}, b"bytes", 1j, len, [], tensor(dice, network)])
    if isinstance(given, bool):
        return dice.choice([not given, 2, None, "yes", numpy.bool_(True)])
    if isinstance(given, tutti.Tensor):
        return dice.choice([lambda: tensor(dice, network), lambda: tensor(dice, tutti.Network()), lambda: 0.5, lambda: numpy.ones((3, 1)), lambda: numpy.ones(0), lambda: given])()
    if isinstance(given, numpy.ndarray):
        return array(dice, given)
    if isinstance(given, int):
        return dice.choice(INTEGERS)
    if isinstance(given, float):
        return dice.choice(FLOATS)
    if isinstance(given, str):
        return dice.choice([*TEXTS, given.upper(), given + "x"])
    if isinstance(given, (list, tuple)):
        items = list(given)
        if items and dice.random() < 0.6:
            place = dice.randrange(len(items))
            items[place] = boundary(dice, items[place], network)
        else:
            items = dice.choice([[], items * 9, items + items[:1], items[:-1], items[:1]])
        return type(given)(items)
    if isinstance(given, dict):
        return {name: boundary(dice, value, network) if dice.random() < 0.5 else value for name, value in given.items()}
    return dice.choice([None, 3, 0.5, "x", given])


def optional(dice, function, network):
    """An argument that a call of it may have besides: its name and a value by its type."""
    free = [one for one in inspect.signature(function).parameters.values() if one.kind == one.KEYWORD_ONLY and one.default is not one.empty and one.name not in ("network", "callback")]
    if not free:
        return {}
    one = dice.choice(free)
    hint, default = str(one.annotation), one.default
    if "Operand" in hint or "Tensor" in hint:
        return {one.name: tensor(dice, network)}
    like = default if default is not None else (2, 2) if "Shape" in hint or "Sequence[int" in hint else [0.5, 0.5] if "Sequence[float" in hint else "x" if one.name == "name" else 1
    return {one.name: boundary(dice, like, network)}


def changed(dice, function, given, named, network):
    """The arguments, one or two of them at boundaries."""
    given, named = list(given), dict(named)
    for _ in range(dice.choice([1, 1, 2])):
        places = [*range(len(given)), *named, None]
        place = dice.choice(places)
        if place is None:
            named |= optional(dice, function, network)
        elif isinstance(place, int):
            given[place] = boundary(dice, given[place], network)
        elif place != "network":
            named[place] = boundary(dice, named[place], network)
    return given, named


def computed(made):
    """Predicts with a network that a call has built, if its arrays are small."""
    output = made[0] if isinstance(made, tuple) else made
    shapes = [one.shape for one in output.network.inputs.values()] + [output.shape] + [shape for _, _, shape, _ in output.network.layers()]
    if any(-2 in shape or numpy.prod([float(size) for size in shape]) > LARGE for shape in shapes) or output.network.parameter_count > LARGE:
        return
    with tutti.Trainer(output) as trainer:
        trainer.predict({name: numpy.ones((3, *one.shape), one.dtype) for name, one in output.network.inputs.items()})


class Calls:
    def __init__(self, seed):
        self.dice, self.listed, self.kinds, self.trainer, self.left = random.Random(seed), valid.calls(), collections.Counter(), None, 0

    def fresh(self):
        if self.left == 0:
            given, named = valid.trained(tutti.Network())
            self.trainer, self.left = tutti.Trainer(*given, **named), FRESH
            self.trainer.step(valid.X, valid.Y)
            self.trainer.save(f"{valid.FOLDER}/m")
            self.trainer.export(f"{valid.FOLDER}/m.onnx")
        self.left -= 1
        return self.trainer

    def call(self, number):
        name, target, make = self.listed[number % len(self.listed)]
        network = tutti.Network()
        function = target(network, self.fresh())
        given, named = changed(self.dice, function, *make(network), network)
        if "-v" in sys.argv:
            print(f"{number}: {name}(*{given!r}, **{named!r})"[:2000], file=sys.stderr, flush=True)
        try:
            made = function(*given, **named)
            self.kinds["returned"] += 1
            if isinstance(made, (tutti.Tensor, tuple)) and self.dice.random() < 0.02 and name != "custom":
                computed(made)
        except Exception as error:
            reached = isinstance(error, tutti.Error)
            self.kinds["raised by the library" if reached else type(error).__name__] += 1
            if isinstance(error, (SystemError, AssertionError)) or not str(error) or "\n" in str(error).strip():
                print(f"{number}: {name}: {type(error).__name__}: {error}", flush=True)
        network.close()


def main(count=1000, seed=1):
    faulthandler.enable()
    os.chdir(valid.FOLDER)     # for calls that write files of any name
    calls = Calls(seed)
    for number in range(count):
        calls.call(number)
    reached = calls.kinds["returned"] + calls.kinds["raised by the library"]
    print(f"{count} calls, {reached} reached the library: {dict(calls.kinds)}")


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:] if word.isdigit()))
