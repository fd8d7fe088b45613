/* Inside tutti-decode: the libraries that it loads, one in each process. */
#ifndef FORMATS_DECODE_DECODE_H
#define FORMATS_DECODE_DECODE_H

#include "formats/decode/protocol.h"

#include <stdbool.h>
#include <stddef.h>

/* A picture in memory, and what becomes of it. */
struct picture_file {
    const unsigned char *bytes;
    size_t count;
    bool wants_pixels, mask;
    unsigned char *pixels; /* [height][width][numbers of a row]; for main.c to free */
};

struct library {
    const char *name;
    bool (*load)(void);
    /* Fills in the answer, and pixels where they are wanted; false, with a reason in the answer, where that fails. */
    bool (*read_picture)(struct picture_file *file, struct decode_answer *answer);
    bool (*open_sound)(int descriptor, uint64_t bytes, struct decode_answer *answer);
    /* The mean of the channels. */
    bool (*read_sound)(int64_t first, int64_t frames, float *mono, struct decode_answer *answer);
};
extern const struct library library_heif, library_sound, library_tiff, library_webp;

/* One of a library's functions, and the pointer to it. */
struct symbol {
    const char *name;
    void *function; /* the address of a pointer to a function */
};
/* Loads the first of the files, up to a NULL, that has all functions, and all that these need. */
bool library_load(const char *const *files, const struct symbol *symbols, size_t count);

/* Records why a file is refused; returns false. */
bool refuse(struct decode_answer *answer, enum decode_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Sets the picture's size and kind of rows, and allocates pixels if they are wanted. */
bool begin_picture(
    struct picture_file *file, struct decode_answer *answer, int64_t width, int64_t height, uint32_t row);

/* Gives up all rights: afterwards the process can compute, have memory and threads, and use the descriptors that it
 * has. Returns whether that worked. */
bool sandbox_enter(void);

#endif
