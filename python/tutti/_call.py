"""From Python's values to the library's arguments. A call holds what the library reads until it returns."""
import os

import numpy

from ._native import ffi, lib
from ._values import number, shown
from .errors import check, message

DTYPES = {"float32": lib.TUTTI_DTYPE_F32, "float16": lib.TUTTI_DTYPE_F16, "int32": lib.TUTTI_DTYPE_I32, "int64": lib.TUTTI_DTYPE_I64,
          "uint8": lib.TUTTI_DTYPE_U8, "bool": lib.TUTTI_DTYPE_BOOL, "bfloat16": lib.TUTTI_DTYPE_BF16}
NUMPY = {number: name for name, number in DTYPES.items() if name != "bfloat16"}
words: dict[str, dict[str, int]] = {}


def words_of(kind):
    """The constants of an enum by the words that differ: {"max": TUTTI_POOL_MAX, ...}."""
    if kind not in words:
        names = {name: number for number, name in sorted(ffi.typeof(kind).elements.items())}
        prefix = os.path.commonprefix([*names])
        prefix = "TUTTI_" if prefix in names else prefix[:prefix.rindex("_") + 1]
        words[kind] = {name.removeprefix(prefix).lower(): number for name, number in names.items()}
    return words[kind]


def enum(kind, word, name="it"):
    """The number of a constant: of its word, of its number, or of nothing, which is the first one."""
    if word is None:
        return 0
    if kind.removeprefix("enum ") == "tutti_dtype" and not isinstance(word, int):
        return dtype_of(word)
    if isinstance(word, (int, numpy.integer)):
        return number(name, "int", word)
    if not isinstance(word, str) or word not in words_of(kind):
        raise ValueError(f"{name} is {shown(word)}: it must be one of {', '.join(words_of(kind))}")
    return words_of(kind)[word]


def dtype_of(word):
    try:
        name = word if isinstance(word, str) and word in DTYPES else numpy.dtype(word).name
    except TypeError:
        raise TypeError(f"dtype is {shown(word)}: it must be one of {', '.join(DTYPES)}") from None
    if name not in DTYPES:
        raise KeyError(f"dtype is {name}: it must be one of {', '.join(DTYPES)}")
    return DTYPES[name]


def encoded(text):
    """A text or a path as the library reads it."""
    if not isinstance(text, (str, bytes, os.PathLike)):
        raise TypeError(f"a text is needed, a name or a path, not {shown(text)}")
    made = text.encode() if isinstance(text, str) else os.fsencode(text)
    if b"\0" in made:
        raise ValueError("a text has a zero character")
    return made


def sizes_of(shape):
    """Returns the sizes of a shape, which is whole numbers or a single one."""
    if isinstance(shape, (str, bytes)) or not hasattr(shape, "__iter__"):
        return (number("a size", "int64_t", shape),)
    return tuple(number("a size", "int64_t", size) for size in shape)


def shape_sizes(shape):
    """Returns the sizes of a shape that fits a tutti_shape."""
    sizes, most = sizes_of(shape), ffi.typeof("tutti_shape").fields[1][1].type.length
    if len(sizes) > most:
        raise ValueError(f"a shape has {len(sizes)} sizes: it may have at most {most}")
    return sizes


def shape_of(shape):
    return tuple(shape.sizes[0:shape.rank])


def c_of(tensor):
    if not hasattr(tensor, "c"):
        raise TypeError(f"a tensor is needed, not {shown(tensor)}")
    return tensor.c


