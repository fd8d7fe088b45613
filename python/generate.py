"""Writes what the package has from the headers' description (tools/interface.py):

    generate.py FOLDER OPERATIONS MODELS JSON...    OPERATIONS: what `tutti op --json` says; MODELS: models/models.c

FOLDER/_native.c    the extension module, by cffi: every function, struct, enum and callback, and Python's limited API
FOLDER/layers.py    a Python function with signature and text for each function that adds a layer
FOLDER/*.pyi        type stubs, and FOLDER/_options.py (stubs.py)
"""
import itertools
import json
import pathlib
import re
import sys

import stubs

# Members of options that say how many elements the arrays before them have, besides those that end in _count.
COUNTS = {"channels"}
# Functions that have a better form in Python, or are the same as another one.
LEFT_OUT = {"tutti_input", "tutti_input_typed", "tutti_parameter", "tutti_constant", "tutti_constant_typed", "tutti_find_parameter", "tutti_op"}
# What may be left out in Python, in functions that have a parameter of that name.
DEFAULTS = {"name": None, "epsilon": 0.0, "axis": -1, "transpose_a": False, "transpose_b": False, "largest": True, "length": 0,
            "attributes": None, "indices": False}
INTEGERS = {"int", "int32_t", "int64_t", "uint64_t", "size_t"}
HEAD = '''"""Functions that add layers, made from the headers (python/generate.py): do not edit."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, overload

from numpy.typing import NDArray

from ._call import Call, lib
from ._network import Network, Tensor
from ._options import {enums}
from ._types import DType, Operand, Shape


'''


# -------------------------------------------------------------------------------------------------- the extension ----

def callback(struct, member):
    """The name of the C function that calls Python for a member that is a pointer to a function."""
    return f"call_{struct['name']}_{member['name']}"


def declarations(interface):
    """What cffi reads, without the comments."""
    for constant in interface["constants"]:
        yield f"#define {constant['name']} {constant['value']}"
    for kind in ("enum", "struct"):
        for entry in interface[kind + "s"]:
            if kind == "enum":
                constants = ", ".join(f"{constant['name']} = {constant['value']}" for constant in entry["constants"])
                yield f"enum {entry['name']} {{ {constants} }};"
            if entry["typedef"]:
                yield f"typedef {kind} {entry['name']} {entry['name']};"
    for struct in interface["structs"]:
        if struct["kind"] != "opaque":
            yield f"struct {struct['name']} {{ {' '.join(member['declaration'] + ';' for member in struct['members'])} }};"
    for struct in interface["structs"]:
        for member in struct.get("members", ()):
            if "callback" in member["type"] and member["type"]["callback"]["parameters"][0]["name"] == "user":
                declared = member["declaration"].replace(f"(*{member['name']})", callback(struct, member))
                yield f'extern "Python" {declared};'
    yield from (function["declaration"] + ";" for function in interface["functions"])


def write_extension(path, interfaces):
    import cffi
    ffi = cffi.FFI()
    ffi.cdef("\n".join(line for interface in interfaces for line in declarations(interface)) + "\nvoid free(void *);\n")
    headers = [name for interface in interfaces for name in interface["headers"]]
    ffi.set_source("tutti._native", "#include <stdlib.h>\n" + "".join(f'#include "{name}"\n' for name in headers))
    ffi.emit_c_code(str(path))


# ----------------------------------------------------------------------------------------------------- the layers ----

def overloads(name, signature, flags):
    """What the function returns by the flags of outputs that it may return besides: alone, or in a tuple."""
    if not flags:
        return ""
    text = ""
    for chosen in [dict(zip(flags, values)) for values in itertools.product((False, True), repeat=len(flags))]:
        given, count = signature, sum(chosen.values())
        for flag, value in chosen.items():
            given = given.replace(f"{flag}: bool = False", f"{flag}: Literal[True]" if value else f"{flag}: Literal[False] = False")
        text += f"@overload\ndef {name}({given}) -> {'tuple[' + ', '.join(['Tensor'] * (count + 1)) + ']' if count else 'Tensor'}: ...\n"
    return text + f"@overload\ndef {name}({signature}) -> Tensor | tuple[Tensor, ...]: ...\n"


def is_of_c(kind):
    """Whether a member of options is a function of C's, or what is passed to it: Python gives none."""
    return kind.get("name", "void") == "void"


