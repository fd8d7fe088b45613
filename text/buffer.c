#include "text/buffer.h"

#include <stdlib.h>

bool buffer_reserve(struct buffer *buffer, size_t more)
{
    size_t needed;
    if (buffer->failed || !size_add(buffer->size, more, &needed) || !size_add(needed, needed / 2 + 64, &needed) ||
        memory_grow((void **)&buffer->data, &buffer->capacity, needed, 1) != TUTTI_OK)
        buffer->failed = true;
    return !buffer->failed;
}

bool id_list_reserve(struct id_list *list, size_t more)
{
    size_t needed;
    if (list->failed || !size_add(list->size, more, &needed) ||
        memory_grow((void **)&list->data, &list->capacity, needed, sizeof(int32_t)) != TUTTI_OK)
        list->failed = true;
    return !list->failed;
}

void buffer_free(struct buffer *buffer)
{
    free(buffer->data);
    *buffer = (struct buffer) { 0 };
}

void id_list_free(struct id_list *list)
{
    free(list->data);
    *list = (struct id_list) { 0 };
}
