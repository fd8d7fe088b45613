"""Tutti trains one neural network on every OpenCL device of a machine, from any vendor.

    import tutti
    net = tutti.models.lenet(classes=10)
    trainer = tutti.Trainer(net, loss="cross_entropy", optimizer=tutti.SGD(0.05, momentum=0.9))
    history = trainer.fit(x, y, epochs=5, batch_size=64, validation_data=(xt, yt))
    trainer.predict(xt)

Shapes are those of one sample, without the batch. Functions that add layers are in tutti.layers, every operation in
tutti.ops; both are found in tutti too."""
from . import _drivers  # noqa: F401, I001: before the library is loaded
from . import callbacks, data, errors, layers, models, ops
from ._native import ffi, lib
from ._network import Network, Tensor, load
from ._runtime import Device, Runtime, devices, use
from ._fit import Metrics
from ._generator import Generator
from ._inference import View
from ._tokenizer import Tokenizer
from ._trainer import Reader, Trainer
from .callbacks import History
from .errors import *  # noqa: F403
from .layers import *  # noqa: F403
from .optimizers import SGD, Adagrad, Adam, AdamW, Lion, NAdam, Optimizer, RMSprop

SEQUENCE = lib.TUTTI_SEQUENCE   # the length of sequences in the shape of an input
__version__ = ffi.string(lib.tutti_version()).decode()
__all__ = ["SEQUENCE", "SGD", "Adagrad", "Adam", "AdamW", "Device", "Generator", "History", "Lion", "Metrics", "NAdam", "Network", "Optimizer", "RMSprop",
           "Reader", "Runtime", "Tensor", "Tokenizer", "Trainer", "View", "callbacks", "data", "devices", "errors", "layers", "load", "models", "ops", "use", *errors.__all__, *layers.__all__]


def __getattr__(name):
    """Operations that have no function of their own."""
    try:
        return getattr(ops, name)
    except AttributeError:
        raise AttributeError(f"module 'tutti' has no attribute {name!r}") from None


def __dir__():
    return sorted({*globals(), *dir(ops)})
