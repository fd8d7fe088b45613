/* Operators that read or write elements by their indices. */
#include "onnx/operators.h"

#include "base/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ----------------------------------------------------------------------------------------------------- Gather ---- */

/* Takes one element along an axis, and removes the axis. */
static tutti_status gather_one(struct step *step, int64_t index)
{
    struct operand x;
    int axis = 0;
    const int64_t asked = step_integer(step, "axis", 0);
    tutti_status status = step_operand(step, 0, &x);
    if (status == TUTTI_OK) status = operand_axis(&x, asked, &axis);
    if (status != TUTTI_OK) return status;
    index = index < 0 ? index + x.shape.sizes[axis] : index;
    if (index < 0 || index >= x.shape.sizes[axis]) return fail(TUTTI_FORMAT, "there is no element %" PRId64, index);
    x.tensor = step_cut(step, x.tensor, axis, index, index + 1);
    x.tensor = step_without_axis(step, &x, x.tensor, axis);
    const int64_t of_file = asked < 0 ? asked + operand_rank(&x) : asked;
    return step_done(step, x.tensor, place_moved(x.place, of_file < x.place.axis ? -1 : 0));
}

/* The indices of each sample count along the batch's axis of the data: they select among its rows. */
static tutti_status gather_counted(struct step *step, const struct operand *x, const struct operand *indices, int axis)
{
    const int64_t rows = x->place.rows;
    const struct counting *counting = &step_input(step, 1)->counting;
    const struct place place = {
        .batched = true, .axis = axis + indices->place.axis, .rows = indices->place.rows, .ahead = 1
    };
    tutti_shape data = x->shape, of_indices = indices->shape;
    if (counting->factor != rows || counting->component != EACH || x->place.ahead != 1 || indices->place.ahead != 1)
        return step_refuse("its indices along the batch must count samples");
    if (x->shape.rank + indices->shape.rank + 1 >= TUTTI_MAX_RANK) return step_refuse("its result has too many axes");
    tutti_tensor pair[] = { step_with_rows(step, x->tensor, &data, axis, rows), indices->tensor };
    if (place.rows > 1) pair[1] = step_with_rows(step, pair[1], &of_indices, indices->place.axis, indices->place.rows);
    tutti_tensor y = step_op(step, "gather", pair, 2, "axis=%d", axis);
    if (place.rows > 1) y = step_without_rows(step, y, place.axis);
    return step_done(step, y, place);
}

/* The indices' axes take the place of one of the data. */
static tutti_status gather(struct step *step, const struct operand *x, const struct operand *indices)
{
    int axis = 0;
    const int64_t asked = step_integer(step, "axis", 0), of_file = asked < 0 ? asked + operand_rank(x) : asked;
    if (step_input(step, 1)->counting.factor && !operand_is_whole(x) && of_file == x->place.axis)
        return gather_counted(step, x, indices, (int)of_file);
    if (step_input(step, 1)->counting.factor) return step_refuse("its indices count samples");
    const tutti_status status = operand_axis(x, asked, &axis);
    if (status != TUTTI_OK) return status;
    if (x->place.batched && indices->place.batched && !(operand_is_whole(x) && operand_is_whole(indices)))
        return step_refuse("both its inputs depend on the samples");
    const tutti_tensor pair[] = { x->tensor, indices->tensor }, y = step_op(step, "gather", pair, 2, "axis=%d", axis);
    if (!x->place.batched) return step_done(step, y, place_moved(indices->place, (int)of_file));
    return step_done(step, y, place_moved(x->place, of_file < x->place.axis ? operand_rank(indices) - 1 : 0));
}

/* A constant beside the node's first output. */
static tutti_tensor constant(const struct step *step, const char *suffix, int32_t *numbers, int64_t count)
{
    char *name = memory_format("%s~%s", step->node->n_output ? step->node->output[0] : "", suffix);
    const tutti_tensor made = name
        ? tutti_constant_typed(step->import->network, name, TUTTI_DTYPE_I32, &count, 1, numbers)
        : (tutti_tensor) { -1 };
    free(name);
    return made;
}

