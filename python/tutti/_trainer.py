"""Training, evaluation and prediction."""
import os
import sys
import time
from typing import NamedTuple

import numpy

from . import layers
from ._call import Options, enum, encoded
from ._feeds import Feeds, Port, Source, paired, ports_of
from ._handle import Handle, taken
from ._native import ffi, lib
from ._network import Tensor
from ._parameters import Gradients, Parameters, States
from .errors import check, made
from .optimizers import optimizer_options

# Losses that tutti_training.loss has, for which targets are fed without an input of theirs.
SIMPLE = {"cross_entropy": lib.TUTTI_CROSS_ENTROPY, "mse": lib.TUTTI_MSE, None: lib.TUTTI_LOSS_NONE}
CLASSES = ("cross_entropy", "nll")


class Metrics(NamedTuple):
    loss: float
    accuracy: float     # NaN without classes
    samples: int


class History(dict):
    """Lists by name, with a number for each epoch: loss, accuracy, val_loss, val_accuracy."""

    def add(self, **numbers):
        for name, number in numbers.items():
            self.setdefault(name, []).append(number)


class Trainer(Handle):
    """Trains a network on the devices of its runtime.

    network    a Network, whose first output is trained, or the tensor to train
    loss       "cross_entropy", "mse", "bce_with_logits", "nll", "l1", "huber"; a tensor that a loss function returned, or a
               list of them; None: a model's own, else inference only
    optimizer  tutti.SGD(0.1, momentum=0.9), ...; or its name; None: a model's own, else SGD
    batch_size the largest batch; None: that of the first call

    Other options are those of tutti_training: seed, precision="bf16", clip_norm, ema_decay, sync_batchnorm, ..."""

    def __init__(self, network, loss=None, optimizer=None, *, batch_size=None, seed=0, **options):
        self.output = network if isinstance(network, Tensor) else next(iter(network.outputs), None)
        if self.output is None:
            raise ValueError("the network has no layer")
        self.network = self.output.network
        self.lock, self.batch_size, self.parent = self.network.lock, batch_size, self.network
        defaults = dict(self.network.defaults)
        own = defaults.pop("loss", lib.TUTTI_LOSS_NONE)
        self.options = {**optimizer_options(optimizer, defaults), "seed": seed, **options}
        self.ports = None
        self.set_loss(own if loss is None else loss)
        self.pointer_of = None
        for name in options:
            if name not in dict(ffi.typeof("tutti_training").fields):
                raise TypeError(f"Trainer() has no option {name}")

    def set_loss(self, loss):
        """Sets the members of tutti_training for the loss, and the inputs and targets that training reads."""
        shape, targets = self.output.shape, None
        if isinstance(loss, str):
            if loss in SIMPLE and (loss not in CLASSES or len(shape) == 1):
                loss = SIMPLE[loss]
            elif not hasattr(layers, loss):
                raise ValueError(f"the loss {loss!r} is not known: it is one of cross_entropy, mse, bce_with_logits, nll, l1, huber")
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
    def pointer(self):
        return self.compiled(self.batch_size or 32)

    def compiled(self, batch, length=0):
        """The library's trainer for batches of at least this size. A larger one than before makes it anew, with its training."""
        with self.lock:
            if self._pointer is not None:
                pointer = super().pointer
                if batch <= self.options["batch"]:
                    return pointer
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
        else:
            Handle.__init__(self, made_now, lambda pointer: self.lock.free(lib.tutti_trainer_free, pointer), self.network)
        self.options = options

    def feeds(self, x, y=None):
        return Feeds(paired(self.ports, x, y))

    # ------------------------------------------------------------------------------------------------- training ----

    def step(self, x, y=None):
        """Trains on one batch, and returns its loss and accuracy."""
        feeds, metrics = self.feeds(x, y), ffi.new("tutti_metrics *")
        with self.lock:
            pointer = self.compiled(self.batch_size or feeds.samples, feeds.length)
            check(lib.tutti_train_step(pointer, feeds.array, feeds.count, feeds.samples, metrics))
        return Metrics(metrics.loss, metrics.accuracy, metrics.samples)

    def backward(self, x, y=None):
        """Computes losses and gradients, and updates nothing: apply() does, after `gradients` were read or changed."""
        feeds, metrics = self.feeds(x, y), ffi.new("tutti_metrics *")
        with self.lock:
            pointer = self.compiled(self.batch_size or feeds.samples, feeds.length)
            check(lib.tutti_backward(pointer, feeds.array, feeds.count, feeds.samples, metrics))
        return Metrics(metrics.loss, metrics.accuracy, metrics.samples)

    def apply(self):
        """Updates the parameters by the gradients of backward(), and counts a step."""
        with self.lock:
            check(lib.tutti_apply(self.pointer))

    def fit(self, x, y=None, epochs=1, batch_size=None, validation_data=None, *, shuffle=True, verbose=None, callback=None, schedule=None, **options):
        """Trains for some epochs, and returns the losses and accuracies of each. validation_data: (x, y). callback: is called with
        the epoch and its numbers, and ends the training if it returns True. verbose: prints a line for each epoch; None: on a
        terminal. schedule: a kind of tutti_schedule, as "cosine", or a dictionary of its members. Other options are those of
        tutti_fitting: save, resume, patience, save_best, steps. Ctrl-C ends it after a step, having saved if asked to."""
        feeds = self.feeds(x, y)
        batch = batch_size or self.batch_size or 32
        test = Source(paired(self.ports, *validation_data)) if validation_data is not None else None
        run = Run(self, callback, sys.stderr.isatty() if verbose is None else verbose)
        options |= {"epochs": epochs, "batch": batch, "no_shuffle": not shuffle, "progress": lib.call_tutti_fitting_progress, "user": run.handle}
        given = Options("tutti_fitting", {name: os.fspath(value) if name in ("save", "resume") and value else value for name, value in options.items()})
        if test:
            given.struct.test = test.struct
        if schedule is not None:
            words = given.keep(Options("tutti_schedule", schedule if isinstance(schedule, dict) else {"kind": enum("tutti_schedule_kind", schedule)}))
            given.struct.schedule = words.struct
        with self.lock:
            pointer = self.compiled(batch, feeds.length)
            status = lib.tutti_fit(pointer, feeds.array, feeds.count, feeds.samples, given.struct)
        for failure in (run.failure, test and test.failure):
            if failure is not None:
                raise failure
        if not run.ended or status != lib.TUTTI_CANCELLED:
            check(status)
        return run.history

    def evaluate(self, x, y=None):
        """Loss and accuracy in inference mode."""
        feeds, metrics = self.feeds(x, y), ffi.new("tutti_metrics *")
        with self.lock:
            check(lib.tutti_evaluate(self.compiled(1, feeds.length), feeds.array, feeds.count, feeds.samples, metrics))
        return Metrics(metrics.loss, metrics.accuracy, metrics.samples)

    def predict(self, x):
        """The network's output for each sample."""
        feeds = self.feeds(x)
        shape = [feeds.length if size == -2 else size for size in self.output.shape]
        values = numpy.empty((feeds.samples, *shape), "float32")
        fetch = ffi.new("tutti_fetch *", {"tensor": self.output.c, "dtype": lib.TUTTI_DTYPE_F32, "data": ffi.from_buffer("char[]", values.reshape(-1).view("uint8"))})
        with self.lock:
            check(lib.tutti_infer(self.compiled(1, feeds.length), feeds.array, feeds.count, feeds.samples, fetch, 1))
        return values

    def cancel(self):
        """Ends a fit() that runs in another thread after its step."""
        if self._pointer is not None:
            lib.tutti_cancel(self._pointer)

    # --------------------------------------------------------------------------------------------------- state ----

    @property
    def parameters(self):
        self.pointer
        return Parameters(self)

    @parameters.setter
    def parameters(self, values):
        parameters = Parameters(self)
        for name, array in dict(values).items():
            parameters[name] = array

    @property
    def gradients(self):
        self.pointer
        return Gradients(self)

    @property
    def states(self):
        """The optimizer's states by name, as "momentum_buffer", and by parameter: states["exp_avg"]["fc.weight"]."""
        names = []
        while (name := lib.tutti_state_name(self.pointer, len(names))) != ffi.NULL:
            names.append(ffi.string(name).decode())
        return {name: States(self, name) for name in names}

    @property
    def learning_rate(self):
        return lib.tutti_learning_rate(self.pointer)

    @learning_rate.setter
    def learning_rate(self, rate):
        check(lib.tutti_set_learning_rate(self.pointer, rate))

    def save(self, name):
        """Saves a checkpoint, NAME.safetensors and NAME.state.safetensors; or weights alone, where the name ends in .safetensors."""
        function = lib.tutti_save_weights if os.fspath(name).endswith(".safetensors") else lib.tutti_save
        with self.lock:
            check(function(self.pointer, encoded(name)))

    def load(self, name):
        """Loads what save() saved; fit() then goes on where a checkpoint was saved."""
        function = lib.tutti_load_weights if os.fspath(name).endswith(".safetensors") else lib.tutti_resume
        with self.lock:
            check(function(self.pointer, encoded(name)))

    def export(self, path):
        """Writes an ONNX file of the network with the present parameters."""
        with self.lock:
            if lib.tutti_network_output(self.network.pointer, 0, ffi.NULL, ffi.NULL) != lib.TUTTI_OK:
                check(lib.tutti_output(self.network.pointer, b"output", self.output.c))
            check(lib.tutti_export_onnx(self.network.pointer, self.pointer, encoded(path), ffi.NULL))

    def why(self, device=0):
        """The kernel of each layer on a device, and why others were refused."""
        with self.lock:
            return taken(lib.tutti_explain(self.pointer, device, False))

    def profile(self, device=0):
        """Where the time of the last plan on a device goes."""
        with self.lock:
            return taken(lib.tutti_profile(self.pointer, device, ffi.NULL))

    def __repr__(self):
        return f"<tutti.Trainer of {self.network.parameter_count} parameters>"


