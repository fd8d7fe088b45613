"""Buffers that forward() writes from parameters, as spectral_norm does: five steps with batches of five and three give PyTorch's numbers,
and the buffers come back."""
import pytest

torch = pytest.importorskip("torch")

from test_torch_operators import agree  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

import tutti  # noqa: E402
from tutti.torch import Trainer  # noqa: E402

old, new = nn.utils.spectral_norm, nn.utils.parametrizations.spectral_norm


class Critic(nn.Module):
    def __init__(self, norm):
        super().__init__()
        self.first, self.second, self.last = norm(nn.Conv2d(2, 5, 3, padding=1)), norm(nn.ConvTranspose2d(5, 5, 2, 2)), norm(nn.Linear(5, 1))

    def forward(self, x):
        return self.last(functional.leaky_relu(self.second(functional.leaky_relu(self.first(x), 0.2)), 0.2).mean((2, 3)))


def images(count=5):
    random = torch.Generator().manual_seed(6)
    return [(torch.randn(samples, 2, 5, 5, generator=random), torch.randn(samples, 1, generator=random)) for samples in [5, 3, 1, 4, 5][:count]]


NORMS = {"old": old, "new": new, "old twice": lambda layer: old(layer, n_power_iterations=2), "new three times": lambda layer: new(layer, n_power_iterations=3),
         "weights": nn.utils.parametrizations.weight_norm}


@pytest.mark.parametrize("name", NORMS)
def test_norms(name):
    torch.manual_seed(4)
    agree(Critic(NORMS[name]), functional.mse_loss, images(), torch.optim.SGD if name != "new" else lambda parameters, rate: torch.optim.Adam(parameters, rate / 100))


def test_evaluation():
    """After training, predict() reads the buffers that the steps have written; in evaluation mode a step writes none."""
    torch.manual_seed(4)
    module, (x, y) = Critic(new), images(1)[0]
    trainer = Trainer(module, functional.mse_loss, torch.optim.SGD(module.parameters(), 0.1))
    for _ in range(3):
        trainer.step(x, y)
        found = trainer.predict(x)
        module.eval()
        assert torch.allclose(found, module(x), rtol=1e-5, atol=1e-6)
        module.train()
    trainer.sync()
    had = module.last.parametrizations.weight[0]._u.clone()
    module.eval()
    trainer.step(x, y)
    trainer.sync()
    assert torch.equal(had, module.last.parametrizations.weight[0]._u)


class Own(nn.Module):
    def __init__(self, formula):
        super().__init__()
        self.formula, self.first = formula, nn.Linear(6, 6)
        self.register_buffer("kept", torch.linspace(0.1, 1, 6))

    def forward(self, x):
        return self.formula(self, self.first(x))


def annealed(module, x):
    y = x * module.kept.clone()
    with torch.no_grad():
        module.kept.mul_(0.9)
    return y + module.kept


def averaged(module, x):
    y = functional.layer_norm(x, (6,), module.kept.clone())
    with torch.no_grad():
        module.kept.mul_(0.9).add_(module.first.weight.mean(0), alpha=0.1)
        module.kept.copy_(module.kept @ torch.outer(module.first.weight[0], module.first.bias) + module.kept)
    return y * module.kept.exp()


OWN = {"annealed": annealed, "averaged": averaged, "counted": lambda module, x: (module.kept.add_(1), x * module.kept.reciprocal())[1],
       "multiplied": lambda module, x: (module.kept.copy_((module.first.weight.detach() @ module.kept).tanh()), x * module.kept.exp() + module.kept.sin())[1]}


@pytest.mark.parametrize("name", OWN)
def test_own(name):
    torch.manual_seed(4)
    random = torch.Generator().manual_seed(6)
    agree(Own(OWN[name]), functional.mse_loss, [(torch.randn(samples, 6, generator=random), torch.randn(samples, 6, generator=random)) for samples in (5, 3, 1, 4, 5)])


REFUSED = {
    "of which it has read a part": lambda module, x: (lambda part: (module.kept.add_(1), x + part.sum())[1])(module.kept[:3]),
    "into a parameter or an input": lambda module, x: (module.kept[:3].add_(1), x)[1],
}


@pytest.mark.parametrize("words", REFUSED)
def test_refused(words):
    module = Own(REFUSED[words])
    with pytest.raises(tutti.UnsupportedError, match=words):
        Trainer(module, functional.mse_loss, torch.optim.SGD(module.parameters(), 0.1)).step(torch.randn(5, 6), torch.randn(5, 6))
