/* Operators that move numbers that are known when the file is read: chains from Shape to Reshape, Expand and Slice, and
 * masks of attention. Arrays have any number of axes; numbers of samples in them are symbols. */
#include "onnx/known.h"

#include "base/memory.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static void move(struct array *y, size_t to, const struct array *x, size_t from)
{
    if (y->integers && x->integers) y->integers[to] = x->integers[from];
    if (y->floats && x->floats) y->floats[to] = x->floats[from];
    if (y->doubles && x->doubles) y->doubles[to] = x->doubles[from];
}

/* Fills y with the elements of x that `from` selects. */
static void copy(struct array *y, const struct array *x, const struct reading *from)
{
    int64_t at[ARRAY_MAX_RANK] = { 0 };
    for (size_t i = 0; i < y->count; i++) {
        move(y, i, x, reading_at(from, y->rank, at));
        (void)known_next(y->rank, y->sizes, at);
    }
}

/* ---------------------------------------------------------------------------------------------------- movement ---- */

static tutti_status axis_in(int64_t axis, int rank, int *found)
{
    *found = (int)(axis < 0 ? axis + rank : axis);
    return axis >= -rank && axis < rank
        ? TUTTI_OK
        : fail(TUTTI_FORMAT, "axis %" PRId64 " does not exist: there are %d", axis, rank);
}

tutti_status evaluate_gather(struct onnx_node *node)
{
    const struct array *x, *indices;
    int axis = 0;
    int64_t sizes[2 * ARRAY_MAX_RANK];
    tutti_status status = node_array(node, 0, &x);
    if (status == TUTTI_OK) status = node_array(node, 1, &indices);
    if (status == TUTTI_OK) status = axis_in(node_integer(node, "axis", 0), x->rank, &axis);
    if (status != TUTTI_OK) return status;
    const int rank = x->rank - 1 + indices->rank;
    if (!indices->integers) return fail(TUTTI_FORMAT, "its indices are floats");
    if (rank > ARRAY_MAX_RANK) return node_refuse("its result would have %d axes", rank);
    for (int i = 0; i < axis; i++) sizes[i] = x->sizes[i];
    for (int i = 0; i < indices->rank; i++) sizes[axis + i] = indices->sizes[i];
    for (int i = axis + 1; i < x->rank; i++) sizes[indices->rank + i - 1] = x->sizes[i];
    struct array *y = known_like(rank, sizes, x);
    int64_t inner = 1;
    for (int i = axis + 1; i < x->rank; i++) inner *= x->sizes[i];
    for (size_t i = 0; y && i < y->count; i++) {
        const size_t pick = i / (size_t)inner % indices->count, outer = i / (size_t)inner / indices->count;
        const int64_t index = indices->integers[pick].number, size = x->sizes[axis],
                      found = index < 0 ? index + size : index;
        if (indices->integers[pick].batches || found < 0 || found >= size) {
            array_free(y);
            return fail(TUTTI_FORMAT, "index %" PRId64 " lies outside of %" PRId64 " elements", index, size);
        }
        move(y, i, x, (size_t)((int64_t)outer * size + found) * (size_t)inner + i % (size_t)inner);
    }
    return known_finish(node, y);
}

/* Copies an input to its part of the result. */
static void put(struct array *y, int axis, int64_t begin, const struct array *x)
{
    int64_t at[ARRAY_MAX_RANK] = { 0 }, strides[ARRAY_MAX_RANK];
    known_strides(y, strides);
    for (size_t i = 0; i < x->count; i++) {
        int64_t to = begin * strides[axis];
        for (int k = 0; k < x->rank; k++) to += at[k] * strides[k];
        move(y, (size_t)to, x, i);
        (void)known_next(x->rank, x->sizes, at);
    }
}

