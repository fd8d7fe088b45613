/* Operators that work element by element, or along axes. */
#include "onnx/operators.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_INPUTS = 8 };

/* ---------------------------------------------------------------------------------------------- broadcasting ---- */

/* Takes the first axis of a parameter or constant away: it stands beside the batch, and has size 1. */
static tutti_status drop_axis(const struct step *step, const tutti_shape *shape, tutti_tensor *tensor)
{
    if (shape->sizes[0] != 1)
        return step_refuse(
            "an input that does not depend on the samples has size %lld along the batch", (long long)shape->sizes[0]);
    if (shape->rank == 1) return TUTTI_OK;
    *tensor = step_reshape(step, *tensor,
        &(tutti_shape) { .rank = shape->rank - 1,
            .sizes = { shape->sizes[1], shape->sizes[2], shape->sizes[3], shape->sizes[4], shape->sizes[5] } });
    return tensor->id < 0 ? tutti_network_status(step->import->network) : TUTTI_OK;
}

tutti_status step_broadcast(const struct step *step, tutti_tensor *tensors, size_t count, bool *batched)
{
    tutti_status status = TUTTI_OK;
    tutti_shape shapes[MOST_INPUTS] = { { 0 } };
    int rank = 0;
    *batched = false;
    if (count < 1 || count > MOST_INPUTS) return step_refuse("it has %zu inputs: 1 to %d are read", count, MOST_INPUTS);
    for (size_t i = 0; i < count; i++) {
        status = step_tensor(step, i, &tensors[i]);
        if (status == TUTTI_OK) status = value_shape(step->import, step_input(step, i), &shapes[i]);
        if (status != TUTTI_OK) return status;
        const bool has_batch = step_input(step, i)->batched;
        *batched |= has_batch;
        if (shapes[i].rank + has_batch > rank) rank = shapes[i].rank + has_batch;
    }
    for (size_t i = 0; i < count && *batched && status == TUTTI_OK; i++) {
        const bool has_batch = step_input(step, i)->batched;
        if (has_batch && shapes[i].rank + 1 != rank)
            return step_refuse("the batch of input %zu would be another axis than the first one", i);
        if (!has_batch && shapes[i].rank == rank) status = drop_axis(step, &shapes[i], &tensors[i]);
    }
    return status;
}

/* Functions of one to three inputs. */
tutti_status build_pointwise(struct step *step)
{
    tutti_tensor tensors[MOST_INPUTS];
    bool batched;
    const size_t count = step->node->n_input;
    const tutti_status status = step_broadcast(step, tensors, count, &batched);
    if (status != TUTTI_OK) return status;
    return step_done(step, step_plain(step, step->operation, tensors, (int)count), batched);
}

/* Functions of one input and `alpha`. */
tutti_status build_alpha(struct step *step)
{
    tutti_tensor x;
    bool batched;
    const float alpha = step_number(step, "alpha", strcmp(step->node->op_type, "LeakyRelu") ? 1 : 0.01f);
    const tutti_status status = step_broadcast(step, &x, 1, &batched);
    if (status != TUTTI_OK) return status;
    return step_done(step, step_op(step, step->operation, &x, 1, "alpha=%.9g", (double)alpha), batched);
}

/* Functions of two inputs, of any number of them. */
tutti_status build_many(struct step *step)
{
    tutti_tensor tensors[MOST_INPUTS] = { { 0 } };
    bool batched;
    const size_t count = step->node->n_input;
    const tutti_status status = step_broadcast(step, tensors, count, &batched);
    if (status != TUTTI_OK) return status;
    for (size_t i = 1; i < count; i++)
        tensors[0] = step_plain(step, step->operation, (tutti_tensor[]) { tensors[0], tensors[i] }, 2);
    return step_done(step, tensors[0], batched);
}

/* ------------------------------------------------------------------------------------------------- functions ---- */

static tutti_tensor constant(const struct step *step, float number)
{
    return tutti_constant(step->import->network, NULL, TUTTI_SHAPE(1), &number);
}

