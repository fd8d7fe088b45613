/* Convolutions, poolings, normalisations and products. */
#include "onnx/operators.h"

#include "base/memory.h"

#include <float.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------- convolutions, poolings ---- */

/* Of the two axes of an image. */
struct window {
    int64_t kernel[2], strides[2], dilations[2];
    int64_t before[2], behind[2]; /* padding */
};

static tutti_status read_pair(const struct step *step, const char *name, int64_t otherwise, int64_t pair[2])
{
    size_t count;
    const int64_t *list = step_integers(step, name, &count);
    pair[0] = pair[1] = otherwise;
    if (!list) return TUTTI_OK;
    if (count != 2) return step_refuse("%s has %zu numbers: only images, with 2, are read", name, count);
    for (int i = 0; i < 2; i++) {
        pair[i] = list[i];
        if (list[i] < 1 || list[i] > INT32_MAX) return fail(TUTTI_FORMAT, "%s is %" PRId64, name, list[i]);
    }
    return TUTTI_OK;
}

/* So much that as many outputs come out as strides fit into the image; the odd one lies behind it, or before it. */
static void pad_alike(struct window *w, const tutti_shape *image, bool odd_before)
{
    for (int i = 0; i < 2; i++) {
        const int64_t size = image->sizes[i + 1], out = (size + w->strides[i] - 1) / w->strides[i];
        const int64_t all = (out - 1) * w->strides[i] + w->dilations[i] * (w->kernel[i] - 1) + 1 - size;
        const int64_t less = all > 0 ? all / 2 : 0, more = all > 0 ? all - less : 0;
        w->before[i] = odd_before ? more : less;
        w->behind[i] = odd_before ? less : more;
    }
}

static tutti_status read_padding(const struct step *step, const tutti_shape *image, struct window *w)
{
    size_t count;
    const int64_t *pads = step_integers(step, "pads", &count);
    if (step_says(step, "auto_pad", "SAME_UPPER") || step_says(step, "auto_pad", "SAME_LOWER")) {
        pad_alike(w, image, step_says(step, "auto_pad", "SAME_LOWER"));
        return TUTTI_OK;
    }
    if (!pads) return TUTTI_OK;
    if (count != 4) return step_refuse("pads has %zu numbers: only images, with 4, are read", count);
    for (int i = 0; i < 2; i++) {
        w->before[i] = pads[i];
        w->behind[i] = pads[i + 2];
    }
    for (int i = 0; i < 4; i++)
        if (pads[i] < 0 || pads[i] > INT32_MAX) return step_refuse("pads is %" PRId64, pads[i]);
    return TUTTI_OK;
}

/* `kernel` is what a convolution's weight says, or NULL. */
static tutti_status read_window(
    const struct step *step, const tutti_shape *image, const int64_t *kernel, struct window *w)
{
    *w = (struct window) { 0 };
    if (image->rank != 3)
        return step_refuse("its input has %d axes in a sample: only images, with 3, are read", image->rank);
    tutti_status status = read_pair(step, "kernel_shape", 0, w->kernel);
    if (status == TUTTI_OK) status = read_pair(step, "strides", 1, w->strides);
    if (status == TUTTI_OK) status = read_pair(step, "dilations", 1, w->dilations);
    for (int i = 0; i < 2 && status == TUTTI_OK; i++) {
        if (w->kernel[i] == 0 && kernel) w->kernel[i] = kernel[i];
        if (w->kernel[i] < 1 || (kernel && w->kernel[i] != kernel[i]))
            status = fail(TUTTI_FORMAT, "kernel_shape is missing, or is not that of the weight");
    }
    return status == TUTTI_OK ? read_padding(step, image, w) : status;
}

/* Padding that differs before and behind is an operation of its own, in front of the layer. */
static void pad_apart(const struct step *step, struct window *w, float value, tutti_tensor *x)
{
    if (w->before[0] == w->behind[0] && w->before[1] == w->behind[1]) return;
    *x = step_op(step, "pad", x, 1, "before=0,%" PRId64 ",%" PRId64 " behind=0,%" PRId64 ",%" PRId64 " value=%.9g",
        w->before[0], w->before[1], w->behind[0], w->behind[1], (double)value);
    memset(w->before, 0, sizeof w->before);
    memset(w->behind, 0, sizeof w->behind);
}

/* Names of layers are those of nodes, where they have names. */
static const char *layer_name(const struct step *step)
{
    const char *name = proto_text(step->node->name);
    return *name ? name : NULL;
}