class Options:
    """A struct of options, with what its pointers lead to. Members are Python's values; None and what is not given is zero."""

    def __init__(self, kind, members, tensor=None, lengths=()):
        """lengths: those of arrays whose number of elements no member says."""
        self.struct, self.kept, self.tensor, self.lengths = ffi.new(kind + " *"), [], tensor or c_of, dict(lengths)
        self.kind, self.members = kind, {name: value for name, value in members.items() if value is not None}
        self.fields = dict(ffi.typeof(kind).fields)
        if "size" in self.fields:
            self.struct.size = ffi.sizeof(kind)
        for name, value in members.items():
            if name not in self.fields or name == "size":
                raise TypeError(f"there is no option {name}: it is one of {', '.join(name for name in self.fields if name != 'size')}")
            if value is not None:
                self.set(name, self.fields[name].type, value)

    def keep(self, made):
        self.kept.append(made)
        return made

    def set(self, name, kind, value):
        if kind.kind in ("enum", "primitive"):
            value = self.single(name, kind, value)
        elif kind.kind == "array":
            value = [self.single(name, kind.item, one) for one in self.repeated(name, kind, value)]
        elif kind.cname == "struct tutti_shape":
            sizes = shape_sizes(value)
            value = {"rank": len(sizes), "sizes": sizes}
        elif not isinstance(value, ffi.CData):
            if kind.kind != "pointer" or kind.item.kind == "function":
                raise TypeError(f"{name} is for programs in C, not for Python")
            value = self.pointer(name, kind, value)
        setattr(self.struct, name, value)

    @staticmethod
    def single(name, kind, value):
        return enum(kind.cname, value, name) if kind.kind == "enum" else number(name, kind.cname, value)

    @staticmethod
    def repeated(name, kind, value):
        values = list(value) if hasattr(value, "__iter__") and not isinstance(value, str) else [value] * kind.length
        if len(values) > kind.length:
            raise ValueError(f"{name} takes at most {kind.length} values")
        return values

    def pointer(self, name, kind, value):
        item = kind.item.cname.removesuffix(" const").removeprefix("struct ")
        if item == "char":
            return self.keep(ffi.new("char[]", encoded(value)))
        if item == "tutti_tensor":
            tensors = value if isinstance(value, (list, tuple)) else [value]
            if not self.count(name, len(tensors)) and len(tensors) != 1:
                raise ValueError(f"{name} is one tensor")
            return self.keep(ffi.new("tutti_tensor[]", [self.tensor(tensor) for tensor in tensors]))
        if item == "tutti_carry":
            self.struct.carry_count = len(value)
            return self.keep(ffi.new("tutti_carry[]", [{"output": self.tensor(output), "input": self.tensor(to)} for output, to in value]))
        if item in ("float", "double"):
            try:
                array = self.keep(numpy.ascontiguousarray(value, "float32" if item == "float" else "float64").reshape(-1))
            except (TypeError, ValueError):
                raise TypeError(f"{name} is {shown(value)}: it must be a list of numbers") from None
            if not self.count(name, array.size) and array.size != self.lengths.get(name):
                raise ValueError(f"{name} has {array.size} numbers; {self.lengths.get(name, 'none')} are needed")
            return self.keep(ffi.from_buffer(item + "[]", array))
        raise TypeError(f"{name} cannot be {shown(value)}")

    def count(self, name, number):
        """Tells how many elements an array has. Returns whether a member of the options does."""
        for candidate in (name.removesuffix("es") + "_count", name.removesuffix("s") + "_count", "channels"):
            if candidate in self.fields:
                if getattr(self.struct, candidate) not in (0, number):
                    raise ValueError(f"{name} has {number} elements, another array has {getattr(self.struct, candidate)}")
                setattr(self.struct, candidate, number)
                return True
        return False


class Call:
    """A call that adds a layer to the network of the first of these: tensors, lists of tensors, a network."""

    def __init__(self, *given):
        self.network, self.kept, self.outs = self.network_of(given), [], []

    def network_of(self, given):
        for one in given:
            found = self.network_of(one) if isinstance(one, (list, tuple)) else getattr(one, "network", one if hasattr(one, "add_layer") else None)
            if found is not None:
                return found
        if given and not isinstance(given[0], (list, tuple)):
            raise TypeError(f"a tensor or a network is needed, not {shown(given[0])}")
        return None

    def tensor(self, x):
        """A tensor; numbers and arrays become constants."""
        if not hasattr(x, "c"):
            if self.network is None:
                raise TypeError(f"a tensor is needed, not {shown(x)}")
            x = self.network.constant(x)
        if x.network is not self.network:
            raise ValueError("the tensors are of different networks")
        return x.c

    def tensors(self, given):
        made = ffi.new("tutti_tensor[]", [self.tensor(x) for x in given])
        self.kept.append(made)
        return made, len(made)

    def sizes(self, shape):
        sizes = sizes_of(shape)
        made = ffi.new("int64_t[]", sizes)
        self.kept.append(made)
        return made, len(sizes)

    def shape(self, shape):
        made, sizes = ffi.new("tutti_shape *"), shape_sizes(shape)
        made.rank = len(sizes)
        made.sizes[0:len(sizes)] = sizes
        return made[0]

    def text(self, text):
        if text is None:
            return ffi.NULL
        self.kept.append(ffi.new("char[]", encoded(text)))
        return self.kept[-1]

    def out(self, wanted):
        """Where the library writes another tensor, if it is wanted; the function then returns it too."""
        if not wanted:
            return ffi.NULL
        self.outs.append(ffi.new("tutti_tensor *"))
        return self.outs[-1]

    enum = staticmethod(enum)
    number = staticmethod(number)

    def options(self, kind, lengths=(), /, **members):
        self.kept.append(Options(kind, members, self.tensor, lengths))
        return self.kept[-1].struct

    def add(self, function, *arguments):
        if self.network is None:
            raise TypeError("a tensor is needed")
        return self.network.add_layer(function, arguments, self.outs, self.kept)


__all__ = ["Call", "Options", "check", "enum", "ffi", "lib", "message"]
