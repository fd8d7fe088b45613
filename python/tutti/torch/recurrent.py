"""Recurrent layers, also of packed sequences, and their cells."""
import torch

from .. import layers
from .host import by_samples, evaluator, fed
from .packing import longest
from .values import Refused, Value, aligned

ORDER = {"lstm": (0, 3, 1, 2), "gru": (1, 0, 2), "rnn": (0,)}     # the gates of `w`, as PyTorch counts them


def value_of(found):
    return found.value() if hasattr(found, "own") else found


# --------------------------------------------------------------------------------------------------------- layers ----

class Layers:
    """One call of PyTorch's LSTM, GRU or RNN: several layers, each with one or two directions."""

    def __init__(self, walk, kind, hx, params, has_biases, num_layers, bidirectional, functions=None, lengths=None):
        self.walk, self.kind, self.params, self.has_biases, self.functions, self.lengths = walk, kind, params, has_biases, functions, lengths
        self.directions, self.each = 2 if bidirectional else 1, 4 if has_biases else 2
        if len(params) != num_layers * self.directions * self.each:
            raise Refused("proj_size: a layer whose state is projected has no form here")
        self.hidden = (params[1].values if hasattr(params[1], "own") else torch.empty(params[1].shape.sizes)).shape[1]
        self.states = list(hx) if isinstance(hx, (list, tuple)) else [hx]

    def options(self, layer):
        made = {"last_h": True, "bidirectional": self.directions == 2}
        if self.kind == "lstm":
            made["last_c"] = True
        if self.functions:
            made["functions"] = self.functions
        if self.lengths is not None:
            made["lengths"] = self.lengths
        for name, state in zip(("initial_h", "initial_c"), self.states):
            if state.fill != 0:
                made[name] = self.initial(state, layer)
        return made

    def initial(self, state, layer):
        """The states [directions, hidden] with which a layer begins, of [layers * directions, samples, hidden]."""
        if state.axis not in (1, None) or state.split or (state.axis is None and state.shape.sizes[1] != 1):
            raise Refused("initial states of another shape than [layers, samples, hidden]")
        tensor, count = self.walk.reshaped(state.floats, (state.shape.sizes[0], self.hidden)), self.directions
        return tensor if state.shape.sizes[0] == count else self.walk.op("slice", tensor, axes=0, starts=layer * count, ends=(layer + 1) * count)

    def made(self, layer, x):
        """The outputs and the last states of a layer."""
        mine, make = self.params[layer * self.directions * self.each:(layer + 1) * self.directions * self.each], getattr(layers, self.kind)
        if all(hasattr(one, "own") and one.is_free for one in mine):
            name = self.walk.unique(mine[0].target.removeprefix("module.").rsplit(".", 1)[0])
            found = make(x, self.hidden, name=name, no_bias=not self.has_biases, **self.options(layer))
            for parameter, own in zip(mine, names(self.directions, self.has_biases)):
                parameter.own(f"{name}.{own}")
            return found
        return make(x, self.hidden, **self.weights([value_of(one) for one in mine]), **self.options(layer))

    def weights(self, mine):
        """Weights that are shared with other layers, or computed: as operands of the layer."""
        if any(one.axis is not None for one in mine):
            raise Refused("weights that differ from sample to sample")
        parts = [[self.gates(one) for one in mine[at:at + self.each]] for at in range(0, len(mine), self.each)]
        made = {name: self.joined([one[index] for one in parts]) for index, name in enumerate(("w", "r"))}
        if self.has_biases:
            made["b"] = self.joined([self.walk.op("concat", one[2], one[3], axis=0) for one in parts])
        return made

    def gates(self, value):
        order, tensor = ORDER[self.kind], value.floats
        pieces = [self.walk.op("slice", tensor, axes=0, starts=gate * self.hidden, ends=(gate + 1) * self.hidden) for gate in order]
        return self.walk.op("concat", *pieces, axis=0) if len(pieces) > 1 else tensor

    def joined(self, parts):
        parts = [self.walk.reshaped(one, (1, *one.shape)) for one in parts]
        return self.walk.op("concat", *parts, axis=0) if len(parts) > 1 else parts[0]

    def run(self, x, count, dropout):
        last = [[] for _ in self.states]
        for layer in range(count):
            x = self.walk.op("dropout", x, ratio=dropout) if layer and dropout else x
            x, *ends = self.made(layer, x)
            for position, end in enumerate(ends):
                last[position].append(end)
        return [x, *(self.walk.op("concat", *ends, axis=0) if len(ends) > 1 else ends[0] for ends in last)]


def names(directions, has_biases):
    words = ["weight_ih_l0", "weight_hh_l0", *(["bias_ih_l0", "bias_hh_l0"] if has_biases else [])]
    return [word + end for end in ("", "_reverse")[:directions] for word in words]


def recurrent(kind, functions=None):
    def build(walk, input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first):
        if input.axis != (0 if batch_first else 1) or input.split:
            raise Refused("the batch is not the axis that batch_first says")
        made = Layers(walk, kind, hx, params, has_biases, num_layers, bidirectional, functions)
        return outputs(walk, input, made.run(walk.spread(input), num_layers, dropout if train else 0))
    return build


def outputs(walk, input, tensors):
    made = []
    for index, tensor in enumerate(tensors):
        value = walk.result(tensor, [input], index=index)
        value.varies = value.trains = True
        made.append(value)
    return made


