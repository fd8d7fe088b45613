"""A module of PyTorch trains on two devices as on one. Without torch, or with one device, nothing is tested here."""
import copy

import pytest

torch = pytest.importorskip("torch")

import tutti  # noqa: E402
from tutti.torch import Trainer  # noqa: E402

pytestmark = pytest.mark.skipif(len(tutti.devices()) < 2, reason="one device: tests/vendors/two-vendors, or POCL_DEVICES='pthread pthread'")
torch.set_num_threads(1)


def trained(module, loss, data, runtime):
    trainer = Trainer(module, loss, torch.optim.AdamW(module.parameters(), 1e-2), runtime=runtime, seed=3, batch_size=12, sync_batchnorm=True)
    losses = [trainer.step(x, y) for x, y in data]
    return losses, module.state_dict(), trainer.predict(data[0][0])


def test_two_devices():
    """Labels that do not count, weights of classes, dropout, batch normalisation, and a last batch that is smaller."""
    torch.manual_seed(3)
    module, random = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, bias=False), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Dropout(0.3), torch.nn.Linear(288, 5)), torch.Generator().manual_seed(5)
    loss = torch.nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 0.5, 3.0, 1.0]), label_smoothing=0.1)
    data = []
    for samples in (12, 12, 12, 5):
        y = torch.randint(0, 5, (samples,), generator=random)
        data.append((torch.randn(samples, 3, 8, 8, generator=random), torch.where(torch.rand(samples, generator=random) < 0.4, -100, y)))
    two = trained(copy.deepcopy(module), loss, data, tutti.Runtime("0,1"))
    for device in ("0", "1"):
        one = trained(copy.deepcopy(module), loss, data, tutti.Runtime(device))
        assert two[0] == pytest.approx(one[0], rel=1e-5)
        for (name, a), b in zip(one[1].items(), two[1].values()):
            assert torch.allclose(a, b, rtol=1e-4, atol=1e-5), name
        assert torch.allclose(one[2], two[2], rtol=1e-4, atol=1e-5)
