/* The public builders of convolutions and poolings along one to three axes. */
#include "base/options.h"
#include "layers/layers.h"
#include "layers/sliding.h"

/* Returns a number for each axis: 0 stands for the number of the axis before it, or `first`, and -1 for 0. */
static struct integers list_of(const int64_t *numbers, int axes, int64_t first)
{
    struct integers list = { .count = axes };
    for (int i = 0; i < axes; i++) {
        const int64_t before = i == 0 ? first : list.numbers[i - 1];
        list.numbers[i] = numbers[i] == 0 ? before : numbers[i] == -1 ? 0 : numbers[i];
    }
    return list;
}

/* Returns the padding before each axis, then that after each. */
static struct integers pads_of(const int64_t *before, const int64_t *after, int axes)
{
    struct integers pads = list_of(before, axes, 0);
    pads.count = 2 * axes;
    for (int i = 0; i < axes; i++)
        pads.numbers[axes + i] = after[i] == 0 ? pads.numbers[i] : after[i] == -1 ? 0 : after[i];
    return pads;
}

static tutti_status check_kernel(const char *name, const struct value *x, tutti_shape kernel)
{
    const int axes = x->shape.rank - SPACE_AXIS;
    if (axes < 1 || axes > SLIDING_AXES || kernel.rank != axes)
        return fail(TUTTI_SHAPE,
            "%s: the kernel has %d sizes, and the input %d axes after the channels: 1 to 3 are "
            "possible",
            name, kernel.rank, axes < 0 ? 0 : axes);
    for (int i = 0; i < axes; i++)
        if (kernel.sizes[i] < 1 || kernel.sizes[i] > INT32_MAX)
            return fail(TUTTI_INVALID, "%s: kernel is %lld: it must be at least 1 and less than 2^31", name,
                (long long)kernel.sizes[i]);
    return TUTTI_OK;
}

/* Checks everything but the weights, before there are any. */
static tutti_status check_conv(
    const char *name, const struct value *x, int64_t channels, tutti_shape kernel, int64_t groups)
{
    const tutti_status status = check_kernel(name, x, kernel);
    if (status != TUTTI_OK) return status;
    if (channels >= 1 && channels <= INT32_MAX && groups >= 1 && channels % groups == 0 &&
        x->shape.sizes[CHANNEL_AXIS] % groups == 0)
        return TUTTI_OK;
    return fail(TUTTI_SHAPE, "%s: groups %lld must divide the input's %lld channels and the output's %lld", name,
        (long long)groups, (long long)x->shape.sizes[CHANNEL_AXIS], (long long)channels);
}

static struct sliding_options sliding_options_of(const tutti_conv_options *o, int axes, bool transposed)
{
    struct sliding_options a = { .strides = list_of(o->stride, axes, 1),
        .dilations = list_of(o->dilation, axes, 1),
        .pads = pads_of(o->padding, o->padding_after, axes),
        .group = o->groups ? o->groups : 1 };
    for (int i = 0; i < axes && transposed; i++) a.output_padding.numbers[i] = o->output_padding[i];
    a.output_padding.count = transposed ? axes : 0;
    return a;
}

/* Makes the layer's nodes by a function of tutti_op(). */
static tutti_tensor finish(
    tutti_network *network, int layer, op_builder *build, const int *inputs, int count, const struct sliding_options *a)
{
    int made = NO_VALUE;
    if (!network_ok(network) || layer < 0) return (tutti_tensor) { NO_VALUE };
    const struct append_context context = { network, &network->graph, layer };
    const tutti_status status = build(&context, &(struct op_call) { inputs, count, .options = a }, &made);
    if (status != TUTTI_OK) return network_fail(network, status);
    return network_ok(network) ? network_close(network, layer, made) : (tutti_tensor) { NO_VALUE };
}

static tutti_tensor convolution(tutti_network *network, tutti_tensor tensor, int64_t channels, tutti_shape kernel,
    const tutti_conv_options *options, bool transposed)
{
    tutti_conv_options read;
    const tutti_conv_options *o = &read;
    const char *name = transposed ? "conv_transpose" : "conv";
    const tutti_status readable = OPTIONS_READ(&read, options, tutti_conv_options);
    if (readable != TUTTI_OK) return network_fail(network, readable);
    const struct value *x = network_value(network, tensor);
    if (!x) return (tutti_tensor) { NO_VALUE };
    const int layer = network_layer_begin(network, o->name, name), axes = kernel.rank;
    const int64_t groups = o->groups ? o->groups : 1;
    const tutti_status status = check_conv(name, x, channels, kernel, groups);
    if (status != TUTTI_OK) return network_fail(network, status);
    const int64_t in = x->shape.sizes[CHANNEL_AXIS];
    tutti_shape shape = { axes + SPACE_AXIS, { transposed ? in : channels, (transposed ? channels : in) / groups } };
    int64_t taps = 1;
    for (int i = 0; i < axes; i++) taps *= shape.sizes[SPACE_AXIS + i] = kernel.sizes[i];
    /* As PyTorch counts them, also of a transposed convolution. */
    struct parameter how = {
        .init = o->init, .init_scale = o->init_scale, .fan_in = shape.sizes[1] * taps, .fan_out = shape.sizes[0] * taps
    };
    int inputs[3] = { tensor.id, network_weight(network, layer, o->weight, "weight", shape, &how), NO_VALUE };
    if (!o->no_bias) {
        how.init = o->bias_init;
        if (o->bias_init == TUTTI_INIT_DEFAULT && o->init != TUTTI_INIT_DEFAULT) how.init = TUTTI_INIT_ZEROS;
        inputs[2] = network_weight(network, layer, o->bias, "bias", TUTTI_SHAPE(channels), &how);
    }
    const struct sliding_options a = sliding_options_of(o, axes, transposed);
    return finish(network, layer, transposed ? op_conv_transpose : op_conv, inputs, o->no_bias ? 2 : 3, &a);
}

