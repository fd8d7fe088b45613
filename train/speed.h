/* How long a device takes for its part of a step, t(n) = scale (a + b n), learnt from the steps themselves.
 *
 * The shape, a + b n, is fitted over the sizes that have occurred; the scale follows the last few steps, so that a
 * device which another process slows down is noticed at once and at whatever size it works. A step at a size that was
 * just taken up teaches the shape (old knowledge of that size is forgotten by halves), a later one the scale. Medians
 * keep outliers out. There are two shapes: gradients that are exchanged, and a device that trains alone and updates
 * itself; both slow down together. */
#ifndef TRAIN_SPEED_H
#define TRAIN_SPEED_H

#include <stdbool.h>
#include <stdint.h>

enum speed_mode { SPEED_TOGETHER, SPEED_ALONE };
enum { SPEED_MODES = 2, SPEED_SIZES = 6, SPEED_LEARN = 7, SPEED_RECENT = 7 };

struct speed {
    struct speed_size {
        int64_t samples;        /* 0: not in use */
        double seconds, before; /* at scale 1, now and before it was taken up the last time (0: never seen) */
        uint64_t used;
    } sizes[SPEED_MODES][SPEED_SIZES];
    double a[SPEED_MODES], b[SPEED_MODES]; /* b is 0 where nothing is known */
    double scale;                          /* 0 before the first step */
    double recent[SPEED_RECENT];           /* measured over fitted, of the last steps at this size */
    int steps;                             /* since this mode and size were taken up */
    bool probed;                           /* since the last step: the scale is not that of `recent` */
    enum speed_mode mode;
    int64_t samples;
    uint64_t clock;
};

/* A step that took `seconds` for `samples`. What is no positive number is ignored. A zeroed speed is a new one. */
void speed_add(struct speed *speed, enum speed_mode mode, int64_t samples, double seconds);
/* A step together with others now and then, of a device that gets no part. It is at once believed: the scale was that
 * of the moment in which the device was left out, and one probe is all there is for a long time. Where nothing is known
 * of the device, it is a step like others. */
void speed_probe(struct speed *speed, int64_t samples, double seconds);
/* Of the sizes together only the last one stays: a line through the origin, with the time that was known for that size.
 * Times of the others may be from moments in which the machine was disturbed, and shares by such a line would stay. */
void speed_forget(struct speed *speed);
bool speed_known(const struct speed *speed, enum speed_mode mode);
/* t(n) = *fixed + *each n as it is now; where the mode was never seen, that of the other. */
void speed_line(const struct speed *speed, enum speed_mode mode, double *fixed, double *each);
double speed_time(const struct speed *speed, enum speed_mode mode, int64_t samples);
/* Of up to SPEED_RECENT values in any order; 0 where there are none. */
double speed_median(const double *values, int count);
/* The usual distance of a step's time from the median, as a part of it. */
double speed_noise(const struct speed *speed);

#endif
