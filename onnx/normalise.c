/* Normalisations without statistics of the batch. */
#include "onnx/operators.h"

#include <inttypes.h>
#include <string.h>

static double epsilon_of(const struct step *step)
{
    return (double)step_number(step, "epsilon", 1e-5f);
}

static tutti_status failed(const struct step *step, tutti_tensor tensor)
{
    return tensor.id < 0 ? tutti_network_status(step->import->network) : TUTTI_OK;
}

/* The tensor's axis for the file's `axis`, from which on all axes are normalised. The batch must not be among
 * them. */
static tutti_status first_axis(const struct operand *x, int64_t axis, int *of_tensor)
{
    const int rank = operand_rank(x);
    int other;
    tutti_status status = operand_axis(x, axis, of_tensor);
    for (int64_t i = axis < 0 ? axis + rank : axis; status == TUTTI_OK && i < rank; i++)
        status = operand_axis(x, i, &other);
    return status;
}

/* (x - mean) and 1 / deviation, for the outputs that layer_norm does not have. */
static tutti_status make_statistics(const struct step *step, const struct operand *x, int axis)
{
    const struct place place = x->place;
    int64_t axes[TUTTI_MAX_RANK];
    const int count = x->shape.rank - axis;
    for (int i = 0; i < count; i++) axes[i] = axis + i;
    const struct list list = list_print(axes, count);
    if (!step_output(step, 1) && !step_output(step, 2)) return TUTTI_OK;
    const tutti_tensor mean = step_op(step, "reduce_mean", &x->tensor, 1, "axes=%s", list.text);
    tutti_tensor d = step_plain(step, "sub", (tutti_tensor[]) { x->tensor, mean }, 2);
    d = step_plain(step, "square", &d, 1);
    d = step_op(step, "reduce_mean", &d, 1, "axes=%s", list.text);
    d = step_op(step, "shift", &d, 1, "by=%.9g", epsilon_of(step));
    d = step_op(step, "power", &d, 1, "exponent=-0.5");
    const tutti_status status = step_made(step, 1, mean, place);
    return status == TUTTI_OK ? step_made(step, 2, d, place) : status;
}

/* layer_norm and rms_norm: x, a scale, and perhaps a bias. */
tutti_status build_layer_normalization(struct step *step)
{
    struct operand x, others[2];
    int axis = 0, count = 1;
    tutti_status status = step_operand(step, 0, &x);
    if (status == TUTTI_OK) status = first_axis(&x, step_integer(step, "axis", -1), &axis);
    tutti_tensor inputs[3] = { x.tensor };
    for (size_t i = 0; i < 2 && status == TUTTI_OK && step_input(step, i + 1); i++) {
        status = step_operand(step, i + 1, &others[i]);
        if (status == TUTTI_OK && others[i].place.batched && !place_equal(&others[i].place, &x.place))
            status = step_refuse("input %zu has the batch in another place", i + 1);
        inputs[count++] = others[i].tensor;
    }
    if (status != TUTTI_OK) return status;
    const double epsilon = epsilon_of(step);
    const tutti_tensor y = step_op(step, step->operation, inputs, count, "axis=%d epsilon=%.9g", axis, epsilon);
    status = step_done(step, y, x.place);
    return status == TUTTI_OK && !strcmp(step->operation, "layer_norm") ? make_statistics(step, &x, axis) : status;
}

/* ------------------------------------------------------------------------------------------ groups of channels ---- */

/* [C], or [groups], as [C, 1, ...] for samples of `rank` axes. */
static tutti_tensor for_channels(
    const struct step *step, const struct operand *scale, int64_t channels, int64_t groups, int rank)
{
    tutti_shape shape = { .rank = rank };
    tutti_tensor tensor = scale->tensor;
    for (int i = 1; i < rank; i++) shape.sizes[i] = 1;
    shape.sizes[0] = channels;
    if (scale->shape.sizes[0] == groups && groups != channels) {
        tensor = step_reshape(step, tensor, &TUTTI_SHAPE(groups, 1));
        tensor = step_op(step, "expand", &tensor, 1, "shape=%" PRId64 ",%" PRId64, groups, channels / groups);
    }
    return step_reshape(step, tensor, &shape);
}

