"""Exports a case of differential.py, computes what onnxruntime and PyTorch say, and asks Tutti (differ.c)."""
import copy
import itertools
import json
import os
import select
import signal
import struct
import subprocess
import time
import warnings

import numpy
import onnx
import onnxruntime
import torch

import differential_cases as cases

STEPS = 3
ROWS_REFUSED = ("and samples share parameters", "has elements of its own for each of the")
LONGEST = 400  # seconds for a case: kernels are compiled
TYPES = {"float32": "F32", "float64": "F64", "int64": "I64", "int32": "I32", "bool": "BOOL", "uint8": "U8"}
PRECISIONS = {"fp32": 0, "bf16": 1, "tf32": 2}
# Parts of the largest element: of outputs; of gradients, and those of all gradients; and times PyTorch's own error.
LIMITS = {"fp32": (1e-5, 1e-4, 1e-6, 10), "tf32": (1e-2, 4e-2, 4e-3, 3), "bf16": (3e-2, 1e-1, 1e-2, 5)}
# In folded files, what these blocks compute of parameters alone is a parameter: another network trains.
FOLDS = {"weight_norm", "conv1d_norm", "standardised_conv", "cosine_classifier", "snake", "scalar_scale", "gem", "scan", "t5_buckets"}
# In folded files of dynamo=False their parameters are joined, reordered or split.
REORDERED = {"lstm", "gru", "rnn", "lstm_last", "gru_second", "lstm_zeros", "lstm_learned", "decoder_layer", "multihead_second"}


def save(path, arrays):
    """As safetensors, without its package."""
    header, offset, data = {}, 0, []
    for name, array in sorted(arrays.items(), key=lambda item: -item[1].itemsize):
        header[name] = {"dtype": TYPES[str(array.dtype)], "shape": list(array.shape), "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
        data.append(numpy.ascontiguousarray(array).tobytes())
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data))


# ------------------------------------------------------------------------------------------------------- the driver

class Drivers:
    """A process for each class of devices, which is started again when it has ended."""

    def __init__(self, program, folder, interpret=False):
        self.program, self.folder, self.running = [program, *(["--interpret"] if interpret else [])], folder, {}

    def start(self, device_class):
        environment = {key: value for key, value in os.environ.items() if not key.startswith("LD_")}
        if device_class == "gpu":
            environment["TUTTI_DEVICE_CLASS"] = "gpu"
        self.errors = open(self.folder / f"differ.{device_class}.log", "ab")
        return subprocess.Popen([*self.program, self.folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, env=environment)

    def ask(self, name, device_class):
        """The verdict and the text."""
        if device_class not in self.running or self.running[device_class].poll() is not None:
            self.running[device_class] = self.start(device_class)
        process, line, end = self.running[device_class], b"", time.monotonic() + LONGEST
        process.stdin.write(f"{name}\n".encode())
        process.stdin.flush()
        while not line.endswith(b"\n"):
            ready = select.select([process.stdout], [], [], max(0, end - time.monotonic()))[0]
            byte = os.read(process.stdout.fileno(), 4096) if ready else b""
            if not byte:
                return self.ended(process, device_class, bool(ready))
            line += byte
        _, verdict, *text = line.decode(errors="replace").rstrip("\n").split(" ", 2)
        return verdict, text[0] if text else ""

    def ended(self, process, device_class, itself):
        del self.running[device_class]
        if not itself:
            process.kill()
        process.wait()
        status = process.returncode
        name = signal.Signals(-status).name if status < 0 else f"status {status}"
        return "crashed", f"ended by {name}" if itself else f"no answer within {LONGEST} s"

    def close(self):
        for process in self.running.values():
            process.stdin.close()
            process.wait()


# ------------------------------------------------------------------------------------------------------- references

def export(module, spec, path):
    options, x = spec["options"], cases.samples(spec, spec["options"]["exported"])
    kept = options["exporter"].endswith("kept")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if options["exporter"].startswith("script"):
            how = {"do_constant_folding": False, "training": torch.onnx.TrainingMode.PRESERVE} if kept else {}
            torch.onnx.export(module, (x,), str(path), input_names=["x"], output_names=["y"], dynamo=False,
                              dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}} if options["dynamic"] else None, **how)
        else:
            how = {"dynamic_shapes": ({0: torch.export.Dim.DYNAMIC},)} if options["dynamic"] else {}
            torch.onnx.export(module, (x,), str(path), input_names=["x"], output_names=["y"], dynamo=True, optimize=not kept,
                              external_data=False, verbose=False, **how)


class Double:
    """Constants and casts are double in it."""

    def __enter__(self):
        self.float = torch.Tensor.float
        torch.Tensor.float = torch.Tensor.double
        torch.set_default_dtype(torch.float64)

    def __exit__(self, *_):
        torch.Tensor.float = self.float
        torch.set_default_dtype(torch.float32)


