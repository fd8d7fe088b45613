/* Growing arrays of bytes and of ids. A failure is kept: check `failed` once at the end. */
#ifndef TEXT_BUFFER_H
#define TEXT_BUFFER_H

#include "base/memory.h"

#include <string.h>

struct buffer {
    char *data;
    size_t size, capacity;
    bool failed;
};
struct id_list {
    int32_t *data;
    size_t size, capacity;
    bool failed;
};

/* Makes room for so many more bytes or ids; false: it failed. */
bool buffer_reserve(struct buffer *buffer, size_t more);
bool id_list_reserve(struct id_list *list, size_t more);
void buffer_free(struct buffer *buffer);
void id_list_free(struct id_list *list);

static inline void buffer_append(struct buffer *buffer, const void *data, size_t size)
{
    if (size == 0) return;
    if (buffer->capacity - buffer->size < size && !buffer_reserve(buffer, size)) return;
    memcpy(buffer->data + buffer->size, data, size);
    buffer->size += size;
}
static inline void id_list_append(struct id_list *list, int32_t id)
{
    if (list->size == list->capacity && !id_list_reserve(list, 1)) return;
    list->data[list->size++] = id;
}

#endif
