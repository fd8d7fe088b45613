"""NumPy's files of arrays, with Python's library only. An array is a type such as "<f4", a shape and a flat list."""
import ast
import json
import struct
import zipfile

CODES = {"<f4": "f", "<f8": "d", "<i4": "i", "<i8": "q", "|u1": "B", "|b1": "?"}
SAFETENSORS = {"F32": "<f4", "I32": "<i4", "I64": "<i8"}


def pack(kind, shape, values):
    header = repr({"descr": kind, "fortran_order": False, "shape": tuple(shape)}).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + struct.pack(f"<{len(values)}{CODES[kind]}", *values)


def unpack(data):
    length, = struct.unpack_from("<H", data, 8)
    header = ast.literal_eval(data[10:10 + length].decode())
    kind, values = header["descr"], data[10 + length:]
    return kind, header["shape"], list(struct.unpack(f"<{len(values) // struct.calcsize(CODES[kind])}{CODES[kind]}", values))


def write(path, deflated=False, **arrays):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED if deflated else zipfile.ZIP_STORED) as file:
        for name, array in arrays.items():
            file.writestr(f"{name}.npy", pack(*array))


def read(path):
    with zipfile.ZipFile(path) as file:
        assert file.testzip() is None
        return {name.removesuffix(".npy"): unpack(file.read(name)) for name in file.namelist()}


def safetensors(path):
    data = path.read_bytes()
    length, = struct.unpack_from("<Q", data)
    found = {}
    for name, entry in json.loads(data[8:8 + length]).items():
        if name == "__metadata__":
            continue
        kind, (begin, end) = SAFETENSORS[entry["dtype"]], entry["data_offsets"]
        values = struct.unpack(f"<{(end - begin) // struct.calcsize(CODES[kind])}{CODES[kind]}", data[8 + length + begin:8 + length + end])
        found[name] = kind, tuple(entry["shape"]), list(values)
    return found


def recorded(path):
    """The inputs and outputs that tests/onnx/make.py wrote."""
    arrays = safetensors(path)
    return tuple({name[len(kind):]: array for name, array in arrays.items() if name.startswith(kind)} for kind in ("input.", "output."))
