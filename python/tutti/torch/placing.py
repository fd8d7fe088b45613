"""Operators that write by index: x[mask] = y, x[:, [0, 2]] = y, x[arange(n), i] = y."""
import torch

from .values import Refused, Value, aligned


def refuse_adding(accumulate):
    if accumulate:
        raise Refused("accumulate: use scatter_add() or index_add()")


def like(walk, self, tensor, inputs, outer=None):
    """A value of the shape of what is written into."""
    made = Value(walk, self.shape, self.dtype, tensor, outer=self.outer if outer is None else outer, varies=any(one.varies for one in inputs),
                 trains=any(one.trains for one in inputs))
    made.made = walk.reshaped(tensor, made.sample)
    return made


def chosen(walk, self, mask, values):
    """The values where the mask is true."""
    tensors, outer = aligned(walk, [mask, values, self])
    return like(walk, self, walk.op("where", *tensors), [mask, values, self], outer)


def index_put(walk, self, indices, values, accumulate=False):
    refuse_adding(accumulate)
    used = [dim for dim, one in enumerate(indices) if one is not None]
    given = [indices[dim] for dim in used]
    if len(given) == 1 and given[0].dtype == torch.bool:
        return masked(walk, self, given[0], used[0], values)
    if used == [0, 1] and self.axis == 0 and given[0].counted is not None:
        return of_each_sample(walk, self, given, values)
    if len(used) == 1 and given[0].known is not None and given[0].shape.rank == 1:
        return placed(walk, self, values, used[0], given[0].known.tolist())
    raise Refused("a write by indices that differ from sample to sample, or along several axes: write torch.where(), or scatter()")


def masked(walk, self, mask, dim, values):
    """x[mask] = y, where y is a number, or what each row gets."""
    if dim or mask.shape.rank > self.shape.rank:
        raise Refused("a mask of other axes than the first ones")
    rest = self.shape.rank - mask.shape.rank
    if values.axis is not None or values.shape.rank > rest and any(size != 1 for size in values.shape.sizes[:values.shape.rank - rest]):
        raise Refused("values that are as many as the mask has: write torch.where()")
    sizes = values.shape.sizes[max(0, values.shape.rank - rest):]
    row = Value(walk, self.shape._replace(sizes=tuple(sizes), axis=None), values.dtype, walk.reshaped(values.floats, sizes or (1,)), trains=values.trains, varies=False)
    wide = Value(walk, mask.shape._replace(sizes=(*mask.shape.sizes, *[1] * rest)), mask.dtype, outer=mask.outer, varies=mask.varies)
    wide.made = walk.reshaped(mask.floats, wide.sample)
    return chosen(walk, self, wide, row)


def of_each_sample(walk, self, given, values):
    """x[arange(n), i] = y: one place of the first axis of each sample."""
    from .indexing import counts_samples
    samples, places = given
    if not counts_samples(samples) or self.split or samples.shape.rank != 1 or places.shape.rank > 1 or values.shape.rank == self.shape.rank:
        raise Refused("a write by indices of samples and of their first axis, of another shape than [samples]")
    rest = self.shape.rank - 2
    count = walk.network.constant(torch.arange(self.shape.sizes[1]).float().numpy().reshape(self.shape.sizes[1], *[1] * rest))
    at = walk.spread(places)
    at = walk.op("where", walk.op("less", at, 0.0), walk.op("shift", at, by=float(self.shape.sizes[1])), at)
    here = walk.op("equal", count, walk.reshaped(at, (1,) * (rest + 1)))
    y = walk.spread(values) if values.varies else values.floats
    sizes = (1, *values.shape.sizes[1:]) if values.axis == 0 else (1,) * (rest + 1 - values.shape.rank) + values.shape.sizes
    return like(walk, self, walk.op("where", here, walk.reshaped(y, sizes), walk.spread(self)), [self, places, values, Value(walk, self.shape, self.dtype, varies=True)])


def placed(walk, self, values, dim, places):
    """The elements at these places of an axis are those of the values."""
    place, size = self.place(dim), self.shape.sizes[self.shape.counted(dim)]
    if len({one % size for one in places}) != len(places):
        raise Refused("a write to one place several times, of which PyTorch says not which one stays")
    wanted = list(self.sample)
    wanted[place] = len(places)
    if values.axis is not None and (values.shape.rank, values.axis, values.outer, values.rows) != (self.shape.rank, self.axis, self.outer, self.rows):
        raise Refused("the batch is at another axis of what is written")
    varies = self.varies or values.varies
    tensor = walk.spread(values) if varies else values.floats
    if values.axis is None and self.axis is not None and values.shape.rank > self.shape.rank - 1 - self.axis:
        if values.shape.rank != self.shape.rank or values.shape.sizes[self.axis] != 1:
            raise Refused("what is written has another shape")
        tensor = walk.reshaped(tensor, [*values.shape.sizes[:self.axis], *[1] * len(self.split), *values.shape.sizes[self.axis + 1:]])
    tensor = tensor if tuple(tensor.shape) == tuple(wanted) else walk.op("expand", tensor, shape=wanted)
    source, here = [0] * size, [0.0] * size
    for index, one in enumerate(places):
        source[one], here[one] = index, 1.0
    spread = walk.op("gather", tensor, walk.known(torch.tensor(source)).tensor, axis=place)
    mask = walk.network.constant(torch.tensor(here).reshape(size, *[1] * (len(wanted) - place - 1)).numpy())
    return like(walk, self, walk.op("where", mask, spread, walk.spread(self) if varies else self.floats), [self, values])


def index_fill(walk, self, dim, index, value):
    if index.known is None:
        raise Refused("indices that are computed: write torch.where()")
    if not isinstance(value, Value):
        value = walk.known(torch.tensor(float(value)))
    return placed(walk, self, value, dim, sorted({one % self.shape.sizes[self.shape.counted(dim)] for one in index.known.reshape(-1).tolist()}))


def index_copy(walk, self, dim, index, source):
    if index.known is None:
        raise Refused("indices that are computed: write scatter()")
    return placed(walk, self, source, dim, index.known.reshape(-1).tolist())


OPERATORS = {"index_put": index_put, "index_fill": index_fill, "index_copy": index_copy}
