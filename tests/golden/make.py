#!/usr/bin/env python3
"""Records single training steps of PyTorch, in double precision, as text files that test_golden.c compares with.

    python3 -m venv .dev/torch && .dev/torch/bin/pip install torch==2.9.1 torchvision==0.24.1
    .dev/torch/bin/python tests/golden/make.py tests/golden

Weights, inputs and targets are not stored: both sides compute them by `uniform` below, in numbers that float holds
exactly. A file holds the loss, the number of correct classes, and for each gradient its norm, its scalar product with
pseudo-random numbers, and SAMPLES of its elements; running statistics of batch normalisations likewise, after the step.
Beside each stands how far PyTorch itself is off in single precision, as a norm and at most: what the test's tolerances
stand on.

"smooth" cases give biases and scales for which every ReLU and ReLU6 passes its inputs on: rounding can then flip no
activation, and an error of 1e-4 cannot hide behind flipped ones.
"""
import pathlib
import sys

import numpy
import torch
import torchvision
from torch import nn

CLASSES, BATCH, SAMPLES = 10, 4, 24


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


def initial(name, shape, smooth):
    """Of a parameter or running statistic; all scales are powers of two, so that floats are exact."""
    values = uniform(name, int(numpy.prod(shape)))
    if name.endswith("running_mean"):
        values = 0 * values
    elif name.endswith("running_var"):
        values = 0 * values + 1
    elif len(shape) > 1:
        fan_in = int(numpy.prod(shape[1:]))
        values *= 2.0 ** round(numpy.log2((6 / fan_in) ** 0.5)) / (4 if smooth else 1)
    elif name.endswith("weight"):
        values = 0.375 + values / 32 if smooth else 1 + values / 4
    else:
        values = 3 + values / 16 if smooth else values / 4
    return torch.from_numpy(values.reshape(shape))


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 32, 5, padding=2), nn.Conv2d(32, 64, 5, padding=2)
        self.fc1, self.fc2 = nn.Linear(3136, 128), nn.Linear(128, CLASSES)

    def forward(self, x):
        x = nn.functional.max_pool2d(torch.relu(self.conv1(x)), 2)
        x = nn.functional.max_pool2d(torch.relu(self.conv2(x)), 2)
        return self.fc2(torch.relu(self.fc1(x.flatten(1))))


CASES = {
    "lenet": (LeNet, (1, 28, 28)),
    "resnet18": (lambda: torchvision.models.resnet18(num_classes=CLASSES), (3, 64, 64)),
    "mobilenet_v2": (lambda: torchvision.models.mobilenet_v2(num_classes=CLASSES, dropout=0.0), (3, 64, 64)),
}


def step(make, shape, smooth, dtype):
    """The loss, the correct classes, and named arrays: gradients, then running statistics."""
    network = make().to(dtype).train()
    unsmooth = []
    with torch.no_grad():
        for name, value in network.state_dict().items():
            if not name.endswith("num_batches_tracked"):
                value.copy_(initial(name, tuple(value.shape), smooth))
    if smooth:
        for module in network.modules():
            if isinstance(module, (nn.ReLU, nn.ReLU6)):
                module.register_forward_pre_hook(
                    lambda m, x: unsmooth.append(bool((x[0] <= 0).any() or (isinstance(m, nn.ReLU6) and (x[0] >= 6).any()))))
    inputs = torch.from_numpy(uniform("input", BATCH * int(numpy.prod(shape)))).reshape(BATCH, *shape).to(dtype)
    targets = torch.from_numpy((bits("target", BATCH) % numpy.uint32(CLASSES)).astype(numpy.int64))
    logits = network(inputs)
    if any(unsmooth):
        raise SystemExit("an activation of a smooth case is not positive")
    loss = nn.functional.cross_entropy(logits, targets)
    loss.backward()
    arrays = [("gradient", n, p.grad) for n, p in network.named_parameters()]
    arrays += [("state", n, b) for n, b in network.named_buffers() if not n.endswith("num_batches_tracked")]
    return float(loss.detach()), int((logits.argmax(1) == targets).sum()), \
        [(kind, name, array.detach().double().numpy().ravel()) for kind, name, array in arrays]


def describe(name, array):
    """Norm, projection and samples of an array."""
    positions = [i * array.size // SAMPLES for i in range(SAMPLES)] if array.size > SAMPLES else range(array.size)
    return numpy.linalg.norm(array), float(array @ uniform("projection " + name, array.size)), array[list(positions)]


def main():
    folder = pathlib.Path(sys.argv[1])
    for case, (make, shape) in CASES.items():
        for smooth in (False, True):
            loss, correct, arrays = step(make, shape, smooth, torch.float64)
            loss32, _, arrays32 = step(make, shape, smooth, torch.float32)
            path = folder / f"{case}{'_smooth' if smooth else ''}.txt"
            with open(path, "w") as file:
                print(f"loss {loss:.12g} correct {correct} arrays {len(arrays)}", file=file)
                for (kind, name, array), (_, _, single) in zip(arrays, arrays32):
                    norm, projection, samples = describe(name, array)
                    error = single - array
                    print(f"{kind} {name} {array.size} {norm:.9g} {projection:.9g}",
                          f"{numpy.linalg.norm(error):.2g} {abs(error).max():.2g} {len(samples)}",
                          *(f"{value:.7g}" for value in samples), file=file)
            off = max(numpy.linalg.norm(a - b) / numpy.linalg.norm(b)
                      for (_, _, a), (kind, _, b) in zip(arrays32, arrays) if numpy.linalg.norm(b) > 1e-12)
            print(f"{path.name}: loss {loss:.6g}; in single precision the loss is off by {abs(loss32 / loss - 1):.1e}, "
                  f"the worst array by {off:.1e}", flush=True)


main()
