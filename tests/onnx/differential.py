#!/usr/bin/env python3
"""Compares random PyTorch modules, exported to ONNX, in Tutti, onnxruntime and PyTorch: outputs with onnxruntime's, the first
gradients and the parameters after three steps, by name and count, with PyTorch's in double precision. Each case has a seed, which
tells all of it: a chain of blocks (blocks.py, blocks_sequences.py), the exporter, the batch, the class of device and the precision.
By hand, in a virtual environment with PyTorch, onnx, onnxscript and onnxruntime:

    python tests/onnx/differential.py run --first 0 --count 3000       writes build-tests/differential/results.jsonl
    python tests/onnx/differential.py prepare --first 0 --count 3000   writes the cases' files alone
    python tests/onnx/differential.py run --interpret --prepared ...   computes with the interpreter: the importer alone, in seconds
    python tests/onnx/differential.py one 17                           one case, with what was told
    python tests/onnx/differential.py minimise 17                      the fewest blocks that have the same verdict
    python tests/onnx/differential.py record                           tests/onnx/differential.tar.xz, of right cases
    python tests/onnx/differential.py table                            writes docs/onnx.md
    python tests/onnx/differential.py replay [--class gpu]             needs no PyTorch: tests/run does this
"""
import argparse
import collections
import json
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True

import differential_cases as cases  # noqa: E402


def summary(results):
    counts = collections.Counter(kind_of(result["verdict"]) for result in results)
    return ", ".join(f"{counts[key]} {key}" for key in ("right", "refused", "wrong", "crashed", "exporter") if counts[key] or key != "exporter")


def kind_of(verdict):
    return verdict if verdict in ("right", "refused", "crashed", "exporter") else "wrong"


def tell(result):
    blocks = " > ".join(name for name, _ in result["blocks"])
    print(f"{result['seed']:6} {result['verdict']:10} {result['options']['exporter']}, batch {result['options']['batch']}"
          f"{'' if result['options']['dynamic'] else ' fixed'}, {result['options']['class']} {result['options']['precision']}: {blocks}"
          f"\n       {result['text'][:400]}", flush=True)


def seeds_of(arguments):
    if arguments.seeds:
        return [int(line.split()[0]) for line in arguments.seeds.read_text().splitlines() if line.strip()]
    seeds = range(arguments.first, arguments.first + arguments.count)
    chosen = [seed for seed in seeds if cases.plan(seed, arguments.only)["options"]["exporter"].startswith(arguments.exporter)]
    if arguments.prepared:
        chosen = [seed for seed in chosen if (arguments.folder / f"case{seed}.json").exists()]
    return chosen


def results_path(arguments):
    return arguments.folder / ("interpreted.jsonl" if arguments.interpret else "results.jsonl")


def read_results(path):
    """By seeds: the last of each."""
    return {result["seed"]: result for result in map(json.loads, path.read_text().splitlines())} if path.exists() else {}


def run(arguments):
    import differential_drive as drive
    folder = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    path, done = results_path(arguments), {}
    if not arguments.again:
        done = read_results(path)
    seeds = [seed for seed in seeds_of(arguments) if seed not in done]
    drivers, results = drive.Drivers(arguments.program, folder, arguments.interpret), []
    with path.open("a") as file:
        for seed in seeds:
            result = drive.check(cases.plan(seed, arguments.only), drivers, folder)
            results.append(result)
            file.write(json.dumps(result) + "\n")
            file.flush()
            if result["verdict"] != "right":
                tell(result)
    drivers.close()
    print(f"{len(results)} cases: {summary(results)}")


def prepare(arguments):
    """Files of cases, which run then takes."""
    import differential_drive as drive
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for seed in seeds_of(arguments):
        drive.prepare(cases.plan(seed, arguments.only), arguments.folder)


def one(arguments):
    import differential_drive as drive
    arguments.folder.mkdir(parents=True, exist_ok=True)
    drivers = drive.Drivers(arguments.program, arguments.folder, arguments.interpret)
    tell(drive.check(cases.plan(arguments.seed, arguments.only), drivers, arguments.folder))
    drivers.close()


