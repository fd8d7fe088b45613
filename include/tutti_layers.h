/* Layers and losses, which are added to a network. tutti.h includes this header and has its conventions. Layers for
 * sequences and signals are in tutti_sequences.h. */
#ifndef TUTTI_LAYERS_H
#define TUTTI_LAYERS_H

#include "tutti.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_dense_options {
    size_t size; /* sizeof(tutti_dense_options), or 0 */
    const char *name;
    bool no_bias;
    /* Initialisers of weights and biases. Default of bias_init: PyTorch's uniform if init is TUTTI_INIT_DEFAULT, else
     * zeros. */
    tutti_initialiser init, bias_init;
    float init_scale; /* standard deviation for TUTTI_INIT_NORMAL; 0: 0.01 */
    /* A parameter that this layer shares with others, or a tensor made of parameters, instead of its own; NULL: its
     * own.
     */
    const tutti_tensor *weight, *bias;
} tutti_dense_options;
/* y = x W^T + b over the last dimension: x [..., features] -> y [..., units].
 * Parameters: weight W [units, features], bias b [units]. */
TUTTI_API tutti_tensor tutti_dense(
    tutti_network *network, tutti_tensor x, int64_t units, const tutti_dense_options *options);

typedef struct tutti_conv2d_options {
    size_t size; /* sizeof(tutti_conv2d_options), or 0 */
    const char *name;
    int64_t stride, padding, dilation, groups; /* of both directions, vertical and horizontal; 0: 1, 0, 1, 1 */
    /* Horizontal values, if they differ from the vertical ones. 0: as vertical. padding_w -1: no padding. */
    int64_t kernel_w, stride_w, padding_w, dilation_w;
    bool no_bias;
    /* Initialisers of weights and biases. Default of bias_init: PyTorch's uniform if init is TUTTI_INIT_DEFAULT, else
     * zeros. */
    tutti_initialiser init, bias_init;
    float init_scale; /* standard deviation for TUTTI_INIT_NORMAL; 0: 0.01 */
    /* A parameter that this layer shares with others, or a tensor made of parameters, instead of its own; NULL: its
     * own.
     */
    const tutti_tensor *weight, *bias;
} tutti_conv2d_options;
/* Cross-correlation with zero padding, as PyTorch's Conv2d: x [C, H, W] -> y [channels, OH, OW], where
 *   OH = floor((H + 2 padding - dilation (kernel - 1) - 1) / stride) + 1, and OW likewise with the horizontal values.
 * `groups` must divide C and `channels`; groups == C is a depthwise convolution.
 * Parameters: weight [channels, C / groups, kernel, kernel_w], bias [channels]. */
TUTTI_API tutti_tensor tutti_conv2d(
    tutti_network *network, tutti_tensor x, int64_t channels, int64_t kernel, const tutti_conv2d_options *options);

typedef struct tutti_conv_options {
    size_t size; /* sizeof(tutti_conv_options), or 0 */
    const char *name;
    /* One value for each axis; 0: that of the axis before it; for the first axis, 1. */
    int64_t stride[3], dilation[3];
    /* Padding before each axis; 0: that of the axis before it, -1: none. Padding after it; 0: as before, -1:
     * none. */
    int64_t padding[3], padding_after[3];
    int64_t output_padding[3]; /* of tutti_conv_transpose(): elements after the last of each axis of the result */
    int64_t groups;            /* 0: 1 */
    bool no_bias;
    /* Initialisers of weights and biases. Default of bias_init: PyTorch's uniform if init is TUTTI_INIT_DEFAULT, else
     * zeros. */
    tutti_initialiser init, bias_init;
    float init_scale; /* standard deviation for TUTTI_INIT_NORMAL; 0: 0.01 */
    /* A parameter that this layer shares with others, instead of its own; NULL: its own. */
    const tutti_tensor *weight, *bias;
} tutti_conv_options;
/* Convolution along one to three axes, as PyTorch's Conv1d, Conv2d and Conv3d: x [C, L...] -> y [channels, OL...],
 * where OL = floor((L + padding + padding_after - dilation (kernel - 1) - 1) / stride) + 1 along each axis. `kernel`
 * has a size for each axis; `groups` must divide C and `channels`. Parameters: weight [channels, C / groups,
 * kernel...], bias [channels]. */
TUTTI_API tutti_tensor tutti_conv(
    tutti_network *network, tutti_tensor x, int64_t channels, tutti_shape kernel, const tutti_conv_options *options);
/* The same, with a pointer to the one to three sizes of the kernel. */
TUTTI_API tutti_tensor tutti_conv_sized(tutti_network *network, tutti_tensor x, int64_t channels, const int64_t *kernel,
    int rank, const tutti_conv_options *options);
