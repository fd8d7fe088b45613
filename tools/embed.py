"""Writes a C file that holds texts, `report.html` as embedded_report[]: embed.py OUTPUT FILE ...   Indents and comments
stay outside."""
import pathlib
import sys


def main():
    output, paths = sys.argv[1], sys.argv[2:]
    with open(output, "w", encoding="utf-8") as c:
        c.write('#include "tools/page.h"\n')
        for path in map(pathlib.Path, paths):
            c.write(f'\nconst char embedded_{path.stem}[] = ""\n')
            for line in map(str.strip, path.read_text(encoding="utf-8").splitlines()):
                if not line.startswith("/*"):
                    c.write('    "' + line.replace("\\", "\\\\").replace('"', '\\"') + '\\n"\n')
            c.write("    ;\n")


main()
