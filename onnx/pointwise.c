/* Operators that work element by element, or along axes. */
#include "base/numbers.h"
#include "base/text.h"
#include "onnx/operators.h"
#include "tutti_inspect.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_INPUTS = 8 };

/* ---------------------------------------------------------------------------------------------- broadcasting ---- */

/* The batch axis in a result with `rank` axes: an input may have fewer axes in front. HIDDEN: a sample is the whole
 * value. */
static int place_in(const struct operand *x, int rank)
{
    return x->place.axis == HIDDEN ? HIDDEN : x->place.axis + rank - operand_rank(x);
}

static tutti_status join_places(const struct step *step, struct operand *list, size_t count, struct place *place)
{
    int rank = 0;
    *place = (struct place) { .axis = HIDDEN, .rows = 1, .ahead = 1 };
    for (size_t i = 0; i < count; i++)
        if (operand_rank(&list[i]) > rank) rank = operand_rank(&list[i]);
    for (size_t i = 0; i < count; i++) {
        struct place moved = list[i].place;
        if (!moved.batched) continue;
        moved.axis = place_in(&list[i], rank);
        if (place->batched && !place_equal(place, &moved)) {
            for (size_t k = 0; k < count; k++)
                if (list[k].place.batched && step_as_fixed(step, k, &list[k]))
                    return join_places(step, list, count, place);
            return step_refuse("the batch is another axis of input %zu than of the ones before", i);
        }
        *place = moved;
    }
    return TUTTI_OK;
}

/* Removes from inputs without a batch the axis that is the batch of the others. */
static tutti_status align(const struct step *step, struct operand *list, size_t count, const struct place *place)
{
    tutti_status status = TUTTI_OK;
    int rank = 0, most = 0;
    for (size_t i = 0; i < count; i++) {
        if (operand_rank(&list[i]) > rank) rank = operand_rank(&list[i]);
        if (list[i].place.batched && list[i].shape.rank > most) most = list[i].shape.rank;
    }
    for (size_t i = 0; i < count && status == TUTTI_OK; i++) {
        const int axis = place->axis - (rank - operand_rank(&list[i]));
        const bool has_axis = axis >= 0 && axis < list[i].shape.rank;
        if (list[i].place.batched) continue;
        if (has_axis && place->ahead == 1)
            status = step_drop_axis(step, i, axis, place->rows, &list[i]);
        else if (has_axis && list[i].shape.sizes[axis] != 1)
            status = step_refuse("input %zu has a size along the batch", i);
        if (status == TUTTI_OK && most == 0 && list[i].shape.rank == 0) /* the result is one number of each sample */
            status = step_spread_operand(step, &list[i]);
    }
    return status;
}

/* Constants without axes get one in a network. If the result has no axes, they must not have one, either. */
static tutti_status spread_numbers(const struct step *step, struct operand *list, size_t count)
{
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; i < count; i++)
        if (operand_rank(&list[i]) > 0) return TUTTI_OK;
    for (size_t i = 0; i < count && status == TUTTI_OK; i++) {
        if (list[i].place.batched) continue;
        status = step_spread(step, &list[i].tensor);
        list[i].tensor = step_op(step, "reshape", &list[i].tensor, 1, "shape=");
    }
    return status;
}

tutti_status step_broadcast(const struct step *step, tutti_tensor *tensors, size_t count, struct place *place)
{
    struct operand list[MOST_INPUTS] = { 0 };
    tutti_status status = TUTTI_OK;
    if (count < 1 || count > MOST_INPUTS) return step_refuse("it has %zu inputs: 1 to %d are read", count, MOST_INPUTS);
    for (size_t i = 0; i < count && status == TUTTI_OK; i++) status = step_operand(step, i, &list[i]);
    if (status == TUTTI_OK) status = join_places(step, list, count, place);
    if (status == TUTTI_OK && place->batched && place->axis != HIDDEN) status = align(step, list, count, place);
    if (status == TUTTI_OK && count > 1 && place->batched) status = spread_numbers(step, list, count);
    for (size_t i = 0; i < count; i++) tensors[i] = list[i].tensor;
    return status;
}

