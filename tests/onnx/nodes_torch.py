"""PyTorch's gradients of node tests, for nodes.py: of models of one node whose operator PyTorch has. A test whose outputs
PyTorch does not give is left out: its attributes mean something else there."""
import functools

import numpy
import onnx
import torch
from torch.nn import functional as F

MOST_PROBES = 32  # as in gradients.c
UNARY = {
    "Abs": torch.abs, "Acos": torch.acos, "Acosh": torch.acosh, "Asin": torch.asin, "Asinh": torch.asinh, "Atan": torch.atan,
    "Atanh": torch.atanh, "Ceil": torch.ceil, "Cos": torch.cos, "Cosh": torch.cosh, "Det": torch.linalg.det, "Erf": torch.erf,
    "Exp": torch.exp, "Floor": torch.floor, "HardSwish": F.hardswish, "Log": torch.log, "Mish": F.mish, "Neg": torch.neg,
    "Reciprocal": torch.reciprocal, "Relu": torch.relu, "Round": torch.round, "Sigmoid": torch.sigmoid, "Sign": torch.sign,
    "Sin": torch.sin, "Sinh": torch.sinh, "Softplus": F.softplus, "Softsign": F.softsign, "Sqrt": torch.sqrt, "Tan": torch.tan,
    "Tanh": torch.tanh}
BINARY = {
    "Add": torch.add, "Sub": torch.sub, "Mul": torch.mul, "Div": torch.div, "Pow": torch.pow, "Max": torch.maximum,
    "Min": torch.minimum, "Sum": torch.add, "MatMul": torch.matmul}
REDUCED = {
    "ReduceSum": torch.sum, "ReduceMean": torch.mean, "ReduceMax": torch.amax, "ReduceMin": torch.amin,
    "ReduceL1": lambda x, **how: x.abs().sum(**how), "ReduceL2": lambda x, **how: x.square().sum(**how).sqrt(),
    "ReduceLogSum": lambda x, **how: x.sum(**how).log(), "ReduceLogSumExp": torch.logsumexp,
    "ReduceSumSquare": lambda x, **how: x.square().sum(**how)}
