/* Operators that give values other shapes, or move their elements. */
#include "onnx/operators.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* "2,0,1" */
struct list {
    char text[160];
};

static struct list print_list(const int64_t *numbers, int count)
{
    struct list list = { "" };
    size_t used = 0;
    for (int i = 0; i < count && used < sizeof list.text; i++)
        used += (size_t)snprintf(list.text + used, sizeof list.text - used, "%s%" PRId64, i ? "," : "", numbers[i]);
    return list;
}

/* ----------------------------------------------------------------------------------------------------- shapes ---- */

tutti_tensor step_reshape(const struct step *step, tutti_tensor x, const tutti_shape *shape)
{
    return step_op(step, "reshape", &x, 1, "shape=%s", print_list(shape->sizes, shape->rank).text);
}

/* 0 if it does not fit 64 bits, which no value of a network has. */
static int64_t elements_of(const tutti_shape *shape)
{
    int64_t count = 1;
    for (int i = 0; i < shape->rank; i++)
        if (__builtin_mul_overflow(count, shape->sizes[i], &count)) return 0;
    return count;
}

/* What Reshape asks for along an axis of a sample; 0 copies the input's size. */
static tutti_status sample_size(
    const struct step *step, const struct extent *asked, const tutti_shape *from, int axis, int64_t *size)
{
    const bool copy = asked->number == 0 && asked->batches == 0 && !step_integer(step, "allowzero", 0);
    if (asked->batches) return step_refuse("the number of samples would be a size of axis %d", axis + 1);
    if (copy && axis >= from->rank) return fail(TUTTI_FORMAT, "axis %d does not exist in the input", axis + 1);
    *size = copy ? from->sizes[axis] : asked->number;
    return *size == -1 || (*size > 0 && *size <= INT32_MAX) ? TUTTI_OK : fail(TUTTI_FORMAT, "the size %" PRId64, *size);
}

/* Whether the first axis of the new shape is the batch: by its size, or because the others hold a whole sample. */
static bool keeps_batch(const struct step *step, const struct array *asked, const tutti_shape *to, int64_t elements)
{
    const struct extent first = asked->extents[0];
    if (first.batches) return first.batches == 1 && first.number == 0;
    const int64_t fixed = step->import->fixed_batch;
    return (first.number == 0 && !step_integer(step, "allowzero", 0)) || (fixed && first.number == fixed) ||
        (first.number == -1 && elements_of(to) == elements);
}

/* Of a parameter or constant: all axes are its own. */
static tutti_status reshape_whole(struct step *step, const struct array *asked)
{
    tutti_tensor x;
    tutti_shape from = { 0 }, to = { .rank = asked->rank ? (int)asked->count : 0 };
    tutti_status status = step_tensor(step, 0, &x);
    if (status == TUTTI_OK) status = value_shape(step->import, step_input(step, 0), &from);
    for (int i = 0; i < to.rank && status == TUTTI_OK; i++)
        status = sample_size(step, &asked->extents[i], &from, i, &to.sizes[i]);
    return status == TUTTI_OK ? step_done(step, step_reshape(step, x, &to), false) : status;
}

tutti_status build_reshape(struct step *step)
{
    tutti_tensor x;
    tutti_shape from = { 0 }, to = { 0 };
    const struct array *asked = NULL;
    tutti_status status = step_array(step, 1, &asked);
    if (status != TUTTI_OK) return status;
    if (!asked->extents || asked->count < 1 || asked->count > TUTTI_MAX_RANK || !step_input(step, 0))
        return step_refuse("the shape must be 1 to %d integers", TUTTI_MAX_RANK);
    if (!step_input(step, 0)->batched) return reshape_whole(step, asked);
    if ((status = step_sample(step, 0, &x, &from)) != TUTTI_OK) return status;
    to.rank = (int)asked->count - 1;
    for (int i = 0; i < to.rank && status == TUTTI_OK; i++)
        status = sample_size(step, &asked->extents[i + 1], &from, i, &to.sizes[i]);
    if (status != TUTTI_OK) return status;
    if (to.rank == 0 || !keeps_batch(step, asked, &to, elements_of(&from)))
        return step_refuse("the first axis of the new shape is not the batch");
    return step_done(step, step_reshape(step, x, &to), true);
}

tutti_status build_flatten(struct step *step)
{
    tutti_tensor x;
    tutti_shape shape = { 0 };
    const tutti_status status = step_sample(step, 0, &x, &shape);
    if (status != TUTTI_OK) return status;
    const int64_t axis = step_integer(step, "axis", 1);
    if (axis != 1 && axis != -shape.rank) return step_refuse("axis is %" PRId64 ": only 1 is read", axis);
    return step_done(step, tutti_flatten(step->import->network, x), true);
}