tutti_status evaluate_concat(struct onnx_node *node)
{
    const struct array *x = NULL, *first = NULL;
    int axis = 0;
    int64_t sizes[ARRAY_MAX_RANK] = { 0 }, begin = 0;
    tutti_status status = node_array(node, 0, &first);
    if (status == TUTTI_OK) status = axis_in(node_integer(node, "axis", 0), first->rank, &axis);
    for (size_t i = 0; i < node->proto->n_input && status == TUTTI_OK; i++) {
        status = node_array(node, i, &x);
        if (status != TUTTI_OK) break;
        for (int k = 0; k < x->rank && status == TUTTI_OK; k++)
            if (x->rank != first->rank || !x->integers != !first->integers ||
                (k != axis && x->sizes[k] != first->sizes[k]))
                status = fail(TUTTI_FORMAT, "the shapes of its inputs do not fit");
        if (status == TUTTI_OK && __builtin_add_overflow(begin, x->sizes[axis], &begin))
            status = fail(TUTTI_FORMAT, "its result is too long");
    }
    if (status != TUTTI_OK) return status;
    memcpy(sizes, first->sizes, sizeof sizes);
    sizes[axis] = begin;
    struct array *y = known_like(first->rank, sizes, first);
    begin = 0;
    for (size_t i = 0; i < node->proto->n_input && y; i++) {
        if (node_array(node, i, &x) != TUTTI_OK) break; /* cannot be: it was read above */
        put(y, axis, begin, x);
        begin += x->sizes[axis];
    }
    return known_finish(node, y);
}

static int64_t limited(int64_t at, int64_t size, int64_t low, int64_t high)
{
    at = at < 0 && at >= -size ? at + size : at;
    return at < low ? low : at > high ? high : at;
}

/* Elements from `start` to before `end`, each `stride`-th; how many there are, and the first one. */
static int64_t slice_count(int64_t size, int64_t start, int64_t end, int64_t stride, int64_t *first)
{
    const bool back = stride < 0;
    *first = limited(start, size, back ? -1 : 0, back ? size - 1 : size);
    const int64_t last = limited(end, size, back ? -1 : 0, back ? size - 1 : size);
    const int64_t length = back ? *first - last : last - *first;
    if (length <= 0) return 0;
    const int64_t step = back ? -(stride + 1) : stride - 1; /* one less than its size: no overflow */
    return step >= length ? 1 : (length + step) / (step + 1);
}

tutti_status evaluate_slice(struct onnx_node *node)
{
    static const char *const names[] = { "starts", "ends", "axes", "steps" }; /* attributes before opset 10 */
    const struct array *x;
    int64_t starts[ARRAY_MAX_RANK], ends[ARRAY_MAX_RANK], axes[ARRAY_MAX_RANK], strides[ARRAY_MAX_RANK];
    int counts[4];
    tutti_status status = node_array(node, 0, &x);
    int64_t *const lists[] = { starts, ends, axes, strides };
    for (size_t i = 0; i < 4 && status == TUTTI_OK; i++)
        status = node_list_or_attribute(node, names[i], i + 1, lists[i], ARRAY_MAX_RANK, &counts[i]);
    if (status != TUTTI_OK) return status;
    if (counts[1] != counts[0] || (counts[2] && counts[2] != counts[0]) || (counts[3] && counts[3] != counts[0]))
        return fail(TUTTI_FORMAT, "starts, ends, axes and steps have different lengths");
    struct reading from = { .first = 0 };
    int64_t sizes[ARRAY_MAX_RANK];
    memcpy(sizes, x->sizes, sizeof sizes);
    known_strides(x, from.strides);
    for (int i = 0; i < counts[0]; i++) {
        int axis = 0;
        int64_t first = 0;
        const int64_t stride = counts[3] ? strides[i] : 1;
        status = axis_in(counts[2] ? axes[i] : i, x->rank, &axis);
        if (status == TUTTI_OK && (stride == 0 || stride == INT64_MIN)) status = fail(TUTTI_FORMAT, "a step is 0");
        if (status != TUTTI_OK) return status;
        sizes[axis] = slice_count(x->sizes[axis], starts[i], ends[i], stride, &first);
        if (sizes[axis] == 0) continue;
        from.first += first * from.strides[axis];
        from.strides[axis] *= sizes[axis] > 1 ? stride : 0;
    }
    struct array *y = known_like(x->rank, sizes, x);
    if (y && y->count) copy(y, x, &from);
    return known_finish(node, y);
}

