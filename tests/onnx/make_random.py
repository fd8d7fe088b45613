#!/usr/bin/env python3
"""Makes the files of tests/onnx/files with random numbers: what PyTorch's exporters write of layers that draw in training
(stochastic.onnx: rows of stochastic depth by the older exporter, as torchvision and timm have it), the operators by themselves
(random.onnx), and an LSTM that onnxruntime quantised (lstm_quantised.onnx), with what the LSTM of its rounded weights gives.

    .dev/torch/bin/python tests/onnx/make_random.py tests/onnx/files/values
"""
import pathlib
import sys
import tempfile

import numpy
import onnx
import onnxruntime
import torch
from make import SAMPLES, numbers, record
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from torch import nn

KEEP = 0.75


class Stochastic(nn.Module):
    """x, or x + 4 / 3 of a branch, for whole samples."""
    def __init__(self):
        super().__init__()
        self.branch = nn.Linear(6, 6)

    def forward(self, x):
        kept = x.new_empty([x.shape[0], 1]).bernoulli_(KEEP).div_(KEEP)
        return x + self.branch(x) * kept


def stochastic(folder):
    torch.onnx.export(Stochastic().train(), (torch.zeros(SAMPLES, 6),), str(folder / "stochastic.onnx"), dynamo=False, opset_version=17,
                      training=torch.onnx.TrainingMode.TRAINING, input_names=["x"], output_names=["y"],
                      dynamic_axes={"x": {0: "N"}, "y": {0: "N"}})


def operators(folder, samples, name):
    """Each with a shape of its own: of each sample, of the batch, of all samples together."""
    nodes = [helper.make_node("RandomUniformLike", ["x"], ["uniform"], low=-1.0, high=3.0),
             helper.make_node("RandomNormalLike", ["x"], ["normal"], mean=2.0, scale=0.5, dtype=TensorProto.FLOAT),
             helper.make_node("Bernoulli", ["p"], ["kept"], dtype=TensorProto.FLOAT),
             helper.make_node("RandomUniform", [], ["shared"], shape=[50]),
             helper.make_node("Add", ["zero", "shared"], ["same"]),
             helper.make_node("Shape", ["x"], ["size"], start=0, end=1),
             helper.make_node("Concat", ["size", "one"], ["sizes"], axis=0),
             helper.make_node("ConstantOfShape", ["sizes"], ["zeros"]),
             helper.make_node("RandomUniformLike", ["zeros"], ["row"]),
             helper.make_node("Add", ["zero", "row"], ["rows"]),
             helper.make_node("Sub", ["x", "x"], ["zero"]),
             helper.make_node("Sigmoid", ["zero"], ["half"]), helper.make_node("Mul", ["half", "half"], ["p"])]
    order = [10, 11, 12, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    outputs = ["uniform", "normal", "kept", "same", "rows"]
    if samples:  # as PyTorch traces torch.rand(x.shape[0], 1) of a file for one number of samples
        nodes += [helper.make_node("RandomUniform", [], ["drawn"], shape=[samples, 1]), helper.make_node("Add", ["zero", "drawn"], ["fixed"])]
        order += [13, 14]
        outputs += ["fixed"]
    graph = helper.make_graph([nodes[i] for i in order], name, [helper.make_tensor_value_info("x", TensorProto.FLOAT, [samples or "N", 50])],
                              [helper.make_tensor_value_info(output, TensorProto.FLOAT, [samples or "N", 50]) for output in outputs],
                              [numpy_helper.from_array(numpy.array([1]), "one")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    onnx.save(model, folder / f"{name}.onnx")


class Cells(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(6, 8, bidirectional=True)

    def forward(self, x):
        return self.lstm(x.transpose(0, 1))[0][-1]


def rounded(model):
    """The same with LSTM, of weights (q - zero) scale."""
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type != "DynamicQuantizeLSTM":
            continue
        for position, scale in ((1, 8), (2, 10)):
            q, scales, zeros = (arrays[node.input[i]].astype("float32") for i in (position, scale, scale + 1))
            shape = (-1, 1, 1) if scales.ndim == 1 else (scales.shape[0], 1, -1)
            weight = ((q - zeros.reshape(shape)) * scales.reshape(shape)).transpose(0, 2, 1)
            model.graph.initializer.append(numpy_helper.from_array(weight.astype("float32"), f"rounded{position}"))
            node.input[position] = f"rounded{position}"
        del node.input[8:]
        node.op_type, node.domain = "LSTM", ""
    return model


def quantised_lstm(folder):
    """onnxruntime rounds activations, too, by a scale of all samples together: its outputs differ by what that costs. With weights
    of all eight bits, its products saturate on processors without VNNI, and the outputs differ by half of the largest one."""
    for name, each_gate in (("lstm_quantised", False), ("lstm_quantised_gates", True)):
        path = folder / f"{name}.onnx"
        with tempfile.TemporaryDirectory() as temporary:
            exported = pathlib.Path(temporary) / "exported.onnx"
            torch.onnx.export(Cells().eval(), (torch.zeros(SAMPLES, 5, 6),), str(exported), dynamo=False, opset_version=17, input_names=["x"],
                              output_names=["y"], dynamic_axes={"x": {0: "N"}, "y": {0: "N"}})
            quantize_dynamic(str(exported), str(path), weight_type=QuantType.QUInt8, per_channel=each_gate, reduce_range=True)
            x = numbers(SAMPLES, 5, 6)
            same = pathlib.Path(temporary) / f"{name}.onnx"
            onnx.save(rounded(onnx.load(path)), same)
            record(same, {"x": x})
            same.with_suffix(".safetensors").replace(path.with_suffix(".safetensors"))
            wanted, got = (onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"]).run(None, {"x": x})[0] for file in (same, path))
        print(f"{name}: onnxruntime's differs by {numpy.abs(got - wanted).max() / numpy.abs(wanted).max():.3f} of the largest output")


def main():
    folder = pathlib.Path(sys.argv[1])
    torch.manual_seed(5)
    stochastic(folder)
    operators(folder, None, "random")
    operators(folder, 4, "random_fixed")
    quantised_lstm(folder)


if __name__ == "__main__":
    main()
