/* Operators on integers that are known when the file is read: chains from Shape to Reshape, Expand and Slice, and masks
 * of attention. Arrays have any number of axes; numbers of samples in them are symbols. */
#include "onnx/operators.h"

#include "base/memory.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* So that a small file cannot ask for much memory and time. */
enum { MOST_ELEMENTS = 1 << 24 };

static struct array *new_whole(int rank, const int64_t *sizes)
{
    size_t count;
    if (array_count(rank, sizes, &count) && count <= MOST_ELEMENTS) return array_new(rank, sizes, false);
    (void)step_refuse("its result would have more than %d integers", MOST_ELEMENTS);
    return NULL;
}

/* The array becomes the node's output; NULL: the failure of new_whole(). */
static tutti_status finish(struct step *step, struct array *y)
{
    return y ? step_known(step, y) : step_refuse("its result cannot be computed when the file is read");
}

/* How an array is read for each element of a result: a step along each of the result's axes. */
struct reading {
    const struct extent *first;
    int64_t strides[ARRAY_MAX_RANK];
};

/* Row-major steps of an array along its own axes. */
static void own_strides(const struct array *x, int64_t *strides)
{
    int64_t stride = 1;
    for (int i = x->rank - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= x->sizes[i];
    }
}

/* Goes on to the next index in row-major order; false behind the last one. */
static bool next(int rank, const int64_t *sizes, int64_t *at)
{
    for (int i = rank - 1; i >= 0; i--) {
        if (++at[i] < sizes[i]) return true;
        at[i] = 0;
    }
    return false;
}

static struct extent read_at(const struct reading *from, int rank, const int64_t *at)
{
    int64_t offset = 0;
    for (int i = 0; i < rank; i++) offset += at[i] * from->strides[i];
    return from->first[offset];
}

/* Reads an array where another one has its strides. */
static void copy(struct array *y, const struct reading *from)
{
    int64_t at[ARRAY_MAX_RANK] = { 0 };
    for (size_t i = 0; i < y->count; i++) {
        y->extents[i] = read_at(from, y->rank, at);
        (void)next(y->rank, y->sizes, at);
    }
}

/* -------------------------------------------------------------------------------------------------- arithmetic ---- */

bool extent_multiply(struct extent a, struct extent b, struct extent *product)
{
    const struct extent swapped = a;
    if (b.batches) {
        a = b;
        b = swapped;
    }
    if (b.batches) return false;
    return !__builtin_mul_overflow(a.number, b.number, &product->number) &&
        !__builtin_mul_overflow(a.batches, b.number, &product->batches);
}

static bool add(struct extent a, struct extent b, struct extent *y)
{
    return !__builtin_add_overflow(a.number, b.number, &y->number) &&
        !__builtin_add_overflow(a.batches, b.batches, &y->batches);
}

static bool subtract(struct extent a, struct extent b, struct extent *y)
{
    return !__builtin_sub_overflow(a.number, b.number, &y->number) &&
        !__builtin_sub_overflow(a.batches, b.batches, &y->batches);
}

static bool divide(struct extent a, struct extent b, struct extent *y)
{
    if (b.batches || b.number == 0 || b.number == -1 || (a.batches && (a.number % b.number || a.batches % b.number)))
        return false;
    *y = (struct extent) { a.number / b.number, a.batches / b.number };
    return true;
}

static bool modulo(struct extent a, struct extent b, struct extent *y)
{
    if (a.batches || b.batches || b.number == 0 || b.number == -1) return false;
    const int64_t rest = a.number % b.number;
    *y = (struct extent) { rest && (rest < 0) != (b.number < 0) ? rest + b.number : rest };
    return true;
}

static bool equal(struct extent a, struct extent b, struct extent *y)
{
    *y = (struct extent) { a.number == b.number && a.batches == b.batches };
    return true;
}

/* -1, 0 or 1. The number of samples is positive, and larger or smaller than other numbers. */
static bool compare(struct extent a, struct extent b, int *order)
{
    *order = (a.number > b.number) - (a.number < b.number);
    return a.batches == b.batches;
}

#define ORDERED(name, formula)                                           \
    static bool name(struct extent a, struct extent b, struct extent *y) \
    {                                                                    \
        int order;                                                       \
        if (!compare(a, b, &order)) return false;                        \
        *y = formula;                                                    \
        return true;                                                     \
    }
