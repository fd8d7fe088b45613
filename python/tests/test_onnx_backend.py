"""Node tests of the package onnx by tutti.onnx_backend: what tests/onnx/nodes.txt says of the command, and refusals are exceptions of
Tutti's. The suite runs a few of each operator; TUTTI_ONNX_NODES=all runs all of them:

    TUTTI_TORCH=~/venv/bin/python TUTTI_ONNX_NODES=all tests/python/with-package build-tests -m pytest -q python/tests/test_onnx_backend.py

Without the package onnx nothing is tested here."""
import collections
import os
import pathlib
import re

import numpy
import pytest

pytest.importorskip("onnx.backend.test")     # a folder named onnx is a package, too
import onnx.backend.test  # noqa: E402

import tutti  # noqa: E402
from tutti import onnx_backend as backend  # noqa: E402

NODES = pathlib.Path(__file__).parents[2] / "tests/onnx/nodes.txt"
# Where the backend's outcome is another than the command's: tests, outcome, reason.
DIFFERENT = [
    (r"attention_.*_bf16(_expanded)?", "pass", "onnx allows two units of bfloat16 here, nodes.txt one part in a thousand"),
    (r"training_dropout(_default)?", "refused", "the backend refuses a Dropout that drops; the command infers without it"),
]
# Tests whose numbers Tutti cannot have.
OTHER = [
    (r"bernoulli.*", "numpy's random numbers"),
    (r"resize_downsample_scales_(cubic|linear)_align_corners", "the package's reference divides by a size that is not whole"),
]


def outcomes():
    """{operator: {test: what nodes.txt says of its outputs}}"""
    found, operator = collections.defaultdict(dict), None
    for line in NODES.read_text().splitlines():
        if line.startswith("["):
            operator = line.strip("[]")
        elif line and not line.startswith("#"):
            name, outcome = line.split()[:2]
            found[operator][name] = next((other for pattern, other, _ in DIFFERENT if re.fullmatch(pattern, name)), outcome)
    return found


OUTCOMES = outcomes()


def chosen(tests):
    """The first test of each outcome, or all."""
    if os.environ.get("TUTTI_ONNX_NODES") == "all":
        return tests
    return {name: outcome for outcome, name in reversed([(outcome, name) for name, outcome in tests.items()])}


@pytest.fixture(scope="module")
def node_tests():
    return onnx.backend.test.BackendTest(backend, __name__).test_cases["OnnxBackendNodeModelTest"]


def outcome(node_tests, name):
    try:
        node_tests(f"test_{name}_cpu").debug()
        return "pass"
    except tutti.Error:
        return "refused"
    except AssertionError:
        return "fail"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("operator", OUTCOMES)
def test_nodes(node_tests, operator):
    wanted = chosen(OUTCOMES[operator])
    found = {name: outcome(node_tests, name) for name in wanted}
    assert found == wanted
    wrong = [name for name, one in found.items() if one == "fail"]
    assert all(any(re.fullmatch(pattern, name) for pattern, _ in OTHER) for name in wrong), wrong


def model_of(nodes, inputs, outputs, **values):
    """A model of "op input,... output {attributes}", with shapes whose sizes may have names."""
    made = [onnx.helper.make_node(op, given.split(","), result.split(","), **attributes) for op, given, result, attributes in nodes]
    infos = [[onnx.helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in part] for part in (inputs, outputs)]
    initializers = [onnx.numpy_helper.from_array(numpy.asarray(array), name) for name, array in values.items()]
    return onnx.helper.make_model(onnx.helper.make_graph(made, "g", *infos, initializers), opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=9)


FLOAT, INT64, FLOAT16 = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.TensorProto.FLOAT16
WEIGHT = numpy.random.default_rng(3).normal(size=(6, 5)).astype("float32")
# A file for any number of samples, and whether one network serves them all.
BATCHES = {
    "softmax": (model_of([("MatMul", "x,w", "h", {}), ("Softmax", "h", "y", {"axis": -1}), ("ArgMax", "h", "k", {"axis": 2, "keepdims": 0})],
                         [("x", FLOAT, ["N", 4, 6])], [("y", FLOAT, ["N", 4, 5]), ("k", INT64, ["N", 4])], w=WEIGHT), True),
    "time first": (model_of([("Transpose", "x", "t", {"perm": [1, 0, 2]}), ("MatMul", "t,w", "y", {})],
                            [("x", FLOAT, ["N", 4, 6])], [("y", FLOAT, [4, "N", 5])], w=WEIGHT), True),
    "rows": (model_of([("Reshape", "x,s", "r", {}), ("MatMul", "r,w", "y", {})],
                      [("x", FLOAT, ["N", 4, 6])], [("y", FLOAT, ["M", 5])], w=WEIGHT, s=numpy.array([-1, 6])), True),
    "rows, time first": (model_of([("Transpose", "x", "t", {"perm": [1, 0, 2]}), ("Reshape", "t,s", "r", {}), ("MatMul", "r,w", "y", {})],
                                  [("x", FLOAT, ["N", 4, 6])], [("y", FLOAT, ["M", 5])], w=WEIGHT, s=numpy.array([-1, 6])), True),
    "along the batch": (model_of([("ReduceMean", "x,a", "m", {"keepdims": 1}), ("Sub", "x,m", "y", {})],
                                 [("x", FLOAT, ["N", 4, 6])], [("y", FLOAT, ["N", 4, 6])], a=numpy.array([0])), False),
    "pairs": (model_of([("MatMul", "x,z", "y", {})], [("x", FLOAT, ["N", 4]), ("z", FLOAT, [4, "M"])], [("y", FLOAT, ["N", "M"])]), False),
}


