#include "train/sync_ranks.h"

#include "base/memory.h"
#include "base/threads.h"
#include "train/trainer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum says { SAYS_NUMBERS, SAYS_DONE, SAYS_FAILED };

struct message {
    int32_t says, kind;        /* enum says, enum meeting_kind */
    int64_t channels, samples; /* of which the numbers are; 0 where there are none */
    double numbers[];          /* [rows][channels] */
};

struct rounds {
    unsigned char *mine, *all; /* struct message: one, and one of each rank */
    size_t bytes, room;        /* of a message; numbers in it */
    bool under_way;
    bool over;        /* nobody meets in this try any more */
    struct vote vote; /* of a failure, told at the end of the try */
    double begun, waited;
};

static struct rounds *rounds_of(const struct tutti_trainer *trainer)
{
    return trainer->world ? trainer->world->rounds : NULL;
}

/* Batch normalisation has as many channels as its running statistics have numbers. */
static size_t most_numbers(const tutti_network *network)
{
    int64_t most = 0;
    for (size_t i = 0; i < network->parameter_count; i++)
        if (network->parameters[i].kind == PARAMETER_STATISTIC && network->parameters[i].elements > most)
            most = network->parameters[i].elements;
    return MEETING_ROWS * (size_t)most;
}

tutti_status rounds_open(struct tutti_trainer *trainer)
{
    if (!trainer->options.whole_batch || trainer->world->average.every > 0) return TUTTI_OK;
    struct rounds *rounds = trainer->world->rounds = memory_new(1, sizeof(*rounds));
    if (!rounds) return TUTTI_NO_MEMORY;
    rounds->room = most_numbers(trainer->network);
    rounds->bytes = sizeof(struct message) + rounds->room * sizeof(double);
    rounds->mine = memory_new(rounds->bytes, 1);
    rounds->all = memory_new((size_t)trainer->world->hosts->count, rounds->bytes);
    return rounds->mine && rounds->all ? TUTTI_OK : TUTTI_NO_MEMORY;
}

void rounds_close(struct tutti_trainer *trainer)
{
    struct rounds *rounds = rounds_of(trainer);
    if (!rounds) return;
    free(rounds->mine);
    free(rounds->all);
    free(rounds);
    trainer->world->rounds = NULL;
}

void rounds_begin(struct tutti_trainer *trainer)
{
    struct rounds *rounds = rounds_of(trainer);
    if (!rounds) return;
    rounds->over = false;
    rounds->vote = vote_of(TUTTI_OK);
    rounds->waited = 0;
}

double rounds_waited(const struct tutti_trainer *trainer)
{
    const struct rounds *rounds = rounds_of(trainer);
    return rounds ? rounds->waited : 0;
}

/* ----------------------------------------------------------------------------------------------------- messages ----
 */

static const struct message *message_of(const struct rounds *rounds, int rank)
{
    return (const void *)(rounds->all + (size_t)rank * rounds->bytes);
}

static int ranks_that_say(const struct tutti_trainer *trainer, enum says says)
{
    int count = 0;
    for (int i = 0; i < trainer->world->hosts->count; i++)
        count += message_of(trainer->world->rounds, i)->says == (int32_t)says;
    return count;
}

static tutti_status begin(struct tutti_trainer *trainer, enum says says)
{
    struct rounds *rounds = trainer->world->rounds;
    struct message *message = (void *)rounds->mine;
    *message = (struct message) { .says = (int32_t)says };
    if (says == SAYS_NUMBERS) {
        const struct meetings *meetings = &trainer->meetings;
        const size_t numbers = meeting_numbers(meetings->meeting);
        if (numbers > rounds->room)
            return fail(TUTTI_INTERNAL, "a layer to synchronise has more channels than any statistics");
        message->kind = (int32_t)meetings->meeting->kind;
        message->channels = meetings->meeting->channels;
        for (int i = 0; i < trainer->count; i++) message->samples += trainer->parts[i];
        memcpy(message->numbers, meetings->whole, numbers * sizeof(double));
    }
    rounds->begun = clock_seconds();
    return hosts_round(trainer->world->hosts, rounds->mine, rounds->all, rounds->bytes);
}

