#include "parallel/balance.h"

#include "base/memory.h"
#include "parallel/shares.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Smallest relative gain for a change; the noise of the times is added to it. */
#define LEAST_GAIN 0.03
/* Above this gain a change needs few votes, even if earlier changes gained nothing. */
#define LARGE_GAIN 0.20
/* A device is tried alone if its predicted time is at most these multiples: of the time of all together, and of the
 * best device alone. For each of two devices on the same cores, the prediction is twice their joint time: with a
 * lower limit it would never be corrected. */
#define TRY_TOGETHER 2.5
#define TRY_SINGLE 1.5
/* A device that was tried is tried again if its time alone was below this multiple of the present step. */
#define TRY_AGAIN 1.2
/* A trial ends early if all of its steps take longer than this multiple of the best known division. */
#define HOPELESS 1.3
/* The first steps of a training, and of each division, are slow, because memory is touched and kernels are loaded.
 * They are ignored. */
enum { COLD_TRAINING = 3, COLD_DIVISION = 1 };
enum { STEPS = 3, TRIAL_STEPS = 6, HOPELESS_STEPS = 3, VOTES = 6, URGENT_VOTES = 3, MOST_PATIENCE = 1000 };

/* ----------------------------------------------------------------------------------------------------- times ---- */

static int parts_used(const struct balance *balance, const int64_t *parts)
{
    int used = 0;
    for (int i = 0; i < balance->count; i++) used += parts[i] > 0;
    return used;
}

static int first_used(const struct balance *balance, const int64_t *parts)
{
    int i = 0;
    while (i < balance->count - 1 && parts[i] == 0) i++;
    return i;
}

int balance_sole_device(const struct balance *balance)
{
    return parts_used(balance, balance->parts) == 1 ? first_used(balance, balance->parts) : -1;
}

/* Median of a ring buffer into which `added` numbers were written. */
static double median(const double *ring, int added)
{
    return speed_median(ring, added < SPEED_RECENT ? added : SPEED_RECENT);
}

static double exchange_time(const struct balance *balance)
{
    return median(balance->exchange, balance->exchanges);
}

/* Predicted time of a step with this division. */
static double step_time(const struct balance *balance, const int64_t *parts)
{
    double slowest = 0;
    const bool sole = parts_used(balance, parts) == 1;
    for (int i = 0; i < balance->count; i++)
        if (parts[i] > 0)
            slowest =
                fmax(slowest, speed_time(&balance->devices[i].speed, sole ? SPEED_SOLE : SPEED_TOGETHER, parts[i]));
    return sole ? slowest : slowest + exchange_time(balance);
}

static double noise(const struct balance *balance)
{
    double most = 0;
    for (int i = 0; i < balance->count; i++)
        if (balance->parts[i] > 0) most = fmax(most, speed_noise(&balance->devices[i].speed));
    return most;
}

/* ------------------------------------------------------------------------------------------------- divisions ---- */

static struct share_line line_of(const struct balance *balance, int device)
{
    const struct balance_device *own = &balance->devices[device];
    struct share_line line = { .limit = own->limit };
    speed_line(&own->speed, SPEED_TOGETHER, &line.fixed, &line.each);
    if (!(line.each > 0)) line.limit = 0; /* never worked */
    return line;
}

/* Returns the open device whose equal part would take longest; -1 if fewer than three are open, because two must
 * stay: one would be a device alone. */
static int slowest_open(const struct balance *balance, const struct share_line *lines)
{
    int slowest = -1, open = 0;
    double most = 0;
    for (int i = 0; i < balance->count; i++) open += lines[i].limit > 0;
    for (int i = 0; i < balance->count && open > 2; i++) {
        const double time = lines[i].fixed + lines[i].each * (double)balance->batch / open;
        if (lines[i].limit == 0 || time < most) continue;
        most = time;
        slowest = i;
    }
    return slowest;
}

/* Writes the best division over at least two devices to `best`: all of them, or without the slowest, and so on.
 * Returns its time. */
