import os
import struct

import numpy
import pytest

import tutti


@pytest.fixture(scope="session")
def digits(tmp_path_factory):
    """A folder with MNIST's files, of ten patterns with noise, and the same as arrays: (folder, x, y, xt, yt)."""
    random = numpy.random.default_rng(7)
    patterns = random.integers(0, 256, (10, 10, 10))
    folder, arrays = tmp_path_factory.mktemp("digits"), []
    for part, count in (("train", 640), ("t10k", 200)):
        labels = random.integers(0, 10, count).astype("uint8")
        pixels = numpy.clip(patterns[labels] * 0.5 + random.integers(0, 160, (count, 10, 10)), 0, 255).astype("uint8")
        (folder / f"{part}-images-idx3-ubyte").write_bytes(struct.pack(">4i", 2051, *pixels.shape) + pixels.tobytes())
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">2i", 2049, count) + labels.tobytes())
        arrays += [(pixels[:, None] / numpy.float32(255)).astype("float32"), labels.astype("int32")]
    return folder, *arrays


@pytest.fixture
def small():
    """Makes a network of one dense layer, 6 -> 3, and 32 samples."""
    def make(**options):
        network = tutti.Network()
        y = tutti.dense(network.input("x", 6), 3, name="fc")
        return tutti.Trainer(y, **{"loss": "cross_entropy", "optimizer": tutti.SGD(0.5), **options})
    random = numpy.random.default_rng(1)
    labels = random.integers(0, 3, 32)
    x = random.normal(size=(32, 6)) + 2 * (numpy.arange(6) % 3 == labels[:, None])
    return make, x.astype("float32"), labels


@pytest.fixture(scope="session")
def command():
    return os.path.join(os.environ["TUTTI_BUILD"], "tools", "tutti")


def pytest_terminal_summary(terminalreporter):
    """The line that tests/summary.py counts."""
    passed, failed = (len(terminalreporter.stats.get(word, ())) for word in ("passed", "failed"))
    terminalreporter.write_line(f"{passed} passed, {failed + len(terminalreporter.stats.get('error', ()))} failed")