def train(module, x, target, rate, steps):
    """The first gradients, and the parameters and statistics after all steps."""
    module.train()
    first = {}
    for step in range(steps):
        module.zero_grad()
        torch.nn.functional.mse_loss(module(x), target).backward()
        with torch.no_grad():
            for name, parameter in module.named_parameters():
                gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
                if step == 0:
                    first[name] = gradient.double().numpy().copy()
                parameter -= rate * gradient
    state = {name: value.detach().double().numpy().copy() for name, value in module.named_parameters()}
    state |= {name: value.double().numpy().copy() for name, value in module.named_buffers() if "running_" in name}
    return first, state


def low_precision(module, x, target, rate):
    with torch.autocast("cpu", torch.bfloat16):
        y = module.eval()(x).float()
    if not y.requires_grad:
        return y.double().numpy(), {}
    try:
        module.train()
        module.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            y_train = module(x)
        torch.nn.functional.mse_loss(y_train.float(), target).backward()
        first = {name: (torch.zeros_like(p) if p.grad is None else p.grad).double().numpy().copy() for name, p in module.named_parameters()}
    except ValueError:
        first = {}
    return y.detach().double().numpy(), first


def folded_away(path, module, spec):
    """Whether the file is not the module's any more: batch normalisations, or computations on parameters, were folded."""
    nodes, used = [node.op_type for node in onnx.load(path).graph.node], {name for name, _ in spec["blocks"]}
    norms = sum(isinstance(part, torch.nn.modules.batchnorm._BatchNorm) for part in module.modules())
    kept = spec["options"]["exporter"].endswith("kept")
    gone = (FOLDS | REORDERED if spec["options"]["exporter"] == "script" else FOLDS) if not kept else set()
    return nodes.count("BatchNormalization") < norms or bool(used & gone)


def float_initialisers(path):
    arrays = {array.name: onnx.numpy_helper.to_array(array) for array in onnx.load(path).graph.initializer}
    return {name: array for name, array in arrays.items() if array.dtype == numpy.float32}


def aliases(path, module):
    """Initialisers that are a parameter whose name the file does not tell, with its name and the positions of their elements in it:
    the exporter folded a change of shape or of the order, outside a layer whose scope would tell, or looked up elements, each of
    which is one in the order of their first uses."""
    stored, named = float_initialisers(path), dict(module.named_parameters())
    linear = {f"{name}.weight".lstrip(".") for name, part in module.named_modules() if type(part) is torch.nn.Linear}
    found = {}
    for name, parameter in named.items():
        if name in stored or name in linear:
            continue
        value = parameter.detach().numpy()
        positions = numpy.arange(value.size).reshape(value.shape)
        for label, array in stored.items():
            if label in named:
                continue
            for order in itertools.permutations(range(value.ndim)) if array.size == value.size else ():
                if label not in found and (array.reshape(-1) == value.transpose(order).reshape(-1)).all():
                    found[label] = (name, positions.transpose(order))
            elements, single = list(dict.fromkeys(array.reshape(-1).tolist())), value.reshape(-1).tolist()
            if label not in found and 1 < len(elements) < array.size and all(single.count(element) == 1 for element in elements):
                found[label] = (name, numpy.array([single.index(element) for element in elements]))
    return found


def trains(module, spec):
    y = module(cases.samples(spec, spec["options"]["batch"]))
    return y.requires_grad


def limit_of(values, own, precision, everything=0.0, gradient=False):
    of_output, of_gradient, of_all, times = LIMITS[precision]
    largest = numpy.abs(values).max(initial=0)
    return (of_gradient if gradient else of_output) * largest + of_all * everything + times * own


def apart(a, b):
    return numpy.abs(a - b).max(initial=0)


def references(spec, module, path):
    """The record of a case. Raises Exporter if the file does not compute what the module does."""
    precision = spec["options"]["precision"]
    x = cases.samples(spec, spec["options"]["batch"])
    session_options = onnxruntime.SessionOptions()
    session_options.log_severity_level, session_options.intra_op_num_threads = 3, 1
    session = onnxruntime.InferenceSession(str(path), session_options, providers=["CPUExecutionProvider"])
    y = session.run(None, {"x": x.numpy()})[0]
    double = copy.deepcopy(module).double()
    floats = x.double() if x.is_floating_point() else x
    with Double(), torch.no_grad():
        exact = double.eval()(floats).double().numpy()
    own = apart(y.astype(float), exact)
    if not numpy.isfinite(exact).all() or y.shape != exact.shape or own > 1e-3 * numpy.abs(exact).max(initial=1e-3):
        raise Exporter(f"onnxruntime and PyTorch differ by {own:.3g}")
    arrays = {"input.0.x": x.numpy(), "output.0.y": y, "precision": numpy.array([PRECISIONS[precision]], numpy.int32)}
    if precision != "fp32":
        low_y, low_first = low_precision(copy.deepcopy(module), x, torch.from_numpy(exact).float() * 0.5, 0)
        own = max(own, apart(low_y, exact))
    arrays["limit.output.0"] = numpy.array([limit_of(y, own, precision)], numpy.float32)
    if trains(module, spec) and not folded_away(path, module, spec):
        arrays |= training(spec, module, double, x, floats, exact)
        add_other_names(arrays, path, module)
    return arrays


