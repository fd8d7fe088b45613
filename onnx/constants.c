/* Operators whose results are known when a file is read. */
#include "onnx/known.h"

#include <inttypes.h>
#include <math.h>

enum { MOST = 1 << 20 };

/* A matrix of the input's shape, with ones along a diagonal. */
tutti_status build_eye_like(struct step *step)
{
    struct extent sizes[TUTTI_MAX_RANK + 1];
    int rank = 0;
    const struct value *x = step_input(step, 0);
    tutti_status status = x ? value_extents(step->import, x, sizes, &rank) : fail(TUTTI_FORMAT, "input 0 is missing");
    if (status != TUTTI_OK) return status;
    if (rank != 2 || sizes[0].batches || sizes[1].batches) return step_refuse("its shape must be two known sizes");
    const int64_t k = step_integer(step, "k", 0), type = step_integer(step, "dtype", x->type);
    const int64_t shape[] = { sizes[0].number, sizes[1].number };
    size_t count;
    if (!array_count(2, shape, &count) || count > MOST) return step_refuse("it has more than %d elements", MOST);
    struct array *y = array_new(2, shape, onnx_type_is_float((int)type));
    for (int64_t i = 0; y && i < shape[0]; i++) {
        if (i + k < 0 || i + k >= shape[1]) continue;
        if (y->floats) y->floats[i * shape[1] + i + k] = 1;
        if (y->extents) y->extents[i * shape[1] + i + k].number = 1;
    }
    step_type(step, 0, (int)type);
    return step_known(step, y);
}

/* Makes ranges of floats; fold_range() makes those of integers. */
tutti_status build_range(struct step *step)
{
    struct known given[3];
    double number[3];
    for (size_t i = 0; i < 3; i++) {
        const tutti_status status = known_input(step, i, &given[i]);
        if (status != TUTTI_OK) return status;
        if (given[i].array->count != 1) return fail(TUTTI_FORMAT, "input %zu must be one number", i);
        number[i] = known_at(&given[i], 0).real;
    }
    const double length = ceil((number[1] - number[0]) / number[2]);
    if (!(length <= KNOWN_MOST)) return step_refuse("it has more than %d numbers", KNOWN_MOST);
    const int64_t size = length > 0 ? (int64_t)length : 0;
    struct array *y = known_new(1, &size, given[0].type);
    for (int64_t i = 0; y && i < size; i++)
        known_put(y, given[0].type, (size_t)i, (struct number) { .real = number[0] + (double)i * number[2] });
    return known_finish(step, y);
}

/* One output of an If whose branches were inlined. Inputs: the condition, and the result of each branch. */
tutti_status build_if(struct step *step)
{
    const struct array *condition = NULL;
    const tutti_status status = step_array(step, 0, &condition);
    if (status != TUTTI_OK) return status;
    if (condition->count != 1 || !condition->extents) return fail(TUTTI_FORMAT, "its condition is not one truth");
    struct value *value = step_input(step, condition->extents[0].number || condition->extents[0].batches ? 1 : 2);
    return value ? step_copy(step, value) : fail(TUTTI_FORMAT, "a branch has no result");
}

/* The coordinates of elements that are not 0: a row for each axis. */
tutti_status build_non_zero(struct step *step)
{
    const struct array *x = NULL;
    int64_t sizes[2] = { 0 }, found = 0;
    const tutti_status status = step_array(step, 0, &x);
    if (status != TUTTI_OK) return status;
    for (int pass = 0; pass < 2; pass++) {
        struct array *y = NULL;
        if (pass && !(y = array_new(2, sizes, false))) return TUTTI_NO_MEMORY;
        found = 0;
        for (size_t i = 0; i < x->count; i++) {
            if (x->extents && x->extents[i].batches) return array_free(y), step_refuse("it depends on the samples");
            if (x->floats ? x->floats[i] == 0 : x->extents[i].number == 0) continue;
            size_t rest = i;
            for (int axis = x->rank - 1; y && axis >= 0; rest /= (size_t)x->sizes[axis--])
                y->extents[axis * sizes[1] + found].number = (int64_t)(rest % (size_t)x->sizes[axis]);
            found++;
        }
        sizes[0] = x->rank;
        sizes[1] = found;
        step_type(step, 0, ONNX_INT64);
        if (pass) return step_known(step, y);
    }
    return TUTTI_OK;
}
