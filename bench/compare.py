#!/usr/bin/env python3
"""Times the same step in Tutti and in its peers, in turns, so that all meet the same machine. The peers are PyTorch as NCHW, as
channels_last and as channels_last by torch.compile(), and in inference onnxruntime and OpenVINO; the best of them by its median
counts. A line per network:

    ms          the shortest step of all turns, and the median of the turns' medians
    MiB         a training step's memory: what Tutti allocates on the device, PyTorch's peak (see turn.py)
    first s     from the start of the process to the end of the first step, median of the turns, everything cached
    others      processors that other programs kept busy during the turns, the worst turn; above 0.1 the line is disturbed
    speed-up    the peer's time divided by Tutti's, of the shortest steps and of the medians: at 2.0, Tutti is twice as fast

A training step is forward, cross-entropy, backward and SGD with momentum 0.9 on random inputs that stay in memory. With
`--peer-device cuda` PyTorch uses the GPU, NVIDIA's or (in PyTorch's build for it) AMD's, and cuDNN times its algorithms; every
step waits for its end. `--precision tf32` is PyTorch's for products and convolutions, bf16 and fp16 are its autocast's.
"""
import argparse
import importlib.metadata
import json
import os
import shlex
import statistics
import subprocess
import sys

import turn

# What is timed if nothing is named, and the speed-up that is demanded of it.
DEMANDED = {
    ("train", "resnet18", 16): 2.0, ("train", "vgg16", 8): 2.5, ("train", "mobilenet_v2", 16): 2.0,
    ("train", "resnet50", 8): 1.6, ("train", "lenet", 128): 2.0, ("train", "mlp", 256): 1.3,
    ("infer", "resnet18", 16): 1.7, ("infer", "vgg16", 8): 1.6, ("infer", "mobilenet_v2", 16): 0.9,
    ("infer", "resnet18", 1): 1.2,
}
# Least speeds on a GPU.
DEMANDED_OF_GPUS = {"fp32": {("train", "resnet50", 128): 0.7}, "tf32": {("train", "resnet50", 128): 0.5},
                    "bf16": {("train", "resnet50", 128): 0.5}, "fp16": {}}
EXPORTED = ["onnxruntime", "openvino"]  # peers that read an ONNX file: inference in fp32 on the CPU
CONTENDERS = {"train": ["nchw", "nhwc", "compiled", "tutti"], "infer": ["nchw", "nhwc", "compiled", *EXPORTED, "tutti"]}
HOPELESS = 1.3  # a peer that is slower than the best one by this in the first round sits out the others


def demanded(arguments):
    if arguments.peer_device != "cpu":
        return DEMANDED_OF_GPUS[arguments.precision]
    return DEMANDED if arguments.precision == "fp32" else {}


