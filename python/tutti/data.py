"""The library's own readers of data, as `tutti train --data` has them (docs/data.md): folders of pictures or recordings, tables,
texts, arrays in files, MNIST's and CIFAR's files. Parts train and test without coming through Python.

    data = tutti.data.folder("flowers", height=64, width=64, augment="crop,flip")
    net = tutti.models.resnet18(classes=data.classes, input=data.shape)
    trainer = tutti.Trainer(net, loss="cross_entropy")
    trainer.fit(data, epochs=5)                 # trains on data.train, tests on data.val
    trainer.evaluate(data.test or data.val)
    x, y = data.train.arrays(100)               # 100 samples as arrays of numpy

Options are those of `tutti_data_options`, which describes them: split, seed, target, augment, cache, skip_damaged, normalise, ..."""
from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import numpy
import numpy.typing

from ._call import NUMPY, Options, encoded, shape_of
from ._handle import Handle, taken
from ._native import ffi, lib
from ._options import DataOptions
from .errors import check, made

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from typing_extensions import Unpack

    from ._types import Path

TABLES = ("table",)
PICTURES = ("images", "masks", "recordings", "IDX", "CIFAR-10", "CIFAR-100", "digits")


class TableOptions(DataOptions, total=False):
    files: Sequence[Path]
    drop: str | Sequence[str]
    only: str | Sequence[str]
    note: Callable[[str], object]


class TextOptions(DataOptions, total=False):
    files: Sequence[Path]
    texts: Sequence[str]
    note: Callable[[str], object]


class OpenOptions(TableOptions, total=False):
    target: str
    text: str | Sequence[str]
    texts: Sequence[str]


def texts(pointer, count):
    return [ffi.string(pointer[position]).decode(errors="replace") for position in range(count)] if pointer != ffi.NULL else []


class Part:
    """A part of data: len() samples, which are read when they are needed."""
    failure: BaseException | None = None
    length = 0

    def __init__(self, data: Data, number: int) -> None:
        self.data, self.number, self.struct = data, number, lib.tutti_data_source(data.pointer, number)
        self.samples = self.struct.samples if self.struct != ffi.NULL else 0

    source_of = True        # fit() and evaluate() pass it to the library as it is

    @property
    def begin_epoch(self):
        return ffi.addressof(lib, "tutti_data_epoch")

    def check(self, trainer):
        self.data.pointer       # raises if it was closed
        if not self.samples:
            raise ValueError(f"this part of {self.data.path} has no sample")
        inputs = [port for port in trainer.ports if not port.is_targets]
        if self.data.length:
            self.check_text(inputs)
            return
        if len(inputs) != 1 or inputs[0].shape != self.data.shape:
            raise ValueError(f"samples of {self.data.path} have the shape {list(self.data.shape)}; the network takes "
                             + " and ".join(str(list(port.shape)) for port in inputs) + ": give input=data.shape where the network is made, "
                             "or height= and width= where the data are opened")

    def check_text(self, inputs):
        names = {"types"} if self.data.pairs else set()
        if any(port.dtype != "int32" or port.shape != (lib.TUTTI_SEQUENCE,) for port in inputs) or len([port for port in inputs if port.name not in names]) != 1:
            raise ValueError(f"{self.data.path} has texts: the network needs one input of int32 and the shape (tutti.SEQUENCE,)"
                             + (', and may have one more called "types"' if self.data.pairs else "") + "; it has "
                             + " and ".join(f"{port.name} {list(port.shape)} of {port.dtype}" for port in inputs))

    def note(self, trainer):
        """Saved weights then say what the data were, for `tutti infer`."""
        check(lib.tutti_set_metadata(trainer.pointer, b"data", self.data.json.encode()))

    def __len__(self) -> int:
        return self.samples

    def name(self, index: int) -> str:
        """The file of a sample, or "row 17"."""
        text = ffi.new("char[]", 4096)
        check(lib.tutti_data_name(self.data.pointer, self.number, index, text, len(text)))
        return ffi.string(text).decode(errors="replace")

    def labels(self) -> numpy.typing.NDArray[numpy.int64]:
        """The class of each sample, without reading them; -1: none."""
        return numpy.array([lib.tutti_data_label(self.data.pointer, self.number, index) for index in range(self.samples)], "int64")

    def words(self, index: int) -> list[tuple[str, int]]:
        """The words of a sample whose words have tags, each with the position of its first token, where the network's output is its tag;
        -1: it has none."""
        found: list[tuple[str, int]] = []
        token = ffi.new("int64_t *")
        while (word := lib.tutti_data_word(self.data.pointer, self.number, index, len(found), token)) != ffi.NULL:
            found.append((ffi.string(word).decode(errors="replace"), token[0]))
        return found

    def arrays(self, count: int | Sequence[int] | numpy.typing.NDArray[Any] | None = None) -> tuple[Any, Any]:
        """(x, y) of the first samples, or of those that a list of indices chooses; None: all. Pictures are normalised floats, as a
        network gets them. Texts are numbers of tokens, padded by -1 to the length of data."""
        indices = numpy.arange(self.samples if count is None else min(count, self.samples)) if count is None or isinstance(count, int) else numpy.asarray(count)
        return self.read(numpy.ascontiguousarray(indices, "int64"))

    def read(self, indices: numpy.typing.NDArray[numpy.int64]) -> tuple[Any, Any]:
        data = self.data
        if indices.size and (indices.min() < 0 or indices.max() >= self.samples):
            raise IndexError(f"this part has {self.samples} samples: index {indices.min() if indices.min() < 0 else indices.max()}")
        target = "float32" if data.mixes and data.classes else data.target_dtype
        x = numpy.empty((len(indices), *data.shape), "float32" if data.dtype == "uint8" else data.dtype)
        y = numpy.empty((len(indices), *((data.classes,) if data.mixes and data.classes else data.target_shape)), target)
        names = [ffi.new("char[]", name) for name in (b"input", b"targets")]
        buffers = ffi.new("tutti_buffer[]", [
            {"name": name, "dtype": getattr(lib, "TUTTI_DTYPE_I32" if array.dtype == "int32" else "TUTTI_DTYPE_F32"),
             "data": ffi.cast("void *", array.ctypes.data), "bytes": array[:1].nbytes if len(array) else 0} for name, array in zip(names, (x, y))])
        if len(indices):
            check(self.struct.read(self.struct.user, ffi.cast("int64_t *", indices.ctypes.data), len(indices), buffers, 2))
        return x, y

    def __repr__(self) -> str:
        return f"<{self.samples} samples of {self.data.path}>"


