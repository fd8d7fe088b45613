#!/usr/bin/env python3
"""Records the losses of a training of PyTorch in double precision: a model of characters, two transformer blocks, on the
text in shakespeare.txt (the beginning of Coriolanus), as test_characters.c builds it.

    .dev/torch/bin/python tests/golden/characters.py tests/golden        (make.py says what has to be installed)

Each line of characters.txt is the loss of a step and how far PyTorch itself is off in single precision, relative to it; then
both with the parameters of FROZEN frozen.
"""
import fnmatch
import pathlib
import sys

import numpy
import torch
from torch import nn

from make import uniform

CLASSES, LENGTH, WIDTH, HEADS, HIDDEN, BLOCKS, BATCH, STEPS = 128, 24, 32, 2, 128, 2, 8, 60
RATE, STRIDE = 0.01, 37
FROZEN = "characters.weight", "positions", "blocks.0.norm2.weight", "blocks.1.norm*"


def initial(name, shape):
    values = torch.from_numpy(uniform(name, int(numpy.prod(shape))).reshape(shape) / 8)
    return values + 1 if "norm" in name and name.endswith("weight") else values


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(3))
        self.project, self.up, self.down = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, WIDTH)

    def forward(self, x, mask):
        def heads(y):
            return y.reshape(-1, LENGTH, HEADS, WIDTH // HEADS).transpose(1, 2)
        y = self.norm1(x)
        scores = heads(self.query(y)) @ heads(self.key(y)).transpose(-1, -2) * (WIDTH // HEADS) ** -0.5
        y = (scores + mask).softmax(-1) @ heads(self.value(y))
        x = x + self.project(y.transpose(1, 2).reshape(-1, LENGTH, WIDTH))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class Characters(nn.Module):
    def __init__(self):
        super().__init__()
        self.characters = nn.Embedding(CLASSES, WIDTH)
        self.positions = nn.Parameter(torch.zeros(LENGTH, WIDTH))
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))
        self.norm = nn.LayerNorm(WIDTH)
        self.register_buffer("mask", torch.full((LENGTH, LENGTH), -1e9).triu(1), persistent=False)

    def forward(self, ids):
        x = self.characters(ids) + self.positions
        for block in self.blocks:
            x = block(x, self.mask)
        return self.norm(x) @ self.characters.weight.T


def losses(text, dtype, frozen):
    network = Characters().to(dtype)
    with torch.no_grad():
        for name, value in network.named_parameters():
            value.copy_(initial(name, tuple(value.shape)))
            value.requires_grad_(not any(fnmatch.fnmatch(name, pattern) for pattern in frozen))
    optimizer, told = torch.optim.Adam([p for p in network.parameters() if p.requires_grad], lr=RATE), []
    for step in range(STEPS):
        first = [(step * BATCH + i) * STRIDE % (len(text) - LENGTH - 1) for i in range(BATCH)]
        ids = torch.stack([text[at:at + LENGTH] for at in first])
        targets = torch.stack([text[at + 1:at + LENGTH + 1] for at in first])
        loss = nn.functional.cross_entropy(network(ids).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        told.append(float(loss.detach()))
    return told


def main():
    folder = pathlib.Path(sys.argv[1])
    text = torch.tensor(list((folder / "shakespeare.txt").read_bytes()))
    with open(folder / "characters.txt", "w") as file:
        series = [losses(text, dtype, frozen) for frozen in ((), FROZEN) for dtype in (torch.float64, torch.float32)]
        for all_double, all_single, double, single in zip(*series):
            print(f"{all_double:.9g} {abs(all_single / all_double - 1):.1e}",
                  f"{double:.9g} {abs(single / double - 1):.1e}", file=file)


main()