/* 0 stands for "as vertical" in the options. */
static int64_t padding_w(const struct window *w)
{
    return w->before[1] == 0 ? -1 : w->before[1];
}

tutti_status build_conv(struct step *step)
{
    tutti_tensor x, weight, bias = { -1 };
    tutti_shape shape = { 0 }, kernel = { 0 };
    struct window w;
    const bool biased = step_input(step, 2) != NULL;
    tutti_status status = step_sample(step, 0, &x, &shape);
    if (status == TUTTI_OK) status = step_tensor(step, 1, &weight);
    if (status == TUTTI_OK) status = value_shape(step->import, step_input(step, 1), &kernel);
    if (status == TUTTI_OK && kernel.rank != 4) status = step_refuse("its weight has %d axes, not 4", kernel.rank);
    if (status == TUTTI_OK) status = read_window(step, &shape, kernel.sizes + 2, &w);
    if (status == TUTTI_OK && biased) status = step_tensor(step, 2, &bias);
    if (status != TUTTI_OK) return status;
    pad_apart(step, &w, 0, &x);
    return step_done(step,
        tutti_conv2d(step->import->network, x, kernel.sizes[0], kernel.sizes[2],
            &(tutti_conv2d_options) { .name = layer_name(step),
                .stride = w.strides[0],
                .padding = w.before[0],
                .dilation = w.dilations[0],
                .groups = step_integer(step, "group", 1),
                .kernel_w = kernel.sizes[3],
                .stride_w = w.strides[1],
                .padding_w = padding_w(&w),
                .dilation_w = w.dilations[1],
                .no_bias = !biased,
                .weight = &weight,
                .bias = biased ? &bias : NULL }),
        true);
}

static tutti_status read_pool(const struct step *step, tutti_tensor *x, struct window *w, tutti_pool_options *options)
{
    tutti_shape shape = { 0 };
    tutti_status status = step_sample(step, 0, x, &shape);
    if (status == TUTTI_OK) status = read_window(step, &shape, NULL, w);
    if (status != TUTTI_OK) return status;
    if (w->dilations[0] != 1 || w->dilations[1] != 1) return step_refuse("dilations must be 1");
    const bool ceil_mode = step_integer(step, "ceil_mode", 0) != 0;
    if (ceil_mode && (w->before[0] != w->behind[0] || w->before[1] != w->behind[1]))
        return step_refuse("ceil_mode with padding that differs before and behind is not read");
    *options = (tutti_pool_options) { .name = layer_name(step),
        .stride = w->strides[0],
        .kernel_w = w->kernel[1],
        .stride_w = w->strides[1],
        .ceil_mode = ceil_mode };
    return TUTTI_OK;
}

tutti_status build_max_pool(struct step *step)
{
    tutti_tensor x;
    struct window w;
    tutti_pool_options options;
    const tutti_status status = read_pool(step, &x, &w, &options);
    if (status != TUTTI_OK) return status;
    if (step_output(step, 1)) return step_refuse("its indices are not available");
    pad_apart(step, &w, -FLT_MAX, &x);
    options.padding = w.before[0];
    options.padding_w = padding_w(&w);
    return step_done(step, tutti_max_pool(step->import->network, x, w.kernel[0], &options), true);
}

tutti_status build_average_pool(struct step *step)
{
    tutti_tensor x;
    struct window w;
    tutti_pool_options options;
    const tutti_status status = read_pool(step, &x, &w, &options);
    if (status != TUTTI_OK) return status;
    options.exclude_padding = step_integer(step, "count_include_pad", 0) == 0;
    if (options.exclude_padding && (w.before[0] != w.behind[0] || w.before[1] != w.behind[1]))
        return step_refuse("padding that differs before and behind, and does not count, is not read");
    pad_apart(step, &w, 0, &x);
    options.padding = w.before[0];
    options.padding_w = padding_w(&w);
    return step_done(step, tutti_average_pool(step->import->network, x, w.kernel[0], &options), true);
}

tutti_status build_global_pool(struct step *step)
{
    tutti_tensor x;
    tutti_shape shape = { 0 };
    tutti_network *network = step->import->network;
    const tutti_status status = step_sample(step, 0, &x, &shape);
    if (status != TUTTI_OK) return status;
    const bool mean = !strcmp(step->node->op_type, "GlobalAveragePool");
    return step_done(step, mean ? tutti_global_average_pool(network, x) : tutti_global_max_pool(network, x), true);
}

