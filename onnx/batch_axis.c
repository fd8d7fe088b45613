/* Which axis of a file's value is the batch, and how the other axes become those of a tensor. */
#include "onnx/operators.h"
#include "onnx/parameters/exported_names.h"

#include <inttypes.h>
#include <string.h>

int import_batch_axis(const struct import *import, const char *input)
{
    const tutti_onnx_options *options = import->options;
    for (int i = 0; i < options->batch_axis_count && !options->whole; i++)
        if (!strcmp(options->batch_axes[i].name, input)) return options->batch_axes[i].axis;
    return options->whole ? NO_AXIS : options->batch_axis;
}

bool batch_has_axis(const struct batch_axis *batch_axis)
{
    return batch_axis->batched && batch_axis->axis != NO_AXIS;
}

bool batch_is_whole(const struct batch_axis *batch_axis)
{
    return batch_axis->batched && batch_axis->axis == NO_AXIS;
}

struct batch_axis batch_axis_moved(struct batch_axis batch_axis, int change)
{
    if (batch_has_axis(&batch_axis)) batch_axis.axis += change;
    return batch_axis;
}

/* Whether the sample has an axis of size `outer` (struct batch_axis). */
static bool has_outer(const struct batch_axis *batch_axis)
{
    return batch_has_axis(batch_axis) && batch_axis->outer != 1;
}

static bool has_own_axis(const struct batch_axis *batch_axis)
{
    return batch_has_axis(batch_axis) && batch_axis->outer == 1;
}

int operand_rank(const struct operand *operand)
{
    return operand->shape.rank + has_own_axis(&operand->batch);
}

bool operand_has_batch_axis(const struct operand *operand)
{
    return batch_has_axis(&operand->batch);
}

tutti_status operand_axis(const struct operand *operand, int64_t axis, int *tensor_axis)
{
    const struct batch_axis *batch_axis = &operand->batch;
    const int rank = operand_rank(operand);
    const int64_t counted = axis < 0 ? axis + rank : axis;
    if (counted < 0 || counted >= rank)
        return fail(TUTTI_FORMAT, "axis %" PRId64 " does not exist: there are %d", axis, rank);
    if (batch_axis->batched && counted == batch_axis->axis)
        return node_refuse("axis %" PRId64
                           " is the batch, and samples are computed apart from each other: if the file's inputs have "
                           "the batch elsewhere or none, say so (batch_axis, whole)",
            axis);
    *tensor_axis = (int)counted - (has_own_axis(batch_axis) && counted > batch_axis->axis);
    return TUTTI_OK;
}

tutti_status value_sizes(
    const struct import *import, const struct onnx_value *value, struct symbolic_integer *sizes, int *rank)
{
    struct operand x = { .batch = value->batch };
    const tutti_status status = value_shape(import, value, &x.shape);
    *rank = operand_rank(&x);
    const int64_t placeholder =
        import->uses_placeholder_batch && value->array && !value->stored ? PLACEHOLDER_BATCH : INT64_MAX;
    for (int i = 0, at = 0; i < *rank; i++) {
        const bool is_batch = x.batch.batched && i == x.batch.axis;
        sizes[i] = is_batch ? (struct symbolic_integer) { 0, x.batch.rows_per_sample * x.batch.outer }
                            : (struct symbolic_integer) { x.shape.sizes[at] };
        if (sizes[i].number && sizes[i].number % placeholder == 0)
            sizes[i] = (struct symbolic_integer) { 0, sizes[i].number / placeholder };
        at += !is_batch || has_outer(&x.batch);
    }
    return status;
}

/* A single number has an axis of size 1 if it is the same for all samples, and no axis if each sample has its own. */
tutti_status node_spread_operand(const struct onnx_node *node, struct operand *operand)
{
    const tutti_status status = node_spread(node, &operand->tensor);
    if (status != TUTTI_OK || operand->shape.rank > 0) return status;
    operand->tensor = node_reshape(node, operand->tensor, &operand->shape);
    return operand->tensor.id < 0 ? tutti_network_status(node->import->network) : TUTTI_OK;
}

