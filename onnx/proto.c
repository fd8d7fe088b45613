#include "onnx/proto.h"

#include "base/file.h"
#include "base/memory.h"

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

void proto_free(Onnx__ModelProto *model)
{
    if (model) onnx__model_proto__free_unpacked(model, &(ProtobufCAllocator) { take, give, NULL });
}
