/* GatherND and ScatterND. Their indices [.., k] are positions along k axes of the data, the first ones after those that
 * data and indices share (batch_dims). The batch can be an axis after these, which the indices do not refer to; one of
 * these, so that a component of the indices grows with the sample (struct batch_index); or one of the shared axes. */
#include "onnx/operators.h"

#include "base/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { DATA, INDICES, UPDATES, MOST };

struct nd {
    struct operand in[MOST];
    int count;          /* of inputs */
    int k;              /* axes of the data that the indices refer to, after `shared` ones */
    int shared;         /* leading axes that data and indices have in common */
    int q;              /* axes of the indices before the last one */
    int data_axis;      /* in the file, the batch axis of the data, or of what ScatterND makes of it; or NO_AXIS */
    int index_axis;     /* the batch axis of indices and updates; or NO_AXIS */
    int64_t index_rows; /* rows of each sample along it */
};

static tutti_status read_inputs(const struct onnx_node *node, struct nd *nd)
{
    tutti_status status = TUTTI_OK;
    for (int i = 0; i < nd->count && status == TUTTI_OK; i++)
        status = (i == INDICES ? node_operand_as_is : node_operand)(node, (size_t)i, &nd->in[i]);
    if (status != TUTTI_OK) return status;
    const struct operand *indices = &nd->in[INDICES];
    nd->q = operand_rank(indices) - 1;
    if (nd->q < 0 || indices->shape.rank < 1)
        return node_refuse("its indices have no axis, or the batch is their last one");
    if (operand_has_batch_axis(indices) && indices->batch.axis == nd->q)
        return node_refuse("the batch is the indices' last axis");
    const int64_t k = indices->shape.sizes[indices->shape.rank - 1];
    if (k < 1 || k + nd->shared > operand_rank(&nd->in[DATA]))
        return fail(TUTTI_FORMAT, "its indices are %" PRId64 " numbers each", k);
    nd->k = (int)k;
    for (int i = 0; i < nd->count; i++)
        if (operand_has_batch_axis(&nd->in[i]) && nd->in[i].batch.outer != 1)
            return node_refuse("an axis before the batch is joined with it");
    return TUTTI_OK;
}

/* ---------------------------------------------------------------------------------- indices of each sample ---- */

/* Reduces known indices of all samples to those of the first one. `rows_of_data`: elements of a sample along the
 * data's batch axis. */
static tutti_status known_indices(const struct onnx_node *node, struct nd *nd, int64_t rows_of_data)
{
    struct operand *indices = &nd->in[INDICES];
    const int64_t samples = import_samples(node->import);
    const struct array *x = NULL;
    const tutti_status status = node_array(node, INDICES, &x);
    if (status != TUTTI_OK) return status;
    if (!x->integers || samples == 0 || x->sizes[nd->index_axis] != samples * nd->index_rows ||
        !array_is_batch_index(x, nd->index_axis, nd->index_rows, nd->data_axis - nd->shared, rows_of_data))
        return node_refuse("its indices do not tell the same part of each sample");
    indices->tensor = node_first_sample(node, x, nd->index_axis, nd->index_rows);
    return indices->tensor.id < 0 ? tutti_network_status(node->import->network) : TUTTI_OK;
}

/* Along the batch of the data, indices that the network computes must grow with the sample. */
static tutti_status computed_indices(const struct onnx_node *node, struct nd *nd, int64_t rows_of_data)
{
    struct operand *indices = &nd->in[INDICES];
    const struct batch_index *index = &node_input(node, INDICES)->index;
    const int component = nd->data_axis - nd->shared;
    const bool grows = index->factor == rows_of_data &&
        (index->component == component || (index->component == ALL_COMPONENTS && nd->k == 1));
    if (indices->batch.axis != nd->index_axis || indices->batch.rows_per_sample != nd->index_rows)
        return node_refuse("the batch is another axis of its indices");
    if (!grows && (index->factor || node->import->fixed_batch != 1 || rows_of_data != 1))
        return node_refuse("its indices along the batch must grow with the sample");
    if (nd->index_rows > 1)
        indices->tensor = node_with_rows(node, indices->tensor, &indices->shape, nd->index_axis, nd->index_rows);
    return TUTTI_OK;
}

