"""Training, evaluation and prediction."""
from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy

from . import _fit, _pickling, layers
from ._batches import Batches
from ._call import Options, encoded
from ._feeds import Feeds, Port, Source, is_large, paired, plain, ports_of
from ._fit import Metrics
from ._handle import Handle, UseLock, taken
from ._inference import Carried, View, carries_of, view_of
from ._native import ffi, lib
from ._losses import loss_name
from ._network import Network, Tensor
from ._parameters import Gradients, Parameters, States, StatesByName
from ._values import near, number, shown, whole
from .callbacks import History, called_by
from .errors import by_status, check, made
from .optimizers import optimizer_options

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from typing_extensions import Unpack

    from ._options import FittingOptions, Schedule, ScheduleKind, TrainingOptions
    from ._types import Array, CallbackLike, Inputs, Path, Samples
    from .optimizers import Optimizer

# Losses that tutti_training.loss has, for which targets are fed without an input of theirs.
SIMPLE = {"cross_entropy": lib.TUTTI_CROSS_ENTROPY, "mse": lib.TUTTI_MSE}
CLASSES = ("cross_entropy", "nll")
# Members of tutti_training that it does not take: what it sets itself, and what is for programs in C.
NOT_TAKEN = {"size", "batch", "parameters_of"}
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
    loss       "cross_entropy", "mse", "bce_with_logits", "nll", "l1", "huber"; classes are the first axis of the output, or the last one
               of [tutti.SEQUENCE, classes]; a tensor that a loss function returned, or a
               list of them; None: a model's own, else inference only
    optimizer  tutti.SGD(0.1, momentum=0.9), ...; or its name; None: a model's own, else SGD
    batch_size the largest batch; None: that of the first call

    carries    [(output, input), ...] of a trainer without a loss: state that stays on the device. The output of a predict() is the
               input of the next one, which begins with zeros

    Other options are those of tutti_training: seed, precision="bf16", clip_norm, ema_decay, sync_batchnorm, ..."""
    closed = False
    begun = 0   # samples of the state that is carried; 0: it has not begun

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
        self.take_carries()
        if loss is None:
            self.take_loss(lib.TUTTI_LOSS_NONE if self.carried_to else own)
        else:
            self.set_loss(loss)

    def take_carries(self):
        """Makes what is carried outputs of the trainer. Their inputs are not fed."""
        carries = carries_of(self.options.get("carries") or [], Tensor)
        names = {tensor.c.id: name for name, tensor in self.network.inputs.items()}
        for _, tensor in carries:
            if tensor.network is not self.network or tensor.c.id not in names:
                raise ValueError("a pair of carries is (output, input): its second tensor is not an input of the network")
        self.carried_to = {names[tensor.c.id]: tensor for _, tensor in carries}
        given = self.options.get("outputs") or []
        outputs = list(given) if isinstance(given, (list, tuple)) else [given]
        known = {self.output.c.id, *(tensor.c.id for tensor in outputs if isinstance(tensor, Tensor))}
        for tensor, _ in carries:
            if tensor.c.id not in known:
                outputs.append(tensor)
                known.add(tensor.c.id)
        if carries:
            self.options |= {"carries": carries, "outputs": outputs or None}

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
        of_positions = len(shape) > 1 and shape[0] == lib.TUTTI_SEQUENCE      # which have the classes last
        if of_positions and loss == lib.TUTTI_CROSS_ENTROPY:
            loss = "cross_entropy"
        if isinstance(loss, str):
            if loss in SIMPLE and (loss not in CLASSES or len(shape) == 1):
                loss = SIMPLE[loss]
            else:
                wanted = (shape[:-1] if of_positions else shape[1:], "int32") if loss in CLASSES else (shape, "float32")
                how = {"class_axis": -1} if loss in CLASSES and of_positions else {}
                there = self.network.inputs.get("targets")
                loss = getattr(layers, loss)(self.output, there or self.network.input("targets", *wanted), **how)
        if isinstance(loss, (Tensor, list, tuple)):
            self.options |= {"losses": loss, "loss": lib.TUTTI_LOSS_NONE}
        else:
            self.options["loss"] = loss
            if loss == lib.TUTTI_CROSS_ENTROPY:
                targets = Port("targets", "int32", (), True)
            elif loss == lib.TUTTI_MSE:
                targets = Port("targets", "float32", shape, True)
        self.ports = [port for port in ports_of(self.network) if port.name not in self.carried_to] + ([targets] if targets else [])

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
                if self.begun:
                    raise ValueError(f"the state is of {self.begun} samples, but the call has {batch}: call reset_carried() before others")
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

    @contextlib.contextmanager
    def locked(self, batch: int, length: int) -> Iterator[Any]:
        """compiled(), while no other thread uses it."""
        with self.lock:
            yield self.compiled(batch, length)

    def library_trainer(self, options):
        losses = options.get("losses", ())
        lengths = {"shares": len(self.network.runtime.devices), "loss_weights": len(losses) if isinstance(losses, (list, tuple)) else 1}
        given = Options("tutti_training", options, None, lengths)
        return made(lib.tutti_compile(self.network.pointer, self.output.c, given.struct))

    def replace(self, options, snapshot):
        made_now = self.library_trainer(options)
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
        with self.locked(1, getattr(given, "length", 0)):
            return _fit.evaluate(self, given)

    def predict(self, x: Samples, out: Any = None) -> Any:
        """The network's output for each sample, of what fit() takes, or of tutti.data's parts. out: an array or a tensor of another
        package, float32 in the host's memory, that the outputs are written to."""
        given = self.inference_feeds(x)
        found = [self.inferred(feeds) for feeds in ([self.single(given)] if self.carried_to else given)]
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
        with self.locked(self.least(feeds.samples), feeds.length) as pointer:
            check(lib.tutti_infer(pointer, feeds.array, feeds.count, feeds.samples, fetches, len(values)))
            self.has_carried(feeds.samples)
        return values

    def single(self, given):
        """The only one of some feeds: a call has all samples of the state, or shows one memory."""
        feeds = list(given)
        if len(feeds) != 1:
            raise ValueError(f"the samples come in {len(feeds)} parts: give one array, of at most {PREDICTED} samples where it is converted")
        return feeds[0]

    def predict_view(self, x: Inputs, output: Tensor | None = None) -> View:
        """What predict() returns, without a copy where the trainer's only device shares the host's memory and computes all at once:

            with trainer.predict_view(x) as y:
                best = y.array.argmax(1)

        output: another one, of the option `outputs`. Until the block ends, and while an array of y is kept, calls that compute, save
        or load raise InvalidError."""
        return view_of(self, self.single(self.inference_feeds(x)), self.output if output is None else output)

    def reader(self, output: Tensor | None = None, loss: str | Tensor | Sequence[Tensor] | None = None, *, batch_size: int | None = None,
               **options: Unpack[TrainingOptions]) -> Reader:
        """A trainer that infers and evaluates with this one's parameters, as they are after the last step, also in another thread
        while this one trains. It has a batch size, devices (shares) and outputs of its own, and no copy of the parameters on the host.
        output: the tensor that it predicts; None: this trainer's. loss: for evaluate(); None: none."""
        return Reader(self, output, loss, batch_size, options)

    # ------------------------------------------------------------------------------------------- carried state ----

    def least(self, samples):
        """The batch that an inference needs: all samples at once if state is carried."""
        return samples if self.carried_to else 1

    def has_carried(self, samples):
        if self.carried_to:
            self.begun = samples

    @property
    def carried(self) -> Carried:
        """The state that the option `carries` keeps, by the names of its inputs: it can be read and set."""
        return Carried(self, self.carried_to)

    def reset_carried(self) -> None:
        """Sets the state to zeros. The next predict() may have another number of samples."""
        with self.lock:
            if self._pointer is not None or not self.carried_to:
                check(lib.tutti_reset_carried(self.pointer))
            self.begun = 0

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
        members = {name: getattr(self, name) for name in ("network", "output", "batch_size", "options", "ports", "history", "resumed", "carried_to")}
        with self.lock:
            return _pickling.trainer_of, (members, _pickling.checkpoint_of(self))

    def _repr_html_(self) -> str:
        return self.network._repr_html_() + self.history._repr_html_()

    def __repr__(self) -> str:
        return f"<tutti.Trainer of {self.network.parameter_count} parameters>"


