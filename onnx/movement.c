/* Operators that move elements, or take parts of values. */
#include "onnx/operators.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

tutti_status build_transpose(struct step *step)
{
    struct operand x;
    size_t count;
    int order[TUTTI_MAX_RANK], at = 0;
    unsigned bits = 0;
    const int64_t *perm = step_integers(step, "perm", &count);
    tutti_status status = step_operand(step, 0, &x);
    if (status != TUTTI_OK) return status;
    const int rank = operand_rank(&x);
    struct place place = x.place;
    if (perm && count != (size_t)rank) return fail(TUTTI_FORMAT, "perm needs %d numbers", rank);
    if (perm && (status = axes_read(perm, rank, rank, &bits)) != TUTTI_OK) return status;
    for (int i = 0; i < rank; i++) {
        const int64_t from = perm ? perm[i] : rank - 1 - i;
        const bool is_batch = x.place.batched && from == x.place.axis;
        if (is_batch) place.axis = i;
        if (is_batch && x.place.ahead == 1) continue;
        if (is_batch)
            order[at++] = x.place.axis;
        else if ((status = operand_axis(&x, from, &order[at++])) != TUTTI_OK)
            return status;
    }
    return step_done(step, step_permuted(step, x.tensor, order, at), place);
}

/* Reads the sizes to which a value without a batch is expanded. *batch: the axis that becomes the batch, whose size
 * is its rows of a sample, or HIDDEN. *guessed: only a size suggests that it is the batch. */
static tutti_status read_expansion(const struct step *step, const struct operand *x, const struct array *asked,
    tutti_shape *to, int *batch, bool *guessed)
{
    const int64_t samples = step->import->fixed_batch;
    const int rank = (int)asked->count > x->shape.rank ? (int)asked->count : x->shape.rank;
    *to = (tutti_shape) { .rank = rank };
    *batch = HIDDEN;
    for (int i = 0; i < rank; i++) {
        const int own = i - (rank - x->shape.rank), wanted = i - (rank - (int)asked->count);
        const int64_t size = own < 0 ? 1 : x->shape.sizes[own];
        const struct extent more = wanted < 0 ? (struct extent) { 1, 0 } : asked->extents[wanted];
        const bool fixed = i == 0 && samples > 1 && more.number == samples && more.batches == 0 && size == 1;
        if (more.batches || fixed) {
            if (*batch != HIDDEN || size != 1 || (!fixed && (more.number || more.batches < 0)))
                return step_refuse("axis %d cannot be repeated for each sample", i);
            *batch = i;
            *guessed = fixed;
        }
        if (size != 1 && more.number != 1 && more.number != size)
            return fail(TUTTI_FORMAT, "axis %d cannot be repeated", i);
        to->sizes[i] = fixed ? 1 : more.batches ? more.batches : size == 1 ? more.number : size;
    }
    return TUTTI_OK;
}

/* In a file for one number of samples, an axis to be repeated for each sample may already have equal parts for all of
 * them. */
static tutti_status merge_samples(const struct step *step, struct operand *x, const struct array *asked)
{
    tutti_status status = TUTTI_OK;
    for (int i = 0; i < x->shape.rank && status == TUTTI_OK; i++) {
        const int wanted = i + (int)asked->count - x->shape.rank;
        tutti_shape one = x->shape;
        if (wanted < 0 || asked->extents[wanted].batches < 1 || one.sizes[i] == 1) continue;
        status = step_drop_axis(step, 0, i, asked->extents[wanted].batches, x);
        one.sizes[i] = 1;
        x->shape = one;
        x->tensor = step_reshape(step, x->tensor, &one);
    }
    return status;
}

/* Repeats axes of size 1. Along the batch, a value without a batch is the same for each sample. */
static tutti_status expand_fixed(struct step *step, struct operand *x, const struct array *asked)
{
    tutti_shape to, all;
    int batch;
    bool guessed = false;
    struct value *y = step_output(step, 0);
    tutti_status status = merge_samples(step, x, asked);
    if (status == TUTTI_OK) status = read_expansion(step, x, asked, &to, &batch, &guessed);
    if (status != TUTTI_OK) return status;
    if (to.rank) x->tensor = step_op(step, "expand", &x->tensor, 1, "shape=%s", list_print(to.sizes, to.rank).text);
    for (int i = 0; i < to.rank && y; i++) {
        const int own = i - (to.rank - x->shape.rank);
        if (to.sizes[i] > 1 && (own < 0 || x->shape.sizes[own] == 1)) y->repeated |= 1U << i;
    }
    if (batch == HIDDEN) return step_done(step, x->tensor, x->place);
    const struct place place = { .batched = true, .axis = batch, .rows = to.sizes[batch], .ahead = 1 };
    all = to;
    if (guessed && y) {
        all.sizes[batch] = step->import->fixed_batch;
        y->alike = step_op(step, "expand", &x->tensor, 1, "shape=%s", list_print(all.sizes, all.rank).text);
    }
    status = step_spread(step, &x->tensor);
    return status == TUTTI_OK ? step_done(step, step_without_rows(step, x->tensor, batch), place) : status;
}

