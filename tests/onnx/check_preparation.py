#!/usr/bin/env python3
"""Trains small networks on pictures, recordings, arrays and tables, exports them with preparation, and compares what onnxruntime makes of
raw data with what `tutti infer` prints.

    .dev/torch/bin/python tests/onnx/check_preparation.py build-tests/tools/tutti      packages as for make.py, and pillow
"""
import csv
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import wave

import numpy
import onnx
import onnxruntime
from PIL import Image, ImageDraw

LIMIT = 1e-5
TUTTI = pathlib.Path(sys.argv[1]).resolve()


def tutti(folder, *arguments):
    done = subprocess.run([TUTTI, *map(str, arguments)], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"tutti {' '.join(map(str, arguments))}\n{done.stderr}")
    return done.stdout


def train_and_export(folder, model, data, *options):
    tutti(folder, "train", model, "--data", data, "--save", "m", "--batch", 16, *options)
    tutti(folder, "export", model, "--weights", "m.safetensors", "--output", "m.onnx", "--with-preparation")
    onnx.checker.check_model(folder / "m.onnx", full_check=True)
    return onnxruntime.InferenceSession(folder / "m.onnx", providers=["CPUExecutionProvider"])


def predicted(folder, *what):
    return [json.loads(line) for line in tutti(folder, "infer", *what, "--json").splitlines()]


def compare_classes(name, session, feeds, lines):
    """Probabilities and names of the likeliest classes."""
    probabilities, labels = session.run(["probabilities", "label"], feeds)
    assert len(lines) == len(labels), (len(lines), len(labels))
    error = max(abs(row[found["class"]] - found["probability"])
                for row, line in zip(probabilities, lines) for found in line["likeliest"])
    named = [line["likeliest"][0].get("name") for line in lines]
    wrong = sum(a != b for a, b in zip(named, labels) if b)
    return report(name, error if wrong == 0 else numpy.inf, len(lines))


def number(text):
    """Returns a text of a column of numbers, percentages or thousands as the number that a program feeds."""
    return float(text.rstrip("%").replace(",", "")) if text[-1:].isdigit() or text.endswith("%") else numpy.nan


def report(name, error, samples):
    print(f"{name}: {samples} samples, largest difference {error:.2g}", flush=True)
    return error <= LIMIT


def write_table(path, rows, names):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows(rows)


def read_table(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def feeds_of(session, rows):
    """A table of numbers is one input; otherwise each column has one, of texts or of doubles."""
    if [port.name for port in session.get_inputs()] == ["columns"]:
        names = json.loads(session.get_modelmeta().custom_metadata_map["tutti.data"])["columns"]
        return {"columns": numpy.array([[number(row[name]) for name in names] for row in rows])}
    feeds = {}
    for port in session.get_inputs():
        texts = [row[port.name] for row in rows]
        is_text = "string" in port.type
        feeds[port.name] = numpy.array(texts if is_text else list(map(number, texts)), dtype=object if is_text else float)[:, None]
    return feeds


# ---------------------------------------------------------------------------------------------------------- pictures

def digits(folder):
    """Drawn digits of 28 x 28, as MNIST's files."""
    def files(part, count):
        pictures = []
        for i in range(count):
            picture = Image.new("L", (28, 28), random.randrange(40))
            ImageDraw.Draw(picture).text((random.randrange(2, 12), random.randrange(2, 8)), str(i % 10), fill=255, font_size=18)
            pictures.append(numpy.asarray(picture))
        (folder / f"{part}-images-idx3-ubyte").write_bytes(struct.pack(">HBBIII", 0, 8, 3, count, 28, 28) + numpy.stack(pictures).tobytes())
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">HBBI", 0, 8, 1, count) + bytes(i % 10 for i in range(count)))
        return numpy.stack(pictures)[:, None]
    files("train", 400)
    raw = files("t10k", 60)
    session = train_and_export(folder, "lenet", ".", "--epochs", 2)
    return compare_classes("digits", session, {"pixels": raw}, predicted(folder, "lenet", "--weights", "m.safetensors", "--data", "."))


def colours(folder):
    """Pictures of 64 x 64 are not resized for a network of 56 x 56: their centres are taken."""
    generator = numpy.random.default_rng(1)
    for name, base in {"grass": (60, 160, 40), "sand": (210, 180, 120), "sea": (30, 90, 180)}.items():
        (folder / "all" / name).mkdir(parents=True)
        for i in range(30):
            pixels = numpy.clip(generator.normal(base, 40, (64, 64, 3)), 0, 255).astype(numpy.uint8)
            Image.fromarray(pixels).save(folder / "all" / name / f"{i}.png")
    session = train_and_export(folder, "lenet", "all", "--input", "3x56x56", "--epochs", 2)
    paths = sorted((folder / "all").glob("*/*.png"))[::4]
    raw = numpy.stack([numpy.asarray(Image.open(path))[4:60, 4:60].transpose(2, 0, 1) for path in paths])
    return compare_classes("colour pictures", session, {"pixels": raw}, predicted(folder, "lenet", "--weights", "m.safetensors", *paths))


