"""Whole programs as people write them, which look at the module while its numbers are on the devices: compared with PyTorch's own loop."""
import copy
import gc
import io
import subprocess
import sys
import types

import pytest

torch = pytest.importorskip("torch")

import tutti  # noqa: E402
from tutti.torch import Trainer, ahead  # noqa: E402
from tutti.torch.settings import Watch  # noqa: E402

torch.set_num_threads(1)
F, nn = torch.nn.functional, torch.nn
LOSS = nn.CrossEntropyLoss()


def batches(count):
    random = torch.Generator().manual_seed(5)
    return [(torch.randn(8, 6, generator=random), torch.randint(0, 3, (8,), generator=random)) for _ in range(count)]


def small():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(6, 12, bias=False), nn.BatchNorm1d(12), nn.Tanh(), nn.Linear(12, 3))


def by_torch(module, rule, x, y, loss=LOSS):
    rule.zero_grad()
    value = loss(module(x), y)
    value.backward()
    rule.step()
    return value.item()


def sgd(module):
    return torch.optim.SGD(module.parameters(), 0.1, momentum=0.9)


def adamw(module):
    return torch.optim.AdamW(module.parameters(), 1e-2)


def same(one, other):
    for (name, a), b in zip(one.state_dict().items(), other.state_dict().values()):
        assert torch.allclose(a, b, rtol=1e-4, atol=2e-5), name


def compare(change, make=small, rule=adamw, steps=6, loss=lambda module: LOSS):
    """Trains with PyTorch and with Tutti. change(step, module, rule) after each step may return what is to be the same."""
    one, two = make(), make()
    rules = [rule(one), rule(two)]
    trainer = Trainer(two, loss(two), rules[1])
    for step, (x, y) in enumerate(batches(steps)):
        expected = by_torch(one, rules[0], x, y, loss(one))
        assert trainer.step(x, y) == pytest.approx(expected, rel=1e-4), step
        found = change(step, one, rules[0]), change(step, two, rules[1])
        for a, b in zip(*(torch.utils._pytree.tree_leaves(each) for each in found)):
            assert a is None or torch.allclose(torch.as_tensor(a), torch.as_tensor(b), rtol=1e-4, atol=2e-5), step
    same(one, two)
    return trainer


def probe(module):
    return module(batches(1)[0][0]).detach()


def evaluated(step, module, rule):
    module.eval()
    with torch.inference_mode():
        found = probe(module).clone()
    if step != 3:   # after it the program forgets train()
        module.train()
    return found


def saved(step, module, rule):
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    return torch.load(file, weights_only=False).state_dict()


def halved(step, module, rule):
    module[3].weight.data.mul_(0.5)
    for one in module[:2].parameters():
        one.data.clamp_(-0.3, 0.3)


def loaded(step, module, rule):
    if step == 2:
        module.load_state_dict(small().state_dict())
    if step == 3:
        module[0].load_state_dict(small()[0].state_dict())


def by_torch_too(step, module, rule):
    return by_torch(module, rule, *batches(1)[0]) if step % 3 == 1 else None


def frozen(step, module, rule):
    if step in (1, 3):
        module[0].requires_grad_(step == 3)
        module[0].weight.grad = None


LOOKS = {
    "a call": lambda step, module, rule: probe(module.eval()) if module.train() else None,
    "evaluation": evaluated,
    "an attribute": lambda step, module, rule: module[3].weight.detach().clone(),
    "parameters": lambda step, module, rule: [one.detach().clone() for one in module.parameters()],
    "a submodule's state": lambda step, module, rule: copy.deepcopy(module[1].state_dict()),
    "a copy": lambda step, module, rule: copy.deepcopy(module).state_dict(),
    "a file": saved,
    "writes": halved,
    "states": loaded,
    "moves": lambda step, module, rule: module.to(torch.float32) and None,
    "PyTorch's steps": by_torch_too,
    "freezing": frozen,
}


