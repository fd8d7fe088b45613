"""Losses with margins: of pairs, of three, of signs."""
import torch

from .elements import number
from .losses import MEAN, reduced
from .values import Refused, Value, aligned


def least(walk, x):
    """max(x, 0), with PyTorch's gradient at 0: that of x."""
    return walk.op("where", walk.op("less", x, 0.0), 0.0, x)


def of_pairs(walk, given, tensor, outer, rank):
    """A value with so many of the first axes of what is given."""
    like = next(one for one in given if one.axis is not None)
    if like.axis >= rank or like.shape.rank < rank or any(one.shape.sizes[:rank] != like.shape.sizes[:rank] for one in given):
        raise Refused("shapes that are broadcast")
    made = Value(walk, like.shape._replace(sizes=like.shape.sizes[:rank]), torch.float32, tensor, outer=outer, varies=True, trains=any(one.trains for one in given))
    made.made = walk.reshaped(tensor, made.sample)
    return made


def check(*given):
    if not all(isinstance(one, Value) and (one.varies and one.axis is not None) for one in given):
        raise Refused("inputs that are the same for all samples")


def margin_ranking(walk, input1, input2, target, margin=0.0, reduction=MEAN):
    check(input1, input2, target)
    (x, y, t), outer = aligned(walk, [input1, input2, target])
    each = least(walk, walk.op("shift", walk.op("mul", t, walk.op("sub", y, x)), by=float(margin)))
    return reduced(walk, of_pairs(walk, [input1, input2, target], each, outer, input1.shape.rank), reduction)


def hinge_embedding(walk, self, target, margin=1.0, reduction=MEAN):
    check(self, target)
    (x, t), outer = aligned(walk, [self, target])
    far = walk.op("where", walk.op("equal", t, 1.0), 0.0, least(walk, walk.op("shift", walk.op("neg", x), by=float(margin))))
    each = walk.op("add", far, walk.op("where", walk.op("equal", t, -1.0), 0.0, x))
    return reduced(walk, of_pairs(walk, [self, target], each, outer, self.shape.rank), reduction)


def distance(walk, x, y, p, eps):
    difference = walk.op("shift", walk.op("sub", x, y), by=float(eps))
    return walk.op(f"reduce_l{int(p)}", difference, axes=[len(difference.shape) - 1], keepdims=0)


def triplet_margin(walk, anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, reduction=MEAN):
    given = [anchor, positive, negative]
    check(*given)
    if p not in (1, 2) or not number(margin):
        raise Refused(f"the norm of order {p}")
    (a, b, c), outer = aligned(walk, given)
    near, far = distance(walk, a, b, p, eps), distance(walk, a, c, p, eps)
    far = walk.op("min", far, distance(walk, b, c, p, eps)) if swap else far
    each = least(walk, walk.op("shift", walk.op("sub", near, far), by=float(margin)))
    return reduced(walk, of_pairs(walk, given, each, outer, anchor.shape.rank - 1), reduction)


def cosine_embedding(walk, input1, input2, target, margin=0.0, reduction=MEAN):
    """1 - cos where the target is 1, max(cos - margin, 0) where it is -1."""
    check(input1, input2, target)
    if input1.shape.rank != 2 or target.shape.rank != 1:
        raise Refused("vectors without a batch")
    (x, y), outer = aligned(walk, [input1, input2])
    t = target.floats

    def product(one, other):
        return walk.op("reduce_sum", walk.op("mul", one, other), axes=[len(one.shape) - 1], keepdims=1)
    sizes = walk.op("mul", walk.op("shift", product(x, x), by=1e-12), walk.op("shift", product(y, y), by=1e-12))
    cosine = walk.reshaped(walk.op("div", product(x, y), walk.op("sqrt", sizes)), target.sample)
    near = walk.op("where", walk.op("equal", t, 1.0), walk.op("shift", walk.op("neg", cosine), by=1.0), 0.0)
    far = walk.op("where", walk.op("equal", t, -1.0), least(walk, walk.op("shift", cosine, by=-float(margin))), 0.0)
    return reduced(walk, of_pairs(walk, [input1, input2, target], walk.op("add", near, far), outer, 1), reduction)


OPERATORS = {"margin_ranking_loss": margin_ranking, "hinge_embedding_loss": hinge_embedding, "triplet_margin_loss": triplet_margin, "cosine_embedding_loss": cosine_embedding}
