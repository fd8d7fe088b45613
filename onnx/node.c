/* A node's attributes, its inputs as known numbers, and its outputs. */
#include "onnx/operators.h"

#include <inttypes.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------- attributes ---- */

const Onnx__AttributeProto *node_attribute(const struct onnx_node *node, const char *name)
{
    return proto_attribute(node->proto->attribute, node->proto->n_attribute, name);
}

int64_t node_integer(const struct onnx_node *node, const char *name, int64_t fallback)
{
    const Onnx__AttributeProto *attribute = node_attribute(node, name);
    return attribute ? attribute->i : fallback;
}

float node_number(const struct onnx_node *node, const char *name, float fallback)
{
    const Onnx__AttributeProto *attribute = node_attribute(node, name);
    return attribute ? attribute->f : fallback;
}

bool node_attribute_is(const struct onnx_node *node, const char *name, const char *text)
{
    const Onnx__AttributeProto *attribute = node_attribute(node, name);
    const size_t length = strlen(text);
    return attribute && attribute->s.len == length && !memcmp(attribute->s.data, text, length);
}

const int64_t *node_integers(const struct onnx_node *node, const char *name, size_t *count)
{
    const Onnx__AttributeProto *attribute = node_attribute(node, name);
    *count = attribute ? attribute->n_ints : 0;
    return attribute ? attribute->ints : NULL;
}

tutti_status node_cast_type(const struct onnx_node *node, int *type)
{
    const struct onnx_value *like = node_input(node, 1);
    const bool is_like = !strcmp(node->proto->op_type, "CastLike");
    if (is_like && !like) return fail(TUTTI_FORMAT, "input 1 is missing");
    *type = is_like ? like->type : (int)node_integer(node, "to", 0);
    return TUTTI_OK;
}

/* ----------------------------------------------------------------------------------------------------- inputs ---- */

bool type_is_among(const char *type, const char *const *list)
{
    while (*list && strcmp(type, *list)) list++;
    return *list != NULL;
}

struct onnx_value *node_input(const struct onnx_node *node, size_t position)
{
    const Onnx__NodeProto *proto = node->proto;
    return position < proto->n_input && *proto->input[position] ? import_find(node->import, proto->input[position])
                                                                : NULL;
}

struct onnx_value *node_output(const struct onnx_node *node, size_t position)
{
    const Onnx__NodeProto *proto = node->proto;
    return position < proto->n_output && *proto->output[position] ? import_find(node->import, proto->output[position])
                                                                  : NULL;
}

/* Floats of an initialiser count as not known, whether it trains or is a constant, unless they are one number that does
 * not train. */
static bool is_known(const struct onnx_value *value)
{
    size_t count = value->array ? value->array->count : 0;
    if (value_is_integers(value)) return true;
    if (value->forced_parameter || (!value->stored && !value->array)) return false;
    if (value->stored && !array_count((int)value->stored->n_dims, value->stored->dims, &count)) return false;
    return !(value->initialiser || value->copied) || count == 1;
}

bool node_inputs_are_known(const struct onnx_node *node)
{
    bool known = node->proto->n_input > 0;
    for (size_t i = 0; i < node->proto->n_input && known; i++) {
        const struct onnx_value *value = node_input(node, i);
        const bool type_only = i == 1 && !strcmp(node->proto->op_type, "CastLike");
        known = !value || type_only || is_known(value);
    }
    return known && node_input(node, 0);
}

tutti_status node_array(const struct onnx_node *node, size_t position, const struct array **array)
{
    struct onnx_value *value = node_input(node, position);
    if (!value) return fail(TUTTI_FORMAT, "input %zu is missing", position);
    const tutti_status status = import_load(node->import, value);
    if (status != TUTTI_OK) return status;
    *array = value->array;
    if (value->array) return TUTTI_OK;
    return node_refuse("input %zu, '%s', %s: it must be known when the file is read", position, value->name,
        value->tensor.id >= 0 && !value->batch.batched ? "is computed from parameters" : "depends on the samples");
}

