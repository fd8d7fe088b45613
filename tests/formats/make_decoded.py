#!/usr/bin/env python3
"""Writes decoded.npz, which test_decoded.c reads: file/NAME has the bytes of a picture file, rgb/NAME its pixels, mask/NAME the
numbers of a mask.

    make_decoded.py FOLDER    needs numpy, Pillow 11.3 or newer, and pillow-heif

The pixels are those of Pillow and pillow-heif, but for 16 bits, which Pillow cuts or clips.
"""
import pathlib
import struct
import sys

import numpy
import pillow_heif
from PIL import Image

from scene import HEIGHT, WIDTH, arrays, keep, saved, scene

pillow_heif.register_heif_opener()


def with_alpha(image):
    image.putalpha(Image.fromarray(numpy.linspace(0, 255, WIDTH * HEIGHT).reshape(HEIGHT, WIDTH).astype(numpy.uint8)))
    return image


def turned(orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif


def webps():
    image = scene()
    keep("lossless.webp", saved(image, "webp", lossless=True))
    keep("lossy.webp", saved(image, "webp", quality=90))
    keep("alpha.webp", saved(with_alpha(scene()), "webp", lossless=True, exact=True))
    keep("lossy_alpha.webp", saved(with_alpha(scene()), "webp", quality=90))
    keep("turned.webp", saved(image, "webp", lossless=True, exif=turned(6)))
    keep("moving.webp", saved(image, "webp", lossless=True, save_all=True, append_images=[image.rotate(180)], duration=50))


def tiffs():
    image = scene()
    for compression in ("raw", "tiff_lzw", "tiff_adobe_deflate", "packbits"):
        keep(f"{compression}.tif", saved(image, "tiff", compression=compression))
    keep("grey.tif", saved(image.convert("L"), "tiff", compression="tiff_lzw"))
    keep("bits.tif", saved(image.convert("1"), "tiff", compression="group4"))
    classes = image.quantize(6)
    keep("palette.tif", saved(classes, "tiff"), mask=classes)
    keep("cmyk.tif", saved(image.convert("CMYK"), "tiff"))
    keep("alpha.tif", saved(with_alpha(scene()), "tiff", compression="tiff_lzw"))
    keep("grey_alpha.tif", saved(with_alpha(scene()).convert("LA"), "tiff"))
    keep("turned.tif", saved(image, "tiff", tiffinfo={0x0112: 6}))
    keep("pages.tif", saved(image, "tiff", save_all=True, append_images=[image.rotate(180)]))
    keep("lossy.tif", saved(scene(32, 16), "tiff", compression="jpeg", quality=95))
    random = numpy.random.default_rng(1)
    deep = random.integers(0, 65536, (HEIGHT, WIDTH, 3), numpy.uint16)
    eight = (deep / 257).round().astype(numpy.uint8)
    keep("deep.tif", tiff(deep.astype("<u2").tobytes(), 16, 2, 3), eight)
    keep("deep_grey.tif", saved(Image.fromarray(deep[..., 0].copy()), "tiff"), eight[..., :1].repeat(3, 2))
    classes = random.integers(0, 256, (HEIGHT, WIDTH), numpy.uint16)
    keep("deep_mask.tif", tiff(classes.astype("<u2").tobytes(), 16, 1, 1), (classes / 257).round().astype(numpy.uint8)[..., None].repeat(3, 2),
         classes)
    narrow = random.integers(0, 16, (HEIGHT, WIDTH), numpy.uint8)
    rows = numpy.concatenate([narrow, numpy.zeros((HEIGHT, 1), numpy.uint8)], 1)
    keep("narrow.tif", tiff((rows[:, ::2] << 4 | rows[:, 1::2]).tobytes(), 4, 1, 1), (narrow * 17)[..., None].repeat(3, 2), narrow)
    keep("white_is_zero.tif", tiff((255 - numpy.asarray(image.convert("L"))).tobytes(), 8, 0, 1))
    tiles = tiled(numpy.asarray(scene()))
    keep("tiles.tif", tiles, numpy.asarray(scene()))
    planes = numpy.asarray(scene()).transpose(2, 0, 1).tobytes()
    keep("planes.tif", tiff(planes, 8, 2, 3, planar=True), numpy.asarray(scene()))


def directory(entries, place):
    """An IFD for what follows it; values of more than four bytes come after it."""
    after = place + 2 + 12 * len(entries) + 4
    table, values = struct.pack("<H", len(entries)), b""
    for tag, kind, numbers in entries:
        data = struct.pack(f"<{len(numbers)}{'H' if kind == 3 else 'I'}", *numbers)
        if len(data) > 4:
            table += struct.pack("<HHII", tag, kind, len(numbers), after + len(values))
            values += data
        else:
            table += struct.pack("<HHI", tag, kind, len(numbers)) + data.ljust(4, b"\0")
    return table + bytes(4) + values


def tiff(data, bits, photometric, samples, planar=False):
    """Without compression: Pillow writes neither 16 bits of colours nor planes. The data come last, so that a cut meets them."""
    strips = samples if planar else 1
    for place in (0, 1):   # the second time with the right places
        begin = 8 + len(directory(entries, 8)) if place else 0
        entries = [(256, 3, [WIDTH]), (257, 3, [HEIGHT]), (258, 3, [bits] * samples), (259, 3, [1]), (262, 3, [photometric]),
                   (273, 4, [begin + i * len(data) // strips for i in range(strips)]), (277, 3, [samples]), (278, 3, [HEIGHT]),
                   (279, 4, [len(data) // strips] * strips), (284, 3, [2 if planar else 1])]
    return b"II\x2a\0" + struct.pack("<I", 8) + directory(entries, 8) + data


def tiled(pixels):
    padded = numpy.zeros((16, 32, 3), numpy.uint8)
    padded[:HEIGHT, :WIDTH] = pixels
    data = padded[:, :16].tobytes() + padded[:, 16:].tobytes()
    for place in (0, 1):
        begin = 8 + len(directory(entries, 8)) if place else 0
        entries = [(256, 3, [WIDTH]), (257, 3, [HEIGHT]), (258, 3, [8, 8, 8]), (259, 3, [1]), (262, 3, [2]), (277, 3, [3]), (284, 3, [1]),
                   (322, 3, [16]), (323, 3, [16]), (324, 4, [begin, begin + 768]), (325, 4, [768, 768])]
    return b"II\x2a\0" + struct.pack("<I", 8) + directory(entries, 8) + data


def gifs():
    image = scene().quantize(40)
    keep("plain.gif", saved(image, "gif", interlace=0), mask=image)
    keep("interlaced.gif", saved(image, "gif", interlace=1))
    keep("transparent.gif", saved(image, "gif", transparency=3))
    keep("grey.gif", saved(scene().convert("L"), "gif"))
    keep("moving.gif", saved(image, "gif", save_all=True, append_images=[image.rotate(180)]))
    random = numpy.random.default_rng(3)
    noise = Image.fromarray(random.integers(0, 256, (90, 100, 3), numpy.uint8)).quantize(256)   # more codes than a table holds
    keep("noise.gif", saved(noise, "gif"))


def heifs():
    image = scene(64, 48)
    keep("lossy.heic", saved(image, "heif", quality=90))
    keep("lossy_alpha.heic", saved(image_with_alpha(64, 48), "heif", quality=90))
    keep("lossy.avif", saved(image, "avif", quality=90, subsampling="4:4:4"))
    keep("lossy_alpha.avif", saved(image_with_alpha(64, 48), "avif", quality=90, subsampling="4:4:4"))


def image_with_alpha(width, height):
    image = scene(width, height)
    image.putalpha(Image.fromarray(numpy.linspace(0, 255, width).astype(numpy.uint8)[None].repeat(height, 0)))
    return image


for write in (webps, tiffs, gifs, heifs):
    write()
numpy.savez_compressed(pathlib.Path(sys.argv[1]) / "decoded.npz", **arrays)
