"""Operators that move elements: views, joins, parts, types, padding, rows random numbers."""
import math

import torch

from .values import Loss, Refused, Value, multiple_of, outer_after


def moved(walk, self, tensor, outer):
    """The result of what only reorders elements."""
    return walk.result(tensor, [self], outer=outer, source=self.source)


def reshape(walk, self, **_):
    """Any operator that keeps the order of elements, to the shape that PyTorch gives its result."""
    if isinstance(self, Loss):
        return self
    shape = walk.shape()
    outer = outer_after(self, shape)
    made = Value(walk, shape, self.dtype, outer=outer)
    return moved(walk, self, walk.reshaped(self.tensor, made.sample), outer)


def permuted(walk, self, dims):
    dims = [self.shape.counted(dim) for dim in dims]
    order = [place for dim in dims for place in self.places(dim)]
    tensor = self.tensor if order == sorted(order) else walk.op("transpose", self.floats, perm=order)
    return moved(walk, self, tensor, self.outer)


def transpose(walk, self, dim0=0, dim1=1):
    dims = list(range(self.shape.rank))
    if len(dims) < 2:
        return same(walk, self)
    dim0, dim1 = self.shape.counted(dim0), self.shape.counted(dim1)
    dims[dim0], dims[dim1] = dims[dim1], dims[dim0]
    return permuted(walk, self, dims)


def movedim(walk, self, source, destination):
    source, destination = ([one] if isinstance(one, int) else list(one) for one in (source, destination))
    source, destination = ([self.shape.counted(one) for one in ones] for ones in (source, destination))
    left = [dim for dim in range(self.shape.rank) if dim not in source]
    dims = [None] * self.shape.rank
    for one, to in zip(source, destination):
        dims[to] = one
    return permuted(walk, self, [left.pop(0) if dim is None else dim for dim in dims])


def same(walk, self, **_):
    return self


def detached(walk, value):
    """The same numbers without a gradient: rounding has none, and at 2^60 times it changes no number that is not tiny."""
    if not value.trains:
        return value
    tensor = walk.op("scale", walk.op("round", walk.op("scale", value.floats, factor=2.0 ** 60)), factor=2.0 ** -60)
    return Value(walk, value.shape, value.dtype, tensor, outer=value.outer, varies=value.varies)


def detach(walk, self, **_):
    if isinstance(self, Loss):
        raise Refused("a loss that does not train")
    return detached(walk, self)


def to(walk, self, dtype=None, other=None, **_):
    if isinstance(self, Loss):
        return self
    dtype = other.dtype if other is not None else dtype or self.dtype
    if dtype == self.dtype:
        return self
    if dtype == torch.bool:
        return walk.result(walk.op("not", walk.op("equal", self.floats, 0.0)), [self], outer=self.outer)
    if dtype in (torch.float32, torch.float64):
        return walk.result(self.floats, [self], outer=self.outer)
    if dtype in (torch.int64, torch.int32):
        tensor = self.tensor if self.is_integer else walk.op("trunc", self.floats)
        return walk.result(tensor, [self], outer=self.outer, source=self.source)
    raise Refused(f"numbers of {dtype}")


def expand(walk, self, **_):
    shape = walk.shape()
    if self.axis is not None:
        added = shape.rank - self.shape.rank
        if self.axis + added != shape.axis or self.shape.sizes[self.axis] != shape.sizes[shape.axis]:
            raise Refused("it expands another axis to the batch")
        made = Value(walk, shape, self.dtype, outer=self.outer)
        tensor = self.tensor if self.sample == made.sample else walk.op("expand", self.floats, shape=list(made.sample))
        return moved(walk, self, tensor, self.outer)
    if shape.axis is None:
        return walk.result(walk.op("expand", self.floats, shape=list(shape.sizes) or [1]), [self])
    if shape.sizes[shape.axis] != 1:
        raise Refused("it expands an axis to more than the batch")
    at = shape.axis - (shape.rank - self.shape.rank)
    have = [1] * max(0, -at) + list(self.shape.sizes)
    at = max(0, at)
    have = have[:at] + have[at + 1:] if self.shape.rank > shape.rank - shape.axis - 1 else list(self.shape.sizes)
    wanted = [size for axis, size in enumerate(shape.sizes) if axis != shape.axis]
    tensor = walk.reshaped(self.floats, have or [1])
    tensor = tensor if list(tensor.shape) == (wanted or [1]) else walk.op("expand", tensor, shape=wanted or [1])
    return virtual(walk, self, tensor, shape)


