#ifndef ONNX_HEAD_H
#define ONNX_HEAD_H

#include "base/status.h"
#include "onnx/proto.h"

/* Gives the layer that the first output comes from so many units, with new weights and biases. The graph was checked:
 * names and arrays. Errors: TUTTI_UNSUPPORTED if it is no Gemm, or MatMul and Add, with initialisers of its own. */
tutti_status head_replace(const Onnx__GraphProto *graph, int64_t units);

#endif
