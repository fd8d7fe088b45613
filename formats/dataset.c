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
    memset(dataset, 0, sizeof(*dataset));
}

static size_t sample_bytes(const struct dataset *dataset)
{
    return (size_t)dataset->channels * (size_t)dataset->height * (size_t)dataset->width;
}

tutti_status dataset_hold_out(struct dataset *dataset, int64_t count, struct dataset *held)
{
    if (count < 1 || count >= dataset->samples)
        return fail(TUTTI_INVALID, "%s: %" PRId64 " samples cannot be separated from %" PRId64, dataset->name, count,
            dataset->samples);
    tutti_status status =
        dataset_new(held, dataset->name, count, dataset->channels, dataset->height, dataset->width, dataset->classes);
    if (status != TUTTI_OK) return status;
    int64_t kept = dataset->samples - count;
    size_t unit = sample_bytes(dataset);
    memcpy(held->pixels, dataset->pixels + (size_t)kept * unit, (size_t)count * unit);
    memcpy(held->labels, dataset->labels + kept, (size_t)count * sizeof(*held->labels));
    dataset->samples = kept;
    return TUTTI_OK;
}

int dataset_read(const struct dataset *dataset, const int64_t *indices, int64_t count, float *inputs, int32_t *labels)
{
    size_t unit = sample_bytes(dataset);
    for (int64_t i = 0; i < count; i++) {
        if (indices[i] < 0 || indices[i] >= dataset->samples) {
            fail(TUTTI_INVALID, "%s: sample %" PRId64 " of %" PRId64, dataset->name, indices[i], dataset->samples);
            return -1;
        }
        const unsigned char *pixels = dataset->pixels + (size_t)indices[i] * unit;
        float *input = inputs + (size_t)i * unit;
        for (size_t k = 0; k < unit; k++) input[k] = (float)pixels[k] / 255.0f;
        labels[i] = dataset->labels[indices[i]];
    }
    return 0;
}
