"""Operators that order elements, read and write by index: five steps with batches of five and three give PyTorch's numbers."""
import pytest

torch = pytest.importorskip("torch")

from test_torch_operators import Between, agree  # noqa: E402

import tutti  # noqa: E402
from tutti.torch import Trainer  # noqa: E402


def written(x, at, value):
    y = x.clone()
    y[at(y) if callable(at) else at] = value
    return y


def waves(x):
    """As positions are encoded: every second element."""
    y = torch.zeros(x.shape[0], 4, 12)
    y[:, :, 0::2] = x.sin()
    y[:, :, 1::2] = x.cos()
    y[:, 1:4:2] *= 2
    return y


def copied(x):
    y = x.index_copy(1, torch.tensor([2, 0]), x[:, 1:3]).index_fill(2, torch.tensor([0, -1]), 0.5)
    y[:, [3, 1, 0]] = x[:, :3] * 2
    y[:, :, [2]] = torch.tensor([0.5, -1, 2, 3])[:, None]
    return y


def thresholds(x):
    return x.masked_fill(x < x.topk(3, -1)[0][..., -1, None], -1.0) + x.kthvalue(2, 1, keepdim=True)[0] - x.median(2, keepdim=True).values + x.quantile(0.3, dim=1, keepdim=True)


ORDERED = {
    "topk": lambda x: (lambda v, i: torch.gather(x * 2, 2, i) + v)(*x.topk(3, -1)), "smallest": lambda x: torch.topk(x, 2, dim=1, largest=False).values * torch.arange(1, 3)[:, None],
    "experts": lambda x: (x * torch.zeros_like(x).scatter(2, x.topk(2, -1).indices, 1.0)).softmax(1), "thresholds": thresholds,
    "sorted": lambda x: x.sort(-1)[0] * torch.arange(6), "sorted down": lambda x: (lambda v, i: v * i + x.gather(1, i))(*torch.sort(x, dim=1, descending=True, stable=True)),
    "argsort": lambda x: x.gather(1, x.argsort(1)) * torch.arange(4)[:, None] + (x.argsort(-1).argsort(-1) * x)[:, :, :6], "equal ones": lambda x: ((x * 2).round().sort(-1)[0] * 0.1 + x.sort(1, True)[0]).mul(torch.arange(6)),
    "msort": lambda x: torch.msort(x.permute(1, 2, 0)).permute(2, 0, 1) * torch.arange(4)[:, None], "running": lambda x: x.cumprod(1) + x.cumprod(2) + x.logcumsumexp(1) - x.logcumsumexp(-1) * 2,
    "products with zero": lambda x: (x * (torch.arange(6) != 2)).cumprod(-1), "far apart": lambda x: (x * 200).logcumsumexp(-1) * 0.01, "differences": lambda x: x.diff(dim=1).diff(2, 2),
    "positions": lambda x: (lambda v, i: v * i)(*x.max(-1)) + (lambda v, i: v + x.gather(1, i.unsqueeze(1)).squeeze(1).mean(-1, keepdim=True))(*x.min(1))[:, :4],
    "interleaved": lambda x: x.repeat_interleave(2, 1)[:, 1:5] * torch.arange(4)[:, None] + x.repeat_interleave(3, dim=-1)[:, :, 4:10],
    "interleaved samples": lambda x: (x.repeat_interleave(2, 0).softmax(-1).unflatten(0, (-1, 2)) * torch.tensor([1.0, 3])[:, None, None]).sum(1),
    "numbers": lambda x: written(x, lambda y: y > 0.2, 0.5) + written(x, lambda y: y[:, :, 0] > 0, torch.arange(6.0)), "waves": waves, "copied": copied,
    "own places": lambda x: written(x, lambda y: (torch.arange(y.shape[0]), y.sum(2).argmax(1)), 0) + written(x, lambda y: (torch.arange(y.shape[0]), y.sum(2).argmin(1) - 4), x[:, 1] * 2),
    "reduced": lambda x: reduced(x),
    "other sizes": lambda x: x.gather(1, (x[:, :2, :3] > 0).long() + 1) + x.gather(2, torch.tensor([[[5, 0, 0]]]).expand(x.shape[0], 2, 3)),
}


def reduced(x):
    places = (x * 2).long().abs() % 3
    zeros = torch.zeros(x.shape[0], 4, 3)
    x = x.tanh()
    return zeros.scatter_reduce(2, places, x, "mean") + zeros.scatter_reduce(2, places, x, "sum") * 0.2 + x[:, :, :3].scatter_reduce(2, places, x, "mean", include_self=False) + x[:, :, 3:].scatter_reduce(2, places, x, "sum", include_self=False)


@pytest.mark.parametrize("name", ORDERED)
def test_ordered(name):
    torch.manual_seed(4)
    random = torch.Generator().manual_seed(6)
    agree(Between(ORDERED[name]), lambda outputs, targets: (outputs.flatten(1) * targets).mean() + outputs.square().mean(),
          [(torch.randn(samples, 4, 6, generator=random), torch.randn(samples, 1, generator=random)) for samples in (5, 3, 5, 3, 5)])


REFUSED = {
    "torch.where": lambda x: x[x > 0], "x \\* mask": lambda x: x.masked_select(x > 0), "with a mask": lambda x: x[x.nonzero(as_tuple=True)], "one_hot": lambda x: x * torch.histc(x.detach(), 6),
    "scatter_add": lambda x: x.index_put([torch.arange(x.shape[0]), x.sum(2).argmax(1)], x[:, 0], accumulate=True), "give it an axis": lambda x: x - x.median(), "of the shape of x": lambda x: x.masked_scatter(x > 0, x),
    "sum and mean are": lambda x: x.scatter_reduce(1, (x > 0).long(), x, "amax"), "along the batch": lambda x: x.sort(0)[0], "several times": lambda x: x.index_copy(1, torch.tensor([2, 2]), x[:, 1:3]), "repeats that differ": lambda x: x.repeat_interleave(torch.tensor([1, 2, 1, 1]), 1),
}


@pytest.mark.parametrize("words", REFUSED)
def test_refused(words):
    module = Between(REFUSED[words])
    with pytest.raises(tutti.UnsupportedError, match=words):
        Trainer(module, lambda outputs, targets: (outputs * outputs).mean(), torch.optim.SGD(module.parameters(), 0.1)).step(torch.randn(5, 4, 6), torch.randn(5))
