"""Elementwise operators with arguments, reductions, and products of matrices."""
import math
import string

import torch

from . import losses
from .values import EXACT, ROUNDS, Loss, Refused, Value, aligned, is_whole


def number(one):
    return isinstance(one, (int, float, bool)) and not isinstance(one, torch.SymInt)


def refuse_symbols(*values):
    for value in values:
        if isinstance(value, (torch.SymInt, torch.SymFloat)):
            raise Refused("the number of samples is part of what it computes")


def binary(walk, operation, self, other):
    refuse_symbols(self, other)
    given = [self, other]
    if walk.infers and is_whole(walk.meta().dtype) and any(number(one) and abs(one) >= EXACT for one in given):
        raise Refused(ROUNDS)
    values = [one for one in given if not number(one)]
    tensors, outer = aligned(walk, values)
    if len(values) == 2:
        return walk.result(walk.op(operation, *tensors), values, outer=outer)
    if operation in ("mul", "div", "add", "sub") and number(other) and (operation != "div" or other != 0):
        name, attribute, value = {"mul": ("scale", "factor", other), "div": ("scale", "factor", None), "add": ("shift", "by", other), "sub": ("shift", "by", -other)}[operation]
        if operation == "div":
            return walk.result(walk.op("div", tensors[0], float(other)), values, outer=outer)
        return walk.result(walk.op(name, tensors[0], **{attribute: float(value)}), values, outer=outer)
    tensors = iter(tensors)
    return walk.result(walk.op(operation, *[float(one) if number(one) else next(tensors) for one in given]), values, outer=outer)


def add(walk, self, other, alpha=1):
    if isinstance(self, Loss) or isinstance(other, Loss):
        return losses.added(walk, self, other, alpha)
    if alpha != 1:
        other = other * alpha if number(other) else scaled(walk, other, alpha)
    return binary(walk, "or" if walk.meta().dtype == torch.bool else "add", self, other)


def sub(walk, self, other, alpha=1):
    if isinstance(self, Loss) or isinstance(other, Loss):
        return losses.added(walk, self, other, -alpha)
    if alpha != 1:
        other = other * alpha if number(other) else scaled(walk, other, alpha)
    return binary(walk, "sub", self, other)


def scaled(walk, value, factor):
    tensor = walk.op("scale", value.floats, factor=float(factor))
    walk.note_whole(value, tensor)
    return Value(walk, value.shape, value.dtype, tensor, outer=value.outer, varies=value.varies, trains=value.trains)


def rsub(walk, self, other, alpha=1):
    return sub(walk, other, self, alpha)


def ne(walk, self, other):
    refuse_symbols(self, other)
    values = [one for one in (self, other) if not number(one)]
    tensors, outer = aligned(walk, values)
    tensors = iter(tensors)
    equal = walk.op("equal", *[float(one) if number(one) else next(tensors) for one in (self, other)])
    return walk.result(walk.op("not", equal), values, outer=outer)


def bitwise(operation):
    def build(walk, self, other=None):
        if self.dtype != torch.bool or getattr(other, "dtype", torch.bool) != torch.bool:
            raise Refused("bits of integers")
        return binary(walk, operation, self, other) if other is not None else walk.result(walk.op(operation, self.floats), [self], outer=self.outer)
    return build


def with_attributes(operation, **names):
    """Another operation of one tensor, whose attributes are PyTorch's arguments of these names."""
    def build(walk, self, **arguments):
        attributes = {attribute: float(arguments.pop(name)) for attribute, name in names.items() if arguments.get(name) is not None}
        if any(value not in (None, False, 1) for value in arguments.values()):
            raise Refused(f"its arguments {arguments}")
        return walk.result(walk.op(operation, self.floats, **attributes), [self], outer=self.outer)
    return build


