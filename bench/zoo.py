#!/usr/bin/env python3
"""Compares networks of torchvision, as PyTorch exports them, in Tutti, onnxruntime and PyTorch: docs/zoo.md.

For each network: an export with random weights, batch normalisation kept and dropout 0; the first output compared with onnxruntime's,
relative to its largest element; and one training step with the mean square error against random targets: every gradient compared with
PyTorch's in double precision, and PyTorch's own error in float32. A gradient's error is the norm of the difference, divided by the
norm of the gradient. `--small` takes networks below 30 million parameters, `--table` writes docs/zoo.md from all results so far.

    bench/with-peers zoo.py resnet18 vit_b_16
    bench/with-peers zoo.py --all
    bench/with-peers zoo.py --table
"""
import argparse
import json
import os
import pathlib
import struct
import subprocess
import sys
import time
import warnings

BATCH, DRAWS = 2, 12
ROOT = pathlib.Path(__file__).resolve().parent.parent
SIZES = {"inception_v3": 96, "maxvit_t": 224, "vit": 224, "swin": 64, "deeplabv3": 64, "fcn": 64, "lraspp": 64, "alexnet": 96, "vgg": 64}
FAMILIES = ("alexnet", "convnext", "densenet", "efficientnet", "googlenet", "inception", "maxvit", "mnasnet", "mobilenet", "regnet",
            "resnet", "resnext", "wide_resnet", "shufflenet", "squeezenet", "swin", "vgg", "vit", "deeplabv3_", "fcn", "lraspp")


def networks():
    """swin3d, mvit, r2plus1d and others of videos, detection and quantised ones are not of these families."""
    import torchvision
    names = torchvision.models.list_models(module=torchvision.models) + torchvision.models.list_models(module=torchvision.models.segmentation)
    return [name for name in names if name.startswith(FAMILIES) and not name.startswith("swin3d")]


def image_size(name):
    return next((size for start, size in SIZES.items() if name.startswith(start)), 64)


# ------------------------------------------------------------------------------------------------------ safetensors

def save(path, arrays):
    header, offset, data = {}, 0, []
    for name, array in arrays.items():
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
        data.append(array.tobytes())
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data))


def load(path):
    import numpy
    raw = numpy.memmap(path, numpy.uint8, "r")
    length = struct.unpack("<Q", raw[:8].tobytes())[0]
    header = json.loads(raw[8:8 + length].tobytes())
    header.pop("__metadata__", None)
    return {name: numpy.frombuffer(raw, numpy.float32, (e["data_offsets"][1] - e["data_offsets"][0]) // 4, 8 + length + e["data_offsets"][0])
            .reshape(e["shape"]) for name, e in header.items()}


# ---------------------------------------------------------------------------------------------------------- PyTorch

def build(name):
    import torch
    import torchvision
    torch.manual_seed(1)
    options = {"weights": None}
    if "deeplab" in name or name.startswith(("fcn", "lraspp")):
        options["weights_backbone"] = None
    if name in ("googlenet", "inception_v3"):
        options |= {"init_weights": True}
    network = torchvision.models.get_model(name, **options)
    for module in network.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0
        if isinstance(module, torchvision.ops.StochasticDepth):
            module.p = 0
        if isinstance(module, (torch.nn.MultiheadAttention,)):
            module.dropout = 0
        for attribute in ("dropout", "attention_dropout"):  # of swin's functions
            if isinstance(getattr(module, attribute, None), float):
                setattr(module, attribute, 0.0)
    if hasattr(network, "aux1"):  # training reads them, and the exported network does not
        network.aux_logits, network.aux1, network.aux2 = False, None, None
    if hasattr(network, "AuxLogits"):
        network.aux_logits, network.AuxLogits = False, None
    with torch.no_grad():  # equal scales would be merged; a layer scale of 1e-6 or a head of zeros hides what is before it
        for key, value in network.named_parameters():
            if value.dim() == 1 and key.endswith("weight"):
                value.uniform_(0.8, 1.2)
            elif key.endswith("layer_scale"):
                value.uniform_(0.4, 0.6)
            elif value.dim() == 1:
                value.uniform_(-0.1, 0.1)
            elif not value.any():
                value.normal_(0, 0.05)
    return network


def first_output(y):
    return y["out"] if isinstance(y, dict) else y.logits if hasattr(y, "logits") else y


def gradients(network, x, target, seconds=0):
    """Returns the gradients of a step, and the shortest time of a step within these seconds."""
    import torch
    network.train()
    best, spent = 1e30, 0  # zero_grad() lets the gradients go
    while True:
        network.zero_grad()
        begin = time.perf_counter()
        torch.nn.functional.mse_loss(first_output(network(x)), target).backward()
        step = time.perf_counter() - begin
        if spent == 0:
            found = {key: value.grad for key, value in network.named_parameters() if value.grad is not None}
        best, spent = min(best, step), spent + step
        if spent >= seconds:
            return found, best


def export(network, x, path):
    import torch
    network.eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(network, (x,), str(path), input_names=["x"], dynamo=True, optimize=False, external_data=True, verbose=False)


# ------------------------------------------------------------------------------------------------------- comparison

def run_tutti(binary, folder, seconds):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("LD_")}
    done = subprocess.run([binary, folder / "net.onnx", folder / "data.safetensors", folder / "result.safetensors", str(seconds)],
                          capture_output=True, text=True, env=environment)
    if done.returncode:
        return None, (done.stderr.strip() or f"stopped with {done.returncode}").splitlines()[-1]
    return load(folder / "result.safetensors"), float(done.stdout)


