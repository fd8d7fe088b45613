"""The interface of the package onnx for runtimes, onnx.backend.base.Backend:

    import tutti.onnx_backend as backend
    y, = backend.prepare(onnx.load("model.onnx"), "GPU").run([x])

A file is read when the shapes of its inputs are known: at prepare(), or at the first run(). If all inputs have the batch as an open
first axis, one network serves any number of samples. Otherwise a network is made for each combination of shapes, and the last
ones are kept. Numbers are computed as float32: outputs of whole numbers from 2^24 on are refused, not rounded."""
import collections
import os
import tempfile
import threading
from typing import NamedTuple

import numpy
import onnx
from onnx import helper, numpy_helper
from onnx.backend.base import Backend as OnnxBackend
from onnx.backend.base import BackendRep

from . import _network, _trainer, errors
from ._feeds import Feeds, Port, ports_of
from ._runtime import Runtime, devices

NETWORKS = 8            # that are kept for other shapes, or other numbers that a network is made of
EXACT = 1 << 24         # whole numbers below it are exact in float32
NOTHING = numpy.zeros(1, "float32")     # for the input of a network of a file without inputs
runtimes: dict[str, Runtime] = {}
lock = threading.Lock()


def indices_of(device):
    """The devices that a name as "CPU", "GPU" or "GPU:1" means. CUDA is onnx's word for a GPU."""
    word, _, number = device.upper().partition(":")
    if word not in ("CPU", "GPU", "CUDA") or not number.isdecimal() and number:
        return []
    found = [one.index for one in devices() if (one.device_class == "cpu") == (word == "CPU")]
    return found if not number else found[int(number):int(number) + 1]


def runtime_of(device):
    with lock:
        if device not in runtimes:
            indices = indices_of(device)
            if not indices:
                raise errors.DeviceError(f'there is no device "{device}": tutti.devices() lists what is found')
            runtimes[device] = Runtime(",".join(map(str, indices)))
        return runtimes[device]


class Declared:
    """An input or output as the file declares it: name, numpy's type, sizes, of which None is open; no sizes: any shape."""

    def __init__(self, info):
        self.name, kind = info.name, info.type.tensor_type
        self.dtype = numpy.dtype(helper.tensor_dtype_to_np_dtype(kind.elem_type)) if kind.elem_type else None
        has_shape = info.type.HasField("tensor_type") and kind.HasField("shape")
        self.sizes = [one.dim_value if one.HasField("dim_value") else None for one in kind.shape.dim] if has_shape else None
        self.is_float = self.dtype is not None and (self.dtype.kind == "f" or self.dtype.name == "bfloat16")
        self.batch = kind.shape.dim[0].dim_param if has_shape and kind.shape.dim and self.sizes[0] is None else None

    def array(self, given):
        """What is given, as an array of the declared type and shape."""
        if given is None or self.dtype is None or self.dtype.kind in "OSU":
            raise errors.UnsupportedError(f'the input "{self.name}" is not a tensor of numbers')
        made = given if isinstance(given, numpy.ndarray) else numpy.asarray(given, None if hasattr(given, "__array__") else self.dtype)
        if made.dtype != self.dtype:
            raise TypeError(f'the input "{self.name}" takes {self.dtype}, not {made.dtype}')
        if self.sizes is not None and (made.ndim != len(self.sizes) or any(size not in (None, have) for size, have in zip(self.sizes, made.shape))):
            raise errors.ShapeError(f'the input "{self.name}" takes the shape {self.sizes}; the array is {list(made.shape)}')
        return read_as(made)

    def typed(self, values):
        """Numbers that were computed, as the declared type."""
        if self.dtype is None or self.dtype == "float32":
            return values
        if self.dtype.kind in "iu" and values.size and not numpy.abs(values).max() < EXACT:
            raise errors.UnsupportedError(f'the output "{self.name}" has whole numbers from {EXACT} on, which float32 rounds')
        with numpy.errstate(all="ignore"):
            return values.astype(self.dtype)


def read_as(array):
    """The array as one of the types that networks read."""
    if array.dtype.kind == "f" or array.dtype.name == "bfloat16":
        return array.astype("float32")
    if array.dtype.kind not in "biu":
        raise errors.UnsupportedError(f"arrays of {array.dtype} are not read")
    if array.dtype.name in ("bool", "uint8", "int32", "int64"):
        return array
    if array.dtype == "uint64" and array.size and array.max() > numpy.iinfo("int64").max:
        raise errors.UnsupportedError(f"{array.max()} does not fit int64")
    return array.astype("int64")


class Form(NamedTuple):
    """How a file is read: whole, or with the batch as the first axis; and the inputs whose numbers the network is made of."""
    whole: bool
    known: tuple[str, ...] = ()

    def key(self, arrays):
        """What a network is made for: all but the number of samples, where the batch is an axis of its own."""
        shapes = tuple(array.shape[0 if self.whole else 1:] for array in arrays.values())
        return self, shapes, tuple(arrays[name].tobytes() for name in self.known)


