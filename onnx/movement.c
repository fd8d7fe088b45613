/* Operators that move elements, or take parts of values. */
#include "onnx/operators.h"

#include <inttypes.h>

tutti_status build_transpose(struct onnx_node *node)
{
    struct operand x;
    size_t count;
    int order[TUTTI_MAX_RANK], at = 0;
    unsigned bits = 0;
    const int64_t *perm = node_integers(node, "perm", &count);
    tutti_status status = node_operand(node, 0, &x);
    if (status != TUTTI_OK) return status;
    const int rank = operand_rank(&x);
    struct batch_axis batch_axis = x.batch;
    if (perm && count != (size_t)rank) return fail(TUTTI_FORMAT, "perm needs %d numbers", rank);
    if (perm && (status = axes_read(perm, rank, rank, &bits)) != TUTTI_OK) return status;
    for (int i = 0; i < rank; i++) {
        const int64_t from = !perm ? rank - 1 - i : perm[i] < 0 ? perm[i] + rank : perm[i];
        const bool is_batch = x.batch.batched && from == x.batch.axis;
        if (is_batch) batch_axis.axis = i;
        if (is_batch && x.batch.outer == 1) continue;
        if (is_batch)
            order[at++] = x.batch.axis;
        else if ((status = operand_axis(&x, from, &order[at++])) != TUTTI_OK)
            return status;
    }
    return node_set_output(node, node_permuted(node, x.tensor, order, at), batch_axis);
}

/* Reads the sizes to which a value without a batch is expanded. *batch: the axis that becomes the batch, whose size
 * is its rows of a sample, or NO_AXIS. *guessed: only a size suggests that it is the batch. */
static tutti_status read_expansion(const struct onnx_node *node, const struct operand *x, const struct array *asked,
    tutti_shape *to, int *batch, bool *guessed)
{
    const int64_t samples = node->import->fixed_batch;
    const int rank = (int)asked->count > x->shape.rank ? (int)asked->count : x->shape.rank;
    *to = (tutti_shape) { .rank = rank };
    *batch = NO_AXIS;
    for (int i = 0; i < rank; i++) {
        const int own = i - (rank - x->shape.rank), wanted = i - (rank - (int)asked->count);
        const int64_t size = own < 0 ? 1 : x->shape.sizes[own];
        const struct symbolic_integer more = wanted < 0 ? (struct symbolic_integer) { 1, 0 } : asked->integers[wanted];
        const bool fixed = i == 0 && samples > 1 && more.number == samples && more.batches == 0 && size == 1;
        if (more.batches || fixed) {
            if (*batch != NO_AXIS || size != 1 || (!fixed && (more.number || more.batches < 0)))
                return node_refuse("axis %d cannot be repeated for each sample", i);
            *batch = i;
            *guessed = fixed;
        }
        if (size != 1 && more.number != 1 && more.number != size)
            return fail(TUTTI_FORMAT, "axis %d cannot be repeated", i);
        to->sizes[i] = fixed ? 1 : more.batches ? more.batches : size == 1 ? more.number : size;
    }
    return TUTTI_OK;
}

/* In a file for one number of samples, an axis to be repeated for each sample may already have equal parts for all of
 * them. */
static tutti_status merge_samples(const struct onnx_node *node, struct operand *x, const struct array *asked)
{
    tutti_status status = TUTTI_OK;
    for (int i = 0; i < x->shape.rank && status == TUTTI_OK; i++) {
        const int wanted = i + (int)asked->count - x->shape.rank;
        tutti_shape one = x->shape;
        if (wanted < 0 || asked->integers[wanted].batches < 1 || one.sizes[i] == 1) continue;
        if ((status = node_drop_axis(node, 0, i, asked->integers[wanted].batches, x)) != TUTTI_OK) break;
        one.sizes[i] = 1;
        x->shape = one;
        x->tensor = node_reshape(node, x->tensor, &one);
    }
    return status;
}

