#!/usr/bin/env python3
"""Writes tests/train/schedules.h: the learning rates of PyTorch's schedulers, for test_schedule.c. Needs torch.

    schedules.py > schedules.h
"""
import warnings

import torch
from torch.optim import lr_scheduler as schedulers

warnings.filterwarnings("ignore")
BASE = 0.1
LOSSES = [1, 0.9, 0.95, 0.9, 0.89999, 0.8, 0.8, 0.81, 0.82, 0.83, 0.84, 0.79, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9]


def rates(make, steps, losses=None):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))], lr=BASE)
    scheduler, found = make(optimizer), []
    for step in range(steps):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step(*([losses[step]] if losses else []))
    return found


def warm(steps, make):
    def both(optimizer):
        first = schedulers.LinearLR(optimizer, start_factor=1 / (steps + 1), total_iters=steps)
        return schedulers.SequentialLR(optimizer, [first, make(optimizer)], milestones=[steps])
    return both


SERIES = {
    "cosine": rates(lambda o: schedulers.CosineAnnealingLR(o, T_max=20, eta_min=0.01), 20),
    "cosine_warm": rates(warm(4, lambda o: schedulers.CosineAnnealingLR(o, T_max=16)), 20),
    # An epoch has two steps, and the size of a stair is two epochs.
    "stairs": rates(lambda o: schedulers.StepLR(o, step_size=4, gamma=0.5), 20),
    "one_cycle": rates(lambda o: schedulers.OneCycleLR(o, max_lr=BASE, total_steps=20, cycle_momentum=False), 20),
    "one_cycle_half": rates(
        lambda o: schedulers.OneCycleLR(o, max_lr=BASE, total_steps=20, pct_start=0.5, cycle_momentum=False), 20),
    "plateau_rates": rates(
        lambda o: schedulers.ReduceLROnPlateau(o, factor=0.25, patience=2, min_lr=0.001), 20, LOSSES),
    "plateau_losses": LOSSES,
}

print("/* Made by schedules.py with PyTorch. */")
for name, values in SERIES.items():
    print(f"static const double {name}[] = {{")
    for first in range(0, len(values), 4):
        print("    " + " ".join(f"{value:.17g}," for value in values[first:first + 4]))
    print("};")
