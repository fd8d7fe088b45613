#!/usr/bin/env python3
"""Runs the kernels of GPU-class devices in oclgrind, an interpreter that watches every access to memory: no data race, no access
out of bounds, no value that nobody has written.

    races.py few|all OPERATIONS CASES ARENAS RACY WRITES EMULATION
                        the test program of tests/layers and its few.txt; programs and layer of this folder; the layer of
                        tests/emulation

Races are looked for in CASES, which run every text of a kernel, and ("all") in the small cases of tests/layers. Values are
watched without the compiler's optimisation, which hides what is unwritten and makes instructions that oclgrind cannot watch;
that is ten times as slow, and the cases are CASES, or ("few") these without those of SLOW and SLOWEST. Races of "few" are
looked for in CASES and in those of MORE that are not in SLOW.
oclgrind's findings do not change a program's status: its log is looked at.
"""
import concurrent.futures
import os
import queue
import re
import subprocess
import sys
import tempfile
import time

ICD = "/usr/lib/oclgrind/liboclgrind-rt-icd.so"
FINDING = re.compile(r"^(Invalid|.*data race|.*divergence|.*[Uu]ninitialized|OCLGRIND FATAL).*", re.M)
CORES = queue.SimpleQueue()     # that nothing of ours runs on
SMALL = 300     # numbers of a case's input, output and parameters, at most
PARTS = 4
# Besides the small cases, for texts that none of them runs: batch normalisation; a weight gradient in two parts.
MORE = ["batch_norm n4 c3 h5 w7", "batch_norm n8 c3", "batch_norm n2 c5 h9 w6 conv17 nobias1 residual2 act1",
        "conv2d n2 c1 h12 w11 k2 r3 pad1"]
SLOW = ["conv2d n2 c1 h12 w11 k2 r3 pad1", "matmul n3 m5 k7 u4", "conv2d n1 c3 h5 k4 r3 pad1", "conv2d n1 c3 h4 k8 r3 pad1",
        "conv2d n1 c8 h5 w4 k8 r3 pad1 stride2 groups8"]
SLOWEST = ["conv2d n1 c4 h2 k5 r3 pad1", "conv2d n1 c3 h4 w5 k3 r3 pad1 groups3"]     # alone in running the texts of convolutions
# Values: next to a dense layer, whose tiles `dense` and `matmul` watch, and interpreting a tile takes long.
BESIDE_DENSE = ["cross_entropy n3 c7", "mean_squared_error n3 c5", "embedding n2 rows3 c5 length3 tied1"]
# Races, of "few": what it is there for; other cases run the other kernels.
IN_PARTS = ["--force", "conv2d=plain,conv2d_data_gradient=plain,conv2d_weight_gradient=implicit_gemm", SLOW[0]]
BY_PLAIN = ["--force", "dense=plain,dense_weight_gradient=plain,dense_data_gradient=plain"]
# With matrix instructions, which EMULATION gives, and channels last: of a value that was made so, of an image, of one channel
# each, with statistics and without.
FORMS = "channels_last|depthwise_channels_last"
BY_MATRIX = ["--tf32", "--force", f"conv2d={FORMS},conv2d_weight_gradient={FORMS}"]
CHANNELS_LAST = ["conv2d n1 c4 h3 k4 r2", "conv2d n1 c3 h4 k8 r3 pad1", "conv2d n1 c8 h5 w4 k8 r3 pad1 stride2 groups8",
                 "batch_norm n2 c4 h3 w5 depthwise1 nobias1 residual2 act1"]
CHANNELS_LAST_TEXTS = set("""channel_sum conv2d_channels_last conv2d_channels_last_weight_gradient conv2d_depthwise_channels_last
    reorder_gpu""".split())
TEXTS = set("""arena batch_norm_plain channel_sum conv2d_depthwise_gpu conv2d_implicit_gemm conv2d_implicit_gemm_weight_gradient conv2d_pack_gpu
    conv2d_plain conv2d_winograd_gpu dropout embedding gemm_finish gemm_plain gemm_tiled generated layer_norm loss_gpu loss_sum
    optimizer pool_plain random_like rows softmax_gpu wire""".split())     # that both have to run


def run(command, folder, watch):
    """Its output, the log's findings and whether it ended well. On one core, which no other has: oclgrind's compiler is not to
    be called by several threads, and the library has as many as there are cores."""
    vendors, log = os.path.join(folder, "vendors"), os.path.join(folder, "log")
    os.makedirs(vendors)
    with open(os.path.join(vendors, "oclgrind.icd"), "w", encoding="utf-8") as file:
        file.write(ICD + "\n")
    environment = {**os.environ, "OCL_ICD_VENDORS": vendors, "TUTTI_CACHE_DIR": os.path.join(folder, "cache"),
                   "TUTTI_DEVICE_CLASS": "gpu", "TUTTI_HELPER": "off", "TUTTI_LOG": "debug", "OCLGRIND_LOG": log,
                   "OCLGRIND_MAX_ERRORS": "100", **watch}
    core = CORES.get()
    try:
        done = subprocess.run(["taskset", "-c", str(core), *command], env=environment, capture_output=True, text=True)
    finally:
        CORES.put(core)
    findings = ""
    if os.path.exists(log):
        with open(log, encoding="utf-8", errors="replace") as file:
            findings = file.read()
    return done.stdout + done.stderr, findings, done.returncode == 0


