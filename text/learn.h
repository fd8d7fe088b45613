/* Learns the merges of byte-pair encoding from counted words, in the order of Hugging Face's trainer. */
#ifndef TEXT_LEARN_H
#define TEXT_LEARN_H

#include "text/vocabulary.h"

/* Words with how often they occur, by their first occurrence. */
struct word_counts {
    struct vocabulary words; /* by index */
    int64_t *counts;
    size_t capacity;
};
tutti_status word_counts_add(struct word_counts *words, const char *text, size_t size);
void word_counts_free(struct word_counts *words);

struct learned_merge {
    int32_t left, right;
};
struct learned {
    struct vocabulary tokens; /* has special tokens and characters before, and gets what is merged */
    struct learned_merge *merges;
    size_t count, capacity;
};
/* Adds tokens until there are `most`, of pairs that occur at least `least` times. prefix: of characters that do not
 * begin a word, whose tokens are there; NULL: none. Characters without a token are left out. */
tutti_status learn_merges(
    struct learned *learned, const struct word_counts *words, int64_t most, int64_t least, const char *prefix);
void learned_free(struct learned *learned);

#endif
