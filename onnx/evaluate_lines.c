/* Operators that go along axes of numbers that are known when the file is read. */
#include "onnx/known.h"

#include <inttypes.h>

/* Along an axis: elements `inner` apart, `size` of them, in each of `outer` blocks. */
struct line {
    int axis;
    size_t outer, size, inner;
};

static tutti_status line_of(const struct array *x, int64_t axis, struct line *line)
{
    if (axis < -x->rank || axis >= x->rank) return fail(TUTTI_FORMAT, "axis %" PRId64 " does not exist", axis);
    *line = (struct line) { (int)(axis < 0 ? axis + x->rank : axis), 1, 1, 1 };
    for (int i = 0; i < line->axis; i++) line->outer *= (size_t)x->sizes[i];
    for (int i = line->axis + 1; i < x->rank; i++) line->inner *= (size_t)x->sizes[i];
    line->size = (size_t)x->sizes[line->axis];
    return TUTTI_OK;
}

/* The position of the largest or smallest number. */
tutti_status evaluate_arg(struct onnx_node *node)
{
    struct known x;
    struct line line = { .axis = 0 };
    int64_t sizes[ARRAY_MAX_RANK];
    int rank = 0;
    const bool keeps = node_integer(node, "keepdims", 1), last = node_integer(node, "select_last_index", 0);
    const bool largest = node->proto->op_type[3] == 'M' && node->proto->op_type[4] == 'a';
    tutti_status status = known_input(node, 0, &x);
    if (status == TUTTI_OK) status = line_of(x.array, node_integer(node, "axis", 0), &line);
    if (status != TUTTI_OK) return status;
    for (int i = 0; i < x.array->rank; i++)
        if (i != line.axis || keeps) sizes[rank++] = i == line.axis ? 1 : x.array->sizes[i];
    struct array *y = line.size ? known_new(rank, sizes, ONNX_INT64) : NULL;
    if (!y) return node_refuse("it has no elements, or too many");
    for (size_t i = 0; i < y->count; i++) {
        const size_t first = i / line.inner * line.inner * line.size + i % line.inner;
        size_t best = 0;
        for (size_t k = 1; k < line.size; k++) {
            const double a = known_at(&x, first + k * line.inner).real,
                         b = known_at(&x, first + best * line.inner).real;
            if (a == b ? last : largest ? a > b : a < b) best = k;
        }
        y->integers[i].number = (int64_t)best;
    }
    return known_finish(node, y);
}

/* Adds up from each element to the next. The axis is an input. */
tutti_status evaluate_cumsum(struct onnx_node *node)
{
    struct known x;
    struct line line = { .axis = 0 };
    int64_t axis[1];
    int count = 0;
    const bool exclusive = node_integer(node, "exclusive", 0), back = node_integer(node, "reverse", 0);
    tutti_status status = known_input(node, 0, &x);
    if (status == TUTTI_OK) status = node_list(node, 1, axis, 1, &count);
    if (status == TUTTI_OK)
        status = count == 1 ? line_of(x.array, axis[0], &line) : fail(TUTTI_FORMAT, "it has no axis");
    if (status != TUTTI_OK) return status;
    struct array *y = known_new(x.array->rank, x.array->sizes, x.type);
    const struct known sum = { y, x.type };
    for (size_t i = 0; y && i < line.outer * line.inner && line.size; i++) {
        const size_t first = i / line.inner * line.inner * line.size + i % line.inner;
        for (size_t k = 0; k < line.size; k++) {
            const size_t at = first + (back ? line.size - 1 - k : k) * line.inner;
            const size_t before = back ? at + line.inner : at - line.inner;
            const struct number zero = { 0 }, own = exclusive ? (k ? known_at(&x, before) : zero) : known_at(&x, at);
            struct number all = k ? known_at(&sum, before) : zero;
            all.real += own.real;
            all.integer.number = (int64_t)((uint64_t)all.integer.number + (uint64_t)own.integer.number);
            if (own.integer.batches) return array_free(y), node_refuse("it adds up numbers of samples");
            known_put(y, x.type, at, all);
        }
    }
    return known_finish(node, y);
}

