"""Networks as estimators of scikit-learn, which must be installed: pipelines, cross-validation and grid searches take them.

    from tutti.sklearn import Classifier
    model = Classifier(hidden=(64, 64), epochs=20)
    model.fit(x, y).score(xt, yt)

`network` is a function(shape, outputs) that returns a tensor, in place of dense layers of the sizes `hidden`.

Of check_estimator() all but these pass; EXPECTED_FAILED_CHECKS gives them to it with reasons."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from . import layers
from ._network import Network
from ._trainer import Trainer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ._network import Tensor
    from ._types import CallbackLike
    from .optimizers import Optimizer

EXPECTED_FAILED_CHECKS = {
    "check_methods_subset_invariance": "float32 outputs of a batch and of its parts differ by rounding, more than the 1e-7 that is asked",
}


class Estimator(BaseEstimator):
    def __init__(self, hidden: Sequence[int] = (64,), network: Callable[[tuple[int, ...], int], Tensor] | None = None, epochs: int = 50, batch_size: int = 32,
                 optimizer: Optimizer | str = "adam", learning_rate: float = 0.005, weight_decay: float = 0.0, standardise: bool = True, random_state: Any = 0,
                 callbacks: CallbackLike | Sequence[CallbackLike] | None = None, verbose: bool = False) -> None:
        self.hidden, self.network, self.epochs, self.batch_size, self.optimizer = hidden, network, epochs, batch_size, optimizer
        self.learning_rate, self.weight_decay, self.standardise = learning_rate, weight_decay, standardise
        self.random_state, self.callbacks, self.verbose = random_state, callbacks, verbose

    def output(self, shape: tuple[int, ...], outputs: int) -> Tensor:
        if self.network is not None:
            return self.network(shape, outputs)
        x = Network().input("x", shape)
        for position, units in enumerate(self.hidden):
            x = layers.relu(layers.dense(x, units, name=f"hidden{position}"))
        return layers.dense(x, outputs, name="out")

    def train(self, x, y, outputs, loss):
        self.mean_ = x.mean(0) if self.standardise else numpy.zeros(x.shape[1:])
        self.scale_ = numpy.where(x.std(0) > 0, x.std(0), 1) if self.standardise else numpy.ones(x.shape[1:])
        seed = self.random_state if isinstance(self.random_state, (int, numpy.integer)) else numpy.random.randint(2 ** 31)
        optimizer = self.optimizer
        options = {"learning_rate": self.learning_rate, "weight_decay": self.weight_decay} if isinstance(optimizer, str) else {}
        self.trainer_ = Trainer(self.output(x.shape[1:], outputs), loss=loss, optimizer=optimizer, seed=int(seed), **options)
        self.history_ = self.trainer_.fit(self.prepared(x), y, epochs=self.epochs, batch_size=min(self.batch_size, len(x)), verbose=self.verbose,
                                          callbacks=self.callbacks)
        self.n_iter_ = len(self.history_["loss"])
        return self

    def prepared(self, x):
        return ((x - self.mean_) / self.scale_).astype("float32")

    def outputs_of(self, x):
        check_is_fitted(self)
        return self.trainer_.predict(self.prepared(validate_data(self, x, reset=False, dtype="numeric", allow_nd=True)))


class Classifier(ClassifierMixin, Estimator):
    """Classifies samples, of any shape that the network takes: classes are numbers or texts."""

    def fit(self, X: Any, y: Any) -> Classifier:
        X, y = validate_data(self, X, y, dtype="numeric", allow_nd=True)
        check_classification_targets(y)
        self.classes_, numbers = numpy.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError("Classifier() needs samples of 2 classes; the data have one class")
        return self.train(X, numbers, len(self.classes_), "cross_entropy")

    def decision_function(self, X: Any) -> Any:
        logits = self.outputs_of(X)
        return logits[:, 1] - logits[:, 0] if len(self.classes_) == 2 else logits

    def predict_proba(self, X: Any) -> Any:
        logits = self.outputs_of(X).astype("float64")
        powers = numpy.exp(logits - logits.max(1, keepdims=True))
        return powers / powers.sum(1, keepdims=True)

    def predict(self, X: Any) -> Any:
        chosen = self.outputs_of(X).argmax(1)
        return self.classes_[chosen]


class Regressor(RegressorMixin, Estimator):
    """Predicts a number, or several, for each sample."""

    def fit(self, X: Any, y: Any) -> Regressor:
        X, y = validate_data(self, X, y, dtype="numeric", allow_nd=True, multi_output=True, y_numeric=True)
        self.one_ = y.ndim == 1
        targets = y.reshape(len(y), -1).astype("float64")
        self.target_mean_ = targets.mean(0)
        self.target_scale_ = numpy.where(targets.std(0) > 0, targets.std(0), 1)
        return self.train(X, ((targets - self.target_mean_) / self.target_scale_).astype("float32"), targets.shape[1], "mse")

    def predict(self, X: Any) -> Any:
        outputs = self.outputs_of(X) * self.target_scale_ + self.target_mean_
        return outputs[:, 0] if self.one_ else outputs

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


__all__ = ["EXPECTED_FAILED_CHECKS", "Classifier", "Regressor"]