/* Transposed convolution, as PyTorch's ConvTranspose1d and so on: x [C, L...] -> y [channels, OL...], where
 *   OL = stride (L - 1) + dilation (kernel - 1) + 1 + output_padding - padding - padding_after along each axis.
 * Parameters: weight [C, channels / groups, kernel...], bias [channels]. */
TUTTI_API tutti_tensor tutti_conv_transpose(
    tutti_network *network, tutti_tensor x, int64_t channels, tutti_shape kernel, const tutti_conv_options *options);
/* The same, with a pointer to the one to three sizes of the kernel. */
TUTTI_API tutti_tensor tutti_conv_transpose_sized(tutti_network *network, tutti_tensor x, int64_t channels,
    const int64_t *kernel, int rank, const tutti_conv_options *options);

typedef enum tutti_pooling {
    TUTTI_POOL_MAX,
    TUTTI_POOL_AVERAGE,
    TUTTI_POOL_LP /* (sum of |x|^p)^(1 / p) */
} tutti_pooling;
typedef struct tutti_pooling_options {
    size_t size; /* sizeof(tutti_pooling_options), or 0 */
    const char *name;
    int64_t stride[3];                    /* of each axis; 0: the kernel's size */
    int64_t dilation[3];                  /* as in tutti_conv_options */
    int64_t padding[3], padding_after[3]; /* as in tutti_conv_options */
    bool ceil_mode;                       /* round output sizes up, as PyTorch's ceil_mode */
    bool exclude_padding;                 /* of averages: divide by the number of elements inside the input only */
    float p;                              /* of TUTTI_POOL_LP, at least 1; 0: 2 */
} tutti_pooling_options;
/* Pooling along one to three axes of x [C, L...]; `kernel` has a size for each. The sizes of the result are those of
 * tutti_conv(). */
TUTTI_API tutti_tensor tutti_pool(tutti_network *network, tutti_tensor x, tutti_pooling kind, tutti_shape kernel,
    const tutti_pooling_options *options);
/* The same, with a pointer to the one to three sizes of the kernel. */
TUTTI_API tutti_tensor tutti_pool_sized(tutti_network *network, tutti_tensor x, tutti_pooling kind,
    const int64_t *kernel, int rank, const tutti_pooling_options *options);

typedef struct tutti_pool_options {
    size_t size; /* sizeof(tutti_pool_options), or 0 */
    const char *name;
    int64_t stride, padding; /* 0: the kernel's size, and no padding; padding is at most half the kernel's size */
    /* Horizontal values, if they differ from the vertical ones. 0: as vertical. padding_w -1: no padding. */
    int64_t kernel_w, stride_w, padding_w;
    bool ceil_mode;       /* round output sizes up, as PyTorch's ceil_mode */
    bool exclude_padding; /* average pooling: divide by the number of pixels inside the image only */
} tutti_pool_options;
/* x [C, H, W] -> y [C, OH, OW]: the maximum, or the mean, of each window. Without ceil_mode,
 * OH = floor((H + 2 padding - kernel) / stride) + 1. */
TUTTI_API tutti_tensor tutti_max_pool(
    tutti_network *network, tutti_tensor x, int64_t kernel, const tutti_pool_options *options);
TUTTI_API tutti_tensor tutti_average_pool(
    tutti_network *network, tutti_tensor x, int64_t kernel, const tutti_pool_options *options);
/* [C, H, W] -> [C, 1, 1]: the mean, or the maximum, of each channel. */
TUTTI_API tutti_tensor tutti_global_average_pool(tutti_network *network, tutti_tensor x);
TUTTI_API tutti_tensor tutti_global_max_pool(tutti_network *network, tutti_tensor x);
/* [C, H, W] -> [C, height, width], with the windows of PyTorch's adaptive_avg_pool2d. */
TUTTI_API tutti_tensor tutti_adaptive_average_pool(
    tutti_network *network, tutti_tensor x, int64_t height, int64_t width);

