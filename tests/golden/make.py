#!/usr/bin/env python3
"""Records single training steps of PyTorch, in double precision, as text files that test_golden.c compares with.

    python3 -m venv .dev/torch && .dev/torch/bin/pip install torch==2.9.1 torchvision==0.24.1
    .dev/torch/bin/python tests/golden/make.py tests/golden [CASE...]        (or --search CASE, see CASES)

Weights, inputs and targets are not stored: both sides compute them by `uniform` below, in numbers that float holds
exactly. A file holds the loss, the number of correct classes, and for each gradient its norm, its scalar product with
pseudo-random numbers, and some of its elements; running statistics of batch normalisations likewise, after the step.
Next to each stands how far PyTorch itself is off in single precision, as a norm and at most: what the test's tolerances
stand on.

"smooth" cases give biases and scales for which every ReLU and ReLU6 passes its inputs on: rounding can then flip no
activation, and an error of 1e-4 cannot hide behind flipped ones. Networks whose activations have no kinks need no such case.
"""
import pathlib
import sys
from collections import OrderedDict

import numpy
import torch
import torchvision
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import networks

CLASSES, BATCH = 10, 4


def name_hash(name):
    """FNV-1a, 32 bits."""
    value = 2166136261
    for byte in name.encode():
        value = (value ^ byte) * 16777619 & 0xFFFFFFFF
    return value


def bits(name, count):
    """32 pseudo-random bits for each element: a counter, through Chris Wellons' "lowbias32" mixer."""
    with numpy.errstate(over="ignore"):
        value = numpy.arange(count, dtype=numpy.uint32) * numpy.uint32(0x9E3779B1) + numpy.uint32(name_hash(name))
        value ^= value >> numpy.uint32(16)
        value *= numpy.uint32(0x7FEB352D)
        value ^= value >> numpy.uint32(15)
        value *= numpy.uint32(0x846CA68B)
        value ^= value >> numpy.uint32(16)
    return value


def uniform(name, count):
    """Numbers from -1 to 1 in steps of 2^-15: few bits, so that 3 + u / 16 is still exact in single precision."""
    return (bits(name, count) >> numpy.uint32(16)).astype(numpy.float64) / 2**15 - 1


def initial(name, shape, smooth, shift):
    """Returns the initial values of a parameter or running statistic; all scales are powers of two, so that floats are exact. With a shift of
    the biases, few values lie near the kinks of the activations after them."""
    values = uniform(name, int(numpy.prod(shape)))
    if name.endswith("running_mean"):
        values = 0 * values
    elif name.endswith("running_var"):
        values = 0 * values + 1
    elif len(shape) > 1:
        fan_in = int(numpy.prod(shape[1:]))
        values *= 2.0 ** round(numpy.log2((6 / fan_in) ** 0.5)) / (8 if smooth else 1)
    elif name.endswith("weight"):
        values = 0.375 + values / 32 if smooth else 1 + values / 4
    else:
        values = 3 + values / 16 if smooth else shift + values / 4
    return torch.from_numpy(values.reshape(shape))


def lenet():
    return nn.Sequential(OrderedDict(
        conv1=nn.Conv2d(1, 32, 5, padding=2), relu1=nn.ReLU(), pool1=nn.MaxPool2d(2),
        conv2=nn.Conv2d(32, 64, 5, padding=2), relu2=nn.ReLU(), pool2=nn.MaxPool2d(2),
        flatten=nn.Flatten(), fc1=nn.Linear(3136, 128), relu3=nn.ReLU(), fc2=nn.Linear(128, CLASSES)))


def mlp():
    return nn.Sequential(OrderedDict(
        flatten=nn.Flatten(), fc1=nn.Linear(784, 512), relu1=nn.ReLU(), fc2=nn.Linear(512, 512), relu2=nn.ReLU(),
        fc3=nn.Linear(512, CLASSES)))


def torchvisions(name, **options):
    return lambda: getattr(torchvision.models, name)(num_classes=CLASSES, **options)


# Network, shape of a sample, shift, and the number of the inputs: of 200, those which keep values farthest from the
# kinks of activations and from ties of maxima (see `--search`): rounding may flip what is nearer than a rounding error.
# Then how many elements of an array are recorded, and which of the cases: smooth or not.
CASES = {
    "mlp": (mlp, (1, 28, 28), 0, 84, 24, (False, True)),
    "lenet": (lenet, (1, 28, 28), 0, 156, 24, (False, True)),
    "resnet18": (torchvisions("resnet18"), (3, 64, 64), 1.5, 68, 24, (False, True)),
    "mobilenet_v2": (torchvisions("mobilenet_v2", dropout=0.0), (3, 64, 64), 2.5, 153, 24, (False, True)),
    "efficientnet_b0": (torchvisions("efficientnet_b0", dropout=0.0, stochastic_depth_prob=0.0), (3, 40, 40), 0, 0, 8, (False,)),
    "convnext_tiny": (torchvisions("convnext_tiny", stochastic_depth_prob=0.0), (3, 40, 36), 0, 0, 8, (False,)),
    "unet": (lambda: networks.unet(3, CLASSES), (3, 16, 18), 0, 0, 8, (True,)),
}


