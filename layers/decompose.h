/* Decompositions: operations of tutti_op() that become several nodes, from their attributes. */
#ifndef LAYERS_DECOMPOSE_H
#define LAYERS_DECOMPOSE_H

#include "layers/append.h"

/* Appends the nodes of an operation and returns the result. Absent inputs at the end are NO_VALUE. */
typedef int decomposition(const struct append_context *c, const void *attributes, const int *inputs, int count);
decomposition decompose_matmul; /* matmul.c: the attributes are those of the operation */

/* reduce_chains.c: reductions that are chains of operations, with the attributes of reduce_sum. */
decomposition decompose_reduce_l1, decompose_reduce_l2, decompose_reduce_log_sum, decompose_reduce_log_sum_exp,
    decompose_reduce_sum_square;

/* softmax.c: with struct axis_attributes. */
decomposition decompose_log_softmax;

/* norms.c: normalisations of x, with scale and bias where there are such inputs. */
struct norm_attributes {
    int axis;      /* layer_norm, rms_norm: the first of the last axes; lp_norm: the one */
    unsigned axes; /* mean_variance_norm; 0: all but the first of a sample */
    float epsilon;
    int64_t count;           /* groups of group_norm, p of lp_norm, size of lrn */
    float alpha, beta, bias; /* lrn */
};
ATTRIBUTES(norm)
decomposition decompose_layer_norm, decompose_rms_norm, decompose_group_norm, decompose_instance_norm,
    decompose_lp_norm, decompose_mean_variance_norm, decompose_lrn;

/* attention.c. Numbers that are 0: heads are an axis, and the whole width is turned. */
struct rotary_attributes {
    int64_t heads, width;
    bool interleaved;
};
ATTRIBUTES(rotary)
decomposition decompose_rotary_embedding;

#endif
