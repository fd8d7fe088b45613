#!/usr/bin/env python3
"""Makes files of tests/onnx/files in which PyTorch's newer exporter computed initialisers from parameters, or left out biases of
zeros. Next to each stands what make.py says, with gradients of the network's parameters. An initialiser that was computed is one
if it holds the elements of a parameter, in any order, and no other initialiser does.

    .dev/torch/bin/python tests/onnx/make_folded.py tests/onnx/files/parameters
"""
import copy
import pathlib
import sys

import numpy
import torch
from torch import nn

import make


class Lstm(nn.Module):
    """Weights whose gates the exporter puts into another order."""
    def __init__(self):
        super().__init__()
        self.layer, self.head = nn.LSTM(4, 3, batch_first=True), nn.Linear(3, 4)

    def forward(self, x):
        return self.head(self.layer(x)[0]).mean(1)


class Twice(nn.Module):
    """A weight that is read as it is and doubled, of which the exporter makes two initialisers."""
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(4, 4))

    def forward(self, x):
        double = self.w * 2
        return nn.functional.linear(x.tanh(), self.w) + nn.functional.linear(x, double.detach() if self.training else double)


class Scaled(nn.Module):
    """A weight of which the file has the double alone."""
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(4, 4))

    def forward(self, x):
        return nn.functional.linear(x, self.w * 2)


class Recurrent(nn.Module):
    """Biases that steps of a single sample read with another number of axes."""
    def __init__(self):
        super().__init__()
        self.layer, self.head = nn.RNN(4, 3, batch_first=True), nn.Linear(3, 4)

    def forward(self, x):
        return self.head(self.layer(x)[0][:, -1])


class Fresh(nn.Module):
    """Layers whose biases are 0, which the exporter leaves out."""
    def __init__(self):
        super().__init__()
        self.conv, self.up = nn.Conv1d(2, 3, 3), nn.ConvTranspose1d(3, 4, 2)
        self.first, self.head = nn.Linear(20, 6), nn.Linear(6, 4)
        for layer in (self.conv, self.up, self.first, self.head):
            nn.init.zeros_(layer.bias)

    def forward(self, x):
        return self.head(self.first(self.up(self.conv(x).relu()).flatten(1)).relu())


class Added(nn.Module):
    """A product with a weight that the exporter stores transposed, to which a bias is added at once."""
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(5, 4)
        nn.init.zeros_(self.layer.bias)

    def forward(self, x):
        return torch.addmm(self.layer.bias, x, self.layer.weight.t())


class Decoder(nn.Module):
    """A fresh layer with a cross attention, whose biases of zeros the exporter merges."""
    def __init__(self):
        super().__init__()
        self.layer, self.head = nn.TransformerDecoderLayer(4, 2, 8, dropout=0.0, batch_first=True), nn.Linear(4, 4)

    def forward(self, x):
        return self.head(self.layer(x, x.tanh())).mean(1)


class Turned(nn.Module):
    """A square kernel that is read with its rows and columns exchanged."""
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(4, 2, 3, 3))

    def forward(self, x):
        return nn.functional.conv2d(x, self.w.transpose(2, 3)).mean((2, 3))


class Norms(nn.Module):
    """A fresh norm that is used twice, and one before it, whose weights are merged with its statistics."""
    def __init__(self):
        super().__init__()
        self.group, self.norm, self.head = nn.GroupNorm(2, 8), nn.BatchNorm1d(8), nn.Linear(8, 4)

    def forward(self, x):
        x = self.group(x)
        return self.head(self.norm(x) + self.norm(0.5 * x.tanh()))


class Copies(nn.Module):
    """Two layers that are copies, whose biases of 0 the exporter leaves out, and whose weights it merges."""
    def __init__(self):
        super().__init__()
        self.first, self.head = nn.Linear(4, 4), nn.Linear(4, 4)
        nn.init.zeros_(self.first.bias)
        self.second = copy.deepcopy(self.first)

    def forward(self, x):
        return self.head(self.second(self.first(x).tanh()).tanh())


