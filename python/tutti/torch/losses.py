"""Losses: means and sums over elements and samples, and sums of them."""
import torch

from .. import layers
from .host import by_samples, evaluator, fed
from .values import Loss, Refused, Term, Value, aligned, multiple_of

NONE, MEAN, SUM = 0, 1, 2



def host_of(walk, value):
    return None if value.trains else evaluator(walk, walk.node)


def mean(walk, value):
    """The mean over all elements and samples."""
    if value.axis is None:
        raise Refused("a mean of what does not depend on the samples")
    return Loss([Term(1.0, lambda: walk.spread(value))], value, host_of(walk, value))


def total(walk, value):
    """The sum over all elements and samples."""
    if value.axis is None:
        raise Refused("a sum of what does not depend on the samples")
    return Loss([Term(float(count_of(value.sample)), lambda: walk.spread(value), power=1)], value, host_of(walk, value))


def count_of(sizes):
    count = 1
    for size in sizes:
        count *= size
    return count


def reduced(walk, value, reduction):
    return value if reduction == NONE else (total if reduction == SUM else mean)(walk, value)


def added(walk, one, other, factor=1):
    """Sums of losses, and of a loss and a penalty on parameters."""
    parts = []
    for part, by in ((one, 1), (other, factor)):
        if not isinstance(part, (Value, Loss)) and part == 0:     # sum() begins with it
            part = Loss([], None)
        elif isinstance(part, Value):
            if part.varies or part.shape.rank:
                raise Refused("a loss plus a tensor that is not a loss")
            tensor = walk.reshaped(walk.op("where", walk.like_of(), part.floats, part.floats), [])
            part = Loss([Term(1.0, lambda tensor=tensor: tensor)], None)
        elif not isinstance(part, Loss) or not part.terms:
            raise Refused("a loss plus a number")
        parts.append(part.times(by))
    return Loss(parts[0].terms + parts[1].terms, parts[0].prediction or parts[1].prediction)


def scaled(walk, operation, one, other):
    """A loss times, or divided by, a number: also the number of samples, and one that is made of the inputs alone."""
    if operation == "mul" and (not isinstance(one, Loss) or (isinstance(other, Loss) and other.terms and not other.host)):
        one, other = other, one
    if isinstance(other, Value) and other.known is not None and other.known.numel() == 1:
        other = float(other.known)
    if operation not in ("mul", "div") or not isinstance(one, Loss) or not one.terms:
        raise Refused("a loss can be added, and multiplied by numbers")
    if isinstance(other, Loss) and other.host:
        return one.scaled(other.host if operation == "mul" else lambda arrays: 1 / float(other.host(arrays)))
    if isinstance(other, torch.SymInt):
        multiple, batched = multiple_of(other, walk.symbol)
        power = 1 if operation == "mul" else -1
        return one.times(float(multiple) ** power).over_samples(power if batched else 0)
    if not isinstance(other, (int, float)):
        raise Refused("a loss can be added, and multiplied by numbers")
    return one.times(other if operation == "mul" else 1 / other)


def elementwise(name, formula):
    """A loss of elements, by the library's function where the mean is wanted and the targets do not train."""
    def build(walk, self, target, reduction=MEAN, **arguments):
        refuse_tensors(arguments)
        (x, t), outer = aligned(walk, [self, target])
        def value():
            return walk_value(walk, [self, target], formula(walk, x, t, **arguments), outer)
        if name and reduction == MEAN and not target.trains and self.shape == target.shape and self.varies and self.axis is not None and arguments.get("beta") != 0:
            factor = 1 / arguments["beta"] if name == "smooth_l1" else 1.0
            return Loss([Term(factor, lambda: walk.op("scale", walk.spread(value()), factor=1 / factor), lambda: library(name, x, walk.spread(target), arguments))], self)
        return reduced(walk, value(), reduction)
    return build


def refuse_tensors(arguments):
    for name, value in arguments.items():
        if isinstance(value, (Value, Loss)):
            raise Refused(f"{name} that is a tensor")


def library(name, x, t, arguments):
    if name == "smooth_l1":
        return layers.huber(x, t, delta=arguments["beta"])
    return getattr(layers, name)(x, t, **({"delta": arguments["delta"]} if name == "huber" else {}))


def walk_value(walk, inputs, tensor, outer):
    """A value of the inputs' broadcast shape, which no node of the graph has."""
    shape = torch.broadcast_shapes(*[tuple(one.shape.sizes) for one in inputs])
    like = next((one for one in inputs if one.axis is not None and one.shape.rank == len(shape)), None)
    if like is None or shape[like.axis] != like.shape.sizes[like.axis]:
        raise Refused("shapes that are broadcast")
    value = Value(walk, like.shape._replace(sizes=tuple(shape)), torch.float32, tensor, outer=outer, varies=any(one.varies for one in inputs), trains=any(one.trains for one in inputs))
    value.made = walk.reshaped(tensor, value.sample)
    return value


