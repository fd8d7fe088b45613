"""Trains a network through ctypes, with what a binding declares of the header: plain functions, and structs with a size
up to the last member that it uses.   binding.py BUILD"""
import ctypes as c
import math
import random
import sys

F32, I32 = 0, 3
tutti = c.CDLL(sys.argv[1] + "/libtutti.so")


class Tensor(c.Structure):
    _fields_ = [("id", c.c_int)]


class Options(c.Structure):
    """The first member of each is the size of what is declared here."""

    def __init__(self, **members):
        super().__init__(c.sizeof(type(self)), **members)


class Group(Options):
    _fields_ = [("size", c.c_size_t), ("rate_factor", c.c_float), ("has_weight_decay", c.c_bool),
                ("weight_decay", c.c_float)]


class Short(Options):
    """tutti_training up to its learning rate: softmax and cross-entropy of the first output, SGD."""
    _fields_ = [("size", c.c_size_t), ("loss", c.c_int), ("optimizer", c.c_int), ("learning_rate", c.c_float)]


class Times(Options):
    """tutti_device_times up to the time of all steps."""
    _fields_ = [("size", c.c_size_t), ("steps", c.c_int64), ("step_s", c.c_double)]


class Feed(c.Structure):
    _fields_ = [("name", c.c_char_p), ("dtype", c.c_int), ("data", c.c_void_p), ("length", c.c_int64)]


class Metrics(c.Structure):
    _fields_ = [("loss", c.c_double), ("accuracy", c.c_double), ("samples", c.c_int64)]


def declare(result, name, *arguments):
    function = getattr(tutti, name)
    function.restype, function.argtypes = result, arguments
    return function


sizes_and_rank = [c.POINTER(c.c_int64), c.c_int]
message = declare(c.c_char_p, "tutti_message", c.c_void_p)
runtime_open = declare(c.c_void_p, "tutti_open", c.c_void_p)
network_new = declare(c.c_void_p, "tutti_network_new", c.c_void_p)
input_typed = declare(Tensor, "tutti_input_typed", c.c_void_p, c.c_char_p, c.c_int, *sizes_and_rank)
parameter = declare(Tensor, "tutti_parameter_sized", c.c_void_p, c.c_char_p, *sizes_and_rank, c.c_void_p)
constant = declare(Tensor, "tutti_constant_typed", c.c_void_p, c.c_char_p, c.c_int, *sizes_and_rank, c.c_void_p)
reshape = declare(Tensor, "tutti_reshape_sized", c.c_void_p, Tensor, *sizes_and_rank)
op = declare(Tensor, "tutti_op", c.c_void_p, c.c_char_p, c.POINTER(Tensor), c.c_int, c.c_char_p)
group = declare(c.c_int, "tutti_group", c.c_void_p, c.c_char_p, c.c_void_p)
compile_network = declare(c.c_void_p, "tutti_compile", c.c_void_p, Tensor, c.c_void_p)
report_times = declare(c.c_int, "tutti_report_times", c.c_void_p, c.c_int, c.POINTER(Times))
train_step = declare(c.c_int, "tutti_train_step", c.c_void_p, c.POINTER(Feed), c.c_int, c.c_int64, c.POINTER(Metrics))
free = [declare(None, name, c.c_void_p) for name in ("tutti_trainer_free", "tutti_network_free", "tutti_close")]


def must(good):
    if not good:
        sys.exit("binding.py: " + message(None).decode())


def sizes(*numbers):
    return (c.c_int64 * len(numbers))(*numbers), len(numbers)


def operate(network, name, *inputs):
    return op(network, name, (Tensor * len(inputs))(*inputs), len(inputs), None)


def main():
    samples, features, classes = 32, 6, 3
    runtime = runtime_open(None)
    must(runtime)
    network = network_new(runtime)
    x = reshape(network, input_typed(network, b"x", F32, *sizes(2, 3)), *sizes(features))
    scale = constant(network, b"scale", F32, *sizes(features), (c.c_float * features)(*[2] * features))
    weight = parameter(network, b"weight", *sizes(classes, features), None)
    y = operate(network, b"dense", operate(network, b"mul", x, scale), weight)
    must(y.id >= 0)
    must(group(network, b"w*", c.byref(Group(rate_factor=0.5, has_weight_decay=True, weight_decay=1e-4))) == 0)
    trainer = compile_network(network, y, c.byref(Short(learning_rate=0.5)))
    must(trainer)
    random.seed(1)
    labels = [random.randrange(classes) for _ in range(samples)]
    values = [random.gauss(0, 1) + 2 * (i % classes == label) for label in labels for i in range(features)]
    images, targets = (c.c_float * len(values))(*values), (c.c_int32 * samples)(*labels)
    feeds = (Feed * 2)(Feed(b"x", F32, c.addressof(images)), Feed(b"targets", I32, c.addressof(targets)))
    metrics, losses = Metrics(), []
    for _ in range(20):
        must(train_step(trainer, feeds, 2, samples, c.byref(metrics)) == 0)
        losses.append(metrics.loss)
    times = Times()
    must(report_times(trainer, 0, c.byref(times)) == 0)
    if times.steps != 20 or times.step_s <= 0:
        sys.exit(f"binding.py: {times.steps} steps took {times.step_s} s")
    for function, made in zip(free, (trainer, network, runtime)):
        function(made)
    if not math.isfinite(losses[-1]) or losses[-1] > losses[0] / 2:
        sys.exit(f"binding.py: the loss went from {losses[0]} to {losses[-1]}")


main()
