"""Writes in place. A fresh tensor, or a view of one, gets a new value; what the view was made from gets it at the view's place."""
import operator

import torch

from . import fourier
from .movement import bounds
from .placing import placed
from .values import Refused, Value

WHOLE = {"view", "reshape", "_unsafe_view", "flatten", "unflatten", "squeeze", "unsqueeze", "view_as", "alias", "detach"}


class Writes:
    """Which nodes of a graph are views of one tensor, and which are the same tensor after a write."""

    def __init__(self, walk, graph):
        self.walk, self.env = walk, {}
        self.order = {node: position for position, node in enumerate(graph.nodes)}
        self.aliases, self.same, self.parents = {}, {}, {}

    def follow(self, node, in_place, result):
        """Notes what shares memory, by the operator's schema."""
        views = [argument for argument in node.target._schema.returns if argument.alias_info is not None]
        if not views or not node.args or not hasattr(node.args[0], "users"):
            return
        base = node.args[0]
        self.aliases.setdefault(base, [base]).append(node)
        self.aliases[node] = self.aliases[base]
        if not in_place:
            self.parents[node] = base
            return
        self.same.setdefault(base, [base]).append(node)
        self.same[node] = self.same[base]
        self.replace(base, result)

    def follow_item(self, node):
        """Notes one of the views that chunk(), split() or unbind() made."""
        views = node.args[0]
        if views in self.parents:
            self.aliases[views].append(node)
            self.aliases[node] = self.aliases[views]
            self.parents[node] = views

    def replace(self, node, value):
        for one in self.same.get(node, [node]):
            self.env[one] = value

    def up(self, node):
        """The views by which a node was made, from itself to the first one's origin."""
        chain = [node]
        while True:
            parent = next((self.parents[one] for one in self.same.get(chain[-1], [chain[-1]]) if one in self.parents), None)
            if parent is None:
                return chain
            chain.append(parent)

    def check(self, node, is_ours):
        """Refuses a write after which other views are read, or into what the module is given."""
        chain = self.up(node.args[0])
        if not is_ours(chain[-1]):
            raise Refused("it writes into a parameter or an input")
        check_memory(chain)
        check_numbers(node, self.env)
        written = {one for link in chain for one in self.same.get(link, [link])}
        for other in self.aliases.get(node.args[0], ()):
            if other not in written and any(self.order[user] > self.order[node] for user in other.users):
                raise Refused("it writes into what has other views that are read later")

    def back(self, node):
        """Gives all from which a written view was made its new numbers."""
        chain = self.up(node.args[0])
        for view, parent in zip(chain, chain[1:]):
            made_by = next(one for one in self.same.get(view, [view]) if one in self.parents)
            self.replace(parent, self.with_part(made_by, self.env[parent], self.env[view]))

    def with_part(self, view, whole, part):
        if fourier.is_complex(whole) or fourier.is_complex(part):
            whole, part = fourier.complex_of(self.walk, whole), fourier.complex_of(self.walk, part)
            return fourier.Complex(self.with_part(view, whole.real, part.real), self.with_part(view, whole.imaginary, part.imaginary))
        if view.target is operator.getitem:
            raise Refused(f"it writes into one of the views that {view.args[0].target} made")
        name = view.target._schema.name.split("::")[-1]
        if name == "detach" and whole.trains:
            raise Refused("it writes into what has a gradient, by detach(), .data or torch.no_grad()")
        if whole.known is not None and part.known is not None:
            made = whole.known.clone()
            arguments = [self.env.get(one, one) if hasattr(one, "users") else one for one in view.args[1:]]
            view.target(made, *arguments, **view.kwargs).copy_(part.known)
            return self.walk.known(made)
        if name in WHOLE:
            tensor = self.walk.reshaped(part.tensor, whole.sample)
            return Value(self.walk, whole.shape, whole.dtype, tensor, outer=whole.outer, varies=part.varies, trains=part.trains)
        if name not in ("slice", "select"):
            raise Refused(f"it writes into a view that {name} made")
        dim, start, end, step = place_of(view, name, whole)
        if step != 1:
            return placed(self.walk, whole, part, dim, list(range(start, end, step)))
        return replaced(self.walk, whole, part, dim, start, end)


def check_memory(chain):
    """Refuses a write into what may be a copy, as reshape() makes one where a view is impossible."""
    metas = [node.meta.get("val") for node in chain]
    storages = {one.untyped_storage()._cdata for one in metas if isinstance(one, torch.Tensor)}
    if len(storages) > 1:
        raise Refused("it writes into a copy of a part")


def check_numbers(node, env):
    """Refuses a write that would round numbers, where whole numbers or truth values are kept. copy_() converts."""
    kept, name = node.meta["val"].dtype, node.target._schema.name.split("::")[-1]
    if kept.is_floating_point or kept.is_complex or name == "copy_":
        return
    for one in torch.utils._pytree.tree_leaves((node.args[1:], node.kwargs)):
        found = env.get(one) if isinstance(one, torch.fx.Node) else one
        dtype = getattr(found, "dtype", None)
        if isinstance(found, float) or (dtype is not None and dtype.is_floating_point) or (kept == torch.bool and found not in (None, 0, 1) and dtype != torch.bool):
            raise Refused(f"it writes other numbers into a tensor of {kept}")


def place_of(view, name, whole):
    """(axis, first, end, step) of a view."""
    arguments = {argument.name: view.args[position] if position < len(view.args) else view.kwargs.get(argument.name, argument.default_value)
                 for position, argument in enumerate(view.target._schema.arguments)}
    dim = whole.shape.counted(arguments["dim"])
    size = whole.shape.sizes[dim]
    if name == "select":
        index = arguments["index"]
        index = index + size if index < 0 else index
        return dim, index, index + 1, 1
    if dim == whole.axis:
        if arguments["step"] != 1 or arguments["start"] not in (0, None) or isinstance(arguments["end"], int) and arguments["end"] < 2 ** 60:
            raise Refused("it writes into a part of the batch")
        return dim, None, None, 1
    return dim, *bounds(size, arguments["start"], arguments["end"] if isinstance(arguments["end"], int) else None), arguments["step"]


def replaced(walk, whole, part, dim, start, end):
    """The elements from start to end of an axis are those of a part."""
    varies = whole.varies or part.varies
    tensors = [walk.spread(one) if varies else one.floats for one in (whole, part)]
    if start is None:
        tensor = tensors[1]
    else:
        place, size = whole.place(dim), whole.shape.sizes[dim]
        sizes = list(whole.sample)
        sizes[place] = end - start
        pieces = [walk.reshaped(tensors[1], sizes)]
        if start > 0:
            pieces.insert(0, walk.op("slice", tensors[0], axes=place, starts=0, ends=start))
        if end < size:
            pieces.append(walk.op("slice", tensors[0], axes=place, starts=end, ends=size))
        tensor = walk.op("concat", *pieces, axis=place) if len(pieces) > 1 else pieces[0]
    return Value(walk, whole.shape, whole.dtype, tensor, outer=whole.outer, varies=varies, trains=whole.trains or part.trains)
