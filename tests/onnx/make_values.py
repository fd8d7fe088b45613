#!/usr/bin/env python3
"""Makes the files of tests/onnx/files about types and known numbers, as make.py makes the others: casts of what depends on the
samples (casts.onnx), arithmetic on constants of all types (known.onnx), scales that give no whole size (resized.onnx)
convolutions of tables (tables.onnx), attributes of old opsets (oldest.onnx), negative indices (from_end.onnx, turned.onnx), and
constants in files for a number of samples (gathered.onnx, products_added.onnx, products_fixed.onnx,
norms_fixed.onnx, masked.onnx, those of refused()).

    .dev/torch/bin/python tests/onnx/make_values.py tests/onnx/files/values
"""
import pathlib
import sys

import numpy
import onnx.reference
from make import SAMPLES, Graph, numbers, random, record
from onnx import TensorProto as T
from onnx import helper, numpy_helper


def casts(folder):
    """A type that a Cast says holds, whatever stands before it; small integers wrap around."""
    graph = Graph("casts", 20, ids=random.integers(-9, 10, (SAMPLES, 4)), x=numbers(SAMPLES, 4))

    def third(name, kind=T.FLOAT):
        return graph.add("Div", graph.add("Cast", name, to=kind, hidden=True), numpy.float32(3) if kind == T.FLOAT else numpy.array(3))

    absolute = graph.add("Abs", "ids", hidden=True)
    third(absolute)
    third(absolute, T.INT64)
    third(graph.add("Equal", "ids", numpy.array(3), hidden=True))
    third(graph.add("ReduceSum", "ids", numpy.array([1]), hidden=True))
    third(graph.add("ArgMax", "x", axis=1, hidden=True))
    third(graph.add("Shape", "x", start=1, hidden=True))
    graph.outputs[-1] = graph.add("Add", "x", graph.outputs[-1], hidden=True)
    truths = graph.add("Cast", numpy.array([True, False, True, True]), to=T.INT64, hidden=True)
    graph.add("Add", "ids", graph.add("Mul", truths, numpy.array(16), hidden=True))
    many = graph.add("Mul", "ids", numpy.array(90), hidden=True)
    for kind in (T.UINT8, T.INT8):
        graph.add("Cast", graph.add("Cast", many, to=kind, hidden=True), to=T.INT32)
    graph.add("Cast", graph.add("Mul", "x", numpy.float32(3), hidden=True), to=T.INT32)
    graph.add("ReduceMean", graph.add("Cast", "ids", to=T.INT32, hidden=True), numpy.array([1]))
    graph.add("Pow", graph.add("Cast", "ids", to=T.INT32, hidden=True), numpy.int32(3))
    graph.add("CastLike", "x", "ids")
    graph.add("Greater", "x", graph.add("CastLike", numpy.array(0), "x", hidden=True))
    graph.add("Identity", graph.outputs[0])
    graph.write(folder)


