"""One turn of one contender, in a process of its own: steps for warming up, then timed ones. Prints a JSON object:

    min, median   milliseconds of the timed steps
    others        processors that were busy with other processes meanwhile, or stolen by the host
    memory        bytes; of a peer on the CPU: anonymous memory resident at the peak of the steps, less what was resident
                  when the library had been imported and no network built; of a peer on a GPU: the peak that its allocator
                  reserved; of Tutti: what it allocated on its devices
    first         seconds from the start of the process to the end of the first step, where known
"""
import argparse
import contextlib
import importlib
import importlib.util
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import time

import networks

# The C library would otherwise give large tensors back to the system after every step, which costs PyTorch a fifth.
HEAP = {"MALLOC_MMAP_THRESHOLD_": "4294967296", "MALLOC_TRIM_THRESHOLD_": "17179869184", "MALLOC_TOP_PAD_": "268435456"}
ONNX = pathlib.Path(".dev/onnx")
TICKS = os.sysconf("SC_CLK_TCK")


class Others:
    """What the rest of the machine does: all processors' busy and stolen time, less that of this process (or its children)."""

    def __init__(self, who):
        self.who = who
        self.begun, self.machine, self.own = self.read()

    def read(self):
        user, nice, system, _, _, interrupts, soft, stolen = map(int, open("/proc/stat").readline().split()[1:9])
        own = resource.getrusage(self.who)
        return time.monotonic(), (user + nice + system + interrupts + soft + stolen) / TICKS, own.ru_utime + own.ru_stime

    def share(self):
        now, machine, own = self.read()
        return max(0.0, (machine - self.machine) - (own - self.own)) / max(now - self.begun, 1e-3)


def resident(field):
    for line in open("/proc/self/status"):
        if line.startswith(field + ":"):
            return 1024 * int(line.split()[1])
    return 0


def since_start():
    started = int(open("/proc/self/stat").read().rsplit(")", 1)[1].split()[19]) / TICKS
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started


def import_torch(arguments):
    import torch
    import torchvision  # noqa: F401
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)


def set_torch_precision(arguments):
    """The precision of products; bf16 and fp16 are autocast's, see torch_cast()."""
    import torch
    tf32 = arguments.precision == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.cudnn.benchmark = True


def torch_cast(arguments):
    import torch
    if arguments.precision in ("fp32", "tf32"):
        return contextlib.nullcontext()
    return torch.autocast(arguments.peer_device, torch.bfloat16 if arguments.precision == "bf16" else torch.float16)


def torch_wait(arguments):
    """Waits for the device, as Tutti's step does, which gives the loss."""
    import torch
    if arguments.peer_device != "cpu":
        torch.accelerator.synchronize()


def make_torch(arguments):
    import torch
    set_torch_precision(arguments)
    shape = (arguments.batch, *networks.sample_shape(arguments.model))
    network, inputs = networks.make(arguments.model).to(arguments.peer_device), torch.randn(shape, device=arguments.peer_device)
    targets = torch.randint(0, networks.default_classes(arguments.model), (arguments.batch, *networks.target_shape(arguments.model)),
                            device=arguments.peer_device)
    if arguments.contender != "nchw":
        network = network.to(memory_format=torch.channels_last)
        inputs = inputs.contiguous(memory_format=torch.channels_last)
    network.train(arguments.mode == "train")
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9, fused=True)
    if arguments.contender == "compiled":
        network = torch.compile(network)

    def train():
        optimizer.zero_grad(set_to_none=True)
        with torch_cast(arguments):
            loss = torch.nn.functional.cross_entropy(network(inputs), targets)
        loss.backward()
        optimizer.step()
        torch_wait(arguments)

    def infer():
        with torch.inference_mode(), torch_cast(arguments):
            network(inputs)
        torch_wait(arguments)

    return train if arguments.mode == "train" else infer


def export_onnx(arguments, path):
    """In a process of its own, so that PyTorch is not in the measured one."""
    import torch
    ONNX.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    network = networks.make(arguments.model).eval()
    inputs = torch.randn(arguments.batch, *networks.sample_shape(arguments.model))
    torch.onnx.export(network, (inputs,), str(path), input_names=["x"], output_names=["y"], dynamo=True)