def masks(folder):
    """The share of the pixels of each class. Pictures of 37 x 37 are not resized for a network of 32 x 32."""
    generator = numpy.random.default_rng(2)
    pixels = generator.integers(0, 256, (24, 3, 37, 37), dtype=numpy.uint8)
    for name in ("images", "masks"):
        (folder / "all" / name).mkdir(parents=True)
    for i, picture in enumerate(pixels):
        Image.fromarray(picture.transpose(1, 2, 0)).save(folder / "all" / "images" / f"{i}.png")
        Image.fromarray((picture[0] > 127).astype(numpy.uint8)).save(folder / "all" / "masks" / f"{i}.png")
    session = train_and_export(folder, "unet", "all", "--input", "3x32x32", "--steps", 2)
    lines = predicted(folder, "unet", "--weights", "m.safetensors", *(f"all/images/{i}.png" for i in range(24)))
    best = session.run(["probabilities"], {"pixels": pixels[:, :, 2:34, 2:34]})[0].argmax(1)
    error = max(abs((image == found["class"]).mean() - found["share"])
                for image, line in zip(best, lines, strict=True) for found in line["shares"])
    return report("masks", error, len(lines))


# -------------------------------------------------------------------------------------------------------- recordings

def write_wav(path, samples, rate):
    with wave.open(str(path), "wb") as file:
        file.setnchannels(samples.shape[1])
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((samples * 32767).round().astype("<i2").tobytes())


