"""Which parameters get a gradient: the others keep their numbers, as an optimizer of PyTorch skips them, also with weight_decay."""
import torch

STOPS = {"aten::detach", "aten::detach_", "aten::item", "aten::_local_scalar_dense"}


def stops(node):
    """Whether no gradient passes a node: it detaches, runs without gradients, or gives no floats."""
    if isinstance(node.target, torch._ops.HigherOrderOperator):
        return "set_grad_enabled" in str(node.target) and node.args[0] is False
    schema, found = getattr(node.target, "_schema", None), node.meta.get("val")
    if schema is not None and schema.name in STOPS:
        return True
    return isinstance(found, torch.Tensor) and not (found.is_floating_point() or found.is_complex())


def writes(node):
    schema = getattr(node.target, "_schema", None)
    return schema is not None and any(one.alias_info is not None and one.alias_info.is_write for one in schema.arguments)


def reached(program, storage_of):
    """The names of the parameters from which a gradient of the loss may come. What is written in place counts as part of the loss."""
    found, waiting = set(), [node for node in program.graph.nodes if node.op == "output" or writes(node)]
    while waiting:
        node = waiting.pop()
        if node not in found and (node.op == "output" or not stops(node)):
            found.add(node)
            waiting += node.all_input_nodes
    kinds, names = torch.export.graph_signature.InputKind, {node.name for node in found}
    specs = [spec for spec in program.graph_signature.input_specs if spec.kind in (kinds.PARAMETER, kinds.CONSTANT_TENSOR)]
    held = {**program.constants, **program.state_dict}
    memory = {storage_of(held[spec.target]) for spec in specs if spec.arg.name in names}    # Keras's parameters are read as constants
    return {spec.target for spec in specs if spec.kind == kinds.PARAMETER and storage_of(held[spec.target]) in memory}
