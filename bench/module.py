#!/usr/bin/env python3
"""Times training steps of a module of timm, by PyTorch's own loop and by tutti.torch, in turns.

    tests/python/with-package build-tests bench/module.py [--module resnet18] [--batch 16] [--rounds 2]

Needs torch and timm in PYTHONPATH, as TUTTI_TORCH gives them to with-package. Each turn is a process of its own; a line has the
shortest and the median time of its steps, and the loss of the last one, which is the same for all.
"""
import argparse
import statistics
import subprocess
import sys
import time

WAYS = "eager", "channels_last", "compile", "tutti"


def stepper(way, name, batch):
    import timm
    import torch

    torch.manual_seed(0)
    module = timm.create_model(name, num_classes=1000).train()
    x, y = torch.randn(batch, 3, 224, 224), torch.randint(0, 1000, (batch,))
    loss, optimizer = torch.nn.CrossEntropyLoss(), torch.optim.SGD(module.parameters(), 0.01, momentum=0.9)
    if way == "tutti":
        from tutti.torch import Trainer
        trainer = Trainer(module, loss=loss, optimizer=optimizer)
        return lambda: float(trainer.step(x, y))
    if way == "channels_last":
        module, x = module.to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last)
    run = torch.compile(module) if way == "compile" else module

    def step():
        optimizer.zero_grad(set_to_none=True)
        value = loss(run(x), y)
        value.backward()
        optimizer.step()
        return value.item()
    return step


def turn(way, name, batch):
    step, times = stepper(way, name, batch), []
    for number in range(9):
        start = time.perf_counter()
        loss = step()
        if number >= 3:     # the first ones compile
            times.append(time.perf_counter() - start)
    print(f"{way:14} min {1e3 * min(times):.0f} ms, median {1e3 * statistics.median(times):.0f} ms, loss {loss:.4f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--module", default="resnet18")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--way", choices=WAYS, help="one turn, in this process")
    given = parser.parse_args()
    if given.way:
        return turn(given.way, given.module, given.batch)
    for way in WAYS * given.rounds:
        subprocess.run([sys.executable, "-B", __file__, "--way", way, "--module", given.module, "--batch", str(given.batch)], check=True)


if __name__ == "__main__":
    main()