/* Whether an input has the same elements along an axis of the result, or no such axis. *wide: it has one. */
static bool repeats_along(
    const struct import *import, struct value *value, const tutti_shape *shape, int axis, bool *wide)
{
    int64_t factor = 0;
    if (axis < 0 || shape->sizes[axis] == 1) return true;
    *wide = true;
    if (value->repeated >> axis & 1) return true;
    if (value->initialiser || import_load(import, value) != TUTTI_OK || !value->array) return false;
    return array_is_linear(value->array, axis, &factor) && factor == 0;
}

/* A file for one number of samples may compute states that are the same for each sample. */
static tutti_status find_repeated(const struct step *step)
{
    struct value *y = step_output(step, 0);
    tutti_shape shapes[MOST_INPUTS];
    const size_t count = step->node->n_input;
    int rank = 0;
    if (!y || step->import->fixed_batch < 2) return TUTTI_OK;
    for (size_t i = 0; i < count; i++) {
        const tutti_status status = value_shape(step->import, step_input(step, i), &shapes[i]);
        if (status != TUTTI_OK) return status;
        if (shapes[i].rank > rank) rank = shapes[i].rank;
    }
    for (int axis = 0; axis < rank; axis++) {
        bool all = true, wide = false;
        for (size_t i = 0; i < count && all; i++)
            all = repeats_along(step->import, step_input(step, i), &shapes[i], axis - (rank - shapes[i].rank), &wide);
        if (all && wide) y->repeated |= 1U << axis;
    }
    return TUTTI_OK;
}

/* Writes the attributes that the operation shares with ONNX's operator, which are numbers, as "alpha=0.5". */
static tutti_status attributes_print(const struct step *step, struct text *text)
{
    const int position = tutti_operation_find(step->operation);
    tutti_operation_info operation = { .size = sizeof operation };
    tutti_operation_attribute_info info = { .size = sizeof info };
    tutti_status status = tutti_operation(position, &operation);
    for (int i = 0; i < operation.attribute_count && status == TUTTI_OK; i++) {
        status = tutti_operation_attribute(position, i, &info);
        if (status != TUTTI_OK || !info.onnx) continue;
        const float number = step_number(step, info.onnx, (float)number_read(info.default_value, NULL));
        text_append(text, "%s=%.9g ", info.name, (double)number);
    }
    return text->failed ? TUTTI_NO_MEMORY : status;
}

/* Functions of one to three inputs. */
tutti_status build_pointwise(struct step *step)
{
    tutti_tensor tensors[MOST_INPUTS];
    struct place place;
    struct text text = { 0 };
    const size_t count = step->node->n_input;
    tutti_status status = step_broadcast(step, tensors, count, &place);
    if (status == TUTTI_OK && !place.batched) status = find_repeated(step);
    if (status == TUTTI_OK) status = attributes_print(step, &text);
    if (status == TUTTI_OK) {
        const char *attributes = text.data ? text.data : "";
        status = step_done(step, step_op(step, step->operation, tensors, (int)count, "%s", attributes), place);
    }
    text_free(&text);
    return status;
}

/* The type is that of the values, not of the condition. */
tutti_status build_where(struct step *step)
{
    const struct value *value = step_input(step, 1);
    if (value) step_type(step, 0, value->type);
    return build_pointwise(step);
}

tutti_status build_is_inf(struct step *step)
{
    const bool both = step_integer(step, "detect_negative", 1) && step_integer(step, "detect_positive", 1);
    struct operand x;
    tutti_status status = build_pointwise(step);
    if (both || status != TUTTI_OK) return status;
    if ((status = step_operand(step, 0, &x)) != TUTTI_OK) return status;
    const char *side = step_integer(step, "detect_negative", 1) ? "less" : "greater";
    const bool none = !step_integer(step, "detect_negative", 1) && !step_integer(step, "detect_positive", 1);
    tutti_tensor y = step_binary(step, side, x.tensor, step_constant(step, 0));
    y = none ? step_binary(step, "and", y, step_constant(step, 0)) : y;
    return step_done(step, step_binary(step, "and", y, step_plain(step, "is_inf", &x.tensor, 1)), x.place);
}

/* gamma elu(x) */
tutti_status build_selu(struct step *step)
{
    tutti_tensor x;
    struct place place;
    const double alpha = (double)step_number(step, "alpha", 1.67326319217681884765625f);
    const double gamma = (double)step_number(step, "gamma", 1.05070102214813232421875f);
    const tutti_status status = step_broadcast(step, &x, 1, &place);
    if (status != TUTTI_OK) return status;
    x = step_op(step, step->operation, &x, 1, "alpha=%.9g", alpha);
    return step_done(step, step_op(step, "scale", &x, 1, "factor=%.9g", gamma), place);
}

