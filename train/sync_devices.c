#include "train/sync_devices.h"

#include "base/memory.h"
#include "train/trainer.h"

#include <math.h>
#include <stdlib.h>

static int rows_of(const struct meeting *meeting)
{
    return (int)(meeting_floats(meeting) / meeting->stride);
}

size_t meeting_numbers(const struct meeting *meeting)
{
    return (size_t)(rows_of(meeting) * meeting->channels);
}

tutti_status meetings_open(tutti_trainer *trainer)
{
    trainer->meetings.attendees = memory_new((size_t)trainer->count, sizeof(*trainer->meetings.attendees));
    return trainer->meetings.attendees ? TUTTI_OK : TUTTI_NO_MEMORY;
}

void meetings_close(tutti_trainer *trainer)
{
    free(trainer->meetings.attendees);
    free(trainer->meetings.whole);
}

void meetings_begin(tutti_trainer *trainer, int64_t samples)
{
    struct meetings *meetings = &trainer->meetings;
    watchdog_lock(&trainer->watchdog);
    meetings->samples = samples;
    meetings->expected = meetings->arrived = 0;
    meetings->judged = meetings->complete = meetings->broken = false;
    for (int r = 0; r < trainer->count; r++) {
        meetings->attendees[r] = (struct attendee) { .attends = trainer->parts[r] > 0 };
        meetings->expected += meetings->attendees[r].attends;
    }
    watchdog_unlock(&trainer->watchdog);
}

/* ----------------------------------------------------------------------------------------------- combining ---- */

static bool is_finite(const struct attendee *given, const struct meeting *meeting)
{
    bool finite = true;
    for (int row = 0; row < rows_of(meeting); row++)
        for (int64_t c = 0; c < meeting->channels; c++)
            finite &= isfinite(given->numbers[row * given->stride + c]) != 0;
    return finite;
}

/* The first numbers that are not finite tell who made them: after this meeting, all have them. */
static void judge(tutti_trainer *trainer, const struct meeting *meeting)
{
    struct meetings *meetings = &trainer->meetings;
    int bad = 0;
    if (meetings->judged) return;
    for (int r = 0; r < trainer->count; r++) {
        struct attendee *attendee = &meetings->attendees[r];
        if (!attendee->numbers) continue;
        attendee->spoiled = !is_finite(attendee, meeting);
        bad += attendee->spoiled;
    }
    meetings->judged = bad > 0;
}

/* Adds what somebody knows of a channel to what is known of it: its numbers, the rows of which are `stride` apart. */
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

static void add_channel(const struct meeting *meeting, const double *given, double *whole)
{
    (meeting->kind == MEETING_SUMS ? add_sums : add_moments)(given, whole, meeting->channels);
}

static void add_floats(const struct meeting *meeting, const struct attendee *attendee, double *whole)
{
    double given[MEETING_ROWS];
    for (int64_t c = 0; c < meeting->channels; c++) {
        for (int row = 0; row < rows_of(meeting); row++) given[row] = attendee->numbers[row * attendee->stride + c];
        add_channel(meeting, given, whole + c);
    }
}

void meeting_add(const struct meeting *meeting, const double *numbers, double *whole)
{
    double given[MEETING_ROWS];
    for (int64_t c = 0; c < meeting->channels; c++) {
        for (int row = 0; row < rows_of(meeting); row++) given[row] = numbers[row * meeting->channels + c];
        add_channel(meeting, given, whole + c);
    }
}

/* Of all that handed in, in the replicas' order, whoever came first. */
static tutti_status combine(tutti_trainer *trainer, const struct meeting *meeting)
{
    struct meetings *meetings = &trainer->meetings;
    const size_t numbers = meeting_numbers(meeting);
    void *array = meetings->whole;
    const tutti_status status = memory_grow(&array, &meetings->capacity, numbers, sizeof(*meetings->whole));
    meetings->whole = array;
    if (status != TUTTI_OK) return status;
    for (size_t i = 0; i < numbers; i++) meetings->whole[i] = 0;
    judge(trainer, meeting);
    for (int r = 0; r < trainer->count; r++)
        if (meetings->attendees[r].numbers) add_floats(meeting, &meetings->attendees[r], meetings->whole);
    return TUTTI_OK;
}