/* ---------------------------------------------------------------------------------------------- normalisations ---- */

enum { NORM_PARTS = 4 };
static const char *const norm_parts[NORM_PARTS] = { "weight", "bias", "running_mean", "running_var" };

static bool has_parameter(const struct step *step, const char *name)
{
    const char *found = NULL;
    for (int i = 0; tutti_parameter_info(step->import->network, i, &found, NULL, NULL) == TUTTI_OK; i++)
        if (!strcmp(found, name)) return true;
    return false;
}

/* LAYER of an initialiser LAYER.weight, LAYER.bias and so on, if the network has no parameter of this name yet: the
 * exporter may have merged equal initialisers of several layers. Else the node's name. NULL: no memory. */
static char *norm_name(const struct step *step)
{
    for (size_t i = 0; i < NORM_PARTS; i++) {
        const char *name = proto_text(step->node->input[i + 1]);
        const size_t all = strlen(name), part = strlen(norm_parts[i]) + 1;
        if (all <= part || name[all - part] != '.' || strcmp(name + all - part + 1, norm_parts[i])) continue;
        char *layer = memory_format("%.*s", (int)(all - part), name);
        char *weight = layer ? memory_format("%s.weight", layer) : NULL;
        const bool is_free = weight && !has_parameter(step, weight);
        free(weight);
        if (is_free) return layer;
        free(layer);
    }
    return memory_format("%s.%d", *proto_text(step->node->name) ? step->node->name : step->node->output[0],
        tutti_network_layers(step->import->network));
}

/* The file's values of a part, for each channel. */
static tutti_status set_part(const struct step *step, const char *layer, size_t part, int64_t channels)
{
    const struct array *array = NULL;
    tutti_status status = step_array(step, part + 1, &array);
    if (status != TUTTI_OK) return status;
    if (!array->floats || array->count != (size_t)channels)
        return fail(TUTTI_FORMAT, "its %s needs %" PRId64 " floats", norm_parts[part], channels);
    char *name = memory_format("%s.%s", layer, norm_parts[part]);
    if (!name) return TUTTI_NO_MEMORY;
    status = tutti_set_initial(step->import->network, name, array->floats, channels);
    free(name);
    return status;
}

tutti_status build_batch_normalization(struct step *step)
{
    tutti_tensor x;
    tutti_shape shape = { 0 };
    const float momentum = 1 - step_number(step, "momentum", 0.9f);
    tutti_status status = step_sample(step, 0, &x, &shape);
    if (status != TUTTI_OK) return status;
    if (step->node->n_input != NORM_PARTS + 1) return fail(TUTTI_FORMAT, "it needs 5 inputs");
    if (!(momentum > 0)) return step_refuse("its momentum must be less than 1");
    char *layer = norm_name(step);
    if (!layer) return TUTTI_NO_MEMORY;
    x = tutti_batch_norm(step->import->network, x,
        &(tutti_batch_norm_options) {
            .name = layer, .epsilon = step_number(step, "epsilon", 1e-5f), .momentum = momentum });
    status = step_done(step, x, true);
    for (size_t i = 0; i < NORM_PARTS && status == TUTTI_OK; i++) status = set_part(step, layer, i, shape.sizes[0]);
    free(layer);
    return status;
}

tutti_status build_layer_normalization(struct step *step)
{
    tutti_tensor inputs[3];
    tutti_shape shape = { 0 }, scale = { 0 };
    tutti_status status = step_sample(step, 0, &inputs[0], &shape);
    int axis = 0;
    if (status == TUTTI_OK) status = step_axis(step_integer(step, "axis", -1), shape.rank, &axis);
    if (status == TUTTI_OK) status = step_tensor(step, 1, &inputs[1]);
    if (status == TUTTI_OK) status = value_shape(step->import, step_input(step, 1), &scale);
    if (status != TUTTI_OK) return status;
    if (axis != shape.rank - 1 || scale.rank != 1 || scale.sizes[0] != shape.sizes[axis])
        return step_refuse("only the last axis is normalised");
    if (step_output(step, 1) || step_output(step, 2)) return step_refuse("its mean and deviation are not available");
    if (step_input(step, 2)) {
        if ((status = step_tensor(step, 2, &inputs[2])) != TUTTI_OK) return status;
    } else {
        struct array *zeros = array_new(1, scale.sizes, true);
        if (!zeros) return TUTTI_NO_MEMORY;
        inputs[2] = tutti_constant(step->import->network, NULL, scale, zeros->floats);
        array_free(zeros);
    }
    const double epsilon = (double)step_number(step, "epsilon", 1e-5f);
    return step_done(step, step_op(step, "layer_norm", inputs, 3, "epsilon=%.9g", epsilon), true);
}

