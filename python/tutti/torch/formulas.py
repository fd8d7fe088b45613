"""Operators that are formulas of the library's operations."""
import math

from . import losses
from .elements import axes_of, number, variance
from .neural import upsample
from .values import Loss, Refused, aligned


def negative(walk, self):
    if isinstance(self, Loss):
        return losses.scaled(walk, "mul", self, -1)
    return walk.result(walk.op("neg", self.floats), [self], outer=self.outer)


def series(walk, x, bound, factors):
    """x (f0 + f1 x + f2 x^2 + ...) of x within a bound, where 1 + x would lose its last digits."""
    x = walk.op("clip", x, min=-bound, max=bound)
    made = walk.op("shift", walk.op("scale", x, factor=factors[-1]), by=factors[-2])
    for factor in factors[-3::-1]:
        made = walk.op("shift", walk.op("mul", made, x), by=factor)
    return walk.op("mul", made, x)


def near(bound, factors, far):
    def build(walk, self):
        x = self.floats
        is_near = walk.op("less", walk.op("abs", x), bound)
        return walk.result(walk.op("where", is_near, series(walk, x, bound, factors), far(walk, x)), [self], outer=self.outer)
    return build


log1p = near(0.03, [1, -1 / 2, 1 / 3, -1 / 4, 1 / 5, -1 / 6], lambda walk, x: walk.op("log", walk.op("shift", x, by=1.0)))
expm1 = near(0.1, [1, 1 / 2, 1 / 6, 1 / 24, 1 / 120, 1 / 720], lambda walk, x: walk.op("shift", walk.op("exp", x), by=-1.0))


def of_one(formula):
    """An elementwise operator of one tensor and numbers."""
    def build(walk, self, **numbers):
        if not all(number(one) for one in numbers.values()):
            raise Refused("arguments that are tensors")
        return walk.result(formula(walk, self.floats, **numbers), [self], outer=self.outer)
    return build


def threshold(walk, x, threshold, value):
    return walk.op("where", walk.op("greater", x, float(threshold)), x, float(value))


def hardshrink(walk, x, lambd=0.5):
    return walk.op("where", walk.op("less_or_equal", walk.op("abs", x), float(lambd)), 0.0, x)


def softshrink(walk, x, lambd=0.5):
    less = walk.op("sub", x, walk.op("scale", walk.op("sign", x), factor=float(lambd)))
    return walk.op("where", walk.op("less_or_equal", walk.op("abs", x), float(lambd)), 0.0, less)


def softplus(walk, x, beta=1, threshold=20):
    if threshold < 20 or beta <= 0:
        raise Refused("a threshold below 20, or beta that is not positive")
    return walk.op("scale", walk.op("softplus", walk.op("scale", x, factor=float(beta))), factor=1 / float(beta))


def glu(walk, self, dim=-1):
    axis, half = self.place(dim), self.shape.sizes[self.shape.counted(dim)] // 2
    first, second = (walk.op("slice", self.floats, axes=axis, starts=start, ends=start + half) for start in (0, half))
    return walk.result(walk.op("mul", first, walk.op("sigmoid", second)), [self], outer=self.outer)


def clamp(walk, self, min=None, max=None):
    """Bounds that are tensors: at a bound the gradient is that of x."""
    from .elements import clamp as by_numbers
    if all(one is None or number(one) for one in (min, max)):
        return by_numbers(walk, self, min, max)
    given = [one for one in (self, min, max) if one is not None]
    if any(number(one) for one in given):
        raise Refused("a bound that is a tensor with one that is a number")
    (x, *bounds), outer = aligned(walk, given)
    for operation, bound in zip([name for name, one in (("less", min), ("greater", max)) if one is not None], bounds):
        x = walk.op("where", walk.op(operation, x, bound), bound, x)
    return walk.result(x, given, outer=outer)


# ------------------------------------------------------------------------------------------------------ distances ----

def cosine_similarity(walk, x1, x2, dim=1, eps=1e-8):
    """x y / (max(|x|, eps) max(|y|, eps)) along an axis."""
    (x, y), outer = aligned(walk, [x1, x2])
    axis = max((x1, x2), key=lambda one: one.shape.rank).place(dim)
    if len(x.shape) != len(y.shape):
        raise Refused("vectors of different axes")
    norms = [walk.op("max", walk.op("reduce_l2", one, axes=[axis], keepdims=0), float(eps)) for one in (x, y)]
    return walk.result(walk.op("div", walk.op("reduce_sum", walk.op("mul", x, y), axes=[axis], keepdims=0), walk.op("mul", *norms)), [x1, x2], outer=outer)


