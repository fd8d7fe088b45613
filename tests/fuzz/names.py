#!/usr/bin/env python3
"""Writes what mutate.c puts into ONNX files, as a C header: the operators of operators.c in the folder, and the words of
the importer's other files, which are the names and texts of attributes, and some more.

    names.py FOLDER HEADER
"""
import pathlib
import re
import sys


def array(name, texts):
    return f"static const char *const {name}[] = {{\n" + "".join(f'    "{text}",\n' for text in texts) + "};\n"


files = {path.name: path.read_text(encoding="utf-8") for path in pathlib.Path(sys.argv[1]).rglob("*.c")}
operators = re.findall(r'^    \{ "(\w+)",', files.pop("operators.c"), re.M)
importer = "".join(text for name, text in files.items() if not name.startswith("export"))
words = sorted(set(re.findall(r'"([A-Za-z_]{1,40})"', importer)) - set(operators))
pathlib.Path(sys.argv[2]).write_text(array("operators", operators) + array("words", words), encoding="utf-8")
