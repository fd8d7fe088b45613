"""Texts from a language model, token by token."""
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy

from ._handle import Handle
from ._native import ffi, lib
from ._values import number
from .errors import check, made

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ._network import Tensor
    from ._trainer import Trainer
    from ._types import Ids


class Generator(Handle):
    """Continues texts by the network of a trainer, with its newest parameters (docs/generation.md). The network has one input, tokens
    [SEQUENCE], and an output, the logits of each next token; a token sees others in causal attention and in recurrent layers of one
    direction only. length: tokens of the longest text, its beginning included; texts: how many are continued together."""

    def __init__(self, trainer: Trainer, output: Tensor | None = None, *, length: int = 1024, texts: int = 1) -> None:
        self.network = trainer.network
        inputs = [tensor for name, tensor in self.network.inputs.items() if name != "targets"]
        if len(inputs) != 1:
            raise ValueError(f"a generator takes one input, the tokens, but the network has {len(inputs)}: {[*self.network.inputs]}")
        training = ffi.new("tutti_training *", {"size": ffi.sizeof("tutti_training"), "parameters_of": trainer.pointer})
        options = ffi.new("tutti_generator_options *", {
            "size": ffi.sizeof("tutti_generator_options"), "length": number("length", "int64_t", length),
            "texts": number("texts", "int64_t", texts), "training": training})
        with self.network.lock:
            pointer = lib.tutti_generator_new(self.network.pointer, inputs[0].c, (trainer.output if output is None else output).c, options)
        super().__init__(made(pointer), lib.tutti_generator_free, trainer)
        self.vocabulary: int = lib.tutti_generator_vocabulary(self.pointer)
        self.length = length or 1024

    def __len__(self) -> int:
        """Tokens of each text so far."""
        return lib.tutti_generator_length(self.pointer)

    def reset(self) -> None:
        """Begins new texts."""
        with self.network.lock:
            check(lib.tutti_generator_reset(self.pointer))

    def feed(self, ids: Ids) -> numpy.ndarray:
        """Adds tokens, [tokens] or [texts, tokens] of whole numbers, to the texts. Returns the logits of the token after the last one,
        [vocabulary] or [texts, vocabulary] of float32."""
        given = numpy.asarray(ids)
        if given.dtype.kind not in "iu" or given.ndim not in (1, 2):
            raise TypeError(f"tokens are whole numbers, [tokens] or [texts, tokens], not {given.dtype} of {given.ndim} dimensions")
        if given.size and (given.min() < 0 or given.max() >= self.vocabulary):
            raise ValueError(f"tokens are from 0 to {self.vocabulary - 1}, not {given.min()} to {given.max()}")
        tokens = numpy.ascontiguousarray(given, numpy.int32)
        texts, count = tokens.shape if tokens.ndim == 2 else (1, len(tokens))
        logits = numpy.empty((texts, self.vocabulary), numpy.float32)
        with self.network.lock:
            check(lib.tutti_generator_feed(self.pointer, ffi.from_buffer("int32_t[]", tokens), texts, count,
                                           ffi.from_buffer("float[]", logits)))
        return logits if tokens.ndim == 2 else logits[0]

    def stream(self, prompt: Ids, tokens: int | None = None, *, temperature: float = 0, top_k: int = 0, top_p: float = 0, seed: int = 0,
               ends: Sequence[int] = ()) -> Iterator[int]:
        """Begins a new text with the prompt, and gives each token as it is drawn: at most `tokens`, None: as many as fit. temperature
        divides the logits, 0: the likeliest token is taken; top_k: only that many of the likeliest are drawn; top_p: only the likeliest
        whose probabilities add up to it. Tokens of `ends` end the text and are not given."""
        sampling = ffi.new("tutti_sampling *", {
            "size": ffi.sizeof("tutti_sampling"), "temperature": number("temperature", "float", temperature),
            "top_k": number("top_k", "int64_t", top_k), "top_p": number("top_p", "float", top_p), "seed": number("seed", "uint64_t", seed)})
        self.reset()
        logits, made_tokens = self.feed(prompt), 0
        while tokens is None or made_tokens < tokens:
            token = lib.tutti_sample(ffi.from_buffer("float[]", logits), self.vocabulary, sampling, made_tokens)
            if token < 0:
                check(lib.tutti_last_status())
            if token in ends:
                return
            yield token
            made_tokens += 1
            if tokens is None and len(self) == self.length:
                return
            if made_tokens != tokens:
                logits = self.feed([token])

    def generate(self, prompt: Ids, tokens: int | None = None, **sampling) -> numpy.ndarray:
        """The tokens that stream() gives, as int32."""
        return numpy.fromiter(self.stream(prompt, tokens, **sampling), numpy.int32)
