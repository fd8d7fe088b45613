#include "onnx/proto.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

/* Limits of what protobuf-c allocates for a file, in bytes: two bytes of it can become an empty message of a hundred.
 */
enum { TIMES_SIZE = 8, AT_LEAST = 64 << 20 };

const Onnx__AttributeProto *proto_attribute(Onnx__AttributeProto *const *list, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(proto_text(list[i]->name), name)) return list[i];
    return NULL;
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

/* ------------------------------------------------------------------------------------------- graphs within ---- */

/* Messages that can contain a graph, and the fields that lead to it. */
enum message { MODEL, GRAPH, FUNCTION, NODE, ATTRIBUTE };
enum { DEEPEST = 32, BYTES = 2 };

struct bytes {
    const unsigned char *at, *end;
};

/* Returns false if the number does not end, or is too long. */
static bool read_varint(struct bytes *bytes, uint64_t *number)
{
    *number = 0;
    for (int shift = 0; bytes->at < bytes->end && shift < 64; shift += 7) {
        const unsigned char byte = *bytes->at++;
        *number |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return true;
    }
    return false;
}

static bool contains(enum message message, uint64_t field, enum message *inner)
{
    static const struct {
        enum message message;
        uint64_t field;
        enum message inner;
    } fields[] = { { MODEL, 7, GRAPH }, { MODEL, 25, FUNCTION }, { GRAPH, 1, NODE }, { FUNCTION, 7, NODE },
        { FUNCTION, 11, ATTRIBUTE }, { NODE, 5, ATTRIBUTE }, { ATTRIBUTE, 6, GRAPH } };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].message == message && fields[i].field == field) {
            *inner = fields[i].inner;
            return true;
        }
    return false;
}

/* Whether graphs are nested at most `left` deep. Damaged bytes are left to protobuf-c, which stops at them. */
static bool is_flat(struct bytes bytes, enum message message, int left)
{
    static const uint64_t sizes[] = { [1] = 8, [5] = 4 };
    uint64_t key, size;
    if (message == GRAPH && left-- == 0) return false;
    while (bytes.at < bytes.end && read_varint(&bytes, &key)) {
        const unsigned type = key & 7;
        enum message inner;
        size = type == 1 || type == 5 ? sizes[type] : 0;
        if ((type == 0 || type == BYTES) && !read_varint(&bytes, &size)) return true;
        if (type == 0) continue;
        if (type > 5 || type == 3 || type == 4 || size > (uint64_t)(bytes.end - bytes.at)) return true;
        const struct bytes part = { bytes.at, bytes.at + size };
        if (type == BYTES && contains(message, key >> 3, &inner) && !is_flat(part, inner, left)) return false;
        bytes.at = part.end;
    }
    return true;
}

tutti_status proto_read(const char *path, Onnx__ModelProto **model)
{
    unsigned char *data = NULL;
    size_t size = 0;
    *model = NULL;
    const tutti_status status = file_read(path, INT32_MAX, &data, &size);
    if (status != TUTTI_OK) return status;
    if (!is_flat((struct bytes) { data, data + size }, MODEL, DEEPEST)) {
        free(data);
        return fail(TUTTI_UNSUPPORTED, "%s: graphs lie in each other more than %d deep", path, DEEPEST);
    }
    struct memory_budget budget = { size * TIMES_SIZE + AT_LEAST };
    ProtobufCAllocator allocator = { memory_take, memory_give, &budget };
    *model = onnx__model_proto__unpack(&allocator, size, data);
    free(data);
    if (*model && (*model)->graph) return TUTTI_OK;
    proto_free(*model);
    *model = NULL;
    return fail(
        TUTTI_FORMAT, "%s is not an ONNX file, or is damaged: protobuf-c finds no model in its %zu bytes", path, size);
}

/* ------------------------------------------------------------------------------------------------------ copies ---- */

size_t proto_copies(const Onnx__ModelProto *model)
{
    return onnx__model_proto__get_packed_size(model) * TIMES_SIZE + AT_LEAST;
}

static tutti_status copy(const ProtobufCMessage *from, size_t *left, ProtobufCMessage **made)
{
    const size_t size = protobuf_c_message_get_packed_size(from);
    struct memory_budget budget = { size < *left ? *left - size : 0 };
    ProtobufCAllocator allocator = { memory_take, memory_give, &budget };
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

tutti_status proto_copy_tensor(const Onnx__TensorProto *tensor, size_t *left, Onnx__TensorProto **made)
{
    return copy(&tensor->base, left, (ProtobufCMessage **)made);
}

tutti_status proto_copy_attribute(const Onnx__AttributeProto *attribute, size_t *left, Onnx__AttributeProto **made)
{
    return copy(&attribute->base, left, (ProtobufCMessage **)made);
}

void proto_free_node(Onnx__NodeProto *node)
{
    if (node) onnx__node_proto__free_unpacked(node, &(ProtobufCAllocator) { memory_take, memory_give, NULL });
}

void proto_free_tensor(Onnx__TensorProto *tensor)
{
    if (tensor) onnx__tensor_proto__free_unpacked(tensor, &(ProtobufCAllocator) { memory_take, memory_give, NULL });
}

void proto_free_value(Onnx__ValueInfoProto *value)
{
    if (value) onnx__value_info_proto__free_unpacked(value, &(ProtobufCAllocator) { memory_take, memory_give, NULL });
}

void proto_free_attribute(Onnx__AttributeProto *attribute)
{
    if (attribute)
        onnx__attribute_proto__free_unpacked(attribute, &(ProtobufCAllocator) { memory_take, memory_give, NULL });
}

void proto_free(Onnx__ModelProto *model)
{
    if (model) onnx__model_proto__free_unpacked(model, &(ProtobufCAllocator) { memory_take, memory_give, NULL });
}