def prepare(case, smooth, dtype):
    """The network with its initial values, and a list that gets the distances of its values from kinks and ties."""
    make, _, shift, *_ = CASES[case]
    network, margins = make().to(dtype).train(), []
    with torch.no_grad():
        for name, value in network.state_dict().items():
            if not name.endswith("num_batches_tracked"):
                value.copy_(initial(name, tuple(value.shape), smooth, shift))

    def measure(module, inputs):
        x = inputs[0].detach()
        margins.append(float(x.min() if smooth else x.abs().min()))
        if isinstance(module, nn.ReLU6):
            margins.append(float((6 - x).min() if smooth else (6 - x).abs().min()))

    def measure_pool(module, inputs):
        x = inputs[0].detach().flatten(0, 1).unsqueeze(1)
        windows = nn.functional.unfold(x, module.kernel_size, padding=module.padding, stride=module.stride)
        most = windows.topk(2, dim=1).values
        margins.append(float((most[:, 0] - most[:, 1])[most[:, 0] > 0].min()))

    for module in network.modules():
        if isinstance(module, (nn.ReLU, nn.ReLU6)):
            module.register_forward_pre_hook(measure)
        elif isinstance(module, nn.MaxPool2d):
            module.register_forward_pre_hook(measure_pool)
    return network, margins


def make_inputs(case, number, dtype):
    shape = CASES[case][1]
    return torch.from_numpy(uniform(f"input {number}", BATCH * int(numpy.prod(shape)))).reshape(BATCH, *shape).to(dtype)


def search(case):
    """The inputs' number with the largest margin, in all variants."""
    variants, found = [prepare(case, smooth, torch.float64) for smooth in CASES[case][5]], []
    for number in range(200):
        inputs, least = make_inputs(case, number, torch.float64), []
        for network, margins in variants:
            margins.clear()
            with torch.no_grad():
                network(inputs)
            least.append(min(margins))
        found.append((min(least), number))
    print(case, max(found))


def step(case, smooth, dtype):
    """The loss, the correct classes, and named arrays: gradients, then running statistics."""
    network, margins = prepare(case, smooth, dtype)
    logits = network(make_inputs(case, CASES[case][3], dtype))
    labels = (BATCH, *logits.shape[2:])
    targets = torch.from_numpy((bits("target", int(numpy.prod(labels))) % numpy.uint32(CLASSES)).astype(numpy.int64)).reshape(labels)
    if smooth and min(margins, default=1) <= 0:
        raise SystemExit("an activation of a smooth case is not within its linear part")
    loss = nn.functional.cross_entropy(logits, targets)
    loss.backward()
    arrays = [("gradient", n, p.grad) for n, p in network.named_parameters()]
    arrays += [("state", n, b) for n, b in network.named_buffers() if not n.endswith("num_batches_tracked")]
    return float(loss.detach()), int((logits.argmax(1) == targets).sum()), \
        [(kind, name, array.detach().double().numpy().ravel()) for kind, name, array in arrays]


def describe(name, array, samples):
    """Norm, projection and samples of an array."""
    positions = [i * array.size // samples for i in range(samples)] if array.size > samples else range(array.size)
    return numpy.linalg.norm(array), float(array @ uniform("projection " + name, array.size)), array[list(positions)]


def main():
    if sys.argv[1] == "--search":
        return search(sys.argv[2])
    folder = pathlib.Path(sys.argv[1])
    for case in sys.argv[2:] or CASES:
        for smooth in CASES[case][5]:
            loss, correct, arrays = step(case, smooth, torch.float64)
            loss32, _, arrays32 = step(case, smooth, torch.float32)
            path = folder / f"{case}{'_smooth' if smooth else ''}.txt"
            with open(path, "w") as file:
                print(f"loss {loss:.12g} correct {correct} arrays {len(arrays)}", file=file)
                for (kind, name, array), (_, _, single) in zip(arrays, arrays32):
                    norm, projection, samples = describe(name, array, CASES[case][4])
                    error = single - array
                    print(f"{kind} {name} {array.size} {norm:.9g} {projection:.9g}",
                          f"{numpy.linalg.norm(error):.2g} {abs(error).max():.2g} {len(samples)}",
                          *(f"{value:.7g}" for value in samples), file=file)
            off = max(numpy.linalg.norm(a - b) / numpy.linalg.norm(b)
                      for (_, _, a), (kind, _, b) in zip(arrays32, arrays) if numpy.linalg.norm(b) > 1e-12)
            print(f"{path.name}: loss {loss:.6g}; in single precision the loss is off by {abs(loss32 / loss - 1):.1e}, "
                  f"the worst array by {off:.1e}", flush=True)


if __name__ == "__main__":
    main()