def huber(walk, x, t, delta=1.0):
    size = walk.op("abs", walk.op("sub", x, t))
    near = walk.op("scale", walk.op("square", size), factor=0.5)
    far = walk.op("scale", walk.op("shift", size, by=-delta / 2), factor=delta)
    return walk.op("where", walk.op("less_or_equal", size, delta), near, far)


def smooth_l1(walk, x, t, beta=1.0):
    return walk.op("scale", huber(walk, x, t, beta), factor=1 / beta) if beta else walk.op("abs", walk.op("sub", x, t))


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


def soft_margin(walk, x, t):
    return walk.op("softplus", walk.op("neg", walk.op("mul", x, t)))


def poisson_nll(walk, input, target, log_input, full, eps, reduction):
    if full or not log_input:
        raise Refused("full=True, or log_input=False")
    (x, t), outer = aligned(walk, [input, target])
    return reduced(walk, walk_value(walk, [input, target], walk.op("sub", walk.op("exp", x), walk.op("mul", t, x)), outer), reduction)


def bce_with_logits(walk, self, target, weight=None, pos_weight=None, reduction=MEAN):
    """(1 - t) x + (1 + (pos_weight - 1) t) softplus(-x), times the weight."""
    if weight is None and pos_weight is None:
        return logits(walk, self=self, target=target, reduction=reduction)
    given = [one for one in (self, target, weight, pos_weight) if one is not None]
    tensors, outer = aligned(walk, given)
    x, t = tensors[:2]
    log = walk.op("softplus", walk.op("neg", x))
    if pos_weight is not None:
        more = walk.op("mul", walk.op("shift", tensors[-1], by=-1.0), t)
        log = walk.op("mul", walk.op("shift", more, by=1.0), log)
    y = walk.op("add", walk.op("mul", walk.op("shift", walk.op("neg", t), by=1.0), x), log)
    y = walk.op("mul", y, tensors[2]) if weight is not None else y
    return reduced(walk, walk_value(walk, given, y, outer), reduction)


logits = elementwise("bce_with_logits", lambda walk, x, t: walk.op("sub", walk.op("softplus", x), walk.op("mul", x, t)))


def bce(walk, self, target, weight=None, reduction=MEAN):
    given = [self, target] + ([weight] if weight is not None else [])
    tensors, outer = aligned(walk, given)
    y = cross(walk, *tensors[:2])
    y = walk.op("mul", y, tensors[2]) if weight is not None else y
    return reduced(walk, walk_value(walk, given, y, outer), reduction)


# --------------------------------------------------------------------------------------------------------- classes ----

def classes(function):
    """Cross-entropy, of logits or of logarithms of probabilities. The classes are axis 1."""
    def build(walk, self, target, weight=None, reduction=MEAN, ignore_index=-100, label_smoothing=0.0):
        if weight is not None and weight.known is None:
            raise Refused("weights of classes that are computed")
        if self.shape.rank < 2 or self.axis in (1, None):
            raise Refused("logits without a batch, or with another axis of classes than 1")
        if target.axis is None or (target.outer, target.rows) != (self.outer, self.rows):
            raise Refused("logits and targets have different batches")
        weights = weight.known.detach().float() if weight is not None else None
        kind = Probabilities if not target.is_integer else Labels
        return kind(walk, function, self, target, weights, ignore_index, label_smoothing).loss(reduction)
    return build


class Classes:
    """A loss of class numbers or of probabilities, of logits or logarithms."""

    def __init__(self, walk, function, x, target, weights, ignored, smoothing):
        self.walk, self.function, self.x, self.target, self.weights, self.ignored, self.smoothing = walk, function, x, target, weights, ignored, smoothing
        self.place, self.count = x.place(1), x.shape.sizes[1]
        self.positions = count_of(x.sample) // self.count

    def logarithms(self):
        x = self.walk.spread(self.x)
        return self.walk.op("log_softmax", x, axis=self.place) if self.function == "cross_entropy" else x

    def along_classes(self, numbers):
        """Numbers of the classes as a constant that is broadcast with the logits."""
        sizes = [self.count if axis == self.place else 1 for axis in range(len(self.x.sample))]
        return self.walk.network.constant(numbers.numpy().reshape(sizes))

    def by_library(self, t):
        """The library's loss, which has the classes first or last."""
        x, place, last, walk = self.walk.spread(self.x), self.place, len(self.x.sample) - 1, self.walk
        if place not in (0, last):
            order = [axis for axis in range(last + 1) if axis != place] + [place]
            x, place = walk.op("transpose", x, perm=order), last
            t = walk.op("transpose", t, perm=order) if not self.target.is_integer else t
        return getattr(layers, self.function)(x, t, class_axis=0 if place == 0 else -1, label_smoothing=self.smoothing)

    def each(self):
        """The value of reduction="none"."""
        return self.walk.result(self.elements(), [self.x, self.target], outer=self.x.outer)


