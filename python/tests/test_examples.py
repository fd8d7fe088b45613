"""The examples run as their first lines say, shortly; the cells of the notebook, too."""
import json
import os
import pathlib
import re
import struct
import subprocess
import sys

import numpy
import pytest

import tutti

FOLDER = pathlib.Path(__file__).parents[2] / "examples" / "python"


def run(name, *arguments, optimised=False):
    """optimised: it trains for longer than its kernels compile."""
    left_out = "TUTTI_OPTIMISE" if optimised else None
    ran = subprocess.run([sys.executable, "-B", FOLDER / name, *map(str, arguments)], stdout=subprocess.PIPE, text=True, check=True, timeout=600,
                         env={name: value for name, value in os.environ.items() if name != left_out})
    found = re.search(r"accuracy (\S+)", ran.stdout)
    return float(found[1]) if found else ran.stdout


@pytest.fixture(scope="module")
def mnist(tmp_path_factory):
    """The first of the digits that the library draws, as MNIST's files."""
    folder, digits = tmp_path_factory.mktemp("mnist"), tutti.data.open("digits")
    for part, name, count in ((digits.train, "train", 1500), (digits.tests, "t10k", 300)):
        x, y = part.arrays(count)
        pixels = numpy.clip(255 * (x - x.min()) / (x.max() - x.min()), 0, 255).astype("uint8")
        (folder / f"{name}-images-idx3-ubyte").write_bytes(struct.pack(">4i", 2051, count, 28, 28) + pixels.tobytes())
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">2i", 2049, count) + y.astype("uint8").tobytes())
    return folder


def test_digits(mnist):
    assert run("digits.py", 3, mnist, optimised=True) > 0.5


def test_text():
    assert run("text.py", 8) > 0.9


def test_tabular():
    table = pathlib.Path(__file__).parents[2] / "tests" / "command" / "iris.csv"
    names = table.read_text().splitlines()[0].split(",")
    assert run("tabular.py", table, names[-1], 30) > 0.8


def test_devices(mnist):
    assert "[" in run("devices.py", 1, mnist, optimised=True)


@pytest.fixture
def pictures(tmp_path):
    """Red and blue pictures, and a network with another head."""
    random = numpy.random.default_rng(3)
    for position, name in enumerate(("red", "blue")):
        (tmp_path / "pictures" / name).mkdir(parents=True)
        for number in range(20):
            pixels = random.integers(0, 90, (28, 28, 3)).astype("uint8")
            pixels[:, :, 2 * position] += 120
            (tmp_path / "pictures" / name / f"{number}.ppm").write_bytes(b"P6 28 28 255\n" + pixels.tobytes())
    tutti.Trainer(tutti.models.lenet(classes=7, input=(3, 28, 28)), loss="cross_entropy").export(tmp_path / "net.onnx")
    return tmp_path


def test_finetune(pictures):
    assert run("finetune.py", pictures / "net.onnx", pictures / "pictures", 4) > 0.8


def test_notebook(mnist):
    names, shown = {}, []
    for cell in json.loads((FOLDER / "digits.ipynb").read_text())["cells"]:
        if cell["cell_type"] == "code":
            *lines, last = cell["source"].replace("epochs=5", "epochs=1").replace('open("digits")', f"open({str(mnist)!r})").split("\n")
            exec("\n".join(lines), names)
            shown.append(eval(last, names))
    assert [hasattr(one, "_repr_html_") for one in shown] == [True, True, True, False]