def forms_of(inputs):
    """Forms to try, the ones that need fewer networks first. Numbers are known that shapes and axes may depend on, then all
    integers, then what may be weights."""
    floats = [one.name for one in inputs if one.is_float]
    short = [one.name for one in inputs if not one.is_float and one.sizes is not None and len(one.sizes) < 2]
    integers = [one.name for one in inputs if not one.is_float]
    batches = {one.batch for one in inputs}
    is_one = len(batches) == 1 and None not in batches and ("" not in batches or len(inputs) == 1)     # axes without names may differ
    found = [Form(False)] if is_one else []
    found.append(Form(True))
    found += [Form(True, tuple(known)) for known in (short, integers, integers + floats[1:], integers + floats) if known]
    return list(dict.fromkeys(found))


class Program:
    """A network of the file in a form, for arrays of some shapes."""

    def __init__(self, path, runtime, form, inputs, outputs, arrays):
        self.form, self.outputs, notes = form, outputs, []
        sizes = {f"{one.name}.{axis}": arrays[one.name].shape[axis] for one in inputs if one.name in arrays
                 for axis in range(0 if form.whole else 1, arrays[one.name].ndim)}
        known = {name: arrays[name] for name in form.known}
        self.network = _network.load(path, runtime=runtime, whole=form.whole, sizes=sizes, known=known, note=notes.append)
        for note in notes:
            if "training_mode" in note:
                raise errors.UnsupportedError(note.removeprefix("warning: "))
        self.trainer = None

    def run(self, arrays):
        pairs = []
        for port in ports_of(self.network):
            array = arrays.get(port.name, NOTHING)
            pairs.append((port, as_samples(port, array[None] if self.form.whole else array)))
        check_samples(pairs)
        feeds = Feeds(pairs)
        if self.trainer is None or feeds.samples > self.trainer.batch_size:
            first, *more = self.network.named
            self.trainer = _trainer.Trainer(first, batch_size=feeds.samples, **({"outputs": more} if more else {}))
        return tuple(one.typed(self.in_order(position, values))
                     for position, (one, values) in enumerate(zip(self.outputs, self.trainer.fetched(feeds, self.network.named))))

    def in_order(self, position, values):
        """[samples][sample of the network] as the file's array."""
        if self.form.whole:
            return values[0]
        place, samples = self.network.file.output_batch_axes[position], len(values)
        axis, outer, inner = place.axis, place.outer, place.inner
        rest = values.shape[1 + (inner != 1):]
        before, after = rest[:axis], rest[axis + (outer != 1):]
        made = values.reshape(samples, inner, *before, outer, *after)
        made = numpy.moveaxis(made, (0, 1), (axis + 1, axis + 2))       # [before, outer, samples, inner, after]
        return made.reshape(*before, outer * samples * inner, *after)


def check_samples(pairs):
    """The library reads as many samples of each array."""
    counts = {port.name: len(array) for port, array in pairs}
    if len({*counts.values()}) > 1:
        raise errors.ShapeError("the arrays have different numbers of samples: " + ", ".join(f"{name} {count}" for name, count in counts.items()))
    for name, count in counts.items():
        if not count:
            raise errors.ShapeError(f'the input "{name}" has no samples: the first size of its array is 0')