/* The axis of known indices along which they count samples, and how many of its elements each sample has. False: none.
 */
static bool find_counting_axis(
    const struct import *import, const struct array *indices, int64_t factor, int *axis, int64_t *rows)
{
    const int64_t samples = import_samples(import);
    bool found = false;
    for (int i = 0; i < indices->rank && samples && indices->extents; i++) {
        const int64_t each = indices->sizes[i] / samples;
        if (each < 1 || indices->sizes[i] % samples || (found && each >= *rows) ||
            !array_counts(indices, i, each, EACH, factor))
            continue;
        *axis = i;
        *rows = each;
        found = true;
    }
    return found;
}

/* Known indices along the batch of the data, which select the same rows of each sample. */
static tutti_status gather_alike(
    const struct step *step, const struct operand *x, const struct array *indices, int axis)
{
    struct place place = { .batched = true, .ahead = 1 };
    int at = 0;
    if (!find_counting_axis(step->import, indices, x->place.rows, &at, &place.rows))
        return step_refuse("its indices along axis %d, the batch, do not select the same part of each sample", axis);
    tutti_shape data = x->shape;
    place.axis = axis + at;
    if (x->shape.rank + indices->rank >= TUTTI_MAX_RANK) return step_refuse("its result has too many axes");
    tutti_tensor y = step_with_rows(step, x->tensor, &data, axis, x->place.rows);
    y = step_op(
        step, "gather", (tutti_tensor[]) { y, step_first_sample(step, indices, at, place.rows) }, 2, "axis=%d", axis);
    if (place.rows > 1) y = step_without_rows(step, y, place.axis);
    return step_done(step, y, place);
}

/* Rows of a table by numbers that depend on the samples are an embedding. */
tutti_status build_gather(struct step *step)
{
    struct operand x, indices;
    tutti_shape shape = { 0 };
    tutti_status status = step_operand(step, 0, &x);
    const struct value *second = step_input(step, 1);
    if (status == TUTTI_OK && !second) status = fail(TUTTI_FORMAT, "input 1 is missing");
    if (status != TUTTI_OK) return status;
    const bool known = second->stored || second->array;
    if (known && (status = value_shape(step->import, second, &shape)) != TUTTI_OK) return status;
    if (known && shape.rank == 0) {
        int64_t index[1];
        int count;
        status = step_list(step, 1, index, 1, &count);
        return status == TUTTI_OK ? gather_one(step, index[0]) : status;
    }
    const int64_t axis = step_integer(step, "axis", 0), of_file = axis < 0 ? axis + operand_rank(&x) : axis;
    if (known && !operand_is_whole(&x) && of_file == x.place.axis && x.place.ahead == 1) {
        const struct array *numbers = NULL;
        status = step_array(step, 1, &numbers);
        return status == TUTTI_OK ? gather_alike(step, &x, numbers, x.place.axis) : status;
    }
    if ((status = step_indices(step, 1, &indices)) != TUTTI_OK) return status;
    const bool is_table = !x.place.batched && x.shape.rank == 2 && axis == 0;
    if (!is_table || known || !second->converts || second->counting.factor) return gather(step, &x, &indices);
    const tutti_tensor pair[] = { indices.tensor, x.tensor };
    return step_done(step, step_plain(step, "embedding", pair, 2), indices.place);
}

/* --------------------------------------------------------------------------------------- elements ----
 */

/* Reads data, indices, and updates if `count` is 3. *place: that of the result. */
static tutti_status read_inputs(const struct step *step, int count, struct operand *inputs, struct place *place)
{
    tutti_status status = TUTTI_OK;
    *place = (struct place) { .rows = 1, .ahead = 1, .axis = HIDDEN };
    for (int i = 0; i < count && status == TUTTI_OK; i++) {
        status = (i == 1 ? step_indices : step_operand)(step, (size_t)i, &inputs[i]);
        if (status == TUTTI_OK && inputs[i].place.batched && !place->batched) *place = inputs[i].place;
    }
    return status;
}

