"""Pages of trainings in a real Chromium: every figure is there, at 360 and 1440 pixels nothing is cut, lies on something else or
scrolls sideways, the console is empty and nothing is asked of a network.

    python3 check_pages.py --pictures FOLDER        also leaves screenshots, light and dark, to be looked at
"""
import os
import pathlib
import sys

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
# WCAG's contrast of every text that is shown with what is behind it.
CONTRAST = """(() => {
  const part = value => (value /= 255) <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  const light = colour => { const [r, g, b] = colour.match(/[\\d.]+/g).map(Number);
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b); };
  const behind = node => { for (; node; node = node.parentElement) {
    const colour = getComputedStyle(node).backgroundColor; if (!/, 0\\)/.test(colour)) return colour; } return 'rgb(255,255,255)'; };
  const found = [];
  for (const node of document.querySelectorAll('h1,h2,p,dt,dd,summary,td,th,figcaption,li,svg text')) {
    if (node.closest('g') && node.style.fill) continue; /* on a coloured cell */
    const ink = node instanceof SVGElement ? getComputedStyle(node).fill : getComputedStyle(node).color;
    const a = light(ink), b = light(behind(node instanceof SVGElement ? node.ownerSVGElement.parentElement : node));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) found.push(ratio.toFixed(2) + ': ' + node.textContent.slice(0, 30));
  }
  return found;
})()"""
SMALLEST = """Math.min(...[...document.querySelectorAll('svg text')].filter(text => !text.style.fontSize).map(text =>
  parseFloat(getComputedStyle(text).fontSize) * text.ownerSVGElement.getBoundingClientRect().width / text.ownerSVGElement.viewBox.baseVal.width))"""
FIGURES = ["Loss", "Accuracy", "Confusion", "F1 of each class", "The worst mistakes", "Learning rate", "Shares of the batch",
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