class Probabilities(Classes):
    def elements(self):
        walk = self.walk
        p = walk.spread(self.target)
        if self.smoothing:
            p = walk.op("shift", walk.op("scale", p, factor=1 - self.smoothing), by=self.smoothing / self.count)
        y = walk.op("mul", p, self.logarithms())
        y = walk.op("mul", y, self.along_classes(self.weights)) if self.weights is not None else y
        return walk.op("neg", walk.op("reduce_sum", y, axes=self.place, keepdims=0))

    def loss(self, reduction):
        if self.target.shape.rank != self.x.shape.rank:
            raise Refused("probabilities of another shape than the logits")
        if reduction == NONE:
            return self.each()
        fused = None if self.weights is not None or self.target.trains else lambda: self.by_library(self.walk.spread(self.target))
        if reduction == SUM:
            return Loss([Term(float(self.positions), self.elements, power=1)], self.x)
        return Loss([Term(1.0, self.elements, fused)], self.x)


class Labels(Classes):
    def __init__(self, walk, *arguments):
        super().__init__(walk, *arguments)
        if self.target.trains or self.target.node is None:
            raise Refused("labels that are computed")
        self.labels = evaluator(walk, self.target.node)
        if self.labels is None:
            raise Refused("labels that are computed of parameters or random numbers")

    def checked(self, arrays):
        """(labels, whether each counts), as [samples, ...]."""
        labels = by_samples(self.target, self.labels(arrays))
        kept = labels != self.ignored
        wrong = kept & ((labels < 0) | (labels >= self.count))
        if wrong.any():
            raise IndexError(f"target {int(labels[wrong][0])} is out of bounds: there are {self.count} classes, and {self.ignored} is ignored")
        return labels, kept

    def by_class(self, arrays):
        """The weight of each label."""
        labels, kept = self.checked(arrays)
        return kept.float() if self.weights is None else self.weights[torch.where(kept, labels, 0)] * kept

    def safe(self, arrays):
        labels, kept = self.checked(arrays)
        return torch.where(kept, labels, 0).int()

    def elements(self):
        walk, sample = self.walk, self.x.sample
        logs, sizes = self.logarithms(), self.target.sample
        indices = walk.reshaped(walk.floats_of(fed(walk, sizes, "int32", self.safe)), [1 if axis == self.place else size for axis, size in enumerate(sample)])
        y = walk.reshaped(walk.op("gather_elements", logs, indices, axis=self.place), sizes)
        y = walk.op("neg", walk.op("mul", y, fed(walk, sizes, "float32", self.by_class)))
        if self.smoothing:
            even = walk.op("mul", logs, self.along_classes(self.weights)) if self.weights is not None else logs
            even = walk.op("neg", walk.op("reduce_sum", even, axes=self.place, keepdims=0))
            kept = fed(walk, sizes, "float32", lambda arrays: self.checked(arrays)[1].float())
            even = walk.op("scale", walk.op("mul", walk.reshaped(even, sizes), kept), factor=self.smoothing / self.count)
            y = walk.op("add", walk.op("scale", y, factor=1 - self.smoothing), even)
        return y

    def loss(self, reduction):
        if reduction == NONE:
            return self.each()
        if reduction == SUM:
            return Loss([Term(float(self.positions), self.elements, power=1)], self.x)
        if self.weights is None and not self.walk.ignores:
            self.walk.excluded.append(lambda arrays: not self.checked(arrays)[1].all())
            return Loss([Term(1.0, self.elements, lambda: self.by_library(self.tensor()))], self.x)
        return Loss([Term(float(self.positions), self.elements, power=1)], self.x).scaled(lambda arrays: 1 / float(self.by_class(arrays).sum()))

    def tensor(self):
        """The labels as they are fed, or computed on the host."""
        if self.target.source and self.target.tensor.dtype == "int32":
            return self.target.tensor
        return fed(self.walk, self.target.sample, "int32", self.safe)


OPERATORS = {
    "mse_loss": elementwise("mse", lambda walk, x, t: walk.op("square", walk.op("sub", x, t))),
    "l1_loss": elementwise("l1", lambda walk, x, t: walk.op("abs", walk.op("sub", x, t))),
    "huber_loss": elementwise("huber", huber), "smooth_l1_loss": elementwise("smooth_l1", smooth_l1),
    "binary_cross_entropy_with_logits": bce_with_logits, "binary_cross_entropy": bce, "kl_div": elementwise(None, kl_div),
    "soft_margin_loss": elementwise(None, soft_margin), "poisson_nll_loss": poisson_nll,
    "cross_entropy_loss": classes("cross_entropy"), "nll_loss": classes("nll"), "nll_loss_nd": classes("nll"), "nll_loss2d": classes("nll"),
}
