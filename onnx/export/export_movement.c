/* Movement in ONNX: reshape, expand, transpose, windows, joining, and conversions of inputs. */
#include "onnx/export/export.h"
#include "tutti_inspect.h"

#include <string.h>

void export_reshape(struct source *source)
{
    source_reshape(source, source_input(source, 0));
}

/* The size of the result's batch if x has no batch: `rows` for each sample. */
static const char *new_batch(struct source *source)
{
    const int64_t rows = (int64_t)source_number(source, "rows", 1);
    const char *batch = source_batch(source);
    return rows > 1 ? source_step(source, "Mul", batch, source_integers(source, &rows, 1)) : batch;
}

/* In the shape, the batch and sizes that x has are 1, since ONNX also broadcasts the shape. */
void export_expand(struct source *source)
{
    const tutti_tensor_info *x = &source->x, *y = &source->y;
    int64_t sizes[TUTTI_MAX_RANK + 1] = { 1 };
    const int more = y->shape.rank - x->shape.rank;
    const bool new = y->for_each_sample && !x->for_each_sample;
    for (int i = 0; i < y->shape.rank; i++) {
        const bool same = i >= more && x->shape.sizes[i - more] == y->shape.sizes[i];
        sizes[array_axis(y, i)] = same ? 1 : y->shape.sizes[i];
    }
    const char *shape = source_sizes(source, new ? new_batch(source) : NULL, sizes + new, array_rank(y) - new);
    const char *output = source_output(source), *from = source_aligned(source, 0);
    const float factor = (float)source_number(source, "factor", 1);
    if (factor != 1) from = source_step(source, "Mul", from, source_scalar(source, factor));
    (void)source_node(source, "Expand", from, shape, NULL, output);
}

void export_transpose(struct source *source)
{
    int64_t order[TUTTI_MAX_RANK], all_axes[TUTTI_MAX_RANK + 1] = { 0 };
    const int rank = source_list(source, "perm", order, TUTTI_MAX_RANK);
    for (int i = 0; i < rank; i++) all_axes[array_axis(&source->x, i)] = array_axis(&source->x, order[i]);
    (void)source_transpose(source, source_input(source, 0), all_axes, array_rank(&source->x), source_output(source));
}

/* The elements of x from `begins` on, with a constant outside of x: Slice and Pad. If some axes go backwards:
 * Slice. */
struct window {
    int64_t starts[TUTTI_MAX_RANK], ends[TUTTI_MAX_RANK], axes[TUTTI_MAX_RANK], pads[2 * TUTTI_MAX_RANK + 2];
    int cut;
    bool padded;
};

static void find_window(struct source *source, struct window *window)
{
    int64_t begins[TUTTI_MAX_RANK] = { 0 };
    const int rank = source_list(source, "begins", begins, TUTTI_MAX_RANK), all = array_rank(&source->x);
    for (int i = 0; i < rank; i++) {
        const int64_t size = source->x.shape.sizes[i], wanted = source->y.shape.sizes[i];
        const int axis = (int)array_axis(&source->x, i);
        if ((wanted == size && begins[i] == 0) || wanted == TUTTI_SEQUENCE) continue;
        const int64_t start = begins[i] > 0 ? begins[i] : 0, past = begins[i] + wanted;
        const int64_t end = size == TUTTI_SEQUENCE || past < size ? past : size;
        if (start > 0 || end != size) {
            window->starts[window->cut] = start;
            window->ends[window->cut] = end;
            window->axes[window->cut++] = axis;
        }
        window->pads[axis] = begins[i] < 0 ? -begins[i] : 0;
        window->pads[all + axis] = past - end;
        window->padded |= begins[i] < 0 || past > end;
    }
}

/* The first elements, as many as sequences are long. */
static const char *cut_to_length(struct source *source, const char *x)
{
    for (int i = 0; i < source->x.shape.rank; i++) {
        if (source->y.shape.sizes[i] != TUTTI_SEQUENCE || source->x.shape.sizes[i] == TUTTI_SEQUENCE) continue;
        const int64_t axis = array_axis(&source->x, i);
        const char *const inputs[] = { x, source_integers(source, &(int64_t) { 0 }, 1), source_length(source),
            source_integers(source, &axis, 1) };
        x = source_temporary(source);
        (void)source_node_of(source, "Slice", inputs, 4, x);
    }
    return x;
}

static const char *turn_back(struct source *source, const char *x)
{
    int64_t reversed[TUTTI_MAX_RANK];
    const int count = source_list(source, "reversed", reversed, TUTTI_MAX_RANK);
    for (int i = 0; i < count; i++)
        x = source_slice(source, x, array_axis(&source->x, reversed[i]), -1, INT64_MIN, NULL);
    return x;
}

void export_window(struct source *source)
{
    struct window window = { .cut = 0 };
    find_window(source, &window);
    const char *x = cut_to_length(source, source_input(source, 0));
    if (window.cut) {
        const char *const inputs[] = { x, source_integers(source, window.starts, window.cut),
            source_integers(source, window.ends, window.cut), source_integers(source, window.axes, window.cut) };
        x = source_temporary(source);
        (void)source_node_of(source, "Slice", inputs, 4, x);
    }
    if (window.padded) {
        const char *pads = source_integers(source, window.pads, 2 * array_rank(&source->x));
        const char *value = source_scalar(source, (float)source_number(source, "value", 0)), *padded;
        padded = source_temporary(source);
        (void)source_node(source, "Pad", x, pads, value, padded);
        x = padded;
    }
    source_finish(source, turn_back(source, x));
}

void export_concat(struct source *source)
{
    const char *inputs[TUTTI_NODE_PORTS];
    const int count = source->info.input_count;
    for (int i = 0; i < count; i++) inputs[i] = source_input(source, i);
    made_integer(source_node_of(source, "Concat", inputs, count, source_output(source)), "axis",
        array_axis(&source->x, (int64_t)source_number(source, "axis", 0)));
}

/* cast; and normalise, with a scale and a shift for each channel. */
void export_convert(struct source *source)
{
    double scale[16], shift[16];
    float scales[16], shifts[16];
    const int channels = (int)source_number(source, "channels", 0);
    if (channels == 0) {
        made_integer(source_node(source, "Cast", source_input(source, 0), NULL, NULL, source_output(source)), "to",
            source->y.dtype == TUTTI_DTYPE_I32 ? ONNX_INT32 : ONNX_FLOAT);
        return;
    }
    (void)source_numbers(source, "scale", scale, channels);
    (void)source_numbers(source, "shift", shift, channels);
    for (int i = 0; i < channels; i++) {
        scales[i] = (float)scale[i];
        shifts[i] = (float)shift[i];
    }
    const char *x = source_cast(source, source_input(source, 0), ONNX_FLOAT);
    int64_t axes[TUTTI_MAX_RANK];
    const int after = source->x.shape.rank - 1; /* axes after the channels, and the one of the matrix's single row */
    for (int i = 0; i < after; i++) axes[i] = i + 2;
    const char *row = source_matrix(source, scales, 1, channels), *other = source_matrix(source, shifts, 1, channels);
    if (after > 0) {
        row = source_step(source, "Unsqueeze", row, source_integers(source, axes, after));
        other = source_step(source, "Unsqueeze", other, source_integers(source, axes, after));
    }
    (void)source_node(source, "Add", source_step(source, "Mul", x, row), other, NULL, source_output(source));
}
