# What Tutti needs from Debian's packages, and how to get it. Sourced by tools/quickstart and tests/run.
# shellcheck shell=bash

build_packages=(gcc libc6-dev meson ninja-build pkg-config ocl-icd-opencl-dev opencl-c-headers pocl-opencl-icd
    libclblast-dev libclfft-dev zlib1g-dev libjpeg62-turbo-dev libpng-dev libjansson-dev libxxhash-dev
    libpcre2-dev libutf8proc-dev libprotobuf-c-dev protobuf-c-compiler)
# Every build of the tests.
test_packages=("${build_packages[@]}" g++ check libopenmpi-dev openmpi-bin python3-venv ca-certificates)
# What single groups of tests need besides these. A|B: the first of them that the system has. GPU vendors' compilers are for
# tests/offline, whose table holds what Debian 12's make of the kernels; Mesa's libraries for tests/vendors. From intel-opencl-icd
# and mesa-opencl-icd comes only what these need: it is unpacked into .dev/, so that no driver is added to the machine's.
declare -A group_packages=(
    [formats]="libwebp7 libtiff6 libheif1 libheif-plugin-libde265|libheif1 libheif-plugin-dav1d|libheif1"
    [data]="libwebp7 libtiff6 libheif1 libsndfile1"
    [conventions]="clang-format clang-format-14" # versions differ in what they make of a file
    [command]="locales"
    [hosts]="iproute2"
    [vendors]="libclang-cpp15|libclang-cpp19 libclc-15|libclc-19 libllvmspirvlib15|libllvmspirvlib19.1 libdrm-nouveau2 libsensors5 libexpat1"
    [offline]="clang-19 libclc-15 rocm-device-libs libigc1 libigdfcl1 libigdgmm12"
    [races]="oclgrind"
    [report]="chromium fonts-dejavu-core"
    [python]="python3-dev"
)

# For tests/fuzz/run, which needs libFuzzer.
fuzz_packages=(clang libclang-rt-dev)

# packages_missing PACKAGE...: prints those that are not installed.
packages_missing() {
    local package
    for package; do
        if [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) != installed ]]; then echo "$package"; fi
    done
}

# package_exists PACKAGE: whether it is installed, or a package source of this system has it. A fresh system's lists of
# packages are empty: where one seems to be missing, they are fetched once.
lists_fetched=0
package_exists() {
    if [[ -z $(packages_missing "$1") || $(apt-cache policy "$1" 2>/dev/null) == *"Candidate: "[0-9]* ]]; then return 0; fi
    if [[ $lists_fetched = 1 ]]; then return 1; fi
    lists_fetched=1
    if [[ $(id -u) = 0 ]]; then
        apt-get update >/dev/null 2>&1 || true
    elif command -v sudo >/dev/null; then
        sudo apt-get update >/dev/null 2>&1 || true
    fi
    package_exists "$1"
}

# packages_of_group GROUP: sets `packages` to what the group needs, of alternatives the first that the system has, and
# `absent` to what it does not have.
packages_of_group() {
    local wanted one found
    packages=() absent=()
    if ! command -v dpkg-query >/dev/null; then return 0; fi
    for wanted in ${group_packages[$1]-}; do
        found=
        for one in ${wanted//|/ }; do
            if package_exists "$one"; then found=$one; break; fi
        done
        if [[ $found ]]; then packages+=("$found"); else absent+=("${wanted//|/ or }"); fi
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
