/* The operators that are read: operators.c has the table. */
#ifndef ONNX_OPERATORS_H
#define ONNX_OPERATORS_H

#include "onnx/import.h"

/* What an operator may do with integers that count samples (counting.c). "A column": only one of them, along the last
 * axis, counts. */
enum onnx_counting {
    COUNTING_NEVER,
    COUNTING_SHAPE,      /* it does not read the elements */
    COUNTING_SAME,       /* its output counts as its first input does, also a column */
    COUNTING_MOVED,      /* the same, but not a column, which moves */
    COUNTING_SUM,        /* factors are added */
    COUNTING_DIFFERENCE, /* factors are subtracted */
    COUNTING_JOINED,     /* along the last axis, columns that count, and others */
    COUNTING_INDEX,      /* input 1 is an index of samples */
    COUNTING_INDICES,    /* input 1 has a column that is an index of samples */
    COUNTING_SIZES,      /* only the sizes of its output may be read: those that its inputs are broadcast to */
    COUNTING_KNOWN       /* only arrays that are computed when the file is read, for STAND_IN samples */
};

/* One line of the table. */
struct onnx_operator {
    const char *name;
    step_function *build;  /* NULL: it is for known integers only */
    step_function *fold;   /* if all inputs are known numbers; NULL: none */
    const char *operation; /* for `build`: a name of tutti_op() */
    int type;              /* of the first output's elements; 0: that of the first input */
    bool overflows;        /* its result can be a number that the integers of its inputs' type do not have */
    enum onnx_counting counting;
    const char *domain; /* NULL: ONNX's own */
};
/* NULL if Tutti does not have it. */
const struct onnx_operator *operator_find(const char *name);

/* Brings inputs to shapes that Tutti broadcasts to what ONNX does, where the batch is an axis as others. *place: of the
 * result. */
tutti_status step_broadcast(const struct step *step, tutti_tensor *tensors, size_t count, struct place *place);

/* place.c */
bool place_equal(const struct place *a, const struct place *b);
/* Takes an axis away from an operand without a batch: of size 1, or of `rows` elements for each of the file's samples,
 * if all are alike. */
tutti_status step_drop_axis(const struct step *step, size_t position, int axis, int64_t rows, struct operand *operand);
/* An array with the same part for each of the file's samples along its first axis, as the initial state of a cell is,
 * gets the batch there; another operand stays as it is. */
tutti_status step_initial_state(const struct step *step, size_t position, struct operand *operand);
/* Takes the first axis of an input, of which only its size told that it is the batch, for one of a value that has none.
 * False: the batch is certain, or there is none. */
bool step_as_fixed(const struct step *step, size_t position, struct operand *operand);
/* Gives a sample an axis at `axis`, of the rows that it has along the batch, or of size 1. *sample: its shape. */
tutti_tensor step_with_rows(const struct step *step, tutti_tensor x, tutti_shape *sample, int axis, int64_t rows);
/* The reverse. */
tutti_tensor step_without_rows(const struct step *step, tutti_tensor x, int axis);
/* Gives an operand without a batch the place of another one. */
tutti_status step_like(const struct step *step, size_t position, const struct operand *like, struct operand *operand);

/* counting.c: which samples integers are of. A file for any number of samples has arrays of so many integers for
 * STAND_IN samples: a prime, which no other axis has as its size. import_samples(): this number or the file's; 0: none.
 */
enum { STAND_IN = 53 };
int64_t import_samples(const struct import *import);
/* Symbols in a list of sizes become numbers of samples, for arrays that have an axis for them. */
tutti_status step_sizes(const struct step *step, size_t position, int64_t *list, int most, int *count);
/* By how much the parts of an array along an axis differ from each other; 0: they are the same. False: neither. */
bool array_is_linear(const struct array *array, int axis, int64_t *factor);
/* Whether known indices are those of the first of `rows` elements for each sample along an axis, and `factor` more for
 * each further sample: all numbers, or those of one component (of the last axis). The first sample's lie from 0 to
 * factor - 1. */
bool array_counts(const struct array *array, int axis, int64_t rows, int component, int64_t factor);
/* The first sample's part of such indices, with an axis for its rows if there are several. */
tutti_tensor step_first_sample(const struct step *step, const struct array *array, int axis, int64_t rows);
/* Before and after a node is added: whether it may read numbers that count samples, and whether its output does. */
tutti_status counting_check(const struct step *step, enum onnx_counting kind);
tutti_status counting_finish(const struct step *step, enum onnx_counting kind);

/* reshape.c: "2,0,1"; axes of the file as bits; what Reshape does. */
struct list {
    char text[160];
};
struct list list_print(const int64_t *numbers, int count);
tutti_status axes_read(const int64_t *axes, int count, int rank, unsigned *bits);
tutti_status step_reshape_to(const struct step *step, const struct operand *x, const struct array *asked);
/* Another shape of a tensor, of a sample if it has a batch; another order of its axes. */
tutti_tensor step_reshape(const struct step *step, tutti_tensor x, const tutti_shape *shape);
tutti_tensor step_permuted(const struct step *step, tutti_tensor x, const int *order, int rank);
/* movement.c: elements `start` to `end` - 1 along an axis of a sample; one of them, without its axis, which x has. */
tutti_tensor step_without_axis(const struct step *step, const struct operand *x, tutti_tensor one, int axis);
tutti_tensor step_cut(const struct step *step, tutti_tensor x, int axis, int64_t start, int64_t end);

