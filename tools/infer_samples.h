/* Inference of the samples of data, batch by batch: predictions are printed and written as they come. */
#ifndef TOOLS_INFER_SAMPLES_H
#define TOOLS_INFER_SAMPLES_H

#include "tools/predictions.h"
#include "tools/saved.h"

struct infer_request {
    const struct saved_options *saved;
    int64_t first, count; /* of the samples; count 0: all that follow */
    bool alone;           /* samples have names, and no number among others */
    const char *table;    /* the only file of a table, or NULL */
    struct predictions predictions;
    const char *file;  /* of several tables, the one that is predicted; NULL: there are no others */
    int64_t before;    /* samples of the files before */
    int64_t done, bad; /* samples that were predicted, and that could not be read */
};

/* Infers samples of a part with the session's compiled network. Samples that cannot be read are named in a line and
 * counted. */
tutti_status infer_samples(
    struct infer_request *request, struct session *session, const struct data *data, struct samples *samples);

#endif
