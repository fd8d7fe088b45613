#!/usr/bin/env python3
"""Writes inputs from which the fuzzers may start: the files and node tests of tests/onnx, and the arrays and pictures of
tests/formats and tests/data. Needs the packages numpy and onnx. Tables, recordings and archives are made here.

    seeds.py FOLDER [NODES]     makes a folder in FOLDER for each target; NODES is where tests/onnx/conformance.py unpacked them
"""
import io
import json
import math
import pathlib
import struct
import sys
import tarfile
import zipfile

import numpy
import onnx

TESTS = pathlib.Path(__file__).resolve().parent.parent
WHOLE, LOGITS, HEAD, SECOND, SHAPE, INTEGERS, FLOATS, NOTES, SIZES = (16 << bit for bit in range(9))  # as in onnx.c
LARGEST = 1 << 15
TYPES = {"F32": 1, "U8": 2, "I8": 3, "U16": 4, "I16": 5, "I32": 6, "I64": 7, "BOOL": 9, "F16": 10, "F64": 11, "U32": 12, "U64": 13,
         "BF16": 16}


def arrays(path):
    """The inputs of a node test, by their names."""
    data = path.read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    for name, entry in json.loads(data[8:end]).items():
        if name.startswith("input."):
            first, last = entry["data_offsets"]
            yield name.split(".", 2)[2], TYPES[entry["dtype"]], entry["shape"], data[end + first:end + last]


def with_initialisers(model, path, floats):
    """The model in which integers are not inputs, and with `floats` only the first input is one."""
    made = onnx.ModelProto.FromString(model.SerializeToString())
    first = made.graph.input[0].name if made.graph.input else None
    for name, kind, shape, data in arrays(path):
        if (name == first and kind in (1, 10, 11, 16)) or (kind in (1, 10, 11, 16) and not floats):
            continue
        made.graph.initializer.append(onnx.TensorProto(name=name, data_type=kind, dims=shape, raw_data=data))
    return made


def variants(path):
    model = onnx.load(path, load_external_data=False)
    yield model, (0, NOTES | LOGITS, HEAD, SECOND, SIZES, WHOLE, WHOLE | INTEGERS, WHOLE | INTEGERS | FLOATS)
    if path.with_suffix(".safetensors").exists() and "files" not in path.parts:
        yield with_initialisers(model, path.with_suffix(".safetensors"), False), (0, WHOLE)
        yield with_initialisers(model, path.with_suffix(".safetensors"), True), (0, WHOLE)


def write_onnx(folder, paths):
    folder.mkdir(parents=True)
    for path in paths:
        for place, (model, options) in enumerate(variants(path)):
            for bits in options:
                model.ir_version = bits
                if model.ByteSize() <= LARGEST:
                    (folder / f"{path.stem[:80]}-{place}-{bits}").write_bytes(model.SerializeToString())


def write_arrays(folder):
    folder.mkdir(parents=True)
    for path in [*TESTS.glob("formats/files/*.np[yz]"), *TESTS.glob("onnx/files/*/*.safetensors")]:
        kind = b"s" if path.suffix == ".safetensors" else b"z"
        if path.stat().st_size <= LARGEST:
            (folder / path.name).write_bytes(kind + path.read_bytes())
    (folder / "labels").write_bytes(b"1\0\0\x08\x01\0\0\0\x03abc")
    (folder / "images").write_bytes(b"0\0\0\x08\x03\0\0\0\x01\0\0\0\x02\0\0\0\x03abcdef")


def write_images(folder):
    folder.mkdir(parents=True)
    for name, array in numpy.load(TESTS / "formats/files/images.npz").items():
        if name.startswith("file/"):
            (folder / name[5:]).write_bytes(b"\0" + array.tobytes())
    for name, array in numpy.load(TESTS / "formats/files/decoded.npz").items():
        if name.startswith("file/") and name.endswith(".gif"):   # what this process decodes by itself
            (folder / name[5:]).write_bytes(b"\0" + array.tobytes())
    for name, array in numpy.load(TESTS / "data/files/masks.npz").items():
        if name.startswith("file/"):
            (folder / f"mask-{name[5:]}").write_bytes(b"\x20" + array.tobytes())


def write_rows(folder):
    """What arrays.c reads by rows, and as data."""
    for path in TESTS.glob("formats/files/*.npy"):
        (folder / f"rows-{path.name}").write_bytes(b"r" + path.read_bytes())
    for name, images, labels in (("images", ("|u1", (3, 6, 5, 3)), ("<i8", (3,))), ("grey", ("|u1", (3, 4, 4)), ("|b1", (3, 1))),
                                 ("numbers", (">f8", (3, 2)), ("<f4", (3, 2)))):
        data = io.BytesIO()
        with zipfile.ZipFile(data, "w") as archive:
            for key, (kind, shape) in (("x_train", images), ("y_train", labels)):
                text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode()
                size = int(kind[2]) * math.prod(shape)
                archive.writestr(f"{key}.npy", b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text + bytes(i % 2 for i in range(size)))
        (folder / f"data-{name}").write_bytes(b"d" + data.getvalue())