def copy(walk, self, src, non_blocking=False):
    """x[...] = y: y with the shape and the type of x."""
    return to(walk, src if src.shape == self.shape else expand(walk, src), dtype=self.dtype)


def virtual(walk, self, tensor, shape):
    """A value that is the same for all samples, with an axis of the batch."""
    value = Value(walk, shape, self.dtype, tensor, trains=self.trains, fill=self.fill)
    value.made = walk.reshaped(tensor, value.sample or (1,))
    return value


def repeat(walk, self, repeats):
    shape, added = walk.shape(), len(repeats) - self.shape.rank
    if self.axis is None and shape.axis is not None:
        if shape.axis < added or self.shape.sizes[shape.axis - added] == 1:
            others = [count for axis, count in enumerate(repeats) if axis != shape.axis]
            sizes = [1] * added + list(self.shape.sizes)
            if shape.sizes[shape.axis] != 1:
                raise Refused("it repeats to more than the batch")
            del sizes[shape.axis]
            tensor = walk.reshaped(self.floats, sizes or [1])
            return virtual(walk, self, walk.op("tile", tensor, repeats=others) if any(count != 1 for count in others) else tensor, shape)
        raise Refused("it repeats an axis to the batch")
    if any(isinstance(count, torch.SymInt) for count in repeats):
        raise Refused("repeats by the number of samples")
    if self.axis is not None and repeats[self.axis + added] != 1:
        raise Refused("it repeats the batch")
    places = []
    for axis, count in enumerate(repeats):
        batched = self.axis is not None and axis == self.axis + added
        places += [1] * len(self.split) if batched else [count]
    tensor = walk.reshaped(self.floats, [1] * added + list(self.sample)) if added else self.floats
    return walk.result(walk.op("tile", tensor, repeats=places), [self], outer=self.outer)


def repeat_interleave(walk, self, repeats, dim=None, output_size=None):
    """Each element of an axis several times; of the batch: as rows of each sample."""
    if not isinstance(repeats, int) or dim is None or repeats < 1:
        raise Refused("numbers of repeats that differ, or without an axis")
    dim, x = self.shape.counted(dim), self.floats
    after = self.places(dim)[-1] + 1 if dim != self.axis or self.split else self.axis
    if dim == self.axis and self.rows == 1:
        after = self.axis + (self.outer != 1)
    sizes = (*self.sample[:after], repeats, *self.sample[after:])
    x = walk.op("expand", walk.reshaped(x, (*self.sample[:after], 1, *self.sample[after:])), shape=list(sizes)) if repeats > 1 else x
    return walk.result(walk.reshaped(x, Value(walk, walk.shape(), self.dtype, outer=self.outer).sample), [self], outer=self.outer)


# ---------------------------------------------------------------------------------------------------------- parts ----

def part(walk, self, dim, start, end, step=1):
    """x[..., start:end:step, ...] within a sample, as a tensor; along the parts of the batch that torch.cat() made too."""
    dim = self.shape.counted(dim)
    if dim == self.axis:
        raise Refused("a part of the batch")
    if self.sample[self.place(dim)] == (end - start) and step == 1 and start == 0:
        return self.tensor
    return walk.op("slice", self.floats, axes=self.place(dim), starts=start, ends=end, steps=step)


def bounds(size, start, end):
    start = 0 if start is None else start + size if start < 0 else start
    end = size if end is None else end + size if end < 0 else end
    return max(0, min(size, start)), max(0, min(size, end))