def piece(path, length):
    """As docs/deploy.md cuts it: the middle, or the recording in the middle of silence."""
    with wave.open(str(path)) as file:
        samples = numpy.frombuffer(file.readframes(file.getnframes()), "<i2").reshape(-1, file.getnchannels())
    samples = (samples / numpy.float32(32768)).mean(1, dtype=numpy.float32)
    more = len(samples) - length
    return samples[more // 2:][:length] if more >= 0 else numpy.pad(samples, (-more // 2, -more - -more // 2))


def recordings(folder, rate):
    """Pure tones with digital silence, chirps and noise, also very quiet; longer and shorter than the piece, and with two channels."""
    generator = numpy.random.default_rng(4)
    for i in range(60):
        time = numpy.arange(int(rate * generator.uniform(.2, .9)))[:, None] / rate
        kind = ("tone", "chirp", "noise")[i % 3]
        if kind == "noise":
            wave_form = generator.normal(0, .2, time.shape)
        else:
            wave_form = numpy.sin(2 * numpy.pi * generator.uniform(100, rate / 8) * time * (1 if kind == "tone" else 1 + time))
        samples = numpy.clip(wave_form * (1, .1, .001)[i // 3 % 3], -1, 1) * (time < .5)
        (folder / "all" / kind).mkdir(parents=True, exist_ok=True)
        write_wav(folder / "all" / kind / f"{i}.wav", numpy.repeat(samples, 1 + i % 2, 1), rate)
    session = train_and_export(folder, "lenet", "all", "--epochs", 8, "--normalise", "measured")
    paths = sorted((folder / "all").glob("*/*.wav"))
    raw = numpy.stack([piece(path, session.get_inputs()[0].shape[1]) for path in paths])
    lines = predicted(folder, "lenet", "--weights", "m.safetensors", *paths)
    return compare_classes(f"recordings of {rate} Hz", session, {"waveform": raw}, lines)


# ------------------------------------------------------------------------------------------------------------ arrays

def arrays(folder):
    generator = numpy.random.default_rng(3)
    x = generator.normal(1e6, 2, (200, 8))
    y = (x[:, :2] - 1e6) @ [[3.], [5.]] + 1e7
    numpy.savez(folder / "a.npz", x=x, y=y)
    session = train_and_export(folder, "mlp", "a.npz", "--normalise", "measured", "--epochs", 3)
    lines = predicted(folder, "mlp", "--weights", "m.safetensors", "--data", "a.npz", "--part", "train")
    values = session.run(["values"], {"numbers": x})[0][:, 0]
    error = max(min(abs(values - line["value"])) for line in lines) / max(abs(values))
    return report("arrays", error, len(lines))


# ------------------------------------------------------------------------------------------------------------ tables

def table(folder, name, rows, names, *options, model="mlp"):
    """Trains on a table, and predicts its rows without the target, the last column."""
    write_table(folder / "t.csv", rows, names)
    write_table(folder / "new.csv", [row[:-1] for row in rows], names[:-1])
    session = train_and_export(folder, model, "t.csv", "--epochs", 5, *options)
    feeds = feeds_of(session, read_table(folder / "new.csv"))
    lines = predicted(folder, model, "--weights", "m.safetensors", "--data", "new.csv")
    again = predicted(folder, "m.onnx", "--data", "new.csv")
    if "value" not in lines[0]:
        assert [line["class"] for line in again] == [line["class"] for line in lines]
        return compare_classes(name, session, feeds, lines)
    values = session.run(["values"], feeds)[0][:, 0]
    scale = max(1, max(abs(values)))
    error = max(abs(value - line["value"]) for value, line in zip(values, lines)) / scale
    error_again = max(abs(a["value"] - b["value"]) for a, b in zip(again, lines)) / scale
    return report(name, max(error, error_again), len(lines))


def iris(folder):
    centres = {"setosa": (5, 3.4, 1.5, .2), "versicolor": (5.9, 2.8, 4.3, 1.3), "virginica": (6.6, 3, 5.6, 2)}
    rows = [[*(f"{random.gauss(m, .3):.1f}" for m in centre), name] for name, centre in centres.items() for _ in range(50)]
    return table(folder, "iris", rows, ["sepal length", "sepal width", "petal length", "petal width", "species"])


def survivors(folder):
    """Texts, truths, percentages and thousands, with missing values in the training and without."""
    rows = []
    for i in range(300):
        age = random.choice(["", "NA", *map(str, range(1, 80))])
        port = random.choice(["Cherbourg", "Queenstown", "Southampton", "", "4", "Zürich" if i % 9 == 0 else "4"])
        alone, rate = random.choice(["yes", "No", "YES", "?"]), f"{random.random() * 100:.1f}%"
        fare = f"{random.randrange(1000, 9999):,}"
        rows.append([age, port, alone, rate, fare, f"{random.gauss(1e7, 1):.3f}", "lived" if (port == "4") ^ (alone == "No") else "died"])
    rows += [["3", "none", "n/a", "1%", "1,000", "1e7", "died"], ["4", "4.0", "yES", "2%", "1,001", "1e7", "lived"]]
    names = ["age", "port", "alone", "rate", "fare", "mass", "fate"]
    good = table(folder, "texts and missing values", rows, names)
    session = onnxruntime.InferenceSession(folder / "m.onnx", providers=["CPUExecutionProvider"])
    new = [["", "Paris", "null", "3.5%", "2,000", "10000003.25"], ["nan", "-", ".", "", "NULL", ""], ["8", "4", "yeS", "100%", "9,999", "0"]]
    write_table(folder / "unseen.csv", new, names[:-1])
    lines = predicted(folder, "mlp", "--weights", "m.safetensors", "--data", "unseen.csv")
    return compare_classes("unseen texts", session, feeds_of(session, read_table(folder / "unseen.csv")), lines) and good


def shops(folder):
    """Columns of many texts are embedded: their codes are made by nodes, also of missing and unseen ones."""
    rows = []
    for _ in range(1500):
        shop, town, size = random.randrange(130), random.randrange(110), random.choice(["S", "M", "L"])
        town = "" if town < 9 else f"Town {town}"
        rows.append([f"shop{shop}", f"{random.random():.4f}", town, size, f"{shop % 7 + len(town) + random.gauss(0, .1):.3f}"])
    names = ["shop", "share", "town", "size", "sales"]
    good = table(folder, "embedded texts", rows, names, model="tabular")
    ports = onnxruntime.InferenceSession(folder / "m.onnx", providers=["CPUExecutionProvider"])
    new = [["shop99", "0.5", "", "S"], ["", "0.25", "Town 99", "XL"], ["shop0", "", "Town 1", ""]]
    write_table(folder / "unseen.csv", new, names[:-1])
    lines = predicted(folder, "tabular", "--weights", "m.safetensors", "--data", "unseen.csv")
    values = ports.run(["values"], feeds_of(ports, read_table(folder / "unseen.csv")))[0][:, 0]
    error = max(abs(value - line["value"]) for value, line in zip(values, lines, strict=True))
    tutti(folder, "export", "--weights", "m.safetensors", "--output", "plain.onnx")
    onnx.checker.check_model(folder / "plain.onnx", full_check=True)
    again = predicted(folder, "plain.onnx", "--data", "unseen.csv")
    error = max(error, *(abs(a["value"] - b["value"]) for a, b in zip(again, lines, strict=True)))
    return report("unseen embedded texts", error, len(lines)) and good


def prices(folder):
    rows = []
    for _ in range(200):
        rooms, year, kind = random.randrange(1, 9), random.randrange(1900, 2020), random.choice(["flat", "house"])
        rows.append([str(rooms), str(year) if random.random() > .1 else "", kind, f"{100000 + 20000 * rooms + 50 * (year - 1900) + 9000 * (kind == 'house'):.2f}"])
    return table(folder, "regression", rows, ["rooms", "year", "kind", "price"])


def main():
    good = True
    heard = [lambda folder, rate=rate: recordings(folder, rate) for rate in (8000, 16000, 44100)]
    for case in (digits, colours, masks, *heard, arrays, iris, survivors, shops, prices):
        random.seed(7)
        with tempfile.TemporaryDirectory() as folder:
            good = case(pathlib.Path(folder)) and good
    raise SystemExit(not good)


main()
