#!/usr/bin/env python3
"""Makes the files of tests/onnx/files that scikit-learn's classifiers become, as make.py makes the others: with labels that are
texts, and a map from labels to probabilities for each sample, of which the values are recorded as a row, and labels as numbers.

    .dev/torch/bin/pip install scikit-learn==1.9.1 skl2onnx==1.20.0
    .dev/torch/bin/python tests/onnx/make_sklearn.py tests/onnx/files/networks
"""
import pathlib
import sys
import warnings

import numpy
import onnxruntime
from make import SAMPLES, numbers, random, save
from skl2onnx import to_onnx
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

LABELS = numpy.array(["plum", "apple", "lime"])
NETWORKS = {"sklearn_logistic": make_pipeline(StandardScaler(), LogisticRegression()),
            "sklearn_mlp": MLPClassifier((5,), max_iter=300, random_state=3)}


def main():
    folder = pathlib.Path(sys.argv[1])
    x = numbers(90, 4)
    y = LABELS[(x @ random.normal(size=(4, 3))).argmax(1)]
    for name, network in NETWORKS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = to_onnx(network.fit(x, y), x[:1], target_opset=17).SerializeToString()
        (folder / f"{name}.onnx").write_bytes(model)
        feeds = {"X": x[:SAMPLES]}
        label, rows = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, feeds)
        order = sorted(LABELS)
        save(folder / f"{name}.safetensors", {
            "input.X": feeds["X"], "output.output_label": numpy.array([order.index(text) for text in label]),
            "output.output_probability": numpy.float32([[row[text] for text in order] for row in rows])})


if __name__ == "__main__":
    main()