def slice_(walk, self, dim=0, start=None, end=None, step=1):
    dim = self.shape.counted(dim)
    if dim == self.axis:
        return slice_batch(walk, self, start, end, step)
    start, end = bounds(self.shape.sizes[dim], start, end if isinstance(end, int) else None)
    if start >= end:
        raise Refused("an empty part")
    if (start, end, step) == (0, self.shape.sizes[dim], 1):
        return self
    return moved(walk, self, part(walk, self, dim, start, end, step), self.outer)


def slice_batch(walk, self, start, end, step):
    """A part of a batch that torch.cat(..., 0) made of several, as x[:n] or x[n:] with the number of samples n."""
    start, whole = (0, True) if start in (None, 0) else multiple_of(start, walk.symbol)
    end, ends = (self.outer * self.rows, True) if isinstance(end, int) and end > 2 ** 60 or end is None else multiple_of(end, walk.symbol)
    if not whole or not ends or step != 1 or start % self.rows or end % self.rows:
        raise Refused("a part of the batch")
    first, last = start // self.rows, end // self.rows
    if (first, last) == (0, self.outer):
        return self
    if not 0 <= first < last <= self.outer:
        raise Refused("a part of the batch")
    tensor = walk.op("slice", self.floats, axes=self.axis, starts=first, ends=last)
    sizes = list(self.sample)
    sizes[self.axis:self.axis + 1] = [last - first] if last - first > 1 else []
    return walk.result(walk.reshaped(tensor, sizes), [self], outer=last - first)


def broadcast_tensors(walk, tensors):
    """All with the same shape: what is elementwise broadcasts by itself, so only tensors of equal shapes are left as they are."""
    if any(value.shape != tensors[0].shape for value in tensors):
        raise Refused("tensors of different shapes")
    return list(tensors)


def select(walk, self, dim, index):
    dim = self.shape.counted(dim)
    index = index + self.shape.sizes[dim] if index < 0 else index
    tensor = part(walk, self, dim, index, index + 1)
    sizes = list(self.sample)
    del sizes[self.place(dim)]
    return moved(walk, self, walk.reshaped(tensor, sizes or ([1] if self.axis is None else [])), self.outer)


def narrow(walk, self, dim, start, length):
    return slice_(walk, self, dim, start, start + length)


def pieces(walk, self, dim, sizes):
    made, start = [], 0
    for index, size in enumerate(sizes):
        made.append(walk.result(part(walk, self, dim, start, start + size), [self], outer=self.outer, index=index, source=self.source))
        start += size
    return made


def along_batch(walk, self):
    """Parts of a batch that torch.cat(..., 0) made of several."""
    count = len(walk.meta())
    if self.outer != count or self.axis is None:
        raise Refused("parts of the batch")
    place = self.axis
    made = []
    for index in range(count):
        sizes = [size for position, size in enumerate(self.sample) if position != place]
        tensor = walk.op("slice", self.floats, axes=place, starts=index, ends=index + 1)
        made.append(walk.result(walk.reshaped(tensor, sizes), [self], index=index))
    return made


def split(walk, self, split_size=None, split_sizes=None, chunks=None, dim=0, **_):
    dim = self.shape.counted(dim)
    if dim == self.axis:
        return along_batch(walk, self)
    return pieces(walk, self, dim, [int(one.shape[dim]) for one in walk.meta()])


def unbind(walk, self, dim=0):
    dim = self.shape.counted(dim)
    if dim == self.axis:
        raise Refused("the samples one by one")
    made, sizes = [], list(self.sample)
    del sizes[self.place(dim)]
    for index in range(self.shape.sizes[dim]):
        tensor = walk.reshaped(part(walk, self, dim, index, index + 1), sizes or ([1] if self.axis is None else []))
        made.append(walk.result(tensor, [self], outer=self.outer, index=index, source=self.source))
    return made


def flip(walk, self, dims):
    axes = [self.place(dim) for dim in dims]
    ones = [-1] * len(axes)
    tensor = walk.op("slice", self.floats, axes=axes, starts=ones, ends=[-2 ** 31] * len(axes), steps=ones)
    return walk.result(tensor, [self], outer=self.outer)


