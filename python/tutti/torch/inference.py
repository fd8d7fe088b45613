"""What a module returns in evaluation mode, for any number of samples."""
import functools

import numpy
import torch

from .. import _trainer, errors
from .._feeds import Feeds, paired
from . import fourier, watched
from .graph import Walk
from .host import feeds as feeds_of
from .values import EXACT, ROUNDS, Loss, Refused, Value, as_real, is_whole


class Output:
    """One tensor that the module returns: where it is fetched from, and its shape in PyTorch."""

    def __init__(self, walk, value):
        self.value = value
        if isinstance(value, Loss):
            raise errors.UnsupportedError("the module returns a number of the whole batch")
        if isinstance(value, Value) and value.known is None:
            if value.tensor.dtype != "float32":
                raise errors.UnsupportedError("the module returns whole numbers of its input")
            self.tensor = walk.spread(value)

    def torch(self, array):
        """The tensor of PyTorch from [samples][shape in the network]."""
        value = self.value
        if is_whole(value.dtype):
            check_whole(array)
        (sizes, axis), samples = value.shape, len(array)
        made = torch.from_numpy(array)
        if axis is None:
            made = made[0].reshape(sizes)
        else:
            made = made.reshape(samples, *sizes[:axis], value.outer, value.rows, *sizes[axis + 1:])
            made = made.movedim(0, axis + 1).reshape(*sizes[:axis], value.outer * samples * value.rows, *sizes[axis + 1:])
        return made.to(value.dtype)

    def taken(self, arrays):
        return self.torch(next(arrays)) if hasattr(self, "tensor") else self.value.known.clone()


def check_whole(array):
    if array.size and not numpy.abs(array).max() < EXACT:
        raise errors.UnsupportedError(ROUNDS)


class ComplexOutput:
    """A complex tensor that the module returns, of two."""

    def __init__(self, walk, value):
        self.parts = Output(walk, value.real), Output(walk, value.imaginary)

    def taken(self, arrays):
        return torch.complex(*torch.broadcast_tensors(*[part.taken(arrays) for part in self.parts]))


def output(walk, one):
    """What the module returns, of what the walk has for it: outputs, or constants of Python."""
    if isinstance(one, fourier.Complex):
        return ComplexOutput(walk, one)
    return Output(walk, one) if isinstance(one, (Loss, Value)) else one


WHOLE, PROBES = 4096, 64     # a tensor of so many numbers is compared in full; of a larger one so many numbers, apart from each other


def probe_of(tensor):
    """The numbers of a tensor that are compared, as a view of its memory; None: there is none."""
    if tensor.device.type != "cpu" or tensor.is_conj() or tensor.is_neg() or tensor.dtype in (torch.bfloat16, torch.complex32):
        return None
    array = tensor.numpy()
    if array.size <= WHOLE:
        return array
    along = PROBES ** (1 / array.ndim)
    return array[tuple(slice(None, None, max(1, int(size / along))) for size in array.shape)]


class State:
    """What a tensor is when its numbers are taken. PyTorch counts writes, but not those through .data, or through an array that shares
    the memory: these are seen by the numbers themselves. Tensors of inference mode do not tell: they change always."""

    def __init__(self, tensor):
        self.version = None if tensor.is_inference() else tensor._version
        self.held = tensor.detach()     # while it lives, no other tensor gets its address
        self.probe = probe_of(self.held)
        self.numbers = None if self.probe is None else self.probe.tobytes()

    def is_of(self, tensor):
        """Whether the tensor has the same numbers, as far as that is seen."""
        if tensor.is_inference() or tensor._version != self.version:
            return False
        if tensor.data_ptr() != self.held.data_ptr() or tensor.stride() != self.held.stride():
            return False
        return self.probe is None or self.probe.tobytes() == self.numbers


class Predictor:
    """A network of the module in evaluation mode. `listed`: the module's parameters and buffers by name, whose values it follows."""

    def __init__(self, program, listed, runtime, batch_size):
        try:
            self.walk = walk = Walk(program, lambda targets: False, runtime, infers=True)
            self.outputs = [output(walk, one) for one in walk.found]
            if walk.counters:
                raise Refused(f"it writes into the buffer {next(iter(walk.counters))}")
        except Refused as refusal:
            raise errors.UnsupportedError(f"tutti.torch cannot run this module: {refusal}") from None
        self.structure = program.call_spec.out_spec
        self.fetched = [part for one in self.outputs for part in getattr(one, "parts", (one,)) if hasattr(part, "tensor")]
        most = 15 if walk.wholes else 16
        if not self.fetched or len(self.fetched) > most:
            raise errors.UnsupportedError(f"the module returns {len(self.fetched)} tensors that depend on its input: 1 to {most} are possible")
        self.wanted = [one.tensor for one in self.fetched]
        if walk.wholes:
            self.wanted.append(functools.reduce(lambda one, other: walk.op("max", one, other), walk.wholes))
        first, *more = self.wanted
        self.trainer = _trainer.Trainer(first, batch_size=batch_size, **({"outputs": more} if more else {}))
        self.baked = [(one, State(one)) for one in watched.baked_constants(program, listed)]
        self.names = walk.parameters | walk.statistics
        self.tensors = {target: listed[target] for target in {**self.names, **dict.fromkeys(walk.baked)} if target in listed}
        self.states = {target: State(tensor) for target, tensor in self.tensors.items()}

    def follow(self, listed):
        """Takes other tensors as those of the module."""
        self.tensors = {target: listed[target] for target in self.tensors}

    @property
    def is_outdated(self):
        """Whether numbers have changed that are constants of the network."""
        held = [(self.tensors[target], self.states[target]) for target in self.walk.baked if target in self.tensors]
        return any(not state.is_of(one) for one, state in [*held, *self.baked])

    def push(self):
        for target, name in self.names.items():
            tensor = self.tensors[target]
            if not self.states[target].is_of(tensor):
                self.trainer.parameters[name] = as_real(tensor.detach()).cpu().numpy()
                self.states[target] = State(tensor)

    def run(self, arrays):
        self.push()
        arrays = [array.detach().cpu() for array in arrays]
        given = dict(zip(self.walk.inputs, (array.numpy() for array in arrays))) | feeds_of(self.walk, arrays)
        for array in given.values():
            if self.walk.reads_wholes and array.dtype.kind == "i":
                check_whole(array)
        feeds = Feeds(paired(self.trainer.ports, given))
        found = self.trainer.fetched(feeds, self.wanted)
        if self.walk.wholes:
            check_whole(found.pop())
        found = iter(found)
        made = [one.taken(found) if isinstance(one, (Output, ComplexOutput)) else one for one in self.outputs]
        return torch.utils._pytree.tree_unflatten(made, self.structure)
