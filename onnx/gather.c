/* Operators that read or write elements by their indices. */
#include "onnx/operators.h"

#include "base/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ----------------------------------------------------------------------------------------------------- Gather ---- */

/* Takes one element along an axis, and removes the axis. */
static tutti_status gather_one(struct onnx_node *node, int64_t index)
{
    struct operand x;
    int axis = 0;
    const int64_t asked = node_integer(node, "axis", 0);
    tutti_status status = node_operand(node, 0, &x);
    if (status == TUTTI_OK) status = operand_axis(&x, asked, &axis);
    if (status != TUTTI_OK) return status;
    index = index < 0 ? index + x.shape.sizes[axis] : index;
    if (index < 0 || index >= x.shape.sizes[axis]) return fail(TUTTI_FORMAT, "there is no element %" PRId64, index);
    x.tensor = node_cut(node, x.tensor, axis, index, index + 1);
    x.tensor = node_without_axis(node, &x, x.tensor, axis);
    const int64_t file_axis = asked < 0 ? asked + operand_rank(&x) : asked;
    return node_set_output(node, x.tensor, batch_axis_moved(x.batch, file_axis < x.batch.axis ? -1 : 0));
}

/* The indices grow with the sample along the batch's axis of the data: they select among its rows, which become
 * an axis of the sample with the number that it has in the file. */
static tutti_status gather_within_samples(
    struct onnx_node *node, const struct operand *x, const struct operand *indices, int file_axis)
{
    const int64_t rows = x->batch.rows_per_sample;
    const struct batch_index *index = &node_input(node, 1)->index;
    const struct batch_axis batch_axis = { .batched = true,
        .axis = file_axis + indices->batch.axis,
        .rows_per_sample = indices->batch.rows_per_sample,
        .outer = 1 };
    tutti_shape data = x->shape, of_indices = indices->shape;
    if (index->factor != rows || index->component != ALL_COMPONENTS || x->batch.outer != 1 || indices->batch.outer != 1)
        return node_refuse("its indices along the batch must grow with the sample");
    if (x->shape.rank + indices->shape.rank + 1 >= TUTTI_MAX_RANK) return node_refuse("its result has too many axes");
    tutti_tensor pair[] = { node_with_rows(node, x->tensor, &data, file_axis, rows), indices->tensor };
    if (batch_axis.rows_per_sample > 1)
        pair[1] = node_with_rows(node, pair[1], &of_indices, indices->batch.axis, indices->batch.rows_per_sample);
    tutti_tensor y = node_op(node, "gather", pair, 2, "axis=%d", file_axis);
    if (batch_axis.rows_per_sample > 1) y = node_without_rows(node, y, batch_axis.axis);
    return node_set_output(node, y, batch_axis);
}

/* The indices' axes replace one axis of the data. */
static tutti_status gather(struct onnx_node *node, const struct operand *x, const struct operand *indices)
{
    int axis = 0;
    const int64_t asked = node_integer(node, "axis", 0), file_axis = asked < 0 ? asked + operand_rank(x) : asked;
    if (node_input(node, 1)->index.factor && operand_has_batch_axis(x) && file_axis == x->batch.axis)
        return gather_within_samples(node, x, indices, (int)file_axis);
    if (node_input(node, 1)->index.factor) return node_refuse("its indices grow with the sample");
    const tutti_status status = operand_axis(x, asked, &axis);
    if (status != TUTTI_OK) return status;
    if (x->batch.batched && indices->batch.batched && (operand_has_batch_axis(x) || operand_has_batch_axis(indices)))
        return node_refuse("both its inputs depend on the samples");
    const tutti_tensor pair[] = { x->tensor, indices->tensor }, y = node_op(node, "gather", pair, 2, "axis=%d", axis);
    if (!x->batch.batched) return node_set_output(node, y, batch_axis_moved(indices->batch, (int)file_axis));
    return node_set_output(
        node, y, batch_axis_moved(x->batch, file_axis < x->batch.axis ? operand_rank(indices) - 1 : 0));
}

/* Finds the axis of known indices along which they grow with the sample, and how many of its elements each sample has.
 * False: there is no such axis. */
