#!/usr/bin/env python3
"""Prints what PyTorch's recurrent layers compute, for tests/layers/test_recurrent_values.c.

    python3 tests/layers/recurrent_values.py > tests/layers/recurrent_values.h

Element i of the parameter number p, and of x as number 9, is sin(0.7 i + p) / 2."""
import numpy
import torch

FEATURES, HIDDEN, STEPS, SAMPLES = 2, 3, 3, 2


def numbers(shape, p):
    i = numpy.arange(int(numpy.prod(shape)), dtype=numpy.float64)
    return torch.tensor((numpy.sin(0.7 * i + p) / 2).astype(numpy.float32).reshape(shape))


def print_array(name, tensor):
    values = [f"{value:.7f}f" for value in tensor.detach().numpy().ravel()]
    print(f"static const float {name}[] = {{")
    for first in range(0, len(values), 8):
        print("    " + ", ".join(values[first:first + 8]) + ",")
    print("};")


print("/* Written by recurrent_values.py: results of PyTorch " + torch.__version__.split("+")[0] + ". */")
for name, layer in ("lstm", torch.nn.LSTM), ("gru", torch.nn.GRU), ("rnn", torch.nn.RNN):
    made = layer(FEATURES, HIDDEN, batch_first=True, bidirectional=True)
    with torch.no_grad():
        for p, (_, parameter) in enumerate(made.named_parameters()):
            parameter.copy_(numbers(parameter.shape, p))
    y, last = made(numbers((SAMPLES, STEPS, FEATURES), 9))
    print_array(name + "_y", y)
    for suffix, state in zip(("h", "c"), last if name == "lstm" else (last,)):
        print_array(f"{name}_last_{suffix}", state.transpose(0, 1))
