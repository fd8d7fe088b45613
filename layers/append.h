/* For builders that append several nodes in one layer. Plans join such nodes (plan/compose.c). After a failure all
 * functions return NO_VALUE, and append_context.graph keeps the status. Shapes and axes include the batch's. */
#ifndef LAYERS_APPEND_H
#define LAYERS_APPEND_H

#include "graph/network.h"
#include "layers/layers.h"

/* Where nodes are appended. */
struct append_context {
    tutti_network *network;
    struct graph *graph; /* the network's */
    int layer;
};

/* Keeps the status if it is the first failure. */
int append_fail(const struct append_context *c, tutti_status status);
/* dropout.c. Draws from a stream of its own, as each layer of tutti_dropout(). */
int append_dropout(const struct append_context *c, int x, float probability);
int append_one(const struct append_context *c, const struct operation *operation, int a);
int append_two(const struct append_context *c, const struct operation *operation, int a, int b);
/* Elementwise with one number: `scale`, `shift` or `power`. */
int append_number(const struct append_context *c, const struct operation *operation, int a, float number);
/* append_reshape(), append_transpose() and append_expand() return x if nothing changes. */
int append_reshape(const struct append_context *c, int x, tutti_shape shape);
/* append_split() divides an axis in two, the first of size `front`; append_join() makes two axes one. */
int append_split(const struct append_context *c, int x, int axis, int64_t front);
int append_join(const struct append_context *c, int x, int axis);
int append_reduce(const struct append_context *c, const struct operation *operation, int x, unsigned axes);
int append_transpose(const struct append_context *c, int x, const int *order);
int append_window(const struct append_context *c, int x, const struct window_attributes *attributes);
/* Elements `begin` to `begin` + size - 1 along an axis, and all along the others. */
int append_slice(const struct append_context *c, int x, int axis, int64_t begin, int64_t size);
/* concat.c: joins values along an axis: neighbours, as many as a node takes, until one is left. Changes `values`. */
int append_concat(const struct append_context *c, int axis, int *values, int count);
/* The shape begins with the batch of `like`, if this has one; x may lack it. */
int append_expand(const struct append_context *c, int x, tutti_shape shape, int like);

#endif
