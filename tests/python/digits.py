"""Trains the digits in a few lines, with an installed package: handwritten ones if a folder with MNIST's files is given."""
import gzip
import pathlib
import sys

import numpy

import tutti


def read(pattern, offset):
    path = max(pathlib.Path(sys.argv[1]).glob(pattern))      # train- rather than t10k-
    data = path.read_bytes()
    return numpy.frombuffer(gzip.decompress(data) if path.suffix == ".gz" else data, "uint8", offset=offset)


if len(sys.argv) > 1:
    x = (read("*-images-idx3-ubyte*", 16).reshape(-1, 1, 28, 28)[:8192] / numpy.float32(255)).astype("float32")
    y = read("*-labels-idx1-ubyte*", 8)[:8192].astype("int32")
else:
    random = numpy.random.default_rng(7)
    y = random.integers(0, 10, 2048).astype("int32")
    x = (random.random((10, 1, 28, 28))[y] * 0.5 + random.random((2048, 1, 28, 28)) * 0.5).astype("float32")
net = tutti.models.lenet(classes=10)
given = len(sys.argv) > 1
trainer = tutti.Trainer(net, loss="cross_entropy", optimizer=tutti.SGD(0.05 if given else 0.01, momentum=0.9), seed=1)
history = trainer.fit(x, y, epochs=2 if given else 8, batch_size=64)     # those that are made have few steps an epoch
print([device.name for device in tutti.devices()], dict(history))
assert history["accuracy"][-1] > 0.8
