#!/usr/bin/env python3
"""Makes the files of tests/onnx/files: networks that PyTorch exports, and graphs with the operators that are read. Next to each
stands NAME.safetensors, with inputs and with the outputs that onnxruntime computes from them; for networks that are trained,
also with the loss and the gradients that PyTorch computes.

    python3 -m venv .dev/torch
    .dev/torch/bin/pip install torch==2.9.1 numpy onnx==1.23.2 onnxscript==0.7.2 onnxruntime==1.31.1
    .dev/torch/bin/python tests/onnx/make.py tests/onnx/files/networks
"""
import copy
import io
import json
import pathlib
import struct
import sys
import warnings

import numpy
import onnx
import onnxruntime
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

SAMPLES = 3
random = numpy.random.default_rng(7)
TYPES = {"float32": "F32", "int64": "I64", "int32": "I32", "uint8": "U8", "bool": "BOOL"}
WIDER = {"float16": "float32", "float64": "float32", "int8": "int32", "int16": "int32", "uint16": "int32", "uint32": "int64", "uint64": "int64"}


def save(path, arrays):
    """As safetensors, without its package."""
    header, offset, data = {}, 0, b""
    for name, array in sorted(arrays.items(), key=lambda item: -item[1].itemsize):
        shape, array = list(numpy.shape(array)), numpy.ascontiguousarray(array)
        header[name] = {"dtype": TYPES[str(array.dtype)], "shape": shape, "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
        data += array.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def numbers(*shape):
    """Few bits, so that files compress."""
    return (random.integers(-64, 64, shape) / 32).astype(numpy.float32)


def record(path, feeds, more=None, evaluator=None):
    """Runs the file in onnxruntime, or in another class of sessions."""
    session = evaluator(str(path)) if evaluator else onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = session.output_names if evaluator else [value.name for value in session.get_outputs()]
    outputs = session.run(None, feeds)
    arrays = {f"input.{name}": array for name, array in feeds.items()}
    arrays |= {f"output.{name}": array.astype(WIDER.get(str(array.dtype), array.dtype)) for name, array in zip(names, outputs)}
    save(path.with_suffix(".safetensors"), arrays | (more or {}))


# ---------------------------------------------------------------------------------------------------------- networks

class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(12, 9), nn.Linear(9, 5)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x.flatten(1))))


