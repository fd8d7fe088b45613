#!/usr/bin/env python3
"""Writes the tables of docs/operations.md from what `tutti op --json` says.

    operations.py TUTTI [--check]     TUTTI: the command; --check: only says whether the page is as it would be written

A section whose heading is a group of operations has the group's table, and its own text before and after.
"""
import json
import pathlib
import re
import subprocess
import sys

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs/operations.md"
HEAD = "| name | inputs | attributes | result | ONNX |\n|---|---|---|---|---|\n"
SECTION = re.compile(r"(?m)^## (.*)\n")
TABLE = re.compile(r"(?m)^\|.*\n(\|.*\n)*")


def cell(text):
    return text.replace("|", "\\|")


def inputs(operation):
    def one(given):
        text = given["text"] or ""
        return given["name"] + (" ..." if given["repeated"] else "") + (" " if text.startswith("[") else ": " if text else "") + text + \
            (" (optional)" if given["optional"] else "")
    return "; ".join(map(one, operation["inputs"]))


def attribute(given):
    default, choices = given["default"], (given["choices"] or "").split()
    if choices:
        known = ", ".join(f"`{word}`" for word in sorted(choices, key=lambda word: word != default))
    else:
        known = "required" if given["required"] else default
    return f"`{given['name']}`" + (f" ({known})" if known else "") + f": {given['text']}"


def table(operations):
    rows = ((f"`{o['operation']}`", inputs(o), "; ".join(map(attribute, o["attributes"])), o["text"], o["onnx"] or "") for o in operations)
    return HEAD + "".join("| " + " | ".join(map(cell, row)) + " |\n" for row in rows)


def page(text, groups):
    """The text with each group's table: the first one of its section, or after its heading."""
    parts = SECTION.split(text)
    for at in range(1, len(parts), 2):
        if parts[at] in groups:
            made = table(groups.pop(parts[at]))
            parts[at + 1] = TABLE.sub(lambda _: made, parts[at + 1], count=1) if TABLE.search(parts[at + 1]) else f"\n{made}{parts[at + 1]}"
        parts[at] = f"## {parts[at]}\n"
    if groups:
        sys.exit(f"{PAGE} has no section {', '.join(groups)}")
    return "".join(parts)


listed = subprocess.run([sys.argv[1], "op", "--json"], check=True, stdout=subprocess.PIPE, text=True).stdout
groups = {}
for line in listed.splitlines():
    groups.setdefault(json.loads(line)["group"], []).append(json.loads(line))
text = PAGE.read_text()
made = page(text, groups)
if sys.argv[2:] == ["--check"]:
    if made != text:
        sys.exit(f"{PAGE} is not what the operations say: run tools/operations.py")
else:
    PAGE.write_text(made)
