#!/usr/bin/env python3
"""Finds words that had a meaning of their own in this tree, where the field has a term (CONTRIBUTING.md, "Words").

    words.py ROOT
"""
import pathlib
import re
import sys

# The word, as code or prose has it; the term.
WORDS = [
    (r"pairs_(?:form|ability|refusal|parts|unit)\w*|PAIRS_[A-Z]\w*|(?:gemm|conv2d|device|remark|peak)_pairs\w*|pairs of bfloat16 numbers are multiplied",
     "bf16 dot products, bf16_*"),
    (r"\bmeetings?\b|_meetings?\b|\bmeeting_\w+|\bCOMMAND_(?:MEET|NEED|READY)\b", "sync point; PIECE, BUCKET"),
    (r"(?:balance|rebalance|trainer|PHASE|SPEED|TRY)_(?:ALONE|alone)\b", "sole replica, single device"),
    (r"\b(?:struct )?supply\b(?=;|->|\.\w)|\bversions_(?:tear|drop)\w*|\btorn\b", "parameter snapshot, partially updated, invalidate"),
    (r"\bgradient_(?:way|port)\b|\bstruct (?:departure|arrival)\b", "gradient transport, transfer, bucket"),
    (r"(?<!of )(?<!Of )\bcourse\b|\bcourse_\w+|_course\b", "training state, schedule"),
    (r"\btally\w*|\bTALLY\w*", "metric sums"),
    (r"(?<=[.>])told\b|\btold_\w+|\bstruct told\b", "reported"),
    (r"doubt|crowd|_stale\b|_forget\b", "suspect memory, mark full, invalidate, reset"),
    (r"(?<=[.>*])said\b|\bsize_t said\b|\bfloat otherwise\b|\bint\w* otherwise\b|\brecipes?\b|\b(?:void|bool|tutti_status) tell\w*\(", "arguments, schema, fallback, report or log"),
    (r"\bstep_(?:operand|refuse|integer|done)\b|\bSTAND_IN\b|\bstands_in\b|\bstruct (?:counting|extent|symbolic_size)\b", "node, batch index, symbolic integer, placeholder batch"),
    (r"\bAVERAGE_ARGUMENTS\b|\b(?:KERNEL void|ARGUMENTS) ?\(?average\b|\boptions and averages\b", "EMA: averages are over ranks"),
    (r"\bbehind\b|\bBehind\b|_behind\b|\bbehind_\w+", "after"),
    (r"\b[Ii]n front\b", "before"),
    (r"\b[Bb]eside\b|_beside\b|\bbeside_\w+", "overlapped, next to, besides"),
    (r"\b[Mm]akers?\b|\bMAKERS?\b", "vendor; producer of a value"),
    (r"\btutti_expert\w*|[.>]experts\b", "tutti_advanced"),
    (r"\bown_(?:data|options|saved)\b", "user data"),
    (r"\bseals?\b|\bhouse rules\b|\btests/arrows\b", "hashes, conventions"),
    (r"(?:/\*|\"\"\"|#) Of (?:a|an|the|all|each|those|these|such|\w+s)\b", "a sentence with subject and verb"),
]
# Where a word is meant in its ordinary sense: the file, a part of the line, the reason.
ALLOWED = [
    ("*", r"\b(?:falls?|fell|hides?|far|left|stays|scripts) behind\b", "to lag, to be hidden"),
    ("*", r"\bbehind standard (?:in|out)put\b", "what a stream leads to"),
    ("*", r"\binput_forget\b|\bforget gate\b|\blstm\b", "a gate of an LSTM"),
    ("clkernels/*", r"\b(?:tally|TALLY)", "sums of a tile in registers"),
    ("layers/*/*", r"\b(?:tally|TALLY)", "sums of a tile in registers"),
    ("tests/base/*", r"\btally", "a counter"),
    ("data/line.c", r"\bcrowded\b", "points close together"),
    ("bench/loader.py", r"\btorchvision's recipes\b", "torchvision calls them so"),
    ("data/augment.c", r"\btorchvision's recipes\b", "torchvision calls them so"),
]
FOLDERS = ["base", "bench", "clkernels", "data", "docs", "examples", "formats", "graph", "include", "layers", "models", "onnx",
           "parallel", "plan", "python", "replica", "runtime", "tests", "text", "tools", "train"]
ENDINGS = {".c", ".h", ".cl", ".py", ".md", ".build", ".sh"}


def files(root):
    yield from (path for path in sorted(root.glob("*.md")) if path.name not in ("CHANGELOG.md", "CONTRIBUTING.md"))
    for folder in FOLDERS:
        yield from (path for path in sorted((root / folder).rglob("*")) if path.suffix in ENDINGS and path.name != "words.py")


def found_in(root):
    words = [(re.compile(word), term) for word, term in WORDS]
    allowed = [(place, re.compile(part)) for place, part, _ in ALLOWED]
    for path in files(root):
        name = path.relative_to(root)
        text = path.read_text(errors="ignore")
        present = [(word, term) for word, term in words if word.search(text)]
        for number, line in enumerate(text.splitlines() if present else [], 1):
            for word, term in present:
                for hit in word.finditer(line):
                    if not any(name.match(place) and any(part.start() <= hit.end() and hit.start() <= part.end() for part in parts.finditer(line))
                               for place, parts in allowed):
                        yield f"{name}:{number}: \"{hit[0]}\": {term}"


def main():
    found = list(found_in(pathlib.Path(sys.argv[1])))
    print("\n".join(found))
    print(f"{len(WORDS) if not found else 0} passed, {len(found)} failed")
    return 1 if found else 0


sys.exit(main())
