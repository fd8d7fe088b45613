/* For builders that append several nodes in one layer. Plans join such nodes (plan/compose.c). After a failure all
 * functions return NO_VALUE, and composing.graph keeps the status. */
#ifndef LAYERS_COMPOSITION_H
#define LAYERS_COMPOSITION_H

#include "graph/network.h"
#include "layers/layers.h"

struct composing {
    tutti_network *network;
    struct graph *graph; /* the network's */
    int layer;
};

/* For a schema that becomes several nodes: appends them and returns the result. Absent inputs at the end
 * are NO_VALUE. */
typedef int composition(const struct composing *c, const void *attributes, const int *inputs, int count);
composition compose_matmul; /* matmul.c: the attributes are those of the operation */

/* reduce_chains.c: reductions that are chains of operations, with the attributes of reduce_sum. */
composition compose_reduce_l1, compose_reduce_l2, compose_reduce_log_sum, compose_reduce_log_sum_exp,
    compose_reduce_sum_square;

/* softmax.c: with struct axis_attributes. */
composition compose_log_softmax;

/* norms.c: normalisations of x, with scale and bias where there are such inputs. */
struct norm_attributes {
    int axis;      /* layer_norm, rms_norm: the first of the last axes; lp_norm: the one */
    unsigned axes; /* mean_variance_norm; 0: all but the first of a sample */
    float epsilon;
    int64_t count;           /* groups of group_norm, p of lp_norm, size of lrn */
    float alpha, beta, bias; /* lrn */
};
ATTRIBUTES(norm)
composition compose_layer_norm, compose_rms_norm, compose_group_norm, compose_instance_norm, compose_lp_norm,
    compose_mean_variance_norm, compose_lrn;

/* attention.c. Numbers that are 0: heads are an axis, and the whole width is turned. */
struct rotary_attributes {
    int64_t heads, width;
    bool interleaved;
};
ATTRIBUTES(rotary)
composition compose_rotary_embedding;

/* Keeps the status if it is the first failure. */
int compose_fail(const struct composing *c, tutti_status status);
int compose_one(const struct composing *c, const struct operation *operation, int a);
int compose_two(const struct composing *c, const struct operation *operation, int a, int b);
/* Elementwise with one number: `scale`, `shift` or `power`. */
int compose_number(const struct composing *c, const struct operation *operation, int a, float number);
/* Shapes and axes include the batch's. */
int compose_reshape(const struct composing *c, int x, tutti_shape shape);
int compose_reduce(const struct composing *c, const struct operation *operation, int x, unsigned axes);
int compose_transpose(const struct composing *c, int x, const int *order);
int compose_window(const struct composing *c, int x, int axis, int64_t begin, int64_t size);
/* The shape begins with the batch of `like`, if this has one; x may lack it. */
int compose_expand(const struct composing *c, int x, tutti_shape shape, int like);

#endif
