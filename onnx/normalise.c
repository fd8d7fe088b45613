/* Normalisations without statistics of the batch. */
#include "onnx/operators.h"

#include <inttypes.h>
#include <string.h>

static double epsilon_of(const struct onnx_node *node)
{
    return (double)node_number(node, "epsilon", 1e-5f);
}

static tutti_status failed(const struct onnx_node *node, tutti_tensor tensor)
{
    return tensor.id < 0 ? tutti_network_status(node->import->network) : TUTTI_OK;
}

/* The tensor's axis for the file's `axis`, from which on all axes are normalised. The batch must not be among
 * them. */
static tutti_status first_axis(const struct operand *x, int64_t axis, int *tensor_axis)
{
    const int rank = operand_rank(x);
    int other;
    tutti_status status = operand_axis(x, axis, tensor_axis);
    for (int64_t i = axis < 0 ? axis + rank : axis; status == TUTTI_OK && i < rank; i++)
        status = operand_axis(x, i, &other);
    return status;
}

/* (x - mean) and 1 / deviation, for the outputs that layer_norm does not have. */
static tutti_status make_statistics(const struct onnx_node *node, const struct operand *x, int axis)
{
    const struct batch_axis batch_axis = x->batch;
    int64_t axes[TUTTI_MAX_RANK];
    const int count = x->shape.rank - axis;
    for (int i = 0; i < count; i++) axes[i] = axis + i;
    const struct list_text list = list_print(axes, count);
    if (!node_output(node, 1) && !node_output(node, 2)) return TUTTI_OK;
    const tutti_tensor mean = node_op(node, "reduce_mean", &x->tensor, 1, "axes=%s", list.text);
    tutti_tensor d = node_plain(node, "sub", (tutti_tensor[]) { x->tensor, mean }, 2);
    d = node_plain(node, "square", &d, 1);
    d = node_op(node, "reduce_mean", &d, 1, "axes=%s", list.text);
    d = node_op(node, "shift", &d, 1, "by=%.9g", epsilon_of(node));
    d = node_op(node, "power", &d, 1, "exponent=-0.5");
    const tutti_status status = node_set_output_at(node, 1, mean, batch_axis);
    return status == TUTTI_OK ? node_set_output_at(node, 2, d, batch_axis) : status;
}

/* layer_norm and rms_norm: x, a scale, and perhaps a bias. */
tutti_status build_layer_normalization(struct onnx_node *node)
{
    struct operand x, others[2];
    int axis = 0, count = 1;
    tutti_status status = node_operand(node, 0, &x);
    if (status == TUTTI_OK) status = first_axis(&x, node_integer(node, "axis", -1), &axis);
    tutti_tensor inputs[3] = { x.tensor };
    for (size_t i = 0; i < 2 && status == TUTTI_OK && node_input(node, i + 1); i++) {
        status = node_operand(node, i + 1, &others[i]);
        if (status == TUTTI_OK) status = node_align(node, i + 1, operand_rank(&x), &x.batch, &others[i]);
        inputs[count++] = others[i].tensor;
    }
    if (status != TUTTI_OK) return status;
    const double epsilon = epsilon_of(node);
    const tutti_tensor y = node_op(node, node->operation, inputs, count, "axis=%d epsilon=%.9g", axis, epsilon);
    status = node_set_output(node, y, x.batch);
    return status == TUTTI_OK && !strcmp(node->operation, "layer_norm") ? make_statistics(node, &x, axis) : status;
}

/* ------------------------------------------------------------------------------------------ groups of channels ---- */

/* [C], or [groups], as [C, 1, ...] for samples of `rank` axes. */
static tutti_tensor for_channels(
    const struct onnx_node *node, const struct operand *scale, int64_t channels, int64_t groups, int rank)
{
    tutti_shape shape = { .rank = rank };
    tutti_tensor tensor = scale->tensor;
    for (int i = 1; i < rank; i++) shape.sizes[i] = 1;
    shape.sizes[0] = channels;
    if (scale->shape.sizes[0] == groups && groups != channels) {
        tensor = node_reshape(node, tensor, &TUTTI_SHAPE(groups, 1));
        tensor = node_op(node, "expand", &tensor, 1, "shape=%" PRId64 ",%" PRId64, groups, channels / groups);
    }
    return node_reshape(node, tensor, &shape);
}

