/* Convolutions and poolings along one to three axes. */
#include "onnx/operators.h"

#include "base/memory.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* "strides=2,2 ", if the node has the attribute. */
static tutti_status append_list(const struct step *step, struct text *text, const char *name, const char *word)
{
    size_t count;
    const int64_t *list = step_integers(step, name, &count);
    if (!list || count == 0) return TUTTI_OK;
    if (count > 6) return step_refuse("%s has %zu numbers: 1 to 3 axes are read", name, count);
    text_append(text, "%s=%s ", word, list_print(list, (int)count).text);
    return TUTTI_OK;
}

/* Reads the attributes that all operators have in common, as tutti_op() takes them. */
static tutti_status read_sliding(const struct step *step, struct text *text)
{
    static const char *const names[] = { "kernel_shape", "strides", "dilations" };
    static const char *const paddings[][2] = { { "SAME_UPPER", "same_upper" }, { "SAME_LOWER", "same_lower" },
        { "VALID", "valid" } };
    tutti_status status = TUTTI_OK;
    const char *padding = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && status == TUTTI_OK; i++)
        status = append_list(step, text, names[i], names[i]);
    for (size_t i = 0; i < sizeof paddings / sizeof *paddings; i++)
        if (step_says(step, "auto_pad", paddings[i][0])) padding = paddings[i][1];
    if (padding)
        text_append(text, "auto_pad=%s ", padding);
    else if (status == TUTTI_OK)
        status = append_list(step, text, "pads", "pads");
    return status;
}

/* Adds the operation and frees the text. */
static tutti_status add(const struct step *step, const char *operation, const struct operand *x,
    const tutti_tensor *inputs, int count, struct text *text, tutti_status status)
{
    if (status == TUTTI_OK && text->failed) status = TUTTI_NO_MEMORY;
    if (status == TUTTI_OK)
        status = step_done_rows(step, 0, step_op(step, operation, inputs, count, "%s", text->data), x);
    text_free(text);
    return status;
}

/* Conv and ConvTranspose. */
tutti_status build_conv(struct step *step)
{
    struct operand x, weight, bias;
    const bool biased = step_input(step, 2) != NULL;
    tutti_status status = step_operand(step, 0, &x);
    if (status == TUTTI_OK && !x.place.batched && !step->import->options->whole && !strcmp(step->operation, "conv"))
        return step_conv_of_weight(step, &x);
    if (status == TUTTI_OK) status = step_rows(step, 0, &x);
    if (status == TUTTI_OK) status = step_fixed(step, 1, &weight);
    if (status == TUTTI_OK && biased) status = step_fixed(step, 2, &bias);
    return status == TUTTI_OK ? step_conv(step, step->operation, &x, &weight, biased ? &bias : NULL) : status;
}

tutti_status step_conv(const struct step *step, const char *operation, const struct operand *x,
    const struct operand *weight, const struct operand *bias)
{
    struct text text = { 0 };
    const bool transposed = !strcmp(operation, "conv_transpose");
    text_append(&text, "group=%" PRId64 " ", step_integer(step, "group", 1));
    tutti_status status = read_sliding(step, &text);
    if (status == TUTTI_OK && transposed) status = append_list(step, &text, "output_padding", "output_padding");
    if (status == TUTTI_OK && transposed) status = append_list(step, &text, "output_shape", "output_shape");
    const tutti_tensor inputs[] = { x->tensor, weight->tensor, bias ? bias->tensor : weight->tensor };
    return add(step, operation, x, inputs, bias ? 3 : 2, &text, status);
}

/* ------------------------------------------------------------------------------------------------------- Col2Im ----
 */

/* Along each axis: the image, the window, and how many windows there are. */
struct columns {
    int rank;
    int64_t image[3], block[3], strides[3], dilations[3], pads[6], out[3], more[3];
};

static void read_or_fill(const struct step *step, const char *name, int64_t otherwise, int64_t *list, int count)
{
    size_t said;
    const int64_t *numbers = step_integers(step, name, &said);
    for (int i = 0; i < count; i++) list[i] = numbers && said == (size_t)count ? numbers[i] : otherwise;
}

static tutti_status read_columns(const struct step *step, struct columns *c)
{
    enum { LARGEST = 1 << 20 };
    int blocks = 0;
    tutti_status status = step_list(step, 1, c->image, 3, &c->rank);
    if (status == TUTTI_OK) status = step_list(step, 2, c->block, 3, &blocks);
    if (status != TUTTI_OK) return status;
    if (c->rank < 1 || blocks != c->rank) return fail(TUTTI_FORMAT, "its shapes have %d and %d axes", c->rank, blocks);
    read_or_fill(step, "strides", 1, c->strides, c->rank);
    read_or_fill(step, "dilations", 1, c->dilations, c->rank);
    read_or_fill(step, "pads", 0, c->pads, 2 * c->rank);
    for (int i = 0; i < c->rank; i++) {
        const int64_t list[] = { c->image[i], c->block[i], c->strides[i], c->dilations[i], c->pads[i] + 1,
            c->pads[c->rank + i] + 1 };
        for (size_t k = 0; k < sizeof list / sizeof *list; k++)
            if (list[k] < 1 || list[k] > LARGEST) return step_refuse("a size of axis %d is %" PRId64, i, list[k]);
        const int64_t span = c->dilations[i] * (c->block[i] - 1) + 1;
        const int64_t room = c->image[i] + c->pads[i] + c->pads[c->rank + i] - span;
        if (room < 0) return fail(TUTTI_FORMAT, "its windows are larger than the image");
        c->out[i] = room / c->strides[i] + 1;
        c->more[i] = room % c->strides[i];
    }
    return TUTTI_OK;
}

