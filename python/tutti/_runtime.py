"""Devices, and the runtime that holds opened ones."""
from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple

from . import _html
from ._call import Options
from ._handle import Handle
from ._native import ffi, lib
from .errors import check, made

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import RuntimeOptions


class Device(NamedTuple):
    index: int  # type: ignore[assignment]
    name: str
    platform: str
    driver: str
    device_class: str
    compute_units: int
    memory_bytes: int
    chosen: bool
    note: str


def device(info):
    return Device(*(ffi.string(value).decode(errors="replace") if isinstance(value, ffi.CData) else value
                    for value in (getattr(info, name) for name in Device._fields)))


class Devices(list[Device]):
    def _repr_html_(self) -> str:
        return _html.table(Device._fields, self)


def devices(devices: str | None = None) -> Devices:
    """All devices of the machine. `chosen` are those that a training would use, or that `devices` names ("all", "gpu", "0,2")."""
    options, listed, count = Options("tutti_runtime_options", {"devices": devices}), ffi.new("tutti_device_info **"), ffi.new("int *")
    check(lib.tutti_devices_list(options.struct, listed, count))
    try:
        return Devices(device(listed[0][position]) for position in range(count[0]))
    finally:
        lib.tutti_devices_free(listed[0])


class Runtime(Handle):
    """Opened devices: Runtime("all"), Runtime("gpu"), Runtime("0,2"). Options are those of tutti_runtime_options."""

    def __init__(self, devices: str | None = None, **options: Unpack[RuntimeOptions]) -> None:
        given = Options("tutti_runtime_options", {"devices": devices, **options})
        self.options = given.members
        super().__init__(made(lib.tutti_open(given.struct)), lib.tutti_close)

    @property
    def devices(self) -> list[Device]:
        info, opened = ffi.new("tutti_device_info *"), []
        for position in range(lib.tutti_device_count(self.pointer)):
            check(lib.tutti_device_get(self.pointer, position, info))
            opened.append(device(info))
        return opened

    def _repr_html_(self) -> str:
        return _html.table(Device._fields, self.devices)

    def __repr__(self) -> str:
        return f"<tutti.Runtime {', '.join(device.name for device in self.devices)}>"


default: Runtime | None = None
default_lock = threading.Lock()


def use(devices: str | None = None, **options: Unpack[RuntimeOptions]) -> Runtime:
    """Chooses the devices of the networks that are made after this call. Without it they are the library's choice."""
    global default
    opened = Runtime(devices, **options)
    with default_lock:
        default = opened
    return opened


def default_runtime() -> Runtime:
    global default
    with default_lock:
        if default is None:
            default = Runtime()
        return default
