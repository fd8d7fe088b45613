"""Operators that read and write by index."""
import torch

from .refusals import SIZE_OF_MASK
from .values import Refused, Value, aligned


def index_select(walk, self, dim, index):
    if index.axis is not None or index.shape.rank != 1:
        raise Refused("indices that differ from sample to sample")
    return walk.result(walk.op("gather", self.floats, index.tensor, axis=self.place(dim)), [self, index], outer=self.outer)


def index(walk, self, indices):
    """x[i], x[:, i], x[:, i, j] with numbers that are the same for all samples; x[arange(n), i] with a number for each sample."""
    used = [dim for dim, one in enumerate(indices) if one is not None]
    given = [indices[dim] for dim in used]
    if any(one.dtype == torch.bool for one in given):
        raise Refused(SIZE_OF_MASK)
    if used and used[0] == self.axis == 0 and counts_samples(given[0]):
        return of_each_sample(walk, self, given[1:], used[1:])
    if len(used) == 1 and (given[0].axis is None or self.axis is None and used[0] == 0):
        tensor = walk.op("gather", self.floats, given[0].tensor, axis=self.place(used[0]))
        return walk.result(tensor, [self, given[0]], outer=max(self.outer, given[0].outer))
    if any(one.axis is not None or one.known is None for one in given) or used != list(range(used[0], used[0] + len(used))):
        raise Refused("indices that differ from sample to sample, along other axes than the first ones, or along axes that are not next to each other")
    return flat(walk, self, [one.known for one in given], used)


def counts_samples(value):
    """Whether it is arange(n) of the number of samples, in any shape that is broadcast."""
    return value.counted is not None and all(torch.equal(array.flatten(), torch.arange(array.numel())) and array.shape[value.axis] == array.numel() for array in value.counted)


def of_each_sample(walk, self, given, used):
    """x[arange(n), i, j]: the first axes of a sample, by numbers of its own."""
    if self.split or used != list(range(1, len(used) + 1)) or any(one.axis not in (0, None) or one.split for one in given):
        raise Refused("an index of samples with others than for the first axes of a sample")
    if not given:
        return self
    x = walk.spread(self)
    if len(given) == 1:
        ids = given[0].tensor if given[0].varies else walk.spread(given[0])
        return walk.result(walk.op("gather", x, ids, axis=0), [self, *given])
    shape = torch.broadcast_shapes(*[one.sample for one in given])
    parts = [walk.reshaped(walk.op("expand", walk.spread(one), shape=list(shape)) if one.sample != tuple(shape) else walk.spread(one), (*shape, 1)) for one in given]
    return walk.result(walk.op("gather_nd", x, walk.op("concat", *parts, axis=len(shape))), [self, *given])


def flat(walk, self, given, used):
    """Along several axes: as along one that has all their elements."""
    places = [self.place(dim) for dim in used]
    if places != list(range(places[0], places[0] + len(places))):
        raise Refused("indices along axes before and after the batch")
    sizes = [self.sample[place] for place in places]
    at = torch.zeros((), dtype=torch.int64)
    for one, size in zip(given, sizes):
        at = at * size + torch.where(one < 0, one + size, one)
    rest = self.sample[places[-1] + 1:]
    count = 1
    for size in sizes:
        count *= size
    x = walk.reshaped(self.floats, (*self.sample[:places[0]], count, *rest))
    return walk.result(walk.op("gather", x, walk.known(at).tensor, axis=places[0]), [self], outer=self.outer)


def gather(walk, self, dim, index, sparse_grad=False):
    place = index.place(dim)
    if len(self.sample) != len(index.sample) or self.axis != index.axis:
        raise Refused("indices of other axes than the data's")
    tensors, outer = aligned(walk, [self, index])
    x, cut = tensors[0], [axis for axis, size in enumerate(index.sample) if axis != place and size < self.sample[axis]]
    if cut:
        x = walk.op("slice", x, axes=cut, starts=[0] * len(cut), ends=[index.sample[axis] for axis in cut])
    return walk.result(walk.op("gather_elements", x, tensors[1], axis=place), [self, index], outer=outer)


