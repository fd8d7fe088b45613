/* Operators that work element by element, or along axes. */
#include "base/numbers.h"
#include "base/text.h"
#include "onnx/operators.h"
#include "tutti_inspect.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_INPUTS = 8 };

/* ---------------------------------------------------------------------------------------------- broadcasting ---- */

static tutti_status common_batch_axis(
    const struct onnx_node *node, struct operand *list, size_t count, struct batch_axis *batch_axis)
{
    int rank = 0;
    *batch_axis = NO_BATCH;
    for (size_t i = 0; i < count; i++)
        if (operand_rank(&list[i]) > rank) rank = operand_rank(&list[i]);
    for (size_t i = 0; i < count; i++) {
        /* An input may have fewer leading axes than the result. */
        const struct batch_axis moved = batch_axis_moved(list[i].batch, rank - operand_rank(&list[i]));
        if (!moved.batched) continue;
        if (batch_axis->batched && !batch_axis_equal(batch_axis, &moved)) {
            for (size_t k = 0; k < count; k++)
                if (list[k].batch.batched && node_as_fixed(node, k, &list[k]))
                    return common_batch_axis(node, list, count, batch_axis);
            return node_refuse("the batch is another axis of input %zu than of the ones before", i);
        }
        *batch_axis = moved;
    }
    return TUTTI_OK;
}

/* Removes from inputs without a batch the axis that is the batch of the others. */
static tutti_status align(
    const struct onnx_node *node, struct operand *list, size_t count, const struct batch_axis *batch_axis)
{
    tutti_status status = TUTTI_OK;
    int rank = 0, most = 0;
    for (size_t i = 0; i < count; i++) {
        if (operand_rank(&list[i]) > rank) rank = operand_rank(&list[i]);
        if (list[i].batch.batched && list[i].shape.rank > most) most = list[i].shape.rank;
    }
    for (size_t i = 0; i < count && status == TUTTI_OK; i++) {
        if (list[i].batch.batched) continue;
        status = node_align(node, i, rank, batch_axis, &list[i]);
        if (status == TUTTI_OK && most == 0 && list[i].shape.rank == 0) /* the result is one number of each sample */
            status = node_spread_operand(node, &list[i]);
    }
    return status;
}

/* Constants without axes get one in a network. If the result has no axes, they must not have one, either. */
static tutti_status spread_numbers(const struct onnx_node *node, struct operand *list, size_t count)
{
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; i < count; i++)
        if (operand_rank(&list[i]) > 0) return TUTTI_OK;
    for (size_t i = 0; i < count && status == TUTTI_OK; i++) {
        if (list[i].batch.batched) continue;
        status = node_spread(node, &list[i].tensor);
        list[i].tensor = node_op(node, "reshape", &list[i].tensor, 1, "shape=");
    }
    return status;
}

tutti_status node_broadcast(
    const struct onnx_node *node, tutti_tensor *tensors, size_t count, struct batch_axis *batch_axis)
{
    struct operand list[MOST_INPUTS] = { 0 };
    tutti_status status = TUTTI_OK;
    if (count < 1 || count > MOST_INPUTS) return node_refuse("it has %zu inputs: 1 to %d are read", count, MOST_INPUTS);
    for (size_t i = 0; i < count && status == TUTTI_OK; i++) status = node_operand(node, i, &list[i]);
    if (status == TUTTI_OK) status = common_batch_axis(node, list, count, batch_axis);
    if (status == TUTTI_OK && batch_has_axis(batch_axis)) status = align(node, list, count, batch_axis);
    if (status == TUTTI_OK && count > 1 && batch_axis->batched) status = spread_numbers(node, list, count);
    for (size_t i = 0; i < count; i++) tensors[i] = list[i].tensor;
    return status;
}

/* Writes an attribute that the operation shares with ONNX's operator, as "alpha=0.5". x: NULL where none is an axis;
 * *axis: the axis of the file. */
