"""PyTorch's optimizers as update rules of Tutti: their options, groups, rates and states."""
import math

import torch

from .. import errors
from .. import optimizers as rules
from .._call import Options
from .._native import ffi, lib
from .values import Refused, as_real, like
from .watched import hooks_of_optimizer


def need(group, **wanted):
    """Options that have one value only here."""
    for name, value in wanted.items():
        if group.get(name, value) != value:
            raise Refused(f"{name}={group[name]}")


def positive(*values):
    if any(value <= 0 for value in values):
        raise Refused("a factor or epsilon of 0")


def sgd(group):
    need(group, dampening=0, maximize=False)
    return rules.SGD, {"momentum": group["momentum"], "nesterov": group["nesterov"]}


def adam(group):
    need(group, maximize=False)
    positive(*group["betas"], group["eps"])
    decoupled = group.get("decoupled_weight_decay", False)
    return (rules.AdamW if decoupled else rules.Adam), {"beta1": group["betas"][0], "beta2": group["betas"][1], "epsilon": group["eps"], "amsgrad": group["amsgrad"]}


def adamw(group):
    return rules.AdamW, adam(group)[1]


def rmsprop(group):
    need(group, maximize=False)
    positive(group["alpha"], group["eps"])
    return rules.RMSprop, {"beta2": group["alpha"], "epsilon": group["eps"], "momentum": group["momentum"], "centered": group["centered"]}


def adagrad(group):
    need(group, maximize=False, lr_decay=0, initial_accumulator_value=0)
    positive(group["eps"])
    return rules.Adagrad, {"epsilon": group["eps"]}


def nadam(group):
    need(group, maximize=False, momentum_decay=4e-3, decoupled_weight_decay=False)
    positive(*group["betas"], group["eps"])
    return rules.NAdam, {"beta1": group["betas"][0], "beta2": group["betas"][1], "epsilon": group["eps"]}


READERS = {torch.optim.SGD: sgd, torch.optim.Adam: adam, torch.optim.AdamW: adamw, torch.optim.RMSprop: rmsprop, torch.optim.Adagrad: adagrad, torch.optim.NAdam: nadam}


