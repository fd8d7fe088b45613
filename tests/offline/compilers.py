"""The vendors' own code generators, without a device: what a kernel takes of a chip.

compile_for() gives a row for each kernel of an OpenCL C text and each chip: registers of a work-item (Intel: of a thread),
bytes spilled to memory (Intel: rounded up, of a thread), bytes of local memory, waves. AMD: clang with AMD's device
libraries (gfx1100, which those of Debian 12 do not know, with libclc). Intel: ocloc. NVIDIA: clang with libclc, then ptxas;
stands in for NVIDIA's own OpenCL compiler."""
import collections
import os
import re
import shutil
import struct
import subprocess

Row = collections.namedtuple("Row", "registers spilled local waves lanes")   # lanes: work-items of a wave
DEVICE_LIBRARIES, LIBCLC = "/usr/lib/x86_64-linux-gnu/amdgcn/bitcode", "/usr/lib/clc"
CLANG, OCLOC, PTXAS = "clang-19", "ocloc", "ptxas"

# What decides how many waves fit side by side. NVIDIA: of a multiprocessor (CUDA C++ Programming Guide, "Technical
# Specifications per Compute Capability"): warps, groups, local memory, what of that each group costs.
# Intel: of an execution unit, its threads; units and local memory of what shares it (vendor's architecture papers).
NVIDIA = {"sm_75": (32, 16, 64 << 10, 0), "sm_86": (48, 16, 100 << 10, 1 << 10), "sm_90": (64, 32, 228 << 10, 1 << 10)}
INTEL = {"skl": (7, 8, 64 << 10), "tgllp": (7, 16, 128 << 10), "acm-g10": (8, 16, 128 << 10), "pvc": (8, 8, 128 << 10)}
AMD = {"gfx906": 10, "gfx90a": 8, "gfx1030": 16, "gfx1100": 16}     # waves of a SIMD
CHIPS = {**{c: "AMD" for c in AMD}, **{c: "Intel" for c in INTEL}, **{c: "NVIDIA" for c in NVIDIA}}
MOST_WAVES = {**AMD, **{c: INTEL[c][0] for c in INTEL}, **{c: NVIDIA[c][0] for c in NVIDIA}}
# With a device the compiler defines this where the chip has it; its SPIR-V is made for all chips.
MATRIX, MATRIX_CHIPS = "-Dcl_intel_subgroup_matrix_multiply_accumulate=1", {"acm-g10", "pvc"}
SHUFFLE = "-Dcl_khr_subgroup_shuffle_relative=1"     # likewise


class Refused(Exception):
    """The compiler's first error."""


def run(command, refusal=None):
    done = subprocess.run(command, capture_output=True, text=True)
    log = done.stdout + done.stderr
    if done.returncode or (refusal and not re.search(refusal, log)):
        lines = [l for l in log.splitlines() if re.search(r"error|fatal", l, re.I)] or log.split("\n") or ["no reason given"]
        raise Refused(lines[0].strip())
    return log


def lacking(vendor):
    """What is missing of a vendor's compilers; None: nothing."""
    tools = {"AMD": [CLANG], "Intel": [OCLOC], "NVIDIA": [CLANG, PTXAS]}[vendor]
    files = {"AMD": [DEVICE_LIBRARIES, f"{LIBCLC}/amdgcn--amdhsa.bc"], "Intel": [], "NVIDIA": [f"{LIBCLC}/nvptx64--nvidiacl.bc"]}[vendor]
    missing = [tool for tool in tools if not shutil.which(tool)] + [file for file in files if not os.path.exists(file)]
    return f"there is no {', no '.join(missing)}" if missing else None


def version(package):
    done = subprocess.run(["dpkg-query", "-W", package], capture_output=True, text=True)
    return done.stdout or package


def versions(vendor):
    """What the results depend on, besides texts and options."""
    if vendor == "Intel":
        return [version(package) for package in ("libigc1", "libigdfcl1", "libopencl-clang14")] + [os.path.getsize(shutil.which(OCLOC))]
    found = [run([CLANG, "--version"]), version("libclc-15")]
    return found + ([version("rocm-device-libs")] if vendor == "AMD" else [run([PTXAS, "--version"])])


def number(pattern, text):
    found = re.search(pattern, text)
    return int(found[1]) if found else 0


def clang(target, more, libraries, text, options, out):
    link = [word for l in libraries for word in ("-Xclang", "-mlink-builtin-bitcode", "-Xclang", l)]
    run([CLANG, "-x", "cl", "-target", target, *more, "-nogpulib", "-O3", "-S", "-Wno-linker-warnings", *link, *options,
         text, "-o", out])
    with open(out, encoding="utf-8") as file:
        return file.read()


