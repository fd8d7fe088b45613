"""What devices have newer than a module comes back when the program looks at the module.

While a trainer has made steps since its last sync(), these functions of torch.nn.Module call it first: a call of a module, access to its
parameters and modules, its lists of parameters, state_dict(), load_state_dict(), copies and moves. After sync() PyTorch is as it was.
What is not seen is a tensor that the program holds by itself, as one of the optimizer's param_groups."""
import functools
import weakref
from typing import Any

import torch

Module = torch.nn.Module
DIRECT = "__call__", "__getattr__", "state_dict", "__reduce_ex__"       # for these PyTorch asks each module within a module
WITHIN = "named_parameters", "named_buffers", "load_state_dict", "_apply"
trainers: "weakref.WeakSet[Any]" = weakref.WeakSet()
COMPILED = "_orig_mod"      # the module within that of torch.compile()
NAMES = DIRECT + WITHIN
known: set[int] = set()      # what the trainers own
patched: dict[str, Any] = {}      # (the function that asks first, PyTorch's, whether the class has it itself) by name


def owned_by(modules):
    """What modules are known by: those that have parameters or buffers themselves, and these."""
    found = set()
    for one in modules:
        tensors = [id(each) for each in (*one._parameters.values(), *one._buffers.values()) if each is not None]
        found.update(tensors, [id(one)] if tensors else ())
    return found


def settle(owned, besides=None):
    """Brings back what the other trainers have newer of this."""
    for trainer in list(trainers):
        if trainer is not besides and not trainer.owned.isdisjoint(owned):
            trainer.sync()


def looked_at(module, name):
    if "_parameters" not in module.__dict__ or torch.compiler.is_compiling():
        return
    if name in WITHIN:
        settle(owned_by(module.modules()))
    elif id(module) in known or any(id(one) in known for one in module._parameters.values()) or COMPILED in module._modules:
        settle(owned_by((module, *(module._modules[COMPILED].modules() if COMPILED in module._modules else ()))))


def asking(name):
    """The function of a module that brings back first."""
    own = getattr(Module, name)

    @functools.wraps(own)
    def asks(self, *args, **kwargs):
        if trainers:
            looked_at(self, name)
        return own(self, *args, **kwargs)
    return asks, own, name in vars(Module)


def begin(trainer):
    """Notes that a trainer is ahead of its module."""
    if trainer in trainers:
        return
    trainers.add(trainer)
    known.update(trainer.owned)
    for name in NAMES if len(patched) < len(NAMES) else ():
        if name not in patched:
            patched[name] = asking(name)
            setattr(Module, name, patched[name][0])


def end(trainer):
    """Notes that the module has what the trainer has. What others, as torch.fx, have put over these functions since stays, and calls them."""
    trainers.discard(trainer)
    if trainers:
        return
    known.clear()
    for name, (asks, own, is_own) in list(patched.items()):
        if vars(Module).get(name) is asks:
            if is_own:
                setattr(Module, name, own)
            else:
                delattr(Module, name)
            del patched[name]
