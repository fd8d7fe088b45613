"""Losses of PyTorch: the numbers, and all parameters after some steps, are PyTorch's. Without torch nothing is tested here."""
import copy

import pytest

torch = pytest.importorskip("torch")

import tutti  # noqa: E402
from tutti.torch import Trainer  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

torch.set_num_threads(1)
WEIGHTS = torch.tensor([0.5, 2.0, 0.0, 1.5, 3.0])


def tokens(length):
    torch.manual_seed(3)
    return nn.Sequential(nn.Embedding(9, 6), nn.Linear(6, 5)), lambda n, random: torch.randint(0, 9, (n, length), generator=random)


def table(outputs=5):
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, outputs)), lambda n, random: torch.randn(n, 6, generator=random)


def labels(*shape, ignored=None, share=0.3):
    def make(n, random):
        y = torch.randint(0, 5, (n, *shape), generator=random)
        return y if ignored is None else torch.where(torch.rand(y.shape, generator=random) < share, ignored, y)
    return make


def numbers(*shape, low=0.0):
    return lambda n, random: torch.rand(n, *shape, generator=random) * (1 - low) + low


def masked(outputs, y):
    """A mean over what the targets say counts."""
    each = functional.cross_entropy(outputs.transpose(1, 2), y.clamp(min=0), reduction="none")
    mask = (y >= 0).float()
    return (each * mask).sum() / mask.sum().clamp(min=1)


def shifted(outputs, y):
    """A language model's: the next token is the target."""
    next_ones = functional.pad(y, (0, 1), value=-100)[..., 1:].contiguous()
    return functional.cross_entropy(outputs.view(-1, 5), next_ones.view(-1), reduction="sum") / (next_ones != -100).sum()


def flattened(outputs, y):
    return functional.cross_entropy(outputs.flatten(0, 1), y.flatten())


def pair(outputs):
    return outputs[:, :5], outputs[:, 5:10]


def signs(*shape):
    return lambda n, random: torch.randint(0, 2, (n, *shape), generator=random) * 2 - 1


def contrastive(outputs, y):
    """As siamese networks have it."""
    apart = functional.pairwise_distance(*pair(outputs))
    return torch.where(y > 0, apart.square(), (2.0 - apart).clamp(min=0).square()).mean()


