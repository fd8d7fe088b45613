/* What training did to samples before the network got them, done to arrays of `tutti infer --inputs`. */
#ifndef TOOLS_PREPARE_H
#define TOOLS_PREPARE_H

#include "tools/ports.h"

/* As the weights record it. */
struct preparation {
    bool known;      /* they do */
    bool nodes;      /* it is an ONNX file whose nodes do all of it */
    bool bytes;      /* samples are bytes, divided by 255 before */
    bool recordings; /* spectrograms, which arrays are not made to */
    bool table;      /* bytes are numbers as others */
    bool texts;      /* not all columns of the table are plain numbers, which arrays are not made to */
    double *mean, *std;
    double *target_mean, *target_std; /* outputs times std plus mean are in the units of the data */
    int count, target_count;          /* 0: nothing is done */
};

/* Reads it from a file of weights, or an ONNX file; NULL: there is none. Free it with preparation_free(), also on
 * failure. */
tutti_status preparation_read(const char *weights, struct preparation *preparation);
void preparation_free(struct preparation *preparation);
/* Says on standard error what is done to inputs, or would be with --prepare. */
void preparation_report(const struct preparation *preparation, const char *weights, bool prepares);
/* Prepares the only input from the array that it was read from. Returns an exit status. */
int preparation_apply(
    const struct preparation *preparation, const char *weights, const struct npz_array *array, struct port *input);
/* Converts the numbers of an output to the units of the data, if they are targets. */
void preparation_undo(const struct preparation *preparation, int64_t samples, struct port *output);

#endif
