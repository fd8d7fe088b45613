"""Networks and trainers as bytes: a network is the calls that built it, which are made again; a trainer is its options and a
checkpoint. So they can be pickled and copied, and sent to processes that were spawned."""
import os
import tempfile

from ._native import ffi, lib

# How a trainer's files are named, and what each is saved and loaded with.
CHECKPOINT = ("m.safetensors", "m.state.safetensors")
runtimes: dict[str, object] = {}


class Id(int):
    """A tensor of the network."""


class Null:
    """What the library takes as nothing."""


class Out:
    """Where the library writes a tensor."""


def function_name(function):
    """A function of the library by its name, or a model's by that of the model."""
    if not isinstance(function, ffi.CData):
        return function.__name__
    position = 0
    while lib.model_at(position) != ffi.NULL:
        model = lib.model_at(position)
        for member in ("build", "build_for"):
            if function == getattr(model, member):
                return position, member
        position += 1
    raise TypeError(f"{function} cannot be pickled")


def function_of(name):
    return getattr(lib, name) if isinstance(name, str) else getattr(lib.model_at(name[0]), name[1])


def portable(value):
    """A member of options without what belongs to a network."""
    if hasattr(value, "c"):
        return Id(value.c.id)
    if isinstance(value, (list, tuple)):
        return [portable(one) for one in value]
    if isinstance(value, ffi.CData):
        return None if value == ffi.NULL else Out
    return value


def written(argument, kept):
    """An argument of the library as a value that pickle takes."""
    if not isinstance(argument, ffi.CData):
        return argument
    if argument == ffi.NULL:
        return Null
    for options in kept:
        if getattr(options, "struct", None) is argument:
            return "options", options.kind, {name: portable(value) for name, value in options.members.items()}, options.lengths
    kind = ffi.typeof(argument)
    if kind.kind == "struct":
        return Id(argument.id) if "tutti_tensor" in kind.cname else ("shape", list(argument.sizes[0:argument.rank]))
    if kind.kind == "array":
        if "tutti_tensor" in kind.item.cname:
            return "tensors", [Id(one.id) for one in argument]
        return "array", kind.item.cname, bytes(ffi.buffer(argument))
    if "tutti_tensor" in kind.cname:
        return Out
    return "struct", kind.cname, bytes(ffi.buffer(argument))


class Reader:
    """Makes arguments again, and holds what they lead to."""

    def __init__(self, network):
        self.network, self.kept, self.outs = network, [], []

    def keep(self, made):
        self.kept.append(made)
        return made

    def tensor(self, number):
        from ._network import Tensor
        return Tensor(self.network, ffi.new("tutti_tensor *", {"id": number})[0])

    def out(self):
        self.outs.append(ffi.new("tutti_tensor *"))
        return self.outs[-1]

    def member(self, value):
        if value is Out:
            return self.out()
        if isinstance(value, Id):
            return self.tensor(value)
        return [self.member(one) for one in value] if isinstance(value, list) else value

    def argument(self, value):
        if value is Null or value is Out:
            return ffi.NULL if value is Null else self.out()
        if isinstance(value, Id):
            return self.tensor(value).c
        if not isinstance(value, tuple):
            return value
        return getattr(self, value[0])(*value[1:])

    def options(self, kind, members, lengths):
        from ._call import Options
        return self.keep(Options(kind, {name: self.member(value) for name, value in members.items()}, None, lengths)).struct

    def shape(self, sizes):
        return self.keep(ffi.new("tutti_shape *", {"rank": len(sizes), "sizes": sizes}))[0]

    def tensors(self, numbers):
        return self.keep(ffi.new("tutti_tensor[]", [{"id": number} for number in numbers]))

    def array(self, item, values):
        room = self.keep(ffi.new(f"{item}[]", len(values) // ffi.sizeof(item)))
        ffi.buffer(room)[:] = values
        return room

    def struct(self, kind, values):
        room = self.keep(ffi.new(kind))
        ffi.buffer(room)[:] = values
        return room


def call(network, name, *arguments):
    """Makes a call of a journal again."""
    reader = Reader(network)
    given = [reader.argument(argument) for argument in arguments]
    if isinstance(name, str) and name.startswith("."):     # a method
        getattr(network, name[1:])(*(reader.member(argument) for argument in arguments))
    else:
        network.add_layer(function_of(name), given, reader.outs, reader.kept)


def runtime_of(options):
    """The runtime of these options: the default one where there are none."""
    from ._runtime import Runtime, default_runtime
    if not options:
        return default_runtime()
    key = repr(sorted(options.items()))
    if key not in runtimes:
        runtimes[key] = Runtime(**options)
    return runtimes[key]


def network_of(runtime, loaded, journal, defaults, last, named):
    from ._network import Network, load
    if loaded:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "network.onnx")
            with open(path, "wb") as file:
                file.write(loaded[0])
            network = load(path, runtime=runtime_of(runtime), **loaded[1])
    else:
        network = Network(runtime_of(runtime))
    for entry in journal:
        call(network, *entry)
    reader = Reader(network)
    network.defaults = defaults
    network.last = None if last is None else reader.tensor(last)
    network.named = [reader.tensor(number) for number in named]
    return network


def network_parts(network):
    """What network_of() makes a network of."""
    if network.journal is None:
        raise TypeError("this network cannot be pickled: it was made of a module of PyTorch; pickle the module")
    loaded = None
    if network.loaded:
        with open(network.loaded[0], "rb") as file:
            loaded = file.read(), network.loaded[1]
    return (network.runtime.options, loaded, network.journal, network.defaults, None if network.last is None else network.last.c.id,
            [tensor.c.id for tensor in network.named])


def tensor_of(network, number):
    return Reader(network).tensor(number)


def checkpoint_of(trainer):
    """The files of a checkpoint, or of weights alone where nothing trains, by their names."""
    if trainer._pointer is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        trainer.save(os.path.join(folder, "m" if trainer.trains else CHECKPOINT[0]))
        found = {}
        for name in CHECKPOINT[:1 + trainer.trains]:
            with open(os.path.join(folder, name), "rb") as file:
                found[name] = file.read()
        return found


def trainer_of(members, checkpoint):
    from ._trainer import Trainer
    trainer = Trainer.__new__(Trainer)
    trainer.__dict__.update(members)
    trainer.lock, trainer.parent, trainer.fitting = trainer.network.lock, trainer.network, False
    if checkpoint:
        trainer.compiled(trainer.options["batch"])
        with tempfile.TemporaryDirectory() as folder:
            for name, values in checkpoint.items():
                with open(os.path.join(folder, name), "wb") as file:
                    file.write(values)
            trainer.load(os.path.join(folder, "m" if len(checkpoint) == 2 else CHECKPOINT[0]))
        trainer.resumed = members["resumed"]
        if trainer.trains:
            trainer.begin_anew()
    return trainer