ORDERED(less, (struct extent) { order < 0 })
ORDERED(less_or_equal, (struct extent) { order <= 0 })
ORDERED(greater, (struct extent) { order > 0 })
ORDERED(greater_or_equal, (struct extent) { order >= 0 })
ORDERED(smallest, order < 0 ? a : b)
ORDERED(largest, order > 0 ? a : b)

static bool is_true(struct extent a)
{
    return a.number || a.batches;
}

static bool and (struct extent a, struct extent b, struct extent *y)
{
    *y = (struct extent) { is_true(a) && is_true(b) };
    return true;
}

static bool or (struct extent a, struct extent b, struct extent *y)
{
    *y = (struct extent) { is_true(a) || is_true(b) };
    return true;
}

static bool xor
    (struct extent a, struct extent b, struct extent *y) {
        *y = (struct extent) { is_true(a) != is_true(b) };
        return true;
    }

    /* Functions of two numbers. False: the result is no number plus a multiple of the number of samples. */
    typedef bool binary(struct extent a, struct extent b, struct extent *y);
static const struct {
    const char *name;
    binary *function;
} functions[] = {
    { "Add", add },
    { "And", and},
    { "Div", divide },
    { "Equal", equal },
    { "Greater", greater },
    { "GreaterOrEqual", greater_or_equal },
    { "Less", less },
    { "LessOrEqual", less_or_equal },
    { "Max", largest },
    { "Min", smallest },
    { "Mod", modulo },
    { "Mul", extent_multiply },
    { "Or", or },
    { "ReduceMax", largest },
    { "ReduceMin", smallest },
    { "ReduceProd", extent_multiply },
    { "ReduceSum", add },
    { "Sub", subtract },
    { "Sum", add },
    { "Xor", xor},
};

static binary *function_of(const struct step *step)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (!strcmp(functions[i].name, step->node->op_type)) return functions[i].function;
    return NULL;
}

static tutti_status no_number(void)
{
    return step_refuse("its result is no whole multiple of the number of samples, or does not fit 64 bits");
}

/* The shape to which arrays are broadcast by numpy's rules. False: they do not fit. */
static bool broadcast(const struct array *const *x, int count, int *rank, int64_t *sizes)
{
    *rank = 0;
    for (int i = 0; i < count; i++)
        if (x[i]->rank > *rank) *rank = x[i]->rank;
    for (int k = 0; k < *rank; k++) sizes[k] = 1;
    for (int i = 0; i < count; i++)
        for (int k = 0; k < x[i]->rank; k++) {
            int64_t *size = &sizes[*rank - x[i]->rank + k];
            if (x[i]->sizes[k] != 1 && *size != 1 && x[i]->sizes[k] != *size) return false;
            if (x[i]->sizes[k] != 1) *size = x[i]->sizes[k];
        }
    return true;
}

static struct reading broadcast_reading(const struct array *x, int rank)
{
    struct reading reading = { .first = x->extents };
    int64_t strides[ARRAY_MAX_RANK];
    own_strides(x, strides);
    for (int k = 0; k < x->rank; k++) reading.strides[rank - x->rank + k] = x->sizes[k] == 1 ? 0 : strides[k];
    return reading;
}

/* y = f(a, b) */
static tutti_status combine(struct step *step, const struct array *a, const struct array *b, struct array **made)
{
    int rank = 0;
    int64_t sizes[ARRAY_MAX_RANK], at[ARRAY_MAX_RANK] = { 0 };
    binary *function = function_of(step);
    *made = NULL;
    if (!function || !broadcast((const struct array *[]) { a, b }, 2, &rank, sizes))
        return fail(TUTTI_FORMAT, "the shapes of its inputs do not fit");
    struct array *y = new_whole(rank, sizes);
    if (!y) return finish(step, NULL);
    const struct reading from[] = { broadcast_reading(a, rank), broadcast_reading(b, rank) };
    for (size_t i = 0; i < y->count; i++) {
        if (!function(read_at(&from[0], rank, at), read_at(&from[1], rank, at), &y->extents[i])) {
            array_free(y);
            return no_number();
        }
        (void)next(rank, sizes, at);
    }
    *made = y;
    return TUTTI_OK;
}

/* Of two inputs, or, as Max, of any number. */
tutti_status fold_arithmetic(struct step *step)
{
    const struct array *x[2];
    struct array *y = NULL, *before = NULL;
    tutti_status status = step_array(step, 0, &x[0]);
    for (size_t i = 1; i < step->node->n_input && status == TUTTI_OK; i++) {
        status = step_array(step, i, &x[1]);
        if (status == TUTTI_OK) status = combine(step, before ? before : x[0], x[1], &y);
        array_free(before);
        before = y;
    }
    if (status != TUTTI_OK) return status;
    return y ? finish(step, y) : step_same(step);
}

