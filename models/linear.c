/* y = x W^T + b: the smallest network there is. */
#include "models/models.h"

tutti_tensor model_linear(tutti_network *network, tutti_tensor x, int outputs)
{
    return tutti_dense(network, tutti_flatten(network, x), outputs, &(tutti_dense_options) { .name = "dense" });
}
