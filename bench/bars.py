#!/usr/bin/env python3
"""Writes the table of speed in README.md and its picture, docs/speed.svg, from docs/speed.json.

    bench/bars.py            writes both
    bench/bars.py --check    writes nothing; status 1 if one of them is not what the file says

docs/speed.json holds one run of bench/compare on one machine: its date, version, command and times; and one with bfloat16 on such
a machine, of which the table has the speed-ups.
"""
import json
import os
import sys
from xml.sax.saxutils import escape

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
DATA, PICTURE, PAGE = (os.path.join(ROOT, name) for name in ("docs/speed.json", "docs/speed.svg", "README.md"))
BEGIN, END = "<!-- bench/bars.py writes from here -->\n", "<!-- bench/bars.py writes to here -->"
# Sizes in pixels. A bar's length is its speed-up.
WIDTH, LABELS, RIGHT, TOP, ROW, BAR = 760, 220, 60, 64, 28, 18
STYLE = """
    text { font: 13px system-ui, sans-serif; fill: #1f2328 }
    .title { font-size: 15px; font-weight: 600 }
    .small { font-size: 11px; fill: #59636e }
    .train { fill: #0b6bcb } .infer { fill: #1a7f37 }
    .line { stroke: #59636e; stroke-dasharray: 3 3 }
    .page { fill: #ffffff }
    @media (prefers-color-scheme: dark) {
      text { fill: #f0f6fc } .small { fill: #9198a1 }
      .train { fill: #4493f8 } .infer { fill: #3fb950 } .line { stroke: #9198a1 } .page { fill: #0d1117 }
    }"""


def speedups(row):
    """By the shortest step and by the median."""
    peer, peer_median, ours, ours_median = map(float, row[3:])
    return peer / ours, peer_median / ours_median


def label(row):
    return f"{row[0]} {row[1]}, batch {row[2]}"


def table(data):
    lines = ["| network, batch | peer, ms | Tutti, ms | speed-up | `bf16` |\n", "|---|--:|--:|--:|--:|\n"]
    bf16 = {tuple(row[:3]): "{:.2f} / {:.2f}".format(*speedups(row)) for row in data["bf16"]["rows"]}
    for row in data["rows"]:
        least, median = speedups(row)
        lines.append(f"| {row[0]} `{row[1]}`, {row[2]} | {row[3]} / {row[4]} | {row[5]} / {row[6]} | {least:.2f} / {median:.2f} | "
                     f"{bf16.get(tuple(row[:3]), '')} |\n")
    return "".join(lines)


def picture(data):
    rows = data["rows"]
    most = max(max(speedups(row)) for row in rows)
    scale = (WIDTH - LABELS - RIGHT) / most
    height = TOP + ROW * len(rows) + 34
    one = LABELS + scale
    summary = "; ".join(f"{label(row)}: {speedups(row)[1]:.2f}" for row in rows)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="t d">',
           f'<title id="t">Speed-up of Tutti over its fastest peer</title>', f'<desc id="d">{escape(summary)}</desc>',
           f"<style>{STYLE}\n</style>",
           f'<rect class="page" width="{WIDTH}" height="{height}"/>',
           '<text class="title" x="12" y="24">Speed-up over the fastest peer (median of steps; longer is better)</text>',
           f'<text class="small" x="12" y="44">{escape(data["machine"])}; {data["date"]}</text>']
    for i, row in enumerate(rows):
        y, median = TOP + ROW * i, speedups(row)[1]
        out.append(f'<text x="{LABELS - 10}" y="{y + 14}" text-anchor="end">{escape(label(row))}</text>')
        out.append(f'<rect class="{row[0]}" x="{LABELS}" y="{y}" width="{median * scale:.1f}" height="{BAR}" rx="2"/>')
        out.append(f'<text x="{LABELS + median * scale + 6:.1f}" y="{y + 14}">{median:.2f}</text>')
    bottom = TOP + ROW * len(rows)
    out.append(f'<line class="line" x1="{one:.1f}" x2="{one:.1f}" y1="{TOP - 6}" y2="{bottom}"/>')
    out.append(f'<text class="small" x="{one:.1f}" y="{bottom + 16}" text-anchor="middle">1.00: as fast as the peer</text>')
    return "\n".join(out) + "\n</svg>\n"


def read(path):
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8") as file:
        return file.read()


def main():
    data = json.loads(read(DATA))
    page = read(PAGE)
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        sys.exit(f"bars.py: README.md lacks the lines '{BEGIN.strip()}' and '{END}'")
    before, rest = page.split(BEGIN)
    wanted = {PICTURE: picture(data), PAGE: before + BEGIN + table(data) + END + rest.split(END)[1]}
    wrong = [path for path, text in wanted.items() if read(path) != text]
    if sys.argv[1:] == ["--check"]:
        for path in wrong:
            print(f"{os.path.relpath(path, ROOT)} is not what docs/speed.json says: run bench/bars.py")
        sys.exit(1 if wrong else 0)
    for path in wrong:
        with open(path, "w", encoding="utf-8") as file:
            file.write(wanted[path])


main()