/* shapes.c: a tensor with this number everywhere. One of the sizes can be a multiple of the number of samples: rows of
 * each sample. */
tutti_status step_filled(
    const struct step *step, const struct extent *sizes, size_t rank, float number, struct operand *filled);

/* shapes.c, fold.c: numbers that are known when the file is read. */
step_function build_shape, build_size, build_constant, build_constant_of_shape, build_constants_of_samples;
bool extent_multiply(struct extent a, struct extent b, struct extent *product);
step_function fold_arithmetic, fold_where, fold_clip, fold_is_inf, fold_cast, fold_cast_like,
    fold_reduce;                                                                  /* arithmetic.c */
step_function fold_arg, fold_cumsum, fold_trilu, fold_tile, fold_split, fold_pad; /* fold_lines.c */
step_function fold_gather, fold_flatten, fold_concat, fold_slice, fold_transpose, fold_expand, fold_reshape,
    fold_squeeze, fold_unsqueeze, fold_range;

/* windows.c: convolutions and poolings. */
step_function build_conv, build_pool, build_global_pool, build_col2im;
/* With the node's strides and so on. x: of operand_as_rows(); bias: or NULL. */
tutti_status step_conv(const struct step *step, const char *operation, const struct operand *x,
    const struct operand *weight, const struct operand *bias);

/* conv_weight.c: Conv of what no sample changes. */
tutti_status step_conv_of_weight(const struct step *step, const struct operand *x);

/* max_pool.c; the indices of MaxPool as step_rows() gave x, of which it made `pooled`. */
step_function build_max_unpool;
tutti_status step_max_pool_indices(const struct step *step, const struct operand *x, tutti_tensor pooled);

/* layers.c: batch normalisation, products. */
step_function build_batch_normalization, build_gemm, build_matmul;
/* `second` is the position of b. */
tutti_status step_matmul(const struct step *step, struct operand *a, struct operand *b, size_t second);

/* quantised.c; weights of DynamicQuantizeLSTM become those of LSTM. `scale`: its position, the zero's is the next one.
 */
tutti_status step_quantised_gates(const struct step *step, size_t position, size_t scale);
step_function build_quantize_linear, build_dequantize_linear, build_dynamic_quantize_linear, build_quantised_matmul,
    build_quantised_conv;

/* rearrange.c, resize.c */
step_function build_slice, build_pad, build_center_crop_pad, build_tile, build_blocks, build_resize;

/* normalise.c: other normalisations. */
step_function build_layer_normalization, build_group_normalization, build_instance_normalization, build_lrn,
    build_lp_normalization, build_mean_variance_normalization;

/* recurrent.c: LSTM, GRU, RNN. */
step_function build_recurrent;

/* einsum.c */
step_function build_einsum;

/* attention.c */
step_function build_attention, build_rotary_embedding, build_swiglu;

/* gather.c: elements by indices. lines.c: along an axis, element after element. constants.c: known when a file is read.
 */
step_function build_gather, build_elements, build_compress, build_tensor_scatter;
step_function build_gather_nd, build_scatter_nd;     /* nd.c */
const char *step_reduction(const struct step *step); /* of a scatter; NULL: there is none of this name */
step_function build_arg, build_hardmax, build_top_k, build_scan, build_one_hot, build_trilu, build_reverse_sequence;
step_function build_grid_sample; /* grid.c */
step_function build_eye_like, build_range, build_non_zero, build_if;

/* linear.c: of ai.onnx.ml */
step_function build_array_feature_extractor, build_label_encoder, build_linear_classifier, build_linear_regressor,
    build_normalizer, build_scaler;

/* sequences.c */
step_function build_split_to_sequence, build_sequence_construct, build_sequence_at, build_sequence_length,
    build_sequence_insert, build_sequence_erase;

/* spectral.c */
step_function build_dft, build_stft, build_hann_window, build_hamming_window, build_blackman_window,
    build_mel_weight_matrix;

/* reshape.c, movement.c: other shapes and parts of values. */
step_function build_reshape, build_flatten, build_squeeze, build_unsqueeze, build_transpose, build_concat, build_split,
    build_expand;

/* pointwise.c: the input and axis of Softmax, LogSoftmax and Hardmax. Before opset 13 all axes from this one on become
 * one; `shape` is what step_softmax_done() gives the result back. */
tutti_status step_softmax_axis(const struct step *step, struct operand *x, tutti_shape *shape, int *axis);
tutti_status step_softmax_done(
    const struct step *step, tutti_tensor y, const struct operand *x, const tutti_shape *shape);

/* random.c */
step_function build_random, build_random_like, build_bernoulli;

/* losses.c */
step_function build_nll_loss, build_softmax_cross_entropy;
/* x - max - log(sum(exp(x - max))), along an axis of a sample. */
tutti_tensor step_log_softmax(const struct step *step, tutti_tensor x, int axis);

/* pointwise.c: element by element, and along axes. */
step_function build_pointwise, build_where, build_is_inf, build_selu, build_alpha, build_many, build_shrink, build_clip,
    build_hard_sigmoid, build_gelu, build_pow, build_mod, build_cast, build_cast_like, build_div, build_dropout,
    build_identity, build_reduce, build_softmax;

#endif
