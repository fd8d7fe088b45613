#include "base/options.h"

#include <string.h>

tutti_status options_read(void *to, size_t known, size_t first, const void *from, const char *type)
{
    size_t size = known;
    memset(to, 0, known);
    if (from) {
        memcpy(&size, from, sizeof size);
        if (size == 0) size = first;
        if (size < sizeof size)
            return fail(TUTTI_INVALID, "%s.size is %zu: set it to sizeof(%s) or to 0", type, size, type);
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
