#!/usr/bin/env python3
"""Trains a hundred modules of PyTorch, unmodified, with tutti.torch and with PyTorch's own loop, and compares.

    tests/python/with-package build-tests python/tests/modules.py [--markdown] [--results FILE] [--rounding] [--steps N] [NAME ...]
                                                                                        (with a Python that has torch)

Five steps in float32. The distance of two trainings is that of their losses, relative, or of a parameter or buffer: the largest
difference of its numbers, by their largest magnitude, which counts as 0.01 if it is smaller. It must be at most ten times that of
two trainings by PyTorch with one and two threads, or 1e-5 if that is more. Where it is more, PyTorch trains four times with inputs
that differ in their last digit: if one of these is as far away, a number was at a bound, as 0 is ReLU's, and rounding decided its
side. --results keeps what is found in a JSON file: modules
that agree there are not trained again. --rounding tells how far both are from PyTorch's training in float64."""
import argparse
import copy
import gc
import json
import os
import sys
import time
import warnings

import modules_own  # noqa: F401
import modules_zoo  # noqa: F401
import numpy
import torch
from cases import CASES, arrays

from tutti.torch import Trainer

FLOOR = 1e-5


class ByPyTorch:
    """PyTorch's own loop, called as tutti.torch.Trainer is. parts: of a batch, whose gradients are added."""

    def __init__(self, module, loss, optimizer, *, clip_norm=None, parts=1):
        self.module, self.loss, self.optimizer, self.clip_norm, self.parts = module, loss, optimizer, clip_norm, parts

    def step(self, x, y):
        self.optimizer.zero_grad()
        pieces = zip(x.chunk(self.parts), y.chunk(self.parts)) if self.parts > 1 else [(x, y)]
        loss = sum(self.one(*piece) for piece in pieces)
        if self.clip_norm:
            torch.nn.utils.clip_grad_norm_(self.module.parameters(), self.clip_norm)
        self.optimizer.step()
        return loss

    def one(self, x, y):
        out = self.module(**x) if isinstance(x, dict) else self.module(*x) if isinstance(x, tuple) else self.module(x)
        loss = self.loss(out, y) / self.parts
        loss.backward()
        return loss.item()

    def sync(self):
        pass


def by_tutti(module, loss, optimizer, *, parts=1, **options):
    return Trainer(module, loss, optimizer, **options)


def trained(case, module, trainer, steps, threads=1):
    """(losses, arrays by name) of a training."""
    torch.set_num_threads(threads)
    if case.loop:
        losses, state = case.loop(module, trainer, steps)
    else:
        made = trainer(module, case.loss, case.rule(module.parameters()))
        losses = [made.step(x[0] if len(x) == 1 else tuple(x), y) for *x, y in steps]
        state = module.state_dict()
    torch.set_num_threads(1)
    return losses, {name: array.detach().clone() for name, array in state.items()}


def distance(one, other):
    """(largest distance, its name), losses first."""
    found = [(abs(a - b) / max(abs(b), 1e-12), f"loss {step}") for step, (a, b) in enumerate(zip(one[0], other[0], strict=True))]
    for name, b in other[1].items():
        a, b = one[1][name].double(), b.double()
        if b.numel():
            found.append(((a - b).abs().max().item() / max(b.abs().max().item(), 0.01), name))
    return max(found, key=lambda one: one[0] if one[0] == one[0] else float("inf"))


def nudged(case, module, steps, one, found):
    """The largest distance of PyTorch's own trainings with inputs that differ in their last digit, until one is that of Tutti."""
    largest = 0.0
    for seed in range(4):
        random = torch.Generator().manual_seed(seed)
        near = torch.utils._pytree.tree_map(lambda x: x * (1 + 1e-7 * torch.randn(x.shape, generator=random)) if x.is_floating_point() else x, steps)     # noqa: B023
        largest = max(largest, distance(trained(case, copy.deepcopy(module), ByPyTorch, near), one)[0])
        if found <= 10 * largest:
            break
    return largest


def doubled(one):
    return one.double() if isinstance(one, torch.Tensor) and one.is_floating_point() else one


