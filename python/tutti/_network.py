"""Networks and their tensors."""
from __future__ import annotations

import contextlib
import math
import os
from typing import TYPE_CHECKING, Any, Literal

import numpy

from . import _html, _pickling
from ._call import DTYPES, NUMPY, Call, Options, c_of, enum, encoded, shape_of, sizes_of
from ._feeds import plain
from ._handle import Handle, UseLock, taken
from ._native import ffi, lib
from ._runtime import Runtime, default_runtime
from ._values import number, shown
from .errors import by_status, check, made, message

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typing_extensions import Unpack

    from ._options import OnnxOptions, ParameterOptions
    from ._types import DType, Operand, Path, Shape


class Tensor:
    """A tensor of a network: what a layer computes, an input, a parameter or a constant. Arithmetic adds layers."""
    __array_ufunc__ = None      # numpy leaves arithmetic with arrays to these methods

    def __init__(self, network: Network, c: Any) -> None:
        self.network, self.c = network, c

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a sample, without the batch; -2 is the length of a sequence."""
        shape = ffi.new("tutti_shape *")
        check(lib.tutti_shape_of(self.network.pointer, self.c, shape))
        return shape_of(shape)

    @property
    def dtype(self) -> numpy.dtype[Any]:
        return numpy.dtype(NUMPY[self.network.tensor_info(self.c).dtype])

    def __reduce__(self):
        return _pickling.tensor_of, (self.network, self.c.id)

    def __repr__(self) -> str:
        return f"<tutti.Tensor {list(self.shape)}>"

    def __add__(self, other: Operand) -> Tensor:
        return self.network.op("add", self, other)

    def __radd__(self, other: Operand) -> Tensor:
        return self.network.op("add", other, self)

    def __sub__(self, other: Operand) -> Tensor:
        return self.network.op("sub", self, other)

    def __rsub__(self, other: Operand) -> Tensor:
        return self.network.op("sub", other, self)

    def __mul__(self, other: Operand) -> Tensor:
        return self.network.op("mul", self, other)

    def __rmul__(self, other: Operand) -> Tensor:
        return self.network.op("mul", other, self)

    def __truediv__(self, other: Operand) -> Tensor:
        return self.network.op("div", self, other)

    def __rtruediv__(self, other: Operand) -> Tensor:
        return self.network.op("div", other, self)

    def __pow__(self, other: Operand) -> Tensor:
        return self.network.op("pow", self, other)

    def __neg__(self) -> Tensor:
        return self.network.op("neg", self)

    def __matmul__(self, other: Operand) -> Tensor:
        return self.network.op("matmul", self, other)


def runtime_of(given: Runtime | None) -> Runtime:
    if given is not None and not isinstance(given, Runtime):
        raise TypeError(f"runtime is {shown(given)}: it must be a tutti.Runtime")
    return given or default_runtime()


class Network(Handle):
    """A network without layers. Inputs begin it, functions such as tutti.dense() add to it, tutti.Trainer trains it."""

    def __init__(self, runtime: Runtime | None = None) -> None:
        self.runtime: Runtime = runtime_of(runtime)
        super().__init__(made(lib.tutti_network_new(self.runtime.pointer)), lib.tutti_network_free, self.runtime)
        self.lock = UseLock()   # only one thread at a time may use a network and its trainers
        self.defaults: dict[str, Any] = {}
        self.last: Tensor | None = None
        self.named: list[Tensor] = []
        self.journal: list[Any] | None = []
        self.loaded: Any = None     # the calls that built it (_pickling.py); None: it cannot be pickled
        self.file: Any = None

    def tensor_info(self, c: Any) -> Any:
        info = ffi.new("tutti_tensor_info *", {"size": ffi.sizeof("tutti_tensor_info")})
        check(lib.tutti_network_tensor(self.pointer, c, info))
        return info

    def tensor(self, c):
        """The tensor that a function returned. The network keeps its first error."""
        if c.id < 0:
            status = lib.tutti_network_status(self.pointer)
            raise by_status.get(status, ValueError)(message())
        return Tensor(self, c)

    def add_layer(self, function, arguments, outs=(), kept=()):
        with self.lock:
            self.last = self.tensor(function(self.pointer, *arguments))
            if self.journal is not None:
                self.journal.append((_pickling.function_name(function), *(_pickling.written(argument, kept) for argument in arguments)))
            return (self.last, *(Tensor(self, out[0]) for out in outs)) if outs else self.last

    def op(self, operation: str, *inputs: Operand, **attributes: Any) -> Tensor:
        """Adds an operation by its name (docs/operations.md)."""
        call = Call(self)
        given = " ".join(f"{key}={attribute(value)}" for key, value in attributes.items() if value is not None)
        return call.add(lib.tutti_op, call.text(operation), *call.tensors(inputs), call.text(given))

    def input(self, name: str | None = None, shape: Shape = (), dtype: DType = "float32") -> Tensor:
        """An input of samples of this shape; () is one number. -2 is the length of a sequence."""
        call = Call(self)
        return call.add(lib.tutti_input_typed, call.text(name), enum("tutti_dtype", dtype), *call.sizes(shape))

    def parameter(self, name: str | None, shape: Shape, **options: Unpack[ParameterOptions]) -> Tensor:
        """A parameter, for layers' `weight` and `bias` and for operations: init, init_scale, fan_in, fan_out, values, frozen."""
        call, lengths = Call(self), {"values": math.prod(sizes_of(shape))}
        return call.add(lib.tutti_parameter_sized, call.text(name), *call.sizes(shape), call.options("tutti_parameter_options", lengths, **options))

    def find_parameter(self, name: str) -> Tensor:
        """The parameter of this name, for example to share a layer's."""
        call = Call(self)
        return call.add(lib.tutti_find_parameter, call.text(name))

    def constant(self, values: Operand, name: str | None = None) -> Tensor:
        """Numbers that do not train: float32, or int32 of integers that are a numpy array."""
        call, array = Call(self), plain(values, "a constant")
        if array.dtype.kind not in "biuf":
            raise TypeError(f"a constant is {shown(values)}: it must be a number or an array of numbers")
        kind = "int32" if isinstance(values, numpy.ndarray) and array.dtype.kind in "iu" else "float32"
        array = numpy.ascontiguousarray(array, kind)
        sizes = call.sizes(array.shape or (1,))
        return call.add(lib.tutti_constant_typed, call.text(name), DTYPES[kind], *sizes, ffi.from_buffer("char[]", array.view("uint8") if array.ndim else array.reshape(1)))

    @contextlib.contextmanager
    def scope(self, prefix: str) -> Iterator[Network]:
        """Layers within it have names that begin with "prefix."."""
        self.scope_push(prefix)
        try:
            yield self
        finally:
            self.scope_pop()

    def note(self, method, *arguments):
        if self.journal is not None:
            self.journal.append((method, *map(_pickling.portable, arguments)))

    def scope_push(self, prefix: str) -> None:
        lib.tutti_scope_push(self.pointer, encoded(prefix))
        self.note(".scope_push", prefix)

    def scope_pop(self) -> None:
        lib.tutti_scope_pop(self.pointer)
        self.note(".scope_pop")

    def output(self, tensor: Tensor, name: str | None = None) -> Tensor:
        """Makes a tensor an output of the network: what trainers train and predict."""
        c_of(tensor)
        if name is not None:
            check(lib.tutti_output(self.pointer, encoded(name), tensor.c))
            self.note(".output", tensor, name)
        self.named.append(tensor)
        return tensor

    @property
    def outputs(self) -> list[Tensor]:
        """The outputs that were named or given to output(); if there are none, that of the last layer."""
        return list(self.named) if self.named else [self.last] if self.last else []

    @property
    def inputs(self) -> dict[str, Tensor]:
        """The inputs by their names, in their order."""
        found: dict[str, Tensor] = {}
        c = ffi.new("tutti_tensor *")
        while lib.tutti_network_input(self.pointer, len(found), c) == lib.TUTTI_OK:
            one = ffi.new("tutti_tensor *", c[0])[0]
            found[ffi.string(self.tensor_info(one).name).decode()] = Tensor(self, one)
        return found

    @property
    def parameter_count(self) -> int:
        return lib.tutti_network_parameters(self.pointer)

    def freeze(self, pattern: str) -> None:
        """Parameters that match, as "backbone.*", do not train."""
        check(lib.tutti_freeze(self.pointer, encoded(pattern)))
        self.note(".freeze", pattern)

    def unfreeze(self, pattern: str) -> None:
        check(lib.tutti_unfreeze(self.pointer, encoded(pattern)))
        self.note(".unfreeze", pattern)

    def store(self, pattern: str, storage: Literal["f32", "bf16", "int8"]) -> None:
        """Stores frozen matrices that match as bfloat16, or as bytes with a scale for each 64: in a half or a quarter of the memory."""
        check(lib.tutti_store(self.pointer, encoded(pattern), enum("tutti_storage", storage, "storage")))
        self.note(".store", pattern, storage)

    def lora(self, pattern: str = "*", rank: int = 8, alpha: float = 0, dropout: float = 0,
             base: Literal["f32", "bf16", "int8"] | None = None) -> None:
        """Adds low-rank adapters to the dense layers whose weights match, and freezes all other parameters (Hu et al. 2021).

        An adapter adds alpha / rank * B A x; alpha 0 stands for the rank. unfreeze() then lets others train, too.
        Trainer.save_adapter() writes the adapters, Trainer.save_merged() weights with them added.
        base: how the frozen matrices are stored (store())."""
        options = ffi.new("tutti_lora_options *", {"rank": number("rank", "int64_t", rank), "alpha": number("alpha", "float", alpha),
                                                   "dropout": number("dropout", "float", dropout)})
        check(lib.tutti_lora(self.pointer, encoded(pattern), options))
        self.note(".lora", pattern, rank, alpha, dropout)
        if base is not None:
            self.store("*", base)

    def layers(self) -> list[tuple[str, str, tuple[int, ...], int]]:
        """(name, operation, shape of a sample, parameters) of each layer."""
        info, found = ffi.new("tutti_layer_info *"), []
        for position in range(lib.tutti_network_layers(self.pointer)):
            check(lib.tutti_network_layer(self.pointer, position, info))
            found.append((ffi.string(info.name).decode(), ffi.string(info.operation).decode(), shape_of(info.shape), info.parameters))
        return found

    def _repr_html_(self) -> str:
        """The picture that `tutti show --svg` draws."""
        return _html.picture(taken(lib.network_picture(self.pointer, b"network")), f"{self.parameter_count} parameters")

    def __reduce__(self):
        return _pickling.network_of, _pickling.network_parts(self)

    def __repr__(self) -> str:
        rows = [f"  {name:24} {operation:20} {list(shape)!s:20} {count or ''}".rstrip() for name, operation, shape, count in self.layers()]
        return "\n".join([f"<tutti.Network, {self.parameter_count} parameters", *rows]) + ">"


