/* The table of all operations. */
#include <string.h>

#include "layers/layers.h"

const struct operation *const operations[] = {
    &operation_conv2d,
    &operation_conv2d_data_gradient,
    &operation_conv2d_weight_gradient,
    &operation_channel_sum,
    &operation_batch_norm,
    &operation_batch_norm_gradient,
    &operation_batch_norm_inference,
    &operation_fold_batch_norm,
    &operation_activation,
    &operation_activation_gradient,
    &operation_add,
    &operation_mul,
    &operation_copy,
    &operation_concat,
    &operation_slice,
    &operation_reshape,
    &operation_reorder,
    &operation_dense,
    &operation_dense_data_gradient,
    &operation_dense_weight_gradient,
    &operation_softmax,
    &operation_softmax_gradient,
    &operation_dropout,
    &operation_cross_entropy,
    &operation_mean_squared_error,
    &operation_max_pool,
    &operation_max_pool_gradient,
    &operation_average_pool,
    &operation_average_pool_gradient,
    &operation_adaptive_average_pool,
    &operation_adaptive_average_pool_gradient,
    NULL,
};

const struct operation *operation_find(const char *name)
{
    for (int i = 0; operations[i]; i++)
        if (!strcmp(operations[i]->name, name)) return operations[i];
    return NULL;
}