class Data(Handle):
    """Opened data: train, val, test are its parts, all is the whole; classes (0: targets are numbers), class_names, shape."""
    parts = True
    kind: str
    classes: int
    dtype: str
    target_dtype: str
    shape: tuple[int, ...]
    target_shape: tuple[int, ...]
    class_names: list[str]
    class_counts: list[int]
    mean: list[float]
    std: list[float]
    target_mean: list[float] | None
    target_std: list[float] | None
    damaged: int
    code_count: int
    vocabulary: int             # texts: numbers of tokens are below it; 0: other data
    length: int                 # ... tokens of the longest sample
    pairs: bool                 # ... an input called "types" gets 1 for tokens of the second text
    tokens_are_classes: bool    # ... targets are the next tokens
    tags: bool                  # ... targets are the class of each word at its first token, else -1
    tokenizer: str | None       # ... as the text of a tokenizer.json

    def __init__(self, path: Path, *, note: Callable[[str], object] | None = None, **options: Any) -> None:
        self.path = os.fspath(path)
        given = Options("tutti_data_options", {name: listed(name, value) for name, value in options.items() if name not in ("files", "texts")})
        if options.get("texts"):
            lines = [given.keep(ffi.new("char[]", line.encode())) for line in options["texts"]]
            given.struct.texts, given.struct.text_count = given.keep(ffi.new("char *[]", lines)), len(lines)
        if options.get("files"):
            files = [given.keep(ffi.new("char[]", encoded(file))) for file in options["files"]]
            given.struct.files, given.struct.file_count = given.keep(ffi.new("char *[]", files)), len(files)
        self.notes: list[str] = []
        handle = ffi.new_handle(self)
        self.noted, self.handle = note or self.notes.append, handle
        given.struct.note, given.struct.user = lib.call_tutti_data_options_note, handle
        super().__init__(made(lib.tutti_data_open(encoded(path), given.struct)), lib.tutti_data_free)
        self.mixes = any(word in str(options.get("augment") or "") for word in ("mix",))
        self.describe()

    def describe(self) -> None:
        info = ffi.new("tutti_data_info *", {"size": ffi.sizeof("tutti_data_info")})
        check(lib.tutti_data_describe(self.pointer, info))
        self.kind, self.classes = ffi.string(info.kind).decode(), info.classes
        self.dtype, self.target_dtype = NUMPY[info.dtype], NUMPY[info.target_dtype]
        self.shape, self.target_shape = shape_of(info.shape), shape_of(info.target_shape)
        self.class_names = texts(info.class_names, info.classes)
        self.class_counts = list(info.class_counts[0:info.classes]) if info.class_counts != ffi.NULL else []
        self.mean, self.std = list(info.mean[0:info.channels]), list(info.std[0:info.channels])
        numbers = int(numpy.prod(self.target_shape, dtype=int))
        self.target_mean, self.target_std = ([*pointer[0:numbers]] if pointer != ffi.NULL else None for pointer in (info.target_mean, info.target_std))
        self.damaged, self.code_count = info.damaged, info.code_count
        self.vocabulary, self.length, self.pairs, self.tokens_are_classes = info.vocabulary, info.length, info.pairs, info.tokens_are_classes
        self.tags = bool(info.tags)
        self.tokenizer = ffi.string(info.tokenizer).decode() if info.tokenizer != ffi.NULL else None

    def part(self, number: int) -> Part | None:
        part = Part(self, number)
        return part if len(part) else None

    @property
    def train(self) -> Part:
        return Part(self, lib.TUTTI_DATA_TRAIN)

    @property
    def val(self) -> Part | None:
        """Held-out samples, or None."""
        return self.part(lib.TUTTI_DATA_VAL)

    @property
    def test(self) -> Part | None:
        return self.part(lib.TUTTI_DATA_TEST)

    @property
    def tests(self) -> Part | Any:
        """What a training tests with: val, or test if there is no val, or None."""
        return self.val or self.test

    @property
    def all(self) -> Part:
        return Part(self, lib.TUTTI_DATA_ALL)

    @property
    def json(self) -> str:
        """What a program must know of the data to use a network that was trained on them, as JSON."""
        return taken(lib.tutti_data_json(self.pointer))

    def inspect(self, most: int = 0) -> dict[str, Any]:
        """What a person wants to know before a training, as a dictionary: samples of parts and classes, columns, sizes."""
        return json.loads(taken(lib.tutti_data_inspect(self.pointer, most)))

    def in_units(self, outputs: Any) -> Any:
        """Outputs for targets that are numbers, in the units of the data."""
        return outputs if self.target_mean is None else outputs * numpy.asarray(self.target_std, "float32") + numpy.asarray(self.target_mean, "float32")

    def __repr__(self) -> str:
        counts = ", ".join(f"{name} {len(part)}" for name, part in (("train", self.train), ("val", self.val), ("test", self.test)) if part)
        return f"<tutti.data of {self.path}: {self.kind}, {counts}, samples {list(self.shape)}" + (f", {self.classes} classes" if self.classes else "") + ">"


