/* Operations along one axis in ONNX: argmax, topk, sums and products of elements, and others that know positions. */
#include "onnx/export/export.h"
#include "tutti_inspect.h"

#include <string.h>

static int64_t axis_of(struct source *source)
{
    return array_axis(&source->x, (int64_t)source_number(source, "axis", 0));
}

void export_topk(struct source *source)
{
    const int64_t k = (int64_t)source_number(source, "k", 1);
    const char *values = source_output_at(source, 0), *wanted = source_output_at(source, 1);
    const char *positions = wanted ? source_temporary(source) : NULL, *count = source_integers(source, &k, 1);
    const struct made made =
        source_node(source, "TopK", source_input(source, 0), count, NULL, values ? values : source_temporary(source));
    made_integer(made, "axis", axis_of(source));
    made_integer(made, "largest", source_number(source, "largest", 1) != 0);
    made_output(made, positions ? positions : source_temporary(source));
    if (wanted) made_integer(source_node(source, "Cast", positions, NULL, NULL, wanted), "to", ONNX_FLOAT);
}

void export_cumsum(struct source *source)
{
    const char *axis = source_integer(source, axis_of(source));
    const struct made made = source_node(source, "CumSum", source_input(source, 0), axis, NULL, source_output(source));
    made_integer(made, "exclusive", source_number(source, "exclusive", 0) != 0);
    made_integer(made, "reverse", source_number(source, "reverse", 0) != 0);
}

/* Moves the elements by `by` positions towards the end, with ones before them; reversed: towards the front, with
 * ones after them. */
static const char *shifted(
    struct source *source, const char *from, int64_t axis, int64_t size, int64_t by, bool reverse)
{
    int64_t pads[2 * TUTTI_MAX_RANK + 2] = { 0 };
    const int rank = array_rank(&source->x);
    pads[axis + (reverse ? rank : 0)] = by;
    const char *part = reverse ? source_slice(source, from, axis, by, size, NULL)
                               : source_slice(source, from, axis, 0, size - by, NULL);
    const char *to = source_temporary(source);
    (void)source_node(source, "Pad", part, source_integers(source, pads, 2 * rank), source_scalar(source, 1), to);
    return to;
}

/* Each step doubles the number of elements in the products. ONNX has an operator for it only since opset 26. */
void export_cumprod(struct source *source)
{
    const int64_t axis = axis_of(source), size = source->y.shape.sizes[axis - source->y.for_each_sample];
    const bool reverse = source_number(source, "reverse", 0) != 0;
    const char *product = source_input(source, 0);
    if (source_number(source, "exclusive", 0) != 0) product = shifted(source, product, axis, size, 1, reverse);
    for (int64_t by = 1; by < size; by *= 2)
        product = source_step(source, "Mul", product, shifted(source, product, axis, size, by, reverse));
    source_finish(source, product);
}

void export_trilu(struct source *source)
{
    const char *k = source_integer(source, (int64_t)source_number(source, "k", 0));
    made_integer(source_node(source, "Trilu", source_input(source, 0), k, NULL, source_output(source)), "upper",
        source_number(source, "upper", 1) != 0);
}

/* [.., size, ..]: 0, 1 and so on along an axis of the array. */
static const char *positions_along(struct source *source, int64_t axis, int64_t size)
{
    int64_t axes[TUTTI_MAX_RANK + 1];
    const int after = array_rank(&source->x) - 1 - (int)axis;
    int64_t *numbers = export_new(source->export, (size_t)size, sizeof *numbers);
    for (int64_t i = 0; numbers && i < size; i++) numbers[i] = i;
    for (int i = 0; i < after; i++) axes[i] = i + 1;
    const char *positions = numbers ? source_integers(source, numbers, (int)size) : "";
    return after ? source_step(source, "Unsqueeze", positions, source_integers(source, axes, after)) : positions;
}

/* The lengths as a factor of x: each sample's, or along another axis. */
static const char *lengths_along(struct source *source, int64_t batch_axis)
{
    int64_t sizes[TUTTI_MAX_RANK + 1];
    const tutti_tensor_info lengths = source_tensor(source, source->info.inputs[1]);
    const int rank = array_rank(&source->x);
    for (int i = 0; i < rank; i++) sizes[i] = 1;
    if (lengths.for_each_sample) sizes[0] = -1;
    if (batch_axis >= 0) sizes[array_axis(&source->x, batch_axis)] = source->x.shape.sizes[batch_axis];
    const char *numbers = source_cast(source, source_input(source, 1), ONNX_INT64);
    return source_step(source, "Reshape", numbers, source_integers(source, sizes, rank));
}

/* ONNX's operator has the time and the batch as the first two axes, and one length for each sample of the batch. Here
 * element t becomes element length - 1 - t if t is below the length. */
void export_reverse_sequence(struct source *source)
{
    const int64_t time = (int64_t)source_number(source, "time_axis", 0), size = source->x.shape.sizes[time];
    const int64_t axis = array_axis(&source->x, time);
    const int64_t batch_axis = (int64_t)source_number(source, "batch_axis", -1);
    if (size == TUTTI_SEQUENCE || (batch_axis >= 0 && source->x.shape.sizes[batch_axis] == TUTTI_SEQUENCE)) {
        source_refuse(source, "it goes backwards along the length of sequences");
        return;
    }
    const char *x = source_input(source, 0), *times = positions_along(source, axis, size),
               *from = source_temporary(source);
    const char *lengths = lengths_along(source, batch_axis);
    lengths = source_step(source, "Min", lengths, source_integer(source, size));
    const char *turned =
        source_step(source, "Sub", source_step(source, "Sub", lengths, source_integer(source, 1)), times);
    (void)source_node(source, "Where", source_step(source, "Less", times, lengths), turned, times, from);
    from = source_step(source, "Expand", from, source_step(source, "Shape", x, NULL));
    made_integer(source_node(source, "GatherElements", x, from, NULL, source_output(source)), "axis", axis);
}
