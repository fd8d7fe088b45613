/* Decoders of a tokenizer.json: tokens back to text. */
#ifndef TEXT_UNDO_H
#define TEXT_UNDO_H

#include "text/lists.h"
#include "text/pattern.h"

struct undoer;
struct undo_list {
    struct undoer *steps;
    size_t count, capacity;
    bool given;
};
/* Texts one after another: text i ends at ends[i]. */
struct text_list {
    struct byte_list bytes;
    size_t *ends;
    size_t count, capacity;
    bool failed;
};

void text_list_free(struct text_list *list);
/* Ends a text of what was appended to `bytes`. */
void text_list_end(struct text_list *list);

/* json: NULL for none. */
tutti_status undo_read(struct undo_list *list, const json_t *json);
void undo_free(struct undo_list *list);
/* The text of tokens, which are changed. */
tutti_status undo(
    const struct undo_list *list, struct pattern_matcher *matcher, struct text_list *tokens, struct byte_list *text);

#endif
