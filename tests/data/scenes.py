#!/usr/bin/env python3
"""Draws photographs-like scenes in ten classes: tests/data/scenes.py FOLDER [--count 2000] [--size 500x375] [--seed 1]
[--classes boat,car,...] [--per-class N] [--format jpg].

FOLDER gets a folder of JPEGs for each class. A scene is an object made of simple shapes before a sky, a ground and other
shapes, with changing colours, sizes, places and angles, then light, blur and noise as of a camera: colours do not tell the
class. The same arguments draw the same scenes. Needs Pillow and NumPy."""
import argparse
import math
import pathlib
import random

import numpy
from PIL import Image, ImageDraw, ImageFilter


class Pen:
    """Draws in the coordinates of an object: x and y from -1 to 1, y upwards, turned, scaled and moved into the picture."""

    def __init__(self, draw, x, y, scale, angle, mirrored):
        self.draw, self.x, self.y, self.scale = draw, x, y, scale
        self.cos, self.sin, self.side = math.cos(angle), math.sin(angle), -1 if mirrored else 1

    def at(self, x, y):
        x *= self.side
        return (self.x + self.scale * (x * self.cos - y * self.sin), self.y - self.scale * (x * self.sin + y * self.cos))

    def polygon(self, points, colour):
        self.draw.polygon([self.at(x, y) for x, y in points], fill=colour)

    def box(self, left, bottom, right, top, colour):
        self.polygon([(left, bottom), (right, bottom), (right, top), (left, top)], colour)

    def ellipse(self, x, y, width, height, colour, begin=0.0, end=1.0):
        turns = [2 * math.pi * (begin + (end - begin) * i / 40) for i in range(41)]
        self.polygon([(x + width * math.cos(t), y + height * math.sin(t)) for t in turns], colour)


def colour(random_, low=30, high=225):
    return tuple(random_.randint(low, high) for _ in range(3))


def boat(pen, r):
    pen.polygon([(-0.9, -0.2), (0.9, -0.2), (0.6, -0.7), (-0.6, -0.7)], colour(r))
    pen.box(-0.05, -0.2, 0.03, 0.9, colour(r, 20, 110))
    pen.polygon([(0.06, 0.85), (0.06, -0.1), (r.uniform(0.5, 0.8), -0.1)], colour(r, 120, 250))


def car(pen, r):
    body = colour(r)
    pen.box(-0.95, -0.35, 0.95, 0.1, body)
    pen.polygon([(-0.55, 0.1), (0.5, 0.1), (0.3, r.uniform(0.4, 0.55)), (-0.4, 0.5)], colour(r))
    for x in (-0.55, 0.55):
        pen.ellipse(x, -0.4, 0.22, 0.22, (25, 25, 25))
        pen.ellipse(x, -0.4, 0.1, 0.1, colour(r, 120, 220))


def house(pen, r):
    pen.box(-0.65, -0.8, 0.65, 0.2, colour(r))
    pen.polygon([(-0.8, 0.2), (0.8, 0.2), (0, r.uniform(0.7, 0.95))], colour(r))
    pen.box(-0.12, -0.8, 0.15, -0.25, colour(r, 20, 120))
    for x in (-0.5, 0.28):
        pen.box(x, -0.3, x + 0.22, 0.0, colour(r, 150, 250))


def tree(pen, r):
    pen.box(-0.1, -0.95, 0.1, -0.1, colour(r, 20, 130))
    crown = colour(r)
    for _ in range(9):
        pen.ellipse(r.uniform(-0.35, 0.35), r.uniform(0.0, 0.5), r.uniform(0.25, 0.4), r.uniform(0.25, 0.4), crown)


def fish(pen, r):
    body = colour(r)
    pen.ellipse(-0.1, 0, 0.65, r.uniform(0.28, 0.4), body)
    pen.polygon([(0.4, 0), (0.95, 0.4), (0.95, -0.4)], body)
    pen.ellipse(-0.5, 0.08, 0.07, 0.07, (245, 245, 245))
    pen.ellipse(-0.5, 0.08, 0.03, 0.03, (10, 10, 10))


def flower(pen, r):
    pen.box(-0.04, -0.95, 0.04, 0.1, colour(r, 20, 140))
    petals, of = colour(r, 90, 250), r.randint(5, 7)
    for i in range(of):
        t = 2 * math.pi * i / of
        pen.ellipse(0.36 * math.cos(t), 0.35 + 0.36 * math.sin(t), 0.24, 0.24, petals)
    pen.ellipse(0, 0.35, 0.2, 0.2, colour(r))


def tower(pen, r):
    wall = colour(r)
    pen.box(-0.35, -0.9, 0.35, 0.55, wall)
    for i in range(3):
        pen.box(-0.45 + 0.35 * i, 0.55, -0.25 + 0.35 * i, 0.85, wall)
    for y in (-0.3, 0.15):
        pen.box(-0.08, y, 0.08, y + 0.25, colour(r, 10, 80))


def balloon(pen, r):
    envelope = colour(r)
    pen.ellipse(0, 0.35, 0.55, 0.6, envelope)
    pen.ellipse(0, 0.35, 0.2, 0.6, colour(r))
    for x in (-0.35, 0.33):
        pen.polygon([(x, -0.1), (x + 0.03, -0.1), (x * 0.4 + 0.02, -0.7), (x * 0.4, -0.7)], (40, 40, 40))
    pen.box(-0.17, -0.95, 0.17, -0.68, colour(r, 20, 140))


