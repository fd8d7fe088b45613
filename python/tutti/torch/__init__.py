"""Trains unmodified modules of PyTorch on every OpenCL device.

    from tutti.torch import Trainer
    trainer = Trainer(module, loss=torch.nn.CrossEntropyLoss(), optimizer=torch.optim.AdamW(module.parameters(), 1e-3))
    for x, y in loader:
        loss = trainer.step(x, y)
    torch.save(module.state_dict(), "m.pt")

The module is exported once for each shape of its inputs, in the mode in which it is. What it asks for that Tutti has not is
refused with the lines of its source."""
from __future__ import annotations

import contextlib
import itertools
import sys
import warnings
import weakref
from typing import TYPE_CHECKING, Any

import numpy
import torch

from .. import _trainer, errors
from . import ahead, compiling, precision, watched
from .graph import KERAS, Step, Walk, exported, storage_of
from .host import feeds as feeds_of
from .inference import Predictor, State
from .optimizers import Updates
from .rebuilt import Rebuilt
from .reach import reached
from .settings import Watch
from .values import Refused, as_real, like

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from typing_extensions import Unpack

    from .._options import TrainingOptions
    from .._runtime import Runtime

    class TorchOptions(TrainingOptions, total=False):
        seed: int


def leaves(tree):
    return [one for one in torch.utils._pytree.tree_leaves(tree) if isinstance(one, torch.Tensor)]


def shapes_of(given, arrays):
    """What a network is made for: structure, types and shapes of samples, and arguments that are no tensors."""
    return (repr(torch.utils._pytree.tree_structure(given)), tuple((array.dtype, tuple(array.shape[1:])) for array in arrays),
            tuple(one for one in torch.utils._pytree.tree_leaves(given) if not isinstance(one, torch.Tensor)))


def outdated(baked):
    return any(not state.is_of(one) for one, state in baked)


NETWORKS = 8    # that are kept for other shapes