static tutti_status attribute_print(const struct onnx_node *node, const struct operand *x,
    const tutti_operation_attribute_info *info, int *axis, struct text *text)
{
    tutti_status status = TUTTI_OK;
    const double fallback = info->default_value ? number_read(info->default_value, NULL) : 0;
    if (info->required && !node_attribute(node, info->onnx))
        return fail(TUTTI_FORMAT, "its attribute %s is missing", info->onnx);
    int64_t number = info->type == TUTTI_ATTRIBUTE_NUMBER ? 0 : node_integer(node, info->onnx, (int64_t)fallback);
    if (info->type == TUTTI_ATTRIBUTE_AXIS) {
        int tensor_axis = 0;
        status = operand_axis(x, number, &tensor_axis);
        *axis = (int)(number < 0 ? number + operand_rank(x) : number);
        number = tensor_axis;
    }
    if (info->type == TUTTI_ATTRIBUTE_NUMBER)
        text_append(text, "%s=%.9g ", info->name, (double)node_number(node, info->onnx, (float)fallback));
    else
        text_append(text, "%s=%" PRId64 " ", info->name, info->type == TUTTI_ATTRIBUTE_FLAG ? number != 0 : number);
    return status;
}

static tutti_status attributes_print(
    const struct onnx_node *node, const struct operand *x, int *axis, struct text *text)
{
    const int position = tutti_operation_find(node->operation);
    tutti_operation_info operation = { .size = sizeof operation };
    tutti_operation_attribute_info info = { .size = sizeof info };
    tutti_status status = tutti_operation(position, &operation);
    for (int i = 0; i < operation.attribute_count && status == TUTTI_OK; i++) {
        status = tutti_operation_attribute(position, i, &info);
        if (status == TUTTI_OK && info.onnx) status = attribute_print(node, x, &info, axis, text);
    }
    if (status == TUTTI_OK) text_append(text, "%s", "");
    return text->failed ? TUTTI_NO_MEMORY : status;
}

/* Functions of one to three inputs. */
tutti_status build_pointwise(struct onnx_node *node)
{
    tutti_tensor tensors[MOST_INPUTS];
    struct batch_axis batch_axis;
    struct text text = { 0 };
    const size_t count = node->proto->n_input;
    node->broadcasts = true;
    tutti_status status = node_broadcast(node, tensors, count, &batch_axis);
    if (status == TUTTI_OK) status = attributes_print(node, NULL, NULL, &text);
    if (status == TUTTI_OK)
        status =
            node_set_output(node, node_op(node, node->operation, tensors, (int)count, "%s", text.data), batch_axis);
    text_free(&text);
    return status;
}

/* An operation on a tensor, along an axis or on the axes after the batch. With `keepdims` 0 the axis is removed. */
tutti_status build_tensor(struct onnx_node *node)
{
    struct operand x;
    struct text text = { 0 };
    int axis = -1;
    tutti_status status = node_operand(node, 0, &x);
    if (status == TUTTI_OK) status = attributes_print(node, &x, &axis, &text);
    if (status == TUTTI_OK && axis < 0 && operand_has_batch_axis(&x) && (x.batch.axis != 0 || x.batch.outer != 1))
        status = node_refuse("the batch must be its first axis");
    const bool keeps = node_integer(node, "keepdims", 1) != 0;
    if (status == TUTTI_OK)
        status = node_set_output(node, node_op(node, node->operation, &x.tensor, 1, "%s", text.data),
            batch_axis_moved(x.batch, keeps || axis < 0 || axis > x.batch.axis ? 0 : -1));
    text_free(&text);
    return status;
}

/* The type is that of the values, not of the condition. */
tutti_status build_where(struct onnx_node *node)
{
    const struct onnx_value *value = node_input(node, 1);
    if (value) node_set_type(node, 0, value->type);
    return build_pointwise(node);
}

tutti_status build_is_inf(struct onnx_node *node)
{
    const bool both = node_integer(node, "detect_negative", 1) && node_integer(node, "detect_positive", 1);
    struct operand x;
    tutti_status status = build_pointwise(node);
    if (both || status != TUTTI_OK) return status;
    if ((status = node_operand(node, 0, &x)) != TUTTI_OK) return status;
    const char *side = node_integer(node, "detect_negative", 1) ? "less" : "greater";
    const bool none = !node_integer(node, "detect_negative", 1) && !node_integer(node, "detect_positive", 1);
    tutti_tensor y = node_binary(node, side, x.tensor, node_constant(node, 0));
    y = none ? node_binary(node, "and", y, node_constant(node, 0)) : y;
    return node_set_output(node, node_binary(node, "and", y, node_plain(node, "is_inf", &x.tensor, 1)), x.batch);
}