def known(folder):
    """What is computed when the file is read: positions, sizes and scales."""
    graph = Graph("known", 20, x=numbers(SAMPLES, 2, 3, 4))

    def shown(name):
        graph.add("Add", "x", graph.add("Cast", name, to=T.FLOAT, hidden=True))

    def chain(array, *nodes):
        name = array
        for operator, *more in nodes:
            options = more.pop() if more and isinstance(more[-1], dict) else {}
            name = graph.add(operator, name, *more, hidden=True, **options)
        return name

    rows = graph.add("Shape", "x", start=2, end=3, hidden=True)
    shown(chain(rows, ("Cast", {"to": T.FLOAT}), ("Div", numpy.float32([2])), ("Ceil",), ("Sub", numpy.float32([0.25])), ("Abs",)))
    shown(chain(rows, ("Cast", {"to": T.DOUBLE}), ("Mul", numpy.array([1.1])), ("Sqrt",), ("Pow", numpy.array([3.0])), ("Floor",)))
    shown(chain(rows, ("Pow", numpy.array([2])), ("Mod", numpy.array([5])), ("Max", numpy.array([2]), numpy.array([1])), ("Neg",)))
    shown(chain(numpy.int32([2**31 - 1]), ("Add", numpy.int32([3])), ("Div", numpy.int32([2**20]))))
    shown(chain(numpy.array([300, -5, 7, 256]), ("Cast", {"to": T.UINT8}), ("Cast", {"to": T.INT8}), ("Mul", numpy.int8([3]))))
    shown(chain(numpy.float32([2.75, -1.5, 0, 7]), ("Cast", {"to": T.INT32}), ("Clip", numpy.int32(-1), numpy.int32(5))))
    shown(chain(numpy.float32([0.5, 40, 1, 3]), ("Cast", {"to": T.FLOAT16}), ("Mul", numpy.float16([3]))))
    shown(chain(numpy.uint64([2**64 - 1]), ("Div", numpy.uint64([2**40])), ("Greater", numpy.uint64([5]))))
    condition = graph.add("Less", graph.add("Range", numpy.array(0), numpy.array(4), numpy.array(1), hidden=True), numpy.array(2), hidden=True)
    shown(graph.add("Where", condition, numpy.float32(0.5), numpy.float32([1, 2, 3, 4]), hidden=True))
    shown(chain(graph.add("Range", numpy.float32(0), numpy.float32(1), numpy.float32(0.25), hidden=True), ("CumSum", numpy.array(0)), ("Exp",)))
    ones = graph.add("ConstantOfShape", numpy.array([1100, 1000]), hidden=True)
    shown(chain(ones, ("Cos",), ("ReduceMean", numpy.array([0, 1]))))
    shown(chain(numpy.array([[4, -3, 8, 1]]), ("ArgMin", {"axis": 1}), ("Sign",), ("Tile", numpy.array([1, 4])), ("Trilu",)))
    # What Upsample(scale_factor=2) and a resize to half the size become.
    scales = graph.add("Concat", graph.add("Constant", value_floats=[1.0, 1.0], hidden=True), graph.add("Constant", value_floats=[2.0, 2.0], hidden=True),
                       axis=0, hidden=True)
    graph.add("Resize", "x", "", scales)
    graph.write(folder)


def resized(folder):
    """Sizes that are not whole: 3 by 1.5, 5 by 0.7."""
    graph = Graph("resized", 19, x=numbers(SAMPLES, 1, 3, 5))
    for mode in ("linear", "nearest", "cubic"):
        for coordinates in ("align_corners", "pytorch_half_pixel", "half_pixel_symmetric", "tf_crop_and_resize", "half_pixel"):
            roi = numpy.float32([0, 0, 0.1, 0.2, 1, 1, 0.9, 0.8]) if coordinates.startswith("tf") else ""
            graph.add("Resize", "x", roi, numpy.float32([1, 1, 1.5, 0.7]), mode=mode, coordinate_transformation_mode=coordinates)
    graph.write(folder, symbolic=False)


def training(folder):
    """A batch normalisation as files have it that were exported in training mode."""
    graph = Graph("training", 17, x=numbers(SAMPLES, 2, 5))
    graph.add("BatchNormalization", "x", *(numpy.float32([1, 2]) for _ in range(4)), training_mode=1, outputs=3)
    del graph.outputs[1:]
    graph.write(folder)
    (folder / "training.safetensors").unlink()


def branches(folder):
    """An If within an If; the conditions are known when the file is read. A branch that is not needed has an unknown operator."""
    def branch(*nodes, outputs, arrays=()):
        return helper.make_graph([helper.make_node(*node[:3], **dict(node[3:])) for node in nodes], "branch", [],
                                 [helper.make_empty_tensor_value_info(name) for name in outputs], arrays)

    graph = Graph("branches", 18, x=numbers(SAMPLES, 4))
    inner = {"then_branch": branch(("Neg", ["a"], ["r"]), outputs=["r"]), "else_branch": branch(("Abs", ["a"], ["r"]), outputs=["r"])}
    rank_2 = [("Shape", ["a"], ["s"]), ("Size", ["s"], ["n"]), ("Equal", ["n", "two"], ["c"])]
    then = branch(("Mul", ["x", "w"], ["a"]), *rank_2, ("If", ["c"], ["b"], *inner.items()), outputs=["b", "a"],
                  arrays=[numpy_helper.from_array(numpy.float32([1, 2, 3, 4]), "w"), numpy_helper.from_array(numpy.array(2), "two")])
    other = branch(("Einsum", ["x"], ["a"], ("equation", "ij->ij")), ("Det", ["a"], ["b"]), outputs=["b", "a"])
    rate = graph.add("Equal", graph.add("Constant", value_int=16000, hidden=True), numpy.array(16000), hidden=True)
    graph.add("If", rate, outputs=2, then_branch=then, else_branch=other)
    graph.write(folder)


