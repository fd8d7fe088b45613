"""Checks that a released symbol stays, and which release the library's symbols name.   symbols.py SOURCE BUILD"""
import pathlib
import subprocess
import sys

source, build = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
sys.path.insert(0, str(source / "tools"))
import symbols  # noqa: E402

OLD = ["tutti_a", "tutti_b"]
HEAD = f"TUTTI_0.2 {symbols.digest(OLD)}\n"
CASES = [  # text, functions of the headers, what is said
    (HEAD + "tutti_a\ntutti_b\n", "tutti_a tutti_b", ""),
    (HEAD + "tutti_a\ntutti_b\nTUTTI_0.3 open\ntutti_aa\n", "tutti_a tutti_b tutti_aa", ""),
    (HEAD + "tutti_a\ntutti_b\n", "tutti_a", "tutti_b is no longer"),
    (HEAD + "tutti_a\n", "tutti_a", "must stay"),
    (HEAD + "tutti_a\ntutti_b\ntutti_c\n", "tutti_a tutti_b tutti_c", "must stay"),
    (HEAD + "tutti_a\ntutti_b\n", "tutti_a tutti_b tutti_c", "tutti_c is public"),
    (HEAD + "tutti_a\ntutti_b\nTUTTI_0.3 open\ntutti_a\n", "tutti_a tutti_b", "twice"),
    ("TUTTI_0.2 open\ntutti_b\ntutti_a\n", "tutti_a tutti_b", "sorted"),
    ("TUTTI_0.2 open\ntutti_a\nTUTTI_0.3 open\n", "tutti_a", "only the last")]


def faults():
    for text, functions, part in CASES:
        said = "; ".join(symbols.faults(symbols.releases(text), set(functions.split())))
        if bool(said) != bool(part) or part not in said:
            yield f"{text!r} with {functions}: '{said}'"
    found = symbols.releases((source / "include/symbols.txt").read_text())
    listed = {f"{name}@@{node}" for node, _, names in found for name in names}
    table = subprocess.run(["nm", "-D", "--defined-only", build / "libtutti.so"], stdout=subprocess.PIPE, text=True, check=True).stdout
    exported = {line.split()[2] for line in table.splitlines() if not line.split()[2].startswith("TUTTI_")}
    yield from (f"{name}: exported and not in symbols.txt, or the reverse" for name in sorted(exported ^ listed))


found = list(faults())
print("\n".join(found))
print(f"{len(CASES) + 1 - len(found) if len(found) <= len(CASES) else 0} passed, {len(found)} failed")
sys.exit(1 if found else 0)
