"""From a module to a network: exports it with its loss, before any decomposition, and walks the graph of ATen's operators."""
import math
import operator
import os
import re

import numpy
import torch

from .. import errors, layers
from .._native import ffi, lib
from .._network import Network
from . import alignments, fourier, kerases, older, packing, precision, watched
from .host import evaluator, fed
from .kept import Kept, is_written, written_by
from .movement import detached
from .operators import OPERATORS
from .values import COUNTS, Loss, Refused, Value, is_whole, multiple_of, same_for_all, shape_of
from .writes import Writes

IGNORED = {"_assert_scalar", "_assert_async", "_assert_tensor_metadata", "sym_constrain_range_for_size", "sym_constrain_range", "_assert_async.msg"}
RANDOM = {"rand", "randn", "randint", "randperm", "bernoulli", "normal", "multinomial", "rand_like", "randn_like", "dropout", "empty", "empty_like", "new_empty", "empty_strided",
          "new_empty_strided", "empty_permuted", "exponential", "uniform", "randint_like", "feature_dropout", "alpha_dropout", "rrelu"}
# What may read numbers that differ from sample to sample because they count samples: x[arange(n)] is such an index.
REORDER = {"view", "reshape", "unsqueeze", "squeeze", "slice", "select", "expand", "to", "_to_copy", "index", "contiguous", "clone", "alias", "permute", "transpose",
           "flatten", "broadcast_tensors", "lift_fresh_copy"}
# Operators whose results of whole numbers may be larger than what they are computed of.
GROW = {"add", "sub", "subtract", "rsub", "mul", "multiply", "pow", "square", "prod", "addcmul", "einsum"}
PLACES = re.compile(r'File "([^"]+)", line (\d+), in (\S+)\n?\s*(.*)')
SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)
# Bytes and short integers overflow in PyTorch, and half precision rounds.
OTHER_TYPES = {torch.uint8, torch.int8, torch.int16, torch.float16, torch.bfloat16}
KERAS = "_torch_params."    # in names of parameters of Keras's models, whose layers use them by variables of their own
MOST = (1 << 31) - 1     # samples of a batch: without a limit, PyTorch 2.6 finds that a product of sizes might overflow
FOLDER = os.path.dirname(torch.__file__) + os.sep


class Step(torch.nn.Module):
    """A module with its loss. whole: the module alone, with all that it returns."""

    def __init__(self, module, loss, whole=False):
        super().__init__()
        self.module, self.loss, self.whole = module, loss, whole
        self.training, self.autocasts = module.training, False
        self.changes = watched.Changes([one for one in (module, loss) if isinstance(one, torch.nn.Module)])

    def forward(self, given, named, targets):
        self.changes.begin()
        outputs = self.module(*given, **named)
        self.changes.end()
        if self.whole:
            return outputs
        if self.loss is None:
            return outputs if isinstance(outputs, torch.Tensor) else outputs["loss"] if isinstance(outputs, dict) else outputs[0]
        return self.loss(outputs, *targets)


def exported(step, given, named, targets):
    """The program of a step for any number of samples, traced with two."""
    def two(array):
        if not isinstance(array, torch.Tensor):
            return array
        if not array.ndim:
            raise ValueError("an array of samples has the batch as its first axis; a number has none")
        return array.detach().cpu()[:2] if len(array) > 1 else array.detach().cpu()[:1].expand(2, *array.shape[1:]).clone()

    batch = torch.export.Dim("batch", min=2, max=MOST)
    example = torch.utils._pytree.tree_map(two, (tuple(given), dict(named), tuple(targets)))
    dynamic = torch.utils._pytree.tree_map(lambda array: {0: batch} if isinstance(array, torch.Tensor) else None, example)
    with alignments.exporting(), kerases.exporting(), older.exporting(), packing.exporting(), precision.exporting(step):
        return torch.export.export(step, example, dynamic_shapes=dynamic, strict=False)


def storage_of(tensor):
    """What tied parameters have in common."""
    return tensor.untyped_storage().data_ptr(), tensor.storage_offset(), tuple(tensor.shape), tensor.stride()


