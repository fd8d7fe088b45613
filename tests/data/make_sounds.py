#!/usr/bin/env python3
"""Writes sounds.npz, which test_sounds.c reads: file/NAME has the bytes of a recording, samples/NAME the mean of its channels as
libsndfile decodes it.

    make_sounds.py FOLDER    needs numpy and soundfile
"""
import io
import pathlib
import sys

import numpy
import soundfile

RATE = 8000
arrays = {}
time = numpy.arange(RATE // 10) / RATE
left = 0.5 * numpy.sin(2 * numpy.pi * 440 * time) * numpy.linspace(0.2, 1, len(time))
stereo = numpy.stack([left, 0.25 * numpy.sin(2 * numpy.pi * 700 * time)], 1)
for name, samples, kind, coding in (
        ("a.flac", left, "FLAC", "PCM_16"), ("stereo.flac", stereo, "FLAC", "PCM_24"), ("lossy.ogg", left, "OGG", "VORBIS"),
        ("lossy.opus", stereo, "OGG", "OPUS"), ("lossy.mp3", left, "MP3", "MPEG_LAYER_III"), ("a.aiff", stereo, "AIFF", "PCM_16"),
        ("a.aifc", left, "AIFF", "ALAW"), ("a.au", left, "AU", "ULAW"), ("b.au", left, "AU", "ALAW"), ("a.caf", left, "CAF", "PCM_16"),
        ("mulaw.wav", stereo, "WAV", "ULAW"), ("alaw.wav", left, "WAV", "ALAW")):
    file = io.BytesIO()
    soundfile.write(file, samples, RATE, format=kind, subtype=coding)
    arrays["file/" + name] = numpy.frombuffer(file.getvalue(), numpy.uint8)
    file.seek(0)
    decoded, rate = soundfile.read(file, always_2d=True)
    assert rate == RATE
    arrays["samples/" + name] = decoded.mean(1).astype(numpy.float32)
numpy.savez_compressed(pathlib.Path(sys.argv[1]) / "sounds.npz", **arrays)