def attribute(value):
    """The value of an attribute, as tutti_op() reads it."""
    if isinstance(value, (list, tuple, numpy.ndarray)):
        return ",".join(map(attribute, value))
    if isinstance(value, (bool, numpy.bool_)):
        return str(int(value))
    text = repr(float(value)) if isinstance(value, (float, numpy.floating)) else str(value)
    if not text or any(character.isspace() for character in text):
        raise ValueError(f"the attribute {value!r} has blanks or is empty")
    return text


def known_inputs(given: Options, known: dict[str, Any]) -> None:
    """Gives options the values of inputs by name: floats become parameters, whole numbers constants."""
    entries = given.keep(ffi.new("tutti_onnx_known[]", len(known)))
    for entry, (name, array) in zip(entries, known.items()):
        array = numpy.ascontiguousarray(array).reshape(numpy.shape(array))
        array = array.astype("float32" if array.dtype.kind == "f" else array.dtype.name if array.dtype.name in DTYPES else "int64", copy=False)
        given.keep(array)
        entry.name, entry.dtype = given.keep(ffi.new("char[]", encoded(name))), DTYPES[array.dtype.name]
        entry.shape, entry.trains = {"rank": array.ndim, "sizes": array.shape}, array.dtype.kind == "f"
        entry.values = ffi.cast("void *", array.__array_interface__["data"][0])
    given.struct.known, given.struct.known_count = entries, len(known)