/* Scale and bias come after "unfold", since those of a file without a batch are one for each sample. */
static tutti_status norm_of_groups(struct onnx_node *node, const struct operand *x, int64_t groups, tutti_tensor y)
{
    struct batch_axis batch_axis = x->batch;
    if (batch_is_whole(&batch_axis)) {
        y = node_op(node, "unfold", &y, 1, "size=%" PRId64, batch_axis.rows_per_sample);
        batch_axis.rows_per_sample = 1;
    }
    for (size_t i = 1; i < 3; i++) {
        struct operand factor;
        const tutti_status status = node_operand(node, i, &factor);
        if (status != TUTTI_OK) return status;
        if (operand_has_batch_axis(&factor)) (void)node_as_fixed(node, i, &factor);
        if (factor.shape.rank != 1 || operand_has_batch_axis(&factor))
            return node_refuse("input %zu must be a number for each channel", i);
        const tutti_tensor number = for_channels(node, &factor, x->shape.sizes[0], groups, x->shape.rank);
        y = node_plain(node, i == 1 ? "mul" : "add", (tutti_tensor[]) { y, number }, 2);
    }
    return node_set_output(node, y, batch_axis);
}

tutti_status build_group_normalization(struct onnx_node *node)
{
    struct operand x;
    const int64_t groups = node_integer(node, "num_groups", 0);
    const tutti_status status = node_batch_first(node, 0, &x);
    if (status != TUTTI_OK) return status;
    const tutti_tensor y =
        node_op(node, "group_norm", &x.tensor, 1, "groups=%" PRId64 " epsilon=%.9g", groups, epsilon_of(node));
    return y.id < 0 ? failed(node, y) : norm_of_groups(node, &x, groups, y);
}

tutti_status build_instance_normalization(struct onnx_node *node)
{
    struct operand x;
    const tutti_status status = node_batch_first(node, 0, &x);
    if (status != TUTTI_OK) return status;
    const tutti_tensor y = node_op(node, "instance_norm", &x.tensor, 1, "epsilon=%.9g", epsilon_of(node));
    return y.id < 0 ? failed(node, y) : norm_of_groups(node, &x, x.shape.sizes[0], y);
}

tutti_status build_lrn(struct onnx_node *node)
{
    struct operand x;
    const double alpha = (double)node_number(node, "alpha", 1e-4f), beta = (double)node_number(node, "beta", 0.75f);
    const double bias = (double)node_number(node, "bias", 1);
    const tutti_status status = node_batch_first(node, 0, &x);
    if (status != TUTTI_OK) return status;
    const tutti_tensor y = node_op(node, "lrn", &x.tensor, 1, "size=%" PRId64 " alpha=%.9g beta=%.9g bias=%.9g",
        node_integer(node, "size", 0), alpha, beta, bias);
    return node_set_output_batch_first(node, 0, y, &x);
}

/* ------------------------------------------------------------------------------------------------- along axes ---- */

tutti_status build_mean_variance_normalization(struct onnx_node *node)
{
    struct operand x;
    static const int64_t images[] = { 0, 2, 3 };
    int64_t tensor_axes[TUTTI_MAX_RANK];
    size_t count;
    const int64_t *axes = node_integers(node, "axes", &count);
    tutti_status status = node_operand(node, 0, &x);
    if (!axes) {
        axes = images;
        count = sizeof images / sizeof *images;
    }
    if (count == 0 || count > TUTTI_MAX_RANK) return fail(TUTTI_FORMAT, "axes has %zu numbers", count);
    for (size_t i = 0; i < count && status == TUTTI_OK; i++) {
        int axis = 0;
        status = operand_axis(&x, axes[i], &axis);
        tensor_axes[i] = axis;
    }
    if (status != TUTTI_OK) return status;
    const struct list_text list = list_print(tensor_axes, (int)count);
    return node_set_output(node, node_op(node, "mean_variance_norm", &x.tensor, 1, "axes=%s", list.text), x.batch);
}