/* The upper or lower triangles of matrices; the rest is 0. */
tutti_status evaluate_trilu(struct onnx_node *node)
{
    struct known x;
    int64_t k[1] = { 0 };
    int count = 0;
    const bool upper = node_integer(node, "upper", 1);
    tutti_status status = known_input(node, 0, &x);
    if (status == TUTTI_OK) status = node_list(node, 1, k, 1, &count);
    if (status != TUTTI_OK) return status;
    if (x.array->rank < 2) return fail(TUTTI_FORMAT, "its input has less than 2 axes");
    const int64_t columns = x.array->sizes[x.array->rank - 1], rows = x.array->sizes[x.array->rank - 2];
    struct array *y = known_new(x.array->rank, x.array->sizes, x.type);
    for (size_t i = 0; y && i < y->count; i++) {
        const int64_t column = (int64_t)i % columns, row = (int64_t)i / columns % rows;
        const bool keeps = upper ? column >= row + k[0] : column <= row + k[0];
        known_put(y, x.type, i, keeps ? known_at(&x, i) : (struct number) { 0 });
    }
    return known_finish(node, y);
}

tutti_status evaluate_tile(struct onnx_node *node)
{
    struct known x;
    int64_t times[ARRAY_MAX_RANK], sizes[ARRAY_MAX_RANK], at[ARRAY_MAX_RANK] = { 0 }, from[ARRAY_MAX_RANK];
    int64_t strides[ARRAY_MAX_RANK];
    int count = 0;
    tutti_status status = known_input(node, 0, &x);
    if (status == TUTTI_OK) status = node_list(node, 1, times, ARRAY_MAX_RANK, &count);
    if (status != TUTTI_OK) return status;
    if (count != x.array->rank) return fail(TUTTI_FORMAT, "it has %d repeats for %d axes", count, x.array->rank);
    for (int i = 0; i < count; i++)
        if (times[i] < 0 || __builtin_mul_overflow(x.array->sizes[i], times[i], &sizes[i]))
            return fail(TUTTI_FORMAT, "its repeats are negative or too large");
    struct array *y = known_new(count, sizes, x.type);
    known_strides(x.array, strides);
    for (size_t i = 0; y && i < y->count; i++) {
        int64_t element = 0;
        for (int k = 0; k < count; k++) from[k] = at[k] % x.array->sizes[k];
        for (int k = 0; k < count; k++) element += from[k] * strides[k];
        known_put(y, x.type, i, known_at(&x, (size_t)element));
        (void)known_next(count, sizes, at);
    }
    return known_finish(node, y);
}

/* Sizes of the parts: an input or attribute, or equal ones, of which the last may be smaller. */
static tutti_status read_parts(const struct onnx_node *node, int64_t size, int64_t *parts, int most, int *count)
{
    const int64_t outputs = (int64_t)node->proto->n_output;
    tutti_status status = node_list_or_attribute(node, "split", 1, parts, most, count);
    if (status != TUTTI_OK) return status;
    if (*count == 0 && outputs <= most) {
        const int64_t each = (size + outputs - 1) / outputs;
        for (; *count < outputs; (*count)++) parts[*count] = each < size - *count * each ? each : size - *count * each;
    }
    int64_t rest = size;
    for (int i = 0; i < *count; i++) {
        if (parts[i] < 0 || parts[i] > rest) return fail(TUTTI_FORMAT, "its parts do not fit %" PRId64, size);
        rest -= parts[i];
    }
    return rest || *count != outputs ? fail(TUTTI_FORMAT, "its parts do not fit %" PRId64, size) : TUTTI_OK;
}

