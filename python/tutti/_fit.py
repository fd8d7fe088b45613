"""One fit(): what it trains on and tests with, the calls of its callbacks, and the loop over batches that Python gives."""
import time
from typing import NamedTuple

import numpy

from . import callbacks
from ._batches import Batches, is_batches
from ._call import Options, encoded, enum
from ._feeds import Feeds, Source, is_large, not_finite, paired, plain
from ._native import ffi, lib
from ._values import near, shown, whole
from .errors import by_status, check, message

# Members of tutti_fitting that a training on batches of Python has too.
OF_BATCHES = ("save", "resume", "patience", "save_best", "steps")

# What to write in place of options of other packages.
INSTEAD = {"validation_split": ": give validation_data=(x[n:], y[n:]), and x[:n], y[:n]",
           "class_weight": ": give the Trainer tutti.cross_entropy(output, targets, class_weights=[...]) as loss",
           "learning_rate": ": set trainer.learning_rate, or the optimizer's",
           "sample_weight": ": give the Trainer tutti.mean(tensor, weights=w) as loss, where w is an input"}
# Members of tutti_fitting that fit() sets itself, and what to write in their place.
OWN = {"batch": ": write batch_size", "no_shuffle": ": write shuffle=False", "progress": ": write callbacks", "begin_epoch": ": write callbacks",
       "test": ": write validation_data", "scores": ": call evaluate() or predict() in callbacks", "user": ": write callbacks", "size": ""}


class Metrics(NamedTuple):
    loss: float
    accuracy: float     # NaN without classes
    samples: int


class Progress(NamedTuple):
    """As tutti_progress."""
    epoch: int
    epochs: int
    step: int
    steps_in_epoch: int     # 0: not known
    train: Metrics
    test: Metrics
    samples_per_s: float
    end_of_epoch: bool


class Sums:
    """Means over several calls, each weighted by its samples."""

    def __init__(self):
        self.loss = self.correct = self.counted = 0.0
        self.samples = 0

    def add(self, metrics):
        self.loss += metrics.loss * metrics.samples
        self.samples += metrics.samples
        self.counted += metrics.counted
        self.correct += metrics.accuracy * metrics.counted if metrics.counted else 0.0 * metrics.accuracy

    @property
    def metrics(self):
        return Metrics(self.loss / self.samples if self.samples else 0.0, self.correct / self.counted if self.counted else self.correct + float("nan"), self.samples)


def training_of(trainer, x, y=None):
    """What is given to fit() or evaluate() as what the library reads: Feeds, a Source or a part of tutti.data, or Batches."""
    if hasattr(x, "parts"):
        x = x.train
    if hasattr(x, "source_of"):
        x.check(trainer)
        return x
    if y is None and is_batches(x, trainer.ports):
        return Batches(x, trainer.ports)
    pairs = paired(trainer.ports, x, y)
    return Source(pairs) if is_large(pairs) else Feeds(pairs)


def test_of(trainer, given):
    """The same of validation_data, but never Feeds."""
    if given is None or hasattr(given, "parts") and given.tests is None:
        return None
    if isinstance(given, (tuple, list)) and len(given) in (1, 3) and not isinstance(given[0], (tuple, dict)):
        raise ValueError(f"validation_data has {len(given)} part{'s' * (len(given) > 1)}: give (x, y)")
    if isinstance(given, (int, float, str)):
        raise TypeError(f"validation_data is {shown(given)}: give (x, y), or what fit() takes as x")
    if isinstance(given, (tuple, list)) and len(given) == 2 and not (isinstance(given, list) and is_batches(given, trainer.ports)):
        found = Source(paired(trainer.ports, *given))
    else:
        found = training_of(trainer, given.tests if hasattr(given, "parts") else given)
        found = Source(found.pairs) if isinstance(found, Feeds) else found
    if isinstance(found, Source) and any(port.is_targets and port.name not in found.pairs for port in trainer.ports):
        raise ValueError("validation_data has no y: give (x, y)")
    return found


def set_lengths(given, lengths, buckets, name):
    """Gives the lengths of the samples' sequences: batches are cut to their longest sample, or to their bucket's largest length."""
    if lengths is None:
        return
    if given is None:
        raise ValueError(f"{name} needs validation_data")
    if not isinstance(given, (Feeds, Source)):
        raise TypeError(f"{name} is for arrays: tutti.data and batches have lengths of their own")
    lengths = plain(lengths, name)
    if lengths.shape != (given.samples,) or lengths.dtype.kind not in "iu":
        raise ValueError(f"{name} is an array of {list(lengths.shape)} {lengths.dtype}: one whole number for each of the {given.samples} samples is needed")
    if not given.length:
        raise ValueError(f"{name}: no input of the network has tutti.SEQUENCE in its shape")
    wrong = numpy.flatnonzero((lengths < 1) | (lengths > given.length))
    if wrong.size:
        raise ValueError(f"{name} has {lengths[wrong[0]]} for sample {wrong[0]}: 1 to {given.length}, the length of the arrays, is possible")
    given.set_lengths(numpy.ascontiguousarray(lengths, "int64"), buckets)


