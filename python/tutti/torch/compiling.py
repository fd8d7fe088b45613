"""torch.compile(module, backend="tutti"): graphs that infer run on Tutti's devices, the others by PyTorch."""
import collections
import copy
import operator
import warnings
from typing import Any, NamedTuple

import torch

from .. import errors
from . import ahead
from .graph import RANDOM, Step, bound, exported, line_of, name_of
from .inference import Predictor

NETWORKS = 8            # that are kept for other shapes
NOT_RANDOM = {"empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted"}
CHANGES = 8             # networks that are made because numbers have changed that are constants in them
LARGEST = 1 << 22       # elements of such a constant
SIZED = {"view", "reshape", "expand", "new_zeros", "new_ones", "repeat"}     # methods whose first size may be that of the batch


def compiled(graph, examples, *, mode=None, options=None):
    """What torch.compile() calls for each graph. options={"runtime": tutti.Runtime("0,1")} chooses devices."""
    options = dict(options or {})
    runtime = options.pop("runtime", None)
    if options:
        raise TypeError(f'backend="tutti" has no option {next(iter(options))}: it has "runtime"')
    return Compiled(graph, examples, runtime)


class Arguments(NamedTuple):
    """What a graph gets: positions of samples, of their count, of all else with its value, of what the module holds with its name."""
    total: int
    samples: list[int]
    counts: list[int]
    fixed: dict[int, Any]
    held: dict[int, Any]


class Compiled:
    """A graph that torch.compile() has found: it runs as networks, one for each shape of a sample, or by PyTorch after a refusal."""

    def __init__(self, graph, examples, runtime):
        self.graph, self.runtime, self.is_refused, self.made = graph, runtime, False, 0
        self.nodes = [node for node in graph.graph.nodes if node.op == "placeholder"]
        self.metas = [node.meta.get("example_value", example) for node, example in zip(self.nodes, examples)]
        self.held = [position for position, example in enumerate(examples) if is_held(self.nodes[position], example)]
        self.networks = collections.OrderedDict()
        if torch.is_grad_enabled() and any(isinstance(one, torch.Tensor) and one.requires_grad for one in examples):
            self.refuse("gradients are enabled: infer within torch.no_grad(), train by tutti.torch.Trainer")

    def refuse(self, reason):
        """From now on PyTorch runs the graph."""
        self.is_refused, self.networks = True, collections.OrderedDict()
        warnings.warn(f'torch.compile(backend="tutti"): PyTorch runs a graph, as Tutti cannot: {reason}', stacklevel=4)

    def __call__(self, *arguments):
        if not self.is_refused:
            try:
                with torch.inference_mode(False), torch.no_grad():
                    return self.run(arguments)
            except (errors.Error, TypeError, ValueError) as refusal:    # the latter: arrays that an input does not take
                self.refuse(refusal)
        return self.graph(*arguments)

    def run(self, arguments):
        ahead.settle({id(arguments[position]) for position in self.held})
        samples = self.samples(arguments)
        found = self.network(arguments, samples).run([arguments[position] for position in samples])
        found = [one.to(arguments[samples[0]].device) if isinstance(one, torch.Tensor) else one for one in found]
        self.check(found)
        return found

    def samples(self, arguments):
        """Positions of the arguments that have the samples as their first axis: it is open, or has the size that is met most."""
        tensors = [position for position, one in enumerate(arguments) if isinstance(one, torch.Tensor) and one.ndim and position not in self.held]
        found = [position for position in tensors if isinstance(self.metas[position].shape[0], torch.SymInt)] or tensors
        if not found:
            raise errors.UnsupportedError("no input has samples")
        if any(arguments[position].dtype == torch.float64 for position in found):
            raise errors.UnsupportedError("an input is float64: networks compute in float32")
        sizes = collections.Counter(len(arguments[position]) for position in found)
        first = max(found, key=lambda position: (sizes[len(arguments[position])], arguments[position].ndim, -position))
        return [position for position in found if len(arguments[position]) == len(arguments[first])]

    def network(self, arguments, samples):
        """The predictor for arguments of these shapes, with the present parameters."""
        count, symbol = len(arguments[samples[0]]), str(self.metas[samples[0]].shape[0])
        counts = [position for position, meta in enumerate(self.metas) if isinstance(meta, torch.SymInt) and str(meta) == symbol]
        fixed = {position: number_of(self.nodes[position], one) for position, one in enumerate(arguments) if position not in {*samples, *self.held, *counts}}
        numbers = tuple(one for one in fixed.values() if not isinstance(one, torch.Tensor))
        key = (tuple(samples), numbers, tuple((arguments[position].dtype, tuple(arguments[position].shape[1:])) for position in samples))
        held = {position: (self.nodes[position].name, arguments[position]) for position in self.held}
        found = self.networks.pop(key, None)
        if found is not None:
            found.follow(held)
        if found is None or found.batch_size < count or not found.holds(fixed):
            self.made += found is not None and found.batch_size >= count
            if self.made > CHANGES:
                raise errors.UnsupportedError("a tensor without samples, which is a constant here, changes from call to call")
            found = self.built(Arguments(len(arguments), samples, counts, fixed, held), [arguments[position] for position in samples], count)
        self.networks[key] = found
        while len(self.networks) > NETWORKS:
            self.networks.popitem(last=False)
        return found

    def built(self, arguments, samples, count):
        """torch.compile() traces the first batch with its size. If that is a size in the graph, it is made open."""
        try:
            return Network(arguments, self.graph, samples, self.runtime, count)
        except errors.Error:
            opened = None if arguments.counts else with_open_batch(self.graph, count)
            if opened is None:
                raise
            return Network(arguments._replace(counts=[arguments.total], total=arguments.total + 1), opened, samples, self.runtime, count)

    def check(self, found):
        """The outputs have the sizes that PyTorch has found, where the graph was traced for these."""
        nodes = self.graph.graph.output_node().args[0]
        for node, one in zip(nodes, found, strict=True):
            meta = node.meta.get("example_value") if isinstance(node, torch.fx.Node) else None
            if isinstance(meta, torch.Tensor) and (one.dtype != meta.dtype or one.ndim != meta.ndim or any(
                    isinstance(size, int) and size != have for size, have in zip(meta.shape, one.shape))):
                raise errors.UnsupportedError(f"the network computes {one.dtype} of the shape {list(one.shape)}, PyTorch {meta.dtype} of {list(meta.shape)}")


