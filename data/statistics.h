/* Means and standard deviations of channels or columns. */
#ifndef DATA_STATISTICS_H
#define DATA_STATISTICS_H

#include "tutti.h"

/* Reads tutti_data_options.normalise of data that are measured where it is NULL or "measured", which sets *measure.
 * "none": 0 and 1. Else numbers, as "0.5,0.4/0.2,0.2": `count` means and as many deviations. Errors: TUTTI_INVALID. */
tutti_status statistics_read(const char *text, int count, float *mean, float *std, bool *measure);

/* A running mean and variance (Welford's). */
struct statistics {
    double count, mean, squares;
};
static inline void statistics_add(struct statistics *statistics, double value)
{
    const double from = value - statistics->mean;
    statistics->count += 1;
    statistics->mean += from / statistics->count;
    statistics->squares += from * (value - statistics->mean);
}
/* The deviation is 1 where all values are equal. */
void statistics_end(const struct statistics *statistics, float *mean, float *std);

#endif
