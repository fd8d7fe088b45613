"""The OpenCL driver for CPUs that pip installs (tutti-opencl[cpu]): what the system has comes first."""
import ctypes
import os
import pathlib
import sys

# The loader, after what it needs and does not find by itself.
LOADER = ("libintlc.so.5", "libimf.so", "libirng.so", "libsvml.so", "libOpenCL.so.1")


def add(folder):
    """Names the driver in a folder to the loader of OpenCL, besides the system's own drivers. Where the system has no loader, the
    one that came with the driver is loaded, by programs that are started, too: `folders` has its folder then."""
    driver = os.path.join(folder, "libintelocl.so")
    if not os.path.exists(driver):
        return False
    named = [name for name in os.environ.get("OCL_ICD_FILENAMES", "").split(":") if name]
    if driver not in named:
        os.environ["OCL_ICD_FILENAMES"] = ":".join([*named, driver])
    try:
        ctypes.CDLL("libOpenCL.so.1")
    except OSError:
        for name in LOADER:
            ctypes.CDLL(os.path.join(folder, name), ctypes.RTLD_GLOBAL)
        folders.append(folder)
    return True


def add_installed():
    """pip writes drivers into PREFIX/lib, where the package is in PREFIX/lib/python3.x/site-packages: a virtual environment, the
    user's folder, or /usr/local."""
    own = pathlib.Path(__file__).resolve()
    return any(add(folder) for folder in dict.fromkeys([str(own.parents[3]), os.path.join(sys.prefix, "lib")]))


def environment():
    """That of a program of the package, which does not find a loader that pip installed."""
    paths = [path for path in os.environ.get("LD_LIBRARY_PATH", "").split(":") if path]
    return {**os.environ, "LD_LIBRARY_PATH": ":".join([*paths, *folders])} if folders else dict(os.environ)


folders: list[str] = []
add_installed()