class Updates:
    """The updates of a trainer by torch's optimizer. `names`: the network's name of each parameter by its id. may_follow: False
    where options have changed between steps that a rule has once only. several: each parameter has options of its own, so weight_decay
    may change."""

    def __init__(self, optimizer, network, names, may_follow=True, several=False):
        self.optimizer, self.network, self.names = optimizer, network, names
        self.groups = [[group, [names[id(one)] for one in group["params"] if id(one) in names]] for group in optimizer.param_groups]
        self.groups = [(group, members) for group, members in self.groups if members]
        if not self.groups:
            raise errors.InvalidError("the optimizer has none of the module's parameters")
        self.several, self.rates, self.decay = several or len(self.groups) > 1, None, self.groups[0][0].get("weight_decay", 0)
        read = READERS.get(type(optimizer))
        self.by_torch, self.reason = read is None, f"{type(optimizer).__name__} is no rule of Tutti's"
        if hooks_of_optimizer(optimizer):
            self.by_torch, self.reason = True, "the optimizer or its parameters have hooks"
        elif self.steps_differ():
            self.by_torch, self.reason = True, "the optimizer's parameters have made different numbers of steps"
        elif not may_follow:
            self.by_torch, self.reason = True, "options other than lr and weight_decay change between steps"
        elif read is not None:
            try:
                found = [read(group) for group, _ in self.groups]
                if any(one != found[0] for one in found):
                    raise Refused("groups that differ in more than lr and weight_decay")
                self.rule, self.options = found[0]
            except Refused as refusal:
                self.by_torch, self.reason = True, f"Tutti's rule has no {refusal}"
        if self.by_torch:
            self.several = False
        elif self.several:
            for group, members in self.groups:
                for name in members:
                    errors.check(lib.tutti_group(network.pointer, name.encode(), self.of(group)))

    def steps_differ(self):
        """Whether a rule that counts its steps has made different numbers of them, as after a layer was frozen for some."""
        states = [self.optimizer.state.get(one) for group, _ in self.groups for one in group["params"] if one.requires_grad and id(one) in self.names]
        if type(self.optimizer) is torch.optim.SGD:
            return False
        return len({int(one["step"]) if one and "step" in one else 0 for one in states}) > 1

    def options_changed(self):
        """Whether a group has other options now, as schedulers change betas and momentum."""
        if self.by_torch:
            return False
        if hooks_of_optimizer(self.optimizer):
            return True
        try:
            return any(READERS[type(self.optimizer)](group) != (self.rule, self.options) for group, _ in self.groups)
        except Refused:
            return True

    def decay_changed(self):
        """Whether weight_decay was changed, which the trainer of one group has once only."""
        return not self.by_torch and not self.several and self.groups[0][0]["weight_decay"] != self.decay

    def made(self):
        """The options for tutti.Trainer."""
        if self.by_torch:
            return rules.SGD(1.0)
        apart = 1.0 if self.several and len(self.groups) == 1 else 0.0   # so that the parameters' own decay is another one
        return self.rule(1.0, weight_decay=self.groups[0][0]["weight_decay"] + apart, **self.options)

    def base(self):
        return max(float(group["lr"]) for group, _ in self.groups)

    def of(self, group):
        """The options of a group. A factor of 0 would stand for 1."""
        base = self.base()
        factor = float(group["lr"]) / base if base else 1.0
        options = Options("tutti_group_options", {"rate_factor": factor or 1e-30, "has_weight_decay": True, "weight_decay": group["weight_decay"]})
        self.kept = options
        return options.struct

    def follow(self, trainer):
        """Sets rates and decays as the groups have them now."""
        now = [(float(group["lr"]), group.get("weight_decay", 0)) for group, _ in self.groups]
        if now == self.rates:
            return
        if self.by_torch:
            trainer.learning_rate, self.rates = 0.0, now
            return
        trainer.learning_rate = self.base()
        if self.several and self.rates is not None:
            for group, members in self.groups:
                for name in members:
                    errors.check(lib.tutti_set_group(trainer.pointer, name.encode(), self.of(group)))
        self.rates = now

    # --------------------------------------------------------------------------------------------------- states ----

    def members(self):
        for group, _ in self.groups:
            for one in group["params"]:
                if id(one) in self.names and one.requires_grad:
                    yield group, one, self.names[id(one)]

    def load(self, trainer, before):
        """Gives the trainer the states of the optimizer, where it has some, and the number of steps before, by which elements are
        dropped. Returns the number of the optimizer's steps."""
        count = 0
        if not self.by_torch and any(self.optimizer.state.get(one) for _, one, _ in self.members()):
            count = max(int(self.optimizer.state[one].get("step", 1)) if self.optimizer.state.get(one) else 0 for _, one, _ in self.members())
            for state, values in trainer.states.items():
                for _, one, name in self.members():
                    found = self.optimizer.state[one].get(state)
                    if found is not None:
                        values[name] = as_real(found.detach()).cpu().numpy()
        if count or before:
            position = ffi.new("tutti_position *", {"size": ffi.sizeof("tutti_position"), "steps": max(before, count), "updates": count, "epoch": 0})
            errors.check(lib.tutti_set_position(trainer.pointer, position))
        return count

    def store(self, trainer, steps):
        """Gives the optimizer the states of the trainer after so many steps."""
        if self.by_torch or not steps:
            return
        states = trainer.states
        for group, one, name in self.members():
            mine = self.optimizer.state[one]
            for state, values in states.items():
                mine[state] = like(one, values[name].numpy())
            if type(self.optimizer) is not torch.optim.SGD:
                mine["step"] = torch.tensor(float(steps))
            if type(self.optimizer) is torch.optim.NAdam:
                beta = group["betas"][0]
                mine["mu_product"] = torch.tensor(math.prod(beta * (1 - 0.5 * 0.96 ** (step * group["momentum_decay"])) for step in range(1, steps + 1)))
