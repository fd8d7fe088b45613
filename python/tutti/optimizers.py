"""Optimizers: options of tutti_training for each rule. What is 0 has the rule's default."""
from ._native import lib
from ._values import shown


class Optimizer:
    """An update rule with its options, which are members of tutti_training."""
    rule, positional = None, ("learning_rate",)

    def __init__(self, *values, **options):
        if len(values) > len(self.positional):
            raise TypeError(f"{type(self).__name__}() takes {len(self.positional)} values without a name")
        self.options = {"optimizer": self.rule, **dict(zip(self.positional, values)), **options}
        unknown = options.keys() - {"learning_rate", "weight_decay", *self.allowed}
        if unknown:
            raise TypeError(f"{type(self).__name__}() has no option {sorted(unknown)[0]}: it has {', '.join(('learning_rate', 'weight_decay', *self.allowed))}")

        if "learning_rate" in self.options and self.options["learning_rate"] == 0:
            raise ValueError("a learning rate of 0 trains nothing: leave it out for the default")

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{name}={value}' for name, value in self.options.items() if name != 'optimizer')})"


def rule(name, number, *allowed):
    return type(name, (Optimizer,), {"rule": number, "allowed": allowed, "__module__": "tutti",
                                     "__doc__": f"{name}(learning_rate, weight_decay=0, {', '.join(f'{option}=0' for option in allowed)})"})


SGD = rule("SGD", lib.TUTTI_SGD, "momentum", "nesterov")
Adam = rule("Adam", lib.TUTTI_ADAM, "beta1", "beta2", "epsilon", "amsgrad")
AdamW = rule("AdamW", lib.TUTTI_ADAMW, "beta1", "beta2", "epsilon", "amsgrad")
RMSprop = rule("RMSprop", lib.TUTTI_RMSPROP, "beta2", "epsilon", "momentum", "centered")
Adagrad = rule("Adagrad", lib.TUTTI_ADAGRAD, "epsilon")
NAdam = rule("NAdam", lib.TUTTI_NADAM, "beta1", "beta2", "epsilon")
Lion = rule("Lion", lib.TUTTI_LION, "beta1", "beta2")
by_name = {kind.__name__.lower(): kind for kind in (SGD, Adam, AdamW, RMSprop, Adagrad, NAdam, Lion)}


def optimizer_options(given, defaults):
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
