#!/usr/bin/env python3
"""Describes C headers as JSON, from which bindings of other languages are generated:   interface.py OUTPUT HEADER...

The headers are those of this project, in an order in which each follows those that it needs; the parser knows their
regular style and refuses what it does not know. The result has four lists:

constants   name, value, text: numbers that are defined, and those of enums without a name
enums       name, text, typedef; constants: name, value, text
structs     name, text, kind, typedef; members: name, type, declaration, text. Kinds: "opaque", without members; "options" and
            "result", which begin with `size` (the caller sets the members, or sets `size` and the function the others);
            "plain"
functions   name, text, result, parameters (name, type, declaration), declaration

Each has the `header`; `typedef`: its name is also one without `struct` or `enum`. A text is the comment after a
declaration, else the one before it; two functions of one result that follow each other share it, and so do members that
it names. A type has the `name` of what it is made of, with `const`, `pointers` (their number) and `array` (the number of
elements) if these are not 0; or it is a `callback` with result and parameters.
"""
import json
import pathlib
import re
import sys

TOKEN = re.compile(r"""(?P<comment>/\*.*?\*/) | (?P<blank>\n[ \t]*\n) | (?P<space>\s+) | (?P<directive>\#(?:\\\n|[^\n])*) |
                       (?P<word>\w+) | (?P<text>"(?:\\.|[^"\\\n])*") | (?P<other>\.\.\.|.)""", re.S | re.X)
NUMBER = re.compile(r"\(?(-?(?:0x[0-9A-Fa-f]+|\d+))\)?")
# `#define TUTTI_STATUS_ENUM(name, number, sentence) TUTTI_##name = number,`: how a table becomes the constants of an enum.
ROW_NAME = re.compile(r"(\w+)\((\w+), (\w+), \w+\) (\w+)##\2 = \3,")
ROW = re.compile(r'X\((\w+), (-?\d+), "((?:\\.|[^"\\])*)"\)')
WORDS_OF_TYPES = {"const", "struct", "enum", "unsigned", "long"}


class Unknown(Exception):
    """The header has something that the parser does not know."""


def text_of(comment):
    lines = (re.sub(r"^\s*\*? ?", "", line) for line in comment[2:-2].split("\n"))
    text = "\n".join(line.rstrip() for line in lines).strip()
    return "" if text.endswith("----") else text


class Header:
    """The tokens of a file, without what only C++ and the preprocessor see."""

    def __init__(self, path):
        self.name, self.text, self.tokens, self.defines, self.at = path.name, path.read_text(encoding="utf-8"), [], [], 0
        hidden, line, comment = [], 1, ""
        for found in TOKEN.finditer(self.text):
            kind, token = found.lastgroup, found[0]
            if kind == "directive":
                self.directive(re.sub(r"\s*\\\n\s*", " ", token), line, hidden, comment)
            elif not any(hidden) and kind != "space":
                self.tokens.append((kind, token, line))
            if kind in ("comment", "blank", "directive"):
                comment = token if kind == "comment" else ""
            line += token.count("\n")
        self.tokens.append(("end", "", line))

    def directive(self, text, line, hidden, comment):
        """Conditions hide what is in them: code for C++. The guard of the header hides nothing."""
        word, _, rest = text[1:].strip().partition(" ")
        if word in ("ifdef", "if", "ifndef"):
            if rest not in ("__cplusplus", "defined(__GNUC__)") and not (word == "ifndef" and rest.endswith("_H")):
                raise Unknown(f"{self.name}:{line}: the condition #{word} {rest}")
            hidden.append(word != "ifndef")
        elif word == "else":
            hidden[-1] = not hidden[-1]
        elif word == "endif":
            hidden.pop()
        elif word == "define" and not any(hidden):
            name, value = re.match(r"(\w+(?:\([^)]*\))?)\s*(.*)", rest).groups()
            after = re.search(r"\s*/\*(.*?)\*/$", value)
            self.defines.append((name, value[:after.start()] if after else value, text_of(after[0].strip() if after else comment or "/**/")))
        elif word not in ("include", "undef", "define"):
            raise Unknown(f"{self.name}:{line}: the directive #{word}")

    def next(self):
        self.at += 1
        return self.tokens[self.at - 1]

    def trailing(self):
        """The comment on the line of the last token, or ""."""
        kind, token, line = self.tokens[self.at]
        if kind == "comment" and line == self.tokens[self.at - 1][2]:
            self.at += 1
            return text_of(token)
        return ""

    def fail(self, what):
        raise Unknown(f"{self.name}:{self.tokens[self.at - 1][2]}: {what}")


