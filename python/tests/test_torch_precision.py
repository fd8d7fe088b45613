"""torch.autocast around steps and within modules: training in float32, and a warning once; compiled graphs are PyTorch's then."""
import copy
import warnings

import pytest

torch = pytest.importorskip("torch")

import tutti.torch  # noqa: E402
from tutti.torch import Trainer  # noqa: E402


class Module(torch.nn.Module):
    def __init__(self, enabled, dtype=torch.bfloat16):
        super().__init__()
        self.first, self.last, self.enabled, self.dtype = torch.nn.Linear(6, 8), torch.nn.Linear(8, 3), enabled, dtype

    def forward(self, x):
        with torch.autocast("cpu", self.dtype, enabled=self.enabled):
            y = torch.relu(self.first(x))
        return self.last(y.float())


def rounds(module):
    """A step's loss without and with autocast around it, and the warnings."""
    trainer = Trainer(module, torch.nn.CrossEntropyLoss(), torch.optim.SGD(module.parameters(), 0.1))
    random, found = torch.Generator().manual_seed(5), []
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for step in range(6):
            x, y = torch.randn(5 - step % 2, 6, generator=random), torch.randint(3, (5 - step % 2,), generator=random)
            with torch.autocast("cpu", torch.bfloat16, enabled=step > 2):
                found.append(trainer.step(x, y))
    return found, module.state_dict(), [str(one.message) for one in said if "autocast" in str(one.message)]


@pytest.mark.parametrize("dtype", (torch.bfloat16, torch.float16))
def test_autocast(dtype):
    torch.manual_seed(4)
    module, random = Module(False, dtype), torch.Generator().manual_seed(5)
    other, inside = copy.deepcopy(module), copy.deepcopy(module)
    inside.enabled = True
    rule, expected = torch.optim.SGD(module.parameters(), 0.1), []
    for step in range(6):
        x, y = torch.randn(5 - step % 2, 6, generator=random), torch.randint(3, (5 - step % 2,), generator=random)
        rule.zero_grad()
        loss = torch.nn.functional.cross_entropy(module(x), y)
        loss.backward()
        rule.step()
        expected.append(loss.item())
    for one in (other, inside):
        losses, parameters, said = rounds(one)
        assert losses == pytest.approx(expected, rel=2e-5)
        assert all(torch.allclose(value, parameters[name], rtol=1e-4, atol=1e-5) for name, value in module.state_dict().items())
        assert len(said) == 1 and 'precision="bf16"' in said[0]


def test_bf16_of_the_trainer():
    module = Module(True)
    trainer = Trainer(module, torch.nn.CrossEntropyLoss(), torch.optim.SGD(module.parameters(), 0.1), precision="bf16")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trainer.step(torch.randn(4, 6), torch.tensor([0, 1, 2, 0]))


def test_compiled():
    """The types of PyTorch's results are kept."""
    module = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU())
    compiled, x = torch.compile(module.eval(), backend="tutti"), torch.randn(4, 6)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch.equal(compiled(x), module(x)) and compiled(x).dtype == torch.bfloat16
    inside = Module(True).eval()
    compiled = torch.compile(inside, backend="tutti")
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch.equal(compiled(x), inside(x))