static bool find_batch_axis(
    const struct import *import, const struct array *indices, int64_t factor, int *axis, int64_t *rows)
{
    const int64_t samples = import_samples(import);
    bool found = false;
    for (int i = 0; i < indices->rank && samples && indices->integers; i++) {
        const int64_t each = indices->sizes[i] / samples;
        if (each < 1 || indices->sizes[i] % samples || (found && each >= *rows) ||
            !array_is_batch_index(indices, i, each, ALL_COMPONENTS, factor))
            continue;
        *axis = i;
        *rows = each;
        found = true;
    }
    return found;
}

/* Known indices along the batch of the data, which select the same rows of each sample. */
static tutti_status gather_known_within_samples(
    const struct onnx_node *node, const struct operand *x, const struct array *indices, int file_axis)
{
    struct batch_axis batch_axis = { .batched = true, .outer = 1 };
    int at = 0;
    if (!find_batch_axis(node->import, indices, x->batch.rows_per_sample, &at, &batch_axis.rows_per_sample))
        return node_refuse(
            "its indices along axis %d, the batch, do not select the same part of each sample", file_axis);
    if (indices->rank == 1 && batch_axis.rows_per_sample == 1 && x->batch.rows_per_sample == 1)
        return node_same(node); /* each sample */
    tutti_shape data = x->shape;
    batch_axis.axis = file_axis + at;
    if (x->shape.rank + indices->rank >= TUTTI_MAX_RANK) return node_refuse("its result has too many axes");
    tutti_tensor y = node_with_rows(node, x->tensor, &data, file_axis, x->batch.rows_per_sample);
    y = node_op(node, "gather",
        (tutti_tensor[]) { y, node_first_sample(node, indices, at, batch_axis.rows_per_sample) }, 2, "axis=%d",
        file_axis);
    if (batch_axis.rows_per_sample > 1) y = node_without_rows(node, y, batch_axis.axis);
    return node_set_output(node, y, batch_axis);
}

/* Five cases: a known index of rank 0; known indices along the batch; indices that grow with the sample along it; int32
 * ids into a table (embedding); all others. */
tutti_status build_gather(struct onnx_node *node)
{
    struct operand x, indices;
    tutti_shape shape = { 0 };
    tutti_status status = node_operand(node, 0, &x);
    const struct onnx_value *second = node_input(node, 1);
    if (status == TUTTI_OK && !second) status = fail(TUTTI_FORMAT, "input 1 is missing");
    if (status != TUTTI_OK) return status;
    const bool known = second->stored || second->array;
    if (known && (status = value_shape(node->import, second, &shape)) != TUTTI_OK) return status;
    if (known && shape.rank == 0) {
        int64_t index[1];
        int count;
        status = node_list(node, 1, index, 1, &count);
        return status == TUTTI_OK ? gather_one(node, index[0]) : status;
    }
    const int64_t asked = node_integer(node, "axis", 0), file_axis = asked < 0 ? asked + operand_rank(&x) : asked;
    if (known && operand_has_batch_axis(&x) && file_axis == x.batch.axis && x.batch.outer == 1) {
        const struct array *array = NULL;
        status = node_array(node, 1, &array);
        return status == TUTTI_OK ? gather_known_within_samples(node, &x, array, x.batch.axis) : status;
    }
    if ((status = node_operand_as_is(node, 1, &indices)) != TUTTI_OK) return status;
    const bool is_table = !x.batch.batched && x.shape.rank == 2 && asked == 0;
    if (!is_table || known || !second->converts || second->index.factor) return gather(node, &x, &indices);
    const tutti_tensor pair[] = { indices.tensor, x.tensor };
    return node_set_output(node, node_op(node, "embedding", pair, 2, "from_end=1"), indices.batch);
}

/* ------------------------------------------------------------------------------------------------ elements ---- */

/* Reads data, indices, and updates if `count` is 3. *batch_axis: that of the result. */
static tutti_status read_inputs(
    const struct onnx_node *node, int count, struct operand *inputs, struct batch_axis *batch_axis)
{
    tutti_status status = TUTTI_OK;
    *batch_axis = NO_BATCH;
    for (int i = 0; i < count && status == TUTTI_OK; i++) {
        status = (i == 1 ? node_operand_as_is : node_operand)(node, (size_t)i, &inputs[i]);
        if (status == TUTTI_OK && inputs[i].batch.batched && !batch_axis->batched) *batch_axis = inputs[i].batch;
    }
    return status;
}

