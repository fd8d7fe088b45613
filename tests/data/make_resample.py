#!/usr/bin/env python3
"""Writes files/resample.npz: a signal, and what it becomes from one rate to another (from_FROM_TO), by the formulas of
torchaudio.functional.resample with its defaults (sinc_interp_hann, lowpass_filter_width=6, rolloff=0.99), in double
precision.

    make_resample.py FOLDER    needs numpy
"""
import math
import pathlib
import sys

import numpy

RATES = ((16000, 8000), (8000, 16000), (44100, 16000), (16000, 44100), (11025, 48000), (44100, 44099))
WIDTH, ROLLOFF, SAMPLES = 6, 0.99, 250


def kernels(old, new):
    base = min(old, new) * ROLLOFF
    width = math.ceil(WIDTH * old / base)
    places = numpy.arange(-width, width + old)[None, :] / old
    t = numpy.clip((numpy.arange(0, -new, -1)[:, None] / new + places) * base, -WIDTH, WIDTH)
    window = numpy.cos(t * math.pi / WIDTH / 2) ** 2
    return numpy.sinc(t) * window * base / old, width


def resample(signal, old, new):
    divisor = math.gcd(old, new)
    old, new = old // divisor, new // divisor
    length = math.ceil(new * len(signal) / old)
    if new > 1000:  # the filters that the signal needs, not all of them
        base = min(old, new) * ROLLOFF
        t = (numpy.arange(len(signal))[None, :] / old - numpy.arange(length)[:, None] / new) * base
        t = numpy.clip(t, -WIDTH, WIDTH)
        return (numpy.sinc(t) * numpy.cos(t * math.pi / WIDTH / 2) ** 2 * base / old) @ signal
    filters, width = kernels(old, new)
    padded = numpy.pad(signal, (width, width + old))
    starts = range(0, len(padded) - filters.shape[1] + 1, old)
    return numpy.concatenate([filters @ padded[at:at + filters.shape[1]] for at in starts])[:length]


def main():
    random, time = numpy.random.default_rng(1), numpy.arange(SAMPLES)
    signal = 0.5 * numpy.sin(0.002 * time ** 2) + 0.1 * random.standard_normal(SAMPLES)
    signal = signal.astype(numpy.float32)
    arrays = {f"from_{old}_{new}": resample(signal.astype(numpy.float64), old, new).astype(numpy.float32)
              for old, new in RATES}
    numpy.savez_compressed(pathlib.Path(sys.argv[1]) / "resample.npz", signal=signal, **arrays)


main()