def linear(folder):
    """What scikit-learn's linear models and scalers become."""
    graph = Graph("linear", 18, x=numbers(SAMPLES, 4))

    def add(operator, *inputs, **options):
        return graph.add(operator, *inputs, domain="ai.onnx.ml", **options)

    def row(count):
        return [float(number) for number in numbers(count)]

    add("LinearRegressor", "x", coefficients=row(8), intercepts=row(2), targets=2)
    scaled = add("Scaler", "x", offset=row(4), scale=row(4), hidden=True)
    for norm in ("L1", "L2"):
        add("Normalizer", scaled, norm=norm)
    three = {"coefficients": row(12), "intercepts": row(3)}
    add("LinearClassifier", "x", classlabels_ints=[0, 1, 2], post_transform="SOFTMAX", outputs=2, **three)
    add("LinearClassifier", "x", classlabels_ints=[7, 3, 5], post_transform="LOGISTIC", outputs=2, **three)
    add("LinearClassifier", "x", classlabels_ints=[0, 1], post_transform="LOGISTIC", coefficients=row(4), intercepts=row(1), outputs=2)
    best = graph.add("ArgMax", "x", axis=1, hidden=True)
    found = add("ArrayFeatureExtractor", numpy.array([4, 2, 9, 7]), best, hidden=True)
    graph.add("Reshape", found, numpy.array([-1]))
    add("LabelEncoder", best, keys_int64s=[0, 1, 3], values_floats=[0.5, 2.0, 8.0], default_float=-1.0)
    add("ArrayFeatureExtractor", "x", numpy.array([2, 0]))
    graph.write(folder)


def softmaxes(folder):
    """Before opset 13 they are over all axes from one on."""
    graph = Graph("softmaxes", 11, x=numbers(SAMPLES, 2, 3, 4))
    for operator in ("Softmax", "LogSoftmax", "Hardmax"):
        graph.add(operator, "x")
        graph.add(operator, "x", axis=-2)
        graph.add(operator, "x", axis=3)
    graph.write(folder)


def weights(folder):
    """A weight that is normalised before it is used, and windows that are added up."""
    graph = Graph("weights", 18, x=numbers(SAMPLES, 12, 6))
    weight = graph.add("BatchNormalization", numbers(1, 5, 36), *(numpy.ones(5, numpy.float32) * k for k in (2, 0.5, 0, 1)), training_mode=1,
                       outputs=3, hidden=True)
    graph.add("Conv", "x", graph.add("Reshape", weight, numpy.array([5, 12, 3]), hidden=True))
    # As dynamo=True, optimize=False writes it: the statistics are computed before.
    raw, ones = graph.add("Identity", numbers(1, 5, 36), hidden=True), numpy.ones(5, numpy.float32)
    mean, square = (graph.add("ReduceMean", name, numpy.array([0, 2]), keepdims=0, hidden=True)
                    for name in (raw, graph.add("Mul", raw, raw, hidden=True)))
    weight = graph.add("BatchNormalization", raw, ones, ones * 0, mean, square, hidden=True)
    graph.add("Conv", "x", graph.add("Reshape", weight, numpy.array([5, 12, 3]), hidden=True))
    graph.add("Col2Im", "x", numpy.array([3, 4]), numpy.array([2, 2]))
    longer = graph.add("Concat", "x", "x", axis=2, hidden=True)
    graph.add("Col2Im", longer, numpy.array([7, 8]), numpy.array([2, 3]), strides=[2, 2], dilations=[2, 1], pads=[0, 1, 1, 0])
    graph.write(folder)


