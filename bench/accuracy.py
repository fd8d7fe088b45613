#!/usr/bin/env python3
"""How exact gradients are: one training step of Tutti and of PyTorch from the same parameters on the same inputs, against
PyTorch in double precision. The error of a gradient is |g - g64| / |g64|, in the Euclidean norm, of each parameter by
itself, and of all of them as one vector (`whole`). Without dropout.

plain   torchvision's initial values, normally distributed inputs. Rounding moves some of the millions of values across the
        kinks of activations, and lets another pixel win a maximum: this, and not the precision of a product, is then most of
        everybody's error.
smooth  parameters and inputs for which every ReLU and ReLU6 passes all its inputs on, and of many inputs those for which
        the values of a pooling lie farthest apart: no decision depends on rounding, and the error is that of the arithmetic.
        `distance` is how far the nearest value is from a kink or tie, in units of the values' own spread. Of networks whose
        only activations are ReLU and ReLU6; those whose activations have no kink are smooth as they are (plain).

A line per network: the worst error of all gradients, of both, and the largest ratio of the two with the parameter where it
is (errors of PyTorch below FLOOR count as that: a gradient hit exactly by chance is not a yardstick). A gradient that is nothing
but rounding in double precision too is left out: that of a shift which the next batch norm takes away again. Wanted: no error above
1e-2, no ratio above 10 where nothing depends on rounding. Exit status 1 where that is not so.

--precision bf16 or tf32: the errors of Tutti with that precision, of PyTorch with autocast(bfloat16) and of PyTorch in single
precision: means over several inputs, not chosen, as no values are farther apart than bfloat16 rounds. `ratio` is Tutti's
error over autocast's of the whole gradient, with the standard error of its mean. Wanted: bf16 at most 1; tf32, which has three
more bits of mantissa, at most an eighth; both within two standard errors.
TUTTI_BF16_DOTS=plain: every product of matrices by bf16 dot products, also small ones (runtime/matrix.h).
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
OF_AUTOCAST = {"bf16": 1.0, "tf32": 0.125}
WITHOUT_KINKS = ("linear", "efficientnet_b0", "convnext_tiny", "vit_b_16")
NOTHING = 1e-10  # of the largest gradient
SPREAD = 0.9  # standard deviation around 6: no value of a few millions is negative
SMOOTH_IMAGE = {"vgg16": 32}  # else 64: its poolings compare so many pixels that of larger images some always nearly tie


def normalised(network):
    return any(isinstance(module, nn.BatchNorm2d) for module in network.modules())


def smooth_parameters(network):
    """After batch norm: scales and shifts that put all values between the kinks. Without it: filters whose taps add up to
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
    """Distances of each sample's values from kinks and ties, gathered while the network runs."""

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
    """Returns the inputs, of many, that are farthest from kinks and ties, and how far they are. Batch norm makes a sample's values depend on the
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


def gradients(network, inputs, targets, autocast=False):
    for module in network.modules():
        if hasattr(module, "inplace"):
            module.inplace = False
    network.zero_grad()
    loss = nn.functional.mse_loss if targets.is_floating_point() else nn.functional.cross_entropy
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        value = loss(network(inputs), targets)
    value.backward()
    return {name: parameter.grad.double().numpy() for name, parameter in network.named_parameters()}


def errors(found, exact):
    norms = {name: float(numpy.linalg.norm(g)) for name, g in exact.items()}
    least = NOTHING * max(norms.values())
    return {name: float(numpy.linalg.norm(found[name] - g)) / norms[name] for name, g in exact.items() if norms[name] > least}


def whole(found, exact):
    squares = [sum(float(numpy.sum(numpy.square(g))) for g in of) for of in ([found[name] - g for name, g in exact.items()], exact.values())]
    return (squares[0] / squares[1]) ** 0.5


def shape_of(arguments, name, smooth):
    shape = networks.sample_shape(name)
    if name in ("linear", "vit_b_16", *networks.SMALL):  # no others fit them
        return shape
    if smooth:
        return (shape[0], *[SMOOTH_IMAGE.get(name, 64)] * 2)
    return (shape[0], *[arguments.image] * 2) if arguments.image else shape


def draw_targets(arguments, name, shape, seed):
    random = torch.Generator().manual_seed(seed)
    if name == "linear":
        return torch.randn((arguments.batch, 1), generator=random)
    return torch.randint(0, networks.default_classes(name), (arguments.batch, *(shape[1:] if name == "unet" else ())), generator=random)


def ours(arguments, name, network, inputs, targets):
    """Tutti's gradients."""
    targets = targets.numpy()
    data = {"inputs": inputs.numpy(), "targets": targets if targets.dtype == numpy.float32 else targets.astype(numpy.int32),
            "order": numpy.arange(arguments.batch, dtype=numpy.int32)}
    with tempfile.TemporaryDirectory() as folder:
        return exchange.train(arguments.build, folder, name, networks.default_classes(name), arguments.batch, network, data,
                              exact=arguments.exact, precision=arguments.precision)[1]


