"""The recorded cases of differential.py: a file and a record each, in one archive. Arrays of more than a few elements are probes,
as differ.c reads them: elements that are spread evenly, and a signed sum."""
import hashlib
import json
import lzma
import os
import pathlib
import shutil
import struct
import subprocess
import tarfile
import tempfile

PROBES = 4
KEPT = {1031, 2176, 2776}  # always recorded: for one sample, heads that are joined with the batch
TYPES = {"F32": "float32", "F64": "float64", "I64": "int64", "I32": "int32", "BOOL": "bool", "U8": "uint8"}


# ----------------------------------------------------------------------------------------------------------- packing

def load(path):
    import numpy
    raw = path.read_bytes()
    length = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:8 + length])
    return {name: numpy.frombuffer(raw, TYPES[entry["dtype"]], (entry["data_offsets"][1] - entry["data_offsets"][0]) // numpy.dtype(TYPES[entry["dtype"]]).itemsize,
                                   8 + length + entry["data_offsets"][0]).reshape(entry["shape"]) for name, entry in header.items()}


def probes(array):
    """Returns numbers that stand for the elements of a large array."""
    import numpy
    flat = array.reshape(-1).astype("float64")
    count = len(flat)
    if count <= PROBES + 1:
        return array
    signs = numpy.where((numpy.arange(count, dtype="uint64") * 2654435761 & 0xffffffff) >> 31, -1.0, 1.0)
    return numpy.array([*(flat[i * count // PROBES] for i in range(PROBES)), (signs * flat).sum()], "float32")


def shortened(arrays):
    import numpy
    made = {}
    for name, array in arrays.items():
        if name.startswith(("gradient.", "optional.", "alias.", "after.")):
            array = probes(array)
        elif name.startswith("output.") and array.dtype.kind == "f" and array.size > PROBES + 1:
            made["shape." + name.split(".")[1]] = numpy.array(array.shape, "int32")
            array = probes(array)
        elif name.startswith("limit."):
            array = (numpy.ascontiguousarray(array).view("uint32") + 0xffff & 0xffff0000).view("float32")  # few bits, rounded up
        made[name] = array
    return made


def size_of(result, folder):
    name = f"case{result['seed']}"
    return (folder / f"{name}.onnx").stat().st_size + 4 * (folder / f"{name}.safetensors").stat().st_size


def chosen(results, folder, most):
    """The smallest cases of each block, exporter, precision and class, in turn."""
    groups = {}
    for result in sorted(results, key=lambda result: size_of(result, folder)):
        options = result["options"]
        keys = [f"block {name}" for name, _ in result["blocks"]]
        keys += [f"{options['exporter']} {options['class']} {options['precision']} {options['dynamic']}"]
        for key in keys:
            groups.setdefault(key, []).append(result)
    taken = {result["seed"]: result for result in results if result["seed"] in KEPT}
    while len(taken) < most and any(groups.values()):
        for key in sorted(groups, key=lambda key: not key.startswith("block")):
            while groups[key] and groups[key][0]["seed"] in taken:
                groups[key].pop(0)
            if groups[key] and len(taken) < most:
                result = groups[key].pop(0)
                taken[result["seed"]] = result
    return [taken[seed] for seed in sorted(taken)]


def stripped(path):
    """The file without texts that no reader needs: source lines of the exporter, shapes between nodes."""
    import onnx
    model = onnx.load(path)
    for node in model.graph.node:
        node.doc_string = ""
        kept = [(entry.key, entry.value) for entry in node.metadata_props if entry.key.endswith(("name_scopes", "class_hierarchy"))]
        del node.metadata_props[:]
        for key, value in kept:
            node.metadata_props.add(key=key, value=value)
    initialisers = {array.name for array in model.graph.initializer}
    told = [value for value in model.graph.value_info if value.name in initialisers and value.metadata_props]  # what it was folded from
    del model.graph.value_info[:]
    for value in told:
        value.ClearField("type")
        model.graph.value_info.append(value)
    return model.SerializeToString()


def pack(results, with_kernels, folder, most, archive):
    from differential_drive import save
    made, index = pathlib.Path(tempfile.mkdtemp()), []
    for result in chosen(results, folder, most):
        name, options = f"case{result['seed']}", result["options"]
        (made / f"{name}.onnx").write_bytes(stripped(folder / f"{name}.onnx"))
        save(made / f"{name}.safetensors", shortened(load(folder / f"{name}.safetensors")))
        computed = "kernels" if result["seed"] in with_kernels else "interpreted"
        index.append(f"{name} {options['class']} {computed} {options['precision']} {options['exporter'].replace(' ', '-')} {'>'.join(block for block, _ in result['blocks'])}\n")
    (made / "index.txt").write_text("".join(index))
    with tarfile.open(archive, "w:xz", preset=9 | lzma.PRESET_EXTREME) as file:
        for path in sorted(made.iterdir(), key=lambda path: (path.suffix, path.name)):
            entry = file.gettarinfo(path, path.name)
            entry.mtime = entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            with path.open("rb") as data:
                file.addfile(entry, data)
    shutil.rmtree(made)
    print(f"{len(index)} cases, {archive.stat().st_size} bytes")


# --------------------------------------------------------------------------------------------------------- replaying

def unpacked(archive, folder):
    """Once, also if several programs want it at a time."""
    made = folder / hashlib.sha256(archive.read_bytes()).hexdigest()[:16]
    if not made.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        new = pathlib.Path(tempfile.mkdtemp(dir=folder))
        with tarfile.open(archive) as file:
            file.extractall(new)
        try:
            new.rename(made)
        except OSError:  # another was faster
            shutil.rmtree(new)
    return made


def replay(archive, program, folder, device_class):
    made = unpacked(archive, folder)
    lines = [line.split() for line in (made / "index.txt").read_text().splitlines()]
    names = [line[0] for line in lines if not device_class or line[1:3] == [device_class, "kernels"]]
    environment = os.environ | ({"TUTTI_DEVICE_CLASS": "gpu"} if device_class == "gpu" else {})
    command = [program, *([] if device_class else ["--interpret"]), made, *names]
    told = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment).stdout.splitlines()
    right = sum(line.split()[1] == "right" for line in told)
    print("\n".join(line for line in told if line.split()[1] != "right"))
    print(f"{len(names)} cases, {right} right" + ("" if len(told) == len(names) else f"; the program ended in {names[len(told)]}"))
    return 0 if right == len(names) > 0 else 1