def clamp(walk, self, min=None, max=None):
    """At a bound the gradient is that of x, as PyTorch has it; hardtanh's is 0 there."""
    if not all(one is None or number(one) for one in (min, max)):
        raise Refused("bounds that are tensors")
    x = self.floats
    for operation, bound in (("less", min), ("greater", max)):
        if bound is not None:
            x = walk.op("where", walk.op(operation, x, float(bound)), float(bound), x)
    return walk.result(x, [self], outer=self.outer)


def hardtanh(walk, self, min_val=-1, max_val=1):
    return walk.result(walk.op("clip", self.floats, min=float(min_val), max=float(max_val)), [self], outer=self.outer)


def gelu(walk, self, approximate="none"):
    return walk.result(walk.op("gelu" if approximate == "none" else "gelu_tanh", self.floats), [self], outer=self.outer)


def log_sigmoid(walk, self):
    return walk.result(walk.op("neg", walk.op("softplus", walk.op("neg", self.floats))), [self], outer=self.outer)


def rsqrt(walk, self):
    return walk.result(walk.op("reciprocal", walk.op("sqrt", self.floats)), [self], outer=self.outer)


def elu(walk, self, alpha=1, scale=1, input_scale=1):
    if scale != 1 or input_scale != 1:
        raise Refused("scales")
    return walk.result(walk.op("elu", self.floats, alpha=float(alpha)), [self], outer=self.outer)


def prelu(walk, self, weight):
    if weight.shape.rank != 1 or self.axis != 0 or self.split:
        raise Refused("slopes of another shape than [channels]")
    slopes = walk.reshaped(weight.floats, (weight.shape.sizes[0], *[1] * (self.shape.rank - 2)))
    return walk.result(walk.op("prelu", self.floats, slopes), [self, weight])


def pow_(walk, self, exponent):
    refuse_symbols(self, exponent)
    if number(exponent):
        if exponent == 2:
            tensor = walk.op("square", self.floats)
        elif exponent == 0.5:
            tensor = walk.op("sqrt", self.floats)
        elif exponent == 1:
            tensor = self.floats
        elif exponent == 3:
            tensor = walk.op("mul", walk.op("square", self.floats), self.floats)
        else:
            tensor = walk.op("power", self.floats, exponent=float(exponent))
        return walk.result(tensor, [self], outer=self.outer)
    return binary(walk, "pow", self, exponent)


def where(walk, condition, self, other):
    given = [condition, self, other]
    values = [one for one in given if not number(one)]
    tensors, outer = aligned(walk, values)
    tensors = iter(tensors)
    return walk.result(walk.op("where", *[float(one) if number(one) else next(tensors) for one in given]), values, outer=outer)


def addcmul(walk, self, tensor1, tensor2, value=1):
    (x, a, b), outer = aligned(walk, [self, tensor1, tensor2])
    product = walk.op("mul", a, b)
    walk.note_whole(tensor1, product)
    product = product if value == 1 else walk.op("scale", product, factor=float(value))
    return walk.result(walk.op("add", x, product), [self, tensor1, tensor2], outer=outer)


def masked_fill(walk, self, mask, value):
    return where(walk, mask, value, self)


# ----------------------------------------------------------------------------------------------------- reductions ----

def axes_of(value, dim):
    dims = range(value.shape.rank) if dim in (None, []) else [dim] if isinstance(dim, int) else dim
    return [value.place(one) for one in dims]


def covers(value, dim):
    """Whether these are all axes."""
    return {value.shape.counted(one) for one in ([dim] if isinstance(dim, int) else dim)} == set(range(value.shape.rank))


def reduction(operation):
    def build(walk, self, dim=None, keepdim=False, dtype=None, **others):
        if dtype not in (None, torch.float32) and not self.is_integer:
            raise Refused(f"a result of {dtype}")
        if operation in ("reduce_mean", "reduce_sum") and self.axis is not None and (dim in (None, []) or covers(self, dim)):
            if keepdim:
                raise Refused("a loss with axes")
            return (losses.mean if operation == "reduce_mean" else losses.total)(walk, self)
        axes = axes_of(self, dim)
        tensor = walk.op(operation, self.floats, axes=axes, keepdims=keepdim) if axes else self.floats
        if operation == "reduce_sum":
            note_sum(walk, self)
        return walk.result(tensor, [self], outer=self.outer)
    return build


