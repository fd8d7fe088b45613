/* Operators that give the same elements other axes. The batch is found among the new ones by its distance in memory
 * between two samples. */
#include "onnx/operators.h"

#include <inttypes.h>
#include <string.h>

/* ---------------------------------------------------------------------------------------------------- Reshape ---- */

/* The product of sizes; 0 if it does not fit 48 bits, which no value of a network has. */
static int64_t product(const int64_t *sizes, int count)
{
    int64_t all = 1;
    for (int i = 0; i < count; i++)
        if (__builtin_mul_overflow(all, sizes[i], &all) || all > INT64_C(1) << 48) return 0;
    return all;
}

/* Sizes of the file. `axis`: the batch, whose size is in units of the number of samples; -1: none. `open`: the axis
 * whose size is -1; -1: none. */
struct target {
    int64_t sizes[TUTTI_MAX_RANK];
    int rank, axis, open;
};

/* Reads the shape that Reshape asks for; 0 copies the input's size. */
static tutti_status read_target(const struct onnx_node *node, const struct array *asked,
    const struct symbolic_integer *from, int from_rank, struct target *to)
{
    const bool copies = !node_integer(node, "allowzero", 0);
    *to = (struct target) { .rank = (int)asked->count, .axis = -1, .open = -1 };
    if (!asked->integers || asked->rank > 1 || asked->count > TUTTI_MAX_RANK)
        return node_refuse("the shape must be up to %d integers", TUTTI_MAX_RANK);
    for (int i = 0; i < to->rank; i++) {
        struct symbolic_integer size = asked->integers[i];
        const bool copy = copies && size.number == 0 && size.batches == 0;
        if (copy && i >= from_rank) return fail(TUTTI_FORMAT, "axis %d does not exist in the input", i);
        if (copy) size = from[i];
        if (size.batches && (size.number || to->axis >= 0 || size.batches < 0))
            return node_refuse("axis %d is not a multiple of the number of samples, or the second one", i);
        if (size.batches) to->axis = i;
        to->sizes[i] = size.batches ? size.batches : size.number;
        if (to->sizes[i] == -1 && to->open < 0)
            to->open = i;
        else if (to->sizes[i] < 1 || to->sizes[i] > INT32_MAX)
            return fail(TUTTI_FORMAT, "the size %" PRId64, to->sizes[i]);
    }
    return TUTTI_OK;
}

static tutti_status does_not_fit(int64_t have)
{
    return fail(TUTTI_FORMAT, "the new sizes do not fit %" PRId64 " elements", have);
}

/* Sets the size that is -1: `have` elements, of one sample if the batch's axis is known, or if the -1 can be it. */
static tutti_status close_target(struct target *to, int64_t have)
{
    if (to->open >= 0) to->sizes[to->open] = 1;
    const int64_t others = product(to->sizes, to->rank);
    if (others == 0 || have % others != 0 || (to->open < 0 && have != others)) return does_not_fit(have);
    if (to->open >= 0) to->sizes[to->open] = have / others;
    return TUTTI_OK;
}

/* Finds the batch axis in a file for `samples` samples: the axis whose elements are as far apart as samples are,
 * `stride`. */
static void find_axis(struct target *to, int64_t stride, int64_t samples)
{
    for (int i = 0; i < to->rank; i++) {
        const int64_t after = product(to->sizes + i + 1, to->rank - i - 1), span = after * to->sizes[i];
        const bool fits = after && stride % after == 0 && span % (stride * samples) == 0;
        /* A batch of one can be any axis: the first of size 1, or the first that fits. */
        if (fits && (to->axis < 0 || (to->sizes[to->axis] != 1 && to->sizes[i] == 1))) to->axis = i;
        if (fits && (samples > 1 || to->sizes[i] == 1)) return;
    }
}

/* In a file for one sample, the batch can be any axis of size 1. If no axis is removed, the batch keeps its position,
 * after equal sizes: heads that are split from the last axis join it. `stride`: as in find_axis(). */
static void keep_axis(struct target *to, const struct symbolic_integer *from, int rank,
    const struct batch_axis *batch_axis, int64_t each, int64_t stride)
{
    struct target closed = *to;
    const int axis = batch_axis->axis;
    if (axis <= 0 || batch_axis->outer != 1 || to->axis >= 0 || to->rank < rank) return;
    if (close_target(&closed, each) != TUTTI_OK) return;
    for (int i = 0; i < axis; i++)
        if (closed.sizes[i] != from[i].number) return;
    const int64_t after = product(closed.sizes + axis + 1, closed.rank - axis - 1);
    if (after && stride % after == 0 && after * closed.sizes[axis] % stride == 0) to->axis = axis;
}

/* Finds the batch axis, and all sizes. `each`: elements of a sample. `stride`: elements from one sample to the
 * next. */