def tables(folder):
    """Convolutions of tables, as those of positions are, which no sample changes."""
    graph = Graph("tables", 17, x=numbers(SAMPLES, 1))

    def conv(table, weight, *bias, **options):
        y = graph.add("Conv", graph.add("Tanh", table, hidden=True), weight, *bias, hidden=True, **options)
        graph.add("Add", graph.add("Reshape", "x", numpy.array([-1] + [1] * (table.ndim - 1)), hidden=True), y)

    conv(numbers(1, 6, 4, 5), numbers(3, 6, 1, 1), numbers(3))
    conv(numbers(1, 4, 7, 6), numbers(6, 2, 3, 2), numbers(6), group=2, strides=[2, 1], pads=[1, 0, 2, 1], dilations=[1, 2])
    conv(numbers(1, 3, 9), numbers(2, 3, 4), strides=[3], pads=[2, 0])
    conv(numbers(1, 2, 3, 3, 3), numbers(2, 1, 2, 2, 2), group=2)
    graph.write(folder)


def oldest(folder):
    """Numbers that were attributes in old opsets, of what depends on the samples and of what is known."""
    graph = Graph("oldest", 9, x=numbers(SAMPLES, 2, 3, 4))
    table, sizes = numbers(6, 5), graph.add("Shape", "x", hidden=True)
    graph.add("Slice", "x", starts=[1, -3], ends=[2, 2**31 - 1], axes=[1, 3])
    graph.add("Slice", "x", starts=[0, 1], ends=[2**31 - 1, 2])
    graph.add("Add", "x", graph.add("Slice", table, starts=[1, -4], ends=[4, 9], axes=[0, 1], hidden=True))
    rows = graph.add("Concat", numpy.array([-1, 2]), graph.add("Slice", sizes, starts=[2], ends=[4], hidden=True), axis=0, hidden=True)
    graph.add("Reshape", graph.add("Reshape", "x", numpy.array([-1, 24]), hidden=True), rows)
    graph.add("Reshape", graph.outputs[0], numpy.array([-1, 9]))
    graph.add("TopK", "x", k=2, axis=3, outputs=2)
    graph.add("Clip", "x", min=-0.5, max=0.75)
    graph.add("Pad", "x", pads=[0, 0, 1, 0, 0, 0, 0, 2], value=0.5)
    graph.add("Unsqueeze", "x", axes=[1, 4])
    graph.add("Split", "x", split=[1, 3], axis=-1, outputs=2)
    graph.add("ReduceSum", "x", axes=[1, 3], keepdims=0)
    graph.add("Mul", "x", graph.add("Unsqueeze", numbers(3), axes=[1], hidden=True))
    graph.write(folder)


def growing(graph, *shape):
    """Indices of this shape that are the number of the sample, and that the network computes."""
    zeros = graph.add("ArgMax", graph.add("Slice", "x", numpy.array([0]), numpy.array([1]), numpy.array([-1]), hidden=True), axis=-1, hidden=True)
    return graph.add("Add", zeros, numpy.arange(SAMPLES).reshape(shape), hidden=True)


def gathered(folder):
    """Each sample by its number, in a file for as many samples; and with samples, or what is the same for each, along batch_dims."""
    graph = Graph("gathered", 18, x=numbers(SAMPLES, 2, 3))
    graph.add("Gather", "x", numpy.arange(SAMPLES))
    graph.add("Gather", "x", numpy.arange(SAMPLES).reshape(-1, 1))
    rows = graph.add("Reshape", "x", numpy.array([-1, 3]), hidden=True)
    at = graph.add("GatherND", rows, numpy.tile([[2], [0]], (SAMPLES, 1)), batch_dims=1, hidden=True)
    graph.add("Reshape", at, numpy.array([-1, 2]))
    table = numpy.repeat(numpy.arange(8, dtype=numpy.float32).reshape(2, 1, 4), SAMPLES, axis=1)
    at = graph.add("Transpose", growing(graph, SAMPLES, 1, 1), perm=[1, 0, 2], hidden=True)
    graph.add("Transpose", graph.add("GatherND", table, at, batch_dims=1, hidden=True), perm=[1, 0, 2])
    graph.write(folder, symbolic=False)