def write_tables(folder):
    folder.mkdir(parents=True)
    texts = [b"a,b,c\n1,2,3\n4,5.5e1,-6\n", b"1;2;x\r\n3;4;y\r\n\r\n5;6;x", b"\xef\xbb\xbf\"a\"\t\"b \"\"c\"\"\"\n1\t2\n", b",a,b\n0,1,NA\n1,2,3\n",
             b"a,b\n1,2\n,3\n1,nan\n1e999,0x1\n", b",red,x\n3,blue,y\n4,red,y\n5,red,x\n", b",1,2\n0,5,6\n1,7,8\n",
             b"day,time,share,big,comma,ok,kind\n2001-12-31,14:30,12 %,\"1,234.5\",\"1,5\",yes,a\n2001-02-03,15:00,1%,\"2,000\",\"2,25\",no,b\n"
             b"31.12.2001,x,?,\"1,000\",-,NO,a\n2001-01-05,23:59,3 %,\"1,001\",\"0,5\",yes,\n"]
    for place, text in enumerate(texts):
        for options in (*range(8), 16, 17, 32, 48):
            (folder / f"{place}-{options}").write_bytes(bytes([options]) + text)


def write_recordings(folder):
    folder.mkdir(parents=True)
    for code, bits, channels in ((1, 8, 1), (1, 16, 2), (1, 24, 1), (1, 32, 1), (3, 32, 1), (3, 64, 2), (0xfffe, 16, 1), (6, 8, 1), (7, 8, 2)):
        frame = channels * bits // 8
        head = struct.pack("<HHIIHH", code, channels, 8000, 8000 * frame, frame, bits)
        if code == 0xfffe:
            head += struct.pack("<HHI", 22, bits, 4) + struct.pack("<H", 1) + bytes(14)
        chunks = b"WAVEfmt " + struct.pack("<I", len(head)) + head + b"LIST\3\0\0\0abc\0data" + struct.pack("<I", 4 * frame) + bytes(4 * frame)
        (folder / f"{code}-{bits}").write_bytes(b"RIFF" + struct.pack("<I", len(chunks)) + chunks)


def write_decoded(folder):
    """Answers of a decoder, after the begin of a file: pictures of all rows of pixels, and recordings. A last ! cuts them short."""
    folder.mkdir(parents=True)
    def put(name, first, data, status=0, row=0, width=0, height=0, turned=1, rate=0, channels=0, frames=0, text=b""):
        answer = struct.pack("<IIiiiiiiq160s", status, row, width, height, turned, rate, channels, 0, frames, text)
        (folder / name).write_bytes(bytes([first]) + bytes(16) + answer + data)
    for row in range(1, 6):
        for kind in range(4):
            put(f"picture-{row}-{kind}", kind << 1 | 16 * (row & 1), bytes(range(200)), row=row, width=9, height=7, turned=row + kind)
    put("mask", 32, bytes(range(63)), row=1, width=9, height=7)
    put("short", 0, b"abc!", row=3, width=9, height=7)
    put("refused", 2, b"", status=1, text=b"it is damaged")
    put("memory", 4, b"", status=2, text=b"128 MiB")
    put("nonsense", 0, b"", row=9, width=-3, height=1 << 30, turned=77)
    samples = struct.pack("<64f", *(math.sin(i) for i in range(64)))
    for name, rate, frames, data in (("same", 8000, 3000, samples), ("faster", 44100, 9000, samples), ("long", 11025, 1 << 58, samples),
                                     ("cut", 8000, 5000, samples + b"!"), ("infinite", 8000, 5000, samples + struct.pack("<f", math.inf)),
                                     ("none", 8000, 0, b""), ("slow", 1, 9, samples)):
        put(f"sound-{name}", 128, data, rate=rate, channels=1, frames=frames)


def write_tar(folder):
    folder.mkdir(parents=True)
    for name, form in (("ustar", tarfile.USTAR_FORMAT), ("gnu", tarfile.GNU_FORMAT), ("pax", tarfile.PAX_FORMAT)):
        data = io.BytesIO()
        with tarfile.open(fileobj=data, mode="w", format=form) as archive:
            for file in ("a.jpg", "a.cls", "folder/" + 60 * "long" + ".png" if form != tarfile.USTAR_FORMAT else "b.png"):
                entry = tarfile.TarInfo(file)
                entry.size = 3
                archive.addfile(entry, io.BytesIO(b"abc"))
        (folder / name).write_bytes(data.getvalue())
    write_shards(folder)


