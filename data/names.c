#include "data/names.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

tutti_status names_add(struct names *names, const char *a, const char *b, size_t *at)
{
    const size_t first = strlen(a), second = b ? strlen(b) : 0, bytes = first + second + (b ? 2 : 1);
    const tutti_status status = memory_grow((void **)&names->text, &names->capacity, names->used + bytes, 1);
    if (status != TUTTI_OK) return status;
    char *to = names->text + names->used;
    memcpy(to, a, first + 1);
    if (b) {
        to[first] = '/';
        memcpy(to + first + 1, b, second + 1);
    }
    *at = names->used;
    names->used += bytes;
    return TUTTI_OK;
}

void names_free(struct names *names)
{
    free(names->text);
    *names = (struct names) { 0 };
}
