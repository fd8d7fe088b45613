/* Changes of a file's graph before its names are read: exporters' computations on parameters are written as nodes
 * again. */
#ifndef ONNX_GRAPH_EDIT_H
#define ONNX_GRAPH_EDIT_H

#include "onnx/tensor.h"

/* Nodes that will stand before those of the graph, in the order in which they were added. */
struct graph_edit {
    Onnx__GraphProto *graph;
    Onnx__NodeProto **nodes;
    size_t count, capacity;
    const Onnx__NodeProto *like; /* new nodes get its scopes; NULL: none */
};

/* The initialiser of this name; NULL: there is none. */
Onnx__TensorProto *edit_find(const struct graph_edit *edit, const char *name);
bool edit_is_free(const struct graph_edit *edit, const char *name);   /* nothing has this name */
bool edit_is_read(const struct graph_edit *edit, const char *name);   /* by a node of the graph */
bool edit_is_output(const struct graph_edit *edit, const char *name); /* of the graph */
/* Adds an initialiser of floats, or one of integers. */
tutti_status edit_add_floats(
    struct graph_edit *edit, const char *name, int rank, const int64_t *sizes, const float *floats);
tutti_status edit_add_integers(
    struct graph_edit *edit, const char *name, int rank, const int64_t *sizes, const int64_t *integers);
void edit_remove(struct graph_edit *edit, const Onnx__TensorProto *tensor); /* an initialiser */
/* Makes all nodes of the graph read `to` instead of `from`, but not added ones. */
tutti_status edit_read_instead(struct graph_edit *edit, const char *from, const char *to);
/* Adds a node that reads and writes these names, and has an attribute `axis`, unless axis is negative. */
tutti_status edit_add_node(struct graph_edit *edit, const char *type, const char *const *inputs, size_t input_count,
    const char *const *outputs, size_t output_count, int axis);
/* Adds Reshape or Expand: a node of two inputs, of which the second one is this shape. */
tutti_status edit_add_shaped(
    struct graph_edit *edit, const char *type, const char *input, const char *output, int rank, const int64_t *sizes);
/* Puts the nodes into the graph. Frees those that it did not take. */
tutti_status edit_finish(struct graph_edit *edit, tutti_status status);

#endif