def roll(walk, self, shifts, dims=()):
    shifts, dims = ([one] if isinstance(one, int) else list(one) for one in (shifts, dims))
    if len(dims) != len(shifts):
        raise Refused("without axes")
    tensor = self.floats
    for shift, dim in zip(shifts, dims):
        axis, size = self.place(dim), self.shape.sizes[self.shape.counted(dim)]
        at = -shift % size
        if at:
            tensor = walk.op("concat", walk.op("slice", tensor, axes=axis, starts=at, ends=size), walk.op("slice", tensor, axes=axis, starts=0, ends=at), axis=axis)
    return walk.result(tensor, [self], outer=self.outer)


# ---------------------------------------------------------------------------------------------------------- joins ----

def joined(walk, values, axis):
    """Tensors of samples, joined along an axis of the sample."""
    tensors = [walk.spread(value) for value in values] if any(value.varies for value in values) else [value.floats for value in values]
    while len(tensors) > 8:
        tensors = [walk.op("concat", *tensors[at:at + 8], axis=axis) if len(tensors[at:at + 8]) > 1 else tensors[at] for at in range(0, len(tensors), 8)]
    return walk.op("concat", *tensors, axis=axis) if len(tensors) > 1 else tensors[0]


def cat(walk, tensors, dim=0):
    values = [value for value in tensors if 0 not in value.shape.sizes]
    first = next((value for value in values if value.axis is not None), values[0])
    dim = first.shape.counted(dim)
    if any(value.axis != first.axis for value in values):
        raise Refused("the batch is at different axes of its inputs")
    if dim == first.axis:
        if any(value.split for value in values):
            raise Refused("it joins batches that are joined already")
        made = [walk.reshaped(walk.spread(value), (*value.sample[:dim], 1, *value.sample[dim:])) for value in values]
        return walk.result(walk.op("concat", *made, axis=dim), values, outer=len(values))
    if any((value.outer, value.rows) != (first.outer, first.rows) for value in values):
        raise Refused("its inputs have different batches")
    return walk.result(joined(walk, values, first.place(dim)), values, outer=first.outer)


def stack(walk, tensors, dim=0):
    shape = walk.shape()
    dim = shape.counted(dim)
    first = next((value for value in tensors if value.axis is not None), tensors[0])
    if any((value.axis, value.outer, value.rows) != (first.axis, first.outer, first.rows) for value in tensors):
        raise Refused("the batch is at different axes of its inputs")
    place = dim if first.axis is None or dim <= first.axis else dim - 1 + len(first.split)
    values = []
    for value in tensors:
        sizes = list(value.shape.sizes) if value.axis is None else list(value.sample)
        tensor = walk.spread(value) if any(one.varies for one in tensors) else value.floats
        values.append(walk.reshaped(tensor, sizes[:place] + [1] + sizes[place:]))
    while len(values) > 8:
        values = [walk.op("concat", *values[at:at + 8], axis=place) if len(values[at:at + 8]) > 1 else values[at] for at in range(0, len(values), 8)]
    return walk.result(walk.op("concat", *values, axis=place) if len(values) > 1 else values[0], list(tensors), outer=first.outer)


# ------------------------------------------------------------------------------------------------ padding, blocks ----

