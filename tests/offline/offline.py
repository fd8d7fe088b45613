#!/usr/bin/env python3
"""Compiles every program of GPU-class devices for chips that are not here and compares what it takes of them with table.txt.

    offline.py VARIANTS CACHE VENDOR [N]  the test, for the chips of AMD, Intel or NVIDIA; VARIANTS: the program of variants.c
    offline.py VARIANTS CACHE --all      the same for all vendors, with every program compiled
    offline.py VARIANTS CACHE --renew    writes table.txt, hashes.txt and the table of docs/gpu-kernels.md anew, to be looked at
                                         and committed; compiles what changed

A compiler makes the same of the same text: hashes.txt has a hash, for each text and vendor, of all that the rows in table.txt
follow from (text without comments, options, compilers and their versions, compilers.py) and of these rows. Where it holds, only one
program in N (8) is compiled, by its own hash, to see that it is so; texts that changed, on either side, are compiled with all their
options, and so is all with other versions.
Results lie in the folder CACHE, too, under a hash of text, options and compilers.
Where one of the vendor's compilers is missing, it fails with what is missing.
"""
import concurrent.futures
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time

import compilers
from compilers import CHIPS, MOST_WAVES, Row

HERE = os.path.dirname(os.path.abspath(__file__))
TABLE, HASHES, FAULTY = (os.path.join(HERE, name) for name in ("table.txt", "hashes.txt", "faulty.cl"))
PAGE = os.path.join(HERE, "../../docs/gpu-kernels.md")
BEGIN, END = "<!-- tests/offline/renew writes from here -->\n", "<!-- tests/offline/renew writes to here -->"
VENDORS = ["AMD", "Intel", "NVIDIA"]
COMMON = "-cl-std=CL1.2 -w "     # what all options begin with: not in the table
# Forms of matrix instructions, as runtime/device.h counts them: a name for them, and the chips that have them.
FORMS = {"0": ("", list(CHIPS)), "1": (" by mma.sync", ["sm_86", "sm_90"]), "2": (" by MFMA", ["gfx90a"]), "3": (" by WMMA", ["gfx1100"]),
         "4": (" by matrix_mad of 16", ["pvc"]), "5": (" by matrix_mad of 8", ["acm-g10"]), "6": (" by mma.sync, ldmatrix", ["sm_86", "sm_90"])}
# Forms of shuffles, likewise: the chips that have them.
SHUFFLES = {"1": [c for c in CHIPS if CHIPS[c] == "Intel"], "2": [c for c in CHIPS if CHIPS[c] == "NVIDIA"],
            "3": [c for c in CHIPS if CHIPS[c] == "AMD"]}
HEAD = """\
# What the kernels of GPU-class devices take of chips, by their vendors' compilers. Written by tests/offline/renew.
# A block for each kernel: text, kernel, work-items of a group, build options; then for each chip
#   registers/bytes spilled/bytes of local memory/waves
# AMD: registers of a work-item, waves of a SIMD; NVIDIA: registers of a work-item, warps of a multiprocessor; Intel: registers
# of a thread x its work-items, threads of an execution unit. Nowhere may a kernel have fewer waves, spill more or take more
# local memory than here. What it spills, and more local memory than 32 KiB, needs a reason, "because TEXT KERNEL CHIP: ...": written by
# hand, kept by renew.
"""


class Kernel:
    """A line of variants.c: one kernel of a program, which is a text with its options."""

    def __init__(self, line):
        self.source, self.name, options, group, local, flops, moved, launches, self.network = line.rstrip("\n").split("\t")
        self.options = options.strip()
        self.group, self.local, self.launches = int(group), int(local), int(launches)
        self.flops, self.bytes = float(flops), float(moved)
        self.shown = self.options.removeprefix(COMMON.strip()).strip()
        self.key = " ".join(f"{self.source} {self.name} {self.group} {self.shown}".split())
        form = re.search(r"-DMATRIX=(\d)", self.options)
        by, self.chips = FORMS[form[1] if form else "0"]
        shuffle = re.search(r"-DSHUFFLE=(\d)", self.options)
        self.chips = SHUFFLES[shuffle[1]] if shuffle else self.chips
        self.label = f"{self.source} {self.name}{by}"


def computed_by(text):
    """What a generated kernel computes of an element, as formulas."""
    element = re.search(r"^INLINE T scalar_element\(.*?^}", text, re.M | re.S)
    formulas = re.findall(r"^ *v\d+ = (.*);", element[0], re.M) if element else []
    computed = "`" + "; ".join(formulas) + "`" if formulas else ""
    if "group_joined(" in text[text.index("kernel void run("):]:
        return "reduction of " + computed if computed else "reduction"
    return computed or "copy"


