#!/usr/bin/env python3
"""Runs a replay program on a target's inputs: the corpus, and what once did harm.

    replay.py PROGRAM TARGET
"""
import pathlib
import subprocess
import sys
import tarfile
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
program, target = sys.argv[1:]
with tempfile.TemporaryDirectory() as folder:
    with tarfile.open(HERE / "corpus.tar.xz") as archive:
        archive.extractall(folder)
    folders = [f"{folder}/{target}", HERE / "found" / target]
    sys.exit(subprocess.run([program, *(path for path in folders if pathlib.Path(path).is_dir())]).returncode)
