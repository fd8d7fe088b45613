"""The cases of differential.py: what a seed means, and the modules that it makes."""
import random

# Without folding: kept. PyTorch's default exporter takes seconds for a case.
EXPORTERS = {"script": 4, "script kept": 4, "dynamo": 1, "dynamo kept": 1}
STARTS = {"vector": [(5,), (6,), (8,)], "sequence": [(3, 4), (5, 6), (7, 4), (1, 5)], "image": [(3, 7, 5), (4, 6, 6), (2, 9, 4), (3, 5, 5)],
          "line": [(3, 7), (4, 10)], "volume": [(2, 3, 5, 4)], "ids": [(3,), (6,)]}
MOST_ELEMENTS = 400  # of a sample, between blocks
ROWS = "batch_rows"  # a parameter of as many rows as there are samples, which only a file for this number can have


def choose(r, options):
    names, weights = zip(*options.items())
    return r.choices(names, weights)[0]


def plan(seed, only=None):
    """Everything that a seed decides. only: a chain of this block."""
    from blocks import BLOCKS
    r = random.Random(seed)
    options = {"exporter": choose(r, EXPORTERS), "dynamic": r.random() < 0.5, "batch": r.choice((1, 2, 3, 5)), "fresh": r.random() < 0.3,
               "layout": r.choice(("sequential", "named", "nested", "listed")),
               "precision": choose(r, {"fp32": 7, "tf32": 1, "bf16": 2}), "class": choose(r, {"cpu": 6, "gpu": 4})}
    if options["precision"] == "tf32":
        options["class"] = "gpu"
    if options["dynamic"]:
        options["exported"] = max(2, options["batch"] - r.choice((0, 1)))
        options["batch"] = r.choice((1, 2, 3, 5))
    else:
        options["exported"] = options["batch"]
    kind = choose(r, {"vector": 3, "sequence": 4, "image": 5, "line": 1, "volume": 1, "ids": 2})
    if only:
        kind = BLOCKS[only][0] if BLOCKS[only][0] != "any" else r.choice(("vector", "image"))
    spec = {"seed": seed, "options": options, "start": [kind, list(r.choice(STARTS[kind]))], "blocks": []}
    spec["blocks"] = [[only, r.randrange(1 << 30)]] if only else random_chain(r, spec["start"])
    more = random.Random(f"{ROWS} {seed}")  # so that the other blocks of a seed stay what they are
    if not only and not options["dynamic"] and kind != "ids" and more.random() < 0.03:
        spec["blocks"].insert(0, [ROWS, more.randrange(1 << 30)])
    return spec


def random_chain(r, start):
    from blocks import BLOCKS
    import blocks_sequences  # noqa: F401: it registers its blocks
    names, chain, (kind, shape) = sorted(BLOCKS), [], start
    shape = tuple(shape)
    for _ in range(r.choice((1, 2, 2, 3, 3, 4))):
        for _ in range(20):
            wanted = "any" if r.random() < 0.2 and kind != "ids" else kind
            name, seed = r.choice([name for name in names if BLOCKS[name][0] == wanted]), r.randrange(1 << 30)
            made = make(name, seed, kind, shape)
            if made:
                chain.append([name, seed])
                kind, shape = made[1]
                break
    return chain


def make(name, seed, kind, shape):
    """The block's module, and the kind and shape that it makes; None: it does not take this shape."""
    from blocks import BLOCKS
    taken, function = BLOCKS[name]
    if taken not in ("any", "batch", kind) or (taken == "batch" and kind == "ids"):
        return None
    made = function(random.Random(seed), shape)
    if made is None or made[1] is None:
        return None
    module, result = made
    if taken in ("any", "batch"):
        result = (kind, shape)
    size = 1
    for n in result[1]:
        size *= n
    return (module, (result[0], tuple(result[1]))) if 0 < size <= MOST_ELEMENTS else None


def without_one(spec):
    """The case without one of its blocks, for each; those that do not fit then are left out when the network is made."""
    for i in range(len(spec["blocks"])):
        yield {"seed": spec["seed"], "options": spec["options"], "start": spec["start"], "blocks": spec["blocks"][:i] + spec["blocks"][i + 1:]}


def network(spec):
    """The module, the blocks that are in it, and the kind of its output."""
    import torch
    import blocks_sequences  # noqa: F401
    from blocks import BatchRows, Listed, Nested, Residual
    from torch import nn
    torch.manual_seed(spec["seed"])
    kind, shape = spec["start"][0], tuple(spec["start"][1])
    parts, used = [], []
    for name, seed in spec["blocks"]:
        made = make(name, seed, kind, shape)
        if made:
            residual = made[1] == (kind, shape) and kind != "ids" and seed % 7 == 0
            parts.append((name, Residual(made[0]) if residual else made[0]))
            used.append([name, seed])
            kind, shape = made[1]
    for part in (part for name, outer in parts for part in outer.modules() if isinstance(part, BatchRows)):
        part.make_rows(spec["options"]["batch"])
    layout = spec["options"]["layout"]
    if layout == "named":
        body = nn.Sequential()
        for i, (name, part) in enumerate(parts):
            body.add_module(f"{name}_{i}", part)
    else:
        body = nn.Sequential(*(part for _, part in parts))
    module = Nested(body) if layout == "nested" else Listed(body) if layout == "listed" else body
    if not spec["options"]["fresh"]:
        disturb(module)
    shorten(module)
    return module.eval(), used


def disturb(module):
    """So that no two parameters and statistics are equal that are not shared."""
    import torch
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
        for name, buffer in module.named_buffers():
            if name.endswith("running_mean"):
                buffer.normal_(0, 0.2)
            elif name.endswith("running_var"):
                buffer.uniform_(0.5, 1.5)


def shorten(module):
    """Few bits, so that files compress."""
    import torch
    with torch.no_grad():
        for values in [*module.parameters(), *(buffer for name, buffer in module.named_buffers() if "running_" in name)]:
            values.copy_(torch.round(values * 1024) / 1024)


def samples(spec, batch):
    import torch
    generator = torch.Generator().manual_seed(spec["seed"] + 1)
    kind, shape = spec["start"]
    if kind == "ids":
        return torch.randint(0, 7, (batch, *shape), generator=generator)
    return torch.randint(-8192, 8192, (batch, *shape), generator=generator) / 4096.0
