/* Which axis of a file's value is the batch, and how the other axes become those of a tensor. */
#include "onnx/operators.h"

#include <inttypes.h>
#include <string.h>

int import_batch_axis(const struct import *import, const char *input)
{
    const tutti_onnx_options *options = import->options;
    for (int i = 0; i < options->batch_axis_count && !options->whole; i++)
        if (!strcmp(options->batch_axes[i].name, input)) return options->batch_axes[i].axis;
    return options->whole ? HIDDEN : options->batch_axis;
}

struct place place_moved(struct place place, int change)
{
    if (place.batched && place.axis != HIDDEN) place.axis += change;
    return place;
}

/* Whether the sample has an axis with the number of the batch's. */
static bool has_ahead(const struct place *place)
{
    return place->batched && place->axis != HIDDEN && place->ahead != 1;
}

static bool has_own_axis(const struct place *place)
{
    return place->batched && place->axis != HIDDEN && place->ahead == 1;
}

int operand_rank(const struct operand *operand)
{
    return operand->shape.rank + has_own_axis(&operand->place);
}

bool operand_is_whole(const struct operand *operand)
{
    return !operand->place.batched || operand->place.axis == HIDDEN;
}

tutti_status operand_axis(const struct operand *operand, int64_t axis, int *of_tensor)
{
    const struct place *place = &operand->place;
    const int rank = operand_rank(operand);
    const int64_t counted = axis < 0 ? axis + rank : axis;
    if (counted < 0 || counted >= rank)
        return fail(TUTTI_FORMAT, "axis %" PRId64 " does not exist: there are %d", axis, rank);
    if (place->batched && counted == place->axis)
        return step_refuse("axis %" PRId64
                           " is the batch, and samples are computed apart from each other: if the file's inputs have "
                           "the batch elsewhere or none, say so (batch_axis, whole)",
            axis);
    *of_tensor = (int)counted - (has_own_axis(place) && counted > place->axis);
    return TUTTI_OK;
}

tutti_status value_extents(const struct import *import, const struct value *value, struct extent *sizes, int *rank)
{
    struct operand x = { .place = value->place };
    const tutti_status status = value_shape(import, value, &x.shape);
    *rank = operand_rank(&x);
    const int64_t stand_in = import->stands_in && value->array && !value->stored ? STAND_IN : INT64_MAX;
    for (int i = 0, at = 0; i < *rank; i++) {
        const bool is_batch = x.place.batched && i == x.place.axis;
        sizes[i] =
            is_batch ? (struct extent) { 0, x.place.rows * x.place.ahead } : (struct extent) { x.shape.sizes[at] };
        if (sizes[i].number && sizes[i].number % stand_in == 0)
            sizes[i] = (struct extent) { 0, sizes[i].number / stand_in };
        at += !is_batch || has_ahead(&x.place);
    }
    return status;
}

/* A single number has an axis of size 1 if it is the same for all samples, and no axis if each sample has its own. */
tutti_status step_spread_operand(const struct step *step, struct operand *operand)
{
    const tutti_status status = step_spread(step, &operand->tensor);
    if (status != TUTTI_OK || operand->shape.rank > 0) return status;
    operand->tensor = step_reshape(step, operand->tensor, &operand->shape);
    return operand->tensor.id < 0 ? tutti_network_status(step->import->network) : TUTTI_OK;
}

tutti_status step_batched(const struct step *step, size_t position, struct operand *operand)
{
    const tutti_status status = step_operand(step, position, operand);
    if (status != TUTTI_OK || operand->place.batched) return status;
    if (!step->import->options->whole)
        return step_refuse("input %zu, '%s', must depend on the samples", position, step_input(step, position)->name);
    operand->place = (struct place) { .batched = true, .axis = HIDDEN, .rows = 1, .ahead = 1 };
    return step_spread_operand(step, operand);
}

tutti_status step_batched_if_whole(const struct step *step, size_t position, struct operand *operand)
{
    return (step->import->options->whole ? step_batched : step_operand)(step, position, operand);
}

bool step_as_fixed(const struct step *step, size_t position, struct operand *operand)
{
    const struct value *value = step_input(step, position);
    if (!value || value->alike.id < 0) return false;
    operand->tensor = value->alike;
    operand->place = (struct place) { .axis = HIDDEN, .rows = 1, .ahead = 1 };
    return tutti_shape_of(step->import->network, value->alike, &operand->shape) == TUTTI_OK;
}