def statements(header, end):
    """The declarations up to the token `end`: tokens, comment before, comment after; and the comment before those that
    precede without a blank line or a comment, which this one may share."""
    before, shared, tokens, depth = "", "", [], 0
    while True:
        kind, token, _ = header.next()
        if not tokens and (token == end or kind == "end" and end == ""):
            return
        if kind == "end":
            header.fail("a declaration has no end")
        if kind == "comment":
            if not tokens:
                before, shared = text_of(token), ""
        elif kind == "blank":
            if not tokens:
                before = shared = ""
        elif token == ";" and depth == 0:
            after = header.trailing()
            yield tokens, before, after, shared
            before, shared, tokens = "", "" if after else before or shared, []
        elif token == "{":
            yield [*tokens, "{"], before, "", ""    # whose reader reads the body, up to its semicolon
            before, shared, tokens = "", "", []
        else:
            depth += {"(": 1, ")": -1}.get(token, 0)
            tokens.append(token)


def written(tokens):
    """Tokens as C text in this project's format."""
    text = " ".join(tokens)
    text = re.sub(r"\s*([(\[])\s*", r"\1", text)
    text = re.sub(r"\s+([,)\]])", r"\1", text)
    text = re.sub(r"(\w)\(\*", r"\1 (*", text)
    return re.sub(r"\* (?=[\w*(])(?!const)", "*", text)


def divided(tokens):
    """Divides tokens at the commas that are not within parentheses."""
    parts, depth = [[]], 0
    for token in tokens:
        depth += {"(": 1, ")": -1}.get(token, 0)
        if token == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


