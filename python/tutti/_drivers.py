"""The OpenCL driver for CPUs that pip installs (tutti-opencl[cpu]): what the system has comes first."""
import ctypes
import os
import sys

# The loader, after what it needs and does not find by itself.
LOADER = ("libintlc.so.5", "libimf.so", "libirng.so", "libsvml.so", "libOpenCL.so.1")


def add(folder):
    """Names the driver in a folder to the loader of OpenCL, besides the system's own drivers. Where the system has no loader, the
    one that came with the driver is loaded."""
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
    return True


add(os.path.join(sys.prefix, "lib"))