tutti_status node_batched(const struct onnx_node *node, size_t position, struct operand *operand)
{
    const tutti_status status = node_operand(node, position, operand);
    if (status != TUTTI_OK || operand->batch.batched) return status;
    if (!node->import->options->whole)
        return node_refuse("input %zu, '%s', must depend on the samples", position, node_input(node, position)->name);
    operand->batch = (struct batch_axis) { .batched = true, .axis = NO_AXIS, .rows_per_sample = 1, .outer = 1 };
    return node_spread_operand(node, operand);
}

tutti_status node_batched_if_whole(const struct onnx_node *node, size_t position, struct operand *operand)
{
    return (node->import->options->whole ? node_batched : node_operand)(node, position, operand);
}

bool node_as_fixed(const struct onnx_node *node, size_t position, struct operand *operand)
{
    const struct onnx_value *value = node_input(node, position);
    if (!value || value->unbatched.id < 0) return false;
    operand->tensor = value->unbatched;
    operand->batch = NO_BATCH;
    return tutti_shape_of(node->import->network, value->unbatched, &operand->shape) == TUTTI_OK;
}

tutti_status node_fixed(const struct onnx_node *node, size_t position, struct operand *operand)
{
    const tutti_status status = node_operand(node, position, operand);
    if (status != TUTTI_OK || !operand->batch.batched || node_as_fixed(node, position, operand)) return status;
    return node_refuse("input %zu, '%s', must not depend on the samples", position, node_input(node, position)->name);
}

tutti_status node_batch_first(const struct onnx_node *node, size_t position, struct operand *operand)
{
    const tutti_status status = node_batched(node, position, operand);
    return status == TUTTI_OK ? operand_batch_first(node, position, operand) : status;
}

tutti_status operand_batch_first(const struct onnx_node *node, size_t position, struct operand *operand)
{
    if (operand->batch.axis > 0 || operand->batch.outer != 1)
        return node_refuse(
            "the batch is axis %d of input %zu: it must be the first one", operand->batch.axis, position);
    if (operand->batch.axis == 0) return TUTTI_OK;
    if (operand->shape.rank < 2) return node_refuse("input %zu has %d axes", position, operand->shape.rank);
    operand->batch.rows_per_sample = operand->shape.sizes[0];
    operand->shape.rank--;
    for (int i = 0; i < operand->shape.rank; i++) operand->shape.sizes[i] = operand->shape.sizes[i + 1];
    operand->tensor = node_plain(node, "fold", &operand->tensor, 1);
    return operand->tensor.id < 0 ? tutti_network_status(node->import->network) : TUTTI_OK;
}

tutti_status node_set_output_batch_first(
    const struct onnx_node *node, size_t output, tutti_tensor tensor, const struct operand *x)
{
    struct batch_axis batch_axis = x->batch;
    if (batch_is_whole(&batch_axis)) {
        tensor = node_op(node, "unfold", &tensor, 1, "size=%" PRId64, batch_axis.rows_per_sample);
        batch_axis.rows_per_sample = 1;
    }
    return node_set_output_at(node, output, tensor, batch_axis);
}

tutti_tensor node_with_rows(const struct onnx_node *node, tutti_tensor x, tutti_shape *sample, int axis, int64_t rows)
{
    int order[TUTTI_MAX_RANK];
    const tutti_shape old = *sample;
    sample->rank++;
    for (int i = 0; i < sample->rank; i++) {
        sample->sizes[i] = i == axis ? rows : old.sizes[i - (i > axis)];
        order[i] = i == axis ? 0 : i + (i < axis);
    }
    if (rows == 1) return node_reshape(node, x, sample);
    return node_permuted(node, node_op(node, "unfold", &x, 1, "size=%" PRId64, rows), order, sample->rank);
}

tutti_tensor node_without_rows(const struct onnx_node *node, tutti_tensor x, int axis)
{
    int order[TUTTI_MAX_RANK] = { axis };
    tutti_shape shape, less = { 0 };
    if (x.id < 0 || tutti_shape_of(node->import->network, x, &shape) != TUTTI_OK) return (tutti_tensor) { -1 };
    for (int i = 0; i < shape.rank; i++) {
        if (i == axis) continue;
        less.sizes[less.rank++] = shape.sizes[i];
        order[less.rank] = i;
    }
    if (shape.sizes[axis] == 1) return node_reshape(node, x, &less);
    x = node_permuted(node, x, order, shape.rank);
    return node_plain(node, "fold", &x, 1);
}