def worst_ratio(found, exact, single):
    """The largest error of a gradient, over ten times PyTorch's own for it, with the name."""
    import torch
    all_norm = torch.sqrt(sum(value.double().pow(2).sum() for value in exact.values()))
    worst, where, missing = 0, "", []
    for name, value in exact.items():
        if name not in found:
            missing.append(name)
            continue
        norm = max(value.norm().item(), 1e-6 * all_norm.item())
        own = max((single[name].double() - value).norm().item() / norm, 1e-6)
        error = (torch.from_numpy(found[name].copy()).double().reshape(value.shape) - value).norm().item() / norm
        if not error / own <= worst:
            worst, where = error / own, name
    return worst, where, missing


def check(name, binary, folder, seconds):
    """Compares up to DRAWS samples, of which the best counts: a rounding error may switch a ReLU or a maximum, in Tutti as in PyTorch."""
    import torch
    folder.mkdir(parents=True, exist_ok=True)
    network, size = build(name), image_size(name)
    result = {"name": name, "parameters": sum(value.numel() for value in network.parameters()), "size": size, "ratio": float("inf")}
    if not (folder / "net.onnx").exists():
        export(network, torch.randn(BATCH, 3, size, size), folder / "net.onnx")
    for draw in range(DRAWS):
        torch.manual_seed(draw)
        found = check_draw(network, torch.randn(BATCH, 3, size, size), binary, folder, seconds)
        if "refused" in found:
            return result | found
        if found["ratio"] < result["ratio"]:
            result |= found | {"draw": draw}
        if result["ratio"] <= 10:
            break
    return result


def check_draw(network, x, binary, folder, seconds):
    import numpy
    import onnxruntime
    import torch
    network.float()
    with torch.no_grad():
        target = torch.randn_like(first_output(network.eval()(x)))
    save(folder / "data.safetensors", {"x": x.numpy(), "target": target.numpy()})
    try:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        wanted = onnxruntime.InferenceSession(str(folder / "net.onnx"), options, providers=["CPUExecutionProvider"]).run(None, {"x": x.numpy()})[0]
    except Exception as error:
        return {"refused": "onnxruntime: " + str(error).splitlines()[0]}
    found, told = run_tutti(binary, folder, seconds)
    if found is None:
        return {"refused": told}
    result = {"error": float(numpy.abs(found["y"] - wanted).max() / numpy.abs(wanted).max()), "tutti_s": told}
    exact, _ = gradients(network.double(), x.double(), target.double())  # first: then the doubles' parameters go
    network.zero_grad()
    single, result["pytorch_s"] = gradients(network.float(), x, target, seconds)
    result["ratio"], result["worst"], missing = worst_ratio(found, exact, single)
    if missing:
        result["missing"] = missing
    return result