def evaluate(trainer, given, status_of=check):
    """Metrics of what training_of() has returned."""
    metrics = ffi.new("tutti_metrics *")
    if isinstance(given, Batches):
        sums = Sums()
        for pairs in given:
            feeds = Feeds(pairs)
            check(lib.tutti_evaluate(trainer.compiled(1, feeds.length), feeds.array, feeds.count, feeds.samples, metrics))
            sums.add(metrics)
        return sums.metrics
    pointer = trainer.compiled(1, given.length)
    if isinstance(given, Feeds):
        status_of(lib.tutti_evaluate(pointer, given.array, given.count, given.samples, metrics))
    else:
        status = lib.tutti_evaluate_source(pointer, given.struct, metrics)
        if given.failure is not None:
            raise given.failure
        status_of(status)
    return Metrics(metrics.loss, metrics.accuracy, metrics.samples)


class Run:
    """One fit(): what its callbacks see and leave."""

    def __init__(self, trainer, called, test):
        self.trainer, self.called, self.test = trainer, called, test
        self.by_step = [one for one in called if type(one).step is not callbacks.Callback.step]
        self.history, self.failure, self.ended = callbacks.History(), None, False
        self.handle = ffi.new_handle(self)

    def begin(self, epochs):
        trainer = self.trainer
        trainer.history = self.history
        for one in self.called:
            one.trainer = trainer
            one.begin(epochs)

    def end(self):
        for one in self.called:
            one.end(self.history)

    def progress(self, progress):
        """Returns whether the training is to end. Ctrl-C reaches Python here, once a step."""
        if not progress.end_of_epoch:
            for one in self.by_step:
                self.ended |= one.step(progress) is True
            return self.ended
        test = evaluate(self.trainer, self.test) if isinstance(self.test, Batches) else progress.test
        numbers = {"loss": progress.train.loss, "accuracy": progress.train.accuracy}
        if test.samples:
            numbers |= {"val_loss": test.loss, "val_accuracy": test.accuracy}
        numbers = {name: number for name, number in numbers.items() if number == number}
        self.history.add(**numbers)
        for one in self.called:
            self.ended |= one.epoch(progress.epoch, numbers) is True
        return self.ended


@ffi.def_extern()
def call_tutti_fitting_progress(user, progress):
    run = None
    try:
        run = ffi.from_handle(user)
        if not run.by_step and not progress.end_of_epoch:
            return 0
        return int(run.progress(progress))
    except BaseException as failure:    # KeyboardInterrupt too: it is raised again when the library has returned
        if run is not None:
            run.failure = failure
        return 1


def fit(trainer, x, y, epochs, batch_size, validation_data, shuffle, called, schedule, steps_per_epoch, options):
    """Trainer.fit()."""
    lengths, val_lengths, buckets = (options.pop(name, None) for name in ("lengths", "val_lengths", "buckets"))
    buckets = 0 if buckets is None else whole("buckets", buckets, 0)
    if buckets and lengths is None:
        raise ValueError("buckets needs lengths: those of the samples")
    wrong = sorted(name for name in options if name not in dict(ffi.typeof("tutti_fitting").fields) or name in OWN)
    if wrong:
        known = ("epochs", "batch_size", "validation_data", "callbacks", "shuffle", "verbose", "schedule", "steps_per_epoch", *OF_BATCHES)
        raise TypeError(f"fit() has no option {wrong[0]!r}" + (INSTEAD | OWN).get(wrong[0], near(wrong[0], known)))
    epochs = 1 if epochs is None else whole("epochs", epochs, 1)
    batch_size, steps_per_epoch = (None if number is None else whole(name, number, 1)
                                   for name, number in (("batch_size", batch_size), ("steps_per_epoch", steps_per_epoch)))
    if callable(schedule):
        raise TypeError("a schedule is a name, as \"cosine\"; of a function, write callbacks=[tutti.callbacks.Schedule(function)]")
    given, test = training_of(trainer, x, y), test_of(trainer, validation_data)
    set_lengths(given, lengths, buckets, "lengths")
    set_lengths(test, val_lengths, buckets, "val_lengths")
    options = {name: encoded(value).decode(errors="surrogateescape") if name in ("save", "resume") and value else value for name, value in options.items()}
    if isinstance(given, Batches) or isinstance(test, Batches):     # what the library does by the results of its own tests
        patience, save_best = options.pop("patience", 0), options.pop("save_best", False)
        if save_best and not options.get("save"):
            raise ValueError("save_best needs save=NAME")
        called = [*called, *([callbacks.EarlyStopping(patience=patience)] if patience else []),
                  *([callbacks.Best(options["save"] + ".best.safetensors")] if save_best else [])]
    run = Run(trainer, called, test)
    try:
        if isinstance(given, Batches):
            if schedule is not None:
                raise TypeError("a schedule of the library counts steps, which batches do not tell: use callbacks=[tutti.callbacks.Schedule(function)]")
            fit_batches(run, given, epochs, batch_size, steps_per_epoch, options)
        else:
            if steps_per_epoch:
                raise TypeError("steps_per_epoch is for generators of batches: arrays and data have a number of samples")
            fit_library(run, given, batch_size or trainer.batch_size or min(32, given.samples) or 1, schedule,
                        {**options, "epochs": epochs, "no_shuffle": not shuffle, "progress": lib.call_tutti_fitting_progress, "user": run.handle})
    finally:
        run.end()
    return run.history