def drops(graph, folder, arrays):
    """Whether a Dropout of the file drops, as in training. folder: where the numbers are that are in files of their own."""
    dropouts = [[*node.input, "", ""][1:3] for node in graph.node if node.op_type == "Dropout"]
    wanted = {name for names in dropouts for name in names}
    values = {one.name: numpy_helper.to_array(one, folder) for one in graph.initializer if one.name in wanted}
    for node in graph.node:
        if node.op_type == "Constant" and node.output[0] in wanted and node.attribute[0].name == "value":
            values[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
    values |= arrays
    return any(numpy.any(values.get(training, False)) and numpy.any(values.get(ratio, 0.5)) for ratio, training in dropouts)


def as_samples(port, array):
    """An array that the library reads for an input of the network."""
    port = Port(port.name, port.dtype, port.shape)
    try:
        return port.ready(port.checked(array))
    except (TypeError, ValueError) as failure:
        raise errors.UnsupportedError(str(failure)) from None


class Prepared(BackendRep):
    """A model that runs."""

    def __init__(self, model, runtime):
        self.runtime, self.model, self.path = runtime, model, os.fspath(model) if isinstance(model, (str, os.PathLike)) else None
        graph = (model if self.path is None else onnx.load(model, load_external_data=False)).graph
        values = {one.name for one in graph.initializer} | {one.values.name for one in graph.sparse_initializer}
        self.inputs, self.outputs = [Declared(one) for one in graph.input if one.name not in values], [Declared(one) for one in graph.output]
        self.graph, self.forms, self.programs, self.lock = graph, forms_of(self.inputs), collections.OrderedDict(), threading.RLock()
        self.check()

    def check(self):
        """Reads the file as far as that is possible without arrays. What other numbers may mend is tried again when they come."""
        sizes = {one.name: one.sizes if self.forms[0].whole or not one.sizes else [1, *one.sizes[1:]] for one in self.inputs}
        if any(one is None or None in one for one in sizes.values()):
            return
        zeros = {one.name: numpy.zeros(sizes[one.name], "float32" if one.is_float else "int64") for one in self.inputs}
        try:
            self.program(zeros, self.forms[:1])
        except errors.Error as refusal:
            try:
                self.made(self.forms[-1], zeros)
            except errors.Error as other:
                if str(other) == str(refusal):
                    raise

    def run(self, inputs, **options):
        """The outputs, in the file's order and types. inputs: arrays in the file's order, a dictionary by name, or one array."""
        if options:
            raise TypeError(f"run() has no option {next(iter(options))}")
        names = [one.name for one in self.inputs]
        if isinstance(inputs, dict):
            given = inputs
        else:
            given = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
            if len(given) != len(names):
                raise ValueError(f"the model has the inputs {', '.join(names) or 'none'}: {len(given)} arrays were given")
            given = dict(zip(names, given))
        if set(given) != set(names):
            raise ValueError(f"the model has the inputs {', '.join(names)}; there are arrays for {', '.join(given)}")
        arrays = {one.name: one.array(given[one.name]) for one in self.inputs}
        if drops(self.graph, os.path.dirname(self.path or ""), arrays):
            raise errors.UnsupportedError("a Dropout has training_mode 1: the backend computes inference, where nothing is dropped")
        with self.lock:
            return self.program(arrays, self.forms).run(arrays)

    def program(self, arrays, forms):
        """The network for these arrays: one that was made, or a new one in the first form in which the file can be read."""
        for form in forms:
            key = form.key(arrays)
            if key in self.programs:
                self.programs.move_to_end(key)
                return self.programs[key]
            try:
                found = self.made(form, arrays)
            except errors.Error as failure:
                refusal = failure
                continue
            self.forms = [form, *(one for one in self.forms if one != form)]    # the first one to try for other arrays
            self.programs[key] = found
            while len(self.programs) > NETWORKS:
                self.programs.popitem(last=False)
            return found
        raise refusal

    def made(self, form, arrays):
        if self.path is not None:
            return Program(self.path, self.runtime, form, self.inputs, self.outputs, arrays)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.onnx")
            with open(path, "wb") as file:
                file.write(self.model.SerializeToString())
            try:
                return Program(path, self.runtime, form, self.inputs, self.outputs, arrays)
            except errors.Error as failure:
                raise type(failure)(str(failure).removeprefix(path + ": ")) from None


def model_of(node, inputs, outputs_info, opset):
    """A model of one node."""
    names = [name for name in node.input if name]
    infos = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape) for name, array in zip(names, inputs)]
    if outputs_info:
        outputs = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(numpy.dtype(dtype)), shape)
                   for name, (dtype, shape) in zip(node.output, outputs_info)]
    else:
        outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
    opsets = [helper.make_opsetid("", opset or onnx.defs.onnx_opset_version())]
    if node.domain:
        opsets.append(helper.make_opsetid(node.domain, opset or 1))
    model = helper.make_model(helper.make_graph([node], "node", infos, outputs), opset_imports=opsets)
    return model if outputs_info else onnx.shape_inference.infer_shapes(model, strict_mode=True)


def opened(model):
    return onnx.load_model_from_string(model) if isinstance(model, bytes) else model


class Backend(OnnxBackend):
    """Runs models on Tutti's devices."""

    @classmethod
    def is_compatible(cls, model, device="CPU", **options):
        """Whether the file is read, as far as that is known before arrays come."""
        try:
            return cls.supports_device(device) and bool(cls.prepare(model, device))
        except errors.Error:
            return False

    @classmethod
    def supports_device(cls, device):
        """Whether there is a device: "CPU", "GPU", "GPU:1"; "CUDA" is onnx's word for a GPU."""
        return bool(indices_of(device))

    @classmethod
    def prepare(cls, model, device="CPU", **options):
        """Reads a model: a ModelProto, its bytes, or a path. What Tutti does not read is refused by tutti.Error, here or at the first run()."""
        return Prepared(opened(model), runtime_of(device))

    @classmethod
    def run_model(cls, model, inputs, device="CPU", **options):
        return cls.prepare(model, device).run(inputs)

    @classmethod
    def run_node(cls, node, inputs, device="CPU", outputs_info=None, **options):
        """The outputs of one node for arrays, in their order. opset_version: that of the node; else onnx's."""
        return cls.prepare(model_of(node, inputs, outputs_info, options.get("opset_version")), device).run(list(inputs))


is_compatible, supports_device, prepare = Backend.is_compatible, Backend.supports_device, Backend.prepare
run_model, run_node = Backend.run_model, Backend.run_node
__all__ = ["Backend", "Prepared", "is_compatible", "prepare", "run_model", "run_node", "supports_device"]
