"""Pages of trainings in a real Chromium: every figure is there, at 360 and 1440 pixels nothing is cut, lies on something else or
scrolls sideways, the console is empty and nothing is asked of a network.

    python3 check_pages.py --pictures FOLDER        also leaves screenshots, light and dark, to be looked at
"""
import math
import os
import pathlib
import struct
import sys
import wave

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "command"))
import browser  # noqa: E402
import harness  # noqa: E402

PICTURES = None
if "--pictures" in sys.argv:
    PICTURES = pathlib.Path(sys.argv.pop(sys.argv.index("--pictures") + 1))
    sys.argv.remove("--pictures")

# Texts of a picture that lie on one another, by more than a pixel of their boxes; and what leaves its picture.
OVERLAPS = """(() => {
  const found = [];
  for (const svg of document.querySelectorAll('svg')) {
    const frame = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll('text')].map(text => [text.firstChild ? text.textContent : '', text.getBoundingClientRect()]);
    texts.forEach(([text, box], i) => {
      if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1)
        found.push('cut: ' + text);
      for (const [other, place] of texts.slice(i + 1))
        if (Math.min(box.right, place.right) - Math.max(box.left, place.left) > 1 &&
            Math.min(box.bottom, place.bottom) - Math.max(box.top, place.top) > 3)
          found.push(text + ' lies on ' + other);
    });
  }
  const blocks = [...document.querySelectorAll('section, header')].map(block => block.getBoundingClientRect());
  blocks.forEach((a, i) => blocks.slice(i + 1).forEach(b => {
    if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1)
      found.push('sections lie on one another');
  }));
  return found;
})()"""
# WCAG's contrast of every text that is shown with its background.
CONTRAST = """(() => {
  const part = value => (value /= 255) <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  const light = colour => { const [r, g, b] = colour.match(/[\\d.]+/g).map(Number);
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b); };
  const after = node => { for (; node; node = node.parentElement) {
    const colour = getComputedStyle(node).backgroundColor; if (!/, 0\\)/.test(colour)) return colour; } return 'rgb(255,255,255)'; };
  const found = [];
  for (const node of document.querySelectorAll('h1,h2,p,dt,dd,summary,td,th,figcaption,li,svg text')) {
    if (node.closest('g') && node.style.fill) continue; /* on a coloured cell */
    const ink = node instanceof SVGElement ? getComputedStyle(node).fill : getComputedStyle(node).color;
    const a = light(ink), b = light(after(node instanceof SVGElement ? node.ownerSVGElement.parentElement : node));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) found.push(ratio.toFixed(2) + ': ' + node.textContent.slice(0, 30));
  }
  return found;
})()"""
SMALLEST = """Math.min(...[...document.querySelectorAll('svg text')].filter(text => !text.style.fontSize).map(text =>
  parseFloat(getComputedStyle(text).fontSize) * text.ownerSVGElement.getBoundingClientRect().width / text.ownerSVGElement.viewBox.baseVal.width))"""
FIGURES = ["Loss", "Accuracy", "Confusion", "F1 of each class", "The worst mistakes", "What the network sees", "Learning rate", "Shares of the batch",
           "A step on each device", "Where a step's time goes", "The network", "Made by"]


