#!/usr/bin/env python3
"""The losses of examples/fno.c compared with those of PyTorch with the same weights and samples.

    .dev/torch/bin/python tests/golden/fno.py record PROGRAM tests/golden/fno.txt    (make.py says what to install)
    tests/golden/fno.py check PROGRAM tests/golden/fno.txt

Each line of fno.txt is a run: size, samples, epochs, then for each epoch PyTorch's loss, its test loss, and how far
PyTorch itself is off in single precision, relative to both.
"""
import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

RUNS = ((20, 32, 3),)
LAYERS, ROWS, COLUMNS, BATCH, TESTS, RATE = 4, 16, 9, 8, 32, 0.002
LEAST = 2e-5  # relative: other orders of sums, over a few steps


def run(program, arguments):
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{program}: status {done.returncode}: {done.stderr}")
    return [tuple(map(float, pair)) for pair in re.findall(r"loss ([\d.]+)  test loss ([\d.]+)", done.stdout)]


def read_weights(path, torch, dtype):
    data = path.read_bytes()
    size, = struct.unpack("<Q", data[:8])
    weights = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = (8 + size + offset for offset in entry["data_offsets"])
            values = torch.frombuffer(bytearray(data[begin:end]), dtype=torch.float32).reshape(entry["shape"])
            weights[name] = values.to(dtype).requires_grad_()
    return weights


def forward(torch, weights, x):
    def mix(x, name):
        return torch.nn.functional.conv2d(x, weights[name + ".weight"], weights[name + ".bias"])

    def spectral(x, name):
        height, width = x.shape[-2:]
        matrix = torch.complex(weights[name + "real"], weights[name + "imaginary"]).unflatten(-1, (ROWS, COLUMNS))
        rows = torch.arange(-(ROWS // 2), ROWS - ROWS // 2) % height
        kept = torch.fft.rfft2(x)[:, :, rows, :COLUMNS]
        spectrum = torch.zeros(*x.shape[:2], height, width // 2 + 1, dtype=kept.dtype)
        spectrum[:, :, rows, :COLUMNS] = torch.einsum("nirc,iorc->norc", kept, matrix)
        return torch.fft.irfft2(spectrum, s=(height, width))

    x = mix(x, "lift")
    for layer in range(LAYERS):
        name = f"layers.{layer}."
        x = spectral(x, name) + mix(x, name + "mix")
        if layer + 1 < LAYERS:
            x = torch.nn.functional.gelu(x)
    return mix(torch.nn.functional.gelu(mix(x, "project")), "result")


def train(torch, folder, size, samples, epochs, dtype):
    data = torch.frombuffer(bytearray((folder / "samples.f32").read_bytes()), dtype=torch.float32).to(dtype)
    inputs = data[:(samples + TESTS) * 3 * size * size].reshape(-1, 3, size, size)
    targets = data[inputs.numel():].reshape(-1, 1, size, size)
    weights = read_weights(folder / "weights.safetensors", torch, dtype)
    optimizer = torch.optim.Adam(weights.values(), lr=RATE)
    losses = []
    for _ in range(epochs):
        sums = []
        for at in range(0, samples - BATCH + 1, BATCH):
            loss = torch.nn.functional.mse_loss(forward(torch, weights, inputs[at:at + BATCH]), targets[at:at + BATCH])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            sums.append(loss.item())
        with torch.no_grad():
            test = torch.nn.functional.mse_loss(forward(torch, weights, inputs[samples:]), targets[samples:])
        losses.append((sum(sums) / len(sums), test.item()))
    return losses


def record(program, path):
    import torch
    lines = []
    for arguments in RUNS:
        with tempfile.TemporaryDirectory() as name:
            run(program, (*arguments[:2], 1, name))
            types = torch.float64, torch.float32
            double, single = (train(torch, pathlib.Path(name), *arguments, dtype) for dtype in types)
        numbers = [f"{a:.7g} {b:.7g} {max(abs(c / a - 1), abs(d / b - 1)):.1e}"
                   for (a, b), (c, d) in zip(double, single)]
        lines.append(" ".join(map(str, arguments)) + "  " + "  ".join(numbers))
        print(lines[-1], flush=True)
    path.write_text("\n".join(lines) + "\n")


def check(program, path):
    bad = 0
    for line in path.read_text().splitlines():
        numbers = list(map(float, line.split()))
        losses = run(program, map(int, numbers[:3]))
        if len(losses) != numbers[2]:
            sys.exit(f"{program} printed {len(losses)} epochs of {numbers[2]:.0f}")
        for epoch, (got, want) in enumerate(zip(losses, zip(*(numbers[3 + i::3] for i in range(3)))), 1):
            allowed = LEAST + 8 * want[2]
            for a, b in zip(got, want):
                print(f"epoch {epoch}: {a:.6f}, PyTorch {b:.6f}, relative {a / b - 1:+.1e} of {allowed:.1e}")
                bad += not abs(a - b) <= allowed * b + 5e-7
    return 1 if bad else 0


if __name__ == "__main__":
    command, program, path = sys.argv[1:4]
    if command == "record":
        record(program, pathlib.Path(path))
    else:
        sys.exit(check(program, pathlib.Path(path)))