tutti_status evaluate_split(struct onnx_node *node)
{
    enum { MOST = 64 };
    struct known x;
    struct line line = { .axis = 0 };
    int64_t parts[MOST], sizes[ARRAY_MAX_RANK];
    int count = 0;
    size_t start = 0;
    tutti_status status = known_input(node, 0, &x);
    if (status == TUTTI_OK) status = line_of(x.array, node_integer(node, "axis", 0), &line);
    if (status == TUTTI_OK && node->proto->n_output > MOST) status = node_refuse("it has more than %d outputs", MOST);
    if (status == TUTTI_OK) status = read_parts(node, (int64_t)line.size, parts, MOST, &count);
    for (int i = 0; i < x.array->rank && status == TUTTI_OK; i++) sizes[i] = x.array->sizes[i];
    for (int k = 0; k < count && status == TUTTI_OK; k++) {
        sizes[line.axis] = parts[k];
        struct array *y = known_new(x.array->rank, sizes, x.type);
        const size_t row = (size_t)parts[k] * line.inner;
        for (size_t i = 0; y && i < y->count; i++)
            known_put(y, x.type, i, known_at(&x, i / row * line.inner * line.size + start * line.inner + i % row));
        start += (size_t)parts[k];
        status = y ? node_set_array_at(node, (size_t)k, y) : TUTTI_UNSUPPORTED;
    }
    return status;
}

/* Pads with a number. Negative pads cut off. */
tutti_status evaluate_pad(struct onnx_node *node)
{
    struct known x, with = { NULL };
    int64_t pads[2 * ARRAY_MAX_RANK], axes[ARRAY_MAX_RANK], before[ARRAY_MAX_RANK] = { 0 }, sizes[ARRAY_MAX_RANK];
    int64_t at[ARRAY_MAX_RANK] = { 0 }, strides[ARRAY_MAX_RANK];
    int count = 0, axis_count = 0;
    struct number fill = { (double)node_number(node, "value", 0) };
    tutti_status status = known_input(node, 0, &x);
    if (node_attribute(node, "mode") && !node_attribute_is(node, "mode", "constant"))
        return node_refuse("of this mode");
    if (status == TUTTI_OK) status = node_list_or_attribute(node, "pads", 1, pads, 2 * ARRAY_MAX_RANK, &count);
    if (status == TUTTI_OK && node_input(node, 2)) status = known_input(node, 2, &with);
    if (status == TUTTI_OK) status = node_list(node, 3, axes, ARRAY_MAX_RANK, &axis_count);
    if (status != TUTTI_OK) return status;
    const int each = node_input(node, 3) ? axis_count : x.array->rank;
    if (count != 2 * each || (with.array && with.array->count != 1)) return fail(TUTTI_FORMAT, "its pads do not fit");
    if (with.array) fill = known_at(&with, 0);
    for (int i = 0; i < x.array->rank; i++) sizes[i] = x.array->sizes[i];
    for (int i = 0; i < each; i++) {
        const int64_t axis = node_input(node, 3) ? (axes[i] < 0 ? axes[i] + x.array->rank : axes[i]) : i;
        if (axis < 0 || axis >= x.array->rank) return fail(TUTTI_FORMAT, "axis %" PRId64 " does not exist", axes[i]);
        before[axis] = pads[i];
        if (__builtin_add_overflow(sizes[axis], pads[i], &sizes[axis]) ||
            __builtin_add_overflow(sizes[axis], pads[each + i], &sizes[axis]) || sizes[axis] < 0)
            return fail(TUTTI_FORMAT, "its pads leave nothing, or too much");
    }
    struct array *y = known_new(x.array->rank, sizes, x.type);
    known_strides(x.array, strides);
    for (size_t i = 0; y && i < y->count; i++) {
        int64_t element = 0;
        bool inside = true;
        for (int k = 0; k < y->rank; k++) {
            inside &= at[k] >= before[k] && at[k] - before[k] < x.array->sizes[k];
            element += inside ? (at[k] - before[k]) * strides[k] : 0;
        }
        known_put(y, x.type, i, inside ? known_at(&x, (size_t)element) : fill);
        (void)known_next(y->rank, sizes, at);
    }
    return known_finish(node, y);
}
