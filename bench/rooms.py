#!/usr/bin/env python3
"""Draws docs/rooms.svg, the picture of the folders in docs/architecture.md, from the #include lines of the tree.

    bench/rooms.py            writes the picture
    bench/rooms.py --check    writes nothing; status 1 if the picture is not what the tree says

The text of each box is the folder's line in the table of docs/architecture.md. A folder lies above all folders that
it includes. An arrow is drawn only if no longer way of arrows leads there too.
"""
import os
import re
import sys
import textwrap
from xml.sax.saxutils import escape

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
PAGE, PICTURE = (os.path.join(ROOT, name) for name in ("docs/architecture.md", "docs/rooms.svg"))
LINE = re.compile(r"^\| `(\w+)/` \| (.+) \|$", re.M)
INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]', re.M)
# The column of each folder; the lowest one is as wide as the picture.
COLUMNS = {"train": 0, "parallel": 0, "replica": 0, "plan": 0, "layers": 0, "graph": 0, "runtime": 0, "base": 0, "formats": 1,
           "data": 1, "text": 1, "bench": 1, "clkernels": 1, "tools": 2, "models": 2, "onnx": 1, "generate": 1, "examples": 3}
# A folder without includes lies next to this one.
SAME_ROW = {"clkernels": "base"}
# Rows higher than a folder's includes ask for, where their place is another folder's.
HIGHER = {"onnx": 2, "data": 2, "text": 1, "generate": 2}
# Sizes in pixels.
WIDTH, MARGIN, GAP, BOX, HEIGHT, ROW, LETTERS = 720, 10, 25, 156, 72, 94, 20
STYLE = """
    text { font: 12px system-ui, sans-serif; fill: #1f2328 }
    .title { font-size: 15px; font-weight: 600 }
    .name { font-size: 13px; font-weight: 600 }
    .small { fill: #59636e }
    .box { fill: #f6f8fa; stroke: #59636e }
    .linked { fill: #ddf4ff; stroke: #0b6bcb }
    .arrow { fill: none; stroke: #59636e; stroke-width: 1.5 }
    .tip { fill: #59636e }
    .page { fill: #ffffff }
    @media (prefers-color-scheme: dark) {
      text { fill: #f0f6fc } .small { fill: #9198a1 }
      .box { fill: #151b23; stroke: #9198a1 } .linked { fill: #121d2f; stroke: #4493f8 }
      .arrow { stroke: #9198a1 } .tip { fill: #9198a1 } .page { fill: #0d1117 }
    }"""
LEGEND = ("Folders and their includes", (
    "An arrow leads from a folder to one that its files",
    "include. Arrows that follow from others are left out.",
    "Blue: linked into libtutti.so. Programs see tutti.h."))
LIBRARY = ("train", "parallel", "replica", "plan", "layers", "graph", "runtime", "formats", "data", "text", "base", "clkernels", "onnx", "generate")


def read(path):
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8") as file:
        return file.read()


def included(room, rooms):
    """The other folders whose headers the files of `room` include."""
    found = set()
    for folder, _, names in os.walk(os.path.join(ROOT, room)):
        for name in names:
            if name.endswith((".c", ".h", ".cl")):
                found.update(INCLUDE.findall(read(os.path.join(folder, name))))
    targets = {"include" if name == "tutti.h" else name.split("/")[0] for name in found if name == "tutti.h" or "/" in name}
    return targets & set(rooms) - {room}


def reached(room, arrows):
    return {room}.union(*(reached(below, arrows) for below in arrows[room]))


def needed(arrows):
    """Without the arrows to folders that another arrow leads to."""
    return {room: {below for below in targets
                   if not any(below in reached(other, arrows) for other in targets - {below})}
            for room, targets in arrows.items()}


def row_of(room, arrows):
    """Counted from below."""
    if room in SAME_ROW:
        return row_of(SAME_ROW[room], arrows)
    return max((1 + row_of(below, arrows) for below in arrows[room]), default=0) + HIGHER.get(room, 0)


class Box:
    def __init__(self, column, row, rows):
        self.column, self.x, self.width = column, MARGIN + (BOX + GAP) * (column or 0), BOX
        self.y, self.height = MARGIN + ROW * (rows - 1 - row), HEIGHT
        if column is None:
            self.x, self.width, self.height = MARGIN, WIDTH - 2 * MARGIN, 46

    def side(self, name, lane):
        """Where an arrow in this lane of the gap begins or ends."""
        return self.x if name == "left" else self.x + self.width, self.y + 8 + 16 * lane % HEIGHT


