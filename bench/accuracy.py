#!/usr/bin/env python3
"""How exact gradients are: one training step of Tutti and of PyTorch in single precision, from the same parameters on the
same inputs, against PyTorch in double precision. The error of a gradient is |g - g64| / |g64|, in the Euclidean norm, of
each parameter by itself. Without dropout.

plain   torchvision's initial values, normally distributed inputs. Rounding moves some of the millions of values across the
        kinks of activations, and lets another pixel win a maximum: this, and not the precision of a product, is then most of
        everybody's error.
smooth  parameters and inputs for which every ReLU and ReLU6 passes all its inputs on, and of many inputs those for which
        the values of a pooling lie farthest apart: no decision depends on rounding, and the error is that of the arithmetic.
        `distance` is how far the nearest value is from a kink or tie, in units of the values' own spread.

A line per network: the worst error of all gradients, of both, and the largest ratio of the two with the parameter where it
is (errors of PyTorch below FLOOR count as that: a gradient hit exactly by chance is no yardstick). A gradient that is nothing
but rounding in double precision too is left out: that of a shift which the next batch norm takes away again. Wanted: no error above
1e-2, no ratio above 10 in smooth. Exit status 1 where that is not so.
"""
import argparse
import copy
import sys
import tempfile

import numpy
import torch
from torch import nn

import exchange
import networks

FLOOR, MOST, RATIO = 1e-6, 1e-2, 10.0
NOTHING = 1e-10  # of the largest gradient
SPREAD = 0.9  # standard deviation around 6: no value of a few millions is negative
SMOOTH_IMAGE = {"vgg16": 32}  # else 64: its poolings compare so many pixels that of larger images some always nearly tie


def normalised(network):
    return any(isinstance(module, nn.BatchNorm2d) for module in network.modules())


def smooth_parameters(network):
    """Behind batch norm: scales and shifts that put all values between the kinks. Without it: filters whose taps add up to
    zero over the channels, so that a constant part (the bias of 6) goes neither through them nor into the borders;
    keep_spread() then scales what varies."""
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


def keep_spread(network, inputs):
    """Scales each layer's weights so that its results vary as much as those of the layer before, whatever the poolings took.
    Else they vary less and less around the constant part, whose rounding decides in the end who wins a maximum."""
    def scale(module, inputs, output):
        factor = SPREAD / output.std()
        module.weight *= factor
        bias = module.bias if output.dim() == 2 else module.bias[:, None, None]
        return (output - bias) * factor + bias

    layers = [module for module in network.modules() if isinstance(module, (nn.Conv2d, nn.Linear))]
    hooks = [module.register_forward_hook(scale) for module in layers]
    network(inputs)
    for hook in hooks:
        hook.remove()


class Distances:
    """Of each sample's values from kinks and ties, gathered while the network runs."""

    def __init__(self, network):
        self.found = []
        for module in network.modules():
            if isinstance(module, (nn.ReLU, nn.ReLU6)):
                module.inplace = False
                module.register_forward_pre_hook(self.kinks)
            elif isinstance(module, nn.MaxPool2d):
                module.register_forward_pre_hook(self.ties)

    def kinks(self, module, inputs):
        x = inputs[0].detach()
        sides = [x] + ([6 - x] if isinstance(module, nn.ReLU6) else [])
        self.found += [side.flatten(1).amin(1) / x.std() for side in sides]

    def ties(self, module, inputs):
        x = inputs[0].detach()
        windows = nn.functional.unfold(x.flatten(0, 1).unsqueeze(1), module.kernel_size, padding=module.padding, stride=module.stride)
        most = windows.topk(2, dim=1).values
        self.found.append((most[:, 0] - most[:, 1]).reshape(len(x), -1).amin(1) / x.std())

    def least(self):
        least, self.found = torch.stack(self.found).amin(0), []
        return least


def draw_inputs(arguments, shape, seed):
    return torch.randn((arguments.batch, *shape), generator=torch.Generator().manual_seed(seed))


def choose_inputs(arguments, network, shape):
    """Of many inputs those farthest from kinks and ties, and how far that is. Batch norm makes a sample's values depend on the
    others of its batch; without it each sample is chosen by itself."""
    distances, found = Distances(network), []
    together = arguments.batch if normalised(network) else 1
    pools = any(isinstance(module, nn.MaxPool2d) for module in network.modules())
    for seed in range(arguments.candidates if pools else 1):
        inputs = draw_inputs(arguments, shape, seed)
        with torch.no_grad():
            network(inputs.double())
        least = distances.least()
        found += [(float(least[i : i + together].min()), seed, i, inputs[i : i + together]) for i in range(0, len(inputs), together)]
    best = sorted(found, key=lambda candidate: candidate[0])[-(arguments.batch // together) :]
    return best[0][0], torch.cat([candidate[-1] for candidate in best])


def make(arguments, name, shape, smooth):
    torch.manual_seed(1)
    network = networks.make(name, networks.default_classes(name), dropout=False).train()
    if smooth:
        with torch.no_grad():
            smooth_parameters(network)
            if not normalised(network):
                keep_spread(network, draw_inputs(arguments, shape, 0))
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
    shape = networks.sample_shape(name)
    if smooth and name not in networks.SMALL:
        shape = (shape[0], *[SMOOTH_IMAGE.get(name, 64)] * 2)
    single = make(arguments, name, shape, smooth)
    initial = copy.deepcopy(single.state_dict())
    double = copy.deepcopy(single).double()
    distance, inputs = choose_inputs(arguments, double, shape) if smooth else (0.0, draw_inputs(arguments, shape, 0))
    if smooth and distance <= 0:
        sys.exit(f"accuracy: a value of {name} is not in the linear part of its activation")
    targets = torch.randint(0, networks.default_classes(name), (arguments.batch,), generator=torch.Generator().manual_seed(2))
    exact = gradients(double, inputs.double(), targets)
    peer = errors(gradients(single, inputs, targets), exact)
    single.load_state_dict(initial)
    data = {"inputs": inputs.numpy(), "targets": targets.numpy().astype(numpy.int32),
            "order": numpy.arange(arguments.batch, dtype=numpy.int32)}
    with tempfile.TemporaryDirectory() as folder:
        _, found = exchange.train(arguments.build, folder, name, networks.default_classes(name), arguments.batch, single, data,
                                  exact=arguments.exact)
    ours = errors(found, exact)
    ratios = {key: ours[key] / max(peer[key], FLOOR) for key in ours}
    return {"shape": shape, "distance": distance, "ours": max(ours.values()), "peer": max(peer.values()),
            "ours_median": float(numpy.median(list(ours.values()))), "peer_median": float(numpy.median(list(peer.values()))),
            "ratio": max(ratios.values()), "where": max(ratios, key=ratios.get)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", default=networks.RECTIFIED, help="default: all")
    parser.add_argument("--variant", choices=["plain", "smooth"], help="default: both")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--candidates", type=int, default=100, help="among how many inputs smooth chooses (default 100)")
    parser.add_argument("--exact", action="store_true", help="Tutti without Winograd")
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