/* Repeats axes of size 1. Along the batch, a value without a batch is the same for each sample. */
static tutti_status expand_fixed(struct onnx_node *node, struct operand *x, const struct array *asked)
{
    tutti_shape to, all;
    int batch;
    bool guessed = false;
    struct onnx_value *y = node_output(node, 0);
    tutti_status status = merge_samples(node, x, asked);
    if (status == TUTTI_OK) status = read_expansion(node, x, asked, &to, &batch, &guessed);
    if (status != TUTTI_OK) return status;
    if (to.rank) x->tensor = node_op(node, "expand", &x->tensor, 1, "shape=%s", list_print(to.sizes, to.rank).text);
    for (int i = 0; i < to.rank && y; i++) {
        const int own = i - (to.rank - x->shape.rank);
        if (to.sizes[i] > 1 && (own < 0 || x->shape.sizes[own] == 1)) y->repeated |= 1U << i;
    }
    if (batch == NO_AXIS) return node_set_output(node, x->tensor, x->batch);
    const struct batch_axis batch_axis = {
        .batched = true, .axis = batch, .rows_per_sample = to.sizes[batch], .outer = 1
    };
    all = to;
    if (guessed && y) {
        all.sizes[batch] = node->import->fixed_batch;
        y->unbatched = node_op(node, "expand", &x->tensor, 1, "shape=%s", list_print(all.sizes, all.rank).text);
    }
    status = node_spread(node, &x->tensor);
    return status == TUTTI_OK ? node_set_output(node, node_without_rows(node, x->tensor, batch), batch_axis) : status;
}

tutti_status build_expand(struct onnx_node *node)
{
    struct operand x;
    const struct array *asked = NULL;
    tutti_status status = node_operand(node, 0, &x);
    if (status == TUTTI_OK) status = node_array(node, 1, &asked);
    if (status != TUTTI_OK) return status;
    if (!asked->integers || asked->count > TUTTI_MAX_RANK)
        return node_refuse("the shape must be up to %d integers", TUTTI_MAX_RANK);
    if (!x.batch.batched) return expand_fixed(node, &x, asked);
    const int rank = operand_rank(&x), more = (int)asked->count > rank ? (int)asked->count - rank : 0;
    tutti_shape to = { .rank = more + x.shape.rank };
    if (to.rank >= TUTTI_MAX_RANK) return node_refuse("too many axes");
    for (int i = 0; i < x.shape.rank; i++) to.sizes[more + i] = x.shape.sizes[i];
    for (int i = 0; i < more; i++) to.sizes[i] = asked->integers[i].number;
    for (int i = more; i < (int)asked->count; i++) {
        int axis = 0;
        const struct symbolic_integer size = asked->integers[i];
        const int file_axis = i - more + (rank + more - (int)asked->count);
        if (x.batch.axis == file_axis || size.number == 1) continue; /* the batch stays what it is */
        if ((status = operand_axis(&x, file_axis, &axis)) != TUTTI_OK) return status;
        if (size.batches || size.number < 1 || (x.shape.sizes[axis] != 1 && x.shape.sizes[axis] != size.number))
            return node_refuse("axis %d cannot be repeated", file_axis);
        to.sizes[more + axis] = size.number;
    }
    if (to.rank == 0) return node_set_output(node, x.tensor, x.batch);
    return node_set_output(node, node_op(node, "expand", &x.tensor, 1, "shape=%s", list_print(to.sizes, to.rank).text),
        batch_axis_moved(x.batch, more));
}

/* Whether an input has no elements. A network has no such tensors: Concat leaves them out. */
static bool is_empty(const struct onnx_node *node, size_t position)
{
    const struct onnx_value *value = node_input(node, position);
    bool empty = value && value->array && value->array->count == 0;
    for (size_t i = 0; value && value->stored && i < value->stored->n_dims; i++) empty |= value->stored->dims[i] == 0;
    return empty;
}

