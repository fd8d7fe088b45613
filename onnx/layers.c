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
    struct operand x, weight, bias;
    struct window w;
    const bool biased = step_input(step, 2) != NULL;
    tutti_status status = step_rows(step, 0, &x);
    if (status == TUTTI_OK) status = step_fixed(step, 1, &weight);
    const tutti_shape *kernel = &weight.shape;
    if (status == TUTTI_OK && kernel->rank != 4) status = step_refuse("its weight has %d axes, not 4", kernel->rank);
    if (status == TUTTI_OK) status = read_window(step, &x.shape, kernel->sizes + 2, &w);
    if (status == TUTTI_OK && biased) status = step_fixed(step, 2, &bias);
    if (status != TUTTI_OK) return status;
    pad_apart(step, &w, 0, &x.tensor);
    return step_done_rows(step, 0,
        tutti_conv2d(step->import->network, x.tensor, kernel->sizes[0], kernel->sizes[2],
            &(tutti_conv2d_options) { .name = layer_name(step),
                .stride = w.strides[0],
                .padding = w.before[0],
                .dilation = w.dilations[0],
                .groups = step_integer(step, "group", 1),
                .kernel_w = kernel->sizes[3],
                .stride_w = w.strides[1],
                .padding_w = padding_w(&w),
                .dilation_w = w.dilations[1],
                .no_bias = !biased,
                .weight = &weight.tensor,
                .bias = biased ? &bias.tensor : NULL }),
        &x);
}

static tutti_status read_pool(const struct step *step, struct operand *x, struct window *w, tutti_pool_options *options)
{
    tutti_status status = step_rows(step, 0, x);
    if (status == TUTTI_OK) status = read_window(step, &x->shape, NULL, w);
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
    struct operand x;
    struct window w;
    tutti_pool_options options;
    const tutti_status status = read_pool(step, &x, &w, &options);
    if (status != TUTTI_OK) return status;
    if (step_output(step, 1)) return step_refuse("its indices are not available");
    pad_apart(step, &w, -FLT_MAX, &x.tensor);
    options.padding = w.before[0];
    options.padding_w = padding_w(&w);
    return step_done_rows(step, 0, tutti_max_pool(step->import->network, x.tensor, w.kernel[0], &options), &x);
}

tutti_status build_average_pool(struct step *step)
{
    struct operand x;
    struct window w;
    tutti_pool_options options;
    const tutti_status status = read_pool(step, &x, &w, &options);
    if (status != TUTTI_OK) return status;
    options.exclude_padding = step_integer(step, "count_include_pad", 0) == 0;
    if (options.exclude_padding && (w.before[0] != w.behind[0] || w.before[1] != w.behind[1]))
        return step_refuse("padding that differs before and behind, and does not count, is not read");
    pad_apart(step, &w, 0, &x.tensor);
    options.padding = w.before[0];
    options.padding_w = padding_w(&w);
    return step_done_rows(step, 0, tutti_average_pool(step->import->network, x.tensor, w.kernel[0], &options), &x);
}

