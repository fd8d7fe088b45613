"""Formulas of PyTorch between two layers, x [samples, 4, 6]: two steps give the losses and parameters that PyTorch gets."""
import copy
import warnings

import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional  # noqa: E402

import tutti  # noqa: E402
from tutti.torch import Trainer  # noqa: E402

table = torch.linspace(-1, 1, 24).reshape(4, 6)
mask = torch.tensor([[1, 1, 0, 1]] * 4, dtype=torch.bool).tril()


def in_place(x):
    y = x * 2
    y.add_(1).mul_(0.5)
    y += x
    return torch.relu_(y)


def views(x):
    """Writes into parts: of numbers, of others, and of constants."""
    y = x * 1
    y[:, 0] = 1
    y[:, 1:3, 2:] *= 2
    y[:, 3] = y[:, 2] + 1
    y[..., -1].add_(0.5)
    places = torch.zeros(4, 6)
    places[1:, :3] = 2
    places[0].fill_(3)
    z = torch.zeros(x.shape[0], 5, 6)
    z[:, 1:].view(x.shape[0], 24)[:, 4:20] = (y + places).flatten(1)[:, 4:20]
    return torch.relu(z)[:, 1:] + y


def scattered(x):
    places = (x > 0).long() + torch.arange(4)[:, None] % 3
    y = torch.zeros_like(x).scatter_add(1, places, x).scatter(2, torch.tensor([[[1]]]).expand(x.shape[0], 4, 1), x[:, :, :1])
    return y.index_add(2, torch.tensor([0, 3, 3]), x[:, :, 1:4], alpha=0.5)


def own_rows(x):
    """Rows of a sample by numbers of its own, elements by pairs of numbers."""
    samples, best = torch.arange(x.shape[0]), x.sum(2).argmax(1)
    return x[samples, best][:, None] * x + x[samples, best, best][:, None, None] + x[:, [0, -1, 2], [1, 1, 5]].sum(1)[:, None, None]


def spectrum(x):
    """Complex numbers, through all of their operators."""
    y = torch.fft.rfft2(x, norm="ortho")
    z = torch.zeros(x.shape[0], 4, 4, dtype=torch.cfloat)
    z[:, :2, :3] = torch.einsum("bij,jk->bik", y[:, :2, :3], torch.complex(table[:3, :3], table[1:, 1:4]))
    z[:, -1:] = (y * 0.5 - y.conj() / 2)[:, -1:]
    return torch.fft.irfft2(z, s=(4, 6)) + torch.fft.irfft(torch.fft.rfft(x, dim=1), n=4, dim=1) + torch.fft.fft2(x).real + torch.fft.ifft(torch.fft.fft(x), norm="forward").abs()


def windows(x):
    """Halves of a sample as samples of their own, and back."""
    y = x.view(x.shape[0], 2, 2, 6).permute(0, 2, 1, 3).reshape(-1, 2, 6)
    return (y.softmax(-1) @ y.transpose(1, 2)).view(x.shape[0], 2, 2, 2).permute(0, 2, 1, 3).flatten(1)


def length_first(x):
    y = x.transpose(0, 1)
    return (y * table[:, None]).permute(1, 2, 0).contiguous()


def heads(x):
    """As in nn.MultiheadAttention: heads join the batch, after it."""
    y = x.transpose(0, 1).reshape(4, x.shape[0] * 2, 3).transpose(0, 1)
    y = torch.bmm(y.softmax(-1), y.transpose(1, 2))
    return y.transpose(0, 1).reshape(4, x.shape[0], 8).transpose(0, 1)


def whole(x):
    """Whole numbers and truth values that are written, filled and added."""
    numbers, masks = torch.zeros(x.shape[0], 4, 6, dtype=torch.long), torch.zeros(x.shape[0], 4, 6, dtype=torch.bool)
    numbers[:, 1:3] = (x * 3)[:, 1:3]
    masks[:, 0] = x[:, 1].floor()
    return x * numbers + x * masks + x * torch.full((x.shape[0], 4, 6), 1.7, dtype=torch.long) + ((x > 0) + (x < 0.5)) * x


