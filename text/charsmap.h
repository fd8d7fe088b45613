/* SentencePiece's compiled table of replacements: a double array (darts) of beginnings, and the texts they become. */
#ifndef TEXT_CHARSMAP_H
#define TEXT_CHARSMAP_H

#include "base/status.h"
#include "text/lists.h"

struct charsmap;

/* base64: as a tokenizer.json holds the table. */
tutti_status charsmap_new(struct charsmap **map, const char *base64, size_t size);
void charsmap_free(struct charsmap *map); /* takes NULL */
/* Appends the text with its graphemes and characters replaced. */
void charsmap_apply(const struct charsmap *map, const char *text, size_t size, struct byte_list *to);

#endif