def add_other_names(arrays, path, module):
    for label, (name, positions) in aliases(path, module).items():
        if f"gradient.{name}" in arrays:
            arrays[f"alias.{label}"] = arrays[f"gradient.{name}"].reshape(-1)[positions]
            arrays[f"limit.alias.{label}"] = arrays[f"limit.gradient.{name}"]


def training(spec, module, double, x, floats, exact):
    precision = spec["options"]["precision"]
    generator = torch.Generator().manual_seed(spec["seed"] + 2)
    target = torch.randint(-64, 64, exact.shape, generator=generator) / 32.0
    start = {name: value.detach().double().numpy().copy() for name, value in [*module.named_parameters(), *module.named_buffers()]}
    trial, single = copy.deepcopy(double), copy.deepcopy(module)
    try:
        with Double():
            first, _ = train(trial, floats, target.double(), 0, 1)
    except ValueError:  # batch normalisation of one value for each channel
        return {}
    if all(value.size == 1 for value in first.values()):  # they may be constants
        return {}
    norm = numpy.sqrt(sum((value ** 2).sum() for value in first.values()))
    size = numpy.sqrt(sum((start[name] ** 2).sum() for name in first))
    rate = float(numpy.float32(min(0.05, 0.05 * size / (norm + 1e-9))))
    with Double():
        first, state = train(double, floats, target.double(), rate, STEPS)
    first_own, state_own = train(single, x, target, rate, STEPS)
    if precision != "fp32":
        first_own = low_precision(copy.deepcopy(module), x, target, rate)[1] or first_own
    everything = max((numpy.abs(value).max(initial=0) for value in first.values()), default=0)
    if everything < 1e-9:  # nothing but rounding: the output does not depend on the parameters
        return {}
    arrays = {"target": target.float().numpy(), "rate": numpy.array([rate], numpy.float32), "steps": numpy.array([STEPS if precision == "fp32" else 1], numpy.int32)}
    single_elements = any(value.size == 1 for value in first.values())
    for name, value in first.items():
        kind = "optional" if value.size == 1 else "gradient"
        arrays[f"{kind}.{name}"] = value.astype(numpy.float32)
        arrays[f"limit.{kind}.{name}"] = numpy.array([limit_of(value, apart(value, first_own[name]), precision, everything, True)], numpy.float32)
    moved = max((apart(value, start[name]) for name, value in state.items() if name in first), default=0)
    for name, value in state.items() if precision == "fp32" and not single_elements else ():
        change = value - start[name]
        limit = limit_of(change, apart(value, state_own[name]), precision, moved, True) * 5 + 2e-7 * numpy.abs(value).max(initial=0)
        arrays[f"after.{name}"], arrays[f"limit.after.{name}"] = value.astype(numpy.float32), numpy.array([limit], numpy.float32)
    return arrays


class Exporter(Exception):
    pass


# ------------------------------------------------------------------------------------------------------------- case

def prepare(spec, folder):
    """Writes the case's file and record, unless they are there. Returns what prevents that, or None, and the blocks."""
    told, path = folder / f"case{spec['seed']}.json", folder / f"case{spec['seed']}.onnx"
    if told.exists():
        found = json.loads(told.read_text())
        if found["asked"] == spec:
            return found["problem"], found["blocks"]
    module, used = cases.network(spec)
    problem = None
    try:
        export(module, spec, path)
        save(path.with_suffix(".safetensors"), references(spec | {"blocks": used}, module, path))
    except Exporter as error:
        problem = str(error)
    except Exception as error:  # PyTorch cannot export or compute it: not a case
        problem = f"{type(error).__name__}: {str(error).strip()[:200]}"
    told.write_text(json.dumps({"asked": spec, "problem": problem, "blocks": used}))
    return problem, used


def has_rows(spec, used):
    """Whether a parameter has a row for each of several samples: no network that samples share is the module's."""
    return spec["options"]["batch"] > 1 and any(name == cases.ROWS for name, _ in used)


def check(spec, drivers, folder):
    """The case with its verdict and text."""
    problem, used = prepare(spec, folder)
    if problem:
        return spec | {"blocks": used, "verdict": "exporter", "text": problem}
    verdict, text = drivers.ask(f"case{spec['seed']}", spec["options"]["class"])
    if verdict == "refused" and has_rows(spec, used) and any(words in text for words in ROWS_REFUSED):
        return spec | {"blocks": used, "verdict": "right", "text": text, "refusal": True}
    return spec | {"blocks": used, "verdict": verdict, "text": text}
