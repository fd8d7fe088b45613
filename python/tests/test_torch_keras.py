"""Models of Keras train with KERAS_BACKEND=torch as by PyTorch. Without torch and keras nothing is tested here."""
import os

import pytest

torch = pytest.importorskip("torch")
os.environ["KERAS_BACKEND"] = "torch"
keras = pytest.importorskip("keras")

from tutti.torch import Trainer  # noqa: E402

torch.set_num_threads(1)


class Model(torch.nn.Module):
    """A model of Keras that is told whether it trains."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(x, training=self.training)


def made(between):
    keras.utils.clear_session()     # so that names, by which states are sorted, have the same numbers
    keras.utils.set_random_seed(3)
    kinds = {"layer": keras.layers.LayerNormalization, "batch": lambda: keras.layers.BatchNormalization(momentum=0.75, epsilon=0.02),
             "first axis": lambda: keras.layers.BatchNormalization(axis=1, center=False), "no scale": lambda: keras.layers.BatchNormalization(scale=False)}
    norm = kinds.get(between, keras.layers.BatchNormalization)()
    norm.trainable = between != "frozen"
    return Model(keras.Sequential([keras.layers.Input((12, 12, 3)), keras.layers.Conv2D(8, 3, padding="same"), norm, keras.layers.ReLU(), keras.layers.MaxPooling2D(),
                                   keras.layers.Flatten(), keras.layers.Dropout(0.0), keras.layers.Dense(6), keras.layers.BatchNormalization(trainable=between == "batch"),
                                   keras.layers.Dense(5)]))


@pytest.mark.parametrize("between", ("layer", "frozen", "batch", "first axis", "no scale"))
def test_keras(between):
    """Losses, parameters, moving statistics, and what the model then predicts. The last batch is smaller."""
    one, two = made(between).train(), made(between).train()
    # Before a normalisation that trains, the gradient of a bias is 0 but for rounding, which Adam would divide by its own size.
    kind, rate = (torch.optim.Adam, 1e-3) if between in ("layer", "frozen") else (torch.optim.SGD, 0.1)
    rules = [kind([each for each in model.parameters() if each.requires_grad], rate) for model in (one, two)]
    trainer, random = Trainer(two, torch.nn.CrossEntropyLoss(), rules[1]), torch.Generator().manual_seed(5)
    for samples in (8, 8, 8, 5):
        x, y = 2 * torch.randn(samples, 12, 12, 3, generator=random) + 1, torch.randint(0, 5, (samples,), generator=random)
        rules[0].zero_grad()
        loss = torch.nn.functional.cross_entropy(one(x), y)
        loss.backward()
        rules[0].step()
        assert trainer.step(x, y) == pytest.approx(loss.item(), rel=1e-4)
    trainer.sync()
    for (name, a), (_, b), (_, before) in zip(one.state_dict().items(), two.state_dict().items(), made(between).state_dict().items(), strict=True):
        assert torch.allclose(a, b, 1e-4, 1e-5), name
        assert between != "batch" or "moving" not in name or not torch.equal(a, before), name
    assert torch.allclose(trainer.predict(x), torch.as_tensor(one.model.predict(x.numpy(), verbose=0)), 1e-4, 1e-5)


def test_statistics_that_are_set():
    """What the program writes into moving statistics between steps is taken."""
    one, two = made("batch").train(), made("batch").train()
    rules = [torch.optim.SGD([each for each in model.parameters() if each.requires_grad], 0.1) for model in (one, two)]
    trainer, x, y = Trainer(two, torch.nn.CrossEntropyLoss(), rules[1]), torch.randn(6, 12, 12, 3), torch.randint(0, 5, (6,))
    for _ in range(2):
        rules[0].zero_grad()
        torch.nn.functional.cross_entropy(one(x), y).backward()
        rules[0].step()
        trainer.step(x, y)
        trainer.sync()
        for model in (one, two):
            model.model.layers[1].moving_variance.assign(torch.full((8,), 3.0))
    for (name, a), (_, b) in zip(one.state_dict().items(), two.state_dict().items(), strict=True):
        assert torch.allclose(a, b, 1e-4, 1e-5), name


def test_refusals():
    """One layer in two places."""
    norm = keras.layers.BatchNormalization()
    model = Model(keras.Sequential([keras.layers.Input((6,)), norm, keras.layers.Dense(6), norm, keras.layers.Dense(5)])).train()
    trainer = Trainer(model, torch.nn.CrossEntropyLoss(), torch.optim.SGD([each for each in model.parameters() if each.requires_grad], 0.1))
    with pytest.raises(NotImplementedError, match="used twice"):
        trainer.step(torch.randn(4, 6), torch.randint(0, 5, (4,)))