static double best_together(struct balance *balance, struct share_line *lines, int64_t *parts, int64_t *best)
{
    double least = INFINITY;
    for (int drop = 0; drop >= 0;) {
        if (isfinite(shares_level(lines, balance->count, balance->batch, parts)) && parts_used(balance, parts) > 1 &&
            step_time(balance, parts) < least) {
            least = step_time(balance, parts);
            memcpy(best, parts, (size_t)balance->count * sizeof(*parts));
        }
        drop = slowest_open(balance, lines);
        if (drop >= 0) lines[drop].limit = 0;
    }
    return least;
}

static void all_on(struct balance *balance, int device, int64_t *parts)
{
    memset(parts, 0, (size_t)balance->count * sizeof(*parts));
    parts[device] = balance->batch;
}

/* Writes the best division to balance->wanted, including devices alone that were tried. Returns its time. */
static double best_division(struct balance *balance)
{
    struct share_line *lines = memory_new((size_t)balance->count, sizeof(*lines));
    double least = INFINITY;
    memcpy(balance->wanted, balance->parts, (size_t)balance->count * sizeof(*balance->wanted));
    if (!lines) return INFINITY; /* no change, then */
    for (int i = 0; i < balance->count; i++) lines[i] = line_of(balance, i);
    least = best_together(balance, lines, balance->other, balance->wanted);
    for (int i = 0; i < balance->count; i++) {
        const struct balance_device *device = &balance->devices[i];
        if (device->limit < balance->batch || !speed_known(&device->speed, SPEED_SOLE)) continue;
        const double sole = speed_time(&device->speed, SPEED_SOLE, balance->batch);
        if (sole >= least) continue;
        least = sole;
        all_on(balance, i, balance->wanted);
    }
    free(lines);
    return least;
}

/* ---------------------------------------------------------------------------------------------------- trials ---- */

/* Returns the device to try alone; -1: none. */
static int next_trial(const struct balance *balance, double together)
{
    int next = -1;
    double best = INFINITY, promised = INFINITY;
    for (int i = 0; i < balance->count; i++) {
        const struct balance_device *device = &balance->devices[i];
        if (device->limit < balance->batch || !(device->speed.scale > 0)) continue;
        const double time = speed_time(&device->speed, SPEED_SOLE, balance->batch);
        best = fmin(best, time);
        if (device->tried || time >= promised) continue;
        promised = time;
        next = i;
    }
    return promised <= TRY_SINGLE * best && promised <= TRY_TOGETHER * together ? next : -1;
}

/* Keeps the shortest exchange: the others may have been measured while the machine was disturbed. */
static void keep_least_exchange(struct balance *balance)
{
    const int count = balance->exchanges < SPEED_RECENT ? balance->exchanges : SPEED_RECENT;
    for (int i = 1; i < count; i++) balance->exchange[0] = fmin(balance->exchange[0], balance->exchange[i]);
    balance->exchanges = count > 0;
}

void balance_try_again(struct balance *balance)
{
    const double now = step_time(balance, balance->parts);
    for (int i = 0; i < balance->count; i++) {
        struct speed *speed = &balance->devices[i].speed;
        if (balance->parts[i] < balance->batch && speed_known(speed, SPEED_SOLE) &&
            speed_time(speed, SPEED_SOLE, balance->batch) < TRY_AGAIN * now)
            balance->devices[i].tried = false;
        speed_reset(speed);
    }
    keep_least_exchange(balance);
}

/* ------------------------------------------------------------------------------------------------- decisions ---- */

static bool same(const struct balance *balance, const int64_t *a, const int64_t *b)
{
    return memcmp(a, b, (size_t)balance->count * sizeof(*a)) == 0;
}

/* Returns the votes that a change needs: more after each change that gained nothing, few for a large gain. */
static int votes_needed(const struct balance *balance, double gain)
{
    if (balance->trying) return 0;
    return gain > LARGE_GAIN ? URGENT_VOTES : balance->patience;
}

