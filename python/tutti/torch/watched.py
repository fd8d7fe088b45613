"""What PyTorch's export does not see: numbers that a program changes, hooks of gradients, and formulas for gradients of its own."""
import contextlib
import itertools
import os
import sys
import traceback

import torch
from torch._subclasses.fake_tensor import FakeTensor

from .values import Refused

PLAIN = (bool, int, float, complex, str, type(None))
OWN = frozenset(vars(torch.nn.Module())) - {"training"}     # what every module has
MOST = 64       # values of a list that are compared
FOLDERS = os.path.dirname(torch.__file__) + os.sep, os.path.dirname(__file__) + os.sep


def plain(value):
    """What a number, a word, a list of them or a tensor is compared by; Ellipsis for all else, which is not compared."""
    if isinstance(value, PLAIN):
        return value
    if isinstance(value, torch.Tensor):     # one that an export left has no numbers
        return FakeTensor if isinstance(value, FakeTensor) else (id(value), None if value.is_inference() else value._version)
    if isinstance(value, (tuple, list)) and len(value) <= MOST and all(isinstance(one, PLAIN) for one in value):
        return tuple(value)
    return ...


def plain_in(found):
    return tuple((name, made) for name, made in ((name, plain(value)) for name, value in found.items() if name not in OWN) if made is not ...)


def loss_settings(loss):
    """Numbers that a loss reads: attributes of an object, what a function has from outside of it."""
    function = getattr(loss, "__func__", loss)
    code = getattr(function, "__code__", None)
    found = dict(vars(getattr(loss, "__self__", loss))) if hasattr(getattr(loss, "__self__", loss), "__dict__") else {}
    if code is not None:
        known = function.__globals__
        found.update((name, known[name]) for name in code.co_names if name in known)
        for name, cell in zip(code.co_freevars, function.__closure__ or ()):
            with contextlib.suppress(ValueError):   # not set yet
                found[name] = cell.cell_contents
    return plain_in(found)


def settings(modules, loss=None):
    """What a graph is traced for: the modules, their parameters and buffers, and their attributes that are numbers, words or tensors.
    A graph has these as constants, so a network is made anew when they change."""
    made = []
    for one in itertools.chain.from_iterable(module.modules() for module in modules):
        tensors = itertools.chain(one._parameters.values(), one._buffers.values())
        made.append((one, plain_in(vars(one)), tuple((id(tensor), tensor.requires_grad) for tensor in tensors if tensor is not None)))
    if loss is not None and not isinstance(loss, torch.nn.Module):
        made.append((None, loss_settings(loss), ()))
    return tuple(made)


def changed(before, after):
    """The names of attributes that differ."""
    found = []
    for (module, one, _), (other, two, _) in zip(before, after):
        if module is other:
            one, two, owner = dict(one), dict(two), "" if module is None else type(module).__name__ + "."
            found += [owner + name for name in sorted(one.keys() | two.keys()) if one.get(name, ...) != two.get(name, ...)]
    return found


def attributes(modules):
    """(module, its attributes that are its own) of all modules."""
    return [(one, {name: value for name, value in vars(one).items() if name not in OWN}) for module in modules for one in module.modules()]


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

    def begin(self):
        self.before, self.buffers = settings(self.modules), [dict(one.named_buffers()) for one in self.modules]

    def end(self):
        """Refuses buffers that were replaced, which an export of a module within another one does not tell."""
        self.names, self.left = changed(self.before, settings(self.modules)), attributes(self.modules)
        for module, before in zip(self.modules, self.buffers):
            for name, buffer in module.named_buffers():
                if before.get(name, buffer) is not buffer:
                    raise Refused(f"forward() assigns the buffer {name}, which is not written back")


def check_constants(program):
    """Refuses tensors that one call of forward() leaves for the next one: a network does not have them."""
    for name, value in program.constants.items():
        if isinstance(value, FakeTensor):
            raise Refused(f"forward() reads {name.removeprefix('module.')}, which its call before wrote")


def hooks_of_optimizer(optimizer):
    """Whether functions are to be called around a step of an optimizer, or for gradients of its parameters."""
    if any(getattr(optimizer, name, None) for name in ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks")):
        return True
    return any(hooks_of(one) for group in optimizer.param_groups for one in group["params"])


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
