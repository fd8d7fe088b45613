"""The table of modules that modules.py trains, and how their arrays are made."""
from typing import Callable, NamedTuple

import torch
from torch import nn

CASES = {}


class Case(NamedTuple):
    """make() gives the module; `shapes` are those of a sample's arrays, the targets last; `loop` trains it, if not step by step."""
    make: Callable
    shapes: tuple
    loss: Callable
    rule: Callable
    batch: int
    loop: Callable | None


def case(*shapes, loss=None, rule=None, batch=4, name=None, loop=None):
    def add(make):
        CASES[name or make.__name__.replace("_", " ")] = Case(make, shapes, loss or nn.CrossEntropyLoss(), rule or sgd, batch, loop)
        return make
    return add


def arrays(shapes, batch, random):
    """Arrays of a batch. A shape is (sizes), whose numbers are normal, or (sizes, high): whole numbers below high; a dictionary names them."""
    def one(shape):
        if isinstance(shape, dict):
            return {name: one(part) for name, part in shape.items()}
        if len(shape) == 2 and isinstance(shape[0], tuple):
            sizes, high = shape
            if high == "probability":
                return torch.rand(batch, *sizes, generator=random)
            return torch.randint(0, high, (batch, *sizes), generator=random)
        return torch.randn(batch, *shape, generator=random)
    return [one(shape) for shape in shapes]


def sgd(parameters):
    return torch.optim.SGD(parameters, 0.05, momentum=0.9)


def adamw(parameters):
    return torch.optim.AdamW(parameters, 1e-3)
