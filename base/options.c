#include "base/options.h"

#include <string.h>

static tutti_status check_size(size_t size, const char *type)
{
    if (size >= sizeof size) return TUTTI_OK;
    return fail(TUTTI_INVALID, "%s.size is %zu: set it to sizeof(%s) or to 0", type, size, type);
}

tutti_status options_read(void *to, size_t known, size_t first, const void *from, const char *type)
{
    size_t size = known;
    memset(to, 0, known);
    if (from) {
        memcpy(&size, from, sizeof size);
        if (size == 0) size = first;
        const tutti_status status = check_size(size, type);
        if (status != TUTTI_OK) return status;
        for (size_t i = known; i < size; i++)
            if (((const unsigned char *)from)[i] != 0)
                return fail(TUTTI_INVALID,
                    "%s has %zu bytes, and this library knows %zu: a member that it does not know is set; use a newer "
                    "library",
                    type, size, known);
        memcpy(to, from, size < known ? size : known);
    }
    memcpy(to, &known, sizeof known);
    return TUTTI_OK;
}

tutti_status result_write(void *to, size_t known, size_t first, const void *from, const char *type)
{
    size_t size;
    memcpy(&size, to, sizeof size);
    if (size == 0) size = first;
    const tutti_status status = check_size(size, type);
    if (status != TUTTI_OK) return status;
    if (size > known) size = known;
    memcpy((unsigned char *)to + sizeof size, (const unsigned char *)from + sizeof size, size - sizeof size);
    return TUTTI_OK;
}
