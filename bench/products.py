#!/usr/bin/env python3
"""Products of matrices for perspective: Tutti's dense kernel for CPU-class devices, CLBlast's SGEMM on the same OpenCL device,
and PyTorch's (MKL). C [M][N] = A [M][K] times the transpose of B [N][K], as dense layers have them; the fastest of several runs,
in turns. Launches only: nothing is copied or packed before that a layer would not pack in every step.
"""
import argparse
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import time

SHAPES = ["256x512x784", "256x512x512", "128x128x3136", "512x512x512", "1024x1024x1024", "8x4096x25088"]
# The library's route is the one of GPU-class devices.
ROUTES = {"Tutti": {}, "CLBlast": {"TUTTI_DEVICE_CLASS": "gpu", "TUTTI_IMPLEMENTATION": "dense=clblast"}}


def time_tutti(arguments, shape, route):
    m, n, k = shape
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "trace.json"
        command = [f"{arguments.build}/tools/tutti", "bench", "linear", "--mode", "infer", "--batch", str(m), "--classes", str(n),
                   "--input", str(k), "--steps", "2", "--trace", str(path)]
        subprocess.run(shlex.split(arguments.launcher) + command, env={**os.environ, **ROUTES[route]}, check=True,
                       stdout=subprocess.DEVNULL)
        launches = [event["args"] for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == "X"]
    return sum(launch["fastest_us"] for launch in launches) * 1e-6


def time_torch(arguments, shape):
    if not arguments.worker:
        command = [sys.executable, "-B", __file__, "--worker", "x".join(map(str, shape))]
        done = subprocess.run(shlex.split(arguments.launcher) + command, check=True, stdout=subprocess.PIPE, text=True)
        return float(done.stdout)
    import torch
    m, n, k = shape
    layer, inputs, times = torch.nn.Linear(k, n), torch.randn(m, k), []
    with torch.inference_mode():
        begun = time.perf_counter()
        while len(times) < 5 or time.perf_counter() < begun + 0.5:
            started = time.perf_counter()
            layer(inputs)
            times.append(time.perf_counter() - started)
    return min(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shapes", nargs="*", default=SHAPES, help="MxNxK")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--launcher", default="", metavar="COMMAND", help="put before each turn's command")
    parser.add_argument("--build", default="build", help="folder of the build (default build)")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        return print(time_torch(arguments, tuple(map(int, arguments.worker.split("x")))))
    print(f"{'MxNxK':>16}   {'PyTorch':>18}   {'CLBlast':>18}   {'Tutti':>18}   ms and GFLOP/s; speed-up over PyTorch, CLBlast")
    for text in arguments.shapes:
        shape = tuple(map(int, text.split("x")))
        times = {name: [] for name in ("PyTorch", *ROUTES)}
        for _ in range(arguments.rounds):
            times["PyTorch"].append(time_torch(arguments, shape))
            for route in ROUTES:
                times[route].append(time_tutti(arguments, shape, route))
        best = {name: min(taken) for name, taken in times.items()}
        flops = 2.0 * shape[0] * shape[1] * shape[2]
        columns = "   ".join(f"{1e3 * best[name]:10.3f} {flops / best[name] / 1e9:7.0f}" for name in ("PyTorch", "CLBlast", "Tutti"))
        print(f"{text:>16}   {columns}   {best['PyTorch'] / best['Tutti']:.2f} {best['CLBlast'] / best['Tutti']:.2f}", flush=True)


main()
