/* The list of operations: from it follow their declarations here and their table in operations.c. Elementwise ones
 * stand in the list of layers/pointwise.h. */
#ifndef LAYERS_OPERATIONS_H
#define LAYERS_OPERATIONS_H

#include "graph/operation.h"
#include "layers/pointwise.h"

#define OPERATIONS(X)                   \
    X(conv2d)                           \
    X(conv2d_data_gradient)             \
    X(conv2d_weight_gradient)           \
    X(channel_sum)                      \
    X(batch_norm)                       \
    X(batch_norm_gradient)              \
    X(batch_norm_inference)             \
    X(fold_batch_norm)                  \
    X(activation)                       \
    X(activation_gradient)              \
    POINTWISE_TABLE(X)                  \
    X(pointwise_gradient)               \
    X(reduce_sum)                       \
    X(reduce_mean)                      \
    X(reduce_max)                       \
    X(reduce_min)                       \
    X(reduce_prod)                      \
    X(expand)                           \
    X(transpose)                        \
    X(convert)                          \
    X(cast)                             \
    X(concat)                           \
    X(window)                           \
    X(reshape)                          \
    X(reorder)                          \
    X(dense)                            \
    X(dense_data_gradient)              \
    X(dense_weight_gradient)            \
    X(embedding)                        \
    X(embedding_gradient)               \
    X(embedding_stored)                 \
    X(floats)                           \
    X(gather)                           \
    X(gather_gradient)                  \
    X(scatter)                          \
    X(scatter_gradient)                 \
    X(argmax)                           \
    X(argmin)                           \
    X(hardmax)                          \
    X(topk)                             \
    X(cumsum)                           \
    X(cumprod)                          \
    X(cumprod_gradient)                 \
    X(one_hot)                          \
    X(trilu)                            \
    X(reverse_sequence)                 \
    X(resample)                         \
    X(grid_sample)                      \
    X(grid_sample_data_gradient)        \
    X(grid_sample_grid_gradient)        \
    X(matmul)                           \
    X(layer_norm)                       \
    X(layer_norm_gradient)              \
    X(recurrent)                        \
    X(recurrent_gradient)               \
    X(attention)                        \
    X(attention_gradient)               \
    X(softmax)                          \
    X(softmax_gradient)                 \
    X(dft)                              \
    X(dft2)                             \
    X(spectral_product)                 \
    X(spectral_product_data_gradient)   \
    X(spectral_product_weight_gradient) \
    X(dropout)                          \
    X(random_uniform)                   \
    X(random_normal)                    \
    X(custom)                           \
    X(custom_gradient)                  \
    X(cross_entropy)                    \
    X(nll)                              \
    X(soft_cross_entropy)               \
    X(ctc)                              \
    X(mean_squared_error)               \
    X(l1)                               \
    X(huber)                            \
    X(bce_with_logits)                  \
    X(mean_loss)                        \
    X(loss_total)                       \
    X(max_pool)                         \
    X(max_pool_gradient)                \
    X(average_pool)                     \
    X(average_pool_gradient)            \
    X(adaptive_average_pool)            \
    X(adaptive_average_pool_gradient)

#define OPERATION_DECLARE(name, ...) extern const struct operation operation_##name;
OPERATIONS(OPERATION_DECLARE)

#endif
