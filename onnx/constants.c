/* Operators whose results are known when a file is read. */
#include "onnx/known.h"

#include <inttypes.h>
#include <math.h>

enum { MOST = 1 << 20 };

/* A matrix of the input's shape, with ones along a diagonal. */
tutti_status build_eye_like(struct onnx_node *node)
{
    struct symbolic_integer sizes[TUTTI_MAX_RANK + 1];
    int rank = 0;
    const struct onnx_value *x = node_input(node, 0);
    tutti_status status = x ? value_sizes(node->import, x, sizes, &rank) : fail(TUTTI_FORMAT, "input 0 is missing");
    if (status != TUTTI_OK) return status;
    if (rank != 2 || sizes[0].batches || sizes[1].batches) return node_refuse("its shape must be two known sizes");
    const int64_t k = node_integer(node, "k", 0), type = node_integer(node, "dtype", x->type);
    const int64_t shape[] = { sizes[0].number, sizes[1].number };
    size_t count;
    if (!array_count(2, shape, &count) || count > MOST) return node_refuse("it has more than %d elements", MOST);
    struct array *y = array_new(2, shape, onnx_type_is_float((int)type));
    for (int64_t i = 0; y && i < shape[0]; i++) {
        if (i + k < 0 || i + k >= shape[1]) continue;
        if (y->floats) y->floats[i * shape[1] + i + k] = 1;
        if (y->integers) y->integers[i * shape[1] + i + k].number = 1;
    }
    node_set_type(node, 0, (int)type);
    return node_set_array(node, y);
}

/* Makes ranges of floats; evaluate_range() makes those of integers. */
tutti_status build_range(struct onnx_node *node)
{
    struct known given[3];
    double number[3];
    for (size_t i = 0; i < 3; i++) {
        const tutti_status status = known_input(node, i, &given[i]);
        if (status != TUTTI_OK) return status;
        if (given[i].array->count != 1) return fail(TUTTI_FORMAT, "input %zu must be one number", i);
        number[i] = known_at(&given[i], 0).real;
    }
    const double length = ceil((number[1] - number[0]) / number[2]);
    if (!(length <= KNOWN_MOST)) return node_refuse("it has more than %d numbers", KNOWN_MOST);
    const int64_t size = length > 0 ? (int64_t)length : 0;
    struct array *y = known_new(1, &size, given[0].type);
    for (int64_t i = 0; y && i < size; i++)
        known_put(y, given[0].type, (size_t)i, (struct number) { .real = number[0] + (double)i * number[2] });
    return known_finish(node, y);
}

/* One output of an If whose branches were inlined. Inputs: the condition, and the result of each branch. */
tutti_status build_if(struct onnx_node *node)
{
    const struct array *condition = NULL;
    const tutti_status status = node_array(node, 0, &condition);
    if (status != TUTTI_OK) return status;
    if (condition->count != 1 || !condition->integers) return fail(TUTTI_FORMAT, "its condition is not one truth");
    struct onnx_value *value =
        node_input(node, condition->integers[0].number || condition->integers[0].batches ? 1 : 2);
    return value ? node_copy(node, value) : fail(TUTTI_FORMAT, "a branch has no result");
}

/* The coordinates of elements that are not 0: a row for each axis. */
tutti_status build_non_zero(struct onnx_node *node)
{
    const struct array *x = NULL;
    int64_t sizes[2] = { 0 }, found = 0;
    const tutti_status status = node_array(node, 0, &x);
    if (status != TUTTI_OK) return status;
    for (int pass = 0; pass < 2; pass++) {
        struct array *y = NULL;
        if (pass && !(y = array_new(2, sizes, false))) return TUTTI_NO_MEMORY;
        found = 0;
        for (size_t i = 0; i < x->count; i++) {
            if (x->integers && x->integers[i].batches) return array_free(y), node_refuse("it depends on the samples");
            if (x->floats ? x->floats[i] == 0 : x->integers[i].number == 0) continue;
            size_t rest = i;
            for (int axis = x->rank - 1; y && axis >= 0; rest /= (size_t)x->sizes[axis--])
                y->integers[axis * sizes[1] + found].number = (int64_t)(rest % (size_t)x->sizes[axis]);
            found++;
        }
        sizes[0] = x->rank;
        sizes[1] = found;
        node_set_type(node, 0, ONNX_INT64);
        if (pass) return node_set_array(node, y);
    }
    return TUTTI_OK;
}
