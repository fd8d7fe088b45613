#!/usr/bin/env python3
"""Trains a network in Tutti and in PyTorch from the same initial parameters, with the same samples in the same order and the
same learning rate, and compares the losses step by step: they should be one curve. MNIST's 10,000 test digits, three epochs,
momentum 0.9. PyTorch runs a second time as channels_last: how far it is then from itself is what rounding alone does, which
every step amplifies.

A line per network: the largest difference of the smoothed losses (exponential mean over drawing.SMOOTHING steps) between Tutti and
PyTorch, and between PyTorch's two runs; the losses over the last epoch. --picture draws all of them.

--precision bf16: Tutti in bfloat16 compared with Tutti in single precision, for STEPS steps, and unless --alone the same of PyTorch,
with autocast(bfloat16). The learning rates are small, so that losses stay far above zero, and a difference in percent means
something. A line per network and seed: the mean loss over the last LAST steps of each, and by how much bfloat16's is from that of
single precision. For comparison: how far Tutti is from itself with vectors of 8 floats, which sum in another order, and PyTorch
with channels_last. This is what the rounding of single precision does. Wanted: as the mean over the seeds, Tutti within MOST
percent, or within two standard errors of that. Exit status 1 where that is not so.
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
from drawing import draw, smooth

# Network: batch, learning rate, weight decay. The rates are those of models/, scaled to the batch.
RUNS = {"lenet": (64, 0.05, 0.0), "resnet18": (64, 0.025, 1e-4)}
STEPS, LAST, MOST = 300, 50, 2.0
ROUNDED_RUNS = {"lenet": (64, 0.003, 0.0), "resnet18": (32, 0.0003, 1e-4), "mobilenet_v2": (128, 0.0002, 4e-5)}
COLOURS = {"PyTorch": "#b0b0b0", "PyTorch, channels_last": "#e6a23c", "Tutti": "#1f6fb5"}
ROUNDED_COLOURS = {"PyTorch": "#b0b0b0", "PyTorch, bf16": "#e6a23c", "Tutti": "#1f6fb5", "Tutti, bf16": "#c0392b"}


def read_digits(folder):
    def read(kind, header):
        path, = list(pathlib.Path(folder).glob(f"t10k-{kind}*"))
        opener = gzip.open if path.suffix == ".gz" else open
        return numpy.frombuffer(opener(path, "rb").read()[header:], numpy.uint8)
    return read("images", 16).reshape(-1, 1, 28, 28).astype(numpy.float32) / numpy.float32(255), \
        read("labels", 8).astype(numpy.int32)


def make(name, seed=1):
    torch.manual_seed(seed)
    network = networks.make(name, 10, dropout=False)
    if name == "resnet18":  # one channel, as `tutti train resnet18 --data mnist` has it
        network.conv1 = nn.Conv2d(1, 64, 7, stride=2, padding=3, bias=False)
    if name == "mobilenet_v2":
        network.features[0][0] = nn.Conv2d(1, 32, 3, stride=2, padding=1, bias=False)
    return network.train()


def train_torch(run, name, data, variant, seed=1):
    batch, rate, decay = run
    network = make(name, seed)
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
        with torch.autocast("cpu", torch.bfloat16, enabled=variant == "bf16"):
            loss = nn.functional.cross_entropy(network(inputs), labels[chosen])
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
        if len(losses) % 100 == 0:
            print(f"{name} {variant}: step {len(losses)} of {len(data['order']) // batch}", file=sys.stderr)
    return numpy.array(losses)


def measure(arguments, name):
    batch, rate, decay = RUNS[name]
    images, labels = read_digits(arguments.data)
    random = numpy.random.default_rng(3)
    whole = len(images) // batch * batch
    order = numpy.concatenate([random.permutation(len(images))[:whole] for _ in range(arguments.epochs)]).astype(numpy.int32)
    data = {"inputs": images, "targets": labels, "order": order}
    with tempfile.TemporaryDirectory() as folder:
        ours, _ = exchange.train(arguments.build, folder, name, 10, batch, make(name), data, rate, 0.9, decay)
    curves = {"PyTorch": train_torch(RUNS[name], name, data, "nchw"),
              "PyTorch, channels_last": train_torch(RUNS[name], name, data, "nhwc"), "Tutti": numpy.array(ours)}
    last = whole // batch
    smoothed = {label: smooth(losses) for label, losses in curves.items()}
    apart = {label: abs(smoothed[label] - smoothed["PyTorch"]).max() for label in smoothed if label != "PyTorch"}
    print(f"{name:10} {batch:5} {len(ours):6} {apart['Tutti']:12.5f} {apart['PyTorch, channels_last']:18.5f}"
          + "".join(f" {curves[label][-last:].mean():10.5f}" for label in ("Tutti", "PyTorch", "PyTorch, channels_last")), flush=True)
    return smoothed


def measure_rounded(arguments, name, seed):
    """The smoothed losses, and the difference of Tutti's in percent."""
    batch, rate, decay = run = ROUNDED_RUNS[name]
    images, labels = read_digits(arguments.data)
    if name not in networks.SMALL:  # 32x32
        images = numpy.pad(images, ((0, 0), (0, 0), (2, 2), (2, 2)))
    random = numpy.random.default_rng(seed)
    order = numpy.concatenate([random.permutation(len(images)) for _ in range(STEPS * batch // len(images) + 1)])
    data = {"inputs": images, "targets": labels, "order": order[:STEPS * batch].astype(numpy.int32)}
    losses = {}
    if not arguments.alone:
        for label, variant in (("PyTorch", "nchw"), ("PyTorch, bf16", "bf16"), ("channels_last", "nhwc")):
            losses[label] = train_torch(run, name, data, variant, seed)
    with tempfile.TemporaryDirectory() as folder:
        for label, precision, width in (("Tutti", "fp32", ""), ("Tutti, bf16", arguments.precision, ""), ("8 floats", "fp32", "8")):
            environment = {"TUTTI_VECTOR_WIDTH": width} if width else {}
            losses[label] = numpy.array(exchange.train(arguments.build, folder, name, 10, batch, make(name, seed), data, rate, 0.9,
                                                       decay, precision=precision, environment=environment)[0])
    last = {label: of[-LAST:].mean() for label, of in losses.items()}

    def compared(single, rounded, other):
        return (f" {last[single]:9.4f} {last[rounded]:9.4f} {100 * (last[rounded] / last[single] - 1):+7.2f} %"
                f" {100 * (last[other] / last[single] - 1):+9.2f} %")
    print(f"{name:12} {batch:5} {seed:4}" + compared("Tutti", "Tutti, bf16", "8 floats")
          + ("" if arguments.alone else compared("PyTorch", "PyTorch, bf16", "channels_last")), flush=True)
    return {label: smooth(of) for label, of in losses.items() if label in ROUNDED_COLOURS}, 100 * (last["Tutti, bf16"] / last["Tutti"] - 1)


def train_all(arguments):
    print(f"{'network':10} {'batch':>5} {'steps':>6} {'Tutti apart':>12} {'PyTorch from itself':>18}   last epoch: Tutti, PyTorch, "
          "channels_last", flush=True)
    curves = {name: measure(arguments, name) for name in arguments.networks or RUNS}
    if arguments.picture:
        draw(arguments.picture, curves, COLOURS)
    return 0


def train_rounded(arguments):
    print(f"{'network':12} {'batch':>5} {'seed':>4}     Tutti      bf16 difference    8 floats"
          + ("" if arguments.alone else "   PyTorch  autocast difference  channels_last"), flush=True)
    curves, failed = {}, False
    for name in arguments.networks or ROUNDED_RUNS:
        apart = []
        for seed in range(1, arguments.seeds + 1):
            smoothed, percent = measure_rounded(arguments, name, seed)
            curves.setdefault(name, smoothed)
            apart.append(percent)
        spread = numpy.std(apart, ddof=1) / len(apart) ** 0.5 if len(apart) > 1 else 0.0
        print(f"{name:12} Tutti's difference, mean over the seeds: {numpy.mean(apart):+.2f} % ± {spread:.2f}", flush=True)
        failed |= not abs(numpy.mean(apart)) <= MOST + 2 * spread
    if arguments.picture:
        drawn = next(iter(curves.values()))
        draw(arguments.picture, curves, {label: colour for label, colour in ROUNDED_COLOURS.items() if label in drawn})
    return int(failed)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", help=f"of {', '.join(RUNS)}; with --precision {', '.join(ROUNDED_RUNS)} (default: all)")
    parser.add_argument("--data", required=True, help="folder with MNIST's t10k files")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--precision", choices=["bf16"], help="compare it with single precision")
    parser.add_argument("--alone", action="store_true", help="with --precision: without PyTorch")
    parser.add_argument("--seeds", type=int, default=2, help="with --precision: trainings of each network (default 2)")
    parser.add_argument("--picture", metavar="FILE", help="write the curves as SVG")
    parser.add_argument("--build", default="build", help="folder of the build (default build)")
    arguments = parser.parse_args()
    return train_rounded(arguments) if arguments.precision else train_all(arguments)


sys.exit(main())
