/* Convolutions, pooling and interpolation in ONNX. */
#include "onnx/export/export.h"

#include <string.h>

/* kernel, strides, pads: before and after. */
static void made_window(struct source *source, struct made made)
{
    int64_t kernel[2] = { 1, 1 }, stride[2] = { 1, 1 }, padding[2] = { 0 };
    (void)source_list(source, "kernel", kernel, 2);
    (void)source_list(source, "stride", stride, 2);
    (void)source_list(source, "padding", padding, 2);
    made_integers(made, "kernel_shape", kernel, 2);
    made_integers(made, "strides", stride, 2);
    made_integers(made, "pads", (int64_t[]) { padding[0], padding[1], padding[0], padding[1] }, 4);
}

void export_conv2d(struct source *source)
{
    int64_t dilation[2] = { 1, 1 };
    const char *bias = source_is(source, 2) ? source_input(source, 2) : NULL;
    const struct made made =
        source_node(source, "Conv", source_input(source, 0), source_input(source, 1), bias, source_output(source));
    made_window(source, made);
    (void)source_list(source, "dilation", dilation, 2);
    made_integers(made, "dilations", dilation, 2);
    made_integer(made, "group", (int64_t)source_number(source, "groups", 1));
}

/* output_padding gives the sizes that the strides leave open. */
void export_conv2d_transposed(struct source *source)
{
    int64_t kernel[2] = { 1, 1 }, stride[2] = { 1, 1 }, padding[2] = { 0 }, dilation[2] = { 1, 1 }, more[2];
    const struct made made = source_node(
        source, "ConvTranspose", source_input(source, 0), source_input(source, 1), NULL, source_output(source));
    made_window(source, made);
    (void)source_list(source, "kernel", kernel, 2);
    (void)source_list(source, "stride", stride, 2);
    (void)source_list(source, "padding", padding, 2);
    (void)source_list(source, "dilation", dilation, 2);
    for (int i = 0; i < 2; i++)
        more[i] = source->y.shape.sizes[1 + i] - (source->x.shape.sizes[1 + i] - 1) * stride[i] -
            (kernel[i] - 1) * dilation[i] - 1 + 2 * padding[i];
    made_integers(made, "dilations", dilation, 2);
    made_integers(made, "output_padding", more, 2);
    made_integer(made, "group", (int64_t)source_number(source, "groups", 1));
}

static bool is_global(const struct source *source)
{
    int64_t kernel[2] = { 0 }, padding[2] = { 0 };
    (void)source_list(source, "kernel", kernel, 2);
    (void)source_list(source, "padding", padding, 2);
    return kernel[0] == source->x.shape.sizes[1] && kernel[1] == source->x.shape.sizes[2] && !padding[0] && !padding[1];
}

void export_pool(struct source *source)
{
    const bool max = !strcmp(source->info.operation, "max_pool");
    const char *x = source_input(source, 0), *output = source_output(source);
    if (is_global(source)) {
        (void)source_node(source, max ? "GlobalMaxPool" : "GlobalAveragePool", x, NULL, NULL, output);
        return;
    }
    const struct made made = source_node(source, source->row.type, x, NULL, NULL, output);
    made_window(source, made);
    made_integer(made, "ceil_mode", source_number(source, "ceil_mode", 0) != 0);
    if (!max) made_integer(made, "count_include_pad", source_number(source, "exclude_padding", 0) == 0);
}

/* [to, from]: row i has the mean of the elements from floor(i from / to) to before ceil((i + 1) from / to). */
static const char *mean_matrix(struct source *source, int64_t from, int64_t to, bool transpose)
{
    float *matrix = export_new(source->export, (size_t)(from * to), sizeof *matrix);
    for (int64_t i = 0; matrix && i < to; i++) {
        const int64_t first = i * from / to, end = ((i + 1) * from + to - 1) / to;
        for (int64_t j = first; j < end; j++) matrix[transpose ? j * to + i : i * from + j] = 1 / (float)(end - first);
    }
    if (!matrix) return "";
    return transpose ? source_matrix(source, matrix, from, to) : source_matrix(source, matrix, to, from);
}

