/* Convolutions and poolings along one to three axes. */
#include "onnx/operators.h"

#include "base/memory.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* "strides=2,2 ", if the node has the attribute. */
static tutti_status append_list(const struct onnx_node *node, struct text *text, const char *name, const char *word)
{
    size_t count;
    const int64_t *list = node_integers(node, name, &count);
    if (!list || count == 0) return TUTTI_OK;
    if (count > 6) return node_refuse("%s has %zu numbers: 1 to 3 axes are read", name, count);
    text_append(text, "%s=%s ", word, list_print(list, (int)count).text);
    return TUTTI_OK;
}

/* Reads the attributes that all operators have in common, as tutti_op() takes them. */
static tutti_status read_sliding(const struct onnx_node *node, struct text *text)
{
    static const char *const names[] = { "kernel_shape", "strides", "dilations" };
    static const char *const paddings[][2] = { { "SAME_UPPER", "same_upper" }, { "SAME_LOWER", "same_lower" },
        { "VALID", "valid" } };
    tutti_status status = TUTTI_OK;
    const char *padding = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && status == TUTTI_OK; i++)
        status = append_list(node, text, names[i], names[i]);
    for (size_t i = 0; i < sizeof paddings / sizeof *paddings; i++)
        if (node_attribute_is(node, "auto_pad", paddings[i][0])) padding = paddings[i][1];
    if (padding)
        text_append(text, "auto_pad=%s ", padding);
    else if (status == TUTTI_OK)
        status = append_list(node, text, "pads", "pads");
    return status;
}

/* Adds the operation and frees the text. */
static tutti_status add(const struct onnx_node *node, const char *operation, const struct operand *x,
    const tutti_tensor *inputs, int count, struct text *text, tutti_status status)
{
    if (status == TUTTI_OK && text->failed) status = TUTTI_NO_MEMORY;
    if (status == TUTTI_OK)
        status = node_set_output_batch_first(node, 0, node_op(node, operation, inputs, count, "%s", text->data), x);
    text_free(text);
    return status;
}

/* Conv and ConvTranspose. */
tutti_status build_conv(struct onnx_node *node)
{
    struct operand x, weight, bias;
    const bool biased = node_input(node, 2) != NULL;
    tutti_status status = node_operand(node, 0, &x); /* it may have no batch: then node_conv_unbatched() */
    if (status == TUTTI_OK && !x.batch.batched && !node->import->options->whole && !strcmp(node->operation, "conv"))
        return node_conv_unbatched(node, &x);
    if (status == TUTTI_OK) status = node_batch_first(node, 0, &x);
    if (status == TUTTI_OK) status = node_fixed(node, 1, &weight);
    if (status == TUTTI_OK && biased) status = node_fixed(node, 2, &bias);
    return status == TUTTI_OK ? node_conv(node, node->operation, &x, &weight, biased ? &bias : NULL) : status;
}

tutti_status node_conv(const struct onnx_node *node, const char *operation, const struct operand *x,
    const struct operand *weight, const struct operand *bias)
{
    struct text text = { 0 };
    const bool transposed = !strcmp(operation, "conv_transpose");
    text_append(&text, "group=%" PRId64 " ", node_integer(node, "group", 1));
    tutti_status status = read_sliding(node, &text);
    if (status == TUTTI_OK && transposed) status = append_list(node, &text, "output_padding", "output_padding");
    if (status == TUTTI_OK && transposed) status = append_list(node, &text, "output_shape", "output_shape");
    const tutti_tensor inputs[] = { x->tensor, weight->tensor, bias ? bias->tensor : weight->tensor };
    return add(node, operation, x, inputs, bias ? 3 : 2, &text, status);
}

/* -------------------------------------------------------------------------------------------------- Col2Im ---- */

/* Along each axis: the image, the window, and how many windows there are. */
struct columns {
    int rank;
    int64_t image[3], block[3], strides[3], dilations[3], pads[6], out[3], more[3];
};

static void read_or_fill(const struct onnx_node *node, const char *name, int64_t fallback, int64_t *list, int count)
{
    size_t given;
    const int64_t *numbers = node_integers(node, name, &given);
    for (int i = 0; i < count; i++) list[i] = numbers && given == (size_t)count ? numbers[i] : fallback;
}

static tutti_status read_columns(const struct onnx_node *node, struct columns *c)
{
    enum { LARGEST = 1 << 20 };
    int blocks = 0;
    tutti_status status = node_list(node, 1, c->image, 3, &c->rank);
    if (status == TUTTI_OK) status = node_list(node, 2, c->block, 3, &blocks);
    if (status != TUTTI_OK) return status;
    if (c->rank < 1 || blocks != c->rank) return fail(TUTTI_FORMAT, "its shapes have %d and %d axes", c->rank, blocks);
    read_or_fill(node, "strides", 1, c->strides, c->rank);
    read_or_fill(node, "dilations", 1, c->dilations, c->rank);
    read_or_fill(node, "pads", 0, c->pads, 2 * c->rank);
    for (int i = 0; i < c->rank; i++) {
        const int64_t list[] = { c->image[i], c->block[i], c->strides[i], c->dilations[i], c->pads[i] + 1,
            c->pads[c->rank + i] + 1 };
        for (size_t k = 0; k < sizeof list / sizeof *list; k++)
            if (list[k] < 1 || list[k] > LARGEST) return node_refuse("a size of axis %d is %" PRId64, i, list[k]);
        const int64_t span = c->dilations[i] * (c->block[i] - 1) + 1;
        const int64_t room = c->image[i] + c->pads[i] + c->pads[c->rank + i] - span;
        if (room < 0) return fail(TUTTI_FORMAT, "its windows are larger than the image");
        c->out[i] = room / c->strides[i] + 1;
        c->more[i] = room % c->strides[i];
    }
    return TUTTI_OK;
}

