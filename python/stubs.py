"""Type stubs and the types of options, from the headers' description:   functions that generate.py writes into files.

_options.py    the words of each enum, and a TypedDict for each struct of options
ops.pyi        the operations, as `tutti op --json` lists them
models.pyi     the models of models/models.c
errors.pyi     an exception for each status
__init__.pyi   what the package has, with the operations that have no function of their own
"""
import json
import keyword
import re

HEAD = '"""{}, made by python/stubs.py: do not edit."""\n'
# The options that Python passes on, with the members that are arguments of their own there, or that Python sets.
OPTIONS = {
    "tutti_training": ("TrainingOptions", {"loss", "optimizer", "batch", "seed", "losses", "hosts", "advanced"}),
    "tutti_fitting": ("FittingOptions", {"epochs", "batch", "no_shuffle", "test", "schedule", "scores"}),
    "tutti_schedule": ("Schedule", set()),
    "tutti_runtime_options": ("RuntimeOptions", {"devices"}),
    "tutti_onnx_options": ("OnnxOptions", {"input", "known", "sizes", "batch_axes"}),
    "tutti_parameter_options": ("ParameterOptions", set()),
    "tutti_data_options": ("DataOptions", {"target", "files", "drop", "only", "text", "texts"}),
}
# Members that Python has besides those of a struct.
MORE = {"FittingOptions": {"val_lengths": "Sequence[int] | NDArray[Any]"}}
SCALARS = dict.fromkeys(("int", "int32_t", "int64_t", "uint64_t", "size_t"), "int") | {"bool": "bool", "float": "float", "double": "float"}
# Types of the attributes of operations.
ATTRIBUTES = {"number": "float", "numbers": "float | Sequence[float]", "flag": "bool", "integer": "int", "integers": "int | Sequence[int]", "axis": "int",
              "axes": "int | Sequence[int]", "order": "Sequence[int]", "shape": "Shape", "text": "str"}


def words_of(enum):
    """The words that Python has for the constants: tutti/_call.py has the same rule."""
    names = [constant["name"] for constant in enum["constants"]]
    prefix = names[0]
    while not all(name.startswith(prefix) for name in names):
        prefix = prefix[:-1]
    prefix = "TUTTI_" if prefix in names else prefix[:prefix.rindex("_") + 1]
    return [name.removeprefix(prefix).lower() for name in names]


def enum_name(name):
    """That of the type: Initialiser."""
    return "".join(part.title() for part in name.removeprefix("tutti_").split("_"))


def enums_of(interface):
    """The types of words, by the names of enums in C."""
    return {enum["name"]: "DType" if enum["name"] == "tutti_dtype" else enum_name(enum["name"]) for enum in interface["enums"]}


def numbers(one):
    """The type of an array of numbers of C."""
    return f"Sequence[{one}] | NDArray[Any]"


def member_type(kind, enums):
    """Returns the type of an option struct's member; None if Python does not take the member."""
    if "callback" in kind or kind["name"] == "void":
        return None
    if kind["name"] in enums:
        return enums[kind["name"]]
    if kind["name"] == "char":
        return "Path"
    if kind["name"] == "tutti_shape":
        return "Shape"
    if kind["name"] == "tutti_tensor":
        return "Tensor | Sequence[Tensor]"
    if kind["name"] == "tutti_carry":
        return "Sequence[tuple[Tensor, Tensor]]"
    one = SCALARS.get(kind["name"])
    return one if one is None or not kind.get("pointers") else numbers(one)


def options(interface):
    enums = enums_of(interface)
    lines = [HEAD.format("Words of enums, and options by their types"), "from __future__ import annotations\n", "from collections.abc import Sequence",
             "from typing import TYPE_CHECKING, Any, Literal, TypedDict\n", "from numpy.typing import NDArray\n", "from ._types import Path, Shape\n", "if TYPE_CHECKING:", "    from ._network import Tensor\n"]
    for enum in interface["enums"]:
        if enum["name"] != "tutti_dtype":
            lines.append(f"{enum_name(enum['name'])} = Literal[{', '.join(json.dumps(word) for word in words_of(enum))}]")
    structs = {struct["name"]: struct for struct in interface["structs"]}
    for struct, (name, without) in OPTIONS.items():
        members = {member["name"]: member_type(member["type"], enums) for member in structs[struct]["members"]}
        lines += ["", "", f"class {name}(TypedDict, total=False):", f'    """{struct}."""']
        lines += [f"    {member}: {kind}" for member, kind in members.items()
                  if kind and member not in without and member not in ("size", "user") and not member.endswith("_count")]
        lines += [f"    {member}: {kind}" for member, kind in MORE.get(name, {}).items()]
    return "\n".join(lines) + "\n"


def default_of(attribute):
    """The text of a default value: of the same rule as in tutti/ops.py."""
    kind, text = attribute["type"], attribute["default"]
    if text is None or kind not in ("number", "integer", "axis", "flag", "choice"):
        return "None"
    return "..." if "inf" in text else repr(float(text)) if kind == "number" else repr(text == "1") if kind == "flag" else repr(text) if kind == "choice" else text