def row_of(count):
    return numpy.linspace(-1, 1, count, dtype=numpy.float32)


def products(folder):
    """Products that are the same for each sample, in a file for one, to which what depends on the samples is added; and products of
    matrices that differ along an axis next to the batch."""
    one, weight = row_of(5).reshape(1, 5), row_of(20).reshape(5, 4)
    graph = Graph("products_added", 18, x=row_of(4).reshape(1, 4))
    graph.add("Gemm", one, weight, "x", beta=0.5)
    graph.add("Gemm", one.T, weight.T, graph.add("Slice", "x", numpy.array([1]), numpy.array([2]), numpy.array([1]), hidden=True), transA=1,
              transB=1)
    number = graph.add("ReduceSum", "x", numpy.array([1]), keepdims=0, hidden=True)
    graph.add("Transpose", graph.add("Gemm", weight.T, one, number, transB=1, hidden=True), perm=[1, 0])
    graph.write(folder, symbolic=False)
    graph = Graph("products_fixed", 18, x=row_of(SAMPLES * 4).reshape(SAMPLES, 4))
    matrices = graph.add("Transpose", graph.add("Reshape", "x", numpy.array([SAMPLES, 2, 2, 1]), hidden=True), perm=[1, 0, 2, 3], hidden=True)
    for factors in row_of(8).reshape(2, 1, 1, 4), numpy.repeat(row_of(4).reshape(1, 1, 4), SAMPLES, axis=0):
        graph.add("Transpose", graph.add("MatMul", matrices, factors, hidden=True), perm=[1, 0, 2, 3])
    graph.write(folder, symbolic=False)


def norms(folder):
    """Scales and biases that are broadcast to data whose batch is the second axis, which ONNX's own evaluator computes."""
    graph = Graph("norms_fixed", 18, x=row_of(SAMPLES * 20).reshape(SAMPLES, 4, 5))
    moved = graph.add("Transpose", "x", perm=[1, 0, 2], hidden=True)
    row = graph.add("Gather", "x", numpy.array(1), axis=1, hidden=True)
    for scale, *bias in (row_of(20).reshape(4, 1, 5), row_of(5).reshape(1, 1, 5)), (row,), (row_of(5), row_of(1)):
        graph.add("Transpose", graph.add("LayerNormalization", moved, scale, *bias, hidden=True), perm=[1, 0, 2])
    graph.add("LayerNormalization", "x", row_of(20).reshape(1, 4, 5), axis=1)
    graph.write(folder, symbolic=False, evaluator=onnx.reference.ReferenceEvaluator)


def masked(folder):
    """A mask that is not finite, with equal rows for each sample, in a file like those of PyTorch's older exporter."""
    graph = Graph("masked", 18, x=row_of(SAMPLES * 4).reshape(SAMPLES, 4))
    graph.add("Max", "x", numpy.tile(numpy.float32([0, -numpy.inf, 0.5, -numpy.inf]), (SAMPLES, 1)))
    graph.add("Mul", "x", row_of(4))
    for node in graph.nodes:
        node.name = f"/{node.name}"
    graph.write(folder, symbolic=False)


