#!/usr/bin/env python3
"""Checks what the documentation names: links and their anchors lead somewhere; files, functions, structs and options
that are named in `code` exist; a command such as `tutti show MODEL --why` has the option; and a function is defined in
the file that is named next to it, as in `plan_new()` (`plan/plan.c`) or in a row of a table.

    pages.py ROOT
"""
import pathlib
import re
import sys

SOURCES = {".c", ".h", ".cl", ".py", ".build", ".txt", ".options", ""}
# Names of a page that stand for others: those that the reader chooses, and files of other projects.
FREE = re.compile(r"NAME|^CL/")
# Options of other programs.
FOREIGN = re.compile(r"\b(?:mpirun|meson|ninja|apt-get|git|clang|ptxas|perf)\b")
CODE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CALL = re.compile(r"(\w+)\(\)")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
COMMAND = re.compile(r"\btutti (\w+)(?= )([^`]*)")
TYPE = re.compile(r"\b(struct|enum) (\w+)")
ENDING = re.compile(r"\w\.(?:c|h|cl|py|md|txt)$")
FILE = re.compile(r"[\w.*-]+(?:/[\w.*-]+)*/?")
# `f()`, `g()` (`file`), and a row of a table: | `f()`, `g()` | `file` |
CALLS = r"`\w+\(\)`(?:, `\w+\(\)`)*"
PLACED = re.compile(rf"({CALLS}) (?:\(|\| )`([\w/]+\.\w+)`")


class Tree:
    def __init__(self, root):
        self.root = root
        rooms = (path for path in root.iterdir() if path.is_dir())
        self.rooms = {path.name for path in rooms if not path.name.startswith((".", "build"))}
        self.files = [path for room in sorted(self.rooms) for path in (root / room).rglob("*") if path.is_file()]
        texts = [path.read_text(errors="ignore") for path in self.files if path.suffix in SOURCES]
        self.names = {path.name for path in self.files}
        self.words = {word for text in texts for word in re.findall(r"\w+", text)}
        self.types = {name for text in texts for name in re.findall(r"\b(?:struct|enum|union) (\w+)", text)}
        self.options = {option for text in texts for option in OPTION.findall(text)}
        pages = {*root.glob("*.md"), *(path for path in self.files if path.suffix == ".md")}
        self.pages = sorted(pages - {root / "CHANGELOG.md"})  # whose names are those of earlier versions
        helps = root.glob("tests/command/expected/*.txt")
        self.helps = {path.stem: set(OPTION.findall(path.read_text())) for path in helps}

    def has_file(self, page, name):
        """A path begins at the root or at the page's own folder. A name alone may be that of any file; in the README of a
        folder, that of any file there."""
        if "/" in name:
            return any(next(folder.glob(name.rstrip("/")), None) for folder in (self.root, page.parent))
        if page.name == "README.md":
            return next(page.parent.rglob(name), None)
        return any(pathlib.PurePath(known).match(name) for known in self.names)


def anchors(page):
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def link_faults(page, line):
    for target in LINK.findall(line):
        path, _, anchor = target.partition("#")
        linked = page.parent / path if path else page
        if not re.match(r"https?:", target) and (not linked.exists() or anchor and anchor not in anchors(linked)):
            yield f"the link {target} leads nowhere"


def code_faults(tree, page, code):
    yield from (f"there is no function {name}()" for name in CALL.findall(code) if name not in tree.words)
    yield from (f"there is no {kind} {name}" for kind, name in TYPE.findall(code) if name not in tree.types)
    room, slash, _ = code.partition("/")
    is_file = FILE.fullmatch(code) and (slash and room in tree.rooms or ENDING.search(code))
    if is_file and not FREE.search(code) and not tree.has_file(page, code):
        yield f"there is no file {code}"
    if not FOREIGN.search(code):
        yield from (f"there is no option {name}" for name in OPTION.findall(code) if name not in tree.options)


def place_faults(tree, page, line):
    for calls, name in PLACED.findall(line):
        for path in (folder / name for folder in (tree.root, page.parent) if (folder / name).is_file()):
            text = path.read_text()
            yield from (f"{name} does not define {call}()" for call in CALL.findall(calls)
                        if not re.search(rf"^\w[^\n;]*\b{call}\(", text, re.M))


def command_faults(tree, line):
    for command, rest in COMMAND.findall(line):
        yield from (f"tutti {command} has no option {name}" for name in OPTION.findall(rest)
                    if name not in tree.helps.get(command, tree.options))


def faults(tree):
    for page in tree.pages:
        for number, line in enumerate(page.read_text().splitlines(), 1):
            found = [*link_faults(page, line), *place_faults(tree, page, line), *command_faults(tree, line)]
            found += [fault for code in CODE.findall(line) for fault in code_faults(tree, page, code)]
            yield from (f"{page.relative_to(tree.root)}:{number}: {fault}" for fault in found)


def main():
    tree = Tree(pathlib.Path(sys.argv[1]))
    found = list(faults(tree))
    print("\n".join(found))
    print(f"{len(tree.pages) if not found else 0} passed, {len(found)} failed")
    return 1 if found or not tree.pages else 0


sys.exit(main())
