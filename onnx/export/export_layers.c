/* The table of operations that have a form in ONNX, and the functions of those that are not elementwise. */
#include "onnx/export/export.h"
#include "tutti_inspect.h"

#include <string.h>

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
    const int count = source_list(source, "axes", axes, TUTTI_MAX_RANK);
    for (int i = 0; i < count; i++) kept.sizes[axes[i]] = 0;
    for (int i = 0; i < kept.rank; i++) {
        if (kept.sizes[i]) without.sizes[without.rank++] = kept.sizes[i];
        if (!kept.sizes[i]) kept.sizes[i] = 1;
    }
    for (int i = 0; i < count; i++) axes[i] = array_axis(&source->x, axes[i]);
    const bool keeps = same_shape(&kept, &source->y.shape), drops = same_shape(&without, &source->y.shape);
    const char *output = keeps || drops ? source_output(source) : source_temporary(source);
    made_integer(source_node(source, source->row.type, source_input(source, 0), source_integers(source, axes, count),
                     NULL, output),
        "keepdims", keeps || !drops);
    if (!keeps && !drops) source_reshape(source, output);
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

/* In inference, Dropout returns its input. It is written for programs that train the file. */
static void export_dropout(struct source *source)
{
    const char *ratio = source_scalar(source, (float)source_number(source, "ratio", 0.5));
    (void)source_node(source, "Dropout", source_input(source, 0), ratio, NULL, source_output(source));
}

static void export_random(struct source *source)
{
    const bool normal = !strcmp(source->info.operation, "random_normal");
    const double offset = source_number(source, "offset", 0), scale = source_number(source, "scale", 1);
    const struct made made = source_node(source, normal ? "RandomNormalLike" : "RandomUniformLike",
        source_input(source, 0), NULL, NULL, source_output(source));
    made_number(made, normal ? "mean" : "low", (float)offset);
    made_number(made, normal ? "scale" : "high", (float)(normal ? scale : offset + scale));
    made_integer(made, "dtype", ONNX_FLOAT);
}

/* -------------------------------------------------------------------------------------------------- products ---- */

static const char *transposed(struct source *source, int input)
{
    int64_t order[TUTTI_MAX_RANK + 1];
    const tutti_tensor_info info = source_tensor(source, source->info.inputs[input]);
    const int rank = array_rank(&info);
    for (int i = 0; i < rank; i++) order[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
    return source_transpose(source, source_input(source, input), order, rank, NULL);
}

static void export_dense(struct source *source)
{
    const bool biased = source_is(source, 2);
    const char *x = source_input(source, 0), *bias = biased ? source_input(source, 2) : NULL;
    if (array_rank(&source->x) == 2) {
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

/* ------------------------------------------------------------------------------------------------------ table ---- */

/* Operations that say by themselves which operator of ONNX does the same (tutti_operation_info.onnx) need no line,
 * unless they are written otherwise. */
static const struct export_row rows[] = {
    { "adaptive_average_pool", export_adaptive_pool, NULL },
    { "average_pool", export_pool, "AveragePool" },
    { "batch_norm", export_batch_norm, NULL },
    { "cast", export_convert, NULL },
    { "clip", export_clip, NULL },
    { "concat", export_concat, NULL },
    { "conv2d", export_conv2d, NULL },
    { "conv2d_data_gradient", export_conv2d_transposed, NULL },
    { "convert", export_convert, NULL },
    { "cumprod", export_cumprod, NULL },
    { "cumsum", export_cumsum, NULL },
    { "dense", export_dense, NULL },
    { "dft", export_dft, NULL, 20 },
    { "dropout", export_dropout, NULL },
    { "embedding", export_embedding, NULL },
    { "expand", export_expand, NULL },
    { "fmod", export_fmod, NULL },
    { "gather", export_gather, NULL },
    { "gelu_tanh", export_gelu_tanh, NULL, 20 },
    { "grid_sample", export_grid_sample, NULL, 20 },
    { "hard_sigmoid", export_hard_sigmoid, NULL },
    { "layer_norm", export_layer_norm, NULL },
    { "matmul", export_matmul, NULL },
    { "max_pool", export_pool, "MaxPool" },
    { "mod", export_mod, NULL },
    { "one_hot", export_one_hot, NULL },
    { "power", export_power, NULL },
    { "prelu", export_prelu, NULL },
    { "random_normal", export_random, NULL },
    { "random_uniform", export_random, NULL },
    { "recurrent", export_recurrent, NULL },
    { "resample", export_resample, NULL },
    { "reshape", export_reshape, NULL },
    { "reverse_sequence", export_reverse_sequence, NULL },
    { "scale", export_scale, NULL },
    { "scatter", export_scatter, NULL, 18 },
    { "shift", export_shift, NULL },
    { "silu", export_swish, NULL },
    { "softmax", export_softmax, NULL },
    { "square", export_square, NULL },
    { "swiglu", export_swiglu, NULL },
    { "swish", export_swish, NULL },
    { "topk", export_topk, NULL },
    { "transpose", export_transpose, NULL },
    { "trilu", export_trilu, NULL },
    { "trunc", export_trunc, NULL },
    { "where", export_where, NULL },
    { "window", export_window, NULL },
};

static bool find_plain(const char *operation, struct export_row *row)
{
    tutti_operation_info info = { .size = sizeof info };
    const int position = tutti_operation_find(operation);
    if (position < 0 || tutti_operation(position, &info) != TUTTI_OK || !info.onnx) return false;
    *row = (struct export_row) { .operation = info.name,
        .write = info.onnx_form == TUTTI_ONNX_REDUCTION ? export_reduce : export_plain,
        .type = info.onnx,
        .opset = info.onnx_opset,
        .takes_truths = info.onnx_form == TUTTI_ONNX_LOGIC,
        .casts = info.onnx_form == TUTTI_ONNX_LOGIC || info.onnx_form == TUTTI_ONNX_COMPARISON ||
            info.onnx_form == TUTTI_ONNX_POSITION };
    return true;
}

bool export_find(const char *operation, struct export_row *row)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].operation, operation) != 0) continue;
        *row = rows[i];
        return true;
    }
    return find_plain(operation, row);
}
