/* Federated averaging (McMahan et al. 2017, algorithm 1): each rank goes on from the same parameters for some steps;
 * then they become the mean of all ranks', weighted by the samples that each has trained. So do running statistics, and
 * the optimizer's states (as Yu, Jin and Yang 2019 do with momentum), so that after an average all ranks are equal and
 * a checkpoint is as complete as ever. */
#include "parallel/ranks_average.h"

#include "parallel/ranks_division.h"
#include "parallel/ranks_notes.h"
#include "parallel/ranks_sum.h"
#include "parallel/trainer.h"

bool ranks_average_mode(const struct tutti_trainer *trainer)
{
    return trainer->ranks && trainer->ranks->average.every > 0;
}

static tutti_status average_array(struct ranks *ranks, const float *values, float *average, int64_t count, float weight)
{
    tutti_status status = TUTTI_OK;
    for (int64_t i = 0; i < count; i++) ranks->buffers.send[i] = weight * values[i];
    for (int64_t begin = 0; begin < count; begin += SEGMENT_FLOATS) {
        const int64_t left = count - begin;
        TRY(comm_start_all_reduce(
            ranks->comm, ranks->buffers.send + begin, average + begin, left < SEGMENT_FLOATS ? left : SEGMENT_FLOATS));
    }
    TRY(comm_wait_all_reduces(ranks->comm));
done:
    return status;
}

/* Where it fails, the master copy is what it was. */
static tutti_status average_arenas(struct tutti_trainer *trainer, float weight)
{
    tutti_status status = TUTTI_OK;
    struct ranks *ranks = trainer->ranks;
    const tutti_network *network = trainer->network;
    const struct optimizer_arrays master = parameters_master(trainer->store);
    struct optimizer_arrays *result = &ranks->average.result;
    TRY(average_array(ranks, master.parameters, result->parameters, network->total_floats, weight));
    for (int i = 0; i < optimizer_states(&trainer->optimizer); i++)
        TRY(average_array(ranks, master.states[i], result->states[i], network->trained_floats, weight));
    parameters_swap(trainer->store, result);
    parameters_commit(trainer->store, NULL, false);
done:
    return status;
}

tutti_status ranks_make_average(struct tutti_trainer *trainer)
{
    struct optimizer_arrays *result = &trainer->ranks->average.result;
    if (!result->parameters) *result = parameters_copy_new(trainer->store);
    return result->parameters ? TUTTI_OK : TUTTI_NO_MEMORY;
}

/* Each rank has scaled its own losses, and has skipped steps of its own. */
static void agree_on_scale(struct tutti_trainer *trainer)
{
    const struct ranks *ranks = trainer->ranks;
    struct loss_scale *own = &trainer->state.loss_scale;
    bool any = false;
    for (int i = 0; i < ranks->comm->count; i++) {
        const struct rank_note *note = &ranks->notes[i];
        const struct loss_scale one = {
            .on = own->on, .scale = note->scale, .good = note->good, .skipped = note->skipped
        };
        if (note->scale == 0) continue;
        if (any)
            loss_scale_join(own, &one);
        else
            *own = one;
        any = true;
    }
}

void ranks_average_reset(struct ranks *ranks)
{
    ranks->average.reported = ranks->average.since = (struct rank_note) { 0 };
    ranks->average.steps = 0;
}

/* Sets the sums of losses that were not reported to the caller yet. */
static void report_rest(struct ranks *ranks, struct metric_totals *totals)
{
    struct rank_note total;
    ranks_add_notes(ranks, &total);
    metric_sums_scale(&ranks->average.reported.metrics, -1);
    totals->metrics = total.metrics;
    metric_sums_add(&totals->metrics, &ranks->average.reported.metrics);
    ranks_average_reset(ranks);
}

tutti_status ranks_average_parameters(
    struct tutti_trainer *trainer, const struct vote *vote, struct metric_totals *totals)
{
    tutti_status status = TUTTI_OK;
    struct ranks *ranks = trainer->ranks;
    const double own = (double)ranks->average.since.samples;
    const int64_t steps = ranks->average.steps;
    double whole = 0;
    ranks->mine = ranks->average.since;
    ranks->mine.weight = own;
    if (steps > 0) {
        ranks->mine.samples = (ranks->average.since.samples + steps / 2) / steps;
        ranks->mine.seconds = ranks->average.since.seconds / (double)steps;
    }
    if (own > 0) {
        ranks->mine.scale = trainer->state.loss_scale.scale;
        ranks->mine.good = trainer->state.loss_scale.good;
        ranks->mine.skipped = trainer->state.loss_scale.skipped;
    }
    ranks->mine.divides = ranks->division.wanted;
    ranks->mine.repartition = (int32_t)ranks->division.repartition.state;
    TRY(ranks_exchange_notes(trainer, vote));
    for (int i = 0; i < ranks->comm->count; i++) whole += ranks->notes[i].weight;
    if (whole > 0) TRY(average_arenas(trainer, (float)(own / whole)));
    agree_on_scale(trainer);
    if (ranks->division.automatic) TRY(ranks_take_division(trainer));
    ranks->division.wanted = false;
    report_rest(ranks, totals);
    ranks_decide(trainer, 0);
done:
    return status;
}

void ranks_local_step(struct tutti_trainer *trainer, const struct batch *batch, struct metric_totals *totals)
{
    struct ranks *ranks = trainer->ranks;
    comm_progress(ranks->comm); /* sends a heartbeat */
    ranks->average.steps++;
    ranks->average.since.samples += batch->samples;
    metric_sums_add(&ranks->average.since.metrics, &totals->metrics);
    ranks->average.since.seconds += ranks->seconds;
    if (ranks->average.steps >= ranks->average.every) return;
    /* Until the next average, the others' samples are assumed to be like this rank's. */
    const double others = batch->samples > 0 ? (double)batch->global_samples / (double)batch->samples : 0;
    metric_sums_scale(&totals->metrics, others);
    metric_sums_add(&ranks->average.reported.metrics, &totals->metrics);
}