tutti_status build_global_pool(struct step *step)
{
    struct operand x;
    tutti_network *network = step->import->network;
    const tutti_status status = step_rows(step, 0, &x);
    if (status != TUTTI_OK) return status;
    const bool mean = !strcmp(step->node->op_type, "GlobalAveragePool");
    x.tensor = mean ? tutti_global_average_pool(network, x.tensor) : tutti_global_max_pool(network, x.tensor);
    return step_done_rows(step, 0, x.tensor, &x);
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

/* A sample [rows, C, ...] as [C, rows, ...] and back: normalised channels come first. */
static tutti_tensor swap_front(const struct step *step, tutti_tensor x, int rank)
{
    int order[TUTTI_MAX_RANK] = { 1, 0 };
    for (int i = 2; i < rank; i++) order[i] = i;
    return step_permuted(step, x, order, rank);
}

/* [C, all other elements], which is normalised over the samples and the other elements. */
static tutti_status batch_norm(struct step *step, struct operand *x, const tutti_batch_norm_options *options)
{
    const bool whole = x->place.axis == HIDDEN;
    tutti_shape front = x->shape, flat = { .rank = 3, .sizes = { 0, 1, 1 } };
    if (whole && x->shape.rank > 1) {
        x->tensor = swap_front(step, x->tensor, x->shape.rank);
        front.sizes[0] = x->shape.sizes[1];
        front.sizes[1] = x->shape.sizes[0];
    }
    flat.sizes[0] = front.sizes[0];
    for (int i = 1; i < front.rank; i++) flat.sizes[2] *= front.sizes[i];
    const bool image = !whole && (front.rank == 1 || front.rank == 3);
    tutti_tensor y = image ? x->tensor : step_reshape(step, x->tensor, &flat);
    y = tutti_batch_norm(step->import->network, y, options);
    if (!image) y = step_reshape(step, y, &front);
    if (whole && x->shape.rank > 1) y = swap_front(step, y, x->shape.rank);
    return step_done(step, y, x->place);
}

tutti_status build_batch_normalization(struct step *step)
{
    struct operand x;
    const float momentum = 1 - step_number(step, "momentum", 0.9f);
    tutti_status status = step_batched(step, 0, &x);
    if (status != TUTTI_OK) return status;
    if ((x.place.axis != HIDDEN && x.place.axis != 0) || x.place.rows != 1 || x.place.ahead != 1 || x.shape.rank < 1)
        return step_refuse("the batch must be its first axis");
    const int64_t channels = x.shape.sizes[x.place.axis == HIDDEN && x.shape.rank > 1];
    if (step->node->n_input != NORM_PARTS + 1) return fail(TUTTI_FORMAT, "it needs 5 inputs");
    if (!(momentum > 0)) return step_refuse("its momentum must be less than 1");
    char *layer = norm_name(step);
    if (!layer) return TUTTI_NO_MEMORY;
    status = batch_norm(step, &x,
        &(tutti_batch_norm_options) {
            .name = layer, .epsilon = step_number(step, "epsilon", 1e-5f), .momentum = momentum });
    for (size_t i = 0; i < NORM_PARTS && status == TUTTI_OK; i++) status = set_part(step, layer, i, channels);
    free(layer);
    return status;
}

/* --------------------------------------------------------------------------------------------------- products ---- */

static tutti_tensor scaled(const struct step *step, tutti_tensor x, float factor)
{
    return factor == 1 ? x : step_op(step, "scale", &x, 1, "factor=%.9g", (double)factor);
}

/* y = alpha A B, as a dense layer, where only A depends on the samples. *biased: `bias` was added. */
static tutti_status gemm_dense(
    struct step *step, const struct operand *a, struct operand *b, const struct operand *bias, tutti_tensor *y)
{
    if (step_integer(step, "transA", 0))
        return step_refuse("its first input is transposed, and depends on the samples");
    if (!step_integer(step, "transB", 0)) b->tensor = step_permuted(step, b->tensor, (int[]) { 1, 0 }, b->shape.rank);
    const tutti_tensor list[] = { a->tensor, b->tensor, bias ? bias->tensor : b->tensor };
    *y = step_plain(step, "dense", list, bias ? 3 : 2);
    return y->id < 0 ? tutti_network_status(step->import->network) : TUTTI_OK;
}

/* y = alpha A B + beta C */
tutti_status build_gemm(struct step *step)
{
    struct operand a, b, c = { .shape = { 0 } };
    const float alpha = step_number(step, "alpha", 1), beta = step_number(step, "beta", 1);
    const int transposed_a = step_integer(step, "transA", 0) != 0, transposed_b = step_integer(step, "transB", 0) != 0;
    const bool has_c = step_input(step, 2) != NULL;
    tutti_status status = step_operand(step, 0, &a);
    if (status == TUTTI_OK) status = step_operand(step, 1, &b);
    if (status == TUTTI_OK && has_c) status = step_operand(step, 2, &c);
    if (status != TUTTI_OK) return status;
    if (operand_rank(&a) != 2 || operand_rank(&b) != 2) return step_refuse("its inputs must be matrices");
    struct place place = a.place.batched ? a.place : b.place;
    tutti_tensor y;
    const bool rows = a.place.batched && a.place.axis != HIDDEN;
    if (rows && (b.place.batched || a.place.axis != 0))
        return step_refuse("only its first input may depend on the samples, along its first axis");
    if (!rows && b.place.batched && b.place.axis != HIDDEN)
        return step_refuse("its second input must not depend on the samples");
    const bool direct = rows && has_c && alpha == 1 && beta == 1 && !c.place.batched && c.shape.rank == 1 &&
        c.shape.sizes[0] == b.shape.sizes[!transposed_b];
    if (rows)
        status = gemm_dense(step, &a, &b, direct ? &c : NULL, &y);
    else
        y = step_op(step, "matmul", (tutti_tensor[]) { a.tensor, b.tensor }, 2, "transpose_a=%d transpose_b=%d",
            transposed_a, transposed_b);
    if (status != TUTTI_OK) return status;
    y = scaled(step, y, alpha);
    if (!has_c || direct) return step_done(step, y, place);
    if (rows && !c.place.batched && c.shape.rank == 2 && (status = step_drop_axis(step, 2, 0, &c)) != TUTTI_OK)
        return status;
    if (!place.batched) place = c.place;
    y = step_plain(step, "add", (tutti_tensor[]) { y, scaled(step, c.tensor, beta) }, 2);
    return step_done(step, y, place);
}

/* The batch must be an axis in front of the matrices, and the same one from the last on. */
static tutti_status check_product(const struct operand *a, const struct operand *b)
{
    const bool hidden = a->place.axis == HIDDEN && b->place.axis == HIDDEN;
    if (a->place.batched && b->place.batched && !hidden &&
        (!place_equal(&a->place, &b->place) || a->shape.rank != b->shape.rank))
        return step_refuse("its inputs have different numbers of axes, or the batch in different places");
    if ((a->place.batched && a->place.axis == operand_rank(a) - 1) ||
        (b->place.batched && b->place.axis != HIDDEN && b->place.axis >= operand_rank(b) - 2) ||
        (a->place.batched && a->place.axis != HIDDEN && a->place.axis == operand_rank(a) - 2 && b->shape.rank > 2))
        return step_refuse("the batch is an axis of its matrices");
    return TUTTI_OK;
}

/* An operand without a batch may have an axis for it. */
static tutti_status without_batch(
    const struct step *step, size_t position, const struct operand *batched, struct operand *x)
{
    const bool whole = !batched->place.batched || batched->place.axis == HIDDEN;
    if (x->place.batched || whole || x->shape.rank < operand_rank(batched) || operand_rank(batched) < 3)
        return TUTTI_OK;
    if (x->shape.rank > operand_rank(batched) || batched->place.axis != 0)
        return step_refuse("input %zu has an axis in front of the batch", position);
    return step_drop_axis(step, position, 0, x);
}

tutti_status build_matmul(struct step *step)
{
    struct operand a, b;
    tutti_status status = step_operand(step, 0, &a);
    if (status == TUTTI_OK) status = step_operand(step, 1, &b);
    if (status == TUTTI_OK) status = check_product(&a, &b);
    if (status == TUTTI_OK) status = without_batch(step, 1, &a, &b);
    if (status == TUTTI_OK) status = without_batch(step, 0, &b, &a);
    if (status != TUTTI_OK) return status;
    const tutti_tensor y = step_plain(step, "matmul", (tutti_tensor[]) { a.tensor, b.tensor }, 2);
    return step_done(step, y, a.place.batched ? a.place : b.place);
}