/* 0 within lambd, x - bias above, x + bias below. */
tutti_status build_shrink(struct step *step)
{
    tutti_tensor x;
    struct place place;
    const float lambd = step_number(step, "lambd", 0.5f), bias = step_number(step, "bias", 0);
    const tutti_status status = step_broadcast(step, &x, 1, &place);
    if (status != TUTTI_OK) return status;
    const tutti_tensor above = step_binary(step, "greater", x, step_constant(step, lambd));
    const tutti_tensor below = step_binary(step, "less", x, step_constant(step, -lambd));
    const tutti_tensor low = step_binary(step, "add", x, step_constant(step, bias));
    const tutti_tensor high = step_binary(step, "sub", x, step_constant(step, bias));
    tutti_tensor y = step_elements(step, "where", (tutti_tensor[]) { below, low, step_constant(step, 0) }, 3);
    y = step_elements(step, "where", (tutti_tensor[]) { above, high, y }, 3);
    return step_done(step, y, place);
}

/* Functions of two inputs, of any number of them. */
tutti_status build_many(struct step *step)
{
    tutti_tensor tensors[MOST_INPUTS] = { { 0 } };
    struct place place;
    const size_t count = step->node->n_input;
    const tutti_status status = step_broadcast(step, tensors, count, &place);
    if (status != TUTTI_OK) return status;
    for (size_t i = 1; i < count; i++)
        tensors[0] = step_plain(step, step->operation, (tutti_tensor[]) { tensors[0], tensors[i] }, 2);
    if (!strcmp(step->node->op_type, "Mean"))
        tensors[0] = step_op(step, "scale", tensors, 1, "factor=%.9g", 1 / (double)count);
    return step_done(step, tensors[0], place);
}

/* ------------------------------------------------------------------------------------------------- functions ---- */

/* Clips to bounds that the network computes, such as one below the largest number: min(max(x, low), high). */
static tutti_status clip_by_values(struct step *step)
{
    tutti_tensor list[3] = { { 0 } };
    struct place place;
    const size_t count = step_input(step, 2) ? 3 : 2;
    const tutti_status status = step_broadcast(step, list, count, &place);
    if (status != TUTTI_OK) return status;
    tutti_tensor y = step_binary(step, "max", list[0], list[1]);
    if (count == 3) y = step_binary(step, "min", y, list[2]);
    return step_done(step, y, place);
}

static bool is_computed(const struct value *value)
{
    return value && !value->array && !value->stored;
}

tutti_status build_clip(struct step *step)
{
    tutti_tensor x;
    float low, high;
    struct place place;
    const bool computed = is_computed(step_input(step, 1)) || is_computed(step_input(step, 2));
    if (computed && step_input(step, 1)) return clip_by_values(step);
    tutti_status status = step_broadcast(step, &x, 1, &place);
    if (status == TUTTI_OK) status = step_scalar(step, 1, step_number(step, "min", -FLT_MAX), &low); /* opset < 11 */
    if (status == TUTTI_OK) status = step_scalar(step, 2, step_number(step, "max", FLT_MAX), &high);
    if (status != TUTTI_OK) return status;
    if (low >= high) { /* the upper bound, in ONNX */
        x = step_binary(step, "max", x, step_constant(step, low));
        return step_done(step, step_binary(step, "min", x, step_constant(step, high)), place);
    }
    return step_done(step, step_op(step, "clip", &x, 1, "min=%.9g max=%.9g", (double)low, (double)high), place);
}

/* min(max(alpha x + beta, 0), 1) */
tutti_status build_hard_sigmoid(struct step *step)
{
    tutti_tensor x;
    struct place place;
    const float alpha = step_number(step, "alpha", 0.2f), beta = step_number(step, "beta", 0.5f);
    const tutti_status status = step_broadcast(step, &x, 1, &place);
    if (status != TUTTI_OK) return status;
    if (fabsf(alpha - 1.0f / 6) < 1e-7f && beta == 0.5f)
        return step_done(step, step_plain(step, "hard_sigmoid", &x, 1), place);
    x = step_op(step, "scale", &x, 1, "factor=%.9g", (double)alpha);
    x = step_binary(step, "add", x, step_constant(step, beta));
    return step_done(step, step_op(step, "clip", &x, 1, "min=0 max=1"), place);
}

