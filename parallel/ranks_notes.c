#include "parallel/ranks_notes.h"

#include "parallel/trainer.h"

#include <stdio.h>
#include <xxhash.h>

/* The first rank that failed tells why. */
static tutti_status share_failure(const struct ranks *ranks, int rank, const struct vote *vote)
{
    char text[sizeof(vote->message)] = "";
    const tutti_status status = (tutti_status)ranks->notes[rank].status;
    if (ranks->comm->rank == rank) snprintf(text, sizeof(text), "%s", vote->message);
    const tutti_status shared = comm_broadcast(ranks->comm, rank, text, sizeof(text));
    return shared == TUTTI_OK ? fail(status, "rank %d: %s", rank, text) : shared;
}

tutti_status ranks_exchange_notes(struct tutti_trainer *trainer, const struct vote *vote)
{
    struct ranks *ranks = trainer->ranks;
    ranks->mine.says = (int32_t)vote->says;
    ranks->mine.status = (int32_t)vote->status;
    ranks->mine.cancelled = trainer_is_cancelled(trainer);
    const tutti_status gathered = comm_gather(ranks->comm, &ranks->mine, ranks->notes, sizeof(ranks->mine));
    ranks->mine = (struct rank_note) { 0 };
    if (gathered != TUTTI_OK) return vote_fails(vote) ? vote_status(vote) : gathered;
    for (int i = 0; i < ranks->comm->count; i++) ranks->cancelled |= ranks->notes[i].cancelled != 0;
    for (int i = 0; i < ranks->comm->count; i++) {
        if (ranks->notes[i].says != VOTE_FAIL) continue;
        /* Ranks that average may have done different numbers of steps: they count the same from now on. */
        if (ranks->average.steps > 0) ranks->average.steps = 1;
        return share_failure(ranks, i, vote);
    }
    return TUTTI_OK;
}

tutti_status ranks_agree(struct tutti_trainer *trainer, tutti_status status)
{
    if (!trainer->ranks) return status;
    const struct vote vote = vote_of(status);
    return ranks_exchange_notes(trainer, &vote);
}

tutti_status ranks_report_failure(struct tutti_trainer *trainer, tutti_status status)
{
    return status == TUTTI_OK ? TUTTI_OK : ranks_agree(trainer, status);
}

/* The first of the list that differs between two ranks. Eight bits can be equal by chance: then it is not known. */
static const char *what_differs(
    const struct rank_note *a, const struct rank_note *b, const struct common *list, int count)
{
    for (int i = 0; i < count; i++)
        if ((a->digests ^ b->digests) >> 8 * i & 0xff) return list[i].what;
    return "networks or settings";
}

tutti_status ranks_same(struct tutti_trainer *trainer, tutti_status status, const struct common *list, int count)
{
    struct ranks *ranks = trainer->ranks;
    if (!ranks) return status;
    ranks->mine.hash = 0;
    ranks->mine.digests = 0;
    for (int i = 0; i < count; i++) {
        ranks->mine.hash = XXH3_64bits_withSeed(&list[i].hash, sizeof(list[i].hash), ranks->mine.hash);
        ranks->mine.digests |= (XXH3_64bits(&list[i].hash, sizeof(list[i].hash)) & 0xff) << 8 * i;
    }
    status = ranks_agree(trainer, status);
    for (int i = 1; i < ranks->comm->count && status == TUTTI_OK; i++)
        if (ranks->notes[i].hash != ranks->notes[0].hash)
            status = fail(TUTTI_MISMATCH, "rank %d and rank 0 have different %s: start all ranks with the same", i,
                what_differs(&ranks->notes[i], &ranks->notes[0], list, count));
    return status;
}

void ranks_add_notes(const struct ranks *ranks, struct rank_note *total)
{
    *total = (struct rank_note) { 0 };
    for (int i = 0; i < ranks->comm->count; i++) {
        total->samples += ranks->notes[i].samples;
        metric_sums_add(&total->metrics, &ranks->notes[i].metrics);
        total->not_finite |= ranks->notes[i].not_finite;
        if (ranks->notes[i].says > total->says) total->says = ranks->notes[i].says;
        total->partial |= ranks->notes[i].partial;
        total->largest += ranks->notes[i].largest;
    }
}

tutti_status ranks_total(
    struct tutti_trainer *trainer, tutti_status status, struct metric_totals *totals, int64_t *samples, bool *whole)
{
    struct ranks *ranks = trainer->ranks;
    struct rank_note total;
    if (!ranks) return status;
    ranks->mine.metrics = totals->metrics;
    ranks->mine.samples = *samples;
    ranks->mine.partial = !*whole;
    status = ranks_agree(trainer, status);
    if (status != TUTTI_OK) return status;
    ranks_add_notes(ranks, &total);
    totals->metrics = total.metrics;
    *samples = total.samples;
    *whole = !total.partial;
    return TUTTI_OK;
}

tutti_status ranks_broadcast(struct tutti_trainer *trainer, void *data, size_t bytes)
{
    return trainer->ranks ? comm_broadcast(trainer->ranks->comm, 0, data, bytes) : TUTTI_OK;
}

tutti_status ranks_share_arenas(struct tutti_trainer *trainer)
{
    tutti_status status = TUTTI_OK;
    const tutti_network *network = trainer->network;
    if (!trainer->ranks) return TUTTI_OK;
    const struct optimizer_arrays master = parameters_master(trainer->store);
    float *const frozen = parameters_arenas(trainer->store).frozen;
    TRY(ranks_broadcast(trainer, master.parameters, (size_t)network->total_floats * sizeof(float)));
    if (frozen) TRY(ranks_broadcast(trainer, frozen, (size_t)network->frozen_floats * sizeof(float)));
    for (int i = 0; i < OPTIMIZER_STATES; i++)
        if (master.states[i])
            TRY(ranks_broadcast(trainer, master.states[i], (size_t)network->trained_floats * sizeof(float)));
done:
    return status;
}
