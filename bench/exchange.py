"""Safetensors files and `steps`, the program that trains in Tutti: for accuracy.py and curves.py."""
import json
import os
import pathlib
import subprocess

import numpy

TYPES = {"F32": numpy.float32, "I32": numpy.int32, "I64": numpy.int64}


def save(path, arrays):
    header, offset = {}, 0
    for name, array in arrays.items():
        kind = next(kind for kind, dtype in TYPES.items() if array.dtype == dtype)
        header[name] = {"dtype": kind, "shape": array.shape, "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for array in arrays.values():
            file.write(numpy.ascontiguousarray(array).tobytes())


def load(path):
    data = pathlib.Path(path).read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    return {name: numpy.frombuffer(data[8 + size + entry["data_offsets"][0]:8 + size + entry["data_offsets"][1]],
                                   TYPES[entry["dtype"]]).reshape(entry["shape"]) for name, entry in header.items()}


def weights(network):
    """Parameters and running statistics, as Tutti loads them."""
    return {name: value.detach().float().contiguous().numpy() for name, value in network.state_dict().items()
            if not name.endswith("num_batches_tracked")}


def train(build, folder, model, classes, batch, network, data, rate=0.01, momentum=0.0, decay=0.0,
          exact=False, precision="fp32", environment=None):
    """Tutti's losses, step by step, and its last gradients, from the network's parameters."""
    paths = [str(pathlib.Path(folder) / f"{name}.safetensors") for name in ("weights", "data", "gradients")]
    save(paths[0], weights(network))
    save(paths[1], data)
    command = [f"{build}/bench/steps", *["--exact"] * exact, "--precision", precision, model, *map(str, (classes, batch, rate, momentum, decay)), *paths]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env={**os.environ, **(environment or {})})
    return [float(line) for line in done.stdout.split()], load(paths[2])