class Reader:
    def __init__(self):
        self.constants, self.enums, self.structs, self.functions, self.tables, self.rows = [], {}, {}, {}, {}, {}

    def number(self, text):
        known = {constant["name"]: constant["value"] for constant in self.constants}
        found = NUMBER.fullmatch(text)
        return int(found[1], 0) if found else known.get(text)

    def read(self, path):
        header = Header(path)
        for name, value, text in header.defines:
            if name.endswith("_TABLE(X)"):
                self.tables[name[:-3]] = ROW.findall(value)
                if value.count("X(") != len(self.tables[name[:-3]]):
                    raise Unknown(f"{path.name}: rows of {name}")
            elif ROW_NAME.fullmatch(f"{name} {value}"):
                found = ROW_NAME.fullmatch(f"{name} {value}")
                self.rows[found[1]] = found[4]
            elif self.number(value) is not None:
                self.constants.append({"name": name, "value": self.number(value), "text": text, "header": header.name})
        last = None
        for tokens, before, after, shared in statements(header, ""):
            if "{" in tokens:
                self.body(header, tokens, before)
            elif tokens[0] == "typedef":
                self.opaque(header, tokens, after or before)
            elif "(" in tokens:
                function = self.function(header, tokens, after or before)
                if not function["text"] and last and last["text"] == shared and last["result"] == function["result"]:
                    function["text"] = shared
                last = function
            elif tokens[0] != "struct" or len(tokens) != 2:
                header.fail(f"the declaration {written(tokens)}")

    def opaque(self, header, tokens, text):
        if len(tokens) != 4 or tokens[1] != "struct" or tokens[2] != tokens[3]:
            header.fail(f"the type {written(tokens)}")
        self.structs.setdefault(tokens[2], {"name": tokens[2], "kind": "opaque", "typedef": True, "text": text, "header": header.name})

    def body(self, header, tokens, text):
        """typedef struct NAME { ... } NAME; or without the typedef, also an enum; or constants, enum { ... };"""
        words = [token for token in tokens if token != "typedef"]
        if tokens == ["enum", "{"]:
            self.constants += [{**constant, "text": constant["text"] or text, "header": header.name} for constant in self.enum_constants(header)]
            if header.next()[1] != ";":
                header.fail("an enum without a name ends by no semicolon")
            header.trailing()
            return
        if len(words) != 3 or words[0] not in ("struct", "enum"):
            header.fail(f"the type {written(tokens)}")
        kind, name, _ = words
        if kind == "enum":
            entry = self.enums[name] = {"name": name, "text": text, "constants": self.enum_constants(header), "header": header.name}
        else:
            known = self.structs.get(name, {})
            entry = self.structs[name] = {**self.struct(header, name, text), "typedef": known.get("typedef", False)}
        entry["typedef"] = entry.get("typedef", False) or tokens[0] == "typedef"
        rest = [token for _, token, _ in (header.next() for _ in range(2 if tokens[0] == "typedef" else 1))]
        if rest != ([name, ";"] if tokens[0] == "typedef" else [";"]):
            header.fail(f"{kind} {name} ends by {written(rest)}")
        header.trailing()

    def enum_constants(self, header):
        constants, before, tokens, value = [], "", [], 0

        def add(text):
            nonlocal value, tokens, before
            if len(tokens) == 4 and tokens[1] == "(":
                table, row = tokens[0], self.rows.get(tokens[2])
                if table not in self.tables or row is None:
                    header.fail(f"the constants {written(tokens)}")
                constants.extend({"name": row + name, "value": int(number), "text": sentence} for name, number, sentence in self.tables[table])
            elif tokens:
                if tokens[1:2] == ["="]:
                    value = self.number("".join(tokens[2:]))
                if value is None or len(tokens) == 2 or tokens[1:2] not in ([], ["="]):
                    header.fail(f"the constant {written(tokens)}")
                constants.append({"name": tokens[0], "value": value, "text": text or before})
                value += 1
            tokens, before = [], ""

        while True:
            kind, token, _ = header.next()
            if kind == "comment":
                if tokens:      # of the last constant, which no comma follows
                    add(text_of(token))
                else:
                    before = text_of(token)
            elif token in (",", "}"):
                add(header.trailing() if token == "," else "")
                if token == "}":
                    return constants
            elif kind not in ("blank",):
                tokens.append(token)

    def struct(self, header, name, text):
        members = []
        for tokens, before, after, shared in statements(header, "}"):
            if "{" in tokens:
                header.fail(f"struct {name} has a struct in it")
            if "(" in tokens:
                members.append({**self.declared(header, tokens), "text": after or before})
                continue
            if not before and (tokens[-1].endswith("_count") or re.search(rf"`{tokens[-1]}`|\b{tokens[-1]}\[", shared)):
                before = shared
            # The names after a comma have the type's words, and their own asterisks.
            first, *others = divided(tokens)
            end = next(at for at, token in enumerate(first) if token == "*" or at and token not in WORDS_OF_TYPES and first[at - 1] not in WORDS_OF_TYPES)
            for one in (first, *(first[:end] + other for other in others)):
                members.append({**self.declared(header, one), "text": after or before})
        kind = "plain"
        if members and members[0]["declaration"] == "size_t size":
            kind = "result" if "set it before" in members[0]["text"] else "options"
        return {"name": name, "kind": kind, "text": text, "members": members, "header": header.name}

    def declared(self, header, tokens):
        """A parameter or member: its name, type and declaration."""
        declaration, callback = written(tokens), None
        if "(" in tokens:       # RESULT (*NAME)(PARAMETERS)
            at = tokens.index("(")
            if tokens[at + 1] != "*" or tokens[at + 3:at + 5] != [")", "("] or tokens[-1] != ")":
                header.fail(f"the declaration {declaration}")
            callback = {"result": self.type_of(header, tokens[:at]), "parameters": self.parameters(header, tokens[at + 5:-1])}
            return {"name": tokens[at + 2], "type": {"callback": callback}, "declaration": declaration}
        size = None
        if tokens[-1] == "]":
            size = self.number(tokens[-2])
            if size is None or tokens[-3] != "[":
                header.fail(f"the array {declaration}")
            tokens = tokens[:-3]
        kind = self.type_of(header, tokens[:-1])
        if size is not None:
            kind["array"] = size
            declaration = f"{written(tokens)}[{size}]"
        return {"name": tokens[-1], "type": kind, "declaration": declaration}

    def parameters(self, header, tokens):
        return [] if tokens in ([], ["void"]) else [self.declared(header, part) for part in divided(tokens)]

    def type_of(self, header, tokens):
        names = [token for token in tokens if token not in ("const", "struct", "enum", "*")]
        if not names or len(names) > 1 and not set(names[:-1]) <= WORDS_OF_TYPES:
            header.fail(f"the type {written(tokens)}")
        kind = {"name": " ".join(names)}
        if "const" in tokens:
            kind["const"] = True
        if "*" in tokens:
            kind["pointers"] = tokens.count("*")
        return kind

    def function(self, header, tokens, text):
        tokens = tokens[1:] if tokens[0] == "TUTTI_API" else tokens
        at = tokens.index("(")
        name = tokens[at - 1]
        if tokens[-1] != ")" or not re.fullmatch(r"[a-z]\w+", name) or name in self.functions:
            header.fail(f"the function {written(tokens)}")
        self.functions[name] = {"name": name, "text": text, "result": self.type_of(header, tokens[:at - 1]),
                                "parameters": self.parameters(header, tokens[at + 1:-1]), "declaration": written(tokens), "header": header.name}
        return self.functions[name]


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    output, paths = sys.argv[1], [pathlib.Path(name) for name in sys.argv[2:]]
    reader = Reader()
    try:
        for path in paths:
            reader.read(path)
    except Unknown as unknown:
        sys.exit(f"interface.py does not know {str(unknown).split(': ', 1)[1]} ({str(unknown).split(': ')[0]})")
    known = {constant["name"]: constant["value"] for constant in reader.constants}
    version = ".".join(str(known.get(f"TUTTI_VERSION_{part}", 0)) for part in ("MAJOR", "MINOR", "PATCH"))
    lists = {"constants": reader.constants, "enums": [*reader.enums.values()], "structs": [*reader.structs.values()],
             "functions": [*reader.functions.values()]}
    text = json.dumps({"version": version, "headers": [path.name for path in paths], **lists}, indent=1, ensure_ascii=False)
    pathlib.Path(output).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