/* gamma elu(x) */
tutti_status build_selu(struct onnx_node *node)
{
    tutti_tensor x;
    struct batch_axis batch_axis;
    const double alpha = (double)node_number(node, "alpha", 1.67326319217681884765625f);
    const double gamma = (double)node_number(node, "gamma", 1.05070102214813232421875f);
    const tutti_status status = node_broadcast(node, &x, 1, &batch_axis);
    if (status != TUTTI_OK) return status;
    x = node_op(node, node->operation, &x, 1, "alpha=%.9g", alpha);
    return node_set_output(node, node_op(node, "scale", &x, 1, "factor=%.9g", gamma), batch_axis);
}

/* 0 within lambd, x - bias above, x + bias below. */
tutti_status build_shrink(struct onnx_node *node)
{
    tutti_tensor x;
    struct batch_axis batch_axis;
    const float lambd = node_number(node, "lambd", 0.5f), bias = node_number(node, "bias", 0);
    const tutti_status status = node_broadcast(node, &x, 1, &batch_axis);
    if (status != TUTTI_OK) return status;
    const tutti_tensor above = node_binary(node, "greater", x, node_constant(node, lambd));
    const tutti_tensor below = node_binary(node, "less", x, node_constant(node, -lambd));
    const tutti_tensor low = node_binary(node, "add", x, node_constant(node, bias));
    const tutti_tensor high = node_binary(node, "sub", x, node_constant(node, bias));
    tutti_tensor y = node_elements(node, "where", (tutti_tensor[]) { below, low, node_constant(node, 0) }, 3);
    y = node_elements(node, "where", (tutti_tensor[]) { above, high, y }, 3);
    return node_set_output(node, y, batch_axis);
}

/* Functions of two inputs, of any number of them. */
tutti_status build_many(struct onnx_node *node)
{
    tutti_tensor tensors[MOST_INPUTS] = { { 0 } };
    struct batch_axis batch_axis;
    const size_t count = node->proto->n_input;
    const tutti_status status = node_broadcast(node, tensors, count, &batch_axis);
    if (status != TUTTI_OK) return status;
    for (size_t i = 1; i < count; i++)
        tensors[0] = node_plain(node, node->operation, (tutti_tensor[]) { tensors[0], tensors[i] }, 2);
    if (!strcmp(node->proto->op_type, "Mean"))
        tensors[0] = node_op(node, "scale", tensors, 1, "factor=%.9g", 1 / (double)count);
    return node_set_output(node, tensors[0], batch_axis);
}

/* ------------------------------------------------------------------------------------------------- functions ---- */

/* Clips to bounds that the network computes, such as one below the largest number: min(max(x, low), high). */
static tutti_status clip_by_values(struct onnx_node *node)
{
    tutti_tensor list[3] = { { 0 } };
    struct batch_axis batch_axis;
    const size_t count = node_input(node, 2) ? 3 : 2;
    const tutti_status status = node_broadcast(node, list, count, &batch_axis);
    if (status != TUTTI_OK) return status;
    tutti_tensor y = node_binary(node, "max", list[0], list[1]);
    if (count == 3) y = node_binary(node, "min", y, list[2]);
    return node_set_output(node, y, batch_axis);
}

static bool is_computed(const struct onnx_value *value)
{
    return value && !value->array && !value->stored;
}

tutti_status build_clip(struct onnx_node *node)
{
    tutti_tensor x;
    float low, high;
    struct batch_axis batch_axis;
    const bool computed = is_computed(node_input(node, 1)) || is_computed(node_input(node, 2));
    if (computed && node_input(node, 1)) return clip_by_values(node);
    tutti_status status = node_broadcast(node, &x, 1, &batch_axis);
    if (status == TUTTI_OK) status = node_scalar(node, 1, node_number(node, "min", -FLT_MAX), &low); /* opset < 11 */
    if (status == TUTTI_OK) status = node_scalar(node, 2, node_number(node, "max", FLT_MAX), &high);
    if (status != TUTTI_OK) return status;
    if (low >= high) { /* the upper bound, in ONNX */
        x = node_binary(node, "max", x, node_constant(node, low));
        return node_set_output(node, node_binary(node, "min", x, node_constant(node, high)), batch_axis);
    }
    return node_set_output(
        node, node_op(node, "clip", &x, 1, "min=%.9g max=%.9g", (double)low, (double)high), batch_axis);
}