def load(path: Path, *, input: Shape | None = None, runtime: Runtime | None = None, sizes: dict[str, int] | None = None,
         known: dict[str, Any] | None = None, note: Any = None, **options: Unpack[OnnxOptions]) -> Network:
    """A network from an ONNX file. `input` is the shape of a sample, for sizes that the file leaves open; `sizes` has more of
    them by name. `known` has arrays of inputs by name that get their values now: shapes and axes, or weights. note(line) gets what
    the import changes. Other options are those of tutti_onnx_options, such as logits=True and head=10 for other classes."""
    network = Network.__new__(Network)
    network.runtime = runtime_of(runtime)
    given = Options("tutti_onnx_options", {"input": input, **options})
    if sizes:
        names = [given.keep(ffi.new("char[]", encoded(name))) for name in sizes]
        given.struct.sizes = given.keep(ffi.new("tutti_onnx_size[]", [{"name": name, "size": size} for name, size in zip(names, sizes.values())]))
        given.struct.size_count = len(sizes)
    if known:
        known_inputs(given, known)
    if note is not None:
        given.struct.note, given.struct.user = lib.call_tutti_onnx_options_note, given.keep(ffi.new_handle(note))
    found = ffi.new("tutti_onnx *", {"size": ffi.sizeof("tutti_onnx")})
    check(lib.tutti_import_onnx(network.runtime.pointer, encoded(path), given.struct, found))
    Handle.__init__(network, found.network, lib.tutti_network_free, network.runtime)
    network.lock, network.defaults, network.last = UseLock(), {}, None
    network.journal, network.loaded, network.file = [], (os.path.abspath(path), {"input": input, "sizes": sizes, "known": known, **options}), found
    network.named = [Tensor(network, ffi.new("tutti_tensor *", found.outputs[position])[0]) for position in range(found.output_count)]
    return network


@ffi.def_extern()
def call_tutti_onnx_options_note(user, line):
    ffi.from_handle(user)(ffi.string(line).decode(errors="replace"))


__all__ = ["Network", "Tensor", "load", "sizes_of"]