/* The axes as bits, of a value with `rank` axes in the file. */
static tutti_status axis_bits(const int64_t *axes, int count, int rank, unsigned *bits)
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

/* Inserts axes of size 1, or takes them away: `bits` are those of the longer shape in the file. */
static tutti_status change_axes(struct step *step, tutti_tensor x, const tutti_shape *from, unsigned bits, bool insert)
{
    tutti_shape to = { 0 };
    const struct value *value = step_input(step, 0);
    const int first = value->batched;
    const int rank = insert ? from->rank + first + __builtin_popcount(bits) : from->rank + first;
    if (first && bits & 1) return step_refuse("its axes include the batch");
    for (int i = first, at = 0; i < rank; i++) {
        const bool one = bits >> i & 1;
        const int64_t size = insert ? (one ? 1 : from->sizes[at]) : from->sizes[i - first];
        if (insert && !one) at++;
        if (!insert && one && size != 1) return fail(TUTTI_FORMAT, "axis %d has size %" PRId64 ", not 1", i, size);
        if (insert || !one) to.sizes[to.rank++] = size;
    }
    if (to.rank == 0) return step_refuse("no axis would be left beside the batch");
    return step_done(step, step_reshape(step, x, &to), first);
}

static tutti_status squeeze_or_unsqueeze(struct step *step, bool insert)
{
    tutti_tensor x;
    tutti_shape shape = { 0 };
    int64_t axes[TUTTI_MAX_RANK];
    int count = 0;
    unsigned bits = 0;
    tutti_status status = step_tensor(step, 0, &x);
    if (status == TUTTI_OK) status = value_shape(step->import, step_input(step, 0), &shape);
    if (status == TUTTI_OK) status = step_list(step, 1, axes, TUTTI_MAX_RANK, &count);
    if (status != TUTTI_OK) return status;
    const int first = step_input(step, 0)->batched, rank = shape.rank + first + (insert ? count : 0);
    if (rank > TUTTI_MAX_RANK || (count == 0 && insert)) return step_refuse("too many axes, or none");
    status = axis_bits(axes, count, rank, &bits);
    for (int i = 0; i < shape.rank && count == 0; i++) bits |= shape.sizes[i] == 1 ? 1u << (i + first) : 0;
    return status == TUTTI_OK ? change_axes(step, x, &shape, bits, insert) : status;
}

tutti_status build_squeeze(struct step *step)
{
    return squeeze_or_unsqueeze(step, false);
}

tutti_status build_unsqueeze(struct step *step)
{
    return squeeze_or_unsqueeze(step, true);
}

/* Repeats axes of size 1 of a value with a batch. */
tutti_status build_expand(struct step *step)
{
    tutti_tensor x;
    tutti_shape from = { 0 }, to = { 0 };
    const struct array *asked = NULL;
    tutti_status status = step_sample(step, 0, &x, &from);
    if (status == TUTTI_OK) status = step_array(step, 1, &asked);
    if (status != TUTTI_OK) return status;
    if (!asked->extents || asked->count > TUTTI_MAX_RANK || (int)asked->count > from.rank + 1)
        return step_refuse("the shape must have as many axes as the input");
    to = from;
    for (int i = 0; i < (int)asked->count; i++) {
        const int axis = from.rank - 1 - i;
        const struct extent size = asked->extents[asked->count - 1 - (size_t)i];
        if (axis < 0 || size.number == 1) continue; /* the batch stays what it is */
        if (size.batches || size.number < 1 || (from.sizes[axis] != 1 && from.sizes[axis] != size.number))
            return step_refuse("axis %d cannot be repeated", axis + 1);
        to.sizes[axis] = size.number;
    }
    x = step_op(step, "expand", &x, 1, "shape=%s", print_list(to.sizes, to.rank).text);
    return step_done(step, x, true);
}

/* --------------------------------------------------------------------------------------------------- movement ---- */

tutti_tensor step_permuted(const struct step *step, tutti_tensor x, const int *order, int rank)
{
    int64_t perm[TUTTI_MAX_RANK];
    for (int i = 0; i < rank; i++) perm[i] = order[i];
    return step_op(step, "transpose", &x, 1, "perm=%s", print_list(perm, rank).text);
}

