#ifndef ONNX_HEAD_H
#define ONNX_HEAD_H

#include "base/status.h"
#include "onnx/proto.h"

/* The output that can be trained: the first one that the file does not say to be of another type than floats, else the
 * first one. */
const char *head_output(const Onnx__GraphProto *graph);

/* The value that is probabilities, whose logits an output can have instead: that of a Softmax, or of a
 * LinearClassifier, or NULL. *normalised: that of a Normalizer behind it, or NULL. Errors: TUTTI_UNSUPPORTED for an
 * output behind labels that is made by something else, as a Concat. */
tutti_status head_find_logits(const Onnx__GraphProto *graph, const char **logits, const char **normalised);

/* Gives the layer that the first output of floats comes from so many units, with new weights and biases. The graph was
 * checked: names and arrays. Errors: TUTTI_UNSUPPORTED if it is no Gemm, or MatMul and Add, with initialisers of its
 * own. */
tutti_status head_replace(const Onnx__GraphProto *graph, int64_t units);

#endif