@ffi.def_extern()
def call_tutti_data_options_note(user, line):
    ffi.from_handle(user).noted(ffi.string(line).decode(errors="replace"))


def listed(name, value):
    """Columns may be a list, paths are paths."""
    if name in ("drop", "only", "text") and isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def opened(path, kinds, words, options):
    data = Data(path, **options)
    if kinds and data.kind not in kinds:
        data.close()
        raise ValueError(f"{path} is read as {data.kind}, not as {words}: tutti.data.open() takes every kind")
    return data


def open(path: Path, **options: Unpack[OpenOptions]) -> Data:
    """Data of any kind that the command reads; also the sets "digits" and "line", which are drawn."""
    return opened(path, (), "", options)


def folder(path: Path, **options: Unpack[OpenOptions]) -> Data:
    """A folder of pictures or recordings, one folder for each class, with train/, val/, test/ or divided; MNIST's and CIFAR's files.
    height, width, channels are those of pictures as the network gets them, 224 x 224 x 3 without them."""
    return opened(path, PICTURES, "pictures or recordings", options)


def table(path: Path, target: str | None = None, **options: Unpack[TableOptions]) -> Data:
    """A CSV file or several. target: the column to predict, without it the last one."""
    return opened(path, TABLES, "a table", {"target": target, **options})


def text(path: Path, text: str | Sequence[str] | None = None, target: str | None = None, **options: Unpack[TextOptions]) -> Data:
    """Texts: in the column `text` of a table, or two columns for pairs; without it a folder of .txt files for each class, or plain text of a
    language model (docs/text.md). A .conll or .conllu file, or lists in JSON: a tag for each word. tokenizer: the file of one or its JSON,
    "bytes", or "words", "wordpiece", "bpe" or "characters", which are learned from the texts; None: words, of language models bytes.
    length: the most tokens of a sample."""
    return opened(path, ("text",), "texts", {"text": text, "target": target, "fill_missing": True, **options})


def arrays(path: Path, **options: Unpack[OpenOptions]) -> Data:
    """Arrays in files: an .npz with x and y, or .npy files (docs/data.md)."""
    return opened(path, ("arrays",), "arrays", options)


__all__ = ["Data", "Part", "arrays", "folder", "open", "table", "text"]
