/* Reads samples that are tokens: each is padded to the length of its batch. */
#include "data/data.h"

#include "base/status.h"

#include <string.h>

enum { UNIT = 8 };

/* Where a batch goes. `types` and `targets` are NULL if nobody wants them. */
struct room {
    int64_t length;
    int32_t *ids, *types;
    unsigned char *targets;
    size_t target_bytes;
};

int64_t data_batch_length(const struct tutti_data *data, tutti_data_part number, const int64_t *indices, int64_t count)
{
    const struct data_part *part = &data->parts[number];
    const struct collection *collection = data->collection;
    int64_t length = 1;
    for (int64_t i = 0; i < count; i++) {
        if (indices[i] < 0 || indices[i] >= part->count) {
            (void)fail(TUTTI_INVALID, "there is no sample %lld", (long long)indices[i]);
            return -1;
        }
        const int64_t own = collection->length(collection, part->samples[indices[i]]);
        if (own > length) length = own;
    }
    length = (length + UNIT - 1) / UNIT * UNIT;
    return length < collection->info.length ? length : collection->info.length;
}

static bool is_called(const tutti_buffer *buffer, const char *name)
{
    return buffer->name && !strcmp(buffer->name, name);
}

/* Bytes of a sample's target in a batch of this length: the next token or the tag of each token, or one class or
 * number. */
static size_t target_bytes(const tutti_data_info *info, int64_t length)
{
    return info->tokens_are_classes || info->tags ? (size_t)length * sizeof(int32_t)
                                                  : data_bytes(info->target_dtype, &info->target_shape);
}

static tutti_status set_room(const tutti_data_info *info, const tutti_buffer *buffers, int count, struct room *room)
{
    *room = (struct room) { .length = 0 };
    for (int i = 0; i < count; i++) {
        const tutti_buffer *buffer = &buffers[i];
        const bool targets = is_called(buffer, "targets"), types = info->pairs && is_called(buffer, "types");
        if (targets) {
            room->targets = buffer->data;
            room->target_bytes = buffer->bytes;
            if (buffer->dtype != info->target_dtype)
                return fail(TUTTI_INVALID, "the network's targets are of another type than those of these texts");
            continue;
        }
        if (buffer->dtype != TUTTI_DTYPE_I32 || (types ? room->types : room->ids))
            return fail(TUTTI_INVALID, "the network's input '%s' cannot take texts: these fill one of int32%s",
                buffer->name ? buffer->name : "", info->pairs ? ", and one called types" : "");
        *(types ? &room->types : &room->ids) = buffer->data;
        room->length = (int64_t)(buffer->bytes / sizeof(int32_t));
    }
    if (!room->ids) return fail(TUTTI_INVALID, "the network has no input for the tokens of texts");
    if (room->targets && room->target_bytes != target_bytes(info, room->length))
        return fail(TUTTI_INVALID, "the network's targets have %zu bytes for a sample, but those of these data %zu",
            room->target_bytes, target_bytes(info, room->length));
    return TUTTI_OK;
}

static tutti_status read_one(struct collection *collection, int64_t sample, int64_t position, const struct room *room)
{
    const int64_t length = room->length, own = collection->length(collection, sample);
    unsigned char *target = room->targets ? room->targets + (size_t)position * room->target_bytes : NULL;
    if (own > length || (collection->info.tokens_are_classes && own != length))
        return fail(TUTTI_INVALID,
            "a text has %lld tokens, but the batch has room for %lld: its length is that of "
            "tutti_source.batch_length or tutti_source.length",
            (long long)own, (long long)length);
    return collection->read_tokens(collection, sample, length, room->ids + position * length,
        room->types ? room->types + position * length : NULL, target);
}

int data_read_tokens(struct tutti_data *data, tutti_data_part number, const int64_t *indices, int64_t count,
    const tutti_buffer *buffers, int buffer_count)
{
    const struct data_part *part = &data->parts[number];
    struct room room;
    tutti_status status = set_room(&data->collection->info, buffers, buffer_count, &room);
    for (int64_t i = 0; i < count && status == TUTTI_OK; i++) {
        if (indices[i] < 0 || indices[i] >= part->count)
            status = fail(TUTTI_INVALID, "there is no sample %lld", (long long)indices[i]);
        else
            status = read_one(data->collection, part->samples[indices[i]], i, &room);
    }
    return (int)status;
}