def measure(arguments, name, smooth):
    shape = shape_of(arguments, name, smooth)
    single = make(arguments, name, shape, smooth)
    initial = copy.deepcopy(single.state_dict())
    double = copy.deepcopy(single).double()
    distance, inputs = choose_inputs(arguments, double, shape) if smooth else (0.0, draw_inputs(arguments, shape, 0))
    if smooth and distance <= 0:
        sys.exit(f"accuracy: a value of {name} is not in the linear part of its activation")
    targets = draw_targets(arguments, name, shape, 2)
    exact = gradients(double, inputs.double(), targets.double() if targets.is_floating_point() else targets)
    peer = errors(gradients(single, inputs, targets), exact)
    single.load_state_dict(initial)
    found = errors(ours(arguments, name, single, inputs, targets), exact)
    ratios = {key: found[key] / max(peer[key], FLOOR) for key in found}
    size = "x".join(map(str, (arguments.batch, *shape)))
    wide = f"{distance:.1e}" if smooth and distance < float("inf") else ""
    where = max(ratios, key=ratios.get)
    print(f"| {name} | {size} | {'smooth' if smooth else 'plain'} | {wide} | {max(found.values()):.1e} | {max(peer.values()):.1e} | "
          f"{numpy.median(list(found.values())):.1e} | {numpy.median(list(peer.values())):.1e} | {ratios[where]:.1f} | {where} |", flush=True)
    return max(found.values()) <= MOST and (ratios[where] <= RATIO or not (smooth or name in WITHOUT_KINKS))


def measure_rounded(arguments, name, smooth):
    """With a lower precision."""
    shape = shape_of(arguments, name, smooth)
    single = make(arguments, name, shape, smooth)
    initial = copy.deepcopy(single.state_dict())
    rows = []
    for seed in range(arguments.inputs):
        inputs, targets = draw_inputs(arguments, shape, seed), draw_targets(arguments, name, shape, 1000 + seed)
        exact = gradients(copy.deepcopy(single).double(), inputs.double(), targets.double() if targets.is_floating_point() else targets)
        row = []
        for autocast in (True, False):
            row.append(gradients(single, inputs, targets, autocast))
            single.load_state_dict(initial)
        row.insert(0, ours(arguments, name, single, inputs, targets))
        rows.append([(whole(found, exact), numpy.median(list(errors(found, exact).values()))) for found in row])
    (found, median), (peer, peer_median), (floats, _) = numpy.mean(rows, axis=0)
    ratios = numpy.array([row[0][0] / row[1][0] for row in rows])
    spread = ratios.std(ddof=1) / len(ratios) ** 0.5 if len(ratios) > 1 else 0.0
    size = "x".join(map(str, (arguments.batch, *shape)))
    print(f"| {name} | {size} | {'smooth' if smooth else 'plain'} | {found:.1e} | {peer:.1e} | {floats:.1e} | {median:.1e} | {peer_median:.1e} | "
          f"{ratios.mean():.3g} ± {spread:.1g} |", flush=True)
    return ratios.mean() <= OF_AUTOCAST[arguments.precision] + 2 * spread


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", help="default: all")
    parser.add_argument("--variant", choices=["plain", "smooth"], help="default: both")
    parser.add_argument("--precision", choices=["fp32", *OF_AUTOCAST], default="fp32", help="Tutti's (default fp32)")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--image", type=int, metavar="N", help="plain with images of NxN (default: the network's own)")
    parser.add_argument("--candidates", type=int, default=100, help="among how many inputs smooth chooses (default 100)")
    parser.add_argument("--inputs", type=int, default=5, help="over how many inputs a lower precision is averaged (default 5)")
    parser.add_argument("--exact", action="store_true", help="Tutti without Winograd")
    parser.add_argument("--build", default="build", help="folder of the build (default build)")
    arguments = parser.parse_args()
    rounded = arguments.precision != "fp32"
    print("| network | inputs | variant | whole: Tutti | autocast | PyTorch fp32 | median: Tutti | autocast | ratio |\n"
          "|---|---|---|--:|--:|--:|--:|--:|--:|" if rounded else
          "| network | inputs | variant | distance | worst error: Tutti | PyTorch | median: Tutti | PyTorch | largest ratio | of |\n"
          "|---|---|---|--:|--:|--:|--:|--:|--:|---|", flush=True)
    failed = False
    for name in arguments.networks or networks.ALL:
        for variant in [arguments.variant] if arguments.variant else ["plain", "smooth"]:
            if variant == "plain" or name in networks.RECTIFIED:
                failed |= not (measure_rounded if rounded else measure)(arguments, name, variant == "smooth")
    return int(failed)


sys.exit(main())