def line_of(node):
    """Where the module's source asks for a node: the innermost line outside of PyTorch, else the innermost one."""
    found = PLACES.findall(node.meta.get("stack_trace") or "")
    own = [place for place in found if not place[0].startswith(FOLDER) and os.path.dirname(place[0]) != os.path.dirname(__file__)]
    if not found:
        return "a place that PyTorch does not tell"
    path, line, function, text = (own or found)[-1]
    if os.path.dirname(path) == os.path.dirname(__file__):
        return "in the loss"
    return f"{path}:{line}, in {function}: {text.strip()}" if text.strip() else f"{path}:{line}, in {function}"


def name_of(target):
    """(name, is in place) of one of ATen's operators."""
    name = target._schema.name.split("::")[-1]
    writes = any(argument.alias_info is not None and argument.alias_info.is_write for argument in target._schema.arguments)
    return (name[:-1], True) if writes and name.endswith("_") and not name.startswith("__") else (name, writes)


def bound(target, args, kwargs):
    """Arguments by the names of the operator's schema."""
    return {argument.name: args[position] if position < len(args) else kwargs.get(argument.name, argument.default_value)
            for position, argument in enumerate(target._schema.arguments)}


def used_nodes(graph):
    """Nodes on which the output depends, or that write."""
    used = set()
    for node in reversed(graph.nodes):
        writes = any(isinstance(one.target, torch._ops.OpOverload) and name_of(one.target)[1] for one in [node, *nodes_within(node)])
        if node.op == "output" or writes or any(user in used for user in node.users):
            used.add(node)
    return used


def nodes_within(node):
    """Nodes of the graphs that a node runs, as that of torch.no_grad() does."""
    if not isinstance(node.target, torch._ops.HigherOrderOperator):
        return []
    owner = node.graph.owning_module
    graphs = [getattr(owner, one.target).graph for one in node.all_input_nodes if one.op == "get_attr" and isinstance(getattr(owner, one.target), torch.fx.GraphModule)]
    return [inner for graph in graphs for one in graph.nodes for inner in [one, *nodes_within(one)]]


def tensors_in(arguments):
    return [one for one in torch.utils._pytree.tree_leaves(arguments, is_leaf=lambda one: isinstance(one, (Value, Loss))) if isinstance(one, (Value, Loss))]


def is_unknown(node):
    """Whether no table has a node's operator."""
    tables = (OPERATORS, fourier.OPERATORS, fourier.REAL, IGNORED)
    return isinstance(node.target, torch._ops.OpOverload) and isinstance(node.meta.get("val"), (torch.Tensor, list, tuple)) and all(name_of(node.target)[0] not in one for one in tables)


class Noted(Exception):
    """A node of an inner graph was refused, and noted."""


