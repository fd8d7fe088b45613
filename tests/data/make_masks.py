#!/usr/bin/env python3
"""Writes masks.npz, which test_masks.c reads: file/NAME has the bytes of a PNG file, values/NAME the classes of its pixels.

    make_masks.py FOLDER    needs numpy and Pillow

Pillow writes neither grey of 2 and 4 bits nor interlaced files: these are made here.
"""
import io
import pathlib
import struct
import sys
import zlib

import numpy
from PIL import Image

WIDTH, HEIGHT = 21, 13
GREY, PALETTE = 0, 3
PASSES = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
random = numpy.random.default_rng(3)
colours = random.integers(0, 256, 768).tolist()
arrays = {}


def values(below):
    return random.integers(0, below, (HEIGHT, WIDTH))


def keep(name, data, classes):
    arrays["file/" + name] = numpy.frombuffer(data, numpy.uint8)
    arrays["values/" + name] = classes.astype(numpy.int32)


def saved(pixels, mode, **options):
    image = Image.fromarray(pixels.astype({"1": bool, "I;16": numpy.uint16}.get(mode, numpy.uint8)))
    if mode == "P":
        image.putpalette(colours)
    assert image.mode == mode
    file = io.BytesIO()
    image.save(file, "png", **options)
    return file.getvalue()


def packed(row, depth):
    bits = (row[:, None] >> numpy.arange(depth - 1, -1, -1) & 1).astype(numpy.uint8)
    return b"\0" + numpy.packbits(bits).tobytes()


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(pixels, depth, colour, interlaced=False):
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, depth, colour, 0, 0, interlaced)
    rows = [row for x, y, dx, dy in (PASSES if interlaced else [(0, 0, 1, 1)]) for row in pixels[y::dy, x::dx]]
    palette = chunk(b"PLTE", bytes(colours[:3 << depth])) if colour == PALETTE else b""
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + palette +
            chunk(b"IDAT", zlib.compress(b"".join(packed(row, depth) for row in rows))) + chunk(b"IEND", b""))


for bits in (1, 2, 4, 8):
    classes = values(1 << bits)
    keep(f"palette{bits}.png", saved(classes, "P", bits=bits), classes)
    keep(f"interlaced{bits}.png", png(classes, bits, PALETTE, True), classes)
    keep(f"made_grey{bits}.png", png(classes, bits, GREY), classes)
classes = values(22)
classes[classes == 21] = 255
keep("voc.png", saved(classes, "P"), classes)
keep("transparent.png", saved(classes, "P", transparency=3), classes)
keep("bits.png", saved(classes % 2, "1"), classes % 2)
keep("grey.png", saved(classes, "L"), classes)
keep("deep.png", saved(classes, "I;16"), classes)
keep("deep_interlaced.png", png(classes, 16, GREY, True), classes)
keep("too_deep.png", saved(classes + 45, "I;16"), classes + 45)
numpy.savez_compressed(pathlib.Path(sys.argv[1]) / "masks.npz", **arrays)
