/* Post-processors of a tokenizer.json: special tokens around texts, and the type of each token. */
#ifndef TEXT_AROUND_H
#define TEXT_AROUND_H

#include "text/fields.h"
#include "text/lists.h"

struct around_item {
    int text; /* 0 or 1: that text; -1: ids */
    int32_t type;
    int32_t *ids;
    size_t count;
};
struct around_template {
    struct around_item *items;
    size_t count, capacity, special; /* special: ids in all */
};
struct around {
    struct around_template single, pair;
    bool given;  /* else texts follow each other, and the second has type 1 */
    bool always; /* types are those of the template also without special tokens */
};

/* json: NULL for none. size: ids are below it. */
tutti_status around_read(struct around *around, const json_t *json, int64_t size);
void around_free(struct around *around);

#endif