/* Returns whether there are enough steps to decide. A trial that is far behind from its first steps on ends early:
 * alone, a step takes as long as on all devices but one. */
static bool is_ripe(const struct balance *balance, double best)
{
    double least = INFINITY;
    if (!balance->trying) return balance->steps >= STEPS;
    for (int i = 0; i < balance->steps && i < SPEED_RECENT; i++) least = fmin(least, balance->recent[i]);
    return balance->steps >= TRIAL_STEPS || (balance->steps >= HOPELESS_STEPS && least > HOPELESS * best);
}

bool balance_decide(struct balance *balance)
{
    if (balance->steps == 0) return false;
    const double now = step_time(balance, balance->parts), best = best_division(balance);
    if (!is_ripe(balance, best)) return false;
    const double gain = 1 - best / now, least = balance->trying ? 0 : LEAST_GAIN + noise(balance);
    const bool better = gain > least && !same(balance, balance->wanted, balance->parts);
    const bool may_try = (balance->steps >= TRIAL_STEPS && !better) || balance->trying;
    const int trial = may_try ? next_trial(balance, fmin(best, now)) : -1;
    balance->settled = !better && trial < 0 && balance->steps >= TRIAL_STEPS;
    if (trial >= 0) {
        all_on(balance, trial, balance->wanted);
        if (same(balance, balance->wanted, balance->parts)) { /* it is alone already */
            balance->devices[trial].tried = true;
            return false;
        }
        return true;
    }
    balance->votes = better ? balance->votes + 1 : 0;
    if (better && balance->votes > votes_needed(balance, gain)) return true;
    if (!better) balance->trying = false; /* what was tried is kept */
    return false;
}

/* For each device without samples: predicts the best step in which it has at least one sample, and a step without
 * it. */
static void explain(struct balance *balance)
{
    struct share_line *lines = memory_new((size_t)balance->count, sizeof(*lines));
    const double without = step_time(balance, balance->parts);
    for (int i = 0; lines && i < balance->count; i++) {
        struct balance_device *device = &balance->devices[i];
        device->with = device->without = 0;
        if (balance->parts[i] > 0 || device->limit == 0) continue;
        for (int j = 0; j < balance->count; j++) {
            lines[j] = line_of(balance, j);
            if (j != i && balance->parts[j] == 0) lines[j].limit = 0;
        }
        const double one = lines[i].fixed + lines[i].each;
        double with = shares_level(lines, balance->count, balance->batch, balance->other);
        if (isfinite(with)) with = fmax(with, one) + exchange_time(balance);
        device->with = with;
        device->without = without;
    }
    free(lines);
}

void balance_adopt(struct balance *balance)
{
    /* No gain is expected from a trial, nor from its end. */
    balance->before_s = balance->trying ? 0 : median(balance->recent, balance->steps);
    int64_t *before = balance->before;
    balance->before = balance->parts;
    balance->parts = balance->wanted;
    balance->wanted = before;
    balance->steps = balance->votes = 0;
    balance->cold = COLD_DIVISION;
    balance->settled = false;
    const int sole = balance_sole_device(balance);
    balance->trying = sole >= 0 && !balance->devices[sole].tried;
    if (balance->trying) balance->before_s = 0;
    if (sole >= 0) balance->devices[sole].tried = true;
    explain(balance);
}

/* Adjusts patience to whether the last change gained time. */
static void judge(struct balance *balance)
{
    if (balance->before_s == 0 || balance->steps < SPEED_RECENT) return;
    const bool gained = median(balance->recent, balance->steps) < (1 - LEAST_GAIN) * balance->before_s;
    if (gained)
        balance->patience = VOTES;
    else if (balance->patience < MOST_PATIENCE)
        balance->patience *= 2;
    balance->before_s = 0;
}