def ask(variants, folder):
    subprocess.run([variants, folder], check=True)
    with open(os.path.join(folder, "variants"), encoding="utf-8") as file:
        kernels = [Kernel(line) for line in file]
    for kernel in kernels:
        if kernel.source.startswith("generated-"):
            with open(os.path.join(folder, kernel.source + ".cl"), encoding="utf-8") as file:
                kernel.label = "generated: " + computed_by(file.read())
    return kernels


# ---- the table ----

def show(row, chip):
    lanes = f"x{row.lanes}" if CHIPS[chip] == "Intel" else ""
    return f"{row.registers}{lanes}/{row.spilled}/{row.local}/{row.waves}"


def read_table():
    """Rows by kernel and chip; reasons by text, kernel's name and chip."""
    rows, reasons, key = {}, {}, None
    if not os.path.exists(TABLE):
        return rows, reasons
    with open(TABLE, encoding="utf-8") as file:
        for line in file:
            if line.startswith("#") or not line.strip():
                continue
            if line.startswith("because "):
                what, reason = line[len("because "):].split(":", 1)
                reasons[tuple(what.split())] = reason.strip()
            elif not line.startswith(" "):
                key = line.strip()
            else:
                for chip, text in re.findall(r"(\S+) (\S+/\S+)", line):
                    registers, spilled, local, waves = text.split("/")
                    registers, _, lanes = registers.partition("x")
                    rows[key, chip] = Row(int(registers), int(spilled), int(local), int(waves), int(lanes or 0))
    return rows, reasons


def write_table(kernels, rows, reasons):
    with open(TABLE, "w", encoding="utf-8") as file:
        file.write(HEAD)
        needing = {(k.source, k.name, chip) for k in kernels for chip in k.chips
                   if (k.key, chip) in rows and any(unreasoned(rows[k.key, chip]))}
        file.write("\n")
        for what, reason in sorted(reasons.items()):
            if what in needing:
                file.write(f"because {' '.join(what)}: {reason}\n")
        for kernel in kernels:
            file.write(f"\n{kernel.key}\n")
            for vendor in VENDORS:
                chips = [c for c in kernel.chips if CHIPS[c] == vendor and (kernel.key, c) in rows]
                if chips:
                    file.write("    " + "   ".join(f"{c} {show(rows[kernel.key, c], c)}" for c in chips) + "\n")


def read_hashes():
    if not os.path.exists(HASHES):
        return set()
    with open(HASHES, encoding="utf-8") as file:
        return {line.split()[0] for line in file if not line.startswith("#")}


def write_hashes(hashes):
    with open(HASHES, "w", encoding="utf-8") as file:
        file.write("# The rows of each text and vendor in table.txt were made from these texts, options and compilers (offline.py).\n")
        file.writelines(f"{digest} {vendor} {source}\n" for (source, vendor), digest in sorted(hashes.items()) if digest)


def write_page(kernels, rows):
    """Writes a row for each kernel and each form of its matrix instructions: the variant that moves most bytes in a training step of one of
    the networks in models/."""
    chips = list(CHIPS)
    most = {}
    for kernel in kernels:
        if kernel.bytes > 0 and kernel.bytes > most.get(kernel.label, kernel).bytes - 1:
            most[kernel.label] = kernel
    lines = ["| text, kernel | network | launches | GFLOP | GB | FLOP/byte | " + " | ".join(f"{c} /{MOST_WAVES[c]}" for c in chips) + " |",
             "|---|---|--:|--:|--:|--:|" + "--:|" * len(chips)]
    for _, k in sorted(most.items()):
        waves = [str(rows[k.key, c].waves) if (k.key, c) in rows else "" for c in chips]
        lines.append(f"| {k.label} | {k.network} | {k.launches} | {k.flops / 1e9:.2f} | {k.bytes / 1e9:.3f} | "
                     f"{k.flops / k.bytes:.1f} | " + " | ".join(waves) + " |")
    with open(PAGE, encoding="utf-8") as file:
        text = file.read()
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(text[:begin] + "\n".join(lines) + "\n" + text[end:])


# ---- compiling ----

def code_of(text):
    """Without comments, empty lines and spaces that say nothing."""
    lines = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S).splitlines()
    return "\n".join(line for line in (" ".join(line.split()) for line in lines) if line)


