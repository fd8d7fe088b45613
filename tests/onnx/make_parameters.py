#!/usr/bin/env python3
"""Makes files of tests/onnx/files in which PyTorch's exporters merged, copied and computed parameters. Next to each stands what
make.py says, with the gradient of every parameter that the module has.

    .dev/torch/bin/python tests/onnx/make_parameters.py tests/onnx/files/parameters
"""
import copy
import pathlib
import sys

import torch
from torch import nn

import make


class Copies(nn.Module):
    """Blocks that are copies of each other; layers that were never trained."""
    def __init__(self):
        super().__init__()
        block = nn.Sequential(nn.LayerNorm(6), nn.Linear(6, 6), nn.Tanh(), nn.Sequential(nn.Linear(6, 6, bias=False)))
        self.blocks, self.norm, self.head = nn.ModuleList([block, copy.deepcopy(block)]), nn.LayerNorm(6), nn.Linear(6, 5)
        nn.init.zeros_(self.head.bias)

    def forward(self, x):
        for block in self.blocks:
            x = x + block(x)
        return self.head(self.norm(x)).mean(1)


class Ties(nn.Module):
    """Weights that are read in several forms, a layer that is called twice, and tables that are not parameters."""
    def __init__(self):
        super().__init__()
        self.tokens, self.twice, self.norm = nn.Embedding(11, 6), nn.Linear(6, 6), nn.LayerNorm(6)
        self.logits, self.scale = nn.Linear(6, 11), nn.Parameter(torch.randn(6, 6))
        self.logits.weight = self.tokens.weight
        self.register_buffer("positions", torch.randn(4, 6), persistent=False)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions * 2
        x = self.norm(self.twice(torch.relu(self.twice(self.norm(x)))) @ self.scale.t())
        return self.logits(x @ self.scale + torch.linspace(0, 1, 6)).mean(1)


class Attentions(nn.Module):
    """Attentions whose parameters the older exporter cuts: into two and three parts, for two calls, and of several sizes."""
    def __init__(self):
        super().__init__()
        self.cross, self.twice = nn.MultiheadAttention(6, 2, batch_first=True), nn.MultiheadAttention(6, 2, batch_first=True)
        self.sizes, self.head = nn.MultiheadAttention(6, 3, kdim=4, vdim=5, batch_first=True), nn.Linear(6, 5)
        nn.init.normal_(self.cross.in_proj_bias)

    def forward(self, x):
        y = x * 2
        x = x + self.cross(x, y, y)[0]
        x = x + self.twice(x, y, x - 1)[0]
        x = x + self.twice(x, x - 1, y)[0]
        return self.head(x + self.sizes(x, y[..., :4], y[..., 1:])[0]).mean(1)


class Relative(nn.Module):
    """A table that the newer exporter replaces by its rows in an order, some of them often."""
    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(7, 1), nn.Linear(6, 5)

    def forward(self, x):
        positions = torch.arange(4)
        bias = self.table(positions[None] - positions[:, None] + 3).squeeze(-1)
        return self.head((x @ x.transpose(1, 2) + bias).softmax(-1) @ x).mean(1)


def relative_of_file(gradients):
    """The table's elements in the order of their first uses."""
    table = gradients.pop("table.weight")
    return gradients | {"squeeze": table[[3, 4, 5, 6, 2, 1, 0]]}


class Siamese(nn.Module):
    """Layers that are called three times, with a batch normalisation among them."""
    def __init__(self):
        super().__init__()
        self.body, self.norm, self.head = nn.Linear(4, 5), nn.BatchNorm1d(5, momentum=0.3), nn.Linear(5, 4)
        for tensor in (self.norm.weight, self.norm.bias, self.norm.running_mean):
            nn.init.normal_(tensor)
        nn.init.uniform_(self.norm.running_var, 0.5, 2)

    def forward(self, x):
        first, second, third = (self.norm(self.body(x[:, i:i + 4])) for i in range(0, 12, 4))
        return self.head(torch.abs(first - second) * third)


class Buffers(nn.Module):
    """Buffers and parameters that a file of the older exporter does not tell apart by their names."""
    def __init__(self):
        super().__init__()
        angles = torch.outer(torch.arange(4.0), torch.tensor([1.0, 0.1, 0.01]))
        buffers = {"mask": torch.tril(torch.ones(4, 4)), "table": torch.cat([angles.sin(), angles.cos()], 1), "mean": torch.randn(6),
                   "deviation": torch.rand(6) + 0.5, "grid": torch.rand(1, 4, 6, 2) * 1.8 - 0.9}
        for name, value in buffers.items():
            self.register_buffer(name, value)
        self.positions, self.head = nn.Parameter(torch.randn(1, 4, 6)), nn.Linear(6, 5)

    def forward(self, x):
        x = (x - self.mean) / self.deviation + self.table[:x.shape[1]]
        x = (x @ x.transpose(1, 2)).masked_fill(self.mask == 0, -9).softmax(-1) @ x
        x = nn.functional.grid_sample(x.unsqueeze(1), self.grid.expand(x.shape[0], -1, -1, -1), align_corners=False).squeeze(1)
        return self.head(x + self.positions).mean(1)


