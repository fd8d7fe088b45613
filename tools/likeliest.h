/* What a network predicts for one sample: the likeliest classes, with bars on a terminal. */
#ifndef TOOLS_LIKELIEST_H
#define TOOLS_LIKELIEST_H

#include "tutti.h"

struct likeliest {
    const char *title;        /* what a person calls the sample */
    const char *file;         /* that it is a row of; NULL: not told */
    int64_t index;            /* of many samples, each of which gets a line; negative: the only sample */
    const char *const *names; /* of the classes; NULL: they have numbers */
    const float *outputs;     /* [classes][labels] */
    int64_t classes, labels;  /* labels above 1: a class for each pixel; what counts is its share of them */
    int64_t label;            /* the true class; negative: unknown */
};

/* Computes the probability of each class, or its share of the pixels, [classes]. */
void likeliest_values(const struct likeliest *likeliest, double *values);
/* Prints it to standard output. Errors: TUTTI_NO_MEMORY, or TUTTI_FILE if it cannot be written. */
tutti_status likeliest_print(const struct likeliest *likeliest, const double *values, bool json);

#endif