def import_onnxruntime(_):
    import numpy  # noqa: F401
    import onnxruntime  # noqa: F401


def exported(arguments):
    """The network's ONNX file, written where there is none yet, and random samples for its input."""
    import numpy
    path = ONNX / f"{arguments.model}_{arguments.batch}.onnx"
    if not path.exists():
        subprocess.run([sys.executable, *sys.argv, "--export", str(path)], stdout=sys.stderr, check=True)
    shape = (arguments.batch, *networks.sample_shape(arguments.model))
    return str(path), {"x": numpy.random.default_rng(0).standard_normal(shape, dtype=numpy.float32)}


def make_onnxruntime(arguments):
    import onnxruntime
    path, inputs = exported(arguments)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = arguments.threads, 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, inputs)


def import_openvino(_):
    import openvino  # noqa: F401


def make_openvino(arguments):
    import openvino
    path, inputs = exported(arguments)
    network = openvino.Core().compile_model(path, "CPU", {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32",
                                                          "INFERENCE_NUM_THREADS": arguments.threads})
    request = network.create_infer_request()
    return lambda: request.infer(inputs)


def import_tinygrad(arguments):
    if not importlib.util.find_spec("tinygrad"):
        subprocess.run([sys.executable, "-m", "pip", "install", "-q", "tinygrad==0.14.0"], stdout=sys.stderr, check=True)
        importlib.invalidate_caches()
    os.environ["DEV"] = {"tinygrad-clang": "CPU", "tinygrad-cl": "CL"}[arguments.contender]
    os.environ["CPU_COUNT"] = str(arguments.threads)
    import tinygrad  # noqa: F401