/* Gives all inputs the same batch, where it is an axis of the file. */
static tutti_status match_inputs(
    const struct onnx_node *node, int count, struct operand *inputs, const struct batch_axis *batch_axis)
{
    tutti_status status = TUTTI_OK;
    const struct operand *batched = inputs;
    if (!batch_has_axis(batch_axis)) return TUTTI_OK;
    while (!batched->batch.batched) batched++;
    for (int i = 0; i < count && status == TUTTI_OK; i++) {
        if (inputs[i].batch.batched && !batch_axis_equal(&inputs[i].batch, batch_axis))
            return node_refuse("the batch is another axis of input %d", i);
        if (inputs[i].batch.batched) continue;
        status = node_operand(node, (size_t)i, &inputs[i]);
        if (status == TUTTI_OK) status = node_match_batch(node, (size_t)i, batched, &inputs[i]);
    }
    return status;
}

static tutti_tensor add(const struct onnx_node *node, const char *operation, const struct operand *inputs, int count,
    const char *attributes)
{
    tutti_tensor tensors[3];
    for (int i = 0; i < count; i++) tensors[i] = inputs[i].tensor;
    return node_op(node, operation, tensors, count, "%s", attributes);
}

const char *node_reduction(const struct onnx_node *node)
{
    static const char *const names[] = { "none", "add", "mul", "max", "min" };
    if (!node_attribute(node, "reduction")) return names[0];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (node_attribute_is(node, "reduction", names[i])) return names[i];
    return NULL;
}

tutti_status build_elements(struct onnx_node *node)
{
    struct operand inputs[3];
    struct batch_axis batch_axis;
    char text[64];
    int axis = 0;
    const bool scatters = node->proto->n_input == 3;
    const char *reduction = node_reduction(node);
    tutti_status status = read_inputs(node, 2 + scatters, inputs, &batch_axis);
    if (status == TUTTI_OK) status = match_inputs(node, 2 + scatters, inputs, &batch_axis);
    if (status == TUTTI_OK) status = operand_axis(&inputs[0], node_integer(node, "axis", 0), &axis);
    if (status != TUTTI_OK) return status;
    if (!reduction) return node_refuse("its reduction must be none, add, mul, max or min");
    snprintf(text, sizeof text, scatters ? "axis=%d reduction=%s" : "axis=%d", axis, reduction);
    return node_set_output(node, add(node, node->operation, inputs, 2 + scatters, text), batch_axis);
}

/* --------------------------------------------------------------------------------- Compress, TensorScatter ---- */

/* Selects the elements of an axis for which a known condition is true; without an axis, those of all elements in a
 * row. */
tutti_status build_compress(struct onnx_node *node)
{
    struct operand x;
    const struct array *condition = NULL;
    int axis = 0;
    int64_t count = 0;
    tutti_status status = node_operand(node, 0, &x);
    if (status == TUTTI_OK) status = node_array(node, 1, &condition);
    if (status != TUTTI_OK) return status;
    if (node_attribute(node, "axis")) {
        status = operand_axis(&x, node_integer(node, "axis", 0), &axis);
    } else {
        if (operand_has_batch_axis(&x)) return node_refuse("without an axis it would join samples");
        int64_t all = 1;
        for (int i = 0; i < x.shape.rank; i++) all *= x.shape.sizes[i];
        x.shape = TUTTI_SHAPE(all);
        x.tensor = node_reshape(node, x.tensor, &x.shape);
    }
    if (status != TUTTI_OK) return status;
    if (!condition->integers || condition->count > (size_t)x.shape.sizes[axis])
        return fail(TUTTI_FORMAT, "its condition must be of bool, and not longer than the axis");
    int32_t *picked = memory_new(condition->count + 1, sizeof *picked);
    if (!picked) return TUTTI_NO_MEMORY;
    for (size_t i = 0; i < condition->count; i++)
        if (condition->integers[i].number) picked[count++] = (int32_t)i;
    const tutti_tensor pair[] = { x.tensor,
        count ? node_integer_constant(node, 0, "indices", TUTTI_SHAPE(count), picked) : x.tensor };
    free(picked);
    if (count == 0) return node_refuse("nothing is left");
    return node_set_output(node, node_op(node, "gather", pair, 2, "axis=%d", axis), x.batch);
}

