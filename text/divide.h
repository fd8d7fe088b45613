/* Pre-tokenizers of a tokenizer.json: they divide a text into pieces, which the model then encodes each by itself. */
#ifndef TEXT_DIVIDE_H
#define TEXT_DIVIDE_H

#include "text/lists.h"
#include "text/pattern.h"

struct piece {
    uint32_t begin, end;
    bool first; /* it begins where the original text begins */
};
struct piece_list {
    struct piece *data;
    size_t size, capacity;
    bool failed;
};
struct division {
    struct byte_list text, spare;
    struct piece_list pieces, others;
};

struct divider;
struct divider_list {
    struct divider *steps;
    size_t count, capacity;
    bool raw_bytes; /* the last step is ByteLevel, and leaves the bytes as they are: the model knows */
};

/* json: NULL for none. */
tutti_status divide_read(struct divider_list *list, const json_t *json);
void divide_free(struct divider_list *list);
/* Whether the last step makes characters of bytes. */
bool divide_ends_in_bytes(const struct divider_list *list);
/* Divides what is in work->text. first: whether it is the beginning of the original. */
tutti_status divide(
    const struct divider_list *list, struct pattern_matcher *matcher, struct division *work, bool first);

#endif
