"""Operators that order the elements along an axis, or compute of those before each."""
import math

import torch

from .. import layers
from .values import Refused

PAIRS = 1024    # elements along an axis, of which each with each makes a matrix


def best(walk, self, count, dim, largest):
    """(values, positions) of so many elements along an axis, the best first, of equal ones the first."""
    if self.is_integer:
        self.check_whole()
    return layers.topk(self.floats, count, axis=self.place(dim), largest=bool(largest), indices=True)


def both(walk, self, found):
    return [walk.result(tensor, [self], outer=self.outer, index=index) for index, tensor in enumerate(found)]


def length_of(self, dim):
    self.place(dim)     # refuses the batch
    return self.shape.sizes[self.shape.counted(dim)]


def topk(walk, self, k, dim=-1, largest=True, sorted=True):
    return both(walk, self, best(walk, self, k, dim, largest))


def sort(walk, self, dim=-1, descending=False, stable=None):
    return both(walk, self, best(walk, self, length_of(self, dim), dim, descending))


def argsort(walk, self, dim=-1, descending=False, stable=None):
    return walk.result(best(walk, self, length_of(self, dim), dim, descending)[1], [self], outer=self.outer)


def msort(walk, self):
    return walk.result(best(walk, self, length_of(self, 0), 0, False)[0], [self], outer=self.outer)


def at(walk, self, found, dim, position, keepdim):
    """One of the elements along an axis that best() has found."""
    axis = self.place(dim)
    made = [walk.op("slice", one, axes=axis, starts=position, ends=position + 1) for one in found]
    sizes = list(made[0].shape) if keepdim else [*made[0].shape[:axis], *made[0].shape[axis + 1:]]
    return [walk.reshaped(one, sizes or [1]) for one in made]


def kthvalue(walk, self, k, dim=-1, keepdim=False):
    return both(walk, self, at(walk, self, best(walk, self, k, dim, False), dim, k - 1, keepdim))


def unless_nan(walk, self, tensor, dim, keepdim):
    """NaN where an element along the axis is NaN."""
    has = walk.op("reduce_max", walk.op("is_nan", self.floats), axes=[self.place(dim)], keepdims=keepdim)
    return walk.op("where", has, math.nan, tensor)


def median(walk, self, dim=None, keepdim=False):
    """The lower one of two in the middle."""
    if dim is None:
        raise Refused("a median of all elements, which joins samples: give it an axis")
    place = (length_of(self, dim) - 1) // 2
    values, positions = at(walk, self, best(walk, self, place + 1, dim, False), dim, place, keepdim)
    return both(walk, self, [unless_nan(walk, self, values, dim, keepdim), positions])


def quantile(walk, self, q, dim=None, keepdim=False, interpolation="linear"):
    q = float(q.known) if hasattr(q, "known") and q.known is not None and not q.known.ndim else q
    if dim is None or not isinstance(q, float) or interpolation != "linear":
        raise Refused("quantiles of all elements, several ones, or with another interpolation than linear")
    place = q * (length_of(self, dim) - 1)
    first, part = math.floor(place), place - math.floor(place)
    found = best(walk, self, first + (2 if part else 1), dim, False)
    value = at(walk, self, found, dim, first, keepdim)[0]
    if part:
        more = walk.op("sub", at(walk, self, found, dim, first + 1, keepdim)[0], value)
        value = walk.op("add", value, walk.op("scale", more, factor=part))
    return walk.result(unless_nan(walk, self, value, dim, keepdim), [self], outer=self.outer)


def logcumsumexp(walk, self, dim):
    """Of each element and those before it, as a matrix."""
    size, axis = length_of(self, dim), self.place(dim)
    if size > PAIRS:
        raise Refused(f"more than {PAIRS} elements along the axis")
    sizes = self.sample
    ahead = walk.network.constant(torch.ones(size, size).tril().reshape(size, size, *[1] * (len(sizes) - axis - 1)).numpy())
    each = walk.op("where", ahead, walk.reshaped(self.floats, (*sizes[:axis], 1, *sizes[axis:])), -math.inf)
    return walk.result(walk.op("reduce_log_sum_exp", each, axes=[axis + 1], keepdims=0), [self], outer=self.outer)


def diff(walk, self, n=1, dim=-1, prepend=None, append=None):
    if prepend is not None or append is not None:
        raise Refused("elements before or after: join them by torch.cat()")
    size, axis, tensor = length_of(self, dim), self.place(dim), self.floats
    for _ in range(n):
        later, earlier = (walk.op("slice", tensor, axes=axis, starts=start, ends=start + size - 1) for start in (1, 0))
        tensor, size = walk.op("sub", later, earlier), size - 1
    return walk.result(tensor, [self], outer=self.outer)


OPERATORS = {
    "topk": topk, "sort": sort, "argsort": argsort, "msort": msort, "kthvalue": kthvalue, "median": median, "quantile": quantile, "logcumsumexp": logcumsumexp, "diff": diff,
}