/* Gives all inputs the same batch, where it is an axis of the file. */
static tutti_status match_inputs(const struct step *step, int count, struct operand *inputs, const struct place *place)
{
    tutti_status status = TUTTI_OK;
    const struct operand *like = inputs;
    if (!place->batched || place->axis == HIDDEN) return TUTTI_OK;
    while (!like->place.batched) like++;
    for (int i = 0; i < count && status == TUTTI_OK; i++) {
        if (inputs[i].place.batched && !place_equal(&inputs[i].place, place))
            return step_refuse("the batch is another axis of input %d", i);
        if (inputs[i].place.batched) continue;
        status = step_operand(step, (size_t)i, &inputs[i]);
        if (status == TUTTI_OK) status = step_like(step, (size_t)i, like, &inputs[i]);
    }
    return status;
}

static tutti_tensor add(
    const struct step *step, const char *operation, const struct operand *inputs, int count, const char *attributes)
{
    tutti_tensor tensors[3];
    for (int i = 0; i < count; i++) tensors[i] = inputs[i].tensor;
    return step_op(step, operation, tensors, count, "%s", attributes);
}

const char *step_reduction(const struct step *step)
{
    static const char *const names[] = { "none", "add", "mul", "max", "min" };
    if (!step_attribute(step, "reduction")) return names[0];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (step_says(step, "reduction", names[i])) return names[i];
    return NULL;
}

tutti_status build_elements(struct step *step)
{
    struct operand inputs[3];
    struct place place;
    char text[64];
    int axis = 0;
    const bool scatters = step->node->n_input == 3;
    const char *reduction = step_reduction(step);
    tutti_status status = read_inputs(step, 2 + scatters, inputs, &place);
    if (status == TUTTI_OK) status = match_inputs(step, 2 + scatters, inputs, &place);
    if (status == TUTTI_OK) status = operand_axis(&inputs[0], step_integer(step, "axis", 0), &axis);
    if (status != TUTTI_OK) return status;
    if (!reduction) return step_refuse("its reduction must be none, add, mul, max or min");
    snprintf(text, sizeof text, scatters ? "axis=%d reduction=%s" : "axis=%d", axis, reduction);
    return step_done(step, add(step, step->operation, inputs, 2 + scatters, text), place);
}

/* -------------------------------------------------------------------------------------- Compress, TensorScatter ----
 */

/* Selects the elements of an axis for which a known condition is true; without an axis, those of all elements in a
 * row. */
tutti_status build_compress(struct step *step)
{
    struct operand x;
    const struct array *condition = NULL;
    int axis = 0;
    int64_t count = 0;
    tutti_status status = step_operand(step, 0, &x);
    if (status == TUTTI_OK) status = step_array(step, 1, &condition);
    if (status != TUTTI_OK) return status;
    if (step_attribute(step, "axis")) {
        status = operand_axis(&x, step_integer(step, "axis", 0), &axis);
    } else {
        if (!operand_is_whole(&x)) return step_refuse("without an axis it would join samples");
        int64_t all = 1;
        for (int i = 0; i < x.shape.rank; i++) all *= x.shape.sizes[i];
        x.shape = TUTTI_SHAPE(all);
        x.tensor = step_reshape(step, x.tensor, &x.shape);
    }
    if (status != TUTTI_OK) return status;
    if (!condition->extents || condition->count > (size_t)x.shape.sizes[axis])
        return fail(TUTTI_FORMAT, "its condition must be of bool, and not longer than the axis");
    int32_t *picked = memory_new(condition->count + 1, sizeof *picked);
    if (!picked) return TUTTI_NO_MEMORY;
    for (size_t i = 0; i < condition->count; i++)
        if (condition->extents[i].number) picked[count++] = (int32_t)i;
    const tutti_tensor pair[] = { x.tensor, count ? constant(step, "indices", picked, count) : x.tensor };
    free(picked);
    if (count == 0) return step_refuse("nothing is left");
    return step_done(step, step_op(step, "gather", pair, 2, "axis=%d", axis), x.place);
}

