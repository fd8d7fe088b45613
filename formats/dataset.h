/* Labelled images in memory. */
#ifndef FORMATS_DATASET_H
#define FORMATS_DATASET_H

#include "tutti.h"

struct dataset {
    int64_t samples;
    int channels, height, width;
    int classes;           /* labels are 0 .. classes - 1; the same for the training and the test part */
    unsigned char *pixels; /* [samples][channels][height][width] */
    int32_t *labels;       /* [samples] */
    char *class_names;     /* one a line; NULL: there is no file with them */
    char name[64];         /* "digits", "IDX", "CIFAR-10" ... */
};

/* Room for the pixels and labels of `samples` images; name, classes and sizes are set, the contents zero. */
tutti_status dataset_new(
    struct dataset *dataset, const char *name, int64_t samples, int channels, int height, int width, int classes);
void dataset_free(struct dataset *dataset);

#endif