def amd(chip, text, options, folder):
    isa = f"{DEVICE_LIBRARIES}/oclc_isa_version_{chip[3:]}.bc"
    wave = 64 if chip.startswith("gfx9") else 32
    libraries = [f"{LIBCLC}/amdgcn--amdhsa.bc"]
    if os.path.exists(isa):
        names = ["opencl", "ocml", "ockl", "oclc_daz_opt_off", "oclc_unsafe_math_off", "oclc_finite_only_off",
                 "oclc_correctly_rounded_sqrt_off", f"oclc_wavefrontsize64_{'on' if wave == 64 else 'off'}",
                 "oclc_abi_version_500"]
        libraries = [f"{DEVICE_LIBRARIES}/{n}.bc" for n in names] + [isa]
    code = clang("amdgcn-amd-amdhsa", [f"-mcpu={chip}", "-mcode-object-version=5"], libraries, text, options, f"{folder}/out.s")
    rows = {}
    parts = re.split(r"^; Kernel info:", code, flags=re.M)
    for before, info in zip(parts, parts[1:]):
        name = re.findall(r"^\s*\.amdhsa_kernel\s+(\w+)", before, re.M)[-1]
        rows[name] = Row(number(r"; TotalNumVgprs: (\d+)", info) or number(r"; NumVgprs: (\d+)", info),
                         number(r"; ScratchSize: (\d+)", info), number(r"; LDSByteSize: (\d+)", info),
                         number(r"; Occupancy: (\d+)", info), wave)
    return rows


def nvidia_ptx(chips, text, options, folder):
    """Of the least chip: the others take it too."""
    clang("nvptx64-nvidia-nvcl", [f"-march={chips[0]}"], [f"{LIBCLC}/nvptx64--nvidiacl.bc"], text, options, f"{folder}/out.ptx")


def nvidia(chip, groups, folder):
    log = run([PTXAS, f"-arch={chip}", "-v", f"{folder}/out.ptx", "-o", f"{folder}/out.cubin"])
    warps_most, groups_most, memory, reserved = NVIDIA[chip]
    rows = {}
    for part in log.split("Compiling entry function '")[1:]:
        name = part[:part.index("'")]
        registers, local = number(r"Used (\d+) registers", part), number(r"(\d+) bytes smem", part)
        warps = -(-groups.get(name, 64) // 32)
        by_registers = 65536 // (-(-registers * 32 // 256) * 256) // warps
        fit = min(warps_most // warps, groups_most, by_registers, memory // (local + reserved) if local else groups_most)
        spilled = max(number(r"(\d+) bytes stack frame", part), number(r"(\d+) bytes spill stores", part))
        rows[name] = Row(registers, spilled, local, fit * warps, 32)
    return rows


def section(path, wanted):
    """Of an ELF file of 64 bits."""
    with open(path, "rb") as file:
        data = file.read()
    at, = struct.unpack_from("<Q", data, 0x28)
    size, count, names = struct.unpack_from("<HHH", data, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", data, at + i * size) for i in range(count)]
    for header in headers:
        begin = headers[names][4] + header[0]
        if data[begin:data.index(b"\0", begin)].decode() == wanted:
            return data[header[4]:header[4] + header[5]].decode()
    raise Refused(f"{path} has no section {wanted}")


def intel_spirv(chips, text, options, folder):
    if set(chips) <= MATRIX_CHIPS:
        options = [*options, MATRIX]
    if "-DSHUFFLE=1" in options:
        options = [*options, SHUFFLE]
    run([OCLOC, "compile", "-spv_only", "-file", text, "-device", chips[0], "-out_dir", folder, "-output", "out",
         "-output_no_suffix", "-options", " ".join(options)])


def intel(chip, groups, folder):
    run([OCLOC, "compile", "--format", "zebin", "-spirv_input", "-file", f"{folder}/out.spv", "-device", chip, "-out_dir",
         folder, "-output", chip, "-output_no_suffix"], refusal="Build succeeded")
    threads, units, memory = INTEL[chip]
    rows = {}
    for kernel in re.split(r"^  - name: ", section(f"{folder}/{chip}", ".ze_info"), flags=re.M)[1:]:
        name = kernel.split()[0]
        if "execution_env:" not in kernel or name == "Intel_Symbol_Table_Void_Program":
            continue
        lanes, local = number(r"simd_size: +(\d+)", kernel), number(r"slm_size: +(\d+)", kernel)
        registers = number(r"grf_count: +(\d+)", kernel)
        spilled = sum(int(s) for s in re.findall(r"type: +scratch\s+usage: +\w+\s+size: +(\d+)", kernel))
        of_group = -(-groups.get(name, 64) // lanes)
        fit = units * threads * 128 // registers // of_group
        if local:
            fit = min(fit, memory // local)
        rows[name] = Row(registers, spilled, local, fit * of_group // units, lanes)
    return rows


def compile_for(chips, text, options, groups, folder):
    """chips: of one vendor, the least one first. groups: work-items of a group, by kernel. For each chip its rows by kernel, or
    the text of a refusal."""
    vendor, found = CHIPS[chips[0]], {}
    try:
        if vendor == "NVIDIA":
            nvidia_ptx(chips, text, options, folder)
        elif vendor == "Intel":
            intel_spirv(chips, text, options, folder)
    except Refused as refused:
        return {chip: str(refused) for chip in chips}
    for chip in chips:
        try:
            if vendor == "AMD":
                found[chip] = amd(chip, text, options, folder)
            else:
                found[chip] = (nvidia if vendor == "NVIDIA" else intel)(chip, groups, folder)
        except Refused as refused:
            found[chip] = str(refused)
    return found