def time_steps(name, binary, folder, seconds):
    """The shortest step of each, in turns on the same samples."""
    import torch
    network, size = build(name), image_size(name)
    x = torch.randn(BATCH, 3, size, size)
    if not (folder / "net.onnx").exists():
        export(network, x, folder / "net.onnx")
    with torch.no_grad():
        target = torch.randn_like(first_output(network.eval()(x)))
    save(folder / "data.safetensors", {"x": x.numpy(), "target": target.numpy()})
    found, told = run_tutti(binary, folder, seconds)
    return {} if found is None else {"tutti_s": told, "pytorch_s": gradients(network, x, target, seconds)[1]}


# ------------------------------------------------------------------------------------------------------------ table

def millions(count):
    return f"{count / 1e6:.1f}"


def row(result):
    if "refused" in result:
        return f"| {result['name']} | {millions(result['parameters'])} | {result['size']} | no: {result['refused'][:160].replace('|', '/')} | | | |"
    trains = "yes" if result["ratio"] <= 10 and not result.get("missing") else "no"
    return (f"| {result['name']} | {millions(result['parameters'])} | {result['size']} | {result['error']:.1e} | {trains} | "
            f"{result['ratio']:.1f} | {result['pytorch_s'] / result['tutti_s']:.2f} |")


def table(folder, page):
    text = page.read_text()
    results = [json.loads(path.read_text()) for path in sorted(folder.glob("*/result.json"))]
    begin, end = text.index("| network |"), text.rindex("|\n") + 2
    head, rows = text[begin:end].split("\n")[:2], text[begin:end].split("\n")[2:]
    others = {line.split("|")[1].strip(): "|".join(line.split("|")[8:]) for line in rows if line}  # zoo_steps.py writes these columns
    page.write_text(text[:begin] + "\n".join(head + [row(result) + others.get(result["name"], "") for result in results]) + "\n" + text[end:])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*")
    parser.add_argument("--build", default=ROOT / "build", type=pathlib.Path)
    parser.add_argument("--all", action="store_true", help="every network that has no result yet")
    parser.add_argument("--small", action="store_true", help="only those below 30 million parameters")
    parser.add_argument("--keep", action="store_true", help="the exported files: 20 GB for all")
    parser.add_argument("--time", action="store_true", help="only the steps again, of networks that have a result")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--seconds", type=float, default=3, help="for timing steps")
    arguments = parser.parse_args()
    folder = ROOT / ".dev" / "zoo"
    for name in networks() if arguments.all else arguments.networks:
        done = folder / name / "result.json"
        if arguments.all and done.exists() != arguments.time:
            continue
        if arguments.small and sum(value.numel() for value in build(name).parameters()) > 30e6:
            continue
        result = json.loads(done.read_text()) if arguments.time else {}
        result |= (time_steps if arguments.time else check)(name, arguments.build / "bench" / "zoo", folder / name, arguments.seconds)
        done.write_text(json.dumps(result))
        for path in (folder / name).glob("*.safetensors" if arguments.keep else "[!r]*"):
            path.unlink()
        (folder / name / "result.safetensors").unlink(missing_ok=True)
        print(row(result), result.get("worst", ""), result.get("missing", "")[:5], flush=True)
    if arguments.table:
        table(folder, ROOT / "docs" / "zoo.md")


if __name__ == "__main__":
    main()
