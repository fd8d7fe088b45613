#!/usr/bin/env python3
"""How exact gradients are: one training step of Tutti and of PyTorch in single precision, from the same parameters on the
same inputs, against PyTorch in double precision. The error of a gradient is |g - g64| / |g64|, in the Euclidean norm, of
each parameter by itself. Without dropout.

plain   torchvision's initial values, normally distributed inputs. Rounding moves some of the millions of values across the
        kinks of activations, and lets another pixel win a maximum: this, and not the precision of a product, is then most of
        everybody's error.
smooth  parameters and inputs for which every ReLU and ReLU6 passes all its inputs on, and of a few inputs those for which
        the values of a pooling lie farthest apart: no decision depends on rounding, and the error is that of the arithmetic.
        `distance` is how far the nearest value is from a kink or tie, in units of the values' own spread.

A line per network: the worst error of all gradients, of both, and the largest ratio of the two with the parameter where it
is (errors of PyTorch below FLOOR count as that: a gradient hit exactly by chance is no yardstick). A gradient that is nothing
but rounding in double precision too is left out: that of a shift which the next batch norm takes away again. Wanted: no error above
1e-2, no ratio above 10 in smooth. Exit status 1 where that is not so.
"""
import argparse
import sys
import tempfile

import numpy
import torch
from torch import nn

import exchange
import networks

FLOOR, MOST, RATIO = 1e-6, 1e-2, 10.0
NOTHING = 1e-10  # of the largest gradient
SMOOTH_IMAGE = (3, 64, 64)


def normalised(network):
    return any(isinstance(module, nn.BatchNorm2d) for module in network.modules())


def smooth_parameters(network):
    """Behind batch norm: scales and shifts that put all values between the kinks. Without it: filters whose taps add up to
    zero over the channels, so that a constant part (the bias of 6) goes neither through them nor into the borders, and what
    varies keeps its spread from layer to layer."""
    norms = normalised(network)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.weight.uniform_(0.34, 0.41)
            module.bias.uniform_(2.9, 3.1)
        elif isinstance(module, (nn.Conv2d, nn.Linear)):
            module.weight.normal_()
            if module.weight.shape[1] > 3:
                module.weight -= module.weight.mean(dim=1, keepdim=True)
            module.weight *= 0.95 / module.weight[0].numel() ** 0.5
            if module.bias is not None:
                module.bias.uniform_(*((-0.1, 0.1) if norms else (5.95, 6.05)))


class Distances:
    """Of the network's values from kinks and ties, gathered while it runs."""

    def __init__(self, network, smooth):
        self.found, self.smooth = [], smooth
        for module in network.modules():
            if isinstance(module, (nn.ReLU, nn.ReLU6)):
                module.inplace = False
                module.register_forward_pre_hook(self.kinks)
            elif isinstance(module, nn.MaxPool2d):
                module.register_forward_pre_hook(self.ties)

    def kinks(self, module, inputs):
        x = inputs[0].detach()
        sides = [x] + ([6 - x] if isinstance(module, nn.ReLU6) else [])
        self.found += [float((side if self.smooth else side.abs()).min() / x.std()) for side in sides]

    def ties(self, module, inputs):
        x = inputs[0].detach().flatten(0, 1).unsqueeze(1)
        windows = nn.functional.unfold(x, module.kernel_size, padding=module.padding, stride=module.stride)
        most = windows.topk(2, dim=1).values
        apart = (most[:, 0] - most[:, 1])[most[:, 0] > 0]
        self.found.append(float(apart.min() / x.std()))

    def least(self):
        least, self.found = min(self.found, default=float("inf")), []
        return least


def draw_inputs(arguments, shape, seed):
    return torch.randn((arguments.batch, *shape), generator=torch.Generator().manual_seed(seed))


def choose_inputs(arguments, network, shape):
    """Of a few inputs the one farthest from ties."""
    distances, best = Distances(network, True), (-float("inf"), 0)
    pools = any(isinstance(module, nn.MaxPool2d) for module in network.modules())
    for seed in range(arguments.candidates if pools else 1):
        with torch.no_grad():
            network(draw_inputs(arguments, shape, seed).to(arguments.dtype))
        best = max(best, (distances.least(), seed))
    return best


