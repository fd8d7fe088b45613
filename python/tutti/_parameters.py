"""Parameters and gradients of a trainer by their names: what is assigned to a part of one is written to the devices."""
from collections.abc import Mapping

import numpy

from ._call import shape_of
from ._native import ffi, lib
from .errors import check


class Values:
    """The values of one parameter or gradient. Indices read and write them; numpy functions read them."""

    def __init__(self, owner, name, shape, trained):
        self.owner, self.name, self.shape, self.trained = owner, name, shape, trained

    def numpy(self):
        """A copy."""
        values = numpy.empty(self.shape, "float32")
        with self.owner.trainer.lock:
            check(self.owner.get(self.owner.trainer.pointer, self.name.encode(), ffi.from_buffer("float[]", values.reshape(-1)), values.size))
        return values

    def __array__(self, dtype=None, copy=None):
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    def __getitem__(self, index):
        return self.numpy()[index]

    def __setitem__(self, index, values):
        changed = self.numpy()
        changed[index] = values
        self.owner.write(self, changed)

    def __len__(self):
        return self.shape[0]

    def __repr__(self):
        return f"{self.name} {list(self.shape)}{'' if self.trained else ', not trained'}"


class Gradients(Mapping):
    """The gradients of the last step by the names of the parameters: means over the batch."""
    get_function = "tutti_get_gradient"

    def __init__(self, trainer):
        self.trainer, self.get, self.known = trainer, getattr(lib, self.get_function), {}
        name, shape, trained = ffi.new("const char **"), ffi.new("tutti_shape *"), ffi.new("bool *")
        while lib.tutti_parameter_info(trainer.network.pointer, len(self.known), name, shape, trained) == lib.TUTTI_OK:
            text = ffi.string(name[0]).decode()
            self.known[text] = Values(self, text, shape_of(shape), trained[0])

    def __getitem__(self, name):
        return self.known[name]

    def __iter__(self):
        return iter(self.known)

    def __len__(self):
        return len(self.known)

    def write(self, values, array):
        raise TypeError(f"{type(self).__name__} are read only")

    def __repr__(self):
        return "\n".join(map(repr, self.known.values()))


class Parameters(Gradients):
    """Parameters and running statistics by the names that files of weights have."""
    get_function = "tutti_get_parameter"

    def write(self, values, array):
        array = numpy.ascontiguousarray(array, "float32")
        with self.trainer.lock:
            check(lib.tutti_set_parameter(self.trainer.pointer, values.name.encode(), ffi.from_buffer("float[]", array.reshape(-1)), array.size))

    def __setitem__(self, name, array):
        values, array = self.known[name], numpy.asarray(array, "float32")
        if array.shape != values.shape:
            raise ValueError(f"{name} has the shape {list(values.shape)}, the array {list(array.shape)}")
        self.write(values, array)