/* One number for each sample, taken from the first input. */
static tutti_status add_per_sample(struct import *import)
{
    tutti_network *network = import->network;
    struct onnx_value *value = import->first_input ? import_find(import, import->first_input->name) : NULL;
    if (!value || value->tensor.id < 0) return node_refuse("the file has no input that depends on the samples");
    if (value->converts && value->floats.id < 0) value->floats = tutti_cast(network, value->tensor, TUTTI_DTYPE_F32);
    tutti_tensor x = value->converts ? value->floats : value->tensor;
    tutti_shape shape;
    const tutti_status status = tutti_shape_of(network, x, &shape);
    if (status != TUTTI_OK) return status;
    if (shape.rank > 1) x = tutti_reshape(network, x, TUTTI_SHAPE(-1));
    if (shape.rank > 0) x = tutti_op(network, "slice", &x, 1, "axes=0 starts=0 ends=1");
    import->per_sample = x;
    return x.id < 0 ? tutti_network_status(network) : TUTTI_OK;
}

/* where(x, t, t) has the batch of x and the elements of t, whatever x is. */
tutti_status node_spread(const struct onnx_node *node, tutti_tensor *tensor)
{
    struct import *import = node->import;
    const tutti_status status = import->per_sample.id < 0 ? add_per_sample(import) : TUTTI_OK;
    if (status != TUTTI_OK) return status;
    *tensor = node_plain(node, "where", (tutti_tensor[]) { import->per_sample, *tensor, *tensor }, 3);
    return tensor->id < 0 ? tutti_network_status(import->network) : TUTTI_OK;
}

bool batch_axis_equal(const struct batch_axis *a, const struct batch_axis *b)
{
    if (!a->batched || !b->batched) return a->batched == b->batched;
    return a->axis == b->axis && a->rows_per_sample == b->rows_per_sample && a->outer == b->outer;
}

/* Whether a constant trains only because the caller wants it. */
static bool is_trained_constant(const struct import *import, const struct onnx_value *value)
{
    const char *kind = value->origin.kind;
    return import->options->train_constants &&
        (kind ? strcmp(kind, "PARAMETER") != 0 : import_is_nameless(import, value));
}

/* Whether parts of a value that are equal are one. A parameter's train apart, also if they are equal at first. Files
 * that tell neither paths nor scopes have initialisers that are constants, too. */
static bool equal_parts_are_one(const struct import *import, struct onnx_value *value)
{
    return !value_trains(import, value) || !(import->paths || import->scopes) || is_trained_constant(import, value);
}

tutti_status node_check_equal_parts(const struct onnx_node *node, size_t position, int axis, int64_t size)
{
    struct onnx_value *value = node_input(node, position);
    if (!value || !value_trains(node->import, value)) return TUTTI_OK;
    if (!equal_parts_are_one(node->import, value))
        return node_refuse("input %zu, '%s', is %s with %" PRId64
                           " parts along axis %d, the batch, and samples share parameters: %s",
            position, value->name, value->origin.folded_from ? "computed from parameters," : "a parameter", size, axis,
            value->origin.folded_from ? "export the network for any number of samples (dynamic_shapes), or for 1"
                                      : "give it size 1 there, or make it an input, or a buffer (dynamo=True)");
    if (!value->noted)
        import_note(node->import,
            "warning: %s has %" PRId64 " equal parts along axis %d, the batch: they are one, which all samples share",
            value->name, size, axis);
    value->noted = true;
    return TUTTI_OK;
}

/* A file for one number of samples may have a constant with the same part for each sample, or indices that grow
 * with the sample. */
