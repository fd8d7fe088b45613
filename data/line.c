/* "line": points of y = 3 x + 2, what the linear model is tried on. */
#include "data/collection.h"

#include "base/memory.h"
#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRAINING = 1000, TEST = 200, TEST_BEGINS = 7919 };

/* Points spread over 0 <= x < 1: the golden ratio's multiples, whose fractions are never crowded. */
static tutti_status read_point(
    struct collection *collection, int64_t index, const struct draw *draw, void *sample, void *target)
{
    (void)collection, (void)draw;
    const double turns = (double)(index < TRAINING ? index : index - TRAINING + TEST_BEGINS) * 0.6180339887498949;
    const float x = (float)(turns - (double)(int64_t)turns), y = 3 * x + 2;
    memcpy(sample, &x, sizeof(x));
    memcpy(target, &y, sizeof(y));
    return TUTTI_OK;
}

static void name_point(const struct collection *collection, int64_t index, char *text, size_t size)
{
    (void)collection;
    snprintf(text, size, "point %lld", (long long)index);
}

static void free_line(struct collection *collection)
{
    free(collection->parts);
    free(collection);
}

tutti_status line_open(const char *path, const tutti_data_options *options, struct collection **made)
{
    if (strcmp(path, "line") != 0) return TUTTI_OK;
    if (options->augment && strcmp(options->augment, "none") != 0)
        return fail(TUTTI_INVALID, "points of a line are not augmented, and \"%s\" is asked for: leave it out",
            options->augment);
    if (options->normalise && strcmp(options->normalise, "none") != 0)
        return fail(TUTTI_INVALID, "points of a line are not normalised, and \"%s\" is asked for: leave it out",
            options->normalise);
    struct collection *line = memory_new(1, sizeof(*line));
    if (!line) return TUTTI_NO_MEMORY;
    const tutti_shape one = { .rank = 1, .sizes = { 1 } };
    *line = (struct collection) { .info = { .kind = "line",
                                      .dtype = TUTTI_DTYPE_F32,
                                      .target_dtype = TUTTI_DTYPE_F32,
                                      .shape = one,
                                      .target_shape = one },
        .samples = TRAINING + TEST,
        .parts = memory_new(TRAINING + TEST, sizeof(*line->parts)),
        .read = read_point,
        .name = name_point,
        .free = free_line };
    if (!line->parts) {
        free_line(line);
        return TUTTI_NO_MEMORY;
    }
    memset(line->parts, TUTTI_DATA_TRAIN, TRAINING);
    memset(line->parts + TRAINING, TUTTI_DATA_TEST, TEST);
    *made = line;
    return TUTTI_OK;
}
