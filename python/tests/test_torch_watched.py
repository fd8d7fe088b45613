"""What a program changes between steps is followed, and what PyTorch's export would lose is refused with its line."""
import copy

import pytest

torch = pytest.importorskip("torch")

import tutti  # noqa: E402
from tutti.torch import Trainer  # noqa: E402

torch.set_num_threads(1)


class Net(torch.nn.Module):
    """A formula between two layers, which reads attributes of the module."""

    def __init__(self, formula=lambda self, x: torch.tanh(x)):
        super().__init__()
        torch.manual_seed(3)
        self.first, self.last = torch.nn.Linear(6, 8), torch.nn.Linear(8, 3)
        self.formula, self.scale, self.kept = formula, 1.0, None
        self.register_buffer("mask", torch.arange(8.0))
        self.table = torch.linspace(0, 1, 8)

    def forward(self, x):
        return self.last(self.formula(self, self.first(x)))


class Annealed:
    """A loss that is an object, and no module."""
    factor = 0.1

    def __call__(self, outputs, targets):
        return torch.nn.functional.cross_entropy(outputs, targets) + self.factor * outputs.square().mean()


def batches(count):
    random = torch.Generator().manual_seed(5)
    return [(torch.randn(8, 6, generator=random), torch.randint(0, 3, (8,), generator=random)) for _ in range(count)]


def compare(module, rule, change, loss=None, steps=4):
    """Trains with PyTorch and with Tutti; change(step, module, optimizer, loss) is called after each step."""
    loss = loss or torch.nn.CrossEntropyLoss()
    one, two, losses = module, copy.deepcopy(module), (loss, copy.deepcopy(loss))
    rules, expected = [rule(one), rule(two)], []
    for step, (x, y) in enumerate(batches(steps)):
        rules[0].zero_grad()
        value = losses[0](one(x), y)
        value.backward()
        rules[0].step()
        expected.append(value.item())
        change(step, one, rules[0], losses[0])
    trainer = Trainer(two, losses[1], rules[1])
    for step, (x, y) in enumerate(batches(steps)):
        assert trainer.step(x, y) == pytest.approx(expected[step], rel=1e-4), step
        change(step, two, rules[1], losses[1])
    for (name, a), b in zip(one.state_dict().items(), two.state_dict().values()):
        assert torch.allclose(a, b, rtol=1e-4, atol=2e-6), name
    return trainer


def sgd(module):
    return torch.optim.SGD(module.parameters(), 0.1, momentum=0.9)


def replace(step, module, rule, loss):
    if step == 1:
        torch.manual_seed(9)
        module.last = torch.nn.Linear(8, 3)
        rule.param_groups[0]["params"][2:] = module.last.parameters()


def roll(step, module, rule, loss):
    module.mask, module.table = module.mask.roll(1), module.table.roll(1)


