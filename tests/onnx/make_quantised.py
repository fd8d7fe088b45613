#!/usr/bin/env python3
"""Makes the files of tests/onnx/files that onnxruntime quantised, as make.py makes the others: a small network with rounded
activations and weights (quantised.onnx: QuantizeLinear and DequantizeLinear, int8 and uint8, a scale for each channel), and with
operators on integers (quantised_operators.onnx).

    .dev/torch/bin/python tests/onnx/make_quantised.py tests/onnx/files
"""
import pathlib
import sys
import tempfile

import torch
from make import SAMPLES, numbers, record
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
            record(path, {"x": numbers(SAMPLES, 2, 8, 8)})


if __name__ == "__main__":
    main()