/* Removes the fraction of a node's output if its first input is of integers. */
static tutti_status make_whole(const struct step *step)
{
    const struct value *value = step_input(step, 0);
    struct value *output = step_output(step, 0);
    if (!value || !output || onnx_type_is_float(value->type)) return TUTTI_OK;
    output->tensor = step_truncated(step, output->tensor);
    return output->tensor.id < 0 ? tutti_network_status(step->import->network) : TUTTI_OK;
}

tutti_status build_gelu(struct step *step)
{
    tutti_tensor x;
    struct place place;
    const tutti_status status = step_broadcast(step, &x, 1, &place);
    if (status != TUTTI_OK) return status;
    const bool with_tanh = step_says(step, "approximate", "tanh");
    return step_done(step, step_plain(step, with_tanh ? "gelu_tanh" : "gelu", &x, 1), place);
}

/* A square, as in normalisations that exporters write in parts, needs no logarithm. */
static tutti_status add_pow(struct step *step)
{
    tutti_tensor x[2];
    struct place place;
    float exponent = 0;
    tutti_status status = step_broadcast(step, x, 1, &place);
    const struct value *second = step_input(step, 1);
    if (status == TUTTI_OK && second && second->stored && second->stored->n_dims == 0) {
        status = step_scalar(step, 1, 0, &exponent);
        if (status == TUTTI_OK && exponent == 2) return step_done(step, step_plain(step, "square", x, 1), place);
        if (status == TUTTI_OK)
            return step_done(step, step_binary(step, "pow", x[0], step_constant(step, exponent)), place);
    }
    if (status == TUTTI_OK) status = step_broadcast(step, x, 2, &place);
    return status == TUTTI_OK ? step_done(step, step_plain(step, "pow", x, 2), place) : status;
}

tutti_status build_pow(struct step *step)
{
    const tutti_status status = add_pow(step);
    return status == TUTTI_OK ? make_whole(step) : status;
}

tutti_status build_mod(struct step *step)
{
    tutti_tensor x[2];
    struct place place;
    const tutti_status status = step_broadcast(step, x, 2, &place);
    if (status != TUTTI_OK) return status;
    return step_done(step, step_plain(step, step_integer(step, "fmod", 0) ? "fmod" : "mod", x, 2), place);
}

tutti_status build_identity(struct step *step)
{
    return step_same(step);
}

/* Whether every number of one type of integers is one of the other. */
static bool holds(int type, int other)
{
    static const struct {
        int type, bits;
        bool has_sign;
    } types[] = { { ONNX_BOOL, 1, false }, { ONNX_UINT8, 8, false }, { ONNX_INT8, 8, true }, { ONNX_UINT16, 16, false },
        { ONNX_INT16, 16, true }, { ONNX_UINT32, 32, false }, { ONNX_INT32, 32, true }, { ONNX_UINT64, 64, false },
        { ONNX_INT64, 64, true } };
    size_t a = 0, b = 0;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        a = types[i].type == type ? i : a;
        b = types[i].type == other ? i : b;
    }
    if (types[a].has_sign == types[b].has_sign) return types[a].bits >= types[b].bits;
    return types[a].has_sign && types[a].bits > types[b].bits;
}

/* Floats of any width are float32. So are integers and truths: whole numbers, 0 and 1. */
static tutti_status cast(struct step *step, int to)
{
    struct operand x;
    const struct value *value = step_input(step, 0);
    if (!value) return fail(TUTTI_FORMAT, "input 0 is missing");
    const bool from_float = onnx_type_is_float(value->type), to_float = onnx_type_is_float(to);
    const bool wraps = to != ONNX_INT32 && to != ONNX_INT64; /* of these two, a float32 does not have all numbers */
    step_type(step, 0, to);
    const bool same = to_float ? !value->converts : !from_float && (holds(to, value->type) || !wraps);
    if (same || value->type == to) return step_same(step);
    const tutti_status status = step_operand(step, 0, &x);
    if (status != TUTTI_OK) return status;
    if (to == ONNX_BOOL) {
        x.tensor = step_plain(step, "not", &x.tensor, 1);
        x.tensor = step_plain(step, "not", &x.tensor, 1);
    } else if (!to_float) {
        if (from_float) x.tensor = step_plain(step, "trunc", &x.tensor, 1);
        if (from_float || !holds(to, value->type)) x.tensor = step_wrapped(step, x.tensor, to);
    }
    return step_done(step, x.tensor, x.place);
}

