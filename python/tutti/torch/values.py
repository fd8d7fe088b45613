"""Values of a module's graph. Tutti's batch is implied, PyTorch's is an axis like any other: a Value says which one it is.

The size of the batch axis is a multiple of the number of samples. Its part `outer` counts before the samples, as after
torch.cat([a, b], 0), its part `rows` after them, as after x.flatten(0, 1). Both are axes of the sample in the network, if they
are not 1, in PyTorch's order: so reshape() and permute() of PyTorch are those of the sample."""
import math
from typing import NamedTuple

import torch


EXACT = 1 << 24     # whole numbers below it are exact in float32
ROUNDS = "whole numbers from 2^24 on are rounded, as it computes with float32"
COUNTS = 2, 5   # numbers of samples for which numbers are computed that depend on them


class Refused(Exception):
    """What a node asks for cannot be done."""


def as_real(tensor):
    """A tensor, or the view of a complex one with another axis for its two parts."""
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


def like(parameter, array):
    """An array of the network as a tensor of a parameter's kind."""
    made = torch.from_numpy(array)
    made = torch.view_as_complex(made.reshape(*parameter.shape, 2)) if parameter.is_complex() else made.reshape(parameter.shape)
    return made.to(parameter.device)


def is_whole(dtype):
    return not dtype.is_floating_point and not dtype.is_complex and dtype != torch.bool


class Shape(NamedTuple):
    """Sizes, and the axis of the batch, whose size is given for one sample."""
    sizes: tuple[int, ...]
    axis: int | None

    @property
    def rank(self):
        return len(self.sizes)

    def counted(self, dim):
        return dim + self.rank if dim < 0 else dim


