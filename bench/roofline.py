#!/usr/bin/env python3
"""Prints a table for each network: FLOPs and bytes of a step by kind of kernel, the least time that the device's measured peak
and bandwidth allow (the larger of FLOPs / peak and bytes / bandwidth, launch by launch, summed), and the measured time. It runs
`tutti bench --trace` for each network. docs/performance.md explains the columns.

FLOPs are those of the direct formula: Winograd's kernels do about a quarter of a convolution's multiplications, so their floor
may lie above their time. Bytes count each input and output once; padding, scratch and repeated reading are not counted.
"""
import argparse
import collections
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile

DEFAULT = ["train:resnet18:16", "train:vgg16:8", "train:mobilenet_v2:16", "train:resnet50:8", "train:lenet:128", "train:mlp:256",
           "infer:resnet18:16", "infer:vgg16:8", "infer:mobilenet_v2:16", "infer:resnet18:1"]
Kind = collections.namedtuple("Kind", "launches seconds flops bytes floor by_flops")


def run(arguments, mode, model, batch):
    """The step's least and median milliseconds, the launches' arguments, and the device's peak."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "trace.json"
        command = [f"{arguments.build}/tools/tutti", "bench", model, "--mode", mode, "--batch", batch, "--steps", "5", "--seconds",
                   "0.5", "--precision", arguments.precision, "--trace", str(path), "--json"]
        done = subprocess.run(shlex.split(arguments.launcher) + command, stdout=subprocess.PIPE, text=True, check=True)
        trace = json.loads(path.read_text())
    launches = [event["args"] for event in trace["traceEvents"] if event["ph"] == "X"]
    return json.loads(done.stdout), launches, ((arguments.peak or trace["otherData"]["GFLOP/s"]) * 1e9, trace["otherData"]["GB/s"] * 1e9)


def summarise(launches, peak):
    """By operation and implementation, slowest first; and the whole."""
    kinds = collections.defaultdict(list)
    for launch in launches:
        arithmetic, memory = launch["FLOP"] / peak[0], launch["bytes"] / peak[1]
        kind = Kind(1, launch["fastest_us"] * 1e-6, launch["FLOP"], launch["bytes"], max(arithmetic, memory),
                    max(arithmetic, memory) if arithmetic > memory else 0)
        name = f"{launch['operation'] or 'update'} {launch['implementation']}".strip()
        kinds[name].append(kind)
    added = {name: Kind(*map(sum, zip(*parts))) for name, parts in kinds.items()}
    return dict(sorted(added.items(), key=lambda item: -item[1].seconds)), Kind(*map(sum, zip(*added.values())))


def row(name, kind, limit=True):
    bound = "" if not limit or not kind.floor else "arithmetic" if kind.by_flops > kind.floor / 2 else "memory"
    return (f"| {name} | {kind.launches} | {kind.flops / 1e9:.1f} | {kind.bytes / 1e9:.2f} | {1e3 * kind.floor:.1f} | "
            f"{1e3 * kind.seconds:.1f} | {kind.flops / kind.seconds / 1e9:.0f} | {kind.bytes / kind.seconds / 1e9:.1f} | "
            f"{100 * kind.floor / kind.seconds:.0f} % | {bound} |")


def table(arguments, mode, model, batch):
    step, launches, peak = run(arguments, mode, model, batch)
    kinds, whole = summarise(launches, peak)
    small = {name: kind for name, kind in kinds.items() if kind.seconds < 0.01 * whole.seconds}
    lines = [f"### `{model}`, batch {batch}, {'training' if mode == 'train' else 'inference'}", "",
             f"A step takes {step['ms_per_step_min']:.1f} ms at least, {step['ms_per_step_median']:.1f} ms in the median; its "
             f"{whole.launches} launches {1e3 * whole.seconds:.1f} ms; {step['device_memory_bytes'] / 2**20:.0f} MiB on the device. "
             f"Measured peak {peak[0] / 1e9:.0f} GFLOP/s, {peak[1] / 1e9:.1f} GB/s.", "",
             "| kernels | launches | GFLOP | GB | floor ms | ms | GFLOP/s | GB/s | of peak | limit |",
             "|---|--:|--:|--:|--:|--:|--:|--:|--:|---|"]
    lines += [row(name, kind) for name, kind in kinds.items() if name not in small]
    if small:
        lines.append(row("all others", Kind(*map(sum, zip(*small.values()))), False))
    lines += [row("**together**", whole, False), ""]
    print(f"{mode} {model} {batch}: {1e3 * whole.seconds:.1f} ms, floor {1e3 * whole.floor:.1f} ms", file=sys.stderr)
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", default=DEFAULT, help="MODE:MODEL:BATCH (default: all of bench/compare)")
    parser.add_argument("--launcher", default="", metavar="COMMAND", help="put before each command, as 'taskset -c 0,1'")
    parser.add_argument("--build", default="build", help="folder of the build (default build)")
    parser.add_argument("--precision", default="fp32", help="as that of tutti bench (default fp32)")
    parser.add_argument("--peak", type=float, metavar="GFLOP/s", help="instead of the measured one of floats: with bf16 that of "
                        "bf16 dot products, which `tutti devices --check` prints")
    arguments = parser.parse_args()
    for network in arguments.networks:
        print(table(arguments, *network.split(":")), flush=True)


if __name__ == "__main__":
    main()
