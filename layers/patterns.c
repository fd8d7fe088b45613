/* The tables of patterns. Forward ones are tried once, before gradients are appended. Sums are fused before what
 * follows them. A batch normalisation takes an activation's gradient before pooling does, and a data gradient
 * takes what is left. The readers of a batch normalisation are only known after all that. */
#include "layers/patterns.h"

const struct pattern *const forward_patterns[] = { &pattern_attention, &pattern_dft2, NULL };

const struct pattern *const patterns[] = {
    &pattern_add,
    &pattern_activation,
    &pattern_norm_gradient_activation,
    &pattern_norm_statistics,
    &pattern_pool_gradient,
    &pattern_sum_of_pool_gradient,
    &pattern_norm_gradient_statistics,
    &pattern_mask,
    &pattern_bias_gradient,
    &pattern_normalisation,
    &pattern_weights_in_data_gradient,
    NULL,
};
