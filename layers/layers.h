/* The operations, for operations that use one another. Each one names its inputs and outputs in its `struct operation`,
 * in the file that heads its declaration below (`tutti show MODEL --passes` prints them). Comments add what the names
 * do not say. Shapes include the batch dimension N.
 *
 *   x, y, w, bias   input, output and parameters of a layer
 *   dx, dy, dw, db  gradients of the loss with respect to these
 *   gamma, beta     scale and shift of a batch normalisation
 *   mean, rstd      mean and reciprocal standard deviation of the batch, outputs of batch_norm
 *   activation      the attributes activation, low and high
 *   constants       struct step_constants (graph/operation.h)
 *
 * What else a node can read and write is in graph/fusion.h. */
#ifndef LAYERS_LAYERS_H
#define LAYERS_LAYERS_H

#include "graph/operation.h"
#include "layers/pointwise.h"

/* conv2d.c, channel_sum.c
 *
 * conv2d_weight_gradient: attributes.shape is the shape of w; of conv2d_data_gradient, that of x.
 * channel_sum (attributes.axis)
 *     Sum over all axes except this one. */
extern const struct operation operation_conv2d, operation_conv2d_data_gradient, operation_conv2d_weight_gradient,
    operation_channel_sum;

/* dense.c: x [N, ..., features], w [units, features], y [N, ..., units] */
extern const struct operation operation_dense, operation_dense_data_gradient, operation_dense_weight_gradient;

/* batch_norm.c
 *
 * batch_norm
 *     batch_mean and batch_var are the "gradients" of the running statistics: mean and unbiased variance of the
 *     batch, times samples * loss_scale. y is absent if all its readers have FUSION_NORMALISED.
 * batch_norm_gradient
 *     With FUSION_MASKED, the derivative comes from y if the forward node added another tensor before its function,
 *     else from x, gamma and beta. dadd is the product, for the gradient of that other tensor.
 * fold_batch_norm
 *     Computes weights and bias of the layer before, once after loading, for inference. */
extern const struct operation operation_batch_norm, operation_batch_norm_gradient, operation_batch_norm_inference,
    operation_fold_batch_norm;

/* activation.c: the derivative of every activation is computed from its output y. */
extern const struct operation operation_activation, operation_activation_gradient;

/* convert.c
 *
 * convert (attributes.convert)
 *     y = scale[c] x + shift[c], f32, or i32 for x of u8, bool or i32. Inputs have no gradient, so it has none.
 * cast
 *     y is x as f32. */
extern const struct operation operation_convert, operation_cast;

/* concat.c
 *
 * concat (attributes.axis counts the batch dimension as 0)
 *     Joins the inputs along the axis.
 * window
 *     What x has from attributes.begins on, of attributes.shape; attributes.low where x has nothing. */
extern const struct operation operation_concat, operation_window;

/* reduce.c; attributes.axes: those of x, as bits, that become one number. y has attributes.shape: the sizes of x
 * without these axes, or with 1 there, or with other axes of size 1. It has no batch if the batch's axis is one of
 * these. */
extern const struct operation operation_reduce_sum, operation_reduce_mean, operation_reduce_max;

/* movement.c
 *
 * expand (attributes.shape, attributes.low)
 *     low x, repeated along the axes where x has size 1 or none.
 * transpose (attributes.order)
 *     y's axis i is x's axis order[i]. */
extern const struct operation operation_expand, operation_transpose;

/* reshape.c: y of attributes.shape is an alias of the memory of x; no launches.
 * reorder.c: y has the values of x in the layout attributes.axis; one of both is plain. */
extern const struct operation operation_reshape, operation_reorder;
/* Checks a shape asked for, which has the batch in front if x has; sets the one size that may be -1, and the axes. */
tutti_status reshape_resolve(const struct value *x, struct attributes *attributes);

/* pool.c; attributes.shape of gradients: the shape of x
 *
 * max_pool
 *     index is the position of the maximum in its window: u8, or i32 for windows of more than 255 pixels.
 * average_pool
 *     Global pooling is a kernel of the image's size.
 * adaptive_average_pool
 *     attributes.kernel is the output's size. */
extern const struct operation operation_max_pool, operation_max_pool_gradient, operation_average_pool,
    operation_average_pool_gradient, operation_adaptive_average_pool, operation_adaptive_average_pool_gradient;

/* dropout.c; attributes.probability, attributes.stream. Its gradient is dropout of dy with the same mask. */
extern const struct operation operation_dropout;

/* layer_norm.c; attributes.axis, the last one, and attributes.epsilon. mean and rstd are those of each row, for the
 * gradient. */
extern const struct operation operation_layer_norm, operation_layer_norm_gradient;

/* embedding.c: ids i32 [...], table [rows, width], y [..., width]. Numbers that are not of a row give zeros.
 * attributes.shape of the gradient: the shape of the table. */
extern const struct operation operation_embedding, operation_embedding_gradient;

/* matmul.c: a [..., m, k], b [..., k, n], y [..., m, n]; attributes.transpose_a, transpose_b: of the last two
 * dimensions, before the product. The dimensions in front are equal, or one input has none. */
extern const struct operation operation_matmul;

/* softmax.c, over the last dimension */
extern const struct operation operation_softmax, operation_softmax_gradient;

/* loss_classes.c: cross_entropy, nll; attributes.axis: of the classes; 0: the last one
 *     x are logits [N, ..., classes, ...], or for nll logarithms of probabilities. targets are labels, i32 of x's shape
 *     without the classes; those below 0 are excluded.
 * loss_elements.c: mean_squared_error, l1, huber, bce_with_logits
 *     targets have x's shape.
 *
 * metrics, f32 [2], are sums over the samples, without loss_scale and weight: of the losses, each the mean over a
 * sample's labels or elements, and of the shares that are correct (0 where the operation does not count them). dx is
 * multiplied by constants.loss_scale and attributes.loss.weight. */
extern const struct operation operation_cross_entropy, operation_nll;
extern const struct operation operation_mean_squared_error, operation_l1, operation_huber, operation_bce_with_logits;

/* loss_total.c; attributes.loss.weights and counted
 *     y [2 + 2 * inputs]: the weighted sum of the losses and the correct ones of input `counted`, then each input. An
 *     input whose weight is 0 is not in the sum, whatever it is. */
extern const struct operation operation_loss_total;

/* loss.c: the operation of tutti_training.loss; NULL for TUTTI_LOSS_NONE and for numbers that are no loss. */
const struct operation *loss_find(tutti_loss loss);
/* The value that holds the targets of these predictions, which are batched: type, shape, batched. */
struct value loss_targets(const struct operation *loss, const struct value *predictions);

#endif