def multiple_of(size, symbol):
    """(number, False), or (multiple, True) of the number of samples."""
    if isinstance(size, int):
        return size, False
    expression = size.node.expr
    if not expression.free_symbols:
        return int(expression), False
    if expression.free_symbols != {symbol}:
        raise Refused(f"the size {expression} is not known before the step")
    found = {samples: int(expression.subs(symbol, samples)) for samples in (2, 3, 7, 60, 61)}
    if len(set(found.values())) == 1:
        return found[2], False
    if any(number != samples * (found[2] // 2) for samples, number in found.items()):
        raise Refused(f"the size {expression} is no multiple of the number of samples")
    return found[2] // 2, True


def shape_of(sizes, symbol):
    made = [multiple_of(size, symbol) for size in sizes]
    axes = [axis for axis, (_, batched) in enumerate(made) if batched]
    if len(axes) > 1:
        raise Refused("two axes are the batch: samples are computed apart from each other")
    return Shape(tuple(size for size, _ in made), axes[0] if axes else None)


class Value:
    """A tensor of PyTorch's graph: `tensor` in the network, or `known` numbers that depend on nothing.

    counted: these numbers for each of COUNTS samples, where the number of samples is part of what they are made of. varies: it has the
    batch in the network. Else it is the same for all samples, also if PyTorch has expanded it to a batch.
    trains: it depends on parameters. fill: the number in all elements. source: names of the inputs that it only
    reorders. node: that of the module's graph which it is the result of."""

    def __init__(self, walk, shape, dtype, tensor=None, *, outer=1, varies=False, trains=False, known=None, counted=None, fill=None, source=()):
        self.walk, self.shape, self.dtype, self.made, self.outer = walk, shape, dtype, tensor, outer
        self.varies, self.trains, self.known, self.counted, self.fill, self.source = varies, trains, known, counted, fill, source
        self.node = None

    @property
    def axis(self):
        return self.shape.axis

    @property
    def rows(self):
        return 1 if self.axis is None else self.shape.sizes[self.axis] // self.outer

    @property
    def tensor(self):
        if self.made is None:
            array = self.numbers().detach().cpu()
            if array.is_floating_point():
                array = array.float()
            elif array.dtype == torch.int64 and array.numel() and array.abs().max() > 2 ** 31 - 1:
                raise Refused("constants do not fit int32")
            self.made = self.walk.network.constant(array.numpy().astype("float32" if array.dtype in (torch.float32, torch.bool) else "int32"))
        return self.made

    def numbers(self):
        """The known numbers of a sample."""
        if self.known is not None:
            return self.known
        if not same_for_all(self):
            raise Refused("numbers of samples, counted from the first one")
        return self.counted[0].unflatten(self.axis, (COUNTS[0], self.rows)).select(self.axis, 0).reshape(self.sample or (1,))

    @property
    def floats(self):
        """The tensor as float32, with which layers compute."""
        tensor = self.tensor
        if tensor.dtype == "int32":
            self.check_whole()
        return tensor if tensor.dtype == "float32" else self.walk.floats_of(tensor)

    def check_whole(self):
        """Whole numbers become float32: known ones must be exact then, inputs are looked at when they come."""
        self.walk.reads_wholes |= self.varies
        if self.walk.infers and (self.known is not None or self.counted is not None) and self.numbers().numel() and self.numbers().abs().max() >= EXACT:
            raise Refused(ROUNDS)

    @property
    def split(self):
        """The sizes into which the batch axis is divided in the sample."""
        return [size for size in (self.outer, self.rows) if size != 1] if self.axis is not None else []

    @property
    def sample(self):
        """The shape in the network."""
        sizes, axis = self.shape
        if axis is None:
            return tuple(sizes) or (1,)
        return (*sizes[:axis], *self.split, *sizes[axis + 1:])

    def place(self, dim):
        """The axis of the sample for one of PyTorch's that is not the batch."""
        dim = self.shape.counted(dim)
        if dim == self.axis:
            raise Refused(f"it works along the batch, axis {dim}: samples are computed apart from each other")
        return dim if self.axis is None or dim < self.axis else dim - 1 + len(self.split)

    def places(self, dim):
        """The same, where the batch axis stands for the axes into which it is divided."""
        dim = self.shape.counted(dim)
        return list(range(dim, dim + len(self.split))) if dim == self.axis else [self.place(dim)]

    @property
    def is_integer(self):
        return not self.dtype.is_floating_point


def same_for_all(value):
    """Whether known numbers are the same for each sample."""
    if value.counted is None:
        return True
    if value.axis is None or value.outer != 1:
        return False
    for count, array in zip(COUNTS, value.counted):
        array = array.unflatten(value.axis, (count, value.rows))
        if not torch.equal(array, array.narrow(value.axis, 0, 1).expand_as(array)):
            return False
    first = [array.unflatten(value.axis, (count, value.rows)).select(value.axis, 0) for count, array in zip(COUNTS, value.counted)]
    return torch.equal(*first)


class Term:
    """A part of a loss: factor * samples ** power * (product of scales) * (mean over elements and samples). `elements` makes the tensor
    of which it is the mean, `fused` the library's loss with this mean, where there is one. scales: functions of a batch's arrays."""

    def __init__(self, factor, elements, fused=None, power=0, scales=()):
        self.factor, self.elements, self.fused, self.power, self.scales = factor, elements, fused, power, tuple(scales)

    def changed(self, factor=1.0, power=0, scales=()):
        return Term(self.factor * factor, self.elements, self.fused, self.power + power, (*self.scales, *scales))

    @property
    def is_plain(self):
        return not self.power and not self.scales

    def scale(self, arrays):
        """What the mean is multiplied by, besides the factor, in a batch."""
        made = float(len(arrays[0])) ** self.power
        for scale in self.scales:
            made *= float(scale(arrays))
        return made


class Loss:
    """A number for the whole batch: the sum of terms. host: a function that computes it from the arrays of a batch, where it depends on
    these alone; it may have no terms then."""

    def __init__(self, terms, prediction, host=None):
        self.terms, self.prediction, self.host = list(terms), prediction, host

    def times(self, factor):
        return Loss([term.changed(factor=factor) for term in self.terms], self.prediction)

    def over_samples(self, power):
        return Loss([term.changed(power=power) for term in self.terms], self.prediction)

    def scaled(self, scale):
        return Loss([term.changed(scales=(scale,)) for term in self.terms], self.prediction)


def aligned(walk, values, *, integers=False):
    """Tensors of values that are broadcast with each other, and the `outer` of the result."""
    batched = [value for value in values if value.axis is not None]
    tensors = [value.tensor if integers else value.floats for value in values]
    if not batched:
        return tensors, 1
    first = batched[0]
    from_end = first.shape.rank - first.axis
    for value in batched[1:]:
        if value.shape.rank - value.axis != from_end or (value.outer, value.rows) != (first.outer, first.rows):
            raise Refused("the batch is at different axes of its inputs")
    for position, value in enumerate(values):
        at = value.shape.rank - from_end
        if value.axis is None and at >= 0:
            if value.shape.sizes[at] != 1:
                raise Refused(f"a tensor that is the same for all samples has the size {value.shape.sizes[at]} at the batch axis")
            wanted = (*value.shape.sizes[:at], *[1] * len(first.split), *value.shape.sizes[at + 1:]) or (1,)
            tensors[position] = walk.reshaped(tensors[position], wanted)
    return tensors, first.outer


def outer_after(value, shape):
    """The `outer` of a value after a change to this shape that keeps the order of its elements."""
    sizes, axis = shape
    if value.axis is None:
        return 1
    before = math.prod(value.shape.sizes[:value.axis]) * value.outer
    after = value.rows * math.prod(value.shape.sizes[value.axis + 1:])
    if axis is None:
        raise Refused("no axis of the new shape is the batch")
    new_before, new_after = math.prod(sizes[:axis]), math.prod(sizes[axis + 1:])
    if not new_before or not new_after or before % new_before or after % new_after or before // new_before * (after // new_after) != sizes[axis]:
        raise Refused("an axis of the new shape would join parts of different samples")
    return before // new_before
