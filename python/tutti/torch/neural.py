"""Convolution, pooling, normalisation, dropout and interpolation."""
import math

import torch

from .values import Refused, Value


def per_sample(walk, value, function):
    """Calls function(tensor) for tensors whose samples are all that is after the batch axis, and gives the result the batch's parts again."""
    tensor = walk.spread(value)
    if value.axis != 0:
        raise Refused("the batch is not the first axis")
    if not value.split:
        return function(tensor)
    count, rest = value.outer * value.rows, value.sample[len(value.split):]
    tensor = walk.op("fold", walk.reshaped(tensor, (count, *rest)))
    made = walk.op("unfold", function(tensor), size=count)
    return walk.reshaped(made, (*value.split, *tuple(made.shape)[1:]))


def values_of(found):
    return found.value() if hasattr(found, "own") or hasattr(found, "written") else found


def several(sizes, count):
    sizes = [sizes] if isinstance(sizes, int) else list(sizes)
    return sizes * count if len(sizes) == 1 else sizes


# ---------------------------------------------------------------------------------------------------- convolution ----

def conv(walk, input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    count = weight.shape.rank - 2
    if weight.axis is not None or input.shape.rank != count + 2:
        raise Refused("weights that differ from sample to sample, or no batch axis")
    if input.axis is None and input.shape.sizes[0] == 1 and all(size == 1 for size in weight.shape.sizes[2:]):
        return pointwise(walk, input, weight, bias, several(stride, count), several(padding, count) if not isinstance(padding, str) else [0], groups)
    dilation = several(dilation, count)
    if isinstance(padding, str):
        spans = [step * (size - 1) for step, size in zip(dilation, weight.shape.sizes[2:])]
        before = [0 if padding == "valid" else span // 2 for span in spans]
        after = [0 if padding == "valid" else span - span // 2 for span in spans]
    else:
        before = after = several(padding, count)
    given = [weight.floats] + ([bias.floats] if bias is not None else [])
    tensor = per_sample(walk, input, lambda x: walk.op("conv", x, *given, strides=several(stride, count), dilations=dilation, pads=before + after, group=groups))
    return walk.result(tensor, [input, weight, bias], outer=input.outer)


def pointwise(walk, input, weight, bias, strides, padding, groups):
    """A convolution of one pixel of what is the same for all samples: a product."""
    if any(size != 1 for size in strides) or any(padding) or groups != 1:
        raise Refused("a convolution of what is the same for all samples, with steps, padding or groups")
    channels, rest = input.shape.sizes[1], input.shape.sizes[2:]
    tensor = walk.op("matmul", walk.reshaped(weight.floats, weight.shape.sizes[:2]), walk.reshaped(input.floats, (channels, math.prod(rest))))
    if bias is not None:
        tensor = walk.op("add", tensor, walk.reshaped(bias.floats, (weight.shape.sizes[0], 1)))
    return walk.result(walk.reshaped(tensor, (1, weight.shape.sizes[0], *rest)), [one for one in (input, weight, bias) if one is not None])


def conv_transpose(walk, input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    count = weight.shape.rank - 2
    if weight.axis is not None or input.shape.rank != count + 2:
        raise Refused("weights that differ from sample to sample, or no batch axis")
    given = [weight.floats] + ([bias.floats] if bias is not None else [])
    attributes = {"strides": several(stride, count), "dilations": several(dilation, count), "pads": several(padding, count) * 2,
                  "output_padding": several(output_padding, count), "group": groups}
    return walk.result(per_sample(walk, input, lambda x: walk.op("conv_transpose", x, *given, **attributes)), [input, weight, bias], outer=input.outer)


# -------------------------------------------------------------------------------------------------------- pooling ----

def pooling(operation, count, index=None):
    def build(walk, self, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, count_include_pad=True, divisor_override=None):
        if divisor_override is not None:
            raise Refused("a divisor")
        if self.shape.rank != count + 2:
            raise Refused("no batch axis")
        kernel = several(kernel_size, count)
        attributes = {"kernel_shape": kernel, "strides": several(stride, count) if stride not in (None, []) else kernel, "pads": several(padding, count) * 2, "ceil_mode": ceil_mode}
        if operation == "max_pool":
            attributes["dilations"] = several(dilation, count)
        else:
            attributes["count_include_pad"] = count_include_pad
        tensor = per_sample(walk, self, lambda x: walk.op(operation, x, **attributes))
        made = walk.result(tensor, [self], outer=self.outer, index=index)
        return made if index is None else [made, None]
    return build


def adaptive(operation, count):
    """The mean or maximum of windows. All of an axis, or windows of the same size."""
    def build(walk, self, output_size):
        sizes, wanted = self.shape.sizes[self.shape.rank - count:], several(output_size, count)
        wanted = [size if one is None else one for one, size in zip(wanted, sizes)]
        if all(one == 1 for one in wanted):
            axes = [self.place(self.shape.rank - count + axis) for axis in range(count)]
            return walk.result(walk.op("reduce_mean" if operation == "average_pool" else "reduce_max", self.floats, axes=axes, keepdims=1), [self], outer=self.outer)
        if any(size % one for size, one in zip(sizes, wanted)):
            if operation != "average_pool" or count != 2:
                raise Refused(f"windows of unequal sizes, {list(sizes)} to {wanted}")
            tensor = per_sample(walk, self, lambda x: walk.op("adaptive_average_pool", x, height=wanted[0], width=wanted[1]))
        else:
            kernel = [size // one for size, one in zip(sizes, wanted)]
            tensor = per_sample(walk, self, lambda x: walk.op(operation, x, kernel_shape=kernel, strides=kernel))
        return walk.result(tensor, [self], outer=self.outer)
    return build


# -------------------------------------------------------------------------------------------------- normalisation ----

def batch_norm(walk, input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled=False):
    input, weight, bias = values_of(input), values_of(weight), values_of(bias)
    is_own = all(hasattr(one, "is_written") for one in (running_mean, running_var))
    if training and running_mean is not None and not is_own:
        raise Refused("its running statistics are no buffers of the module, so they are not written back")
    is_shared = running_mean is not None and not is_own or running_mean is not None and any(one.is_written or one.found is not None for one in (running_mean, running_var))
    if not training and (not walk.infers or input.axis != 0 or is_shared):
        return fixed_norm(walk, input, weight, bias, values_of(running_mean), values_of(running_var), eps)
    if running_mean is None:
        return norm_of_weights(walk, input, weight, bias, eps)
    if input.axis != 0:
        raise Refused("the batch is not the first axis")
    if momentum == 0 and training:
        raise Refused("momentum 0")
    return trained_norm(walk, input, weight, bias, running_mean, running_var, momentum, eps)


def trained_norm(walk, input, weight, bias, mean, variance, momentum, eps, **options):
    """Normalises by the batch. mean, variance: running statistics, of which the layer has its own, a Buffer or a Parameter each."""
    channels = input.shape.sizes[1]
    name = walk.unique(mean.target.removeprefix("module.").rsplit(".", 1)[0])
    weight_tensor = weight.floats if weight is not None else walk.network.constant([1.0] * channels)
    bias_tensor = bias.floats if bias is not None else walk.network.constant([0.0] * channels)

    def build(x):
        shape = tuple(x.shape)
        flat = shape if len(shape) in (1, 3) else (channels, shape[1], 1) if len(shape) == 2 else (channels, shape[1], math.prod(shape[2:]))
        y = walk.network.op("batch_norm", walk.reshaped(x, flat), weight_tensor, bias_tensor, name=name, epsilon=eps, momentum=momentum, **options)
        return walk.reshaped(y, shape)

    made = walk.result(build(walk.spread(input)) if not input.split else joined_rows(walk, input, build), [one for one in (input, weight, bias) if one is not None], outer=input.outer)
    for statistic, word in ((mean, "running_mean"), (variance, "running_var")):
        if statistic.is_written or statistic.found is not None:
            raise Refused(f"{statistic.target} is used twice")
        statistic.is_written = True
        walk.set_initial(f"{name}.{word}", statistic.values)
        walk.statistics[statistic.target] = f"{name}.{word}"
    return made


def keras_batch_norm(walk, x, mean, variance, gamma, beta, momentum, epsilon):
    """Keras's moving variance is of the variance that the batch is divided by."""
    x, gamma, beta = values_of(x), values_of(gamma), values_of(beta)
    if x.axis != 0:
        raise Refused("the batch is not the first axis")
    if momentum == 0:
        raise Refused("momentum 1")
    return trained_norm(walk, x, gamma, beta, mean, variance, momentum, epsilon, biased_variance=1)


def joined_rows(walk, input, build):
    """Rows of a sample have the same statistics, so they are pixels of the channels."""
    channels, rows, rest = input.shape.sizes[1], input.outer * input.rows, list(input.shape.sizes[2:])
    x = walk.op("transpose", walk.reshaped(walk.spread(input), (rows, channels, math.prod(rest))), perm=[1, 0, 2])
    y = walk.op("transpose", build(x), perm=[1, 0, 2])
    return walk.reshaped(y, input.sample)


def norm_of_weights(walk, input, weight, bias, eps):
    """Statistics of what is the same for all samples, as weights that are standardised."""
    if input.axis is not None:
        raise Refused("without running statistics")
    x, axes = input.floats, [axis for axis in range(input.shape.rank) if axis != 1]
    centred = walk.op("sub", x, walk.op("reduce_mean", x, axes=axes, keepdims=1))
    spread = walk.op("sqrt", walk.op("shift", walk.op("reduce_mean", walk.op("square", centred), axes=axes, keepdims=1), by=eps))
    sizes = (input.shape.sizes[1], *[1] * (input.shape.rank - 2))
    y = walk.op("div", centred, spread)
    y = y if weight is None else walk.op("mul", y, walk.reshaped(weight.floats, sizes))
    y = y if bias is None else walk.op("add", y, walk.reshaped(bias.floats, sizes))
    return walk.result(y, [one for one in (input, weight, bias) if one is not None])


def fixed_norm(walk, input, weight, bias, mean, variance, eps):
    """Batch normalisation that does not train its statistics: a factor and a shift for each channel."""
    if input.axis != 0 or input.split:
        raise Refused("the batch is not the first axis")
    sizes = (input.shape.sizes[1], *[1] * (input.shape.rank - 2))
    factor, centre = walk.known(torch.rsqrt(variance.known + eps)).floats, walk.known(mean.known).floats
    y = walk.op("sub", walk.spread(input), walk.reshaped(centre, sizes))
    y = walk.op("mul", y, walk.reshaped(factor if weight is None else walk.op("mul", factor, weight.floats), sizes))
    y = walk.op("add", y, walk.reshaped(bias.floats, sizes)) if bias is not None else y
    return walk.result(y, [one for one in (input, weight, bias) if one is not None])


def scale_and_bias(walk, weight, bias, like):
    if weight is None and bias is None:
        return []
    made = [weight.floats if weight is not None else walk.op("full", shape=list(like), value=1.0)]
    return made + ([bias.floats] if bias is not None else [])


def layer_norm(walk, input, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable=False):
    if input.axis is not None and input.axis >= input.shape.rank - len(normalized_shape):
        raise Refused("the batch is one of its axes")
    made = walk.op("layer_norm", input.floats, *scale_and_bias(walk, weight, bias, normalized_shape), axis=-len(normalized_shape), epsilon=eps)
    return walk.result(made, [input, weight, bias], outer=input.outer)


def rms_norm(walk, input, normalized_shape, weight=None, eps=None):
    if input.axis is not None and input.axis >= input.shape.rank - len(normalized_shape):
        raise Refused("the batch is one of its axes")
    made = walk.op("rms_norm", input.floats, *([weight.floats] if weight is not None else []), axis=-len(normalized_shape), epsilon=1.1920928955078125e-07 if eps is None else eps)
    return walk.result(made, [input, weight], outer=input.outer)


def group_norm(walk, input, num_groups, weight=None, bias=None, eps=1e-5, cudnn_enabled=False):
    given = scale_and_bias(walk, weight, bias, (input.shape.sizes[1],))
    tensor = per_sample(walk, input, lambda x: walk.op("group_norm", x if len(x.shape) > 1 else walk.reshaped(x, (*x.shape, 1)), *given, groups=num_groups, epsilon=eps))
    return walk.result(tensor, [input, weight, bias], outer=input.outer)


def instance_norm(walk, input, weight=None, bias=None, running_mean=None, running_var=None, use_input_stats=True, momentum=0.1, eps=1e-5, cudnn_enabled=False):
    if running_mean is not None or not use_input_stats:
        raise Refused("running statistics")
    given = scale_and_bias(walk, weight, bias, (input.shape.sizes[1],))
    return walk.result(per_sample(walk, input, lambda x: walk.op("instance_norm", x, *given, epsilon=eps)), [input, weight, bias], outer=input.outer)


# -------------------------------------------------------------------------------------------------------- dropout ----

def dropout(walk, input=None, p=0.5, train=True, self=None):
    """In place it calls its argument self."""
    input = self if input is None else input
    if not train or p == 0:
        return input
    if p >= 1:
        raise Refused("a probability of 1")
    return walk.result(walk.op("dropout", walk.spread(input), ratio=p), [input], outer=input.outer)


def feature_dropout(walk, input=None, p=0.5, train=True, self=None):
    """Channels are dropped as a whole."""
    input = self if input is None else input
    if not train or p == 0:
        return input
    if input.axis != 0 or input.split:
        raise Refused("the batch is not the first axis")
    ones = Value(walk, input.shape, input.dtype, walk.op("full", shape=[input.shape.sizes[1], *[1] * (input.shape.rank - 2)], value=1.0))
    first = walk.op("where", walk.like_of(), ones.made, ones.made)
    return walk.result(walk.op("mul", walk.spread(input), walk.op("dropout", first, ratio=p)), [input])


# -------------------------------------------------------------------------------------------------- interpolation ----

def upsample(mode):
    def build(walk, input, output_size=None, align_corners=False, scale_factors=None, **_):
        count = input.shape.rank - 2
        sizes, wanted = input.shape.sizes[2:], walk.shape().sizes[2:]
        if scale_factors is not None and any(size * factor != whole for size, factor, whole in zip(sizes, scale_factors, wanted)):
            raise Refused("scales that do not give whole sizes")
        attributes = {"sizes": list(wanted), "axes": list(range(1, count + 1)), "mode": mode}
        if mode == "nearest":
            attributes |= {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        else:
            attributes["coordinate_transformation_mode"] = "align_corners" if align_corners else "half_pixel"
        return walk.result(per_sample(walk, input, lambda x: walk.op("resize", x, **attributes)), [input], outer=input.outer)
    return build


OPERATORS = {
    **dict.fromkeys(("conv1d", "conv2d", "conv3d"), conv), **dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), conv_transpose),
    **{f"max_pool{count}d": pooling("max_pool", count) for count in (1, 2, 3)}, **{f"avg_pool{count}d": pooling("average_pool", count) for count in (1, 2, 3)},
    **{f"max_pool{count}d_with_indices": pooling("max_pool", count, 0) for count in (2, 3)},
    **{f"adaptive_avg_pool{count}d": adaptive("average_pool", count) for count in (1, 2, 3)},
    "batch_norm": batch_norm, "keras_batch_norm": keras_batch_norm, "layer_norm": layer_norm, "rms_norm": rms_norm, "group_norm": group_norm, "instance_norm": instance_norm,
    "dropout": dropout, "feature_dropout": feature_dropout, "upsample_nearest1d": upsample("nearest"), "upsample_nearest2d": upsample("nearest"),
    "upsample_bilinear2d": upsample("linear"), "upsample_linear1d": upsample("linear"), "upsample_bicubic2d": upsample("cubic"),
}
