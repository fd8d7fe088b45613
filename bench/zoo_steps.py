#!/usr/bin/env python3
"""Times training steps of torchvision's networks at batch 8 and their own image size: the last columns of docs/zoo.md.

Each way (PyTorch's eager loop with NCHW and with channels_last, torch.compile(), tutti.torch) is a process of its own, in turns. It
builds the network with random weights and without dropout (zoo.py), makes what it needs to compile, takes the lock, does one untimed
step, and times steps for `--seconds`, at least two. A step is forward, cross entropy, backward and SGD with momentum. Each result is a
line in `.dev/zoo/steps.jsonl`; a run skips what is there, so it can be stopped and continued. A way that fails, or that takes longer than
`--limit` seconds until its first step, is noted with the reason.

    TUTTI_TORCH=PYTHON tests/python/with-package build bench/zoo_steps.py regnet_y_8gf vit_l_32 --rounds 2
    python3 bench/zoo_steps.py --table        writes the columns of docs/zoo.md
"""
import argparse
import datetime
import fcntl
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BATCH = 8
WAYS = "eager", "channels_last", "tutti", "compile"
SIZES = {"inception_v3": 299, "efficientnet_b1": 240, "efficientnet_b2": 288, "efficientnet_b3": 300, "efficientnet_b4": 380,
         "efficientnet_b5": 456, "efficientnet_b6": 528, "efficientnet_b7": 600, "efficientnet_v2_s": 384, "efficientnet_v2_m": 480,
         "efficientnet_v2_l": 480, "swin_v2_t": 256, "swin_v2_s": 256, "swin_v2_b": 256}
HOLD = 110  # seconds after which a process that has the lock ends
COLUMNS = ["batch 8: image", "PyTorch, ms", "Tutti, ms", "speed-up", "measured"]


def image_size(name):
    return SIZES.get(name, 224)


# -------------------------------------------------------------------------------------------------------------- a turn

def stepper(way, name):
    import torch
    import zoo
    from module import trainer_of

    network, size = zoo.build(name).train(), image_size(name)
    x, y = torch.randn(BATCH, 3, size, size), torch.randint(0, 1000, (BATCH,))
    return trainer_of(way, network, x, y, torch.nn.CrossEntropyLoss(), 1e-3)


def hurry():
    """All threads of this process before those of others, if the system allows it."""
    for thread in os.listdir("/proc/self/task"):
        try:
            os.sched_setscheduler(int(thread), os.SCHED_FIFO, os.sched_param(5))
        except (PermissionError, ProcessLookupError):
            pass


def turn(given):
    name = given.networks[0]
    step = stepper(given.way, name)
    losses, times = [], []
    if given.way in ("tutti", "compile"):
        losses.append(step())
    with open(given.lock, "w") as lock:
        print("ready", flush=True)
        fcntl.flock(lock, fcntl.LOCK_EX)
        signal.alarm(HOLD)
        hurry()
        losses.append(step())
        while len(times) < 2 or (sum(times) < given.seconds and len(times) < 40):
            start = time.perf_counter()
            losses.append(step())
            times.append(time.perf_counter() - start)
        signal.alarm(0)
    print(json.dumps({"least": 1e3 * min(times), "median": 1e3 * statistics.median(times), "steps": len(times), "losses": losses}), flush=True)


# ------------------------------------------------------------------------------------------------------------- all turns