tutti_status fold_not(struct step *step)
{
    const struct array *x;
    const tutti_status status = step_array(step, 0, &x);
    if (status != TUTTI_OK) return status;
    struct array *y = new_whole(x->rank, x->sizes);
    for (size_t i = 0; y && i < y->count; i++) y->extents[i].number = !is_true(x->extents[i]);
    return finish(step, y);
}

tutti_status fold_neg(struct step *step)
{
    const struct array *x;
    const tutti_status status = step_array(step, 0, &x);
    if (status != TUTTI_OK) return status;
    struct array *y = new_whole(x->rank, x->sizes);
    for (size_t i = 0; y && i < y->count; i++)
        if (!subtract((struct extent) { 0, 0 }, x->extents[i], &y->extents[i])) {
            array_free(y);
            return no_number();
        }
    return finish(step, y);
}

tutti_status fold_where(struct step *step)
{
    const struct array *x[3];
    struct reading from[3];
    int rank = 0;
    int64_t sizes[ARRAY_MAX_RANK], at[ARRAY_MAX_RANK] = { 0 };
    for (size_t i = 0; i < 3; i++) {
        const tutti_status status = step_array(step, i, &x[i]);
        if (status != TUTTI_OK) return status;
    }
    if (!broadcast(x, 3, &rank, sizes)) return fail(TUTTI_FORMAT, "the shapes of its inputs do not fit");
    for (int i = 0; i < 3; i++) from[i] = broadcast_reading(x[i], rank);
    struct array *y = new_whole(rank, sizes);
    for (size_t i = 0; y && i < y->count; i++) {
        y->extents[i] = read_at(is_true(read_at(&from[0], rank, at)) ? &from[1] : &from[2], rank, at);
        (void)next(rank, sizes, at);
    }
    return finish(step, y);
}

tutti_status fold_cast(struct step *step)
{
    const struct array *x;
    const int to = (int)step_integer(step, "to", 0);
    const tutti_status status = step_array(step, 0, &x);
    if (status != TUTTI_OK) return status;
    step_type(step, 0, to);
    if (!onnx_type_is_float(to) && to != ONNX_BOOL) return step_same(step);
    struct array *y = array_new(x->rank, x->sizes, to != ONNX_BOOL);
    for (size_t i = 0; y && i < y->count; i++) {
        if (x->extents[i].batches && to != ONNX_BOOL) {
            array_free(y);
            return step_refuse("the number of samples cannot become a float");
        }
        if (to == ONNX_BOOL)
            y->extents[i].number = is_true(x->extents[i]);
        else
            y->floats[i] = (float)x->extents[i].number;
    }
    return step_known(step, y);
}

/* Axes are an attribute or the second input; all, if none is named. */
tutti_status fold_reduce(struct step *step)
{
    const struct array *x;
    int64_t list[ARRAY_MAX_RANK], sizes[ARRAY_MAX_RANK], strides[ARRAY_MAX_RANK] = { 0 }, at[ARRAY_MAX_RANK] = { 0 };
    int count = 0, rank = 0;
    unsigned axes = 0;
    tutti_status status = step_array(step, 0, &x);
    if (status == TUTTI_OK) status = step_list_or_attribute(step, "axes", 1, list, ARRAY_MAX_RANK, &count);
    if (status == TUTTI_OK) status = axes_read(list, count, x->rank, &axes);
    if (status != TUTTI_OK) return status;
    if (count == 0 && step_integer(step, "noop_with_empty_axes", 0)) return step_same(step);
    if (count == 0) axes = (1u << x->rank) - 1;
    for (int i = 0; i < x->rank; i++)
        if (step_integer(step, "keepdims", 1) || !(axes >> i & 1)) sizes[rank++] = axes >> i & 1 ? 1 : x->sizes[i];
    struct array *y = x->count ? new_whole(rank, sizes) : NULL;
    if (!y) return finish(step, y);
    int64_t stride = 1;
    for (int i = x->rank - 1; i >= 0; i--) {
        strides[i] = axes >> i & 1 ? 0 : stride;
        stride *= axes >> i & 1 ? 1 : x->sizes[i];
    }
    unsigned char *begun = memory_new(y->count + 1, 1);
    status = begun ? TUTTI_OK : TUTTI_NO_MEMORY;
    for (size_t i = 0; i < x->count && status == TUTTI_OK; i++) {
        int64_t to = 0;
        for (int k = 0; k < x->rank; k++) to += at[k] * strides[k];
        if (!begun[to])
            y->extents[to] = x->extents[i];
        else if (!function_of(step)(y->extents[to], x->extents[i], &y->extents[to]))
            status = no_number();
        begun[to] = 1;
        (void)next(x->rank, x->sizes, at);
    }
    free(begun);
    if (status == TUTTI_OK) return finish(step, y);
    array_free(y);
    return status;
}

