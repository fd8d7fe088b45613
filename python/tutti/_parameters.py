"""Parameters, gradients and optimizer states of a trainer by the parameters' names: what is assigned to a part of one is written."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy
import numpy.typing

from ._call import shape_of
from ._feeds import plain
from ._native import ffi, lib
from ._values import near
from .errors import check

if TYPE_CHECKING:
    from ._types import Array


def numbers_of(given: Any, name: str) -> Any:
    array = plain(given, name)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} takes numbers, not {array.dtype}")
    return numpy.asarray(array, "float32")


class Values:
    """The values of one parameter or gradient. Indices read and write them; numpy functions read them."""

    def __init__(self, owner: Parameters, name: str, shape: tuple[int, ...], trained: bool) -> None:
        self.owner, self.name, self.shape, self.trained = owner, name, shape, trained

    def numpy(self) -> numpy.typing.NDArray[numpy.float32]:
        """A copy."""
        values = numpy.empty(self.shape, "float32")
        with self.owner.trainer.lock:
            check(self.owner.get(self.owner.trainer.pointer, *self.owner.place(self), ffi.from_buffer("float[]", values.reshape(-1)), values.size))
        return values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    def __dlpack__(self, **options: Any) -> Any:
        return self.numpy().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0     # the host's memory

    def __getitem__(self, index: Any) -> Any:
        return self.numpy()[index]

    def __setitem__(self, index: Any, values: Any) -> None:
        with self.owner.trainer.lock:
            changed, values = self.numpy(), numbers_of(values, self.name)
            try:
                changed[index] = values
            except ValueError:
                raise ValueError(f"{self.name}{list(self.shape)} takes the shape {list(changed[index].shape)} there, the array is {list(values.shape)}") from None
            self.owner.write(self, changed)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"{self.name} {list(self.shape)}{'' if self.trained else ', not trained'}"


class Parameters(Mapping[str, Values]):
    """Parameters and running statistics by the names that files of weights have."""
    get, set, trained_only, word = lib.tutti_get_parameter, lib.tutti_set_parameter, False, "parameter"

    def __init__(self, trainer: Any) -> None:
        self.trainer = trainer
        self.known: dict[str, Values] = {}
        name, shape, trained, position = ffi.new("const char **"), ffi.new("tutti_shape *"), ffi.new("bool *"), 0
        while lib.tutti_parameter_info(trainer.network.pointer, position, name, shape, trained) == lib.TUTTI_OK:
            position += 1
            if trained[0] or not self.trained_only:
                text = ffi.string(name[0]).decode()
                self.known[text] = Values(self, text, shape_of(shape), trained[0])

    def place(self, values):
        """What the library's functions take before the numbers."""
        return (values.name.encode(),)

    def __getitem__(self, name: str) -> Values:
        if name not in self.known:
            raise KeyError(f"there is no {self.word} {name!r}" + near(name, self.known))
        return self.known[name]

    def __contains__(self, name: object) -> bool:
        return name in self.known

    def __iter__(self) -> Iterator[str]:
        return iter(self.known)

    def __len__(self) -> int:
        return len(self.known)

    def write(self, values, array):
        array = numpy.ascontiguousarray(array, "float32")
        with self.trainer.lock:
            check(self.set(self.trainer.pointer, *self.place(values), ffi.from_buffer("float[]", array.reshape(-1)), array.size))

    def __setitem__(self, name: str, array: Array | Values | float) -> None:
        values, given = self[name], numbers_of(array, name)
        if given.shape != values.shape:
            raise ValueError(f"{name} has the shape {list(values.shape)}, the array {list(given.shape)}")
        self.write(values, given)

    def __repr__(self) -> str:
        return "\n".join(map(repr, self.known.values()))


class Gradients(Parameters):
    """The gradients of the last step or backward(): means over the batch. After backward() they can be changed, until apply()."""
    get, set, trained_only, word = lib.tutti_get_gradient, lib.tutti_set_gradient, True, "gradient of a parameter"


class States(Parameters):
    """One of the optimizer's states for each parameter that trains."""
    get, set, trained_only = lib.tutti_get_state, lib.tutti_set_state, True

    def __init__(self, trainer: Any, state: str) -> None:
        super().__init__(trainer)
        self.state = state

    def place(self, values):
        return values.name.encode(), self.state.encode()


class StatesByName(dict[str, States]):
    """The optimizer's states: States by name."""

    def __missing__(self, name: str) -> States:
        raise KeyError(f"the optimizer has no state {name!r}" + near(name, self))
