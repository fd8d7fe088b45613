#!/usr/bin/env python3
"""Times how a training begins with a large table and with a folder of many pictures, which it makes in a temporary folder.

The table's line has its size by seconds of the processor, and the memory of the process by the size of the file. That of the
pictures has the seconds from the start of `tutti train` until its network is compiled and the first step begins.
"""
import argparse
import os
import pathlib
import random
import re
import struct
import subprocess
import tempfile
import time
import zlib

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--build", type=pathlib.Path, default="build", help="folder of the build (default build)")
parser.add_argument("--rows", type=int, default=1000000, help="of the table (default 1,000,000), of 50 columns")
parser.add_argument("--pictures", type=int, default=100000, help="in the folder (default 100,000), in 10 classes")
options = parser.parse_args()
BUILD, ROWS, PICTURES = options.build, options.rows, options.pictures
COLUMNS, CLASSES, EACH, SIDE = 50, 10, 20, 32


def write_table(path):
    """Numbers with and without a fraction, 6.7 characters each on average; blocks of rows repeat."""
    dice, block = random.Random(1), []
    for _ in range(min(ROWS, 2000)):
        values = [dice.gauss(0, 1) * 10 ** (c % 4) for c in range(COLUMNS - 1)]
        numbers = [f"{value:.4f}" if c % 2 else f"{value * 100:.0f}" for c, value in enumerate(values)]
        block.append(",".join([*numbers, f"{sum(values[:4]):.3f}"]) + "\n")
    text = "".join(block)
    with path.open("w", encoding="ascii") as file:
        file.write(",".join([*(f"c{c}" for c in range(COLUMNS - 1)), "y"]) + "\n")
        for _ in range(ROWS // len(block)):
            file.write(text)


def write_picture(path, dice):
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    rows = b"".join(b"\0" + dice.randbytes(3 * SIDE) for _ in range(SIDE))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)) +
                     chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def write_pictures(folder):
    """A few pictures for each class; the others are links to these."""
    dice = random.Random(2)
    for c in range(CLASSES):
        (folder / f"class{c}").mkdir(parents=True)
        paths = [folder / f"class{c}" / f"{i:06}.png" for i in range(PICTURES // CLASSES)]
        for i, path in enumerate(paths):
            if i < EACH:
                write_picture(path, dice)
            else:
                os.link(paths[i % EACH], path)


def time_table(path):
    size = path.stat().st_size
    path.read_bytes()  # into the system's memory
    told = subprocess.run([BUILD / "bench/open_data", path], check=True, capture_output=True, text=True).stdout
    user, system, memory = (float(word) for word in re.search(r"([\d.]+) s user, ([\d.]+) s system; most memory (\d+)", told).groups())
    print(f"table of {ROWS} rows, {size / 1e6:.0f} MB: {told.strip()}: {size / 1e6 / (user + system):.0f} MB/s of a core, "
          f"memory {memory * 2**20 / size:.2f} times the file")


def time_pictures(folder):
    begun = time.monotonic()
    command = [BUILD / "tools/tutti", "train", "lenet", "--data", folder, "--steps", "1"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr:
            if line.startswith("ready after"):
                print(f"{PICTURES} pictures: training begins after {time.monotonic() - begun:.1f} s ({line.strip()})")
                process.kill()


with tempfile.TemporaryDirectory() as made:
    write_table(pathlib.Path(made) / "table.csv")
    time_table(pathlib.Path(made) / "table.csv")
    os.remove(pathlib.Path(made) / "table.csv")
    write_pictures(pathlib.Path(made) / "pictures")
    time_pictures(pathlib.Path(made) / "pictures")
