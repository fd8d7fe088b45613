"""What depends on the inputs alone, as the number of labels that count, is computed by PyTorch on the host in each step, and fed."""
import operator

import torch


def evaluator(walk, node):
    """A function that computes a node of the module's graph from the arrays of a batch; None where parameters or random numbers
    are part of it, or writes."""
    graph = walk.program.graph
    needed, open_nodes = {node}, [node]
    while open_nodes:
        one = open_nodes.pop()
        if one.graph is not graph or not is_pure(walk, one):
            return None
        for before in one.all_input_nodes:
            if before not in needed:
                needed.add(before)
                open_nodes.append(before)
    order = [one for one in graph.nodes if one in needed]
    for one in order:
        walk.baked |= {target for target in [walk.fixed.get(one, (None, None))[0]] if target}

    def compute(arrays):
        env = {}
        with torch.no_grad():
            for one in order:
                env[one] = result(walk, one, arrays, env)
        return env[node]
    return compute


def is_pure(walk, node):
    if node.op == "placeholder":
        return node in walk.positions or node in walk.fixed
    if node.op not in ("call_function", "get_attr"):
        return False
    return not walk.is_impure(node) and not is_written(walk, node)


def is_written(walk, node):
    """Whether a node's tensor is written in place, itself or by its views."""
    return any(walk.is_impure(one) or (is_view(one) and is_written(walk, one)) for one in node.users)


def is_view(node):
    if node.target is operator.getitem:
        return True
    return isinstance(node.target, torch._ops.OpOverload) and any(one.alias_info is not None for one in node.target._schema.returns)


def result(walk, node, arrays, env):
    if node.op == "placeholder":
        return arrays[walk.positions[node]] if node in walk.positions else walk.fixed[node][1]
    if node.op == "get_attr":
        return getattr(walk.program.graph_module, node.target)
    args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda one: env[one])
    return node.target(*args, **{name: torch.device("cpu") if name == "device" else one for name, one in kwargs.items()})


def fed(walk, sizes, dtype, function):
    """An input of the network whose numbers the function computes: arrays of a batch -> [samples, *sizes]."""
    name = f"host_{len(walk.made_inputs)}"
    walk.made_inputs.append((name, function))
    return walk.network.input(name, tuple(sizes), dtype)


def by_samples(value, array):
    """PyTorch's array of a value as [samples, *shape in the network]."""
    samples = array.shape[value.axis] // (value.outer * value.rows)
    parts = array.unflatten(value.axis, (value.outer, samples, value.rows))
    return parts.movedim(value.axis + 1, 0).reshape(samples, *value.sample)


def feeds(walk, arrays):
    for check in walk.checks:
        check(arrays)
    return {name: function(arrays).contiguous().numpy() for name, function in walk.made_inputs}