class Layers:
    def __init__(self, interface):
        self.structs = {struct["name"]: struct for struct in interface["structs"]}
        self.enums, self.used = stubs.enums_of(interface), set()
        self.scalars = dict.fromkeys(INTEGERS, "int") | {"bool": "bool", "float": "float", "double": "float", "tutti_tensor": "Operand"}
        self.functions = interface["functions"]
        self.names = {function["name"] for function in self.functions}

    def is_layer(self, function):
        kind, parameters = function["result"], function["parameters"]
        if kind != {"name": "tutti_tensor"} or function["name"] in LEFT_OUT:
            return False
        twin = function["name"][:-6]    # the variant with a pointer to sizes, of one with a tutti_shape
        return parameters[0]["type"] == {"name": "tutti_network", "pointers": 1} and not (function["name"].endswith("_sized") and twin in self.names)

    def hint(self, kind, required=True):
        """The type of a value in Python, for a reader and for type checkers."""
        if kind["name"] in self.enums:
            word = self.enums[kind["name"]]
            self.used.add(word)
            return f"{word} | Sequence[{word}] | None" if "array" in kind else f"{word} | None"
        if kind["name"] == "char":
            return "str | None"
        if kind["name"] == "tutti_shape":
            return "Shape" if required else "Shape | None"
        one = self.scalars[kind["name"]]
        if "array" in kind:
            return f"{one} | Sequence[{one}] | None"
        return one if not kind.get("pointers") else "Operand | None" if kind["name"] == "tutti_tensor" else f"{stubs.numbers(one)} | None"

    def option(self, struct, number):
        """A member of options: (argument with its default, how the call gets it)."""
        member = struct["members"][number]
        name, kind = member["name"], member["type"]
        if kind.get("pointers") and kind["name"] == "tutti_tensor" and not kind.get("const"):
            return f"{name}: bool = False", f"call.out({name})"
        if kind["name"] in self.enums and "array" not in kind:
            return f"{name}: {self.hint(kind)} = None", f'call.enum("{kind["name"]}", {name}, "{name}")'
        default = None if kind.get("pointers") or "array" in kind or kind["name"] == "tutti_shape" else "False" if kind["name"] == "bool" else 0 if kind["name"] in INTEGERS else 0.0
        return f"{name}: {self.hint(kind, False)} = {default}", name

    def options(self, struct):
        arguments, values = [], []
        for number, member in enumerate(struct["members"]):
            name = member["name"]
            if number == 0 or name in COUNTS or name.endswith("_count") or is_of_c(member["type"]):
                continue
            argument, value = self.option(struct, number)
            arguments.append(argument)
            values.append(f"{name}={value}")
        return arguments, values

    def function(self, function):
        """The text of a Python function."""
        positional, named, values, tensors, skip, result = [], [], [], [], False, "Tensor"
        parameters = function["parameters"][1:]
        for number, parameter in enumerate(parameters):
            name, kind = parameter["name"], parameter["type"]
            if skip:
                skip = False
                continue
            pointed, is_array = kind.get("pointers"), number + 1 < len(parameters) and parameters[number + 1]["name"] in ("count", "input_count", "rank")
            if pointed and kind["name"].endswith("_options"):
                more, given = self.options(self.structs[kind["name"]])
                named += more
                result = "Any" if any("call.out(" in value for value in given) else result
                values.append(f'call.options("{kind["name"]}", {", ".join(given)})')
                continue
            hint = self.hint(kind)
            if pointed and kind["name"] == "tutti_tensor" and is_array:
                value, skip, hint = f"*call.tensors({name})", True, "Sequence[Operand]"
                tensors.append(f"*{name}")
            elif pointed and kind["name"] == "tutti_tensor":
                value, hint, result = f"call.out({name})", "bool", "Any"
            elif pointed and kind["name"] == "int64_t" and is_array:
                value, skip, hint = f"*call.sizes({name})", True, "Shape"
            elif pointed and kind["name"] == "char":
                value = f"call.text({name})"
            elif pointed:
                raise SystemExit(f"generate.py: {function['name']}: what is {parameter['declaration']} in Python?")
            elif kind["name"] == "tutti_tensor":
                value = f"call.tensor({name})"
                tensors.append(name)
            elif kind["name"] == "tutti_shape":
                value = f"call.shape({name})"
            else:
                value = f'call.enum("{kind["name"]}", {name}, "{name}")' if kind["name"] in self.enums else f'call.number("{name}", "{kind["name"]}", {name})'
            values.append(value)
            if name in DEFAULTS:
                named.append(f"{name}: {hint} = {DEFAULTS[name]}")
            else:
                positional.append(f"{name}: {hint.removesuffix(' | None')}")
        if not tensors:
            positional.insert(0, "network: Network")
        flags = re.findall(r"call\.out\((\w+)\)", " ".join(values))
        signature = ", ".join([*positional, *(["*"] if named else []), *named])
        text = function["text"].replace("\\", "\\\\").replace('"""', "'''").replace("\n", "\n    ").replace("    \n", "\n")
        ending = "\n    " if "\n" in text or text.endswith('"') else ""
        name = function["name"].removeprefix("tutti_")
        made = ", ".join([f"lib.{function['name']}", *values])
        return (overloads(name, signature, flags) + f'def {name}({signature}) -> {result}:\n    """{text}{ending}"""\n'
                f"    call = Call({', '.join(tensors) or 'network'})\n    return call.add({made})\n")

    def text(self):
        made = [self.function(function) for function in self.functions if self.is_layer(function)]
        return HEAD.format(enums=", ".join(sorted(self.used - {"DType"}))) + "\n\n".join(made) + f"\n\n__all__ = {self.layer_names()!r}\n"

    def layer_names(self):
        return [function["name"].removeprefix("tutti_") for function in self.functions if self.is_layer(function)]


def main():
    folder, texts = pathlib.Path(sys.argv[1]), [pathlib.Path(name).read_text(encoding="utf-8") for name in sys.argv[2:]]
    interfaces = [json.loads(text) for text in texts[2:]]
    write_extension(folder / "_native.c", interfaces)
    layers = Layers(interfaces[0])
    (folder / "layers.py").write_text(layers.text(), encoding="utf-8")
    stubs.write(folder, interfaces[0], layers.layer_names(), *texts[:2], pathlib.Path(__file__).parent / "tutti")


main()
