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

/* Whether a text can be printed, and be a name: UTF-8 without control characters. */
bool proto_is_plain(const char *text);
/* Names are printed and become names of parameters: TUTTI_FORMAT if one is not plain UTF-8. `what` it is. */
tutti_status proto_check_text(const char *text, const char *what);

/* Reads and parses a file of at most 2 GiB, which protobuf's messages are limited to. Memory is limited to some times
 * the file's size. The caller frees *model with proto_free(). */
tutti_status proto_read(const char *path, Onnx__ModelProto **model);
void proto_free(Onnx__ModelProto *model); /* accepts NULL */

/* Copies of messages. `left` are the bytes that copies may still take, of proto_copies(); it becomes less. */
tutti_status proto_copy_node(const Onnx__NodeProto *node, size_t *left, Onnx__NodeProto **copy);
tutti_status proto_copy_attribute(const Onnx__AttributeProto *attribute, size_t *left, Onnx__AttributeProto **copy);
tutti_status proto_copy_tensor(const Onnx__TensorProto *tensor, size_t *left, Onnx__TensorProto **copy);
void proto_free_tensor(Onnx__TensorProto *tensor);          /* accepts NULL */
void proto_free_node(Onnx__NodeProto *node);                /* accepts NULL */
void proto_free_attribute(Onnx__AttributeProto *attribute); /* accepts NULL */
size_t proto_copies(const Onnx__ModelProto *model);

#endif