tutti_status build_transpose(struct step *step)
{
    tutti_tensor x;
    tutti_shape shape = { 0 };
    size_t count;
    int order[TUTTI_MAX_RANK];
    unsigned bits = 0;
    const int64_t *perm = step_integers(step, "perm", &count);
    tutti_status status = step_tensor(step, 0, &x);
    if (status == TUTTI_OK) status = value_shape(step->import, step_input(step, 0), &shape);
    if (status != TUTTI_OK) return status;
    const int first = step_input(step, 0)->batched, rank = shape.rank + first;
    if (perm && count != (size_t)rank) return fail(TUTTI_FORMAT, "perm needs %d numbers", rank);
    if (perm && (status = axis_bits(perm, rank, rank, &bits)) != TUTTI_OK) return status;
    if (first && (perm ? perm[0] : rank - 1) != 0) return step_refuse("the batch must stay the first axis");
    for (int i = first; i < rank; i++) order[i - first] = (perm ? (int)perm[i] : rank - 1 - i) - first;
    return step_done(step, step_permuted(step, x, order, shape.rank), first);
}

tutti_status build_concat(struct step *step)
{
    enum { MOST = 8 }; /* inputs of tutti_concat() */
    tutti_tensor list[MOST];
    tutti_shape shape = { 0 };
    int axis = 0, count = 0;
    for (size_t i = 0; i < step->node->n_input; i++) {
        tutti_status status = step_sample(step, i, &list[count++], &shape);
        if (status == TUTTI_OK) status = step_axis(step_integer(step, "axis", 1), shape.rank, &axis);
        if (status != TUTTI_OK) return status;
        if (count < MOST || i + 1 == step->node->n_input) continue;
        list[0] = step_op(step, "concat", list, count, "axis=%d", axis);
        count = 1;
    }
    return step_done(step, step_op(step, "concat", list, count, "axis=%d", axis), true);
}

/* Elements `start` to `end` - 1 along an axis of a sample. */
static tutti_tensor cut(const struct step *step, tutti_tensor x, int axis, int64_t start, int64_t end)
{
    return step_op(step, "slice", &x, 1, "axes=%d starts=%" PRId64 " ends=%" PRId64, axis, start, end);
}

static int64_t within(int64_t at, int64_t size)
{
    return at < -size ? 0 : at < 0 ? at + size : at > size ? size : at;
}

tutti_status build_slice(struct step *step)
{
    tutti_tensor x;
    tutti_shape shape = { 0 };
    int64_t starts[TUTTI_MAX_RANK], ends[TUTTI_MAX_RANK], axes[TUTTI_MAX_RANK], strides[TUTTI_MAX_RANK];
    int count = 0, end_count = 0, axis_count = 0, stride_count = 0;
    tutti_status status = step_sample(step, 0, &x, &shape);
    if (status == TUTTI_OK) status = step_list(step, 1, starts, TUTTI_MAX_RANK, &count);
    if (status == TUTTI_OK) status = step_list(step, 2, ends, TUTTI_MAX_RANK, &end_count);
    if (status == TUTTI_OK) status = step_list(step, 3, axes, TUTTI_MAX_RANK, &axis_count);
    if (status == TUTTI_OK) status = step_list(step, 4, strides, TUTTI_MAX_RANK, &stride_count);
    if (status != TUTTI_OK) return status;
    if (count < 1 || end_count != count || (axis_count && axis_count != count) ||
        (stride_count && stride_count != count))
        return fail(TUTTI_FORMAT, "starts, ends, axes and steps have different lengths");
    for (int i = 0; i < count; i++) {
        int axis = 0;
        const int64_t of_file = axis_count ? axes[i] : i;
        if ((of_file == 0 || of_file == -shape.rank - 1) && starts[i] == 0 && ends[i] >= INT32_MAX) continue;
        if ((status = step_axis(of_file, shape.rank, &axis)) != TUTTI_OK) return status;
        if (stride_count && strides[i] != 1) return step_refuse("steps must be 1");
        const int64_t size = shape.sizes[axis], start = within(starts[i], size), end = within(ends[i], size);
        if (end <= start) return step_refuse("nothing is left along axis %d", axis + 1);
        if (start > 0 || end < size) x = cut(step, x, axis, start, end);
    }
    return step_done(step, x, true);
}