/* Scale and bias come behind "unfold", since those of a file without a batch are one for each sample. */
static tutti_status norm_of_groups(struct step *step, const struct operand *x, int64_t groups, tutti_tensor y)
{
    struct place place = x->place;
    if (place.axis == HIDDEN) {
        y = step_op(step, "unfold", &y, 1, "size=%" PRId64, place.rows);
        place.rows = 1;
    }
    for (size_t i = 1; i < 3; i++) {
        struct operand factor;
        const tutti_status status = step_operand(step, i, &factor);
        if (status != TUTTI_OK) return status;
        if (!operand_is_whole(&factor)) (void)step_as_fixed(step, i, &factor);
        if (factor.shape.rank != 1 || (factor.place.batched && factor.place.axis != HIDDEN))
            return step_refuse("input %zu must be a number for each channel", i);
        const tutti_tensor number = for_channels(step, &factor, x->shape.sizes[0], groups, x->shape.rank);
        y = step_plain(step, i == 1 ? "mul" : "add", (tutti_tensor[]) { y, number }, 2);
    }
    return step_done(step, y, place);
}

tutti_status build_group_normalization(struct step *step)
{
    struct operand x;
    const int64_t groups = step_integer(step, "num_groups", 0);
    const tutti_status status = step_rows(step, 0, &x);
    if (status != TUTTI_OK) return status;
    const tutti_tensor y =
        step_op(step, "group_norm", &x.tensor, 1, "groups=%" PRId64 " epsilon=%.9g", groups, epsilon_of(step));
    return y.id < 0 ? failed(step, y) : norm_of_groups(step, &x, groups, y);
}

tutti_status build_instance_normalization(struct step *step)
{
    struct operand x;
    const tutti_status status = step_rows(step, 0, &x);
    if (status != TUTTI_OK) return status;
    const tutti_tensor y = step_op(step, "instance_norm", &x.tensor, 1, "epsilon=%.9g", epsilon_of(step));
    return y.id < 0 ? failed(step, y) : norm_of_groups(step, &x, x.shape.sizes[0], y);
}

tutti_status build_lrn(struct step *step)
{
    struct operand x;
    const double alpha = (double)step_number(step, "alpha", 1e-4f), beta = (double)step_number(step, "beta", 0.75f);
    const double bias = (double)step_number(step, "bias", 1);
    const tutti_status status = step_rows(step, 0, &x);
    if (status != TUTTI_OK) return status;
    const tutti_tensor y = step_op(step, "lrn", &x.tensor, 1, "size=%" PRId64 " alpha=%.9g beta=%.9g bias=%.9g",
        step_integer(step, "size", 0), alpha, beta, bias);
    return step_done_rows(step, 0, y, &x);
}

/* ------------------------------------------------------------------------------------------------- along axes ---- */

tutti_status build_lp_normalization(struct step *step)
{
    struct operand x;
    int axis = 0;
    tutti_status status = step_operand(step, 0, &x);
    if (status == TUTTI_OK) status = operand_axis(&x, step_integer(step, "axis", -1), &axis);
    if (status != TUTTI_OK) return status;
    const int64_t p = step_integer(step, "p", 2);
    return step_done(step, step_op(step, "lp_norm", &x.tensor, 1, "axis=%d p=%" PRId64, axis, p), x.place);
}

tutti_status build_mean_variance_normalization(struct step *step)
{
    struct operand x;
    static const int64_t images[] = { 0, 2, 3 };
    int64_t of_tensor[TUTTI_MAX_RANK];
    size_t count;
    const int64_t *axes = step_integers(step, "axes", &count);
    tutti_status status = step_operand(step, 0, &x);
    if (!axes) {
        axes = images;
        count = sizeof images / sizeof *images;
    }
    if (count == 0 || count > TUTTI_MAX_RANK) return fail(TUTTI_FORMAT, "axes has %zu numbers", count);
    for (size_t i = 0; i < count && status == TUTTI_OK; i++) {
        int axis = 0;
        status = operand_axis(&x, axes[i], &axis);
        of_tensor[i] = axis;
    }
    if (status != TUTTI_OK) return status;
    const struct list list = list_print(of_tensor, (int)count);
    return step_done(step, step_op(step, "mean_variance_norm", &x.tensor, 1, "axes=%s", list.text), x.place);
}
