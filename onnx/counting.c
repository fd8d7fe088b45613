/* Integers that count samples: batch-dependent indices, as in x[arange(N), i]. A network computes each sample by
 * itself. So it stores such a number as it is for the first sample, and value.counting tells how it counts. */
#include "onnx/operators.h"

#include "base/memory.h"

#include <stdlib.h>

int64_t import_samples(const struct import *import)
{
    return import->fixed_batch ? import->fixed_batch : import->stands_in ? STAND_IN : 0;
}

tutti_status step_sizes(const struct step *step, size_t position, int64_t *list, int most, int *count)
{
    const struct array *array = NULL;
    const int64_t samples = import_samples(step->import);
    const tutti_status status = step_array(step, position, &array);
    *count = 0;
    if (status != TUTTI_OK) return status;
    if (!array->extents || array->count > (size_t)most)
        return fail(TUTTI_FORMAT, "input %zu must be at most %d integers", position, most);
    for (size_t i = 0; i < array->count; i++) {
        int64_t more = 0;
        if ((array->extents[i].batches && samples == 0) ||
            __builtin_mul_overflow(array->extents[i].batches, samples, &more) ||
            __builtin_add_overflow(array->extents[i].number, more, &list[i]))
            return step_refuse("input %zu depends on the number of samples", position);
    }
    *count = (int)array->count;
    return TUTTI_OK;
}

bool array_is_linear(const struct array *array, int axis, int64_t *factor)
{
    size_t inner = 1;
    for (int i = axis + 1; i < array->rank; i++) inner *= (size_t)array->sizes[i];
    const size_t line = inner * (size_t)array->sizes[axis];
    *factor = 0;
    if (array->extents && array->sizes[axis] > 1 &&
        __builtin_sub_overflow(array->extents[inner].number, array->extents[0].number, factor))
        return false;
    for (size_t i = 0; i < array->count; i++) {
        const size_t first = i / line * line + i % inner, part = i % line / inner;
        int64_t wanted = 0;
        if (array->floats && array->floats[i] != array->floats[first]) return false;
        if (array->floats) continue;
        if (__builtin_mul_overflow(*factor, (int64_t)part, &wanted) ||
            __builtin_add_overflow(wanted, array->extents[first].number, &wanted) ||
            wanted != array->extents[i].number || array->extents[i].batches != array->extents[first].batches)
            return false;
    }
    return true;
}

bool array_counts(const struct array *x, int axis, int64_t rows, int component, int64_t factor)
{
    const int64_t last = x->rank ? x->sizes[x->rank - 1] : 1;
    size_t inner = 1;
    for (int i = axis + 1; i < x->rank; i++) inner *= (size_t)x->sizes[i];
    const size_t line = inner * (size_t)x->sizes[axis], part = inner * (size_t)rows;
    for (size_t i = 0; i < x->count; i++) {
        const int64_t sample = (int64_t)(i % line / part), number = x->extents[i].number;
        const int64_t first = x->extents[i / line * line + i % part].number;
        const bool counts = component == EACH || (int64_t)i % last == component;
        if (counts && (first < 0 || first >= factor)) return false; /* of another sample */
        if (x->extents[i].batches || number != first + (counts ? factor * sample : 0)) return false;
    }
    return true;
}

tutti_tensor step_first_sample(const struct step *step, const struct array *x, int axis, int64_t rows)
{
    size_t inner = 1, count = 0;
    int64_t sizes[TUTTI_MAX_RANK];
    int rank = 0;
    tutti_tensor made = { -1 };
    for (int i = axis + 1; i < x->rank; i++) inner *= (size_t)x->sizes[i];
    for (int i = 0; i < x->rank && rank < TUTTI_MAX_RANK; i++)
        if (i != axis || rows > 1) sizes[rank++] = i == axis ? rows : x->sizes[i];
    const size_t line = inner * (size_t)x->sizes[axis], part = inner * (size_t)rows;
    int32_t *numbers = memory_new(x->count + 1, sizeof *numbers);
    char *name = memory_format("%s~indices", step->node->output[0]);
    for (size_t i = 0; numbers && i < x->count; i++)
        if (i % line < part) numbers[count++] = (int32_t)x->extents[i].number;
    if (numbers && name)
        made = tutti_constant_typed(step->import->network, name, TUTTI_DTYPE_I32, sizes, rank, numbers);
    free(numbers);
    free(name);
    return made;
}

/* Whether a value has integers for each of STAND_IN samples. */
static bool stands_in(const struct import *import, const struct value *value)
{
    bool found = false;
    if (!import->stands_in || !value || value->stored || !value->array || !value->array->extents) return false;
    for (int i = 0; i < value->array->rank; i++)
        found |= value->array->sizes[i] && value->array->sizes[i] % STAND_IN == 0;
    return found;
}

static tutti_status refuse(size_t position)
{
    return step_refuse("input %zu counts samples, and would be more than an index of them", position);
}

