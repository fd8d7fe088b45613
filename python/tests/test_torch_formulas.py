"""Operators that are formulas of the library's operations, and losses with margins: five steps give PyTorch's numbers."""
import pytest

torch = pytest.importorskip("torch")

from test_torch_operators import Between, agree  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

import tutti  # noqa: E402
from tutti.torch import Trainer  # noqa: E402

FORMULAS = {
    "activations": lambda x: functional.glu(x, 1).repeat(1, 2, 1) + functional.softplus(x, 2) + functional.threshold(x, 0.1, -0.3) + functional.hardshrink(x) + functional.softshrink(x, 0.2),
    "logarithms": lambda x: (x * x * 1e-4).log1p() * 1e4 + (x * 0.05).expm1() * 20 + x.abs().log1p() + x.expm1() * 0.1 + x.exp2() + (x * x + 1).log2() + (x * x + 1).log10(),
    "others": lambda x: x.erfc() + x.absolute() - x.negative() + x.frac() + (x > 0).any(1, keepdim=True) * x + (x > -1).all(2, keepdim=True) * x,
    "bounds": lambda x: torch.clamp(x, min=torch.zeros(6) - 0.2, max=torch.ones(6)) + torch.clip(x, x.detach() * 0 - 0.1),
    "distances": lambda x: 0.3 * functional.cosine_similarity(x[:, :2], x[:, 2:], dim=1) + 0.1 * functional.pairwise_distance(x[:, :2], x[:, 2:]).sum(1, keepdim=True) + functional.cosine_similarity(x, x + 1, dim=2).mean(1, keepdim=True),
    "moments": lambda x: sum(torch.var_mean(x, -1)) + sum(torch.std_mean(x, dim=2, unbiased=False)), "products": lambda x: x @ torch.outer(torch.arange(6.0), torch.ones(3)) * 0.1,
    "pictures": lambda x: functional.adaptive_max_pool1d(x, 1) + functional.adaptive_max_pool2d(x[:, None], 1)[:, 0] + functional.channel_shuffle(x[:, :, :, None], 2)[..., 0]
                          + functional.interpolate(x[:, None, None], (1, 4, 6), mode="trilinear")[:, 0, 0] + functional.interpolate(x[:, None, None], (2, 4, 6))[:, 0, 1],
}


@pytest.mark.parametrize("name", FORMULAS)
def test_formulas(name):
    torch.manual_seed(4)
    random = torch.Generator().manual_seed(6)
    agree(Between(FORMULAS[name]), lambda outputs, targets: -(outputs.flatten(1) * targets).mean() + outputs.square().mean(),
          [(torch.randn(samples, 4, 6, generator=random), torch.randn(samples, 1, generator=random)) for samples in (5, 3, 5, 3, 5)])


class Halves(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.product = nn.Linear(6, 9), nn.Bilinear(3, 3, 3)

    def forward(self, x):
        one, two, three = self.layer(x).chunk(3, 1)
        return one, two, three + self.product(one, two)


def signs(t):
    return torch.where(t[:, 0] > 0, 1.0, -1.0)


LOSSES = {
    "ranking": lambda y, t: functional.margin_ranking_loss(y[0], y[2], torch.where(t > 0, 1.0, -1.0), 0.1), "hinge": lambda y, t: functional.hinge_embedding_loss(y[2], torch.where(t > 0, 1.0, -1.0), 0.8, reduction="sum"),
    "three": lambda y, t: functional.triplet_margin_loss(*y, reduction="sum") + functional.triplet_margin_loss(*y, margin=0.5, p=1, swap=True) * 0.2, "cosine": lambda y, t: functional.cosine_embedding_loss(y[0], y[2], signs(t), 0.2),
    "chosen": lambda y, t: -y[2].log_softmax(1).gather(1, (t[:, :1] > 0).long()).mean() - y[0].log_softmax(1)[torch.arange(t.shape[0]), (t[:, 0] > 0).long()].mean(),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses(name):
    torch.manual_seed(4)
    random = torch.Generator().manual_seed(6)
    agree(Halves(), LOSSES[name], [(torch.randn(samples, 6, generator=random), torch.randn(samples, 3, generator=random)) for samples in (5, 3, 5, 3, 5)])


def test_refused():
    module = nn.Linear(6, 3)
    with pytest.raises(tutti.UnsupportedError, match="as it is a mean or a sum over the samples"):
        Trainer(module, lambda outputs, targets: functional.mse_loss(outputs, targets).sqrt(), torch.optim.SGD(module.parameters(), 0.1)).step(torch.randn(5, 6), torch.randn(5, 3))
