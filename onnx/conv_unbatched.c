/* Conv whose input has no batch, such as a table of positions or weights: for each element of the kernel, a product of
 * matrices with a part of the input. */
#include "onnx/operators.h"

#include <inttypes.h>
#include <string.h>

enum { MOST_TAPS = 64 };

/* Sizes of x [samples, group channels, image..] and of the weight [outputs, channels, kernel..]. */
struct sizes {
    int space; /* axes */
    int64_t samples, group, channels, outputs;
    int64_t image[3], kernel[3], out[3], strides[3], dilations[3], pads[6];
};

/* Reads the node's list of `count` numbers; without one, all are `fallback`. */
static tutti_status read_list(
    const struct onnx_node *node, const char *name, int64_t fallback, int64_t *list, int count)
{
    size_t given = 0;
    const int64_t *numbers = node_integers(node, name, &given);
    if (given && given != (size_t)count) return fail(TUTTI_FORMAT, "%s has %zu numbers, not %d", name, given, count);
    for (int i = 0; i < count; i++) list[i] = numbers && given ? numbers[i] : fallback;
    return TUTTI_OK;
}

static tutti_status read_sizes(
    const struct onnx_node *node, const struct operand *x, const struct operand *weight, struct sizes *s)
{
    enum { LARGEST = 1 << 20 };
    int64_t taps = 1;
    s->space = x->shape.rank - 2;
    if (s->space < 1 || s->space > 3 || weight->shape.rank != x->shape.rank)
        return node_refuse("its input has %d axes, and its weight %d", x->shape.rank, weight->shape.rank);
    if (node_attribute_is(node, "auto_pad", "SAME_UPPER") || node_attribute_is(node, "auto_pad", "SAME_LOWER"))
        return node_refuse("auto_pad of an input that does not depend on the samples is not read");
    s->samples = x->shape.sizes[0];
    s->group = node_integer(node, "group", 1);
    s->outputs = weight->shape.sizes[0];
    s->channels = weight->shape.sizes[1];
    if (s->group < 1 || s->outputs % s->group || s->group > LARGEST || s->channels * s->group != x->shape.sizes[1])
        return fail(TUTTI_FORMAT, "its weight does not fit %" PRId64 " channels", x->shape.sizes[1]);
    tutti_status status = read_list(node, "strides", 1, s->strides, s->space);
    if (status == TUTTI_OK) status = read_list(node, "dilations", 1, s->dilations, s->space);
    if (status == TUTTI_OK && !node_attribute_is(node, "auto_pad", "VALID")) /* which has no pads: they stay 0 */
        status = read_list(node, "pads", 0, s->pads, 2 * s->space);
    if (status != TUTTI_OK) return status;
    for (int i = 0; i < s->space; i++) {
        const int64_t before = s->pads[i], after = s->pads[s->space + i];
        s->image[i] = x->shape.sizes[i + 2];
        s->kernel[i] = weight->shape.sizes[i + 2];
        const int64_t list[] = { s->strides[i], s->dilations[i], before + 1, after + 1, s->kernel[i] };
        for (size_t k = 0; k < sizeof list / sizeof *list; k++)
            if (list[k] < 1 || list[k] > LARGEST) return node_refuse("a size of axis %d is %" PRId64, i, list[k]);
        const int64_t room = s->image[i] + before + after - s->dilations[i] * (s->kernel[i] - 1) - 1;
        if (room < 0) return fail(TUTTI_FORMAT, "its kernel is larger than the image");
        s->out[i] = room / s->strides[i] + 1;
        taps = taps > MOST_TAPS ? taps : taps * s->kernel[i];
    }
    if (taps <= MOST_TAPS) return TUTTI_OK;
    return node_refuse("its input does not depend on the samples, and its kernel has more than %d elements", MOST_TAPS);
}

static tutti_tensor padded(const struct onnx_node *node, tutti_tensor x, const struct sizes *s)
{
    int64_t before[5] = { 0 }, after[5] = { 0 };
    bool any = false;
    for (int i = 0; i < s->space; i++) {
        before[i + 2] = s->pads[i];
        after[i + 2] = s->pads[s->space + i];
        any |= before[i + 2] || after[i + 2];
    }
    if (!any) return x;
    return node_op(node, "pad", &x, 1, "before=%s after=%s", list_print(before, s->space + 2).text,
        list_print(after, s->space + 2).text);
}

/* The product of one element of the kernel: [samples, group, outputs of a group, positions]. */
static tutti_tensor tap(
    const struct onnx_node *node, tutti_tensor x, tutti_tensor weight, const struct sizes *s, const int64_t *element)
{
    int64_t starts[3], ends[3], next[3], axes[3], positions = 1;
    for (int i = 0; i < s->space; i++) {
        axes[i] = i + 2;
        starts[i] = element[i] * s->dilations[i];
        ends[i] = starts[i] + (s->out[i] - 1) * s->strides[i] + 1;
        next[i] = element[i] + 1;
        positions *= s->out[i];
    }
    x = node_op(node, "slice", &x, 1, "axes=%s starts=%s ends=%s steps=%s", list_print(axes, s->space).text,
        list_print(starts, s->space).text, list_print(ends, s->space).text, list_print(s->strides, s->space).text);
    x = node_reshape(node, x, &TUTTI_SHAPE(s->samples, s->group, s->channels, positions));
    weight = node_op(node, "slice", &weight, 1, "axes=%s starts=%s ends=%s", list_print(axes, s->space).text,
        list_print(element, s->space).text, list_print(next, s->space).text);
    weight = node_reshape(node, weight, &TUTTI_SHAPE(1, s->group, s->outputs / s->group, s->channels));
    return node_plain(node, "matmul", (tutti_tensor[]) { weight, x }, 2);
}

/* The next element of the kernel. False: there is none. */
static bool advance(const struct sizes *s, int64_t *element)
{
    for (int i = s->space - 1; i >= 0; i--) {
        if (++element[i] < s->kernel[i]) return true;
        element[i] = 0;
    }
    return false;
}

tutti_status node_conv_unbatched(const struct onnx_node *node, const struct operand *x)
{
    struct sizes s = { 0 };
    struct operand weight, bias;
    tutti_status status = node_fixed(node, 1, &weight);
    if (status == TUTTI_OK && node_input(node, 2)) status = node_fixed(node, 2, &bias);
    if (status == TUTTI_OK) status = read_sizes(node, x, &weight, &s);
    if (status != TUTTI_OK) return status;
    const tutti_tensor image = padded(node, x->tensor, &s);
    int64_t element[3] = { 0 };
    tutti_tensor y = tap(node, image, weight.tensor, &s, element);
    while (advance(&s, element)) y = node_binary(node, "add", y, tap(node, image, weight.tensor, &s, element));
    tutti_shape shape = { .rank = s.space + 2, .sizes = { s.samples, s.outputs } };
    tutti_shape of_bias = { .rank = s.space + 1, .sizes = { s.outputs } };
    for (int i = 0; i < s.space; i++) {
        shape.sizes[i + 2] = s.out[i];
        of_bias.sizes[i + 1] = 1;
    }
    y = node_reshape(node, y, &shape);
    if (node_input(node, 2)) y = node_binary(node, "add", y, node_reshape(node, bias.tensor, &of_bias));
    return node_set_output(node, y, x->batch);
}
