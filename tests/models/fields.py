#!/usr/bin/env python3
"""fno2d compared with the same network in PyTorch, written as its authors' fourier_2d.py: random weights are loaded by their
names; outputs are equal to 1e-5, and gradients up to ten times the error that PyTorch's have in float32.

    fields.py FIELDS     FIELDS: the program of fields.c

Runs by a Python with PyTorch and safetensors. Without TUTTI_TORCH, which names one, it says so and ends.
"""
import copy
import json
import pathlib
import subprocess
import sys
import tempfile

import by_torch

# Samples, channels, height, width, outputs; what the network is made of.
CASES = ((3, 1, 24, 24, 1, {"width": 16, "modes": 5}), (2, 2, 18, 21, 3, {"width": 8, "modes": 9, "layers": 3, "hidden": 20}),
         (2, 1, 64, 64, 1, {}))


def make(torch, channels, outputs, width=32, modes=12, layers=4, hidden=128):
    nn, functional = torch.nn, torch.nn.functional

    class Spectral(nn.Module):
        def __init__(self):
            super().__init__()
            for name in ("weights1", "weights2"):
                setattr(self, name, nn.Parameter(torch.randn(width, width, modes, modes, 2) / width))

        def forward(self, x):
            spectrum = torch.fft.rfft2(x)
            result = torch.zeros_like(spectrum)
            for weights, rows in ((self.weights1, slice(0, modes)), (self.weights2, slice(-modes, None))):
                result[:, :, rows, :modes] = torch.einsum("bixy,ioxy->boxy", spectrum[:, :, rows, :modes], torch.view_as_complex(weights))
            return torch.fft.irfft2(result, s=x.shape[-2:])

    class Operator(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc0 = nn.Linear(channels + 2, width)
            for i in range(layers):
                setattr(self, f"conv{i}", Spectral())
                setattr(self, f"w{i}", nn.Conv2d(width, width, 1))
            self.fc1, self.fc2 = nn.Linear(width, hidden), nn.Linear(hidden, outputs)

        def forward(self, x):
            samples, _, height, wide = x.shape
            rows = torch.linspace(0, 1, height, dtype=x.dtype).reshape(1, 1, -1, 1).expand(samples, 1, height, wide)
            columns = torch.linspace(0, 1, wide, dtype=x.dtype).reshape(1, 1, 1, -1).expand(samples, 1, height, wide)
            x = self.fc0(torch.cat((x, rows, columns), 1).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
            for i in range(layers):
                x = getattr(self, f"conv{i}")(x) + getattr(self, f"w{i}")(x)
                x = functional.gelu(x) if i + 1 < layers else x
            return self.fc2(functional.gelu(self.fc1(x.permute(0, 2, 3, 1)))).permute(0, 3, 1, 2)
    return Operator()


def run_torch(torch, network, x, y):
    network.zero_grad()
    outputs = network(x)
    torch.nn.functional.mse_loss(outputs, y).backward()
    return outputs.detach(), {name: p.grad.clone() for name, p in network.named_parameters()}


def run_tutti(program, folder, network, x, y, sizes, config):
    from safetensors.torch import save_file
    save_file(network.state_dict(), folder / "weights.safetensors")
    (folder / "config.json").write_text(json.dumps(config))
    x.numpy().tofile(folder / "x")
    y.numpy().tofile(folder / "y")
    done = subprocess.run([program, folder / "config.json", *map(str, sizes), folder], capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(done.stderr)
    return by_torch.read_results(folder, network)


def compare(program, *sizes, config):
    import torch
    samples, channels, height, width, count = sizes
    torch.manual_seed(height)
    network = make(torch, channels, count, **config)
    x, y = torch.randn(samples, channels, height, width), torch.randn(samples, count, height, width)
    with tempfile.TemporaryDirectory() as folder:
        outputs, gradients = run_tutti(program, pathlib.Path(folder), network, x, y, sizes, config)
    _, single = run_torch(torch, network, x, y)
    exact, wanted = run_torch(torch, copy.deepcopy(network).double(), x.double(), y.double())
    error = ((torch.from_numpy(outputs).reshape(exact.shape) - exact).abs().max() / exact.abs().max()).item()
    by_torch.check(sizes, error, gradients, single, wanted)


if __name__ == "__main__":
    sys.exit(by_torch.run(CASES, lambda case: compare(sys.argv[1], *case[:-1], config=case[-1]), "fno2d was not compared with PyTorch",
                          "PyTorch 2.15 and safetensors"))