# --------------------------------------------------------------------------------------------------------- writes ----

def scatter(reduction):
    def build(walk, self, dim, index, src=None, value=None, reduce=None):
        if reduce is not None:
            raise Refused("a reduction by name")
        place = index.place(dim)
        if src is None:
            src = Value(walk, index.shape, torch.float32, walk.op("full", shape=list(index.sample), value=float(value)), outer=index.outer)
        if src.sample != index.sample or any(self.sample[axis] != size for axis, size in enumerate(index.sample) if axis != place):
            raise Refused("indices of other sizes than the data's, or than those of what is written")
        return scattered(walk, self, index, src, place, reduction)
    return build


def scattered(walk, self, index, src, place, reduction):
    tensors, outer = aligned(walk, [self, index, src], integers=True)
    data, ids, updates = [walk.spread(one) for one in (self, index, src)] if any(one.varies for one in (self, index, src)) else tensors
    ids = index.tensor if index.varies else ids
    return walk.result(walk.op("scatter_elements", data, ids, updates, axis=place, reduction=reduction), [self, index, src], outer=outer)


def scatter_reduce(walk, self, dim, index, src, reduce, include_self=True):
    """Sums, means and extremes of what goes to the same place, with what was there, or only if nothing goes there."""
    place, (data, updates) = index.place(dim), (self, src)
    if src.sample != index.sample or any(self.sample[axis] != size for axis, size in enumerate(index.sample) if axis != place):
        raise Refused("indices of other sizes than the data's, or than those of what is written")
    if reduce not in ("sum", "mean"):
        raise Refused(f"the reduction {reduce}: sum and mean are possible")
    if include_self and reduce == "sum":
        return scattered(walk, self, index, src, place, "add")
    tensors, outer = aligned(walk, [self, index, src], integers=True)
    varies = any(one.varies for one in (self, index, src))
    data, updates = (walk.spread(one) if varies else one.floats for one in (self, src))
    ids = index.tensor if index.varies else walk.spread(index) if varies else tensors[1]
    counts = walk.op("scatter_elements", walk.op("scale", data, factor=0.0), ids, walk.op("full", shape=list(index.sample), value=1.0), axis=place, reduction="add")
    kept = data if include_self else walk.op("where", counts, 0.0, data)
    sums = walk.op("scatter_elements", kept, ids, updates, axis=place, reduction="add")
    if reduce == "mean":
        counts = walk.op("shift", counts, by=1.0) if include_self else walk.op("max", counts, 1.0)
        sums = walk.op("div", sums, counts)
    return walk.result(sums, [self, index, src], outer=outer)


def index_add(walk, self, dim, index, source, alpha=1):
    """x[:, i] += y, where numbers of i may be the same."""
    if index.axis is not None or index.shape.rank != 1:
        raise Refused("indices that differ from sample to sample")
    place = self.place(dim)
    if self.axis != source.axis or self.outer != source.outer:
        raise Refused("the batch is at different axes of its inputs")
    sizes = [1] * len(source.sample)
    sizes[place] = source.sample[place]
    ids = walk.op("expand", walk.reshaped(index.floats, sizes), shape=list(source.sample))
    spread = self.varies or source.varies
    data, updates = (walk.spread(one) if spread else one.floats for one in (self, source))
    updates = updates if alpha == 1 else walk.op("scale", updates, factor=float(alpha))
    return walk.result(walk.op("scatter_elements", data, ids, updates, axis=place, reduction="add"), [self, source], outer=self.outer)


def one_hot(walk, self, num_classes=-1):
    if num_classes < 1 or (self.axis is not None and self.axis != 0):
        raise Refused("without the number of classes")
    return walk.result(walk.op("one_hot", self.floats, depth=num_classes), [self], outer=self.outer)


OPERATORS = {
    "index_select": index_select, "index": index, "gather": gather, "scatter": scatter("none"), "scatter_add": scatter("add"), "scatter_reduce": scatter_reduce, "index_add": index_add, "one_hot": one_hot,
}