class Tokens(nn.Module):
    """A class token and queries that are repeated for each sample of a fixed batch."""
    def __init__(self):
        super().__init__()
        self.token, self.queries = nn.Parameter(torch.randn(1, 1, 4)), nn.Parameter(torch.randn(3, 4))
        self.head = nn.Linear(4, 4)

    def forward(self, x):
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1)
        q = self.queries.unsqueeze(0).expand(x.shape[0], -1, -1)
        return self.head((q @ x.transpose(1, 2)).softmax(-1) @ x).mean(1)


class Zeros(nn.Module):
    """Tokens of zeros, as models start with, for a fixed batch: the file does not tell which axis was repeated."""
    def __init__(self):
        super().__init__()
        self.token, self.head = nn.Parameter(torch.zeros(1, 1, 4)), nn.Linear(4, 4)

    def forward(self, x):
        return self.head(torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1)).tanh().mean(1)


class Cells(nn.Module):
    """A cell whose state is 0 at first: the exporter computes what the first step makes of it for each sample."""
    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.GRUCell(4, 3), nn.Linear(3, 4)

    def forward(self, x):
        h = torch.zeros(x.shape[0], 3)
        for i in range(2):
            h = self.cell(x[:, i], h)
        return self.head(h)


class Start(nn.Module):
    """A state that is learned, repeated for each sample of a fixed batch, and a stack of layers in both directions."""
    def __init__(self):
        super().__init__()
        self.start, self.first = nn.Parameter(torch.randn(1, 1, 3)), nn.GRU(4, 3, batch_first=True)
        self.second, self.head = nn.LSTM(3, 2, 2, batch_first=True, bidirectional=True), nn.Linear(4, 4)

    def forward(self, x):
        x = self.first(x, self.start.expand(-1, x.shape[0], -1).contiguous())[0]
        return self.head(self.second(x)[0]).mean(1)


class Heads(nn.Module):
    """A table of relative positions with a column for each head, as Swin has it."""
    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Parameter(torch.randn(7, 2)), nn.Linear(4, 4)
        positions = torch.arange(4)
        self.register_buffer("relative", positions[None] - positions[:, None] + 3)

    def forward(self, x):
        bias = self.table[self.relative.view(-1)].view(4, 4, 2).permute(2, 0, 1).contiguous()
        scores = torch.stack([x @ x.transpose(1, 2), x.tanh() @ x.transpose(1, 2)], 1) + bias
        return self.head((scores.softmax(-1) @ x[:, None]).sum(1)).mean(1)


def heads_of_file(gradients):
    """The elements of each head, in the order of their first uses."""
    positions = numpy.arange(4)
    used = list(dict.fromkeys((positions[None] - positions[:, None] + 3).reshape(-1).tolist()))
    return {"head.weight": gradients["head.weight"], "head.bias": gradients["head.bias"], "clone": gradients["table"][used].T.copy()}


def main():
    folder = pathlib.Path(sys.argv[1])
    torch.manual_seed(8)
    rows, steps = make.numbers(4, 4), make.numbers(4, 5, 4)
    cases = {"lstm": (Lstm(), steps, dict), "twice": (Twice(), rows, dict),
             "scaled": (Scaled(), rows, lambda gradients: {"mul": gradients["w"] / 2}),
             "recurrent": (Recurrent(), make.numbers(1, 3, 4), dict), "fresh": (Fresh(), make.numbers(4, 2, 6), dict),
             "added": (Added(), make.numbers(4, 5), dict), "decoder": (Decoder(), steps, dict),
             "turned": (Turned(), make.numbers(4, 2, 5, 5), lambda gradients: {"transpose": gradients["w"].swapaxes(2, 3)}),
             "norms": (Norms(), make.numbers(4, 8), dict), "copies": (Copies(), make.numbers(4, 4), dict),
             "tokens": (Tokens(), make.numbers(3, 4, 4), dict), "cells": (Cells(), make.numbers(3, 2, 4), dict),
             "start": (Start(), make.numbers(3, 5, 4), dict), "heads": (Heads(), make.numbers(3, 4, 4), heads_of_file),
             "zeros": (Zeros(), make.numbers(3, 2, 4), lambda gradients: {key: gradients[key] for key in gradients if key != "token"})}
    for name, (network, example, computed) in cases.items():
        make.export(folder, f"folded_{name}", network, torch.from_numpy(example), classes=4, computed=computed, dynamo=True,
                    opset_version=20, external_data=False, verbose=False)


if __name__ == "__main__":
    main()
