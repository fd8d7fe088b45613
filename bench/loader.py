#!/usr/bin/env python3
"""Reading, decoding and augmenting JPEG files of 500 x 375 to samples of 224 x 224, in comparison with PyTorch's
DataLoader: samples per second at the same number of threads (DataLoader: processes).

    bench/with-peers loader.py [--threads 2] [--rounds 5] [--seconds 10] [--words light]

The pictures are drawn once into BUILD/bench/loader-pictures. Peers, of which the fastest counts:
  pil      Pillow decodes and resizes, samples are floats, normalised
  bytes    Pillow, samples stay bytes (as ours do, which the device normalises)
  tensor   torchvision.io decodes, transforms v2 on tensors, samples stay bytes
"""
import argparse
import pathlib
import statistics
import subprocess
import time

import numpy
import torch
import torchvision
from PIL import Image
from torchvision.transforms import v2

COUNT, WIDTH, HEIGHT, SIDE, BATCH = 2000, 500, 375, 224, 64


def draw_pictures(folder):
    """Smooth fields of several scales, edges and noise: about as many bytes as photographs have."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(COUNT):
        path = folder / f"{number:04}.jpg"
        if path.exists():
            continue
        random = numpy.random.default_rng(number)
        picture = random.normal(0, 6, (HEIGHT, WIDTH, 3))
        for cells in (3, 9, 30, 90):
            field = random.integers(0, 256, (cells, cells, 3), dtype=numpy.uint8)
            large = Image.fromarray(field).resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC)
            picture += numpy.asarray(large, float) / 4
        left, top = random.integers(0, WIDTH - 100), random.integers(0, HEIGHT - 100)
        picture[top:top + 80, left:left + 90] += random.integers(-90, 90, 3)
        Image.fromarray(picture.clip(0, 255).astype(numpy.uint8)).save(path, quality=90)


def transforms_of(peer, words):
    """The transforms of torchvision's recipes that the words stand for."""
    steps = [v2.RandomResizedCrop(SIDE), v2.RandomHorizontalFlip()]
    if words == "standard":
        steps.append(v2.ColorJitter(0.4, 0.4, 0.4, 0.1))
    elif words != "light":
        raise SystemExit("loader: words are light or standard")
    if peer != "tensor":
        steps.append(v2.PILToTensor())
    if peer == "pil":
        steps += [v2.ToDtype(torch.float32, scale=True), v2.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))]
    return v2.Compose(steps)


class Pictures(torch.utils.data.Dataset):
    def __init__(self, folder, peer, words):
        self.files = sorted(str(path) for path in folder.glob("*.jpg"))
        self.peer, self.transforms = peer, transforms_of(peer, words)

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        if self.peer == "tensor":
            image = torchvision.io.decode_image(self.files[index], torchvision.io.ImageReadMode.RGB)
        else:
            with open(self.files[index], "rb") as file:
                image = Image.open(file).convert("RGB")
        return self.transforms(image), 0


def peer_speed(folder, peer, options):
    loader = torch.utils.data.DataLoader(
        Pictures(folder, peer, options.words), batch_size=BATCH, shuffle=True, num_workers=options.threads,
        persistent_workers=True)
    batches = (batch for _ in iter(int, 1) for batch in loader)  # epoch after epoch
    for _ in range(2 * options.threads):  # the workers have started
        next(batches)
    samples, start = 0, time.perf_counter()
    while time.perf_counter() < start + options.seconds:
        samples += len(next(batches)[0])
    return samples / (time.perf_counter() - start)


def own_speed(folder, options):
    program = pathlib.Path(options.build) / "bench/loader"
    command = [str(program), str(folder), str(options.threads), str(options.seconds), options.words]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--words", default="light")
    options = parser.parse_args()
    folder = pathlib.Path(options.build) / "bench/loader-pictures"
    draw_pictures(folder)
    size = sum(path.stat().st_size for path in folder.glob("*.jpg")) / COUNT / 1024
    print(f"{COUNT} pictures of {size:.0f} KiB, {options.threads} threads, {options.words}")
    speeds = {name: [] for name in ("tutti", "pil", "bytes", "tensor")}
    for _ in range(options.rounds):
        for name, found in speeds.items():
            found.append(own_speed(folder, options) if name == "tutti" else peer_speed(folder, name, options))
    middle = {name: statistics.median(found) for name, found in speeds.items()}
    for name, found in speeds.items():
        print(f"{name:8}{middle[name]:8.0f} samples/s   {min(found):.0f} to {max(found):.0f}")
    peer = max(("pil", "bytes", "tensor"), key=middle.get)
    print(f"{middle['tutti'] / middle[peer]:.2f} times {peer}")


main()