def write_shards(folder):
    """What tar.c reads as data: classes as names and as numbers, in texts and in JSON."""
    for name, files in (("names", {"a.jpg": b"x", "a.cls": b" cat\n", "b.png": b"x", "b.cls.txt": b"dog", "c.jpg": b"x"}),
                        ("numbers", {"a.jpg": b"x", "a.cls": b"3", "b.png": b"x", "b.json": b'{"class": 1, "w": [2.5, null]}'}),
                        ("json", {"a.jpg": b"x", "a.json": b'{"label": "cat"}', "b.ppm": b"x", "b.json": b'{"cls": 7}'})):
        data = io.BytesIO()
        with tarfile.open(fileobj=data, mode="w", format=tarfile.USTAR_FORMAT) as archive:
            for file, content in files.items():
                entry = tarfile.TarInfo(file)
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
        (folder / name).write_bytes(data.getvalue())


def write_classes(folder):
    folder.mkdir(parents=True)
    for name, text in (("four", b"sky\nroad\ncar\nperson\n"), ("lines", b"a\r\n\r\n b \nc\nd"), ("few", b"a\nb")):
        (folder / name).write_bytes(text)


def write_sets(folder):
    """What sets.c reads; the first byte has the file in its low three bits, and how it is read."""
    folder.mkdir(parents=True)
    images = b"\0\0\x08\3" + struct.pack(">III", 4, 1, 2) + b"abcdefgh"
    contents = [images, b"\0\0\x08\1" + struct.pack(">I", 4) + b"\0\1\1\2", images, b"one\ntwo\n", b"".join(bytes([i]) + bytes(3072) for i in range(4)),
                b"".join(b"%d\n" % i for i in range(10)) + b"\n", b"".join(bytes([0, 30 * i]) + bytes(3072) for i in range(4)),
                b"".join(b"%d\r\n" % i for i in range(100))]
    for place, content in enumerate(contents):
        for how in (0, 8, 16, 32 | 64, 64 | 128, 8 | 128, 16 | 128):
            (folder / f"{place}-{how}").write_bytes(bytes([place | how]) + content)


def write_saved(folder):
    """What saved.c reads. The hash is that of its weights."""
    folder.mkdir(parents=True)
    table = {"kind": "table", "shape": [2], "bytes": False, "mean": [0.5, 2], "std": [1, 0.25], "split": 0.2, "seed": 1, "target": "y"}
    for name, known in (("classes", {"classes": ["cat", "dog"], "folds": 2, "fold": 1}), ("images", {"shape": [3, 8, 9], "classes": ["a"]}),
                        ("numbers", {"target": "a", "target_mean": [1], "target_std": [2]}), ("recordings", {"shape": [1, 64, 9], "rate": 8000})):
        (folder / f"data-{name}").write_bytes(b"d" + json.dumps({**table, **known}).encode())
    state = {"kind": "tutti training state 1", "weights_hash": "a9b4d5496973790e", "steps": "3", "epoch": "1", "position": "2",
             "epoch_samples": "6", "epoch_loss": "0x1p+0", "epoch_correct": "0x1p+1", "seed": "7", "optimizer": "adam"}
    for name, more in (("plain", {}), ("best", {"plateau_best": "0x1p-1", "plateau_bad": "1", "plateau_reductions": "1", "best_epoch": "1",
                                                "best_loss": "0x1p-2", "best_accuracy": "0x1p-1"}),
                       ("scale", {"loss_scale": "1024", "loss_scale_steps": "2", "skipped_steps": "1", "epoch_excluded": "0x1p+0"})):
        header = {"__metadata__": {**state, **more}}
        for place, key in enumerate(("exp_avg.a", "exp_avg_sq.a", "parameter.a")):
            header[key] = {"dtype": "F32", "shape": [2], "data_offsets": [8 * place, 8 * place + 8]}
        text = json.dumps(header).encode()
        (folder / f"state-{name}").write_bytes(b"c" + struct.pack("<Q", len(text)) + text + bytes(24))
    epochs = [{"epoch": 1, "loss": 2.5, "accuracy": 0.1, "test_loss": None}, {"epoch": 2, "loss": 1e-3, "f1": 0.5}]
    page = json.dumps({"command": "tutti train lenet", "parameters": 61706, "epochs": epochs})
    (folder / "page").write_bytes(f'r<!DOCTYPE html><script type="application/json" id="tutti">{page}</script>'.encode())
    (folder / "log").write_bytes(b"rkind,epoch,step,loss,test_loss,mae\nstep,0.5,1,2.5,,\r\nepoch,1,2,2.25,1e-3,7\n")


to = pathlib.Path(sys.argv[1])
write_onnx(to / "onnx", [*TESTS.glob("onnx/files/*/*.onnx"), *(path for nodes in sys.argv[2:] for path in pathlib.Path(nodes).glob("*.onnx"))])
write_arrays(to / "arrays")
write_images(to / "images")
write_classes(to / "classes")
write_sets(to / "sets")
write_saved(to / "saved")
write_rows(to / "arrays")
write_tables(to / "tables")
write_recordings(to / "recordings")
write_decoded(to / "decoded")
write_tar(to / "tar")
