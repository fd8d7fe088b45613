"""What a module returns in evaluation mode, for any number of samples."""
import torch

from .. import _trainer, errors
from .._feeds import Feeds, paired
from . import fourier
from .graph import Walk
from .values import Loss, Refused, Value, as_real


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


def state_of(tensor):
    """What changes where a tensor's numbers do. Those of inference mode do not tell: they change always."""
    return object() if tensor.is_inference() else (tensor.data_ptr(), tensor._version)


class Predictor:
    """A network of the module in evaluation mode. `listed`: the module's parameters and buffers by name, whose values it follows."""

    def __init__(self, program, listed, runtime, batch_size):
        try:
            self.walk = walk = Walk(program, lambda targets: False, runtime, infers=True)
            self.outputs = [output(walk, one) for one in walk.found]
        except Refused as refusal:
            raise errors.UnsupportedError(f"tutti.torch cannot run this module: {refusal}") from None
        self.structure = program.call_spec.out_spec
        self.fetched = [part for one in self.outputs for part in getattr(one, "parts", (one,)) if hasattr(part, "tensor")]
        if not self.fetched or len(self.fetched) > 16:
            raise errors.UnsupportedError(f"the module returns {len(self.fetched)} tensors that depend on its input: 1 to 16 are possible")
        first, *more = [one.tensor for one in self.fetched]
        self.trainer = _trainer.Trainer(first, batch_size=batch_size, **({"outputs": more} if more else {}))
        self.names = walk.parameters | walk.statistics
        self.tensors = {target: listed[target] for target in {**self.names, **dict.fromkeys(walk.baked)} if target in listed}
        self.states = {target: state_of(tensor) for target, tensor in self.tensors.items()}

    def follow(self, listed):
        """Takes other tensors as those of the module."""
        self.tensors = {target: listed[target] for target in self.tensors}

    @property
    def is_outdated(self):
        """Whether numbers have changed that are constants of the network."""
        return any(state_of(self.tensors[target]) != self.states[target] for target in self.walk.baked if target in self.tensors)

    def push(self):
        for target, name in self.names.items():
            state = state_of(self.tensors[target])
            if state != self.states[target]:
                self.trainer.parameters[name] = as_real(self.tensors[target].detach()).cpu().numpy()
                self.states[target] = state

    def run(self, arrays):
        self.push()
        feeds = Feeds(paired(self.trainer.ports, dict(zip(self.walk.inputs, (array.detach().cpu().numpy() for array in arrays)))))
        found = iter(self.trainer.fetched(feeds, [one.tensor for one in self.fetched]))
        made = [one.taken(found) if isinstance(one, (Output, ComplexOutput)) else one for one in self.outputs]
        return torch.utils._pytree.tree_unflatten(made, self.structure)
