#!/usr/bin/env python3
"""Runs the files that test_export wrote in onnxruntime, and compares their outputs with Tutti's.

    mkdir FOLDER; TUTTI_EXPORTS=FOLDER build-tests/tests/onnx/test_export    with the variables of meson devenv
    .dev/torch/bin/python tests/onnx/check_exports.py FOLDER                  packages as for make.py
"""
import pathlib
import sys

import numpy
import onnx
import onnxruntime

LIMIT = 1e-5 # of the largest element
UNTOUCHED = {"bytes"} # which has no arrays beside it


def difference(got, wanted):
    if got.shape != wanted.shape:
        return numpy.inf
    same = (got == wanted) | (numpy.isnan(got) & numpy.isnan(wanted))
    finite = wanted[numpy.isfinite(wanted)]
    with numpy.errstate(invalid="ignore"): # infinities, which are the same
        errors = numpy.where(same, 0, got - wanted)
    return numpy.abs(errors).max() / max(0.01, numpy.abs(finite).max(initial=0))


def check(path):
    onnx.checker.check_model(path, full_check=True)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    inputs, wanted = numpy.load(path.with_suffix(".inputs.npz")), numpy.load(path.with_suffix(".outputs.npz"))
    names = [output.name for output in session.get_outputs()]
    got = dict(zip(names, session.run(names, {port.name: inputs[port.name] for port in session.get_inputs()})))
    if set(names) != set(wanted.files):
        return [f"outputs {names}, not {wanted.files}"]
    worst = {name: difference(got[name], wanted[name]) for name in names}
    return [f"{name} is off by {error:.2g}" for name, error in worst.items() if not error <= LIMIT]


def main():
    bad, paths = 0, sorted(pathlib.Path(sys.argv[1]).glob("*.onnx"))
    for path in paths:
        if path.stem in UNTOUCHED:
            continue
        faults = check(path)
        bad += bool(faults)
        print(path.stem, "; ".join(faults) or "good")
    sys.exit(1 if bad or not paths else 0)


main()