void balance_add(struct balance *balance, const double *seconds, double step)
{
    double slowest = 0;
    const int sole = balance_sole_device(balance);
    if (balance->cold-- > 0) return;
    balance->cold = 0;
    for (int i = 0; i < balance->count; i++) {
        if (balance->parts[i] == 0) continue;
        speed_add(&balance->devices[i].speed, sole >= 0 ? SPEED_SOLE : SPEED_TOGETHER, balance->parts[i],
            sole >= 0 ? step : seconds[i]);
        slowest = fmax(slowest, seconds[i]);
    }
    if (sole < 0 && step > slowest) balance->exchange[balance->exchanges++ % SPEED_RECENT] = step - slowest;
    balance->recent[balance->steps++ % SPEED_RECENT] = step;
    judge(balance);
}

void balance_probed(struct balance *balance, int device, int64_t samples, double seconds)
{
    speed_probe(&balance->devices[device].speed, samples, seconds);
    explain(balance);
}

/* -------------------------------------------------------------------------------------------------- changes ---- */

/* If the limits add up to less than the batch, lifts them: devices use micro-batches. */
static void make_room(struct balance *balance)
{
    double room = 0;
    for (int i = 0; i < balance->count; i++) room += (double)balance->devices[i].limit;
    for (int i = 0; i < balance->count && room < (double)balance->batch; i++)
        if (balance->devices[i].limit > 0) balance->devices[i].limit = INT64_MAX;
}

/* Divides into equal parts within the limits. */
static tutti_status divide_equally(struct balance *balance)
{
    struct share *shares = memory_new((size_t)balance->count, sizeof(*shares));
    if (!shares) return TUTTI_NO_MEMORY;
    for (int i = 0; i < balance->count; i++)
        shares[i] = (struct share) { .weight = balance->devices[i].limit > 0, .limit = balance->devices[i].limit };
    const tutti_status status = shares_divide(shares, balance->count, balance->batch, balance->parts);
    free(shares);
    memcpy(balance->before, balance->parts, (size_t)balance->count * sizeof(*balance->parts));
    balance->steps = balance->votes = 0;
    balance->cold = COLD_TRAINING;
    balance->trying = balance->settled = false;
    return status;
}

tutti_status balance_init(struct balance *balance, int count, int64_t batch, const int64_t *limits)
{
    *balance = (struct balance) { .count = count, .batch = batch, .patience = VOTES };
    balance->devices = memory_new((size_t)count, sizeof(*balance->devices));
    int64_t **const arrays[] = { &balance->parts, &balance->wanted, &balance->other, &balance->before };
    for (int i = 0; i < 4; i++) *arrays[i] = memory_new((size_t)count, sizeof(int64_t));
    if (!balance->devices || !balance->parts || !balance->wanted || !balance->other || !balance->before)
        return TUTTI_NO_MEMORY;
    for (int i = 0; i < count; i++) balance->devices[i].limit = limits[i];
    make_room(balance);
    return divide_equally(balance);
}

void balance_free(struct balance *balance)
{
    free(balance->devices);
    free(balance->parts);
    free(balance->wanted);
    free(balance->other);
    free(balance->before);
    *balance = (struct balance) { 0 };
}

/* Divides by the known times, or equally if none are known. */
static tutti_status divide_anew(struct balance *balance)
{
    if (!isfinite(best_division(balance))) return divide_equally(balance);
    balance_adopt(balance);
    return TUTTI_OK;
}

tutti_status balance_limit(struct balance *balance, int device, int64_t samples)
{
    balance->devices[device].limit = samples;
    balance->votes = 0;
    make_room(balance);
    if (balance->parts[device] <= samples) return TUTTI_OK;
    return divide_anew(balance);
}

static void set_batch(struct balance *balance, int64_t batch)
{
    balance->batch = batch;
    for (int i = 0; i < balance->count; i++) balance->devices[i].tried = false;
    make_room(balance);
}

tutti_status balance_resize(struct balance *balance, int64_t batch)
{
    set_batch(balance, batch);
    return divide_anew(balance);
}

void balance_take(struct balance *balance, int64_t batch, const int64_t *parts)
{
    set_batch(balance, batch);
    memcpy(balance->wanted, parts, (size_t)balance->count * sizeof(*parts));
    balance_adopt(balance);
}