def pad(walk, self, pad, mode="constant", value=None):
    modes = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    before, after = [0] * len(self.sample), [0] * len(self.sample)
    for index in range(len(pad) // 2):
        if pad[2 * index] or pad[2 * index + 1]:
            place = self.place(self.shape.rank - 1 - index)
            before[place], after[place] = pad[2 * index:2 * index + 2]
    x = self.floats
    if any(size < 0 for size in before + after):
        cut = [place for place in range(len(before)) if before[place] < 0 or after[place] < 0]
        x = walk.op("slice", x, axes=cut, starts=[max(0, -before[place]) for place in cut], ends=[self.sample[place] - max(0, -after[place]) for place in cut])
        before, after = ([max(0, size) for size in sizes] for sizes in (before, after))
    if any(before) or any(after):
        x = walk.op("pad", x, before=before, after=after, mode=modes[mode], value=float(value or 0))
    return walk.result(x, [self], outer=self.outer)


def padded(mode):
    return lambda walk, self, padding: pad(walk, self, padding, mode)


def shuffle(operation):
    def build(walk, self, upscale_factor=None, downscale_factor=None):
        if self.axis != 0 or self.split or self.shape.rank != 4:
            raise Refused("another shape than [N, C, H, W]")
        return walk.result(walk.op(operation, self.floats, blocksize=upscale_factor or downscale_factor, mode="crd"), [self])
    return build


# ------------------------------------------------------------------------------------------------------- new tensors ----

def full(walk, size=None, fill_value=0, self=None, dtype=None, **_):
    """A new tensor of one number."""
    shape, dtype = walk.shape(), walk.meta().dtype
    number = float(torch.full((), fill_value, dtype=dtype))
    made = Value(walk, shape, dtype, fill=number)
    made.made = walk.op("full", shape=list(made.sample) or [1], value=number)
    made.made = walk.reshaped(made.made, made.sample)
    return made


def fill(walk, self, value):
    """PyTorch 2.6 has the number as a constant."""
    if isinstance(value, Value):
        if value.known is None or value.known.numel() != 1:
            raise Refused("a number that is computed")
        value = value.known.item()
    return full(walk, fill_value=value)


def bernoulli(walk, self, p=None, generator=None):
    """1 with this probability, else 0: dropout of ones, without its factor."""
    if not isinstance(p, float) or not 0 < p <= 1:
        raise Refused("probabilities that are a tensor, or 0")
    ones = full(walk, fill_value=1)
    if ones.axis is None:
        raise Refused("random numbers that are the same for all samples")
    tensor = walk.op("scale", walk.op("dropout", walk.spread(ones), ratio=1 - p), factor=p)
    return Value(walk, ones.shape, ones.dtype, tensor, outer=ones.outer, varies=True)


def filled(number):
    return lambda walk, **_: full(walk, fill_value=number)


OPERATORS = {
    **dict.fromkeys(("view", "reshape", "_unsafe_view", "flatten", "unflatten", "squeeze", "unsqueeze", "view_as", "reshape_as"), reshape),
    **dict.fromkeys(("contiguous", "clone", "alias", "lift_fresh_copy", "lift_fresh", "numpy_T_"), same),
    **dict.fromkeys(("new_zeros", "zeros", "zeros_like"), filled(0)), **dict.fromkeys(("new_ones", "ones", "ones_like"), filled(1)),
    **dict.fromkeys(("full", "new_full", "full_like"), full), "zero": filled(0), "fill": fill, "bernoulli": bernoulli,
    **dict.fromkeys(("empty", "empty_like", "new_empty"), filled(math.nan)), **dict.fromkeys(("to", "_to_copy", "type_as", "float_"), to),
    "permute": permuted, "transpose": transpose, "swapaxes": lambda walk, self, axis0, axis1: transpose(walk, self, axis0, axis1),
    "t": transpose, "numpy_T": lambda walk, self: transpose(walk, self), **dict.fromkeys(("mT", "mH", "matrix_H", "adjoint"), lambda walk, self: transpose(walk, self, -2, -1)), "movedim": movedim,
    "detach": detach, "copy": copy, "expand": expand, "expand_as": expand, "repeat": repeat, "repeat_interleave": repeat_interleave, "slice": slice_, "select": select, "narrow": narrow, "split": split,
    "split_with_sizes": split, "chunk": split, "tensor_split": split, "unbind": unbind, "flip": flip, "roll": roll, "cat": cat, "concat": cat,
    "concatenate": cat, "stack": stack, "broadcast_tensors": broadcast_tensors, "pad": pad, "constant_pad_nd": pad, "reflection_pad1d": padded("reflect"), "reflection_pad2d": padded("reflect"),
    "replication_pad1d": padded("replicate"), "replication_pad2d": padded("replicate"), "pixel_shuffle": shuffle("depth_to_space"),
    "pixel_unshuffle": shuffle("space_to_depth"), }
