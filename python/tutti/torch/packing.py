"""Packed sequences: PyTorch sorts the samples of a batch by their lengths and joins them, which depends on numbers. While a module is
exported, a packed sequence is the padded one with its lengths, and the layers that read it are torch.ops.tutti.packed_recurrent."""
import contextlib
from typing import List

import torch
from torch.nn.utils import rnn

from .. import errors
from .values import Refused

KINDS = {torch.nn.LSTM: "lstm", torch.nn.GRU: "gru", torch.nn.RNN: "rnn"}


@torch.library.custom_op("tutti::packed_recurrent", mutates_args=())
def packed_recurrent(kind: str, x: torch.Tensor, lengths: torch.Tensor, hx: List[torch.Tensor], params: List[torch.Tensor], has_biases: bool, num_layers: int,  # noqa: UP006
                     dropout: float, train: bool, bidirectional: bool) -> List[torch.Tensor]:  # noqa: UP006
    """Outputs [samples, steps, features], which are 0 after the lengths, and last states [layers, samples, hidden]."""
    raise NotImplementedError("tutti.packed_recurrent stands for PyTorch's layers in graphs of modules")


@packed_recurrent.register_fake
def _(kind, x, lengths, hx, params, has_biases, num_layers, dropout, train, bidirectional):
    hidden, directions = params[1].shape[1], 2 if bidirectional else 1
    state = (num_layers * directions, x.shape[0], hidden)
    return [x.new_empty(x.shape[0], x.shape[1], directions * hidden)] + [x.new_empty(state) for _ in hx]


@torch.library.custom_op("tutti::padded_sequence", mutates_args=())
def padded_sequence(y: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """The outputs up to the longest length, which must be all."""
    longest(int(lengths.max()), y.shape[1])
    return y.clone()


@padded_sequence.register_fake
def _(y, lengths):
    return torch.empty_like(y)


def longest(found, steps):
    if found != steps:
        raise errors.UnsupportedError(f"pad_packed_sequence() without total_length gives as many steps as the longest sequence of a batch has: here {found}, and "
                                      f"x has {steps}. Write total_length=x.shape[1], or cut x to its longest sequence")


class Packed(rnn.PackedSequence):
    """A padded sequence [samples, steps, features] with its lengths."""

    def __new__(cls, padded, lengths):
        made = rnn.PackedSequence.__bases__[0].__new__(cls, None, None, None, None)
        made.padded, made.lengths = padded, lengths
        return made

    def __init__(self, *_):
        pass

    def refuse(self):
        raise Refused("it reads the data of a packed sequence, in which samples are sorted and joined: compute before pack_padded_sequence(), or after "
                      "pad_packed_sequence()")

    data = batch_sizes = sorted_indices = unsorted_indices = property(refuse)
    __iter__ = __getitem__ = refuse


def pack(input, lengths, batch_first):
    if not isinstance(lengths, torch.Tensor):
        raise Refused("lengths of a packed sequence that are a list: give them to forward() as a tensor, for any number of samples")
    return Packed(input if batch_first else input.transpose(0, 1), lengths)


def unpack(sequence, batch_first, padding_value, total_length):
    y, lengths = sequence.padded, sequence.lengths
    steps = y.shape[1]
    if total_length is None:
        y = torch.ops.tutti.padded_sequence(y, lengths)
    elif total_length < steps:
        raise Refused(f"pad_packed_sequence() to {total_length} steps, which are less than the {steps} of the padded sequence")
    else:
        y = torch.nn.functional.pad(y, (0, 0, 0, total_length - steps))
    if padding_value:
        counts = torch.arange(y.shape[1]) < lengths[:, None]
        y = torch.where(counts[:, :, None], y, padding_value)
    return (y if batch_first else y.transpose(0, 1)), lengths


# Their code takes the place of PyTorch's, so that it is called by programs that have imported the functions, too.
def own_pack(input, lengths, batch_first=False, enforce_sorted=True):
    import tutti.torch.packing
    return tutti.torch.packing.pack(input, lengths, batch_first)


def own_unpack(sequence, batch_first=False, padding_value=0.0, total_length=None):
    import tutti.torch.packing
    return tutti.torch.packing.unpack(sequence, batch_first, padding_value, total_length)


def forward_of(original, kind):
    def forward(self, input, hx=None):
        if not isinstance(input, Packed):
            return original(self, input, hx)
        if getattr(self, "proj_size", 0):
            raise Refused("proj_size: a layer whose state is projected has no form here")
        x, directions = input.padded, 2 if self.bidirectional else 1
        if hx is None:
            zeros = torch.zeros(self.num_layers * directions, x.shape[0], self.hidden_size)
            hx = (zeros, zeros) if kind == "lstm" else zeros
        states = list(hx) if kind == "lstm" else [hx]
        name, weights = f"rnn_{self.nonlinearity}" if kind == "rnn" else kind, [getattr(self, one) for one in self._flat_weights_names]
        y, *last = torch.ops.tutti.packed_recurrent(name, x, input.lengths, states, weights, self.bias, self.num_layers, float(self.dropout), self.training, self.bidirectional)
        return Packed(y, input.lengths), (tuple(last) if kind == "lstm" else last[0])
    return forward


@contextlib.contextmanager
def exporting():
    """Within it, packed sequences are padded ones with their lengths."""
    functions = {rnn.pack_padded_sequence: own_pack, rnn.pad_packed_sequence: own_unpack}
    codes, forwards = {one: one.__code__ for one in functions}, {kind: kind.forward for kind in KINDS}
    for one, own in functions.items():
        one.__code__ = own.__code__
    for kind, name in KINDS.items():
        kind.forward = forward_of(forwards[kind], name)
    try:
        yield
    finally:
        for one, code in codes.items():
            one.__code__ = code
        for kind, forward in forwards.items():
            kind.forward = forward