@pytest.mark.filterwarnings("ignore:the optimizer's parameters have made")
@pytest.mark.parametrize("name", LOOKS)
def test_looks(name):
    """Without sync(), each of these has the numbers of the last step."""
    before = {each: getattr(nn.Module, each) for each in ahead.NAMES}
    trainer = compare(LOOKS[name])
    trainer.sync()
    assert not ahead.trainers and before == {each: getattr(nn.Module, each) for each in ahead.NAMES}


@pytest.mark.filterwarnings("ignore:the optimizer's parameters have made")
@pytest.mark.parametrize("rule", [sgd, adamw])
def test_group_that_is_added(rule):
    def add(step, module, optimizer):
        if step == 2:
            optimizer.add_param_group({"params": [*module[0].parameters()], "lr": 1e-3})
    compare(add, rule=lambda module: rule(module[1:]))


def test_averages():
    """By AveragedModel, and by hand."""
    averages = {}

    def average(step, module, rule):
        if module not in averages:
            averages[module] = torch.optim.swa_utils.AveragedModel(module, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9)), copy.deepcopy(module)
        theirs, own = averages[module]
        theirs.update_parameters(module)
        with torch.no_grad():
            for one, other in zip(own.parameters(), module.parameters()):
                one.lerp_(other, 0.1)
        return theirs.state_dict(), own.state_dict()
    compare(average)


def test_writes_that_would_be_lost():
    """Tensors that the program holds do not ask: what it adds to old numbers is refused, and the devices' numbers stay."""
    module, expected = small(), small()
    rule = sgd(module)
    trainer, (x, y) = Trainer(module, LOSS, rule), batches(1)[0]
    trainer.step(x, y)
    by_torch(expected, sgd(expected), x, y)
    with torch.no_grad():
        rule.param_groups[0]["params"][0].mul_(0.5)
    with pytest.raises(tutti.UnsupportedError, match=r"wrote into 0.weight .* call trainer.sync\(\) before"):
        trainer.step(x, y)
    same(module, expected)


def test_trainer_that_is_dropped():
    module, expected = small(), small()
    Trainer(module, LOSS, sgd(module)).step(*batches(1)[0])
    gc.collect()
    by_torch(expected, sgd(expected), *batches(1)[0])
    same(module, expected)


class Both(nn.Module):
    def __init__(self, generator, critic):
        super().__init__()
        self.generator, self.critic = generator, critic

    def forward(self, z):
        return self.critic(self.generator(z))


def adversaries():
    torch.manual_seed(2)
    return (nn.Sequential(nn.Linear(4, 16, bias=False), nn.BatchNorm1d(16), nn.Tanh(), nn.Linear(16, 6)),
            nn.Sequential(nn.Linear(6, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1)))


def adversarial(generator, critic, step_of):
    """Two trainings that share the critic."""
    random, losses = torch.Generator().manual_seed(1), []
    for _ in range(5):
        real, z = torch.randn(8, 6, generator=random) + 2, torch.randn(8, 4, generator=random)
        with torch.no_grad():
            fake = generator(z)
        losses.append(step_of[1](torch.cat([real, fake]), torch.cat([torch.ones(8, 1), torch.zeros(8, 1)])))
        for one in critic.parameters():
            one.data.clamp_(-0.3, 0.3)
        losses.append(step_of[0](z, torch.ones(8, 1)))
    return losses


def test_adversaries():
    loss, one, two = nn.BCEWithLogitsLoss(), adversaries(), adversaries()
    rules = [torch.optim.SGD(module.parameters(), 0.3, momentum=0.5) for module in one]
    expected = adversarial(*one, [lambda x, y: by_torch(Both(*one), rules[0], x, y, loss), lambda x, y: by_torch(one[1], rules[1], x, y, loss)])
    rules = [torch.optim.SGD(module.parameters(), 0.3, momentum=0.5) for module in two]
    trainers = [Trainer(Both(*two), loss, rules[0]), Trainer(two[1], loss, rules[1])]
    assert adversarial(*two, [one.step for one in trainers]) == pytest.approx(expected, rel=1e-4)
    for a, b in zip(one, two):
        same(a, b)