class Trainer:
    """Trains a module.

    module     a torch.nn.Module in training mode, with parameters of float32
    loss       a function of the module's output and the targets that is a number, of means and sums over the samples:
               torch.nn.CrossEntropyLoss(), ..., or one of your own; None: the module returns its loss, alone, first, or as "loss" of a dictionary
    optimizer  one of torch.optim, with its groups, whose rates are followed; one that Tutti has not gets gradients
    runtime    the devices, tutti.Runtime("0,2"); None: those of tutti.use()
    batch_size the largest batch; None: that of the first step

    Other options are those of tutti_training: seed, precision="bf16", clip_norm, sync_batchnorm, ..."""

    may_follow = True   # until options change between steps that a rule of Tutti's has once only
    by_groups = False   # until weight_decay changes

    def __init__(self, module: torch.nn.Module, loss: Callable[..., Any] | None = None, optimizer: torch.optim.Optimizer | None = None, *,
                 runtime: Runtime | None = None, batch_size: int | None = None, **options: Unpack[TorchOptions]) -> None:
        if optimizer is None:
            raise TypeError("an optimizer is needed, as torch.optim.SGD(module.parameters(), 0.1)")
        if options.get("ema_decay"):
            raise TypeError("ema_decay: torch.optim.swa_utils.AveragedModel averages parameters")
        if isinstance(optimizer, torch.optim.LBFGS):
            raise TypeError("LBFGS calls the module many times in a step, by a closure: take another optimizer")
        self.module, self.optimizer, self.runtime, self.batch_size, self.options = module, optimizer, runtime, batch_size, options
        self.whole = Step(module, loss)
        self.seen, self.seen_to_predict = Watch(self.whole.changes.modules, loss), Watch([module])
        self.rebuilt = Rebuilt()
        self.key: Any = None
        self.last: Any = None
        self.trainer: Any = None
        self.walk: Any = None
        self.updates: Any = None
        self.predictors: dict[Any, Predictor] = {}
        self.kept: dict[Any, dict[str, Any]] = {}
        self.sent: dict[str, State] = {}
        self.ignores = self.warned = self.states_changed = self.steps_by_torch = self.has_said = False
        self.owned = self.known_by()
        self.steps = self.stored = self.before = 0
        this: Any = weakref.ref(self)
        optimizer.register_state_dict_pre_hook(lambda *_: this() and this().sync())
        optimizer.register_step_pre_hook(watched.Own(lambda: this() and this().before_torch()))
        optimizer.register_step_post_hook(watched.Own(lambda: this() and this().after_torch()))
        optimizer.register_load_state_dict_post_hook(lambda *_: this() and this().forget_states())

    def known_by(self):
        """What other trainers may train: the module, the loss, and modules that it calls."""
        return ahead.owned_by(each for one in (self.whole, *self.seen.others()) for each in one.modules())

    def forget_states(self) -> None:
        self.states_changed = True

    def before_torch(self) -> None:
        """The program lets PyTorch's optimizer make a step, with gradients of its own."""
        if not self.steps_by_torch and self.key is not None and self.has_gradients():
            self.sync()

    def after_torch(self) -> None:
        if not self.steps_by_torch and self.has_gradients():
            self.forget_states()

    def has_gradients(self) -> bool:
        return any(one.grad is not None for group in self.optimizer.param_groups for one in group["params"])

    def __del__(self) -> None:
        if getattr(self, "key", None) is not None and not sys.is_finalizing():
            with contextlib.suppress(errors.Error):     # closed already, where the module goes with it
                self.sync()

    # -------------------------------------------------------------------------------------------------- training ----

    def step(self, x: Any, y: Any = None) -> float:
        """Trains on one batch and returns its loss. x: a tensor, a tuple of the module's arguments, or a dictionary of those with
        names. y: the targets; None: the module needs none. Several targets are a tuple, which the loss gets as one argument."""
        given, arrays = self.arrays(x, y)
        samples = len(arrays[0])
        ahead.settle(self.owned, besides=self)
        with torch.no_grad():
            self.prepare(given, arrays)
            self.say_precision()
            arrays = [array.detach().cpu() for array in arrays]
            if not self.ignores and any(has(arrays) for has in self.walk.excluded):
                self.ignores = True     # from now on the labels that count are counted in each batch
                self.prepare(given, arrays)
            feeds = dict(zip(self.walk.inputs, (array.numpy() for array in arrays))) | feeds_of(self.walk, arrays)
            if samples > self.trainer.batch_size:
                self.trainer.batch_size = samples
                self.trainer.compiled(samples)
                self.updates.rates = ()     # the trainer is made anew, with the rates of its beginning
            self.push()
            self.updates.follow(self.trainer)
            if self.updates.by_torch:
                return self.step_by_torch(feeds)
            loss = self.trainer.step(feeds).loss
        self.steps += 1
        ahead.begin(self)
        setattr(self.optimizer, "_opt_called", True)    # so that schedulers do not warn
        return loss

    def say_precision(self):
        """Says once that autocast has no effect."""
        if not self.has_said and self.options.get("precision") in (None, "float32", "fp32") and (self.whole.autocasts or precision.is_around()):
            self.has_said = True
            warnings.warn(precision.SAID, stacklevel=3)

    # ------------------------------------------------------------------------------------------------- inference ----

    def predict(self, x: Any) -> Any:
        """What the module returns for x in evaluation mode: tensors, in the tuples and dictionaries in which it returns them."""
        given, arrays = self.arrays(x, None)
        ahead.settle(self.owned)
        modes = {one: one.training for one in self.module.modules()}
        with torch.no_grad():
            self.module.eval()
            try:
                return self.predictor(given, arrays).run(arrays)
            finally:
                for one, mode in modes.items():
                    one.training = mode

    def predictor(self, given, arrays):
        key = shapes_of(given, arrays), self.seen_to_predict.settings()
        found = self.predictors.pop(key, None)
        if found is None or found.is_outdated:
            step = Step(self.module, None, whole=True)
            listed = {**dict(step.named_parameters(remove_duplicate=False)), **dict(step.named_buffers(remove_duplicate=False))}
            try:
                program = self.program(step, given)
            except Refused as refusal:
                raise errors.UnsupportedError(f"tutti.torch cannot run this module: {refusal}") from None
            found = Predictor(program, listed, self.runtime, max(self.batch_size or 0, len(arrays[0])))
        self.predictors[key] = found
        while len(self.predictors) > NETWORKS:
            self.predictors.pop(next(iter(self.predictors)))
        return found

    def evaluate(self, x: Any | Iterable[Any], y: Any = None) -> float:
        """The loss in evaluation mode, of x and y or of all batches of a loader of (x, y): the mean over the samples. The loss is
        computed by PyTorch."""
        batches = [(x, y)] if isinstance(x, (torch.Tensor, numpy.ndarray, tuple, dict)) else x
        total, samples = 0.0, 0
        for x, y in batches:
            count = len(self.arrays(x, y)[1][0])
            with torch.no_grad():
                total += count * float(self.loss_of(self.predict(x), y))
            samples += count
        if not samples:
            raise ValueError("no samples")
        return total / samples

    def loss_of(self, outputs, y):
        if self.whole.loss is None:
            return outputs if isinstance(outputs, torch.Tensor) else outputs["loss"] if isinstance(outputs, dict) else outputs[0]
        y = () if y is None else (torch.utils._pytree.tree_map(lambda one: torch.as_tensor(one) if isinstance(one, numpy.ndarray) else one, y),)
        return self.whole.loss(outputs, *y)

    def arrays(self, x, y):
        def tensor(one):
            return torch.as_tensor(one) if isinstance(one, (torch.Tensor, numpy.ndarray)) else one
        given = (tuple(x) if isinstance(x, (tuple, list)) else () if isinstance(x, dict) else (x,), dict(x) if isinstance(x, dict) else {}, () if y is None else (y,))
        given = torch.utils._pytree.tree_map(tensor, given)
        arrays = leaves(given)
        if not arrays or any(array.ndim == 0 or len(array) != len(arrays[0]) for array in arrays):
            raise ValueError("all arrays have the samples as their first axis, and equally many: " + ", ".join(str(list(array.shape)) for array in arrays))
        return given, arrays

    def step_by_torch(self, feeds):
        loss = self.trainer.backward(feeds).loss
        gradients = self.trainer.gradients
        for _, parameter, name in self.updates.members():
            watched.with_hooks(parameter, like(parameter, gradients[name].numpy()))
        self.trainer.apply()    # at the rate 0: running statistics
        self.steps_by_torch = True
        try:
            with torch.enable_grad():
                self.optimizer.step()
        finally:
            self.steps_by_torch = False
        self.steps += 1
        ahead.begin(self)
        return loss

    # ------------------------------------------------------------------------------------------------- the network ----

    def prepare(self, given, arrays):
        """Exports the module and builds its network, if the last one was for other shapes, or in another mode."""
        key = self.key_of(given, arrays)
        if self.key is not None and self.updates.options_changed():
            self.sync()
            self.key, self.kept, self.may_follow = None, {}, False
        if self.key is not None and self.updates.decay_changed():
            self.sync()
            self.key, self.kept, self.by_groups = None, {}, True
        if key == self.key and not self.states_changed and not self.is_outdated:
            return
        if self.states_changed:
            self.kept = {}
        else:
            self.sync()
        self.key, self.states_changed = None, False
        found = self.kept.pop(key, None)
        if found is None or outdated(found["baked"]) or found["updates"].options_changed() or (found["updates"].steps_differ() and not found["updates"].by_torch):
            self.rebuilt.note(self.before + self.steps, self.last, key, self.written())
            self.build(given, len(arrays[0]))
        else:
            self.__dict__.update(found)
            self.trainer.batch_size = max(self.trainer.batch_size, len(arrays[0]))
            self.trainer.compiled(self.trainer.batch_size)
            self.updates.rates = ()
            self.push()
        self.before += self.steps
        self.steps = self.stored = self.updates.load(self.trainer, self.before)
        self.sent = self.present()
        self.key = self.last = key
        self.owned = self.known_by()
        self.kept[key] = {name: getattr(self, name) for name in ("walk", "held", "updates", "trainer", "buffers", "baked")}
        self.kept[key]["sent"] = self.sent
        while len(self.kept) > NETWORKS:
            self.kept.pop(next(iter(self.kept)))

    def key_of(self, given, arrays):
        """What a network is made for."""
        trained = tuple(tuple(id(one) for one in group["params"]) for group in self.optimizer.param_groups)
        return shapes_of(given, arrays), self.ignores, self.seen.settings(), trained

    def build(self, given, samples):
        """The network and its trainer."""
        try:
            watched.check_modules(self.whole)
            program = self.program(self.whole, given)
            listed = dict(self.whole.named_parameters(remove_duplicate=False))
            watched.check_trained(program, self.optimizer, {watched.memory(one) for name, one in listed.items() if KERAS in name})
            chosen = {id(one) for group in self.optimizer.param_groups for one in group["params"]}
            trains = {one for one in reached(program, storage_of) if id(listed[one]) in chosen and listed[one].requires_grad}
            self.walk = Walk(program, lambda targets: any(one in trains for one in targets), self.runtime, ignores=self.ignores)
        except Refused as refusal:
            raise errors.UnsupportedError(f"tutti.torch cannot train this module: {refusal}") from None
        self.held = {target: listed[target] for target in self.walk.parameters}
        gets = {id(listed[one]) for one in trains}
        self.updates = Updates(self.optimizer, self.walk.network, {id(listed[target]): name for target, name in self.walk.parameters.items() if id(listed[target]) in gets},
                               self.may_follow, self.by_groups)
        if self.updates.by_torch and not self.warned:
            self.warned = True
            warnings.warn(f"{self.updates.reason}: gradients come back to PyTorch in each step, which is slower", stacklevel=4)
        terms, prediction = self.walk.terms, self.walk.loss.prediction
        output = prediction.tensor if prediction is not None and prediction.varies else terms[0][1]
        self.trainer = _trainer.Trainer(output, loss=[tensor for _, tensor in terms], loss_weights=[factor for factor, _ in terms],
                                        optimizer=self.updates.made(), batch_size=max(self.batch_size or 0, samples), **self.options)
        self.buffers = {**listed, **dict(self.whole.named_buffers(remove_duplicate=False))}     # Keras's moving statistics are parameters
        constants = [self.buffers[name] for name in self.walk.baked if name in self.buffers]
        self.baked = [(one, State(one)) for one in [*constants, *watched.baked_constants(program, self.buffers)]]

    def written(self):
        """The names of constants of the network that the program has changed."""
        own = {id(tensor): name.removeprefix("module.") for name, tensor in getattr(self, "buffers", {}).items()}
        return [own.get(id(one), "a tensor outside of the module") for one, state in getattr(self, "baked", ()) if not state.is_of(one)]

    @property
    def is_outdated(self) -> bool:
        """Whether the program has changed buffers that are constants of the network."""
        return outdated(self.baked)

    def program(self, step, given):
        try:
            with torch.enable_grad(), warnings.catch_warnings():
                warnings.filterwarnings("ignore", "The tensor attributes? .*_flat_weights")
                return self.same_again(step, given)
        except Refused:
            raise
        except Exception as failure:
            raise errors.UnsupportedError(f"PyTorch cannot export this module{watched.reason(failure)}") from failure

    @staticmethod
    def same_again(step, given):
        """The program of a step. A module that keeps a number at its first call is exported once more; one that counts is refused."""
        def made():
            with contextlib.nullcontext() if step.whole else watched.exporting():
                return exported(step, *given)
        had = watched.attributes(step.changes.modules)
        try:
            program = made()
            if step.changes.names:
                watched.give_back(step.changes.left)
                program = made()
            if step.changes.names:
                raise Refused(f"forward() changes {', '.join(step.changes.names)}, but runs once only, when PyTorch exports it: change it between steps")
            watched.check_constants(program)
        finally:
            watched.give_back(had)
        return program

    def arrays_here(self):
        """(tensor of the module, the network's name) of all that the network holds. Complex ones have another axis for their parts."""
        return itertools.chain(((as_real(self.held[target]), name) for target, name in self.walk.parameters.items()),
                               ((self.buffers[target], name) for target, name in self.walk.statistics.items()))

    def present(self):
        return {name: State(tensor) for tensor, name in self.arrays_here()}

    def trained_here(self):
        """(tensor of the module, the network's name) of what steps on the devices change."""
        names = set() if self.updates.by_torch else {name for _, _, name in self.updates.members()}
        return [(tensor, name) for tensor, name in self.arrays_here() if name in names or name in self.walk.statistics.values()]

    def push(self):
        """Gives the devices what the program has changed in the module since the last step or sync()."""
        changed = {name: tensor for tensor, name in self.arrays_here() if name not in self.sent or not self.sent[name].is_of(tensor)}
        if changed and self.steps != self.stored:
            self.check_writes(changed)
        for name, tensor in changed.items():
            self.trainer.parameters[name] = tensor.detach().cpu().numpy()
        if changed:
            self.sent = {**self.sent, **{name: State(tensor) for name, tensor in changed.items()}}

    def check_writes(self, changed):
        """Refuses writes into numbers that the devices have newer: what was added to old numbers is not known."""
        lost = [name for _, name in self.trained_here() if name in changed]
        if lost:
            self.sent = {**self.sent, **{name: State(changed[name]) for name in lost}}
            raise errors.UnsupportedError(f"the program wrote into {', '.join(lost[:3])}{', ...' if len(lost) > 3 else ''} while the devices had newer numbers, "
                                          "which stay: call trainer.sync() before it writes into tensors that it holds, as those of optimizer.param_groups")

    def sync(self) -> None:
        """Writes parameters, buffers and the optimizer's states back. What looks at the module, and state_dict() of the optimizer, do it too."""
        if self.key is None or self.steps == self.stored:
            return
        self.push()
        ahead.end(self)
        values = self.trainer.parameters
        with torch.inference_mode(False), torch.no_grad():
            for tensor, name in self.trained_here():
                tensor.copy_(torch.from_numpy(values[name].numpy()).reshape(tensor.shape))
            for target, increment in self.walk.counters.items():
                self.buffers[target] += increment * (self.steps - self.stored)
            self.updates.store(self.trainer, self.steps)
        self.stored, self.sent = self.steps, self.present()


compiling.register()
__all__ = ["Trainer"]