/* Reads integers, in which symbols become this number of samples; 0: there must be none. */
static tutti_status read_list(
    const struct onnx_node *node, size_t position, int64_t samples, int64_t *list, int most, int *count)
{
    const struct array *array = NULL;
    const tutti_status status = node_array(node, position, &array);
    *count = 0;
    if (status != TUTTI_OK) return status;
    if (!array->integers || array->count > (size_t)most)
        return fail(TUTTI_FORMAT, "input %zu must be at most %d integers", position, most);
    for (size_t i = 0; i < array->count; i++) {
        int64_t more = 0;
        if ((array->integers[i].batches && samples == 0) ||
            __builtin_mul_overflow(array->integers[i].batches, samples, &more) ||
            __builtin_add_overflow(array->integers[i].number, more, &list[i]))
            return node_refuse("input %zu depends on the number of samples", position);
    }
    *count = (int)array->count;
    return TUTTI_OK;
}

tutti_status node_list(const struct onnx_node *node, size_t position, int64_t *list, int most, int *count)
{
    *count = 0;
    return node_input(node, position) ? read_list(node, position, 0, list, most, count) : TUTTI_OK;
}

tutti_status node_sizes(const struct onnx_node *node, size_t position, int64_t *list, int most, int *count)
{
    return read_list(node, position, import_samples(node->import), list, most, count);
}

tutti_status node_list_or_attribute(
    const struct onnx_node *node, const char *name, size_t position, int64_t *list, int most, int *count)
{
    size_t given;
    const int64_t *attribute = node_integers(node, name, &given);
    if (!attribute) return node_list(node, position, list, most, count);
    if (given > (size_t)most) return fail(TUTTI_FORMAT, "%s must be at most %d integers", name, most);
    for (size_t i = 0; i < given; i++) list[i] = attribute[i];
    *count = (int)given;
    return TUTTI_OK;
}

tutti_status axes_read(const int64_t *axes, int count, int rank, unsigned *bits)
{
    *bits = 0;
    for (int i = 0; i < count; i++) {
        const int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
        if (axis < 0 || axis >= rank || *bits >> axis & 1)
            return fail(TUTTI_FORMAT, "axis %" PRId64 " does not exist, or is there twice", axes[i]);
        *bits |= 1u << axis;
    }
    return TUTTI_OK;
}

tutti_status node_scalar(const struct onnx_node *node, size_t position, float fallback, float *scalar)
{
    const struct array *array = NULL;
    *scalar = fallback;
    if (!node_input(node, position)) return TUTTI_OK;
    const tutti_status status = node_array(node, position, &array);
    if (status != TUTTI_OK) return status;
    if (array->count != 1 || (array->integers && array->integers[0].batches))
        return fail(TUTTI_FORMAT, "input %zu must be one number", position);
    *scalar = array->floats ? array->floats[0] : (float)array->integers[0].number;
    return TUTTI_OK;
}

/* ---------------------------------------------------------------------------------------------------- outputs ---- */

tutti_status node_set_output_at(
    const struct onnx_node *node, size_t output, tutti_tensor tensor, struct batch_axis batch_axis)
{
    struct onnx_value *value = node_output(node, output);
    if (tensor.id < 0) return tutti_network_status(node->import->network);
    if (value) value->tensor = tensor;
    if (value) value->batch = batch_axis;
    return TUTTI_OK;
}

tutti_status node_set_output(const struct onnx_node *node, tutti_tensor tensor, struct batch_axis batch_axis)
{
    return node_set_output_at(node, 0, tensor, batch_axis);
}

void node_set_type(const struct onnx_node *node, size_t output, int type)
{
    struct onnx_value *value = node_output(node, output);
    if (value) value->type = type;
}

tutti_status node_set_array(const struct onnx_node *node, struct array *array)
{
    return node_set_array_at(node, 0, array);
}

tutti_status node_set_array_at(const struct onnx_node *node, size_t output, struct array *array)
{
    struct onnx_value *value = node_output(node, output);
    if (!array) return TUTTI_NO_MEMORY;
    const tutti_status status = import_count_bytes(
        node->import, array->count * (array->floats ? sizeof *array->floats : sizeof *array->integers));
    if (status == TUTTI_OK && value)
        value->array = array;
    else
        array_free(array);
    return status;
}
