#!/usr/bin/env python3
"""Trains a network in Tutti and in PyTorch from the same initial parameters, with the same samples in the same order and the
same learning rate, and compares the losses step by step: they should be one curve. MNIST's 10,000 test digits, three epochs,
momentum 0.9. PyTorch runs a second time as channels_last: how far it is then from itself is what rounding alone does, which
every step amplifies.

A line per network: the largest difference of the smoothed losses (exponential mean over SMOOTHING steps) between Tutti and
PyTorch, and between PyTorch's two runs; the losses over the last epoch. --picture draws all of them.
"""
import argparse
import gzip
import pathlib
import sys
import tempfile

import numpy
import torch
from torch import nn

import exchange
import networks

SMOOTHING = 20
# Network: batch, learning rate, weight decay. The rates are those of models/, scaled to the batch.
RUNS = {"lenet": (64, 0.05, 0.0), "resnet18": (64, 0.025, 1e-4)}
COLOURS = {"PyTorch": "#b0b0b0", "PyTorch, channels_last": "#e6a23c", "Tutti": "#1f6fb5"}


def read_digits(folder):
    def read(kind, header):
        path, = list(pathlib.Path(folder).glob(f"t10k-{kind}*"))
        opener = gzip.open if path.suffix == ".gz" else open
        return numpy.frombuffer(opener(path, "rb").read()[header:], numpy.uint8)
    return read("images", 16).reshape(-1, 1, 28, 28).astype(numpy.float32) / numpy.float32(255), \
        read("labels", 8).astype(numpy.int32)


def make(name):
    torch.manual_seed(1)
    network = networks.make(name, 10)
    if name == "resnet18":  # one channel, as `tutti train resnet18 --data mnist` has it
        network.conv1 = nn.Conv2d(1, 64, 7, stride=2, padding=3, bias=False)
    return network.train()


def train_torch(arguments, name, data, variant):
    batch, rate, decay = RUNS[name]
    network = make(name)
    images, labels = torch.from_numpy(data["inputs"]), torch.from_numpy(data["targets"]).long()
    if variant == "nhwc":
        network = network.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(network.parameters(), lr=rate, momentum=0.9, weight_decay=decay)
    losses = []
    for chosen in torch.from_numpy(data["order"]).long().split(batch):
        optimizer.zero_grad()
        inputs = images[chosen]
        if variant == "nhwc":
            inputs = inputs.contiguous(memory_format=torch.channels_last)
        loss = nn.functional.cross_entropy(network(inputs), labels[chosen])
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
        if len(losses) % 100 == 0:
            print(f"{name} {variant}: step {len(losses)} of {len(data['order']) // batch}", file=sys.stderr)
    return numpy.array(losses)


def smooth(losses):
    """Exponential mean, without the pull of the beginning."""
    smoothed, total, weight = [], 0.0, 0.0
    for loss in losses:
        total = total * (1 - 1 / SMOOTHING) + loss / SMOOTHING
        weight = weight * (1 - 1 / SMOOTHING) + 1 / SMOOTHING
        smoothed.append(total / weight)
    return numpy.array(smoothed)


def measure(arguments, name):
    batch, rate, decay = RUNS[name]
    images, labels = read_digits(arguments.data)
    random = numpy.random.default_rng(3)
    whole = len(images) // batch * batch
    order = numpy.concatenate([random.permutation(len(images))[:whole] for _ in range(arguments.epochs)]).astype(numpy.int32)
    data = {"inputs": images, "targets": labels, "order": order}
    with tempfile.TemporaryDirectory() as folder:
        ours, _ = exchange.train(arguments.build, folder, name, 10, batch, make(name), data, rate, 0.9, decay)
    curves = {"PyTorch": train_torch(arguments, name, data, "nchw"),
              "PyTorch, channels_last": train_torch(arguments, name, data, "nhwc"), "Tutti": numpy.array(ours)}
    last = whole // batch
    smoothed = {label: smooth(losses) for label, losses in curves.items()}
    apart = {label: abs(smoothed[label] - smoothed["PyTorch"]).max() for label in smoothed if label != "PyTorch"}
    print(f"{name:10} {batch:5} {len(ours):6} {apart['Tutti']:12.5f} {apart['PyTorch, channels_last']:18.5f}"
          + "".join(f" {curves[label][-last:].mean():10.5f}" for label in ("Tutti", "PyTorch", "PyTorch, channels_last")), flush=True)
    return smoothed


def panel(name, smoothed, left):
    """One network's curves as SVG: the step across, the smoothed loss upwards in powers of ten."""
    width, height, top = 400, 220, 40
    low = numpy.floor(numpy.log10(min(losses.min() for losses in smoothed.values())))
    high = numpy.ceil(numpy.log10(max(losses.max() for losses in smoothed.values())))
    steps = len(smoothed["Tutti"])

    def x(step):
        return left + width * step / steps

    def y(loss):
        return top + height * (high - numpy.log10(loss)) / (high - low)
    parts = [f'<text x="{left}" y="{top - 12}" font-weight="bold">{name}</text>']
    for power in range(int(low), int(high) + 1):
        parts.append(f'<path d="M{left} {y(10.0 ** power):.1f}h{width}" stroke="#ddd"/>'
                     f'<text x="{left - 6}" y="{y(10.0 ** power) + 4:.1f}" text-anchor="end">{10.0 ** power:g}</text>')
    parts.append(f'<text x="{left + width}" y="{top + height + 18}" text-anchor="end">{steps} steps</text>')
    for (label, losses), size in zip(smoothed.items(), (5, 2.5, 1)):
        points = range(0, steps, max(1, steps // 240))
        path = " ".join(f"{x(step):.1f},{y(losses[step]):.1f}" for step in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{COLOURS[label]}" stroke-width="{size}"/>')
    return "\n".join(parts)


def draw(path, curves):
    lefts = [50 + 480 * i for i in range(len(curves))]
    parts = [panel(name, smoothed, left) for (name, smoothed), left in zip(curves.items(), lefts)]
    for i, (label, colour) in enumerate(COLOURS.items()):
        parts.append(f'<path d="M{50 + 190 * i} 300h24" stroke="{colour}" stroke-width="{(5, 2.5, 1)[i]}"/>'
                     f'<text x="{80 + 190 * i}" y="304">{label}</text>')
    body = "\n".join(parts)
    pathlib.Path(path).write_text(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {480 * len(curves)} 320" '
                                  f'font-family="sans-serif" font-size="12">\n<rect width="100%" height="100%" fill="white"/>\n'
                                  f"{body}\n</svg>\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", default=list(RUNS), help=f"of {', '.join(RUNS)} (default: all)")
    parser.add_argument("--data", required=True, help="folder with MNIST's t10k files")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--picture", metavar="FILE", help="write the curves as SVG")
    parser.add_argument("--build", default="build", help="folder of the build (default build)")
    arguments = parser.parse_args()
    print(f"{'network':10} {'batch':>5} {'steps':>6} {'Tutti apart':>12} {'PyTorch from itself':>18}   last epoch: Tutti, PyTorch, "
          "channels_last", flush=True)
    curves = {name: measure(arguments, name) for name in arguments.networks}
    if arguments.picture:
        draw(arguments.picture, curves)


main()