# --------------------------------------------------------------------------------------------------------- packed ----

def lengths_of(walk, lengths, steps):
    """The lengths as an input that the host computes, and looks at."""
    found = evaluator(walk, lengths.node) if lengths.node is not None and lengths.axis == 0 and not lengths.trains else None
    if found is None:
        raise Refused("lengths that are not a tensor of the module's arguments, or computed of these alone")

    def numbers(arrays):
        made = by_samples(lengths, found(arrays)).reshape(-1)
        if made.min() < 1 or made.max() > steps:
            raise ValueError(f"lengths are {int(made.min())} to {int(made.max())}: sequences of {steps} steps have lengths from 1 to {steps}")
        return made
    return numbers


def packed(walk, kind, x, lengths, hx, params, has_biases, num_layers, dropout, train, bidirectional):
    """The layers of a packed sequence: x [samples, steps, features] with the steps of each sample that count."""
    x, lengths = value_of(x), value_of(lengths)
    if x.axis != 0 or x.split:
        raise Refused("the batch is not the first axis")
    numbers = lengths_of(walk, lengths, x.shape.sizes[1])
    given = fed(walk, (), "float32", lambda arrays: numbers(arrays).float())
    name = "rnn" if kind.startswith("rnn") else kind
    made = Layers(walk, name, [value_of(one) for one in hx], params, has_biases, num_layers, bidirectional, RELU if kind == "rnn_relu" else None, given)
    return outputs(walk, x, made.run(walk.spread(x), num_layers, dropout if train else 0))


def padded(walk, y, lengths):
    """Outputs up to the longest length, which must be all."""
    steps = y.shape.sizes[1]
    numbers = lengths_of(walk, lengths, steps)
    walk.checks.append(lambda arrays: longest(int(numbers(arrays).max()), steps))
    return y


# ---------------------------------------------------------------------------------------------------------- cells ----

def product(walk, tensor, weight, bias, varies):
    if weight.axis is not None or (bias is not None and bias.axis is not None):
        raise Refused("weights that differ from sample to sample")
    if varies:
        return walk.op("dense", tensor, weight.floats, *([bias.floats] if bias is not None else []))
    made = walk.op("matmul", tensor, weight.floats, transpose_b=1)
    return made if bias is None else walk.op("add", made, bias.floats)


class Cell:
    """One step: `from_x` and `from_h` are the products with the weights, h the state."""

    def __init__(self, walk, input, states, weights):
        self.walk, self.input, self.states, self.all = walk, input, states, [input, *states, *[one for one in weights if one is not None]]
        w_ih, w_hh, b_ih, b_hh = weights
        if input.axis is not None and input.axis == input.shape.rank - 1:
            raise Refused("the batch is the last axis")
        self.hidden = w_hh.shape.sizes[1]
        (x, *self.tensors), self.outer = aligned(walk, [input, *states])
        self.from_x, self.from_h = product(walk, x, w_ih, b_ih, input.varies), product(walk, self.tensors[0], w_hh, b_hh, states[0].varies)

    def gate(self, tensor, position):
        return self.walk.op("slice", tensor, axes=len(tensor.shape) - 1, starts=position * self.hidden, ends=(position + 1) * self.hidden)

    def result(self, tensor, index=None):
        return self.walk.result(tensor, self.all, outer=self.outer, index=index)


def simple_cell(function):
    def build(walk, input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
        cell = Cell(walk, input, [hx], (w_ih, w_hh, b_ih, b_hh))
        return cell.result(walk.op(function, walk.op("add", cell.from_x, cell.from_h)))
    return build


def gru_cell(walk, input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """h' = n + z (h - n), n = tanh(x + r h)."""
    cell = Cell(walk, input, [hx], (w_ih, w_hh, b_ih, b_hh))
    r, z = (walk.op("sigmoid", walk.op("add", cell.gate(cell.from_x, place), cell.gate(cell.from_h, place))) for place in (0, 1))
    n = walk.op("tanh", walk.op("add", cell.gate(cell.from_x, 2), walk.op("mul", r, cell.gate(cell.from_h, 2))))
    return cell.result(walk.op("add", n, walk.op("mul", z, walk.op("sub", cell.tensors[0], n))))


def lstm_cell(walk, input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """c' = f c + i g, h' = o tanh(c')."""
    cell = Cell(walk, input, hx, (w_ih, w_hh, b_ih, b_hh))
    both = walk.op("add", cell.from_x, cell.from_h)
    i, f, g, o = (walk.op("tanh" if place == 2 else "sigmoid", cell.gate(both, place)) for place in range(4))
    c = walk.op("add", walk.op("mul", f, cell.tensors[1]), walk.op("mul", i, g))
    return [cell.result(walk.op("mul", o, walk.op("tanh", c)), 0), cell.result(c, 1)]


RELU = ("relu",) * 6
OPERATORS = {
    "lstm": recurrent("lstm"), "gru": recurrent("gru"), "rnn_tanh": recurrent("rnn"), "rnn_relu": recurrent("rnn", RELU),
    "lstm_cell": lstm_cell, "gru_cell": gru_cell, "rnn_tanh_cell": simple_cell("tanh"), "rnn_relu_cell": simple_cell("relu"),
    "packed_recurrent": packed, "padded_sequence": padded,
}
