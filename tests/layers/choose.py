#!/usr/bin/env python3
"""Chooses the few runs of the operations' cases that together launch every kernel, and checks that they still do.

    choose.py --renew RECORD... CHOSEN      writes CHOSEN anew, to be looked at and committed
    choose.py --check RECORD... CHOSEN      fails where CHOSEN leaves out a kernel that the whole sweep launches

RECORDs are written by `operations --record`. A run is a case on one class of device with one choice of implementations; on a
CPU, with the vectors that it has. Covered are, for GPUs and for CPUs of each width of vectors,
    each kernel of each implementation of each operation,
    each value of each build option (sizes above 1 count as one value where an option has many).
The runs of the cases in ALWAYS are chosen in any case. The choice of the others is greedy: the run with the most that is new
for each second of compiling comes next (Chvatal 1979). Runs that later ones make needless are left out.
tests/layers/renew runs the sweep and calls this.
"""
import collections
import re
import sys

HEAD = """\
# The runs of the operations' cases that `tests/run` does: together they launch every kernel, with
# every value of every build option.
# Written by tests/layers/renew; choose.py says how. Below each case: the class of device (gpu; or cpu, with vectors as wide as
# it has them) and the implementations that are forced, none for the plan's own choice.
"""
OPTION = re.compile(r"-D(\w+)(?:=(\S+))?")
FEW_VALUES = 6
KERNEL_FIELDS = 5       # of an item: device, operation, implementation, source, kernel
# Cases with shapes that no kernel of their own tells from others: samples of rank 3.
ALWAYS = ["dense n2 k6 units9 rows5 cols3 act1"]
# Implementations that some processors have, with tests of their own (bf16.txt, bf16_image.txt, tiles.txt).
OF_SOME = ("bf16", "bf16_image")
RUN_COST, KERNEL_COST = 0.05, 0.25      # seconds


class Run:
    def __init__(self, case, device_class, force):
        self.case, self.device_class, self.force = case, device_class, force
        self.launches = set()           # with the device before: "gpu", or the width of a CPU's vectors
        self.items, self.kernels = set(), set()

    @property
    def key(self):
        return self.case, self.device_class, self.force

    @property
    def devices(self):
        return len({launch[0] for launch in self.launches})


def class_of(device):
    return "gpu" if device == "gpu" else "cpu"


def read_records(paths):
    runs = {}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            for line in file:
                kind, *fields = line.rstrip("\n").split("\t")
                if kind == "run":
                    case, device, force = fields
                    key = case, class_of(device), force
                    run = runs.setdefault(key, Run(*key))
                elif fields[1] not in OF_SOME:
                    run.launches.add((device, *fields))
    return [run for run in runs.values() if not any(f"={name}" in run.force for name in OF_SOME)]


def find_items(runs):
    values = collections.defaultdict(set)
    for run in runs:
        for launch in run.launches:
            for name, value in OPTION.findall(launch[5]):
                values[name].add(value)

    def group(name, value):
        return "more" if len(values[name]) > FEW_VALUES and value.isdigit() and int(value) > 1 else value

    for run in runs:
        for device, operation, implementation, source, kernel, options, group_size, large in run.launches:
            run.items.add((device, operation, implementation, source, kernel))
            run.items |= {(device, name, group(name, value)) for name, value in OPTION.findall(options)}
            run.kernels.add((device, source, kernel, options, group_size, large))


def choose(runs):
    chosen = [run for run in runs if run.case in ALWAYS]
    have = set().union(*(run.items for run in chosen))
    built = set().union(*(run.kernels for run in chosen))
    left = runs
    while left := [run for run in left if not run.items <= have]:
        best = max(left, key=lambda run: len(run.items - have) / (RUN_COST + KERNEL_COST * len(run.kernels - built) / run.devices))
        chosen.append(best)
        have |= best.items
        built |= best.kernels
    return without_needless(chosen)


def without_needless(chosen):
    """Without the runs all of whose items later ones have as well: first those with the most kernels that no other builds."""
    chosen = list(chosen)
    while True:
        having = collections.Counter(item for run in chosen for item in run.items)
        building = collections.Counter(kernel for run in chosen for kernel in run.kernels)
        needless = [run for run in chosen if run.case not in ALWAYS and all(having[item] > 1 for item in run.items)]
        if not needless:
            return chosen
        chosen.remove(max(needless, key=lambda run: sum(building[kernel] == 1 for kernel in run.kernels)))


def write_chosen(path, chosen, order):
    cases = collections.defaultdict(list)
    for run in chosen:
        cases[run.case].append(run)
    with open(path, "w", encoding="utf-8") as file:
        file.write(HEAD)
        for case in sorted(cases, key=order.index):
            file.write(case + "\n")
            for run in sorted(cases[case], key=lambda run: run.key):
                file.write(f"    {run.device_class} {run.force}".rstrip() + "\n")


def read_chosen(path):
    keys = set()
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.startswith(" "):
                device_class, _, force = line.strip().partition(" ")
                keys.add((case, device_class, force))
            elif not line.startswith("#"):
                case = line.rstrip("\n")
    return keys


def check(runs, path):
    """Kernels alone: values of options follow from the caches of the machine that chose as well."""
    keys = read_chosen(path)
    wanted, have = set(), set()
    for run in runs:
        kernels = {item for item in run.items if len(item) == KERNEL_FIELDS}
        wanted |= kernels
        if run.key in keys:
            have |= kernels
    missing = sorted({run.key for run in runs if run.case in ALWAYS} - keys)
    for item in sorted(wanted - have):
        print("no chosen run launches " + " ".join(item))
    for key in missing:
        print("not chosen: " + " ".join(key))
    failed = len(wanted - have) + len(missing)
    if failed:
        print("call tests/layers/renew and commit what it writes")
    print(f"{len(wanted & have)} passed, {failed} failed")
    return bool(wanted) and not failed


def main():
    mode, *records, path = sys.argv[1:]
    runs = read_records(records)
    find_items(runs)
    if mode == "--check":
        return 0 if check(runs, path) else 1
    order = list(dict.fromkeys(run.case for run in runs))
    chosen = choose(runs)
    write_chosen(path, chosen, order)
    print(f"{path}: {len(chosen)} of {len(runs)} runs")
    return 0


sys.exit(main())
