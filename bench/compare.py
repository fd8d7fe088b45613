#!/usr/bin/env python3
"""Times the same step in PyTorch (NCHW and channels_last; the better one counts) and in Tutti, in turns, so that both meet
the same machine. Prints a line per network: the shortest step of all rounds, the median of the rounds' medians, and the
ratio Tutti / PyTorch of both; below 1, Tutti is faster.

A training step is forward, cross-entropy, backward and SGD with momentum, on random inputs that stay in memory; float32.
PyTorch keeps its heap warm: the C library would otherwise give large tensors back after every step.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

HEAP = {"MALLOC_MMAP_THRESHOLD_": "4294967296", "MALLOC_TRIM_THRESHOLD_": "17179869184", "MALLOC_TOP_PAD_": "268435456"}
VARIANTS = ("nchw", "nhwc")
DEFAULT = ["resnet18:16", "vgg16:8"]


def torch_network(name):
    import torchvision
    from torch import nn
    if name == "lenet":
        return nn.Sequential(nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 5, padding=2),
                             nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(3136, 128), nn.ReLU(), nn.Linear(128, 10))
    if name == "mlp":
        return nn.Sequential(nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    return getattr(torchvision.models, name)(weights=None)


def torch_worker(arguments):
    """Runs in a process of its own; prints the steps' milliseconds."""
    import torch
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    small = arguments.worker in ("lenet", "mlp")
    network = torch_network(arguments.worker)
    inputs = torch.randn(arguments.batch, 1, 28, 28) if small else torch.randn(arguments.batch, 3, 224, 224)
    targets = torch.randint(0, 10 if small else 1000, (arguments.batch,))
    if arguments.variant == "nhwc":
        network = network.to(memory_format=torch.channels_last)
        inputs = inputs.contiguous(memory_format=torch.channels_last)
    network.train(arguments.mode == "train")
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9, fused=True)

    def train():
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(network(inputs), targets).backward()
        optimizer.step()

    def infer():
        with torch.inference_mode():
            network(inputs)

    step = train if arguments.mode == "train" else infer
    for _ in range(arguments.warm_up):
        step()
    times = []
    for _ in range(arguments.steps):
        started = time.perf_counter()
        step()
        times.append(1000 * (time.perf_counter() - started))
    print(json.dumps({"min": min(times), "median": statistics.median(times)}))


def run(command, environment):
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"compare: {' '.join(map(str, command))} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def time_torch(arguments, model, batch, variant):
    threads = str(arguments.threads)
    command = [sys.executable, __file__, "--worker", model, "--variant", variant, "--mode", arguments.mode, "--batch",
               str(batch), "--steps", str(arguments.steps), "--warm-up", str(arguments.warm_up), "--threads", threads]
    return run(command, {**HEAP, "OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads})


def time_tutti(arguments, model, batch):
    threads = str(arguments.threads)
    command = [arguments.tutti, "bench", model, "--mode", arguments.mode, "--batch", str(batch), "--steps",
               str(arguments.steps), "--warm-up", str(arguments.warm_up), "--threads", threads, "--json"]
    if arguments.devices:
        command += ["--devices", arguments.devices]
    line = run(command, {"POCL_MAX_PTHREAD_COUNT": threads})
    return {"min": line["ms_per_step_min"], "median": line["ms_per_step_median"]}


def compare(arguments, model, batch):
    times = {name: [] for name in (*VARIANTS, "tutti")}
    for _ in range(arguments.rounds):
        for variant in VARIANTS:
            times[variant].append(time_torch(arguments, model, batch, variant))
        times["tutti"].append(time_tutti(arguments, model, batch))
    best = {name: {"min": min(r["min"] for r in rounds), "median": statistics.median(r["median"] for r in rounds)}
            for name, rounds in times.items()}
    peer = min(VARIANTS, key=lambda name: best[name]["median"])
    return {"model": model, "mode": arguments.mode, "batch": batch, "threads": arguments.threads, "peer": peer,
            "torch_ms_min": best[peer]["min"], "torch_ms_median": best[peer]["median"],
            "tutti_ms_min": best["tutti"]["min"], "tutti_ms_median": best["tutti"]["median"],
            "ratio_min": best["tutti"]["min"] / best[peer]["min"],
            "ratio": best["tutti"]["median"] / best[peer]["median"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", help=f"MODEL:BATCH (default {' '.join(DEFAULT)})")
    parser.add_argument("--mode", default="train", choices=["train", "infer"])
    parser.add_argument("--rounds", type=int, default=3, help="turns of each (default 3)")
    parser.add_argument("--steps", type=int, default=5, help="timed steps of a turn (default 5)")
    parser.add_argument("--warm-up", type=int, default=2, help="steps before those (default 2)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of both (default: all processors)")
    parser.add_argument("--devices", help="as tutti bench --devices")
    parser.add_argument("--json", action="store_true", help="an object per network")
    parser.add_argument("--tutti", default="build/tools/tutti", help=argparse.SUPPRESS)
    for hidden in ("--worker", "--variant"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    parser.add_argument("--batch", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        return torch_worker(arguments)
    if not arguments.json:
        print(f"{'network':14} {'mode':6} {'batch':>5} {'PyTorch ms: min':>16} {'median':>9} {'':5} {'Tutti ms: min':>14} "
              f"{'median':>9} {'ratio: min':>11} {'median':>7}")
    for network in arguments.networks or DEFAULT:
        model, _, batch = network.partition(":")
        if not batch.isdigit():
            parser.error(f"{network}: give MODEL:BATCH, as resnet18:16")
        row = compare(arguments, model, int(batch))
        if arguments.json:
            print(json.dumps(row), flush=True)
        else:
            print(f"{row['model']:14} {row['mode']:6} {row['batch']:5} {row['torch_ms_min']:16.1f} {row['torch_ms_median']:9.1f} "
                  f"{row['peer']:5} {row['tutti_ms_min']:14.1f} {row['tutti_ms_median']:9.1f} {row['ratio_min']:11.2f} "
                  f"{row['ratio']:7.2f}", flush=True)


main()