def number_of(node, value):
    """The number of a tensor that is nothing else in the graph, as the eps of a layer with torch.compile(dynamic=True)."""
    is_number = isinstance(value, torch.Tensor) and not value.ndim and all(user.op == "call_method" and user.target == "item" for user in node.users)
    return value.item() if is_number else value


class Interpreter(torch.fx.Interpreter):
    """Runs a graph where such tensors are numbers."""

    def call_method(self, target, args, kwargs):
        if target == "item" and not isinstance(args[0], torch.Tensor):
            return args[0]
        return super().call_method(target, args, kwargs)


class Whole(torch.nn.Module):
    """The graph as a function of the samples alone."""

    def __init__(self, graph, arguments):
        super().__init__()
        self.graph, self.arguments = graph, arguments
        for name, tensor in arguments.held.values():
            if isinstance(tensor, torch.nn.Parameter):
                self.register_parameter(name, tensor)
            else:
                self.register_buffer(name, tensor)
        for position, one in arguments.fixed.items():
            if isinstance(one, torch.Tensor):
                self.register_buffer(f"constant_{position}", one.detach().clone())

    def forward(self, *samples):
        total, places, counts, fixed, held = self.arguments
        given = {position: getattr(self, f"constant_{position}") if isinstance(one, torch.Tensor) else one for position, one in fixed.items()}
        given |= {position: getattr(self, name) for position, (name, _) in held.items()}
        given |= dict(zip(places, samples)) | {position: samples[0].shape[0] for position in counts}
        with torch.fx.traceback.preserve_node_meta():
            return Interpreter(self.graph).run(*(given[position] for position in range(total)))