class Compiler:
    def __init__(self, folder, cache):
        self.folder, self.cache, self.compiled, self.loaded, self.sealed = folder, cache, 0, 0, 0
        os.makedirs(cache, exist_ok=True)
        with open(compilers.__file__, encoding="utf-8") as file:
            self.how = file.read()
        self.versions = {vendor: compilers.versions(vendor) for vendor in VENDORS if not compilers.lacking(vendor)}

    def path(self, source):
        return os.path.join(self.folder, source + ".cl")

    def hash(self, source, options, chips, groups):
        """Returns a hash of all that the rows follow from."""
        with open(self.path(source), encoding="utf-8") as file:
            what = json.dumps([self.how, self.versions[CHIPS[chips[0]]], code_of(file.read()), options, chips, groups])
        return hashlib.sha256(what.encode()).hexdigest()

    def compile(self, source, options, chips, groups):
        """For each of a vendor's chips rows by kernel, or the text of a refusal."""
        path, kept = self.path(source), os.path.join(self.cache, self.hash(source, options, chips, groups))
        if os.path.exists(kept):
            with open(kept, encoding="utf-8") as file:
                self.loaded += len(chips)
                return {chip: {name: Row(*row) for name, row in rows.items()} for chip, rows in json.load(file).items()}
        with tempfile.TemporaryDirectory() as own:
            found = compilers.compile_for(chips, path, options.split(), groups, own)
        self.compiled += len(chips)
        if not any(isinstance(rows, str) for rows in found.values()):
            with open(kept + f".{os.getpid()}", "w", encoding="utf-8") as file:
                json.dump(found, file)
            os.rename(kept + f".{os.getpid()}", kept)
        return found


def programs_of(kernels, vendors):
    """For each program and vendor: text and options, the vendor's chips, the program's kernels."""
    programs = {}
    for kernel in kernels:
        programs.setdefault((kernel.source, kernel.options), []).append(kernel)
    for program, members in programs.items():
        for vendor in vendors:
            chips = [c for c in members[0].chips if CHIPS[c] == vendor]
            if chips:
                yield program, chips, members


def groups_of(members):
    return {k.name: k.group for k in members}


def hash_of(compiler, program, chips, members, rows):
    """None: the rows are not all there."""
    keys = [(k.key, chip) for k in sorted(members, key=lambda k: k.key) for chip in chips]
    if any(key not in rows for key in keys):
        return None
    what = json.dumps([compiler.hash(*program, chips, groups_of(members)), [(*key, show(rows[key], key[1])) for key in keys]])
    return hashlib.sha256(what.encode()).hexdigest()[:16]


def seals_of(compiler, programs, rows):
    """The digest of each text and vendor, and those of its programs; None: the rows are not all there."""
    parts = {}
    for program, chips, members in programs:
        parts.setdefault((program[0], CHIPS[chips[0]]), []).append(hash_of(compiler, program, chips, members, rows))
    return {key: None if None in found else hashlib.sha256(" ".join(sorted(found)).encode()).hexdigest()[:16]
            for key, found in parts.items()}


def compile_all(kernels, compiler, vendors, expected, hashes, one_in):
    """Rows by kernel and chip, refusals as texts, and texts of which hashes.txt has another hash. Rows are taken from the table,
    `expected`, where one of the hashes says so."""
    rows, refusals, waiting = {}, [], []
    programs = list(programs_of(kernels, vendors))
    digests = seals_of(compiler, programs, expected)
    holds = {key for key, digest in digests.items() if digest in hashes}
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for program, chips, members in programs:
            known = (program[0], CHIPS[chips[0]]) in holds
            if known and int(hash_of(compiler, program, chips, members, expected), 16) % one_in:
                compiler.sealed += len(chips)
                rows.update({(k.key, chip): expected[k.key, chip] for k in members for chip in chips})
            else:
                waiting.append((members, pool.submit(compiler.compile, *program, chips, groups_of(members))))
        for members, result in waiting:
            for chip, found in result.result().items():
                note(members, chip, found, rows, refusals)
    return rows, refusals, sorted({source for source, _ in digests.keys() - holds})


def note(members, chip, found, rows, refusals):
    """What became of a program's kernels."""
    for kernel in members:
        if isinstance(found, str):
            refusals.append(f"{kernel.key}\n    {chip} refuses it: {found}")
        elif kernel.name not in found:
            refusals.append(f"{kernel.key}\n    {chip}: the program has no kernel {kernel.name}")
        else:
            rows[kernel.key, chip] = found[kernel.name]._replace(local=found[kernel.name].local + kernel.local)


# ---- comparing ----

def unreasoned(row):
    """What needs a reason in the table."""
    if row.spilled:
        yield f"spills {row.spilled} bytes and the table gives no reason"
    if row.local > 32 << 10:
        yield f"takes {row.local} bytes of local memory and the table gives no reason: some devices have 32 KiB"


def worse(row, old, reason):
    """What is worse than in the table, whose row is `old`."""
    if not reason:
        yield from unreasoned(row)
    if not old:
        yield "is not in the table"
        return
    if row.spilled > old.spilled:
        yield f"spills {row.spilled} bytes, in the table {old.spilled}"
    if row.waves < old.waves:
        yield f"has {row.waves} waves with {row.registers} registers, in the table {old.waves} with {old.registers}"
    if old.lanes and row.lanes < old.lanes:
        yield f"has waves of {row.lanes} work-items, in the table {old.lanes}"
    if row.local > old.local:
        yield f"takes {row.local} bytes of local memory, in the table {old.local}"