def refused(folder):
    """Files of which samples cannot be computed apart from each other."""
    x, weight = row_of(SAMPLES * 4).reshape(SAMPLES, 4), row_of(20).reshape(5, 4)
    graphs = [Graph(name, 18, x=x) for name in ("grown_shared", "rows_added", "numbers_added", "matrices_of_samples", "dropped_state")]
    graphs[0].add("GatherND", "x", growing(graphs[0], SAMPLES, 1), batch_dims=1)
    graphs[1].add("Gemm", row_of(SAMPLES * 5).reshape(SAMPLES, 5), weight, "x")
    columns = graphs[2].add("ReduceSum", "x", numpy.array([1]), keepdims=0, hidden=True)
    graphs[2].add("Gemm", "x", row_of(4 * SAMPLES).reshape(4, SAMPLES), columns)
    matrices = graphs[3].add("Reshape", "x", numpy.array([SAMPLES, 1, 2, 2]), hidden=True)
    matrices = graphs[3].add("Transpose", graphs[3].add("Expand", matrices, numpy.array([1, SAMPLES, 1, 1]), hidden=True), perm=[1, 0, 2, 3],
                             hidden=True)
    graphs[3].add("Transpose", graphs[3].add("MatMul", matrices, row_of(SAMPLES * 4).reshape(SAMPLES, 2, 2), hidden=True), perm=[1, 0, 2, 3])
    state = graphs[4].add("Expand", row_of(2).reshape(1, 1, 2), numpy.array([1, SAMPLES, 2]), hidden=True)
    state = graphs[4].add("Dropout", state, numpy.float32(0.5), numpy.array(True), hidden=True)
    steps = graphs[4].add("Transpose", graphs[4].add("Unsqueeze", "x", numpy.array([1]), hidden=True), perm=[1, 0, 2], hidden=True)
    gru = graphs[4].add("GRU", steps, row_of(24).reshape(1, 6, 4), row_of(12).reshape(1, 6, 2), "", "", state, hidden_size=2, hidden=True)
    graphs[4].add("Transpose", gru, perm=[2, 0, 1, 3])
    graphs.append(Graph("masked_heads", 23, x=x))
    heads = [graphs[5].add("Expand", graphs[5].add("Reshape", "x", numpy.array([SAMPLES, 1, 2, 2]), hidden=True),
                           numpy.array([1, SAMPLES, 1, 1]), hidden=True)] * 3
    graphs[5].add("Attention", *heads, graphs[5].add("Reshape", "x", numpy.array([SAMPLES, 2, 2]), hidden=True))
    for graph in graphs:
        graph.write(folder, symbolic=False)
        (folder / f"{graph.name}.safetensors").unlink()


def from_end(folder):
    """Negative indices count from the end: of rows of a table, which trains, and of tables of angles. The gradient is that in
    double precision. onnxruntime refuses negative positions in RotaryEmbedding, so ONNX's own evaluator computes that file."""
    table, ids = numbers(7, 5), random.integers(-7, 7, (SAMPLES, 4))
    graph = Graph("from_end", 18, ids=ids)
    graph.add("ReduceMean", graph.add("Gather", table, "ids", hidden=True), numpy.array([1]), keepdims=0)
    graph.write(folder)
    labels, logits = numpy.arange(SAMPLES) % 5, numpy.float64(table)[ids].mean(1)
    exps = numpy.exp(logits - logits.max(1, keepdims=True))
    probabilities = exps / exps.sum(1, keepdims=True)
    gradient = numpy.zeros(table.shape)
    numpy.add.at(gradient, ids, ((probabilities - numpy.eye(5)[labels]) / SAMPLES / 4)[:, None])
    loss = -numpy.log(probabilities[numpy.arange(SAMPLES), labels]).mean()
    record(folder / "from_end.onnx", graph.inputs, {"gradient.w0": numpy.float32(gradient), "labels": numpy.int32(labels),
                                                    "loss": numpy.float32([loss])})
    graph = Graph("turned", 23, x=numbers(SAMPLES, 2, 3, 4), ids=random.integers(-5, 5, (SAMPLES, 3)))
    graph.add("RotaryEmbedding", "x", numbers(5, 2), numbers(5, 2), "ids")
    graph.write(folder, evaluator=onnx.reference.ReferenceEvaluator)


if __name__ == "__main__":
    for make in (casts, known, resized, training, branches, linear, softmaxes, weights, tables, oldest, gathered, products, norms, masked, refused,
                 from_end):
        make(pathlib.Path(sys.argv[1]))