def processor():
    names = [line.partition(":")[2].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    flags = next((line for line in open("/proc/cpuinfo") if line.startswith("flags")), "")
    return f"{names[0]}, {len(os.sched_getaffinity(0))} cores, {'AVX-512' if 'avx512f' in flags else 'AVX2'}"


def one(name, way, given):
    """Runs a turn. The limit holds until it waits for the lock."""
    from turn import HEAP
    command = [sys.executable, "-B", __file__, name, "--way", way, "--seconds", str(given.seconds), "--lock", given.lock]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             env=os.environ | ({} if way == "tutti" else HEAP))
    signal.signal(signal.SIGALRM, lambda *_: child.kill())
    signal.alarm(given.limit)
    ready = child.stdout.readline()
    signal.alarm(0)
    out, error = child.communicate()
    if child.returncode == 0:
        return json.loads(out)
    if child.returncode == -signal.SIGKILL and not ready:
        return {"failed": f"no step within {given.limit} s"}
    return {"failed": (error.strip() or f"stopped with {child.returncode}").splitlines()[-1][:200]}


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def measure(given):
    given.results.parent.mkdir(parents=True, exist_ok=True)
    from zoo import networks
    for name in given.networks or [name for name in networks() if not name.startswith(("deeplab", "fcn", "lraspp"))]:
        for turns in range(given.rounds):
            for way in given.ways.split(","):
                found = [e for e in read(given.results) if (e["name"], e["way"], e["round"]) == (name, way, turns)]
                if any("least" in e or not given.again for e in found):
                    continue
                found = {"name": name, "way": way, "round": turns, "image": image_size(name), "processor": processor(),
                         "date": datetime.date.today().isoformat()} | one(name, way, given)
                with open(given.results, "a") as file:
                    file.write(json.dumps(found) + "\n")
                print(name, way, turns, found.get("failed") or f"{found['least']:.0f} / {found['median']:.0f} ms", flush=True)


# ----------------------------------------------------------------------------------------------------------------- table

def cells(results):
    """The last columns of a network: the best way of PyTorch by its least time, and Tutti."""
    ways = {}
    for result in results:
        if "least" in result:
            ways.setdefault(result["way"], []).append(result)
    best = {way: (min(e["least"] for e in turns), statistics.median(e["median"] for e in turns)) for way, turns in ways.items()}
    if "tutti" not in best or "eager" not in best:
        return None
    peer = min((way for way in best if way != "tutti"), key=lambda way: best[way])
    missing = [way for way in WAYS if way not in best]
    note = f"; without {', '.join(missing)}" if missing else ""
    ours, theirs = best["tutti"], best[peer]
    return [str(results[0]["image"]), f"{theirs[0]:.0f} / {theirs[1]:.0f} ({peer}{note})", f"{ours[0]:.0f} / {ours[1]:.0f}",
            f"{theirs[0] / ours[0]:.2f} / {theirs[1] / ours[1]:.2f}", f"{results[-1]['date']}, {results[-1]['processor']}"]


def table(given, page):
    results, lines = read(given.results), page.read_text().split("\n")
    for number, line in enumerate(lines):
        parts = [part.strip() for part in line.strip("|").split("|")]
        if not line.startswith("|") or len(parts) not in (7, 7 + len(COLUMNS)):
            continue
        now = [result for result in results if result["name"] == parts[0]]
        added = parts[7:] or [""] * len(COLUMNS)
        if parts[0] == "network":
            added = COLUMNS
        elif parts[0] == "---":
            added = ["---"] * len(COLUMNS)
        elif now:
            added = cells(now) or added
        joined = "|".join(part if part == "---" else f" {part} " if part else " " for part in parts[:7] + added)
        lines[number] = f"|{joined}|"
    page.write_text("\n".join(lines))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="*", help="default: all, except those of segmentation")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=6, help="of timed steps in a turn")
    parser.add_argument("--limit", type=int, default=600, help="seconds that a way may take until its first step")
    parser.add_argument("--again", action="store_true", help="also what failed in an earlier run")
    parser.add_argument("--lock", default="/tmp/tutti-steps.lock", help="a file that a process locks while it measures")
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / ".dev" / "zoo" / "steps.jsonl")
    parser.add_argument("--table", action="store_true", help="only write the table")
    parser.add_argument("--way", choices=WAYS, help="one turn, in this process")
    given = parser.parse_args()
    if given.way:
        turn(given)
    elif given.table:
        table(given, ROOT / "docs" / "zoo.md")
    else:
        measure(given)


if __name__ == "__main__":
    main()
