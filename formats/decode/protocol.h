/* What goes over the socket between formats/decoder.c and the helper process tutti-decode. The helper sends an answer
 * when it is ready, then one for each request. Whoever reads an answer takes it for hostile. */
#ifndef FORMATS_DECODE_PROTOCOL_H
#define FORMATS_DECODE_PROTOCOL_H

#include <stdint.h>

enum { DECODE_MOST_PIXELS = 1 << 28, DECODE_MOST_CHANNELS = 1024, DECODE_MOST_FRAMES = 1 << 20 };

enum decode_task {
    DECODE_SIZE,   /* of a picture, whose bytes follow */
    DECODE_PIXELS, /* of a picture, whose bytes follow; rows of bytes follow the answer */
    DECODE_OPEN,   /* a recording, whose descriptor comes with the request */
    DECODE_SAMPLES /* of the recording that is open; floats follow the answer */
};

struct decode_request {
    uint32_t task;
    uint32_t mask;  /* numbers of pixels are classes */
    uint64_t bytes; /* of the file */
    int64_t first;  /* frame */
    int64_t frames; /* at most DECODE_MOST_FRAMES */
};

enum decode_status {
    DECODE_DONE,
    DECODE_DAMAGED,    /* `text` says why */
    DECODE_NO_MEMORY,  /* the helper has none left for this file */
    DECODE_NO_LIBRARY, /* at the start: it cannot be loaded */
    DECODE_NO_SANDBOX  /* at the start: this system cannot take the process's rights */
};

struct decode_answer {
    uint32_t status;
    uint32_t row; /* enum image_row */
    int32_t width, height, orientation;
    int32_t rate, channels;
    int64_t frames;
    char text[160];
};

#endif