static bool is_finite(const struct message *message, size_t numbers)
{
    bool finite = true;
    for (size_t i = 0; i < numbers; i++) finite &= isfinite(message->numbers[i]) != 0;
    return finite;
}

/* All ranks' numbers, in the ranks' order, instead of this one's. */
static tutti_status add_up(struct tutti_trainer *trainer)
{
    int64_t samples = 0;
    struct meetings *meetings = &trainer->meetings;
    const struct meeting *meeting = meetings->meeting;
    const size_t numbers = meeting_numbers(meeting);
    memset(meetings->whole, 0, numbers * sizeof(*meetings->whole));
    for (int i = 0; i < trainer->world->hosts->count; i++) {
        const struct message *message = message_of(trainer->world->rounds, i);
        if (message->says != SAYS_NUMBERS) continue;
        if (message->kind != (int32_t)meeting->kind || message->channels != meeting->channels)
            return fail(TUTTI_INTERNAL, "the devices of rank %d synchronise at another layer", i);
        samples += message->samples;
        meetings->judged |= !is_finite(message, numbers); /* from now on all have them */
        meeting_add(meeting, message->numbers, meetings->whole);
    }
    if (samples == meetings->samples) return TUTTI_OK;
    return fail(TUTTI_INTERNAL, "%lld of the step's %lld samples take part in a synchronisation", (long long)samples,
        (long long)meetings->samples);
}

/* ---------------------------------------------------------------------------------------------------- carrying ---- */

/* What came back. */
static void take(struct tutti_trainer *trainer)
{
    struct rounds *rounds = trainer->world->rounds;
    tutti_status status = TUTTI_OK;
    rounds->over = ranks_that_say(trainer, SAYS_FAILED) > 0;
    if (!rounds->over) status = add_up(trainer);
    vote_take(&rounds->vote, status);
    meetings_conclude(trainer, !rounds->over && status == TUTTI_OK);
}

bool rounds_carry(struct tutti_trainer *trainer)
{
    tutti_status status = TUTTI_OK;
    struct rounds *rounds = rounds_of(trainer);
    bool back = false;
    if (!rounds || rounds->over || (!rounds->under_way && !trainer->meetings.complete)) return false;
    if (!rounds->under_way) status = begin(trainer, SAYS_NUMBERS);
    rounds->under_way = status == TUTTI_OK;
    if (status == TUTTI_OK) status = hosts_round_test(trainer->world->hosts, &back);
    if (status == TUTTI_OK && !back) return true;
    rounds->under_way = false;
    rounds->waited += clock_seconds() - rounds->begun;
    if (status == TUTTI_OK) {
        take(trainer);
        return false;
    }
    vote_take(&rounds->vote, status);
    rounds->over = !hosts_are_whole(trainer->world->hosts);
    meetings_conclude(trainer, false);
    return false;
}

void rounds_end(struct tutti_trainer *trainer, struct vote *vote)
{
    struct rounds *rounds = rounds_of(trainer);
    if (!rounds) return;
    if (!vote_fails(vote) && vote_fails(&rounds->vote)) *vote = rounds->vote;
    while (!rounds->over) {
        tutti_status met = begin(trainer, vote->says == VOTE_DONE ? SAYS_DONE : SAYS_FAILED);
        if (met == TUTTI_OK) met = hosts_round_wait(trainer->world->hosts);
        if (!vote_fails(vote)) vote_take(vote, met);
        rounds->over =
            met != TUTTI_OK || ranks_that_say(trainer, SAYS_FAILED) > 0 || ranks_that_say(trainer, SAYS_NUMBERS) == 0;
    }
}