tutti_status step_fixed(const struct step *step, size_t position, struct operand *operand)
{
    const tutti_status status = step_operand(step, position, operand);
    if (status != TUTTI_OK || !operand->place.batched || step_as_fixed(step, position, operand)) return status;
    return step_refuse("input %zu, '%s', must not depend on the samples", position, step_input(step, position)->name);
}

tutti_status step_rows(const struct step *step, size_t position, struct operand *operand)
{
    const tutti_status status = step_batched(step, position, operand);
    return status == TUTTI_OK ? operand_as_rows(step, position, operand) : status;
}

tutti_status operand_as_rows(const struct step *step, size_t position, struct operand *operand)
{
    if (operand->place.axis > 0 || operand->place.ahead != 1)
        return step_refuse(
            "the batch is axis %d of input %zu: it must be the first one", operand->place.axis, position);
    if (operand->place.axis == 0) return TUTTI_OK;
    if (operand->shape.rank < 2) return step_refuse("input %zu has %d axes", position, operand->shape.rank);
    operand->place.rows = operand->shape.sizes[0];
    operand->shape.rank--;
    for (int i = 0; i < operand->shape.rank; i++) operand->shape.sizes[i] = operand->shape.sizes[i + 1];
    operand->tensor = step_plain(step, "fold", &operand->tensor, 1);
    return operand->tensor.id < 0 ? tutti_network_status(step->import->network) : TUTTI_OK;
}

tutti_status step_done_rows(const struct step *step, size_t output, tutti_tensor tensor, const struct operand *rows)
{
    struct place place = rows->place;
    if (place.axis == HIDDEN) {
        tensor = step_op(step, "unfold", &tensor, 1, "size=%" PRId64, place.rows);
        place.rows = 1;
    }
    return step_made(step, output, tensor, place);
}

tutti_tensor step_with_rows(const struct step *step, tutti_tensor x, tutti_shape *sample, int axis, int64_t rows)
{
    int order[TUTTI_MAX_RANK];
    const tutti_shape old = *sample;
    sample->rank++;
    for (int i = 0; i < sample->rank; i++) {
        sample->sizes[i] = i == axis ? rows : old.sizes[i - (i > axis)];
        order[i] = i == axis ? 0 : i + (i < axis);
    }
    if (rows == 1) return step_reshape(step, x, sample);
    return step_permuted(step, step_op(step, "unfold", &x, 1, "size=%" PRId64, rows), order, sample->rank);
}

tutti_tensor step_without_rows(const struct step *step, tutti_tensor x, int axis)
{
    int order[TUTTI_MAX_RANK] = { axis };
    tutti_shape shape, less = { 0 };
    if (x.id < 0 || tutti_shape_of(step->import->network, x, &shape) != TUTTI_OK) return (tutti_tensor) { -1 };
    for (int i = 0; i < shape.rank; i++) {
        if (i == axis) continue;
        less.sizes[less.rank++] = shape.sizes[i];
        order[less.rank] = i;
    }
    if (shape.sizes[axis] == 1) return step_reshape(step, x, &less);
    x = step_permuted(step, x, order, shape.rank);
    return step_plain(step, "fold", &x, 1);
}

/* One number of each sample, from the first input. */
static tutti_status add_like(struct import *import)
{
    tutti_network *network = import->network;
    struct value *value = import->first_input ? import_find(import, import->first_input->name) : NULL;
    if (!value || value->tensor.id < 0) return step_refuse("the file has no input that depends on the samples");
    if (value->converts && value->floats.id < 0) value->floats = tutti_cast(network, value->tensor, TUTTI_DTYPE_F32);
    tutti_tensor x = value->converts ? value->floats : value->tensor;
    tutti_shape shape;
    const tutti_status status = tutti_shape_of(network, x, &shape);
    if (status != TUTTI_OK) return status;
    if (shape.rank > 1) x = tutti_reshape(network, x, TUTTI_SHAPE(-1));
    if (shape.rank > 0) x = tutti_op(network, "slice", &x, 1, "axes=0 starts=0 ends=1");
    import->like = x;
    return x.id < 0 ? tutti_network_status(network) : TUTTI_OK;
}

