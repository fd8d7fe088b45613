/* Writes protobuf's messages, as a file of ONNX has them and as it must not have them. */
#ifndef TESTS_ONNX_MESSAGES_H
#define TESTS_ONNX_MESSAGES_H

#include <stddef.h>
#include <stdint.h>

struct message {
    unsigned char *data;
    size_t size, capacity;
};

/* Fields of a message: an integer; a number; a text; bytes; another message, which is freed. */
void put_integer(struct message *message, int field, int64_t number);
void put_float(struct message *message, int field, float number);
void put_text(struct message *message, int field, const char *text);
void put_bytes(struct message *message, int field, const void *bytes, size_t size);
void put_message(struct message *message, int field, struct message *part);
void message_free(struct message *message);

/* Fields' numbers in onnx.proto. */
enum { MODEL_GRAPH = 7, MODEL_OPSET = 8, MODEL_FUNCTION = 25, OPSET_DOMAIN = 1, OPSET_VERSION = 2 };
enum { GRAPH_NODE = 1, GRAPH_INITIALIZER = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 };
enum {
    NODE_INPUT = 1,
    NODE_OUTPUT = 2,
    NODE_NAME = 3,
    NODE_OPERATOR = 4,
    NODE_ATTRIBUTE = 5,
    NODE_DOMAIN = 7,
    NODE_METADATA = 9
};
enum {
    TENSOR_DIMS = 1,
    TENSOR_TYPE = 2,
    TENSOR_INTS = 7,
    TENSOR_NAME = 8,
    TENSOR_RAW = 9,
    TENSOR_EXTERNAL = 13,
    TENSOR_LOCATION = 14
};
enum {
    ATTRIBUTE_NAME = 1,
    ATTRIBUTE_INTEGER = 3,
    ATTRIBUTE_TEXT = 4,
    ATTRIBUTE_TENSOR = 5,
    ATTRIBUTE_GRAPH = 6,
    ATTRIBUTE_INTEGERS = 8,
    ATTRIBUTE_REFERENCE = 21
};
enum { FUNCTION_NAME = 1, FUNCTION_INPUT = 4, FUNCTION_OUTPUT = 5, FUNCTION_NODE = 7, FUNCTION_DOMAIN = 10 };

#endif
