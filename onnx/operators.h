/* The operators that are read: operators.c has the table. */
#ifndef ONNX_OPERATORS_H
#define ONNX_OPERATORS_H

#include "onnx/import.h"

/* How an operator may use indices that grow with the sample (struct batch_index; batch_index.c). "A column": only one
 * index along the last axis grows. */
enum batch_index_rule {
    INDEX_NEVER,
    INDEX_SHAPE,                 /* it does not read the elements */
    INDEX_SAME,                  /* its output grows as its first input does, columns included */
    INDEX_MOVED,                 /* as INDEX_SAME, but not for columns, which would move */
    INDEX_SUM,                   /* factors are added */
    INDEX_DIFFERENCE,            /* factors are subtracted */
    INDEX_JOINED,                /* joins columns that grow and others along the last axis */
    INDEX_SELECTS_SAMPLE,        /* input 1 selects samples */
    INDEX_COLUMN_SELECTS_SAMPLE, /* input 1 has a column that selects samples */
    INDEX_SIZES,                 /* only the sizes of its output may be read: those that its inputs are broadcast to */
    INDEX_KNOWN /* only arrays that are computed when the file is read, for PLACEHOLDER_BATCH samples */
};

/* One line of the table. */
struct onnx_operator {
    const char *name;
    node_function *build;    /* adds layers; NULL: only known inputs are possible */
    node_function *evaluate; /* computes the node now, if all inputs are known; NULL: there is none */
    const char *operation;   /* a name of tutti_op(), for `build` as node->operation; NULL: it reads none */
    int type;                /* of the first output's elements; 0: that of the first input */
    bool overflows;          /* its result can be outside of the range of its inputs' integer type */
    enum batch_index_rule index_rule;
    const char *domain; /* NULL: ONNX's own */
};
/* operators.c: copies the line of an operator: one of the table, or one that follows from an operation. False: Tutti
 * does not have it. */
bool operator_find(const char *name, struct onnx_operator *row);

/* pointwise.c: reshapes inputs so that Tutti broadcasts them as ONNX does, where the batch is an axis like any other.
 * *batch_axis: that of the result. */
tutti_status node_broadcast(
    const struct onnx_node *node, tutti_tensor *tensors, size_t count, struct batch_axis *batch_axis);

/* batch_axis.c */
bool batch_axis_equal(const struct batch_axis *a, const struct batch_axis *b);
/* Removes an axis from an operand without a batch: an axis of size 1, or one with `rows` elements for each of the
 * file's samples if these parts are alike. */
tutti_status node_drop_axis(
    const struct onnx_node *node, size_t position, int axis, int64_t rows, struct operand *operand);
/* Prepares an operand that is broadcast to a result. rank, *batch_axis: the result's axes in the file, and which is the
 * batch. An operand without a batch must have size 1 or equal parts along that axis, and keeps one of them. One with a
 * batch must have it along the same axis. */
tutti_status node_align(const struct onnx_node *node, size_t position, int rank, const struct batch_axis *batch_axis,
    struct operand *operand);
/* Refuses a parameter that has `size` parts along an axis that is the batch: they train apart, even if they are equal.
 * Where the file does not tell parameters from constants, a warning says that they are one. */
tutti_status node_check_equal_parts(const struct onnx_node *node, size_t position, int axis, int64_t size);
/* Makes the first axis of a known array the batch, if the array has an equal part there for each of the file's samples.
 * Example: the initial state of a cell that is unrolled into Gemm and Split. Other operands stay as they are. */
tutti_status node_equal_parts_as_batch(const struct onnx_node *node, size_t position, struct operand *operand);
/* If only its size suggested that the first axis of an input is the batch: reads the input as a value without a
 * batch. False: the batch is certain, or there is none. */
bool node_as_fixed(const struct onnx_node *node, size_t position, struct operand *operand);
/* Inserts an axis into a sample at `axis`: of the rows that it has along the batch, or of size 1. *sample: its
 * shape. */
tutti_tensor node_with_rows(const struct onnx_node *node, tutti_tensor x, tutti_shape *sample, int axis, int64_t rows);
/* Reverses node_with_rows(). */
tutti_tensor node_without_rows(const struct onnx_node *node, tutti_tensor x, int axis);
/* Gives an operand without a batch the batch axis of another one. */
tutti_status node_match_batch(
    const struct onnx_node *node, size_t position, const struct operand *other, struct operand *operand);

/* repeats.c: whether a value without a batch has equal parts along an axis, and keeps them in training. False for
 * every initialiser of the file. */
bool value_repeats_along(const struct import *import, struct onnx_value *value, int axis);
/* Finds the axes along which the first output repeats its elements, from those of the inputs. */
void node_find_repeats(const struct onnx_node *node);

/* batch_index.c: indices that grow with the sample. Whether known indices grow with the sample along an axis: each
 * sample has `rows` elements, which are those of the first sample plus `factor` for each further sample. This holds for
 * all indices, or for one component (of the last axis). The first sample's indices must be from 0 to factor - 1. */
bool array_is_batch_index(const struct array *array, int axis, int64_t rows, int component, int64_t factor);
/* The first sample's part of indices that grow with the sample, with an axis for its rows if there are several. */
tutti_tensor node_first_sample(const struct onnx_node *node, const struct array *array, int axis, int64_t rows);
/* Called before and after a node is added: check whether it may read indices that grow with the sample, and set
 * whether its output grows. */
tutti_status batch_index_check(const struct onnx_node *node, enum batch_index_rule rule);
tutti_status batch_index_finish(const struct onnx_node *node, enum batch_index_rule rule);