/* ----------------------------------------------------------------------------------------- data of each sample ---- */

/* Inserts into samples of the data the axis along which the indices grow: the axis of their rows, or one of size 1. */
static tutti_status with_axis(const struct onnx_node *node, const struct nd *nd, struct operand *x)
{
    if (x->shape.rank + 1 >= TUTTI_MAX_RANK) return node_refuse("its data has too many axes");
    x->tensor = node_with_rows(node, x->tensor, &x->shape, nd->data_axis, x->batch.rows_per_sample);
    return x->tensor.id < 0 ? tutti_network_status(node->import->network) : TUTTI_OK;
}

/* Reads a known input with several rows of each sample along its first axis, which must be the same for each sample. */
static tutti_status match_rows(const struct onnx_node *node, int input, int64_t rows, struct operand *x)
{
    const struct array *array = NULL;
    const int64_t samples = import_samples(node->import);
    tutti_status status = node_array(node, (size_t)input, &array);
    if (status != TUTTI_OK) return status;
    bool same = array->rank > 0 && rows <= INT32_MAX && array->sizes[0] == samples * rows;
    const size_t part = same && samples ? array->count / (size_t)samples : 1;
    for (size_t i = 0; same && i < array->count; i++)
        same = array->floats
            ? array->floats[i] == array->floats[i % part]
            : !array->integers[i].batches && array->integers[i].number == array->integers[i % part].number;
    if (!same) return node_refuse("input %d does not have the same rows for each sample", input);
    if (samples > 1 && (status = node_check_equal_parts(node, (size_t)input, 0, samples)) != TUTTI_OK) return status;
    x->tensor = node_op(node, "slice", &x->tensor, 1, "axes=0 starts=0 ends=%" PRId64, rows);
    x->batch = (struct batch_axis) { .batched = true, .axis = 0, .rows_per_sample = rows, .outer = 1 };
    const tutti_status spread = node_spread_operand(node, x);
    if (spread != TUTTI_OK) return spread;
    x->tensor = node_plain(node, "fold", &x->tensor, 1);
    x->shape.rank--;
    for (int i = 0; i < x->shape.rank; i++) x->shape.sizes[i] = x->shape.sizes[i + 1];
    return x->tensor.id < 0 ? tutti_network_status(node->import->network) : TUTTI_OK;
}

/* An input without a batch is the same for each sample. */
static tutti_status match_batch(const struct onnx_node *node, struct nd *nd, int input, int axis, int64_t rows)
{
    struct operand *x = &nd->in[input];
    struct operand other = { .batch = { .batched = true, .axis = axis, .rows_per_sample = rows, .outer = 1 } };
    if (x->batch.batched)
        return x->batch.axis == axis && x->batch.rows_per_sample == rows
            ? TUTTI_OK
            : node_refuse("the batch is another axis of input %d", input);
    if (rows > 1 && axis == 0) return match_rows(node, input, rows, x);
    other.shape.rank = x->shape.rank - 1;
    return node_match_batch(node, (size_t)input, &other, x);
}

/* ----------------------------------------------------------------------------------------- batch indices ---- */

/* The axis of the data along which the indices grow with the sample. NO_AXIS: none. */
static int axis_of_batch_index(const struct onnx_node *node, const struct nd *nd)
{
    const struct array *x = NULL;
    const int64_t samples = import_samples(node->import);
    const struct batch_index *index = &node_input(node, INDICES)->index;
    if (index->factor) return nd->shared + (index->component == ALL_COMPONENTS ? 0 : index->component);
    if (node_array(node, INDICES, &x) != TUTTI_OK || !x->integers || samples == 0) return NO_AXIS;
    for (int64_t k = 0; k < x->sizes[x->rank - 1] && x->sizes[nd->index_axis] == samples; k++)
        if (array_is_batch_index(x, nd->index_axis, 1, (int)k, 1)) return nd->shared + (int)k;
    return NO_AXIS;
}

