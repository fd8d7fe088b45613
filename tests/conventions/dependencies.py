#!/usr/bin/env python3
"""Checks the dependencies between folders: a file may include its own folder, the folders below it and include/tutti.h.
Checks, too, that fields which several threads use, or which follow a state machine, are touched by their own file alone;
that the files of a folder do not call each other in a circle, that the build knows every text of a kernel, that the header and
the documentation name only functions and types that exist, that every function has a caller, and that numbers become text and back through base/numbers.h, which does not
depend on the program's locale; that no pass of plan/ knows an operation by name, that kernels with many parameters have a
list of them, that no struct has too many members, and no folder too many files.

    dependencies.py ROOT
"""
import collections
import pathlib
import re
import sys

# Each room, and the rooms whose headers its files may include besides tutti.h and their own.
ALLOWED = {
    "base": [],
    "formats": ["base"],
    "data": ["formats", "base"],
    "text": ["base"],
    "runtime": ["clkernels", "base"],
    "graph": ["runtime", "base"],
    "layers": ["graph", "runtime", "clkernels", "base"],
    "plan": ["layers", "graph", "runtime", "base"],
    "replica": ["plan", "graph", "runtime", "clkernels", "base"],
    "parallel": ["replica", "plan", "layers", "graph", "runtime", "base"],
    "train": ["parallel", "replica", "plan", "layers", "graph", "runtime", "formats", "base"],
    "generate": ["layers", "graph", "base"],
    "onnx": ["base"],
    "models": [],
    "tools": ["models", "formats", "base"],
    "examples": [],
    "bench": ["models", "formats", "base", "data"],
    "clkernels": [],
    "include": [],
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def faults(root):
    for room, below in ALLOWED.items():
        for path in sorted((root / room).rglob("*")):
            if path.suffix not in (".c", ".h", ".cl"):
                continue
            for number, line in enumerate(path.read_text().splitlines(), 1):
                found = INCLUDE.match(line)
                if not found or re.fullmatch(r"tutti\w*\.h", found[1]):
                    continue
                parts = pathlib.PurePosixPath(found[1]).parts
                near = any((folder / found[1]).exists() for folder in (path.parent, root / "clkernels"))
                target = parts[0] if len(parts) > 1 and not near else room
                if target == ".." or (target != room and target not in below):
                    yield f"{path.relative_to(root)}:{number}: {room}/ may not include \"{found[1]}\""


# Members that several threads use under a lock, or that follow a state machine, and the only files that touch their fields.
OWNERS = {
    "worker": ["replica/worker", "replica/watchdog"],
    "watchdog": ["replica/worker", "replica/watchdog"],
    "transfer": ["replica/gradients", "replica/gradients_copied", "replica/gradients_mapped", "replica/run", "parallel/exchange"],
    "versions": ["replica/parameter_versions"],
    "store": ["parallel/parameter_store"],
    "members": ["parallel/membership"],
}
FIELD = re.compile(r"\b(" + "|".join(OWNERS) + r")(?:\.|->)\w")


def owner_faults(root):
    """A field that another file than its owner touches."""
    for path in (path for room in ("replica", "parallel", "train") for path in sorted((root / room).glob("*.[ch]"))):
        for number, line in enumerate(code_of(path).splitlines(), 1):
            for name in set(FIELD.findall(line)):
                if f"{path.parent.name}/{path.stem}" not in OWNERS[name]:
                    yield f"{path.relative_to(root)}:{number}: the fields of `{name}` belong to {OWNERS[name][0]}.c"


# Rooms whose files call no function of a file that calls theirs, also through others.
NO_CIRCLES = ["base", "formats", "data", "text", "graph", "layers", "plan", "replica", "parallel", "train", "generate", "onnx", "models", "runtime", "tools"]
CALLS_BACK = {("replica/watchdog.c", "replica/worker.c")}   # a watchdog gives up the workers that it watches
# A function at the beginning of a line with its body, that other files can call.
DEFINITION = re.compile(r"^(?!typedef\b|static\b)[a-z][\w *]*?[ *](\w+)\([^;{}]*\)\s*\{", re.M)


def circle_faults(root):
    """Files of a room that call each other in a circle, and files on a way from one circle to another."""
    for room in NO_CIRCLES:
        codes = {path.relative_to(root): code_of(path) for path in sorted((root / room).rglob("*.c"))}
        owners = {name: path for path, code in codes.items() for name in DEFINITION.findall(code)}
        calls = {(path, owners[name]): name for path, code in codes.items() for name in sorted(set(re.findall(r"\w+", code)) & set(owners))
                 if owners[name] != path and (str(path), str(owners[name])) not in CALLS_BACK}
        while True:
            callers, called = {path for path, _ in calls}, {path for _, path in calls}
            left = {call: name for call, name in calls.items() if call[0] in called and call[1] in callers}
            if len(left) == len(calls):
                break
            calls = left
        for (path, other), name in calls.items():
            yield f"{path}: calls {name}() of {other.relative_to(room)}, which calls back through a circle of files"


# Functions of graph/operation.h whose names begin like those of operations.
NO_OPERATIONS = {"operation_input"}


def operation_faults(root):
    """A pass that knows an operation by its name. Passes ask `struct operation`, and append what `structural` lists."""
    for path in sorted((root / "plan").glob("*.[ch]")):
        for number, line in enumerate(code_of(path).splitlines(), 1):
            for name in set(re.findall(r"\boperation_\w+", line)) - NO_OPERATIONS:
                yield f"{path.relative_to(root)}:{number}: a pass may not name {name}"


def kernel_faults(root):
    """A text that the build does not know is not embedded anew when it changes."""
    for folder in (root / "clkernels", *sorted((root / "layers").iterdir())):
        texts = sorted(path for path in folder.rglob("*") if path.suffix in (".cl", ".h"))
        included = {path.parent / name for path in texts for name in re.findall(r'#\s*include "([^"]+)"', path.read_text())}
        for path in texts:
            if (path.suffix == ".cl" or path in included or folder.name == "clkernels") and \
                    f"'{path.relative_to(folder)}'" not in (folder / "meson.build").read_text():
                yield f"{folder.relative_to(root)}/meson.build: lacks '{path.relative_to(folder)}'"


# A kernel with more parameters takes a list of clkernels/arguments/.
MOST_PARAMETERS = 6


def parameter_faults(root):
    """A list of parameters that kernels and their launches would have to agree about, longer than one can see at once."""
    for path in sorted(root.glob("clkernels/*.cl")) + sorted(root.glob("layers/*/*.cl")):
        for name, parameters in re.findall(r"\b(?:kernel|TASK|KERNEL|GROUPS)\b[^;{}]*?\bvoid\s+(\w+)\s*\(([^{;]*)\)\s*{", code_of(path)):
            if parameters.count(",") >= MOST_PARAMETERS:
                yield f"{path.relative_to(root)}: {name} has more than {MOST_PARAMETERS} parameters without a list of them"


def code_of(path):
    """Without comments and strings; lines stay."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", lambda found: " " + "\n" * found[0].count("\n"), path.read_text(), flags=re.S)
    return re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)


TYPE = re.compile(
    r"\b(?:struct|enum|union)\s+(tutti_\w+)|\}\s*(tutti_\w+)\s*;|\btypedef\b[^;{]*?\b(tutti_\w+)\s*;")


def exported(root):
    return set(re.findall(r"^tutti_\w+$", (root / "include/symbols.txt").read_text(), re.M))


def name_faults(root):
    """The header or a page names a function or type that the library does not have."""
    headers = sorted(root.glob("include/*.h"))
    known = exported(root) | {name for header in headers for found in TYPE.findall(code_of(header)) for name in found}
    known |= {header.stem for header in headers}
    pages = [root / "CONTRIBUTING.md", *root.glob("docs/*.md"), *root.glob("README.md"), *root.glob("*/README.md")]
    for path in (*headers, *sorted(set(pages))):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for name in re.findall(r"\b(tutti_\w+)", line):
                if name not in known:
                    yield f"{path.relative_to(root)}:{number}: there is no {name}"


LIBRARY = ("base", "formats", "data", "runtime", "graph", "layers", "plan", "replica", "parallel", "train", "generate", "onnx", "models", "tools")
CODE = (*LIBRARY, "tests", "bench", "examples")
# A declaration or definition of a function begins a line; a call is indented.
DECLARATION = re.compile(r"^(?!typedef\b|static\b)[a-z][\w *]*?[ *](\w+)\(", re.M)


def caller_faults(root):
    """A function of a header that no file uses. The compiler warns of static functions."""
    declared, used = {}, set()
    for path in (path for room in CODE for path in sorted((root / room).rglob("*.[ch]"))):
        code = code_of(path)
        if path.suffix == ".h":
            declared |= {name: path.relative_to(root) for name in DECLARATION.findall(code)}
        used.update(re.findall(r"\w+", DECLARATION.sub("", code)))
    for path in (root / "python").rglob("*.py"):
        used.update(re.findall(r"\blib\.(\w+)", path.read_text()))
    for name in sorted(set(declared) - used - exported(root)):
        yield f"{declared[name]}: nothing calls {name}()"


# A larger struct is divided: members that belong together become a struct. The public header is exempt.
MOST_MEMBERS = 25
INNERMOST = re.compile(r"(?:\b(struct)\s*(\w*)\s*)?\{([^{}]*)\}")
PARENTHESES = re.compile(r"\([^()]*\)")


def member_faults(root):
    """A struct that one cannot keep in mind. A struct within it counts as one member: the innermost are replaced first."""
    for path in (path for room in (*CODE, "clkernels") for path in sorted((root / room).rglob("*.[ch]"))):
        code, rest = None, code_of(path)
        while code != rest:
            code = rest
            for struct, name, body in INNERMOST.findall(code):
                body = PARENTHESES.sub("", PARENTHESES.sub("", body))
                members = sum(1 + declaration.count(",") for declaration in body.split(";") if declaration.strip())
                if struct and members > MOST_MEMBERS:
                    yield f"{path.relative_to(root)}: struct {name} has {members} members, more than {MOST_MEMBERS}"
            rest = INNERMOST.sub(" struct inner ", code)


# A folder with more of one kind is divided by subject, so that one guesses a file's path from its name.
MOST_FILES = 60


def count_faults(root):
    """A folder that holds too many files of one kind, such as .c."""
    rooms = (path for path in root.iterdir() if path.is_dir() and not path.name.startswith((".", "build", "subprojects")))
    kinds = collections.Counter((path.parent.relative_to(root), path.suffix) for room in rooms for path in room.rglob("*")
                                if path.is_file() and not {part[0] for part in path.relative_to(root).parts} & {".", "_"})
    for (folder, suffix), count in sorted(kinds.items()):
        if count > MOST_FILES:
            yield f"{folder}/: has {count} files {suffix}, more than {MOST_FILES}: divide it by subject"


# The command sets no locale, so what it prints to its streams has a point; all else goes through base/numbers.h.
READERS = re.compile(r"\b(strtod|strtof|strtold|atof|setlocale|vsn?printf)\s*\(")
WRITERS = re.compile(r"\b(sn?printf|asprintf|dprintf|sscanf|fscanf)\s*\([^;]*?%[-+ #0-9.*]*l?[aefgAEFG](?![A-Za-z])[^;]*;")
STREAMS = re.compile(r"\b(f?printf)\s*\([^;]*?%[-+ #0-9.*]*l?[aefgAEFG](?![A-Za-z])[^;]*;")


def locale_faults(root):
    for room in LIBRARY:
        for path in sorted((root / room).rglob("*.[ch]")):
            if path.parent == root / "base" and path.stem == "numbers":
                continue
            text = path.read_text()
            for pattern in (READERS, WRITERS) if room == "tools" else (READERS, WRITERS, STREAMS):
                for found in pattern.finditer(text):
                    line = text.count("\n", 0, found.start()) + 1
                    yield f"{path.relative_to(root)}:{line}: {found[1]}() depends on the locale: use base/numbers.h"


def main():
    root = pathlib.Path(sys.argv[1])
    found = [*faults(root), *owner_faults(root), *circle_faults(root), *operation_faults(root), *kernel_faults(root), *parameter_faults(root),
             *name_faults(root), *caller_faults(root), *member_faults(root), *count_faults(root), *locale_faults(root)]
    print("\n".join(found))
    rooms = [room for room in ALLOWED if (root / room).is_dir()]
    print(f"{len(rooms) if not found else 0} passed, {len(found)} failed")
    return 1 if found or not rooms else 0


sys.exit(main())