def note_sum(walk, value):
    """No part of a sum of whole numbers is larger than the sum of all their magnitudes."""
    if walk.infers and is_whole(value.dtype):
        walk.note_whole(value, walk.op("reduce_l1", value.floats, axes=list(range(len(value.sample))), keepdims=1))


def extreme(operation, position):
    """max and min: of all, with another tensor, or (values, positions) along an axis."""
    def build(walk, self, dim=None, keepdim=False, other=None):
        if other is not None:
            return binary(walk, operation, self, other)
        if dim is None:
            return reduction(f"reduce_{operation}")(walk, self)
        axis = self.place(dim)
        values = walk.op("topk", self.floats, k=1, axis=axis, largest=operation == "max")     # the gradient goes to the first of equal ones
        places = walk.op(position, self.floats, axis=axis, keepdims=1)
        return [walk.result(values, [self], outer=self.outer, index=0), walk.result(places, [self], outer=self.outer, index=1)]
    return build


def argument(operation):
    def build(walk, self, dim=None, keepdim=False):
        if dim is None:
            raise Refused("a position among all elements")
        return walk.result(walk.op(operation, self.floats, axis=self.place(dim), keepdims=keepdim), [self], outer=self.outer)
    return build


def variance(walk, self, dim=None, unbiased=None, correction=None, keepdim=False):
    axes = axes_of(self, dim)
    count = math.prod(self.sample[axis] for axis in axes)
    correction = 1 if correction is None and unbiased is not False else correction or 0
    if count <= correction:
        raise Refused("the variance of one element")
    x = self.floats
    centred = walk.op("sub", x, walk.op("reduce_mean", x, axes=axes, keepdims=1))
    squares = walk.op("reduce_mean", walk.op("square", centred), axes=axes, keepdims=keepdim)
    return walk.op("scale", squares, factor=count / (count - correction))


def var(walk, self, **arguments):
    return walk.result(variance(walk, self, **arguments), [self], outer=self.outer)


def std(walk, self, **arguments):
    return walk.result(walk.op("sqrt", variance(walk, self, **arguments)), [self], outer=self.outer)


def norm(walk, self, ord=2, dim=None, keepdim=False, dtype=None, p=None):
    ord = p if p is not None else ord
    if ord not in (1, 2):
        raise Refused(f"the norm of order {ord}")
    axes = axes_of(self, dim)
    return walk.result(walk.op(f"reduce_l{int(ord)}", self.floats, axes=axes, keepdims=keepdim), [self], outer=self.outer)


def along(operation):
    def build(walk, self, dim, dtype=None, half_to_float=False):
        if operation == "cumsum":
            note_sum(walk, self)
        return walk.result(walk.op(operation, self.floats, axis=self.place(dim)), [self], outer=self.outer)
    return build


def softmax(walk, self, dim, dtype=None, half_to_float=False):
    if dtype not in (None, torch.float32):
        raise Refused(f"a result of {dtype}")
    axis, last = self.place(dim), len(self.sample) - 1
    order = [place for place in range(last + 1) if place != axis] + [axis]
    if axis == last:
        return walk.result(walk.op("softmax", self.floats), [self], outer=self.outer)
    moved = walk.op("softmax", walk.op("transpose", self.floats, perm=order))
    return walk.result(walk.op("transpose", moved, perm=[order.index(place) for place in range(last + 1)]), [self], outer=self.outer)


def weight_norm(walk, v, g, dim=0):
    """g v / |v|, with a norm for each place of an axis."""
    axes = [axis for axis in range(v.shape.rank) if dim == -1 or axis != v.shape.counted(dim)]
    norms = walk.op("reduce_l2", v.floats, axes=axes, keepdims=1)
    return walk.result(walk.op("mul", v.floats, walk.op("div", g.floats, norms)), [v, g], index=None if isinstance(walk.meta(), torch.Tensor) else 0)


