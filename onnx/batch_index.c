/* Indices that grow with the sample, as in x[arange(N), i]. A network computes each sample by itself. So it stores the
 * first sample's index, and value.index says how the indices grow (struct batch_index). */
#include "onnx/operators.h"

#include "base/memory.h"

#include <stdlib.h>

bool array_is_batch_index(const struct array *x, int axis, int64_t rows, int component, int64_t factor)
{
    const int64_t last = x->rank ? x->sizes[x->rank - 1] : 1;
    size_t inner = 1;
    for (int i = axis + 1; i < x->rank; i++) inner *= (size_t)x->sizes[i];
    const size_t line = inner * (size_t)x->sizes[axis], part = inner * (size_t)rows;
    for (size_t i = 0; i < x->count; i++) {
        const int64_t sample = (int64_t)(i % line / part), number = x->integers[i].number;
        const int64_t first = x->integers[i / line * line + i % part].number;
        const bool grows = component == ALL_COMPONENTS || (int64_t)i % last == component;
        if (grows && (first < 0 || first >= factor)) return false; /* it selects from another sample */
        if (x->integers[i].batches || number != first + (grows ? factor * sample : 0)) return false;
    }
    return true;
}

tutti_tensor node_first_sample(const struct onnx_node *node, const struct array *x, int axis, int64_t rows)
{
    size_t inner = 1, count = 0;
    tutti_shape shape = { 0 };
    for (int i = axis + 1; i < x->rank; i++) inner *= (size_t)x->sizes[i];
    for (int i = 0; i < x->rank && shape.rank < TUTTI_MAX_RANK; i++)
        if (i != axis || rows > 1) shape.sizes[shape.rank++] = i == axis ? rows : x->sizes[i];
    const size_t line = inner * (size_t)x->sizes[axis], part = inner * (size_t)rows;
    int32_t *numbers = memory_new(x->count + 1, sizeof *numbers);
    if (!numbers) return (tutti_tensor) { -1 };
    for (size_t i = 0; i < x->count; i++)
        if (i % line < part) numbers[count++] = (int32_t)x->integers[i].number;
    const tutti_tensor made = node_integer_constant(node, 0, "indices", shape, numbers);
    free(numbers);
    return made;
}

/* Whether a value has integers for each of PLACEHOLDER_BATCH samples. */
static bool uses_placeholder_batch(const struct import *import, const struct onnx_value *value)
{
    bool found = false;
    if (!import->uses_placeholder_batch || !value || value->stored || !value->array || !value->array->integers)
        return false;
    for (int i = 0; i < value->array->rank; i++)
        found |= value->array->sizes[i] && value->array->sizes[i] % PLACEHOLDER_BATCH == 0;
    return found;
}

static tutti_status refuse(size_t position)
{
    return node_refuse(
        "input %zu has indices that grow with the sample, and would be used as more than an index", position);
}

/* Whether an operator may read an input that grows with the sample. known: the numbers of PLACEHOLDER_BATCH samples are
 * known. */
static bool may_read(enum batch_index_rule rule, size_t position, const struct batch_index *index, bool known)
{
    const bool part = index->factor && index->component != ALL_COMPONENTS;
    if (index->factor && index->component == SIZES_ONLY) return rule == INDEX_SHAPE;
    switch (rule) {
    case INDEX_SHAPE:
    case INDEX_SIZES:
    case INDEX_SAME: return true;
    case INDEX_MOVED:
    case INDEX_SUM:
    case INDEX_DIFFERENCE:
    case INDEX_JOINED: return !part;
    case INDEX_SELECTS_SAMPLE: return !part && position == 1;
    case INDEX_COLUMN_SELECTS_SAMPLE: return position == 1;
    case INDEX_KNOWN: return !part && known;
    case INDEX_NEVER: break;
    }
    return false;
}