/* Weights of a transposed convolution that puts element j of a window at place j. */
static tutti_tensor spread_weights(const struct step *step, const struct columns *c, int64_t channels, int64_t each)
{
    enum { MOST = 1 << 22 };
    tutti_shape shape = { .rank = c->rank + 2, .sizes = { channels * each, 1 } };
    for (int i = 0; i < c->rank; i++) shape.sizes[i + 2] = c->block[i];
    if (each > MOST / each || channels > MOST / (each * each)) {
        (void)step_refuse("its windows have more than %d elements", MOST);
        return (tutti_tensor) { -1 };
    }
    float *weights = memory_new((size_t)(channels * each * each), sizeof *weights);
    if (!weights) return (tutti_tensor) { -1 };
    for (int64_t i = 0; i < channels * each; i++) weights[i * each + i % each] = 1;
    const tutti_tensor made = tutti_constant(step->import->network, NULL, shape, weights);
    free(weights);
    return made;
}

/* Adds windows up to an image. */
tutti_status build_col2im(struct step *step)
{
    struct operand x;
    struct columns c = { 0 };
    struct text text = { 0 };
    int64_t each = 1, count = 1;
    tutti_status status = step_rows(step, 0, &x);
    if (status == TUTTI_OK) status = read_columns(step, &c);
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
    const tutti_tensor list[] = { step_reshape(step, x.tensor, &shape), spread_weights(step, &c, channels, each) };
    if (list[1].id < 0) return TUTTI_UNSUPPORTED;
    text_append(&text, "group=%" PRId64 " strides=%s ", channels, list_print(c.strides, c.rank).text);
    text_append(
        &text, "dilations=%s pads=%s ", list_print(c.dilations, c.rank).text, list_print(c.pads, 2 * c.rank).text);
    text_append(&text, "output_padding=%s", list_print(c.more, c.rank).text);
    return add(step, "conv_transpose", &x, list, 2, &text, TUTTI_OK);
}

/* ------------------------------------------------------------------------------------------------------ poolings ----
 */

/* MaxPool, AveragePool and LpPool. */
tutti_status build_pool(struct step *step)
{
    struct operand x;
    struct text text = { 0 };
    tutti_status status = step_rows(step, 0, &x);
    if (status != TUTTI_OK) return status;
    text_append(&text, "ceil_mode=%d ", step_integer(step, "ceil_mode", 0) != 0);
    if (!strcmp(step->operation, "average_pool"))
        text_append(&text, "count_include_pad=%d ", step_integer(step, "count_include_pad", 0) != 0);
    if (!strcmp(step->operation, "lp_pool")) text_append(&text, "p=%" PRId64 " ", step_integer(step, "p", 2));
    status = read_sliding(step, &text);
    if (status == TUTTI_OK && text.failed) status = TUTTI_NO_MEMORY;
    const tutti_tensor y =
        status == TUTTI_OK ? step_op(step, step->operation, &x.tensor, 1, "%s", text.data) : x.tensor;
    text_free(&text);
    if (status == TUTTI_OK) status = step_done_rows(step, 0, y, &x);
    return status == TUTTI_OK && step_output(step, 1) ? step_max_pool_indices(step, &x, y) : status;
}

/* One window: all of the image. */
tutti_status build_global_pool(struct step *step)
{
    struct operand x;
    struct text text = { 0 };
    const tutti_status status = step_rows(step, 0, &x);
    const bool mean = !strcmp(step->operation, "reduce_mean"), max = !strcmp(step->operation, "reduce_max");
    if (status != TUTTI_OK) return status;
    if (x.shape.rank < 2) return step_refuse("its input has no axis behind the channels");
    if (x.shape.rank == 3 && mean)
        return step_done_rows(step, 0, step_plain(step, "global_average_pool", &x.tensor, 1), &x);
    if (x.shape.rank == 3 && max) return step_done_rows(step, 0, step_plain(step, "global_max_pool", &x.tensor, 1), &x);
    if (mean || max)
        for (int i = 1; i < x.shape.rank; i++) text_append(&text, "%s%d", i > 1 ? "," : "axes=", i);
    else
        text_append(&text, "p=%" PRId64 " kernel_shape=%s", step_integer(step, "p", 2),
            list_print(x.shape.sizes + 1, x.shape.rank - 1).text);
    return add(step, step->operation, &x, &x.tensor, 1, &text, status);
}
