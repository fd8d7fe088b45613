/* Convolutions and poolings along one to three axes. */
#include "onnx/operators.h"

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

/* The attributes that all have in common, as tutti_op() takes them. */
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
    tutti_status status = step_rows(step, 0, &x);
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
    tutti_network *network = step->import->network;
    const tutti_status status = step_rows(step, 0, &x);
    const bool mean = !strcmp(step->operation, "reduce_mean"), max = !strcmp(step->operation, "reduce_max");
    if (status != TUTTI_OK) return status;
    if (x.shape.rank < 2) return step_refuse("its input has no axis behind the channels");
    if (x.shape.rank == 3 && mean) return step_done_rows(step, 0, tutti_global_average_pool(network, x.tensor), &x);
    if (x.shape.rank == 3 && max) return step_done_rows(step, 0, tutti_global_max_pool(network, x.tensor), &x);
    if (mean || max)
        for (int i = 1; i < x.shape.rank; i++) text_append(&text, "%s%d", i > 1 ? "," : "axes=", i);
    else
        text_append(&text, "p=%" PRId64 " kernel_shape=%s", step_integer(step, "p", 2),
            list_print(x.shape.sizes + 1, x.shape.rank - 1).text);
    return add(step, step->operation, &x, &x.tensor, 1, &text, status);
}
