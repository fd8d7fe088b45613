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
    keras.utils.set_random_seed(3)
    norm = keras.layers.LayerNormalization() if between == "layer" else keras.layers.BatchNormalization()
    norm.trainable = between != "frozen"
    return Model(keras.Sequential([keras.layers.Input((12, 12, 3)), keras.layers.Conv2D(8, 3, padding="same"), norm, keras.layers.ReLU(), keras.layers.MaxPooling2D(),
                                   keras.layers.Flatten(), keras.layers.Dropout(0.0), keras.layers.Dense(5)]))


@pytest.mark.parametrize("between", ("layer", "frozen"))
def test_keras(between):
    """Losses, parameters, running statistics, and what the model then predicts."""
    one, two = made(between).train(), made(between).train()
    rules = [torch.optim.Adam([each for each in model.parameters() if each.requires_grad], 1e-3) for model in (one, two)]
    trainer, random = Trainer(two, torch.nn.CrossEntropyLoss(), rules[1]), torch.Generator().manual_seed(5)
    for _ in range(4):
        x, y = torch.randn(8, 12, 12, 3, generator=random), torch.randint(0, 5, (8,), generator=random)
        rules[0].zero_grad()
        loss = torch.nn.functional.cross_entropy(one(x), y)
        loss.backward()
        rules[0].step()
        assert trainer.step(x, y) == pytest.approx(loss.item(), rel=1e-4)
    trainer.sync()
    for (name, a), (_, b) in zip(one.state_dict().items(), two.state_dict().items(), strict=True):
        assert torch.allclose(a, b, 1e-4, 1e-5), name
    assert torch.allclose(trainer.predict(x), torch.as_tensor(one.model.predict(x.numpy(), verbose=0)), 1e-4, 1e-5)


def test_statistics():
    """Keras computes the statistics of a batch by means along it, which is refused."""
    model = made("batch").train()
    trainer = Trainer(model, torch.nn.CrossEntropyLoss(), torch.optim.SGD([each for each in model.parameters() if each.requires_grad], 0.1))
    with pytest.raises(NotImplementedError, match="along the batch"):
        trainer.step(torch.randn(4, 12, 12, 3), torch.randint(0, 5, (4,)))