def tinygrad_layers(model):
    """The network as a list of functions, and the layers with parameters among them."""
    from tinygrad import Tensor, nn
    kept = []

    def keep(layer):
        kept.append(layer)
        return layer

    def convolve(inputs, outputs, kernel, stride=1, bias=False):
        return keep(nn.Conv2d(inputs, outputs, kernel, stride=stride, padding=kernel // 2, bias=bias))

    def pool(x):
        return x.max_pool2d((2, 2))

    def block(inputs, outputs, stride):
        main = [convolve(inputs, outputs, 3, stride), keep(nn.BatchNorm(outputs)), Tensor.relu,
                convolve(outputs, outputs, 3), keep(nn.BatchNorm(outputs))]
        other = [convolve(inputs, outputs, 1, stride), keep(nn.BatchNorm(outputs))] if stride > 1 else []
        return lambda x: (x.sequential(main) + x.sequential(other)).relu()

    def dense(*sizes):
        layers = [keep(nn.Linear(inputs, outputs)) for inputs, outputs in zip(sizes, sizes[1:])]
        return [part for layer in layers for part in (layer, Tensor.relu)][:-1]

    if model == "mlp":
        return [lambda x: x.flatten(1), *dense(784, 512, 512, 10)], kept
    if model == "lenet":
        return [convolve(1, 32, 5, bias=True), Tensor.relu, pool, convolve(32, 64, 5, bias=True), Tensor.relu, pool,
                lambda x: x.flatten(1), *dense(3136, 128, 10)], kept
    widths = [(64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1), (256, 512, 2), (512, 512, 1)]
    return [convolve(3, 64, 7, 2), keep(nn.BatchNorm(64)), Tensor.relu, lambda x: x.max_pool2d((3, 3), stride=2, padding=1),
            *[block(*width) for width in widths], lambda x: x.mean((2, 3)), *dense(512, 1000)], kept


def make_tinygrad(arguments):
    from tinygrad import Device, Tensor, TinyJit, nn
    from tinygrad.helpers import Context
    if arguments.model not in TINYGRAD:
        sys.exit(f"turn: tinygrad has {', '.join(TINYGRAD)} here, not {arguments.model}")
    layers, kept = tinygrad_layers(arguments.model)
    inputs = Tensor.randn(arguments.batch, *networks.sample_shape(arguments.model)).realize()
    targets = Tensor.randint(arguments.batch, high=networks.default_classes(arguments.model)).realize()
    optimizer = nn.optim.SGD(nn.state.get_parameters(kept), lr=0.01, momentum=0.9)

    @TinyJit
    def train(inputs, targets):
        with Context(TRAINING=1):
            optimizer.zero_grad()
            loss = inputs.sequential(layers).sparse_categorical_crossentropy(targets).backward()
            return loss.realize(*optimizer.schedule_step())

    @TinyJit
    def infer(inputs, _):
        return inputs.sequential(layers).realize()

    def step():
        (train if arguments.mode == "train" else infer)(inputs, targets)
        Device[Device.DEFAULT].synchronize()

    for _ in range(2):
        step()  # the first captures, the second compiles; from the third on it is replayed
    return step


def time_steps(arguments, step):
    """Milliseconds of each step, and what others did meanwhile."""
    step()
    first, begun, times = since_start(), time.perf_counter(), []
    warm = 1
    while warm < arguments.warm_up or time.perf_counter() < begun + arguments.seconds:
        step()
        warm += 1
    others, begun = Others(resource.RUSAGE_SELF), time.perf_counter()
    while len(times) < arguments.steps or time.perf_counter() < begun + arguments.seconds:
        started = time.perf_counter()
        step()
        times.append(1000 * (time.perf_counter() - started))
    return first, times, others.share()


def run_peer(arguments):
    load, make = PEERS[arguments.contender]
    load(arguments)
    before = resident("RssAnon")
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak is counted from here
    first, times, others = time_steps(arguments, make(arguments))
    memory = resident("VmHWM") - resident("RssFile") - before
    if arguments.peer_device == "cuda":
        import torch
        memory = torch.cuda.max_memory_reserved()
    return {"min": min(times), "median": statistics.median(times), "others": others, "memory": memory, "first": first}


def run_tutti(arguments):
    threads = str(arguments.threads)
    command = [f"{arguments.build}/tools/tutti", "bench", arguments.model, "--mode", arguments.mode, "--batch",
               str(arguments.batch), "--steps", str(arguments.steps), "--warm-up", str(arguments.warm_up), "--seconds",
               str(arguments.seconds), "--threads", threads, "--precision", arguments.precision, "--json"]
    if arguments.devices:
        command += ["--devices", arguments.devices]
    others = Others(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, env={**os.environ, "POCL_MAX_PTHREAD_COUNT": threads}, stdout=subprocess.PIPE, text=True,
                          check=True)
    line = json.loads(done.stdout)
    return {"min": line["ms_per_step_min"], "median": line["ms_per_step_median"], "others": others.share(),
            "memory": line["device_memory_bytes"], "first": line.get("first_step_s")}


PEERS = {**{way: (import_torch, make_torch) for way in ("nchw", "nhwc", "compiled")},
         "onnxruntime": (import_onnxruntime, make_onnxruntime), "openvino": (import_openvino, make_openvino),
         **{f"tinygrad-{device}": (import_tinygrad, make_tinygrad) for device in ("clang", "cl")}}
TINYGRAD = ("resnet18", "lenet", "mlp")


def command(contender, model, batch, mode, options):
    """The command of a turn, and its environment: threads are counted the same for all."""
    threads = str(options.threads)
    line = [sys.executable, "-B", __file__, contender, model, str(batch), mode, "--build", options.build, "--threads", threads,
            "--steps", str(options.steps), "--warm-up", str(options.warm_up), "--seconds", str(options.seconds),
            "--precision", options.precision, "--peer-device", options.peer_device]
    if options.devices:
        line += ["--devices", options.devices]
    heap = {} if contender == "tutti" else HEAP
    return line, {**os.environ, **heap, "OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("contender", choices=["tutti", *PEERS])
    parser.add_argument("model")
    parser.add_argument("batch", type=int)
    parser.add_argument("mode", choices=["train", "infer"])
    for option, kind in (("build", str), ("threads", int), ("steps", int), ("warm-up", int), ("seconds", float)):
        parser.add_argument("--" + option, type=kind, required=True)
    parser.add_argument("--devices")
    parser.add_argument("--precision", required=True)
    parser.add_argument("--peer-device", required=True)
    parser.add_argument("--export", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.export:
        return export_onnx(arguments, arguments.export)
    print(json.dumps(run_tutti(arguments) if arguments.contender == "tutti" else run_peer(arguments)))


if __name__ == "__main__":
    main()