def minimise(arguments):
    """Drops blocks, one at a time, while the verdict stays."""
    import differential_drive as drive
    arguments.folder.mkdir(parents=True, exist_ok=True)
    drivers, spec = drive.Drivers(arguments.program, arguments.folder, arguments.interpret), cases.plan(arguments.seed, arguments.only)
    best = drive.check(spec, drivers, arguments.folder)
    shorter = True
    while shorter and best["verdict"] != "right":
        shorter = False
        for spec in cases.without_one(best):
            result = drive.check(spec, drivers, arguments.folder)
            if result["verdict"] == best["verdict"] and len(result["blocks"]) < len(best["blocks"]):
                best, shorter = result, True
                break
    drivers.close()
    tell(best)


# ----------------------------------------------------------------------------------------------------------- archive

def record(arguments):
    """Chooses cases that are right for the interpreter, and with kernels where these ran: small ones, with all blocks."""
    import differential_archive as archive
    with_kernels = read_results(arguments.folder / "results.jsonl")
    right = [result for seed, result in read_results(arguments.folder / "interpreted.jsonl").items()
             if result["verdict"] == "right" and "refusal" not in result and with_kernels.get(seed, result)["verdict"] == "right"]
    archive.pack(right, set(with_kernels), arguments.folder, arguments.most, HERE / "differential.tar.xz")


def replay(arguments):
    """The status is 1 if a case is not right."""
    import differential_archive as archive
    return archive.replay(HERE / "differential.tar.xz", arguments.program, arguments.folder, arguments.device_class)


# ------------------------------------------------------------------------------------------------------------- table

def row(name, results):
    counts = collections.Counter(kind_of(result["verdict"]) for result in results)
    return f"| {name} | {sum(counts.values()) - counts['exporter']} | {counts['right']} | {counts['refused']} | {counts['wrong']} | {counts['crashed']} |\n"


def table(arguments):
    """Writes docs/onnx.md: cases that PyTorch exports, by exporter, and those that ran with kernels."""
    results = list(read_results(arguments.folder / "interpreted.jsonl").values())
    computed = list(read_results(arguments.folder / "results.jsonl").values())
    text = "| cases | number | right | refused | wrong | crashed |\n|---|--:|--:|--:|--:|--:|\n"
    names = {"script": "`dynamo=False`", "script kept": "`dynamo=False`, without folding", "dynamo": "`dynamo=True`", "dynamo kept": "`dynamo=True, optimize=False`"}
    for exporter, name in names.items():
        text += row(name, [result for result in results if result["options"]["exporter"] == exporter])
    text += row("all", results)
    for device_class in ("cpu", "gpu"):
        for precision in ("fp32", "tf32", "bf16"):
            chosen = [result for result in computed if (result["options"]["class"], result["options"]["precision"]) == (device_class, precision)]
            text += row(f"with kernels, {device_class} {precision}", chosen) if chosen else ""
    begin, end = "<!-- tests/onnx/differential.py writes from here -->\n", "<!-- tests/onnx/differential.py writes to here -->\n"
    page = (ROOT / "docs/onnx.md").read_text()
    (ROOT / "docs/onnx.md").write_text(page.split(begin)[0] + begin + text + end + page.split(end)[1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("run", "prepare", "one", "minimise", "record", "replay", "table"))
    parser.add_argument("seed", type=int, nargs="?")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seeds", type=pathlib.Path, help="a file whose lines begin with seeds")
    parser.add_argument("--only", help="chains of one block: this one")
    parser.add_argument("--exporter", default="", help="seeds of this exporter alone: script, dynamo")
    parser.add_argument("--prepared", action="store_true", help="seeds whose files are there")
    parser.add_argument("--interpret", action="store_true", help="computes with the interpreter, not with kernels: a millisecond for a case")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build-tests/tests/onnx/differ")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build-tests/differential")
    parser.add_argument("--most", type=int, default=400, help="record: so many cases")
    parser.add_argument("--class", dest="device_class", choices=("cpu", "gpu"), help="replay: with kernels, the cases of this class that ran with them; without: all cases, with the interpreter")
    arguments = parser.parse_args()
    commands = {"run": run, "prepare": prepare, "one": one, "minimise": minimise, "record": record, "replay": replay, "table": table}
    return commands[arguments.what](arguments)


os.environ.setdefault("OMP_NUM_THREADS", "1")
if __name__ == "__main__":
    sys.exit(main())