tutti_status evaluate_transpose(struct onnx_node *node)
{
    const struct array *x;
    size_t count;
    unsigned seen = 0;
    const int64_t *perm = node_integers(node, "perm", &count);
    tutti_status status = node_array(node, 0, &x);
    if (status == TUTTI_OK && perm && count != (size_t)x->rank)
        status = fail(TUTTI_FORMAT, "perm has %zu numbers", count);
    if (status == TUTTI_OK && perm) status = axes_read(perm, x->rank, x->rank, &seen);
    if (status != TUTTI_OK) return status;
    struct reading from = { .first = 0 };
    int64_t sizes[ARRAY_MAX_RANK], strides[ARRAY_MAX_RANK];
    known_strides(x, strides);
    for (int i = 0; i < x->rank; i++) {
        const int64_t axis = perm ? perm[i] : x->rank - 1 - i;
        sizes[i] = x->sizes[axis < 0 ? axis + x->rank : axis];
        from.strides[i] = strides[axis < 0 ? axis + x->rank : axis];
    }
    struct array *y = known_like(x->rank, sizes, x);
    if (y) copy(y, x, &from);
    return known_finish(node, y);
}

/* Whether x has an axis of another size than 1 wherever Expand asks for the batch. Otherwise the result is a tensor
 * with a batch. */
static bool keeps_samples(const struct onnx_node *node, const struct array *x)
{
    const struct array *asked = NULL;
    if (node_array(node, 1, &asked) != TUTTI_OK) return false;
    for (size_t i = 0; i < asked->count; i++) {
        const int64_t axis = x->rank - (int64_t)asked->count + (int64_t)i;
        if (asked->integers[i].batches && (axis < 0 || x->sizes[axis] == 1)) return false;
    }
    return true;
}

/* Both shapes are broadcast to each other. */
tutti_status evaluate_expand(struct onnx_node *node)
{
    const struct array *x;
    int64_t asked[ARRAY_MAX_RANK], sizes[ARRAY_MAX_RANK];
    int count = 0, rank = 0;
    tutti_status status = node_array(node, 0, &x);
    if (status == TUTTI_OK) status = node_sizes(node, 1, asked, ARRAY_MAX_RANK, &count);
    if (status == TUTTI_OK && !keeps_samples(node, x)) return node_refuse("axes of size 1 become the batch");
    if (status != TUTTI_OK) return status;
    struct array to = { .rank = count };
    memcpy(to.sizes, asked, sizeof asked);
    if (!known_broadcast((const struct array *[]) { x, &to }, 2, &rank, sizes))
        return fail(TUTTI_FORMAT, "the shape does not fit");
    struct array *y = known_like(rank, sizes, x);
    const struct reading from = known_broadcast_reading(x, rank);
    if (y && y->count) copy(y, x, &from);
    return known_finish(node, y);
}

/* Squeeze, Unsqueeze, Reshape and Flatten: the elements are the same. */
static tutti_status same_elements(struct onnx_node *node, const struct array *x, int rank, const int64_t *sizes)
{
    size_t count = 0;
    if (rank > ARRAY_MAX_RANK || !array_count(rank, sizes, &count) || count != x->count)
        return fail(TUTTI_FORMAT, "the new shape does not fit %zu elements", x->count);
    struct array *y = known_like(rank, sizes, x);
    for (size_t i = 0; y && i < y->count; i++) move(y, i, x, i);
    return known_finish(node, y);
}

tutti_status evaluate_reshape(struct onnx_node *node)
{
    const struct array *x;
    int64_t sizes[ARRAY_MAX_RANK];
    size_t known = 1;
    int rank = 0, open = -1;
    tutti_status status = node_array(node, 0, &x);
    if (status == TUTTI_OK) status = node_sizes(node, 1, sizes, ARRAY_MAX_RANK, &rank);
    for (int i = 0; i < rank && status == TUTTI_OK; i++) {
        if (sizes[i] == 0 && !node_integer(node, "allowzero", 0)) sizes[i] = i < x->rank ? x->sizes[i] : -2;
        if (sizes[i] == -1 && open < 0)
            open = i;
        else if (sizes[i] < 0 || !size_multiply(known, (size_t)sizes[i], &known))
            status = fail(TUTTI_FORMAT, "the size %" PRId64, sizes[i]);
    }
    if (status != TUTTI_OK) return status;
    if (open >= 0) sizes[open] = known ? (int64_t)(x->count / known) : 0;
    return same_elements(node, x, rank, sizes);
}

