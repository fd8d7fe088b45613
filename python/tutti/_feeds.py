"""Arrays of numpy as what a network is fed with."""
import warnings

import numpy

from ._call import NUMPY, enum
from ._native import ffi, lib
from ._values import shown

# What the library reads of an array, by its type: the name of a type of numpy is text that numpy puts together at each call.
NUMBERS = {numpy.dtype(name): number for number, name in NUMPY.items()}
# What an input takes besides its own type, without a copy.
AS_IT_IS = {"int32": numpy.dtype("int64")}
# Arrays of other types than the network's are converted at once up to this size, and batch by batch above it.
AT_ONCE = 64 << 20


def plain(given, name="the array"):
    """An array of numpy, without a copy where that is possible: of arrays, memory maps, tensors of other packages in the host's
    memory (by DLPack or numpy's protocol), lists of numbers."""
    if isinstance(given, numpy.ndarray):
        return given
    if given is None or isinstance(given, (str, bytes)):
        raise TypeError(f'"{name}" takes an array of numbers, not {shown(given)}' + (f"; tutti.data.open({given!r}) reads files" if isinstance(given, str) else ""))
    given = given.detach() if hasattr(given, "detach") else given       # tensors that have a gradient
    given = given.float() if str(getattr(given, "dtype", "")).endswith("bfloat16") and hasattr(given, "float") else given
    try:
        if hasattr(given, "__dlpack__") and not hasattr(given, "__array__"):
            return numpy.from_dlpack(given)
        return numpy.asarray(given)
    except (ValueError, TypeError, BufferError, RuntimeError) as failure:
        raise type(failure)(f'"{name}" takes an array of numbers; ' + not_an_array(given, failure)) from None


def not_an_array(given, failure):
    if "inhomogeneous" not in str(failure):
        return f"{shown(given)} cannot be read as one in the host's memory ({failure})"
    shapes = []
    for one in given:
        try:
            shapes.append(str(list(numpy.shape(one))))
        except ValueError:
            shapes.append("one within which they differ")
    advice = ": give x and y as two arguments, as fit(x, y)" if len(shapes) == 2 and isinstance(given, (list, tuple)) and hasattr(given[0], "__array__") else ""
    return f"the samples of this {type(given).__name__} have different shapes, {' and '.join([*dict.fromkeys(shapes)][:2])}" + (advice or "; samples must have equal shapes")


