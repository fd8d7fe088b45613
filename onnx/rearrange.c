/* Slice, Pad, Tile, CenterCropPad, DepthToSpace and SpaceToDepth. */
#include "onnx/operators.h"

#include <inttypes.h>
#include <string.h>

/* ----------------------------------------------------------------------------------------------------- Slice ---- */

/* Lists of tutti_op(), one entry for each axis of the tensor that is cut. */
struct slices {
    int count;
    int64_t axes[TUTTI_MAX_RANK], starts[TUTTI_MAX_RANK], ends[TUTTI_MAX_RANK], steps[TUTTI_MAX_RANK];
};

static int64_t clip(int64_t at, int64_t size, int64_t low, int64_t high)
{
    if (at < 0) at = at < -size ? -1 : at + size;
    return at < low ? low : at > high ? high : at;
}

/* Both ends are clipped to the axis. In tutti_op(), an end before the first element is -size - 1. */
static tutti_status add_slice(
    const struct operand *x, int axis, int64_t start, int64_t end, int64_t by, struct slices *slices)
{
    const int64_t size = x->shape.sizes[axis];
    const int64_t first = clip(start, size, 0, by < 0 ? size - 1 : size);
    const int64_t last = clip(end, size, by < 0 ? -1 : 0, by < 0 ? size - 1 : size);
    if (by == 0) return fail(TUTTI_FORMAT, "a step is 0");
    if (by < 0 ? last >= first : first >= last) return node_refuse("nothing is left along axis %d", axis + 1);
    if (by == 1 && first == 0 && last == size) return TUTTI_OK;
    slices->axes[slices->count] = axis;
    slices->starts[slices->count] = first;
    slices->ends[slices->count] = last < 0 ? -size - 1 : last;
    slices->steps[slices->count++] = by;
    return TUTTI_OK;
}

static tutti_status sliced(const struct onnx_node *node, const struct operand *x, const struct slices *s)
{
    if (s->count == 0) return node_set_output(node, x->tensor, x->batch);
    const tutti_tensor y = node_op(node, "slice", &x->tensor, 1, "axes=%s starts=%s ends=%s steps=%s",
        list_print(s->axes, s->count).text, list_print(s->starts, s->count).text, list_print(s->ends, s->count).text,
        list_print(s->steps, s->count).text);
    return node_set_output(node, y, x->batch);
}

/* Reads the ends of slices. Along the batch axis, an end that is the number of all samples becomes the largest
 * number. */
static tutti_status read_ends(const struct onnx_node *node, const struct operand *x, const int64_t *axes, bool has_axes,
    int64_t *ends, int *count)
{
    const struct array *array = NULL;
    if (node_attribute(node, "ends")) return node_list_or_attribute(node, "ends", 2, ends, TUTTI_MAX_RANK, count);
    const tutti_status status = node_array(node, 2, &array);
    if (status != TUTTI_OK) return status;
    if (!array->integers || array->count > TUTTI_MAX_RANK)
        return fail(TUTTI_FORMAT, "input 2 must be at most %d integers", TUTTI_MAX_RANK);
    *count = (int)array->count;
    for (int i = 0; i < *count; i++) {
        const int64_t axis = has_axes ? axes[i] : i;
        const struct symbolic_integer end = array->integers[i];
        const bool all = operand_has_batch_axis(x) && (axis < 0 ? axis + operand_rank(x) : axis) == x->batch.axis &&
            end.number >= 0 && end.batches >= x->batch.rows_per_sample * x->batch.outer;
        if (end.batches && !all)
            return node_refuse("the end along axis %" PRId64 " depends on the number of samples", axis);
        ends[i] = all ? INT64_MAX : end.number;
    }
    return TUTTI_OK;
}

/* Whether a slice along an axis, which may be the batch, is the whole axis. */
static bool is_all(const struct onnx_node *node, const struct operand *x, int64_t axis, int64_t start, int64_t end)
{
    const int64_t samples = node->import->fixed_batch, at = axis < 0 ? axis + operand_rank(x) : axis;
    if (start == 0 && end >= INT32_MAX) return true;
    if (!operand_has_batch_axis(x) || at != x->batch.axis || samples == 0) return false;
    const int64_t size = samples * x->batch.rows_per_sample * x->batch.outer;
    return end >= size && (start == 0 || start <= -size);
}