tutti_status evaluate_flatten(struct onnx_node *node)
{
    const struct array *x;
    int64_t sizes[2] = { 1, 1 };
    const tutti_status status = node_array(node, 0, &x);
    if (status != TUTTI_OK) return status;
    const int64_t asked = node_integer(node, "axis", 1), axis = asked < 0 ? asked + x->rank : asked;
    if (axis < 0 || axis > x->rank) return fail(TUTTI_FORMAT, "axis %" PRId64 " does not exist", asked);
    for (int i = 0; i < x->rank; i++)
        if (__builtin_mul_overflow(sizes[i >= axis], x->sizes[i], &sizes[i >= axis]))
            return fail(TUTTI_FORMAT, "its result is too large");
    return same_elements(node, x, 2, sizes);
}

/* Squeeze and Unsqueeze. */
tutti_status evaluate_squeeze(struct onnx_node *node)
{
    const bool insert = !strcmp(node->proto->op_type, "Unsqueeze");
    const struct array *x;
    int64_t axes[ARRAY_MAX_RANK], sizes[2 * ARRAY_MAX_RANK];
    int count = 0, rank = 0;
    unsigned bits = 0;
    tutti_status status = node_array(node, 0, &x);
    if (status == TUTTI_OK) status = node_list_or_attribute(node, "axes", 1, axes, ARRAY_MAX_RANK, &count);
    const int longer = status == TUTTI_OK ? x->rank + (insert ? count : 0) : 0;
    if (status == TUTTI_OK) status = axes_read(axes, count, longer, &bits);
    if (status != TUTTI_OK) return status;
    for (int i = 0; i < x->rank && count == 0 && !insert; i++) bits |= x->sizes[i] == 1 ? 1u << i : 0;
    for (int i = 0, at = 0; i < longer; i++) {
        const bool one = bits >> i & 1;
        if (one ? insert : true) sizes[rank++] = one ? 1 : x->sizes[insert ? at++ : i];
    }
    return same_elements(node, x, rank, sizes);
}

/* Whether a Range goes from 0 to the number of samples, or a multiple of it, which the file leaves open. */
static bool is_range_of_samples(const struct onnx_node *node)
{
    const struct array *given[3];
    for (size_t i = 0; i < 3; i++)
        if (node_array(node, i, &given[i]) != TUTTI_OK || given[i]->count != 1) return false;
    const struct symbolic_integer limit = given[1]->integers[0];
    return limit.batches > 0 && limit.number == 0 && given[0]->integers[0].number == 0 &&
        given[2]->integers[0].number == 1 && given[0]->integers[0].batches == 0 && given[2]->integers[0].batches == 0;
}

/* start, start + step and so on, before the limit. */
tutti_status evaluate_range(struct onnx_node *node)
{
    int64_t given[3];
    const struct onnx_value *start = node_input(node, 0);
    if (start && onnx_type_is_float(start->type)) return build_range(node);
    const bool of_samples = is_range_of_samples(node);
    node->import->uses_placeholder_batch |= of_samples && node->import->fixed_batch == 0;
    for (size_t i = 0; i < 3; i++) {
        int count = 0;
        const tutti_status status = (of_samples ? node_sizes : node_list)(node, i, &given[i], 1, &count);
        if (status != TUTTI_OK) return status;
        if (count != 1) return fail(TUTTI_FORMAT, "input %zu must be one number", i);
    }
    if (given[2] == 0) return fail(TUTTI_FORMAT, "the step is 0");
    const double length = ceil(((double)given[1] - (double)given[0]) / (double)given[2]);
    if (length > KNOWN_MOST) return node_refuse("it has more than %d numbers", KNOWN_MOST);
    const int64_t size = length > 0 ? (int64_t)length : 0;
    struct array *y = known_new(1, &size, ONNX_INT64);
    for (int64_t i = 0; y && i < size; i++) y->integers[i].number = given[0] + i * given[2];
    return known_finish(node, y);
}
