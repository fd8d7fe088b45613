"""Recurrent layers and their cells as modules have them: five steps with batches of five and three give PyTorch's numbers."""
import pytest

torch = pytest.importorskip("torch")

from test_torch_operators import agree  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence  # noqa: E402

import tutti  # noqa: E402
from tutti.torch import Trainer  # noqa: E402


def lengths_of(samples, random):
    return torch.cat([torch.tensor([4]), torch.randint(1, 5, (samples - 1,), generator=random)])


def batches(make, steps=5):
    random = torch.Generator().manual_seed(6)
    return [(make(3 if step % 2 else 5, random), torch.randn(3 if step % 2 else 5, generator=random)) for step in range(steps)]


def trains(module, make=lambda samples, random: torch.randn(samples, 4, 6, generator=random)):
    agree(module, lambda outputs, targets: ((outputs.flatten(1).mean(1) - targets) ** 2).mean(), batches(make))


class Steps(nn.Module):
    """A cell in a loop, whose states begin with zeros or are computed."""

    def __init__(self, cell, begins):
        super().__init__()
        self.cell, self.begins, self.first, self.out, self.c = cell, begins, nn.Linear(6, 7), nn.Linear(7, 3), nn.Parameter(torch.randn(1, 7))

    def forward(self, x):
        h, c = (torch.tanh(self.first(x[:, 0])), self.c.expand(x.shape[0], -1)) if self.begins else (x.new_zeros(x.size(0), 7), torch.zeros(x.shape[0], 7))
        made = []
        for step in range(x.size(1)):
            if isinstance(self.cell, nn.LSTMCell):
                h, c = self.cell(x[:, step], (h, c))
            else:
                h = self.cell(x[:, step], h)
            made.append(h)
        return self.out(torch.stack(made, 1)) + self.out(self.cell(x[:, 0])[0] if isinstance(self.cell, nn.LSTMCell) else self.cell(x[:, 0]))[:, None]


@pytest.mark.parametrize("begins", (False, True))
@pytest.mark.parametrize("kind", ("GRU", "LSTM", "tanh", "relu", "GRU without bias"))
def test_cells(kind, begins):
    torch.manual_seed(4)
    makes = {"GRU": nn.GRUCell, "LSTM": nn.LSTMCell, "tanh": nn.RNNCell, "relu": lambda *sizes: nn.RNNCell(*sizes, nonlinearity="relu"), "GRU without bias": lambda *sizes: nn.GRUCell(*sizes, bias=False)}
    trains(Steps(makes[kind](6, 7), begins))


class Layer(nn.Module):
    def __init__(self, kind, batch_first, bidirectional, **options):
        super().__init__()
        self.layer, self.out, self.first = kind(6, 5, batch_first=batch_first, bidirectional=bidirectional, **options), nn.Linear(10 if bidirectional else 5, 3), batch_first

    def forward(self, x):
        y, last = self.layer(x if self.first else x.transpose(0, 1))
        y = self.out(y)
        return (y if self.first else y.transpose(0, 1)).mean(1) + (last[1] if isinstance(last, tuple) else last)[-1].mean(-1, keepdim=True)


@pytest.mark.parametrize("options", ((False, False, 1), (True, True, 2), (False, True, 3)))
@pytest.mark.parametrize("kind", ("tanh", "relu", "GRU", "LSTM"))
def test_layers(kind, options):
    torch.manual_seed(4)
    kinds = {"GRU": nn.GRU, "LSTM": nn.LSTM}
    more = {} if kind in kinds else {"nonlinearity": kind}
    trains(Layer(kinds.get(kind, nn.RNN), options[0], options[1], num_layers=options[2], **more))


class Translated(nn.Module):
    """A decoder that begins with an encoder's states; twice: one that also reads backwards, with the same weights."""

    def __init__(self, kind, bidirectional, twice=False):
        super().__init__()
        self.encoder, self.decoder = (kind(6, 5, 2, batch_first=True, bidirectional=bidirectional) for _ in range(2))
        self.out, self.twice = nn.Linear(10 if bidirectional else 5, 2), twice

    def forward(self, x):
        _, states = self.encoder(x)
        y, states = self.decoder(x.flip(1), states)
        return self.out(y + self.decoder(x, states)[0] if self.twice else y)


@pytest.mark.parametrize("kind", ("RNN", "GRU", "LSTM"))
@pytest.mark.parametrize("shape", ((False, False), (True, False), (True, True)))
def test_initial_states(kind, shape):
    torch.manual_seed(4)
    trains(Translated(getattr(nn, kind), *shape))