/* Whether an operator may read an input that counts. known: with a number for each of STAND_IN samples. */
static bool may_read(enum onnx_counting kind, size_t position, const struct counting *counting, bool known)
{
    const bool part = counting->factor && counting->component != EACH;
    if (counting->factor && counting->component == SIZES) return kind == COUNTING_SHAPE;
    switch (kind) {
    case COUNTING_SHAPE:
    case COUNTING_SIZES:
    case COUNTING_SAME: return true;
    case COUNTING_MOVED:
    case COUNTING_SUM:
    case COUNTING_DIFFERENCE:
    case COUNTING_JOINED: return !part;
    case COUNTING_INDEX: return !part && position == 1;
    case COUNTING_INDICES: return position == 1;
    case COUNTING_KNOWN: return !part && known;
    case COUNTING_NEVER: break;
    }
    return false;
}

tutti_status counting_check(const struct step *step, enum onnx_counting kind)
{
    step->import->counted = (struct counting) { 0 };
    for (size_t i = 0; i < step->node->n_input; i++) {
        const struct value *value = step_input(step, i);
        const bool known = stands_in(step->import, value);
        if (!value || (!value->counting.factor && !known)) continue;
        if (!may_read(kind, i, &value->counting, known)) return refuse(i);
    }
    return TUTTI_OK;
}

/* By how much an input's numbers differ from one sample to the next. */
static int64_t factor_of(const struct step *step, size_t position)
{
    const struct counting *counted = &step->import->counted;
    const struct value *value = step_input(step, position);
    if (counted->factor && counted->component == (int)position) return counted->factor;
    return value ? value->counting.factor : 0;
}

/* Adds or subtracts the factors of the inputs of a sum or difference. */
static tutti_status add(const struct step *step, bool minus, struct counting *y)
{
    *y = (struct counting) { 0, EACH };
    for (size_t i = 0; i < step->node->n_input; i++) {
        const int64_t factor = factor_of(step, i);
        if (minus && i ? __builtin_sub_overflow(y->factor, factor, &y->factor)
                       : __builtin_add_overflow(y->factor, factor, &y->factor))
            return refuse(i);
    }
    return TUTTI_OK;
}

/* Joins inputs: all may count in the same way, or one of them as one column along the last axis. */
static tutti_status join(const struct step *step, struct counting *y)
{
    struct extent sizes[TUTTI_MAX_RANK + 1];
    const int64_t axis = step_integer(step, "axis", 1);
    bool equal = true;
    *y = (struct counting) { 0, EACH };
    for (size_t i = 0; i < step->node->n_input; i++) equal &= factor_of(step, i) == factor_of(step, 0);
    if (equal) y->factor = factor_of(step, 0);
    for (int i = 0, at = 0; i < (int)step->node->n_input && !equal; i++) {
        const struct value *value = step_input(step, (size_t)i);
        const int64_t factor = factor_of(step, (size_t)i);
        int rank = 0;
        const tutti_status status =
            value ? value_extents(step->import, value, sizes, &rank) : fail(TUTTI_FORMAT, "input %d is missing", i);
        if (status != TUTTI_OK) return status;
        const bool column = rank > 0 && (axis == -1 || axis == rank - 1) && sizes[rank - 1].batches == 0;
        if (factor && (!column || sizes[rank - 1].number != 1 || y->factor)) return refuse((size_t)i);
        if (factor) *y = (struct counting) { factor, at };
        at += column ? (int)sizes[rank - 1].number : 0;
    }
    return TUTTI_OK;
}

tutti_status counting_finish(const struct step *step, enum onnx_counting kind)
{
    struct value *y = step_output(step, 0);
    const struct value *x = step_input(step, 0);
    struct counting counting = { 0 };
    bool counts = step->import->counted.factor != 0;
    tutti_status status = TUTTI_OK;
    if (!y) return TUTTI_OK;
    for (size_t i = 0; i < step->node->n_input; i++) {
        const struct value *input = step_input(step, i);
        counts |= input && (input->counting.factor || stands_in(step->import, input));
    }
    if (kind != COUNTING_SHAPE && stands_in(step->import, x) && y->array && !stands_in(step->import, y))
        return refuse(0);
    if (kind == COUNTING_SUM || kind == COUNTING_DIFFERENCE)
        status = y->array ? TUTTI_OK : add(step, kind == COUNTING_DIFFERENCE, &counting);
    else if (kind == COUNTING_JOINED)
        status = y->array ? TUTTI_OK : join(step, &counting);
    else if (kind == COUNTING_SIZES && counts)
        counting = (struct counting) { 1, SIZES };
    else if (step->import->counted.factor)
        return refuse((size_t)step->import->counted.component);
    else if (x && (kind == COUNTING_SAME || kind == COUNTING_MOVED))
        counting = x->counting;
    y->counting = counting.factor ? counting : y->counting;
    return status;
}
