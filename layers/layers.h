/* The operations, for the passes that append nodes themselves and for one another. Each is defined in the file of its
 * layer; inputs and outputs are listed here. */
#ifndef LAYERS_LAYERS_H
#define LAYERS_LAYERS_H

#include "graph/operation.h"

/* conv2d.c        x, w, [bias] -> y, [statistics]  (operation.h)
 *                     x, w, [bias], gamma, beta, mean, rstd: of the batch norm that is applied to x as it is loaded;
 *                     attributes.activation, low, high: of that batch norm
 *   _data_gradient    dy, w -> dx            attributes.shape: x's shape
 *                     dy, w, x, gamma, [beta], mean, rstd, [y] -> g, statistics, [dw], where dx would go into a batch
 * norm's gradient alone; attributes.activation, low, high: of that batch norm dy, w, y -> dx behind the activation
 * whose output y is, where dx would go into that activation's gradient alone; attributes.activation, low, high: of that
 * activation _weight_gradient  x, dy -> dw            attributes.shape: w's shape x, dy, -, gamma, beta, mean, rstd: as
 * above channel_sum       dy -> db               sum over all but dimension 1 (rank 4) or the last dimension (rank 2)
 */
extern const struct operation operation_conv2d, operation_conv2d_data_gradient, operation_conv2d_weight_gradient,
    operation_channel_sum;
/* dense.c         x [N, k], w [units, k], [bias] -> y
 *   _data_gradient    dy, w -> dx;  dy, w, y -> dx behind an activation, as above
 *   _weight_gradient  x, dy -> dw, [db] (else db is of channel_sum) */
extern const struct operation operation_dense, operation_dense_data_gradient, operation_dense_weight_gradient;
/* batch_norm.c    x, gamma, beta, running_mean, running_var, constants, [statistics]
 *                                                          -> y, mean, rstd, batch_mean, batch_var
 *                     (the last two: the batch's mean and unbiased variance times samples * loss_scale: "gradients" of
 *                     the running statistics; statistics: of x, made where x is made, see operation.h; no y
 *                     where those that would read it normalise x themselves)
 *   _gradient         x, dy, gamma, mean, rstd, [y], [statistics], [beta] -> dx, dgamma, dbeta, [dadd]
 *                     attributes.activation, low, high: the gradient of that activation is applied to dy first (fused).
 * Its mask comes from y where y is given (the forward node had an epilogue addition), else it is recomputed from x,
 * gamma, beta. dadd: the masked dy, wanted where the addition's other branch needs it _inference        x, gamma, beta,
 * running_mean, running_var -> y fold_batch_norm   w, [bias], gamma, beta, running_mean, running_var -> w', bias'
 * (inference, once) */
extern const struct operation operation_batch_norm, operation_batch_norm_gradient, operation_batch_norm_inference,
    operation_fold_batch_norm;
/* activation.c    x -> y (attributes.activation, low, high);  _gradient: y, dy -> dx: every one is a function of y */
extern const struct operation operation_activation, operation_activation_gradient;
/* arithmetic.c    a, b -> a + b;  a, b -> a * b;  copy: x -> x */
extern const struct operation operation_add, operation_mul, operation_copy;
/* concat.c        up to 8 inputs -> y along attributes.axis (of the shape with batch);  slice: x -> y, the part that
 * begins at attributes.offset along axis with attributes.shape */
extern const struct operation operation_concat, operation_slice;
/* reshape.c       x -> y of attributes.shape: an alias, no launches;  reorder.c: x -> y, the same values in the other
 * layout */
extern const struct operation operation_reshape, operation_reorder;
/* pool.c          max_pool: x -> y, index (u8: the place in the window; i32 where a window is larger than 255);
 * _gradient: dy, index -> dx (attributes.shape: x's) average_pool: x -> y;  _gradient: dy -> dx.  kernel of the whole
 * image: global. adaptive_average_pool: x -> y (attributes.kernel: output size); _gradient */
extern const struct operation operation_max_pool, operation_max_pool_gradient, operation_average_pool,
    operation_average_pool_gradient, operation_adaptive_average_pool, operation_adaptive_average_pool_gradient;
/* dropout.c       x, constants -> y (attributes.probability, stream); its gradient is itself applied to dy */
extern const struct operation operation_dropout;
/* softmax.c       x -> y over the last dimension;  _gradient: y, dy -> dx */
extern const struct operation operation_softmax, operation_softmax_gradient;
/* loss.c          cross_entropy: logits [N, classes], labels i32 [N], constants -> metrics f32 [2], dlogits
 *                 mean_squared_error: y, targets (y's shape), constants -> metrics f32 [2], dy
 *                     metrics: sum over the samples of the loss (not scaled), number of correct ones (0 for the
 * latter). Labels below 0 are ignored. Gradients are multiplied by constants.loss_scale. */
extern const struct operation operation_cross_entropy, operation_mean_squared_error;

#endif