class Packed(nn.Module):
    def __init__(self, kind, options, total=True, first=True, **more):
        super().__init__()
        self.layer, self.total, self.first = kind(6, 5, batch_first=first, **options, **more), total, first
        self.out, self.state, self.embedding = nn.Linear(10 if options else 5, 2), nn.Linear(6, 5), nn.Embedding(9, 6, padding_idx=0)

    def forward(self, x, lengths=None):
        if lengths is None:     # class numbers
            x, lengths = self.embedding(x), (x != 0).sum(1)
        begin = None
        if self.layer.num_layers == 1 and isinstance(self.layer, nn.GRU):
            begin = self.state(x[:, 0])[None]
        packed = pack_padded_sequence(x if self.first else x.transpose(0, 1), lengths.cpu(), batch_first=self.first, enforce_sorted=False)
        y, last = self.layer(packed, begin)
        y, counts = pad_packed_sequence(y, batch_first=self.first, padding_value=0.5 if self.first else 0.0, total_length=4 if self.total else None)
        y = self.out(y if self.first else y.transpose(0, 1))
        return (y + (last[0] if isinstance(last, tuple) else last)[-1].mean(-1)[:, None, None]).sum(1) / counts[:, None]


PACKED = {"LSTM": (nn.LSTM, {}), "GRU": (nn.GRU, {}), "deep LSTM": (nn.LSTM, {"bidirectional": True, "num_layers": 2}), "deep GRU": (nn.GRU, {"bidirectional": True, "num_layers": 2}),
          "RNN": (nn.RNN, {}), "deep RNN": (nn.RNN, {"bidirectional": True, "num_layers": 2, "nonlinearity": "relu"})}


@pytest.mark.parametrize("name", PACKED)
def test_packed(name):
    torch.manual_seed(4)
    trains(Packed(*PACKED[name], total=name != "GRU", first=name != "RNN"), lambda samples, random: (torch.randn(samples, 4, 6, generator=random), lengths_of(samples, random)))


def ids(samples, random, most=4):
    return torch.randint(1, 9, (samples, 4), generator=random) * (torch.arange(4) < lengths_of(samples, random)[:, None].clamp(max=most))


def test_packed_of_ids():
    torch.manual_seed(4)
    trains(Packed(nn.GRU, {}), ids)


def step(module, *x):
    Trainer(module, lambda outputs: outputs.square().mean(), torch.optim.SGD(module.parameters(), 0.1)).step(x)


def test_packed_shorter():
    """Without total_length, PyTorch's result is as long as the longest sequence, which is refused if that is not all of x."""
    random = torch.Generator().manual_seed(6)
    with pytest.raises(tutti.UnsupportedError, match=r"the longest sequence of a batch has: here 3, and x has 4. Write total_length"):
        step(Packed(nn.GRU, {}, total=False), ids(5, random, 3))
    with pytest.raises(ValueError, match="lengths are 1 to 5: sequences of 4 steps"):
        step(Packed(nn.LSTM, {}), torch.randn(2, 4, 6), torch.tensor([5, 1]))
    step(Packed(nn.LSTM, {}), torch.randn(2, 4, 6), torch.tensor([4, 1]))


class Read(nn.Module):
    """What is read of a packed sequence, or of lengths."""

    def __init__(self, read):
        super().__init__()
        self.layer, self.read = nn.GRU(6, 5, batch_first=True), read

    def forward(self, x, lengths):
        return self.read(self.layer, x, lengths)


READ = {
    "data of a packed": lambda layer, x, lengths: layer(pack_padded_sequence(x, lengths, True))[0].data,
    "that are a list": lambda layer, x, lengths: layer(pack_padded_sequence(x, [4, 2], True))[1][0],
    "lengths that are not": lambda layer, x, lengths: layer(pack_padded_sequence(x, (layer(x)[0].sum((1, 2)) * 0 + 4).long(), True))[1][0],
}


@pytest.mark.parametrize("words", READ)
def test_packed_refused(words):
    with pytest.raises(tutti.UnsupportedError, match=words):
        step(Read(READ[words]), torch.randn(2, 4, 6), torch.tensor([4, 2]))


def test_projections_refused():
    module = Read(lambda layer, x, lengths: layer(x)[0])
    module.layer = nn.LSTM(6, 5, batch_first=True, proj_size=3)
    with pytest.raises(tutti.UnsupportedError, match="proj_size"):
        step(module, torch.randn(2, 4, 6), torch.tensor([4, 2]))