/* where(x, t, t) has the batch of x and the elements of t, whatever x is. */
tutti_status step_spread(const struct step *step, tutti_tensor *tensor)
{
    struct import *import = step->import;
    const tutti_status status = import->like.id < 0 ? add_like(import) : TUTTI_OK;
    if (status != TUTTI_OK) return status;
    *tensor = step_plain(step, "where", (tutti_tensor[]) { import->like, *tensor, *tensor }, 3);
    return tensor->id < 0 ? tutti_network_status(import->network) : TUTTI_OK;
}

bool place_equal(const struct place *a, const struct place *b)
{
    if (!a->batched || !b->batched) return a->batched == b->batched;
    return a->axis == b->axis && a->rows == b->rows && a->ahead == b->ahead;
}

/* A file for one number of samples may have a constant with the same part for each sample, or integers that count
 * samples. */
static tutti_status first_of_repeated(const struct step *step, size_t position, int axis, tutti_tensor *tensor)
{
    const struct array *array = NULL;
    const struct value *value = step_input(step, position);
    int64_t factor = 0;
    const bool repeats = value && value->repeated >> axis & 1;
    if (!repeats && (step_array(step, position, &array) != TUTTI_OK || !array_is_linear(array, axis, &factor)))
        return step_refuse("input %zu, '%s', has elements of its own for each of the %" PRId64
                           " samples that the file is for: export the network for any number of samples "
                           "(dynamic_axes, dynamic_shapes), or for 1",
            position, value ? value->name : "", import_samples(step->import));
    if (factor) step->import->counted = (struct counting) { factor, (int)position };
    *tensor = step_cut(step, *tensor, axis, 0, 1);
    return tensor->id < 0 ? tutti_network_status(step->import->network) : TUTTI_OK;
}

tutti_status step_drop_axis(const struct step *step, size_t position, int axis, int64_t rows, struct operand *x)
{
    tutti_shape shape = { 0 };
    const int64_t size = x->shape.sizes[axis], fixed = import_samples(step->import);
    tutti_status status = TUTTI_OK;
    if (size != 1 && (fixed == 0 || size % fixed || size / fixed != rows))
        return step_refuse("input %zu does not depend on the samples, and has size %" PRId64
                           " along axis %d, which is the batch of the others",
            position, size, axis);
    if (size != 1) status = first_of_repeated(step, position, axis, &x->tensor);
    for (int i = 0; i < x->shape.rank; i++)
        if (i != axis) shape.sizes[shape.rank++] = x->shape.sizes[i];
    if (status != TUTTI_OK) return status;
    x->shape = shape;
    x->tensor = step_reshape(step, x->tensor, shape.rank ? &shape : &TUTTI_SHAPE(1));
    return x->tensor.id < 0 ? tutti_network_status(step->import->network) : TUTTI_OK;
}

tutti_status step_like(const struct step *step, size_t position, const struct operand *like, struct operand *x)
{
    tutti_status status = TUTTI_OK;
    if (like->place.ahead != 1 || like->place.rows != 1 || x->shape.rank != operand_rank(like))
        return step_refuse("input %zu does not depend on the samples, and others do", position);
    if (like->place.axis != HIDDEN) status = step_drop_axis(step, position, like->place.axis, 1, x);
    x->place = like->place;
    return status == TUTTI_OK ? step_spread_operand(step, x) : status;
}

tutti_status step_initial_state(const struct step *step, size_t position, struct operand *x)
{
    const struct array *array = NULL;
    int64_t factor = 0;
    const int64_t samples = step->import->fixed_batch;
    const struct value *value = step_input(step, position);
    if (x->place.batched || samples < 2 || x->shape.rank < 2 || x->shape.sizes[0] != samples) return TUTTI_OK;
    if (!value || (!value->stored && !value->array)) return TUTTI_OK;
    tutti_status status = step_array(step, position, &array);
    if (status != TUTTI_OK || !array_is_linear(array, 0, &factor) || factor) return status;
    const struct operand like = { .shape.rank = x->shape.rank - 1, .place = { true, 0, 1, 1 } };
    return step_like(step, position, &like, x);
}
