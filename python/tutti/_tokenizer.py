"""Tokenizers: text to ids and back."""
from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy

from ._handle import Handle, taken
from ._native import ffi, lib
from ._values import number
from .errors import check, made

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from typing_extensions import Self

    from ._types import Text


def encoded(text):
    """Bytes of UTF-8. Lone surrogates have none: the tokenizer reads their bytes as U+FFFD."""
    if not isinstance(text, str):
        raise TypeError(f"a text is a str, not {type(text).__name__}: {text!r:.60}")
    return text.encode(errors="surrogatepass")


class Tokenizer(Handle):
    """Makes ids of text, and text of ids (docs/text.md). path: "bytes", a tokenizer.json, vocab.txt or merges.txt, or a folder with one."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._take(lib.tutti_tokenizer_open(os.fsencode(path)))

    def _take(self, pointer):
        super().__init__(made(pointer), lib.tutti_tokenizer_close)
        return self

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Makes a tokenizer from the text of a tokenizer.json."""
        return cls.__new__(cls)._take(lib.tutti_tokenizer_parse(encoded(text)))

    @classmethod
    def train(cls, texts: Iterable[str], kind: str = "bpe", *, tokens: int = 0, least: int = 0, special: Sequence[str] = (),
              lowercase: bool = False) -> Self:
        """Learns one from texts. kind: "bpe", "wordpiece", "characters" or "words"; tokens: of the vocabulary at most, 0: as many as the
        kind has usually; least: what is seen less often becomes no token; special: tokens that stand for themselves, with the first ids."""
        if isinstance(texts, str):
            raise TypeError("texts are several: give a list, such as [text]")
        lines, names = [encoded(text) for text in texts], [encoded(token) for token in special]
        held = [ffi.from_buffer(line) for line in lines], [ffi.new("char[]", name) for name in names], ffi.new("char[]", encoded(kind))
        options = ffi.new("tutti_tokenizer_options *", {
            "size": ffi.sizeof("tutti_tokenizer_options"), "kind": held[2], "tokens": number("tokens", "int64_t", tokens),
            "least": number("least", "int64_t", least), "special_count": len(names), "lowercase": bool(lowercase)})
        pointers = ffi.new("char *[]", held[1])
        if names:
            options.special = pointers
        begins, sizes = ffi.new("char *[]", [ffi.cast("char *", line) for line in held[0]]), ffi.new("int64_t[]", [len(line) for line in lines])
        return cls.__new__(cls)._take(lib.tutti_tokenizer_train(begins, sizes, len(lines), options))

    def _ids(self, text: Text, special: bool, most: int) -> numpy.ndarray:
        first, second = text if isinstance(text, tuple) else (text, None)
        line, pair = encoded(first), b"" if second is None else encoded(second)
        begins = ffi.from_buffer(pair)
        options = ffi.new("tutti_encode_options *", {
            "size": ffi.sizeof("tutti_encode_options"), "pair": ffi.NULL if second is None else ffi.cast("char *", begins),
            "pair_bytes": len(pair), "no_special": not special, "most": number("most", "int64_t", most)})
        encoding = ffi.new("tutti_encoding *")
        check(lib.tutti_tokenizer_encode(self.pointer, line, len(line), options, encoding))
        try:
            if encoding.count == 0:
                return numpy.empty(0, numpy.int32)
            return numpy.frombuffer(ffi.buffer(encoding.ids, 4 * encoding.count), numpy.int32).copy()
        finally:
            lib.tutti_encoding_free(encoding)

    def encode(self, text: Text, *, special: bool = True, most: int = 0) -> numpy.ndarray:
        """Ids of a text, or of a pair of texts, as int32. special: with the tokens around texts, such as [CLS]; most: longer ones are cut to
        so many ids, 0: none is."""
        return self._ids(text, special, most)

    def encode_batch(self, texts: Iterable[Text], *, special: bool = True, most: int = 0, length: int = 0) -> tuple[numpy.ndarray, numpy.ndarray]:
        """Ids of texts [texts, length] as int32, with -1 after the end of each, which networks leave out, and their lengths as int64.
        length 0: that of the longest; longer ones are cut to `length`."""
        if isinstance(texts, str):
            raise TypeError("texts are several: give a list, such as [text]")
        if number("length", "int64_t", length) < 0:
            raise ValueError(f"length is {length}: it must be positive, or 0 for that of the longest text")
        limit = min(length, most) if length and most else length or most
        rows = [self._ids(text, special, limit) for text in texts]
        lengths = numpy.array([len(row) for row in rows], numpy.int64)
        ids = numpy.full((len(rows), length or int(lengths.max(initial=0))), -1, numpy.int32)
        for row, found in zip(ids, rows):
            row[:len(found)] = found
        return ids, lengths

    def decode(self, ids: Sequence[int] | numpy.ndarray, *, special: bool = False) -> str:
        """The text of ids; those below 0 are padding. special: with special tokens."""
        given = numpy.asarray(ids)
        if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
            raise TypeError(f"ids are whole numbers in one dimension, not {given.dtype} of shape {given.shape}")
        if given.size and (given.max() > 2**31 - 1 or given.min() < -2**31):
            raise ValueError("an id has at most 32 bits")
        given = numpy.ascontiguousarray(given, numpy.int32)
        return taken(lib.tutti_tokenizer_decode(self.pointer, ffi.cast("int32_t *", ffi.from_buffer(given)), given.size, special))

    def __len__(self) -> int:
        return lib.tutti_tokenizer_size(self.pointer)

    def id(self, token: str) -> int | None:
        """The id of a token; None: the vocabulary does not have it."""
        found = lib.tutti_tokenizer_id(self.pointer, encoded(token))
        return found if found >= 0 else None

    def token(self, id: int) -> str | None:
        """The token of an id, as the vocabulary writes it; None: there is none."""
        found = lib.tutti_tokenizer_token(self.pointer, number("id", "int32_t", id))
        return ffi.string(found).decode(errors="replace") if found != ffi.NULL else None

    @property
    def end(self) -> int | None:
        """The id that ends a text; None: there is none."""
        found = lib.tutti_tokenizer_end(self.pointer)
        return found if found >= 0 else None

    def json(self) -> str:
        """The text of a tokenizer.json."""
        return taken(lib.tutti_tokenizer_json(self.pointer))

    def __reduce__(self):
        return type(self).from_json, (self.json(),)

    def __repr__(self) -> str:
        return f"Tokenizer({len(self)} tokens)" if self._open else "Tokenizer(closed)"
