"""CTC losses of PyTorch: the numbers, and all parameters after some steps, are PyTorch's. Without torch nothing is tested here."""
import copy

import pytest

torch = pytest.importorskip("torch")

from tutti.torch import Trainer  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

torch.set_num_threads(1)
FRAMES, CLASSES, LABELS = 24, 6, 5


class Recogniser(nn.Module):
    """[samples, 8, frames] -> logarithms [frames / 2, samples, classes]."""

    def __init__(self, frames_first=True):
        super().__init__()
        torch.manual_seed(3)
        self.frames_first = frames_first
        self.conv, self.lstm, self.fc = nn.Conv1d(8, 12, 3, stride=2, padding=1), nn.LSTM(12, 7, batch_first=True, bidirectional=True), nn.Linear(14, CLASSES)

    def forward(self, x):
        y = self.fc(self.lstm(functional.relu(self.conv(x)).transpose(1, 2))[0])
        return y.transpose(0, 1).log_softmax(2) if self.frames_first else y.log_softmax(-1)


def batch(n, random, blank):
    lengths = torch.randint(0, LABELS + 1, (n,), generator=random)
    labels = torch.randint(0, CLASSES - 1, (n, LABELS), generator=random)
    return torch.randn(n, 8, FRAMES, generator=random), (labels + (labels >= blank), torch.randint(10, FRAMES // 2 + 1, (n,), generator=random), lengths)


def loss_of(**options):
    loss = nn.CTCLoss(**options)
    return lambda out, y: loss(out, *y)


def whole(out, y):
    """All frames, by a function, of [samples, frames, classes]."""
    return functional.ctc_loss(out.permute(1, 0, 2), y[0], torch.full((out.shape[0],), FRAMES // 2), y[2].to(torch.int32), blank=0)


def by_samples(out, y):
    return functional.ctc_loss(out, *y, reduction="sum") / out.shape[1] * 0.3


CASES = {"mean": (True, loss_of(), 0), "blank": (True, loss_of(blank=CLASSES - 1), CLASSES - 1), "zero infinity": (True, loss_of(blank=2, zero_infinity=True), 2),
         "whole": (False, whole, 0), "sum": (True, by_samples, 0)}


@pytest.mark.parametrize("name", CASES)
def test_same_as_pytorch(name):
    frames_first, loss, blank = CASES[name]
    module, random = Recogniser(frames_first), torch.Generator().manual_seed(5)
    ours = copy.deepcopy(module)
    by_torch = torch.optim.SGD(module.parameters(), 0.3, momentum=0.9)
    trainer = Trainer(ours, loss, torch.optim.SGD(ours.parameters(), 0.3, momentum=0.9))
    for samples in (5, 3, 5, 4, 5):
        x, y = batch(samples, random, blank)
        if name == "zero infinity":
            y[1][0], y[2][0] = 2, LABELS     # do not fit
        by_torch.zero_grad()
        wanted = loss(module(x), y)
        wanted.backward()
        by_torch.step()
        assert float(trainer.step(x, y)) == pytest.approx(wanted.item(), rel=1e-5)
    trainer.sync()
    for (key, one), other in zip(module.state_dict().items(), ours.state_dict().values()):
        assert torch.allclose(one, other, rtol=1e-4, atol=1e-5), key


@pytest.mark.parametrize("loss, said", [
    (lambda out, y: functional.ctc_loss(out, y[0], [12] * 5, y[2]), "a list, which fit one batch: give tensors"),
    (lambda out, y: functional.ctc_loss(out, *y, reduction="sum"), "divided by the number of samples"),
    (lambda out, y: functional.ctc_loss(out, *y, reduction="none").mean(), 'write "mean"'),
    (lambda out, y: functional.ctc_loss(out.exp(), *y), "not the result of log_softmax along the classes"),
    (lambda out, y: functional.ctc_loss(out.log_softmax(0), *y), "not the result of log_softmax along the classes"),
    (lambda out, y: functional.ctc_loss(out, y[0][:, 0], y[1], y[2]), "in one list")], ids=["lists", "sum", "none", "exp", "frames", "joined"])
def test_refusals(loss, said):
    module = Recogniser()
    x, y = batch(5, torch.Generator().manual_seed(5), 0)
    with pytest.raises(Exception, match=said):
        Trainer(module, loss, torch.optim.SGD(module.parameters(), 0.1)).step(x, y)


@pytest.mark.parametrize("position, number, said", [(0, CLASSES, "the label 6 is no class"), (0, 0, "other than the blank, 0"), (1, FRAMES, "input_lengths has 24"), (2, 9, "target_lengths has 9")])
def test_wrong_numbers(position, number, said):
    module = Recogniser()
    x, y = batch(5, torch.Generator().manual_seed(5), 0)
    y[2][0] = LABELS
    y[position][0] = number
    with pytest.raises((IndexError, ValueError), match=said):
        Trainer(module, loss_of(), torch.optim.SGD(module.parameters(), 0.1)).step(x, y)


def test_pytorch_is_as_it_was():
    out, y = Recogniser()(torch.randn(2, 8, FRAMES)), (torch.ones(2, 1).long(), [12, 12], [1, 1])
    assert torch.isfinite(functional.ctc_loss(out, *y))
