#!/usr/bin/env python3
"""Writes files/mel.npz: a signal, and its log mel spectrogram by the formulas of torchaudio.transforms.MelSpectrogram
(sample_rate=16000, n_fft=512, hop_length=128, n_mels=40, and its defaults: a periodic Hann window, center with
pad_mode="reflect", power=2, mel_scale="htk", norm=None), in double precision.

    make_mel.py FOLDER    needs numpy
"""
import pathlib
import sys

import numpy

RATE, LENGTH, HOP, BANDS, SAMPLES = 16000, 512, 128, 40, 2000


def filters():
    mels = numpy.linspace(0, 2595 * numpy.log10(1 + RATE / 2 / 700), BANDS + 2)
    corners = 700 * (10 ** (mels / 2595) - 1)
    frequencies = numpy.linspace(0, RATE / 2, LENGTH // 2 + 1)
    slopes = corners[None, :] - frequencies[:, None]
    steps = numpy.diff(corners)
    falling, rising = -slopes[:, :-2] / steps[:-1], slopes[:, 2:] / steps[1:]
    return numpy.maximum(0, numpy.minimum(falling, rising))


def spectrogram(signal):
    padded = numpy.pad(signal.astype(numpy.float64), LENGTH // 2, mode="reflect")
    window = 0.5 - 0.5 * numpy.cos(2 * numpy.pi * numpy.arange(LENGTH) / LENGTH)
    frames = [padded[at:at + LENGTH] * window for at in range(0, len(padded) - LENGTH + 1, HOP)]
    power = numpy.abs(numpy.fft.rfft(frames)) ** 2
    return numpy.log(power @ filters() + 1e-6).T


def main():
    random, time = numpy.random.default_rng(1), numpy.arange(SAMPLES) / RATE
    signal = 0.5 * numpy.sin(2 * numpy.pi * (300 + 9000 * time) * time) + 0.05 * random.standard_normal(SAMPLES)
    signal[:300] *= 1e-3
    signal = signal.astype(numpy.float32)
    numpy.savez_compressed(pathlib.Path(sys.argv[1]) / "mel.npz", signal=signal, mel=spectrogram(signal).astype(numpy.float32))


main()
