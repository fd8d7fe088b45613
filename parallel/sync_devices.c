#include "parallel/sync_devices.h"

#include "base/memory.h"
#include "parallel/ranks.h"
#include "parallel/trainer.h"

#include <math.h>
#include <stdlib.h>

static int rows_of(const struct sync_point *point)
{
    return (int)(sync_floats(point) / point->stride);
}

size_t sync_devices_numbers(const struct sync_point *point)
{
    return (size_t)(rows_of(point) * point->channels);
}

tutti_status sync_devices_open(tutti_trainer *trainer)
{
    trainer->sync_devices.participants =
        memory_new((size_t)trainer->count, sizeof(*trainer->sync_devices.participants));
    return trainer->sync_devices.participants ? TUTTI_OK : TUTTI_NO_MEMORY;
}

void sync_devices_close(tutti_trainer *trainer)
{
    free(trainer->sync_devices.participants);
    free(trainer->sync_devices.whole);
}

void sync_devices_begin(tutti_trainer *trainer, int64_t samples)
{
    struct sync_devices *sync = &trainer->sync_devices;
    watchdog_lock(&trainer->watchdog);
    sync->samples = samples;
    sync->expected = sync->arrived = 0;
    sync->judged = sync->complete = sync->broken = false;
    for (int r = 0; r < trainer->count; r++) {
        sync->participants[r] = (struct participant) { .takes_part = trainer->device_division.parts[r] > 0 };
        sync->expected += sync->participants[r].takes_part;
    }
    watchdog_unlock(&trainer->watchdog);
}

/* ----------------------------------------------------------------------------------------------- combining ---- */

static bool is_finite(const struct participant *given, const struct sync_point *point)
{
    bool finite = true;
    for (int row = 0; row < rows_of(point); row++)
        for (int64_t c = 0; c < point->channels; c++) finite &= isfinite(given->numbers[row * given->stride + c]) != 0;
    return finite;
}

/* Only the first numbers that are not finite show which device is faulty: the exchange spreads them to all. */
static void judge(tutti_trainer *trainer, const struct sync_point *point)
{
    struct sync_devices *sync = &trainer->sync_devices;
    int bad = 0;
    if (sync->judged) return;
    for (int r = 0; r < trainer->count; r++) {
        struct participant *participant = &sync->participants[r];
        if (!participant->numbers) continue;
        participant->spoiled = !is_finite(participant, point);
        bad += participant->spoiled;
    }
    sync->judged = bad > 0;
}

/* Adds a participant's numbers of a channel to the total, whose rows are `stride` apart. */
static void add_sums(const double *given, double *whole, int64_t stride)
{
    whole[0] += given[0];
    whole[stride] += given[1];
}

/* Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979. */
static void add_moments(const double *given, double *whole, int64_t stride)
{
    double *count = whole, *mean = whole + stride, *squares = whole + 2 * stride;
    const double more = given[0], both = *count + more, difference = given[1] - *mean;
    if (!(more > 0)) return;
    *mean += difference * (more / both);
    *squares += given[2] + difference * difference * (*count * more / both);
    *count = both;
}

static void add_channel(const struct sync_point *point, const double *given, double *whole)
{
    (point->kind == SYNC_SUMS ? add_sums : add_moments)(given, whole, point->channels);
}

static void add_floats(const struct sync_point *point, const struct participant *participant, double *whole)
{
    double given[SYNC_ROWS];
    for (int64_t c = 0; c < point->channels; c++) {
        for (int row = 0; row < rows_of(point); row++) given[row] = participant->numbers[row * participant->stride + c];
        add_channel(point, given, whole + c);
    }
}

void sync_devices_add(const struct sync_point *point, const double *numbers, double *whole)
{
    double given[SYNC_ROWS];
    for (int64_t c = 0; c < point->channels; c++) {
        for (int row = 0; row < rows_of(point); row++) given[row] = numbers[row * point->channels + c];
        add_channel(point, given, whole + c);
    }
}

/* Adds the numbers of all participants in the order of the replicas, so that the bytes do not depend on arrival. */
static tutti_status combine(tutti_trainer *trainer, const struct sync_point *point)
{
    struct sync_devices *sync = &trainer->sync_devices;
    const size_t numbers = sync_devices_numbers(point);
    void *array = sync->whole;
    const tutti_status status = memory_grow(&array, &sync->capacity, numbers, sizeof(*sync->whole));
    sync->whole = array;
    if (status != TUTTI_OK) return status;
    for (size_t i = 0; i < numbers; i++) sync->whole[i] = 0;
    judge(trainer, point);
    for (int r = 0; r < trainer->count; r++)
        if (sync->participants[r].numbers) add_floats(point, &sync->participants[r], sync->whole);
    return TUTTI_OK;
}