typedef struct tutti_batch_norm_options {
    size_t size; /* sizeof(tutti_batch_norm_options), or 0 */
    const char *name;
    float epsilon; /* 0: 1e-5 */
    /* Weight of the newest batch in the running statistics, as in PyTorch:
     * running = (1 - momentum) running + momentum batch. 0: 0.1 */
    float momentum;
    /* A parameter that this layer shares with others, or a tensor made of parameters or a constant, instead of its own;
     * NULL: its own. */
    const tutti_tensor *weight, *bias;
    /* Running statistics of another batch normalisation, from tutti_find_parameter(), instead of its own; NULL: its
     * own. Each use updates them, in the order of the layers, with the momentum of the layer that made them. */
    const tutti_tensor *running_mean, *running_var;
} tutti_batch_norm_options;
/* Batch normalisation (Ioffe and Szegedy 2015): y = (x - mean) / sqrt(variance + epsilon) * weight + bias, for each
 * channel of x [C, H, W] or each feature of x [C]. Training uses the statistics of a device's part of the batch, or of
 * the whole batch with tutti_training.sync_batchnorm. Inference uses the running statistics.
 * Parameters [C]: weight, bias; running statistics [C]: running_mean, running_var. */
TUTTI_API tutti_tensor tutti_batch_norm(
    tutti_network *network, tutti_tensor x, const tutti_batch_norm_options *options);
/* Layer normalisation (Ba, Kiros and Hinton 2016): y = (x - mean) / sqrt(variance + epsilon) * weight + bias, with mean
 * and variance over the last dimension, in training and inference. epsilon 0: 1e-5. name: NULL or the layer's.
 * Parameters [last dimension]: weight, bias. */
TUTTI_API tutti_tensor tutti_layer_norm(tutti_network *network, const char *name, tutti_tensor x, float epsilon);

/* Activations and arithmetic work element by element; the output has the shape of the input. */
TUTTI_API tutti_tensor tutti_relu(tutti_network *network, tutti_tensor x);  /* max(x, 0) */
TUTTI_API tutti_tensor tutti_relu6(tutti_network *network, tutti_tensor x); /* min(max(x, 0), 6) */
/* min(max(x, low), high); low must be below high. */
TUTTI_API tutti_tensor tutti_clip(tutti_network *network, tutti_tensor x, float low, float high);
/* x if x > 0, else slope * x; slope must be positive and finite. */
TUTTI_API tutti_tensor tutti_leaky_relu(tutti_network *network, tutti_tensor x, float slope);
TUTTI_API tutti_tensor tutti_sigmoid(tutti_network *network, tutti_tensor x); /* 1 / (1 + exp(-x)) */
TUTTI_API tutti_tensor tutti_tanh(tutti_network *network, tutti_tensor x);
/* Shapes of samples are broadcast as numpy does: sizes are compared from the last axis on, and a size of 1, or an axis
 * that is missing, is repeated. Parameters and constants can be inputs. */
TUTTI_API tutti_tensor tutti_add(tutti_network *network, tutti_tensor a, tutti_tensor b);
TUTTI_API tutti_tensor tutti_mul(tutti_network *network, tutti_tensor a, tutti_tensor b);
/* Products of the matrices in the last two dimensions: a [..., m, k], b [..., k, n] -> y [..., m, n]. With transpose_a,
 * a is [..., k, m]; with transpose_b, b is [..., n, k]. The leading dimensions are broadcast as numpy does: a missing
 * one, one of size 1, and the batch of an input that has none are repeated. A vector is one row as a, one column as b,
 * and y lacks that dimension. Parameters and constants can be inputs. name: NULL or the layer's. */
TUTTI_API tutti_tensor tutti_matmul(
    tutti_network *network, const char *name, tutti_tensor a, tutti_tensor b, bool transpose_a, bool transpose_b);
/* Einstein's summation, as numpy's einsum: "bij,bjk->bik". Letters name the axes of samples, without the batch, which
 * every result has if an input has it; "..." stands for axes that are broadcast. Each of 1 to 8 inputs is joined to
 * those before it by one product of matrices. Axes of diagonals ("ii->i") have a size of at most 4096. Errors:
 * TUTTI_INVALID, TUTTI_SHAPE. */
TUTTI_API tutti_tensor tutti_einsum(
    tutti_network *network, const char *equation, const tutti_tensor *inputs, int count);
/* The k largest elements of x along an axis of a sample, the smallest ones unless `largest`, the best first; axis -1
 * is the last one. That axis of the result has size k. The first of equal elements is better; NaN is larger than all
 * numbers. indices: receives their positions along the axis of x, as float32 and without a gradient; or NULL. Errors:
 * TUTTI_INVALID if the axis does not exist, TUTTI_SHAPE if it has less than k elements or more than 2^24. */
TUTTI_API tutti_tensor tutti_topk(
    tutti_network *network, tutti_tensor x, int64_t k, int axis, bool largest, tutti_tensor *indices);

/* Joins any number of inputs, at least 1, along a dimension of the sample: 0 is the channels of [C, H, W]. All other
 * sizes must agree. */