def make(arguments, name, smooth):
    torch.manual_seed(1)
    network = networks.make(name, networks.default_classes(name), dropout=False).train()
    if smooth:
        with torch.no_grad():
            smooth_parameters(network)
    return network


def gradients(network, inputs, targets):
    for module in network.modules():
        if hasattr(module, "inplace"):
            module.inplace = False
    network.zero_grad()
    nn.functional.cross_entropy(network(inputs), targets).backward()
    return {name: parameter.grad.double().numpy() for name, parameter in network.named_parameters()}


def errors(found, exact):
    norms = {name: float(numpy.linalg.norm(g)) for name, g in exact.items()}
    least = NOTHING * max(norms.values())
    return {name: float(numpy.linalg.norm(found[name] - g)) / norms[name] for name, g in exact.items() if norms[name] > least}


def measure(arguments, name, smooth):
    shape = SMOOTH_IMAGE if smooth and name not in networks.SMALL else networks.sample_shape(name)
    initial = {key: value.clone() for key, value in make(arguments, name, smooth).state_dict().items()}
    double = make(arguments, name, smooth).double()
    arguments.dtype = torch.float64
    distance, seed = choose_inputs(arguments, double, shape) if smooth else (0.0, 0)
    if smooth and distance <= 0:
        sys.exit(f"accuracy: a value of {name} is not in the linear part of its activation")
    inputs = draw_inputs(arguments, shape, seed)
    targets = torch.randint(0, networks.default_classes(name), (arguments.batch,), generator=torch.Generator().manual_seed(2))
    exact = gradients(double, inputs.double(), targets)
    single = make(arguments, name, smooth)
    peer = errors(gradients(single, inputs, targets), exact)
    single.load_state_dict(initial)
    data = {"inputs": inputs.numpy(), "targets": targets.numpy().astype(numpy.int32),
            "order": numpy.arange(arguments.batch, dtype=numpy.int32)}
    with tempfile.TemporaryDirectory() as folder:
        _, found = exchange.train(arguments.build, folder, name, networks.default_classes(name), arguments.batch, single, data)
    ours = errors(found, exact)
    ratios = {key: ours[key] / max(peer[key], FLOOR) for key in ours}
    return {"shape": shape, "distance": distance, "ours": max(ours.values()), "peer": max(peer.values()),
            "ours_median": float(numpy.median(list(ours.values()))), "peer_median": float(numpy.median(list(peer.values()))),
            "ratio": max(ratios.values()), "where": max(ratios, key=ratios.get)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", default=networks.NETWORKS, help="default: all")
    parser.add_argument("--variant", choices=["plain", "smooth"], help="default: both")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--candidates", type=int, default=40, help="inputs among which smooth chooses (default 40)")
    parser.add_argument("--build", default="build", help="folder of the build (default build)")
    arguments = parser.parse_args()
    print("| network | inputs | variant | distance | worst error: Tutti | PyTorch | median: Tutti | PyTorch | largest ratio | of |\n"
          "|---|---|---|--:|--:|--:|--:|--:|--:|---|", flush=True)
    failed = False
    for name in arguments.networks:
        for variant in [arguments.variant] if arguments.variant else ["plain", "smooth"]:
            row = measure(arguments, name, variant == "smooth")
            failed |= not (row["ours"] <= MOST and (variant == "plain" or row["ratio"] <= RATIO))
            size = "x".join(map(str, (arguments.batch, *row["shape"])))
            distance = f"{row['distance']:.1e}" if variant == "smooth" and row["distance"] < float("inf") else ""
            print(f"| {name} | {size} | {variant} | {distance} | {row['ours']:.1e} | {row['peer']:.1e} | {row['ours_median']:.1e} | "
                  f"{row['peer_median']:.1e} | {row['ratio']:.1f} | {row['where']} |", flush=True)
    return int(failed)


sys.exit(main())
