"""Complex numbers as pairs of values, and Fourier transforms."""
import math

import torch

from . import elements, indexing, movement
from .values import Loss, Refused, Value


class Complex:
    """A complex tensor of PyTorch's graph: two values of its shape."""

    def __init__(self, real, imaginary):
        self.real, self.imaginary, self.shape = real, imaginary, real.shape


def is_complex(one):
    return isinstance(one, Complex) or (isinstance(one, Value) and one.dtype.is_complex)


def complex_of(walk, one):
    """Real values, and tensors that PyTorch made complex, as pairs."""
    if isinstance(one, Complex) or not isinstance(one, Value):
        return one
    if one.known is not None and one.dtype.is_complex:
        return Complex(walk.known(one.known.real.clone()), walk.known(one.known.imag.clone()))
    if one.counted and one.dtype.is_complex:
        pairs = [tuple(part(array).clone() for array in one.counted) for part in (torch.real, torch.imag)]
        return Complex(*[Value(walk, one.shape, torch.float32, counted=pair) for pair in pairs])
    return Complex(walk.same_of(one, one.floats), walk.same_of(one, walk.op("scale", one.floats, factor=0.0), trains=False))


# ---------------------------------------------------------------------------------------------------- arithmetic ----

def each(function):
    """What a linear operator does with real and imaginary parts."""
    def build(walk, arguments):
        def parts(take):
            return torch.utils._pytree.tree_map(lambda one: take(complex_of(walk, one)) if is_complex(one) or isinstance(one, Value) and one.dtype.is_floating_point else one,
                                                arguments, is_leaf=lambda one: isinstance(one, (Value, Complex, Loss)))
        made = [function(walk, **parts(take)) for take in (lambda one: one.real, lambda one: one.imaginary)]
        return [Complex(*pair) for pair in zip(*made)] if isinstance(made[0], (list, tuple)) else Complex(*made)
    return build


def product(function, one, two):
    """What is linear in each of two arguments: (a + bi)(c + di)."""
    def build(walk, arguments):
        def of(x, y):
            return function(walk, **{**arguments, one: x, two: y})
        x, y = arguments[one], arguments[two]
        if not is_complex(x) or not is_complex(y):
            if is_complex(x):
                x = complex_of(walk, x)
                return Complex(of(x.real, y), of(x.imaginary, y))
            y = complex_of(walk, y)
            return Complex(of(x, y.real), of(x, y.imaginary))
        if isinstance(x, complex) or isinstance(y, complex):
            raise Refused("a complex number of Python")
        x, y = complex_of(walk, x), complex_of(walk, y)
        return Complex(elements.sub(walk, of(x.real, y.real), of(x.imaginary, y.imaginary)), elements.add(walk, of(x.real, y.imaginary), of(x.imaginary, y.real)))
    return build


def einsum(walk, arguments):
    if len(arguments["tensors"]) != 2:
        raise Refused("complex numbers in other than two tensors")

    def two(walk, equation, path, one, other):
        return elements.einsum(walk, equation, [one, other], path)
    one, other = arguments["tensors"]
    return product(two, "one", "other")(walk, {"equation": arguments["equation"], "path": None, "one": one, "other": other})


def copy(walk, arguments):
    """x[...] = y."""
    x, y = complex_of(walk, arguments["self"]), complex_of(walk, arguments["src"])
    return Complex(movement.copy(walk, x.real, y.real), movement.copy(walk, x.imaginary, y.imaginary))


def divided(walk, arguments):
    if is_complex(arguments["other"]):
        raise Refused("a division by complex numbers")
    x = complex_of(walk, arguments["self"])
    return Complex(*[elements.binary(walk, "div", part, arguments["other"]) for part in (x.real, x.imaginary)])


def of_parts(function):
    return lambda walk, arguments: function(walk, complex_of(walk, arguments.pop("self")), **arguments)


def conjugate(walk, self):
    return Complex(self.real, walk.same_of(self.imaginary, walk.op("neg", self.imaginary.floats)))


