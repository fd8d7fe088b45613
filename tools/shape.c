#include "tools/shape.h"

#include <stdlib.h>

bool shape_from_text(const char *text, tutti_shape *shape)
{
    *shape = (tutti_shape) { .rank = 0 };
    for (const char *rest = text; shape->rank < TUTTI_MAX_RANK;) {
        char *end = NULL;
        const long long size = strtoll(rest, &end, 10);
        if (end == rest || (*end && *end != 'x')) break;
        shape->sizes[shape->rank++] = size;
        if (!*end) return true;
        rest = end + 1;
    }
    *shape = (tutti_shape) { .rank = 0 };
    return false;
}
