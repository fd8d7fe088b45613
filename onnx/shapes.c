/* Shapes and constants: numbers that are known when the file is read. Sizes are multiples of the number of samples, or
 * numbers. */
#include "onnx/known.h"

#include "base/memory.h"

#include <string.h>

static struct array *new_whole(int rank, int64_t size)
{
    return array_new(rank, &size, false);
}

/* ------------------------------------------------------------------------------------------------------- shapes ----
 */

/* The sizes of a value as the file has them, with the batch. */
static tutti_status sizes_of(const struct step *step, struct extent *sizes, int *rank)
{
    const struct value *value = step_input(step, 0);
    return value ? value_extents(step->import, value, sizes, rank) : fail(TUTTI_FORMAT, "input 0 is missing");
}

/* Resolves an axis that may be counted from the last one, and clips it to the ends. */
static int64_t axis_within(int64_t axis, int rank)
{
    if (axis < 0) axis = axis < -rank ? 0 : axis + rank;
    return axis > rank ? rank : axis;
}

tutti_status build_shape(struct step *step)
{
    struct extent sizes[TUTTI_MAX_RANK + 1];
    int rank = 0;
    const tutti_status status = sizes_of(step, sizes, &rank);
    step_type(step, 0, ONNX_INT64);
    if (status != TUTTI_OK) return status;
    int64_t start = step_integer(step, "start", 0), end = step_integer(step, "end", rank);
    start = axis_within(start, rank);
    end = axis_within(end, rank);
    struct array *array = new_whole(1, end > start ? end - start : 0);
    for (int64_t i = start; array && i < end; i++) array->extents[i - start] = sizes[i];
    return step_known(step, array);
}

static tutti_status product_of(const struct step *step, const struct extent *list, size_t count, int rank, int64_t size)
{
    struct extent product = { 1, 0 };
    for (size_t i = 0; i < count; i++)
        if (!extent_multiply(product, list[i], &product)) return step_refuse("the product of sizes is too large");
    struct array *array = new_whole(rank, size);
    if (array) array->extents[0] = product;
    return step_known(step, array);
}

tutti_status build_size(struct step *step)
{
    struct extent sizes[TUTTI_MAX_RANK + 1];
    int rank = 0;
    const tutti_status status = sizes_of(step, sizes, &rank);
    return status == TUTTI_OK ? product_of(step, sizes, (size_t)rank, 0, 1) : status;
}

/* ---------------------------------------------------------------------------------------------------- constants ----
 */

static tutti_status known_floats(const struct step *step, int rank, const float *floats, size_t count)
{
    const int64_t size = (int64_t)count;
    struct array *y = array_new(rank, &size, true);
    if (y && count) memcpy(y->floats, floats, count * sizeof *floats);
    return step_known(step, y);
}

static tutti_status known_integers(const struct step *step, int rank, const int64_t *numbers, size_t count)
{
    struct array *y = new_whole(rank, (int64_t)count);
    step_type(step, 0, ONNX_INT64);
    for (size_t i = 0; y && i < count; i++) y->extents[i].number = numbers[i];
    return step_known(step, y);
}

tutti_status build_constant(struct step *step)
{
    const Onnx__AttributeProto *a = step->node->n_attribute == 1 ? step->node->attribute[0] : NULL;
    const char *name = a ? proto_text(a->name) : "";
    struct value *output = step_output(step, 0);
    if (!strcmp(name, "value_float")) return known_floats(step, 0, &a->f, 1);
    if (!strcmp(name, "value_floats")) return known_floats(step, 1, a->floats, a->n_floats);
    if (!strcmp(name, "value_int")) return known_integers(step, 0, &a->i, 1);
    if (!strcmp(name, "value_ints")) return known_integers(step, 1, a->ints, a->n_ints);
    if (strcmp(name, "value") || !a->t) return step_refuse("it needs one of value, value_int(s) and value_float(s)");
    const tutti_status status = tensor_check(a->t);
    if (status == TUTTI_OK && output) output->stored = a->t;
    step_type(step, 0, a->t->data_type);
    return status;
}