CASES = {
    "contrastive": (table(10), signs(), contrastive),
    "distances": (table(10), signs(), lambda o, y: functional.pairwise_distance(*pair(o), p=1, eps=0.1, keepdim=True).mean()),
    "triplets": (table(15), signs(), lambda o, y: functional.triplet_margin_loss(*o.split(5, 1), margin=0.5)),
    "triplets, the nearer one": (table(15), signs(), lambda o, y: functional.triplet_margin_loss(*o.split(5, 1), swap=True, p=1, reduction="sum")),
    "cosines": (table(10), signs(), lambda o, y: functional.cosine_embedding_loss(*pair(o), y)),
    "cosines, with a margin": (table(10), signs(), lambda o, y: functional.cosine_embedding_loss(*pair(o), y, margin=0.2, reduction="sum")),
    "ranking": (table(10), signs(5), lambda o, y: functional.margin_ranking_loss(*pair(o), y, margin=0.1)),
    "ignored": (tokens(7), labels(7, ignored=-100), flattened),
    "ignored, another number": (table(), labels(ignored=3), nn.CrossEntropyLoss(ignore_index=3)),
    "weights": (table(), labels(), nn.CrossEntropyLoss(weight=WEIGHTS)),
    "weights, smoothing, ignored": (tokens(7), labels(7, ignored=-100), lambda o, y: functional.cross_entropy(o.transpose(1, 2), y, weight=WEIGHTS, label_smoothing=0.2)),
    "smoothing, ignored": (table(), labels(ignored=-100), nn.CrossEntropyLoss(label_smoothing=0.3)),
    "sum": (table(), labels(ignored=-100), nn.CrossEntropyLoss(reduction="sum", weight=WEIGHTS, label_smoothing=0.1)),
    "each, weighted": (table(), labels(), lambda o, y: (functional.cross_entropy(o, y, reduction="none") * (y + 1)).mean()),
    "probabilities": (table(), lambda n, random: torch.rand(n, 5, generator=random).softmax(1), nn.CrossEntropyLoss(weight=WEIGHTS, label_smoothing=0.1)),
    "probabilities of the module": (table(), numbers(5), lambda o, y: functional.cross_entropy(o, (o * y).softmax(1))),
    "masked mean": (tokens(7), labels(7, ignored=-1), masked),
    "shifted": (tokens(7), labels(7, ignored=-100, share=0.2), shifted),
    "nll": (table(), labels(ignored=-100), lambda o, y: functional.nll_loss(o.log_softmax(1), y, weight=WEIGHTS)),
    "by the number of samples": (table(), labels(), lambda o, y: functional.cross_entropy(o, y, reduction="sum") / o.shape[0] * 2),
    "bce": (table(), numbers(5), nn.BCEWithLogitsLoss(pos_weight=WEIGHTS, weight=WEIGHTS + 1)),
    "bce, sum": (table(), numbers(5), nn.BCEWithLogitsLoss(reduction="sum")),
    "bce of probabilities": (table(), numbers(5), lambda o, y: functional.binary_cross_entropy(o.sigmoid(), y, weight=y + 1)),
    "mse, sum": (table(), numbers(5), nn.MSELoss(reduction="sum")),
    "l1": (table(), numbers(5), nn.L1Loss()),
    "smooth l1": (table(), numbers(5), nn.SmoothL1Loss(beta=0.3)),
    "smooth l1, sum": (table(), numbers(5), nn.SmoothL1Loss(beta=0.3, reduction="sum")),
    "huber": (table(), numbers(5), nn.HuberLoss(delta=0.4)),
    "kl": (table(), numbers(5, low=0.1), lambda o, y: functional.kl_div(o.log_softmax(1), y, reduction="batchmean")),
    "kl of logarithms": (table(), numbers(5, low=0.1), lambda o, y: functional.kl_div(o.log_softmax(1), y.log(), log_target=True, reduction="sum")),
    "soft margin": (table(), lambda n, random: torch.randint(0, 2, (n, 5), generator=random) * 2.0 - 1, nn.SoftMarginLoss()),
    "poisson": (table(), numbers(5), nn.PoissonNLLLoss()),
    "multiplied": (table(), labels(), lambda o, y: torch.multiply(functional.cross_entropy(o, y), 0.5)),
    "two": (table(), labels(ignored=-100), lambda o, y: nn.CrossEntropyLoss()(o, y) + 0.1 * o.square().sum() / o.shape[0] + o.abs().mean()),
}


@pytest.mark.parametrize("name", CASES)
def test_losses(name):
    """Batches of several sizes, with labels that do not count in some."""
    (module, inputs), targets, loss = CASES[name]
    one, two, random = copy.deepcopy(module), copy.deepcopy(module), torch.Generator().manual_seed(4)
    rules = [torch.optim.Adam(each.parameters(), 1e-2) for each in (one, two)]
    trainer = Trainer(two, loss, rules[1], batch_size=8)
    for samples in (8, 8, 5, 8, 2):
        x, y = inputs(samples, random), targets(samples, random)
        rules[0].zero_grad()
        value = loss(one(x), y)
        value.backward()
        rules[0].step()
        assert trainer.step(x, y) == pytest.approx(value.item(), rel=2e-5, abs=1e-6)
    for (key, a), b in zip(one.state_dict().items(), two.state_dict().values()):
        assert torch.allclose(a, b, rtol=1e-4, atol=2e-5), key


def test_wrong_labels_and_refusals():
    (module, inputs), random = table(), torch.Generator().manual_seed(4)
    rule = torch.optim.SGD(module.parameters(), 0.1)
    trainer = Trainer(module, nn.CrossEntropyLoss(), rule)
    for wrong in (5, -1):
        with pytest.raises(IndexError):
            trainer.step(inputs(2, random), torch.tensor([0, wrong]))
    for loss in (lambda o, y: (o - o.mean()).square().mean(), lambda o, y: o.square().mean() * o.abs().mean(), lambda o, y: o.softmax(0).mean(),
                 lambda o, y: o.square().mean().sqrt(), lambda o, y: functional.cross_entropy(o, o.argmax(1))):
        with pytest.raises(tutti.UnsupportedError):
            Trainer(module, loss, rule).step(inputs(2, random), torch.tensor([0, 1]))
