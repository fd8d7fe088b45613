/* The network as a picture, for `tutti show`. */
#ifndef TOOLS_PICTURE_H
#define TOOLS_PICTURE_H

#include "tools/session.h"

struct picture_options {
    const char *svg, *html;
    bool time;
};

#define PICTURE_OPTIONS(p)                                                                                             \
    { "svg", OPTION((p).svg), "FILE",                                                                                  \
        "draw the network, with the shape and the kernel of each layer on the first device", .file = OPTION_WRITES },  \
        { "html", OPTION((p).html), "FILE", "the same as a page", .file = OPTION_WRITES },                             \
    {                                                                                                                  \
        "time", OPTION((p).time), NULL, "with --svg or --html: run a step on zeros and measure the time of each layer" \
    }

/* Writes what the options ask for, of the compiled session. Returns an exit status. */
int picture_write(const struct session *session, const struct picture_options *options, int64_t batch, bool train);

#endif