static tutti_status resolve(
    const struct onnx_node *node, struct target *to, int64_t each, int64_t stride, const struct batch_axis *batch_axis)
{
    const int64_t samples = node->import->fixed_batch;
    int64_t all;
    if (!batch_has_axis(batch_axis) || to->axis >= 0) return close_target(to, each);
    if (samples == 0) {
        if (to->open < 0)
            return node_refuse("no axis of the new shape is the batch: export with a symbol for the number of samples, "
                               "or with 'whole' a sample is all of each input");
        to->axis = to->open;
        return close_target(to, each);
    }
    if (__builtin_mul_overflow(each, samples, &all)) return does_not_fit(each);
    const tutti_status status = close_target(to, all);
    if (status != TUTTI_OK) return status;
    find_axis(to, stride, samples);
    if (to->axis < 0) return node_refuse("no axis of the new shape is the batch, of %" PRId64 " samples", samples);
    to->sizes[to->axis] /= samples;
    return TUTTI_OK;
}

/* Number of elements of a sample before the batch axis. */
static int64_t outer_of(const struct batch_axis *batch_axis, const tutti_shape *shape)
{
    return product(shape->sizes, batch_axis->axis + (batch_axis->outer != 1));
}

/* Sample [A, B] of rows k as [k', A, B'], where A elements lie before the batch and k B = k' B' after it. */
static tutti_tensor move_rows(
    const struct onnx_node *node, const struct operand *x, int64_t a, int64_t after, int64_t rows)
{
    tutti_tensor y = x->tensor;
    const int64_t each = after * x->batch.rows_per_sample;
    if (x->batch.rows_per_sample > 1) y = node_op(node, "unfold", &y, 1, "size=%" PRId64, x->batch.rows_per_sample);
    if (x->batch.rows_per_sample > 1 && a > 1) {
        y = node_reshape(node, y, &(tutti_shape) { 3, { x->batch.rows_per_sample, a, after } });
        y = node_permuted(node, y, (int[]) { 1, 0, 2 }, 3);
    }
    if (rows > 1 && a > 1) {
        y = node_reshape(node, y, &(tutti_shape) { 3, { a, rows, each / rows } });
        y = node_permuted(node, y, (int[]) { 1, 0, 2 }, 3);
    }
    return y;
}

/* Gives x the sizes of the file. */
static tutti_status reshape_to(const struct onnx_node *node, const struct operand *x, const struct target *to)
{
    const int64_t a = outer_of(&x->batch, &x->shape), each = product(x->shape.sizes, x->shape.rank);
    const int64_t stride = each / a * x->batch.rows_per_sample; /* from one sample to the next */
    const int64_t after = product(to->sizes + to->axis + 1, to->rank - to->axis - 1);
    struct batch_axis batch_axis = { .batched = true, .axis = to->axis };
    if (after == 0 || stride % after != 0) return node_refuse("an axis of the new shape would join parts of samples");
    batch_axis.rows_per_sample = stride / after;
    if (to->sizes[to->axis] % batch_axis.rows_per_sample != 0)
        return node_refuse("the batch would be divided between two axes");
    batch_axis.outer = to->sizes[to->axis] / batch_axis.rows_per_sample;
    tutti_shape shape = { 0 };
    if (batch_axis.rows_per_sample > 1) shape.sizes[shape.rank++] = batch_axis.rows_per_sample;
    for (int i = 0; i < to->rank; i++) {
        if (i == to->axis && batch_axis.outer == 1) continue;
        if (shape.rank == TUTTI_MAX_RANK) return node_refuse("the new shape has too many axes");
        shape.sizes[shape.rank++] = i == to->axis ? batch_axis.outer : to->sizes[i];
    }
    tutti_tensor y = node_reshape(node, move_rows(node, x, a, each / a, batch_axis.rows_per_sample), &shape);
    if (batch_axis.rows_per_sample > 1) y = node_plain(node, "fold", &y, 1);
    return node_set_output(node, y, batch_axis);
}

static tutti_status reshape_as_asked(const struct onnx_node *node, const struct operand *x, const struct array *asked)
{
    struct symbolic_integer from[TUTTI_MAX_RANK + 1];
    struct target to;
    int rank = 0;
    tutti_status status = value_sizes(node->import, node_input(node, 0), from, &rank);
    if (status == TUTTI_OK) status = read_target(node, asked, from, rank, &to);
    if (status != TUTTI_OK) return status;
    int64_t each = product(x->shape.sizes, x->shape.rank);
    if (__builtin_mul_overflow(each, x->batch.batched ? x->batch.rows_per_sample : 1, &each) || each == 0)
        return node_refuse("its input has no elements, or too many");
    if (!operand_has_batch_axis(x)) {
        if (to.axis >= 0) return node_refuse("the number of samples would be a size of axis %d", to.axis);
        if ((status = close_target(&to, each)) != TUTTI_OK) return status;
        tutti_shape shape = { .rank = to.rank };
        for (int i = 0; i < to.rank; i++) shape.sizes[i] = to.sizes[i];
        if (shape.rank == 0 && !x->batch.batched) shape = TUTTI_SHAPE(1);
        return node_set_output(node, node_reshape(node, x->tensor, &shape), x->batch);
    }
    const int64_t stride = each / outer_of(&x->batch, &x->shape);
    if (node->import->fixed_batch == 1) keep_axis(&to, from, rank, &x->batch, each, stride);
    status = resolve(node, &to, each, stride, &x->batch);
    return status == TUTTI_OK ? reshape_to(node, x, &to) : status;
}