NEW_PROCESS = """
import sys
sys.path.insert(0, {folder!r})
from test_torch_programs import *
module = small()
rule, kept = adamw(module), torch.load({file!r})
trainer = Trainer(module, LOSS, rule)
if {late}:
    trainer.step(*batches(1)[0])
module.load_state_dict(kept["module"])
rule.load_state_dict(kept["rule"])
for x, y in batches(6)[3:]:
    trainer.step(x, y)
torch.save(module.state_dict(), {file!r})
"""


@pytest.mark.parametrize("late", [False, True])
def test_checkpoint(tmp_path, late):
    one, two, file = small(), small(), str(tmp_path / "kept.pt")
    rules = [adamw(one), adamw(two)]
    trainer = Trainer(two, LOSS, rules[1])
    for x, y in batches(3):
        trainer.step(x, y)
    torch.save({"module": two.state_dict(), "rule": rules[1].state_dict()}, file)
    subprocess.run([sys.executable, "-B", "-c", NEW_PROCESS.format(folder=__file__.rpartition("/")[0], file=file, late=late)], check=True)
    for x, y in batches(6):
        by_torch(one, rules[0], x, y)
    two.load_state_dict(torch.load(file))
    same(one, two)


def test_compiled_while_it_trains():
    """torch.compile(module) with another backend reads the trained parameters, too."""
    compiled = {}

    def infer(step, module, rule):
        if module not in compiled:
            compiled[module] = [torch.compile(module, backend="eager"), torch.compile(lambda x: module(x) * 2, backend="tutti")]
        module.eval()
        with torch.no_grad():
            found = [one(batches(1)[0][0]).clone() for one in compiled[module]]
        module.train()
        return found
    compare(infer, steps=3)


FACTOR = 1.0


class Reads(nn.Module):
    """What forward() reads besides parameters."""

    def __init__(self):
        super().__init__()
        self.body, self.options, self.table, self.list = small(), types.SimpleNamespace(scale=1.0), {"shift": 0.0}, [torch.ones(3), torch.ones(3)]

    def forward(self, x):
        return (self.body(x) * self.options.scale + self.table["shift"]) * self.list[0] * self.list[1] * FACTOR


def option(step, module):
    module.options.scale += 0.5


def entry(step, module):
    module.table["shift"] += 0.5


def item(step, module):
    module.list[1] = torch.full((3,), 2.0 + step)


def number_in_place(step, module):
    module.list[0].data.mul_(1.5)


def variable(step, module):
    global FACTOR
    FACTOR = 1.5 + step


@pytest.mark.parametrize("change", [option, entry, item, number_in_place, variable])
def test_what_forward_reads(change):
    """The network is made anew, and after some times a warning says so."""
    global FACTOR
    one, two = Reads(), Reads()
    rules, expected, FACTOR = [sgd(one), sgd(two)], [], 1.0
    for step, (x, y) in enumerate(batches(5)):
        expected.append(by_torch(one, rules[0], x, y))
        change(step, one)
    trainer, FACTOR = Trainer(two, LOSS, rules[1]), 1.0
    name = {option: "Reads.options", entry: "Reads.table", item: "Reads.list", number_in_place: "a tensor outside", variable: "FACTOR"}[change]
    with pytest.warns(UserWarning, match=f"{name}.* changes from step to step") as warned:
        for step, (x, y) in enumerate(batches(5)):
            assert trainer.step(x, y) == pytest.approx(expected[step], rel=1e-4), step
            change(step, two)
    assert len([one for one in warned if "from step to step" in str(one.message)]) == 1


