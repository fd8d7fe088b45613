/* The table of operations that have a form in ONNX, and the functions of those that are not elementwise. */
#include "onnx/export.h"
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

#define PLAIN(operation, type)        \
    {                                 \
        operation, export_plain, type \
    }
#define COMPARES(operation, type)                     \
    {                                                 \
        operation, export_plain, type, 0, false, true \
    }
#define TRUTHS(operation, type)                      \
    {                                                \
        operation, export_plain, type, 0, true, true \
    }

static const struct export_row rows[] = {
    PLAIN("abs", "Abs"),
    PLAIN("acos", "Acos"),
    PLAIN("acosh", "Acosh"),
    { "adaptive_average_pool", export_adaptive_pool, NULL },
    PLAIN("add", "Add"),
    TRUTHS("and", "And"),
    { "argmax", export_argmax, "ArgMax" },
    { "argmin", export_argmax, "ArgMin" },
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
    { "conv2d_data_gradient", export_conv2d_transposed, NULL },
    { "convert", export_convert, NULL },
    PLAIN("copy", "Identity"),
    PLAIN("cos", "Cos"),
    PLAIN("cosh", "Cosh"),
    { "cumprod", export_cumprod, NULL },
    { "cumsum", export_cumsum, NULL },
    { "dense", export_dense, NULL },
    { "dft", export_dft, NULL, 20 },
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
    { "gather", export_gather, NULL },
    { "gelu", export_plain, "Gelu", 20 },
    { "gelu_tanh", export_gelu_tanh, NULL, 20 },
    COMPARES("greater", "Greater"),
    COMPARES("greater_or_equal", "GreaterOrEqual"),
    { "grid_sample", export_grid_sample, NULL, 20 },
    { "hard_sigmoid", export_hard_sigmoid, NULL },
    PLAIN("hard_swish", "HardSwish"),
    { "hardmax", export_hardmax, NULL },
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
    { "mish", export_plain, "Mish", 18 },
    { "mod", export_mod, NULL },
    PLAIN("mul", "Mul"),
    PLAIN("neg", "Neg"),
    TRUTHS("not", "Not"),
    { "one_hot", export_one_hot, NULL },
    TRUTHS("or", "Or"),
    PLAIN("pow", "Pow"),
    { "power", export_power, NULL },
    { "prelu", export_prelu, NULL },
    { "random_normal", export_random, NULL },
    { "random_uniform", export_random, NULL },
    PLAIN("reciprocal", "Reciprocal"),
    { "recurrent", export_recurrent, NULL },
    { "reduce_max", export_reduce, "ReduceMax", 18 },
    { "reduce_mean", export_reduce, "ReduceMean", 18 },
    { "reduce_min", export_reduce, "ReduceMin", 18 },
    { "reduce_prod", export_reduce, "ReduceProd", 18 },
    { "reduce_sum", export_reduce, "ReduceSum" },
    PLAIN("relu", "Relu"),
    { "resample", export_resample, NULL },
    { "reshape", export_reshape, NULL },
    { "reverse_sequence", export_reverse_sequence, NULL },
    PLAIN("round", "Round"),
    { "scale", export_scale, NULL },
    { "scatter", export_scatter, NULL, 18 },
    PLAIN("selu", "Selu"),
    { "shift", export_shift, NULL },
    PLAIN("sigmoid", "Sigmoid"),
    PLAIN("sign", "Sign"),
    { "silu", export_swish, NULL },
    PLAIN("sin", "Sin"),
    PLAIN("sinh", "Sinh"),
    { "softmax", export_softmax, NULL },
    PLAIN("softplus", "Softplus"),
    PLAIN("softsign", "Softsign"),
    PLAIN("sqrt", "Sqrt"),
    { "square", export_square, NULL },
    PLAIN("sub", "Sub"),
    { "swiglu", export_swiglu, NULL },
    { "swish", export_swish, NULL },
    PLAIN("tan", "Tan"),
    PLAIN("tanh", "Tanh"),
    { "thresholded_relu", export_alpha, "ThresholdedRelu" },
    { "topk", export_topk, NULL },
    { "transpose", export_transpose, NULL },
    { "trilu", export_trilu, NULL },
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
