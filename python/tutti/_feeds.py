"""Arrays of numpy as what a network is fed with."""
import numpy

from ._call import DTYPES, NUMPY, enum
from ._native import ffi, lib

# What an input takes besides its own type, without a copy.
AS_IT_IS = {"int32": ("int64",)}


class Port:
    """An input of a network, or the targets of its loss: name, type, shape of a sample."""

    def __init__(self, name, dtype, shape, is_targets=False):
        self.name, self.dtype, self.shape, self.is_targets = name, dtype, tuple(shape), is_targets
        self.c_name, self.numpy = ffi.new("char[]", name.encode()), numpy.dtype(dtype)

    def array(self, given):
        """The array as the library reads it: contiguous, of the input's type and shape. Values must fit the type."""
        array = numpy.asarray(given)
        if array.dtype == self.numpy and array.shape[1:] == self.shape and array.flags.c_contiguous and array.ndim:
            return array
        if array.dtype.kind not in "biuf":
            raise TypeError(f'"{self.name}" takes numbers, not {array.dtype}')
        if self.dtype != "float32" and self.dtype != "bool" and array.dtype.kind == "f":
            raise TypeError(f'"{self.name}" takes {self.dtype}, not {array.dtype}')
        if array.dtype.name != self.dtype and array.dtype.name not in AS_IT_IS.get(self.dtype, ()):
            array = self.converted(array)
        array = numpy.ascontiguousarray(array)
        return self.shaped(array)

    def converted(self, array):
        if self.dtype != "float32" and array.size and not numpy.can_cast(array.dtype, self.dtype):
            limits = numpy.iinfo(self.dtype) if self.dtype != "bool" else None
            if limits and (array.min() < limits.min or array.max() > limits.max):
                raise ValueError(f'"{self.name}" takes {self.dtype}: {array.min()} to {array.max()} does not fit')
        return array.astype(self.dtype)

    def shaped(self, array):
        def fits(shape):
            return len(shape) == len(self.shape) and all(wanted in (size, -2) for wanted, size in zip(self.shape, shape))
        if array.ndim and fits(array.shape[1:]):
            return array
        # One number for each sample, with or without an axis of size 1.
        if array.ndim and self.is_targets and -2 not in self.shape and array.size == array.shape[0] * numpy.prod(self.shape, dtype=int):
            return array.reshape(array.shape[0], *self.shape)
        raise ValueError(f'"{self.name}" takes samples of the shape {list(self.shape)}; the array is {list(array.shape)}, with the samples first')

    def length(self, array):
        return array.shape[1 + self.shape.index(-2)] if -2 in self.shape else 0


def ports_of(network):
    return [Port(name, tensor.dtype.name, tensor.shape, name == "targets") for name, tensor in network.inputs.items()]


def paired(ports, x, y=None):
    """(port, array) for each given array: x is an array, a list in the order of the inputs, or a dictionary by their names."""
    inputs = [port for port in ports if not port.is_targets]
    given = dict(x) if isinstance(x, dict) else None
    if given is None:
        arrays = list(x) if isinstance(x, (list, tuple)) and len(inputs) > 1 else [x]
        if len(arrays) != len(inputs):
            raise ValueError(f"the network has the inputs {', '.join(port.name for port in inputs)}: {len(arrays)} arrays were given")
        given = {port.name: array for port, array in zip(inputs, arrays)}
    if y is not None:
        given["targets"] = y
    known = {port.name: port for port in ports}
    for name in given:
        if name not in known:
            raise ValueError(f"there is no input {name!r}: {', '.join(known)}")
    return [(known[name], known[name].array(array)) for name, array in given.items()]


class Feeds:
    """tutti_feed[] of arrays, which it holds."""

    def __init__(self, pairs):
        self.pairs = pairs      # which own what the feeds lead to
        counts = {len(array) for _, array in pairs}
        if len(counts) != 1:
            raise ValueError("the arrays have different numbers of samples: " + ", ".join(f"{port.name} {len(array)}" for port, array in pairs))
        self.samples, self.count = counts.pop(), len(pairs)
        self.array = ffi.new("tutti_feed[]", self.count)
        for feed, (port, array) in zip(self.array, pairs):
            feed.name, feed.data = port.c_name, ffi.cast("void *", array.__array_interface__["data"][0])
            feed.dtype, feed.length = DTYPES[array.dtype.name], port.length(array)

    @property
    def length(self):
        return max((port.length(array) for port, array in self.pairs), default=0)


class Source:
    """tutti_source of arrays: the library's thread copies the samples of a batch."""

    def __init__(self, pairs):
        feeds = Feeds(pairs)
        self.arrays = {port.name: array for port, array in pairs}
        self.handle, self.failure = ffi.new_handle(self), None
        self.struct = ffi.new("tutti_source *", {"samples": feeds.samples, "read": lib.call_tutti_source_read, "user": self.handle, "length": feeds.length})

    def read(self, indices, count, buffers, buffer_count):
        chosen = numpy.frombuffer(ffi.buffer(indices, 8 * count), "int64")
        for buffer in buffers[0:buffer_count]:
            room = numpy.frombuffer(ffi.buffer(buffer.data, count * buffer.bytes), NUMPY[buffer.dtype])
            room[:] = self.arrays[ffi.string(buffer.name).decode()][chosen].reshape(-1)


@ffi.def_extern(error=1)
def call_tutti_source_read(user, indices, count, buffers, buffer_count):
    source = ffi.from_handle(user)
    try:
        source.read(indices, count, buffers, buffer_count)
    except BaseException as failure:
        source.failure = failure
        return 1
    return 0


__all__ = ["Feeds", "Port", "Source", "enum", "paired", "ports_of"]
