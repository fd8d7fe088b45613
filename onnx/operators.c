#include "onnx/operators.h"

#include <stdlib.h>
#include <string.h>

/* In alphabetical order. docs/onnx.md names the same, and what is read of each. */
static const struct onnx_operator operators[] = {
    { "Abs", build_pointwise, NULL, "abs" },
    { "Add", build_pointwise, fold_arithmetic, "add" },
    { "AveragePool", build_average_pool },
    { "BatchNormalization", build_batch_normalization },
    { "Cast", build_cast, fold_cast },
    { "Clip", build_clip },
    { "Concat", build_concat, fold_concat },
    { "Constant", build_constant },
    { "ConstantOfShape", NULL, build_constant_of_shape },
    { "Conv", build_conv },
    { "Div", build_pointwise, fold_arithmetic, "div" },
    { "Dropout", build_dropout },
    { "Elu", build_alpha, NULL, "elu" },
    { "Equal", build_pointwise, fold_arithmetic, "equal" },
    { "Erf", build_pointwise, NULL, "erf" },
    { "Exp", build_pointwise, NULL, "exp" },
    { "Expand", build_expand },
    { "Flatten", build_flatten },
    { "Gather", build_gather, fold_gather },
    { "Gelu", build_gelu },
    { "Gemm", build_gemm },
    { "GlobalAveragePool", build_global_pool },
    { "GlobalMaxPool", build_global_pool },
    { "Greater", build_pointwise, NULL, "greater" },
    { "HardSigmoid", build_hard_sigmoid },
    { "HardSwish", build_pointwise, NULL, "hard_swish" },
    { "Identity", build_identity, build_identity },
    { "LayerNormalization", build_layer_normalization },
    { "LeakyRelu", build_alpha, NULL, "leaky_relu" },
    { "Less", build_pointwise, NULL, "less" },
    { "Log", build_pointwise, NULL, "log" },
    { "LogSoftmax", build_softmax, NULL, "log" },
    { "MatMul", build_matmul },
    { "Max", build_many, NULL, "max" },
    { "MaxPool", build_max_pool },
    { "Min", build_many, NULL, "min" },
    { "Mul", build_pointwise, fold_arithmetic, "mul" },
    { "Neg", build_pointwise, NULL, "neg" },
    { "PRelu", build_prelu },
    { "Pad", build_pad },
    { "Pow", build_pow },
    { "Reciprocal", build_pointwise, NULL, "reciprocal" },
    { "ReduceL1", build_reduce, NULL, "abs" },
    { "ReduceL2", build_reduce, NULL, "square" },
    { "ReduceMax", build_reduce },
    { "ReduceMean", build_reduce },
    { "ReduceMin", build_reduce },
    { "ReduceProd", NULL, fold_reduce_prod },
    { "ReduceSum", build_reduce },
    { "ReduceSumSquare", build_reduce, NULL, "square" },
    { "Relu", build_pointwise, NULL, "relu" },
    { "Reshape", build_reshape, fold_same_elements },
    { "Shape", build_shape, build_shape },
    { "Sigmoid", build_pointwise, NULL, "sigmoid" },
    { "Size", build_size, build_size },
    { "Slice", build_slice, fold_slice },
    { "Softmax", build_softmax },
    { "Softplus", build_pointwise, NULL, "softplus" },
    { "Split", build_split },
    { "Sqrt", build_pointwise, NULL, "sqrt" },
    { "Squeeze", build_squeeze, fold_same_elements },
    { "Sub", build_pointwise, fold_arithmetic, "sub" },
    { "Sum", build_many, NULL, "add" },
    { "Tanh", build_pointwise, NULL, "tanh" },
    { "Transpose", build_transpose },
    { "Unsqueeze", build_unsqueeze, fold_same_elements },
    { "Where", build_pointwise, fold_where, "where" },
};

static int compare(const void *name, const void *row)
{
    return strcmp(name, ((const struct onnx_operator *)row)->name);
}

const struct onnx_operator *operator_find(const char *name)
{
    return bsearch(name, operators, sizeof operators / sizeof *operators, sizeof *operators, compare);
}