@pytest.mark.parametrize("name", BATCHES)
def test_batches(name):
    """Any number of samples, by one network where samples are computed apart from each other."""
    model, is_one = BATCHES[name]
    prepared, reference, random = backend.prepare(model), onnx.reference.ReferenceEvaluator(model), numpy.random.default_rng(5)
    for samples in (3, 5, 1, 5):
        x = random.normal(size=(samples, 4, 6) if name != "pairs" else (samples, 4)).astype("float32")
        feeds = {"x": x} if name != "pairs" else {"x": x, "z": random.normal(size=(4, 2 * samples)).astype("float32")}
        for wanted, got in zip(reference.run(None, feeds), prepared.run(feeds), strict=True):
            assert wanted.dtype == got.dtype and wanted.shape == got.shape
            assert numpy.allclose(wanted, got, 1e-4, 1e-5)
    assert (len(prepared.programs) == 1) == is_one


@pytest.mark.parametrize("names", ([None, None], ["N", "M"]))
def test_batches_apart(names):
    """First sizes without a name may differ: x of 3 rows and z of 1."""
    model = model_of([("Add", "x,z", "y", {})], [("x", FLOAT, [names[0], 4]), ("z", FLOAT, [names[1], 4])], [("y", FLOAT, [None, 4])])
    x, z = numpy.arange(12, dtype="float32").reshape(3, 4), numpy.full((1, 4), 100, "float32")
    y, = backend.run_model(model, [x, z])
    assert numpy.array_equal(y, x + z)


def test_numbers_of_samples():
    """Arrays whose first sizes have one name must agree, and have samples."""
    model = model_of([("Add", "x,z", "y", {})], [("x", FLOAT, ["N", 4]), ("z", FLOAT, ["N", 4])], [("y", FLOAT, ["N", 4])])
    prepared = backend.prepare(model)
    for counts in ((3, 1), (3, 5)):
        with pytest.raises(tutti.ShapeError, match=f"x {counts[0]}, z {counts[1]}"):
            prepared.run([numpy.zeros((count, 4), "float32") for count in counts])
    with pytest.raises(tutti.ShapeError, match='"x" has no samples'):
        prepared.run([numpy.zeros((0, 4), "float32")] * 2)


@pytest.mark.parametrize("training", (False, True))
def test_external_data(tmp_path, monkeypatch, training):
    """Numbers in a file of their own are found from any folder."""
    model = model_of([("MatMul", "x,w", "h", {}), ("Dropout", "h,r,t", "y", {})], [("x", FLOAT, ["N", 6])], [("y", FLOAT, ["N", 5])],
                     w=WEIGHT, r=numpy.float32(0.5), t=numpy.array(training))
    (tmp_path / "other").mkdir()
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="m.onnx.data", size_threshold=0)
    monkeypatch.chdir(tmp_path / "other")
    x = numpy.ones((2, 6), "float32")
    if training:
        with pytest.raises(tutti.Error, match="training_mode"):
            backend.prepare(tmp_path / "m.onnx").run([x])
    else:
        y, = backend.prepare(tmp_path / "m.onnx").run([x])
        assert numpy.allclose(y, x @ WEIGHT, 1e-4, 1e-5)


def test_forms_of_calls(tmp_path):
    """A path and bytes, a node, devices, and wrong calls."""
    model, _ = BATCHES["softmax"]
    x = numpy.random.default_rng(5).normal(size=(2, 4, 6)).astype("float32")
    onnx.save(model, tmp_path / "m.onnx")
    y, k = backend.run_model(tmp_path / "m.onnx", [x])
    assert (y == backend.prepare(model.SerializeToString()).run(x)[0]).all() and (k == y.argmax(2)).all()
    node = onnx.helper.make_node("Split", ["x"], ["a", "b"], axis=1, num_outputs=2)
    a, b = backend.run_node(node, [x])
    assert (a == x[:, :2]).all() and (b == x[:, 2:]).all()
    assert backend.supports_device("CPU") and backend.supports_device("cpu:0") and not backend.supports_device("CPU:9") and not backend.supports_device("NPU")
    assert backend.is_compatible(model)
    unknown = model_of([("BitwiseNot", "x", "y", {})], [("x", INT64, [2, 3])], [("y", INT64, [2, 3])])
    assert not backend.is_compatible(unknown)
    prepared = backend.prepare(model)
    for kind, given in ((TypeError, [x.astype("float64")]), (tutti.ShapeError, [x[:, :3]]), (ValueError, [x, x]), (ValueError, {"y": x}), (ValueError, [])):
        with pytest.raises(kind):
            prepared.run(given)
    with pytest.raises(tutti.Error, match="BitwiseNot"):
        backend.prepare(unknown)
    with pytest.raises(tutti.Error, match="no device"):
        backend.prepare(model, "GPU:7")


def test_types():
    """Halves and whole numbers come in their types; what float32 would round is refused."""
    model = model_of([("Mul", "x,x", "y", {})], [("x", INT64, ["N", 2])], [("y", INT64, ["N", 2])])
    assert backend.run_model(model, [numpy.array([[3, -4]])])[0].tolist() == [[9, 16]]
    with pytest.raises(tutti.Error, match="rounds"):
        backend.run_model(model, [numpy.array([[3, 70001]])])
    half = model_of([("Exp", "x", "y", {})], [("x", FLOAT16, ["N"])], [("y", FLOAT16, ["N"])])
    y, = backend.run_model(half, [numpy.array([1.5, 2.0], "float16")])
    assert y.dtype == "float16" and numpy.allclose(y, numpy.exp([1.5, 2.0]), 1e-3)
