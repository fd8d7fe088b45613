"""Modules of PyTorch train as PyTorch trains them, or are refused. Without torch nothing is tested here."""
import copy

import numpy
import pytest

torch = pytest.importorskip("torch")

import tutti  # noqa: E402
from tutti.torch import Trainer  # noqa: E402

torch.set_num_threads(1)


def small():
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(6, 8, bias=False), torch.nn.BatchNorm1d(8), torch.nn.ReLU(inplace=True), torch.nn.Linear(8, 3))


def batches(count, samples=8):
    random = torch.Generator().manual_seed(5)
    return [(torch.randn(samples, 6, generator=random), torch.randint(0, 3, (samples,), generator=random)) for _ in range(count)]


def train(module, optimizer, data, scheduler=None, loss=None):
    losses = []
    for x, y in data:
        optimizer.zero_grad()
        value = (loss or torch.nn.functional.cross_entropy)(module(x), y)
        value.backward()
        optimizer.step()
        if scheduler:
            scheduler.step()
        losses.append(value.item())
    return losses


def same(one, other):
    for (name, a), b in zip(one.state_dict().items(), other.state_dict().values()):
        assert torch.allclose(a, b, rtol=1e-4, atol=2e-6), name


OPTIMIZERS = {
    "sgd": lambda module: torch.optim.SGD(module.parameters(), 0.1, momentum=0.9, nesterov=True, weight_decay=1e-2),
    "adam": lambda module: torch.optim.Adam(module.parameters(), 1e-2, amsgrad=True, weight_decay=1e-2),
    "adamw": lambda module: torch.optim.AdamW(module.parameters(), 1e-2, betas=(0.8, 0.95)),
    "rmsprop": lambda module: torch.optim.RMSprop(module.parameters(), 1e-2, centered=True, momentum=0.3),
    "adagrad": lambda module: torch.optim.Adagrad(module.parameters(), 1e-2),
    "nadam": lambda module: torch.optim.NAdam(module.parameters(), 1e-2),
    "groups": lambda module: torch.optim.AdamW([{"params": module[0].parameters(), "lr": 1e-3, "weight_decay": 0.1},
                                                {"params": [*module[1].parameters(), *module[3].parameters()]}], lr=1e-2, weight_decay=0.0),
    "by torch": lambda module: torch.optim.Adamax(module.parameters(), 1e-2),
}


@pytest.mark.filterwarnings("ignore:Adamax")
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name):
    """Losses, parameters, running statistics and counters, with a schedule; then PyTorch goes on with the optimizer's states."""
    one, two = small(), small()
    rules = [OPTIMIZERS[name](module) for module in (one, two)]
    schedules = [torch.optim.lr_scheduler.StepLR(rule, 2, 0.5) for rule in rules]
    data = batches(8)
    expected = train(one, rules[0], data[:5], schedules[0])
    trainer, losses = Trainer(two, torch.nn.CrossEntropyLoss(), rules[1]), []
    for x, y in data[:5]:
        losses.append(trainer.step(x, y))
        schedules[1].step()
    assert losses == pytest.approx(expected, rel=1e-4)
    same(one, two)
    assert one[1].num_batches_tracked == two[1].num_batches_tracked == 5
    rules[1].state_dict()
    train(two, rules[1], data[5:])
    train(one, rules[0], data[5:])
    same(one, two)


def test_momentum_that_changes():
    """OneCycleLR changes betas in each step: PyTorch's optimizer goes on by itself, with Tutti's states."""
    one, two = small(), small()
    rules = [torch.optim.AdamW(module.parameters(), 1e-2) for module in (one, two)]
    schedules = [torch.optim.lr_scheduler.OneCycleLR(rule, 1e-2, total_steps=8) for rule in rules]
    expected = train(one, rules[0], batches(6), schedules[0])
    trainer, losses = Trainer(two, torch.nn.CrossEntropyLoss(), rules[1]), []
    with pytest.warns(UserWarning, match="change between steps"):
        for x, y in batches(6):
            losses.append(trainer.step(x, y))
            schedules[1].step()
    assert losses == pytest.approx(expected, rel=1e-4)
    same(one, two)


