# What Tutti needs from Debian's packages, and how to get it. Sourced by tools/quickstart and tests/run.
# shellcheck shell=bash

build_packages=(gcc libc6-dev meson ninja-build pkg-config ocl-icd-opencl-dev opencl-c-headers pocl-opencl-icd
    libclblast-dev libclfft-dev zlib1g-dev libjpeg62-turbo-dev libpng-dev libjansson-dev libxxhash-dev
    libprotobuf-c-dev protobuf-c-compiler)
# GPU makers' compilers are for tests/offline, Mesa's libraries for tests/makers. Of intel-opencl-icd and mesa-opencl-icd only
# what they need: these are unpacked into .dev/, so that no driver is added to the machine's.
test_packages=("${build_packages[@]}" g++ check clang-format
    libopenmpi-dev openmpi-bin iproute2 locales python3-venv ca-certificates oclgrind
    clang-19 libclc-15 rocm-device-libs libigc1 libigdfcl1 libigdgmm12
    libllvmspirvlib15 libdrm-nouveau2 libsensors5 libexpat1 chromium fonts-dejavu-core)

# For tests/fuzz/run, which needs libFuzzer.
fuzz_packages=(clang libclang-rt-dev)

# packages_missing PACKAGE...: prints those that are not installed.
packages_missing() {
    local package
    for package; do
        if [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) != installed ]]; then echo "$package"; fi
    done
}

# packages_install NAME PACKAGE...: installs what is missing, as root or by sudo. Where neither is possible: one line
# that says what to install, and status 1. NAME is the caller's, for its messages.
packages_install() {
    local caller=$1 missing as_root=()
    shift
    if ! command -v dpkg-query >/dev/null; then return 0; fi # not a Debian: Meson will say what it lacks
    mapfile -t missing < <(packages_missing "$@")
    if [[ ${#missing[@]} = 0 ]]; then return 0; fi
    if [[ $(id -u) != 0 ]]; then
        if ! command -v sudo >/dev/null || ! { [[ -t 0 ]] || sudo -n true 2>/dev/null; }; then
            echo "$caller: packages are missing; install them first: apt-get install ${missing[*]}" >&2
            return 1
        fi
        as_root=(sudo)
    fi
    echo "$caller: installing ${missing[*]}" >&2
    local log
    log=$(mktemp)
    if ! { "${as_root[@]}" apt-get update && "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        rm -f "$log"
        echo "$caller: apt-get could not install ${missing[*]}" >&2
        return 1
    fi
    rm -f "$log"
}