class Residual(nn.Module):
    """Convolutions of all kinds, with batch normalisation, and a sum."""
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(2, 6, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(6)
        self.conv2, self.bn2 = nn.Conv2d(6, 6, 3, padding=1, groups=6), nn.BatchNorm2d(6)
        self.conv3, self.fc = nn.Conv2d(12, 8, (1, 3), padding=(0, 1), dilation=(1, 1)), nn.Linear(8, 4)
        for norm in (self.bn1, self.bn2):
            norm.running_mean.uniform_(-0.5, 0.5)
            norm.running_var.uniform_(0.5, 2)
            nn.init.uniform_(norm.weight, 0.5, 1.5)
            nn.init.uniform_(norm.bias, -0.5, 0.5)

    def forward(self, x):
        x = torch.relu(self.bn1(self.conv1(x)))
        y = nn.functional.hardswish(self.bn2(self.conv2(x))) + x
        y = nn.functional.max_pool2d(torch.cat([y, x], 1), 2)
        y = nn.functional.leaky_relu(self.conv3(y), 0.1)
        return self.fc(nn.functional.adaptive_avg_pool2d(y, 1).flatten(1))


class Transformer(nn.Module):
    """A block of a transformer over tokens, which the older exporter writes with chains of Shape, Gather and Slice."""
    def __init__(self):
        super().__init__()
        self.tokens, self.norm1, self.norm2 = nn.Embedding(11, 8), nn.LayerNorm(8), nn.LayerNorm(8)
        self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)
        self.up, self.down, self.head = nn.Linear(8, 16), nn.Linear(16, 8), nn.Linear(8, 11)

    def forward(self, ids):
        x = self.tokens(ids)
        batch, length, width = x.shape
        q, k, v = (part.reshape(batch, length, 2, width // 2).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, -1))
        y = torch.softmax(q @ k.transpose(-2, -1) / (width // 2) ** 0.5, -1) @ v
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        x = x + self.down(nn.functional.gelu(self.up(self.norm2(x))))
        return self.head(x[:, 0])


class Digits(nn.Module):
    """A network for the data that the command draws, with a softmax at its end."""
    def __init__(self):
        super().__init__()
        self.conv, self.fc = nn.Conv2d(1, 4, 5, stride=2, padding=2), nn.Linear(196, 10)

    def forward(self, x):
        x = nn.functional.max_pool2d(torch.relu(self.conv(x)), 2)
        return torch.softmax(self.fc(x.flatten(1)), -1)


class Lenet(nn.Module):
    """The command's `lenet`, narrower."""
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 4, 5, padding=2), nn.Conv2d(4, 8, 5, padding=2)
        self.fc1, self.fc2 = nn.Linear(392, 16), nn.Linear(16, 10)

    def forward(self, x):
        x = nn.functional.max_pool2d(torch.relu(self.conv1(x)), 2)
        x = nn.functional.max_pool2d(torch.relu(self.conv2(x)), 2)
        return self.fc2(torch.relu(self.fc1(x.flatten(1))))


class Windows(nn.Module):
    """An attention layer of PyTorch, which moves the batch to the second axis, within windows that are joined with the batch."""
    def __init__(self):
        super().__init__()
        self.attention, self.norm = nn.MultiheadAttention(8, 2, batch_first=False), nn.LayerNorm(8)
        self.first, self.fc = nn.Parameter(torch.randn(1, 1, 8)), nn.Linear(8, 5)

    def forward(self, x):
        batch = x.shape[0]
        y = x.reshape(batch, 2, 3, 2, 2, 8).permute(0, 1, 3, 2, 4, 5).reshape(batch * 4, 6, 8)
        y = self.attention(self.norm(y).transpose(0, 1), y.transpose(0, 1), y.transpose(0, 1), need_weights=False)[0].transpose(0, 1)
        y = y.reshape(batch, 2, 2, 3, 2, 8).permute(0, 1, 3, 2, 4, 5).reshape(batch, 24, 8)
        y = torch.cat([self.first.expand(batch, -1, -1), y], 1).transpose(0, 1)
        y = self.attention(y, y, y, need_weights=False)[0]
        return self.fc(y[0])


class Counted(nn.Module):
    """Indices along the batch and next to it: rows that differ from sample to sample are read and written."""
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(6, 6), nn.Linear(9, 5)

    def forward(self, x):
        y, samples = self.first(x), torch.arange(x.shape[0])
        rows = x[:, :, 0].argmax(1)
        z = y.clone()
        z[:, 1:3] = y[:, 0:2] * 2
        z[:, [0, 4]] = 0.5
        z[samples, rows] = y[samples, 4 - rows] * 3
        return self.last(torch.cat([z.mean(1), z[:, [2, 3, 1], [0, 1, 2]]], 1))


class Unpooled(nn.Module):
    """Largest elements of windows, put back where they were."""
    def __init__(self):
        super().__init__()
        self.conv, self.last = nn.Conv2d(2, 3, 3, padding=1), nn.Linear(90, 5)

    def forward(self, x):
        y = self.conv(x)
        z, places = nn.functional.max_pool2d(y, 2, return_indices=True)
        return self.last((nn.functional.max_unpool2d(z * z, places, 2, output_size=(5, 6)) + y).flatten(1))


class Lengths(nn.Module):
    """Causal attention over sequences of any length, with positions."""
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(11, 8), nn.Embedding(16, 8)
        self.qkv, self.norm, self.head = nn.Linear(8, 24), nn.LayerNorm(8), nn.Linear(8, 5)

    def forward(self, ids, valid):
        batch, length = ids.shape
        x = self.norm(self.tokens(ids) + self.positions(torch.arange(length)) + valid.unsqueeze(-1))
        q, k, v = (part.reshape(batch, length, 2, 4).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        scores = (q @ k.transpose(-2, -1) / 2).masked_fill(torch.ones(length, length, dtype=torch.bool).triu(1), -1e4)
        y = torch.softmax(scores, -1) @ v
        return self.head((x + y.transpose(1, 2).reshape(batch, length, 8)).mean(1))


def export(folder, name, network, example, classes=0, **options):
    """classes: also a training step with labels; its gradients are those of the file's parameters. steps: of SGD, and the state
    after them. computed: makes gradients of what the file computed from parameters of the parameters' gradients."""
    path, steps, computed = folder / f"{name}.onnx", options.pop("steps", 0), options.pop("computed", dict)
    network.eval()
    keep = {"training": torch.onnx.TrainingMode.PRESERVE, "do_constant_folding": False} if options.pop("unfolded", False) else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(network, (example,), str(path), input_names=["x"], output_names=["y"], **keep, **options)
    strip(path, "pkg.torch.onnx.stack_trace") # where the sources lie
    more = {}
    if classes:
        labels, trained = torch.arange(example.shape[0]) % classes, copy.deepcopy(network).train()
        network.train()
        loss = nn.functional.cross_entropy(network(example), labels)
        loss.backward()
        gradients = computed({key: value.grad.numpy() for key, value in network.named_parameters()})
        more = {f"gradient.{key}": value for key, value in gradients.items()}
        more |= {"labels": labels.numpy().astype(numpy.int32), "loss": loss.detach().numpy().reshape(1)}
        optimizer = torch.optim.SGD(trained.parameters(), lr=0.1)
        for _ in range(steps):
            optimizer.zero_grad()
            nn.functional.cross_entropy(trained(example), labels).backward()
            optimizer.step()
        if steps:
            more |= {f"after.{key}": value.numpy() for key, value in trained.state_dict().items() if value.dim()}
        network.eval()
    feed = example.numpy() if options.get("dynamic_axes") is None else numpy.concatenate([example.numpy()] * 2)
    record(path, {"x": feed}, more)


def strip(path, kind=""):
    """Without what the exporter says of each node, which is half of the file; or without one kind of it."""
    model = onnx.load(path, load_external_data=False)
    for node in model.graph.node:
        kept = [entry for entry in node.metadata_props if kind and entry.key != kind]
        del node.metadata_props[:]
        node.metadata_props.extend(kept)
    onnx.save(model, path)


def networks(folder):
    torch.manual_seed(1)
    image, flat = torch.from_numpy(numbers(SAMPLES, 2, 10, 10)), torch.from_numpy(numbers(SAMPLES, 3, 4))
    dynamic = {"x": {0: "batch"}}
    export(folder, "mlp", Mlp(), flat, classes=5, dynamo=False, opset_version=17, dynamic_axes=dynamic)
    export(folder, "mlp_external", Mlp(), flat, classes=5, dynamo=True, opset_version=20, external_data=True)
    export(folder, "residual", Residual(), image, classes=4, dynamo=False, opset_version=17, dynamic_axes=dynamic, unfolded=True)
    export(folder, "residual_folded", Residual(), image, dynamo=True, opset_version=20, external_data=False)
    export(folder, "digits", Digits(), torch.from_numpy(numbers(1, 1, 28, 28)), dynamo=False, opset_version=13)
    ids = torch.from_numpy(random.integers(0, 11, (SAMPLES, 6)))
    export(folder, "transformer", Transformer(), ids, classes=5, dynamo=False, opset_version=14, dynamic_axes=dynamic)
    export(folder, "transformer_new", Transformer(), ids, classes=5, dynamo=True, opset_version=20, external_data=False)


def unpool(folder):
    """Indices of windows of all kinds, and what MaxUnpool makes of them, along one to three axes."""
    for name, sizes in (("unpool_1d", (8,)), ("unpool_2d", (6, 8)), ("unpool_3d", (6, 2, 4))):
        drawn, axes = numpy.random.default_rng(11), len(sizes)
        graph = Graph(name, 22, x=(drawn.permutation(SAMPLES * 2 * numpy.prod(sizes)).reshape(SAMPLES, 2, *sizes) / 32).astype(numpy.float32))

        def indices(**attributes):
            graph.add("MaxPool", "x", outputs=2, hidden=True, **attributes)
            return graph.nodes[-1].output

        pooled, at = indices(kernel_shape=[2] * axes, strides=[2] * axes)
        graph.add("MaxUnpool", pooled, at, kernel_shape=[2] * axes, strides=[2] * axes)
        first = graph.add("Slice", indices(kernel_shape=[1] * axes)[1], numpy.zeros(axes, numpy.int64), numpy.ones(axes, numpy.int64),
                          numpy.arange(2, axes + 2), hidden=True)
        for more in ({"dilations": [2] + [1] * (axes - 1)}, {"pads": [1] * 2 * axes, "strides": [3] * axes}, {"auto_pad": "SAME_LOWER"},
                     {"ceil_mode": 1, "strides": [2] * axes}, {"storage_order": 1}):
            if not (more.get("storage_order") and axes == 1):
                graph.add("Cast", graph.add("Sub", indices(kernel_shape=[3] + [2] * (axes - 1), **more)[1], first, hidden=True),
                          to=TensorProto.FLOAT)
        graph.write(folder, symbolic=False)


def lengths(folder):
    """The batch and the length are open; outputs are recorded for two lengths."""
    torch.manual_seed(4)
    drawn, network = numpy.random.default_rng(12), Lengths().eval()
    feeds = {length: {"ids": drawn.integers(0, 11, (SAMPLES, length)), "valid": (drawn.integers(0, 2, (SAMPLES, length)) / 2).astype(numpy.float32)}
             for length in (6, 9)}
    example = tuple(torch.from_numpy(array) for array in feeds[6].values())
    names = {"input_names": ["ids", "valid"], "output_names": ["y"]}
    batch, length = torch.export.Dim("batch", min=2), torch.export.Dim("length", min=2, max=16)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(network, example, folder / "lengths.onnx", dynamo=False, opset_version=17, **names,
                          dynamic_axes={name: {0: "batch", 1: "length"} for name in names["input_names"]})
        torch.onnx.export(network, example, folder / "lengths_new.onnx", dynamo=True, opset_version=20, external_data=False, **names,
                          dynamic_shapes=({0: batch, 1: length}, {0: batch, 1: length}))
    for name in ("lengths", "lengths_new"):
        for length, feed in feeds.items():
            record(folder / f"{name}.onnx", feed)
            (folder / f"{name}.safetensors").rename(folder / f"{name}+{length}.safetensors")


def sliding_windows(folder):
    torch.manual_seed(2)
    image = torch.from_numpy(numpy.random.default_rng(8).integers(-64, 64, (SAMPLES, 6, 4, 8)).astype(numpy.float32) / 32)
    export(folder, "windows", Windows(), image, classes=5, dynamo=False, opset_version=17)
    export(folder, "windows_new", Windows(), image, dynamo=True, opset_version=20, external_data=False)
    strip(folder / "windows_new.onnx")


def lenet(folder):
    torch.manual_seed(3)
    image = torch.from_numpy(numpy.random.default_rng(9).integers(0, 64, (1, 1, 28, 28)).astype(numpy.float32) / 64)
    export(folder, "lenet", Lenet(), image, dynamo=True, opset_version=20, external_data=False)
    strip(folder / "lenet.onnx")


def counted(folder):
    torch.manual_seed(3)
    x = torch.from_numpy(numpy.random.default_rng(9).integers(-64, 64, (SAMPLES, 5, 6)).astype(numpy.float32) / 32)
    export(folder, "counted", Counted(), x, classes=5, dynamo=False, opset_version=17, dynamic_axes={"x": {0: "batch"}})
    export(folder, "counted_new", Counted(), x, classes=5, dynamo=True, opset_version=20, external_data=False)
    x = torch.from_numpy(numpy.random.default_rng(10).integers(-64, 64, (SAMPLES, 2, 5, 6)).astype(numpy.float32) / 32)
    export(folder, "unpooled", Unpooled(), x, classes=5, dynamo=True, opset_version=20, external_data=False,
           dynamic_shapes=({0: torch.export.Dim("batch")},))
    unpool(folder)


# --------------------------------------------------------------------------------------------------------- operators

class Graph:
    """Nodes that each make an output; initialisers are the arrays among their inputs."""
    def __init__(self, name, opset, **inputs):
        self.name, self.opset, self.inputs, self.nodes, self.initialisers, self.outputs = name, opset, inputs, [], [], []

    def constant(self, array):
        array = numpy.asarray(array)
        name = f"w{len(self.initialisers)}"
        self.initialisers.append(numpy_helper.from_array(array, name))
        return name

    def typed(self, kind, array):
        """In the list of its type, not as raw bytes."""
        name = f"w{len(self.initialisers)}"
        self.initialisers.append(helper.make_tensor(name, kind, array.shape, array.flatten().tolist()))
        return name

    def add(self, operator, *inputs, hidden=False, outputs=1, **attributes):
        names = [value if isinstance(value, str) else self.constant(value) for value in inputs]
        made = [f"{operator.lower()}{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(operator, names, made, name=f"node{len(self.nodes)}", **attributes))
        self.outputs += [] if hidden else made
        return made[0]

    def write(self, folder, symbolic=True, evaluator=None):
        assert len(self.outputs) <= 16, (self.name, len(self.outputs))
        kinds = {"float32": TensorProto.FLOAT, "int64": TensorProto.INT64, "int32": TensorProto.INT32, "bool": TensorProto.BOOL,
                 "uint8": TensorProto.UINT8}
        inputs = [helper.make_tensor_value_info(name, kinds[str(array.dtype)], ["N" if symbolic else array.shape[0], *array.shape[1:]])
                  for name, array in self.inputs.items()]
        outputs = [helper.make_empty_tensor_value_info(name) for name in self.outputs]
        graph = helper.make_graph(self.nodes, self.name, inputs, outputs, self.initialisers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset), helper.make_opsetid("ai.onnx.ml", 3)], ir_version=10)
        model = onnx.shape_inference.infer_shapes(model)
        del model.graph.value_info[:]
        path = folder / f"{self.name}.onnx"
        onnx.save(model, path)
        record(path, self.inputs, evaluator=evaluator)


def pointwise(folder):
    graph = Graph("pointwise", 20, x=numbers(SAMPLES, 2, 5))
    for operator in ("Abs", "Erf", "Exp", "Neg", "Relu", "Sigmoid", "Softplus", "Tanh", "HardSwish", "Elu", "LeakyRelu", "Gelu",
                     "HardSigmoid"):
        graph.add(operator, "x")
    graph.add("Identity", "x")
    graph.write(folder)
    graph = Graph("attributes", 20, x=numbers(SAMPLES, 2, 5))
    graph.add("Elu", "x", alpha=0.5)
    graph.add("LeakyRelu", "x", alpha=0.25)
    graph.add("Gelu", "x", approximate="tanh")
    graph.add("HardSigmoid", "x", alpha=1 / 6)
    graph.add("Clip", "x", numpy.float32(-0.5), numpy.float32(0.75))
    graph.add("Clip", "x", "", numpy.float32(0.5))
    for exponent in (2, 3, 1.5):
        graph.add("Pow", graph.add("Exp", "x", hidden=True), numpy.float32(exponent))
    graph.add("Celu", "x", alpha=0.5)
    graph.add("PRelu", "x", numbers(5))
    graph.add("Dropout", "x", numpy.float32(0.25))
    graph.add("Cast", "x", to=TensorProto.FLOAT)
    positive = graph.add("Exp", "x", hidden=True)
    for operator in ("Sqrt", "Log", "Reciprocal"):
        graph.add(operator, positive)
    graph.write(folder)
    graph = Graph("angles", 22, x=numbers(SAMPLES, 2, 5) / 4)
    for operator in ("Sin", "Cos", "Tan", "Sinh", "Cosh", "Asin", "Acos", "Atan", "Asinh", "Atanh"):
        graph.add(operator, "x")
    graph.add("Acosh", graph.add("Add", "x", numpy.float32(2), hidden=True))
    for operator in ("Ceil", "Floor", "Round", "Sign"):
        graph.add(operator, graph.add("Mul", "x", numpy.float32(4), hidden=True))
    graph.write(folder)
    graph = Graph("logic", 22, x=numbers(SAMPLES, 2, 5), y=numbers(SAMPLES, 2, 5))
    above, below = (graph.add(operator, "x", "y", hidden=True) for operator in ("GreaterOrEqual", "LessOrEqual"))
    for condition in (above, below, graph.add("And", above, below, hidden=True), graph.add("Or", above, below, hidden=True),
                      graph.add("Xor", above, below, hidden=True), graph.add("Not", above, hidden=True), graph.add("IsNaN", "x", hidden=True)):
        graph.add("Cast", condition, to=TensorProto.FLOAT)
    graph.add("Mod", "x", graph.add("Add", "y", numpy.float32(3), hidden=True), fmod=1)
    graph.add("Mish", "x")
    graph.add("Softsign", "x")
    graph.add("ThresholdedRelu", "x", alpha=0.5)
    graph.add("Pow", graph.add("Exp", "x", hidden=True), "y")
    graph.write(folder)
    graph = Graph("binary", 18, x=numbers(SAMPLES, 3, 4), y=numbers(SAMPLES, 1, 4) + 3)
    for operator in ("Add", "Sub", "Mul", "Div", "Max", "Min"):
        graph.add(operator, "x", "y")
    graph.add("Add", "x", numbers(1, 3, 1))
    graph.add("Mul", numbers(4), "x")
    graph.add("Sub", numpy.float32(1), "x")
    graph.add("Max", "x", "y", numbers(3, 1))
    graph.add("Sum", "x", "y", "x")
    greater = graph.add("Greater", "x", "y", hidden=True)
    graph.add("Where", greater, "x", "y")
    graph.add("Where", graph.add("Less", "x", numbers(1), hidden=True), "y", numpy.float32(0.5))
    graph.add("Cast", graph.add("Equal", "x", "x", hidden=True), to=TensorProto.FLOAT)
    graph.write(folder)


def along_axes(folder):
    graph = Graph("reductions", 18, x=numbers(SAMPLES, 2, 5, 4))
    for operator in ("L1", "L2", "Max", "Mean", "Min", "Sum", "SumSquare"):
        graph.add("Reduce" + operator, "x", numpy.array([2, -1]), keepdims=operator != "Max")
    graph.add("ReduceMean", "x", numpy.array([2, 3]))
    graph.add("ReduceSum", "x", numpy.array([1]), keepdims=0)
    graph.add("Softmax", "x")
    graph.add("Softmax", "x", axis=1)
    graph.add("LogSoftmax", "x", axis=2)
    graph.add("GlobalAveragePool", "x")
    graph.add("GlobalMaxPool", "x")
    graph.add("LayerNormalization", "x", numbers(4), numbers(4), epsilon=0.01)
    graph.add("LayerNormalization", "x", numbers(4))
    graph.write(folder)
    graph = Graph("logarithms", 18, x=numbers(SAMPLES, 2, 5, 4))
    graph.add("ReduceProd", "x", numpy.array([3]))
    graph.add("ReduceLogSumExp", "x", numpy.array([1, 2]))
    graph.add("ReduceLogSum", graph.add("Abs", "x", hidden=True), numpy.array([2]))
    graph.write(folder)
    graph = Graph("merged", 18, x=numbers(SAMPLES, 2, 4))
    ones, zeros, other = (graph.constant(array) for array in (numpy.ones(4, numpy.float32), numpy.zeros(4, numpy.float32), numbers(4)))
    first = graph.add("LayerNormalization", "x", ones, zeros, hidden=True)
    second = graph.add("LayerNormalization", graph.add("Mul", first, other, hidden=True), ones, zeros, hidden=True)
    graph.add("Mul", second, other)
    graph.write(folder)
    graph = Graph("old", 13, x=numbers(SAMPLES, 2, 5, 4))
    graph.add("ReduceMean", "x", axes=[1, 3], keepdims=0)
    graph.add("ReduceSum", "x", numpy.array([2]))
    graph.add("Split", "x", numpy.array([1, 3]), axis=-1, outputs=2)
    graph.add("Pad", "x", numpy.array([0, 0, 1, 0, 0, 0, 0, 2]), numpy.float32(0.5))
    graph.add("Dropout", "x")
    graph.add("BatchNormalization", "x", *(numbers(2) for _ in range(3)), numpy.array([0.5, 2], numpy.float32), momentum=0.8)
    graph.write(folder)


def movement(folder):
    graph = Graph("movement", 18, x=numbers(SAMPLES, 2, 3, 4))
    graph.add("Flatten", "x")
    graph.add("Reshape", "x", numpy.array([0, -1, 2]))
    graph.add("Reshape", "x", numpy.array([-1, 4, 6]))
    graph.add("Reshape", "x", numpy.array([SAMPLES, 24]))
    graph.add("Transpose", "x", perm=[0, 2, 3, 1])
    graph.add("Unsqueeze", "x", numpy.array([-1]))
    graph.add("Squeeze", graph.add("Slice", "x", numpy.array([1]), numpy.array([2]), numpy.array([2]), hidden=True), numpy.array([2]))
    graph.add("Slice", "x", numpy.array([-3, 0]), numpy.array([2**62, -1]), numpy.array([3, 2]))
    graph.add("Concat", *["x"] * 11, axis=2)
    graph.add("Split", "x", axis=2, num_outputs=2, outputs=2)
    graph.add("Pad", "x", numpy.array([1, 0, 0, 2]), "", numpy.array([1, 3]))
    graph.add("Gather", "x", numpy.array(-2), axis=3)
    one = graph.add("ReduceSum", "x", numpy.array([1]), hidden=True)
    graph.add("Expand", one, numpy.array([1, 5, 1, 1]))
    graph.write(folder, symbolic=False)
    graph = Graph("types", 18, x=numbers(SAMPLES, 2, 4))
    for kind in (TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.INT8, TensorProto.UINT8, TensorProto.INT16,
                 TensorProto.UINT16, TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL):
        array = numpy.array([[0, 1, 2, 3]]) if kind in (TensorProto.BOOL, TensorProto.UINT8, TensorProto.UINT16) else numpy.array([-2, 0, 1, 3])
        graph.add("Add", "x", graph.add("Cast", graph.typed(kind, array), to=TensorProto.FLOAT, hidden=True))
    for array in (numpy.float64([1, 2, 3, 4]), numpy.float16([0.5, 2, 3, 65504]), numpy.int8([-1, 2, 3, 4])):
        graph.add("Mul", "x", graph.add("Cast", array, to=TensorProto.FLOAT, hidden=True))
    graph.add("Add", "x", graph.typed(TensorProto.FLOAT, numbers(2, 1)))
    graph.add("Where", graph.typed(TensorProto.BOOL, numpy.array([True, False, True, True])), "x", numpy.float32(9))
    graph.add("Reshape", "x", graph.typed(TensorProto.INT64, numpy.array([-1, 8])))
    graph.write(folder)
    graph = Graph("shapes", 17, x=numbers(SAMPLES, 2, 3, 4), ids=random.integers(0, 5, (SAMPLES, 6)))
    shape = graph.add("Shape", "x", hidden=True)
    batch = graph.add("Gather", shape, numpy.array(0), hidden=True)
    rows = graph.add("Slice", shape, numpy.array([1]), numpy.array([3]), numpy.array([0]), hidden=True)
    product = graph.add("ReduceProd", rows, hidden=True)
    half = graph.add("Div", graph.add("Mul", product, numpy.array([4]), hidden=True), numpy.array([2]), hidden=True)
    first = graph.add("Unsqueeze", batch, numpy.array([0]), hidden=True)
    graph.add("Reshape", "x", graph.add("Concat", first, half, numpy.array([-1]), axis=0, hidden=True))
    size = graph.add("Size", "x", hidden=True)
    each = graph.add("Div", graph.add("Add", graph.add("Mul", numpy.array(0), size, hidden=True), numpy.array(48), hidden=True),
                     numpy.array([2]), hidden=True)
    graph.add("Reshape", "x", graph.add("Concat", first, each, axis=0, hidden=True))
    ones = graph.add("ConstantOfShape", numpy.array([4]), value=numpy_helper.from_array(numpy.array([1])), hidden=True)
    wanted = numpy.array([-1, 2, 3, 4])
    same = graph.add("Equal", wanted, graph.add("Sub", ones, numpy.array(2), hidden=True), hidden=True)
    target = graph.add("Where", same, ones, graph.add("Add", wanted, numpy.array(0), hidden=True), hidden=True)
    graph.add("Expand", graph.add("ReduceMax", "x", axes=[1], hidden=True), graph.add("Cast", target, to=TensorProto.INT64, hidden=True))
    graph.add("Mul", "x", graph.add("Constant", value_float=0.5, hidden=True))
    graph.add("Mul", "x", graph.add("Cast", graph.add("Squeeze", graph.add("Shape", "x", start=1, end=2, hidden=True), hidden=True),
                                    to=TensorProto.FLOAT, hidden=True))
    graph.add("Reshape", "x", graph.add("Constant", value_ints=[0, 24], hidden=True))
    graph.add("Add", "x", graph.add("Identity", numbers(3, 4), hidden=True))
    graph.add("Gather", numbers(5, 3), "ids")
    graph.write(folder)


def layers(folder):
    graph = Graph("convolutions", 18, x=numbers(SAMPLES, 4, 9, 8))
    graph.add("Conv", "x", numbers(3, 4, 3, 3), numbers(3))
    graph.add("Conv", "x", numbers(6, 2, 3, 2), group=2, strides=[2, 1], pads=[1, 0, 1, 0], dilations=[1, 2])
    graph.add("Conv", "x", numbers(3, 4, 2, 3), pads=[0, 2, 1, 1], kernel_shape=[2, 3])
    graph.add("Conv", "x", numbers(2, 4, 2, 3), strides=[2, 3], auto_pad="SAME_UPPER")
    graph.add("Conv", "x", numbers(2, 4, 2, 3), strides=[2, 3], auto_pad="SAME_LOWER")
    graph.add("MaxPool", "x", kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 0])
    graph.add("MaxPool", "x", kernel_shape=[2, 2], strides=[2, 2], pads=[0, 0, 1, 1])
    graph.add("MaxPool", "x", kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)
    graph.add("AveragePool", "x", kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    graph.add("AveragePool", "x", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], count_include_pad=1)
    graph.add("AveragePool", "x", kernel_shape=[2, 3], strides=[2, 3], pads=[0, 0, 1, 1], count_include_pad=1)
    graph.write(folder)
    graph = Graph("products", 18, x=numbers(SAMPLES, 6), m=numbers(SAMPLES, 3, 6))
    graph.add("Gemm", "x", numbers(5, 6), numbers(5), transB=1)
    graph.add("Gemm", "x", numbers(6, 5), numbers(1, 5), alpha=0.5, beta=2.0)
    graph.add("Gemm", "x", numbers(6, 5))
    graph.add("MatMul", "x", numbers(6, 4))
    graph.add("MatMul", "m", numbers(6, 4))
    graph.add("MatMul", "m", graph.add("Transpose", "m", perm=[0, 2, 1], hidden=True))
    graph.add("MatMul", numbers(2, 3), "m")
    graph.add("Add", graph.add("MatMul", "m", graph.add("Transpose", numbers(4, 6), perm=[1, 0], hidden=True), hidden=True), numbers(4))
    graph.write(folder)


def by_index(folder):
    graph = Graph("indices", 18, x=numbers(SAMPLES, 2, 3, 4), y=numbers(SAMPLES, 2, 5, 4), ids=random.integers(-3, 3, (SAMPLES, 2, 5, 4)),
                  rows=random.integers(0, 5, (SAMPLES, 6)))
    graph.add("Gather", "x", numpy.array([[1, -1, 0], [2, 2, 1]]), axis=2)
    graph.add("Gather", "x", numpy.array([3, -4]), axis=-1)
    graph.add("Transpose", graph.add("Gather", numbers(4, 5, 2), "rows", axis=1, hidden=True), perm=[1, 0, 2, 3])
    graph.add("GatherElements", "x", "ids", axis=2)
    graph.add("GatherND", "x", graph.add("Slice", "ids", numpy.array([1]), numpy.array([3]), numpy.array([3]), hidden=True), batch_dims=2)
    graph.add("GatherND", numbers(5, 5, 2), graph.add("Reshape", "rows", numpy.array([0, 3, 2]), hidden=True))
    graph.add("ScatterElements", "x", "ids", "y", axis=2)
    graph.add("ScatterElements", "x", "ids", "y", axis=2, reduction="add")
    graph.add("Compress", "x", numpy.array([True, False, True]), axis=2)
    graph.write(folder)
    graph = Graph("lines", 18, x=numbers(SAMPLES, 2, 3, 4), ids=random.integers(-4, 5, (SAMPLES, 3)), lengths=random.integers(1, 3, SAMPLES))
    for operator, options in ("ArgMax", {"axis": 1, "keepdims": 0}), ("ArgMin", {"axis": -1, "select_last_index": 1}):
        graph.add("Cast", graph.add(operator, "x", hidden=True, **options), to=TensorProto.FLOAT)
    values = graph.add("TopK", "x", numpy.array([2]), axis=2, outputs=2, hidden=True)
    graph.add("Neg", values)
    graph.add("Cast", values[:-1] + "1", to=TensorProto.FLOAT)
    graph.add("CumSum", "x", numpy.array(2), reverse=1)
    graph.add("CumSum", "x", numpy.array(-1), exclusive=1)
    graph.add("Hardmax", "x", axis=2)
    graph.add("OneHot", "ids", numpy.array(5), numpy.float32([-1, 2]))
    graph.add("OneHot", "ids", numpy.array(5), numpy.float32([0, 1]), axis=1)
    graph.add("Trilu", "x", numpy.array(1))
    graph.add("Trilu", "x", upper=0)
    graph.add("ReverseSequence", "x", "lengths", batch_axis=0, time_axis=1)
    graph.write(folder)


def windows(folder):
    """Convolutions, poolings and other sizes along one to three axes."""
    graph = Graph("sequences", 19, x=numbers(SAMPLES, 4, 9))
    graph.add("Conv", "x", numbers(6, 2, 3), numbers(6), group=2, strides=[2], pads=[2, 1])
    graph.add("ConvTranspose", "x", numbers(4, 3, 3), numbers(6), group=2, strides=[2], pads=[1, 0], output_padding=[1])
    graph.add("MaxPool", "x", kernel_shape=[3], strides=[2], dilations=[2], pads=[1, 2])
    graph.add("AveragePool", "x", kernel_shape=[3], strides=[2], pads=[1, 0], ceil_mode=1)
    graph.add("LpPool", "x", kernel_shape=[2], strides=[2], p=2)
    for kind in ("GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool"):
        graph.add(kind, "x")
    graph.add("Resize", "x", "", numpy.array([1, 1, 1.5], numpy.float32), mode="linear")
    graph.write(folder)
    graph = Graph("volumes", 19, x=numbers(SAMPLES, 2, 5, 4, 6))
    graph.add("Conv", "x", numbers(3, 2, 3, 2, 3), numbers(3), strides=[2, 1, 2], dilations=[1, 2, 1], pads=[1, 1, 0, 1, 1, 2])
    graph.add("Conv", "x", numbers(4, 1, 2, 3, 3), group=2, auto_pad="SAME_UPPER")
    graph.add("ConvTranspose", "x", numbers(2, 3, 3, 2, 3), numbers(3), strides=[2, 1, 2], pads=[1, 0, 1, 1, 1, 0])
    graph.add("MaxPool", "x", kernel_shape=[2, 2, 3], strides=[2, 1, 2], pads=[1, 0, 1, 0, 1, 1])
    graph.add("AveragePool", "x", kernel_shape=[3, 2, 2], strides=[2, 1, 2], pads=[1, 0, 0, 1, 1, 0], count_include_pad=1)
    graph.add("GlobalAveragePool", "x")
    graph.add("Pad", "x", numpy.array([0, 0, 1, 2, 0, 0, 0, 2, 1, 1]), mode="reflect")
    graph.write(folder)
    graph = Graph("sizes", 19, x=numbers(SAMPLES, 4, 6, 8))
    graph.add("ConvTranspose", "x", numbers(4, 2, 3, 2), numbers(2), strides=[2, 3], dilations=[2, 1], pads=[1, 0, 2, 1])
    graph.add("ConvTranspose", "x", numbers(4, 2, 3, 3), strides=[2, 2], output_shape=[11, 16])
    graph.add("Pad", "x", numpy.array([1, 2, -1, 3]), "", numpy.array([2, 3]), mode="edge")
    graph.add("Pad", "x", numpy.array([0, 0, 3, 1, 0, 0, 2, 5]), mode="wrap")
    graph.add("Slice", "x", numpy.array([-1, 1]), numpy.array([-2**40, 7]), numpy.array([2, 3]), numpy.array([-2, 3]))
    graph.add("Tile", "x", numpy.array([1, 2, 1, 3]))
    graph.add("CenterCropPad", "x", numpy.array([3, 11]), axes=[2, 3])
    graph.add("DepthToSpace", "x", blocksize=2, mode="CRD")
    graph.add("SpaceToDepth", "x", blocksize=2)
    graph.add("Resize", "x", "", "", numpy.array([SAMPLES, 4, 9, 5]), mode="cubic", coordinate_transformation_mode="align_corners")
    graph.add("Resize", "x", "", "", numpy.array([4, 4]), mode="linear", axes=[2, 3], antialias=1, keep_aspect_ratio_policy="not_larger")
    graph.add("Resize", "x", "", numpy.array([2, 2.5], numpy.float32), axes=[2, 3], coordinate_transformation_mode="asymmetric",
              nearest_mode="floor")
    graph.add("Resize", "x", numpy.array([0.2, -0.5, 0.8, 1.25], numpy.float32), "", numpy.array([5, 7]), mode="linear", axes=[2, 3],
              coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=0.5)
    graph.write(folder, symbolic=False)


def parts(folder):
    """Sequences of parts, and what PyTorch makes of as_strided and adaptive pooling, for a fixed batch."""
    graph = Graph("parts", 18, x=numbers(SAMPLES, 2, 3, 4))
    def at(sequence, *position):
        return graph.add("SequenceAt", sequence, *[numpy.array(i) for i in position])
    pairs = graph.add("SplitToSequence", "x", numpy.array(3), axis=-1, hidden=True)
    at(pairs, 0), at(pairs, -1)
    at(graph.add("SplitToSequence", "x", numpy.array([1, 2]), axis=2, hidden=True), 1)
    rows = graph.add("SplitToSequence", "x", axis=2, keepdims=0, hidden=True)
    at(rows, 1)
    longer = graph.add("SequenceInsert", rows, graph.add("Neg", graph.add("SequenceAt", rows, numpy.array(2), hidden=True), hidden=True),
                       numpy.array(1), hidden=True)
    at(longer, 1), at(longer, 3)
    at(graph.add("SequenceErase", longer, numpy.array(-3), hidden=True), 0)
    graph.add("Cast", graph.add("Add", graph.add("SequenceLength", longer, hidden=True), numpy.array(1), hidden=True), to=TensorProto.FLOAT,
              hidden=True)
    graph.add("Mul", "x", graph.nodes[-1].output[0])
    at(graph.add("SequenceConstruct", "x", graph.add("Exp", "x", hidden=True), hidden=True), 1)
    flat = graph.add("Reshape", "x", numpy.array([-1]), hidden=True)
    for pattern in numpy.arange(24).reshape(1, 2, 4, 3), numpy.array([[5, 23, 5]]):
        begin = 24 * numpy.arange(SAMPLES).reshape(-1, *[1] * (pattern.ndim - 1))
        graph.add("Gather", flat, begin + pattern)
    moved = graph.add("Transpose", "x", perm=[2, 3, 0, 1], hidden=True)
    places = numpy.stack(numpy.meshgrid([0, 0, 1, 2, 2], [0, 1, 2, 3, 3, 0], indexing="ij"), -1)
    graph.add("Transpose", graph.add("GatherND", moved, places, hidden=True), perm=[2, 3, 0, 1])
    graph.write(folder, symbolic=False)


def scalars(folder):
    """Of each sample one number, which has no axis but the batch, with constants of none or of one element."""
    graph = Graph("scalars", 20, x=numbers(SAMPLES, 4))
    one = graph.add("ReduceSum", "x", numpy.array([1]), keepdims=0, hidden=True)
    for operator in ("Add", "Sub", "Mul", "Max"):
        graph.add(operator, one, numpy.float32(0.5))
    graph.add("Div", numbers(1), one)
    graph.add("Pow", graph.add("Exp", one, hidden=True), numpy.float32(1.5))
    graph.add("HardSigmoid", one, alpha=0.25)
    graph.add("Shrink", one, lambd=0.25, bias=0.125)
    graph.add("Clip", one, numpy.float32(0.5), numpy.float32(0.25))
    graph.add("Cast", graph.add("IsInf", graph.add("Log", one, hidden=True), detect_positive=0, hidden=True), to=TensorProto.FLOAT)
    graph.add("Where", graph.add("Greater", one, numpy.float32(0), hidden=True), one, numpy.float32(-1))
    graph.write(folder)


def batches(folder):
    """Sizes and indices of samples: masks as transformers 5 has them, repeats for each sample, and slices of the whole batch."""
    graph = Graph("batches", 20, x=numbers(SAMPLES, 4, 6))
    samples = graph.add("Shape", "x", end=1, hidden=True)
    first = graph.add("Range", numpy.array(0), graph.add("Squeeze", samples, hidden=True), numpy.array(1), hidden=True)
    column = graph.add("Unsqueeze", first, numpy.array([1, 2]), hidden=True)
    places = numpy.array([3, 0, 2]).reshape(1, 1, 3)
    graph.add("Gather", graph.add("Reshape", "x", numpy.array([-1, 6]), hidden=True),
              graph.add("Add", graph.add("Mul", column, numpy.array(4), hidden=True), places, hidden=True))
    size = graph.add("Shape", graph.add("Max", column, places, hidden=True), hidden=True)
    pair = [graph.add("Unsqueeze", graph.add("Expand", part, size, hidden=True), numpy.array([-1]), hidden=True) for part in (column, places)]
    graph.add("GatherND", "x", graph.add("Concat", *pair, axis=-1, hidden=True))
    times = graph.add("Concat", samples, numpy.array([1, 1]), axis=0, hidden=True)
    graph.add("Concat", graph.add("Tile", numbers(1, 1, 6), times, hidden=True), "x", axis=1)
    rows = graph.add("Tile", numbers(4, 1, 6), times, hidden=True)
    graph.add("Add", graph.add("Reshape", rows, numpy.array([-1, 4, 6]), hidden=True), "x")
    rows = graph.add("Expand", numbers(1, 6), graph.add("Concat", graph.add("Mul", samples, numpy.array([4]), hidden=True), numpy.array([6]),
                                                        axis=0, hidden=True), hidden=True)
    graph.add("Mul", graph.add("Reshape", rows, numpy.array([-1, 4, 6]), hidden=True), "x")
    graph.add("Slice", "x", numpy.array([0, 1]), graph.add("Concat", samples, numpy.array([3]), axis=0, hidden=True), numpy.array([0, 1]))
    rows = graph.add("Reshape", "x", numpy.array([-1, 2, 3]), hidden=True)
    zeros = graph.add("ConstantOfShape", graph.add("Concat", numpy.array([1]), graph.add("Mul", samples, numpy.array([4]), hidden=True),
                                                   numpy.array([5]), axis=0, hidden=True), hidden=True)
    lstm = graph.add("LSTM", graph.add("Transpose", rows, perm=[1, 0, 2], hidden=True), numbers(1, 20, 3), numbers(1, 20, 5), "", "", zeros,
                     hidden_size=5, hidden=True)
    graph.add("Reshape", graph.add("Transpose", lstm, perm=[2, 0, 1, 3], hidden=True), numpy.array([-1, 4, 10]))
    rows = graph.add("Reshape", "x", numpy.array([-1, 6]), hidden=True)
    graph.add("Reshape", graph.add("BatchNormalization", rows, numbers(6), numbers(6), numbers(6), numbers(6) ** 2 + 0.5, hidden=True),
              numpy.array([-1, 4, 6]))
    graph.write(folder)

    graph = Graph("batches_fixed", 20, x=numbers(SAMPLES, 4, 6)) # constants that have as many equal parts as there are samples
    zeros = numpy.zeros((1, SAMPLES, 5), numpy.float32)
    state = graph.add("Expand", zeros, graph.add("Concat", numpy.array([1]), graph.add("Shape", "x", end=1, hidden=True), numpy.array([5]),
                                                 axis=0, hidden=True), hidden=True)
    lstm = graph.add("GRU", graph.add("Transpose", "x", perm=[1, 0, 2], hidden=True), numbers(1, 15, 6), numbers(1, 15, 5), "", "", state,
                     hidden_size=5, hidden=True)
    graph.add("Transpose", lstm, perm=[2, 0, 1, 3])
    one = graph.add("Gather", "x", numpy.array(0), axis=1, hidden=True)
    cell = graph.add("Gemm", numpy.full((SAMPLES, 5), 0.5, numpy.float32), numbers(6, 5), numbers(6), transB=1, hidden=True)
    graph.add("Tanh", graph.add("Add", one, cell, hidden=True))
    groups = graph.add("Reshape", "x", numpy.array([-1, 3, 8]), hidden=True) # as many groups as samples
    scale = graph.add("Expand", numpy.array([0.5], numpy.float32), numpy.array([SAMPLES]), hidden=True)
    graph.add("InstanceNormalization", groups, scale, numpy.array([0.25, 0.5, 1], numpy.float32))
    graph.add("Slice", "x", numpy.array([0, 1]), numpy.array([SAMPLES, 3]), numpy.array([0, 2]))
    graph.write(folder, symbolic=False)


def untrainable(folder):
    """Graphs for `tutti train`, which says what is wrong with them."""
    def row(count):
        return numpy.linspace(-1, 1, count, dtype=numpy.float32).reshape(1, count)

    image, labels = numpy.linspace(0, 1, SAMPLES * 784, dtype=numpy.float32).reshape(SAMPLES, 1, 28, 28), numpy.arange(SAMPLES)
    for name, heads, inputs in (("two_heads", (10, 4), {}), ("seven", (7,), {}), ("with_loss", (10,), {"t": labels})):
        graph = Graph(name, 17, x=image, **inputs)
        x = graph.add("Flatten", graph.add("GlobalAveragePool", "x", hidden=True), hidden=True)
        made = [graph.add("Gemm", x, row(count), hidden=bool(inputs)) for count in heads]
        if inputs:
            graph.add("SoftmaxCrossEntropyLoss", made[0], "t", reduction="none")
        graph.write(folder)
        (folder / f"{name}.safetensors").unlink()


def main():
    folder = pathlib.Path(sys.argv[1])
    for make in (networks, pointwise, along_axes, movement, layers, sliding_windows, counted, lengths, by_index, windows, parts, lenet,
                 untrainable, scalars, batches):
        make(folder)


if __name__ == "__main__":
    main()
