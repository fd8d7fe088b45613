/* The division of a batch over devices, in whole samples. */
#ifndef PARALLEL_SHARES_H
#define PARALLEL_SHARES_H

#include "base/status.h"

struct share {
    double weight; /* relative weight, on any scale common to all devices; 0: it gets nothing */
    int64_t limit; /* samples that it can take, by its memory; micro-batches lift it, so usually INT64_MAX */
};

/* Writes samples[i] for each device: proportional to the weights, none above its limit. The remainders go to the
 * largest fractions (of equal ones to the earlier device: Hare's method). The result depends on the arguments alone.
 * TUTTI_INVALID if a weight is negative or not finite, or all are 0; TUTTI_DEVICE_MEMORY if the limits do not add up
 * to the batch. */
tutti_status shares_divide(const struct share *shares, int count, int64_t batch, int64_t *samples);

/* A device's time for n samples, and what it can take. */
struct share_line {
    double fixed, each; /* seconds: t(n) = fixed + each n; each is positive */
    int64_t limit;      /* samples; 0: it gets none */
};

/* Writes samples[i], none above its limit, so that the last device finishes as early as whole samples allow. Returns
 * that time. If the limits do not add up to the batch, returns infinity and writes nothing. */
double shares_level(const struct share_line *lines, int count, int64_t batch, int64_t *samples);

#endif