tutti_status build_split(struct step *step)
{
    tutti_tensor x;
    tutti_shape shape = { 0 };
    int axis = 0, count = 0;
    int64_t sizes[64], start = 0;
    const size_t outputs = step->node->n_output;
    tutti_status status = step_sample(step, 0, &x, &shape);
    if (status == TUTTI_OK) status = step_axis(step_integer(step, "axis", 0), shape.rank, &axis);
    if (status == TUTTI_OK) status = step_list(step, 1, sizes, 64, &count);
    if (status != TUTTI_OK) return status;
    const int64_t size = shape.sizes[axis], equal = (size + (int64_t)outputs - 1) / (int64_t)outputs;
    if (count && (size_t)count != outputs) return fail(TUTTI_FORMAT, "%d sizes for %zu outputs", count, outputs);
    for (size_t i = 0; i < outputs && status == TUTTI_OK; i++) {
        const int64_t length = count ? sizes[i] : equal < size - start ? equal : size - start;
        if (length < 1 || length > size - start) return fail(TUTTI_FORMAT, "its parts do not fit %" PRId64, size);
        status = step_made(step, i, cut(step, x, axis, start, start + length), true);
        start += length;
    }
    return status;
}

/* Pads are numbers in front of all axes, and then behind them. */
tutti_status build_pad(struct step *step)
{
    tutti_tensor x;
    tutti_shape shape = { 0 };
    int64_t pads[2 * TUTTI_MAX_RANK], axes[TUTTI_MAX_RANK], before[TUTTI_MAX_RANK] = { 0 };
    int64_t behind[TUTTI_MAX_RANK] = { 0 };
    int count = 0, axis_count = 0;
    float value = 0;
    tutti_status status = step_sample(step, 0, &x, &shape);
    if (status == TUTTI_OK) status = step_list(step, 1, pads, 2 * TUTTI_MAX_RANK, &count);
    if (status == TUTTI_OK) status = step_scalar(step, 2, 0, &value);
    if (status == TUTTI_OK) status = step_list(step, 3, axes, TUTTI_MAX_RANK, &axis_count);
    if (status != TUTTI_OK) return status;
    if (step_attribute(step, "mode") && !step_says(step, "mode", "constant"))
        return step_refuse("mode must be constant");
    const int each = axis_count ? axis_count : shape.rank + 1;
    if (count != 2 * each) return fail(TUTTI_FORMAT, "it needs %d pads, not %d", 2 * each, count);
    for (int i = 0; i < each; i++) {
        int axis = 0;
        if (pads[i] == 0 && pads[i + each] == 0) continue;
        if ((status = step_axis(axis_count ? axes[i] : i, shape.rank, &axis)) != TUTTI_OK) return status;
        before[axis] = pads[i];
        behind[axis] = pads[i + each];
    }
    x = step_op(step, "pad", &x, 1, "before=%s behind=%s value=%.9g", print_list(before, shape.rank).text,
        print_list(behind, shape.rank).text, (double)value);
    return step_done(step, x, true);
}

/* One element along an axis, which is then gone. */
static tutti_status gather_one(struct step *step, int64_t index)
{
    tutti_tensor x;
    tutti_shape shape = { 0 }, to = { 0 };
    int axis = 0;
    tutti_status status = step_sample(step, 0, &x, &shape);
    if (status == TUTTI_OK) status = step_axis(step_integer(step, "axis", 0), shape.rank, &axis);
    if (status != TUTTI_OK) return status;
    index = index < 0 ? index + shape.sizes[axis] : index;
    if (index < 0 || index >= shape.sizes[axis]) return fail(TUTTI_FORMAT, "there is no element %" PRId64, index);
    for (int i = 0; i < shape.rank; i++)
        if (i != axis) to.sizes[to.rank++] = shape.sizes[i];
    if (to.rank == 0) return step_refuse("no axis would be left beside the batch");
    return step_done(step, step_reshape(step, cut(step, x, axis, index, index + 1), &to), true);
}

/* Rows of a table by numbers that depend on the samples, as an embedding, or one element of these by a known number. */
tutti_status build_gather(struct step *step)
{
    const struct value *table = step_input(step, 0), *indices = step_input(step, 1);
    if (!table || !indices) return fail(TUTTI_FORMAT, "input 0 or 1 is missing");
    if (table->batched) {
        int64_t index[1];
        int count;
        const tutti_status status = step_list(step, 1, index, 1, &count);
        if (status != TUTTI_OK) return status;
        tutti_shape shape = { 0 };
        (void)value_shape(step->import, indices, &shape);
        return shape.rank == 0 ? gather_one(step, index[0]) : step_refuse("only one element can be taken");
    }
    tutti_tensor pair[2];
    tutti_shape shape = { 0 };
    tutti_status status = step_sample(step, 1, &pair[0], &shape);
    if (status == TUTTI_OK) status = step_tensor(step, 0, &pair[1]);
    if (status != TUTTI_OK) return status;
    if (step_integer(step, "axis", 0) != 0) return step_refuse("only rows of a table can be taken, along axis 0");
    return step_done(step, step_plain(step, "embedding", pair, 2), true);
}