def fit_library(run, given, batch, schedule, options):
    """By tutti_fit() or tutti_fit_source()."""
    trainer, test = run.trainer, run.test
    if batch > given.samples > 0:       # before plans for such a batch take memory
        raise by_status[lib.TUTTI_INVALID](f"the batch, {batch}, is larger than the data: there are {given.samples} samples; lower the batch")
    fitting = Options("tutti_fitting", {**options, "batch": batch, "begin_epoch": getattr(given, "begin_epoch", None)})
    if test is not None and not isinstance(test, Batches):
        fitting.struct.test = test.struct
    if isinstance(given, Feeds) and given.lengths is not None:
        fitting.struct.lengths, fitting.struct.buckets = fitting.keep(ffi.from_buffer("int64_t[]", given.lengths)), given.buckets
    if schedule is not None:
        words = fitting.keep(Options("tutti_schedule", schedule if isinstance(schedule, dict) else {"kind": enum("tutti_schedule_kind", schedule, "schedule")}))
        fitting.struct.schedule = words.struct
    with trainer.lock:
        pointer = trainer.compiled(batch, given.length)
        run.begin(options["epochs"])
        if hasattr(given, "note"):
            given.note(trainer)
        trainer.fitting, trainer.resumed = True, False
        try:
            if isinstance(given, Feeds):
                status = lib.tutti_fit(pointer, given.array, given.count, given.samples, fitting.struct)
            else:
                status = lib.tutti_fit_source(pointer, given.struct, fitting.struct)
        finally:
            trainer.fitting = False
    for failure in (run.failure, getattr(given, "failure", None), getattr(test, "failure", None)):
        if failure is not None:
            raise failure
    if not run.ended or status != lib.TUTTI_CANCELLED:
        check_finite(status, getattr(given, "pairs", ()))


def check_finite(status, pairs):
    """Raises as check() does, and says which array has the numbers that are not finite."""
    if status == lib.TUTTI_NOT_FINITE:
        raise by_status[status](message() + not_finite(pairs.values() if isinstance(pairs, dict) else pairs))
    check(status)


def fit_batches(run, batches, epochs, batch_size, steps_per_epoch, options):
    """The same loop in Python, over batches as they come."""
    trainer = run.trainer
    wrong = options.keys() - set(OF_BATCHES)
    if wrong:
        raise TypeError(f"{sorted(wrong)[0]} is for arrays and tutti.data, not for batches")
    if options.get("resume"):
        trainer.load(options["resume"])
    first, trainer.resumed = trainer.position.epoch if trainer.resumed else 0, False
    largest, left = batch_size or batches.batch_size, options.get("steps") or 2 ** 62
    if largest:
        trainer.compiled(largest)
    try:
        for epoch in range(first + 1, epochs + 1):
            if epoch == first + 1:
                run.begin(epochs)
            left -= one_epoch(run, batches, epoch, epochs, steps_per_epoch, left)
            if options.get("save"):
                trainer.save(options["save"])
            if run.ended or left <= 0:
                break
    except KeyboardInterrupt:
        if options.get("save") and trainer._pointer is not None:
            trainer.save(options["save"])
        raise


def one_epoch(run, batches, epoch, epochs, steps_per_epoch, left):
    """Trains an epoch, of at most so many steps, and returns the number of its steps."""
    trainer, sums, steps, begun, trained = run.trainer, Sums(), 0, time.monotonic(), Metrics(0.0, 0.0, 0)
    expected = steps_per_epoch or batches.length or 0
    limit = min(steps_per_epoch or left, left)

    def progress(test_follows):
        return Progress(epoch, epochs, steps, expected, sums.metrics, trained, sums.samples / max(time.monotonic() - begun, 1e-9), test_follows)

    for pairs in batches.epoch(steps_per_epoch is not None):
        sums.add(trainer.trained(pairs))
        steps += 1
        if run.by_step and run.progress(progress(False)) or steps >= limit:
            break
    if not steps:
        raise ValueError(f"epoch {epoch} has no batch: a generator gives its batches once; give a function that returns one, or steps_per_epoch")
    if not isinstance(run.test, Batches) and run.test is not None:
        trained = evaluate(trainer, run.test)
    trainer.position = trainer.position._replace(epoch=epoch)
    run.progress(progress(True))
    return steps