class Pages(harness.CommandTest):
    @classmethod
    def setUpClass(cls):
        cls.browser = browser.Browser()
        cls.addClassCleanup(cls.browser.close)

    def look(self, name, headings):
        page = self.folder / name
        for width in (360, 1440):
            for dark in (False, True):
                with self.subTest(name=name, width=width, dark=dark):
                    self.browser.open(page, width, dark)
                    self.assertEqual(self.browser.ask("[...document.querySelectorAll('h2')].map(h => h.textContent)"), headings)
                    self.assertEqual(self.browser.ask(OVERLAPS), [])
                    self.assertEqual(self.browser.ask(CONTRAST), [])
                    self.assertLessEqual(self.browser.ask("document.documentElement.scrollWidth"), width)
                    self.assertGreater(self.browser.ask(SMALLEST), 9.5)
                    # Every picture is there, and says what it shows.
                    self.assertTrue(self.browser.ask("[...document.images].every(i => i.complete && i.naturalWidth > 0 && i.alt)"))
                    self.assertTrue(self.browser.ask("[...document.querySelectorAll('svg')].every(s => s.getAttribute('aria-label'))"))
                    # Also with every table open.
                    self.browser.ask("document.querySelectorAll('details').forEach(d => d.open = true)")
                    self.assertLessEqual(self.browser.ask("document.documentElement.scrollWidth"), width)
                    self.assertEqual(self.browser.messages, [])
                    self.assertEqual([url for url in self.browser.requests if not url.startswith(("data:", page.as_uri()))], [])
                    if PICTURES:
                        self.browser.ask("document.querySelectorAll('details').forEach(d => d.open = false)")
                        self.browser.screenshot(PICTURES / f"{page.stem}-{width}-{'dark' if dark else 'light'}.png")

    def test_training_and_comparison(self):
        two = {"POCL_DEVICES": "pthread pthread"}
        self.good("train", "lenet", "--epochs", "2", "--devices", "0,1", "--report", "training.html", **two)
        self.look("training.html", FIGURES)
        self.good("train", "mlp", "--epochs", "3", "--devices", "0", "--report", "x<b>&\"y.html", "--log", "other.csv")
        self.good("report", "training.html", "other.csv", "x<b>&\"y.html", "--output", "comparison.html")
        self.look("comparison.html", ["Results", "Test accuracy", "Test loss", "Training loss", "Learning rate", "Made by"])

    def shapes(self, folder, classes):
        """Pictures of a square before a ground, and masks of the square."""
        for number in range(12):
            side, kind = 24 + 4 * (number % 3), number % classes
            inside = [[(x // 8 + y // 8) % 4 == kind for x in range(32)] for y in range(side)]
            at = self.folder / folder / (f"class {kind}<" if folder == "mixed" else "images")
            at.mkdir(parents=True, exist_ok=True)
            (at / f"{number}.ppm").write_bytes(b"P6 32 %d 255\n" % side + bytes(
                value for row in inside for cell in row for value in ((220, 60 * kind, 40) if cell else (30, 90, 200))))
            masks = self.folder / folder / "masks"
            if folder != "mixed":
                masks.mkdir(exist_ok=True)
                (masks / f"{number}.pgm").write_bytes(b"P5 32 %d 255\n" % side + bytes(cell for row in inside for cell in row))

    def recordings(self, folder):
        for number in range(8):
            at = self.folder / folder / ("high" if number % 2 else "low")
            at.mkdir(parents=True, exist_ok=True)
            with wave.open(str(at / f"{number}.wav"), "wb") as file:
                file.setparams((1, 2, 8000, 0, "NONE", ""))
                file.writeframes(b"".join(struct.pack("<h", int(9000 * math.sin(i * (0.5 if number % 2 else 0.1)))) for i in range(16000)))

    def samples(self, name, model, *options):
        """What the network sees: one picture for each sample, or two with its mask, named by its classes."""
        self.good("train", model, "--data", name, "--steps", "1", "--devices", "0", "--report", f"{name}.html", *options)
        self.browser.open(self.folder / f"{name}.html", 1440)
        headings = self.browser.ask("[...document.querySelectorAll('h2')].map(h => h.textContent)")
        self.look(f"{name}.html", headings)
        section = "[...document.querySelectorAll('section')].find(s => s.querySelector('h2').textContent == 'What the network sees')"
        return (self.browser.ask(f"[...{section}.querySelectorAll('figcaption')].map(c => c.textContent)"),
                self.browser.ask(f"[...{section}.querySelectorAll('img')].map(i => i.alt)"))

    def test_samples(self):
        self.shapes("mixed", 3)
        captions, alts = self.samples("mixed", "lenet", "--input", "3x32x32", "--augment", "mixup=1", "--batch", "4")
        self.assertEqual(len(captions), len(alts))
        self.assertRegex(" ".join(captions), r"class 0< \d+ %class [12]< \d+ %")
        self.assertRegex(" ".join(alts), r"class 0< \d+ %, class [12]< \d+ %")
        captions, _ = self.samples("digits", "lenet", "--augment", "mixup=0.05", "--batch", "4")
        for caption in captions:  # a part that would be 0 % is left out
            self.assertRegex(caption, r"^\d( \d+ %\d [1-9]\d* %)?training image \d+$")
        self.shapes("masked", 2)
        captions, alts = self.samples("masked", "unet", "--input", "3x32x32", "--batch", "2")
        self.assertEqual(2 * len(captions), len(alts))
        self.assertRegex(captions[0], r"0 \d+ %1 \d+ %\d+\.ppm")
        self.recordings("heard")
        captions, alts = self.samples("heard", "lenet", "--batch", "4")
        self.assertRegex(captions[0], r"(low|high)\d+\.wav")

    def test_folds(self):
        self.good("train", "mlp", "--folds", "3", "--steps", "40", "--devices", "0", "--report", "folds.html")
        self.look("folds.html", ["Results", "Test accuracy", "Test loss", "Training loss", "Confusion", "The worst mistakes",
                                 "Made by"])

    def test_numbers(self):
        self.good("train", "linear", "--epochs", "2", "--devices", "0", "--report", "line.html")
        self.look("line.html", ["Loss", "Learning rate", "A step on each device", "Where a step's time goes", "The network", "Made by"])

    def test_networks(self):
        for name in ("resnet50", "vit_b_16", "unet"):
            self.good("show", name, "--mode", "infer", "--batch", "1", "--devices", "0", "--html", f"{name}.html")
            self.look(f"{name}.html", ["The network"])


if PICTURES:
    os.makedirs(PICTURES, exist_ok=True)
harness.main()