def draw_box(room, box, line):
    kind = "box linked" if room in LIBRARY else "box"
    texts = textwrap.wrap(line, LETTERS if box.width == BOX else 120)
    if len(texts) * 15 + 24 > box.height:
        sys.exit(f"rooms.py: the line of {room}/ in docs/architecture.md is too long for its box: '{line}'")
    out = [f'<rect class="{kind}" x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}" rx="4"/>',
           f'<text class="name" x="{box.x + 8}" y="{box.y + 18}">{room}/</text>']
    for i, text in enumerate(texts):
        out.append(f'<text x="{box.x + 8}" y="{box.y + 34 + 15 * i}">{escape(text)}</text>')
    return out


def draw_arrow(points, tip):
    """The tip is the last point; 'down', 'left' or 'right' says where it points."""
    x, y = points[-1]
    back = {"down": ((-4, -8), (4, -8)), "left": ((8, -4), (8, 4)), "right": ((-8, -4), (-8, 4))}[tip]
    line = " ".join(f"{a},{b}" for a, b in points)
    triangle = " ".join(f"{a},{b}" for a, b in ((x, y), *((x + a, y + b) for a, b in back)))
    return [f'<polyline class="arrow" points="{line}"/>', f'<polygon class="tip" points="{triangle}"/>']


def draw_arrows(boxes, arrows):
    out, lanes = [], {}
    for room in boxes:
        for below in sorted(arrows[room], key=lambda name: (boxes[name].y, name)):
            start, end = boxes[room], boxes[below]
            if end.column in (start.column, None):
                x = start.x + start.width // 2
                out += draw_arrow([(x, start.y + start.height), (x, end.y)], "down")
                continue
            if abs(start.column - end.column) != 1:
                sys.exit(f"rooms.py: no way for an arrow from {room}/ to {below}/: change COLUMNS")
            gap = min(start.column, end.column)
            tip = "right" if end.column > start.column else "left"
            lanes[gap] = lanes.get(gap, 0) + 1
            lane = MARGIN + (BOX + GAP) * gap + BOX + 8 * lanes[gap] % GAP
            first = start.side(tip, lanes[gap])
            last = end.side("left" if tip == "right" else "right", lanes[gap])
            out += draw_arrow([first, (lane, first[1]), (lane, last[1]), last], tip)
    return out


def picture():
    lines = {room: line.replace("`", "") for room, line in LINE.findall(read(PAGE))}
    known = {*COLUMNS, "include"}
    if set(lines) != known:
        sys.exit(f"rooms.py: {', '.join(sorted(set(lines) ^ known))}: in the table of docs/architecture.md or in COLUMNS, "
                 "but not in both")
    includes = {room: included(room, lines) for room in lines}
    rows = {room: row_of(room, includes) for room in lines}
    count, arrows = max(rows.values()) + 1, needed(includes)
    boxes = {room: Box(COLUMNS.get(room), rows[room], count) for room in lines}
    height = boxes["include"].y + boxes["include"].height + MARGIN
    summary = " ".join(f"{room}/ ({lines[room]}) includes {', '.join(sorted(below)) or 'no other folder'}."
                       for room, below in includes.items())
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="t d">',
           f'<title id="t">{LEGEND[0]}</title>', f'<desc id="d">{escape(summary)}</desc>', f"<style>{STYLE}\n</style>",
           f'<rect class="page" width="{WIDTH}" height="{height}"/>']
    left = MARGIN + BOX + 2 * GAP
    out.append(f'<text class="title" x="{left}" y="{MARGIN + 18}">{LEGEND[0]}</text>')
    for i, line in enumerate(LEGEND[1]):
        out.append(f'<text class="small" x="{left}" y="{MARGIN + 42 + 18 * i}">{escape(line)}</text>')
    out += draw_arrows(boxes, arrows)
    for room, box in boxes.items():
        out += draw_box(room, box, lines[room])
    return "\n".join(out) + "\n</svg>\n"


def main():
    text = picture()
    if read(PICTURE) == text:
        return
    if sys.argv[1:] == ["--check"]:
        sys.exit("docs/rooms.svg is not what the #include lines and docs/architecture.md say: run bench/rooms.py")
    with open(PICTURE, "w", encoding="utf-8") as file:
        file.write(text)


main()
