/* The division of a batch over devices, in whole samples. */
#ifndef TRAIN_SHARES_H
#define TRAIN_SHARES_H

#include "base/status.h"

struct share {
    double weight; /* this device's part, on any scale shared by all; 0: it gets nothing */
    int64_t limit; /* samples that it can take, by its memory; micro-batches lift it, so usually INT64_MAX */
};

/* Writes samples[i] for each device: proportional to the weights, the remainders going to the largest fractions (the
 * earlier device where they are equal: Hare's method), none above its limit. The result depends on the arguments alone.
 * TUTTI_INVALID where a weight is negative or not finite or all are 0; TUTTI_DEVICE_MEMORY where the limits do not add
 * up to the batch. */
tutti_status shares_divide(const struct share *shares, int count, int64_t batch, int64_t *samples);

/* A device's time for n samples, and what it can take. */
struct share_line {
    double fixed, each; /* seconds: t(n) = fixed + each n; each is positive */
    int64_t limit;      /* samples; 0: it gets none */
};

/* Writes samples[i] so that the last device is done as early as whole samples allow, none above its limit, and gives
 * that time; infinite, and nothing written, where the limits do not add up to the batch. */
double shares_level(const struct share_line *lines, int count, int64_t batch, int64_t *samples);

#endif