/* Reads the sizes of a kernel; false after a failure, which the network keeps. */
static bool read_kernel(tutti_network *network, const char *name, const int64_t *sizes, int rank, tutti_shape *kernel)
{
    if (!network_ok(network)) return false;
    if (shape_read(sizes, rank, kernel)) return true;
    network_fail(network,
        fail(TUTTI_SHAPE, "%s: the kernel has %d sizes%s: 1 to 3 are possible", name, rank, sizes ? "" : " at NULL"));
    return false;
}

tutti_tensor tutti_conv_sized(tutti_network *network, tutti_tensor x, int64_t channels, const int64_t *kernel, int rank,
    const tutti_conv_options *options)
{
    tutti_shape shape;
    if (!read_kernel(network, "conv", kernel, rank, &shape)) return (tutti_tensor) { NO_VALUE };
    return tutti_conv(network, x, channels, shape, options);
}

tutti_tensor tutti_conv_transpose_sized(tutti_network *network, tutti_tensor x, int64_t channels, const int64_t *kernel,
    int rank, const tutti_conv_options *options)
{
    tutti_shape shape;
    if (!read_kernel(network, "conv_transpose", kernel, rank, &shape)) return (tutti_tensor) { NO_VALUE };
    return tutti_conv_transpose(network, x, channels, shape, options);
}

tutti_tensor tutti_pool_sized(tutti_network *network, tutti_tensor x, tutti_pooling kind, const int64_t *kernel,
    int rank, const tutti_pooling_options *options)
{
    tutti_shape shape;
    if (!read_kernel(network, "pool", kernel, rank, &shape)) return (tutti_tensor) { NO_VALUE };
    return tutti_pool(network, x, kind, shape, options);
}

tutti_tensor tutti_conv(
    tutti_network *network, tutti_tensor x, int64_t channels, tutti_shape kernel, const tutti_conv_options *options)
{
    return convolution(network, x, channels, kernel, options, false);
}

tutti_tensor tutti_conv_transpose(
    tutti_network *network, tutti_tensor x, int64_t channels, tutti_shape kernel, const tutti_conv_options *options)
{
    return convolution(network, x, channels, kernel, options, true);
}

tutti_tensor tutti_pool(tutti_network *network, tutti_tensor tensor, tutti_pooling kind, tutti_shape kernel,
    const tutti_pooling_options *options)
{
    static op_builder *const builders[] = {
        [TUTTI_POOL_MAX] = op_max_pool, [TUTTI_POOL_AVERAGE] = op_average_pool, [TUTTI_POOL_LP] = op_lp_pool
    };
    tutti_pooling_options read;
    const tutti_pooling_options *o = &read;
    const tutti_status readable = OPTIONS_READ(&read, options, tutti_pooling_options);
    if (readable != TUTTI_OK) return network_fail(network, readable);
    const struct value *x = network_value(network, tensor);
    if (!x) return (tutti_tensor) { NO_VALUE };
    const int layer = network_layer_begin(network, o->name, "pool");
    tutti_status status = check_kernel("pool", x, kernel);
    if (status == TUTTI_OK && ((int)kind < 0 || (size_t)kind >= sizeof builders / sizeof *builders))
        status = fail(TUTTI_INVALID, "pool: there is no kind %d", (int)kind);
    if (status != TUTTI_OK) return network_fail(network, status);
    struct sliding_options a = { .dilations = list_of(o->dilation, kernel.rank, 1),
        .pads = pads_of(o->padding, o->padding_after, kernel.rank),
        .ceil_mode = o->ceil_mode,
        .count_include_pad = !o->exclude_padding,
        .p = o->p == 0 ? 2 : o->p };
    a.kernel.count = a.strides.count = kernel.rank;
    for (int i = 0; i < kernel.rank; i++) {
        a.kernel.numbers[i] = kernel.sizes[i];
        a.strides.numbers[i] = o->stride[i] ? o->stride[i] : kernel.sizes[i];
    }
    return finish(network, layer, builders[kind], &tensor.id, 1, &a);
}
