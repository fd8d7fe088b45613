#!/usr/bin/env python3
"""Makes the pictures of docs/data.md: a folder of scenes (tests/data/scenes.py), and parts of the page of a training on them.

    python3 tests/report/pictures.py SCENES docs REPORT.html [REPORT.html ...]

Each part is that of the first page that has it. Pictures are JPEG or PNG as is smaller, drawn by a headless Chromium.
"""
import base64
import html
import pathlib
import sys
import tempfile

import browser

# Name, width of the window, headings, and the quality of JPEG; None: PNG.
PARTS = [("data-sees", 720, ["What the network sees"], 70), ("data-curves", 900, ["Loss", "Accuracy"], None),
         ("data-confusion", 900, ["Confusion", "F1 of each class"], None), ("data-mistakes", 720, ["The worst mistakes"], 70)]
SHEET = """<!DOCTYPE html><meta charset="utf-8"><style>body{margin:0;font:13px system-ui,'DejaVu Sans',sans-serif;color:#1c2024}
main{display:grid;grid-template-columns:repeat(5,1fr);gap:8px 8px;padding:8px;width:720px;box-sizing:border-box}
figure{margin:0}img{width:100%%;display:block;border-radius:3px}</style><main>%s</main>"""
# The box around the sections of these headings, or nothing.
BOX = """(headings => {
  const boxes = [...document.querySelectorAll('section')].filter(s => headings.includes(s.querySelector('h2').textContent))
    .map(s => s.getBoundingClientRect());
  if (boxes.length < headings.length) return null;
  const x = Math.min(...boxes.map(b => b.left)), y = Math.min(...boxes.map(b => b.top));
  return {x, y, width: Math.max(...boxes.map(b => b.right)) - x, height: Math.max(...boxes.map(b => b.bottom)) - y};
})(%s)"""


def take(window, box, path, quality):
    kind = {"format": "jpeg", "quality": quality} if quality else {"format": "png"}
    picture = window.call("Page.captureScreenshot", captureBeyondViewport=True, clip={**box, "scale": 1}, **kind)
    path = path.with_suffix(".jpg" if quality else ".png")
    path.write_bytes(base64.b64decode(picture["data"]))
    print(path, path.stat().st_size)


def sheet(window, scenes, path):
    """One scene of each class, with its name."""
    folders = sorted(folder for folder in scenes.iterdir() if folder.is_dir())
    figures = "".join(f'<figure><img src="{sorted(folder.iterdir())[0].resolve().as_uri()}">{html.escape(folder.name)}</figure>'
                      for folder in folders)
    with tempfile.NamedTemporaryFile("w", suffix=".html") as page:
        page.write(SHEET % figures)
        page.flush()
        window.open(page.name, 720)
        height = window.ask("document.querySelector('main').getBoundingClientRect().height")
        take(window, {"x": 0, "y": 0, "width": 720, "height": height}, path, 70)


def main():
    scenes, docs, *pages = map(pathlib.Path, sys.argv[1:])
    window = browser.Browser()
    sheet(window, scenes / "train" if (scenes / "train").is_dir() else scenes, docs / "data-scenes")
    for name, width, headings, quality in PARTS:
        for page in pages:
            window.open(page, width)
            box = window.ask(BOX % headings)
            if box:
                take(window, box, docs / name, quality)
                break
    window.close()


main()
