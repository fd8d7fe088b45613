#!/usr/bin/env python3
"""Writes the files of numpy that test_npz.c reads: the same arrays stored, deflated and one alone.

    make_npz.py FOLDER    needs numpy
"""
import pathlib
import sys

import numpy

TYPES = ["bool", "int8", "uint8", "int16", "uint16", "float16", "int32", "uint32", "float32", "int64", "uint64", "float64"]


def main():
    folder = pathlib.Path(sys.argv[1])
    arrays = {name: (numpy.arange(6) % (2 if name == "bool" else 7)).astype(name).reshape(2, 3) for name in TYPES}
    arrays["columns"] = numpy.asfortranarray(numpy.arange(24, dtype=numpy.float32).reshape(2, 3, 4))
    arrays["big"] = numpy.arange(5, dtype=">i4")
    arrays["scalar"] = numpy.float64(2.5)
    arrays["empty"] = numpy.zeros((0, 3), numpy.float32)
    arrays["zeros"] = numpy.zeros(3000, numpy.float32)
    numpy.savez_compressed(folder / "deflated.npz", **arrays)
    del arrays["zeros"]
    numpy.savez(folder / "stored.npz", **arrays)
    numpy.save(folder / "columns.npy", arrays["columns"])


main()
