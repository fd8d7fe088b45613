#!/usr/bin/env python3
"""Runs the files that test_export wrote in onnxruntime, and compares their outputs with Tutti's.

    mkdir FOLDER; TUTTI_EXPORTS=FOLDER build-tests/tests/onnx/test_export    with the variables of meson devenv
    .dev/torch/bin/python tests/onnx/check_exports.py FOLDER                  packages as for make.py

Or writes files of another exporter again, and compares both in onnxruntime on the same numbers; prints a table.

    .dev/torch/bin/python tests/onnx/check_exports.py --again build-tests/tools/tutti NAME.onnx ... NAME/net.onnx ...
"""
import argparse
import pathlib
import subprocess
import tempfile

import numpy
import onnx
import onnxruntime

LIMIT = 1e-5 # of the largest element
UNTOUCHED = {"bytes"} # which has no arrays next to it


def difference(got, wanted):
    if got.shape != wanted.shape:
        return numpy.inf
    same = (got == wanted) | (numpy.isnan(got) & numpy.isnan(wanted))
    finite = wanted[numpy.isfinite(wanted)]
    with numpy.errstate(invalid="ignore"): # infinities, which are the same
        errors = numpy.where(same, 0, got - wanted)
    return numpy.abs(errors).max() / max(0.01, numpy.abs(finite).max(initial=0))


def check_shapes(path):
    with tempfile.TemporaryDirectory() as folder:
        onnx.checker.check_model(path, full_check=True)
        onnx.shape_inference.infer_shapes_path(str(path), f"{folder}/inferred.onnx", check_type=True, strict_mode=True, data_prop=True)


def open_session(path):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def check(path):
    """What is wrong, in words."""
    check_shapes(path)
    session = open_session(path)
    inputs, wanted = numpy.load(path.with_suffix(".inputs.npz")), numpy.load(path.with_suffix(".outputs.npz"))
    names = [output.name for output in session.get_outputs()]
    got = dict(zip(names, session.run(names, {port.name: inputs[port.name] for port in session.get_inputs()})))
    if set(names) != set(wanted.files):
        return [f"outputs {names}, not {wanted.files}"]
    worst = {name: difference(got[name], wanted[name]) for name in names}
    return [f"{name} is off by {error:.2g}" for name, error in worst.items() if not error <= LIMIT]


# ------------------------------------------------------------------------------------------------- files written again

def feeds_of(session):
    """Open sizes are 2."""
    random = numpy.random.default_rng(1)
    return {port.name: random.standard_normal([size if isinstance(size, int) else 2 for size in port.shape], numpy.float32)
            for port in session.get_inputs()}


def parameters(path):
    return {array.name: list(array.dims) for array in onnx.load(path, load_external_data=False).graph.initializer}


def without_zeros(path, to):
    """A head that was initialised with zeros would hide all before it."""
    random = numpy.random.default_rng(2)
    model = onnx.load(path)
    for array in model.graph.initializer:
        values = onnx.numpy_helper.to_array(array)
        if values.dtype == numpy.float32 and values.ndim and not values.any():
            array.CopyFrom(onnx.numpy_helper.from_array(random.normal(0, 0.02, values.shape).astype(numpy.float32), array.name))
    onnx.save(model, to, save_as_external_data=True, location=f"{to.name}.data")


def again(tutti, path, folder):
    """The row of the table, and whether it is good."""
    name = path.parent.name if path.stem == "net" else path.stem
    first, written = pathlib.Path(folder) / "first.onnx", pathlib.Path(folder) / "again.onnx"
    without_zeros(path, first)
    path = first
    run = subprocess.run([tutti, "export", path, "--output", written], capture_output=True, text=True, check=False)
    if run.returncode:
        return f"| {name} | {run.stderr.strip()} | | | |", False
    check_shapes(written)
    first, second = open_session(path), open_session(written)
    feeds = feeds_of(first)
    wanted, got = first.run(None, feeds), second.run(None, feeds)
    error = max(difference(a, b) for a, b in zip(got, wanted, strict=True))
    model = onnx.load(written, load_external_data=False)
    before, after = parameters(path), parameters(written)
    kept = sum(after.get(key) == sizes for key, sizes in before.items())
    row = f"| {name} | {error:.1e} | {model.opset_import[0].version} | {len(model.graph.node)} | {kept} of {len(before)} |"
    return row, error <= LIMIT


def check_again(tutti, paths):
    good = True
    print("| network | error | opset | nodes | names kept |\n|---|--:|--:|--:|--:|", flush=True)
    for path in paths:
        with tempfile.TemporaryDirectory() as folder:
            row, fine = again(tutti, path, folder)
        good &= fine
        print(row, flush=True)
    return good


# ------------------------------------------------------------------------------------------------------ the test's files

def check_folder(folder):
    paths = [path for path in sorted(folder.glob("*.onnx")) if path.stem not in UNTOUCHED]
    good = bool(paths)
    for path in paths:
        try:
            faults = check(path)
        except Exception as failure: # onnxruntime's have no class of their own
            faults = [str(failure).strip()]
        good &= not faults
        print(path.stem, "; ".join(faults) or "good")
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=pathlib.Path, help="the folder, or with --again the files")
    parser.add_argument("--again", metavar="TUTTI", help="the command")
    read = parser.parse_args()
    good = check_again(read.again, read.paths) if read.again else check_folder(read.paths[0])
    raise SystemExit(not good)


main()
