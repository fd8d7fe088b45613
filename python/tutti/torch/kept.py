"""Buffers of floats that forward() writes, of parameters and of what they were, as spectral_norm does: a running statistic with momentum 1
has the numbers until the next step, and brings them back. What depends on the samples is not kept."""
import torch

from .. import layers
from .host import is_view
from .movement import detached
from .values import Refused, Value, shape_of


def written_by(node):
    """The node whose tensor an operator writes into; None: it writes none."""
    if isinstance(node.target, torch._ops.OpOverload):
        for position, argument in enumerate(node.target._schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                return node.args[position] if position < len(node.args) else node.kwargs.get(argument.name)
    return None


def is_written(node):
    """Whether a tensor is written into, also in the graphs that it is given to, as that of torch.no_grad()."""
    for user in node.users:
        if written_by(user) is node:
            return True
        if isinstance(user.target, torch._ops.HigherOrderOperator):
            owner = node.graph.owning_module
            graphs = [position for position, one in enumerate(user.args) if isinstance(one, torch.fx.Node) and isinstance(getattr(owner, str(one.target), None), torch.fx.GraphModule)]
            for position, one in enumerate(user.args):
                if one is node and graphs:
                    inner = [each for each in getattr(owner, user.args[graphs[0]].target).graph.nodes if each.op == "placeholder"]
                    if is_written(inner[position - graphs[0] - 1]):
                        return True
    return False


class Kept:
    """The numbers of such a buffer: those of the step before, then what was written last."""

    def __init__(self, walk, buffer):
        target, values = buffer.target, buffer.values
        self.walk, self.buffer, self.target, self.count, self.results, self.now = walk, buffer, target, values.numel(), [], None
        self.name = walk.unique(target.removeprefix("module."))
        zeros = Value(walk, shape_of((self.count, 1, 1), walk.symbol), torch.float32, walk.network.constant(torch.zeros(self.count, 1, 1).numpy()))
        self.normalised(zeros)
        name = f"{self.name}.running_mean"
        walk.set_initial(name, values)
        walk.statistics[target] = name
        walk.kept.append(self)
        self.tensor = walk.network.find_parameter(name)
        shape = shape_of(values.shape, walk.symbol)
        self.before = Value(walk, shape, torch.float32, walk.reshaped(self.tensor, shape.sizes or (1,)))

    def normalised(self, value, **given):
        """Zeros, from a batch normalisation whose running mean becomes the value."""
        zeros = self.walk.network.constant([0.0] * self.count)
        return layers.batch_norm(self.walk.spread(value), name=self.walk.unique(f"{self.name}.kept") if given else self.name, momentum=1.0, epsilon=1.0, weight=zeros, bias=zeros, **given)

    def value(self):
        return self.before if self.now is None else self.now

    def write(self, node, env, value):
        """The buffer's new numbers. What was written before is the same memory."""
        buffer = written_by(node)
        if any(is_view(one) and written_by(one) is not buffer for one in buffer.users):
            raise Refused(f"it writes into the buffer {self.target}, of which it has read a part")
        if value.varies:
            raise Refused(f"it writes what depends on the samples into the buffer {self.target}: samples are computed apart from each other")
        if value.shape.sizes != self.before.shape.sizes or not value.dtype.is_floating_point:
            raise Refused(f"it writes another shape or type into the buffer {self.target}")
        self.now = value
        for one in self.results:
            if one in env:
                env[one] = value
        self.results.append(node)
        return value

    def loss(self):
        """A loss that is 0, by which the numbers are kept. It is the network's last node: of several that read a statistic with momentum 1,
        the last one gives it its numbers."""
        value = detached(self.walk, self.now)
        wide = self.walk.op("expand", self.walk.reshaped(value.floats, (self.count, 1, 1)), shape=[self.count, 2, 1])
        return layers.mean(self.normalised(Value(self.walk, shape_of((self.count, 2, 1), self.walk.symbol), torch.float32, wide), running_mean=self.tensor))