RESHAPED = {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity"}
DIMENSIONS = {1: (F.conv1d, F.conv_transpose1d, F.max_pool1d, F.avg_pool1d), 2: (F.conv2d, F.conv_transpose2d, F.max_pool2d, F.avg_pool2d),
              3: (F.conv3d, F.conv_transpose3d, F.max_pool3d, F.avg_pool3d)}


def padded(x, how, window):
    """Of convolutions: the input with its zeros around it."""
    sizes, pads = x.shape[2:], list(how.get("pads", [0] * 2 * len(window)))
    auto = how.get("auto_pad", b"NOTSET").decode()
    if auto.startswith("SAME"):
        whole = []
        for size, kernel, stride, dilation in zip(sizes, window, strides(how, window), how.get("dilations", [1] * len(window))):
            whole.append(max(0, (-(-size // stride) - 1) * stride + (kernel - 1) * dilation + 1 - size))
        small, large = [all // 2 for all in whole], [all - all // 2 for all in whole]
        pads = small + large if auto == "SAME_UPPER" else large + small
    n = len(window)
    return F.pad(x, [pad for i in reversed(range(n)) for pad in (pads[i], pads[i + n])])


def strides(how, window):
    return how.get("strides", [1] * len(window))


def convolution(op, how, x):
    n = x[0].dim() - 2
    same = {"stride": strides(how, range(n)), "dilation": how.get("dilations", [1] * n), "groups": how.get("group", 1)}
    bias = x[2] if len(x) > 2 else None
    if op == "Conv":
        return DIMENSIONS[n][0](padded(x[0], how, x[1].shape[2:]), x[1], bias, **same)
    pads = how.get("pads", [0] * 2 * n)
    return DIMENSIONS[n][1](x[0], x[1], bias, padding=pads[:n], output_padding=how.get("output_padding", [0] * n), **same)


def pooling(op, how, x):
    n, window = x[0].dim() - 2, how["kernel_shape"]
    same = {"stride": strides(how, window), "padding": how.get("pads", [0] * n)[:n], "ceil_mode": bool(how.get("ceil_mode"))}
    if op == "MaxPool":
        return DIMENSIONS[n][2](x[0], window, dilation=how.get("dilations", [1] * n), **same)
    return DIMENSIONS[n][3](x[0], window, count_include_pad=bool(how.get("count_include_pad")), **same)


def normalised(op, how, x):
    if op == "LayerNormalization" or op == "RMSNormalization":
        shape, epsilon = x[0].shape[how.get("axis", -1):], how.get("epsilon", 1e-5)
        scale = x[1].expand(shape)
        if op == "RMSNormalization":
            return F.rms_norm(x[0], shape, scale, epsilon)
        return F.layer_norm(x[0], shape, scale, x[2].expand(shape) if len(x) > 2 else None, epsilon)
    if op == "GroupNormalization":
        return F.group_norm(x[0], how["num_groups"], x[1], x[2], how.get("epsilon", 1e-5))
    if op == "InstanceNormalization":
        return F.instance_norm(x[0], weight=x[1], bias=x[2], eps=how.get("epsilon", 1e-5))
    if op == "LRN":
        return F.local_response_norm(x[0], how["size"], how.get("alpha", 1e-4), how.get("beta", 0.75), how.get("bias", 1.0))
    return F.normalize(x[0], how.get("p", 2), how.get("axis", -1), eps=0)


def loss(op, how, x):
    function = F.nll_loss if op == "NegativeLogLikelihoodLoss" else F.cross_entropy
    y = function(x[0], x[1].long(), x[2] if len(x) > 2 else None, ignore_index=how.get("ignore_index", -100),
                 reduction=how.get("reduction", b"mean").decode())
    return y, F.log_softmax(x[0], 1)


def attention(how, x):
    mask = x[3] if len(x) > 3 else None
    return F.scaled_dot_product_attention(x[0], x[1], x[2], mask, is_causal=bool(how.get("is_causal")), scale=how.get("scale"))


def scattered(how, x):
    reduction, axis = how.get("reduction", b"none").decode(), how.get("axis", 0)
    indices = torch.where(x[1] < 0, x[1] + x[0].shape[axis], x[1])
    if reduction == "none":
        return x[0].scatter(axis, indices, x[2])
    names = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}
    return x[0].scatter_reduce(axis, indices, x[2], names[reduction])


def reduced(op, how, x):
    axes = how.get("axes", x[1].tolist() if len(x) > 1 else [])
    if not axes and how.get("noop_with_empty_axes"):
        raise NotImplementedError
    return REDUCED[op](x[0], dim=axes or list(range(x[0].dim())), keepdim=bool(how.get("keepdims", 1)))


def activation(op, how, x):
    alpha = how.get("alpha")
    return {"Elu": lambda: F.elu(x, alpha or 1), "Celu": lambda: F.celu(x, alpha or 1), "Selu": lambda: F.selu(x),
            "LeakyRelu": lambda: F.leaky_relu(x, 0.01 if alpha is None else alpha),
            "ThresholdedRelu": lambda: F.threshold(x, 1.0 if alpha is None else alpha, 0),
            "HardSigmoid": lambda: ((0.2 if alpha is None else alpha) * x + how.get("beta", 0.5)).clamp(0, 1),
            "Gelu": lambda: F.gelu(x, approximate=how.get("approximate", b"none").decode())}[op]()


def compute(op, how, x, outputs):
    """The outputs that PyTorch has; `outputs` are the test's."""
    if op in UNARY:
        return UNARY[op](x[0])
    if op in BINARY:
        return functools.reduce(BINARY[op], x)
    if op in REDUCED:
        return reduced(op, how, x)
    if op in RESHAPED:
        return x[0].reshape(outputs[0].shape)
    if op in ("Conv", "ConvTranspose"):
        return convolution(op, how, x)
    if op in ("MaxPool", "AveragePool"):
        return pooling(op, how, x)
    if op.endswith("Normalization") or op == "LRN":
        return normalised(op, how, x)
    if op in ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"):
        return loss(op, how, x)
    dim = how.get("axis", -1)
    others = {
        "Softmax": lambda: x[0].softmax(dim), "LogSoftmax": lambda: x[0].log_softmax(dim),
        "CumSum": lambda: x[0].cumsum(int(x[1])), "CumProd": lambda: x[0].cumprod(int(x[1])),
        "TopK": lambda: x[0].topk(int(x[1]), dim, bool(how.get("largest", 1)))[0],
        "Trilu": lambda: (torch.triu if how.get("upper", 1) else torch.tril)(x[0], int(x[1]) if len(x) > 1 else 0),
        "Transpose": lambda: x[0].permute(how.get("perm", list(range(x[0].dim()))[::-1])),
        "Expand": lambda: x[0].expand(outputs[0].shape), "Tile": lambda: x[0].repeat(x[1].tolist()),
        "Concat": lambda: torch.cat(x, how["axis"]),
        "Split": lambda: x[0].split([y.shape[how.get("axis", 0)] for y in outputs], how.get("axis", 0)),
        "Gather": lambda: torch.take_along_dim(x[0], x[1], how.get("axis", 0)) if x[1].dim() == x[0].dim() and x[0].dim() == 1
        else x[0].index_select(how.get("axis", 0), x[1].flatten()).reshape(outputs[0].shape),
        "GatherElements": lambda: x[0].gather(how.get("axis", 0), x[1]), "ScatterElements": lambda: scattered(how, x),
        "Clip": lambda: x[0].clamp(x[1] if len(x) > 1 else None, x[2] if len(x) > 2 else None),
        "PRelu": lambda: torch.where(x[0] < 0, x[0] * x[1], x[0]), "Where": lambda: torch.where(x[0], x[1], x[2]),
        "Mod": lambda: torch.fmod(x[0], x[1]) if how.get("fmod") else torch.remainder(x[0], x[1]),
        "Gemm": lambda: how.get("alpha", 1.0) * ((x[0].T if how.get("transA") else x[0]) @ (x[1].T if how.get("transB") else x[1]))
        + (how.get("beta", 1.0) * x[2] if len(x) > 2 else 0),
        "Einsum": lambda: torch.einsum(how["equation"].decode(), *x),
        "GlobalAveragePool": lambda: x[0].mean(list(range(2, x[0].dim())), True),
        "GlobalMaxPool": lambda: x[0].amax(list(range(2, x[0].dim())), True),
        "GridSample": lambda: F.grid_sample(
            x[0], x[1], {"linear": "bilinear", "cubic": "bicubic"}.get(how.get("mode", b"linear").decode(), "nearest"),
            how.get("padding_mode", b"zeros").decode(), bool(how.get("align_corners"))),
        "AffineGrid": lambda: F.affine_grid(x[0], x[1].tolist(), bool(how.get("align_corners"))),
        "Attention": lambda: attention(how, x), "DepthToSpace": lambda: F.pixel_shuffle(x[0], how["blocksize"]),
        "Resize": lambda: F.interpolate(
            x[0], outputs[0].shape[2:], mode={b"linear": "bilinear", b"cubic": "bicubic"}.get(how.get("mode"), "nearest"),
            **({"align_corners": how.get("coordinate_transformation_mode") == b"align_corners"} if "mode" in how and
               how["mode"] != b"nearest" else {})),
    }
    return others[op]() if op in others else activation(op, how, x[0])


def weights(output, count):
    """As conform_weight()."""
    hashes = (numpy.arange(count, dtype=numpy.uint64) * 2654435761 + output * 40503) & 0xffffffff
    return torch.from_numpy(numpy.where(hashes >> 13 & 1, 1.0, -1.0) / count)


def equals(y, wanted):
    limit = 1e-3 if wanted.dtype in (numpy.float32, numpy.float64) else 1e-2
    return y.shape == wanted.shape and numpy.allclose(y.detach(), wanted.astype(float), limit, 1e-5, equal_nan=True)


def backward(node, x, wanted):
    """Whether PyTorch gives the outputs; the gradients are then those of `x`."""
    how = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}
    floats = [i for i, array in enumerate(wanted) if "float" in str(array.dtype) and numpy.isfinite(array.astype(float)).all()]
    try:
        y = compute(node.op_type, how, x, wanted)
        y = (y,) if isinstance(y, torch.Tensor) else y
        if not floats or not all(equals(y[i], wanted[i]) for i in floats):
            return False
        sum((y[i].flatten() * weights(i, y[i].numel())).sum() for i in floats).backward()
        return True
    except Exception:  # whatever it says: it has not this one
        return False


def gradients(node, inputs, wanted):
    """By the names of the float inputs: of at most 32 elements, as gradients.c takes them. Empty: PyTorch has it not."""
    if node.domain or any(array is None for array in [*inputs, *wanted]) or len(node.input) != len(inputs):
        return {}
    x = [torch.from_numpy(numpy.array(array, dtype=numpy.float64)).requires_grad_() if "float" in str(array.dtype)
         else torch.from_numpy(numpy.array(array)) for array in inputs]
    made = {}
    for name, one in zip(node.input, x if backward(node, x, wanted) else []):
        if not one.requires_grad or one.numel() == 0:
            continue
        gradient = numpy.zeros(one.numel()) if one.grad is None else one.grad.flatten().numpy()
        count = len(gradient)
        probes = range(count) if count <= MOST_PROBES else [i * count // MOST_PROBES for i in range(MOST_PROBES)]
        if numpy.isfinite(gradient).all():
            made[name] = gradient[list(probes)].astype(numpy.float32)
    return made