tutti_status build_reshape(struct onnx_node *node)
{
    struct operand x;
    const struct array *asked = NULL;
    tutti_status status = node_array(node, 1, &asked);
    if (status == TUTTI_OK) status = node_operand(node, 0, &x);
    return status == TUTTI_OK ? reshape_as_asked(node, &x, asked) : status;
}

/* ------------------------------------------------------------------------------------------ the same, by rules ---- */

static tutti_status multiply_all(const struct symbolic_integer *sizes, int count, struct symbolic_integer *all)
{
    *all = (struct symbolic_integer) { 1, 0 };
    for (int i = 0; i < count; i++)
        if (!symbolic_multiply(*all, sizes[i], all)) return node_refuse("the product of sizes is too large");
    return TUTTI_OK;
}

/* The result has two axes: the product of those before `axis`, and that of the others. */
tutti_status build_flatten(struct onnx_node *node)
{
    struct operand x;
    struct symbolic_integer from[TUTTI_MAX_RANK + 1];
    int rank = 0;
    tutti_status status = node_operand(node, 0, &x);
    if (status == TUTTI_OK) status = value_sizes(node->import, node_input(node, 0), from, &rank);
    if (status != TUTTI_OK) return status;
    int64_t axis = node_integer(node, "axis", 1);
    axis = axis < 0 ? axis + rank : axis;
    if (axis < 0 || axis > rank) return fail(TUTTI_FORMAT, "axis %" PRId64 " does not exist", axis);
    struct array *asked = array_new(1, (int64_t[]) { 2 }, false);
    if (!asked) return TUTTI_NO_MEMORY;
    status = multiply_all(from, (int)axis, &asked->integers[0]);
    if (status == TUTTI_OK) status = multiply_all(from + axis, rank - (int)axis, &asked->integers[1]);
    if (status == TUTTI_OK) status = reshape_as_asked(node, &x, asked);
    array_free(asked);
    return status;
}

/* Inserts axes of size 1, or removes them. `bits`: these axes in the longer shape of the file. The batch axis keeps
 * its position next to the others. */
static tutti_status change_axes(struct onnx_node *node, const struct operand *x, unsigned bits, bool insert)
{
    tutti_shape to = { 0 };
    struct batch_axis batch_axis = x->batch;
    const int have = operand_rank(x), rank = insert ? have + __builtin_popcount(bits) : have;
    for (int i = 0, at = 0; i < rank; i++) {
        const bool one = bits >> i & 1;
        if (insert && one) {
            to.sizes[to.rank++] = 1;
            batch_axis = batch_axis_moved(batch_axis, i <= batch_axis.axis);
            continue;
        }
        const int from = insert ? at++ : i;
        if (x->batch.batched && from == x->batch.axis) {
            if (one) return node_refuse("its axes include the batch");
            if (batch_axis.outer != 1) to.sizes[to.rank++] = batch_axis.outer;
            continue;
        }
        int axis = 0;
        const tutti_status status = operand_axis(x, from, &axis);
        if (status != TUTTI_OK) return status;
        if (one && x->shape.sizes[axis] != 1) return fail(TUTTI_FORMAT, "the size of axis %d is not 1", i);
        if (one)
            batch_axis = batch_axis_moved(batch_axis, from < x->batch.axis ? -1 : 0);
        else
            to.sizes[to.rank++] = x->shape.sizes[axis];
    }
    if (to.rank == 0 && !batch_axis.batched) to = TUTTI_SHAPE(1);
    return node_set_output(node, node_reshape(node, x->tensor, &to), batch_axis);
}

/* Squeeze and Unsqueeze. */
tutti_status build_squeeze(struct onnx_node *node)
{
    const bool insert = !strcmp(node->proto->op_type, "Unsqueeze");
    struct operand x;
    int64_t axes[TUTTI_MAX_RANK];
    int count = 0;
    unsigned bits = 0;
    tutti_status status = node_operand(node, 0, &x);
    if (status == TUTTI_OK) status = node_list_or_attribute(node, "axes", 1, axes, TUTTI_MAX_RANK, &count);
    if (status != TUTTI_OK) return status;
    const int have = operand_rank(&x), rank = have + (insert ? count : 0);
    if (rank > TUTTI_MAX_RANK) return node_refuse("too many axes");
    status = axes_read(axes, count, rank, &bits);
    for (int i = 0, axis = 0; i < have && count == 0 && !insert; i++) {
        if (x.batch.batched && i == x.batch.axis) continue;
        status = operand_axis(&x, i, &axis);
        if (status != TUTTI_OK) return status;
        bits |= x.shape.sizes[axis] == 1 ? 1u << i : 0;
    }
    return status == TUTTI_OK ? change_axes(node, &x, bits, insert) : status;
}
