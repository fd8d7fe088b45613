#include "parallel/ranks_division.h"

#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "parallel/ranks_notes.h"
#include "parallel/trainer.h"

#include <math.h>
#include <stdlib.h>

tutti_status ranks_own_samples(struct ranks *ranks, int64_t step, int64_t whole, int64_t *first, int64_t *samples)
{
    int64_t *parts = memory_new((size_t)ranks->comm->count, sizeof(*parts));
    if (!parts) return TUTTI_NO_MEMORY;
    pthread_mutex_lock(&ranks->division.lock);
    const bool later = ranks->division.next_step > 0 && step >= ranks->division.next_step;
    const tutti_status status =
        shares_divide(later ? ranks->division.next : ranks->division.shares, ranks->comm->count, whole, parts);
    pthread_mutex_unlock(&ranks->division.lock);
    *first = 0;
    for (int i = 0; i < ranks->comm->rank; i++) *first += parts[i];
    *samples = parts[ranks->comm->rank];
    free(parts);
    return status;
}

/* There is no next division any more. */
static void set_shares(struct ranks *ranks, const int64_t *parts)
{
    pthread_mutex_lock(&ranks->division.lock);
    for (int i = 0; i < ranks->comm->count; i++) ranks->division.shares[i].weight = (double)parts[i];
    ranks->division.next_step = 0;
    pthread_mutex_unlock(&ranks->division.lock);
}

tutti_status ranks_resize(struct ranks *ranks, int64_t batch)
{
    tutti_status status = TUTTI_OK;
    if (!ranks->division.automatic || ranks->division.balance.batch == batch) return TUTTI_OK;
    ranks->division.wanted = ranks->division.preparing = false;
    TRY(balance_resize(&ranks->division.balance, batch));
    TRY(comm_broadcast(ranks->comm, 0, ranks->division.balance.parts,
        (size_t)ranks->comm->count * sizeof(*ranks->division.balance.parts)));
    set_shares(ranks, ranks->division.balance.parts);
done:
    return status;
}

/* All ranks have plans for the wanted division: sets the step from which it applies. The batch of this step is in
 * use, and readers may have begun those after it. */
static void set_next(struct ranks *ranks, int64_t step)
{
    pthread_mutex_lock(&ranks->division.lock);
    for (int i = 0; i < ranks->comm->count; i++)
        ranks->division.next[i] =
            (struct share) { .weight = (double)ranks->division.balance.wanted[i], .limit = INT64_MAX };
    ranks->division.next_step = step + BATCHES_AHEAD + 1;
    pthread_mutex_unlock(&ranks->division.lock);
}

/* Some ranks cannot take the wanted samples: limits these ranks to what they have. */
static tutti_status give_up_division(struct ranks *ranks)
{
    tutti_status status = TUTTI_OK;
    struct balance *balance = &ranks->division.balance;
    for (int i = 0; i < ranks->comm->count; i++)
        if (ranks->notes[i].repartition == REPARTITION_REFUSED)
            TRY(balance_limit(balance, i, balance->parts[i] > 0 ? balance->parts[i] : 1));
done:
    return status;
}

static tutti_status look_at_plans(struct ranks *ranks, int64_t step)
{
    bool ready = true, refused = false;
    for (int i = 0; i < ranks->comm->count; i++) {
        ready &= ranks->notes[i].repartition == REPARTITION_READY;
        refused |= ranks->notes[i].repartition == REPARTITION_REFUSED;
    }
    ranks->division.preparing = !ready && !refused;
    if (ready) set_next(ranks, step);
    if (!refused) return TUTTI_OK;
    ranks->division.repartition.state = REPARTITION_NONE;
    return give_up_division(ranks);
}

tutti_status ranks_take_division(struct tutti_trainer *trainer)
{
    tutti_status status = TUTTI_OK;
    struct ranks *ranks = trainer->ranks;
    struct balance *balance = &ranks->division.balance;
    const int64_t step = trainer->state.position.steps;
    if (ranks->division.next_step > 0 && step >= ranks->division.next_step) {
        balance_adopt(balance);
        set_shares(ranks, balance->parts);
        ranks->division.repartition.state = REPARTITION_ADOPTED;
    }
    if (ranks->division.preparing) TRY(look_at_plans(ranks, step));
    if (!ranks->notes[0].divides) return TUTTI_OK;
    TRY(comm_broadcast(ranks->comm, 0, balance->wanted, (size_t)ranks->comm->count * sizeof(*balance->wanted)));
    ranks->division.preparing = true;
    repartition_begin(trainer, balance->wanted[ranks->comm->rank]);
done:
    return status;
}

static void log_division(const struct tutti_trainer *trainer)
{
    struct text text = { 0 };
    const struct ranks *ranks = trainer->ranks;
    for (int i = 0; i < ranks->comm->count; i++)
        text_append(&text, "%s%lld", i ? "," : "", (long long)ranks->division.balance.wanted[i]);
    char *parts = text_take(&text);
    log_info(&trainer->network->runtime->log, "step %lld: samples of ranks %s",
        (long long)trainer->state.position.steps, parts ? parts : "");
    free(parts);
}

void ranks_decide(struct tutti_trainer *trainer, double step_s)
{
    struct ranks *ranks = trainer->ranks;
    struct balance *balance = &ranks->division.balance;
    if (!ranks->division.automatic || ranks->comm->rank != 0 || ranks->division.wanted || ranks->division.preparing ||
        ranks->division.next_step > 0)
        return;
    double *seconds = memory_new((size_t)ranks->comm->count, sizeof(*seconds));
    bool same = seconds != NULL;
    for (int i = 0; same && i < ranks->comm->count; i++) {
        same = ranks->notes[i].samples == balance->parts[i];
        seconds[i] = ranks->notes[i].seconds;
        step_s = fmax(step_s, seconds[i]);
    }
    if (same) {
        balance_add(balance, seconds, step_s);
        ranks->division.wanted = balance_decide(balance);
        if (ranks->division.wanted) log_division(trainer);
    }
    free(seconds);
}

/* Agrees on the length of sequences; ranks without samples have none. */
static tutti_status agree_on_length(const struct ranks *ranks, int64_t *length)
{
    int first = -1;
    for (int i = 0; i < ranks->comm->count; i++) {
        if (ranks->notes[i].samples == 0) continue;
        if (first < 0) first = i;
        if (ranks->notes[i].hash != ranks->notes[first].hash)
            return fail(TUTTI_MISMATCH,
                "rank %d and rank %d have different lengths of sequences: start all ranks with the same", i, first);
    }
    if (first < 0) return fail(TUTTI_INVALID, "no rank has a sample for this step: one of them needs some");
    *length = (int64_t)ranks->notes[first].hash;
    return TUTTI_OK;
}

tutti_status ranks_place(struct tutti_trainer *trainer, tutti_status batch_status, struct batch *batch)
{
    tutti_status status;
    struct ranks *ranks = trainer->ranks;
    batch->global_offset = 0;
    batch->global_samples = batch->samples;
    if (!ranks) return batch_status;
    ranks->mine.samples = batch->samples;
    ranks->mine.hash = (uint64_t)batch->feeds.length;
    TRY(ranks_agree(trainer, batch_status));
    TRY(agree_on_length(ranks, &batch->feeds.length));
    batch->global_samples = 0;
    for (int i = 0; i < ranks->comm->count; i++) {
        if (i < ranks->comm->rank) batch->global_offset += ranks->notes[i].samples;
        batch->global_samples += ranks->notes[i].samples;
    }
done:
    return status;
}