def own_token(x):
    return torch.cat([table[:1].expand(x.shape[0], 1, 6), x, torch.zeros(x.shape[0], 2, 6)], 1)


FORMULAS = {
    "whole": whole, "in_place": in_place, "views": views, "scattered": scattered, "own_rows": own_rows, "spectrum": spectrum, "windows": windows, "length_first": length_first, "heads": heads, "own_token": own_token,
    "attention": lambda x: functional.scaled_dot_product_attention(x[:, None], x[:, None], x[:, None] * 2, is_causal=True),
    "attention_masked": lambda x: functional.scaled_dot_product_attention(x.unflatten(2, (2, 3)).transpose(1, 2), x.unflatten(2, (2, 3)).transpose(1, 2),
                                                                          x.unflatten(2, (2, 3)).transpose(1, 2), attn_mask=mask, scale=0.7),
    "attention_added": lambda x: functional.scaled_dot_product_attention(x, x, x, attn_mask=table[:, :4]),
    "masked_fill": lambda x: (x @ x.mT).masked_fill(~mask, float("-inf")).softmax(-1),
    "where": lambda x: torch.where(x > 0.1, x.exp(), table) + (x < -0.2).float() * x.abs(),
    "detach": lambda x: x * x.detach() + x.detach().sigmoid() * x.sum(1, keepdim=True),
    "variance": lambda x: (x - x.mean(1, keepdim=True)) / (x.var(1, keepdim=True, unbiased=False) + 0.1).sqrt() + x.std(-1, keepdim=True),
    "extremes": lambda x: x.max(2)[0] + x.min(dim=2).values + x.amax(-1) - torch.maximum(x, -x).sum(-1),
    "parts": lambda x: torch.cat([x[:, 1:3, ::2], x[:, -2:, :3], x.flip(1)[:, :2, 3:], x.roll(1, 2)[:, 2:, :3]], 1),
    "pieces": lambda x: torch.stack([one * (number + 1) for number, one in enumerate(x.unbind(1))] * 3, 1) + torch.cat(x.chunk(3, 2)[::-1], 2).repeat(1, 3, 1),
    "powers": lambda x: x ** 2 + (x ** 2 + 0.5) ** 0.5 + (x.abs() + 0.3) ** 1.7 + 2 ** x + (x ** 2 + 1).rsqrt() - (1 - x) / (x ** 2 + 2),
    "functions": lambda x: functional.gelu(x, approximate="tanh") + functional.hardswish(x) + functional.elu(x, 0.7) + functional.softsign(x) + functional.logsigmoid(x) + x.clamp(-0.3, 0.4),
    "bounds": lambda x: (x * (x > 0)).clamp(min=0) + (x * 0).clamp(-1, 0) + functional.relu6(x * 9) + functional.hardtanh(x * 3),
    "rows": lambda x: x[:, [2, 0, 1]] * x.index_select(1, torch.tensor([3, 3, 0])),
    "gathered": lambda x: x.gather(2, (torch.arange(6) * 5 % 6).expand(x.shape[0], 4, 6)),
    "einsum": lambda x: torch.einsum("bij,bkj->bik", x, x) + torch.einsum("bij,kj->bik", x, table),
    "einsum_dots": lambda x: torch.einsum("...j,kj->...k", x, table) + torch.einsum("...ij,...kj", x, x) + torch.einsum("...j,...j->...j", x, table) @ table.T,
    "einsum_without_result": lambda x: torch.einsum("aij,kj", x, table),
    "cumsum": lambda x: x.cumsum(1) + x.logsumexp(2, keepdim=True) + torch.tril(x),
    "norms": lambda x: functional.normalize(x, dim=-1) + functional.layer_norm(x, (4, 6)) + functional.rms_norm(x, (6,)) + functional.group_norm(x, 2),
    "pooling": lambda x: functional.max_pool1d(x, 3, 2, 1) + functional.avg_pool1d(x, 3, 2, 1, count_include_pad=False) + functional.adaptive_avg_pool1d(x, 3),
    "pooling2": lambda x: functional.avg_pool2d(x[:, None], 2, 2, ceil_mode=True) * functional.max_pool2d(x[:, None], (2, 2), ceil_mode=True),
    "resized": lambda x: functional.interpolate(x[:, None], (7, 9), mode="bilinear") + functional.interpolate(x[:, None], (7, 9), mode="nearest")
                         + functional.interpolate(x[:, None], (7, 9), mode="bilinear", align_corners=True),
    "padded": lambda x: functional.pad(x, (1, 2, -1, 1), value=0.5) * functional.pad(x, (2, 1), mode="reflect").mean(1, keepdim=True)[:, :, :9],
    "shuffled": lambda x: functional.pixel_unshuffle(x[:, None], 2) + 0.1 * functional.pixel_shuffle(functional.pixel_unshuffle(x[:, None], 2), 2).mean((2, 3), keepdim=True),
    "lengths": lambda x: x * (torch.arange(4)[None, :] < x.shape[1] - 1)[:, :, None] + x.shape[2],
    "types": lambda x: x * (x > 0).to(torch.int64) + (x > 0.5).sum(-1, keepdim=True) / 3 + x.argmax(-1, keepdim=True),
    "vectors": lambda x: (x @ table[0]) * x.mean(2) + (x * table).sum((1, 2))[:, None],
    "normal_conv": lambda x: functional.conv1d(x.reshape(x.shape[0] * 2, 2, 6), table[:3, :4].reshape(3, 2, 2), padding=1).view(x.shape[0], 2, 3, 7),
}
LOSSES = {
    "nll": (lambda y, t: functional.nll_loss(y.flatten(1).log_softmax(1), t[1]), 1), "segments": (lambda y, t: functional.cross_entropy(y.transpose(1, 2), t[2]), 1),
    "smoothed": (lambda y, t: functional.cross_entropy(y.flatten(0, 1), t[2].flatten(), label_smoothing=0.2), 1), "huber": (lambda y, t: functional.huber_loss(y, t[0], delta=0.4), 1),
    "probabilities": (lambda y, t: functional.cross_entropy(y.flatten(1), t[0].flatten(1).softmax(1)), 1), "kl": (lambda y, t: functional.kl_div(y.log_softmax(2), t[0].softmax(2), reduction="none").mean(), 1),
    "bce": (lambda y, t: functional.binary_cross_entropy(y.sigmoid(), t[0].sigmoid()), 1), "own": (lambda y, t: ((y - t[0]) ** 2).sum((1, 2)).mean() / 3 + 0.1 * (y.exp() - y).mean() * 2, 1),
    "soft_margin": (lambda y, t: functional.softplus(-y * t[0].sign()).mean() - 0.5 * functional.l1_loss(y, t[0]), 1),
}


