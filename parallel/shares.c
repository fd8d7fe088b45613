#include "parallel/shares.h"

#include "base/memory.h"

#include <math.h>
#include <stdlib.h>

static tutti_status check(const struct share *shares, int count, int64_t batch)
{
    double sum = 0, room = 0;
    for (int i = 0; i < count; i++) {
        if (!isfinite(shares[i].weight) || shares[i].weight < 0)
            return fail(TUTTI_INVALID, "share %d is %g: it must be finite and not negative", i, shares[i].weight);
        sum += shares[i].weight;
        if (shares[i].weight > 0) room += (double)shares[i].limit;
    }
    if (!(sum > 0) || !isfinite(sum))
        return fail(
            TUTTI_INVALID, "the shares of the %d devices add up to %g: at least one must be positive", count, sum);
    if (room < (double)batch)
        return fail(TUTTI_DEVICE_MEMORY,
            "a batch of %lld samples exceeds the %.0f that fit all devices together: lower the batch", (long long)batch,
            room);
    return TUTTI_OK;
}

/* Divides `left` samples over the devices that are open, ignoring limits: whole parts first, then one more sample for
 * the largest fractions. */
static void divide_open(
    const struct share *shares, int count, int64_t left, const bool *closed, double *fractions, int64_t *samples)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        if (!closed[i]) sum += shares[i].weight;
    int64_t given = 0;
    for (int i = 0; i < count; i++) {
        if (closed[i]) continue;
        const double part = sum > 0 ? (double)left * (shares[i].weight / sum) : 0; /* all others are full */
        samples[i] = (int64_t)floor(part);
        if (samples[i] > left - given) samples[i] = left - given; /* rounding of the products */
        fractions[i] = part - floor(part);
        given += samples[i];
    }
    while (given < left) {
        int best = -1;
        for (int i = 0; i < count; i++)
            if (!closed[i] && shares[i].weight > 0 && (best < 0 || fractions[i] > fractions[best])) best = i;
        samples[best]++;
        fractions[best] -= 1;
        given++;
    }
}

tutti_status shares_divide(const struct share *shares, int count, int64_t batch, int64_t *samples)
{
    tutti_status status;
    double *fractions = memory_new((size_t)count, sizeof(*fractions));
    bool *closed = memory_new((size_t)count, sizeof(*closed));
    if (!fractions || !closed) {
        status = TUTTI_NO_MEMORY;
        goto done;
    }
    TRY(check(shares, count, batch));
    /* A device above its limit gets its limit, and the rest is divided again over the others. */
    for (bool again = true; again;) {
        again = false;
        int64_t left = batch;
        for (int i = 0; i < count; i++)
            if (closed[i]) left -= samples[i];
        divide_open(shares, count, left, closed, fractions, samples);
        for (int i = 0; i < count; i++) {
            if (closed[i] || samples[i] <= shares[i].limit) continue;
            samples[i] = shares[i].limit;
            closed[i] = again = true;
        }
    }
done:
    free(fractions);
    free(closed);
    return status;
}

/* Returns the samples that the device can finish by `end`. */
static int64_t samples_until(const struct share_line *line, double end)
{
    const double samples = floor((end - line->fixed) / line->each);
    return !(samples > 0) ? 0 : samples < (double)line->limit ? (int64_t)samples : line->limit;
}

static double samples_of_all(const struct share_line *lines, int count, double end)
{
    double samples = 0;
    for (int i = 0; i < count; i++) samples += (double)samples_until(&lines[i], end);
    return samples;
}

/* Gives one more sample to the device that will finish it first. */
static void give_one(const struct share_line *lines, int count, int64_t *samples)
{
    int best = -1;
    double earliest = INFINITY;
    for (int i = 0; i < count; i++) {
        const double end = lines[i].fixed + lines[i].each * (double)(samples[i] + 1);
        if (samples[i] >= lines[i].limit || end >= earliest) continue;
        best = i;
        earliest = end;
    }
    if (best >= 0) samples[best]++;
}

double shares_level(const struct share_line *lines, int count, int64_t batch, int64_t *samples)
{
    double room = 0, early = 0, late = 0, last = 0;
    for (int i = 0; i < count; i++) {
        room += (double)lines[i].limit;
        if (lines[i].limit > 0) late = fmax(late, lines[i].fixed + lines[i].each * (double)(batch + 1));
    }
    if (room < (double)batch || !isfinite(late)) return INFINITY;
    for (int i = 0; i < 60; i++) { /* the devices finish the batch by `late`, but not by `early` */
        const double middle = (early + late) / 2;
        *(samples_of_all(lines, count, middle) >= (double)batch ? &late : &early) = middle;
    }
    int64_t given = 0;
    for (int i = 0; i < count; i++) given += samples[i] = samples_until(&lines[i], early);
    for (; given < batch; given++) give_one(lines, count, samples);
    for (int i = 0; i < count; i++)
        if (samples[i] > 0) last = fmax(last, lines[i].fixed + lines[i].each * (double)samples[i]);
    return last;
}