tutti_status build_constant_of_shape(struct step *step)
{
    int64_t sizes[ARRAY_MAX_RANK];
    int rank;
    struct array *value = NULL, *y = NULL;
    const Onnx__AttributeProto *a = step_attribute(step, "value");
    tutti_status status = step_list(step, 0, sizes, ARRAY_MAX_RANK, &rank);
    if (status != TUTTI_OK) return status;
    if (a && a->t && (status = tensor_read(a->t, step->import->folder, &value)) != TUTTI_OK) return status;
    if (value && value->count != 1) {
        array_free(value);
        return fail(TUTTI_FORMAT, "its value is not one number");
    }
    const int type = a && a->t ? a->t->data_type : ONNX_FLOAT;
    y = known_new(rank, sizes, type);
    for (size_t i = 0; y && value && i < y->count; i++)
        known_put(y, type, i, known_at(&(struct known) { value, type }, 0));
    array_free(value);
    step_type(step, 0, type);
    return known_finish(step, y);
}

/* Reads the number that all elements are; 0 if the node does not state it. */
static tutti_status constant_number(const struct step *step, float *number, int *type)
{
    const Onnx__AttributeProto *a = step_attribute(step, "value");
    struct array *value = NULL;
    *number = 0;
    *type = a && a->t ? a->t->data_type : ONNX_FLOAT;
    if (!a || !a->t) return TUTTI_OK;
    const tutti_status status = tensor_read(a->t, step->import->folder, &value);
    if (status != TUTTI_OK) return status;
    const bool one = value->count == 1;
    if (one) *number = value->floats ? value->floats[0] : (float)value->extents[0].number;
    array_free(value);
    return one ? TUTTI_OK : fail(TUTTI_FORMAT, "its value is not one number");
}

tutti_status step_filled(
    const struct step *step, const struct extent *sizes, size_t rank, float number, struct operand *filled)
{
    tutti_status status = TUTTI_OK;
    tutti_shape shape = { 0 };
    struct place place = { .rows = 1, .ahead = 1 };
    if (rank >= TUTTI_MAX_RANK) return step_refuse("its shape has too many axes");
    for (int i = 0; i < (int)rank; i++) {
        const struct extent size = sizes[i];
        if (size.batches ? size.number || size.batches < 0 || place.batched : size.number < 1)
            return step_refuse("axis %d is no multiple of the number of samples, or the second one", i);
        if (size.batches) place = (struct place) { .batched = true, .axis = i, .rows = size.batches, .ahead = 1 };
        shape.sizes[shape.rank++] = size.batches + size.number;
    }
    struct operand y = { .tensor = step_constant(step, number), .shape = shape, .place = place };
    if (shape.rank)
        y.tensor = step_op(step, "expand", &y.tensor, 1, "shape=%s", list_print(shape.sizes, shape.rank).text);
    if (y.tensor.id >= 0 && place.batched) status = step_spread_operand(step, &y);
    if (status == TUTTI_OK && place.batched) y.tensor = step_without_rows(step, y.tensor, place.axis);
    *filled = y;
    if (status != TUTTI_OK || y.tensor.id >= 0) return status;
    return tutti_network_status(step->import->network);
}

/* A layer: the same number for each sample. */
tutti_status build_constants_of_samples(struct step *step)
{
    const struct array *asked = NULL;
    struct operand y = { .tensor = { -1 } };
    float number = 0;
    int type = 0;
    tutti_status status = step_array(step, 0, &asked);
    if (status == TUTTI_OK) status = constant_number(step, &number, &type);
    if (status != TUTTI_OK) return status;
    if (!asked->extents) return step_refuse("its shape is not of integers");
    status = step_filled(step, asked->extents, asked->count, number, &y);
    step_type(step, 0, type);
    return status == TUTTI_OK ? step_done(step, y.tensor, y.place) : status;
}