static void read_result(
    const struct sync_devices *sync, const struct sync_point *point, int64_t samples, float *numbers)
{
    const double share = point->kind == SYNC_SUMS ? (double)samples / (double)sync->samples : 1;
    for (int row = 0; row < rows_of(point); row++)
        for (int64_t c = 0; c < point->channels; c++)
            numbers[row * point->stride + c] = (float)(share * sync->whole[row * point->channels + c]);
}

/* ---------------------------------------------------------------------------------------------- exchanging ---- */

static bool is_expected(const tutti_trainer *trainer, int r)
{
    return trainer->sync_devices.participants[r].takes_part &&
        !worker_is_abandoned_locked(&trainer->replicas[r].worker);
}

/* A participant will not hand in any more. */
static bool is_broken(const tutti_trainer *trainer)
{
    bool broken = trainer->sync_devices.broken;
    for (int r = 0; r < trainer->count; r++)
        broken |= trainer->device_division.parts[r] > 0 && !is_expected(trainer, r) &&
            !trainer->sync_devices.participants[r].numbers;
    return broken;
}

void sync_devices_conclude(tutti_trainer *trainer, bool good)
{
    struct sync_devices *sync = &trainer->sync_devices;
    for (int r = 0; r < trainer->count; r++) sync->participants[r].numbers = NULL;
    sync->arrived = 0;
    sync->complete = false;
    sync->round += good;
    sync->broken = !good;
    watchdog_notify(&trainer->watchdog);
}

/* The last participant adds the numbers up. With several ranks the result waits for those of the others. */
static tutti_status close_round(tutti_trainer *trainer, const struct sync_point *point)
{
    const tutti_status status = combine(trainer, point);
    if (status != TUTTI_OK) return status;
    if (!trainer->ranks || !trainer->ranks->sync_ranks) {
        sync_devices_conclude(trainer, true);
        return TUTTI_OK;
    }
    trainer->sync_devices.complete = true;
    watchdog_notify(&trainer->watchdog);
    return TUTTI_OK;
}

/* Under the lock. */
static tutti_status exchange(tutti_trainer *trainer, int number, const struct sync_point *point, const float *numbers)
{
    tutti_status status = TUTTI_OK;
    struct sync_devices *sync = &trainer->sync_devices;
    struct participant *mine = &sync->participants[number];
    if (!is_expected(trainer, number))
        return fail(TUTTI_DEVICE_LOST, "the device was given up because it did not finish in time");
    if (sync->arrived == 0) sync->point = point;
    if (sync->point->kind != point->kind || sync->point->channels != point->channels)
        return fail(TUTTI_INTERNAL, "two devices synchronise at different layers");
    const uint64_t round = sync->round;
    mine->numbers = numbers;
    mine->stride = point->stride;
    if (++sync->arrived == sync->expected) {
        status = close_round(trainer, point);
        if (status != TUTTI_OK) {
            mine->numbers = NULL;
            return status;
        }
    }
    while (sync->round == round && !is_broken(trainer)) worker_wait_for_others(&trainer->replicas[number].worker);
    if (sync->round != round) return TUTTI_OK;
    mine->interrupted = true;
    return fail(TUTTI_CANCELLED, "another device failed");
}

tutti_status sync_devices_exchange(
    void *user, int replica, const struct sync_point *point, int64_t samples, float *numbers)
{
    tutti_trainer *trainer = user;
    watchdog_lock(&trainer->watchdog);
    const tutti_status status = exchange(trainer, replica, point, numbers);
    if (status == TUTTI_OK) read_result(&trainer->sync_devices, point, samples, numbers);
    watchdog_unlock(&trainer->watchdog);
    return status;
}

void sync_devices_leave(void *user, int replica)
{
    tutti_trainer *trainer = user;
    watchdog_lock(&trainer->watchdog);
    trainer->sync_devices.participants[replica].takes_part = false;
    watchdog_unlock(&trainer->watchdog);
}

bool sync_devices_interrupted(const struct sync_devices *sync, int replica)
{
    return sync->participants[replica].interrupted;
}

bool sync_devices_judged(const struct sync_devices *sync)
{
    return sync->judged;
}

bool sync_devices_spoiled(const struct sync_devices *sync, int replica)
{
    return sync->participants[replica].spoiled;
}