def check_that_faults_are_found(racy, watch, faults):
    """faults: what has to be found, by kernel."""
    with tempfile.TemporaryDirectory() as folder:
        output, log, good = run([racy], folder, watch)
    problems = []
    found = {}
    for part in log.split("\n\n"):
        kernel = re.search(r"Kernel: (\w+)", part)
        if kernel and FINDING.search(part):
            found.setdefault(kernel[1], []).append(FINDING.search(part)[0])
    for kernel, expected in faults.items():
        if not any(expected in text for text in found.get(kernel, [])):
            problems.append(f"oclgrind does not find the fault of the kernel {kernel} in racy.c: {found.get(kernel)}")
    if "clean" in found or "clean: 0" not in output or not good:
        problems.append(f"racy.c's last kernel should be clean: {found.get('clean')}\n{output}")
    return problems, set()


def check(command, watch):
    with tempfile.TemporaryDirectory() as folder:
        output, log, good = run(command, folder, watch)
    what = " ".join([os.path.basename(command[0]), *command[1:]])
    problems = [f"{what}: {part.strip()}" for part in log.split("\n\n\n") if FINDING.search(part)]
    if not good:
        problems.append(f"{what} failed:\n" + "\n".join(l for l in output.splitlines() if "[debug]" not in l)[-2000:])
    return problems, set(re.findall(r"built '(\w+)", output))


def timed(function, *arguments):
    began = time.monotonic()
    return *function(*arguments), time.monotonic() - began


def start(pool, watch, racy, faults, commands):
    """Jobs, by what they are called."""
    jobs = {" ".join(command[1:]) or os.path.basename(command[0]): pool.submit(timed, check, command, watch) for command in commands}
    jobs["faults are found"] = pool.submit(timed, check_that_faults_are_found, racy, watch, faults)
    return jobs


def report(jobs, texts_wanted):
    """How many jobs there were and how many failed."""
    failed, built = 0, set()
    for what, job in jobs.items():
        problems, texts, seconds = job.result()
        built |= texts
        failed += bool(problems)
        print("\n".join(problems) if problems else f"good: {what} ({seconds:.0f} s)", flush=True)
    print(f"{len(built)} texts of kernels ran: {' '.join(sorted(built))}")
    missing = texts_wanted - built
    if missing:
        print(f"no small case runs {' '.join(sorted(missing))}")
    return len(jobs) + 1, failed + bool(missing)


def main():
    tier, operations, cases, arenas, racy, writes, emulation = sys.argv[1:]
    operations = [operations, "--once"]
    with open(cases, encoding="utf-8") as file:
        few = file.read().splitlines()
    watched, channels_last = few, CHANNELS_LAST
    raced = [[case] for case in few]
    half = []
    if tier == "all":
        raced += [["--at-most", str(SMALL), "--part", f"{i + 1}/{PARTS}"] for i in range(PARTS)]
    else:
        raced[raced.index([SLOW[0]])] = IN_PARTS
        half = ["half"]
        watched = [case for case in few if case not in SLOW + SLOWEST]
        channels_last = [case for case in CHANNELS_LAST if case not in SLOW]
    raced += [[case] for case in MORE if [case] not in raced and (tier == "all" or case not in SLOW)]
    cores = sorted(os.sched_getaffinity(0))
    for core in cores:
        CORES.put(core)
    with concurrent.futures.ThreadPoolExecutor(len(cores)) as pool:
        # What takes longest comes first, as in CASES, so that no core is left alone with it.
        jobs = [start(pool, {"OCLGRIND_UNINITIALIZED": "1", "OCLGRIND_BUILD_OPTIONS": "-cl-opt-disable", "OPENCL_LAYERS": writes},
                      racy, {"unwritten": "Uninitialized value"},
                      [[*operations, *(BY_PLAIN if case in BESIDE_DENSE else []), case] for case in watched] + [[arenas, "least", *half]]),
                start(pool, {"OCLGRIND_DATA_RACES": "1"}, racy, {"race": "data race", "outside": "Invalid write"},
                      [[*operations, *case] for case in raced] + [[arenas, "once", *half]])]
        by_matrix = {" ".join(BY_MATRIX + [case]): pool.submit(timed, check, [*operations, *BY_MATRIX, case], {
            "OCLGRIND_DATA_RACES": "1", "OPENCL_LAYERS": emulation, "EMULATED_MATRIX": "1"}) for case in channels_last}
        values_texts = TEXTS if tier == "all" else {text for text in TEXTS if not text.startswith("conv2d_")}
        results = [report(these, texts) for these, texts in zip(jobs, (values_texts, TEXTS))] + [report(by_matrix, CHANNELS_LAST_TEXTS)]
    count, failed = map(sum, zip(*results))
    print(f"{count - failed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
