#!/usr/bin/env python3
"""Times training steps of the command `tutti bench` and of the package for Python, in turns.

    tests/python/with-package build bench/overhead.py --build build [--rounds 5] [--steps 10] [MODEL:BATCH ...]

Each turn is a process of its own, and gives the shortest and the median time of its steps. Ratios are Python's time by the
command's: of the shortest steps of all turns, and of the medians of the turns' medians. The machine must be quiet."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

WARM_UP = 3


def by_command(build, model, batch, steps):
    command = [os.path.join(build, "tools", "tutti"), "bench", model, "--batch", str(batch), "--steps", str(steps), "--warm-up", str(WARM_UP), "--json"]
    found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1])
    return found["ms_per_step_min"], found["ms_per_step_median"]


def by_python(model, batch, steps):
    words = [sys.executable, "-B", __file__, "--turn", "--steps", str(steps), f"{model}:{batch}"]
    return tuple(map(float, subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout.split()[-2:]))


def turn(model, batch, steps):
    """Prints the shortest and the median time of a step, in ms."""
    import numpy

    import tutti

    net = getattr(tutti.models, model)()
    shape, classes = next(iter(net.inputs.values())).shape, net.outputs[0].shape[-1]
    random = numpy.random.default_rng(1)
    x = random.normal(size=(batch, *shape)).astype("float32")
    y = random.integers(0, classes, batch).astype("int32")
    trainer = tutti.Trainer(net, batch_size=batch)
    for _ in range(WARM_UP):
        trainer.step(x, y)
    times = []
    for _ in range(steps):
        start = time.perf_counter()
        trainer.step(x, y)
        times.append(1e3 * (time.perf_counter() - start))
    print(min(times), statistics.median(times))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", default=["lenet:64", "resnet18:16"], metavar="MODEL:BATCH")
    parser.add_argument("--build", default="build", metavar="DIR")
    parser.add_argument("--rounds", type=int, default=5, metavar="N")
    parser.add_argument("--steps", type=int, default=10, metavar="N")
    parser.add_argument("--turn", action="store_true", help="one turn of Python, in this process")
    given = parser.parse_args()
    for network in given.networks:
        model, batch = network.split(":")
        if given.turn:
            turn(model, int(batch), given.steps)
            continue
        rounds = [(by_command(given.build, model, int(batch), given.steps), by_python(model, int(batch), given.steps)) for _ in range(given.rounds)]
        shortest, median = ([function([turn[way][kind] for turn in rounds]) for way in (0, 1)] for kind, function in ((0, min), (1, statistics.median)))
        print(f"{network}: command min {shortest[0]:.2f} ms, median {median[0]:.2f}; Python min {shortest[1]:.2f}, median {median[1]:.2f}; "
              f"ratio {shortest[1] / shortest[0]:.3f}, {median[1] / median[0]:.3f}", flush=True)


main()
