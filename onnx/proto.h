/* A file's messages, as protobuf-c makes them of onnx.proto. */
#ifndef ONNX_PROTO_H
#define ONNX_PROTO_H

#include "base/status.h"
#include "onnx/onnx.pb-c.h"

/* A text that a file need not have: "" if it is not there. */
static inline const char *proto_text(const char *text)
{
    return text ? text : "";
}

/* Reads and parses a file of at most 2 GiB, which protobuf's messages are limited to. Memory is limited to some times
 * the file's size. The caller frees *model with proto_free(). */
tutti_status proto_read(const char *path, Onnx__ModelProto **model);
void proto_free(Onnx__ModelProto *model); /* accepts NULL */

#endif
