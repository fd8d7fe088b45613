#!/usr/bin/env python3
"""Makes the files of tests/onnx/files that onnxruntime quantised, as make.py makes the others: a small network with rounded
activations and weights (quantised.onnx: QuantizeLinear and DequantizeLinear, int8 and uint8, a scale for each channel), and with
operators on integers (quantised_operators.onnx).

    .dev/torch/bin/python tests/onnx/make_quantised.py tests/onnx/files/values
"""
import pathlib
import sys
import tempfile

import numpy
import onnx
import torch
from make import SAMPLES, numbers, record
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from torch import nn


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2, self.fc = nn.Conv2d(2, 4, 3, padding=1), nn.Conv2d(4, 3, 3), nn.Linear(3, 5)

    def forward(self, x):
        x = torch.max_pool2d(torch.relu(self.conv1(x)), 2)
        return self.fc(torch.relu(self.conv2(x)).mean((2, 3)))


class Samples(CalibrationDataReader):
    def __init__(self):
        self.left = iter([{"x": numbers(SAMPLES, 2, 8, 8)} for _ in range(4)])

    def get_next(self):
        return next(self.left, None)


def gradients(path, x):
    """A training step by PyTorch, whose fake_quantize rounds as the file does, and passes gradients."""
    graph = onnx.load(path).graph
    numbers_of = {value.name: torch.from_numpy(numpy_helper.to_array(value).copy()) for value in graph.initializer}
    scales = {node.input[0]: [numbers_of[name] for name in node.input[1:]] for node in graph.node
              if node.op_type == "QuantizeLinear"}
    network = Network()
    for name, parameter in network.named_parameters():
        scale, zero = (numbers_of[key] for key in (f"{name}_quantized_scale", f"{name}_quantized_zero_point")) if "bias" in name \
            else (numbers_of[key] for key in (f"{name}_scale", f"{name}_zero_point"))
        shape = [-1] + [1] * (parameter.dim() - 1)
        q = numbers_of[f"{name}_quantized"].float()
        parameter.data = ((q - zero.float().reshape(shape)) * scale.reshape(shape)).reshape(parameter.shape)

    def rounded(value, name):
        scale, zero = scales[name]
        return torch.fake_quantize_per_tensor_affine(value, float(scale), int(zero), 0, 255)

    x = torch.relu(network.conv1(rounded(torch.from_numpy(x), "x")))
    x = rounded(torch.max_pool2d(rounded(x, "/Relu_output_0"), 2), "/MaxPool_output_0")
    x = rounded(torch.relu(network.conv2(x)), "/Relu_1_output_0")
    x = network.fc(rounded(x.mean((2, 3)), "/ReduceMean_output_0"))
    labels = torch.arange(SAMPLES) % 5
    loss = nn.functional.cross_entropy(rounded(x, "y_QuantizeLinear_Input"), labels)
    loss.backward()
    more = {f"gradient.{name}": parameter.grad.numpy() for name, parameter in network.named_parameters()}
    return more | {"labels": labels.numpy().astype(numpy.int32), "loss": loss.detach().numpy().reshape(1)}


def blocks(path):
    """Weights of 4 bits, with a scale for each two rows of a column; two are packed in a byte, or in an integer."""
    q = numpy.random.default_rng(5).integers(-8, 8, (7, 3))
    scale, zero = numpy.abs(numbers(4, 3)) + 0.25, q[:4] // 2 + 4
    typed = [helper.make_tensor("weight", TensorProto.INT4, q.shape, numpy.ravel(q)),
             helper.make_tensor("unsigned", TensorProto.UINT4, q.shape, numpy.ravel(q + 8)),
             helper.make_tensor("zero", TensorProto.UINT4, zero.shape, numpy.ravel(zero)), numpy_helper.from_array(scale, "scale")]
    assert typed[0].int32_data and len(typed[0].int32_data) == 11
    typed[1].raw_data = bytes(typed[1].int32_data)
    del typed[1].int32_data[:]
    nodes = [helper.make_node("DequantizeLinear", ["weight", "scale"], ["a"], axis=0, block_size=2),
             helper.make_node("DequantizeLinear", ["unsigned", "scale", "zero"], ["b"], axis=-2, block_size=2),
             helper.make_node("MatMul", ["x", "a"], ["y"]), helper.make_node("MatMul", ["x", "b"], ["z"])]
    port = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "blocks", [port("x", TensorProto.FLOAT, ["N", 7])],
                              [port(name, TensorProto.FLOAT, ["N", 3]) for name in "yz"], typed)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    record(path, {"x": numbers(SAMPLES, 7)})


def main():
    folder = pathlib.Path(sys.argv[1])
    torch.manual_seed(3)
    with tempfile.TemporaryDirectory() as scratch:
        exported = pathlib.Path(scratch) / "network.onnx"
        torch.onnx.export(Network().eval(), (torch.zeros(SAMPLES, 2, 8, 8),), str(exported), dynamo=False, opset_version=17,
                          input_names=["x"], output_names=["y"], dynamic_axes={"x": {0: "N"}, "y": {0: "N"}})
        # Gemm on integers would be onnxruntime's own operator, not ONNX's.
        for name, layout, kinds in (("quantised", QuantFormat.QDQ, None),
                                    ("quantised_operators", QuantFormat.QOperator, ["Conv", "MaxPool"])):
            path = folder / f"{name}.onnx"
            quantize_static(str(exported), str(path), Samples(), quant_format=layout, per_channel=True, weight_type=QuantType.QInt8,
                            activation_type=QuantType.QUInt8, op_types_to_quantize=kinds)
            x = numbers(SAMPLES, 2, 8, 8)
            record(path, {"x": x}, gradients(path, x) if layout == QuantFormat.QDQ else None)
    blocks(folder / "quantised_blocks.onnx")


if __name__ == "__main__":
    main()