class Port:
    """An input of a network, or the targets of its loss: name, type, shape of a sample."""

    def __init__(self, name, dtype, shape, is_targets=False):
        self.name, self.dtype, self.shape, self.is_targets = name, dtype, tuple(shape), is_targets
        self.c_name, self.numpy = ffi.new("char[]", name.encode()), numpy.dtype(dtype)
        self.types = (self.numpy, AS_IT_IS.get(dtype, self.numpy))

    def __reduce__(self):
        return Port, (self.name, self.dtype, self.shape, self.is_targets)

    def is_ready(self, array):
        """The library reads it as it is."""
        return array.dtype in self.types and array.flags.c_contiguous

    def checked(self, given):
        """The array, of the input's shape, and of a type that ready() converts."""
        array = plain(given, self.name)
        if array.dtype == self.numpy and array.shape[1:] == self.shape and array.ndim:
            return array
        if array.dtype.kind not in "biuf":
            raise TypeError(self.not_numbers(array))
        if self.dtype != "float32" and self.dtype != "bool" and array.dtype.kind == "f":
            raise TypeError(f'"{self.name}" takes {self.dtype}, not {array.dtype}' + self.class_advice(array))
        return self.shaped(array)

    def class_advice(self, array):
        """What to write instead of targets that are no class numbers."""
        if self.dtype == "int32" and array.dtype.kind == "f" and numpy.isnan(array).any():
            return f": it has NaN, {numpy.isnan(array).sum()} of {array.size}; leave these samples out" + (", or give them the class -100" if self.is_targets else "")
        if not self.is_targets or self.dtype != "int32":
            return f": convert it, as {self.name}.astype({self.dtype!r})" if array.dtype.kind == "f" and self.dtype != "float32" else ""
        if array.ndim == len(self.shape) + 2 and array.shape[1] > 1:
            return ": class numbers from 0; of a number for each class, y.argmax(1)"
        return ": class numbers from 0, as y.astype(int)"

    def warn_of_negative(self, array):
        """Classes below 0 do not count in the loss, which is not what everyone who has some means; -100 is PyTorch's sign for that."""
        if not self.is_targets or self.dtype != "int32" or array.dtype.kind != "i" or not array.size or numpy.minimum.reduce(array, axis=None) >= 0:
            return
        negative = array[(array < 0) & (array != -100)]
        if negative.size:
            warnings.warn(f'"{self.name}" has the class {negative[0]}: {negative.size} of {array.size} are below 0 and do not count in the loss; '
                          "classes are numbered from 0, and -100 leaves one out without this warning", stacklevel=4)

    def not_numbers(self, array):
        said = f'"{self.name}" takes numbers ({self.dtype}), not {array.dtype}'
        first = array.reshape(-1)[0] if array.size else None
        if array.dtype.kind == "O" and (first is None or isinstance(first, (int, float, numpy.number))):
            said += f": convert it, as array.astype({self.dtype!r})"
        elif array.dtype.kind == "c":
            said += ": its real and imaginary parts are two arrays, .real and .imag"
        elif array.dtype.kind in "USTO":
            said += f", as {str(first)[:40]!r}: " + ("give class numbers, as numpy.unique(y, return_inverse=True)[1]" if self.is_targets
                                                          else "convert texts to numbers first")
        return said

    def ready(self, array):
        """An array that was checked, contiguous and of the input's type. Values must fit the type."""
        if self.is_ready(array):
            return array
        if array.dtype not in self.types:
            array = self.converted(array)
        return numpy.ascontiguousarray(array)

    def array(self, given):
        return self.ready(self.checked(given))

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
        if not array.ndim:
            raise ValueError(f'"{self.name}" takes samples of the shape {list(self.shape)}, with an axis of samples first; {shown(array[()])} is a single number')
        raise ValueError(f'"{self.name}" takes samples of the shape {list(self.shape)}; the array is {list(array.shape)}, with the samples first'
                         + self.advice(array.shape, fits))

    def advice(self, shape, fits):
        if fits(shape):
            return ": one sample is array[None]"
        if len(shape) == 4 and fits((shape[3], *shape[1:3])):
            return ": channels come first, array.transpose(0, 3, 1, 2)"
        if fits((1, *shape[1:])):
            return ": the channel is missing, array[:, None]"
        return self.class_advice(numpy.broadcast_to(0, shape)) if len(shape) == len(self.shape) + 2 else ""

    def length(self, array):
        return array.shape[1 + self.shape.index(-2)] if -2 in self.shape else 0

    def cut(self, array, length):
        """The beginnings of its sequences."""
        return array[(slice(None), *(slice(length if size == -2 else None) for size in self.shape))]


def ports_of(network):
    return [Port(name, tensor.dtype.name, tensor.shape, name == "targets") for name, tensor in network.inputs.items()]


def paired(ports, x, y=None):
    """(port, array) for each given array: x is an array, a list in the order of the inputs, or a dictionary by their names. The
    arrays are checked; Feeds converts them at once, Source batch by batch."""
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
        if name not in known and name == "targets":
            raise ValueError(f'the trainer has no loss that reads targets: leave out y, or make it with Trainer(net, loss="cross_entropy"); the network has the inputs {", ".join(known)}')
        if name not in known:
            raise ValueError(f"there is no input {name!r}: the network takes {', '.join(known)}")
    pairs = [(known[name], known[name].checked(array)) for name, array in given.items()]
    for port, array in pairs:
        port.warn_of_negative(array)
    if len({len(array) for _, array in pairs}) > 1:
        raise ValueError("the arrays have different numbers of samples: " + ", ".join(f"{port.name} {len(array)}" for port, array in pairs)
                         + ": each sample needs one of each")
    return pairs