def run(name, rounding, steps):
    case = CASES[name]
    torch.manual_seed(1)
    module = case.make().train()
    random = torch.Generator().manual_seed(2)
    data = [arrays(case.shapes, case.batch, random) for _ in range(steps)]
    one = trained(case, copy.deepcopy(module), ByPyTorch, data)
    two = trained(case, copy.deepcopy(module), ByPyTorch, data, 2)
    threads = distance(two, one)[0]
    exact = trained(case, copy.deepcopy(module).double(), ByPyTorch, torch.utils._pytree.tree_map(doubled, data)) if rounding else None
    tutti = trained(case, copy.deepcopy(module), by_tutti, data)
    found, where = distance(tutti, one)
    result = {"distance": found, "own": threads, "where": where, "agrees": found <= max(10 * threads, FLOOR), "parameters": sum(one.numel() for one in module.parameters())}
    if not result["agrees"]:
        result["nudged"] = nudged(case, module, data, one, found)
    if rounding:
        result["rounding"] = {"tutti": distance(tutti, exact), "pytorch": distance(one, exact)}
    return result


def text_of(name, result):
    if "refused" in result:
        return f"{name}: {result['refused']}"
    verdict = "agrees" if result["agrees"] else "DIFFERS at " + result["where"]
    more = f", PyTorch's with other inputs {result['nudged']:.1e}" if "nudged" in result else ""
    more += "".join(f", {who} {how:.1e} from float64 at {where}" for who, (how, where) in result.get("rounding", {}).items())
    return f"{name}: {result['distance']:.1e} of {result['own']:.1e} {verdict}, {result['parameters']} parameters{more}"


def markdown(results):
    """The table of docs/python-modules.md, two modules in a line, and the refusals."""
    cells = []
    for name, result in results.items():
        if "refused" not in result:
            more = "" if result["agrees"] else f" ({result['nudged']:.1e})"
            cells.append(f"{name} | {result['distance']:.1e} | {result['own']:.1e}{more}")
    print("| module | distance | PyTorch's own | module | distance | PyTorch's own |\n|---|---|---|---|---|---|")
    for at in range(0, len(cells), 2):
        print("| " + " | ".join([*cells[at:at + 2], *["| | "] * (at + 1 == len(cells))]) + " |")
    for name, result in results.items():
        if "refused" in result:
            print(f"- {name}: {result['refused'].splitlines()[-1].strip()}")


def main():
    parser = argparse.ArgumentParser(description="Trains modules of PyTorch with tutti.torch and with PyTorch, and compares.")
    parser.add_argument("--markdown", action="store_true", help="print the table of what --results has, and train nothing")
    parser.add_argument("--results", metavar="FILE", help="JSON to which results are added; what agrees there is left out")
    parser.add_argument("--rounding", action="store_true", help="compare with PyTorch in float64, too")
    parser.add_argument("--steps", type=int, default=5, metavar="N", help="train N steps, 5 otherwise; after one, rounding has not grown yet")
    parser.add_argument("names", nargs="*", metavar="NAME", help="modules, all otherwise")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    results = {}
    if options.results and os.path.exists(options.results):
        with open(options.results) as file:
            results = json.load(file)
    if options.markdown:
        return markdown({name: results[name] for name in CASES if name in results})
    for name in options.names or [name for name in CASES if not results.get(name, {}).get("agrees")]:
        begun = time.monotonic()
        try:
            results[name] = run(name, options.rounding, options.steps)
        except Exception as failure:    # noqa: BLE001: a module that does not run is a line of the table
            results[name] = {"refused": f"{type(failure).__name__}: {failure}"}
        print(f"{text_of(name, results[name])} ({time.monotonic() - begun:.1f} s)", flush=True)
        if options.results:
            with open(options.results, "w") as file:
                json.dump(results, file, indent=1)
        gc.collect()
    return sum(not result.get("agrees") for result in results.values()) > 0


if __name__ == "__main__":
    numpy.seterr(all="ignore")
    sys.exit(main())