static tutti_status first_of_repeated(
    const struct onnx_node *node, size_t position, int axis, int64_t size, tutti_tensor *tensor)
{
    const struct array *array = NULL;
    const struct onnx_value *value = node_input(node, position);
    int64_t factor = 0;
    const bool repeats = value && value->repeated >> axis & 1;
    const tutti_status status = repeats ? TUTTI_OK : node_check_equal_parts(node, position, axis, size);
    if (status != TUTTI_OK) return status;
    if (!repeats && (node_array(node, position, &array) != TUTTI_OK || !array_is_linear(array, axis, &factor)))
        return node_refuse("input %zu, '%s', has elements of its own for each of the %" PRId64
                           " samples that the file is for: export the network for any number of samples "
                           "(dynamic_axes, dynamic_shapes), or for 1",
            position, value ? value->name : "", import_samples(node->import));
    if (factor) node->import->constant_index = (struct constant_index) { factor, position };
    *tensor = node_cut(node, *tensor, axis, 0, 1);
    return tensor->id < 0 ? tutti_network_status(node->import->network) : TUTTI_OK;
}

tutti_status node_drop_axis(const struct onnx_node *node, size_t position, int axis, int64_t rows, struct operand *x)
{
    tutti_shape shape = { 0 };
    const int64_t size = x->shape.sizes[axis], fixed = import_samples(node->import);
    tutti_status status = TUTTI_OK;
    if (size != 1 && (fixed == 0 || size % fixed || size / fixed != rows))
        return node_refuse("input %zu does not depend on the samples, and has size %" PRId64
                           " along axis %d, which is the batch of the others",
            position, size, axis);
    if (size != 1) status = first_of_repeated(node, position, axis, size, &x->tensor);
    for (int i = 0; i < x->shape.rank; i++)
        if (i != axis) shape.sizes[shape.rank++] = x->shape.sizes[i];
    if (status != TUTTI_OK) return status;
    x->shape = shape;
    x->tensor = node_reshape(node, x->tensor, shape.rank ? &shape : &TUTTI_SHAPE(1));
    return x->tensor.id < 0 ? tutti_network_status(node->import->network) : TUTTI_OK;
}

tutti_status node_align(
    const struct onnx_node *node, size_t position, int rank, const struct batch_axis *batch_axis, struct operand *x)
{
    const int less = rank - operand_rank(x), axis = batch_axis->axis - less; /* of x */
    const struct batch_axis moved = batch_axis_moved(x->batch, less);
    if (x->batch.batched)
        return batch_axis_equal(&moved, batch_axis) ? TUTTI_OK
                                                    : node_refuse("the batch is another axis of input %zu", position);
    if (!batch_has_axis(batch_axis) || axis < 0 || axis >= x->shape.rank) return TUTTI_OK;
    if (batch_axis->outer == 1) return node_drop_axis(node, position, axis, batch_axis->rows_per_sample, x);
    return x->shape.sizes[axis] == 1 ? TUTTI_OK
                                     : node_refuse("input %zu has more than one element along the batch", position);
}

tutti_status node_match_batch(
    const struct onnx_node *node, size_t position, const struct operand *other, struct operand *x)
{
    tutti_status status = TUTTI_OK;
    if (other->batch.outer != 1 || other->batch.rows_per_sample != 1 || x->shape.rank != operand_rank(other))
        return node_refuse("input %zu does not depend on the samples, and others do", position);
    if (operand_has_batch_axis(other)) status = node_drop_axis(node, position, other->batch.axis, 1, x);
    x->batch = other->batch;
    return status == TUTTI_OK ? node_spread_operand(node, x) : status;
}

tutti_status node_equal_parts_as_batch(const struct onnx_node *node, size_t position, struct operand *x)
{
    const struct array *array = NULL;
    int64_t factor = 0;
    const int64_t samples = node->import->fixed_batch;
    struct onnx_value *value = node_input(node, position);
    if (x->batch.batched || samples < 2 || x->shape.rank < 2 || x->shape.sizes[0] != samples) return TUTTI_OK;
    if (!value || (!value->stored && !value->array) || !equal_parts_are_one(node->import, value)) return TUTTI_OK;
    tutti_status status = node_array(node, position, &array);
    if (status != TUTTI_OK || !array_is_linear(array, 0, &factor) || factor) return status;
    const struct operand other = { .shape.rank = x->shape.rank - 1, .batch = { true, 0, 1, 1 } };
    return node_match_batch(node, position, &other, x);
}