def test_goes_on_after_pytorch():
    """States that the optimizer has, and parameters that the program changes, are taken; a smaller batch trains too."""
    one, two = small(), small()
    rules = [torch.optim.AdamW(module.parameters(), 1e-2) for module in (one, two)]
    data = batches(3) + batches(2, 5)
    train(one, rules[0], data)
    train(two, rules[1], data[:2])
    trainer = Trainer(two, torch.nn.CrossEntropyLoss(), rules[1])
    for x, y in data[2:]:
        trainer.step(x.numpy(), y.numpy())
    same(one, two)
    for module in (one, two):
        with torch.no_grad():
            module[3].weight.mul_(0.5)
        module[0].weight.data.mul_(0.9)     # which PyTorch does not count
        module[3].bias.data = module[3].bias.data + 0.1
    train(one, rules[0], data)
    for x, y in data:
        trainer.step(x, y)
    same(one, two)


def test_frozen_and_shared():
    one = small()
    one[0].weight.requires_grad = False
    two = copy.deepcopy(one)
    before = one[0].weight.clone()
    rules = [torch.optim.SGD([parameter for name, parameter in module.named_parameters() if name != "3.bias"], 0.1) for module in (one, two)]
    train(one, rules[0], batches(3))
    trainer = Trainer(two, torch.nn.CrossEntropyLoss(), rules[1])
    for x, y in batches(3):
        trainer.step(x, y)
    same(one, two)
    assert torch.equal(before, two[0].weight)