def compare(kernels, rows, expected, reasons):
    problems = []
    for kernel in kernels:
        for chip in kernel.chips:
            if (kernel.key, chip) in rows:
                found = worse(rows[kernel.key, chip], expected.get((kernel.key, chip)), reasons.get((kernel.source, kernel.name, chip)))
                problems += [f"{kernel.key}\n    {chip}: it {what}" for what in found]
    asked = {k.key for k in kernels}
    return problems + [f"{key}\n    it is in the table, and no plan asks for it" for key in sorted({k for k, _ in expected} - asked)]


def prove(compiler, vendor):
    """That the test can fail: what is missed of made-up faults."""
    good, missed = Row(64, 0, 1024, 8, 16), []
    faults = {"a spill": good._replace(spilled=4), "fewer waves": good._replace(waves=7), "narrower waves": good._replace(lanes=8),
              "more local memory": good._replace(local=1028), "too much local memory": good._replace(local=(32 << 10) + 4)}
    missed += [f"{what} is not noticed" for what, row in faults.items() if not list(worse(row, good, None))]
    missed += [] if list(worse(good._replace(spilled=8), good._replace(spilled=4), "a reason")) else ["a larger spill is not noticed"]
    missed += [] if list(worse(good, None, None)) else ["a kernel that is not in the table is not noticed"]
    missed += ["an equal row is refused"] if list(worse(good, good, None)) else []
    chips = [c for c in CHIPS if CHIPS[c] == vendor]
    for options in COMMON, COMMON + "-DREFUSED":
        for chip, found in compiler.compile("faulty", options, chips, {"faulty": 64}).items():
            noticed = isinstance(found, str) if "REFUSED" in options else not isinstance(found, str) and found["faulty"].spilled
            missed += [] if noticed else [f"{chip}: {options.strip()} of faulty.cl is not noticed: {found}"]
    hashes = {hash_of(compiler, ("faulty", options), chips, [Kernel(f"faulty\tfaulty\t{options}\t64\t0\t0\t0\t0\tnone")],
                     {(f"faulty faulty 64{more}", chip): row for chip in chips})
             for options, more in ((COMMON, ""), (COMMON + "-DREFUSED", " -DREFUSED")) for row in (good, good._replace(waves=9))}
    missed += [] if len(hashes) == 4 and None not in hashes else ["a hash holds for other options or another row"]
    missed += [] if code_of("a; /* b\n c */  d // e\n\n") == code_of("a; d") != code_of("a;\nd") else ["a comment is taken for code"]
    return [f"the test cannot fail: {what}" for what in missed]


def main():
    begin = time.monotonic()
    renew, everything = "--renew" in sys.argv, "--all" in sys.argv
    variants, cache, *vendors = [a for a in sys.argv[1:] if not a.startswith("-")]
    one_in = int(vendors.pop()) if vendors and vendors[-1].isdigit() else 8
    vendors = vendors or VENDORS
    for vendor in vendors:
        if compilers.lacking(vendor):
            print(f"{vendor}'s chips were not compiled for: {compilers.lacking(vendor)}\n0 passed, 1 failed")
            return 1
    with tempfile.TemporaryDirectory() as folder:
        kernels = ask(variants, folder)
        compiler = Compiler(folder, cache)
        with open(FAULTY, encoding="utf-8") as faulty, open(os.path.join(folder, "faulty.cl"), "w", encoding="utf-8") as copy:
            copy.write(faulty.read())
        problems = [problem for vendor in vendors for problem in prove(compiler, vendor)]
        hashes = set() if everything else read_hashes()
        rows, refusals, changed = compile_all(kernels, compiler, vendors, read_table()[0], hashes, one_in)
        if renew:
            write_table(kernels, rows, read_table()[1])
            write_page(kernels, rows)
            write_hashes(seals_of(compiler, programs_of(kernels, vendors), rows))
    problems += refusals + compare(kernels, rows, *read_table())
    print("\n".join(problems))
    print(f"{len(kernels)} kernels: {compiler.compiled} programs compiled, {compiler.loaded} known from before, {compiler.sealed} sealed, in "
          f"{time.monotonic() - begin:.0f} s")
    if changed and not everything:
        shown = ", ".join(changed[:20]) + (", ..." if len(changed) > 20 else "")
        print(f"{len(changed)} texts, their options, compilers or rows are not those of hashes.txt: {shown}")
    if problems:
        print("where this is meant: tests/offline/renew, and commit table.txt; a spill needs its reason there")
    print(f"{len(rows)} passed, {len(problems)} failed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
