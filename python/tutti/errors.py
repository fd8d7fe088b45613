"""Exceptions by status: TUTTI_SHAPE is ShapeError, and so on. Each is an Error, and where Python has the like, that too."""
import re

from ._native import ffi, lib


class Error(Exception):
    """A call of the library failed. `status` is its number, `name` the constant's name."""
    status, name = None, None


# The exceptions of Python that callers of other libraries expect.
BASES = {"INVALID": (ValueError,), "SHAPE": (ValueError,), "NO_MEMORY": (MemoryError,), "FILE": (OSError,), "FORMAT": (ValueError,),
         "MISMATCH": (ValueError,), "NOT_FINITE": (ArithmeticError,), "UNSUPPORTED": (NotImplementedError,)}


def make():
    for status, name in ffi.typeof("tutti_status").elements.items():
        word = name.removeprefix("TUTTI_")
        if status != lib.TUTTI_OK:
            title = "".join(part.title() for part in word.split("_")) + "Error"
            text = ffi.string(lib.tutti_status_text(status)).decode()
            by_status[status] = type(title, (Error, *BASES.get(word, ())), {"status": status, "name": name, "__doc__": text, "__module__": "tutti"})


by_status = {}
make()
globals().update({kind.__name__: kind for kind in by_status.values()})
__all__ = ["Error", *(kind.__name__ for kind in by_status.values())]


def message():
    """The library's message, with Python's names in place of C's: patience for tutti_fitting.patience."""
    text = ffi.string(lib.tutti_message(ffi.NULL)).decode(errors="replace")
    return re.sub(r"\btutti_(?:\w+\.(?=\w)|(?=\w+\(\)))", "", text)


def check(status):
    """Raises the exception of a status that is not TUTTI_OK, with the library's message."""
    if status != lib.TUTTI_OK:
        raise by_status.get(status, Error)(message())


def made(pointer):
    """Raises if a function that makes an object returned NULL."""
    if pointer == ffi.NULL:
        raise by_status.get(lib.tutti_last_status(), Error)(message())
    return pointer
