/* Many texts in one block of memory, found by where they begin in it. */
#ifndef DATA_NAMES_H
#define DATA_NAMES_H

#include "tutti.h"

struct names {
    char *text;
    size_t used, capacity;
};

/* Appends "a", or "a/b" if b is not NULL. *at is where it begins. */
tutti_status names_add(struct names *names, const char *a, const char *b, size_t *at);
/* Valid until the next names_add(). */
static inline const char *names_at(const struct names *names, size_t at)
{
    return names->text + at;
}
void names_free(struct names *names);

#endif
