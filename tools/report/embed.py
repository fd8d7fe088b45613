"""Writes a C file that holds texts, `report.html` as embedded_report[]: embed.py OUTPUT FILE ...   Indents and comments
stay outside; {{>FILE}} is replaced by the file; sections ({{#name}} ... {{/name}}) must be closed."""
import pathlib
import re
import sys


def lines_of(path):
    for line in map(str.strip, path.read_text(encoding="utf-8").splitlines()):
        found = re.fullmatch(r"\{\{>(.+)\}\}", line)
        if found:
            yield from lines_of(path.with_name(found[1]))
        elif line and not line.startswith("/*"):
            yield line


def check(path, lines):
    sections = []
    for kind, name in re.findall(r"\{\{([#^/])(.*?)\}\}", "\n".join(lines)):
        if kind != "/":
            sections.append(name)
        elif not sections or sections.pop() != name:
            sys.exit(f"{path}: {{{{/{name}}}}} closes another section")
    if sections:
        sys.exit(f"{path}: {{{{#{sections[-1]}}}}} is not closed")


def main():
    output, paths = sys.argv[1], sys.argv[2:]
    with open(output, "w", encoding="utf-8") as c:
        c.write('#include "tools/report/page.h"\n')
        for path in map(pathlib.Path, paths):
            lines = list(lines_of(path))
            check(path, lines)
            c.write(f'\nconst char embedded_{path.stem}[] = ""\n')
            for line in lines:
                c.write('    "' + line.replace("\\", "\\\\").replace('"', '\\"') + '\\n"\n')
            c.write("    ;\n")


main()