/* Positions of each sample's update s along the axis: write_indices + s, and modulo the axis's size in the mode
 * "circular". The samples are the first axis of the file, also if a sample is the whole file. */
static tutti_tensor places_of(
    const struct step *step, const struct operand *first, const tutti_shape *updates, int axis, int64_t size)
{
    const bool own = first->shape.rank > 0, circular = step_says(step, "mode", "circular");
    const int64_t count = updates->sizes[axis];
    int32_t number = (int32_t)size, *steps = memory_new((size_t)count + 1, sizeof *steps);
    if (!steps) return (tutti_tensor) { -1 };
    for (int64_t i = 0; i < count; i++) steps[i] = (int32_t)i;
    tutti_tensor places = constant(step, "steps", steps, count);
    places = tutti_cast(step->import->network, places, TUTTI_DTYPE_F32);
    free(steps);
    tutti_shape apart = { .rank = updates->rank };
    for (int i = 0; i < apart.rank; i++) apart.sizes[i] = i == axis ? count : 1;
    places = step_reshape(step, places, &apart);
    for (int i = 0; i < apart.rank; i++) apart.sizes[i] = i == 0 && own ? updates->sizes[0] : 1;
    const tutti_tensor begin = own ? step_reshape(step, first->tensor, &apart) : first->tensor;
    if (begin.id >= 0) places = step_plain(step, "add", (tutti_tensor[]) { begin, places }, 2);
    if (circular) {
        const tutti_tensor around =
            tutti_cast(step->import->network, constant(step, "size", &number, 1), TUTTI_DTYPE_F32);
        places = step_plain(step, "mod", (tutti_tensor[]) { places, around }, 2);
    }
    return step_op(step, "expand", &places, 1, "shape=%s", list_print(updates->sizes, updates->rank).text);
}

/* A cache of keys or values, with an update behind what it has. */
tutti_status build_tensor_scatter(struct step *step)
{
    struct operand in[2] = { { .tensor = { -1 } }, { .tensor = { -1 } } }, first = { .tensor = { -1 } };
    struct place place;
    int axis = 0;
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; i < 2 && status == TUTTI_OK; i++) status = step_operand(step, i, &in[i]);
    if (status == TUTTI_OK && step_input(step, 2)) status = step_operand(step, 2, &first);
    place = in[in[1].place.batched].place;
    if (status == TUTTI_OK) status = match_inputs(step, 2, in, &place);
    if (status == TUTTI_OK && place.batched && place.axis != HIDDEN && first.shape.rank > 0)
        status = step_drop_axis(step, 2, 0, 1, &first);
    if (status == TUTTI_OK) status = operand_axis(&in[0], step_integer(step, "axis", -2), &axis);
    if (status != TUTTI_OK) return status;
    const int rank = operand_rank(&in[0]);
    if ((place.batched && place.axis > 0) || place.rows != 1 || place.ahead != 1 || rank < 2 ||
        (!operand_is_whole(&first) && !place_equal(&first.place, &place)) || rank != operand_rank(&in[1]))
        return step_refuse("the batch must be the first axis of its inputs, which must have equally many");
    const tutti_tensor inputs[] = { in[0].tensor, places_of(step, &first, &in[1].shape, axis, in[0].shape.sizes[axis]),
        in[1].tensor };
    return step_done(
        step, step_op(step, "scatter_elements", inputs, 3, "axis=%d", axis), place.batched ? place : first.place);
}
