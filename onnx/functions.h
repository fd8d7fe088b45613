/* Functions of a model: nodes that call them are replaced by their nodes. */
#ifndef ONNX_FUNCTIONS_H
#define ONNX_FUNCTIONS_H

#include "onnx/proto.h"

/* Replaces each node of the graph that calls a function of the model, also within functions. A node of domain "" whose
 * operator Tutti has is none of them. *opsets is NULL if the model has no functions, else for each node of the graph
 * the opset of its operator; the caller frees it. `opset` is the model's. Errors: TUTTI_FORMAT: two functions of one
 * name, one that calls itself, a call that does not fit its function; TUTTI_UNSUPPORTED: what is written out is too
 * large; TUTTI_NO_MEMORY. */
tutti_status functions_expand(Onnx__ModelProto *model, int64_t opset, int64_t **opsets);

#endif
