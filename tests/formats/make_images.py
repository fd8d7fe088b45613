#!/usr/bin/env python3
"""Writes images.npz, which test_image.c reads: file/NAME has the bytes of a picture file, rgb/NAME its pixels.

    make_images.py FOLDER    needs numpy and Pillow

The pixels are Pillow's, but for files that Pillow reads otherwise: 16 bits, which it cuts or clips.
"""
import pathlib
import struct
import sys
import zlib

import numpy
from PIL import Image

from scene import HEIGHT, WIDTH, arrays, keep, saved, scene


def exif(order, orientation):
    """APP1's content with a directory of two entries."""
    entry = struct.Struct(order + "HHIHH")
    return (b"Exif\0\0" + (b"II" if order == "<" else b"MM") + struct.pack(order + "HIH", 42, 8, 2) +
            entry.pack(0x0100, 3, 1, 21, 0) + entry.pack(0x0112, 3, 1, orientation, 0) + struct.pack(order + "I", 0))


def jpegs():
    image = scene()
    for sampling, name in enumerate(["444", "422", "420"]):
        keep(f"{name}.jpg", saved(image, "jpeg", quality=92, subsampling=sampling))
    keep("grey.jpg", saved(image.convert("L"), "jpeg"))
    keep("progressive.jpg", saved(image, "jpeg", progressive=True))
    keep("restart.jpg", saved(image, "jpeg", restart_marker_blocks=1))
    keep("rgb.jpg", saved(image, "jpeg", keep_rgb=True, quality=95))
    keep("cmyk.jpg", saved(image.convert("CMYK"), "jpeg", quality=95))
    for orientation in range(1, 9):
        keep(f"turned{orientation}.jpg", saved(image, "jpeg", exif=exif("<>"[orientation % 2], orientation)))
    keep("large.jpg", saved(scene(83, 50), "jpeg", quality=85))


def pngs():
    image = scene()
    alpha = Image.fromarray(numpy.linspace(0, 255, WIDTH * HEIGHT).reshape(HEIGHT, WIDTH).astype(numpy.uint8))
    keep("rgb.png", saved(image, "png"))
    keep("grey.png", saved(image.convert("L"), "png"))
    keep("bits.png", saved(image.convert("1"), "png"))
    for bits in (2, 4, 8):
        keep(f"palette{bits}.png", saved(image.quantize(1 << min(bits, 6)), "png", bits=bits))
    keep("transparent.png", saved(image.quantize(16), "png", transparency=3))
    keep("key.png", saved(image, "png", transparency=image.getpixel((3, 2))))
    keep("turned.png", saved(image, "png", exif=exif(">", 6)[6:]))
    image.putalpha(alpha)
    keep("alpha.png", saved(image, "png"))
    keep("grey_alpha.png", saved(image.convert("LA"), "png"))
    deep()


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, depth, colour, interlaced, rows):
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlaced)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def deep():
    """16 bits, plain and interlaced: Pillow writes neither."""
    random = numpy.random.default_rng(1)
    deep = random.integers(0, 65536, (HEIGHT, WIDTH, 3), numpy.uint16)
    rgb = (deep / 257).round().astype(numpy.uint8)
    data = deep.astype(">u2")
    keep("deep.png", png(WIDTH, HEIGHT, 16, 2, 0, b"".join(b"\0" + row.tobytes() for row in data)), rgb)
    keep("deep_grey.png", png(WIDTH, HEIGHT, 16, 0, 0, b"".join(b"\0" + row.tobytes() for row in data[..., 0])),
         rgb[..., :1].repeat(3, 2))
    passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    for name, pixels, depth in (("interlaced.png", numpy.asarray(scene()), 8), ("deep_interlaced.png", data, 16)):
        rows = [b"\0" + row.tobytes() for x, y, dx, dy in passes for row in pixels[y::dy, x::dx] if row.size]
        keep(name, png(WIDTH, HEIGHT, depth, 2, 1, b"".join(rows)), rgb if depth == 16 else pixels)