tutti_status build_cast(struct step *step)
{
    const int to = (int)step_integer(step, "to", 0);
    if (!onnx_type_is_known(to)) return step_refuse("to type %d, which is not read", to);
    return cast(step, to);
}

tutti_status build_cast_like(struct step *step)
{
    const struct value *like = step_input(step, 1);
    return like ? cast(step, like->type) : fail(TUTTI_FORMAT, "input 1 is missing");
}

/* The quotient of integers is truncated. */
tutti_status build_div(struct step *step)
{
    const struct value *value = step_input(step, 0);
    const tutti_status status = build_pointwise(step);
    if (status != TUTTI_OK || !value || onnx_type_is_float(value->type)) return status;
    struct value *output = step_output(step, 0);
    if (output) output->tensor = step_plain(step, "trunc", &output->tensor, 1);
    return output && output->tensor.id < 0 ? tutti_network_status(step->import->network) : TUTTI_OK;
}

tutti_status build_dropout(struct step *step)
{
    struct operand x;
    float ratio;
    tutti_status status = step_operand(step, 0, &x);
    if (status == TUTTI_OK) status = step_scalar(step, 1, step_number(step, "ratio", 0.5f), &ratio); /* opset < 12 */
    if (status != TUTTI_OK) return status;
    const struct value *mode = step_input(step, 2), *mask = step_output(step, 1);
    float trains = mode != NULL;
    if (mode && (mode->stored || mode->array) && (status = step_scalar(step, 2, 0, &trains)) != TUTTI_OK) return status;
    /* A node that reads the mask of a layer that drops elements gets the message that it is not available. */
    if (mask && (ratio == 0 || trains == 0)) {
        const tutti_tensor one = step_constant(step, 1);
        status = step_made(step, 1, step_elements(step, "where", (tutti_tensor[]) { x.tensor, one, one }, 3), x.place);
    }
    step_type(step, 1, ONNX_BOOL);
    if (status != TUTTI_OK) return status;
    if (ratio == 0) return step_done(step, x.tensor, x.place);
    return step_done(step, step_op(step, "dropout", &x.tensor, 1, "ratio=%.9g", (double)ratio), x.place);
}

/* ------------------------------------------------------------------------------------------------- along axes ---- */

