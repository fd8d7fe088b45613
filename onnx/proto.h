/* A file's messages, as protobuf-c makes them of onnx.proto. */
#ifndef ONNX_PROTO_H
#define ONNX_PROTO_H

#include "base/status.h"
#include "onnx/onnx.pb-c.h"

/* An optional text of a file: "" if it is absent. */
static inline const char *proto_text(const char *text)
{
    return text ? text : "";
}

/* The attribute with this name; NULL: the list does not have it. */
const Onnx__AttributeProto *proto_attribute(Onnx__AttributeProto *const *list, size_t count, const char *name);
/* Whether a text can be printed, and be a name: UTF-8 without control characters. */
bool proto_is_plain(const char *text);
/* Checks a text that is printed or becomes the name of a parameter: TUTTI_FORMAT if it is not plain UTF-8. `what`:
 * how the message calls it. */
tutti_status proto_check_text(const char *text, const char *what);

/* Reads and parses a file of at most 2 GiB, which protobuf's messages are limited to. Memory is limited to some times
 * the file's size. The caller frees *model with proto_free(). */
tutti_status proto_read(const char *path, Onnx__ModelProto **model);
void proto_free(Onnx__ModelProto *model); /* accepts NULL */

/* Copy messages. *left: bytes that copies may still take, which proto_copies() gives at first; it is reduced. */
tutti_status proto_copy_node(const Onnx__NodeProto *node, size_t *left, Onnx__NodeProto **copy);
tutti_status proto_copy_attribute(const Onnx__AttributeProto *attribute, size_t *left, Onnx__AttributeProto **copy);
tutti_status proto_copy_tensor(const Onnx__TensorProto *tensor, size_t *left, Onnx__TensorProto **copy);
void proto_free_tensor(Onnx__TensorProto *tensor);          /* accepts NULL */
void proto_free_node(Onnx__NodeProto *node);                /* accepts NULL */
void proto_free_value(Onnx__ValueInfoProto *value);         /* accepts NULL */
void proto_free_attribute(Onnx__AttributeProto *attribute); /* accepts NULL */
size_t proto_copies(const Onnx__ModelProto *model);

#endif
