"""torch.compile(module, backend="tutti") gives what the module gives. Without torch nothing is tested here."""
import warnings

import pytest

torch = pytest.importorskip("torch")

import tutti  # noqa: E402
import tutti.torch  # noqa: E402, F401
from tutti.torch import compiling  # noqa: E402

torch.set_num_threads(1)


class Convolutions(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.second = torch.nn.Conv2d(3, 8, 3, padding=1, bias=False), torch.nn.BatchNorm2d(8), torch.nn.Conv2d(8, 8, 3, padding=1)
        self.drop, self.last = torch.nn.Dropout(0.5), torch.nn.Linear(8, 5)

    def forward(self, x):
        h = torch.relu(self.norm(self.first(x)))
        h = h + self.second(h)
        return self.last(self.drop(h.mean((2, 3)))), {"hidden": h}


class Attention(torch.nn.Module):
    """Two blocks with heads, a causal mask and positions, which write the batch's size."""

    def __init__(self):
        super().__init__()
        self.words, self.positions = torch.nn.Embedding(20, 16), torch.nn.Embedding(12, 16)
        self.blocks = torch.nn.ModuleList(torch.nn.ModuleDict({"norm": torch.nn.LayerNorm(16), "qkv": torch.nn.Linear(16, 48), "out": torch.nn.Linear(16, 16)}) for _ in range(2))
        self.head = torch.nn.Linear(16, 20)
        self.register_buffer("mask", torch.ones(12, 12).tril().bool())

    def forward(self, ids):
        samples, length = ids.shape
        h = self.words(ids) + self.positions(torch.arange(length))
        for block in self.blocks:
            q, k, v = (one.view(samples, length, 4, 4).transpose(1, 2) for one in block["qkv"](block["norm"](h)).chunk(3, -1))
            weights = (q @ k.transpose(-1, -2) / 2).masked_fill(~self.mask[:length, :length], float("-inf")).softmax(-1)
            h = h + block["out"]((weights @ v).transpose(1, 2).reshape(samples, length, 16))
        return self.head(h)


def made(kind):
    torch._dynamo.reset()
    torch.manual_seed(3)
    module = kind().eval()
    for buffer in module.buffers():
        if buffer.is_floating_point():
            buffer.uniform_(0.5, 1.5)
    return module


def compare(module, compiled, *inputs):
    with torch.no_grad():
        wanted, got = module(*inputs), compiled(*inputs)
    flat = torch.utils._pytree.tree_flatten
    (wanted, one), (got, other) = flat(wanted), flat(got)
    assert one == other
    for a, b in zip(wanted, got):
        assert a.shape == b.shape and a.dtype == b.dtype and torch.allclose(a, b, 1e-4, 1e-5)


@pytest.fixture
def graphs(monkeypatch):
    """The graphs that the backend got. Warnings are errors."""
    found, init = [], compiling.Compiled.__init__

    def note(self, *arguments):
        found.append(self)
        init(self, *arguments)
    monkeypatch.setattr(compiling.Compiled, "__init__", note)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*PyTorch runs a graph.*")
        yield found


def test_convolutions(graphs):
    """Batches of several sizes, changed parameters and running statistics, others in their place."""
    module = made(Convolutions)
    compiled = torch.compile(module, backend="tutti")
    for samples in (4, 7, 2, 1, 9):
        compare(module, compiled, torch.randn(samples, 3, 8, 8))
    assert 2 <= len(graphs) <= 3
    with torch.no_grad():
        module.last.weight.mul_(2)
        module.norm.running_var.add_(1)
    compare(module, compiled, torch.randn(7, 3, 8, 8))
    module.last.weight = torch.nn.Parameter(torch.randn(5, 8))
    module.second.bias.data = torch.ones(8)
    compare(module, compiled, torch.randn(7, 3, 8, 8))
    with torch.inference_mode():
        compare(module, compiled, torch.randn(3, 3, 8, 8))


def test_writes_past_the_count(graphs):
    """Writes through .data and numpy, which PyTorch does not count: of a small tensor each, of a large one those of all of it."""
    class Large(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = torch.nn.Linear(80, 70), torch.nn.Linear(70, 3)
            self.register_buffer("shift", torch.zeros(70))

        def forward(self, x):
            return self.last(torch.tanh(self.first(x) + self.shift))
    module = made(Large)
    compiled, x = torch.compile(module, backend="tutti"), torch.randn(4, 80)
    compare(module, compiled, x)
    module.first.weight.data.mul_(0.5).add_(0.01)
    compare(module, compiled, x)
    module.last.weight.detach().numpy()[1, 7] += 3
    compare(module, compiled, x)
    module.shift.data[3] = 1
    compare(module, compiled, x)
    for _ in range(3):      # tensors that may get the address of one before
        module.first.weight.data = module.first.weight.data * 2
        module.first.weight.data = module.first.weight.data * 0.7
        compare(module, compiled, x)
    module.first.weight.data[1, 1] += 5
    torch.autograd.graph.increment_version(module.first.weight)
    compare(module, compiled, x)


@pytest.mark.parametrize("dynamic", (None, True))
def test_attention(graphs, dynamic):
    """The size of the first batch is a number in the graph; lengths differ, too."""
    module = made(Attention)
    compiled = torch.compile(module, backend="tutti", dynamic=dynamic)
    for samples, length in ((4, 6), (3, 6), (5, 9), (2, 6)):
        compare(module, compiled, torch.randint(0, 20, (samples, length)))
    assert graphs and not any(one.is_refused for one in graphs)


def test_breaks(graphs):
    """A graph that ends, and two that follow."""
    class Broken(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = torch.nn.Linear(6, 8), torch.nn.Linear(8, 4)

        def forward(self, x):
            h = torch.tanh(self.first(x))
            torch._dynamo.graph_break()
            return self.second(h).softmax(1)
    module = made(Broken)
    compiled = torch.compile(module, backend="tutti")
    compare(module, compiled, torch.randn(5, 6))
    assert len(graphs) == 2


def test_refusals():
    """What Tutti cannot run, PyTorch does, after one warning that names the line."""
    class Sorted(torch.nn.Module):
        def forward(self, x):
            return torch.linalg.inv(x) @ x * 2
    module = made(Sorted)
    compiled, x = torch.compile(module, backend="tutti"), torch.randn(3, 4, 4)
    with pytest.warns(UserWarning, match="linalg") as noted:
        for _ in range(3):
            compare(module, compiled, x)
    assert len([one for one in noted if "PyTorch runs a graph" in str(one.message)]) == 1
    assert "test_torch_compile.py" in str(noted[0].message)


def test_types():
    """float64 and indices that do not fit int32 are PyTorch's."""
    class Scaled(torch.nn.Module):
        def forward(self, x):
            return x * 2 + 1
    for x in (torch.randn(3, 4, dtype=torch.float64), torch.full((3, 4), 1 << 40)):
        module = made(Scaled)
        with pytest.warns(UserWarning, match="PyTorch runs a graph"):
            compare(module, torch.compile(module, backend="tutti"), x)


class Whole(torch.nn.Module):
    """A function of whole numbers as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


ROUNDED = {
    "an output": (lambda x: x * 2 + 1, 10000001), "an input": (lambda x: x == 20000001, 20000000), "between": (lambda x: x * 40503 % 1000, 123457),
    "a number": (lambda x: x - 16777217, 5), "a sum": (lambda x: (x * 3).sum(1) % 7, 4000003), "sums": (lambda x: x.cumsum(1) % 7, 4000003),
    "alpha": (lambda x: torch.sub(x, x, alpha=10007) % 7, 12345), "a square": (lambda x: x ** 2 % 7, 70001),
}


@pytest.mark.parametrize("name", ROUNDED)
def test_whole_numbers(graphs, name):
    """What float32 would round is PyTorch's; smaller whole numbers are not."""
    function, large = ROUNDED[name]
    x = torch.arange(15).reshape(3, 5)
    if name != "a number":
        compiled = torch.compile(made(lambda: Whole(function)), backend="tutti")
        compare(Whole(function), compiled, x)
        compare(Whole(function), compiled, torch.arange(20).reshape(4, 5))
        assert graphs and not any(one.is_refused for one in graphs)
    compiled = torch.compile(made(lambda: Whole(function)), backend="tutti")
    with pytest.warns(UserWarning, match="rounded"), torch.no_grad():
        assert torch.equal(compiled(x + large), function(x + large))


def test_whole_numbers_of_predict():
    """A trainer refuses them."""
    class Both(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.last = torch.nn.Embedding(10, 4), torch.nn.Linear(4, 3)

        def forward(self, x):
            return self.last(self.table(x % 10)), x * 40503 % 1000
    module = made(Both)
    trainer = tutti.torch.Trainer(module, lambda outputs, y: torch.nn.functional.cross_entropy(outputs[0], y), torch.optim.SGD(module.parameters(), 0.1))
    x = torch.arange(6)
    assert torch.equal(trainer.predict(x)[1], x * 40503 % 1000)
    with pytest.raises(tutti.UnsupportedError, match="rounded"):
        trainer.predict(x + 1000)


@pytest.mark.parametrize("kind", ("no_grad", "autocast"))
def test_training_of_a_part(kind):
    """A part that has a graph of its own drops and learns, too."""
    class Part(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.drop, self.last = torch.nn.BatchNorm1d(6), torch.nn.Dropout(0.5), torch.nn.Linear(6, 3)

        def forward(self, x):
            with torch.no_grad() if kind == "no_grad" else torch.autocast("cpu", enabled=False):
                h = self.drop(self.norm(x))
            return self.last(h)
    module = made(Part).train().requires_grad_(False)
    before, x = module.norm.running_mean.clone(), torch.randn(64, 6)
    with torch.set_grad_enabled(kind == "no_grad"), pytest.warns(UserWarning, match="it trains"):
        torch.compile(module, backend="tutti")(x)
    assert not torch.equal(before, module.norm.running_mean)


def test_counter():
    """A buffer that the module counts in is PyTorch's."""
    class Counting(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.last = torch.nn.Linear(6, 3)
            self.register_buffer("calls", torch.tensor(0))

        def forward(self, x):
            self.calls.add_(1)
            return self.last(x)
    module = made(Counting)
    compiled = torch.compile(module, backend="tutti")
    with torch.no_grad(), pytest.warns(UserWarning, match="it writes into the buffer"):
        for _ in range(3):
            compiled(torch.randn(4, 6))
    assert module.calls == 3


def test_training():
    """Gradients, dropout and statistics of a batch are PyTorch's."""
    module = made(Convolutions)
    compiled, x = torch.compile(module, backend="tutti"), torch.randn(4, 3, 8, 8)
    with pytest.warns(UserWarning, match="tutti.torch.Trainer"):
        compiled(x)[0].sum().backward()
    assert module.last.weight.grad is not None
    module.train()
    before = module.norm.running_mean.clone()
    with torch.no_grad(), pytest.warns(UserWarning, match="tutti.torch.Trainer"):
        compiled(x)
    assert not torch.equal(before, module.norm.running_mean)


def test_options():
    module, x = made(Convolutions), torch.randn(2, 3, 8, 8)
    compare(module, torch.compile(module, backend="tutti", options={"runtime": tutti.Runtime("cpu")}), x)
    torch._dynamo.reset()
    with torch.no_grad(), pytest.raises(Exception, match="no option"):
        torch.compile(module, backend="tutti", options={"speed": 1})(x)
    assert "tutti" in torch._dynamo.list_backends()
