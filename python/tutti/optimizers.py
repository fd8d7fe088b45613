"""Optimizers: options of tutti_training for each rule. What is 0 has the rule's default."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from ._native import lib
from ._values import shown

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Decay(TypedDict, total=False):
    weight_decay: float


class Epsilon(Decay, total=False):
    epsilon: float


class Betas(Decay, total=False):
    beta1: float
    beta2: float


class Moments(Betas, Epsilon, total=False):
    pass


class AmsGrad(Moments, total=False):
    amsgrad: bool


class Momentum(Decay, total=False):
    momentum: float
    nesterov: bool


class SquareMean(Epsilon, total=False):
    beta2: float
    momentum: float
    centered: bool


class Optimizer:
    """An update rule with its options, which are members of tutti_training."""
    rule: int
    allowed: tuple[str, ...] = ()

    def __init__(self, learning_rate: float | None = None, **options: Any) -> None:
        self.options: dict[str, Any] = {"optimizer": self.rule, **({} if learning_rate is None else {"learning_rate": learning_rate}), **options}
        unknown = options.keys() - {"weight_decay", *self.allowed}
        if unknown:
            raise TypeError(f"{type(self).__name__}() has no option {sorted(unknown)[0]}: it has {', '.join(('learning_rate', 'weight_decay', *self.allowed))}")
        if isinstance(learning_rate, (int, float)) and learning_rate == 0:
            raise ValueError("a learning rate of 0 trains nothing: leave it out for the default")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value}' for name, value in self.options.items() if name != 'optimizer')})"


class SGD(Optimizer):
    """SGD(learning_rate=0.01, weight_decay=0, momentum=0, nesterov=False)"""
    rule, allowed = lib.TUTTI_SGD, ("momentum", "nesterov")

    def __init__(self, learning_rate: float | None = None, **options: Unpack[Momentum]) -> None:
        super().__init__(learning_rate, **options)


class Adam(Optimizer):
    """Adam(learning_rate=0.001, weight_decay=0, beta1=0.9, beta2=0.999, epsilon=1e-8, amsgrad=False)"""
    rule, allowed = lib.TUTTI_ADAM, ("beta1", "beta2", "epsilon", "amsgrad")

    def __init__(self, learning_rate: float | None = None, **options: Unpack[AmsGrad]) -> None:
        super().__init__(learning_rate, **options)


class AdamW(Optimizer):
    """AdamW(learning_rate=0.001, weight_decay=0, beta1=0.9, beta2=0.999, epsilon=1e-8, amsgrad=False)"""
    rule, allowed = lib.TUTTI_ADAMW, ("beta1", "beta2", "epsilon", "amsgrad")

    def __init__(self, learning_rate: float | None = None, **options: Unpack[AmsGrad]) -> None:
        super().__init__(learning_rate, **options)


class RMSprop(Optimizer):
    """RMSprop(learning_rate=0.01, weight_decay=0, beta2=0.99, epsilon=1e-8, momentum=0, centered=False)"""
    rule, allowed = lib.TUTTI_RMSPROP, ("beta2", "epsilon", "momentum", "centered")

    def __init__(self, learning_rate: float | None = None, **options: Unpack[SquareMean]) -> None:
        super().__init__(learning_rate, **options)


class Adagrad(Optimizer):
    """Adagrad(learning_rate=0.01, weight_decay=0, epsilon=1e-10)"""
    rule, allowed = lib.TUTTI_ADAGRAD, ("epsilon",)

    def __init__(self, learning_rate: float | None = None, **options: Unpack[Epsilon]) -> None:
        super().__init__(learning_rate, **options)


class NAdam(Optimizer):
    """NAdam(learning_rate=0.002, weight_decay=0, beta1=0.9, beta2=0.999, epsilon=1e-8)"""
    rule, allowed = lib.TUTTI_NADAM, ("beta1", "beta2", "epsilon")

    def __init__(self, learning_rate: float | None = None, **options: Unpack[Moments]) -> None:
        super().__init__(learning_rate, **options)


class Lion(Optimizer):
    """Lion(learning_rate=0.0001, weight_decay=0, beta1=0.9, beta2=0.99)"""
    rule, allowed = lib.TUTTI_LION, ("beta1", "beta2")

    def __init__(self, learning_rate: float | None = None, **options: Unpack[Betas]) -> None:
        super().__init__(learning_rate, **options)


by_name = {kind.__name__.lower(): kind for kind in (SGD, Adam, AdamW, RMSprop, Adagrad, NAdam, Lion)}


def optimizer_options(given: Optimizer | str | None, defaults: dict[str, Any]) -> dict[str, Any]:
    """The members of tutti_training: of an optimizer, of its name, or of None, which has a model's own."""
    if given is None:
        return dict(defaults)
    if isinstance(given, str):
        if given.lower() not in by_name:
            raise ValueError(f"there is no optimizer {given!r}: it is one of {', '.join(by_name)}")
        given = by_name[given.lower()]()
    if not isinstance(given, Optimizer):
        raise TypeError(f"an optimizer is tutti.SGD(0.1), ... or a name, not {'the class ' if isinstance(given, type) else ''}{shown(given)}")
    return given.options
