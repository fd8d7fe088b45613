#include "train/meeting.h"

#include "base/memory.h"
#include "train/trainer.h"

#include <math.h>
#include <stdlib.h>

static int numbers_of(const struct meeting *meeting)
{
    return (int)(meeting_floats(meeting) / meeting->stride);
}

tutti_status meetings_open(tutti_trainer *trainer)
{
    trainer->meetings.handed_in = memory_new((size_t)trainer->count, sizeof(*trainer->meetings.handed_in));
    return trainer->meetings.handed_in ? TUTTI_OK : TUTTI_NO_MEMORY;
}

void meetings_close(tutti_trainer *trainer)
{
    free(trainer->meetings.handed_in);
    free(trainer->meetings.whole);
}

void meetings_begin(tutti_trainer *trainer, int64_t samples)
{
    struct meetings *meetings = &trainer->meetings;
    pthread_mutex_lock(&trainer->lock);
    meetings->samples = samples;
    meetings->expected = meetings->arrived = 0;
    meetings->judged = false;
    for (int r = 0; r < trainer->count; r++) {
        struct replica *replica = &trainer->replicas[r];
        meetings->handed_in[r] = (struct handed_in) { 0 };
        meetings->expected += replica->attends = trainer->parts[r] > 0;
        replica->interrupted = replica->spoiled = false;
    }
    pthread_mutex_unlock(&trainer->lock);
}

/* ----------------------------------------------------------------------------------------------- combining ---- */

static bool is_finite(const struct handed_in *given, const struct meeting *meeting)
{
    bool finite = true;
    for (int row = 0; row < numbers_of(meeting); row++)
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
        if (!meetings->handed_in[r].numbers) continue;
        trainer->replicas[r].spoiled = !is_finite(&meetings->handed_in[r], meeting);
        bad += trainer->replicas[r].spoiled;
    }
    meetings->judged = bad > 0;
}

static void add_sums(const struct handed_in *given, int64_t channels, double *whole)
{
    for (int64_t c = 0; c < channels; c++) {
        whole[c] += given->numbers[c];
        whole[channels + c] += given->numbers[given->stride + c];
    }
}

/* Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979. */
static void add_moments(const struct handed_in *given, int64_t channels, double *whole)
{
    double *count = whole, *mean = whole + channels, *squares = whole + 2 * channels;
    for (int64_t c = 0; c < channels; c++) {
        const double more = given->numbers[c], both = count[c] + more;
        const double difference = given->numbers[given->stride + c] - mean[c];
        if (!(more > 0)) continue;
        mean[c] += difference * (more / both);
        squares[c] += given->numbers[2 * given->stride + c] + difference * difference * (count[c] * more / both);
        count[c] = both;
    }
}

/* Of all that handed in, in the replicas' order, whoever came first. */
static tutti_status combine(tutti_trainer *trainer, const struct meeting *meeting)
{
    struct meetings *meetings = &trainer->meetings;
    const size_t numbers = (size_t)(meeting->channels * numbers_of(meeting));
    void *array = meetings->whole;
    const tutti_status status = memory_grow(&array, &meetings->capacity, numbers, sizeof(*meetings->whole));
    meetings->whole = array;
    if (status != TUTTI_OK) return status;
    for (size_t i = 0; i < numbers; i++) meetings->whole[i] = 0;
    judge(trainer, meeting);
    for (int r = 0; r < trainer->count; r++)
        if (meetings->handed_in[r].numbers)
            (meeting->kind == MEETING_SUMS ? add_sums : add_moments)(
                &meetings->handed_in[r], meeting->channels, meetings->whole);
    return TUTTI_OK;
}

static void take(const struct meetings *meetings, const struct meeting *meeting, int64_t samples, float *numbers)
{
    const double part = meeting->kind == MEETING_SUMS ? (double)samples / (double)meetings->samples : 1;
    for (int row = 0; row < numbers_of(meeting); row++)
        for (int64_t c = 0; c < meeting->channels; c++)
            numbers[row * meeting->stride + c] = (float)(part * meetings->whole[row * meeting->channels + c]);
}

/* ----------------------------------------------------------------------------------------------- attending ---- */

/* Somebody will not come any more. */
static bool is_broken(const tutti_trainer *trainer)
{
    for (int r = 0; r < trainer->count; r++)
        if (trainer->parts[r] > 0 && !trainer->replicas[r].attends && !trainer->meetings.handed_in[r].numbers)
            return true;
    return false;
}

/* The last one to come makes the numbers of all. */
static tutti_status close_round(tutti_trainer *trainer, const struct meeting *meeting)
{
    struct meetings *meetings = &trainer->meetings;
    const tutti_status status = combine(trainer, meeting);
    if (status != TUTTI_OK) return status;
    for (int r = 0; r < trainer->count; r++) meetings->handed_in[r] = (struct handed_in) { 0 };
    meetings->arrived = 0;
    meetings->round++;
    pthread_cond_broadcast(&trainer->changed);
    return TUTTI_OK;
}

/* Under the lock. */
static tutti_status attend(struct replica *replica, const struct meeting *meeting, const float *numbers)
{
    tutti_status status = TUTTI_OK;
    tutti_trainer *trainer = replica->trainer;
    struct meetings *meetings = &trainer->meetings;
    struct handed_in *mine = &meetings->handed_in[replica - trainer->replicas];
    if (!replica->attends) return fail(TUTTI_DEVICE_LOST, "given up");
    if (meetings->arrived == 0) meetings->meeting = meeting;
    if (meetings->meeting->kind != meeting->kind || meetings->meeting->channels != meeting->channels)
        return fail(TUTTI_INTERNAL, "two devices meet at different layers");
    const uint64_t round = meetings->round;
    *mine = (struct handed_in) { .numbers = numbers, .stride = meeting->stride };
    if (++meetings->arrived == meetings->expected) {
        status = close_round(trainer, meeting);
        if (status != TUTTI_OK) *mine = (struct handed_in) { 0 };
        return status;
    }
    replica->waits = true; /* for others: its own time limit stands still */
    while (meetings->round == round && !is_broken(trainer)) pthread_cond_wait(&trainer->changed, &trainer->lock);
    replica->waits = false;
    if (meetings->round != round) return TUTTI_OK;
    replica->interrupted = true;
    return fail(TUTTI_CANCELLED, "another device failed");
}

tutti_status meetings_attend(struct replica *replica, const struct meeting *meeting, int64_t samples, float *numbers)
{
    pthread_mutex_lock(&replica->trainer->lock);
    const tutti_status status = attend(replica, meeting, numbers);
    if (status == TUTTI_OK) take(&replica->trainer->meetings, meeting, samples, numbers);
    pthread_mutex_unlock(&replica->trainer->lock);
    return status;
}
