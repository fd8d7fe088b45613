#include "parallel/sync_ranks.h"

#include "base/clock.h"
#include "base/memory.h"
#include "parallel/ranks.h"
#include "parallel/trainer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum says { SAYS_NUMBERS, SAYS_DONE, SAYS_FAILED };

struct message {
    int32_t says, kind;        /* enum says, enum sync_kind */
    int64_t channels, samples; /* of the numbers; 0: there are none */
    double numbers[];          /* [rows][channels] */
};

struct sync_ranks {
    unsigned char *mine, *all; /* struct message: one, and one of each rank */
    size_t bytes, room;        /* of a message: its size, and how many numbers it can hold */
    bool under_way;
    bool over;        /* no rank synchronises in this attempt any more */
    struct vote vote; /* failures of rounds, for sync_ranks_end() */
    double begun, waited;
};

static struct sync_ranks *sync_of(const struct tutti_trainer *trainer)
{
    return trainer->ranks ? trainer->ranks->sync_ranks : NULL;
}

/* A batch normalisation has as many channels as each of its running statistics has elements. */
static size_t most_numbers(const tutti_network *network)
{
    int64_t most = 0;
    for (size_t i = 0; i < network->parameter_count; i++)
        if (network->parameters[i].kind == PARAMETER_STATISTIC && network->parameters[i].elements > most)
            most = network->parameters[i].elements;
    return SYNC_ROWS * (size_t)most;
}

tutti_status sync_ranks_open(struct tutti_trainer *trainer)
{
    if (!trainer->options.whole_batch || trainer->ranks->average.every > 0) return TUTTI_OK;
    struct sync_ranks *sync = trainer->ranks->sync_ranks = memory_new(1, sizeof(*sync));
    if (!sync) return TUTTI_NO_MEMORY;
    sync->room = most_numbers(trainer->network);
    sync->bytes = sizeof(struct message) + sync->room * sizeof(double);
    sync->mine = memory_new(sync->bytes, 1);
    sync->all = memory_new((size_t)trainer->ranks->comm->count, sync->bytes);
    return sync->mine && sync->all ? TUTTI_OK : TUTTI_NO_MEMORY;
}

void sync_ranks_close(struct tutti_trainer *trainer)
{
    struct sync_ranks *sync = sync_of(trainer);
    if (!sync) return;
    free(sync->mine);
    free(sync->all);
    free(sync);
    trainer->ranks->sync_ranks = NULL;
}

void sync_ranks_begin(struct tutti_trainer *trainer)
{
    struct sync_ranks *sync = sync_of(trainer);
    if (!sync) return;
    sync->over = false;
    sync->vote = vote_of(TUTTI_OK);
    sync->waited = 0;
}

double sync_ranks_waited(const struct tutti_trainer *trainer)
{
    const struct sync_ranks *sync = sync_of(trainer);
    return sync ? sync->waited : 0;
}

/* ---------------------------------------------------------------------------------------------------- messages ---- */

static const struct message *message_of(const struct sync_ranks *sync, int rank)
{
    return (const void *)(sync->all + (size_t)rank * sync->bytes);
}

static int ranks_that_say(const struct tutti_trainer *trainer, enum says says)
{
    int count = 0;
    for (int i = 0; i < trainer->ranks->comm->count; i++)
        count += message_of(trainer->ranks->sync_ranks, i)->says == (int32_t)says;
    return count;
}

static tutti_status begin(struct tutti_trainer *trainer, enum says says)
{
    struct sync_ranks *sync = trainer->ranks->sync_ranks;
    struct message *message = (void *)sync->mine;
    *message = (struct message) { .says = (int32_t)says };
    if (says == SAYS_NUMBERS) {
        const struct sync_devices *devices = &trainer->sync_devices;
        const size_t numbers = sync_devices_numbers(devices->point);
        if (numbers > sync->room)
            return fail(TUTTI_INTERNAL, "a layer to synchronise has more channels than any statistics");
        message->kind = (int32_t)devices->point->kind;
        message->channels = devices->point->channels;
        for (int i = 0; i < trainer->count; i++) message->samples += trainer->device_division.parts[i];
        memcpy(message->numbers, devices->whole, numbers * sizeof(double));
    }
    sync->begun = clock_seconds();
    return comm_start_gather(trainer->ranks->comm, sync->mine, sync->all, sync->bytes);
}

