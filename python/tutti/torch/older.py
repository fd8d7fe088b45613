"""Exports by PyTorch before 2.15, which knows some sizes only as numbers, and gives the states of an LSTM a wrong shape."""
import contextlib

import torch
from torch._decomp import decompositions
from torch._subclasses import fake_impls
from torch.nn import functional
from torch.overrides import TorchFunctionMode

IS_OLDER = tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 15)


class OpenSizes(TorchFunctionMode):
    """Losses of probabilities by operators that PyTorch 2.6 exports for any number of samples."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        own = {functional.cross_entropy: cross_entropy, functional.binary_cross_entropy: binary_cross_entropy}
        return own.get(function, function)(*args, **(kwargs or {}))


def cross_entropy(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0):
    """Of probabilities: the sum over the classes, then the mean of all positions, also with weights."""
    if not target.is_floating_point() or input.ndim < 2 or target.shape != input.shape or size_average is not None or reduce is not None or reduction not in REDUCED:
        return functional.cross_entropy(input, target, weight, size_average, ignore_index, reduce, reduction, label_smoothing)
    classes = input.shape[1]
    if label_smoothing:
        target = target * (1 - label_smoothing) + label_smoothing / classes
    each = target * functional.log_softmax(input, 1)
    if weight is not None:
        each = each * weight.reshape(1, classes, *[1] * (input.ndim - 2))
    return REDUCED[reduction](-each.sum(1))


REDUCED = {"none": lambda each: each, "mean": torch.mean, "sum": torch.sum}


def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """The weights get the shape of the targets."""
    if weight is not None and target.shape == input.shape and size_average is None and reduce is None and reduction in REDUCED:
        return torch._C._nn.binary_cross_entropy(input, target, weight.expand_as(target), list(REDUCED).index(reduction))
    return functional.binary_cross_entropy(input, target, weight, size_average, reduce, reduction)


def with_states(original):
    """The states of one layer are [samples, size]; PyTorch 2.6 leaves an axis of one before them."""
    def one_layer(*args, **kwargs):
        out, states = original(*args, **kwargs)
        return out, tuple(one.squeeze(0) if one.ndim == 3 else one for one in states)
    return one_layer


@contextlib.contextmanager
def exporting():
    """Within it, such a PyTorch exports for any number of samples, and with the shapes that there are."""
    if not IS_OLDER:
        yield
        return
    original, checks = decompositions.one_layer_lstm, fake_impls.op_implementations_checks
    all_checks = list(checks)
    decompositions.one_layer_lstm = with_states(original)
    checks[:] = [one for one in all_checks if one[0] is not getattr(fake_impls, "stride_incorrect_op", None)]    # which refuses Fourier transforms
    try:
        with OpenSizes():
            yield
    finally:
        decompositions.one_layer_lstm = original
        checks[:] = all_checks