class Run:
    """One fit(): what its callbacks see and leave."""

    def __init__(self, trainer, callback, verbose):
        self.trainer, self.callback, self.verbose = trainer, callback, verbose
        self.history, self.failure, self.ended, self.printed = History(), None, False, 0.0
        self.handle = ffi.new_handle(self)

    def progress(self, progress):
        """Returns whether the training is to end. Ctrl-C reaches Python here, once a step."""
        if self.verbose and time.monotonic() > self.printed + 0.2 and not progress.end_of_epoch:
            self.printed = time.monotonic()
            print(f"\repoch {progress.epoch}/{progress.epochs}, step {progress.step}/{progress.steps_in_epoch}, loss {progress.train.loss:.4f}, "
                  f"{progress.samples_per_s:.0f} samples/s", end="\033[K", file=sys.stderr, flush=True)
        if not progress.end_of_epoch:
            return False
        numbers = {"loss": progress.train.loss, "accuracy": progress.train.accuracy}
        if progress.test.samples:
            numbers |= {"val_loss": progress.test.loss, "val_accuracy": progress.test.accuracy}
        numbers = {name: number for name, number in numbers.items() if number == number}
        self.history.add(**numbers)
        if self.verbose:
            print(f"\repoch {progress.epoch}/{progress.epochs}: " + ", ".join(f"{name} {number:.4f}" for name, number in numbers.items()), end="\033[K\n", file=sys.stderr)
        self.ended = self.callback is not None and self.callback(progress.epoch, numbers) is True
        return self.ended


@ffi.def_extern()
def call_tutti_fitting_progress(user, progress):
    run, end = ffi.from_handle(user), False
    try:
        if not run.verbose and not progress.end_of_epoch:
            return 0
        end = run.progress(progress)
    except BaseException as failure:    # KeyboardInterrupt too: it is raised again when the library has returned
        run.failure, end = failure, True
    return int(end)
