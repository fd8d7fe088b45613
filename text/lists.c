#include "text/lists.h"

#include <stdlib.h>

bool byte_list_reserve(struct byte_list *list, size_t more)
{
    size_t needed;
    if (list->failed || !size_add(list->size, more, &needed) || !size_add(needed, needed / 2 + 64, &needed) ||
        memory_grow((void **)&list->data, &list->capacity, needed, 1) != TUTTI_OK)
        list->failed = true;
    return !list->failed;
}

bool id_list_reserve(struct id_list *list, size_t more)
{
    size_t needed;
    if (list->failed || !size_add(list->size, more, &needed) ||
        memory_grow((void **)&list->data, &list->capacity, needed, sizeof(int32_t)) != TUTTI_OK)
        list->failed = true;
    return !list->failed;
}

void byte_list_free(struct byte_list *list)
{
    free(list->data);
    *list = (struct byte_list) { 0 };
}

void id_list_free(struct id_list *list)
{
    free(list->data);
    *list = (struct id_list) { 0 };
}