tutti_status build_slice(struct onnx_node *node)
{
    enum { STARTS, ENDS, AXES, STEPS, LISTS };
    static const char *const names[LISTS] = { "starts", "ends", "axes", "steps" };
    struct operand x;
    struct slices slices = { 0 };
    int64_t lists[LISTS][TUTTI_MAX_RANK];
    int counts[LISTS] = { 0 };
    unsigned seen = 0;
    tutti_status status = node_operand(node, 0, &x);
    for (size_t i = 0; i < LISTS && status == TUTTI_OK; i++)
        if (i != ENDS) status = node_list_or_attribute(node, names[i], i + 1, lists[i], TUTTI_MAX_RANK, &counts[i]);
    if (status == TUTTI_OK) status = read_ends(node, &x, lists[AXES], counts[AXES], lists[ENDS], &counts[ENDS]);
    if (status != TUTTI_OK) return status;
    for (int i = ENDS; i < LISTS; i++)
        if (counts[i] != counts[STARTS] && (counts[i] || i == ENDS))
            return fail(TUTTI_FORMAT, "starts, ends, axes and steps have different lengths");
    for (int i = 0; i < counts[STARTS]; i++) {
        int axis = 0;
        const int64_t start = lists[STARTS][i], end = lists[ENDS][i], by = counts[STEPS] ? lists[STEPS][i] : 1;
        if (by == 1 && is_all(node, &x, counts[AXES] ? lists[AXES][i] : i, start, end)) continue;
        status = operand_axis(&x, counts[AXES] ? lists[AXES][i] : i, &axis);
        if (status == TUTTI_OK && seen >> axis & 1) status = fail(TUTTI_FORMAT, "an axis is there twice");
        if (status == TUTTI_OK) status = add_slice(&x, axis, start, end, by, &slices);
        if (status != TUTTI_OK) return status;
        seen |= 1u << axis;
    }
    return sliced(node, &x, &slices);
}

/* ------------------------------------------------------------------------------------------------------- Pad ---- */

/* Reads the axes that an operator names, or all, as axes of the file. */
static tutti_status read_axes(
    const struct onnx_node *node, size_t position, const struct operand *x, int64_t axes[TUTTI_MAX_RANK], int *count)
{
    const tutti_status status = node_list_or_attribute(node, "axes", position, axes, TUTTI_MAX_RANK, count);
    if (status != TUTTI_OK || *count) return status;
    *count = operand_rank(x);
    for (int i = 0; i < *count; i++) axes[i] = i;
    return TUTTI_OK;
}

static tutti_status padded(const struct onnx_node *node, const struct operand *x, const int64_t *before,
    const int64_t *after, const char *mode, float value)
{
    const int rank = x->shape.rank;
    const tutti_tensor y = node_op(node, "pad", &x->tensor, 1, "before=%s after=%s mode=%s value=%.9g",
        list_print(before, rank).text, list_print(after, rank).text, mode, (double)value);
    return node_set_output(node, y, x->batch);
}

/* Pads are numbers before all axes, and then after them. */
tutti_status build_pad(struct onnx_node *node)
{
    static const char *const modes[] = { "reflect", "edge", "wrap" };
    struct operand x;
    int64_t pads[2 * TUTTI_MAX_RANK], axes[TUTTI_MAX_RANK], before[TUTTI_MAX_RANK] = { 0 };
    int64_t after[TUTTI_MAX_RANK] = { 0 };
    int count = 0, each = 0;
    float value = 0;
    const char *mode = "constant";
    tutti_status status = node_operand(node, 0, &x);
    if (status == TUTTI_OK) status = node_list_or_attribute(node, "pads", 1, pads, 2 * TUTTI_MAX_RANK, &count);
    if (status == TUTTI_OK) status = node_scalar(node, 2, node_number(node, "value", 0), &value);
    if (status == TUTTI_OK) status = read_axes(node, 3, &x, axes, &each);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (node_attribute_is(node, "mode", modes[i])) mode = modes[i];
    if (status != TUTTI_OK) return status;
    if (count != 2 * each) return fail(TUTTI_FORMAT, "it needs %d pads, not %d", 2 * each, count);
    for (int i = 0; i < each; i++) {
        int axis = 0;
        if (pads[i] == 0 && pads[i + each] == 0) continue;
        if ((status = operand_axis(&x, axes[i], &axis)) != TUTTI_OK) return status;
        before[axis] = pads[i];
        after[axis] = pads[i + each];
    }
    return padded(node, &x, before, after, mode, value);
}

/* Cuts off elements that exceed the new size, and adds zeros where elements are missing: half of them at each end. */
tutti_status build_center_crop_pad(struct onnx_node *node)
{
    struct operand x;
    int64_t shape[TUTTI_MAX_RANK], axes[TUTTI_MAX_RANK], before[TUTTI_MAX_RANK] = { 0 };
    int64_t after[TUTTI_MAX_RANK] = { 0 };
    int count = 0, each = 0;
    tutti_status status = node_operand(node, 0, &x);
    if (status == TUTTI_OK) status = node_list(node, 1, shape, TUTTI_MAX_RANK, &count);
    if (status == TUTTI_OK) status = read_axes(node, SIZE_MAX, &x, axes, &each);
    if (status != TUTTI_OK) return status;
    if (count != each) return fail(TUTTI_FORMAT, "its shape has %d sizes for %d axes", count, each);
    for (int i = 0; i < each; i++) {
        int axis = 0;
        if ((status = operand_axis(&x, axes[i], &axis)) != TUTTI_OK) return status;
        if (shape[i] < 1 || shape[i] > INT32_MAX) return node_refuse("size %" PRId64 " of axis %d", shape[i], axis + 1);
        const int64_t more = shape[i] - x.shape.sizes[axis];
        before[axis] = more / 2;
        after[axis] = more - more / 2;
    }
    return padded(node, &x, before, after, "constant", 0);
}