class States(nn.Module):
    """Initial states of as many samples as the file is for: a learned one, and one that is computed from zeros."""
    def __init__(self):
        super().__init__()
        self.start, self.layer, self.decay = nn.Parameter(torch.randn(1, 1, 3)), nn.GRU(4, 3, batch_first=True), nn.Parameter(torch.randn(3))
        self.head = nn.Linear(3, 4)

    def forward(self, x):
        x = self.layer(x, self.start.expand(-1, x.shape[0], -1).contiguous())[0]
        rate, state = self.decay.sigmoid(), torch.zeros_like(x[:, 0])
        for t in range(x.shape[1]):
            state = rate * state + (1 - rate) * x[:, t]
        return self.head(state)


class Numbers(nn.Module):
    """Parameters of one number: a slope, a bias and, which the older exporter does not tell from a buffer, a scale."""
    def __init__(self, scaled):
        super().__init__()
        self.slope, self.one, self.head, self.scale = nn.PReLU(), nn.Linear(6, 1), nn.Linear(1, 5), 1.5
        if scaled:
            self.scale = nn.Parameter(torch.tensor(1.5))

    def forward(self, x):
        return self.head(self.one(self.slope(x) * self.scale))


class Rows(nn.Module):
    """A parameter with equal rows for the samples, as it is, transposed, or as the state of a layer. Another one has one row."""
    def __init__(self, form):
        super().__init__()
        self.form, self.head, self.layer, self.bias = form, nn.Linear(4, 3), nn.GRU(4, 4), nn.Parameter(torch.randn(1, 4))
        self.rows = nn.Parameter({"turned": torch.ones(4, 3), "state": torch.zeros(1, 3, 4)}.get(form, torch.ones(3, 4)))

    def forward(self, x):
        if self.form == "state":
            x = self.layer(x.unsqueeze(0), self.rows)[0].squeeze(0)
        elif self.form == "layer":
            x = torch.cat([x, self.rows], 1)[:, 2:6]
        else:
            x = x * (self.rows.t() if self.form == "turned" else self.rows)
        return self.head(x + self.bias.expand(3, 4))


def rows(folder):
    """Files that are refused, so that there is no record of them."""
    for name, form, dynamo in (("rows_new", "product", True), ("rows", "layer", False), ("rows_turned", "turned", False), ("rows_state", "state", False)):
        torch.manual_seed(8)
        path = folder / f"{name}.onnx"
        options = {"dynamo": True, "external_data": False, "verbose": False} if dynamo else {"dynamo": False, "opset_version": 17}
        torch.onnx.export(Rows(form).eval(), (torch.from_numpy(make.numbers(3, 4)),), str(path), input_names=["x"], output_names=["y"], **options)
        make.strip(path, "pkg.torch.onnx.stack_trace")


def layers(folder):
    torch.manual_seed(6)
    network, example = Siamese(), torch.from_numpy(make.numbers(8, 12))
    dynamic = {"x": {0: "batch"}}
    make.export(folder, "buffers", Buffers(), torch.from_numpy(make.numbers(3, 4, 6)), classes=5, dynamo=False, opset_version=17,
                dynamic_axes=dynamic, unfolded=True)
    make.export(folder, "states", States(), torch.from_numpy(make.numbers(3, 2, 4)), classes=4, dynamo=False, opset_version=17,
                unfolded=True)
    make.export(folder, "siamese", copy.deepcopy(network), example, classes=4, steps=3, dynamo=False, opset_version=17,
                dynamic_axes=dynamic, unfolded=True)
    make.export(folder, "siamese_new", network, example, classes=4, steps=3, dynamo=True, opset_version=20, external_data=False,
                optimize=False)


def main():
    folder = pathlib.Path(sys.argv[1])
    torch.manual_seed(5)
    dynamic = {"x": {0: "batch"}}
    examples = {"copies": (Copies(), torch.from_numpy(make.numbers(3, 4, 6))), "ties": (Ties(), torch.arange(12).reshape(3, 4) % 11)}
    for name, (network, example) in examples.items():
        make.export(folder, name, network, example, classes=5, dynamo=False, opset_version=17, dynamic_axes=dynamic)
        network.zero_grad()
        make.export(folder, f"{name}_new", network, example, classes=5, dynamo=True, opset_version=20, external_data=False)
    layers(folder)
    rows(folder)
    torch.manual_seed(7)
    example = torch.from_numpy(make.numbers(3, 6))
    make.export(folder, "numbers", Numbers(False), example, classes=5, dynamo=False, opset_version=17, dynamic_axes=dynamic)
    make.export(folder, "numbers_new", Numbers(True), example, classes=5, dynamo=True, opset_version=20, external_data=False)
    rows = torch.from_numpy(make.numbers(3, 4, 6))
    make.export(folder, "attentions", Attentions(), rows, classes=5, dynamo=False, opset_version=17, dynamic_axes=dynamic)
    make.export(folder, "relative_new", Relative(), rows, classes=5, dynamo=True, opset_version=20, external_data=False, computed=relative_of_file)


if __name__ == "__main__":
    main()
