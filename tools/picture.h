/* The network as a picture, for `tutti show`. */
#ifndef TOOLS_PICTURE_H
#define TOOLS_PICTURE_H

#include "tools/session.h"

struct picture_options {
    const char *svg, *html;
    bool time;
};

#define PICTURE_OPTIONS(p)                                                                                         \
    { .name = "svg",                                                                                               \
        .kind = OPTION_TEXT,                                                                                       \
        .value = &(p).svg,                                                                                         \
        .noun = "FILE",                                                                                            \
        .help = "draw the network, with the shape and the kernel of each layer on the first device" },             \
        { .name = "html", .kind = OPTION_TEXT, .value = &(p).html, .noun = "FILE", .help = "the same as a page" }, \
    {                                                                                                              \
        .name = "time", .kind = OPTION_FLAG, .value = &(p).time,                                                   \
        .help = "with --svg or --html: run a step on zeros and measure the time of each layer"                     \
    }

/* Writes what the options ask for, of the compiled session. Returns an exit status. */
int picture_write(const struct session *session, const struct picture_options *options, int64_t batch, bool train);

#endif
