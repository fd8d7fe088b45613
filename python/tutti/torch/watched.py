"""What PyTorch's export does not see: numbers that a program changes, hooks of gradients, and formulas for gradients of its own."""
import contextlib
import os
import sys
import traceback

import torch
from torch._subclasses.fake_tensor import FakeTensor

from .settings import OWN, attributes_of, changed, settings
from .values import Refused

FOLDERS = os.path.dirname(torch.__file__) + os.sep, os.path.dirname(__file__) + os.sep


def attributes(modules):
    """(module, its attributes that are its own) of all modules."""
    return [(one, attributes_of(one)) for module in modules for one in module.modules()]


def give_back(had):
    """Sets attributes as attributes() found them."""
    for one, found in had:
        for name in [name for name in vars(one) if name not in OWN and name not in found]:
            del vars(one)[name]
        vars(one).update(found)


class Changes:
    """What forward() does to the attributes of modules while it is exported: `names` of those that it changed, and all as it `left` them."""

    def __init__(self, modules):
        self.modules, self.names, self.left = modules, [], []

    def all(self):
        return [one for module in self.modules for one in module.modules()]

    def begin(self):
        self.before, self.buffers = settings(self.all()), [dict(one.named_buffers()) for one in self.modules]

    def end(self):
        """Refuses buffers that were replaced, which an export of a module within another one does not tell."""
        self.names, self.left = changed(self.before, settings(self.all())), attributes(self.modules)
        for module, before in zip(self.modules, self.buffers):
            for name, buffer in module.named_buffers():
                if before.get(name, buffer) is not buffer:
                    raise Refused(f"forward() assigns the buffer {name}, which is not written back; if it does so once and keeps it, call the module with a batch before")


def check_constants(program):
    """Refuses tensors that one call of forward() leaves for the next one: a network does not have them."""
    for name, value in constants_of(program).items():
        if isinstance(value, FakeTensor):
            raise Refused(f"forward() reads {name.removeprefix('module.')}, which its call before wrote")


class Own:
    """A hook of an optimizer that is a trainer's."""

    def __init__(self, function):
        self.function = function

    def __call__(self, *_):
        self.function()


def hooks_of_optimizer(optimizer):
    """Whether functions of the program are to be called around a step of an optimizer, or for gradients of its parameters."""
    hooks = (getattr(optimizer, name, None) or {} for name in ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks"))
    if any(not isinstance(one, Own) for found in hooks for one in found.values()):
        return True
    return any(hooks_of(one) for group in optimizer.param_groups for one in group["params"])


def constants_of(program):
    """The constant tensors of a program, by name."""
    return {name: value for name, value in program.constants.items() if isinstance(value, torch.Tensor)}


def memory(tensor):
    return tensor.untyped_storage().data_ptr()


def baked_constants(program, listed):
    """The constants of the network: tensors that the program holds outside of the module, without those of `listed`."""
    own = {memory(one) for one in listed.values()}
    return [one for one in constants_of(program).values() if memory(one) not in own]


def check_trained(program, optimizer, names):
    """Refuses parameters that train and that the module or the loss has not by itself: they would get no gradient."""
    trains = {memory(one) for group in optimizer.param_groups for one in group["params"] if one.requires_grad}
    for one in constants_of(program).values():
        if memory(one) in trains and memory(one) not in names:
            raise Refused(f"a parameter of the shape {list(one.shape)} is read from a variable outside of the module, where it would get no gradient: "
                          "read it as an attribute of the module, or of a loss that is a torch.nn.Module")


def hooks_of(parameter):
    return bool(parameter._backward_hooks or getattr(parameter, "_post_accumulate_grad_hooks", None))


def with_hooks(parameter, gradient):
    """Sets a parameter's gradient as PyTorch's backward() does."""
    for hook in (parameter._backward_hooks or {}).values():
        made = hook(gradient)
        gradient = gradient if made is None else made
    parameter.grad = gradient
    for hook in (getattr(parameter, "_post_accumulate_grad_hooks", None) or {}).values():
        hook(parameter)


def check_modules(module):
    """Refuses hooks of modules that would change gradients."""
    for name, one in module.named_modules():
        if one._backward_hooks or one._backward_pre_hooks:
            raise Refused(f"{name.removeprefix('module.') or 'the module'} ({type(one).__name__}) has a backward hook, which is not called: "
                          "gradients are computed on the devices")


def place():
    """The line of the program that called, outside of PyTorch and this package."""
    frame = sys._getframe(2)
    while frame and frame.f_code.co_filename.startswith(FOLDERS):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}, in {frame.f_code.co_name}" if frame else "a place that PyTorch does not tell"


@contextlib.contextmanager
def exporting():
    """Within it, what would be lost in a graph that trains is refused: hooks of tensors, and backward() of functions."""
    own_apply, own_hook = torch.autograd.Function.__dict__["apply"], torch.Tensor.register_hook

    def apply(cls, *args, **kwargs):
        given = torch.utils._pytree.tree_leaves((args, kwargs))
        operator = cls.__module__.startswith("torch._library")      # of torch.library.custom_op: it stays whole
        if not operator and torch.is_grad_enabled() and any(isinstance(one, torch.Tensor) and one.requires_grad for one in given):
            raise Refused(f"\n  {place()}\n    {cls.__name__} has a backward() of its own, which is not called. y + (f(x) - y).detach() has the value "
                          "of f(x) and the gradient of y")
        return own_apply.__get__(None, cls)(*args, **kwargs)

    def register_hook(tensor, hook):
        raise Refused(f"\n  {place()}\n    register_hook(): hooks of tensors are not called, gradients are computed on the devices")

    torch.autograd.Function.apply, torch.Tensor.register_hook = classmethod(apply), register_hook
    try:
        yield
    finally:
        torch.autograd.Function.apply, torch.Tensor.register_hook = own_apply, own_hook


def reason(failure):
    """What PyTorch says of an export that failed, in short, with the line of the program."""
    lines = [line.strip() for line in str(failure).splitlines() if line.strip()] or [type(failure).__name__]
    if "Constraints violated" in lines[0] or "specialized" in lines[0]:
        return " for any number of samples, which it is to count by x.shape[0], not len(x): " + " ".join(lines[:2])
    inner = traceback.extract_tb(failure.__traceback__)     # from where it was caught, within this package
    found = [one for one in inner if not one.filename.startswith((*FOLDERS, "<")) and one.filename != contextlib.__file__]
    line = f":\n  {found[-1].filename}:{found[-1].lineno}, in {found[-1].name}: {found[-1].line}\n    " if found else ": "
    return line + lines[0]