def logsumexp(walk, self, dim, keepdim=False):
    return walk.result(walk.op("reduce_log_sum_exp", self.floats, axes=axes_of(self, dim), keepdims=keepdim), [self], outer=self.outer)


def triangle(upper):
    def build(walk, self, diagonal=0):
        if self.axis is not None and self.axis >= self.shape.rank - 2:
            raise Refused("the batch is an axis of its matrices")
        return walk.result(walk.op("trilu", self.floats, upper=upper, k=diagonal), [self], outer=self.outer)
    return build


# ------------------------------------------------------------------------------------------------------- products ----

def matmul(walk, self, other=None, mat2=None):
    a, b = self, other if other is not None else mat2
    if a.is_integer and walk.infers:
        raise Refused("a product of matrices of whole numbers")
    if a.shape.rank < 2 or b.shape.rank < 2:
        return vectors(walk, a, b)
    for value, axis in ((a, a.shape.rank - 1), (b, b.shape.rank - 2)):
        if value.axis == axis:
            raise Refused("it sums over the batch")
    if b.axis == b.shape.rank - 1:
        raise Refused("the batch is the last axis of a product")
    if a.axis == a.shape.rank - 2:
        if b.shape.rank > 2 or b.varies or a.shape.rank > 2:
            if b.varies or b.shape.rank > 2:
                raise Refused("the batch is the rows of a product of many matrices")
        tensor = walk.op("matmul", a.floats if a.varies else walk.spread(a), b.floats)
        return walk.result(tensor, [a, b], outer=a.outer)
    (x, y), outer = aligned(walk, [a, b])
    return walk.result(walk.op("matmul", x, y), [a, b], outer=outer)


def vectors(walk, a, b):
    if a.axis is not None and a.shape.rank == 1 or b.axis is not None and b.shape.rank == 1:
        raise Refused("it sums over the batch")
    if b.shape.rank == 1 and a.axis == a.shape.rank - 1:
        raise Refused("it sums over the batch")
    return walk.result(walk.op("matmul", a.floats, b.floats), [a, b], outer=max(a.outer, b.outer))


def dot(walk, self, other=None, tensor=None):
    """The product of two vectors of real numbers."""
    other = tensor if other is None else other
    if self.axis is not None or other.axis is not None:
        raise Refused("it sums over the batch")
    return walk.result(walk.op("reduce_sum", walk.op("mul", self.floats, other.floats), axes=[0], keepdims=1), [self, other])


def outer(walk, self, vec2):
    if self.axis is not None or vec2.axis is not None:
        raise Refused("products of all samples with all")
    rows, columns = walk.reshaped(self.floats, (self.shape.sizes[0], 1)), walk.reshaped(vec2.floats, (1, vec2.shape.sizes[0]))
    return walk.result(walk.op("mul", rows, columns), [self, vec2])


def linear(walk, input, weight, bias=None):
    if input.axis == input.shape.rank - 1:
        raise Refused("the batch is the last axis")
    if weight.axis is not None or weight.shape.rank != 2:
        raise Refused("weights that differ from sample to sample")
    given = [input, weight] + ([bias] if bias is not None else [])
    if not input.varies:
        tensor = walk.op("matmul", input.floats, weight.floats, transpose_b=1)
        tensor = walk.op("add", tensor, bias.floats) if bias is not None else tensor
    else:
        tensor = walk.op("dense", *[one.floats for one in given])
    return walk.result(tensor, given, outer=input.outer)


def addmm(walk, self, mat1=None, mat2=None, batch1=None, batch2=None, beta=1, alpha=1):
    a, b = (mat1, mat2) if mat1 is not None else (batch1, batch2)
    if beta == 0:
        product = matmul(walk, a, b)
        return product if alpha == 1 else scaled(walk, product, alpha)
    product = matmul(walk, a, b)
    product = product if alpha == 1 else scaled(walk, product, alpha)
    return binary(walk, "add", self if beta == 1 else scaled(walk, self, beta), product)