/* ONNX has windows of one size only: others are products with matrices of means. */
void export_adaptive_pool(struct source *source)
{
    const int64_t *x = source->x.shape.sizes + 1, *y = source->y.shape.sizes + 1;
    const char *input = source_input(source, 0), *output = source_output(source);
    if (x[0] % y[0] == 0 && x[1] % y[1] == 0) {
        const int64_t window[] = { x[0] / y[0], x[1] / y[1] };
        const struct made made = source_node(source, "AveragePool", input, NULL, NULL, output);
        made_integers(made, "kernel_shape", window, 2);
        made_integers(made, "strides", window, 2);
        return;
    }
    const char *rows = source_step(source, "MatMul", mean_matrix(source, x[0], y[0], false), input);
    (void)source_node(source, "MatMul", rows, mean_matrix(source, x[1], y[1], true), NULL, output);
}

/* Exchanges an axis of the array with the last one. */
static const char *exchange(struct source *source, const char *from, int axis, int rank)
{
    int64_t perm[TUTTI_MAX_RANK + 1];
    if (axis == rank - 1) return from;
    for (int i = 0; i < rank; i++) perm[i] = i == axis ? rank - 1 : i == rank - 1 ? axis : i;
    return source_transpose(source, from, perm, rank, NULL);
}

/* Reads the table of positions and weights as a matrix [from, to], and the values of outputs without positions
 * [1, to]. */
static bool read_table(struct source *source, int64_t to, float *matrix, float *without)
{
    const float outside = (float)source_number(source, "outside", 0);
    const int32_t *starts = source_tensor(source, source->info.inputs[1]).values;
    const int32_t *positions = source_tensor(source, source->info.inputs[2]).values;
    const float *weights = source_tensor(source, source->info.inputs[3]).values;
    if (!starts || !positions || !weights || !matrix || !without) return false;
    for (int64_t j = 0; j < to; j++) {
        for (int32_t t = starts[j]; t < starts[j + 1]; t++) matrix[positions[t] * to + j] += weights[t];
        without[j] = starts[j] == starts[j + 1] ? outside : 0;
    }
    return true;
}

/* A product with a matrix along the axis, since ONNX has no operator for arbitrary tables. */
void export_resample(struct source *source)
{
    enum { MOST = 1 << 24 };
    int64_t axis = 0;
    (void)source_list(source, "axis", &axis, 1);
    const int64_t from = source->x.shape.sizes[axis], to = source->y.shape.sizes[axis];
    const int rank = array_rank(&source->x), position = (int)array_axis(&source->x, axis);
    if (from > MOST / to) {
        source_refuse(source, "its matrix would be too large");
        return;
    }
    float *matrix = export_new(source->export, (size_t)(from * to), sizeof *matrix);
    float *without = export_new(source->export, (size_t)to, sizeof *without);
    if (!read_table(source, to, matrix, without)) {
        source_refuse(source, "its table is not of constants");
        return;
    }
    const char *x = exchange(source, source_input(source, 0), position, rank);
    const char *product = source_step(source, "MatMul", x, source_matrix(source, matrix, from, to));
    product = source_step(source, "Add", product, source_matrix(source, without, 1, to));
    source_finish(source, exchange(source, product, position, rank));
}

/* The words are those of tutti_op(). */
void export_grid_sample(struct source *source)
{
    static const char *const modes[] = { "linear", "nearest", "cubic" };
    static const char *const paddings[] = { "zeros", "border", "reflection" };
    const char *x = source_for_each_sample(source, 0), *grid = source_for_each_sample(source, 1);
    const struct made made = source_node(source, "GridSample", x, grid, NULL, source_output(source));
    made_text(made, "mode", source_choice(source, "mode", modes, 3));
    made_text(made, "padding_mode", source_choice(source, "padding_mode", paddings, 3));
    made_integer(made, "align_corners", source_number(source, "align_corners", 0) != 0);
}
