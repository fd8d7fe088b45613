#!/usr/bin/env python3
"""Writes the linker's version script: each public function with the release that brought it, and nothing else.

    symbols.py OUTPUT INTERFACE SYMBOLS     INTERFACE: tutti.json; SYMBOLS: include/symbols.txt
    symbols.py --digest SYMBOLS             prints the digest of the last release

SYMBOLS has a line for each release, "TUTTI_0.2 open", and after it a line for each function that is new in it, sorted. With a
release, its digest takes the place of "open": from then on, none of its functions may go, be added or be renamed.
"""
import hashlib
import json
import pathlib
import re
import sys


def releases(text):
    """[(node, state, names)]"""
    found = []
    for line in text.split("\n"):
        if re.fullmatch(r"TUTTI_\d+\.\d+ (open|[0-9a-f]{16})", line):
            found.append((*line.split(), []))
        elif re.fullmatch(r"tutti_\w+", line) and found:
            found[-1][2].append(line)
        elif line:
            raise ValueError(f"what is '{line}'?")
    return found


def digest(names):
    return hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]


def faults(found, functions):
    listed = [name for _, _, names in found for name in names]
    for node, state, names in found:
        if names != sorted(names): yield f"{node}: its functions are not sorted"
        if state == "open" and node != found[-1][0]: yield f"{node}: only the last release may be open"
        if state != "open" and state != digest(names): yield f"{node} was released: its functions must stay as they were"
    yield from (f"{name} stands twice" for name in sorted(set(listed)) if listed.count(name) > 1)
    yield from (f"{name} is public: add it to the open release" for name in sorted(functions - set(listed)))
    yield from (f"{name} is no longer in the headers" for name in sorted(set(listed) - functions))


def script(found):
    before = ""
    for i, (node, _, names) in enumerate(found):
        functions = "".join(f"        {name};\n" for name in names)
        yield f"{node} {{\n    global:\n{functions}" + ("    local: *;\n" if i == 0 else "") + f"}}{before};\n"
        before = " " + node


def main():
    found = releases(pathlib.Path(sys.argv[-1]).read_text())
    if sys.argv[1] == "--digest":
        return print(digest(found[-1][2]))
    functions = {function["name"] for function in json.loads(pathlib.Path(sys.argv[2]).read_text())["functions"]}
    wrong = list(faults(found, functions))
    if wrong: sys.exit("\n".join(f"{sys.argv[3]}: {fault}" for fault in wrong))
    pathlib.Path(sys.argv[1]).write_text("".join(script(found)))


if __name__ == "__main__":
    main()
