/* Growing arrays of bytes and of ids. A failure is kept: check `failed` once at the end. */
#ifndef TEXT_LISTS_H
#define TEXT_LISTS_H

#include "base/memory.h"

#include <string.h>

struct byte_list {
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
bool byte_list_reserve(struct byte_list *list, size_t more);
bool id_list_reserve(struct id_list *list, size_t more);
void byte_list_free(struct byte_list *list);
void id_list_free(struct id_list *list);

static inline void byte_list_append(struct byte_list *list, const void *data, size_t size)
{
    if (size == 0) return;
    if (list->capacity - list->size < size && !byte_list_reserve(list, size)) return;
    memcpy(list->data + list->size, data, size);
    list->size += size;
}
static inline void id_list_append(struct id_list *list, int32_t id)
{
    if (list->size == list->capacity && !id_list_reserve(list, 1)) return;
    list->data[list->size++] = id;
}

#endif