def spelled(equation, ranks):
    """The inputs and the result of an equation, with letters instead of '...', and with a result."""
    left, arrow, right = equation.replace(" ", "").replace("...", ".").partition("->")
    parts, free = left.split(","), [letter for letter in string.ascii_lowercase if letter not in equation]
    hidden = [rank - len(part.replace(".", "")) if "." in part else 0 for part, rank in zip(parts, ranks)]
    dots = free[:max(hidden)]
    if not arrow:
        right = "." + "".join(letter for letter in sorted(set(left) - set(".,")) if left.count(letter) == 1)
    return [part.replace(".", "".join(dots[len(dots) - count:])) for part, count in zip(parts, hidden)], right.replace(".", "".join(dots))


def einsum(walk, equation, tensors, path=None):
    """The batch's letter is left out of the equation: it must be the same in all inputs that have it, and in the result."""
    (parts, right), letters = spelled(equation, [len(value.shape.sizes) for value in tensors]), set()
    for part, value in zip(parts, tensors):
        if value.axis is not None:
            letters.add(part[value.axis])
            if value.split:
                raise Refused("a batch axis of several parts")
    if len(letters) != 1:
        raise Refused("no letter is the batch" if not letters else "several letters are the batch")
    batch = letters.pop()
    if any((batch in part) != (value.axis is not None) for part, value in zip(parts, tensors)) or batch not in right:
        raise Refused("it sums over the batch")
    words = ",".join(part.replace(batch, "") for part in parts) + "->" + right.replace(batch, "")
    return walk.result(walk.op("einsum", *[walk.spread(value) if value.axis is not None else value.floats for value in tensors], equation=words), list(tensors))


def random(operation):
    def build(walk, self, **_):
        return walk.result(walk.op(operation, walk.spread(self)), [self], outer=self.outer)
    return build


OPERATORS = {
    "add": add, "sub": sub, "subtract": sub, "rsub": rsub, "ne": ne, "bitwise_and": bitwise("and"), "bitwise_or": bitwise("or"), "bitwise_not": bitwise("not"),
    "multiply": lambda walk, self, other: losses.scaled(walk, "mul", self, other) if isinstance(self, Loss) or isinstance(other, Loss) else binary(walk, "mul", self, other),
    "leaky_relu": with_attributes("leaky_relu", alpha="negative_slope"), "celu": with_attributes("celu", alpha="alpha"),
    "clamp_min": lambda walk, self, min: clamp(walk, self, min=min), "clamp_max": lambda walk, self, max: clamp(walk, self, max=max),
    "hardtanh": hardtanh, "gelu": gelu, "log_sigmoid": log_sigmoid, "rsqrt": rsqrt, "elu": elu, "prelu": prelu, "pow": pow_, "where": where,
    "masked_fill": masked_fill, "addcmul": addcmul, "mean": reduction("reduce_mean"), "sum": reduction("reduce_sum"), "amax": reduction("reduce_max"), "amin": reduction("reduce_min"),
    "prod": reduction("reduce_prod"), "max": extreme("max", "argmax"), "min": extreme("min", "argmin"), "argmax": argument("argmax"), "argmin": argument("argmin"),
    "var": var, "std": std, "linalg_vector_norm": norm, "norm": norm, "softmax": softmax, "_softmax": softmax, "log_softmax": along("log_softmax"),
    "_log_softmax": along("log_softmax"), "cumsum": along("cumsum"), "cumprod": along("cumprod"), "logsumexp": logsumexp, "_weight_norm": weight_norm, "tril": triangle(0), "triu": triangle(1),
    "matmul": matmul, "mv": lambda walk, self, vec: matmul(walk, self, vec), "dot": dot, "vdot": dot, "outer": outer, "ger": outer, "mm": matmul, "bmm": matmul, "linear": linear, "addmm": addmm, "baddbmm": addmm, "einsum": einsum,
    "randn_like": random("random_normal"), "rand_like": random("random_uniform"),
}