/* Finds which axes are the batch, by the operands that have one. */
static void find_axes(const struct onnx_node *node, struct nd *nd)
{
    const struct batch_axis *data = &nd->in[DATA].batch, *indices = &nd->in[INDICES].batch;
    const struct batch_axis *updates =
        nd->count == MOST && nd->in[UPDATES].batch.batched ? &nd->in[UPDATES].batch : NULL;
    nd->index_axis = indices->batched ? indices->axis : updates && updates->axis < nd->q ? updates->axis : NO_AXIS;
    nd->index_rows = indices->batched ? indices->rows_per_sample
        : nd->index_axis != NO_AXIS   ? updates->rows_per_sample
                                      : 1;
    nd->data_axis = data->batched           ? data->axis
        : updates && updates->axis >= nd->q ? updates->axis - nd->q + nd->k
        : nd->index_axis != NO_AXIS         ? axis_of_batch_index(node, nd)
                                            : NO_AXIS;
    if (nd->index_axis != NO_AXIS || nd->data_axis < nd->shared || nd->data_axis >= nd->k + nd->shared) return;
    /* The data has the batch, the indices are known, and no updates tell where the indices' batch is. */
    const struct array *x = NULL;
    if (node_array(node, INDICES, &x) != TUTTI_OK || !x->integers) return;
    const int64_t samples = import_samples(node->import);
    for (int i = 0; i < nd->q && nd->index_axis == NO_AXIS && samples; i++) {
        nd->index_rows = x->sizes[i] / samples;
        if (x->sizes[i] % samples == 0 && nd->index_rows &&
            array_is_batch_index(x, i, nd->index_rows, nd->data_axis - nd->shared, data->rows_per_sample))
            nd->index_axis = i;
    }
}

static tutti_tensor add(const struct onnx_node *node, const struct nd *nd, int shared, const char *reduction)
{
    const tutti_tensor list[] = { nd->in[DATA].tensor, nd->in[INDICES].tensor, nd->in[UPDATES].tensor };
    if (!reduction) return node_op(node, "gather_nd", list, 2, "batch_dims=%d", shared);
    return node_op(node, "scatter_nd", list, 3, "reduction=%s", reduction);
}

/* The indices grow with the sample. */
static tutti_status build_along(const struct onnx_node *node, struct nd *nd, const char *reduction)
{
    struct operand *x = &nd->in[DATA], *updates = &nd->in[UPDATES];
    if (nd->index_axis == NO_AXIS)
        return node_refuse("its indices along the batch do not select the same part of each sample");
    const int64_t factor = node_input(node, INDICES)->index.factor;
    tutti_status status = match_batch(node, nd, DATA, nd->data_axis,
        x->batch.batched ? x->batch.rows_per_sample
            : factor > 1 ? factor
                         : 1);
    const struct batch_axis batch_axis = x->batch;
    if (status == TUTTI_OK)
        status =
            (nd->in[INDICES].batch.batched ? computed_indices : known_indices)(node, nd, batch_axis.rows_per_sample);
    if (status == TUTTI_OK && nd->count == MOST)
        status = match_batch(node, nd, UPDATES, nd->index_axis, nd->index_rows);
    if (status == TUTTI_OK) status = with_axis(node, nd, x);
    if (status != TUTTI_OK) return status;
    if (nd->count == MOST && nd->index_rows > 1)
        updates->tensor = node_with_rows(node, updates->tensor, &updates->shape, nd->index_axis, nd->index_rows);
    tutti_tensor y = add(node, nd, nd->shared, reduction);
    if (nd->count == MOST) return node_set_output(node, node_without_rows(node, y, nd->data_axis), batch_axis);
    if (nd->index_rows > 1) y = node_without_rows(node, y, nd->index_axis);
    return node_set_output(node, y,
        (struct batch_axis) { .batched = true, .axis = nd->index_axis, .rows_per_sample = nd->index_rows, .outer = 1 });
}