/* Weights of a transposed convolution that puts element j of a window at position j. */
static tutti_tensor spread_weights(
    const struct onnx_node *node, const struct columns *c, int64_t channels, int64_t each)
{
    enum { MOST = 1 << 22 };
    tutti_shape shape = { .rank = c->rank + 2, .sizes = { channels * each, 1 } };
    for (int i = 0; i < c->rank; i++) shape.sizes[i + 2] = c->block[i];
    if (each > MOST / each || channels > MOST / (each * each)) {
        (void)node_refuse("its windows have more than %d elements", MOST);
        return (tutti_tensor) { -1 };
    }
    float *weights = memory_new((size_t)(channels * each * each), sizeof *weights);
    if (!weights) return (tutti_tensor) { -1 };
    for (int64_t i = 0; i < channels * each; i++) weights[i * each + i % each] = 1;
    const tutti_tensor made = tutti_constant(node->import->network, NULL, shape, weights);
    free(weights);
    return made;
}

/* Adds windows up to an image. */
tutti_status build_col2im(struct onnx_node *node)
{
    struct operand x;
    struct columns c = { 0 };
    struct text text = { 0 };
    int64_t each = 1, count = 1;
    tutti_status status = node_batch_first(node, 0, &x);
    if (status == TUTTI_OK) status = read_columns(node, &c);
    if (status != TUTTI_OK) return status;
    tutti_shape shape = { .rank = c.rank + 1, .sizes = { x.shape.sizes[0] } };
    for (int i = 0; i < c.rank; i++) {
        each *= c.block[i];
        count *= c.out[i];
        shape.sizes[i + 1] = c.out[i];
    }
    if (x.shape.rank != 2 || x.shape.sizes[0] % each || x.shape.sizes[1] != count)
        return fail(TUTTI_FORMAT, "its input does not have %" PRId64 " windows of %" PRId64 " elements", count, each);
    const int64_t channels = x.shape.sizes[0] / each;
    const tutti_tensor list[] = { node_reshape(node, x.tensor, &shape), spread_weights(node, &c, channels, each) };
    if (list[1].id < 0) return TUTTI_UNSUPPORTED;
    text_append(&text, "group=%" PRId64 " strides=%s ", channels, list_print(c.strides, c.rank).text);
    text_append(
        &text, "dilations=%s pads=%s ", list_print(c.dilations, c.rank).text, list_print(c.pads, 2 * c.rank).text);
    text_append(&text, "output_padding=%s", list_print(c.more, c.rank).text);
    return add(node, "conv_transpose", &x, list, 2, &text, TUTTI_OK);
}

/* ------------------------------------------------------------------------------------------------ poolings ---- */

/* MaxPool, AveragePool and LpPool. */
tutti_status build_pool(struct onnx_node *node)
{
    struct operand x;
    struct text text = { 0 };
    tutti_status status = node_batch_first(node, 0, &x);
    if (status != TUTTI_OK) return status;
    text_append(&text, "ceil_mode=%d ", node_integer(node, "ceil_mode", 0) != 0);
    if (!strcmp(node->operation, "average_pool"))
        text_append(&text, "count_include_pad=%d ", node_integer(node, "count_include_pad", 0) != 0);
    if (!strcmp(node->operation, "lp_pool")) text_append(&text, "p=%" PRId64 " ", node_integer(node, "p", 2));
    status = read_sliding(node, &text);
    if (status == TUTTI_OK && text.failed) status = TUTTI_NO_MEMORY;
    const tutti_tensor y =
        status == TUTTI_OK ? node_op(node, node->operation, &x.tensor, 1, "%s", text.data) : x.tensor;
    text_free(&text);
    if (status == TUTTI_OK) status = node_set_output_batch_first(node, 0, y, &x);
    return status == TUTTI_OK && node_output(node, 1) ? node_max_pool_indices(node, &x, y) : status;
}

/* One window: all of the image. */
tutti_status build_global_pool(struct onnx_node *node)
{
    struct operand x;
    struct text text = { 0 };
    const tutti_status status = node_batch_first(node, 0, &x);
    const bool mean = !strcmp(node->operation, "reduce_mean"), max = !strcmp(node->operation, "reduce_max");
    if (status != TUTTI_OK) return status;
    if (x.shape.rank < 2) return node_refuse("its input has no axis after the channels");
    if (x.shape.rank == 3 && mean)
        return node_set_output_batch_first(node, 0, node_plain(node, "global_average_pool", &x.tensor, 1), &x);
    if (x.shape.rank == 3 && max)
        return node_set_output_batch_first(node, 0, node_plain(node, "global_max_pool", &x.tensor, 1), &x);
    if (mean || max)
        for (int i = 1; i < x.shape.rank; i++) text_append(&text, "%s%d", i > 1 ? "," : "axes=", i);
    else
        text_append(&text, "p=%" PRId64 " kernel_shape=%s", node_integer(node, "p", 2),
            list_print(x.shape.sizes + 1, x.shape.rank - 1).text);
    return add(node, node->operation, &x, &x.tensor, 1, &text, status);
}