def take_turn(arguments, contender, mode, model, batch):
    command, environment = turn.command(contender, model, batch, mode, arguments)
    done = subprocess.run(shlex.split(arguments.launcher) + command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"compare: {' '.join(command)} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def summary(turns):
    first = [t["first"] for t in turns if t["first"] is not None]
    return {"min": min(t["min"] for t in turns), "median": statistics.median(t["median"] for t in turns),
            "memory": max(t["memory"] for t in turns), "first": statistics.median(first) if first else None}


def compare(arguments, mode, model, batch):
    contenders = [c for c in CONTENDERS[mode] if c not in EXPORTED or (arguments.peer_device, arguments.precision) == ("cpu", "fp32")]
    turns = {contender: [] for contender in contenders + [c for c in arguments.also if model in turn.TINYGRAD]}
    taking_part = list(turns)
    for number in range(arguments.rounds):
        start = number % len(taking_part)
        for contender in taking_part[start:] + taking_part[:start]:
            turns[contender].append(take_turn(arguments, contender, mode, model, batch))
        if number == 0:
            best = min(turns[name][0]["min"] for name in turns if name != "tutti")
            taking_part = [name for name in turns if name == "tutti" or turns[name][0]["min"] < HOPELESS * best]
    of = {name: summary(taken) for name, taken in turns.items()}
    peer = min((name for name in taking_part if name != "tutti"), key=lambda name: of[name]["median"])
    counted = turns[peer] + turns["tutti"]
    return {"mode": mode, "model": model, "batch": batch, "threads": arguments.threads, "precision": arguments.precision, "peer": peer,
            "others": max(t["others"] for t in counted), "contenders": of,
            "speed_up_min": of[peer]["min"] / of["tutti"]["min"],
            "speed_up_median": of[peer]["median"] / of["tutti"]["median"],
            "demanded": demanded(arguments).get((mode, model, batch))}


HEAD = (f"{'':5} {'network':12} {'batch':>5}   {'peer ms':>17} {'':11}   {'Tutti ms':>17}   {'MiB peer':>8} {'Tutti':>6}   "
        f"{'first s':>7} {'Tutti':>5}   {'others':>6}   {'speed-up':>13} {'demanded':>8}")


def text(row):
    peer, tutti = row["contenders"][row["peer"]], row["contenders"]["tutti"]

    def times(of):
        return f"{of['min']:8.1f} {of['median']:8.1f}" if of["min"] >= 100 else f"{of['min']:8.2f} {of['median']:8.2f}"

    def seconds(of):
        return "" if of["first"] is None else f"{of['first']:.1f}"
    return (f"{row['mode']:5} {row['model']:12} {row['batch']:5}   {times(peer)} {row['peer']:11}   {times(tutti)}   "
            f"{peer['memory'] / 2**20:8.0f} {tutti['memory'] / 2**20:6.0f}   {seconds(peer):>7} {seconds(tutti):>5}   "
            f"{row['others']:5.2f}{'!' if row['others'] > 0.1 else ' '}   {row['speed_up_min']:6.2f} "
            f"{row['speed_up_median']:6.2f} {row['demanded'] or '':>8}")


def machine(arguments):
    name = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    versions = ", ".join(f"{p} {importlib.metadata.version(p)}" for p in ("torch", "onnxruntime", "openvino"))
    if arguments.peer_device == "cuda":
        import torch
        name = f"{torch.cuda.get_device_name()}, {name}"
    return f"{name}, {arguments.threads} threads; {arguments.precision}; {versions}; {arguments.rounds} rounds; ms: min, median; speed-up: min, median"


def wanted(parser, arguments):
    if not arguments.networks:
        everything = DEMANDED if arguments.peer_device == "cpu" else demanded(arguments)
        return [key for key in everything if arguments.mode in (None, key[0])]
    found = []
    for network in arguments.networks:
        model, _, batch = network.partition(":")
        if not batch.isdigit() or model not in turn.networks.NETWORKS:
            parser.error(f"{network}: give MODEL:BATCH, as resnet18:16; there are {', '.join(turn.networks.NETWORKS)}")
        found.append((arguments.mode or "train", model, int(batch)))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", help="MODEL:BATCH (default: all for which a speed-up is demanded)")
    parser.add_argument("--mode", choices=["train", "infer"], help="default train; both where no network is named")
    parser.add_argument("--also", action="append", default=[], choices=["tinygrad-clang", "tinygrad-cl"],
                        help="one more peer, of " + ", ".join(turn.TINYGRAD))
    parser.add_argument("--rounds", type=int, default=3, help="turns of each (default 3)")
    parser.add_argument("--steps", type=int, default=5, help="timed steps of a turn, at least (default 5)")
    parser.add_argument("--seconds", type=float, default=0.5, help="of warming up and of timed steps, at least (default 0.5)")
    parser.add_argument("--warm-up", type=int, default=2, help="steps before the timed ones, at least (default 2)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of all (default: all processors)")
    parser.add_argument("--devices", help="as tutti bench --devices")
    parser.add_argument("--precision", choices=["fp32", "tf32", "bf16", "fp16"], default="fp32", help="of Tutti and PyTorch")
    parser.add_argument("--peer-device", choices=["cpu", "cuda", "xpu"], default="cpu", help="PyTorch's (default cpu)")
    parser.add_argument("--launcher", default="", metavar="COMMAND", help="put before each turn's command, as 'taskset -c 0,1'")
    parser.add_argument("--json", action="store_true", help="an object per network")
    parser.add_argument("--build", default="build", help="folder of the build (default build)")
    arguments = parser.parse_args()
    lines = wanted(parser, arguments)
    if not arguments.json:
        print(machine(arguments), HEAD, sep="\n", flush=True)
    for mode, model, batch in lines:
        row = compare(arguments, mode, model, batch)
        print(json.dumps(row) if arguments.json else text(row), flush=True)


main()