def magnitude(walk, self):
    """At 0 its gradient is 0, as PyTorch's."""
    both = walk.op("concat", *last(walk, self), axis=len(self.real.sample))
    return walk.result(walk.op("reduce_l2", both, axes=len(self.real.sample), keepdims=0), [self.real, self.imaginary], outer=self.real.outer)


def last(walk, self):
    """Both parts as tensors with another axis, of size 1."""
    parts = (self.real, self.imaginary)
    spread = any(part.varies for part in parts)
    return [walk.reshaped(walk.spread(part) if spread else part.floats, (*part.sample, 1)) for part in parts]


def as_real(walk, self):
    tensor = walk.op("concat", *last(walk, self), axis=len(self.real.sample))
    return walk.result(tensor, [self.real, self.imaginary], outer=self.real.outer)


def as_complex(walk, self):
    return Complex(*[piece(walk, self, self.floats, part, self.outer) for part in (0, 1)])


def piece(walk, self, tensor, part, outer):
    """One part of a tensor whose last axis has both, as the node's result."""
    axis = len(tensor.shape) - 1
    return walk.result(walk.op("slice", tensor, axes=axis, starts=part, ends=part + 1), [self], outer=outer)


def joined(walk, real, imag):
    return Complex(real, imag)


# ---------------------------------------------------------------------------------------------------- transforms ----

def factor(norm, count, inverse):
    """What PyTorch multiplies a transform with, which divides by the count if it is an inverse one."""
    norm = norm or "backward"
    if norm == "ortho":
        return math.sqrt(count) if inverse else 1 / math.sqrt(count)
    if norm == "forward":
        return count if inverse else 1 / count
    return 1.0


def axes_of(value, dim):
    return [value.place(one) for one in dim]


def with_last(walk, tensor, axes, function):
    """Calls a function on a tensor whose axes are the last ones, and gives what it makes the old order; further axes stay last."""
    rank = len(tensor.shape)
    order = [axis for axis in range(rank) if axis not in axes] + list(axes)
    moved = tensor if order == list(range(rank)) else walk.op("transpose", tensor, perm=order)
    made = function(moved)
    if moved is tensor:
        return made
    return walk.op("transpose", made, perm=[order.index(axis) for axis in range(rank)] + list(range(rank, len(made.shape))))


def forward(dims):
    def build(walk, self, n=None, s=None, dim=None, norm=None):
        axes = axes_of(self, dims(dim, self))
        if len(axes) > 2 or n is not None or s is not None and [*s] != [self.sample[axis] for axis in axes]:
            raise Refused("more than two axes, or other lengths than the axes'")
        x = walk.spread(self) if self.axis is not None else self.floats
        if len(axes) == 1:
            made = walk.op("rfft", x, axis=axes[0])
        else:
            made = with_last(walk, x, axes, lambda tensor: walk.op("rfft2", tensor))
        by = factor(norm, math.prod(self.sample[axis] for axis in axes), False)
        made = walk.op("scale", made, factor=by) if by != 1 else made
        return Complex(*[piece(walk, self, made, part, self.outer) for part in (0, 1)])
    return build


def backward(dims):
    def build(walk, self, n=None, s=None, dim=None, norm=None):
        dim = dims(dim, self.real)
        axes, sizes = axes_of(self.real, dim), [walk.shape().sizes[self.real.shape.counted(one)] for one in dim]
        if len(axes) > 2 or any(size != self.real.sample[axis] for axis, size in zip(axes[:-1], sizes)):
            raise Refused("more than two axes, or other lengths than the axes'")
        both = walk.op("concat", *last(walk, self), axis=len(self.real.sample))
        if len(axes) == 1:
            made = walk.op("irfft", both, axis=axes[0], length=sizes[0])
        else:
            rank = len(both.shape)
            order = [axis for axis in range(rank - 1) if axis not in axes] + axes + [rank - 1]
            moved = both if order == list(range(rank)) else walk.op("transpose", both, perm=order)
            made = walk.op("irfft2", moved, width=sizes[1])
            made = made if moved is both else walk.op("transpose", made, perm=[order.index(axis) for axis in range(rank - 1)])
        by = factor(norm, math.prod(sizes), True)
        made = walk.op("scale", made, factor=by) if by != 1 else made
        return walk.result(made, [self.real, self.imaginary], outer=self.real.outer)
    return build