static tutti_tensor binary(const struct step *step, const char *operation, tutti_tensor a, tutti_tensor b)
{
    return step_plain(step, operation, (tutti_tensor[]) { a, b }, 2);
}

tutti_status build_clip(struct step *step)
{
    tutti_tensor x;
    float low, high;
    bool batched;
    tutti_status status = step_broadcast(step, &x, 1, &batched);
    if (status == TUTTI_OK) status = step_scalar(step, 1, -FLT_MAX, &low);
    if (status == TUTTI_OK) status = step_scalar(step, 2, FLT_MAX, &high);
    if (status != TUTTI_OK) return status;
    return step_done(step, step_op(step, "clip", &x, 1, "min=%.9g max=%.9g", (double)low, (double)high), batched);
}

/* min(max(alpha x + beta, 0), 1) */
tutti_status build_hard_sigmoid(struct step *step)
{
    tutti_tensor x;
    bool batched;
    const float alpha = step_number(step, "alpha", 0.2f), beta = step_number(step, "beta", 0.5f);
    const tutti_status status = step_broadcast(step, &x, 1, &batched);
    if (status != TUTTI_OK) return status;
    if (fabsf(alpha - 1.0f / 6) < 1e-7f && beta == 0.5f)
        return step_done(step, step_plain(step, "hard_sigmoid", &x, 1), batched);
    x = step_op(step, "scale", &x, 1, "factor=%.9g", (double)alpha);
    x = binary(step, "add", x, constant(step, beta));
    return step_done(step, step_op(step, "clip", &x, 1, "min=0 max=1"), batched);
}

tutti_status build_gelu(struct step *step)
{
    tutti_tensor x;
    bool batched;
    const tutti_status status = step_broadcast(step, &x, 1, &batched);
    if (status != TUTTI_OK) return status;
    const bool with_tanh = step_says(step, "approximate", "tanh");
    return step_done(step, step_plain(step, with_tanh ? "gelu_tanh" : "gelu", &x, 1), batched);
}

/* A square, as in normalisations that exporters write in parts, needs no logarithm. */
tutti_status build_pow(struct step *step)
{
    tutti_tensor x[2];
    bool batched;
    float exponent = 0;
    tutti_status status = step_broadcast(step, x, 1, &batched);
    const struct value *second = step_input(step, 1);
    if (status == TUTTI_OK && second && second->stored && second->stored->n_dims == 0) {
        status = step_scalar(step, 1, 0, &exponent);
        if (status == TUTTI_OK && exponent == 2) return step_done(step, step_plain(step, "square", x, 1), batched);
        if (status == TUTTI_OK) return step_done(step, binary(step, "pow", x[0], constant(step, exponent)), batched);
    }
    if (status == TUTTI_OK) status = step_broadcast(step, x, 2, &batched);
    return status == TUTTI_OK ? step_done(step, step_plain(step, "pow", x, 2), batched) : status;
}

tutti_status build_mod(struct step *step)
{
    tutti_tensor x[2];
    bool batched;
    const tutti_status status = step_broadcast(step, x, 2, &batched);
    if (status != TUTTI_OK) return status;
    return step_done(step, step_plain(step, step_integer(step, "fmod", 0) ? "fmod" : "mod", x, 2), batched);
}

tutti_status build_identity(struct step *step)
{
    return step_same(step);
}

/* Floats of any width are float32, and inputs of other types become it. */
tutti_status build_cast(struct step *step)
{
    const int to = (int)step_integer(step, "to", 0);
    const struct value *value = step_input(step, 0);
    if (!onnx_type_is_float(to))
        return step_refuse("to %s: values that depend on the samples can only become floats", onnx_type_name(to));
    if (!value || !value->integers) return step_same(step);
    return step_done(step, tutti_cast(step->import->network, value->tensor, TUTTI_DTYPE_F32), true);
}

tutti_status build_dropout(struct step *step)
{
    tutti_tensor x;
    tutti_shape shape;
    float ratio;
    tutti_status status = step_sample(step, 0, &x, &shape);
    if (status == TUTTI_OK) status = step_scalar(step, 1, 0.5f, &ratio);
    if (status != TUTTI_OK) return status;
    return step_done(step, ratio == 0 ? x : step_op(step, "dropout", &x, 1, "ratio=%.9g", (double)ratio), true);
}