class Between(torch.nn.Module):
    def __init__(self, formula):
        super().__init__()
        self.formula, self.first, self.last = formula, torch.nn.Linear(6, 6), torch.nn.Linear(1, 1)

    def forward(self, x):
        return self.last(self.formula(self.first(x)).unsqueeze(-1)).squeeze(-1)


def agree(module, loss, data, rule=torch.optim.SGD):
    other = copy.deepcopy(module)
    one, two = (rule(each.parameters(), 0.1) for each in (module, other))
    trainer = Trainer(other, loss, two)
    for x, y in data:
        one.zero_grad()
        expected = loss(module(*x) if isinstance(x, tuple) else module(x), y)
        expected.backward()
        one.step()
        assert trainer.step(x, y) == pytest.approx(expected.item(), rel=2e-5, abs=1e-6)
    for name, value in module.state_dict().items():
        assert torch.allclose(value, other.state_dict()[name], rtol=1e-4, atol=1e-5), name


@pytest.mark.parametrize("name", FORMULAS)
def test_formulas(name):
    torch.manual_seed(4)
    warnings.simplefilter("ignore")
    random = torch.Generator().manual_seed(6)
    agree(Between(FORMULAS[name]), lambda outputs, targets: (outputs.flatten(1) * targets).mean() + outputs.square().mean(),
          [(torch.randn(samples, 4, 6, generator=random), torch.randn(samples, 1, generator=random)) for samples in (5, 3)])


