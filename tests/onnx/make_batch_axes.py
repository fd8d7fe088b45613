#!/usr/bin/env python3
"""Makes files of tests/onnx/files for options of the command, as make.py makes the others: inputs whose batch lies on different
axes, and a constant among them (batch_axes.onnx); a file without a batch (sample.onnx); a classifier with labels (classifier.onnx).

    .dev/torch/bin/python tests/onnx/make_batch_axes.py tests/onnx/files/networks
"""
import pathlib
import sys
import warnings

import torch
from make import SAMPLES, Graph, numbers, record
from torch import nn


class BatchAxes(nn.Module):
    def __init__(self):
        super().__init__()
        self.rows, self.head = nn.LSTM(3, 4), nn.Linear(4, 5)

    def forward(self, x, mask, scale):
        y = self.head(self.rows(x)[0])
        return (y * mask.transpose(0, 1).unsqueeze(-1)).sum(0) * scale, y, y.flatten(0, 1)


class Sample(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Conv1d(2, 3, 3)

    def forward(self, x):
        return self.layer(x).mean(1)


def export(folder, name, network, outputs, axes, **inputs):
    path = folder / f"{name}.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(network.eval(), tuple(map(torch.from_numpy, inputs.values())), str(path), input_names=list(inputs),
                          output_names=outputs, dynamic_axes=axes, dynamo=False, opset_version=17)
    record(path, inputs)


def classifier(folder):
    graph = Graph("classifier", 18, x=numbers(SAMPLES, 4))
    weights = {"coefficients": [float(number) for number in numbers(12)], "intercepts": [0.5, 0.0, -0.5]}
    graph.add("LinearClassifier", "x", domain="ai.onnx.ml", classlabels_ints=[0, 1, 2], post_transform="LOGISTIC", outputs=2, **weights)
    graph.add("Normalizer", graph.outputs.pop(), domain="ai.onnx.ml", norm="L1")
    graph.write(folder)


def main():
    folder = pathlib.Path(sys.argv[1])
    torch.manual_seed(3)
    axes = {"x": {1: "batch"}, "mask": {0: "batch"}, "y": {0: "batch"}, "steps": {1: "batch"}}
    export(folder, "batch_axes", BatchAxes(), ["y", "steps", "rows"], axes, x=numbers(4, 2, 3), mask=abs(numbers(2, 4)), scale=abs(numbers(1)).reshape(()))
    export(folder, "sample", Sample(), ["y"], None, x=numbers(2, 6))
    classifier(folder)


if __name__ == "__main__":
    main()