def is_large(pairs):
    """Whether converting the arrays at once would take much memory, or read a file that is mapped."""
    return any(not port.is_ready(array) and (array.nbytes > AT_ONCE or isinstance(array, numpy.memmap)) for port, array in pairs)


def not_finite(pairs):
    """What to say about arrays with NaN or infinite numbers; "" if there are none."""
    for port, array in pairs:
        if array.dtype.kind == "f":
            wrong = numpy.flatnonzero(~numpy.isfinite(array.reshape(len(array), -1)).all(1))
            if wrong.size:
                return f': "{port.name}" has NaN or infinite numbers in {wrong.size} of {len(array)} samples, the first is sample {wrong[0]}'
    return ""


class Feeds:
    """tutti_feed[] of arrays, which it holds."""

    def __init__(self, pairs):
        pairs = [(port, port.ready(array)) for port, array in pairs]
        self.pairs = pairs      # which own what the feeds lead to
        self.samples, self.count = len(pairs[0][1]), len(pairs)
        self.lengths, self.buckets = None, 0
        self.array = ffi.new("tutti_feed[]", self.count)
        for feed, (port, array) in zip(self.array, pairs):
            feed.name, feed.data = port.c_name, ffi.from_buffer(array)
            feed.dtype, feed.length = NUMBERS[array.dtype], port.length(array)

    def set_lengths(self, lengths, buckets):
        self.lengths, self.buckets = lengths, buckets

    @property
    def length(self):
        return max((port.length(array) for port, array in self.pairs), default=0)


class Source:
    """tutti_source of arrays: the library's thread copies the samples of a batch, and converts them."""

    def __init__(self, pairs):
        self.pairs = {port.name: (port, array) for port, array in pairs}
        self.handle, self.failure, self.samples = ffi.new_handle(self), None, len(pairs[0][1])
        self.length = max(port.length(array) for port, array in pairs)
        self.struct = ffi.new("tutti_source *", {"samples": self.samples, "read": lib.call_tutti_source_read, "user": self.handle, "length": self.length})

    def set_lengths(self, lengths, buckets):
        self.lengths, self.struct.batch_length, self.struct.buckets = lengths, lib.call_tutti_source_batch_length, buckets

    def read(self, indices, count, buffers, buffer_count):
        chosen = numpy.frombuffer(ffi.buffer(indices, 8 * count), "int64")
        for buffer in buffers[0:buffer_count]:
            room = numpy.frombuffer(ffi.buffer(buffer.data, count * buffer.bytes), NUMPY[buffer.dtype])
            port, array = self.pairs[ffi.string(buffer.name).decode()]
            room[:] = port.ready(port.cut(array[chosen], buffer.length)).reshape(-1)

    def batch_length(self, indices, count):
        return int(self.lengths[numpy.frombuffer(ffi.buffer(indices, 8 * count), "int64")].max())


@ffi.def_extern(error=1)
def call_tutti_source_read(user, indices, count, buffers, buffer_count):
    source = ffi.from_handle(user)
    try:
        source.read(indices, count, buffers, buffer_count)
    except BaseException as failure:
        source.failure = failure
        return 1
    return 0


@ffi.def_extern(error=-1)
def call_tutti_source_batch_length(user, indices, count):
    source = ffi.from_handle(user)
    try:
        return source.batch_length(indices, count)
    except BaseException as failure:
        source.failure = failure
        return -1


__all__ = ["Feeds", "Port", "Source", "enum", "is_large", "not_finite", "paired", "plain", "ports_of"]
