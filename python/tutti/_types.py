"""Types that signatures of the package have."""
from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, Union

import numpy
import numpy.typing

if TYPE_CHECKING:
    from ._network import Tensor
    from .callbacks import Callback
    from .data import Data, Part


class HasArray(Protocol):
    """Arrays of other packages: frames of pandas, tensors of PyTorch."""
    def __array__(self) -> Any: ...


class HasDlpack(Protocol):
    """Tensors in the host's memory, by DLPack."""
    def __dlpack__(self) -> Any: ...


Numbers = Union[float, numpy.number[Any], numpy.bool_, numpy.typing.NDArray[Any]]
# What functions that add layers take in place of a tensor becomes a constant.
Operand = Union["Tensor", Numbers, Sequence[float], Sequence[Sequence[float]]]
Shape = Union[int, Sequence[int]]
Path = Union[str, "os.PathLike[str]"]
DType = Union[Literal["float32", "float16", "int32", "int64", "uint8", "bool", "bfloat16"], type, "numpy.dtype[Any]"]
# A text, or a pair of them; tokens of a text.
Text = Union[str, tuple[str, str]]
Ids = Union[Sequence[int], numpy.typing.NDArray[Any]]
# Samples of one input.
Array = Union[numpy.typing.NDArray[Any], HasArray, HasDlpack, Sequence[Any]]
# Samples of all inputs: of a single one, of several in their order, or by their names.
Inputs = Union[Array, Sequence[Array], Mapping[str, Array]]
# What fit() trains on: arrays, tutti.data, or batches.
Samples = Union[Inputs, "Data", "Part", Iterable[Any], Callable[[], Iterable[Any]]]
CallbackLike = Union["Callback", Callable[[int, "dict[str, float]"], object]]
