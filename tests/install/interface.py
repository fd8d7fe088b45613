"""Checks that tutti.json says what the headers say: it is as the generator writes it, has each exported function, and the
compiler agrees with every constant, member, offset and type.   interface.py SOURCE BUILD COMPILER..."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

source, build, compiler = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3:]
FORMS = """typedef struct form form;
/* One. */
typedef enum form_kind { FORM_A, FORM_B = 5, FORM_C } form_kind;
struct form {
    size_t size; /* sizeof(form), or 0; set it before the call */
    const float *means, *const *rows; /* of `means` */
    int sizes[3], means_count;
    int (*each)(void *user, const form *forms, int count);
};
/* Most. */
enum { FORM_MOST = 4 };
/* Two
 * lines. */
TUTTI_API form *form_new(const char *const *names, form_kind kind);
TUTTI_API form *form_copy(void);
TUTTI_API void form_free(form *form);
"""
UNKNOWN = ["#if 1\nint f(int x);\n#endif\n", "int x;\n", "int f(int x) { return x; }\n", "struct a {\n    struct { int b; } c;\n};\n",
           "typedef int number;\n", "enum { A } a;\n", "int f(int x[SIZE]);\n", "int f(int x)\n", "struct a {\n    int b : 3;\n};\n",
           "int f(int x);\nint f(int y);\n", "union a {\n    int b;\n};\n", "typedef enum a { B = 1 << 3 } a;\n", "int f(signed char x, ...);\n"]


def described(folder, text):
    path = pathlib.Path(folder, "form.h")
    path.write_text(text)
    ran = subprocess.run([sys.executable, "-B", source / "tools/interface.py", path.with_suffix(".json"), path], stderr=subprocess.PIPE, text=True)
    return json.loads(path.with_suffix(".json").read_text()) if ran.returncode == 0 else ran.stderr


def forms():
    """The forms of declarations, and texts that are refused."""
    with tempfile.TemporaryDirectory() as folder:
        made = described(folder, FORMS)
        if isinstance(made, str):
            yield made
            return
        enum, struct = made["enums"][0], made["structs"][0]
        constants = {constant["name"]: constant["value"] for constant in enum["constants"]}
        members = {member["name"]: member for member in struct["members"]}
        texts = {function["name"]: function["text"] for function in made["functions"]}
        for right, what in [
                (constants == {"FORM_A": 0, "FORM_B": 5, "FORM_C": 6} and enum["text"] == "One.", enum),
                (made["constants"] == [{"name": "FORM_MOST", "value": 4, "text": "Most.", "header": "form.h"}], made["constants"]),
                (struct["kind"] == "result", struct["kind"]),
                ([*members] == ["size", "means", "rows", "sizes", "means_count", "each"], [*members]),
                (members["rows"]["type"] == {"name": "float", "const": True, "pointers": 2}, members["rows"]),
                (members["sizes"]["type"] == {"name": "int", "array": 3} and members["sizes"]["declaration"] == "int sizes[3]", members["sizes"]),
                (members["each"]["type"]["callback"]["parameters"][1]["type"] == {"name": "form", "const": True, "pointers": 1}, members["each"]),
                (texts == {"form_new": "Two\nlines.", "form_copy": "Two\nlines.", "form_free": ""}, texts)]:
            if not right:
                yield f"read as {what}"
        for text in UNKNOWN:
            if not isinstance(described(folder, text), str):
                yield f"not refused: {text}"


def checks(interface):
    """A C program that compiles if the description is right."""
    yield from (f"#include <{header}>" for header in interface["headers"])
    for constant in (*interface["constants"], *(constant for enum in interface["enums"] for constant in enum["constants"])):
        yield f'_Static_assert({constant["name"]} == {constant["value"]}, "{constant["name"]}");'
    for struct in (struct for struct in interface["structs"] if struct["kind"] != "opaque"):
        name, members = struct["name"], struct["members"]
        yield f'struct copy_{name} {{ {" ".join(member["declaration"] + ";" for member in members)} }};'
        yield f'_Static_assert(sizeof({name}) == sizeof(struct copy_{name}), "size of {name}");'
        for member in members:
            place = f'{name}, {member["name"]}'
            yield f'_Static_assert(offsetof({place}) == offsetof(struct copy_{place}), "{place}");'
            same = f'__typeof__((({name} *)0)->{member["name"]}), __typeof__(((struct copy_{name} *)0)->{member["name"]})'
            yield f'_Static_assert(__builtin_types_compatible_p({same}), "type of {place}");'
    for function in interface["functions"]:     # a declaration that differs from the header's is an error
        yield function["declaration"] + ";"


def faults(interface):
    with tempfile.NamedTemporaryFile(suffix=".json") as again:
        headers = [source / "include" / name for name in interface["headers"]]
        subprocess.run([sys.executable, "-B", source / "tools/interface.py", again.name, *headers], check=True)
        if json.load(again) != interface:
            yield "tutti.json is older than the headers"
    if {path.name for path in source.glob("include/*.h")} != set(interface["headers"]):
        yield "tutti.json lacks a header, or has another: see `headers` in meson.build"
    names = {function["name"] for function in interface["functions"]}
    symbols = set(re.findall(r"^tutti_\w+$", (source / "include/symbols.txt").read_text(), re.M))
    yield from (f"{name}: exported and not in tutti.json, or the reverse" for name in sorted(names ^ symbols))
    text = "".join(re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S) for path in source.glob("include/*.h"))
    types = {entry["name"] for entry in (*interface["structs"], *interface["enums"])}
    yield from (f"{name}: a type that tutti.json lacks" for name in sorted(set(re.findall(r"\b(?:struct|enum) (\w+)", text)) - types))
    yield from (f'{function["name"]} has no comment' for function in interface["functions"]
                if not function["text"] and not re.search(r"_(?:free|reset|tanh)$", function["name"]))
    program = "\n".join(checks(interface)) + "\n"
    built = subprocess.run([*compiler, "-std=c11", "-fsyntax-only", "-Wall", "-Werror", f"-I{source}/include", "-xc", "-"],
                           input=program, text=True, stderr=subprocess.PIPE)
    if built.returncode:
        yield built.stderr[:2000]


interface = json.loads((build / "tutti.json").read_text())
found = [*forms(), *faults(interface)]
print("\n".join(found))
print(f'{0 if found else len(interface["functions"])} passed, {len(found)} failed')
sys.exit(1 if found else 0)
