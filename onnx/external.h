/* External data: elements of a tensor in a file next to the model's. */
#ifndef ONNX_EXTERNAL_H
#define ONNX_EXTERNAL_H

#include "base/status.h"
#include "onnx/proto.h"

/* Reads the elements of a tensor, of `bytes` bytes in total. The file must be a regular file in `folder` or a folder
 * in it; links are not followed. *data is freed by free(). */
tutti_status external_read(const Onnx__TensorProto *tensor, const char *folder, size_t bytes, unsigned char **data);

#endif