/* Positions of each sample's update s along the axis: write_indices + s, and modulo the axis's size in the mode
 * "circular". The samples are the first axis of the file, also if a sample is the whole file. */
static tutti_tensor positions_of(
    const struct onnx_node *node, const struct operand *first, const tutti_shape *updates, int axis, int64_t size)
{
    const bool own = first->shape.rank > 0, circular = node_attribute_is(node, "mode", "circular");
    const int64_t count = updates->sizes[axis];
    int32_t number = (int32_t)size, *steps = memory_new((size_t)count + 1, sizeof *steps);
    if (!steps) return (tutti_tensor) { -1 };
    for (int64_t i = 0; i < count; i++) steps[i] = (int32_t)i;
    tutti_tensor positions = node_integer_constant(node, 0, "steps", TUTTI_SHAPE(count), steps);
    positions = tutti_cast(node->import->network, positions, TUTTI_DTYPE_F32);
    free(steps);
    tutti_shape apart = { .rank = updates->rank };
    for (int i = 0; i < apart.rank; i++) apart.sizes[i] = i == axis ? count : 1;
    positions = node_reshape(node, positions, &apart);
    for (int i = 0; i < apart.rank; i++) apart.sizes[i] = i == 0 && own ? updates->sizes[0] : 1;
    const tutti_tensor begin = own ? node_reshape(node, first->tensor, &apart) : first->tensor;
    if (begin.id >= 0) positions = node_plain(node, "add", (tutti_tensor[]) { begin, positions }, 2);
    if (circular) {
        const tutti_tensor around = tutti_cast(
            node->import->network, node_integer_constant(node, 0, "size", TUTTI_SHAPE(1), &number), TUTTI_DTYPE_F32);
        positions = node_plain(node, "mod", (tutti_tensor[]) { positions, around }, 2);
    }
    return node_op(node, "expand", &positions, 1, "shape=%s", list_print(updates->sizes, updates->rank).text);
}

/* A cache of keys or values, with an update after what it has. */
tutti_status build_tensor_scatter(struct onnx_node *node)
{
    struct operand in[2] = { { .tensor = { -1 } }, { .tensor = { -1 } } }, first = { .tensor = { -1 } };
    struct batch_axis batch_axis;
    int axis = 0;
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; i < 2 && status == TUTTI_OK; i++) status = node_operand(node, i, &in[i]);
    if (status == TUTTI_OK && node_input(node, 2)) status = node_operand(node, 2, &first);
    batch_axis = in[in[1].batch.batched].batch;
    if (status == TUTTI_OK) status = match_inputs(node, 2, in, &batch_axis);
    if (status == TUTTI_OK && batch_has_axis(&batch_axis) && first.shape.rank > 0)
        status = node_drop_axis(node, 2, 0, 1, &first);
    if (status == TUTTI_OK) status = operand_axis(&in[0], node_integer(node, "axis", -2), &axis);
    if (status != TUTTI_OK) return status;
    const int rank = operand_rank(&in[0]);
    if ((batch_axis.batched && batch_axis.axis > 0) || batch_axis.rows_per_sample != 1 || batch_axis.outer != 1 ||
        rank < 2 || (operand_has_batch_axis(&first) && !batch_axis_equal(&first.batch, &batch_axis)) ||
        rank != operand_rank(&in[1]))
        return node_refuse("the batch must be the first axis of its inputs, which must have equally many");
    const tutti_tensor inputs[] = { in[0].tensor,
        positions_of(node, &first, &in[1].shape, axis, in[0].shape.sizes[axis]), in[1].tensor };
    return node_set_output(node, node_op(node, "scatter_elements", inputs, 3, "axis=%d", axis),
        batch_axis.batched ? batch_axis : first.batch);
}
