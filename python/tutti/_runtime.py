"""Devices, and the runtime that holds opened ones."""
import threading
from typing import NamedTuple

from . import _html
from ._call import Options
from ._handle import Handle
from ._native import ffi, lib
from .errors import check, made


class Device(NamedTuple):
    index: int
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


class Devices(list):
    def _repr_html_(self):
        return _html.table(Device._fields, self)


def devices(devices=None):
    """All devices of the machine. `chosen` are those that a training would use, or that `devices` names ("all", "gpu", "0,2")."""
    options, listed, count = Options("tutti_runtime_options", {"devices": devices}), ffi.new("tutti_device_info **"), ffi.new("int *")
    check(lib.tutti_devices_list(options.struct, listed, count))
    try:
        return Devices(device(listed[0][position]) for position in range(count[0]))
    finally:
        lib.tutti_devices_free(listed[0])


class Runtime(Handle):
    """Opened devices: Runtime("all"), Runtime("gpu"), Runtime("0,2"). Options are those of tutti_runtime_options."""

    def __init__(self, devices=None, **options):
        given = Options("tutti_runtime_options", {"devices": devices, **options})
        self.options = given.members
        super().__init__(made(lib.tutti_open(given.struct)), lib.tutti_close)

    @property
    def devices(self):
        info, opened = ffi.new("tutti_device_info *"), []
        for position in range(lib.tutti_device_count(self.pointer)):
            check(lib.tutti_device_get(self.pointer, position, info))
            opened.append(device(info))
        return opened

    def _repr_html_(self):
        return _html.table(Device._fields, self.devices)

    def __repr__(self):
        return f"<tutti.Runtime {', '.join(device.name for device in self.devices)}>"


default, default_lock = None, threading.Lock()


def use(devices=None, **options):
    """Chooses the devices of the networks that are made after this call. Without it they are the library's choice."""
    global default
    opened = Runtime(devices, **options)
    with default_lock:
        default = opened
    return opened


def default_runtime():
    global default
    with default_lock:
        if default is None:
            default = Runtime()
        return default
