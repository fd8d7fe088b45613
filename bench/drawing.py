"""Smoothed losses, and pictures of them: for curves.py and language.py."""
import pathlib

import numpy

SMOOTHING = 20
WIDTHS = (5, 2.5, 1, 1)


def smooth(losses):
    """Exponential mean, without the pull of the beginning."""
    smoothed, total, weight = [], 0.0, 0.0
    for loss in losses:
        total = total * (1 - 1 / SMOOTHING) + loss / SMOOTHING
        weight = weight * (1 - 1 / SMOOTHING) + 1 / SMOOTHING
        smoothed.append(total / weight)
    return numpy.array(smoothed)


def powers(smoothed):
    low = numpy.floor(numpy.log10(min(losses.min() for losses in smoothed.values())))
    high = numpy.ceil(numpy.log10(max(losses.max() for losses in smoothed.values())))
    return [10.0 ** power for power in range(int(low), int(high) + 1)]


def panel(name, smoothed, left, colours, marks=None):
    """One network's curves as SVG: the step across, the smoothed loss upwards, evenly from the first of the marks to the last one, or
    in powers of ten."""
    width, height, top = 400, 220, 40
    scale, marks = (float, marks) if marks else (numpy.log10, powers(smoothed))
    low, high = scale(marks[0]), scale(marks[-1])
    steps = max(map(len, smoothed.values()))

    def x(step):
        return left + width * step / steps

    def y(loss):
        return top + height * (high - scale(loss)) / (high - low)
    parts = [f'<text x="{left}" y="{top - 12}" font-weight="bold">{name}</text>']
    for mark in marks:
        parts.append(f'<path d="M{left} {y(mark):.1f}h{width}" stroke="#ddd"/>'
                     f'<text x="{left - 6}" y="{y(mark) + 4:.1f}" text-anchor="end">{mark:g}</text>')
    parts.append(f'<text x="{left + width}" y="{top + height + 18}" text-anchor="end">{steps} steps</text>')
    for (label, losses), size in zip(smoothed.items(), WIDTHS):
        points = range(0, len(losses), max(1, steps // 240))
        path = " ".join(f"{x(step):.1f},{y(losses[step]):.1f}" for step in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colours[label]}" stroke-width="{size}"/>')
    return "\n".join(parts)


def draw(path, curves, colours, marks=None):
    lefts = [50 + 480 * i for i in range(len(curves))]
    parts = [panel(name, smoothed, left, colours, marks) for (name, smoothed), left in zip(curves.items(), lefts)]
    for i, (label, colour) in enumerate(colours.items()):
        parts.append(f'<path d="M{50 + 190 * i} 300h24" stroke="{colour}" stroke-width="{WIDTHS[i]}"/>'
                     f'<text x="{80 + 190 * i}" y="304">{label}</text>')
    body = "\n".join(parts)
    pathlib.Path(path).write_text(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {max(480 * len(curves), 50 + 190 * len(colours))} 320" '
                                  f'font-family="sans-serif" font-size="12">\n<rect width="100%" height="100%" fill="white"/>\n'
                                  f"{body}\n</svg>\n")