static void take(const struct meetings *meetings, const struct meeting *meeting, int64_t samples, float *numbers)
{
    const double part = meeting->kind == MEETING_SUMS ? (double)samples / (double)meetings->samples : 1;
    for (int row = 0; row < rows_of(meeting); row++)
        for (int64_t c = 0; c < meeting->channels; c++)
            numbers[row * meeting->stride + c] = (float)(part * meetings->whole[row * meeting->channels + c]);
}

/* ----------------------------------------------------------------------------------------------- attending ---- */

static bool comes(const tutti_trainer *trainer, int r)
{
    return trainer->meetings.attendees[r].attends && !worker_gave_up(&trainer->replicas[r].worker);
}

/* Somebody will not come any more. */
static bool is_broken(const tutti_trainer *trainer)
{
    bool broken = trainer->meetings.broken;
    for (int r = 0; r < trainer->count; r++)
        broken |= trainer->parts[r] > 0 && !comes(trainer, r) && !trainer->meetings.attendees[r].numbers;
    return broken;
}

void meetings_conclude(tutti_trainer *trainer, bool good)
{
    struct meetings *meetings = &trainer->meetings;
    for (int r = 0; r < trainer->count; r++) meetings->attendees[r].numbers = NULL;
    meetings->arrived = 0;
    meetings->complete = false;
    meetings->round += good;
    meetings->broken = !good;
    watchdog_notify(&trainer->watchdog);
}

/* The last one to come makes the numbers of all, to which those of other ranks may have to be added. */
static tutti_status close_round(tutti_trainer *trainer, const struct meeting *meeting)
{
    const tutti_status status = combine(trainer, meeting);
    if (status != TUTTI_OK) return status;
    if (!trainer->world || !trainer->world->rounds) {
        meetings_conclude(trainer, true);
        return TUTTI_OK;
    }
    trainer->meetings.complete = true;
    watchdog_notify(&trainer->watchdog);
    return TUTTI_OK;
}

/* Under the lock. */
static tutti_status attend(struct replica *replica, const struct meeting *meeting, const float *numbers)
{
    tutti_status status = TUTTI_OK;
    tutti_trainer *trainer = replica->trainer;
    struct meetings *meetings = &trainer->meetings;
    const int number = replica->number;
    struct attendee *mine = &meetings->attendees[number];
    if (!comes(trainer, number))
        return fail(TUTTI_DEVICE_LOST, "the device was given up because it did not finish in time");
    if (meetings->arrived == 0) meetings->meeting = meeting;
    if (meetings->meeting->kind != meeting->kind || meetings->meeting->channels != meeting->channels)
        return fail(TUTTI_INTERNAL, "two devices synchronise at different layers");
    const uint64_t round = meetings->round;
    mine->numbers = numbers;
    mine->stride = meeting->stride;
    if (++meetings->arrived == meetings->expected) {
        status = close_round(trainer, meeting);
        if (status != TUTTI_OK) {
            mine->numbers = NULL;
            return status;
        }
    }
    while (meetings->round == round && !is_broken(trainer)) worker_sleep(&replica->worker);
    if (meetings->round != round) return TUTTI_OK;
    mine->interrupted = true;
    return fail(TUTTI_CANCELLED, "another device failed");
}

tutti_status meetings_attend(struct replica *replica, const struct meeting *meeting, int64_t samples, float *numbers)
{
    watchdog_lock(&replica->trainer->watchdog);
    const tutti_status status = attend(replica, meeting, numbers);
    if (status == TUTTI_OK) take(&replica->trainer->meetings, meeting, samples, numbers);
    watchdog_unlock(&replica->trainer->watchdog);
    return status;
}

void meetings_leave(struct replica *replica)
{
    tutti_trainer *trainer = replica->trainer;
    watchdog_lock(&trainer->watchdog);
    trainer->meetings.attendees[replica->number].attends = false;
    watchdog_unlock(&trainer->watchdog);
}

bool meetings_interrupted(const struct meetings *meetings, int replica)
{
    return meetings->attendees[replica].interrupted;
}

bool meetings_judged(const struct meetings *meetings)
{
    return meetings->judged;
}

bool meetings_spoiled(const struct meetings *meetings, int replica)
{
    return meetings->attendees[replica].spoiled;
}
