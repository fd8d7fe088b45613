#!/usr/bin/env python3
"""Writes files/augment.npz, which test_augment.c reads: pictures, and what Pillow and torchvision make of them.

    make_augment.py FILE    needs numpy, Pillow and torchvision

The name of a result says what was done: resize-PICTURE-LEFT-TOP-WIDTH-HEIGHT-NUMBER, evaluate-PICTURE-SIDE,
OPERATION-PICTURE-AMOUNT.
"""
import sys

import numpy
import torch
import torchvision.transforms.functional as functional
from PIL import Image, ImageEnhance, ImageOps

BILINEAR = Image.Resampling.BILINEAR


def pictures():
    random = numpy.random.default_rng(28)
    y, x = numpy.mgrid[0:57, 0:83]
    waves = [128 + 100 * numpy.sin(x / (7 + i) + y / (5 + 2 * i)) for i in range(3)]
    scene = numpy.stack(waves, 2) + random.normal(0, 3, (57, 83, 3))
    scene[20:40, 30:50] = (230, 40, 10)
    return {
        "scene": scene.clip(0, 255).astype(numpy.uint8),
        "waves": scene[10:37, 20:54].clip(0, 255).astype(numpy.uint8),
        "noise": random.integers(0, 256, (31, 23, 3), dtype=numpy.uint8),
        "contrast": ((random.random((40, 37, 1)) < 0.5) * 255).astype(numpy.uint8),
        "dim": random.integers(60, 140, (19, 26, 1), dtype=numpy.uint8),
        "line": random.integers(0, 256, (1, 300, 3), dtype=numpy.uint8),
        "one": numpy.array([[[200, 100, 7]]], numpy.uint8),
    }


def planes(image):
    array = numpy.asarray(image)
    return array.reshape(array.shape[0], array.shape[1], -1).transpose(2, 0, 1)


RESIZES = {
    "scene": [(0, 0, 83, 57, 32, 32), (13, 5, 41, 33, 20, 28), (70, 50, 13, 7, 33, 9), (3, 2, 24, 24, 24, 24),
              (0, 0, 83, 57, 1, 1)],
    "noise": [(0, 0, 23, 31, 40, 37), (5, 6, 1, 1, 9, 9), (2, 1, 20, 3, 7, 8)],
    "contrast": [(0, 0, 37, 40, 16, 15), (1, 1, 35, 38, 50, 41)],
    "line": [(0, 0, 300, 1, 8, 8), (17, 0, 9, 1, 31, 3)],
    "one": [(0, 0, 1, 1, 5, 7)],
}
EVALUATIONS = [("scene", 28), ("scene", 7), ("noise", 32), ("contrast", 33), ("dim", 21), ("one", 3)]


def affine(image, matrix):
    return image.transform(image.size, Image.Transform.AFFINE, matrix, BILINEAR)


def hue(image, amount):
    tensor = torch.from_numpy(planes(image).copy())
    return functional.adjust_hue(tensor, amount).numpy().transpose(1, 2, 0)


OPERATIONS = {
    "shearx": (lambda image, m: affine(image, (1, m, 0, 0, 1, 0)), (0.21, -0.3)),
    "sheary": (lambda image, m: affine(image, (1, 0, 0, m, 1, 0)), (0.17, -0.25)),
    "translatex": (lambda image, m: affine(image, (1, 0, -m, 0, 1, 0)), (5, -3)),
    "translatey": (lambda image, m: affine(image, (1, 0, 0, 0, 1, -m)), (4, -6)),
    "rotate": (lambda image, m: image.rotate(m, BILINEAR), (13, -29.5, 151)),
    "brightness": (lambda image, m: ImageEnhance.Brightness(image).enhance(m), (0.3, 1.75)),
    "saturation": (lambda image, m: ImageEnhance.Color(image).enhance(m), (0.1, 1.9)),
    "contrast": (lambda image, m: ImageEnhance.Contrast(image).enhance(m), (0.25, 1.5)),
    "sharpness": (lambda image, m: ImageEnhance.Sharpness(image).enhance(m), (0.1, 1.9)),
    "posterize": (lambda image, m: ImageOps.posterize(image, m), (4, 6)),
    "solarize": (lambda image, m: ImageOps.solarize(image, m), (127.5, 0)),
    "autocontrast": (lambda image, m: ImageOps.autocontrast(image), (1,)),
    "equalize": (lambda image, m: ImageOps.equalize(image), (1,)),
    "hue": (hue, (0.125, -0.3, 0.5)),
}


def main():
    arrays, images = {}, {}
    for name, pixels in pictures().items():
        arrays["picture-" + name] = pixels
        images[name] = Image.fromarray(pixels.squeeze(2) if pixels.shape[2] == 1 else pixels)
    for name, cases in RESIZES.items():
        for number, (left, top, width, height, to_width, to_height) in enumerate(cases):
            part = images[name].crop((left, top, left + width, top + height))
            key = f"resize-{name}-{left}-{top}-{width}-{height}-{number}"
            arrays[key] = planes(part.resize((to_width, to_height), BILINEAR))
    for name, side in EVALUATIONS:
        resized = functional.resize(images[name], round(side * 256 / 224))
        arrays[f"evaluate-{name}-{side}"] = planes(functional.center_crop(resized, side))
    for operation, (apply, amounts) in OPERATIONS.items():
        for amount in amounts:
            for name in ("waves", "dim", "one"):
                if name != "dim" or operation not in ("hue", "saturation"):
                    arrays[f"{operation}-{name}-{amount}"] = planes(apply(images[name], amount)).reshape(
                        planes(images[name]).shape)
    numpy.savez_compressed(sys.argv[1], **arrays)


main()