tutti_status build_expand(struct step *step)
{
    struct operand x;
    const struct array *asked = NULL;
    tutti_status status = step_operand(step, 0, &x);
    if (status == TUTTI_OK) status = step_array(step, 1, &asked);
    if (status != TUTTI_OK) return status;
    if (!asked->extents || asked->count > TUTTI_MAX_RANK)
        return step_refuse("the shape must be up to %d integers", TUTTI_MAX_RANK);
    if (!x.place.batched) return expand_fixed(step, &x, asked);
    const int rank = operand_rank(&x), more = (int)asked->count > rank ? (int)asked->count - rank : 0;
    tutti_shape to = { .rank = more + x.shape.rank };
    if (to.rank >= TUTTI_MAX_RANK) return step_refuse("too many axes");
    for (int i = 0; i < x.shape.rank; i++) to.sizes[more + i] = x.shape.sizes[i];
    for (int i = 0; i < more; i++) to.sizes[i] = asked->extents[i].number;
    for (int i = more; i < (int)asked->count; i++) {
        int axis = 0;
        const struct extent size = asked->extents[i];
        const int of_file = i - more + (rank + more - (int)asked->count);
        if (x.place.axis == of_file || size.number == 1) continue; /* the batch stays what it is */
        if ((status = operand_axis(&x, of_file, &axis)) != TUTTI_OK) return status;
        if (size.batches || size.number < 1 || (x.shape.sizes[axis] != 1 && x.shape.sizes[axis] != size.number))
            return step_refuse("axis %d cannot be repeated", of_file);
        to.sizes[more + axis] = size.number;
    }
    if (to.rank == 0) return step_done(step, x.tensor, x.place);
    return step_done(step, step_op(step, "expand", &x.tensor, 1, "shape=%s", list_print(to.sizes, to.rank).text),
        place_moved(x.place, more));
}

/* Whether an input has no elements. A network has no such tensors: Concat leaves them out. */
static bool is_empty(const struct step *step, size_t position)
{
    const struct value *value = step_input(step, position);
    bool empty = value && value->array && value->array->count == 0;
    for (size_t i = 0; value && value->stored && i < value->stored->n_dims; i++) empty |= value->stored->dims[i] == 0;
    return empty;
}

static tutti_status step_empty(const struct step *step, size_t output, const struct operand *x)
{
    struct value *value = step_output(step, output);
    const int64_t sizes[TUTTI_MAX_RANK] = { 0 };
    if (!value) return TUTTI_OK;
    value->array = array_new(x->shape.rank, sizes, true);
    return value->array ? TUTTI_OK : TUTTI_NO_MEMORY;
}

/* All inputs have the same place; those without a batch are the same for each sample. */
tutti_status build_concat(struct step *step)
{
    enum { MOST = 8 }; /* inputs of tutti_concat() */
    tutti_tensor list[MOST];
    struct operand first = { .place = { .batched = false } }, x;
    int axis = 0, count = 0;
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; i < step->node->n_input && !first.place.batched; i++)
        if (!is_empty(step, i) && (status = step_operand(step, i, &first)) != TUTTI_OK) return status;
    for (size_t i = 0; i < step->node->n_input; i++) {
        if (is_empty(step, i)) continue;
        status = step_operand(step, i, &x);
        if (status == TUTTI_OK && first.place.batched && !x.place.batched) status = step_like(step, i, &first, &x);
        if (status == TUTTI_OK) status = operand_axis(&x, step_integer(step, "axis", 1), &axis);
        if (status != TUTTI_OK) return status;
        if (!place_equal(&x.place, &first.place)) return step_refuse("the batch is another axis of input %zu", i);
        if (count == MOST) {
            list[0] = step_op(step, "concat", list, count, "axis=%d", axis);
            count = 1;
        }
        list[count++] = x.tensor;
    }
    if (count == 0) return step_refuse("all its inputs are empty");
    if (count == 1 && step->node->n_input > 1) return step_done(step, list[0], first.place);
    return step_done(step, step_op(step, "concat", list, count, "axis=%d", axis), first.place);
}

tutti_tensor step_cut(const struct step *step, tutti_tensor x, int axis, int64_t start, int64_t end)
{
    return step_op(step, "slice", &x, 1, "axes=%d starts=%" PRId64 " ends=%" PRId64, axis, start, end);
}

tutti_tensor step_without_axis(const struct step *step, const struct operand *x, tutti_tensor one, int axis)
{
    tutti_shape to = { 0 };
    for (int i = 0; i < x->shape.rank; i++)
        if (i != axis) to.sizes[to.rank++] = x->shape.sizes[i];
    if (to.rank == 0 && !x->place.batched) to = TUTTI_SHAPE(1);
    return step_reshape(step, one, &to);
}

tutti_status build_split(struct step *step)
{
    struct operand x;
    int axis = 0, count = 0;
    int64_t sizes[64], start = 0;
    const size_t outputs = step->node->n_output;
    tutti_status status = step_operand(step, 0, &x);
    if (status == TUTTI_OK && step_integer(step, "axis", 0)) status = step_initial_state(step, 0, &x);
    if (status == TUTTI_OK) status = operand_axis(&x, step_integer(step, "axis", 0), &axis);
    if (status == TUTTI_OK) status = step_list_or_attribute(step, "split", 1, sizes, 64, &count);
    if (status != TUTTI_OK) return status;
    const int64_t size = x.shape.sizes[axis], equal = (size + (int64_t)outputs - 1) / (int64_t)outputs;
    if (count && (size_t)count != outputs) return fail(TUTTI_FORMAT, "%d sizes for %zu outputs", count, outputs);
    for (size_t i = 0; i < outputs && status == TUTTI_OK; i++) {
        const int64_t length = count ? sizes[i] : equal < size - start ? equal : size - start;
        if (length < 0 || length > size - start) return fail(TUTTI_FORMAT, "its parts do not fit %" PRId64, size);
        if (length == 0)
            status = step_empty(step, i, &x);
        else
            status = step_made(step, i, step_cut(step, x.tensor, axis, start, start + length), x.place);
        start += length;
    }
    return status;
}