static tutti_status node_empty(const struct onnx_node *node, size_t output, const struct operand *x)
{
    struct onnx_value *value = node_output(node, output);
    const int64_t sizes[TUTTI_MAX_RANK] = { 0 };
    if (!value) return TUTTI_OK;
    value->array = array_new(x->shape.rank, sizes, true);
    return value->array ? TUTTI_OK : TUTTI_NO_MEMORY;
}

/* All inputs have the same batch_axis; those without a batch are the same for each sample. */
tutti_status build_concat(struct onnx_node *node)
{
    enum { MOST = 8 }; /* inputs of a node */
    tutti_tensor list[MOST];
    struct operand first = { .batch = NO_BATCH }, x;
    int axis = 0, count = 0;
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; i < node->proto->n_input && !first.batch.batched; i++)
        if (!is_empty(node, i) && (status = node_operand(node, i, &first)) != TUTTI_OK) return status;
    for (size_t i = 0; i < node->proto->n_input; i++) {
        if (is_empty(node, i)) continue;
        status = node_operand(node, i, &x);
        if (status == TUTTI_OK && first.batch.batched && !x.batch.batched)
            status = node_match_batch(node, i, &first, &x);
        if (status == TUTTI_OK) status = operand_axis(&x, node_integer(node, "axis", 1), &axis);
        if (status != TUTTI_OK) return status;
        if (!batch_axis_equal(&x.batch, &first.batch)) return node_refuse("the batch is another axis of input %zu", i);
        if (count == MOST) {
            list[0] = node_op(node, "concat", list, count, "axis=%d", axis);
            count = 1;
        }
        list[count++] = x.tensor;
    }
    if (count == 0) return node_refuse("all its inputs are empty");
    if (count == 1 && node->proto->n_input > 1) return node_set_output(node, list[0], first.batch);
    return node_set_output(node, node_op(node, "concat", list, count, "axis=%d", axis), first.batch);
}

tutti_tensor node_without_axis(const struct onnx_node *node, const struct operand *x, tutti_tensor one, int axis)
{
    tutti_shape to = { 0 };
    for (int i = 0; i < x->shape.rank; i++)
        if (i != axis) to.sizes[to.rank++] = x->shape.sizes[i];
    if (to.rank == 0 && !x->batch.batched) to = TUTTI_SHAPE(1);
    return node_reshape(node, one, &to);
}

tutti_status build_split(struct onnx_node *node)
{
    struct operand x;
    int axis = 0, count = 0;
    int64_t sizes[64], start = 0;
    const size_t outputs = node->proto->n_output;
    tutti_status status = node_operand(node, 0, &x);
    if (status == TUTTI_OK && node_integer(node, "axis", 0)) status = node_equal_parts_as_batch(node, 0, &x);
    if (status == TUTTI_OK) status = operand_axis(&x, node_integer(node, "axis", 0), &axis);
    if (status == TUTTI_OK) status = node_list_or_attribute(node, "split", 1, sizes, 64, &count);
    if (status != TUTTI_OK) return status;
    const int64_t size = x.shape.sizes[axis], equal = (size + (int64_t)outputs - 1) / (int64_t)outputs;
    if (count && (size_t)count != outputs) return fail(TUTTI_FORMAT, "%d sizes for %zu outputs", count, outputs);
    for (size_t i = 0; i < outputs && status == TUTTI_OK; i++) {
        const int64_t length = count ? sizes[i] : equal < size - start ? equal : size - start;
        if (length < 0 || length > size - start) return fail(TUTTI_FORMAT, "its parts do not fit %" PRId64, size);
        if (length == 0)
            status = node_empty(node, i, &x);
        else
            status = node_set_output_at(node, i, node_cut(node, x.tensor, axis, start, start + length), x.batch);
        start += length;
    }
    return status;
}
