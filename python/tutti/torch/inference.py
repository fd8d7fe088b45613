"""What a module returns in evaluation mode, for any number of samples."""
import numpy
import torch

from .. import _trainer, errors
from .._feeds import Feeds, paired
from .._native import ffi, lib
from .graph import Walk
from .values import Loss, Refused, Value


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


class Predictor:
    """A network of the module in evaluation mode. `listed`: the module's parameters and buffers by name, whose values it follows."""

    def __init__(self, program, listed, runtime, batch_size):
        try:
            self.walk = walk = Walk(program, lambda targets: False, runtime, infers=True)
            self.outputs = [Output(walk, one) if isinstance(one, (Loss, Value)) else one for one in walk.found]
        except Refused as refusal:
            raise errors.UnsupportedError(f"tutti.torch cannot run this module: {refusal}") from None
        self.structure = program.call_spec.out_spec
        self.fetched = [one for one in self.outputs if hasattr(one, "tensor")]
        if not self.fetched or len(self.fetched) > 16:
            raise errors.UnsupportedError(f"the module returns {len(self.fetched)} tensors that depend on its input: 1 to 16 are possible")
        first, *more = [one.tensor for one in self.fetched]
        self.trainer = _trainer.Trainer(first, batch_size=batch_size, **({"outputs": more} if more else {}))
        self.held = {name: listed[target] for target, name in (walk.parameters | walk.statistics).items()}
        self.baked = {name: (listed[name], listed[name]._version) for name in walk.baked if name in listed}
        self.versions = {name: tensor._version for name, tensor in self.held.items()}

    @property
    def is_outdated(self):
        """Whether numbers have changed that are constants of the network."""
        return any(tensor._version != version for tensor, version in self.baked.values())

    def push(self):
        for name, tensor in self.held.items():
            if tensor._version != self.versions[name]:
                self.trainer.parameters[name] = tensor.detach().cpu().numpy()
                self.versions[name] = tensor._version

    def run(self, arrays):
        self.push()
        feeds = Feeds(paired(self.trainer.ports, dict(zip(self.walk.inputs, (array.detach().cpu().numpy() for array in arrays)))))
        values = [numpy.empty((feeds.samples, *one.tensor.shape), "float32") for one in self.fetched]
        fetches = ffi.new("tutti_fetch[]", len(values))
        for fetch, one, array in zip(fetches, self.fetched, values):
            fetch.tensor, fetch.dtype, fetch.data = one.tensor.c, lib.TUTTI_DTYPE_F32, ffi.cast("void *", array.ctypes.data)
        with self.trainer.lock:
            errors.check(lib.tutti_infer(self.trainer.compiled(1), feeds.array, feeds.count, feeds.samples, fetches, len(values)))
        found = iter(values)
        made = [one if not isinstance(one, Output) else one.torch(next(found)) if hasattr(one, "tensor") else one.value.known.clone() for one in self.outputs]
        return torch.utils._pytree.tree_unflatten(made, self.structure)