class Heads(torch.nn.Module):
    """PyTorch's attention with a mask of padding, the length first, and a batch normalisation that does not train."""

    def __init__(self):
        super().__init__()
        self.attention, self.norm, self.out = torch.nn.MultiheadAttention(6, 2), torch.nn.BatchNorm1d(6), torch.nn.Linear(6, 1)
        self.norm.running_mean += 0.3
        self.norm.running_var *= 2

    def forward(self, x):
        y, weights = self.attention(x.transpose(0, 1), x.transpose(0, 1), x.transpose(0, 1), key_padding_mask=x[:, :, 0] > 0.8)
        return self.out(self.norm(y.permute(1, 2, 0)).mT).mean((1, 2)) + weights.square().sum((1, 2))


class Standardised(torch.nn.Module):
    """Weights with the statistics of batch normalisation, a convolution of a constant, and losses that sum() adds."""

    def __init__(self):
        super().__init__()
        self.weight, self.gain, self.positions = torch.nn.Parameter(torch.randn(6, 6)), torch.nn.Parameter(torch.ones(6)), torch.nn.Conv2d(2, 6, 1)

    def forward(self, x):
        weight = functional.batch_norm(self.weight[None], None, None, self.gain, training=True, momentum=0.0)[0]
        return functional.linear(x + self.positions(table[:2, :4].reshape(1, 2, 4, 1))[..., 0].mT, weight)


def test_standardised():
    torch.manual_seed(4)
    random = torch.Generator().manual_seed(6)
    agree(Standardised(), lambda outputs, targets: sum(functional.mse_loss(one, targets[:, 0]) for one in outputs.unbind(1)),
          [(torch.randn(samples, 4, 6, generator=random), torch.randn(samples, 4, 6, generator=random)) for samples in (5, 3)])


class Complex(torch.nn.Module):
    """Weights that are complex, weight normalisation, and dropout in place that drops nothing."""

    def __init__(self):
        super().__init__()
        self.weight, self.out = torch.nn.Parameter(torch.randn(4, 4, dtype=torch.cfloat)), torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(6, 6))

    def forward(self, x):
        y = torch.fft.irfft(torch.fft.rfft(x, dim=2) * self.weight, n=6)
        return self.out(torch.nn.functional.dropout(y, 0.0, inplace=True))


@pytest.mark.parametrize("rule", (torch.optim.SGD, torch.optim.Adam))
def test_complex_weights(rule):
    torch.manual_seed(4)
    random = torch.Generator().manual_seed(6)
    agree(Complex(), lambda outputs, targets: functional.mse_loss(outputs, targets), [(torch.randn(samples, 4, 6, generator=random), torch.randn(samples, 4, 6, generator=random)) for samples in (5, 3)], rule)


def test_heads():
    torch.manual_seed(4)
    module, random = Heads(), torch.Generator().manual_seed(6)
    module.norm.eval()
    agree(module, lambda outputs, targets: functional.mse_loss(outputs, targets), [(torch.randn(samples, 4, 6, generator=random), torch.randn(samples, generator=random)) for samples in (5, 3)])