/* All axes if none is named, or none at all with `noop_with_empty_axes`. */
static tutti_status read_axes(const struct step *step, const struct operand *x, unsigned *of_file, unsigned *axes)
{
    int64_t list[TUTTI_MAX_RANK];
    int count = 0;
    const int rank = operand_rank(x);
    tutti_status status = step_list_or_attribute(step, "axes", 1, list, TUTTI_MAX_RANK, &count);
    if (status == TUTTI_OK) status = axes_read(list, count, rank, of_file);
    if (status != TUTTI_OK) return status;
    if (count == 0 && !step_integer(step, "noop_with_empty_axes", 0)) *of_file = (1u << rank) - 1;
    *axes = 0;
    for (int i = 0, axis = 0; i < rank && status == TUTTI_OK; i++) {
        if (!(*of_file >> i & 1)) continue;
        status = operand_axis(x, i, &axis);
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

/* A reduction along no axis. */
static tutti_tensor reduce_nothing(const struct step *step, tutti_tensor x)
{
    if (!strcmp(step->operation, "reduce_sum_square")) return step_plain(step, "square", &x, 1);
    if (!strcmp(step->operation, "reduce_log_sum")) return step_plain(step, "log", &x, 1);
    const bool absolute = !strcmp(step->operation, "reduce_l1") || !strcmp(step->operation, "reduce_l2");
    return absolute ? step_plain(step, "abs", &x, 1) : x;
}

/* Means, norms and logarithms of integers have no fraction. */
static tutti_tensor reduce_integers(const struct step *step, const struct operand *x, unsigned axes, bool keep)
{
    static const char *const with_fraction[] = { "reduce_l2", "reduce_log_sum", "reduce_log_sum_exp" };
    int64_t count = 1;
    for (int i = 0; i < x->shape.rank; i++) count *= axes >> i & 1 ? x->shape.sizes[i] : 1;
    if (!strcmp(step->operation, "reduce_mean")) {
        const tutti_tensor sum = reduce(step, x->tensor, "reduce_sum", axes, keep);
        const tutti_tensor mean = step_binary(step, "div", sum, step_constant(step, (float)count));
        return step_plain(step, "trunc", &mean, 1);
    }
    const tutti_tensor y = reduce(step, x->tensor, step->operation, axes, keep);
    for (size_t i = 0; i < sizeof with_fraction / sizeof *with_fraction; i++)
        if (!strcmp(step->operation, with_fraction[i])) return step_truncated(step, y);
    return y;
}

tutti_status build_reduce(struct step *step)
{
    const bool floats = step_input(step, 0) && onnx_type_is_float(step_input(step, 0)->type);
    const bool keep = step_integer(step, "keepdims", 1) != 0;
    struct operand x;
    unsigned axes = 0, of_file = 0;
    tutti_status status = step_operand(step, 0, &x);
    if (status == TUTTI_OK) status = read_axes(step, &x, &of_file, &axes);
    if (status != TUTTI_OK) return status;
    if (axes == 0) return step_done(step, reduce_nothing(step, x.tensor), x.place);
    if (x.place.batched && !strcmp(step->operation, "reduce_mean") && x.shape.rank == 3 && axes == 6 && keep && floats)
        return step_done(step, step_plain(step, "global_average_pool", &x.tensor, 1), x.place);
    const unsigned before = of_file & ((1u << (x.place.axis == HIDDEN ? 0 : x.place.axis)) - 1);
    return step_done(step,
        floats ? reduce(step, x.tensor, step->operation, axes, keep) : reduce_integers(step, &x, axes, keep),
        place_moved(x.place, keep ? 0 : -__builtin_popcount(before)));
}

tutti_tensor step_log_softmax(const struct step *step, tutti_tensor x, int axis)
{
    return step_op(step, "log_softmax", &x, 1, "axis=%d", axis);
}

tutti_status step_softmax_axis(const struct step *step, struct operand *x, tutti_shape *shape, int *axis)
{
    tutti_status status = step_operand(step, 0, x);
    const bool old = step->import->opset < 13;
    const int64_t asked = step_integer(step, "axis", old ? 1 : -1), rank = status == TUTTI_OK ? operand_rank(x) : 0;
    const int64_t of_file = asked < 0 ? asked + rank : asked;
    *shape = x->shape;
    if (status == TUTTI_OK) status = operand_axis(x, asked, axis);
    if (status != TUTTI_OK || !old || *axis == x->shape.rank - 1) return status;
    if (x->place.batched && x->place.axis != HIDDEN && x->place.axis > of_file)
        return step_refuse("before opset 13 it is over all axes from axis %d on: the batch is one", (int)of_file);
    for (int i = *axis + 1; i < shape->rank; i++) x->shape.sizes[*axis] *= shape->sizes[i];
    x->shape.rank = *axis + 1;
    x->tensor = step_reshape(step, x->tensor, &x->shape);
    return x->tensor.id < 0 ? tutti_network_status(step->import->network) : TUTTI_OK;
}

tutti_status step_softmax_done(
    const struct step *step, tutti_tensor y, const struct operand *x, const tutti_shape *shape)
{
    return step_done(step, shape->rank == x->shape.rank ? y : step_reshape(step, y, shape), x->place);
}

/* An axis other than the last one is exchanged with the last one, and back. */
tutti_status build_softmax(struct step *step)
{
    struct operand x;
    tutti_shape shape;
    int axis = 0, order[TUTTI_MAX_RANK];
    const tutti_status status = step_softmax_axis(step, &x, &shape, &axis);
    if (status != TUTTI_OK) return status;
    if (step->operation) return step_softmax_done(step, step_log_softmax(step, x.tensor, axis), &x, &shape);
    const int last = x.shape.rank - 1;
    for (int i = 0; i <= last; i++) order[i] = i == axis ? last : i == last ? axis : i;
    x.tensor = step_permuted(step, x.tensor, order, last + 1);
    x.tensor = step_permuted(step, step_plain(step, "softmax", &x.tensor, 1), order, last + 1);
    return step_softmax_done(step, x.tensor, &x, &shape);
}
