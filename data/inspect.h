/* Inside of tutti_data_inspect(): JSON of texts and numbers as they come, and counts of equal things. */
#ifndef DATA_INSPECT_H
#define DATA_INSPECT_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

enum { COUNTED_TEXT = 64, COUNTED_MOST = 1000 };

/* What is equal has the same text, such as "320x240". */
struct counts {
    struct counted {
        char text[COUNTED_TEXT];
        int64_t files;
    } list[COUNTED_MOST];
    int count;
    int64_t others; /* files for which there is no room */
};

void counts_add(struct counts *counts, const char *text);
/* A list of { name, files }, the most frequent first, at most `most` of them. Sorts the counts. */
json_t *counts_json(struct counts *counts, int most);

/* Texts that are not UTF-8 or too long are shortened and made so; numbers that are not finite become null. */
json_t *inspect_text(const char *text);
json_t *inspect_real(double value);

/* Which of `count` files are opened if there are at most `most`, 0: all; returns the distance between them. */
int64_t inspect_step(int64_t count, int64_t most);

#endif