def test_teacher_of_a_loss():
    """A module that the loss calls: its numbers and its mode are followed."""
    teacher = nn.Sequential(nn.Linear(6, 3), nn.Dropout(0.0), nn.BatchNorm1d(3)).requires_grad_(False).eval()

    def loss(outputs, targets):
        return F.mse_loss(outputs, teacher(targets))
    one, two = small(), small()
    rules, data, expected = [sgd(one), sgd(two)], [x for x, _ in batches(5)], []
    kept = copy.deepcopy(teacher.state_dict())
    for step, x in enumerate(data):
        expected.append(by_torch(one, rules[0], x, x, loss))
        teacher[0].weight.data.mul_(2 if step == 1 else 1)
    teacher.load_state_dict(kept)
    trainer = Trainer(two, loss, rules[1])
    for step, x in enumerate(data):
        assert trainer.step(x, x) == pytest.approx(expected[step], rel=1e-4), step
        teacher[0].weight.data.mul_(2 if step == 1 else 1)
    same(one, two)
    teacher.train()
    with pytest.raises(tutti.UnsupportedError, match="running statistics are no buffers of the module"):
        trainer.step(data[0], data[0])


def test_teacher_that_trains():
    """The second training's loss calls the module of the first."""
    one, two, losses = [small(), small()], [small(), small()], []

    def loss_of(teacher):
        return lambda outputs, targets: F.mse_loss(outputs, teacher(targets).detach())
    for pair in (one, two):
        pair[0][1].eval()
    rules = [[torch.optim.SGD(module.parameters(), 0.3) for module in pair] for pair in (one, two)]
    for x, y in batches(3):
        losses += [by_torch(one[0], rules[0][0], x, y), by_torch(one[1], rules[0][1], x, x, loss_of(one[0]))]
    trainers = [Trainer(two[0], LOSS, rules[1][0]), Trainer(two[1], loss_of(two[0]), rules[1][1])]
    found = [trainer.step(x, y if trainer is trainers[0] else x) for x, y in batches(3) for trainer in trainers]
    assert found == pytest.approx(losses, rel=1e-4)


def test_parameters_outside_of_the_module():
    """Where the module has them, they train; where a variable has them, they would get no gradient."""
    def decayed(parameters):
        return lambda outputs, targets: LOSS(outputs, targets) + 0.1 * sum(one.square().sum() for one in parameters())
    compare(lambda *_: None, loss=lambda module: decayed(module.parameters))
    module, head = small(), nn.Linear(3, 3)
    held = [*module.parameters()]
    for loss in (decayed(lambda: held), lambda outputs, targets: LOSS(head(outputs), targets)):
        trainer = Trainer(module, loss, torch.optim.SGD([*module.parameters(), *head.parameters()], 0.1))
        with pytest.raises(tutti.UnsupportedError, match="read from a variable outside of the module"):
            trainer.step(*batches(1)[0])


def test_other_types():
    for module in (small().double(), small().to(torch.bfloat16)):
        with pytest.raises(tutti.UnsupportedError, match=r"parameter 0.weight is torch.*module.float\(\)"):
            Trainer(module, LOSS, sgd(module)).step(*batches(1)[0])


def test_watch():
    """It sees each change of an attribute, a tensor, a module, and is otherwise the same object."""
    module = Reads()
    watch = Watch([module])
    changes = [lambda: setattr(module, "new", 1), lambda: setattr(module, "new", 2), lambda: delattr(module, "new"), lambda: module.eval(), lambda: module.body[3].weight.requires_grad_(False),
               lambda: setattr(module.body[3], "bias", nn.Parameter(torch.zeros(3))), lambda: module.body.append(nn.Tanh()), lambda: module.register_buffer("more", torch.ones(2)),
               lambda: setattr(module, "more", torch.ones(2)), lambda: module.body.__setitem__(2, nn.ReLU()), lambda: setattr(module.body[1], "eps", 1e-3)]
    for change in changes:
        made = watch.settings()
        assert watch.settings() is made
        change()
        assert watch.settings() is not made
