/* Normalizers of a tokenizer.json: what happens to a text before it is divided. */
#ifndef TEXT_NORMALISE_H
#define TEXT_NORMALISE_H

#include "text/lists.h"
#include "text/pattern.h"

struct normaliser;
struct normaliser_list {
    struct normaliser *steps;
    size_t count, capacity;
};

/* json: NULL for none. */
tutti_status normalise_read(struct normaliser_list *list, const json_t *json);
void normalise_free(struct normaliser_list *list);
/* A text on its way. */
struct normalised {
    struct byte_list text, spare;
    bool moved; /* the text no longer begins with what the original began with */
};
/* Normalises what is in `text`. */
tutti_status normalise(const struct normaliser_list *list, struct pattern_matcher *matcher, struct normalised *work);

#endif
