"""What a graph is traced for, besides tensors: the modules, their attributes, and what a loss and forward() read from outside.

A graph has these as constants, so a network is made anew when they change."""
import argparse
import contextlib
import dataclasses
import operator
import types

import torch
from torch._subclasses.fake_tensor import FakeTensor

PLAIN = (bool, int, float, complex, str, type(None))
FIXED = frozenset((*PLAIN, tuple))      # types of values that are compared as they are
OWN = frozenset(vars(torch.nn.Module())) - {"training"}     # what every module has
MOST = 64       # values of a list that are compared
OPTIONS = types.SimpleNamespace, argparse.Namespace
TRAINS = operator.attrgetter("requires_grad")


class Same:
    """A tensor that is itself alone."""
    __slots__ = ("tensor",)

    def __init__(self, tensor):
        self.tensor = tensor

    def __eq__(self, other):
        return isinstance(other, Same) and self.tensor is other.tensor

    def __hash__(self):
        return id(self.tensor)


def plain(value):
    """What a number, a word, a list or dictionary of them, options or a tensor are compared by; Ellipsis for all else, which is not compared."""
    if isinstance(value, PLAIN):
        return value
    if isinstance(value, torch.Tensor):     # one that an export left has no numbers
        return FakeTensor if isinstance(value, FakeTensor) else (id(value), None if value.is_inference() else value._version)
    if isinstance(value, (tuple, list)) and len(value) <= MOST:
        return all_plain(value)
    if isinstance(value, dict) and len(value) <= MOST:
        names, made = all_plain(value), all_plain(value.values())
        return ... if names is ... or made is ... else tuple(zip(names, made))
    if isinstance(value, OPTIONS) or (dataclasses.is_dataclass(value) and not isinstance(value, type) and hasattr(value, "__dict__")):
        return plain_in(vars(value))
    return ...


def all_plain(values):
    """Tensors in a list are compared by what they are: their numbers are, where they are constants of a network."""
    made = tuple(one if isinstance(one, PLAIN) else Same(one) if isinstance(one, torch.Tensor) and not isinstance(one, FakeTensor) else ... for one in values)
    return ... if ... in made else made


def plain_in(found):
    return tuple((name, made) for name, made in ((name, plain(value)) for name, value in found.items() if name not in OWN) if made is not ...)


def read_by(function):
    """What a function has from outside of it, by name."""
    function = getattr(function, "__func__", function)
    code, found = getattr(function, "__code__", None), {}
    if code is not None:
        known = function.__globals__
        found.update((name, known[name]) for name in code.co_names if name in known)
        for name, cell in zip(code.co_freevars, function.__closure__ or ()):
            with contextlib.suppress(ValueError):   # not set yet
                found[name] = cell.cell_contents
    return found


def read_by_loss(loss):
    """What a loss reads: attributes of an object, what its function has from outside of it."""
    owner = getattr(loss, "__self__", loss)
    call = loss if hasattr(getattr(loss, "__func__", loss), "__code__") else getattr(type(loss), "__call__", loss)
    return {**(dict(vars(owner)) if hasattr(owner, "__dict__") else {}), **read_by(call)}


def forwards(modules):
    """The functions forward() of modules, where they are not of PyTorch."""
    found = dict.fromkeys(getattr(one.forward, "__func__", one.forward) for one in modules)
    return [one for one in found if not (getattr(one, "__module__", "") or "torch.").startswith("torch.")]


def attributes_of(one):
    return {name: value for name, value in vars(one).items() if name not in OWN}


class Row:
    """A module as it was. Its parts are held, so that no other has the place of one in memory."""

    def __init__(self, one):
        self.own, self.held = vars(one), [[*found.values()] for found in (one._parameters, one._buffers, one._modules)]
        found = attributes_of(one)
        fixed = [name for name, value in found.items() if type(value) in FIXED and not (type(value) is tuple and plain(value) is ...)]
        self.others = [(name, type(found[name]), plain(found[name])) for name in found if name not in fixed]
        self.count, self.get = len(self.own), operator.itemgetter("training", *fixed)
        self.fixed, self.parameters = self.get(self.own), [each for each in self.held[0] if each is not None]
        self.trains = [*map(TRAINS, self.parameters)]
        self.parts = [(found, [*map(id, held)]) for found, held in zip((one._parameters, one._buffers, one._modules), self.held)]

    def is_same(self):
        own = self.own
        if len(own) != self.count or self.get(own) != self.fixed:
            return False
        for found, ids in self.parts:
            if (found or ids) and [*map(id, found.values())] != ids:
                return False
        if self.parameters and [*map(TRAINS, self.parameters)] != self.trains:
            return False
        for name, kind, made in self.others:
            if type(own[name]) is not kind or (made is not ... and plain(own[name]) != made):
                return False
        return True


class Watch:
    """Settings of modules and of a loss, which are put together again where something has changed."""

    def __init__(self, modules, loss=None):
        self.modules, self.loss, self.made, self.rows = modules, loss, None, []

    def outside(self):
        """What forward() and the loss read from variables."""
        made = tuple(plain_in(read_by(one)) for one in self.functions)
        if self.loss is None or isinstance(self.loss, torch.nn.Module):
            return made
        return (*made, plain_in(read_by_loss(self.loss)))

    def others(self):
        """Modules that the loss calls, and does not have."""
        return [] if self.loss is None or isinstance(self.loss, torch.nn.Module) else [one for one in read_by_loss(self.loss).values() if isinstance(one, torch.nn.Module)]

    def is_same(self):
        try:
            return self.made is not None and all([one.is_same() for one in self.rows]) and self.outside() == self.found and self.others() == self.called
        except KeyError:    # an attribute was deleted
            return False

    def settings(self):
        if not self.is_same():
            self.called = self.others()
            found = [one for module in (*self.modules, *self.called) for one in module.modules()]
            self.rows, self.functions = [Row(one) for one in found], forwards(found)
            self.found = self.outside()
            self.made = settings(found) + tuple((None, one, ()) for one in self.found)
        return self.made


def settings(modules):
    """(module, attributes that are compared, parameters and buffers) of each module."""
    made = []
    for one in modules:
        tensors = (*one._parameters.values(), *one._buffers.values())
        made.append((one, plain_in(vars(one)), tuple((id(tensor), tensor.requires_grad) for tensor in tensors if tensor is not None)))
    return tuple(made)


def changed(before, after):
    """The names of attributes that differ."""
    found = []
    for (module, one, _), (other, two, _) in zip(before, after):
        if module is other:
            one, two, owner = dict(one), dict(two), "" if module is None else type(module).__name__ + "."
            found += [owner + name for name in sorted(one.keys() | two.keys()) if one.get(name, ...) != two.get(name, ...)]
    return found