static bool is_finite(const struct message *message, size_t numbers)
{
    bool finite = true;
    for (size_t i = 0; i < numbers; i++) finite &= isfinite(message->numbers[i]) != 0;
    return finite;
}

/* Replaces this rank's numbers by the sum over all ranks, in the order of the ranks. */
static tutti_status add_up(struct tutti_trainer *trainer)
{
    int64_t samples = 0;
    struct sync_devices *devices = &trainer->sync_devices;
    const struct sync_point *point = devices->point;
    const size_t numbers = sync_devices_numbers(point);
    memset(devices->whole, 0, numbers * sizeof(*devices->whole));
    for (int i = 0; i < trainer->ranks->comm->count; i++) {
        const struct message *message = message_of(trainer->ranks->sync_ranks, i);
        if (message->says != SAYS_NUMBERS) continue;
        if (message->kind != (int32_t)point->kind || message->channels != point->channels)
            return fail(TUTTI_INTERNAL, "the devices of rank %d synchronise at another layer", i);
        samples += message->samples;
        devices->judged |= !is_finite(message, numbers); /* all ranks have them now */
        sync_devices_add(point, message->numbers, devices->whole);
    }
    if (samples == devices->samples) return TUTTI_OK;
    return fail(TUTTI_INTERNAL, "%lld of the step's %lld samples take part in a synchronisation", (long long)samples,
        (long long)devices->samples);
}

/* ------------------------------------------------------------------------------------------------------ rounds ---- */

static void read_result(struct tutti_trainer *trainer)
{
    struct sync_ranks *sync = trainer->ranks->sync_ranks;
    tutti_status status = TUTTI_OK;
    sync->over = ranks_that_say(trainer, SAYS_FAILED) > 0;
    if (!sync->over) status = add_up(trainer);
    vote_take(&sync->vote, status);
    sync_devices_conclude(trainer, !sync->over && status == TUTTI_OK);
}

bool sync_ranks_progress(struct tutti_trainer *trainer)
{
    tutti_status status = TUTTI_OK;
    struct sync_ranks *sync = sync_of(trainer);
    bool back = false;
    if (!sync || sync->over || (!sync->under_way && !trainer->sync_devices.complete)) return false;
    if (!sync->under_way) status = begin(trainer, SAYS_NUMBERS);
    sync->under_way = status == TUTTI_OK;
    if (status == TUTTI_OK) status = comm_test_gather(trainer->ranks->comm, &back);
    if (status == TUTTI_OK && !back) return true;
    sync->under_way = false;
    sync->waited += clock_seconds() - sync->begun;
    if (status == TUTTI_OK) {
        read_result(trainer);
        return false;
    }
    vote_take(&sync->vote, status);
    sync->over = !comm_is_whole(trainer->ranks->comm);
    sync_devices_conclude(trainer, false);
    return false;
}

void sync_ranks_end(struct tutti_trainer *trainer, struct vote *vote)
{
    struct sync_ranks *sync = sync_of(trainer);
    if (!sync) return;
    if (!vote_fails(vote) && vote_fails(&sync->vote)) *vote = sync->vote;
    while (!sync->over) {
        tutti_status status = begin(trainer, vote->says == VOTE_DONE ? SAYS_DONE : SAYS_FAILED);
        if (status == TUTTI_OK) status = comm_wait_gather(trainer->ranks->comm);
        if (!vote_fails(vote)) vote_take(vote, status);
        sync->over = status != TUTTI_OK || ranks_that_say(trainer, SAYS_FAILED) > 0 ||
            ranks_that_say(trainer, SAYS_NUMBERS) == 0;
    }
}