class Walk:
    """Builds a network of an exported program. After it: `network`, `loss`, `inputs` (names in the order of the program's arrays),
    `parameters` (PyTorch's name: the network's), `statistics` (the same of running statistics), `counters` (buffers that count steps),
    `baked` (buffers whose numbers are constants of the network), `made_inputs` (inputs that the host computes, with their functions), `checks` (functions that look at the arrays of a batch),
    `wholes` (whole numbers that are computed), `reads_wholes` (whether layers compute with inputs that are whole numbers).
    infers: the outputs are wanted, `found`, not a loss. ignores: labels that do not count may come."""

    def __init__(self, program, trained, runtime=None, infers=False, ignores=False):
        self.program, self.trained, self.network, self.infers, self.baked = program, trained, Network(runtime), infers, set()
        self.network.journal = None
        self.inputs, self.parameters, self.statistics, self.counters = [], {}, {}, {}
        self.excluded, self.refusals, self.casts, self.like, self.node, self.names = [], [], {}, None, None, set()
        self.tied, self.owned, self.wholes, self.reads_wholes = {}, {}, [], False
        self.kept, self.ignores, self.made_inputs, self.checks, self.positions, self.fixed = [], ignores or infers, [], [], {}, {}
        self.symbol = self.symbol_of(program)
        found = self.run(program.graph_module, [self.placeholder(node, spec) for node, spec in self.placeholders()])
        if self.refusals:
            raise errors.UnsupportedError("\n".join([f"tutti.torch cannot {'run' if infers else 'train'} this module:", *self.refusals]))
        self.found = found
        if not infers:
            self.check_loss(found[0])

    def check_loss(self, loss):
        self.loss = loss
        if isinstance(loss, Value) and loss.varies:
            raise errors.UnsupportedError("the loss is not a number: it has the shape " + str(list(loss.shape.sizes)))
        if not isinstance(loss, Loss) or not loss.terms:
            raise errors.UnsupportedError("the loss does not depend on the samples, or on parameters")
        self.terms = [(term.factor, self.term(term)) for term in loss.terms] + [(1.0, one.loss()) for one in self.kept if one.now is not None]

    def term(self, term):
        """The library's loss of a term. What it is multiplied by in each batch is an input, the same for all samples."""
        if term.is_plain:
            return term.fused() if term.fused else layers.mean(term.elements())
        def scales(arrays):
            return torch.full((len(arrays[0]),), term.scale(arrays))
        return layers.mean(term.elements(), weights=fed(self, (), "float32", scales))

    # ---------------------------------------------------------------------------------------------------- inputs ----

    def placeholders(self):
        specs = {spec.arg.name: spec for spec in self.program.graph_signature.input_specs}
        return [(node, specs[node.name]) for node in self.program.graph.nodes if node.op == "placeholder"]

    def symbol_of(self, program):
        for node, spec in self.placeholders():
            value = node.meta.get("val")
            if spec.kind == torch.export.graph_signature.InputKind.USER_INPUT and isinstance(value, torch.Tensor):
                if isinstance(value.shape[0], int):
                    raise errors.UnsupportedError(f"the module works for {value.shape[0]} samples only")
                return value.shape[0].node.expr
        raise errors.UnsupportedError("the module has no input with samples")

    def placeholder(self, node, spec):
        kinds, meta = torch.export.graph_signature.InputKind, node.meta.get("val")
        if spec.kind == kinds.USER_INPUT:
            if not isinstance(meta, torch.Tensor):
                self.fixed[node] = None, meta
                return meta
            self.positions[node] = len(self.inputs)
            made = self.input(meta)
            made.node = node
            return made
        if spec.kind == kinds.PARAMETER:
            return self.parameter(spec.target, len(node.users))
        if spec.kind == kinds.BUFFER:
            self.fixed[node] = spec.target, self.buffer(spec.target)
            return Buffer(self, spec.target, self.buffer(spec.target), is_written(node))
        if spec.kind == kinds.CONSTANT_TENSOR:
            shared = self.tied.get(storage_of(self.program.constants[spec.target]))
            if shared is not None and KERAS in shared.target:
                shared.uses += len(node.users)
                return shared
            self.fixed[node] = None, self.program.constants[spec.target]
            return self.known(self.program.constants[spec.target])
        return None

    def is_impure(self, node):
        """Whether a node writes, draws random numbers or keeps statistics."""
        if isinstance(node.target, torch._ops.HigherOrderOperator):
            return True
        if not isinstance(node.target, torch._ops.OpOverload):
            return False
        name, in_place = name_of(node.target)
        return in_place or name in RANDOM or name in STATISTICS

    def input(self, meta):
        kinds = {torch.float32: "float32", torch.float64: "float32", torch.int64: "int32", torch.int32: "int32", torch.bool: "bool", torch.uint8: "uint8"}
        shape, name = shape_of(meta.shape, self.symbol), f"array_{len(self.inputs)}"
        if meta.dtype not in kinds:
            raise errors.UnsupportedError(f"an input is {meta.dtype}")
        tensor = self.network.input(name, shape.sizes[1:], kinds[meta.dtype])
        self.inputs.append(name)
        return Value(self, shape, meta.dtype, tensor, varies=True, source=(name,))

    def buffer(self, target):
        return self.program.state_dict[target] if target in self.program.state_dict else self.program.constants[target]

    def parameter(self, target, uses):
        """A parameter, made in the network when it is first used: layers such as LSTM make their own."""
        values = self.program.state_dict[target]
        key = storage_of(values)
        if key not in self.tied:
            if values.dtype not in (torch.float32, torch.complex64):
                raise errors.UnsupportedError(f"the parameter {target.removeprefix('module.')} is {values.dtype}: parameters are float32 or complex64, as after module.float()")
            self.tied[key] = Parameter(self, target, values)
        self.tied[key].targets.append(target)
        self.tied[key].uses += uses
        return self.tied[key]

    # ---------------------------------------------------------------------------------------------------- making ----

    def op(self, name, *inputs, **attributes):
        return self.network.op(name, *inputs, **attributes)

    def known(self, array):
        return Value(self, shape_of(array.shape, self.symbol), array.dtype, known=array)

    def reshaped(self, tensor, sizes):
        return tensor if tuple(tensor.shape) == tuple(sizes) else self.op("reshape", tensor, shape=list(sizes))

    def set_initial(self, name, values):
        array = numpy.ascontiguousarray(values.detach().cpu().numpy(), "float32").reshape(-1)
        errors.check(lib.tutti_set_initial(self.network.pointer, name.encode(), ffi.from_buffer("float[]", array), array.size))

    def floats_of(self, tensor):
        if tensor.c.id not in self.casts:
            self.casts[tensor.c.id] = layers.cast(tensor, "float32")
        made = self.casts[tensor.c.id]
        if made.dtype != "float32":     # bytes become int32 first
            made = self.casts[tensor.c.id] = layers.cast(made, "float32")
        return made

    def spread(self, value):
        """The tensor of a value with the batch, also if it is the same for all samples."""
        if value.varies:
            return value.floats
        tensor = value.floats
        return self.reshaped(self.op("where", self.like_of(), tensor, tensor), value.sample)

    def like_of(self):
        """One number of each sample."""
        if self.like is None:
            first = self.network.inputs[self.inputs[0]]
            first = first if first.dtype == "float32" else self.floats_of(first)
            first = self.reshaped(first, (math.prod(first.shape),))
            self.like = self.op("slice", first, axes=0, starts=0, ends=1)
        return self.like

    def same_of(self, value, tensor, trains=None):
        """A value of the same shape and batch."""
        return Value(self, value.shape, torch.float32, tensor, outer=value.outer, varies=value.varies, trains=value.trains if trains is None else trains)

    def integers_of(self, tensor, value):
        raise Refused("labels that are computed")

    def meta(self, index=None):
        """PyTorch's tensor of the node's result, or of one of its results."""
        found = self.node.meta["val"]
        return found if index is None else found[index]

    def shape(self, index=None):
        return shape_of(self.meta(index).shape, self.symbol)

    def result(self, tensor, inputs, *, outer=1, index=None, source=()):
        """The value of the node, computed of these inputs. Its shape is the one that PyTorch's node has."""
        shape, inputs, dtype = self.shape(index), tensors_in(inputs), self.meta(index).dtype
        if dtype in OTHER_TYPES and not source:
            raise Refused(f"it computes with {dtype}")
        dtype = torch.float32 if dtype.is_complex else dtype    # one of two parts
        value = Value(self, shape, dtype, tensor, outer=outer, varies=any(one.varies for one in inputs),
                      trains=any(one.trains for one in inputs), source=source)
        if value.varies and shape.axis is None:
            raise Refused("it works along the batch: samples are computed apart from each other")
        if name_of(self.node.target)[0] in GROW:
            self.note_whole(value, tensor)
        have, wanted = tuple(tensor.shape), value.sample
        if have != wanted:
            if [size for size in have if size != 1] != [size for size in wanted if size != 1]:
                raise Refused(f"the network computes the shape {list(have)}, not {list(wanted)}")
            value.made = self.reshaped(tensor, wanted)
        return value

    def note_whole(self, value, tensor):
        """Notes the largest of a value's whole numbers, of this tensor. They must be exact in float32 if the outputs are wanted."""
        if self.infers and value.varies and is_whole(value.dtype):
            size = math.prod(tensor.shape)
            self.wholes.append(self.op("reduce_max", self.op("abs", self.reshaped(tensor, (size,))), axes=[0], keepdims=1))

    def unique(self, name):
        made, number = name, 1
        while made in self.names:
            number += 1
            made = f"{name}_{number}"
        self.names.add(made)
        return made

    # --------------------------------------------------------------------------------------------------- walking ----

    def run(self, module, given):
        """Walks a graph; returns the list of its outputs. A node that is refused is noted, and so none that depends on it is tried."""
        writes, given, used = Writes(self, module.graph), iter(given), used_nodes(module.graph)
        env = writes.env
        for node in module.graph.nodes:
            if node.op == "placeholder":
                env[node] = next(given)
            elif node.op == "get_attr":
                found = getattr(module, node.target)
                env[node] = self.known(found) if isinstance(found, torch.Tensor) else found
            elif node.op == "output":
                return list(self.values(node.args[0], env)) if not self.refusals else []
            elif node in used:
                self.node = node
                if any(before not in env for before in node.all_input_nodes):
                    if is_unknown(node):
                        self.note(node, "there is no such operator in the table")
                    continue
                try:
                    env[node] = self.call(node, env, writes)
                    if isinstance(env[node], Value) and env[node].node is None:
                        env[node].node = node
                except Noted:
                    continue
                except Exception as refusal:    # noqa: BLE001: arguments of a kind that no one has thought of are refused, too
                    self.note(node, refusal if isinstance(refusal, (Refused, errors.Error)) else f"{type(refusal).__name__}: {refusal}")
                    if not isinstance(refusal, Refused):    # the network keeps its first error
                        return []
        return []

    def note(self, node, reason):
        what = getattr(node.target, "_schema", None)
        self.refusals.append(f"  {line_of(node)}\n    {what.name.replace('::', '.') if what else node.target}: {reason}")

    def values(self, arguments, env):
        def value(node):
            found = env[node]
            return found.value() if isinstance(found, (Parameter, Buffer)) else found
        return torch.fx.node.map_arg(arguments, value)

    def call(self, node, env, writes):
        meta = node.meta.get("val")
        if node.target is operator.getitem:
            writes.follow_item(node)
            return env[node.args[0]][node.args[1]]
        if isinstance(node.target, torch._ops.HigherOrderOperator):
            return self.call_graph(node, env)
        if meta is None or isinstance(meta, (int, float, bool, *SYMBOLIC)) or not isinstance(node.target, torch._ops.OpOverload):
            name = getattr(getattr(node.target, "_schema", None), "name", "")
            if name.split("::")[-1] in IGNORED or (meta is not None and not name.startswith("aten::item")):
                return meta
            if name.startswith("aten::_assert"):
                return None
            raise Refused("it needs numbers of the samples while the graph is built")
        name, in_place = name_of(node.target)
        written = written_by(node) if in_place else None
        buffer = next((one.buffer for one in self.kept if written in one.results), env.get(written))
        if in_place and isinstance(buffer, Buffer):
            return buffer.written(self, node, name, env)
        if "out" in node.kwargs:
            raise Refused("out= another tensor than a buffer")
        if in_place:
            writes.check(node, lambda base: base.op != "placeholder" and not isinstance(env[base], Parameter))
        result = self.compute(node, name, in_place, env)
        writes.follow(node, in_place, result)
        if in_place:
            writes.back(node)
        return result

    def compute(self, node, name, in_place, env):
        if name in NEEDS_PARAMETERS:    # these make parameters of their own, or need their names
            given = torch.fx.node.map_arg((node.args, node.kwargs), lambda one: env[one])
        else:
            given = self.values((node.args, {key: one for key, one in node.kwargs.items() if key != "out"}), env)
        args, kwargs = given
        found = tensors_in((args, kwargs))
        if in_place and name not in RANDOM and all(one.known is not None for one in found if isinstance(one, Value)) and self.is_plain(args, kwargs):
            return self.known(self.called(node, (self.known(args[0].known.clone()), *args[1:]), kwargs, None))
        if name not in RANDOM and not in_place and all(not isinstance(one, fourier.Complex) for one in torch.utils._pytree.tree_leaves((args, kwargs))) and all(isinstance(one, Value) and (one.known is not None or one.counted) for one in found):
            made = self.computed_now(node, name, args, kwargs)
            if made is not None:
                return made
        numbers = [one for one in found if isinstance(one, Loss)]
        if numbers and all(one.host for one in numbers):
            return self.number_of_inputs(node, name, args, kwargs)
        return self.operator(node, name, args, kwargs)

    @staticmethod
    def is_plain(args, kwargs):
        """Whether arguments are numbers and values only."""
        leaves = torch.utils._pytree.tree_leaves((args, kwargs))
        return isinstance(args[0], Value) and not any(isinstance(one, (*SYMBOLIC, fourier.Complex, Loss)) for one in leaves)

    def operator(self, node, name, args, kwargs):
        """The result by the tables of operators. One that works in place may call its first argument otherwise."""
        leaves = torch.utils._pytree.tree_leaves((args, kwargs))
        arguments = bound(node.target, args, kwargs)
        if any(argument.is_out for argument in node.target._schema.arguments):
            arguments.pop("out", None)
        if any(fourier.is_complex(one) for one in leaves):
            if name not in fourier.OPERATORS:
                raise Refused("it computes with complex numbers")
            return fourier.OPERATORS[name](self, arguments)
        if name in fourier.REAL:
            return fourier.REAL[name](self, **arguments)
        if name not in OPERATORS:
            raise Refused("there is no such operator in the table")
        if any(isinstance(one, Loss) for one in leaves):
            try:
                return OPERATORS[name](self, **arguments)
            except AttributeError:
                raise Refused("a number of the whole batch: a loss can be added, and multiplied by numbers, as it is a mean or a sum over the samples") from None
        for argument in node.target._schema.arguments:
            if isinstance(arguments.get(argument.name), SYMBOLIC) and "int" not in str(argument.type).lower():
                raise Refused("the number of samples is part of what it computes")
        return OPERATORS[name](self, **arguments)

    def number_of_inputs(self, node, name, args, kwargs):
        """The result of numbers that depend on the inputs alone: a number that the host computes, and a loss if it can be one."""
        host = evaluator(self, node)
        if host is None or not isinstance(node.meta["val"], torch.Tensor) or node.meta["val"].ndim:
            raise Refused("a number of the whole batch is part of what it computes")
        try:
            made = OPERATORS[name](self, **bound(node.target, args, kwargs))
            return Loss(made.terms, made.prediction, host)
        except (Refused, KeyError, AttributeError):
            return Loss([], None, host)

    def computed_now(self, node, name, args, kwargs):
        """The result of known numbers, by PyTorch itself. Where the number of samples is among them, it is computed for two of these."""
        leaves = torch.utils._pytree.tree_leaves((args, kwargs), is_leaf=lambda one: isinstance(one, Value))
        values = [one for one in leaves if isinstance(one, Value)]
        if any(isinstance(one, (torch.SymFloat, torch.SymBool)) for one in leaves):
            return None
        if not any(isinstance(one, torch.SymInt) for one in leaves) and all(one.known is not None for one in values):
            made = self.called(node, args, kwargs, None)
            return torch.utils._pytree.tree_map(lambda one: self.known(one) if isinstance(one, torch.Tensor) else one, made)
        if name not in REORDER and not all(same_for_all(one) for one in values):
            raise Refused("it computes with the numbers of the samples, counted from the first one")
        made = {count: self.called(node, args, kwargs, count) for count in COUNTS}
        metas, (few, many) = node.meta["val"], made.values()
        if isinstance(few, torch.Tensor):
            return self.counted(metas, few, many)
        return [self.counted(*one) for one in zip(metas, few, many)]

    def counted(self, meta, few, many):
        """A value that is known for each number of samples."""
        shape = shape_of(meta.shape, self.symbol)
        if shape.axis is None and torch.equal(few, many):
            return self.known(few)
        fill = few.flatten()[0].item() if few.numel() and bool((few == few.flatten()[0]).all()) else None
        return Value(self, shape, meta.dtype, counted=(few, many), fill=fill)

    def called(self, node, args, kwargs, count):
        def now(one):
            if isinstance(one, torch.SymInt):
                multiple, batched = multiple_of(one, self.symbol)
                return multiple * (count if batched else 1)
            return one if not isinstance(one, Value) else one.known if one.known is not None else one.counted[COUNTS.index(count)]
        args, kwargs = torch.utils._pytree.tree_map(now, (tuple(args), dict(kwargs)), is_leaf=lambda one: isinstance(one, Value))
        with torch.no_grad():
            return node.target(*args, **{name: torch.device("cpu") if name == "device" else one for name, one in kwargs.items()})

    def call_graph(self, node, env):
        """torch.no_grad() and autocast within a module are graphs of their own."""
        name = node.target.name() if callable(getattr(node.target, "name", None)) else str(node.target)
        args = [env[one] if isinstance(one, torch.fx.Node) else one for one in node.args]
        if "set_grad_enabled" in name:
            enabled, graph, given = args[0], args[1], args[2:]
        elif "autocast" in name and not args[2]:
            enabled, graph, given = True, args[4], args[5:]
        else:
            raise Refused(f"{name} has no form here")
        refused = len(self.refusals)
        made = self.run(graph, given)
        if len(self.refusals) > refused:
            raise Noted
        return made if enabled else torch.utils._pytree.tree_map(lambda one: detached(self, one) if isinstance(one, Value) else one, made, is_leaf=lambda one: isinstance(one, Value))