/* The batch is an axis of the slices. */
static tutti_status build_outside_batch(const struct onnx_node *node, struct nd *nd, const char *reduction)
{
    struct operand *x = &nd->in[DATA], *updates = &nd->in[UPDATES];
    if (nd->in[INDICES].batch.batched) return node_refuse("its indices, and slices of its data, depend on the samples");
    const int moved = nd->q - nd->k - nd->shared;
    const int64_t rows = x->batch.batched ? x->batch.rows_per_sample : updates->batch.rows_per_sample;
    tutti_status status = match_batch(node, nd, DATA, nd->data_axis, rows);
    if (status == TUTTI_OK && nd->count == MOST) status = match_batch(node, nd, UPDATES, nd->data_axis + moved, rows);
    if (status != TUTTI_OK) return status;
    return node_set_output(
        node, add(node, nd, nd->shared, reduction), batch_axis_moved(x->batch, nd->count == MOST ? 0 : moved));
}

/* The batch is one of the first `batch_dims` axes. */
static tutti_status build_shared(const struct onnx_node *node, struct nd *nd)
{
    struct operand *x = &nd->in[DATA], *indices = &nd->in[INDICES];
    const struct batch_axis batch_axis = x->batch.batched ? x->batch : indices->batch;
    if (batch_axis.rows_per_sample > 1 && batch_axis.axis > 0)
        return node_refuse("rows of samples lie after another axis");
    if (node_input(node, INDICES)->index.factor)
        return node_refuse("its indices grow with the sample, and the batch is one of its batch_dims");
    tutti_status status = match_batch(node, nd, DATA, batch_axis.axis, batch_axis.rows_per_sample);
    if (status == TUTTI_OK && !indices->batch.batched) status = node_operand(node, INDICES, indices);
    if (status == TUTTI_OK) status = match_batch(node, nd, INDICES, batch_axis.axis, batch_axis.rows_per_sample);
    return status == TUTTI_OK ? node_set_output(node, add(node, nd, nd->shared - 1, NULL), batch_axis) : status;
}

static tutti_status build(const struct onnx_node *node, struct nd *nd, const char *reduction)
{
    bool has_batch_axis = false;
    struct batch_axis batch_axis = NO_BATCH;
    tutti_status status = read_inputs(node, nd);
    if (status != TUTTI_OK) return status;
    for (int i = 0; i < nd->count; i++) {
        has_batch_axis |= operand_has_batch_axis(&nd->in[i]);
        if (nd->in[i].batch.batched) batch_axis = nd->in[i].batch;
    }
    if (!has_batch_axis) return node_set_output(node, add(node, nd, nd->shared, reduction), batch_axis);
    find_axes(node, nd);
    const bool data_shares = nd->in[DATA].batch.batched && nd->data_axis < nd->shared;
    if (data_shares || (nd->in[INDICES].batch.batched && nd->index_axis < nd->shared)) return build_shared(node, nd);
    if (nd->data_axis == NO_AXIS && nd->count == 2) /* slices of a table */
        return node_set_output(node, add(node, nd, nd->shared, NULL), batch_axis);
    if (nd->data_axis == NO_AXIS) return node_refuse("indices of each sample change data that is the same for all");
    return nd->data_axis < nd->shared + nd->k ? build_along(node, nd, reduction)
                                              : build_outside_batch(node, nd, reduction);
}

tutti_status build_gather_nd(struct onnx_node *node)
{
    struct nd nd = { .count = 2, .shared = (int)node_integer(node, "batch_dims", 0) };
    if (node_integer(node, "batch_dims", 0) < 0 || nd.shared >= TUTTI_MAX_RANK)
        return fail(TUTTI_FORMAT, "batch_dims is %" PRId64, node_integer(node, "batch_dims", 0));
    return build(node, &nd, NULL);
}

tutti_status build_scatter_nd(struct onnx_node *node)
{
    struct nd nd = { .count = MOST };
    const char *reduction = node_reduction(node);
    if (!reduction) return node_refuse("its reduction must be none, add, mul, max or min");
    return build(node, &nd, reduction);
}
