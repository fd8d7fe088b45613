#!/usr/bin/env python3
"""Writes the section OPTIONS of tutti.1 from the recorded help of each command (tests/command/expected).

    manual.py [--check]     --check: only says whether it is as it would be written
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "tools/tutti.1"
HELP = ROOT / "tests/command/expected"
LINE = re.compile(r"^  (--[a-z0-9-]+)( \S+)? +(.*)$")  # option, what it takes, what it does
BROKEN = re.compile(r"\n {29}(?=\S)")  # within what it does
SECTION = re.compile(r"^\.SH OPTIONS\n.*?(?=^\.SH )", re.M | re.S)


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text.startswith((".", "'")) else text


def options():
    """Commands by option, argument and description."""
    found = {}
    for path in sorted(HELP.glob("*.txt")):
        for line in BROKEN.sub(" ", path.read_text()).splitlines():
            match = LINE.match(line)
            if match:
                found.setdefault(match.groups(""), []).append(path.stem)
    return sorted((entry, commands) for entry, commands in found.items() if entry[0] != "--help")


def section():
    lines = [".SH OPTIONS", "In brackets: the commands that take the option."]
    for (option, argument, description), commands in options():
        takes = f" \\fI{roff(argument.strip())}\\fR" if argument else ""
        lines += [".TP", f"\\fB{roff(option)}\\fR{takes} ({', '.join(commands)})", roff(description)]
    return "\n".join(lines) + "\n"


text = PAGE.read_text()
made = SECTION.sub(lambda _: section(), text, count=1)
assert SECTION.search(text), f"{PAGE} has no section OPTIONS"
if sys.argv[1:] == ["--check"]:
    if made != text:
        sys.exit(f"{PAGE} is not what the help texts say: run tools/manual.py")
else:
    PAGE.write_text(made)