CHANGES = {
    "an attribute": (Net(lambda self, x: torch.tanh(x) * self.scale), sgd, lambda step, module, rule, loss: setattr(module, "scale", 2.0 + step)),
    "a loss": (Net(), sgd, lambda step, module, rule, loss: setattr(loss, "factor", 0.1 + step)),
    "a layer": (Net(), lambda module: torch.optim.SGD(module.parameters(), 0.1), replace),
    "a formula": (Net(), sgd, lambda step, module, rule, loss: setattr(module, "first", torch.nn.Sequential(module.first, torch.nn.ReLU())) if step == 1 else None),
    "tensors": (Net(lambda self, x: torch.tanh(x) * self.mask + self.table), sgd, roll),
    "decay": (Net(), lambda module: torch.optim.AdamW(module.parameters(), 1e-2), lambda step, module, rule, loss: rule.param_groups[0].update(weight_decay=0.5 * step)),
    "a group": (Net(), lambda module: torch.optim.SGD(module.first.parameters(), 0.1),
                lambda step, module, rule, loss: rule.add_param_group({"params": [*module.last.parameters()], "lr": 0.05}) if step == 1 else None),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changes(name):
    """The network is made anew: a graph has what it read as constants."""
    module, rule, change = CHANGES[name]
    compare(module, rule, change, loss=Annealed() if name == "a loss" else None)


def test_loss_that_reads_a_variable():
    factor = 1.0

    def loss(outputs, targets):
        return factor * torch.nn.functional.cross_entropy(outputs, targets)

    module = Net()
    trainer, (x, y) = Trainer(module, loss, torch.optim.SGD(module.parameters(), 0.0)), batches(1)[0]
    first, factor = trainer.step(x, y), 3.0
    assert trainer.step(x, y) == pytest.approx(3 * first, rel=1e-5)


def test_no_new_network():
    """Where nothing changes, no second network is made; what a module keeps of its call is a tensor with numbers, or what it was."""
    module = Net(lambda self, x: self.keep(torch.tanh(x)))
    Net.keep = lambda self, x: setattr(self, "kept", x) or x
    trainer = Trainer(module, torch.nn.CrossEntropyLoss(), sgd(module))
    for x, y in batches(3):
        trainer.step(x, y)
        trainer.predict(x)
    assert len(trainer.kept) == len(trainer.predictors) == 1 and module.kept is None


def doubled(parameter):
    parameter.grad.mul_(2)


def with_hooks(module):
    module.first.weight.register_hook(lambda gradient: gradient * 0.5)
    module.last.bias.register_post_accumulate_grad_hook(doubled)
    return torch.optim.SGD(module.parameters(), 0.1)


def clamped(module):
    rule = torch.optim.SGD(module.parameters(), 0.1)
    rule.register_step_post_hook(lambda *_: [one.data.clamp_(-0.2, 0.2) for one in module.parameters()])
    return rule


@pytest.mark.parametrize("rule", [with_hooks, clamped])
def test_hooks_of_parameters_and_optimizers(rule):
    """They are called, by PyTorch's optimizer."""
    with pytest.warns(UserWarning, match="have hooks"):
        compare(Net(), rule, lambda *_: None)


def test_hooks_that_come_later():
    with pytest.warns(UserWarning, match="have hooks"):
        compare(Net(), sgd, lambda step, module, rule, loss: module.first.weight.register_hook(lambda gradient: gradient * 0.5) if step == 1 else None)


@pytest.mark.filterwarnings("ignore:Rprop")
def test_optimizer_without_decay():
    compare(Net(), lambda module: torch.optim.Rprop(module.parameters(), 1e-2), lambda *_: None)


def test_parameters_without_gradients():
    """Those whose results are detached, or computed under no_grad(), keep their numbers, where an optimizer with decay would change them."""
    module = Net(lambda self, x: self.with_silent(x))
    module.other, module.third = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)
    Net.with_silent = lambda self, x: torch.tanh(x) + self.other(x).detach() + self.silent(x)
    Net.silent = torch.no_grad()(lambda self, x: self.third(x))
    compare(module, lambda module: torch.optim.AdamW(module.parameters(), 1e-2, weight_decay=0.5), lambda *_: None)


class Straight(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return torch.sign(x)

    @staticmethod
    def backward(context, gradient):
        return gradient


def counts(self, x):
    self.scale += 1
    return x * self.scale


def carries(self, x):
    self.kept = x if self.kept is None else self.kept + x
    return self.kept


def assigns(self, x):
    self.mask = self.mask * 0.9
    return x * 2


def hooked(self, x):
    if x.requires_grad:
        x.register_hook(lambda gradient: gradient * 2)
    return x * 2


def decides(self, x):
    return x * 2 if x.sum() > 0 else x


REFUSED = {
    "backward": (lambda self, x: Straight.apply(x), "test_torch_watched.py:.*Straight has a backward"),
    "hooks": (hooked, "test_torch_watched.py:.*in hooked\n.*register_hook"),
    "counts": (counts, "changes Net.scale"),
    "carries": (carries, "reads .*kept.*, which its call before wrote"),
    "assigns": (assigns, "assigns the buffer mask"),
    "decides": (decides, "test_torch_watched.py:.*in decides: return x"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    formula, text = REFUSED[name]
    module = Net(formula)
    trainer = Trainer(module, torch.nn.CrossEntropyLoss(), sgd(module))
    with pytest.raises(tutti.UnsupportedError, match="(?s)" + text) as refusal:
        trainer.step(*batches(1)[0])
    assert len(str(refusal.value)) < 600


def test_predicts_functions_of_ones_own():
    """Without gradients, the formula alone counts."""
    module = Net(lambda self, x: Straight.apply(x))
    trainer, x = Trainer(module, torch.nn.CrossEntropyLoss(), sgd(module)), batches(1)[0][0]
    with torch.no_grad():
        expected = module.eval()(x)
    assert torch.allclose(trainer.predict(x), expected, atol=1e-6)


def test_backward_hook_of_a_module():
    module = Net()
    module.first.register_full_backward_hook(lambda *_: None)
    with pytest.raises(tutti.UnsupportedError, match=r"first \(Linear\) has a backward hook"):
        Trainer(module, torch.nn.CrossEntropyLoss(), sgd(module)).step(*batches(1)[0])


def test_optimizer_with_a_closure():
    module = Net()
    with pytest.raises(TypeError, match="LBFGS"):
        Trainer(module, torch.nn.CrossEntropyLoss(), torch.optim.LBFGS(module.parameters()))