class Reader(Trainer):
    """What Trainer.reader() returns."""

    def __init__(self, owner: Trainer, output: Tensor | None, loss: str | Tensor | Sequence[Tensor] | None, batch_size: int | None,
                 options: Mapping[str, Any]) -> None:
        self.owner, self.read = owner, None
        super().__init__(owner.output if output is None else output, loss, batch_size=batch_size, **{"sequence": owner.options.get("sequence"), **options})
        if self.network is not owner.network:
            raise ValueError("a reader's output is a tensor of the same network")
        self.lock = UseLock()   # its own, so that it infers while the other one trains

    def take_loss(self, loss):
        """A model's own loss is for training."""
        super().take_loss(lib.TUTTI_LOSS_NONE if isinstance(loss, int) and not isinstance(loss, bool) else loss)

    def is_compiled(self, batch):
        return self._pointer is not None and self.read == self.owner._pointer and batch <= self.options["batch"]

    def compiled(self, batch, length=0):
        """As the owner's, which is made anew itself for a larger batch: then so is the reader."""
        if self.closed:
            raise ValueError("this Reader was closed")
        if not self.is_compiled(batch):
            with self.network.lock, self.lock:
                if not self.is_compiled(batch):
                    self.compile(batch, length)
        return super(Trainer, self).pointer

    @contextlib.contextmanager
    def locked(self, batch: int, length: int) -> Iterator[Any]:
        """Takes the network's lock before its own, as callbacks of fit() do."""
        while True:
            self.compiled(batch, length)
            with self.lock:
                if self.is_compiled(batch):
                    yield super(Trainer, self).pointer
                    return

    def compile(self, batch, length):
        if self.begun:
            raise ValueError(f"the state is of {self.begun} samples, and of a trainer that was made for smaller batches: call reset_carried()")
        if self._pointer is not None and self._users > 1:
            raise by_status[lib.TUTTI_INVALID]("a view or an array of predict_view() is in use, and the reader must be made anew: close the view first")
        read = self.owner.pointer
        options = {**self.options, "batch": max(batch, self.batch_size or 0), "parameters_of": read}
        if length and not options.get("sequence"):
            options["sequence"] = length
        made_now = self.library_trainer(options)
        before, self.read, self.options = self._pointer, read, options
        if before is None:
            Handle.__init__(self, made_now, lambda pointer: self.network.lock.free(lib.tutti_trainer_free, pointer), self.network)
        else:
            self._pointer = made_now
            lib.tutti_trainer_free(before)

    def reader(self, output: Tensor | None = None, loss: str | Tensor | Sequence[Tensor] | None = None, *, batch_size: int | None = None,
               **options: Unpack[TrainingOptions]) -> Reader:
        return self.owner.reader(output, loss, batch_size=batch_size, **options)

    def __reduce__(self):
        raise TypeError("a Reader cannot be pickled: pickle the trainer whose parameters it reads")