class Network(Predictor):
    """The network of a graph for some arguments."""

    def __init__(self, arguments, graph, samples, runtime, batch_size):
        self.batch_size, whole = batch_size, Whole(graph, arguments)
        self.constants = {position: getattr(whole, f"constant_{position}") for position, one in arguments.fixed.items() if isinstance(one, torch.Tensor)}
        if any(one.numel() > LARGEST for one in self.constants.values()):
            raise errors.UnsupportedError("a tensor without samples is large, and may change from call to call")
        step = Step(whole, None, whole=True)
        try:
            with torch.enable_grad():
                program = exported(step, [torch.zeros(one.shape, dtype=one.dtype) for one in samples], {}, ())
        except Exception as failure:
            raise errors.UnsupportedError(f"PyTorch cannot export it for any number of samples: {failure}") from failure
        if step.autocasts:
            raise errors.UnsupportedError("torch.autocast asks for another precision than float32")
        check_that_it_infers(program)
        self.own = {**dict(step.named_parameters(remove_duplicate=False)), **dict(step.named_buffers(remove_duplicate=False))}
        super().__init__(program, self.own, runtime, batch_size)

    def follow(self, held):
        """Takes the tensors of a call as those of the module."""
        super().follow({**self.own, **{"module." + name: tensor for name, tensor in held.values()}})

    def holds(self, fixed):
        """Whether constants of the network have the present values."""
        return not self.is_outdated and all(one.shape == fixed[position].shape and one.dtype == fixed[position].dtype and torch.equal(one, fixed[position])
                   for position, one in self.constants.items())


def is_held(node, example):
    """Whether an argument is a parameter or a buffer of a module."""
    return isinstance(example, torch.nn.Parameter) or "_dynamo_static_input_type" in (node.meta.get("tensor_dict") or {})


def nodes_of(module):
    """Returns the nodes of a graph and of the graphs within it, which parts under torch.no_grad() become."""
    return [node for one in module.modules() if isinstance(one, torch.fx.GraphModule) for node in one.graph.nodes]


def check_that_it_infers(program):
    """Refuses what draws random numbers or learns statistics, which networks do not when they infer."""
    for node in nodes_of(program.graph_module):
        if not isinstance(node.target, torch._ops.OpOverload):
            continue
        name, given = name_of(node.target)[0], bound(node.target, node.args, node.kwargs)
        trains = given.get("train", given.get("training"))
        drops = given.get("p", given.get("dropout", given.get("dropout_p", 0)))
        is_random = name in RANDOM and name not in NOT_RANDOM and (trains is None or (trains and drops != 0))
        learns = trains and name == "batch_norm" or given.get("use_input_stats") and given["running_mean"] is not None
        if is_random or learns or (given.get("dropout_p") or 0) or (trains and given.get("dropout")):
            raise errors.UnsupportedError(f"it trains, or draws random numbers: {name}, {line_of(node)}; tutti.torch.Trainer trains modules")


def with_open_batch(graph, count):
    """The graph with another argument, the number of samples, for first sizes that are multiples of this one; None: there are none."""
    made = torch.fx.GraphModule(graph, copy.deepcopy(graph.graph))
    last, changed = [node for node in made.graph.nodes if node.op == "placeholder"][-1], False
    with made.graph.inserting_after(last):
        batch = made.graph.placeholder("batch")
    for node in list(made.graph.nodes):
        first = node.args[1] if len(node.args) > 1 else None
        is_list = isinstance(first, (list, tuple, torch.Size)) and bool(first)
        size = first[0] if is_list else first
        if node.op != "call_method" or node.target not in SIZED or not isinstance(size, int) or size <= 0 or size % count:
            continue
        with made.graph.inserting_before(node):
            opened = made.graph.call_function(operator.mul, (batch, size // count)) if size != count else batch
        node.args = (node.args[0], [opened, *first[1:]], *node.args[2:]) if is_list else (node.args[0], opened, *node.args[2:])
        changed = True
    made.recompile()
    return made if changed else None


def register():
    """Makes the backend known by its name. An installed package has it as an entry point, too, which PyTorch prefers."""
    from torch._dynamo.backends import registry
    if "tutti" not in registry._BACKENDS:
        registry.register_backend(compiled, name="tutti")