/* shapes.c, constants.c, arithmetic.c, evaluate.c, evaluate_lines.c: constant folding, of numbers that are known when
 * the file is read. */
node_function build_shape, build_size; /* shapes.c */
node_function build_constant, build_constant_of_shape, evaluate_constant_of_shape, build_eye_like, build_range,
    build_non_zero, build_if; /* constants.c */
node_function evaluate_arithmetic, evaluate_where, evaluate_clip, evaluate_is_inf, evaluate_cast,
    evaluate_reduce;                   /* arithmetic.c */
bool arithmetic_has(const char *name); /* whether evaluate_arithmetic() computes the operator */
node_function evaluate_gather, evaluate_flatten, evaluate_concat, evaluate_slice, evaluate_transpose, evaluate_expand,
    evaluate_reshape, evaluate_squeeze, evaluate_range; /* evaluate.c */
node_function evaluate_arg, evaluate_cumsum, evaluate_trilu, evaluate_tile, evaluate_split,
    evaluate_pad; /* evaluate_lines.c */
/* constants.c: a tensor with this number everywhere. One of the sizes can be a multiple of the number of samples: rows
 * of each sample. */
tutti_status node_filled(const struct onnx_node *node, const struct symbolic_integer *sizes, size_t rank, float number,
    struct operand *filled);

/* pointwise.c: element by element, and along axes. */
node_function build_pointwise, build_tensor, build_where, build_is_inf, build_selu, build_many, build_shrink,
    build_clip, build_hard_sigmoid, build_gelu, build_pow, build_mod, build_cast, build_div, build_dropout,
    build_identity, build_reduce, build_softmax;
/* The input and axis of Softmax, LogSoftmax and Hardmax. Before opset 13, all axes from this one on become one;
 * node_set_softmax_output() gives the result its `shape` back. */
tutti_status node_softmax_axis(const struct onnx_node *node, struct operand *x, tutti_shape *shape, int *axis);
tutti_status node_set_softmax_output(
    const struct onnx_node *node, tutti_tensor y, const struct operand *x, const tutti_shape *shape);
/* x - max - log(sum(exp(x - max))), along an axis of a sample. */
tutti_tensor node_log_softmax(const struct onnx_node *node, tutti_tensor x, int axis);

/* windows.c: convolutions and poolings. */
node_function build_conv, build_pool, build_global_pool, build_col2im;
/* Adds a convolution with the node's strides and so on. x: from node_batch_first() or operand_batch_first();
 * bias: may be NULL. */
tutti_status node_conv(const struct onnx_node *node, const char *operation, const struct operand *x,
    const struct operand *weight, const struct operand *bias);

/* conv_unbatched.c: Conv whose input has no batch. */
tutti_status node_conv_unbatched(const struct onnx_node *node, const struct operand *x);

/* max_pool.c: adds the indices of MaxPool. x: from node_batch_first(); `pooled`: the result of MaxPool. */
tutti_status node_max_pool_indices(const struct onnx_node *node, const struct operand *x, tutti_tensor pooled);
node_function build_max_unpool;

node_function build_batch_normalization; /* batch_norm.c */
node_function build_layer_normalization, build_group_normalization, build_instance_normalization, build_lrn,
    build_mean_variance_normalization; /* normalise.c */

/* products.c. node_matmul(): b is the input `second`. */
node_function build_gemm, build_matmul;
tutti_status node_matmul(const struct onnx_node *node, struct operand *a, struct operand *b, size_t second);

/* quantised.c: weights of DynamicQuantizeLSTM become those of LSTM. `scale`: the position of the scale; the zero
 * point is the next input. */
tutti_status node_quantised_gates(const struct onnx_node *node, size_t position, size_t scale);
node_function build_quantize_linear, build_dequantize_linear, build_dynamic_quantize_linear, build_quantised_matmul,
    build_quantised_conv;

node_function build_recurrent;                                              /* recurrent.c: LSTM, GRU, RNN */
node_function build_attention, build_rotary_embedding, build_swiglu;        /* attention.c */
node_function build_einsum;                                                 /* einsum.c */
node_function build_dft, build_stft, build_window, build_mel_weight_matrix; /* spectral.c */
node_function build_random, build_random_like, build_bernoulli;             /* random.c */
node_function build_nll_loss, build_softmax_cross_entropy;                  /* losses.c */

node_function build_reshape, build_flatten, build_squeeze;                             /* reshape.c */
node_function build_transpose, build_concat, build_split, build_expand;                /* movement.c */
node_function build_slice, build_pad, build_center_crop_pad, build_tile, build_blocks; /* rearrange.c */
node_function build_resize;                                                            /* resize.c */
/* movement.c: removes the axis from `one`, a single element of x along it. */
tutti_tensor node_without_axis(const struct onnx_node *node, const struct operand *x, tutti_tensor one, int axis);

node_function build_gather, build_elements, build_compress, build_tensor_scatter; /* gather.c: elements by indices */
node_function build_gather_nd, build_scatter_nd;                                  /* nd.c */
node_function build_grid_sample, build_affine_grid;                               /* grid.c */
node_function build_hardmax, build_top_k, build_scan, build_one_hot, build_trilu,
    build_reverse_sequence; /* lines.c: along an axis, element after element */
/* gather.c: the reduction of a scatter; NULL: the name is unknown. */
const char *node_reduction(const struct onnx_node *node);

node_function build_split_to_sequence, build_sequence_construct, build_sequence_at, build_sequence_length,
    build_sequence_insert; /* sequences.c */
node_function build_array_feature_extractor, build_label_encoder, build_linear_classifier, build_linear_regressor,
    build_normalizer, build_scaler, build_zip_map; /* linear.c: of ai.onnx.ml */

#endif
