/* The operations, for passes that append nodes and for operations that use one another.
 *
 * Each list below is headed by the file that defines its operations. A line lists inputs -> outputs, in order; inputs
 * and outputs in [brackets] are optional, and NO_VALUE if absent. Shapes include the batch dimension N.
 *
 *   x, y, w, bias   input, output and parameters of a layer
 *   dx, dy, dw, db  gradients of the loss with respect to these
 *   gamma, beta     scale and shift of a batch normalisation
 *   mean, rstd      mean and reciprocal standard deviation of the batch, outputs of batch_norm
 *   activation      the attributes activation, low and high
 *   constants       struct step_constants (graph/operation.h)
 *   statistics      partial sums over a tensor, made by the node that writes it (graph/operation.h) */
#ifndef LAYERS_LAYERS_H
#define LAYERS_LAYERS_H

#include "graph/operation.h"
#include "layers/pointwise.h"

/* conv2d.c
 *
 * conv2d
 *   x, w, [bias] -> y, [statistics of y]
 *   x, w, [bias], gamma, beta, mean, rstd -> y, [statistics of y]
 *       Normalises x and applies `activation` while loading it; the normalised tensor is not stored.
 *
 * conv2d_data_gradient, attributes.shape: the shape of x
 *   dy, w -> dx
 *   dy, w, z -> dx
 *       z is the output of `activation`, which produced x. Multiplies dx by the derivative of the activation, so
 *       activation_gradient is not needed.
 *   dy, w, x, gamma, [beta], mean, rstd, [z] -> g, statistics of g, [dw]
 *       For a convolution whose input is the output of batch_norm, with `activation`, on x. g is the gradient before
 *       the activation and statistics are the sums that batch_norm_gradient needs. z is the output of the activation;
 *       it is present if the batch normalisation added another tensor before the activation. dw is the gradient of
 *       the weights of the convolution that normalises x while loading it.
 *
 * conv2d_weight_gradient, attributes.shape: the shape of w
 *   x, dy -> dw
 *   x, dy, -, gamma, beta, mean, rstd -> dw
 *       Normalises x and applies `activation` while loading it. The third input is NO_VALUE.
 *
 * channel_sum (channel_sum.c)
 *   dy -> db
 *       Sum over all dimensions except 1 if dy has rank 4, else over all except the last. */
extern const struct operation operation_conv2d, operation_conv2d_data_gradient, operation_conv2d_weight_gradient,
    operation_channel_sum;

/* dense.c
 *
 * dense
 *   x [N, ..., features], w [units, features], [bias] -> y [N, ..., units]
 *
 * dense_data_gradient
 *   dy, w -> dx
 *   dy, w, z -> dx
 *       z is the output of `activation`, as for conv2d_data_gradient.
 *
 * dense_weight_gradient
 *   x, dy -> dw, [db]
 *       Without the output db, channel_sum computes it. */
extern const struct operation operation_dense, operation_dense_data_gradient, operation_dense_weight_gradient;

/* batch_norm.c
 *
 * batch_norm
 *   x, gamma, beta, running_mean, running_var, constants, [statistics of x]
 *   -> [y], mean, rstd, batch_mean, batch_var
 *       batch_mean and batch_var are the "gradients" of the running statistics: mean and unbiased variance of the
 *       batch, times samples * loss_scale. y is absent if all its readers normalise x while loading it.
 *
 * batch_norm_gradient
 *   x, dy, gamma, mean, rstd, [y], [statistics of dy], [beta] -> dx, dgamma, dbeta, [masked dy]
 *       Multiplies dy by the derivative of `activation` first, if there is one. The derivative comes from y if the
 *       forward node added another tensor before the activation, else from x, gamma and beta. "masked dy" is the
 *       product, for the gradient of that other tensor.
 *
 * batch_norm_inference
 *   x, gamma, beta, running_mean, running_var -> y
 *
 * fold_batch_norm, once after loading, for inference
 *   w, [bias], gamma, beta, running_mean, running_var -> w', bias' */
extern const struct operation operation_batch_norm, operation_batch_norm_gradient, operation_batch_norm_inference,
    operation_fold_batch_norm;

/* activation.c
 *
 * activation
 *   x -> y
 *
 * activation_gradient
 *   y, dy -> dx
 *       The derivative of every activation is computed from its output. */
extern const struct operation operation_activation, operation_activation_gradient;

/* convert.c; attributes.convert
 *
 * convert
 *   x of any type -> y f32, or i32 for x of u8, bool or i32
 *       y = scale[c] x + shift[c]. Inputs have no gradient, so it has none.
 *
 * cast
 *   x of any type -> y f32 */
extern const struct operation operation_convert, operation_cast;

/* concat.c; attributes.axis counts the batch dimension as 0
 *
 * concat
 *   1 to 8 inputs -> y, joined along the axis
 *
 * window
 *   x -> y
 *       What x has from attributes.begins on, of attributes.shape; attributes.low where x has nothing. */
extern const struct operation operation_concat, operation_window;

