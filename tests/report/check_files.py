"""What --report, --log, --tensorboard and tutti report write, read by Python's library alone."""
import csv
import html.parser
import json
import pathlib
import re
import struct
import sys
import xml.etree.ElementTree
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "command"))
import harness  # noqa: E402

EMPTY = {"meta", "link", "br", "img", "path", "rect", "circle"}


class Nesting(html.parser.HTMLParser):
    """Every element that is opened is closed in its turn; collects pictures and where anything outside would be asked for."""

    def __init__(self, text):
        super().__init__()
        self.open, self.faults, self.outside, self.pictures = [], [], [], []
        self.feed(text)
        self.faults += self.open

    def handle_starttag(self, tag, attributes):
        if tag not in EMPTY:
            self.open.append(tag)
        for name, value in attributes:
            if name in ("src", "href") and not value.startswith("data:"):
                self.outside.append(value)
            if name == "src":
                self.pictures.append(value)

    def handle_endtag(self, tag):
        if tag not in EMPTY and (not self.open or self.open.pop() != tag):
            self.faults.append(tag)


def crc32c(data):
    value = 0xffffffff
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82f63b78 if value & 1 else 0)
    value ^= 0xffffffff
    return ((value >> 15 | value << 17) + 0xa282ead8) & 0xffffffff


def records(data):
    while data:
        size, head = struct.unpack("<QI", data[:12])
        body, tail = data[12:12 + size], struct.unpack("<I", data[12 + size:16 + size])[0]
        assert head == crc32c(data[:8]) and tail == crc32c(body)
        yield body
        data = data[16 + size:]


class Files(harness.CommandTest):
    def train(self, *arguments):
        data = harness.write_mnist(self.folder / "data", side=28)
        return self.good("train", "mlp", "--data", data, "--batch", "20", *arguments)

    def page(self, name):
        text = (self.folder / name).read_text()
        page = Nesting(text)
        self.assertEqual(page.faults, [])
        self.assertEqual(page.outside, [])
        return text, page, json.loads(re.search(r'<script type="application/json" id="tutti">(.*?)</script>', text).group(1))

    def test_training(self):
        hostile = "<script>alert(1)</script>&'\".html".replace("/", "")
        self.train("--epochs", "2", "--report", hostile, "--log", "m.csv", "--tensorboard", "board")
        text, page, data = self.page(hostile)
        self.assertNotIn("<script>", text)
        self.assertIn("&#60;script&#62;", text)
        self.assertIn(hostile, data["command"])
        self.assertEqual([epoch["epoch"] for epoch in data["epochs"]], [1, 2])
        self.assertEqual(len(data["steps"]), data["epochs"][-1]["step"])
        for picture in page.pictures:
            self.assertTrue(picture.startswith("data:image/png;base64,"))
        self.assertGreater(len(page.pictures), 0)
        rows = list(csv.DictReader((self.folder / "m.csv").read_text().splitlines()))
        epochs = [row for row in rows if row["kind"] == "epoch"]
        self.assertEqual(len(rows) - 2, data["epochs"][-1]["step"])
        for row, epoch in zip(epochs, data["epochs"]):
            for column in ("loss", "test_loss", "test_accuracy", "f1"):
                self.assertAlmostEqual(float(row[column]), epoch[column], 6)
        # The steps' own losses have the epoch's as their mean, but for the last batch, which is smaller.
        steps = [float(row["loss"]) for row in rows if row["kind"] == "step"][:data["epochs"][0]["step"]]
        self.assertAlmostEqual(sum(steps) / len(steps), data["epochs"][0]["loss"], 1)
        file, = (self.folder / "board").iterdir()
        bodies = list(records(file.read_bytes()))
        self.assertIn(b"brain.Event:2", bodies[0])
        self.assertEqual(sum(b"step/loss" in body for body in bodies), len(rows) - 2)

    def test_results_are_the_same_with_a_report(self):
        self.train("--steps", "30", "--devices", "0", "--save", "with", "--report", "r.html")
        self.train("--steps", "30", "--devices", "0", "--save", "without")
        self.assertEqual(self.pair("with"), self.pair("without"))

    def test_pictures_are_png(self):
        import base64
        self.train("--epochs", "1", "--report", "r.html")
        data = base64.b64decode(self.page("r.html")[1].pictures[0].split(",")[1], validate=True)
        self.assertEqual(data[:8], b"\x89PNG\r\n\x1a\n")
        chunks, at = {}, 8
        while at < len(data):
            size, = struct.unpack(">I", data[at:at + 4])
            self.assertEqual(zlib.crc32(data[at + 4:at + 8 + size]), struct.unpack(">I", data[at + 8 + size:at + 12 + size])[0])
            chunks[data[at + 4:at + 8]] = data[at + 8:at + 8 + size]
            at += 12 + size
        self.assertEqual(struct.unpack(">IIBBBBB", chunks[b"IHDR"]), (28, 28, 8, 0, 0, 0, 0))
        self.assertEqual(len(zlib.decompress(chunks[b"IDAT"])), 28 * 29)

    def test_comparison(self):
        self.good("train", "linear", "--epochs", "2", "--report", "a.html", "--log", "b.csv")
        outcome = self.good("report", "a.html", "b.csv", "--output", "c.html")
        self.assertEqual(len(outcome.output.splitlines()), 3)
        self.page_of_comparison("c.html")

    def page_of_comparison(self, name):
        page = Nesting((self.folder / name).read_text())
        self.assertEqual((page.faults, page.outside), ([], []))

    def test_damaged_runs_are_refused(self):
        for name, text in (("empty.html", ""), ("other.csv", "a,b\n1,2\n"), ("no.html", "<!DOCTYPE html><p>"),
                           ("cut.html", '<!DOCTYPE html><script type="application/json" id="tutti">{"epochs": [</script>'),
                           ("list.html", '<!DOCTYPE html><script type="application/json" id="tutti">[1]</script>'),
                           ("odd.html", '<!DOCTYPE html><script type="application/json" id="tutti">{"epochs": [3, {"epoch": "x"}]}</script>'),
                           ("none.csv", "kind,epoch,loss\nstep,1,2\n"), ("long.csv", "kind," + "x," * 500 + "epoch\n")):
            with self.subTest(name):
                (self.folder / name).write_text(text)
                self.refused(1, name.split(".")[0], "report", name)
        self.refused(1, "missing.html", "report", "missing.html")
        self.refused(2, "FILE is missing", "report")
        self.refused(2, "at most 8", "report", *"abcdefghi")

    def test_files_that_cannot_be_written(self):
        for option in ("--report", "--log"):
            self.refused(1, "nowhere", "train", "mlp", "--steps", "1", option, "nowhere/x")
        self.refused(1, "m.csv", "train", "mlp", "--steps", "1", "--log", "m.csv", "--tensorboard", "m.csv")

    def test_pictures_of_networks(self):
        self.good("show", "lenet", "--svg", "n.svg", "--html", "n.html", "--time", "--batch", "4")
        tree = xml.etree.ElementTree.parse(self.folder / "n.svg")
        texts = " ".join("".join(text.itertext()) for text in tree.iter("{http://www.w3.org/2000/svg}text"))
        for word in ("conv1", "[32, 28, 28]", " ms", "fc2"):
            self.assertIn(word, texts)
        self.good("show", "resnet50", "--svg", "r.svg", "--mode", "infer", "--batch", "1")
        self.assertIn("times, to layer3.5", (self.folder / "r.svg").read_text())
        self.refused(2, "--time", "show", "lenet", "--time")
        self.refused(1, "nowhere", "show", "lenet", "--svg", "nowhere/x.svg")


harness.main()
