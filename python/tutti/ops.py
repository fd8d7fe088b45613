"""Every operation of the library as a function: tutti.ops.gelu(x), tutti.ops.reduce_mean(x, axes=-1). They are found by the
library's own description of them when they are first used."""
import inspect

from ._call import Call
from ._native import ffi, lib
from .errors import check


def described(kind, function, *place):
    info = ffi.new(f"{kind} *", {"size": ffi.sizeof(kind)})
    check(function(*place, info))
    return info


def text(pointer, fallback=""):
    return fallback if pointer == ffi.NULL else ffi.string(pointer).decode()


def make(position):
    info = described("tutti_operation_info", lib.tutti_operation, position)
    inputs = [described("tutti_operation_input_info", lib.tutti_operation_input, position, index) for index in range(info.input_count)]
    attributes = [described("tutti_operation_attribute_info", lib.tutti_operation_attribute, position, index) for index in range(info.attribute_count)]
    name, known = text(info.name), {text(attribute.name) for attribute in attributes} | {"name"}

    def operation(*given, network=None, **values):
        wrong = values.keys() - known
        if wrong:
            raise TypeError(f"{name}() has no attribute {sorted(wrong)[0]}: it has {', '.join(sorted(known))}")
        while given and given[-1] is None:      # optional inputs
            given = given[:-1]
        call = Call(network if network is not None else list(given))
        if call.network is None:
            raise TypeError(f"{name}() needs a tensor")
        return call.network.op(name, *given, **values)

    lines = [text(info.text), ""]
    lines += [f"{text(one.name)}: {text(one.text, 'any')}{' (optional)' if one.optional else ''}{' ...' if one.repeated else ''}" for one in inputs]
    lines += [f"{text(one.name)}: {text(one.text)} ({text(one.values)}{', required' if one.required else ', default ' + text(one.default_value) if one.default_value else ''})"
              for one in attributes]
    operation.__name__ = operation.__qualname__ = name
    operation.__doc__ = "\n".join(lines)
    kinds = inspect.Parameter
    given = [kinds(text(one.name), kinds.VAR_POSITIONAL if one.repeated else kinds.POSITIONAL_ONLY,
                   default=kinds.empty if place < info.min_inputs or one.repeated else None) for place, one in enumerate(inputs)]
    named = {text(one.name): kinds.empty if one.required else default_of(one) for one in attributes} | {"name": None} | ({} if info.min_inputs else {"network": None})
    operation.__signature__ = inspect.Signature([*given, *(kinds(word, kinds.KEYWORD_ONLY, default=default) for word, default in named.items())])
    return operation


def default_of(attribute):
    """The default value of an attribute; None: the library's text says it."""
    value, kind = text(attribute.default_value, None), attribute.type
    if value is None or kind == lib.TUTTI_ATTRIBUTE_CHOICE:
        return value
    if kind == lib.TUTTI_ATTRIBUTE_NUMBER:
        return float(value)
    if kind == lib.TUTTI_ATTRIBUTE_FLAG:
        return value == "1"
    return int(value) if kind in (lib.TUTTI_ATTRIBUTE_INTEGER, lib.TUTTI_ATTRIBUTE_AXIS) else None


def __getattr__(name):
    position = -1 if name.startswith("_") else lib.tutti_operation_find(name.encode())
    if position < 0:
        raise AttributeError(f"module 'tutti.ops' has no operation {name!r}")
    globals()[name] = make(position)
    return globals()[name]


def __dir__():
    return sorted(text(described("tutti_operation_info", lib.tutti_operation, position).name) for position in range(lib.tutti_operations()))