TUTTI_API tutti_tensor tutti_concat(tutti_network *network, const tutti_tensor *inputs, int count, int dimension);
/* Gives the same elements another shape of one to seven sizes. One size may be -1: it is computed from the others.
 * TUTTI_SEQUENCE stays a size of its own. */
TUTTI_API tutti_tensor tutti_reshape(tutti_network *network, tutti_tensor x, tutti_shape shape);
/* Reshapes as tutti_reshape() does; takes a pointer to one to seven sizes. */
TUTTI_API tutti_tensor tutti_reshape_sized(tutti_network *network, tutti_tensor x, const int64_t *sizes, int rank);
/* [...] -> [elements of a sample]. */
TUTTI_API tutti_tensor tutti_flatten(tutti_network *network, tutti_tensor x);
/* Dropout (Srivastava et al. 2014). In training, each element becomes 0 with this probability, else it is divided by
 * 1 - probability; 0 <= probability < 1. In inference, x is unchanged. The mask depends only on the seed, the step, the
 * layer and the element's position in the whole batch, so it is the same on any devices and with any shares. */
TUTTI_API tutti_tensor tutti_dropout(tutti_network *network, tutti_tensor x, float probability);
/* exp(x) / sum(exp(x)) over the last dimension. The loss TUTTI_CROSS_ENTROPY needs logits, not the output of this. */
TUTTI_API tutti_tensor tutti_softmax(tutti_network *network, tutti_tensor x);
/* x - log(sum(exp(x))) along an axis of a sample; -1 is the last one. tutti_nll() takes such logarithms. Errors:
 * TUTTI_INVALID if there is no such axis. */
TUTTI_API tutti_tensor tutti_log_softmax(tutti_network *network, tutti_tensor x, int axis);

/* Constants, as tutti_constant() adds: the numbers start, start + step, ... before `end`, [count]. Errors:
 * TUTTI_INVALID if there are no such numbers, or more than 2^28. */
TUTTI_API tutti_tensor tutti_arange(tutti_network *network, double start, double end, double step);
/* One number in all elements. Errors: TUTTI_SHAPE if there are not 1 to 8 sizes, all at least 1, or more than 2^28
 * elements. */
TUTTI_API tutti_tensor tutti_full(tutti_network *network, const int64_t *sizes, int rank, float value);

/* Adds any operation by its name. Names are in lower case with underscores (layer_norm, reduce_mean);
 * docs/operations.md lists them with their inputs and attributes, and the ONNX operator if one maps directly. Inputs
 * can be parameters: tutti_op(network, "dense", { x, weight, bias }, 3, NULL). `attributes` is a text such as "axes=-1
 * keepdims=0 name=mean" or NULL: axes are those of a sample, negative ones count from the last. Errors:
 * TUTTI_UNSUPPORTED if there is no such operation; TUTTI_INVALID for an attribute that it does not have. */
TUTTI_API tutti_tensor tutti_op(
    tutti_network *network, const char *operation, const tutti_tensor *inputs, int input_count, const char *attributes);

/* Losses. Each returns a tensor for tutti_training.losses: the mean of its formula over the labels or elements of a
 * sample, and over the samples. Gradients go to the predictions only, not to the targets. Targets that are floats may
 * also be a constant, or made of constants and parameters: these are broadcast to the predictions' shape as for
 * tutti_add(). Class numbers may be a constant of int32, which is broadcast to the labels' shape; [1] for one label. */
typedef struct tutti_loss_options {
    size_t size; /* sizeof(tutti_loss_options), or 0 */
    const char *name;
    /* tutti_cross_entropy(), tutti_nll(). Axis of a sample that has the classes: 0 as in PyTorch, -1 for the last one.
     */
    int class_axis;
    /* The target of a label is 1 - label_smoothing for its class and label_smoothing / classes for all (Szegedy et al.
     * 2016). */
    float label_smoothing;
    /* Labels below 0 are excluded: their loss is 0, and they count among the samples. So is the label `ignored`. */
    bool has_ignored;
    int32_t ignored;
    float delta; /* tutti_huber(); 0: 1 */
    /* tutti_cross_entropy(), tutti_nll(). A weight of at least 0 for each class: the loss of a label is multiplied by
     * the weight of its class; with label_smoothing, each class's part of the loss by the weight of that class. The
     * weights are copied. The loss stays the mean over all labels and samples, as PyTorch's `weight` with
     * reduction="none" and a mean() after it: PyTorch's reduction="mean" divides by the sum of the labels' weights
     * instead, which differs from batch to batch. So any division of a batch over devices and hosts trains the same.
     * Weights whose mean over the labels of all samples is 1 keep the scale of the loss. NULL and 0: no weights. */
    const float *class_weights;
    int class_weight_count; /* number of classes */
} tutti_loss_options;
/* -log(softmax(logits)[label]). Logits have any shape; targets are int32, one for each position: logits [classes] take
 * targets [], [classes, H, W] take [H, W], and with class_axis -1 [T, classes] take [T]. Accuracy: the share of labels
 * whose class has the largest logit.
 * Float targets of the logits' shape are probabilities p: the loss of a position is the sum over its classes of
 * -w q log(softmax(logits)), where q = (1 - label_smoothing) p + label_smoothing / classes and w are the class weights,
 * as PyTorch has it. No position is excluded. Accuracy: the likeliest class is the one with the largest logit. */
