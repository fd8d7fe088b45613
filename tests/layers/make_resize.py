#!/usr/bin/env python3
"""Writes resize.txt: tables that ONNX's reference implementation (the package onnx, 1.23.2) has for an axis. Coordinates by
a size follow ONNX's text, onnxruntime and PyTorch where the scale gives a size that is not whole: it is that of the output.

A line is a case: mode, coordinates, nearest mode, antialias, exclude_outside, cubic_coeff_a, sizes before and after,
scale, roi, then for each output the elements that it reads with their weights, or - where it is extrapolated."""
import itertools
import os
import random
import sys

import numpy as np
from onnx.reference.ops import op_resize as onnx

MODES = ["nearest", "linear", "cubic"]
COORDINATES = ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
               "tf_crop_and_resize"]
NEAREST = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]


def coordinates_by_text(mode, y, scale, size, width, to, roi, reference=onnx._compute_x_ori):
    whole = mode in ("align_corners", "tf_crop_and_resize", "pytorch_half_pixel")
    places, outside = reference(mode, y, scale, size, to if whole else width, to, roi)
    return (0 * places if mode == "pytorch_half_pixel" and to == 1 else places), outside


onnx._compute_x_ori = coordinates_by_text


def coefficients(mode, nearest, antialias, a):
    if mode == "nearest":
        return lambda ratio, scale: onnx._nearest_coeffs(ratio, mode=nearest)
    if mode == "cubic":
        f = onnx._cubic_coeffs_antialias if antialias else onnx._cubic_coeffs
        return lambda ratio, scale: f(ratio, scale, A=a)
    return onnx._linear_coeffs_antialias if antialias else onnx._linear_coeffs


def table(mode, coordinates, nearest, antialias, exclude, a, size, to, scale, roi):
    matrix = onnx._interpolate_1d_along_axis(
        np.eye(size), 0, scale, to, coefficients(mode, nearest, antialias, a), roi=roi, extrapolation_value=np.nan,
        coordinate_transformation_mode=coordinates, exclude_outside=bool(exclude))
    for row in matrix:
        yield "-" if np.isnan(row[0]) else ",".join(f"{i}:{w:.9g}" for i, w in enumerate(row) if abs(w) > 1e-12)


def cases():
    draw = random.Random(1)
    for mode, coordinates, exclude, antialias in itertools.product(MODES, COORDINATES, (0, 1), (0, 1)):
        if mode == "nearest" and (antialias or exclude):
            continue
        for _ in range(1 if mode != "nearest" else 4):
            size, scale = draw.randint(1, 9), draw.choice([0.3, 0.5, 0.6, 0.75, 0.8, 1.3, 1.5, 2, 2.6, 3])
            to = max(1, int(size * scale))
            if draw.random() < 0.5:
                scale = to / size
            if size * scale < 0.5:
                continue
            roi = (0.25, 0.75) if draw.random() < 0.5 else (-0.4, 1.2)
            yield (mode, coordinates, draw.choice(NEAREST), antialias, exclude, draw.choice([-0.75, -0.5]), size, to,
                   scale, roi if coordinates == "tf_crop_and_resize" else (0, 1))


with open(os.path.join(os.path.dirname(os.path.abspath(sys.argv[0])), "resize.txt"), "w") as file:
    for case in cases():
        head = " ".join(f"{x:.17g}" if isinstance(x, float) else str(x) for x in case[:-1])
        print(head, *case[-1], " ".join(table(*case)), file=file)
