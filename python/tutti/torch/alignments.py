"""torch.nn.functional.ctc_loss, whose lengths torch.export wants to know as numbers. While a loss is exported it is one operator,
torch.ops.tutti.ctc, of which the library's loss is made: it takes the softmax itself, so that of the module must be before it."""
import contextlib

import torch

from .. import errors, layers
from .host import by_samples, evaluator, fed
from .losses import MEAN, NONE
from .values import Loss, Refused, Term

REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}
KEEPS = "contiguous", "clone", "detach", "alias", "_to_copy", "to"
LISTS = "its lengths are {}, which fit one batch: give tensors with a number for each sample, as torch.full((x.shape[0],), frames)"
NOT_DIVIDED = ('the sum of CTC losses can only be divided by the number of samples, and added to others: write reduction="mean", '
               'or ctc_loss(..., reduction="sum") / x.shape[0]')


@torch.library.custom_op("tutti::ctc", mutates_args=())
def ctc(log_probs: torch.Tensor, targets: torch.Tensor, input_lengths: torch.Tensor, target_lengths: torch.Tensor, blank: int, reduction: int, zero_infinity: bool) -> torch.Tensor:
    """log_probs [T, N, C], targets [N, S], lengths [N]."""
    return original(log_probs, targets, input_lengths, target_lengths, blank, {number: word for word, number in REDUCTIONS.items()}[reduction], zero_infinity)


@ctc.register_fake
def _(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity):
    return log_probs.new_empty((log_probs.shape[1],) if reduction == NONE and log_probs.ndim == 3 else ())


original = torch.nn.functional.ctc_loss


def called(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False):
    for lengths in (input_lengths, target_lengths):
        if not isinstance(lengths, torch.Tensor):
            raise errors.UnsupportedError("tutti.torch cannot train with this ctc_loss: " + LISTS.format(f"a {type(lengths).__name__}"))
    return torch.ops.tutti.ctc(log_probs, targets, input_lengths, target_lengths, blank, REDUCTIONS[reduction], zero_infinity)


@contextlib.contextmanager
def exporting():
    torch.nn.functional.ctc_loss = called
    try:
        yield
    finally:
        torch.nn.functional.ctc_loss = original


def is_normalised(node, axis):
    """Whether a node of the graph is a log_softmax along this axis, perhaps with other orders of axes after it."""
    while isinstance(node, torch.fx.Node) and isinstance(node.target, torch._ops.OpOverload):
        name, rank = node.target._schema.name.split("::")[-1], node.meta["val"].ndim
        if name in ("log_softmax", "_log_softmax"):
            return node.args[1] % rank == axis
        if name in ("transpose", "swapaxes", "swapdims"):
            one, other = (each % rank for each in node.args[1:3])
            axis = other if axis == one else one if axis == other else axis
        elif name == "permute":
            axis = node.args[1][axis] % rank
        elif name not in KEEPS:
            return False
        node = node.args[0]
    return False


class Alignment:
    """The loss of labels in order, of which each sample has as many as its length says."""

    def __init__(self, walk, x, targets, frames, labels, blank):
        self.walk, self.x, self.targets, self.blank = walk, x, targets, blank
        self.frames, self.classes, self.listed = x.shape.sizes[0], x.shape.sizes[2], targets.shape.sizes[1]
        self.given = [(one, self.computed(one, name)) for one, name in ((targets, "targets"), (labels, "target_lengths"), (frames, "input_lengths"))]

    def computed(self, value, name):
        found = None if value.trains or value.node is None else evaluator(self.walk, value.node)
        if found is None:
            raise Refused(f"{name} that are computed of parameters or random numbers")
        if value.axis != 0 or value.outer * value.rows != 1:
            raise Refused(f"{name} whose first axis is not the batch")
        return found

    def numbers(self, position, arrays):
        value, function = self.given[position]
        return by_samples(value, function(arrays))

    def lengths(self, position, arrays, most, name):
        found = self.numbers(position, arrays).reshape(-1).long()
        if ((found < 0) | (found > most)).any():
            raise ValueError(f"{name} has {int(found[(found < 0) | (found > most)][0])}: it must be from 0 to {most}")
        return found

    def labels(self, arrays):
        """The labels of each sample, then -1."""
        lengths, labels = self.lengths(1, arrays, self.listed, "target_lengths"), self.numbers(0, arrays)
        counts = torch.arange(self.listed) < lengths[:, None]
        wrong = counts & ((labels < 0) | (labels >= self.classes) | (labels == self.blank))
        if wrong.any():
            raise IndexError(f"the label {int(labels[wrong][0])} is no class from 0 to {self.classes - 1} other than the blank, {self.blank}")
        return torch.where(counts, labels, -1).int()

    def loss(self, **options):
        walk = self.walk
        targets = fed(walk, (self.listed,), "int32", self.labels)
        frames = fed(walk, (), "int32", lambda arrays: self.lengths(2, arrays, self.frames, "input_lengths").int())
        return layers.ctc(walk.spread(self.x), targets, lengths=frames, blank=self.blank, **options)


def build(walk, log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity):
    if log_probs.shape.rank != 3 or log_probs.axis != 1 or log_probs.outer * log_probs.rows != 1:
        raise Refused("log_probs that are not [frames, samples, classes]")
    if targets.shape.rank != 2:
        raise Refused("targets of all samples in one list: give [samples, labels], whose ends target_lengths tells")
    if not is_normalised(walk.node.args[0], 2):
        raise Refused("log_probs that are not the result of log_softmax along the classes")
    if reduction == NONE:
        raise Refused('reduction="none": write "mean", which divides each loss by its number of labels')
    made = Alignment(walk, log_probs, targets, input_lengths, target_lengths, blank)

    def elements():
        raise errors.UnsupportedError(f"tutti.torch cannot train with this loss: {NOT_DIVIDED}")
    mean = reduction == MEAN
    return Loss([Term(1.0, elements, lambda: made.loss(zero_infinity=zero_infinity, sum=not mean), power=0 if mean else 1)], log_probs)


OPERATORS = {"ctc": build}
