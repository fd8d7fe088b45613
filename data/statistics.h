/* Means and standard deviations of channels or columns. */
#ifndef DATA_STATISTICS_H
#define DATA_STATISTICS_H

#include "tutti_data.h"

enum { STATISTICS_CHANNELS = 16 }; /* at most, of tutti_data_info.mean */

/* Reads tutti_data_options.normalise. NULL and "measured" set *measure. "none" gives 0 and 1. Else the text has
 * numbers, as "0.5,0.4/0.2,0.2": `channels` means and as many deviations. Errors: TUTTI_INVALID. */
tutti_status statistics_read(const char *text, int channels, float *mean, float *std, bool *measure);

/* Reads it for images with 1 or 3 channels, where it may be "imagenet", too: torchvision's numbers, for grey images
 * the mean of the channels. */
tutti_status statistics_read_images(const char *text, int channels, float *mean, float *std, bool *measure);

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
/* Adds values at once, without a division for each (Chan's). */
void statistics_add_many(struct statistics *statistics, const double *values, int count);
/* The deviation; 1 where all values are equal, up to rounding. */
double statistics_deviation(const struct statistics *statistics);
/* Writes mean and deviation as floats. The deviation is 1 where all values are equal. */
void statistics_end(const struct statistics *statistics, float *mean, float *std);
/* Writes the mean and the deviation of bytes / 255, where the byte v occurs counts[v] times. */
void statistics_of_bytes(const int64_t counts[256], float *mean, float *std);

/* The numbers by which columns are standardised. In double: a time in milliseconds has more digits than a float, and
 * differs from its mean by little. */
struct standards {
    int count;
    double *mean, *std; /* [count] */
    bool measure;       /* they are not known yet: standards_end() sets them */
};
/* Reads numbers as statistics_read() does, for `count` columns. Free them with standards_free(), also on failure. */
tutti_status standards_read(struct standards *standards, const char *text, int count);
/* Reads the standards of targets that are numbers, from options->normalise_targets, and has the info point to
 * them. */
tutti_status standards_read_targets(
    struct standards *standards, const tutti_data_options *options, int count, tutti_data_info *info);
void standards_end(struct standards *standards, const struct statistics *columns);
void standards_free(struct standards *standards);
/* (value - mean) / std of a column; a value very far from the mean says no more than one nearer to it. */
float standards_apply(const struct standards *standards, int column, double value);

#endif
