#!/usr/bin/env python3
"""Prints what PyTorch's cross_entropy computes of probabilities, for tests/layers/test_loss_values.c.

    python3 tests/layers/soft_values.py | clang-format > tests/layers/soft_values.h

Logit i is 2 sin(0.7 i), probability i is (i * 5 % 7) / 8, the weight of class c is c + 0.5. Shapes are [2, 4, 3], which
are samples, classes and positions; and for one position the same numbers as [6, 4]."""
import numpy
import torch

SHAPES = ((2, 4, 3), (6, 4))
i = numpy.arange(24, dtype=numpy.float64)


def show(name, values):
    print(f"static const float {name}[] = {{ " + ", ".join(f"{value:.8f}f" for value in values) + " };")


print("/* Written by soft_values.py: results of PyTorch " + torch.__version__.split("+")[0] + ". */")
for shape in SHAPES:
    losses, gradients = [], []
    for smoothing in 0, 0.2:
        for weight in None, torch.arange(4) + 0.5:
            x = torch.tensor((2 * numpy.sin(0.7 * i)).astype(numpy.float32).reshape(shape), requires_grad=True)
            p = torch.tensor((i * 5 % 7 / 8).astype(numpy.float32).reshape(shape))
            loss = torch.nn.functional.cross_entropy(x, p, weight=weight, label_smoothing=smoothing)
            loss.backward()
            losses.append(loss.item())
            gradients.extend(x.grad.ravel().tolist())
    show(f"soft_losses_{len(shape)}", losses)
    show(f"soft_gradients_{len(shape)}", gradients)
