/* The table of operations that have a form in ONNX, and the functions of those that are not elementwise. */
#include "onnx/export.h"

#include <string.h>

/* -------------------------------------------------------------------------------------------------- movement ---- */

static int sample_rank(const tutti_tensor_info *info)
{
    return info->shape.rank;
}

/* The axis of the array for one of a sample. */
static int64_t array_axis(const tutti_tensor_info *info, int64_t axis)
{
    return axis + info->for_each_sample;
}

static int64_t elements_of(const tutti_shape *shape)
{
    int64_t elements = 1;
    for (int i = 0; i < shape->rank; i++)
        if (shape->sizes[i] != TUTTI_SEQUENCE) elements *= shape->sizes[i];
    return elements;
}

static void refuse(struct source *source, const char *why)
{
    if (source->export->status != TUTTI_OK) return;
    export_fail(source->export,
        fail(TUTTI_UNSUPPORTED, "layer %s, operation %s: %s", source->info.layer ? source->info.layer : "",
            source->info.operation, why));
}

/* The number of samples stays, and is copied (0), unless rows of samples join them or leave them. */
static void write_reshape(struct source *source, const char *from)
{
    const tutti_tensor_info *x = &source->x, *y = &source->y;
    int64_t sizes[TUTTI_MAX_RANK + 1];
    int count = 0, open = 0;
    const bool same = elements_of(&x->shape) == elements_of(&y->shape);
    if (y->for_each_sample) sizes[count++] = same ? 0 : -1;
    open += !same;
    for (int i = 0; i < y->shape.rank; i++) {
        const bool copied = i < x->shape.rank && x->shape.sizes[i] == TUTTI_SEQUENCE;
        const bool length = y->shape.sizes[i] == TUTTI_SEQUENCE;
        open += length && !copied;
        sizes[count++] = !length ? y->shape.sizes[i] : copied ? 0 : -1;
    }
    if (open > 1) refuse(source, "several sizes are open");
    (void)source_node(source, "Reshape", from, source_integers(source, sizes, count), NULL, source_output(source));
}

static void export_reshape(struct source *source)
{
    write_reshape(source, source_input(source, 0));
}

/* [N], of an input. */
static const char *batch_size(struct source *source)
{
    const struct export *export = source->export;
    const char *size = source_temporary(source);
    if (export->inputs.count == 0) {
        refuse(source, "the number of samples is not known without an input");
        return "";
    }
    const Onnx__ValueInfoProto *input = export->inputs.items[0];
    const struct made made = source_node(source, "Shape", input->name, NULL, NULL, size);
    made_integer(made, "start", 0);
    made_integer(made, "end", 1);
    return size;
}

/* The batch, and sizes that x has, are 1: ONNX broadcasts the shape, too. */
static void export_expand(struct source *source)
{
    const tutti_tensor_info *x = &source->x, *y = &source->y;
    int64_t sizes[TUTTI_MAX_RANK + 1] = { 1 };
    const int more = y->shape.rank - x->shape.rank;
    for (int i = 0; i < y->shape.rank; i++) {
        const bool same = i >= more && x->shape.sizes[i - more] == y->shape.sizes[i];
        if (!same && y->shape.sizes[i] == TUTTI_SEQUENCE)
            refuse(source, "it repeats a tensor as long as sequences are");
        sizes[array_axis(y, i)] = same ? 1 : y->shape.sizes[i];
    }
    const char *shape;
    if (y->for_each_sample && !x->for_each_sample) {
        const char *const parts[] = { batch_size(source), source_integers(source, sizes + 1, y->shape.rank) };
        shape = source_temporary(source);
        made_integer(source_node_of(source, "Concat", parts, 2, shape), "axis", 0);
    } else {
        shape = source_integers(source, sizes, (int)array_axis(y, y->shape.rank));
    }
    (void)source_node(source, "Expand", source_aligned(source, 0), shape, NULL, source_output(source));
}

static void write_transpose(struct source *source, const char *from, const int64_t *order, int rank, const char *to)
{
    made_integers(source_node(source, "Transpose", from, NULL, NULL, to), "perm", order, rank);
}

