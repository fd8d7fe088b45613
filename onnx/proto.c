#include "onnx/proto.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"

#include <stdlib.h>

/* Bytes that protobuf-c may still allocate for a file: two bytes of it can be an empty message of a hundred. */
struct budget {
    size_t left;
};
enum { TIMES_SIZE = 8, AT_LEAST = 64 << 20 };

static void *take(void *user, size_t size)
{
    struct budget *budget = user;
    if (size > budget->left) return NULL;
    budget->left -= size;
    return malloc(size);
}

static void give(void *user, void *memory)
{
    (void)user;
    free(memory);
}

bool proto_is_plain(const char *text)
{
    bool plain = text_is_utf8(text);
    for (; plain && *text; text++) plain = (unsigned char)*text >= ' ' && *text != 127;
    return plain;
}

tutti_status proto_check_text(const char *text, const char *what)
{
    return proto_is_plain(text) ? TUTTI_OK : fail(TUTTI_FORMAT, "%s is not UTF-8, or has control characters", what);
}

tutti_status proto_read(const char *path, Onnx__ModelProto **model)
{
    unsigned char *data = NULL;
    size_t size = 0;
    *model = NULL;
    const tutti_status status = file_read(path, INT32_MAX, &data, &size);
    if (status != TUTTI_OK) return status;
    struct budget budget = { size * TIMES_SIZE + AT_LEAST };
    ProtobufCAllocator allocator = { take, give, &budget };
    *model = onnx__model_proto__unpack(&allocator, size, data);
    free(data);
    if (*model && (*model)->graph) return TUTTI_OK;
    proto_free(*model);
    *model = NULL;
    return fail(
        TUTTI_FORMAT, "%s is no ONNX file, or is damaged: protobuf-c finds no model in its %zu bytes", path, size);
}

/* ------------------------------------------------------------------------------------------------------ copies ---- */

size_t proto_copies(const Onnx__ModelProto *model)
{
    return onnx__model_proto__get_packed_size(model) * TIMES_SIZE + AT_LEAST;
}

static tutti_status copy(const ProtobufCMessage *from, size_t *left, ProtobufCMessage **made)
{
    const size_t size = protobuf_c_message_get_packed_size(from);
    struct budget budget = { size < *left ? *left - size : 0 };
    ProtobufCAllocator allocator = { take, give, &budget };
    unsigned char *bytes = size < *left ? memory_new(size + 1, 1) : NULL;
    *made = NULL;
    if (bytes && protobuf_c_message_pack(from, bytes) == size)
        *made = protobuf_c_message_unpack(from->descriptor, &allocator, size, bytes);
    free(bytes);
    *left = budget.left;
    return *made ? TUTTI_OK
                 : fail(TUTTI_UNSUPPORTED, "its functions, written out, need more memory than a file may take");
}

tutti_status proto_copy_node(const Onnx__NodeProto *node, size_t *left, Onnx__NodeProto **made)
{
    return copy(&node->base, left, (ProtobufCMessage **)made);
}

tutti_status proto_copy_attribute(const Onnx__AttributeProto *attribute, size_t *left, Onnx__AttributeProto **made)
{
    return copy(&attribute->base, left, (ProtobufCMessage **)made);
}

void proto_free_node(Onnx__NodeProto *node)
{
    if (node) onnx__node_proto__free_unpacked(node, &(ProtobufCAllocator) { take, give, NULL });
}

void proto_free_attribute(Onnx__AttributeProto *attribute)
{
    if (attribute) onnx__attribute_proto__free_unpacked(attribute, &(ProtobufCAllocator) { take, give, NULL });
}

void proto_free(Onnx__ModelProto *model)
{
    if (model) onnx__model_proto__free_unpacked(model, &(ProtobufCAllocator) { take, give, NULL });
}
