/* A training that was read from a file: a report's page, or a table of `tutti train --log`. */
#ifndef TOOLS_RUN_FILE_H
#define TOOLS_RUN_FILE_H

#include "tutti.h"

#include <jansson.h>

/* What is known of each epoch; NaN where it is not. */
enum run_column {
    RUN_EPOCH,
    RUN_LOSS,
    RUN_ACCURACY,
    RUN_TEST_LOSS,
    RUN_TEST_ACCURACY,
    RUN_RATE,
    RUN_SECONDS,
    RUN_SAMPLES_PER_S,
    RUN_F1,
    RUN_R2,
    RUN_MAE,
    RUN_COLUMNS
};

struct run {
    char *name;        /* of the file, without its folder and ending */
    char *command;     /* NULL: not known */
    double parameters; /* NaN: not known */
    double *values[RUN_COLUMNS];
    size_t count, room;
};

/* Adds the epochs of a page's data (report_epochs()). */
tutti_status run_epochs(struct run *run, const json_t *epochs);
/* Free with run_free(), also after a failure. */
tutti_status run_read(struct run *run, const char *path);
void run_free(struct run *run);

#endif
