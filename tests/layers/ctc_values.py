#!/usr/bin/env python3
"""Writes tests/layers/ctc_values.h: losses and gradients of torch.nn.functional.ctc_loss in double precision.

    ctc_values.py > tests/layers/ctc_values.h       needs torch

Four samples of nine frames and five classes, of which 4 is the blank: labels with a repeated one, no label, two labels in
three frames, and a repeated label without a frame for the blank between, which has no path."""
import math

import torch

SAMPLES, FRAMES, CLASSES = 4, 9, 5
LISTS, LENGTHS = [[0, 0, 3, 1], [], [2, 1], [3, 3, 3]], [9, 7, 3, 4]


def write(name, numbers):
    print(f"static const float {name}[] = {{ {', '.join(f'{number:.9g}f' if '.' in f'{number:.9g}' or 'e' in f'{number:.9g}' else f'{number:.9g}.0f' for number in numbers)} }};")


x = torch.tensor([2 * math.sin(0.7 * i) for i in range(SAMPLES * FRAMES * CLASSES)], dtype=torch.float32).double()
x = x.reshape(SAMPLES, FRAMES, CLASSES).requires_grad_()
targets = torch.tensor([labels + [0] * (4 - len(labels)) for labels in LISTS])
losses = torch.nn.functional.ctc_loss(x.log_softmax(2).transpose(0, 1), targets, torch.tensor(LENGTHS), torch.tensor([len(one) for one in LISTS]),
                                      blank=4, reduction="none")
assert losses[3] == math.inf
shares = torch.tensor([max(len(one), 1) for one in LISTS])
(losses / shares)[:3].sum().backward()
print("/* Losses and gradients of PyTorch " + torch.__version__.split("+")[0] + ", written by ctc_values.py: of all samples but the last one, which has no path. */")
write("ctc_losses", (losses / shares)[:3].tolist())
write("ctc_gradients", x.grad[:3].flatten().tolist())
