"""Keras's batch normalisation, which its PyTorch backend computes by means along the batch, and whose moving statistics it assigns.
While a module is exported, each such layer that trains is one operator: torch.ops.tutti.keras_batch_norm."""
import contextlib
import sys
from typing import Optional

import torch


@torch.library.custom_op("tutti::keras_batch_norm", mutates_args=())
def keras_batch_norm(x: torch.Tensor, mean: torch.Tensor, variance: torch.Tensor, gamma: Optional[torch.Tensor], beta: Optional[torch.Tensor],  # noqa: UP045
                     momentum: float, epsilon: float) -> torch.Tensor:
    """x [N, C, ...], normalised by the batch. mean, variance: the moving statistics, which a step changes."""
    return torch.nn.functional.batch_norm(x, None, None, gamma, beta, True, 0.0, epsilon)


@keras_batch_norm.register_fake
def _(x, mean, variance, gamma, beta, momentum, epsilon):
    return torch.empty_like(x)


def is_plain(layer, inputs, training, mask):
    """Whether a call is what the operator computes. Others are exported as Keras has them, and refused or not."""
    numbers = (layer.moving_mean.dtype, layer.moving_variance.dtype, layer.compute_dtype)
    return (training and layer.trainable and mask is None and not getattr(layer, "renorm", False) and not getattr(layer, "synchronized", False)
            and inputs.dtype == torch.float32 and set(numbers) == {"float32"} and isinstance(layer.axis, int))


def call_of(original):
    def call(self, inputs, training=None, mask=None):
        if not is_plain(self, inputs, training, mask):
            return original(self, inputs, training=training, mask=mask)
        axis, order = self.axis % inputs.ndim, [*range(inputs.ndim)]
        order.insert(1, order.pop(axis))
        found = torch.ops.tutti.keras_batch_norm(inputs.permute(order), self.moving_mean.value, self.moving_variance.value, self.gamma.value if self.scale else None,
                                                 self.beta.value if self.center else None, 1.0 - self.momentum, float(self.epsilon))
        return found.permute([order.index(one) for one in range(inputs.ndim)])
    return call


@contextlib.contextmanager
def exporting():
    """Within it, Keras's layers are such operators, if the program uses Keras."""
    keras = sys.modules.get("keras")
    kind = getattr(getattr(keras, "layers", None), "BatchNormalization", None)
    if kind is None:
        yield
        return
    original = kind.call
    kind.call = call_of(original)
    try:
        yield
    finally:
        kind.call = original
