/* The operators that are read: operators.c has the table. */
#ifndef ONNX_OPERATORS_H
#define ONNX_OPERATORS_H

#include "onnx/import.h"

/* One line of the table. */
struct onnx_operator {
    const char *name;
    step_function *build;  /* NULL: it is for known integers only */
    step_function *fold;   /* if all inputs are known integers; NULL: none */
    const char *operation; /* for `build`: a name of tutti_op() */
};
/* NULL if Tutti does not have it. */
const struct onnx_operator *operator_find(const char *name);

/* Brings inputs to shapes that Tutti broadcasts to what ONNX does, where the batch is an axis as others. *batched:
 * whether one of them has a batch. */
tutti_status step_broadcast(const struct step *step, tutti_tensor *tensors, size_t count, bool *batched);

/* movement.c: another shape, of a sample if it has a batch; another order of a sample's axes. */
tutti_tensor step_reshape(const struct step *step, tutti_tensor x, const tutti_shape *shape);
tutti_tensor step_permuted(const struct step *step, tutti_tensor x, const int *order, int rank);

/* shapes.c: numbers that are known when the file is read. */
step_function build_shape, build_size, build_constant, build_constant_of_shape;
step_function fold_arithmetic, fold_where, fold_cast, fold_gather, fold_concat, fold_slice, fold_same_elements,
    fold_reduce_prod;

/* layers.c: convolutions, poolings, normalisations, products. */
step_function build_conv, build_max_pool, build_average_pool, build_global_pool, build_batch_normalization,
    build_layer_normalization, build_gemm, build_matmul;

/* movement.c: other shapes and parts of values. */
step_function build_reshape, build_flatten, build_squeeze, build_unsqueeze, build_transpose, build_concat, build_slice,
    build_split, build_pad, build_gather, build_expand;

/* pointwise.c: element by element, and along axes. */
step_function build_pointwise, build_alpha, build_many, build_clip, build_hard_sigmoid, build_gelu, build_pow,
    build_mod, build_cast, build_dropout, build_identity, build_reduce, build_softmax;

#endif