def cup(pen, r):
    body = colour(r)
    pen.polygon([(-0.5, 0.5), (0.4, 0.5), (0.3, -0.7), (-0.4, -0.7)], body)
    pen.ellipse(0.5, 0.0, 0.32, 0.36, body)
    pen.ellipse(0.5, 0.0, 0.17, 0.2, colour(r))
    pen.polygon([(-0.5, 0.5), (0.4, 0.5), (0.3, -0.7), (-0.4, -0.7)], body)
    pen.ellipse(-0.05, 0.5, 0.45, 0.1, colour(r, 20, 110))


def face(pen, r):
    skin = colour(r, 70, 240)
    pen.ellipse(0, 0, 0.7, 0.85, skin)
    for x in (-0.28, 0.28):
        pen.ellipse(x, 0.2, 0.14, 0.1, (245, 245, 245))
        pen.ellipse(x, 0.2, 0.06, 0.06, (15, 15, 15))
    pen.polygon([(-0.06, -0.15), (0.06, -0.15), (0, 0.1)], tuple(c * 2 // 3 for c in skin))
    pen.ellipse(0, -0.42, 0.3, r.uniform(0.06, 0.14), colour(r, 20, 140))


OBJECTS = {f.__name__: f for f in (balloon, boat, car, cup, face, fish, flower, house, tower, tree)}


def background(draw, width, height, r):
    """A sky, a ground, and shapes that mean nothing."""
    sky, ground, horizon = colour(r, 60, 240), colour(r), r.uniform(0.35, 0.8) * height
    draw.rectangle([0, 0, width, height], fill=sky)
    draw.rectangle([0, horizon, width, height], fill=ground)
    for _ in range(r.randint(2, 6)):
        x, y, a, b = (r.uniform(0, width), r.uniform(0, height), r.uniform(10, width / 6), r.uniform(10, height / 6))
        shape = r.choice(("ellipse", "box", "triangle", "line"))
        if shape == "ellipse":
            draw.ellipse([x - a, y - b, x + a, y + b], fill=colour(r))
        elif shape == "box":
            draw.rectangle([x - a, y - b, x + a, y + b], fill=colour(r))
        elif shape == "triangle":
            draw.polygon([(x, y - b), (x - a, y + b), (x + a, y + b)], fill=colour(r))
        else:
            draw.line([x - 2 * a, y, x + 2 * a, y + b], fill=colour(r), width=r.randint(2, 8))


def camera(image, r):
    """Light that falls from a side, blur, and the noise of a sensor."""
    image = image.filter(ImageFilter.GaussianBlur(r.uniform(0.3, 1.8)))
    noise = numpy.random.Generator(numpy.random.PCG64(r.getrandbits(63)))
    pixels = numpy.asarray(image, numpy.float32)
    height, width = pixels.shape[:2]
    turn = r.uniform(0, 2 * math.pi)
    y, x = numpy.mgrid[0:height, 0:width].astype(numpy.float32)
    slope = (x / width - 0.5) * math.cos(turn) + (y / height - 0.5) * math.sin(turn)
    light = r.uniform(0.7, 1.2) * (1 + r.uniform(0.0, 0.6) * slope)
    pixels = pixels * light[:, :, None] + noise.normal(0, r.uniform(2, 12), pixels.shape).astype(numpy.float32)
    return Image.fromarray(pixels.clip(0, 255).astype(numpy.uint8))


def scene(name, number, seed, width, height):
    r = random.Random(f"{seed} {name} {number}")
    image = Image.new("RGB", (width, height))
    draw = ImageDraw.Draw(image)
    background(draw, width, height, r)
    scale = height * r.uniform(0.22, 0.38)
    pen = Pen(draw, width * r.uniform(0.3, 0.7), height * r.uniform(0.38, 0.62), scale, r.gauss(0, 0.12), r.random() < 0.5)
    OBJECTS[name](pen, r)
    return camera(image, r)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=2000, help="scenes of all classes together")
    parser.add_argument("--per-class", type=int, help="scenes of each class, instead of --count")
    parser.add_argument("--first", type=int, default=0, help="number of a class's first scene: others draw other scenes")
    parser.add_argument("--size", default="500x375", help="width x height")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--classes", default=",".join(OBJECTS))
    parser.add_argument("--format", choices=("jpg", "png", "ppm"), default="jpg")
    options = parser.parse_args()
    names = options.classes.split(",")
    unknown = [name for name in names if name not in OBJECTS]
    if unknown:
        parser.error(f"no such class: {', '.join(unknown)}; there are {', '.join(OBJECTS)}")
    width, height = (int(part) for part in options.size.split("x"))
    each = options.per_class or options.count // len(names)
    for name in names:
        (options.folder / name).mkdir(parents=True, exist_ok=True)
        for number in range(options.first, options.first + each):
            image = scene(name, number, options.seed, width, height)
            image.save(options.folder / name / f"{number:05d}.{options.format}", **({"quality": 90} if options.format == "jpg" else {}))
    print(f"{each * len(names)} scenes in {len(names)} classes")


if __name__ == "__main__":
    main()