/* ------------------------------------------------------------------------------------------------- along axes ---- */

/* Axes are an attribute, or, later, an input. As bits of a sample's axes; without any: all but the batch are none. */
static tutti_status read_axes(const struct step *step, int rank, unsigned *axes)
{
    int64_t list[TUTTI_MAX_RANK];
    size_t said;
    int count = 0;
    const int64_t *attribute = step_integers(step, "axes", &said);
    tutti_status status = attribute ? TUTTI_OK : step_list(step, 1, list, TUTTI_MAX_RANK, &count);
    if (status != TUTTI_OK) return status;
    if (attribute) count = said > TUTTI_MAX_RANK ? 0 : (int)said;
    *axes = 0;
    if (count == 0) return step_refuse("it must name the axes, without the batch");
    for (int i = 0; i < count && status == TUTTI_OK; i++) {
        int axis = 0;
        status = step_axis(attribute ? attribute[i] : list[i], rank, &axis);
        if (status == TUTTI_OK && *axes >> axis & 1) status = fail(TUTTI_FORMAT, "an axis is there twice");
        *axes |= 1u << axis;
    }
    return status;
}

static tutti_tensor reduce(const struct step *step, tutti_tensor x, const char *operation, unsigned axes, bool keep)
{
    char list[64];
    size_t used = 0;
    for (int i = 0; i < TUTTI_MAX_RANK; i++)
        if (axes >> i & 1) used += (size_t)snprintf(list + used, sizeof list - used, "%s%d", used ? "," : "", i);
    return step_op(step, operation, &x, 1, "axes=%s keepdims=%d", list, keep);
}

tutti_status build_reduce(struct step *step)
{
    const bool keep = step_integer(step, "keepdims", 1) != 0;
    tutti_tensor x;
    tutti_shape shape;
    unsigned axes = 0;
    tutti_status status = step_sample(step, 0, &x, &shape);
    if (status == TUTTI_OK) status = read_axes(step, shape.rank, &axes);
    if (status != TUTTI_OK) return status;
    if (axes + 1 == 1u << shape.rank && !keep)
        return step_refuse("it leaves no axis beside the batch: keepdims must be 1");
    if (!strcmp(step->operation, "reduce_mean") && shape.rank == 3 && axes == 6 && keep)
        return step_done(step, tutti_global_average_pool(step->import->network, x), true);
    return step_done(step, reduce(step, x, step->operation, axes, keep), true);
}

/* x - max - log(sum(exp(x - max))) */
static tutti_tensor log_softmax(const struct step *step, tutti_tensor x, int axis)
{
    x = binary(step, "sub", x, reduce(step, x, "reduce_max", 1u << axis, true));
    const tutti_tensor sum = reduce(step, step_plain(step, "exp", &x, 1), "reduce_sum", 1u << axis, true);
    return binary(step, "sub", x, step_plain(step, "log", &sum, 1));
}

/* Along another axis than the last one, it is exchanged with the last one, and back. */
tutti_status build_softmax(struct step *step)
{
    tutti_tensor x;
    tutti_shape shape;
    int axis = 0, order[TUTTI_MAX_RANK];
    tutti_status status = step_sample(step, 0, &x, &shape);
    if (status == TUTTI_OK) status = step_axis(step_integer(step, "axis", -1), shape.rank, &axis);
    if (status != TUTTI_OK) return status;
    if (step->operation) return step_done(step, log_softmax(step, x, axis), true);
    if (axis == shape.rank - 1) return step_done(step, step_plain(step, "softmax", &x, 1), true);
    for (int i = 0; i < shape.rank; i++) order[i] = i == axis ? shape.rank - 1 : i == shape.rank - 1 ? axis : i;
    x = step_permuted(step, x, order, shape.rank);
    x = step_permuted(step, step_plain(step, "softmax", &x, 1), order, shape.rank);
    return step_done(step, x, true);
}