def pairwise_distance(walk, x1, x2, p=2, eps=1e-6, keepdim=False):
    """|x - y + eps| over the last axis."""
    if p not in (1, 2):
        raise Refused(f"the norm of order {p}")
    (x, y), outer = aligned(walk, [x1, x2])
    difference = walk.op("shift", walk.op("sub", x, y), by=float(eps))
    return walk.result(walk.op(f"reduce_l{int(p)}", difference, axes=[len(difference.shape) - 1], keepdims=keepdim), [x1, x2], outer=outer)


def bilinear(walk, input1, input2, weight, bias=None):
    """y_k = sum of x_i W_kij z_j."""
    if input1.axis is None or (input1.axis, input1.outer, input1.rows) != (input2.axis, input2.outer, input2.rows) or input1.axis == input1.shape.rank - 1:
        raise Refused("the batch is at different axes of its inputs")
    units, one, other = weight.shape.sizes
    rows = math.prod(input1.sample[:-1])
    products = walk.op("mul", walk.reshaped(walk.spread(input1), (rows, one, 1)), walk.reshaped(walk.spread(input2), (rows, 1, other)))
    made = walk.op("dense", walk.reshaped(products, (rows, one * other)), walk.reshaped(weight.floats, (units, one * other)), *([bias.floats] if bias is not None else []))
    return walk.result(walk.reshaped(made, (*input1.sample[:-1], units)), [input1, input2, weight], outer=input1.outer)


# ---------------------------------------------------------------------------------------------------- reductions ----

def with_mean(root):
    def build(walk, self, dim=None, unbiased=None, correction=None, keepdim=False):
        axes, spread = axes_of(self, dim), variance(walk, self, dim=dim, unbiased=unbiased, correction=correction, keepdim=keepdim)
        both = [walk.op("sqrt", spread) if root else spread, walk.op("reduce_mean", self.floats, axes=axes, keepdims=keepdim)]
        return [walk.result(one, [self], outer=self.outer, index=index) for index, one in enumerate(both)]
    return build


def truth(operation):
    def build(walk, self, dim=None, keepdim=False):
        whole = walk.op("not", walk.op("equal", self.floats, 0.0))
        return walk.result(walk.op(operation, whole, axes=axes_of(self, dim), keepdims=keepdim), [self], outer=self.outer)
    return build


# ------------------------------------------------------------------------------------------------------- pictures ----

def largest_of_all(count):
    def build(walk, self, output_size):
        if any(one != 1 for one in output_size):
            raise Refused("windows of the largest, more than one")
        axes = [self.place(self.shape.rank - count + axis) for axis in range(count)]
        if math.prod(self.sample[axis] for axis in axes) != math.prod(self.shape.sizes[-count:]):
            raise Refused("the batch is one of its axes")
        rest = [size for axis, size in enumerate(self.sample) if axis not in axes]
        flat = walk.reshaped(self.floats, (*rest, math.prod(self.sample[axis] for axis in axes)))
        found = walk.op("topk", flat, k=1, axis=len(rest), largest=1)      # the gradient goes to the first of equal ones
        return [walk.result(found, [self], outer=self.outer, index=0), None]
    return build


def channel_shuffle(walk, self, groups):
    if self.axis != 0 or self.split:
        raise Refused("the batch is not the first axis")
    channels, rest = self.sample[0], self.sample[1:]
    x = walk.reshaped(self.floats, (groups, channels // groups, math.prod(rest)))
    return walk.result(walk.reshaped(walk.op("transpose", x, perm=[1, 0, 2]), self.sample), [self])


OPERATORS = {
    **dict.fromkeys(("neg", "negative"), negative), "log1p": log1p, "expm1": expm1, "threshold": of_one(threshold), "hardshrink": of_one(hardshrink),
    "softshrink": of_one(softshrink), "softplus": of_one(softplus), "glu": glu, **dict.fromkeys(("clamp", "clip"), clamp),
    "absolute": of_one(lambda walk, x: walk.op("abs", x)), "exp2": of_one(lambda walk, x: walk.op("exp", walk.op("scale", x, factor=math.log(2)))),
    "log2": of_one(lambda walk, x: walk.op("scale", walk.op("log", x), factor=1 / math.log(2))), "log10": of_one(lambda walk, x: walk.op("scale", walk.op("log", x), factor=1 / math.log(10))),
    "erfc": of_one(lambda walk, x: walk.op("shift", walk.op("neg", walk.op("erf", x)), by=1.0)), "frac": of_one(lambda walk, x: walk.op("sub", x, walk.op("trunc", x))),
    "cosine_similarity": cosine_similarity, "pairwise_distance": pairwise_distance, "bilinear": bilinear, "var_mean": with_mean(False), "std_mean": with_mean(True),
    "any": truth("reduce_max"), "all": truth("reduce_min"), **{f"adaptive_max_pool{count}d": largest_of_all(count) for count in (1, 2, 3)}, "channel_shuffle": channel_shuffle,
    "upsample_nearest3d": upsample("nearest"), "upsample_trilinear3d": upsample("linear"),
}
