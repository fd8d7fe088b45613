#!/usr/bin/env python3
"""Prints what scikit-learn and PyTorch compute, for tests/train/test_scores.c.

    python3 tests/train/scores.py | clang-format > tests/train/scores.h

Label k is (7 k + k / 5) % 6; output i is sin(1.3 i) + sin(0.37 i * i), and 1.5 more for the label of each second
sample; number i is 3 sin(i) + 100 as a target and that + cos(2.1 i) as an output. All are rounded to float32."""
import numpy
import sklearn
import torch
from sklearn import metrics

SAMPLES, CLASSES, NUMBERS = 61, 7, 3

i = numpy.arange(SAMPLES * CLASSES, dtype=numpy.float64)
k = numpy.arange(SAMPLES)
labels = (7 * k + k // 5) % 6
logits = (numpy.sin(1.3 * i) + numpy.sin(0.37 * i * i)).reshape(SAMPLES, CLASSES)
logits[k[1::2], labels[1::2]] += 1.5
logits = logits.astype(numpy.float32)
# A class that is never right nor predicted is not among the labels of scikit-learn's means.
predicted = logits.argmax(1)
present = numpy.union1d(labels, predicted)
losses = torch.nn.functional.cross_entropy(torch.tensor(logits).double(), torch.tensor(labels), reduction="none").numpy()
precision, recall, f1, support = metrics.precision_recall_fscore_support(
    labels, predicted, labels=numpy.arange(CLASSES), zero_division=0)
iou = metrics.jaccard_score(labels, predicted, labels=numpy.arange(CLASSES), average=None, zero_division=0)


def show(name, values, kind="double"):
    texts = [f"{value:.17g}" if kind == "double" else str(int(value)) for value in numpy.ravel(values)]
    print(f"static const {kind} {name}[] = {{ " + ", ".join(texts) + " };")


print(f"/* Written by scores.py: results of scikit-learn {sklearn.__version__} and PyTorch "
      + torch.__version__.split("+")[0] + ". */")
print("#include <stdint.h>\n")
print(f"enum {{ SCORE_SAMPLES = {SAMPLES}, SCORE_CLASSES = {CLASSES}, SCORE_NUMBERS = {NUMBERS} }};")
show("class_precision", precision)
show("class_recall", recall)
show("class_f1", f1)
show("class_iou", iou)
show("class_support", support, "int64_t")
show("confusion", metrics.confusion_matrix(labels, predicted, labels=numpy.arange(CLASSES)), "int64_t")
order = sorted((n for n in range(SAMPLES) if predicted[n] != labels[n]), key=lambda n: -losses[n])[:5]
show("worst_index", order, "int64_t")
show("worst_loss", losses[order])
show("worst_predicted", predicted[order], "int64_t")
show("worst_probability", [torch.softmax(torch.tensor(logits[n]).double(), 0).max() for n in order])
show("summary", [
    losses.mean(), metrics.accuracy_score(labels, predicted),
    metrics.top_k_accuracy_score(labels, logits, k=3, labels=numpy.arange(CLASSES)),
    metrics.precision_score(labels, predicted, labels=present, average="macro", zero_division=0),
    metrics.recall_score(labels, predicted, labels=present, average="macro", zero_division=0),
    metrics.f1_score(labels, predicted, labels=present, average="macro", zero_division=0),
    metrics.jaccard_score(labels, predicted, labels=present, average="macro", zero_division=0)])
i = numpy.arange(SAMPLES * NUMBERS, dtype=numpy.float64)
wanted = (3 * numpy.sin(i) + 100).astype(numpy.float32).reshape(SAMPLES, NUMBERS)
given = (wanted.ravel() + numpy.cos(2.1 * i)).astype(numpy.float32).reshape(SAMPLES, NUMBERS)
wanted, given = wanted.astype(numpy.float64), given.astype(numpy.float64)
error = metrics.mean_squared_error(wanted, given)
show("number_summary", [error, metrics.r2_score(wanted, given), metrics.mean_absolute_error(wanted, given), error**0.5])