/* ---------------------------------------------------------------------------------------------------- movement ---- */

static tutti_status axis_in(int64_t axis, int rank, int *found)
{
    *found = (int)(axis < 0 ? axis + rank : axis);
    return axis >= -rank && axis < rank
        ? TUTTI_OK
        : fail(TUTTI_FORMAT, "axis %" PRId64 " does not exist: there are %d", axis, rank);
}

tutti_status fold_gather(struct step *step)
{
    const struct array *x, *indices;
    int axis = 0;
    int64_t sizes[2 * ARRAY_MAX_RANK];
    tutti_status status = step_array(step, 0, &x);
    if (status == TUTTI_OK) status = step_array(step, 1, &indices);
    if (status == TUTTI_OK) status = axis_in(step_integer(step, "axis", 0), x->rank, &axis);
    if (status != TUTTI_OK) return status;
    const int rank = x->rank - 1 + indices->rank;
    if (rank > ARRAY_MAX_RANK) return step_refuse("its result would have %d axes", rank);
    for (int i = 0; i < axis; i++) sizes[i] = x->sizes[i];
    for (int i = 0; i < indices->rank; i++) sizes[axis + i] = indices->sizes[i];
    for (int i = axis + 1; i < x->rank; i++) sizes[indices->rank + i - 1] = x->sizes[i];
    struct array *y = new_whole(rank, sizes);
    int64_t inner = 1;
    for (int i = axis + 1; i < x->rank; i++) inner *= x->sizes[i];
    for (size_t i = 0; y && i < y->count; i++) {
        const size_t pick = i / (size_t)inner % indices->count, outer = i / (size_t)inner / indices->count;
        const int64_t index = indices->extents[pick].number, size = x->sizes[axis],
                      found = index < 0 ? index + size : index;
        if (indices->extents[pick].batches || found < 0 || found >= size) {
            array_free(y);
            return fail(TUTTI_FORMAT, "index %" PRId64 " lies outside of %" PRId64 " elements", index, size);
        }
        y->extents[i] = x->extents[((int64_t)outer * size + found) * inner + (int64_t)(i % (size_t)inner)];
    }
    return finish(step, y);
}

/* The part of a result that one input becomes. */
static void put(struct array *y, int axis, int64_t begin, const struct array *x)
{
    int64_t at[ARRAY_MAX_RANK] = { 0 }, strides[ARRAY_MAX_RANK];
    own_strides(y, strides);
    for (size_t i = 0; i < x->count; i++) {
        int64_t to = begin * strides[axis];
        for (int k = 0; k < x->rank; k++) to += at[k] * strides[k];
        y->extents[to] = x->extents[i];
        (void)next(x->rank, x->sizes, at);
    }
}