/* min(max(alpha x + beta, 0), 1) */
tutti_status build_hard_sigmoid(struct onnx_node *node)
{
    tutti_tensor x;
    struct batch_axis batch_axis;
    const float alpha = node_number(node, "alpha", 0.2f), beta = node_number(node, "beta", 0.5f);
    const tutti_status status = node_broadcast(node, &x, 1, &batch_axis);
    if (status != TUTTI_OK) return status;
    if (fabsf(alpha - 1.0f / 6) < 1e-7f && beta == 0.5f)
        return node_set_output(node, node_plain(node, "hard_sigmoid", &x, 1), batch_axis);
    x = node_op(node, "scale", &x, 1, "factor=%.9g", (double)alpha);
    x = node_binary(node, "add", x, node_constant(node, beta));
    return node_set_output(node, node_op(node, "clip", &x, 1, "min=0 max=1"), batch_axis);
}

/* Removes the fraction of a node's output if its first input is of integers. */
static tutti_status make_integers(const struct onnx_node *node)
{
    const struct onnx_value *value = node_input(node, 0);
    struct onnx_value *output = node_output(node, 0);
    if (!value || !output || onnx_type_is_float(value->type)) return TUTTI_OK;
    output->tensor = node_truncated(node, output->tensor);
    return output->tensor.id < 0 ? tutti_network_status(node->import->network) : TUTTI_OK;
}

tutti_status build_gelu(struct onnx_node *node)
{
    tutti_tensor x;
    struct batch_axis batch_axis;
    const tutti_status status = node_broadcast(node, &x, 1, &batch_axis);
    if (status != TUTTI_OK) return status;
    const bool with_tanh = node_attribute_is(node, "approximate", "tanh");
    return node_set_output(node, node_plain(node, with_tanh ? "gelu_tanh" : "gelu", &x, 1), batch_axis);
}

/* A square, as in normalisations that exporters write in parts, needs no logarithm. */
static tutti_status add_pow(struct onnx_node *node)
{
    tutti_tensor x[2];
    struct batch_axis batch_axis;
    float exponent = 0;
    tutti_status status = node_broadcast(node, x, 1, &batch_axis);
    const struct onnx_value *second = node_input(node, 1);
    if (status == TUTTI_OK && second && !second->forced_parameter && second->stored && second->stored->n_dims == 0) {
        status = node_scalar(node, 1, 0, &exponent);
        if (status == TUTTI_OK && exponent == 2)
            return node_set_output(node, node_plain(node, "square", x, 1), batch_axis);
        if (status == TUTTI_OK)
            return node_set_output(node, node_binary(node, "pow", x[0], node_constant(node, exponent)), batch_axis);
    }
    if (status == TUTTI_OK) status = node_broadcast(node, x, 2, &batch_axis);
    return status == TUTTI_OK ? node_set_output(node, node_plain(node, "pow", x, 2), batch_axis) : status;
}

tutti_status build_pow(struct onnx_node *node)
{
    const tutti_status status = add_pow(node);
    return status == TUTTI_OK ? make_integers(node) : status;
}

tutti_status build_mod(struct onnx_node *node)
{
    tutti_tensor x[2];
    struct batch_axis batch_axis;
    const tutti_status status = node_broadcast(node, x, 2, &batch_axis);
    if (status != TUTTI_OK) return status;
    return node_set_output(node, node_plain(node, node_integer(node, "fmod", 0) ? "fmod" : "mod", x, 2), batch_axis);
}