class Lengths(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.cells, self.out = torch.nn.Embedding(9, 5), torch.nn.GRU(5, 4, batch_first=True), torch.nn.Linear(4, 3)

    def forward(self, ids):
        return self.out(self.cells(self.embed(ids))[0].mean(1))


def test_larger_batches_and_other_shapes():
    """The network is made anew, with the rates, groups and states that there were."""
    torch.manual_seed(3)
    one, random = Lengths(), torch.Generator().manual_seed(5)
    two = copy.deepcopy(one)
    rules = [torch.optim.AdamW([{"params": module.embed.parameters(), "lr": 1e-3}, {"params": [*module.cells.parameters(), *module.out.parameters()]}], lr=1e-2) for module in (one, two)]
    schedules = [torch.optim.lr_scheduler.ExponentialLR(rule, 0.7) for rule in rules]
    data = [(torch.randint(0, 9, (samples, length), generator=random), torch.randint(0, 3, (samples,), generator=random)) for samples, length in ((4, 6), (7, 6), (1, 6), (5, 3), (4, 6), (6, 3), (9, 6))]
    expected = train(one, rules[0], data, schedules[0])
    trainer, losses = Trainer(two, torch.nn.CrossEntropyLoss(), rules[1]), []
    for x, y in data:
        losses.append(trainer.step(x, y))
        schedules[1].step()
    assert losses == pytest.approx(expected, rel=1e-4) and len(trainer.kept) == 2
    same(one, two)
    train(one, rules[0], data)      # by PyTorch again: the recurrent layer has its weights
    train(two, rules[1], data)
    same(one, two)


class Writes(torch.nn.Module):
    """Refused at two places."""

    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(6, 3)

    def forward(self, x):
        y = self.fc(x)
        y = y - y.mean(0)
        z = torch.linalg.inv(y[:, None] * y[:, :, None] + 5)
        return y + z.sum(-1).mode(keepdim=True)[0]


def test_refusals():
    module = Writes()
    trainer = Trainer(module, torch.nn.CrossEntropyLoss(), torch.optim.SGD(module.parameters(), 0.1))
    x, y = batches(1)[0]
    with pytest.raises(tutti.UnsupportedError) as refusal:
        trainer.step(x, y)
    text = str(refusal.value)
    assert "y = y - y.mean(0)" in text and "z = torch.linalg.inv" in text and "z.sum(-1).mode(" in text and text.count("test_torch.py") == 3
    module = torch.nn.Sequential(torch.nn.Linear(6, 3))
    trainer = Trainer(module, torch.nn.CrossEntropyLoss(), torch.optim.SGD(module.parameters(), 0.1))
    trainer.step(x, y)
    with pytest.raises(ValueError):
        trainer.step(x, y[:3])
    with pytest.raises(TypeError):
        Trainer(module, torch.nn.CrossEntropyLoss())


def test_dropout():
    """Drops, other elements in each step, and keeps the mean."""
    module = torch.nn.Sequential(torch.nn.Linear(4, 2000, bias=False), torch.nn.Dropout(0.5))
    with torch.no_grad():
        module[0].weight.fill_(0.25)
    trainer = Trainer(module, lambda outputs, targets: (outputs - targets).square().mean(), torch.optim.SGD(module.parameters(), 1e-9))
    x, y = torch.ones(16, 4), torch.zeros(16, 2000)
    losses = [trainer.step(x, y) for _ in range(3)]
    assert numpy.allclose(losses, 2.0, atol=0.05) and len(set(losses)) == 3


class Attends(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.queries = torch.nn.Linear(8, 8)

    def forward(self, x):
        x = x.unflatten(2, (4, 2)).transpose(1, 2)      # grouped: two heads of keys for four of queries
        q = self.queries(x.transpose(1, 2).flatten(2)).unflatten(2, (4, 2)).transpose(1, 2)
        return torch.nn.functional.scaled_dot_product_attention(q, x[:, :2], x[:, :2], dropout_p=0.5 if self.training else 0.0,
                                                                is_causal=True, enable_gqa=True)


def test_dropout_of_attention():
    """Weights are dropped in training, others in each step; their mean stays."""
    module = Attends()
    trainer = Trainer(module, lambda outputs, targets: (outputs * targets).mean(), torch.optim.SGD(module.parameters(), 1e-9))
    x, y = torch.ones(256, 5, 8), torch.ones(256, 4, 5, 2)
    losses = [trainer.step(x, y) for _ in range(4)]
    assert numpy.allclose(losses, 1.0, atol=0.1) and len(set(losses)) == 4
    assert numpy.allclose(trainer.predict(x), 1.0, atol=1e-6)


class OwnLoss(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = small()

    def forward(self, x, labels):
        logits = self.body(x)
        return {"logits": logits, "loss": torch.nn.functional.cross_entropy(logits, labels)}


def test_loss_of_the_module():
    """The module returns its loss; the norm of gradients is clipped."""
    one, losses = OwnLoss(), []
    two = copy.deepcopy(one)
    rules = [torch.optim.SGD(module.parameters(), 0.5) for module in (one, two)]
    trainer = Trainer(two, None, rules[1], clip_norm=0.1)
    for x, y in batches(4):
        rules[0].zero_grad()
        loss = one(x, labels=y)["loss"]
        loss.backward()
        torch.nn.utils.clip_grad_norm_(one.parameters(), 0.1)
        rules[0].step()
        losses.append(loss.item())
        assert trainer.step({"x": x, "labels": y}) == pytest.approx(loss.item(), rel=1e-4)
    same(one, two)


class Several(torch.nn.Module):
    """Dictionaries and tuples as inputs and outputs."""

    def __init__(self):
        super().__init__()
        self.body, self.cells = small(), torch.nn.LSTM(4, 5)

    def forward(self, table, pair):
        frames, more = pair["frames"], pair["more"]
        y, (h, _) = self.cells(frames.transpose(0, 1))
        logits = self.body(table) + more
        return {"logits": logits, "rest": (y, h, logits.argmax(1)), "ones": torch.ones(2)}


def test_predict():
    """As the module in evaluation mode, whose mode and numbers stay, before and after training; more samples, and other shapes."""
    torch.manual_seed(2)
    module, random = Several(), torch.Generator().manual_seed(5)
    trainer = Trainer(module, lambda outputs, y: torch.nn.functional.cross_entropy(outputs["logits"], y) + outputs["rest"][0].square().mean(),
                      torch.optim.SGD(module.parameters(), 0.1), batch_size=8)
    for samples, length in ((5, 3), (13, 3), (1, 4), (5, 3)):
        x = {"table": torch.randn(samples, 6, generator=random), "pair": {"frames": torch.randn(samples, length, 4, generator=random), "more": torch.randn(samples, 3, generator=random)}}
        y = torch.randint(0, 3, (samples,), generator=random)
        if samples == 5:
            trainer.step(x, y)
        found = trainer.predict(x)
        assert module.training and module.body[1].training
        module.eval()
        with torch.no_grad():
            expected = module(**x)
            loss = trainer.whole.loss(expected, y).item()
        module.train()
        flat = torch.utils._pytree.tree_flatten
        assert flat(found)[1] == flat(expected)[1]
        for one, other in zip(flat(found)[0], flat(expected)[0]):
            assert one.dtype == other.dtype and one.shape == other.shape and torch.allclose(one, other, rtol=1e-4, atol=1e-5)
        assert trainer.evaluate(x, y) == pytest.approx(loss, rel=1e-4)
    assert trainer.evaluate([(x, y), (x, y)]) == pytest.approx(loss, rel=1e-4)
    with torch.no_grad():
        module.body[3].bias.add_(1)
    assert torch.allclose(trainer.predict(x)["logits"], found["logits"] + 1, atol=1e-5)