/* reduce.c; attributes.axes: those of x, as bits, that become one number
 *
 * reduce_sum, reduce_mean, reduce_max
 *   x -> y of attributes.shape, whose sizes are those of x without these axes, or with 1 there, or with other axes of
 *        size 1. It has no batch if the batch's axis is one of these. */
extern const struct operation operation_reduce_sum, operation_reduce_mean, operation_reduce_max;

/* movement.c
 *
 * expand; attributes.shape, attributes.low
 *   x -> low x, repeated along the axes where x has size 1 or none
 *
 * transpose; attributes.order: y's axis i is x's axis order[i]
 *   x -> y */
extern const struct operation operation_expand, operation_transpose;

/* reshape: x -> y of attributes.shape. An alias of the same memory; no launches.       (reshape.c)
 * reorder: x -> y, the same values in the layout attributes.axis; one of both is plain. (reorder.c) */
extern const struct operation operation_reshape, operation_reorder;
/* Checks a shape asked for, which has the batch in front if x has, and sets the one size that may be -1. */
tutti_status reshape_resolve(const struct value *x, tutti_shape *shape);

/* pool.c, pool_max.c, pool_average.c
 *
 * max_pool
 *   x -> y, index
 *       index is the position of the maximum in its window: u8, or i32 for windows of more than 255 pixels.
 * max_pool_gradient, attributes.shape: the shape of x
 *   dy, index -> dx
 *
 * average_pool
 *   x -> y
 *       Global pooling is a kernel of the image's size.
 * average_pool_gradient, attributes.shape: the shape of x
 *   dy -> dx
 *
 * adaptive_average_pool, attributes.kernel: the output's size
 *   x -> y
 * adaptive_average_pool_gradient, attributes.shape: the shape of x
 *   dy -> dx */
extern const struct operation operation_max_pool, operation_max_pool_gradient, operation_average_pool,
    operation_average_pool_gradient, operation_adaptive_average_pool, operation_adaptive_average_pool_gradient;

/* dropout.c; attributes.probability, attributes.stream
 *
 * dropout
 *   x, constants -> y
 *       Its gradient is dropout of dy with the same mask. */
extern const struct operation operation_dropout;

/* layer_norm.c; attributes.axis, the last one, and attributes.epsilon
 *
 * layer_norm
 *   x, gamma, beta -> y, mean, rstd
 *       mean and rstd are those of each row, for the gradient.
 *
 * layer_norm_gradient
 *   x, dy, gamma, mean, rstd -> dx, dgamma, dbeta */
extern const struct operation operation_layer_norm, operation_layer_norm_gradient;

/* embedding.c
 *
 * embedding
 *   ids i32 [...], table [rows, width] -> y [..., width]
 *       Numbers that are not of a row give zeros.
 *
 * embedding_gradient, attributes.shape: the shape of the table
 *   ids, dy -> dtable */
extern const struct operation operation_embedding, operation_embedding_gradient;

/* matmul.c; attributes.transpose_a, transpose_b: of the last two dimensions, before the product
 *
 * matmul
 *   a [..., m, k], b [..., k, n] -> y [..., m, n]
 *       The dimensions in front are equal, or one input has none. */
extern const struct operation operation_matmul;

/* softmax.c, over the last dimension
 *
 * softmax
 *   x -> y
 *
 * softmax_gradient
 *   y, dy -> dx */
extern const struct operation operation_softmax, operation_softmax_gradient;

/* loss_classes.c; attributes.axis: of the classes; 0: the last one
 *
 * cross_entropy, nll
 *   x [N, ..., classes, ...], labels i32 of x's shape without the classes, constants -> metrics f32 [2], dx
 *       x are logits, or for nll logarithms of probabilities. Labels below 0 are excluded.
 *
 * loss_elements.c
 *
 * mean_squared_error, l1, huber, bce_with_logits
 *   x, targets of x's shape, constants -> metrics f32 [2], dx
 *
 * metrics are sums over the samples, without loss_scale and weight: of the losses, each the mean over a sample's labels
 * or elements, and of the shares that are correct (0 where the operation does not count them). dx is multiplied by
 * constants.loss_scale and attributes.loss.weight. */
extern const struct operation operation_cross_entropy, operation_nll;
extern const struct operation operation_mean_squared_error, operation_l1, operation_huber, operation_bce_with_logits;

/* loss_total.c; attributes.loss.weights and counted
 *
 * loss_total
 *   1 to 8 metrics -> metrics f32 [2 + 2 * inputs]
 *       The weighted sum of the losses and what `counted` says to be correct, then each input. An input whose weight is
 * 0 is not in the sum, whatever it is. */
extern const struct operation operation_loss_total;

/* loss.c: the operation of tutti_training.loss; NULL for TUTTI_LOSS_NONE and for numbers that are no loss. */
const struct operation *loss_find(tutti_loss loss);
/* The value that holds the targets of these predictions, which are batched: type, shape, batched. */
struct value loss_targets(const struct operation *loss, const struct value *predictions);

#endif