tutti_status build_identity(struct onnx_node *node)
{
    return node_same(node);
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

/* Floats of any width are float32. So are integers and truths, as 0 and 1. */
tutti_status build_cast(struct onnx_node *node)
{
    struct operand x;
    int to = 0;
    const struct onnx_value *value = node_input(node, 0);
    tutti_status status = value ? node_cast_type(node, &to) : fail(TUTTI_FORMAT, "input 0 is missing");
    if (status != TUTTI_OK) return status;
    if (!strcmp(node->proto->op_type, "Cast") && !onnx_type_is_known(to))
        return node_refuse("to type %d, which is not read", to);
    const bool from_float = onnx_type_is_float(value->type), to_float = onnx_type_is_float(to);
    const bool wraps = to != ONNX_INT32 && to != ONNX_INT64; /* of these two, a float32 does not have all numbers */
    node_set_type(node, 0, to);
    const bool same = to_float ? !value->converts : !from_float && (holds(to, value->type) || !wraps);
    if (same || value->type == to) return node_same(node);
    if ((status = node_operand(node, 0, &x)) != TUTTI_OK) return status;
    if (to == ONNX_BOOL) {
        x.tensor = node_plain(node, "not", &x.tensor, 1);
        x.tensor = node_plain(node, "not", &x.tensor, 1);
    } else if (!to_float) {
        if (from_float) x.tensor = node_plain(node, "trunc", &x.tensor, 1);
        if (from_float || !holds(to, value->type)) x.tensor = node_wrapped(node, x.tensor, to);
    }
    return node_set_output(node, x.tensor, x.batch);
}

/* The quotient of integers is truncated. */
tutti_status build_div(struct onnx_node *node)
{
    const struct onnx_value *value = node_input(node, 0);
    const tutti_status status = build_pointwise(node);
    if (status != TUTTI_OK || !value || onnx_type_is_float(value->type)) return status;
    struct onnx_value *output = node_output(node, 0);
    if (output) output->tensor = node_plain(node, "trunc", &output->tensor, 1);
    return output && output->tensor.id < 0 ? tutti_network_status(node->import->network) : TUTTI_OK;
}

tutti_status build_dropout(struct onnx_node *node)
{
    struct operand x;
    float ratio;
    tutti_status status = node_operand(node, 0, &x);
    if (status == TUTTI_OK) status = node_scalar(node, 1, node_number(node, "ratio", 0.5f), &ratio); /* opset < 12 */
    if (status != TUTTI_OK) return status;
    const struct onnx_value *mode = node_input(node, 2), *mask = node_output(node, 1);
    float trains = mode != NULL;
    if (mode && (mode->stored || mode->array) && (status = node_scalar(node, 2, 0, &trains)) != TUTTI_OK) return status;
    /* A node that reads the mask of a layer that drops elements gets the message that it is not available. */
    if (mask && (ratio == 0 || trains == 0)) {
        const tutti_tensor one = node_constant(node, 1);
        status = node_set_output_at(
            node, 1, node_elements(node, "where", (tutti_tensor[]) { x.tensor, one, one }, 3), x.batch);
    }
    node_set_type(node, 1, ONNX_BOOL);
    if (status != TUTTI_OK) return status;
    if (ratio == 0) return node_set_output(node, x.tensor, x.batch);
    return node_set_output(node, node_op(node, "dropout", &x.tensor, 1, "ratio=%.9g", (double)ratio), x.batch);
}

/* ------------------------------------------------------------------------------------------------- along axes ---- */

/* All axes if none is named, or none at all with `noop_with_empty_axes`. */
static tutti_status read_axes(
    const struct onnx_node *node, const struct operand *x, unsigned *file_axes, unsigned *axes)
{
    int64_t list[TUTTI_MAX_RANK];
    int count = 0;
    const int rank = operand_rank(x);
    tutti_status status = node_list_or_attribute(node, "axes", 1, list, TUTTI_MAX_RANK, &count);
    if (status == TUTTI_OK) status = axes_read(list, count, rank, file_axes);
    if (status != TUTTI_OK) return status;
    if (count == 0 && !node_integer(node, "noop_with_empty_axes", 0)) *file_axes = (1u << rank) - 1;
    *axes = 0;
    for (int i = 0, axis = 0; i < rank && status == TUTTI_OK; i++) {
        if (!(*file_axes >> i & 1)) continue;
        status = operand_axis(x, i, &axis);
        *axes |= 1u << axis;
    }
    return status;
}

static tutti_tensor reduce(
    const struct onnx_node *node, tutti_tensor x, const char *operation, unsigned axes, bool keep)
{
    char list[64];
    size_t used = 0;
    for (int i = 0; i < TUTTI_MAX_RANK; i++)
        if (axes >> i & 1) used += (size_t)snprintf(list + used, sizeof list - used, "%s%d", used ? "," : "", i);
    return node_op(node, operation, &x, 1, "axes=%s keepdims=%d", list, keep);
}

/* A reduction along no axis. */
static tutti_tensor reduce_nothing(const struct onnx_node *node, tutti_tensor x)
{
    if (!strcmp(node->operation, "reduce_sum_square")) return node_plain(node, "square", &x, 1);
    if (!strcmp(node->operation, "reduce_log_sum")) return node_plain(node, "log", &x, 1);
    const bool absolute = !strcmp(node->operation, "reduce_l1") || !strcmp(node->operation, "reduce_l2");
    return absolute ? node_plain(node, "abs", &x, 1) : x;
}

/* Means, norms and logarithms of integers have no fraction. */
static tutti_tensor reduce_integers(const struct onnx_node *node, const struct operand *x, unsigned axes, bool keep)
{
    static const char *const with_fraction[] = { "reduce_l2", "reduce_log_sum", "reduce_log_sum_exp" };
    int64_t count = 1;
    for (int i = 0; i < x->shape.rank; i++) count *= axes >> i & 1 ? x->shape.sizes[i] : 1;
    if (!strcmp(node->operation, "reduce_mean")) {
        const tutti_tensor sum = reduce(node, x->tensor, "reduce_sum", axes, keep);
        const tutti_tensor mean = node_binary(node, "div", sum, node_constant(node, (float)count));
        return node_plain(node, "trunc", &mean, 1);
    }
    const tutti_tensor y = reduce(node, x->tensor, node->operation, axes, keep);
    for (size_t i = 0; i < sizeof with_fraction / sizeof *with_fraction; i++)
        if (!strcmp(node->operation, with_fraction[i])) return node_truncated(node, y);
    return y;
}

tutti_status build_reduce(struct onnx_node *node)
{
    const bool floats = node_input(node, 0) && onnx_type_is_float(node_input(node, 0)->type);
    const bool keep = node_integer(node, "keepdims", 1) != 0;
    struct operand x;
    unsigned axes = 0, file_axes = 0;
    tutti_status status = node_operand(node, 0, &x);
    if (status == TUTTI_OK) status = read_axes(node, &x, &file_axes, &axes);
    if (status != TUTTI_OK) return status;
    if (axes == 0) return node_set_output(node, reduce_nothing(node, x.tensor), x.batch);
    if (x.batch.batched && !strcmp(node->operation, "reduce_mean") && x.shape.rank == 3 && axes == 6 && keep && floats)
        return node_set_output(node, node_plain(node, "global_average_pool", &x.tensor, 1), x.batch);
    const unsigned before = file_axes & ((1u << (operand_has_batch_axis(&x) ? x.batch.axis : 0)) - 1);
    return node_set_output(node,
        floats ? reduce(node, x.tensor, node->operation, axes, keep) : reduce_integers(node, &x, axes, keep),
        batch_axis_moved(x.batch, keep ? 0 : -__builtin_popcount(before)));
}

tutti_tensor node_log_softmax(const struct onnx_node *node, tutti_tensor x, int axis)
{
    return node_op(node, "log_softmax", &x, 1, "axis=%d", axis);
}

tutti_status node_softmax_axis(const struct onnx_node *node, struct operand *x, tutti_shape *shape, int *axis)
{
    tutti_status status = node_operand(node, 0, x);
    const bool old = node->import->opset < 13;
    const int64_t asked = node_integer(node, "axis", old ? 1 : -1), rank = status == TUTTI_OK ? operand_rank(x) : 0;
    const int64_t file_axis = asked < 0 ? asked + rank : asked;
    *shape = x->shape;
    if (status == TUTTI_OK) status = operand_axis(x, asked, axis);
    if (status != TUTTI_OK || !old || *axis == x->shape.rank - 1) return status;
    if (operand_has_batch_axis(x) && x->batch.axis > file_axis)
        return node_refuse("before opset 13 it is over all axes from axis %d on: the batch is one", (int)file_axis);
    for (int i = *axis + 1; i < shape->rank; i++) x->shape.sizes[*axis] *= shape->sizes[i];
    x->shape.rank = *axis + 1;
    x->tensor = node_reshape(node, x->tensor, &x->shape);
    return x->tensor.id < 0 ? tutti_network_status(node->import->network) : TUTTI_OK;
}

tutti_status node_set_softmax_output(
    const struct onnx_node *node, tutti_tensor y, const struct operand *x, const tutti_shape *shape)
{
    return node_set_output(node, shape->rank == x->shape.rank ? y : node_reshape(node, y, shape), x->batch);
}

/* An axis other than the last one is exchanged with the last one, and back. */
tutti_status build_softmax(struct onnx_node *node)
{
    struct operand x;
    tutti_shape shape;
    int axis = 0, order[TUTTI_MAX_RANK];
    const tutti_status status = node_softmax_axis(node, &x, &shape, &axis);
    if (status != TUTTI_OK) return status;
    if (node->operation) return node_set_softmax_output(node, node_log_softmax(node, x.tensor, axis), &x, &shape);
    const int last = x.shape.rank - 1;
    for (int i = 0; i <= last; i++) order[i] = i == axis ? last : i == last ? axis : i;
    x.tensor = node_permuted(node, x.tensor, order, last + 1);
    x.tensor = node_permuted(node, node_plain(node, "softmax", &x.tensor, 1), order, last + 1);
    return node_set_softmax_output(node, x.tensor, &x, &shape);
}