REFUSED = {
    "batch mean": lambda x: x - x.mean(0), "batch index": lambda x: x[torch.arange(x.shape[0]) // 2], "number of samples": lambda x: x * x.shape[0],
    "filled with it": lambda x: x + torch.full_like(x, x.shape[0]), "samples in pairs": lambda x: x @ x.T if x.ndim == 2 else (x.flatten(1) @ x.flatten(1).T),
    "reversed samples": lambda x: x.flip(0), "positions of samples": lambda x: x + torch.arange(x.shape[0])[:, None, None], "half": lambda x: x.half().float(),
    "another view": lambda x: (x[:, :1], x.mul_(2))[0], "a mixed view": lambda x: x.reshape(4, -1, 6).transpose(0, 1),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    module = Between(lambda x: REFUSED[name](x * 1))
    with pytest.raises(tutti.UnsupportedError):
        Trainer(module, lambda outputs, targets: (outputs * outputs).mean(), torch.optim.SGD(module.parameters(), 0.1)).step(torch.randn(5, 4, 6), torch.randn(5))


def without_gradients(x):
    with torch.no_grad():
        x[:, 0] *= 2
    return x


# Writes of which PyTorch makes no new values, where nothing trains yet.
WRITES = {
    "chunk": lambda x: (x.chunk(2, 2)[0].mul_(2), x)[1], "unbind": lambda x: (x.unbind(1)[1].mul_(3), x)[1], "split": lambda x: (x.split([1, 2, 1], 1)[1].copy_(x[:, 2:]), x)[1],
    "parts": lambda x: (x.tensor_split(2, 2)[1].neg_(), x)[1], "read later": lambda x: [x.chunk(2, 2), x.add_(1)][0][1], "without gradients": without_gradients,
    "a copy": lambda x: (x[:, :, :3].reshape(-1, 12).add_(1), x)[1], "a flat copy": lambda x: (x[:, :, :3].flatten(1).add_(1), x)[1],
    "rounded": lambda x: x * x.long().masked_fill_(x > 0, 0.5),
}


class First(torch.nn.Module):
    def __init__(self, formula):
        super().__init__()
        self.formula, self.last = formula, torch.nn.Linear(6, 1)

    def forward(self, x):
        y = self.formula(x * 1)
        return self.last(y if y.shape[-1] == 6 else y.repeat(1, 1, 2))


@pytest.mark.parametrize("name", WRITES)
def test_refused_writes(name):
    for module in (First(WRITES[name]), Between(lambda x: WRITES[name](x * 1))):
        with pytest.raises(tutti.UnsupportedError):
            Trainer(module, lambda outputs, targets: (outputs * outputs).mean(), torch.optim.SGD(module.parameters(), 0.1)).step(torch.randn(5, 4, 6), torch.randn(5))


def test_refused_detached_writes():
    module = Between(lambda x: (lambda y: (y.detach().mul_(2), y)[1])(x * 1))
    with pytest.raises(tutti.UnsupportedError, match="has a gradient"):
        Trainer(module, lambda outputs, targets: (outputs * outputs).mean(), torch.optim.SGD(module.parameters(), 0.1)).step(torch.randn(5, 4, 6), torch.randn(5))


@pytest.mark.parametrize("name", LOSSES)
def test_losses(name):
    torch.manual_seed(4)
    random = torch.Generator().manual_seed(6)
    loss, _ = LOSSES[name]
    agree(torch.nn.Linear(6, 6), loss, [(torch.randn(samples, 4, 6, generator=random), (torch.randn(samples, 4, 6, generator=random), torch.randint(0, 24, (samples,), generator=random),
                                         torch.randint(0, 6, (samples, 4), generator=random))) for samples in (5, 3)])


class Spectra(Complex):
    def forward(self, x):
        z = torch.complex(super().forward(x), x)
        return {"z": z, "spectrum": torch.fft.rfft(x)}


def test_complex_predictions():
    torch.manual_seed(4)
    module, x = Spectra(), torch.randn(5, 4, 6)
    trainer = Trainer(module, lambda outputs, targets: functional.mse_loss(outputs["z"].real, targets), torch.optim.SGD(module.parameters(), 0.1))
    found = trainer.predict(x)
    module.eval()
    for name, expected in module(x).items():
        assert found[name].dtype == torch.complex64 and torch.allclose(found[name], expected, rtol=1e-4, atol=1e-5)


def test_labels_written_by_views():
    """PyTorch computes labels on the host: those before a write would be wrong."""
    def loss(outputs, y):
        labels = y.clone()
        labels[:, 0:1] = -100
        return functional.cross_entropy(outputs.reshape(-1, 3), labels.view(-1))
    module = torch.nn.Linear(6, 3)
    with pytest.raises(tutti.UnsupportedError):
        Trainer(module, loss, torch.optim.SGD(module.parameters(), 0.1)).step(torch.randn(5, 4, 6), torch.randint(0, 3, (5, 4)))