def whole(inverse, dims):
    """Transforms of complex numbers, axis after axis."""
    def build(walk, self, n=None, s=None, dim=None, norm=None):
        self = complex_of(walk, self)
        axes = axes_of(self.real, dims(dim, self.real))
        if n is not None or s is not None:
            raise Refused("other lengths than the axes'")
        made = walk.op("concat", *last(walk, self), axis=len(self.real.sample))
        for axis in axes:
            made = walk.op("dft", made, axis=axis, inverse=inverse)
        by = factor(norm, math.prod(self.real.sample[axis] for axis in axes), inverse)
        made = walk.op("scale", made, factor=by) if by != 1 else made
        return Complex(*[piece(walk, self.real, made, part, self.real.outer) for part in (0, 1)])
    return build


def one_axis(dim, value):
    return [-1 if dim is None else dim]


def two_axes(dim, value):
    return [-2, -1] if dim is None else list(dim)


def all_axes(dim, value):
    return list(range(value.shape.rank)) if dim is None else list(dim)


MOVED = ("view", "reshape", "_unsafe_view", "flatten", "unflatten", "squeeze", "unsqueeze", "view_as", "reshape_as", "contiguous", "clone", "alias", "permute", "transpose", "swapaxes", "t",
         "numpy_T", "mT", "movedim", "detach", "expand", "expand_as", "slice", "select", "narrow", "split", "split_with_sizes", "chunk", "unbind", "flip", "roll", "cat", "concat",
         "concatenate", "stack", "pad", "constant_pad_nd")
# With complex arguments: functions of the walk and the arguments by name.
OPERATORS = {
    **{name: each(movement.OPERATORS[name]) for name in MOVED}, "index_select": each(indexing.index_select), "index": each(indexing.index),
    **{name: each(elements.OPERATORS[name]) for name in ("add", "sub", "sum", "mean", "rsub")},
    "mul": product(lambda walk, self, other: elements.binary(walk, "mul", self, other), "self", "other"), "div": divided, "copy": copy, "einsum": einsum,
    "matmul": product(elements.matmul, "self", "other"), "bmm": product(elements.matmul, "self", "mat2"), "mm": product(elements.matmul, "self", "mat2"),
    "view_as_real": of_parts(as_real), "real": of_parts(lambda walk, self: self.real), "imag": of_parts(lambda walk, self: self.imaginary), "abs": of_parts(magnitude),
    "conj": of_parts(conjugate), "_conj": of_parts(conjugate), "conj_physical": of_parts(conjugate), "resolve_conj": of_parts(lambda walk, self: self),
    "_to_copy": of_parts(lambda walk, self, **_: self), "to": of_parts(lambda walk, self, **_: self),
    "fft_irfft": of_parts(backward(one_axis)), "fft_irfft2": of_parts(backward(two_axes)), "fft_irfftn": of_parts(backward(all_axes)),
    **{name: of_parts(whole(inverse, dims)) for end, dims in (("fft", one_axis), ("fft2", two_axes), ("fftn", all_axes)) for inverse, name in ((0, "fft_" + end), (1, "fft_i" + end))},
}
# With real ones.
REAL = {
    "view_as_complex": as_complex, "complex": joined, "fft_rfft": forward(one_axis), "fft_rfft2": forward(two_axes), "fft_rfftn": forward(all_axes),
    **{name: whole(inverse, dims) for end, dims in (("fft", one_axis), ("fft2", two_axes), ("fftn", all_axes)) for inverse, name in ((0, "fft_" + end), (1, "fft_i" + end))},
    "real": movement.same, "resolve_conj": movement.same, "resolve_neg": movement.same,
}
