#include "onnx/operators.h"

#include "tutti_inspect.h"

#include <stdlib.h>
#include <string.h>

/* In alphabetical order. Operators of which an operation says that it is the same (tutti_operation_info.onnx) need no
 * line, unless numbers that are known or older opsets need a function. docs/onnx.md lists all operators, and what is
 * read of each. */
static const struct onnx_operator operators[] = {
    { "Add", build_pointwise, evaluate_arithmetic, "add", .index_rule = INDEX_SUM, .overflows = true },
    { "AffineGrid", build_affine_grid },
    { "ArgMax", build_tensor, evaluate_arg, "argmax", ONNX_INT64 },
    { "ArgMin", build_tensor, evaluate_arg, "argmin", ONNX_INT64 },
    { "ArrayFeatureExtractor", build_array_feature_extractor, .domain = "ai.onnx.ml" },
    { "Attention", build_attention },
    { "AveragePool", build_pool, NULL, "average_pool" },
    { "BatchNormalization", build_batch_normalization },
    { "Bernoulli", build_bernoulli },
    { "BlackmanWindow", build_window },
    { "Cast", build_cast, evaluate_cast, .index_rule = INDEX_SAME },
    { "CastLike", build_cast, evaluate_cast },
    { "CenterCropPad", build_center_crop_pad },
    { "Clip", build_clip, evaluate_clip },
    { "Col2Im", build_col2im },
    { "Compress", build_compress },
    { "Concat", build_concat, evaluate_concat, .index_rule = INDEX_JOINED },
    { "Constant", build_constant },
    { "ConstantOfShape", build_constant_of_shape, evaluate_constant_of_shape },
    { "Conv", build_conv, NULL, "conv" },
    { "ConvInteger", build_quantised_conv },
    { "ConvTranspose", build_conv, NULL, "conv_transpose" },
    { "CumProd", build_scan, NULL, "cumprod", .overflows = true },
    { "CumSum", build_scan, evaluate_cumsum, "cumsum", .overflows = true },
    { "DFT", build_dft, NULL, "dft" },
    { "DepthToSpace", build_blocks, NULL, "depth_to_space" },
    { "DequantizeLinear", build_dequantize_linear },
    { "Div", build_div, evaluate_arithmetic, "div", .index_rule = INDEX_KNOWN },
    { "Dropout", build_dropout },
    { "DynamicQuantizeLSTM", build_recurrent, .domain = "com.microsoft" },
    { "DynamicQuantizeLinear", build_dynamic_quantize_linear },
    { "Einsum", build_einsum, .overflows = true },
    { "Equal", build_pointwise, evaluate_arithmetic, "equal", ONNX_BOOL, .index_rule = INDEX_KNOWN },
    { "Expand", build_expand, evaluate_expand, .index_rule = INDEX_SAME },
    { "EyeLike", build_eye_like },
    { "Flatten", build_flatten, evaluate_flatten, .index_rule = INDEX_MOVED },
    { "GRU", build_recurrent },
    { "Gather", build_gather, evaluate_gather, .index_rule = INDEX_SELECTS_SAMPLE },
    { "GatherElements", build_elements, NULL, "gather_elements" },
    { "GatherND", build_gather_nd, .index_rule = INDEX_COLUMN_SELECTS_SAMPLE },
    { "Gelu", build_gelu },
    { "Gemm", build_gemm, .overflows = true },
    { "GlobalAveragePool", build_global_pool, NULL, "reduce_mean" },
    { "GlobalLpPool", build_global_pool, NULL, "lp_pool" },
    { "GlobalMaxPool", build_global_pool, NULL, "reduce_max" },
    { "GridSample", build_grid_sample },
    { "GroupNormalization", build_group_normalization },
    { "HammingWindow", build_window },
    { "HannWindow", build_window },
    { "HardSigmoid", build_hard_sigmoid },
    { "Hardmax", build_hardmax },
    { "Identity", build_identity, build_identity, .index_rule = INDEX_SAME },
    { "If", build_if },
    { "InstanceNormalization", build_instance_normalization },
    { "IsInf", build_is_inf, evaluate_is_inf, "is_inf", ONNX_BOOL },
    { "LRN", build_lrn },
    { "LSTM", build_recurrent },
    { "LabelEncoder", build_label_encoder, .domain = "ai.onnx.ml" },
    { "LayerNormalization", build_layer_normalization, NULL, "layer_norm" },
    { "LinearClassifier", build_linear_classifier, .domain = "ai.onnx.ml" },
    { "LinearRegressor", build_linear_regressor, .domain = "ai.onnx.ml" },
    { "LogSoftmax", build_softmax, NULL, "log_softmax" },
    { "LpPool", build_pool, NULL, "lp_pool" },
    { "MatMul", build_matmul, .overflows = true },
    { "MatMulInteger", build_quantised_matmul },
    { "Max", build_many, evaluate_arithmetic, "max", .index_rule = INDEX_SIZES },
    { "MaxPool", build_pool, NULL, "max_pool" },
    { "MaxUnpool", build_max_unpool, .index_rule = INDEX_SELECTS_SAMPLE },
    { "Mean", build_many, evaluate_arithmetic, "add" },
    { "MeanVarianceNormalization", build_mean_variance_normalization },
    { "MelWeightMatrix", build_mel_weight_matrix },
    { "Min", build_many, evaluate_arithmetic, "min", .index_rule = INDEX_SIZES },
    { "Mod", build_mod, evaluate_arithmetic },
    { "Mul", build_pointwise, evaluate_arithmetic, "mul", .index_rule = INDEX_KNOWN, .overflows = true },
    { "NegativeLogLikelihoodLoss", build_nll_loss },
    { "NonZero", build_non_zero },
    { "Normalizer", build_normalizer, .domain = "ai.onnx.ml" },
    { "OneHot", build_one_hot },
    { "Pad", build_pad, evaluate_pad },
    { "Pow", build_pow, evaluate_arithmetic, .overflows = true },
    { "QLinearConv", build_quantised_conv },
    { "QLinearMatMul", build_quantised_matmul },
    { "QuantizeLinear", build_quantize_linear },
    { "RMSNormalization", build_layer_normalization, NULL, "rms_norm" },
    { "RNN", build_recurrent },
    { "RandomNormal", build_random, NULL, "random_normal", ONNX_FLOAT },
    { "RandomNormalLike", build_random_like, NULL, "random_normal", .index_rule = INDEX_SHAPE },
    { "RandomUniform", build_random, NULL, "random_uniform", ONNX_FLOAT },
    { "RandomUniformLike", build_random_like, NULL, "random_uniform", .index_rule = INDEX_SHAPE },
    { "Range", build_range, evaluate_range },
    { "Reshape", build_reshape, evaluate_reshape, .index_rule = INDEX_MOVED },
    { "Resize", build_resize },
    { "ReverseSequence", build_reverse_sequence },
    { "RotaryEmbedding", build_rotary_embedding },
    { "STFT", build_stft },
    { "Scaler", build_scaler, .domain = "ai.onnx.ml" },
    { "ScatterElements", build_elements, NULL, "scatter_elements" },
    { "ScatterND", build_scatter_nd, .index_rule = INDEX_COLUMN_SELECTS_SAMPLE },
    { "Selu", build_selu, NULL, "elu" },
    { "SequenceAt", build_sequence_at },
    { "SequenceConstruct", build_sequence_construct },
    { "SequenceEmpty", build_sequence_construct },
    { "SequenceErase", build_sequence_insert },
    { "SequenceInsert", build_sequence_insert },
    { "SequenceLength", build_sequence_length, .type = ONNX_INT64 },
    { "Shape", build_shape, build_shape, .index_rule = INDEX_SHAPE },
    { "Shrink", build_shrink },
    { "Size", build_size, build_size, .type = ONNX_INT64 },
    { "Slice", build_slice, evaluate_slice, .index_rule = INDEX_MOVED },
    { "Softmax", build_softmax },
    { "SoftmaxCrossEntropyLoss", build_softmax_cross_entropy },
    { "SpaceToDepth", build_blocks, NULL, "space_to_depth" },
    { "Split", build_split, evaluate_split },
    { "SplitToSequence", build_split_to_sequence },
    { "Squeeze", build_squeeze, evaluate_squeeze, .index_rule = INDEX_MOVED },
    { "Sub", build_pointwise, evaluate_arithmetic, "sub", .index_rule = INDEX_DIFFERENCE, .overflows = true },
    { "Sum", build_many, evaluate_arithmetic, "add", .overflows = true },
    { "SwiGLU", build_swiglu },
    { "TensorScatter", build_tensor_scatter },
    { "Tile", build_tile, evaluate_tile },
    { "TopK", build_top_k },
    { "Transpose", build_transpose, evaluate_transpose, .index_rule = INDEX_MOVED },
    { "Trilu", build_trilu, evaluate_trilu },
    { "Unsqueeze", build_squeeze, evaluate_squeeze, .index_rule = INDEX_MOVED },
    { "Where", build_where, evaluate_where, "where", .index_rule = INDEX_KNOWN },
    { "ZipMap", build_zip_map, .domain = "ai.onnx.ml" },
};

