/* What lies in folders of data and is not used: counted by kind, so that one line says what is missing. */
#ifndef DATA_IGNORED_H
#define DATA_IGNORED_H

#include "tutti_data.h"

#include <stdbool.h>
#include <stdint.h>

enum { IGNORED_KINDS = 24, IGNORED_EXAMPLES = 3 };

struct ignored {
    struct ignored_kind {
        char extension[12]; /* ".svg", in lower case; "": files without one */
        int64_t count;
    } kinds[IGNORED_KINDS];
    int kind_count;
    int64_t others; /* files of more kinds than there is room for */
    int64_t folders, hidden;
    char examples[IGNORED_EXAMPLES][200]; /* the first paths */
    int example_count;
};

/* Counts a file or folder. `parent` may be NULL. */
void ignored_add(struct ignored *ignored, const char *parent, const char *name, bool is_folder);
/* Returns whether anything was counted. */
bool ignored_any(const struct ignored *ignored);

#define IGNORED_PICTURES "picture (JPEG, PNG, WebP, TIFF, HEIC, AVIF, GIF, BMP, PPM, PGM)"
#define IGNORED_RECORDINGS "recording (WAV, FLAC, MP3, Ogg, Opus, AIFF, AU, CAF)"

struct ignored_text {
    char text[400];
};
/* "12 .svg files, 1 .txt file, 2 folders", the most frequent kinds first; "" if nothing was counted. */
struct ignored_text ignored_list(const struct ignored *ignored);
/* Refuses a folder that should be a class but has nothing that can be read: names it, what it has, and what could be
 * read. `what` is IGNORED_PICTURES or IGNORED_RECORDINGS. */
tutti_status ignored_refuse(const char *folder, const char *what);
/* Calls note() of the options with one line, if anything was counted, and keeps what was counted in `kept`. */
void ignored_note(const struct ignored *ignored, const tutti_data_options *options, struct ignored *kept);

#endif
