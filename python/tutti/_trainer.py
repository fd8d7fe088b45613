"""Training, evaluation and prediction."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy

from . import _fit, _pickling, layers
from ._batches import Batches
from ._call import Options, encoded
from ._feeds import Feeds, Port, Source, is_large, paired, plain, ports_of
from ._fit import Metrics
from ._handle import Handle, taken
from ._native import ffi, lib
from ._losses import loss_name
from ._network import Network, Tensor
from ._parameters import Gradients, Parameters, States, StatesByName
from ._values import near, number, shown, whole
from .callbacks import History, called_by
from .errors import by_status, check, made
from .optimizers import optimizer_options

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from typing_extensions import Unpack

    from ._options import FittingOptions, Schedule, ScheduleKind, TrainingOptions
    from ._types import Array, CallbackLike, Inputs, Path, Samples
    from .optimizers import Optimizer

# Losses that tutti_training.loss has, for which targets are fed without an input of theirs.
SIMPLE = {"cross_entropy": lib.TUTTI_CROSS_ENTROPY, "mse": lib.TUTTI_MSE}
CLASSES = ("cross_entropy", "nll")
# Members of tutti_training that it does not take: what it sets itself, and what is for programs in C.
NOT_TAKEN = {"size", "batch", "parameters_of", "carries"}
OPTIONS = ["batch_size", *(name for name, _ in ffi.typeof("tutti_training").fields if name not in NOT_TAKEN and not name.endswith("_count"))]
# What to write in place of options of other packages.
INSTEAD = {"metrics": ": fit() and evaluate() give the loss and, of classes, the accuracy; others are computed from predict(), as in callbacks",
           "lr": ": write learning_rate=0.1, or optimizer=tutti.SGD(0.1)", "device": ": call tutti.use(\"gpu\") before you make the network",
           "batch": ": write batch_size"}
PREDICTED = 4096     # samples that predict() reads at once where they are not an array


class Position(NamedTuple):
    steps: int
    updates: int
    epoch: int


class Trainer(Handle):
    """Trains a network on the devices of its runtime.

    network    a Network, whose first output is trained, or the tensor to train
    loss       "cross_entropy", "mse", "bce_with_logits", "nll", "l1", "huber"; a tensor that a loss function returned, or a
               list of them; None: a model's own, else inference only
    optimizer  tutti.SGD(0.1, momentum=0.9), ...; or its name; None: a model's own, else SGD
    batch_size the largest batch; None: that of the first call

    Other options are those of tutti_training: seed, precision="bf16", clip_norm, ema_decay, sync_batchnorm, ..."""
    closed = False

    def __init__(self, network: Network | Tensor, loss: str | Tensor | Sequence[Tensor] | None = None, optimizer: Optimizer | str | None = None, *,
                 batch_size: int | None = None, seed: int = 0, **options: Unpack[TrainingOptions]) -> None:
        if not isinstance(network, (Network, Tensor)):
            raise TypeError(f"Trainer() takes a network, or the tensor to train, not {shown(network)}"
                            + ("; tutti.torch.Trainer() trains modules of PyTorch" if hasattr(network, "state_dict") else ""))
        if isinstance(network, Network) and not network.outputs:
            network.pointer     # raises if it was closed
            raise ValueError("the network has no layer")
        self.output: Tensor = network if isinstance(network, Tensor) else network.outputs[0]
        for name in options:
            if name not in OPTIONS:
                raise TypeError(f"Trainer() has no option {name!r}" + INSTEAD.get(name, near(name, OPTIONS)))
        self.network = self.output.network
        self.lock, self.parent = self.network.lock, self.network
        self.batch_size = None if batch_size is None else whole("batch_size", batch_size, 1)
        defaults = dict(self.network.defaults)
        own = defaults.pop("loss", lib.TUTTI_LOSS_NONE)
        self.options = {**optimizer_options(optimizer, defaults), "seed": seed, **options}
        self.ports, self.history, self.fitting, self.resumed = None, History(), False, False
        if loss is None:
            self.take_loss(own)
        else:
            self.set_loss(loss)

    def set_loss(self, loss: str | Tensor | Sequence[Tensor]) -> None:
        """Sets the members of tutti_training for the loss, and the inputs and targets that training reads."""
        if isinstance(loss, str):
            loss = loss_name(loss)
        elif not isinstance(loss, Tensor) and not (isinstance(loss, (list, tuple)) and loss and all(isinstance(one, Tensor) for one in loss)):
            raise TypeError(f"the loss is {'a ' + type(loss).__name__ if callable(loss) else shown(loss)}: give a name, as \"mse\", or a tensor, "
                            "as tutti.mean() of the network's output makes, or a list of tensors")
        self.take_loss(loss)

    def take_loss(self, loss):
        """Does what set_loss() does with a loss that was checked: a name, a number of tutti_loss, or tensors."""
        shape, targets = self.output.shape, None
        if isinstance(loss, str):
            if loss in SIMPLE and (loss not in CLASSES or len(shape) == 1):
                loss = SIMPLE[loss]
            else:
                wanted = (shape[1:], "int32") if loss in CLASSES else (shape, "float32")
                there = self.network.inputs.get("targets")
                loss = getattr(layers, loss)(self.output, there or self.network.input("targets", *wanted))
        if isinstance(loss, (Tensor, list, tuple)):
            self.options |= {"losses": loss, "loss": lib.TUTTI_LOSS_NONE}
        else:
            self.options["loss"] = loss
            if loss == lib.TUTTI_CROSS_ENTROPY:
                targets = Port("targets", "int32", (), True)
            elif loss == lib.TUTTI_MSE:
                targets = Port("targets", "float32", shape, True)
        self.ports = ports_of(self.network) + ([targets] if targets else [])

    # ----------------------------------------------------------------------------------------------- compilation ----

    @property
    def pointer(self) -> Any:
        return super().pointer if self._pointer is not None else self.compiled(self.batch_size or 32)

    def close(self) -> None:
        """Frees it, once nothing uses it any more."""
        self.closed = True
        super().close()

    def compiled(self, batch, length=0):
        """The library's trainer for batches of at least this size. A larger one than before makes it anew, with its training."""
        with self.lock:
            if self.closed:
                raise ValueError("this Trainer was closed")
            if self._pointer is not None:
                pointer = super().pointer
                if batch <= self.options["batch"]:
                    return pointer
                if self.fitting:
                    raise ValueError(f"a batch of {batch} samples is larger than that of the running fit(), {self.options['batch']}")
            options = {**self.options, "batch": max(batch, self.batch_size or 0)}
            if length and not options.get("sequence"):
                options["sequence"] = length
            snapshot = made(lib.tutti_snapshot_take(self._pointer)) if self._pointer is not None else None
            try:
                self.replace(options, snapshot)
            finally:
                lib.tutti_snapshot_free(snapshot or ffi.NULL)
            return super().pointer

    def replace(self, options, snapshot):
        losses = options.get("losses", ())
        lengths = {"shares": len(self.network.runtime.devices), "loss_weights": len(losses) if isinstance(losses, (list, tuple)) else 1}
        given = Options("tutti_training", options, None, lengths)
        made_now = made(lib.tutti_compile(self.network.pointer, self.output.c, given.struct))
        if snapshot is not None:
            check(lib.tutti_snapshot_restore(made_now, snapshot))
            lib.tutti_trainer_free(self._pointer)
            self._pointer = made_now
            self.begin_anew()
        else:
            Handle.__init__(self, made_now, lambda pointer: self.lock.free(lib.tutti_trainer_free, pointer), self.network)
        self.options = options

    def feeds(self, x, y=None):
        return Feeds(paired(self.ports, x, y))

    def restore(self, snapshot: Any) -> None:
        """Sets weights and optimizer states of a snapshot."""
        with self.lock:
            check(lib.tutti_snapshot_restore(self.pointer, snapshot))
            self.begin_anew()

    def begin_anew(self):
        """The library would continue the training of a snapshot: the next fit() trains all its epochs, unless after load()."""
        if not self.resumed:
            self.position = self.position._replace(epoch=0)

    # ------------------------------------------------------------------------------------------------- training ----

    def step(self, x: Inputs, y: Array | None = None) -> Metrics:
        """Trains on one batch, and returns its loss and accuracy."""
        metrics = self.trained(paired(self.ports, x, y))
        return Metrics(metrics.loss, metrics.accuracy, metrics.samples)

    def trained(self, pairs):
        """The same of arrays with their inputs; returns tutti_metrics."""
        feeds, metrics = Feeds(pairs), ffi.new("tutti_metrics *")
        with self.lock:
            pointer = self.compiled(self.batch_size or feeds.samples, feeds.length)
            _fit.check_finite(lib.tutti_train_step(pointer, feeds.array, feeds.count, feeds.samples, metrics), feeds.pairs)
        return metrics

    def backward(self, x: Inputs, y: Array | None = None) -> Metrics:
        """Computes losses and gradients, and updates nothing: apply() does, after `gradients` were read or changed."""
        feeds, metrics = self.feeds(x, y), ffi.new("tutti_metrics *")
        with self.lock:
            pointer = self.compiled(self.batch_size or feeds.samples, feeds.length)
            check(lib.tutti_backward(pointer, feeds.array, feeds.count, feeds.samples, metrics))
        return Metrics(metrics.loss, metrics.accuracy, metrics.samples)

    def apply(self) -> None:
        """Updates the parameters by the gradients of backward(), and counts a step."""
        with self.lock:
            check(lib.tutti_apply(self.pointer))

    def fit(self, x: Samples, y: Array | None = None, epochs: int = 1, batch_size: int | None = None, validation_data: Samples | None = None, *,
            shuffle: bool = True, verbose: bool | int | None = None, callbacks: CallbackLike | Sequence[CallbackLike] | None = None,
            callback: CallbackLike | None = None, schedule: ScheduleKind | Schedule | None = None, steps_per_epoch: int | None = None,
            **options: Unpack[FittingOptions]) -> History:
        """Trains for some epochs, and returns the losses and accuracies of each, which `history` keeps.

        x, y            arrays; or x is tutti.data, or batches (x, y): a generator, a function that returns one, a DataLoader
        validation_data (x, y), or as x; that of tutti.data comes by itself
        callbacks       of tutti.callbacks, or functions(epoch, numbers), which end the training by returning True
        verbose         shows progress; None: on a terminal and in a notebook
        schedule        a kind of tutti_schedule, as "cosine", or a dictionary of its members
        steps_per_epoch for generators that do not end

        lengths         of the sequences of each sample, whole numbers: each batch of arrays is cut to its longest one, and what is after
                        a sample's length in the batch is padding, which a mask or labels of -100 leave out; val_lengths: of validation_data
        buckets         with lengths: makes batches of samples of similar lengths, in so many ranges

        Other options are those of tutti_fitting: save, resume, patience, save_best, steps. Ctrl-C ends it after a step, having
        saved if asked to."""
        given = [*(callbacks if isinstance(callbacks, (list, tuple)) else [callbacks] if callbacks is not None else []), *([callback] if callback is not None else [])]
        if validation_data is None and hasattr(x, "parts"):
            validation_data = x
        return _fit.fit(self, x, y, epochs, batch_size, validation_data, shuffle, called_by(given, verbose), schedule, steps_per_epoch, options)

    def evaluate(self, x: Samples, y: Array | None = None) -> Metrics:
        """Loss and accuracy in inference mode, of what fit() takes; of tutti.data, those of its test or held-out samples."""
        data: Any = x
        given = _fit.training_of(self, (data.test or data.val) if hasattr(x, "parts") else x, y)
        with self.lock:
            return _fit.evaluate(self, given)

    def predict(self, x: Samples, out: Any = None) -> Any:
        """The network's output for each sample, of what fit() takes, or of tutti.data's parts. out: an array or a tensor of another
        package, float32 in the host's memory, that the outputs are written to."""
        found = [self.inferred(feeds) for feeds in self.inference_feeds(x)]
        values = found[0] if len(found) == 1 else numpy.concatenate(found) if found else numpy.empty((0, *self.output.shape), "float32")
        if out is None:
            return values
        room = plain(out, "out")
        if isinstance(out, (list, tuple)) or not room.flags.writeable:
            raise TypeError(f"out is {shown(out)}, which cannot be written to: give an array, as numpy.empty(shape, \"float32\")")
        if room.shape != values.shape:
            raise ValueError(f"out has the shape {list(room.shape)}; the outputs have {list(values.shape)}")
        room[...] = values
        return out

    def inference_feeds(self, x):
        """Feeds of all samples: one of arrays, or one for each batch of what comes in batches."""
        if hasattr(x, "source_of"):
            x.check(self)
            ports = [port for port in self.ports if not port.is_targets]
            for begin in range(0, len(x), PREDICTED):
                yield Feeds(paired(ports, x.read(numpy.arange(begin, min(begin + PREDICTED, len(x))))[0]))
            return
        given = _fit.training_of(self, x)
        if isinstance(given, Feeds):
            if given.samples:
                yield given
        elif isinstance(given, Batches):
            yield from map(Feeds, given.inputs())
        else:
            pairs = list(given.pairs.values())
            for begin in range(0, given.samples, PREDICTED):
                yield Feeds([(port, array[begin:begin + PREDICTED]) for port, array in pairs])

    def inferred(self, feeds):
        return self.fetched(feeds, [self.output])[0]

    def fetched(self, feeds, tensors):
        """Arrays [samples][shape of a sample] of outputs: of the first one, or of the option `outputs`."""
        shapes = [[feeds.length if size == -2 else size for size in tensor.shape] for tensor in tensors]
        values = [numpy.empty((feeds.samples, *shape), "float32") for shape in shapes]
        fetches = ffi.new("tutti_fetch[]", len(values))
        for fetch, tensor, array in zip(fetches, tensors, values):
            fetch.tensor, fetch.dtype, fetch.data = tensor.c, lib.TUTTI_DTYPE_F32, ffi.cast("void *", array.ctypes.data)
        with self.lock:
            check(lib.tutti_infer(self.compiled(1, feeds.length), feeds.array, feeds.count, feeds.samples, fetches, len(values)))
        return values

    def cancel(self) -> None:
        """Ends a fit() that runs in another thread after its step."""
        if self._pointer is not None:
            lib.tutti_cancel(self._pointer)

    # --------------------------------------------------------------------------------------------------- state ----

    @property
    def parameters(self) -> Parameters:
        self.pointer
        return Parameters(self)

    @parameters.setter
    def parameters(self, values: Mapping[str, Any]) -> None:
        parameters = Parameters(self)
        if not hasattr(values, "keys"):
            raise TypeError(f"parameters is a dictionary of arrays by the parameters' names, not {shown(values)}")
        for name, array in dict(values).items():
            parameters[name] = array

    @property
    def gradients(self) -> Gradients:
        self.pointer
        return Gradients(self)

    @property
    def states(self) -> dict[str, States]:
        """The optimizer's states by name, as "momentum_buffer", and by parameter: states["exp_avg"]["fc.weight"]."""
        names: list[str] = []
        while (name := lib.tutti_state_name(self.pointer, len(names))) != ffi.NULL:
            names.append(ffi.string(name).decode())
        return StatesByName({name: States(self, name) for name in names})

    @property
    def position(self) -> Position:
        """How far the training has come: (steps, updates, epoch), which can be set."""
        position = ffi.new("tutti_position *", {"size": ffi.sizeof("tutti_position")})
        check(lib.tutti_get_position(self.pointer, position))
        return Position(position.steps, position.updates, position.epoch)

    @position.setter
    def position(self, values: tuple[int, int, int]) -> None:
        if not isinstance(values, (tuple, list)) or len(values) != len(Position._fields):
            raise TypeError(f"position is {shown(values)}: it must be (steps, updates, epoch)")
        members = {name: number(name, "int64_t", value) for name, value in zip(Position._fields, values)}
        position = ffi.new("tutti_position *", {"size": ffi.sizeof("tutti_position"), **members})
        check(lib.tutti_set_position(self.pointer, position))

    @property
    def learning_rate(self) -> float:
        return lib.tutti_learning_rate(self.pointer)

    @learning_rate.setter
    def learning_rate(self, rate: float) -> None:
        check(lib.tutti_set_learning_rate(self.pointer, number("learning_rate", "float", rate)))

    def save(self, name: Path) -> None:
        """Saves a checkpoint, NAME.safetensors and NAME.state.safetensors; or weights alone, where the name ends in .safetensors."""
        path = encoded(name)
        function = lib.tutti_save_weights if path.endswith(b".safetensors") else lib.tutti_save
        with self.lock:
            check(function(self.pointer, path))

    def save_adapter(self, folder: Path) -> None:
        """Saves what trains in a network with adapters (Network.lora()), as the package PEFT reads it: a model file and a configuration."""
        with self.lock:
            check(lib.tutti_save_adapter(self.pointer, encoded(folder)))

    def save_merged(self, name: Path) -> None:
        """Saves weights to which the adapters of Network.lora() are added, for a network without adapters."""
        with self.lock:
            check(lib.tutti_save_merged(self.pointer, encoded(name)))

    def load(self, name: Path) -> None:
        """Loads what save() saved; fit() then goes on where a checkpoint was saved."""
        path = encoded(name)
        function = lib.tutti_load_weights if path.endswith(b".safetensors") else lib.tutti_resume
        with self.lock:
            check(function(self.pointer, path))
        self.resumed = function == lib.tutti_resume

    def export(self, path: Path) -> None:
        """Writes an ONNX file of the network with the present parameters."""
        with self.lock:
            if lib.tutti_network_output(self.network.pointer, 0, ffi.NULL, ffi.NULL) != lib.TUTTI_OK:
                check(lib.tutti_output(self.network.pointer, b"output", self.output.c))
            check(lib.tutti_export_onnx(self.network.pointer, self.pointer, encoded(path), ffi.NULL))

    def why(self, device: int = 0) -> str:
        """The kernel of each layer on a device, and why others were refused."""
        with self.lock:
            return taken(lib.tutti_explain(self.pointer, self.device(device), False))

    def profile(self, device: int = 0) -> str:
        """Where the time of the last plan on a device goes."""
        with self.lock:
            return taken(lib.tutti_profile(self.pointer, self.device(device), ffi.NULL))

    def device(self, position):
        devices = self.network.runtime.devices
        if not 0 <= whole("device", position) < len(devices):
            raise by_status[lib.TUTTI_INVALID](f"device {position} is not there: there are {len(devices)}, counted from 0")
        return position

    @property
    def trains(self) -> bool:
        """It has a loss."""
        return self.options["loss"] != lib.TUTTI_LOSS_NONE or bool(self.options.get("losses"))

    def __reduce__(self):
        """As a checkpoint, with the network."""
        members = {name: getattr(self, name) for name in ("network", "output", "batch_size", "options", "ports", "history", "resumed")}
        with self.lock:
            return _pickling.trainer_of, (members, _pickling.checkpoint_of(self))

    def _repr_html_(self) -> str:
        return self.network._repr_html_() + self.history._repr_html_()

    def __repr__(self) -> str:
        return f"<tutti.Trainer of {self.network.parameter_count} parameters>"
