"""The table from ATen's operators to Tutti's. A function gets the walk and the operator's arguments by the names of its schema, and
returns a Value, a list of them, or a Loss. Operators of one line are elementwise; the others stand in the file of their subject."""
from . import alignments, elements, formulas, indexing, losses, margins, movement, neural, ordering, placing, recurrent, refusals, sequences
from .values import Loss, Refused

# Elementwise operators of one tensor: the operation that is the same.
SAME = {"relu": "relu", "sigmoid": "sigmoid", "tanh": "tanh", "exp": "exp", "log": "log", "sqrt": "sqrt", "abs": "abs",
        "sin": "sin", "cos": "cos", "tan": "tan", "asin": "asin", "acos": "acos", "atan": "atan", "sinh": "sinh", "cosh": "cosh", "erf": "erf",
        "silu": "silu", "mish": "mish", "selu": "selu", "relu6": "relu6", "reciprocal": "reciprocal", "square": "square", "sign": "sign",
        "floor": "floor", "ceil": "ceil", "round": "round", "trunc": "trunc", "hardsigmoid": "hard_sigmoid", "hardswish": "hard_swish",
        "logical_not": "not", "isnan": "is_nan", "isinf": "is_inf", "positive": "copy"}
# Elementwise operators of two tensors.
PAIRS = {"mul": "mul", "div": "div", "true_divide": "div", "maximum": "max", "minimum": "min", "fmod": "fmod", "remainder": "mod", "eq": "equal", "gt": "greater",
         "lt": "less", "ge": "greater_or_equal", "le": "less_or_equal", "logical_and": "and", "logical_or": "or", "logical_xor": "xor"}


def same(operation):
    def build(walk, self, **others):
        if any(value not in (None, 0) for value in others.values()):
            raise Refused(f"its arguments {others}")
        return walk.result(walk.op(operation, self.floats), [self], outer=self.outer)
    return build


def pair(operation):
    def build(walk, self, other, **others):
        if others.get("rounding_mode") is not None:
            raise Refused("a rounding mode")
        if isinstance(self, Loss) or isinstance(other, Loss):
            return losses.scaled(walk, operation, self, other)
        return elements.binary(walk, operation, self, other)
    return build


OPERATORS = {**{name: same(operation) for name, operation in SAME.items()}, **{name: pair(operation) for name, operation in PAIRS.items()},
             **elements.OPERATORS, **movement.OPERATORS, **indexing.OPERATORS, **neural.OPERATORS, **sequences.OPERATORS, **recurrent.OPERATORS, **ordering.OPERATORS,
             **placing.OPERATORS, **losses.OPERATORS, **formulas.OPERATORS, **margins.OPERATORS, **alignments.OPERATORS, **refusals.OPERATORS}
