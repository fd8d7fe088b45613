#!/usr/bin/env python3
"""Runs the kernels of GPU-class devices in oclgrind, an interpreter that watches every access to memory: no data race, no access
out of bounds.

    races.py OPERATIONS RACY        the test program of tests/layers, racy.c

The cases are the small ones of tests/layers. oclgrind's findings do not change a program's status: its log is looked at. It
could look for values that nobody has written too, yet takes filled memory for that: tests/layers fills it with NaN instead.
"""
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile

ICD = "/usr/lib/oclgrind/liboclgrind-rt-icd.so"
FINDING = re.compile(r"^(Invalid|.*data race|.*divergence|OCLGRIND FATAL).*", re.M)
SMALL = 500      # numbers of a case's input, output and parameters, at most


def run(command, folder):
    """Its output, the log's findings and whether it ended well. On one core: oclgrind's compiler is not to be called by several
    threads, and the library has as many as there are cores."""
    vendors, log = os.path.join(folder, "vendors"), os.path.join(folder, "log")
    os.makedirs(vendors)
    with open(os.path.join(vendors, "oclgrind.icd"), "w", encoding="utf-8") as file:
        file.write(ICD + "\n")
    environment = {**os.environ, "OCL_ICD_VENDORS": vendors, "TUTTI_CACHE_DIR": os.path.join(folder, "cache"),
                   "TUTTI_DEVICE_CLASS": "gpu", "TUTTI_HELPER": "off", "TUTTI_LOG": "debug", "OCLGRIND_LOG": log,
                   "OCLGRIND_DATA_RACES": "1", "OCLGRIND_MAX_ERRORS": "100"}
    core = str(sorted(os.sched_getaffinity(0))[run.count % len(os.sched_getaffinity(0))])
    run.count += 1
    done = subprocess.run(["taskset", "-c", core, *command], env=environment, capture_output=True, text=True)
    findings = ""
    if os.path.exists(log):
        with open(log, encoding="utf-8", errors="replace") as file:
            findings = file.read()
    return done.stdout + done.stderr, findings, done.returncode == 0


run.count = 0


def check_that_faults_are_found(racy):
    with tempfile.TemporaryDirectory() as folder:
        output, log, good = run([racy], folder)
    problems = []
    found = {}
    for part in log.split("\n\n"):
        kernel = re.search(r"Kernel: (\w+)", part)
        if kernel and FINDING.search(part):
            found.setdefault(kernel[1], []).append(FINDING.search(part)[0])
    for kernel, expected in ("race", "data race"), ("outside", "Invalid write"):
        if not any(expected in text for text in found.get(kernel, [])):
            problems.append(f"oclgrind does not find the fault of the kernel {kernel} in racy.c: {found.get(kernel)}")
    if "clean" in found or "clean: 0" not in output or not good:
        problems.append(f"racy.c's last kernel should be clean: {found.get('clean')}\n{output}")
    return problems, []


def check_cases(operations, arguments):
    with tempfile.TemporaryDirectory() as folder:
        output, log, good = run([operations, *arguments], folder)
    what = " ".join(arguments)
    problems = [f"{what}: {part.strip()}" for part in log.split("\n\n\n") if FINDING.search(part)]
    if not good:
        problems.append(f"{what} failed:\n" + "\n".join(l for l in output.splitlines() if "[debug]" not in l)[-2000:])
    return problems, re.findall(r"built '(\w+)'", output)


def main():
    operations, racy = sys.argv[1:]
    parts = 8
    jobs = [(check_that_faults_are_found, racy)]
    jobs += [(check_cases, operations, ["--at-most", str(SMALL), "--part", f"{i + 1}/{parts}"]) for i in range(parts)]
    failed, built = 0, set()
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for job, result in [(job, pool.submit(*job)) for job in jobs]:
            problems, texts = result.result()
            built.update(texts)
            failed += bool(problems)
            print("\n".join(problems) if problems else f"good: {job[0].__name__} {job[2:]}", flush=True)
    print(f"{len(built)} texts of kernels ran: {' '.join(sorted(built))}")
    print(f"{len(jobs) - failed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