tutti_status batch_index_check(const struct onnx_node *node, enum batch_index_rule rule)
{
    node->import->constant_index = (struct constant_index) { 0 };
    for (size_t i = 0; i < node->proto->n_input; i++) {
        const struct onnx_value *value = node_input(node, i);
        const bool known = uses_placeholder_batch(node->import, value);
        if (!value || (!value->index.factor && !known)) continue;
        if (!may_read(rule, i, &value->index, known)) return refuse(i);
    }
    return TUTTI_OK;
}

/* By how much an input's numbers differ from one sample to the next. */
static int64_t factor_of(const struct onnx_node *node, size_t position)
{
    const struct constant_index *constant = &node->import->constant_index;
    const struct onnx_value *value = node_input(node, position);
    if (constant->factor && constant->position == position) return constant->factor;
    return value ? value->index.factor : 0;
}

/* Adds or subtracts the factors of the inputs of a sum or difference. */
static tutti_status add(const struct onnx_node *node, bool minus, struct batch_index *y)
{
    *y = (struct batch_index) { 0, ALL_COMPONENTS };
    for (size_t i = 0; i < node->proto->n_input; i++) {
        const int64_t factor = factor_of(node, i);
        if (minus && i ? __builtin_sub_overflow(y->factor, factor, &y->factor)
                       : __builtin_add_overflow(y->factor, factor, &y->factor))
            return refuse(i);
    }
    return TUTTI_OK;
}

/* Joins inputs: all may grow in the same way, or one of them as one column along the last axis. */
static tutti_status join(const struct onnx_node *node, struct batch_index *y)
{
    struct symbolic_integer sizes[TUTTI_MAX_RANK + 1];
    const int64_t axis = node_integer(node, "axis", 1);
    bool equal = true;
    *y = (struct batch_index) { 0, ALL_COMPONENTS };
    for (size_t i = 0; i < node->proto->n_input; i++) equal &= factor_of(node, i) == factor_of(node, 0);
    if (equal) y->factor = factor_of(node, 0);
    for (int i = 0, at = 0; i < (int)node->proto->n_input && !equal; i++) {
        const struct onnx_value *value = node_input(node, (size_t)i);
        const int64_t factor = factor_of(node, (size_t)i);
        int rank = 0;
        const tutti_status status =
            value ? value_sizes(node->import, value, sizes, &rank) : fail(TUTTI_FORMAT, "input %d is missing", i);
        if (status != TUTTI_OK) return status;
        const bool column = rank > 0 && (axis == -1 || axis == rank - 1) && sizes[rank - 1].batches == 0;
        if (factor && (!column || sizes[rank - 1].number != 1 || y->factor)) return refuse((size_t)i);
        if (factor) *y = (struct batch_index) { factor, at };
        at += column ? (int)sizes[rank - 1].number : 0;
    }
    return TUTTI_OK;
}

tutti_status batch_index_finish(const struct onnx_node *node, enum batch_index_rule rule)
{
    struct onnx_value *y = node_output(node, 0);
    const struct onnx_value *x = node_input(node, 0);
    struct batch_index index = { 0 };
    bool grows = node->import->constant_index.factor != 0;
    tutti_status status = TUTTI_OK;
    if (!y) return TUTTI_OK;
    for (size_t i = 0; i < node->proto->n_input; i++) {
        const struct onnx_value *input = node_input(node, i);
        grows |= input && (input->index.factor || uses_placeholder_batch(node->import, input));
    }
    if (rule != INDEX_SHAPE && uses_placeholder_batch(node->import, x) && y->array &&
        !uses_placeholder_batch(node->import, y))
        return refuse(0);
    if (rule == INDEX_SUM || rule == INDEX_DIFFERENCE)
        status = y->array ? TUTTI_OK : add(node, rule == INDEX_DIFFERENCE, &index);
    else if (rule == INDEX_JOINED)
        status = y->array ? TUTTI_OK : join(node, &index);
    else if (rule == INDEX_SIZES && grows)
        index = (struct batch_index) { 1, SIZES_ONLY };
    else if (node->import->constant_index.factor)
        return refuse(node->import->constant_index.position);
    else if (x && (rule == INDEX_SAME || rule == INDEX_MOVED))
        index = x->index;
    y->index = index.factor ? index : y->index;
    return status;
}
