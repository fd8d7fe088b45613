/* Training and test samples of a command, as sources that the trainer reads. */
#ifndef TOOLS_DATA_H
#define TOOLS_DATA_H

#include "formats/dataset.h"

struct samples {
    struct dataset images; /* empty for the line */
    int64_t count, first;  /* of the line: its first point's number */
    bool numbers;          /* targets are floats (mean squared error) */
    tutti_source source;   /* reads from this struct: do not move it */
};

struct data {
    struct samples train, test;
    char name[64];
    int channels, height, width, classes;
};

/* Loads "digits", "line" or a folder (formats/dataset_load.h). numbers: targets are floats, the labels as numbers.
 * "line" is 1,000 points of y = 3 x + 2 and 200 for the test: what the linear model is tried on. */
tutti_status data_load(struct data *data, const char *where, bool numbers);
/* Of a sample. */
tutti_shape data_shape(const struct data *data);
void data_free(struct data *data);

#endif
