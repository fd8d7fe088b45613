/* The patterns that are rewritten (graph/pattern.h); each one is described where it is defined. */
#ifndef LAYERS_PATTERNS_H
#define LAYERS_PATTERNS_H

#include "graph/pattern.h"

extern const struct pattern pattern_attention;                                   /* attention/attention_pattern.c */
extern const struct pattern pattern_dft2;                                        /* dft/dft2_pattern.c */
extern const struct pattern pattern_add;                                         /* pointwise.c */
extern const struct pattern pattern_activation, pattern_mask;                    /* activation.c */
extern const struct pattern pattern_pool_gradient, pattern_sum_of_pool_gradient; /* pool/pool.c */
extern const struct pattern pattern_bias_gradient;                               /* dense.c */
extern const struct pattern pattern_weights_in_data_gradient;                    /* conv2d/conv2d.c */
extern const struct pattern pattern_norm_statistics, pattern_norm_gradient_statistics, pattern_norm_gradient_activation,
    pattern_normalisation; /* batch_norm/batch_norm_patterns.c */

#endif
