#include "formats/dataset.h"

#include "base/memory.h"
#include "base/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

tutti_status dataset_new(
    struct dataset *dataset, const char *name, int64_t samples, int channels, int height, int width, int classes)
{
    size_t bytes;
    memset(dataset, 0, sizeof(*dataset));
    if (samples < 1 || channels < 1 || height < 1 || width < 1 ||
        !size_multiply((size_t)channels * (size_t)height, (size_t)width, &bytes) ||
        !size_multiply(bytes, (size_t)samples, &bytes))
        return fail(TUTTI_INVALID,
            "%s: a data set cannot have %" PRId64 " samples of %d x %d x %d: all must be positive and fit into memory",
            name, samples, channels, height, width);
    dataset->pixels = memory_new(bytes, 1);
    dataset->labels = memory_new((size_t)samples, sizeof(*dataset->labels));
    if (!dataset->pixels || !dataset->labels) {
        dataset_free(dataset);
        return TUTTI_NO_MEMORY;
    }
    dataset->samples = samples;
    dataset->channels = channels;
    dataset->height = height;
    dataset->width = width;
    dataset->classes = classes;
    snprintf(dataset->name, sizeof(dataset->name), "%s", name);
    return TUTTI_OK;
}

void dataset_free(struct dataset *dataset)
{
    free(dataset->pixels);
    free(dataset->labels);
    free(dataset->class_names);
    memset(dataset, 0, sizeof(*dataset));
}