static void export_transpose(struct source *source)
{
    int64_t order[TUTTI_MAX_RANK], whole[TUTTI_MAX_RANK + 1] = { 0 };
    const int rank = source_whole(source, "perm", order, TUTTI_MAX_RANK);
    for (int i = 0; i < rank; i++) whole[array_axis(&source->x, i)] = array_axis(&source->x, order[i]);
    write_transpose(source, source_input(source, 0), whole, (int)array_axis(&source->x, rank), source_output(source));
}

/* What x has from `begins` on, and a constant where it has nothing: Slice and Pad. */
struct window {
    int64_t starts[TUTTI_MAX_RANK], ends[TUTTI_MAX_RANK], axes[TUTTI_MAX_RANK], pads[2 * TUTTI_MAX_RANK + 2];
    int cut;
    bool padded;
};

static void find_window(struct source *source, struct window *window)
{
    int64_t begins[TUTTI_MAX_RANK] = { 0 };
    const int rank = source_whole(source, "begins", begins, TUTTI_MAX_RANK);
    const int all = (int)array_axis(&source->x, rank);
    for (int i = 0; i < rank; i++) {
        const int64_t size = source->x.shape.sizes[i], wanted = source->y.shape.sizes[i];
        const int axis = (int)array_axis(&source->x, i);
        if (wanted == TUTTI_SEQUENCE && (size != TUTTI_SEQUENCE || begins[i]))
            refuse(source, "it cuts a tensor to the length of sequences");
        if (wanted == size && begins[i] == 0) continue;
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

static void export_window(struct source *source)
{
    struct window window = { .cut = 0 };
    int64_t reversed[TUTTI_MAX_RANK] = { 0 };
    if (source_whole(source, "reversed", reversed, TUTTI_MAX_RANK) > 0)
        refuse(source, "it goes backwards along an axis");
    find_window(source, &window);
    const char *x = source_input(source, 0);
    if (window.cut) {
        const char *const inputs[] = { x, source_integers(source, window.starts, window.cut),
            source_integers(source, window.ends, window.cut), source_integers(source, window.axes, window.cut) };
        x = window.padded ? source_temporary(source) : source_output(source);
        (void)source_node_of(source, "Slice", inputs, 4, x);
        if (!window.padded) return;
    }
    if (!window.padded) {
        (void)source_node(source, "Identity", x, NULL, NULL, source_output(source));
        return;
    }
    const char *pads = source_integers(source, window.pads, 2 * (int)array_axis(&source->x, source->x.shape.rank));
    const char *value = source_scalar(source, (float)source_number(source, "value", 0));
    (void)source_node(source, "Pad", x, pads, value, source_output(source));
}

static void export_concat(struct source *source)
{
    const char *inputs[TUTTI_NODE_PORTS];
    const int count = source->info.input_count;
    for (int i = 0; i < count; i++) inputs[i] = source_input(source, i);
    made_integer(source_node_of(source, "Concat", inputs, count, source_output(source)), "axis",
        array_axis(&source->x, (int64_t)source_number(source, "axis", 0)));
}

static enum onnx_type type_of(tutti_dtype dtype)
{
    return dtype == TUTTI_DTYPE_I32 ? ONNX_INT32 : ONNX_FLOAT;
}

/* cast; and normalise, with a scale and a shift for each channel. */
static void export_convert(struct source *source)
{
    double scale[16], shift[16];
    float scales[16], shifts[16];
    const int channels = (int)source_number(source, "channels", 0);
    if (channels == 0) {
        made_integer(source_node(source, "Cast", source_input(source, 0), NULL, NULL, source_output(source)), "to",
            type_of(source->y.dtype));
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
    const int behind = source->x.shape.rank - 1; /* axes behind the channels, and the one of the matrix's single row */
    for (int i = 0; i < behind; i++) axes[i] = i + 2;
    const char *row = source_matrix(source, scales, 1, channels), *other = source_matrix(source, shifts, 1, channels);
    if (behind > 0) {
        row = source_step(source, "Unsqueeze", row, source_integers(source, axes, behind));
        other = source_step(source, "Unsqueeze", other, source_integers(source, axes, behind));
    }
    (void)source_node(source, "Add", source_step(source, "Mul", x, row), other, NULL, source_output(source));
}

/* ------------------------------------------------------------------------------------------------ along axes ---- */

static bool same_shape(const tutti_shape *a, const tutti_shape *b)
{
    bool same = a->rank == b->rank;
    for (int i = 0; same && i < a->rank; i++) same = a->sizes[i] == b->sizes[i];
    return same;
}

static void export_reduce(struct source *source)
{
    int64_t axes[TUTTI_MAX_RANK];
    tutti_shape kept = source->x.shape, without = { 0 };
    const int count = source_whole(source, "axes", axes, TUTTI_MAX_RANK);
    for (int i = 0; i < count; i++) kept.sizes[axes[i]] = 0;
    for (int i = 0; i < kept.rank; i++) {
        if (kept.sizes[i]) without.sizes[without.rank++] = kept.sizes[i];
        if (!kept.sizes[i]) kept.sizes[i] = 1;
    }
    for (int i = 0; i < count; i++) axes[i] = array_axis(&source->x, axes[i]);
    const bool keeps = same_shape(&kept, &source->y.shape), drops = same_shape(&without, &source->y.shape);
    const char *output = keeps || drops ? source_output(source) : source_temporary(source);
    made_integer(source_node(source, source->row->type, source_input(source, 0), source_integers(source, axes, count),
                     NULL, output),
        "keepdims", keeps || !drops);
    if (!keeps && !drops) write_reshape(source, output);
}

static void export_softmax(struct source *source)
{
    made_integer(
        source_node(source, "Softmax", source_input(source, 0), NULL, NULL, source_output(source)), "axis", -1);
}

static void export_layer_norm(struct source *source)
{
    const struct made made = source_node(source, "LayerNormalization", source_input(source, 0), source_input(source, 1),
        source_input(source, 2), source_output(source));
    made_integer(made, "axis", -1);
    made_number(made, "epsilon", (float)source_number(source, "epsilon", 1e-5));
}

static void export_batch_norm(struct source *source)
{
    const char *inputs[5];
    for (int i = 0; i < 5; i++) inputs[i] = source_input(source, i);
    made_number(source_node_of(source, "BatchNormalization", inputs, 5, source_output(source)), "epsilon",
        (float)source_number(source, "epsilon", 1e-5));
}

/* In inference it gives what it gets. A program that trains the file finds it there. */
static void export_dropout(struct source *source)
{
    const char *ratio = source_scalar(source, (float)source_number(source, "ratio", 0.5));
    (void)source_node(source, "Dropout", source_input(source, 0), ratio, NULL, source_output(source));
}

/* -------------------------------------------------------------------------------------------------- products ---- */

static const char *transposed(struct source *source, int input)
{
    int64_t order[TUTTI_MAX_RANK + 1];
    const tutti_tensor_info info = source_tensor(source, source->info.inputs[input]);
    const int rank = (int)array_axis(&info, sample_rank(&info));
    const char *to = source_temporary(source);
    for (int i = 0; i < rank; i++) order[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
    write_transpose(source, source_input(source, input), order, rank, to);
    return to;
}

static void export_dense(struct source *source)
{
    const bool biased = source_is(source, 2);
    const char *x = source_input(source, 0), *bias = biased ? source_input(source, 2) : NULL;
    if (array_axis(&source->x, sample_rank(&source->x)) == 2) {
        made_integer(source_node(source, "Gemm", x, source_input(source, 1), bias, source_output(source)), "transB", 1);
        return;
    }
    const char *product = biased ? source_temporary(source) : source_output(source);
    (void)source_node(source, "MatMul", x, transposed(source, 1), NULL, product);
    if (biased) (void)source_node(source, "Add", product, bias, NULL, source_output(source));
}

static void export_matmul(struct source *source)
{
    const char *a = source_number(source, "transpose_a", 0) != 0 ? transposed(source, 0) : source_input(source, 0);
    const char *b = source_number(source, "transpose_b", 0) != 0 ? transposed(source, 1) : source_input(source, 1);
    (void)source_node(source, "MatMul", a, b, NULL, source_output(source));
}

static void export_embedding(struct source *source)
{
    made_integer(
        source_node(source, "Gather", source_input(source, 1), source_input(source, 0), NULL, source_output(source)),
        "axis", 0);
}

/* ---------------------------------------------------------------------------------------------------- images ---- */

/* kernel, strides, pads: before and behind. */
static void made_window(struct source *source, struct made made)
{
    int64_t kernel[2] = { 1, 1 }, stride[2] = { 1, 1 }, padding[2] = { 0 };
    (void)source_whole(source, "kernel", kernel, 2);
    (void)source_whole(source, "stride", stride, 2);
    (void)source_whole(source, "padding", padding, 2);
    made_integers(made, "kernel_shape", kernel, 2);
    made_integers(made, "strides", stride, 2);
    made_integers(made, "pads", (int64_t[]) { padding[0], padding[1], padding[0], padding[1] }, 4);
}

static void export_conv2d(struct source *source)
{
    int64_t dilation[2] = { 1, 1 };
    const char *bias = source_is(source, 2) ? source_input(source, 2) : NULL;
    const struct made made =
        source_node(source, "Conv", source_input(source, 0), source_input(source, 1), bias, source_output(source));
    made_window(source, made);
    (void)source_whole(source, "dilation", dilation, 2);
    made_integers(made, "dilations", dilation, 2);
    made_integer(made, "group", (int64_t)source_number(source, "groups", 1));
}

static bool is_global(const struct source *source)
{
    int64_t kernel[2] = { 0 }, padding[2] = { 0 };
    (void)source_whole(source, "kernel", kernel, 2);
    (void)source_whole(source, "padding", padding, 2);
    return kernel[0] == source->x.shape.sizes[1] && kernel[1] == source->x.shape.sizes[2] && !padding[0] && !padding[1];
}

static void export_pool(struct source *source)
{
    const bool max = !strcmp(source->info.operation, "max_pool");
    const char *x = source_input(source, 0), *output = source_output(source);
    if (is_global(source)) {
        (void)source_node(source, max ? "GlobalMaxPool" : "GlobalAveragePool", x, NULL, NULL, output);
        return;
    }
    const struct made made = source_node(source, source->row->type, x, NULL, NULL, output);
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
static void export_adaptive_pool(struct source *source)
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

/* ---------------------------------------------------------------------------------------------------- resample ---- */

/* Exchanges an axis of the array with the last one. */
static const char *exchange(struct source *source, const char *from, int axis, int rank, const char *output)
{
    int64_t perm[TUTTI_MAX_RANK + 1];
    if (axis == rank - 1 && !output) return from;
    for (int i = 0; i < rank; i++) perm[i] = i == axis ? rank - 1 : i == rank - 1 ? axis : i;
    const char *to = output ? output : source_temporary(source);
    made_integers(source_node(source, "Transpose", from, NULL, NULL, to), "perm", perm, rank);
    return to;
}

/* The table of positions and weights as a matrix [from, to], and what outputs without positions are, [1, to]. */
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

/* A product with a matrix along the axis: ONNX has no operator for any table. */
static void export_resample(struct source *source)
{
    enum { MOST = 1 << 24 };
    int64_t axis = 0;
    (void)source_whole(source, "axis", &axis, 1);
    const int64_t from = source->x.shape.sizes[axis], to = source->y.shape.sizes[axis];
    const int rank = source->x.shape.rank + source->x.for_each_sample, place = (int)array_axis(&source->x, axis);
    if (from > MOST / to) {
        refuse(source, "its matrix would be too large");
        return;
    }
    float *matrix = export_new(source->export, (size_t)(from * to), sizeof *matrix);
    float *without = export_new(source->export, (size_t)to, sizeof *without);
    if (!read_table(source, to, matrix, without)) {
        refuse(source, "its table is not of constants");
        return;
    }
    const char *x = exchange(source, source_input(source, 0), place, rank, NULL);
    const char *product = source_step(source, "MatMul", x, source_matrix(source, matrix, from, to));
    product = source_step(source, "Add", product, source_matrix(source, without, 1, to));
    (void)exchange(source, product, place, rank, source_output(source));
}

/* ------------------------------------------------------------------------------------------------------ table ---- */

#define PLAIN(operation, type)                      \
    {                                               \
        operation, export_plain, type, false, false \
    }
#define COMPARES(operation, type)                  \
    {                                              \
        operation, export_plain, type, false, true \
    }
#define TRUTHS(operation, type)                   \
    {                                             \
        operation, export_plain, type, true, true \
    }

static const struct export_row rows[] = {
    PLAIN("abs", "Abs"),
    PLAIN("acos", "Acos"),
    PLAIN("acosh", "Acosh"),
    { "adaptive_average_pool", export_adaptive_pool, NULL },
    PLAIN("add", "Add"),
    TRUTHS("and", "And"),
    PLAIN("asin", "Asin"),
    PLAIN("asinh", "Asinh"),
    PLAIN("atan", "Atan"),
    PLAIN("atanh", "Atanh"),
    { "average_pool", export_pool, "AveragePool" },
    { "batch_norm", export_batch_norm, NULL },
    { "cast", export_convert, NULL },
    PLAIN("ceil", "Ceil"),
    { "celu", export_alpha, "Celu" },
    { "clip", export_clip, NULL },
    { "concat", export_concat, NULL },
    { "conv2d", export_conv2d, NULL },
    { "convert", export_convert, NULL },
    PLAIN("copy", "Identity"),
    PLAIN("cos", "Cos"),
    PLAIN("cosh", "Cosh"),
    { "dense", export_dense, NULL },
    PLAIN("div", "Div"),
    { "dropout", export_dropout, NULL },
    { "elu", export_alpha, "Elu" },
    { "embedding", export_embedding, NULL },
    COMPARES("equal", "Equal"),
    PLAIN("erf", "Erf"),
    PLAIN("exp", "Exp"),
    { "expand", export_expand, NULL },
    PLAIN("floor", "Floor"),
    { "fmod", export_fmod, NULL },
    PLAIN("gelu", "Gelu"),
    { "gelu_tanh", export_gelu_tanh, NULL },
    COMPARES("greater", "Greater"),
    COMPARES("greater_or_equal", "GreaterOrEqual"),
    { "hard_sigmoid", export_hard_sigmoid, NULL },
    PLAIN("hard_swish", "HardSwish"),
    COMPARES("is_inf", "IsInf"),
    COMPARES("is_nan", "IsNaN"),
    { "layer_norm", export_layer_norm, NULL },
    { "leaky_relu", export_alpha, "LeakyRelu" },
    COMPARES("less", "Less"),
    COMPARES("less_or_equal", "LessOrEqual"),
    PLAIN("log", "Log"),
    { "matmul", export_matmul, NULL },
    PLAIN("max", "Max"),
    { "max_pool", export_pool, "MaxPool" },
    PLAIN("min", "Min"),
    PLAIN("mish", "Mish"),
    { "mod", export_mod, NULL },
    PLAIN("mul", "Mul"),
    PLAIN("neg", "Neg"),
    TRUTHS("not", "Not"),
    TRUTHS("or", "Or"),
    PLAIN("pow", "Pow"),
    { "prelu", export_prelu, NULL },
    PLAIN("reciprocal", "Reciprocal"),
    { "reduce_max", export_reduce, "ReduceMax" },
    { "reduce_mean", export_reduce, "ReduceMean" },
    { "reduce_min", export_reduce, "ReduceMin" },
    { "reduce_prod", export_reduce, "ReduceProd" },
    { "reduce_sum", export_reduce, "ReduceSum" },
    PLAIN("relu", "Relu"),
    { "resample", export_resample, NULL },
    { "reshape", export_reshape, NULL },
    PLAIN("round", "Round"),
    { "scale", export_scale, NULL },
    PLAIN("selu", "Selu"),
    PLAIN("sigmoid", "Sigmoid"),
    PLAIN("sign", "Sign"),
    { "silu", export_silu, NULL },
    PLAIN("sin", "Sin"),
    PLAIN("sinh", "Sinh"),
    { "softmax", export_softmax, NULL },
    PLAIN("softplus", "Softplus"),
    PLAIN("softsign", "Softsign"),
    PLAIN("sqrt", "Sqrt"),
    { "square", export_square, NULL },
    PLAIN("sub", "Sub"),
    PLAIN("tan", "Tan"),
    PLAIN("tanh", "Tanh"),
    { "thresholded_relu", export_alpha, "ThresholdedRelu" },
    { "transpose", export_transpose, NULL },
    { "trunc", export_trunc, NULL },
    { "where", export_where, NULL },
    { "window", export_window, NULL },
    TRUTHS("xor", "Xor"),
};

const struct export_row *export_find(const char *operation)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i].operation, operation)) return &rows[i];
    return NULL;
}