/* --------------------------------------------------------------------------------------------------- products ---- */

static tutti_tensor scaled(const struct step *step, tutti_tensor x, float factor)
{
    return factor == 1 ? x : step_op(step, "scale", &x, 1, "factor=%.9g", (double)factor);
}

/* y = alpha A B + beta C: a dense layer. */
tutti_status build_gemm(struct step *step)
{
    tutti_tensor list[3];
    tutti_shape shape = { 0 }, weight = { 0 }, bias = { 0 };
    const float alpha = step_number(step, "alpha", 1), beta = step_number(step, "beta", 1);
    const struct value *c = step_input(step, 2);
    tutti_status status = step_sample(step, 0, &list[0], &shape);
    if (status == TUTTI_OK) status = step_tensor(step, 1, &list[1]);
    if (status == TUTTI_OK) status = value_shape(step->import, step_input(step, 1), &weight);
    if (status == TUTTI_OK && c) status = step_tensor(step, 2, &list[2]);
    if (status == TUTTI_OK && c) status = value_shape(step->import, c, &bias);
    if (status != TUTTI_OK) return status;
    if (step_integer(step, "transA", 0) || step_input(step, 1)->batched || (c && c->batched) || shape.rank != 1)
        return step_refuse("its first input must depend on the samples, and the others must not");
    if (!step_integer(step, "transB", 0)) list[1] = step_permuted(step, list[1], (int[]) { 1, 0 }, weight.rank);
    const int units = step_integer(step, "transB", 0) ? 0 : 1;
    const bool direct = c && alpha == 1 && beta == 1 && bias.rank == 1 && bias.sizes[0] == weight.sizes[units];
    tutti_tensor y = scaled(step, step_plain(step, "dense", list, direct ? 3 : 2), alpha);
    if (!c || direct) return step_done(step, y, true);
    if (bias.rank == 2 && bias.sizes[0] != 1) return step_refuse("its third input has a size along the batch");
    if (bias.rank == 2) list[2] = step_reshape(step, list[2], &(tutti_shape) { .rank = 1, .sizes = { bias.sizes[1] } });
    y = step_plain(step, "add", (tutti_tensor[]) { y, scaled(step, list[2], beta) }, 2);
    return step_done(step, y, true);
}

/* A vector for each sample is a matrix of one row. */
static tutti_status vector_by_matrix(struct step *step, tutti_tensor x, tutti_tensor matrix, const tutti_shape *shape)
{
    const tutti_shape row = { .rank = 2, .sizes = { 1, shape->sizes[0] } };
    tutti_shape product = { 0 };
    tutti_network *network = step->import->network;
    x = step_reshape(step, x, &row);
    x = step_plain(step, "matmul", (tutti_tensor[]) { x, matrix }, 2);
    if (x.id < 0) return tutti_network_status(network);
    const tutti_status status = tutti_shape_of(network, x, &product);
    if (status != TUTTI_OK) return status;
    return step_done(step, step_reshape(step, x, &(tutti_shape) { .rank = 1, .sizes = { product.sizes[1] } }), true);
}

tutti_status build_matmul(struct step *step)
{
    tutti_tensor pair[2];
    tutti_shape shapes[2] = { { 0 } };
    tutti_status status = TUTTI_OK;
    bool batched[2] = { false };
    for (size_t i = 0; i < 2 && status == TUTTI_OK; i++) {
        status = step_tensor(step, i, &pair[i]);
        if (status != TUTTI_OK) return status;
        batched[i] = step_input(step, i)->batched;
        status = value_shape(step->import, step_input(step, i), &shapes[i]);
    }
    if (status != TUTTI_OK) return status;
    if (batched[0] && !batched[1] && shapes[0].rank == 1 && shapes[1].rank == 2)
        return vector_by_matrix(step, pair[0], pair[1], &shapes[0]);
    if (batched[0] && batched[1] && shapes[0].rank != shapes[1].rank)
        return step_refuse("its inputs have different numbers of axes");
    return step_done(step, step_plain(step, "matmul", pair, 2), batched[0] || batched[1]);
}