def bmp(bits, header, rows, top_down=False, table=b"", masks=b"", compression=0):
    size = 40 if header == 12 else header
    height = -HEIGHT if top_down else HEIGHT
    info = (struct.pack("<IHHHH", 12, WIDTH, HEIGHT, 1, bits) if header == 12 else
            struct.pack("<IiiHHIIiiII", size, WIDTH, height, 1, bits, compression, 0, 0, 0, len(table) // 4, 0) + masks)
    info += bytes(header - len(info)) if header > 40 else b""
    rows = [row + bytes(-len(row) % 4) for row in rows]
    data = b"".join(rows if top_down else rows[::-1])
    begin = 14 + len(info) + len(table)
    return b"BM" + struct.pack("<IHHI", begin + len(data), 0, 0, begin) + info + table + data


def bmps():
    image = scene()
    pixels = numpy.asarray(image)
    for mode, name in (("1", "1"), ("P", "8"), ("RGB", "24")):
        keep(f"{name}.bmp", saved(image.convert(mode), "bmp"))
    keep("grey.bmp", saved(image.convert("L"), "bmp"))
    bgr, filler = pixels[..., ::-1], numpy.full((HEIGHT, WIDTH, 1), 77, numpy.uint8)
    rgba = numpy.concatenate([pixels, filler], -1)
    keep("top_down.bmp", bmp(24, 40, [row.tobytes() for row in bgr], top_down=True), pixels)
    keep("core.bmp", bmp(24, 12, [row.tobytes() for row in bgr]), pixels)
    keep("32.bmp", bmp(32, 40, [row.tobytes() for row in numpy.concatenate([bgr, filler], -1)]), pixels)
    masks = struct.pack("<III", 0xff, 0xff00, 0xff0000)
    keep("masks.bmp", bmp(32, 40, [row.tobytes() for row in rgba], masks=masks, compression=3), pixels)
    masks += struct.pack("<I", 0xff000000)
    keep("alpha.bmp", bmp(32, 108, [row.tobytes() for row in rgba], masks=masks, compression=3),
         Image.alpha_composite(Image.new("RGBA", image.size, "white"), Image.fromarray(rgba)).convert("RGB"))
    small = image.quantize(16)
    table = b"".join(bytes([b, g, r, 0]) for r, g, b in zip(*[iter(small.getpalette()[:48])] * 3))
    codes = numpy.pad(numpy.asarray(small), ((0, 0), (0, WIDTH % 2)))
    codes = codes[:, ::2] << 4 | codes[:, 1::2]
    keep("4.bmp", bmp(4, 40, [row.tobytes() for row in codes], table=table), small.convert("RGB"))


def pnms():
    image = scene()
    random = numpy.random.default_rng(2)
    keep("binary.ppm", saved(image, "ppm"))
    keep("binary.pgm", saved(image.convert("L"), "ppm"))
    keep("binary.pbm", saved(image.convert("1"), "ppm"))
    head = f"# made\n{WIDTH} # wide\n{HEIGHT}\n"
    for name, kind, channels, most in (("plain.ppm", 3, 3, 255), ("plain.pgm", 2, 1, 31), ("deep.ppm", 6, 3, 65535),
                                       ("deep.pgm", 5, 1, 1000)):
        values = random.integers(0, most + 1, (HEIGHT, WIDTH, channels))
        body = (" ".join(map(str, values.ravel())).encode() if kind <= 3 else values.astype(">u2").tobytes())
        keep(name, f"P{kind}\n{head}{most}\n".encode() + body,
             ((values * 255 + most // 2) // most).astype(numpy.uint8).repeat(3 // channels, 2))
    bits = random.integers(0, 2, (HEIGHT, WIDTH))
    keep("plain.pbm", f"P1\n{head}".encode() + "".join(map(str, bits.ravel())).encode(),
         (255 * (1 - bits)).astype(numpy.uint8)[..., None].repeat(3, 2))


for write in (jpegs, pngs, bmps, pnms):
    write()
for name in ("420.jpg", "rgb.png"):
    arrays["grey/" + name] = numpy.asarray(Image.fromarray(arrays["rgb/" + name]).convert("L"))
numpy.savez_compressed(pathlib.Path(sys.argv[1]) / "images.npz", **arrays)
