"""Losses: means over elements and samples, and sums of them."""
import torch

from .. import layers
from .values import Loss, Refused, Value, aligned

NONE, MEAN, SUM = 0, 1, 2


def loss(tensor, prediction, factor=1.0):
    return Loss([(factor, tensor)], prediction)


def mean(walk, value):
    """The mean over all elements and samples."""
    if value.axis is None:
        raise Refused("a mean of what does not depend on the samples")
    return loss(layers.mean(walk.spread(value)), value)


def reduced(walk, value, reduction):
    if reduction == NONE:
        return value
    if reduction == SUM:
        raise Refused("the sum over the samples depends on their number: use the mean")
    return mean(walk, value)


def added(walk, one, other, factor=1):
    """Sums of losses, and of a loss and a penalty on parameters."""
    made = []
    for part, by in ((one, 1), (other, factor)):
        if isinstance(part, Value):
            if part.varies or part.shape.rank:
                raise Refused("a loss plus a tensor that is not a loss")
            part = loss(layers.mean(walk.reshaped(walk.op("where", walk.like_of(), part.floats, part.floats), [])), None)
        elif not isinstance(part, Loss):
            raise Refused("a loss plus a number")
        made.append(part.times(by))
    return Loss(made[0].terms + made[1].terms, made[0].prediction or made[1].prediction)


def scaled(operation, one, other):
    if operation == "mul" and isinstance(other, Loss):
        one, other = other, one
    if isinstance(other, Value) and other.known is not None and other.known.numel() == 1:
        other = float(other.known)
    if operation not in ("mul", "div") or not isinstance(one, Loss) or not isinstance(other, (int, float)):
        raise Refused("a loss can be added and multiplied by numbers")
    return one.times(other if operation == "mul" else 1 / other)


def elementwise(name, formula):
    """A loss of elements, by the library's function where the mean is wanted and the targets do not train."""
    def build(walk, self, target, reduction=MEAN, **arguments):
        (x, t), outer = aligned(walk, [self, target])
        if name and reduction == MEAN and not target.trains and self.shape == target.shape and self.varies and self.axis is not None:
            made, factor = library(name, x, walk.spread(target), arguments)
            return loss(made, self, factor)
        value = walk_value(walk, [self, target], formula(walk, x, t, **arguments), outer, target if target.shape.rank > self.shape.rank else self)
        return reduced(walk, value, reduction)
    return build


def library(name, x, t, arguments):
    if name == "smooth_l1":
        return layers.huber(x, t, delta=arguments["beta"]), 1 / arguments["beta"]
    return getattr(layers, name)(x, t, **({"delta": arguments["delta"]} if name == "huber" else {})), 1.0


def walk_value(walk, inputs, tensor, outer, like):
    """A value of the inputs' broadcast shape, which no node of the graph has."""
    shape = torch.broadcast_shapes(*[tuple(one.shape.sizes) for one in inputs])
    axis = like.axis
    if len(shape) != like.shape.rank or axis is None:
        raise Refused("shapes that are broadcast")
    value = Value(walk, like.shape._replace(sizes=tuple(shape)), torch.float32, tensor, outer=outer, varies=any(one.varies for one in inputs), trains=any(one.trains for one in inputs))
    value.made = walk.reshaped(tensor, value.sample)
    return value


def huber(walk, x, t, delta=1.0):
    size = walk.op("abs", walk.op("sub", x, t))
    near = walk.op("scale", walk.op("square", size), factor=0.5)
    far = walk.op("scale", walk.op("shift", size, by=-delta / 2), factor=delta)
    return walk.op("where", walk.op("less_or_equal", size, delta), near, far)


def cross(walk, x, t):
    """-t log(x) - (1 - t) log(1 - x), with logarithms of at least -100, as PyTorch has them."""
    def log(one):
        return walk.op("clip", walk.op("log", one), min=-100.0)
    other = walk.op("mul", walk.op("shift", walk.op("neg", t), by=1.0), log(walk.op("shift", walk.op("neg", x), by=1.0)))
    return walk.op("neg", walk.op("add", walk.op("mul", t, log(x)), other))


def kl_div(walk, x, t, log_target=False):
    if log_target:
        return walk.op("mul", walk.op("exp", t), walk.op("sub", t, x))
    safe = walk.op("where", walk.op("equal", t, 0.0), 1.0, t)
    return walk.op("mul", t, walk.op("sub", walk.op("log", safe), x))


def bce_with_logits(walk, self, target, weight=None, pos_weight=None, reduction=MEAN):
    if weight is not None or pos_weight is not None:
        raise Refused("weights of classes")
    return logits(walk, self=self, target=target, reduction=reduction)


logits = elementwise("bce_with_logits", lambda walk, x, t: walk.op("sub", walk.op("softplus", x), walk.op("mul", x, t)))


def bce(walk, self, target, weight=None, reduction=MEAN):
    if weight is not None:
        raise Refused("weights")
    return elementwise(None, cross)(walk, self, target, reduction)


# --------------------------------------------------------------------------------------------------------- classes ----

def classes(function):
    """Cross-entropy, of logits or of logarithms of probabilities. The classes are axis 1."""
    def build(walk, self, target, weight=None, reduction=MEAN, ignore_index=-100, label_smoothing=0.0):
        if weight is not None:
            raise Refused("weights of classes: PyTorch divides by their sum in each batch")
        if self.shape.rank < 2 or self.axis == 1:
            raise Refused("logits without a batch, or with another axis of classes than 1")
        if (target.outer, target.rows) != (self.outer, self.rows):
            raise Refused("logits and targets have different batches")
        place, x, t = self.place(1), walk.spread(self), target.tensor
        probabilities = not target.is_integer
        last = len(self.sample) - 1
        if place not in (0, last):
            order = [axis for axis in range(last + 1) if axis != place] + [place]
            x, place = walk.op("transpose", x, perm=order), last
            if probabilities:
                t = walk.op("transpose", t, perm=order)
        if not probabilities:
            if not target.source:
                raise Refused("labels that are computed")
            walk.excluded.append((target.source, ignore_index))
            t = t if t.dtype == "int32" else walk.integers_of(t, target)
        if reduction == NONE:
            raise Refused("a loss for each label: use the mean")
        if reduction == SUM:
            raise Refused("the sum over the samples depends on their number: use the mean")
        return loss(getattr(layers, function)(x, t, class_axis=0 if place == 0 else -1, label_smoothing=label_smoothing), self)
    return build


OPERATORS = {
    "mse_loss": elementwise("mse", lambda walk, x, t: walk.op("square", walk.op("sub", x, t))),
    "l1_loss": elementwise("l1", lambda walk, x, t: walk.op("abs", walk.op("sub", x, t))),
    "huber_loss": elementwise("huber", huber), "smooth_l1_loss": elementwise("smooth_l1", lambda walk, x, t, beta: walk.op("scale", huber(walk, x, t, beta), factor=1 / beta)),
    "binary_cross_entropy_with_logits": bce_with_logits, "binary_cross_entropy": bce, "kl_div": elementwise(None, kl_div),
    "cross_entropy_loss": classes("cross_entropy"), "nll_loss": classes("nll"), "nll_loss_nd": classes("nll"), "nll_loss2d": classes("nll"),
}