static int compare(const void *name, const void *row)
{
    return strcmp(name, ((const struct onnx_operator *)row)->name);
}

/* For operators of each form: the function, and the type of the result. */
static node_function *const builders[] = {
    [TUTTI_ONNX_ELEMENTWISE] = build_pointwise,
    [TUTTI_ONNX_COMPARISON] = build_pointwise,
    [TUTTI_ONNX_LOGIC] = build_pointwise,
    [TUTTI_ONNX_REDUCTION] = build_reduce,
    [TUTTI_ONNX_TENSOR] = build_tensor,
    [TUTTI_ONNX_POSITION] = build_tensor,
};
static const int types[] = {
    [TUTTI_ONNX_COMPARISON] = ONNX_BOOL,
    [TUTTI_ONNX_LOGIC] = ONNX_BOOL,
    [TUTTI_ONNX_POSITION] = ONNX_INT64,
};

/* The line of an operator that an operation knows. */
static bool find_plain(const char *name, struct onnx_operator *row)
{
    tutti_operation_info info = { .size = sizeof info };
    const int position = tutti_operation_find_onnx(name);
    if (position < 0 || tutti_operation(position, &info) != TUTTI_OK) return false;
    const bool reduces = info.onnx_form == TUTTI_ONNX_REDUCTION;
    *row = (struct onnx_operator) { .name = info.onnx,
        .build = builders[info.onnx_form],
        .evaluate = reduces        ? evaluate_reduce
            : arithmetic_has(name) ? evaluate_arithmetic
                                   : NULL,
        .operation = info.name,
        .type = types[info.onnx_form],
        .overflows = info.onnx_overflows };
    return true;
}

bool operator_find(const char *name, struct onnx_operator *row)
{
    const struct onnx_operator *found =
        bsearch(name, operators, sizeof operators / sizeof *operators, sizeof *operators, compare);
    if (found) *row = *found;
    return found || find_plain(name, row);
}
