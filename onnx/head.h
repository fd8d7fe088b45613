#ifndef ONNX_HEAD_H
#define ONNX_HEAD_H

#include "base/status.h"
#include "onnx/proto.h"

/* Finds the probabilities that an output can replace by their logits: the output of a Softmax or of a
 * LinearClassifier, or NULL. *normalised: the output of a Normalizer after it, or NULL. Errors: TUTTI_UNSUPPORTED if
 * the output stands after labels and comes from another operator, as a Concat. */
tutti_status head_find_logits(const Onnx__GraphProto *graph, const char **logits, const char **normalised);

/* Gives the layer that the first float output comes from `units` units, with new weights and biases. Names and arrays
 * of the graph have been checked. Errors: TUTTI_UNSUPPORTED if the layer is not a Gemm, or MatMul and Add, with
 * initialisers of its own. */
tutti_status head_replace(const Onnx__GraphProto *graph, int64_t units);

#endif
