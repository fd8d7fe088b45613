"""Writes small pictures with Python's library only, for tests and examples of data of one's own."""
import pathlib
import random
import struct
import zlib


def ppm(path, width, height, pixels):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"P6\n%d %d\n255\n" % (width, height) + bytes(pixels))


def png(path, width, height, values, channels=1):
    """Grey or coloured, 8 bits."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + bytes(values[row * width * channels:(row + 1) * width * channels]) for row in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 0, 0, 0, 0)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


COLOURS = {"blue": (40, 40, 200), "green": (40, 200, 40), "red": (200, 40, 40)}


def noise(dice, width, height, colour, amount=40):
    return [min(255, max(0, value + dice.randint(-amount, amount))) for _ in range(width * height) for value in colour]


def write_classes(folder, count, names=tuple(COLOURS), seed=1, lossless=ppm):
    """A folder for each colour, with `count` pictures of sizes around 20 x 20."""
    dice = random.Random(seed)
    for name in names:
        for i in range(count):
            width, height = dice.randint(16, 24), dice.randint(16, 24)
            lossless(pathlib.Path(folder) / name / f"{i:03}.ppm", width, height, noise(dice, width, height, COLOURS[name]))


def write_masks(folder, count, side=32, value=255, seed=1):
    """Bright squares on noise, and where they are."""
    dice = random.Random(seed)
    for i in range(count):
        size, left, top = dice.randint(8, 16), dice.randint(0, 15), dice.randint(0, 15)
        inside = [left <= x < left + size and top <= y < top + size for y in range(side) for x in range(side)]
        pixels = [min(255, (150 if is_in else 20) + dice.randint(0, 60)) for is_in in inside for _ in range(3)]
        png(pathlib.Path(folder) / "images" / f"{i}.png", side, side, pixels, 3)
        png(pathlib.Path(folder) / "masks" / f"{i}.png", side, side, [value * is_in for is_in in inside])
