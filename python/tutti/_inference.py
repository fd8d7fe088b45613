"""Inference of programs that infer often: outputs without a copy, state that stays on the device, parameters of another trainer."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy
import numpy.typing

from ._feeds import plain
from ._handle import Handle
from ._native import ffi, lib
from ._values import near, shown
from .errors import check

if TYPE_CHECKING:
    from typing_extensions import Self

    from ._types import Array


# ----------------------------------------------------------------------------------------------------------- outputs ----

class Memory(Handle):
    """The library's numbers, as numpy reads them. The view of them is closed when no array shows them any more."""

    def __init__(self, trainer, view):
        address, shape = int(ffi.cast("uintptr_t", view.values)), tuple(view.shape.sizes[0:view.shape.rank])
        self.__array_interface__ = {"version": 3, "typestr": numpy.dtype("float32").str, "shape": shape, "data": (address, True)}
        pointer = trainer.pointer
        super().__init__(view, lambda view: trainer.lock.free(lambda view: lib.tutti_view_close(pointer, view, False), view), trainer)


class View:
    """An output that Trainer.predict_view() has computed: indices and functions of numpy read it, `array` is all of it. It can be
    read until the block ends, and until then the trainer computes nothing else; nor does it while arrays of it are kept."""

    def __init__(self, memory: Memory) -> None:
        self.memory: Memory | None = memory

    @property
    def array(self) -> numpy.typing.NDArray[numpy.float32]:
        """The numbers, which cannot be written."""
        if self.memory is None:
            raise ValueError("this view was closed: keep a copy, as view.array.copy()")
        return numpy.asarray(self.memory)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        array = self.array
        if dtype is not None and numpy.dtype(dtype) != array.dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def __getitem__(self, index: Any) -> Any:
        return self.array[index]

    def __len__(self) -> int:
        return len(self.array)

    def close(self) -> None:
        self.memory = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return "<tutti.View, closed>" if self.memory is None else f"<tutti.View {list(self.shape)}>"


def view_of(trainer, feeds, tensor):
    """Computes an output, and shows it."""
    with trainer.locked(trainer.least(feeds.samples), feeds.length) as pointer:
        check(lib.tutti_infer_keep(pointer, feeds.array, feeds.count, feeds.samples, ffi.new("tutti_tensor[]", [tensor.c]), 1))
        trainer.has_carried(feeds.samples)
        view = ffi.new("tutti_view *", {"size": ffi.sizeof("tutti_view")})
        check(lib.tutti_view_output(pointer, tensor.c, view))
        return View(Memory(trainer, view))


# ------------------------------------------------------------------------------------------------------------- state ----

class Carried(Mapping[str, Any]):
    """State that a trainer carries from one predict() to the next, by the names of its inputs: arrays [samples, *shape of a sample]."""

    def __init__(self, trainer: Any, inputs: Mapping[str, Any]) -> None:
        self.trainer, self.inputs = trainer, inputs

    def input(self, name):
        if name not in self.inputs:
            raise KeyError(f"no state is carried to {name!r}" + near(name, self.inputs))
        return self.inputs[name]

    def __getitem__(self, name: str) -> numpy.typing.NDArray[numpy.float32]:
        tensor = self.input(name)
        with self.trainer.lock:
            if not self.trainer.begun:
                raise ValueError("the state has not begun: it is zeros, for as many samples as the first predict() has")
            values = numpy.empty((self.trainer.begun, *tensor.shape), "float32")
            check(lib.tutti_get_carried(self.trainer.pointer, tensor.c, ffi.from_buffer("float[]", values.reshape(-1)), len(values)))
        return values

    def __setitem__(self, name: str, array: Array) -> None:
        tensor, given = self.input(name), plain(array, name)
        if given.dtype.kind not in "biuf":
            raise TypeError(f"{name} takes numbers, not {given.dtype}")
        values = numpy.ascontiguousarray(given, "float32")
        if values.ndim == 0 or not len(values) or values.shape[1:] != tensor.shape:
            raise ValueError(f"{name} takes samples of the shape {list(tensor.shape)}; the array is {list(values.shape)}, with the samples first")
        with self.trainer.locked(self.trainer.least(len(values)), 0) as pointer:
            check(lib.tutti_set_carried(pointer, tensor.c, ffi.from_buffer("float[]", values.reshape(-1)), len(values)))
            self.trainer.has_carried(len(values))

    def __iter__(self) -> Iterator[str]:
        return iter(self.inputs)

    def __len__(self) -> int:
        return len(self.inputs)


def carries_of(carries, tensor_type):
    """Checks the option `carries`: a list of pairs of tensors."""
    pairs = list(carries) if isinstance(carries, (list, tuple)) else None
    if pairs is None or not all(isinstance(pair, (list, tuple)) and len(pair) == 2 and all(isinstance(one, tensor_type) for one in pair) for pair in pairs):
        raise TypeError(f"carries is {shown(carries)}: it must be a list of pairs of tensors, [(output, input)]")
    return [tuple(pair) for pair in pairs]
