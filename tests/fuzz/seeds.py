#!/usr/bin/env python3
"""Writes inputs from which the fuzzers may start: the files and node tests of tests/onnx, and the arrays and pictures of
tests/formats. Needs the packages numpy and onnx.

    seeds.py FOLDER [NODES]     makes a folder in FOLDER for each target; NODES is where tests/onnx/conformance.py unpacked them
"""
import json
import pathlib
import sys

import numpy
import onnx

TESTS = pathlib.Path(__file__).resolve().parent.parent
WHOLE, LOGITS, HEAD, SECOND, SHAPE, INTEGERS, FLOATS, NOTES, SIZES = (16 << bit for bit in range(9))  # as in onnx.c
LARGEST = 1 << 15
TYPES = {"F32": 1, "U8": 2, "I8": 3, "U16": 4, "I16": 5, "I32": 6, "I64": 7, "BOOL": 9, "F16": 10, "F64": 11, "U32": 12, "U64": 13,
         "BF16": 16}


def arrays(path):
    """The inputs of a node test, by their names."""
    data = path.read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    for name, entry in json.loads(data[8:end]).items():
        if name.startswith("input."):
            first, last = entry["data_offsets"]
            yield name.split(".", 2)[2], TYPES[entry["dtype"]], entry["shape"], data[end + first:end + last]


def with_initialisers(model, path, floats):
    """The model in which integers are no inputs, and with `floats` only the first input is one."""
    made = onnx.ModelProto.FromString(model.SerializeToString())
    first = made.graph.input[0].name if made.graph.input else None
    for name, kind, shape, data in arrays(path):
        if (name == first and kind in (1, 10, 11, 16)) or (kind in (1, 10, 11, 16) and not floats):
            continue
        made.graph.initializer.append(onnx.TensorProto(name=name, data_type=kind, dims=shape, raw_data=data))
    return made


def variants(path):
    model = onnx.load(path, load_external_data=False)
    yield model, (0, NOTES | LOGITS, HEAD, SECOND, SIZES, WHOLE, WHOLE | INTEGERS, WHOLE | INTEGERS | FLOATS)
    if path.with_suffix(".safetensors").exists() and "files" not in path.parts:
        yield with_initialisers(model, path.with_suffix(".safetensors"), False), (0, WHOLE)
        yield with_initialisers(model, path.with_suffix(".safetensors"), True), (0, WHOLE)


def write_onnx(folder, paths):
    folder.mkdir(parents=True)
    for path in paths:
        for place, (model, options) in enumerate(variants(path)):
            for bits in options:
                model.ir_version = bits
                if model.ByteSize() <= LARGEST:
                    (folder / f"{path.stem[:80]}-{place}-{bits}").write_bytes(model.SerializeToString())


def write_arrays(folder):
    folder.mkdir(parents=True)
    for path in [*TESTS.glob("formats/files/*.np[yz]"), *TESTS.glob("onnx/files/*.safetensors")]:
        kind = b"s" if path.suffix == ".safetensors" else b"z"
        if path.stat().st_size <= LARGEST:
            (folder / path.name).write_bytes(kind + path.read_bytes())
    (folder / "labels").write_bytes(b"1\0\0\x08\x01\0\0\0\x03abc")
    (folder / "images").write_bytes(b"0\0\0\x08\x03\0\0\0\x01\0\0\0\x02\0\0\0\x03abcdef")


def write_images(folder):
    folder.mkdir(parents=True)
    for name, array in numpy.load(TESTS / "formats/files/images.npz").items():
        if name.startswith("file/"):
            (folder / name[5:]).write_bytes(b"\0" + array.tobytes())


to = pathlib.Path(sys.argv[1])
write_onnx(to / "onnx", [*TESTS.glob("onnx/files/*.onnx"), *(path for nodes in sys.argv[2:] for path in pathlib.Path(nodes).glob("*.onnx"))])
write_arrays(to / "arrays")
write_images(to / "images")