def operation(described):
    parameters = []
    for number, given in enumerate(described["inputs"]):
        optional = number >= described["min_inputs"]
        parameters.append(f"*{given['name']}: Operand" if given["repeated"] else f"{given['name']}: Operand" + (" | None = None" if optional else ""))
    if described["inputs"] and not described["inputs"][-1]["repeated"]:
        parameters.append("/")
    named = []
    for attribute in described["attributes"]:
        choices = (attribute["choices"] or "").split()
        kind = f"Literal[{', '.join(json.dumps(word) for word in choices)}]" if choices else ATTRIBUTES.get(attribute["type"], "str")
        default = default_of(attribute)
        named.append(f"{attribute['name']}: {kind}" + ("" if attribute["required"] else f" | None = None" if default == "None" else f" = {default}"))
    if not any(attribute["name"] == "name" for attribute in described["attributes"]):
        named.append("name: str | None = None")
    if not described["min_inputs"]:
        named.append("network: Network | None = None")
    star = [] if described["inputs"] and described["inputs"][-1]["repeated"] else ["*"]
    return f"def {described['operation']}({', '.join([*parameters, *star, *named])}) -> Tensor: ..."


def operations(listed):
    lines = [HEAD.format("Every operation of the library"), "from collections.abc import Sequence", "from typing import Literal\n",
             "from ._network import Network, Tensor", "from ._types import Operand, Shape\n"]
    return "\n".join([*lines, *(operation(one) for one in listed if not keyword.iskeyword(one["operation"]))]) + "\n"


def models(text):
    """From the table of models.c."""
    names = re.findall(r'\{ \.name = "(\w+)"', text)
    arguments = "classes: int | None = None, input: Shape | None = None, *, samples: int = 0, vocabulary: int = 0, tags: bool = False, runtime: Runtime | None = None"
    lines = [HEAD.format("Well-known networks"), "from ._network import Network", "from ._runtime import Runtime", "from ._types import Shape\n"]
    return "\n".join([*lines, *(f"def {name}({arguments}) -> Network: ..." for name in names)]) + "\n"


def statuses(interface):
    enum = next(enum for enum in interface["enums"] if enum["name"] == "tutti_status")
    return ["".join(part.title() for part in constant["name"].removeprefix("TUTTI_").split("_")) + "Error" for constant in enum["constants"][1:]]


def errors(interface, source):
    bases = dict(re.findall(r'"(\w+)": \((\w+),\)', source))
    lines = [HEAD.format("Exceptions by status"), "from typing import Any\n", "BASES: dict[str, tuple[type[Exception], ...]]", "by_status: dict[int, type[Error]]\n",
             "class Error(Exception):", "    status: int | None", "    name: str | None\n"]
    for name, constant in zip(statuses(interface), next(enum for enum in interface["enums"] if enum["name"] == "tutti_status")["constants"][1:]):
        base = bases.get(constant["name"].removeprefix("TUTTI_"))
        lines.append(f"class {name}(Error{', ' + base if base else ''}): ...")
    lines += ["", "def make() -> None: ...", "def message() -> str: ...", "def check(status: int) -> None: ...", "def made(pointer: Any) -> Any: ...", "",
              f"__all__ = {['Error', *statuses(interface)]!r}"]
    return "\n".join(lines) + "\n"


def package(source, interface, layers, listed):
    """The imports of __init__.py, each under its own name, and what it finds elsewhere."""
    lines = [HEAD.format("The package"), "from typing import Any\n"]
    for module, names in re.findall(r"^from (\.\w*) import ([\w, ]+)(?:$|  #)", source, re.MULTILINE):
        if module != "._native":
            lines.append(f"from {module} import " + ", ".join(f"{name} as {name}" for name in names.split(", ")))
    lines.append("from .errors import " + ", ".join(f"{name} as {name}" for name in ["Error", *statuses(interface)]))
    lines.append("from .layers import " + ", ".join(f"{name} as {name}" for name in layers))
    known = {*layers} | set(re.findall(r"\w+", source.split("__all__")[0]))
    others = [one["operation"] for one in listed if one["operation"] not in known and not keyword.iskeyword(one["operation"])]
    lines.append("from .ops import " + ", ".join(f"{name} as {name}" for name in others))
    own = re.search(r"__all__ = \[(.*?), \*errors", source, re.DOTALL)[1]
    names = re.findall(r'"(\w+)"', own) + ["Error", *statuses(interface)] + layers
    lines += ["", "SEQUENCE: int", "__version__: str", f"__all__ = {names!r}", "", "def __dir__() -> list[str]: ..."]
    return "\n".join(lines) + "\n"


def write(folder, interface, layers, operations_text, models_text, sources):
    """layers: names of the functions of layers.py; sources: the folder of the package."""
    listed = [json.loads(line) for line in operations_text.splitlines()]
    texts = {"_native.pyi": HEAD.format("The extension module") + "from typing import Any\n\nffi: Any\nlib: Any\n", "_options.py": options(interface), "ops.pyi": operations(listed), "models.pyi": models(models_text),
             "errors.pyi": errors(interface, (sources / "errors.py").read_text(encoding="utf-8")),
             "__init__.pyi": package((sources / "__init__.py").read_text(encoding="utf-8"), interface, layers, listed)}
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
