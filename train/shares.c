#include "train/shares.h"

#include "base/memory.h"

#include <math.h>
#include <stdlib.h>

static tutti_status check(const struct share *shares, int count, int64_t batch)
{
    double sum = 0, room = 0;
    for (int i = 0; i < count; i++) {
        if (!isfinite(shares[i].weight) || shares[i].weight < 0)
            return fail(TUTTI_INVALID, "share %d is %g: shares are finite and not negative", i, shares[i].weight);
        sum += shares[i].weight;
        if (shares[i].weight > 0) room += (double)shares[i].limit;
    }
    if (!(sum > 0) || !isfinite(sum))
        return fail(
            TUTTI_INVALID, "the shares of the %d devices add up to %g: at least one must be positive", count, sum);
    if (room < (double)batch)
        return fail(TUTTI_DEVICE_MEMORY, "a batch of %lld samples is more than the %.0f that all devices can take",
            (long long)batch, room);
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
    /* A device above its limit is closed at it, and the rest is divided again over the others. */
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
