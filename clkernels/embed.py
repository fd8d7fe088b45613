"""Writes a C file that holds OpenCL texts: embed.py OUTPUT FILE.cl ...   `#include "x.h"` and `"arguments/x.h"` are
replaced; builtins.h stands before each text."""
import os
import re
import sys

# The headers that kernels of all families share.
SHARED = os.path.dirname(os.path.abspath(__file__))


def text_of(path):
    lines = []
    for line in open(path, encoding="utf-8"):
        found = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
        if not found:
            lines.append(line.rstrip("\n"))
            continue
        header = os.path.join(os.path.dirname(path), found.group(1))
        if not os.path.exists(header):
            header = os.path.join(SHARED, found.group(1))
        lines.append(text_of(header))   # templates are included more than once on purpose
    return "\n".join(lines)


def looks_at(text, macro):
    return bool(re.search(rf"\b{macro}\b", re.sub(r"/\*.*?\*/", "", text, flags=re.S)))


def main():
    output, paths = sys.argv[1], sys.argv[2:]
    with open(output, "w", encoding="utf-8") as c:
        c.write('#include "runtime/kernels_text.h"\n\n')
        entries = []
        for path in paths:
            name = os.path.splitext(os.path.basename(path))[0]
            text = text_of(path)
            entries.append((name, looks_at(text, "V"), looks_at(text, "TUTTI_GPU"), looks_at(text, "SHUFFLE")))
            builtins = text_of(os.path.join(SHARED, "builtins.h"))
            data = f"{builtins}\n#line 1\n{text}\n\0".encode("utf-8")
            c.write(f"static const char text_{name}[] = {{\n")
            for at in range(0, len(data), 32):
                c.write("    " + ", ".join(str(b) for b in data[at:at + 32]) + ",\n")
            c.write("};\n\n")
        c.write("const struct kernel_text kernel_texts[] = {\n")
        for name, width, device_class, shuffle in entries:
            c.write(f'    {{ "{name}", text_{name}, {width:d}, {device_class:d}, {shuffle:d}, 0 }},\n')
        c.write("    { 0, 0, 0, 0, 0, 0 },\n};\n")


main()