STATISTICS = {"batch_norm", "keras_batch_norm"}
NEEDS_PARAMETERS = {"lstm", "gru", "rnn_tanh", "rnn_relu", "packed_recurrent", *STATISTICS}


class Parameter:
    """A parameter of the module. PyTorch's tied ones are one."""

    def __init__(self, walk, target, values):
        self.walk, self.target, self.values, self.targets, self.uses, self.found = walk, target, values, [], 0, None
        self.is_written = False     # as a moving statistic of Keras

    def complex_value(self):
        """Its parts, of a parameter of the network that has them in its last axis."""
        sizes, name = (*self.values.shape, 2), self.walk.unique(self.target.removeprefix("module."))
        tensor = self.walk.network.parameter(name, sizes, values=torch.view_as_real(self.values.detach().cpu()).numpy(), frozen=not self.is_trained)
        self.walk.parameters[self.target] = name
        parts = [self.walk.op("slice", tensor, axes=len(sizes) - 1, starts=part, ends=part + 1) for part in (0, 1)]
        shape = shape_of(sizes[:-1], self.walk.symbol)
        return fourier.Complex(*[Value(self.walk, shape, torch.float32, self.walk.reshaped(part, sizes[:-1] or (1,)), trains=True) for part in parts])

    @property
    def is_trained(self):
        return self.walk.trained(self.targets)

    def value(self):
        if self.is_written:
            raise Refused(f"{self.target} is read after it was written")
        if self.target in self.walk.owned:
            raise Refused(f"a layer has {self.target} already, which it cannot share")
        if self.found is None and self.values.is_complex():
            self.found = self.complex_value()
        if self.found is None:
            sizes, name = tuple(self.values.shape), self.walk.unique(self.target.removeprefix("module."))
            tensor = self.walk.network.parameter(name, sizes, values=self.values.detach().cpu().numpy(), frozen=not self.is_trained)
            self.walk.parameters[self.target] = name
            self.found = Value(self.walk, shape_of(sizes, self.walk.symbol), torch.float32, tensor, trains=True)
        return self.found

    @property
    def is_free(self):
        """Whether a layer may make it."""
        return self.uses == 1 and self.found is None and self.target not in self.walk.owned and not self.values.is_complex()

    def own(self, name):
        """A layer has made it, with this name in the network."""
        if self.found is not None or self.target in self.walk.owned:
            raise Refused(f"{self.target} is also used elsewhere, and this layer cannot share it")
        self.walk.owned[self.target] = self.walk.parameters[self.target] = name
        self.walk.set_initial(name, self.values)
        if not self.is_trained:
            self.walk.network.freeze(name)


class Buffer:
    """A buffer of the module: constant, except for running statistics and counters of steps."""

    def __init__(self, walk, target, values, changes=False):
        self.walk, self.target, self.values, self.found, self.is_written, self.kept = walk, target, values, None, False, None
        self.changes = changes and values.dtype == torch.float32 and not walk.infers

    def value(self):
        if self.is_written:
            raise Refused(f"the buffer {self.target} is read after it was written")
        if self.changes:
            return self.keeping().value()
        if self.found is None:
            self.found = self.walk.known(self.values)
            self.walk.baked.add(self.target)
        return self.found

    def keeping(self):
        if self.kept is None:
            self.kept = Kept(self.walk, self)
        return self.kept

    def written(self, walk, node, name, env):
        if self.changes:
            return self.keeping().write(node, env, walk.compute(node, name, False, env))
        if name != "add" or self.values.dtype != torch.int64 or not isinstance(node.args[1], int) or self.values.ndim:
            raise Refused(f"it writes into the buffer {self.target}")
        self.walk.counters[self.target] = self.walk.counters.get(self.target, 0) + node.args[1]
        self.is_written = True
        return self
