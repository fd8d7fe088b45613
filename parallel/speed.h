/* How long a device takes for its part of a step, t(n) = scale (a + b n), learnt from the steps themselves.
 *
 * The shape a + b n is fitted over the sizes that have occurred. The scale follows the last few steps, so a slowdown
 * by another process is noticed at once, at any size. The first steps after a change of the size teach the shape (an
 * older time for that size counts half), later ones the scale. Medians reject outliers. There are two shapes, which
 * share the scale: one with the exchange of gradients, and one for a sole replica. */
#ifndef PARALLEL_SPEED_H
#define PARALLEL_SPEED_H

#include <stdbool.h>
#include <stdint.h>

enum speed_mode { SPEED_TOGETHER, SPEED_SOLE };
enum { SPEED_MODES = 2, SPEED_SIZES = 6, SPEED_LEARN = 7, SPEED_RECENT = 7 };

struct speed {
    struct speed_size {
        int64_t samples;        /* 0: not in use */
        double seconds, before; /* at scale 1, now and before it was taken up the last time (0: never seen) */
        uint64_t used;
    } sizes[SPEED_MODES][SPEED_SIZES];
    double a[SPEED_MODES], b[SPEED_MODES]; /* b is 0 if nothing is known */
    double scale;                          /* 0 before the first step */
    double recent[SPEED_RECENT];           /* measured over fitted, of the last steps at this size */
    int steps;                             /* since this mode and size were taken up */
    bool probed;                           /* since the last step: the scale is not that of `recent` */
    enum speed_mode mode;
    int64_t samples;
    uint64_t clock;
};

/* Adds a step that took `seconds` for `samples`. Ignores what is not a positive finite number. A zeroed struct is a
 * new one. */
void speed_add(struct speed *speed, enum speed_mode mode, int64_t samples, double seconds);
/* Adds a probe: an occasional step together with others, of a device that has no part. It sets the scale at once,
 * because the old scale is from when the device was left out, and the next probe comes much later. If nothing is
 * known of the device, it counts as a normal step. */
void speed_probe(struct speed *speed, int64_t samples, double seconds);
/* Keeps only the last of the sizes together: the line goes through the origin and the known time for that size. The
 * others may have been measured while the machine was disturbed, and shares by such a line would persist. */
void speed_reset(struct speed *speed);
bool speed_known(const struct speed *speed, enum speed_mode mode);
/* Gives the present t(n) = *fixed + *each n; if the mode was never seen, that of the other mode. */
void speed_line(const struct speed *speed, enum speed_mode mode, double *fixed, double *each);
double speed_time(const struct speed *speed, enum speed_mode mode, int64_t samples);
/* Median of up to SPEED_RECENT values in any order; 0 if there are none. */
double speed_median(const double *values, int count);
/* The median distance of a step's time from the median time, as a fraction of it. */
double speed_noise(const struct speed *speed);

#endif
