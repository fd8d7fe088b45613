"""Objects of the library that Python holds. One is freed when it is closed or collected and all that was made from it has been
freed, in whatever order Python collects them."""
from __future__ import annotations

import atexit
import threading
import weakref
from typing import TYPE_CHECKING, Any

from ._native import ffi, lib
from .errors import made

if TYPE_CHECKING:
    from typing_extensions import Self

lock = threading.RLock()
living: weakref.WeakSet[Handle] = weakref.WeakSet()


class Handle:
    _open, _pointer = False, None

    def __init__(self, pointer, free, parent=None):
        self._pointer, self._free, self._parent, self._users, self._open = pointer, free, parent, 1, True
        if parent is not None:
            with lock:
                parent._users += 1
        living.add(self)

    @property
    def pointer(self) -> Any:
        if not self._open:
            raise ValueError(f"this {type(self).__name__} was closed")
        return self._pointer

    def close(self) -> None:
        """Frees it, once nothing uses it any more."""
        with lock:
            was_open, self._open = self._open, False
        if was_open:
            self._release()

    def _release(self):
        with lock:
            self._users -= 1
            last = self._users == 0
        if last:
            self._free(self._pointer)
            if self._parent is not None:
                self._parent._release()

    __del__ = close

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@atexit.register
def close_all():
    """Drivers' threads end before the interpreter does."""
    for handle in list(living):
        handle.close()


class UseLock:
    """Held by the one thread that uses a network. What is to be freed while another thread holds it is freed after that: the
    collector of garbage runs in any thread and does not wait."""

    def __init__(self):
        self.lock, self.waiting = threading.RLock(), []

    def __enter__(self):
        self.lock.acquire()

    def __exit__(self, *_):
        self.lock.release()
        while self.waiting and self.lock.acquire(blocking=False):
            try:
                free, pointer = self.waiting.pop(0)     # what is made of another object is freed before it
                free(pointer)
            except IndexError:
                pass
            finally:
                self.lock.release()

    def free(self, free, pointer):
        self.waiting.append((free, pointer))
        if self.lock.acquire(blocking=False):
            self.__exit__()


def taken(text):
    """Text of the library that the caller frees."""
    made(text)
    try:
        return ffi.string(text).decode(errors="replace")
    finally:
        lib.free(text)