/* ------------------------------------------------------------------------------------------------------ Tile ---- */

/* Reads the repeats, one for each axis of the file. *batch: the axis that is repeated for each sample, or NO_AXIS; its
 * number is that of the repeats for one sample. */
static tutti_status read_repeats(const struct onnx_node *node, const struct operand *x, int64_t *times, int *batch)
{
    const struct array *asked = NULL;
    const int rank = operand_rank(x);
    const tutti_status status = node_array(node, 1, &asked);
    *batch = NO_AXIS;
    if (status != TUTTI_OK) return status;
    if (!asked->integers || asked->count != (size_t)rank)
        return fail(TUTTI_FORMAT, "it has %zu repeats for %d axes", asked->count, rank);
    for (int i = 0; i < rank; i++) {
        const struct symbolic_integer repeats = asked->integers[i];
        times[i] = repeats.batches ? repeats.batches : repeats.number;
        if (!repeats.batches) continue;
        if (x->batch.batched) return node_refuse("axis %d is repeated for each sample, and its input has a batch", i);
        if (*batch != NO_AXIS || repeats.number || repeats.batches < 0)
            return node_refuse(
                "the repeats of axis %d are not a multiple of the number of samples, or the second one", i);
        *batch = i;
    }
    return TUTTI_OK;
}

/* The result is the same x for each sample, with the rows of a sample along the axis. guessed: only a size suggests
 * this. */
static tutti_status repeated_for_samples(const struct onnx_node *node, struct operand *x, int axis, bool guessed)
{
    struct onnx_value *y = node_output(node, 0);
    tutti_shape all = x->shape;
    all.sizes[axis] = node->import->fixed_batch;
    if (guessed && y)
        y->unbatched = node_op(node, "expand", &x->tensor, 1, "shape=%s", list_print(all.sizes, all.rank).text);
    const struct batch_axis batch_axis = {
        .batched = true, .axis = axis, .rows_per_sample = x->shape.sizes[axis], .outer = 1
    };
    const tutti_status status = node_spread(node, &x->tensor);
    return status == TUTTI_OK ? node_set_output(node, node_without_rows(node, x->tensor, axis), batch_axis) : status;
}

tutti_status build_tile(struct onnx_node *node)
{
    struct operand x;
    int64_t times[TUTTI_MAX_RANK], repeats[TUTTI_MAX_RANK];
    int batch = NO_AXIS;
    tutti_status status = node_operand(node, 0, &x);
    if (status == TUTTI_OK) status = read_repeats(node, &x, times, &batch);
    if (status != TUTTI_OK) return status;
    const int64_t samples = node->import->fixed_batch;
    const bool guessed =
        !x.batch.batched && samples > 1 && x.shape.rank > 1 && x.shape.sizes[0] == 1 && times[0] == samples;
    if (guessed) batch = 0;
    if (guessed) times[0] = 1;
    for (int i = 0; i < x.shape.rank; i++) repeats[i] = 1;
    for (int i = 0; i < operand_rank(&x); i++) {
        int axis = 0;
        if (times[i] == 1) continue;
        if ((status = operand_axis(&x, i, &axis)) != TUTTI_OK) return status;
        repeats[axis] = times[i];
        if (__builtin_mul_overflow(x.shape.sizes[axis], times[i], &x.shape.sizes[axis]))
            return node_refuse("axis %d is repeated %" PRId64 " times", i, times[i]);
    }
    if (x.shape.rank == 0) return node_set_output(node, x.tensor, x.batch);
    x.tensor = node_op(node, "tile", &x.tensor, 1, "repeats=%s", list_print(repeats, x.shape.rank).text);
    if (batch == NO_AXIS) return node_set_output(node, x.tensor, x.batch);
    return repeated_for_samples(node, &x, batch, guessed);
}

/* DepthToSpace and SpaceToDepth. */
tutti_status build_blocks(struct onnx_node *node)
{
    struct operand x;
    const int64_t size = node_integer(node, "blocksize", 0);
    const tutti_status status = node_batch_first(node, 0, &x);
    if (status != TUTTI_OK) return status;
    x.tensor = node_op(node, node->operation, &x.tensor, 1, "blocksize=%" PRId64 "%s", size,
        node_attribute_is(node, "mode", "CRD") ? " mode=crd" : "");
    return node_set_output_batch_first(node, 0, x.tensor, &x);
}
