#include "parallel/speed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers.h"

/* Weight of the prior that a is 0, relative to one size's relative error. It decides if the sizes are so close
 * together that noise would determine the slope; if they differ by a third, it hardly counts. */
#define PRIOR 0.02

double speed_median(const double *values, int count)
{
    double sorted[SPEED_RECENT];
    if (count == 0) return 0;
    memcpy(sorted, values, (size_t)count * sizeof(*sorted));
    qsort(sorted, (size_t)count, sizeof(*sorted), number_compare);
    return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
}

/* Returns the size's entry, or else clears and returns the least recently used one. */
static struct speed_size *size_of(struct speed *speed, enum speed_mode mode, int64_t samples)
{
    struct speed_size *oldest = &speed->sizes[mode][0];
    for (int i = 0; i < SPEED_SIZES; i++) {
        struct speed_size *size = &speed->sizes[mode][i];
        if (size->samples == samples) return size;
        if (size->used < oldest->used) oldest = size;
    }
    *oldest = (struct speed_size) { .samples = samples };
    return oldest;
}

/* Least squares of the relative errors: (a x + b y - 1)^2 summed over the sizes, x = 1 / t and y = n / t, plus the
 * prior on a. If a would be negative, the line goes through the origin. */
static void fit(struct speed *speed, enum speed_mode mode)
{
    double xx = 0, xy = 0, yy = 0, x1 = 0, y1 = 0, mean = 0;
    int count = 0;
    for (int i = 0; i < SPEED_SIZES; i++) {
        const struct speed_size *size = &speed->sizes[mode][i];
        if (size->samples == 0) continue;
        const double x = 1 / size->seconds, y = (double)size->samples / size->seconds;
        xx += x * x;
        xy += x * y;
        yy += y * y;
        x1 += x;
        y1 += y;
        mean += size->seconds;
        count++;
    }
    mean /= count;
    xx += PRIOR / (mean * mean);
    const double determinant = xx * yy - xy * xy;
    double a = (x1 * yy - y1 * xy) / determinant, b = (xx * y1 - xy * x1) / determinant;
    if (!(determinant > 0) || !(a > 0)) {
        a = 0;
        b = y1 / yy;
    }
    if (!(b > 0)) { /* larger parts took less time: noise; nearly all of the time is fixed */
        const double through_origin = y1 / yy;
        b = 0.01 * through_origin;
        a = fmax(0, (x1 - b * xy) / xx);
    }
    speed->a[mode] = a;
    speed->b[mode] = b;
}

static void take_up(struct speed *speed, enum speed_mode mode, int64_t samples)
{
    struct speed_size *size = size_of(speed, mode, samples);
    size->before = size->seconds;
    speed->mode = mode;
    speed->samples = samples;
    speed->steps = 0;
    speed->probed = false;
}

void speed_add(struct speed *speed, enum speed_mode mode, int64_t samples, double seconds)
{
    if (!(seconds > 0) || !isfinite(seconds) || samples < 1) return;
    if (!(speed->scale > 0)) speed->scale = 1;
    if (speed->mode != mode || speed->samples != samples || speed->probed) take_up(speed, mode, samples);
    struct speed_size *size = size_of(speed, mode, samples);
    size->used = ++speed->clock;
    const int step = speed->steps++;
    if (step < SPEED_LEARN) {
        speed->recent[step] = seconds / speed->scale;
        const double now = speed_median(speed->recent, step + 1);
        size->seconds = size->before > 0 ? (size->before + now) / 2 : now;
        fit(speed, mode);
        /* From here on `recent` holds times divided by those of the fit: converts the times of the first steps. */
        for (int i = 0; step == SPEED_LEARN - 1 && i < SPEED_LEARN; i++)
            speed->recent[i] *= speed->scale / (speed->a[mode] + speed->b[mode] * (double)samples);
    } else {
        speed->recent[step % SPEED_RECENT] = seconds / (speed->a[mode] + speed->b[mode] * (double)samples);
    }
    if (step >= SPEED_LEARN - 1)
        speed->scale = speed_median(speed->recent, step + 1 < SPEED_RECENT ? step + 1 : SPEED_RECENT);
}

void speed_probe(struct speed *speed, int64_t samples, double seconds)
{
    if (!(seconds > 0) || !isfinite(seconds) || samples < 1) return;
    const double expected = speed_time(speed, SPEED_TOGETHER, samples);
    if (!(expected > 0)) {
        speed_add(speed, SPEED_TOGETHER, samples, seconds);
        return;
    }
    speed->scale *= seconds / expected;
    speed->probed = true;
}

void speed_reset(struct speed *speed)
{
    struct speed_size *sizes = speed->sizes[SPEED_TOGETHER], newest = { 0 };
    for (int i = 0; i < SPEED_SIZES; i++)
        if (sizes[i].samples > 0 && sizes[i].used > newest.used) newest = sizes[i];
    if (newest.samples == 0) return;
    const double before = speed_time(speed, SPEED_TOGETHER, newest.samples);
    memset(sizes, 0, SPEED_SIZES * sizeof(*sizes));
    sizes[0] = newest;
    sizes[0].seconds = before / speed->scale;
    fit(speed, SPEED_TOGETHER);
}

bool speed_known(const struct speed *speed, enum speed_mode mode)
{
    return speed->b[mode] > 0;
}

void speed_line(const struct speed *speed, enum speed_mode mode, double *fixed, double *each)
{
    if (!speed_known(speed, mode)) mode = mode == SPEED_SOLE ? SPEED_TOGETHER : SPEED_SOLE;
    *fixed = speed->scale * speed->a[mode];
    *each = speed->scale * speed->b[mode];
}

double speed_time(const struct speed *speed, enum speed_mode mode, int64_t samples)
{
    double fixed, each;
    speed_line(speed, mode, &fixed, &each);
    return fixed + each * (double)samples;
}

double speed_noise(const struct speed *speed)
{
    double distances[SPEED_RECENT];
    const int count = speed->steps < SPEED_RECENT ? speed->steps : SPEED_RECENT;
    if (count < 3) return 0;
    const double middle = speed_median(speed->recent, count);
    for (int i = 0; i < count; i++) distances[i] = fabs(speed->recent[i] / middle - 1);
    return speed_median(distances, count);
}