TUTTI_API tutti_tensor tutti_cross_entropy(
    tutti_network *network, tutti_tensor logits, tutti_tensor targets, const tutti_loss_options *options);
/* -x[label] for logarithms of probabilities; targets as for tutti_cross_entropy(). */
TUTTI_API tutti_tensor tutti_nll(
    tutti_network *network, tutti_tensor log_probabilities, tutti_tensor targets, const tutti_loss_options *options);
/* -t log(sigmoid(x)) - (1 - t) log(1 - sigmoid(x)) for targets t from 0 to 1 of the logits' shape. Accuracy: the share
 * of elements where x > 0 if and only if t > 0.5. */
TUTTI_API tutti_tensor tutti_bce_with_logits(
    tutti_network *network, tutti_tensor logits, tutti_tensor targets, const tutti_loss_options *options);
/* (x - t)^2; |x - t|; and (x - t)^2 / 2 where |x - t| <= delta, else delta (|x - t| - delta / 2) (Huber 1964). Targets
 * are floats of x's shape. */
TUTTI_API tutti_tensor tutti_mse(
    tutti_network *network, tutti_tensor x, tutti_tensor targets, const tutti_loss_options *options);
TUTTI_API tutti_tensor tutti_l1(
    tutti_network *network, tutti_tensor x, tutti_tensor targets, const tutti_loss_options *options);
TUTTI_API tutti_tensor tutti_huber(
    tutti_network *network, tutti_tensor x, tutti_tensor targets, const tutti_loss_options *options);

typedef struct tutti_ctc_options {
    size_t size; /* sizeof(tutti_ctc_options), or 0 */
    const char *name;
    int blank; /* the class of a frame without a label, 0 as in PyTorch */
    /* Frames of each sample, one number, float32 or int32: those after them have no loss. NULL: all. */
    const tutti_tensor *lengths;
    /* A sample whose labels do not fit into its frames (each has one at least, and equal neighbours a blank between
     * them) has an infinite loss, and its gradient is NaN: a training step fails. true: both are 0. It counts in the
     * mean. */
    bool zero_infinity;
    bool sum; /* a sample's loss is not divided by the number of its labels */
} tutti_ctc_options;
/* Connectionist temporal classification (Graves et al. 2006), for labels in order whose positions are not known, such
 * as the letters of a recording: minus the logarithm of the probability of all ways to spread the labels over the
 * frames, with blanks between, over the number of labels, at least 1. So the loss is PyTorch's CTCLoss with
 * reduction="mean", but for logits [frames, classes], of which the softmax is taken here: log_softmax before it changes
 * nothing. `frames` can be TUTTI_SEQUENCE. Targets are int32 [labels], which end at the first number below 0. A label
 * that is the blank, or not below the number of classes, is refused, as for tutti_cross_entropy(). options may be NULL.
 */
TUTTI_API tutti_tensor tutti_ctc(
    tutti_network *network, tutti_tensor logits, tutti_tensor targets, const tutti_ctc_options *options);

typedef struct tutti_mean_options {
    size_t size; /* sizeof(tutti_mean_options), or 0 */
    const char *name;
    /* Weights of samples, or of their elements: x is multiplied by them as tutti_mul() does. So an input of rank 0 has
     * one number for each sample. The loss stays the mean over all elements and samples: it is not divided by the sum
     * of the weights, so any division of a batch over devices and hosts trains the same. NULL: none. */
    const tutti_tensor *weights;
} tutti_mean_options;
/* A loss of one's own: the mean of x over the elements of a sample, and over the samples. x is any float32 tensor that
 * depends on an input, of any shape: one number for each sample, or for each sample and position. Gradients go to all
 * of which x and the weights are made. Errors: TUTTI_INVALID if x is not float32, TUTTI_SHAPE if the weights do not
 * fit. */
TUTTI_API tutti_tensor tutti_mean(tutti_network *network, tutti_tensor x, const tutti_mean_options *options);

#ifdef __cplusplus
}
#endif

#endif
