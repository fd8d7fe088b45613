/* Tokens by id and ids by token. */
#ifndef TEXT_VOCABULARY_H
#define TEXT_VOCABULARY_H

#include "base/status.h"
#include "text/lists.h"

/* Ids are below this: an array has one entry for each. */
enum { VOCABULARY_MOST = 1 << 22 };

struct vocabulary {
    struct vocabulary_token {
        size_t at;
        uint32_t size;
        bool present;
    } * tokens; /* [size]; texts are at these offsets and end with NUL */
    size_t size, token_capacity, count;
    struct byte_list texts;
    int32_t *slots; /* hash table of ids; -1: empty */
    size_t slot_count;
};

/* Adds a token. TUTTI_FORMAT if the id or the text is there already, or if the id is out of range. */
tutti_status vocabulary_add(struct vocabulary *vocabulary, const char *text, size_t size, int64_t id);
void vocabulary_free(struct vocabulary *vocabulary);
int32_t vocabulary_find(const struct vocabulary *vocabulary, const char *text, size_t size); /* -1: none */
/* NULL: none. */
const char *vocabulary_text(const struct vocabulary *vocabulary, int64_t id, size_t *size);

#endif
