#!/usr/bin/env python3
"""Writes the node tests of the package onnx 1.23.2 into an archive, for tests/onnx/conform.c: for each test its model,
NAME.onnx, and its arrays, NAME.safetensors: input.K.NAME, output.K, and torch.NAME, PyTorch's gradients where it has the
operator (nodes_torch.py). index.txt names the tests and their operators.

    .dev/torch/bin/python tests/onnx/nodes.py tests/onnx/nodes.tar.xz

Tests of more than 220000 bytes are left out: 7 of 1884, which would be two fifths of the archive. Arrays of types that
safetensors do not have (texts, sequences, numbers of 4 and 8 bits) are left out, too: nothing reads their models."""
import io
import json
import struct
import sys
import tarfile
import warnings

import nodes_torch
import numpy
import onnx
from onnx import numpy_helper

LARGEST = 220000
TYPES = {"bool": "BOOL", "uint8": "U8", "int8": "I8", "uint16": "U16", "int16": "I16", "float16": "F16", "bfloat16": "BF16",
         "uint32": "U32", "int32": "I32", "float32": "F32", "uint64": "U64", "int64": "I64", "float64": "F64"}


def cases():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases
        return sorted(collect_testcases(None), key=lambda case: case.name)


def as_array(data):
    """None for what safetensors do not have."""
    if isinstance(data, onnx.TensorProto):
        data = numpy_helper.to_array(data)
    if data is None or isinstance(data, (list, onnx.SequenceProto)):
        return None
    data = numpy.asarray(data)
    return data if str(data.dtype) in TYPES else None


def safetensors(arrays):
    header, offset, parts = {}, 0, []
    for name, array in sorted(arrays.items(), key=lambda item: -item[1].itemsize):
        header[name] = {"dtype": TYPES[str(array.dtype)], "shape": list(array.shape), "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
        parts.append(array.tobytes())
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(parts)


def arrays_of(case):
    assert len(case.data_sets) == 1 and (case.rtol, case.atol) == (1e-3, 1e-7), case.name
    inputs, outputs = case.data_sets[0]
    assert len(inputs) == len(case.model.graph.input) and len(outputs) == len(case.model.graph.output), case.name
    arrays = {f"input.{i}.{value.name}": as_array(data) for i, (value, data) in enumerate(zip(case.model.graph.input, inputs))}
    arrays |= {f"output.{i}": as_array(data) for i, data in enumerate(outputs)}
    return {name: array for name, array in arrays.items() if array is not None}


def recorded(tests):
    """PyTorch's gradients of each test. A function expanded has those of its node."""
    made = {}
    for case in tests:
        inputs, outputs = ([as_array(data) for data in part] for part in case.data_sets[0])
        if "_expanded" not in case.name and len(case.model.graph.node) == 1:
            made[case.name] = nodes_torch.gradients(case.model.graph.node[0], inputs, outputs)
    return {case.name: made.get(case.name.split("_expanded")[0], {}) for case in tests}


def operators(cases):
    """Of each test; that of an expanded function is the function."""
    found = {case.name: case.model.graph.node[-1].op_type for case in cases if "_expanded" not in case.name}
    return {case.name: found[case.name.split("_expanded")[0]] for case in cases}


def main():
    tests = cases()
    operator, gradients = operators(tests), recorded(tests)
    index = []
    with tarfile.open(sys.argv[1], "w:xz", preset=9) as archive:
        def add(name, data):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))

        for case in tests:
            case.model.producer_name = ""
            arrays = arrays_of(case) | {f"torch.{name}": array for name, array in gradients[case.name].items()}
            model, arrays = case.model.SerializeToString(), safetensors(arrays)
            if len(model) + len(arrays) > LARGEST:
                print(f"left out: {case.name}, {len(model) + len(arrays)} bytes")
                continue
            name = case.name.removeprefix("test_")
            index.append(f"{name} {operator[case.name]}\n")
            add(f"{name}.onnx", model)
            add(f"{name}.safetensors", arrays)
        add("index.txt", "".join(index).encode())
    print(f"{len(index)} tests, {sum(map(bool, gradients.values()))} with PyTorch's gradients")


main()