tutti_status fold_concat(struct step *step)
{
    const struct array *x = NULL, *first = NULL;
    int axis = 0;
    int64_t sizes[ARRAY_MAX_RANK] = { 0 }, begin = 0;
    tutti_status status = step_array(step, 0, &first);
    if (status == TUTTI_OK) status = axis_in(step_integer(step, "axis", 0), first->rank, &axis);
    for (size_t i = 0; i < step->node->n_input && status == TUTTI_OK; i++) {
        status = step_array(step, i, &x);
        if (status != TUTTI_OK) break;
        for (int k = 0; k < x->rank && status == TUTTI_OK; k++)
            if (x->rank != first->rank || (k != axis && x->sizes[k] != first->sizes[k]))
                status = fail(TUTTI_FORMAT, "the shapes of its inputs do not fit");
        if (status == TUTTI_OK && __builtin_add_overflow(begin, x->sizes[axis], &begin)) status = no_number();
    }
    if (status != TUTTI_OK) return status;
    memcpy(sizes, first->sizes, sizeof sizes);
    sizes[axis] = begin;
    struct array *y = new_whole(first->rank, sizes);
    begin = 0;
    for (size_t i = 0; i < step->node->n_input && y; i++) {
        if (step_array(step, i, &x) != TUTTI_OK) break; /* cannot be: it was read above */
        put(y, axis, begin, x);
        begin += x->sizes[axis];
    }
    return finish(step, y);
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

tutti_status fold_slice(struct step *step)
{
    const struct array *x;
    int64_t starts[ARRAY_MAX_RANK], ends[ARRAY_MAX_RANK], axes[ARRAY_MAX_RANK], strides[ARRAY_MAX_RANK];
    int counts[4];
    tutti_status status = step_array(step, 0, &x);
    if (status == TUTTI_OK) status = step_list(step, 1, starts, ARRAY_MAX_RANK, &counts[0]);
    if (status == TUTTI_OK) status = step_list(step, 2, ends, ARRAY_MAX_RANK, &counts[1]);
    if (status == TUTTI_OK) status = step_list(step, 3, axes, ARRAY_MAX_RANK, &counts[2]);
    if (status == TUTTI_OK) status = step_list(step, 4, strides, ARRAY_MAX_RANK, &counts[3]);
    if (status != TUTTI_OK) return status;
    if (counts[1] != counts[0] || (counts[2] && counts[2] != counts[0]) || (counts[3] && counts[3] != counts[0]))
        return fail(TUTTI_FORMAT, "starts, ends, axes and steps have different lengths");
    struct reading from = { .first = x->extents };
    int64_t sizes[ARRAY_MAX_RANK];
    memcpy(sizes, x->sizes, sizeof sizes);
    own_strides(x, from.strides);
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
    struct array *y = new_whole(x->rank, sizes);
    if (y && y->count) copy(y, &from);
    return finish(step, y);
}

tutti_status fold_transpose(struct step *step)
{
    const struct array *x;
    size_t count;
    unsigned seen = 0;
    const int64_t *perm = step_integers(step, "perm", &count);
    tutti_status status = step_array(step, 0, &x);
    if (status == TUTTI_OK && perm && count != (size_t)x->rank)
        status = fail(TUTTI_FORMAT, "perm has %zu numbers", count);
    if (status == TUTTI_OK && perm) status = axes_read(perm, x->rank, x->rank, &seen);
    if (status != TUTTI_OK) return status;
    struct reading from = { .first = x->extents };
    int64_t sizes[ARRAY_MAX_RANK], strides[ARRAY_MAX_RANK];
    own_strides(x, strides);
    for (int i = 0; i < x->rank; i++) {
        const int64_t axis = perm ? perm[i] : x->rank - 1 - i;
        sizes[i] = x->sizes[axis < 0 ? axis + x->rank : axis];
        from.strides[i] = strides[axis < 0 ? axis + x->rank : axis];
    }
    struct array *y = new_whole(x->rank, sizes);
    if (y) copy(y, &from);
    return finish(step, y);
}

/* Whether Expand finds a size for each axis of the batch that it asks for. Else the result is a tensor with a batch. */
static bool keeps_samples(const struct step *step, const struct array *x)
{
    const struct array *asked = NULL;
    if (step_array(step, 1, &asked) != TUTTI_OK) return false;
    for (size_t i = 0; i < asked->count; i++) {
        const int64_t axis = x->rank - (int64_t)asked->count + (int64_t)i;
        if (asked->extents[i].batches && (axis < 0 || x->sizes[axis] == 1)) return false;
    }
    return true;
}

/* Both shapes are broadcast to each other. */
tutti_status fold_expand(struct step *step)
{
    const struct array *x;
    int64_t asked[ARRAY_MAX_RANK], sizes[ARRAY_MAX_RANK];
    int count = 0, rank = 0;
    tutti_status status = step_array(step, 0, &x);
    if (status == TUTTI_OK) status = step_sizes(step, 1, asked, ARRAY_MAX_RANK, &count);
    if (status == TUTTI_OK && !keeps_samples(step, x)) return step_refuse("axes of size 1 become the batch");
    if (status != TUTTI_OK) return status;
    struct array to = { .rank = count };
    memcpy(to.sizes, asked, sizeof asked);
    if (!broadcast((const struct array *[]) { x, &to }, 2, &rank, sizes))
        return fail(TUTTI_FORMAT, "the shape does not fit");
    struct array *y = new_whole(rank, sizes);
    const struct reading from = broadcast_reading(x, rank);
    if (y && y->count) copy(y, &from);
    return finish(step, y);
}

/* Squeeze, Unsqueeze, Reshape and Flatten: the elements are the same. */
static tutti_status same_elements(struct step *step, const struct array *x, int rank, const int64_t *sizes)
{
    size_t count = 0;
    if (rank > ARRAY_MAX_RANK || !array_count(rank, sizes, &count) || count != x->count)
        return fail(TUTTI_FORMAT, "the new shape does not fit %zu elements", x->count);
    struct array *y = new_whole(rank, sizes);
    if (y) memcpy(y->extents, x->extents, x->count * sizeof *x->extents);
    return finish(step, y);
}

tutti_status fold_reshape(struct step *step)
{
    const struct array *x;
    int64_t sizes[ARRAY_MAX_RANK];
    size_t known = 1;
    int rank = 0, open = -1;
    tutti_status status = step_array(step, 0, &x);
    if (status == TUTTI_OK) status = step_sizes(step, 1, sizes, ARRAY_MAX_RANK, &rank);
    for (int i = 0; i < rank && status == TUTTI_OK; i++) {
        if (sizes[i] == 0 && !step_integer(step, "allowzero", 0)) sizes[i] = i < x->rank ? x->sizes[i] : -2;
        if (sizes[i] == -1 && open < 0)
            open = i;
        else if (sizes[i] < 0 || !size_multiply(known, (size_t)sizes[i], &known))
            status = fail(TUTTI_FORMAT, "the size %" PRId64, sizes[i]);
    }
    if (status != TUTTI_OK) return status;
    if (open >= 0) sizes[open] = known ? (int64_t)(x->count / known) : 0;
    return same_elements(step, x, rank, sizes);
}

static tutti_status squeeze_or_unsqueeze(struct step *step, bool insert)
{
    const struct array *x;
    int64_t axes[ARRAY_MAX_RANK], sizes[2 * ARRAY_MAX_RANK];
    int count = 0, rank = 0;
    unsigned bits = 0;
    tutti_status status = step_array(step, 0, &x);
    if (status == TUTTI_OK) status = step_list_or_attribute(step, "axes", 1, axes, ARRAY_MAX_RANK, &count);
    const int longer = status == TUTTI_OK ? x->rank + (insert ? count : 0) : 0;
    if (status == TUTTI_OK) status = axes_read(axes, count, longer, &bits);
    if (status != TUTTI_OK) return status;
    for (int i = 0; i < x->rank && count == 0 && !insert; i++) bits |= x->sizes[i] == 1 ? 1u << i : 0;
    for (int i = 0, at = 0; i < longer; i++) {
        const bool one = bits >> i & 1;
        if (one ? insert : true) sizes[rank++] = one ? 1 : x->sizes[insert ? at++ : i];
    }
    return same_elements(step, x, rank, sizes);
}

tutti_status fold_squeeze(struct step *step)
{
    return squeeze_or_unsqueeze(step, false);
}

tutti_status fold_unsqueeze(struct step *step)
{
    return squeeze_or_unsqueeze(step, true);
}

/* Numbers from 0 to those of samples, of which the file leaves open how many there are. */
static bool counts_samples(const struct step *step)
{
    const struct array *given[3];
    for (size_t i = 0; i < 3; i++)
        if (step_array(step, i, &given[i]) != TUTTI_OK || given[i]->count != 1) return false;
    const struct extent limit = given[1]->extents[0];
    return limit.batches > 0 && limit.number == 0 && given[0]->extents[0].number == 0 &&
        given[2]->extents[0].number == 1 && given[0]->extents[0].batches == 0 && given[2]->extents[0].batches == 0;
}

/* start, start + step and so on, before the limit. */
tutti_status fold_range(struct step *step)
{
    int64_t given[3];
    const bool counts = counts_samples(step);
    step->import->stands_in |= counts && step->import->fixed_batch == 0;
    for (size_t i = 0; i < 3; i++) {
        int count = 0;
        const tutti_status status = (counts ? step_sizes : step_list)(step, i, &given[i], 1, &count);
        if (status != TUTTI_OK) return status;
        if (count != 1) return fail(TUTTI_FORMAT, "input %zu must be one number", i);
    }
    if (given[2] == 0) return fail(TUTTI_FORMAT, "the step is 0");
    const double length = ceil(((double)given[1] - (double)given[0]) / (double)given[2]);
    if (length > MOST_ELEMENTS) return step_refuse("it has more than %d numbers", MOST_ELEMENTS);
    const int64_t size = length > 0 ? (int64_t)length : 0;
    struct array *y = new_whole(1, &size);
    for (int64_t i = 0; y && i < size; i++) y->extents[i].number = given[0] + i * given[2];
    return finish(step, y);
}
