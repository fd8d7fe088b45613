"""Writes a C file that holds the tuning tables as one text: embed.py OUTPUT FILE.txt ...   Comments stay outside."""
import sys


def main():
    output, paths = sys.argv[1], sys.argv[2:]
    with open(output, "w", encoding="utf-8") as c:
        c.write('#include "runtime/tuning.h"\n\nconst char tuning_shipped[] = ""\n')
        for path in paths:
            for line in open(path, encoding="utf-8"):
                line = line.strip()
                if line and not line.startswith("#"):
                    c.write('    "' + line.replace("\\", "\\\\").replace('"', '\\"') + '\\n"\n')
        c.write("    ;\n")


main()
