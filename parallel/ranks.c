#include "parallel/ranks.h"

#include "base/bf16.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "base/options.h"
#include "base/text.h"
#include "parallel/exchange.h"
#include "parallel/state.h"
#include "parallel/sync_ranks.h"
#include "tutti_hosts.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* Blocks of the exchange that are summed over the ranks at once, 4 MiB: enough that latency does not dominate. */
enum { GROUP = 16 };
/* Seconds between two checks for progress between ranks: of all-reduces; of a round, while devices have nothing to
 * do. */
#define PROGRESS_S 0.0005
#define ROUND_S 0.0001

/* --------------------------------------------------------------------------------------------------- agreeing ---- */

/* The first rank that failed tells why. */
static tutti_status share_failure(const struct ranks *ranks, int rank, const struct vote *vote)
{
    char text[sizeof(vote->message)] = "";
    const tutti_status status = (tutti_status)ranks->notes[rank].status;
    if (ranks->hosts->rank == rank) snprintf(text, sizeof(text), "%s", vote->message);
    const tutti_status shared = hosts_broadcast(ranks->hosts, rank, text, sizeof(text));
    return shared == TUTTI_OK ? fail(status, "rank %d: %s", rank, text) : shared;
}

/* Tells all ranks this one's vote and note, and gets theirs. */
static tutti_status exchange_notes(struct tutti_trainer *trainer, const struct vote *vote)
{
    struct ranks *ranks = trainer->ranks;
    ranks->mine.says = (int32_t)vote->says;
    ranks->mine.status = (int32_t)vote->status;
    ranks->mine.cancelled = trainer_is_cancelled(trainer);
    const tutti_status gathered = hosts_gather(ranks->hosts, &ranks->mine, ranks->notes, sizeof(ranks->mine));
    ranks->mine = (struct rank_note) { 0 };
    if (gathered != TUTTI_OK) return vote_fails(vote) ? vote_status(vote) : gathered;
    for (int i = 0; i < ranks->hosts->count; i++) ranks->cancelled |= ranks->notes[i].cancelled != 0;
    for (int i = 0; i < ranks->hosts->count; i++)
        if (ranks->notes[i].says == VOTE_FAIL) return share_failure(ranks, i, vote);
    return TUTTI_OK;
}

/* Exchanges notes outside of steps. */
static tutti_status agree(struct tutti_trainer *trainer, tutti_status status)
{
    const struct vote vote = vote_of(status);
    return exchange_notes(trainer, &vote);
}

tutti_status ranks_agree(struct tutti_trainer *trainer, tutti_status status)
{
    return trainer->ranks ? agree(trainer, status) : status;
}

tutti_status trainer_begin_call(struct tutti_trainer *trainer, tutti_status status)
{
    return status == TUTTI_OK ? TUTTI_OK : ranks_agree(trainer, status);
}

tutti_status ranks_same(struct tutti_trainer *trainer, tutti_status status, uint64_t hash, const char *what)
{
    struct ranks *ranks = trainer->ranks;
    if (!ranks) return status;
    ranks->mine.hash = hash;
    status = agree(trainer, status);
    for (int i = 1; i < ranks->hosts->count && status == TUTTI_OK; i++)
        if (ranks->notes[i].hash != ranks->notes[0].hash)
            status =
                fail(TUTTI_MISMATCH, "rank %d and rank 0 have different %s: start all ranks with the same", i, what);
    return status;
}

/* Adds up the notes, always in the ranks' order. */
static void add_notes(const struct ranks *ranks, struct rank_note *total)
{
    *total = (struct rank_note) { 0 };
    for (int i = 0; i < ranks->hosts->count; i++) {
        total->samples += ranks->notes[i].samples;
        tally_add(&total->tally, &ranks->notes[i].tally);
        total->not_finite |= ranks->notes[i].not_finite;
        if (ranks->notes[i].says > total->says) total->says = ranks->notes[i].says;
        total->partial |= ranks->notes[i].partial;
        total->largest += ranks->notes[i].largest;
    }
}

tutti_status ranks_total(
    struct tutti_trainer *trainer, tutti_status status, struct sums *sums, int64_t *samples, bool *whole)
{
    struct ranks *ranks = trainer->ranks;
    struct rank_note total;
    if (!ranks) return status;
    ranks->mine.tally = sums->tally;
    ranks->mine.samples = *samples;
    ranks->mine.partial = !*whole;
    status = agree(trainer, status);
    if (status != TUTTI_OK) return status;
    add_notes(ranks, &total);
    sums->tally = total.tally;
    *samples = total.samples;
    *whole = !total.partial;
    return TUTTI_OK;
}

tutti_status ranks_broadcast(struct tutti_trainer *trainer, void *data, size_t bytes)
{
    return trainer->ranks ? hosts_broadcast(trainer->ranks->hosts, 0, data, bytes) : TUTTI_OK;
}

tutti_status ranks_share_arenas(struct tutti_trainer *trainer)
{
    tutti_status status = TUTTI_OK;
    const tutti_network *network = trainer->network;
    if (!trainer->ranks) return TUTTI_OK;
    const struct optimizer_arrays master = parameters_master(&trainer->store);
    float *const frozen = parameters_arenas(&trainer->store).frozen;
    TRY(ranks_broadcast(trainer, master.parameters, (size_t)network->total_floats * sizeof(float)));
    if (frozen) TRY(ranks_broadcast(trainer, frozen, (size_t)network->frozen_floats * sizeof(float)));
    for (int i = 0; i < OPTIMIZER_STATES; i++)
        if (master.states[i])
            TRY(ranks_broadcast(trainer, master.states[i], (size_t)network->trained_floats * sizeof(float)));
done:
    return status;
}

/* ------------------------------------------------------------------------------------------ opening, closing ---- */

/* Hash of what must be equal on all ranks. */
static uint64_t hash_of(const struct tutti_trainer *trainer, const struct ranks *ranks)
{
    const tutti_network *network = trainer->network;
    const struct optimizer *o = &trainer->optimizer;
    const struct operation *loss = trainer->objective.loss;
    const double numbers[] = { trainer->objective.loss_count, loss ? 1 + loss->takes_classes : 0, o->kind,
        o->learning_rate, o->momentum, o->weight_decay, o->beta1, o->beta2, o->epsilon, o->nesterov, o->clip_norm,
        o->ema_decay, trainer->options.experts.wire, (double)trainer->options.batch, (double)ranks->average.every,
        ranks->division.automatic, trainer->options.whole_batch, trainer->course.loss_scale.on,
        (double)trainer->feeds.longest };
    uint64_t hash = XXH3_64bits_withSeed(numbers, sizeof(numbers), trainer->course.seed);
    hash = XXH3_64bits_withSeed(trainer->objective.weights, sizeof(trainer->objective.weights), hash);
    for (size_t i = 0; i < network->parameter_count; i++) {
        const struct parameter *parameter = &network->parameters[i];
        const float group[] = { parameter->rate_factor, parameter->weight_decay, parameter->has_weight_decay };
        hash = XXH3_64bits_withSeed(parameter->name, strlen(parameter->name), hash + parameter->kind);
        hash = XXH3_64bits_withSeed(group, sizeof(group), hash);
        hash = XXH3_64bits_withSeed(
            parameter->shape.sizes, (size_t)parameter->shape.rank * sizeof(parameter->shape.sizes[0]), hash);
        if (parameter->kind == PARAMETER_CONSTANT)
            hash = XXH3_64bits_withSeed(parameter->values, (size_t)parameter->elements * sizeof(float), hash);
    }
    return hash;
}

static tutti_status allocate(struct tutti_trainer *trainer, struct ranks *ranks)
{
    tutti_status status = TUTTI_OK;
    const size_t count = (size_t)ranks->hosts->count;
    ranks->notes = memory_new(count, sizeof(*ranks->notes));
    ranks->division.shares = memory_new(count, sizeof(*ranks->division.shares));
    ranks->division.next = memory_new(count, sizeof(*ranks->division.next));
    int64_t *limits = memory_new(count, sizeof(*limits));
    if (!ranks->notes || !ranks->division.shares || !ranks->division.next || !limits) {
        status = TUTTI_NO_MEMORY;
        goto done;
    }
    /* Less than the batch: a rank alone would gain nothing, since the others have to follow it. */
    for (size_t i = 0; i < count; i++) limits[i] = trainer->options.batch > 1 ? trainer->options.batch - 1 : 1;
    if (ranks->division.automatic)
        TRY(balance_init(&ranks->division.balance, ranks->hosts->count, trainer->options.batch, limits));
    TRY(repartition_open(trainer));
done:
    free(limits);
    return status;
}

static double weight_of(const struct tutti_trainer *trainer, bool automatic)
{
    double weight = 0;
    for (int i = 0; i < trainer->count; i++) weight += trainer->shares[i].weight;
    return automatic ? 1 : weight;
}

/* Sets the division that all ranks begin with: equal if it follows speed later, else by the shares of their
 * devices. */
static void take_weights(struct ranks *ranks)
{
    for (int i = 0; i < ranks->hosts->count; i++)
        ranks->division.shares[i] = (struct share) { .weight = ranks->notes[i].weight, .limit = INT64_MAX };
}

tutti_status ranks_open(struct tutti_trainer *trainer, const tutti_training *training, tutti_status status)
{
    tutti_hosts *hosts = training ? training->hosts : NULL;
    int64_t first;
    trainer->part = trainer->options.batch;
    if (!hosts || hosts->count == 1 || !trainer->trains) return status;
    struct ranks *ranks = memory_new(1, sizeof(*ranks));
    if (!ranks) return TUTTI_NO_MEMORY;
    trainer->ranks = ranks;
    ranks->hosts = hosts;
    pthread_mutex_init(&ranks->division.lock, NULL);
    ranks->average.every = trainer->options.experts.average_every;
    ranks->division.automatic =
        !training->shares && training->sharing == TUTTI_SHARES_AUTO && trainer->options.batch > 1;
    if (status == TUTTI_OK) status = allocate(trainer, ranks);
    if (!ranks->notes) return TUTTI_NO_MEMORY;
    if (status == TUTTI_OK) ranks->mine.weight = weight_of(trainer, ranks->division.automatic);
    TRY(ranks_same(trainer, status, status == TUTTI_OK ? hash_of(trainer, ranks) : 0, "networks or settings"));
    take_weights(ranks);
    TRY(ranks_part(ranks, 0, trainer->options.batch, &first, &trainer->part));
    if (trainer->part == 0) trainer->part = 1; /* for evaluation */
done:
    return status;
}

void ranks_close(struct tutti_trainer *trainer)
{
    struct ranks *ranks = trainer->ranks;
    if (!ranks) return;
    sync_ranks_close(trainer);
    balance_free(&ranks->division.balance);
    repartition_close(trainer);
    pthread_mutex_destroy(&ranks->division.lock);
    free(ranks->notes);
    free(ranks->division.shares);
    free(ranks->division.next);
    free(ranks->leaving.own);
    free(ranks->leaving.own_half);
    free(ranks->leaving.half);
    free(ranks);
    trainer->ranks = NULL;
}

/* Returns what fits without micro-batches if statistics are over the whole batch; else there is no limit. */
static int64_t capacity_of(const struct tutti_trainer *trainer)
{
    int64_t capacity = 0;
    for (int i = 0; trainer->options.whole_batch && i < trainer->count; i++)
        if (!replica_is_lost(&trainer->replicas[i])) capacity += trainer->replicas[i].capacity;
    return trainer->options.whole_batch ? capacity : INT64_MAX;
}

static tutti_status limit_parts(struct ranks *ranks)
{
    tutti_status status = TUTTI_OK;
    struct balance *balance = &ranks->division.balance;
    for (int i = 0; ranks->division.automatic && i < ranks->hosts->count; i++)
        if (ranks->notes[i].capacity < balance->devices[i].limit)
            TRY(balance_limit(balance, i, ranks->notes[i].capacity));
done:
    return status;
}

tutti_status ranks_begin(struct tutti_trainer *trainer, tutti_status status)
{
    struct ranks *ranks = trainer->ranks;
    if (!ranks) return status;
    if (status == TUTTI_OK) {
        ranks->leaving.own = memory_new((size_t)trainer->network->total_floats, sizeof(float));
        if (!ranks->leaving.own) status = TUTTI_NO_MEMORY;
    }
    if (status == TUTTI_OK && trainer->options.experts.wire == TUTTI_BF16 && ranks_sums(trainer)) {
        ranks->leaving.own_half =
            memory_new((size_t)trainer->network->trained_floats, sizeof(*ranks->leaving.own_half));
        ranks->leaving.half = memory_new((size_t)trainer->network->trained_floats, sizeof(*ranks->leaving.half));
        if (!ranks->leaving.own_half || !ranks->leaving.half) status = TUTTI_NO_MEMORY;
    }
    if (status == TUTTI_OK) status = sync_ranks_open(trainer);
    ranks->mine.capacity = capacity_of(trainer);
    TRY(agree(trainer, status));
    TRY(limit_parts(ranks));
    TRY(ranks_share_arenas(trainer));
done:
    return status;
}

/* -------------------------------------------------------------------------------------------------- divisions ---- */

tutti_status ranks_part(struct ranks *ranks, int64_t step, int64_t whole, int64_t *first, int64_t *samples)
{
    int64_t *parts = memory_new((size_t)ranks->hosts->count, sizeof(*parts));
    if (!parts) return TUTTI_NO_MEMORY;
    pthread_mutex_lock(&ranks->division.lock);
    const bool later = ranks->division.next_step > 0 && step >= ranks->division.next_step;
    const tutti_status status =
        shares_divide(later ? ranks->division.next : ranks->division.shares, ranks->hosts->count, whole, parts);
    pthread_mutex_unlock(&ranks->division.lock);
    *first = 0;
    for (int i = 0; i < ranks->hosts->rank; i++) *first += parts[i];
    *samples = parts[ranks->hosts->rank];
    free(parts);
    return status;
}

static void set_shares(struct ranks *ranks, const int64_t *parts)
{
    pthread_mutex_lock(&ranks->division.lock);
    for (int i = 0; i < ranks->hosts->count; i++) ranks->division.shares[i].weight = (double)parts[i];
    pthread_mutex_unlock(&ranks->division.lock);
}

tutti_status ranks_resize(struct ranks *ranks, int64_t batch)
{
    tutti_status status = TUTTI_OK;
    if (!ranks->division.automatic || ranks->division.balance.batch == batch) return TUTTI_OK;
    ranks->division.wanted = ranks->division.preparing = false;
    ranks->division.next_step = 0;
    TRY(balance_resize(&ranks->division.balance, batch));
    TRY(hosts_broadcast(ranks->hosts, 0, ranks->division.balance.parts,
        (size_t)ranks->hosts->count * sizeof(*ranks->division.balance.parts)));
    set_shares(ranks, ranks->division.balance.parts);
done:
    return status;
}

/* All ranks have plans for the wanted division: sets the step from which it applies. The batch of this step is in
 * use, and readers may have begun those after it. */
static void set_next(struct ranks *ranks, int64_t step)
{
    pthread_mutex_lock(&ranks->division.lock);
    for (int i = 0; i < ranks->hosts->count; i++)
        ranks->division.next[i] =
            (struct share) { .weight = (double)ranks->division.balance.wanted[i], .limit = INT64_MAX };
    ranks->division.next_step = step + BATCHES_AHEAD + 1;
    pthread_mutex_unlock(&ranks->division.lock);
}

/* Some ranks cannot have the wanted part: limits these to what they have. */
static tutti_status give_up_division(struct ranks *ranks)
{
    tutti_status status = TUTTI_OK;
    struct balance *balance = &ranks->division.balance;
    for (int i = 0; i < ranks->hosts->count; i++)
        if (ranks->notes[i].repartition == REPARTITION_REFUSED)
            TRY(balance_limit(balance, i, balance->parts[i] > 0 ? balance->parts[i] : 1));
done:
    return status;
}

static tutti_status look_at_plans(struct ranks *ranks, int64_t step)
{
    bool ready = true, refused = false;
    for (int i = 0; i < ranks->hosts->count; i++) {
        ready &= ranks->notes[i].repartition == REPARTITION_READY;
        refused |= ranks->notes[i].repartition == REPARTITION_REFUSED;
    }
    ranks->division.preparing = !ready && !refused;
    if (ready) set_next(ranks, step);
    if (!refused) return TUTTI_OK;
    ranks->division.repartition.state = REPARTITION_NONE;
    return give_up_division(ranks);
}

/* The notes of a step tell all ranks what rank 0 wants, and how far each rank is with it. All ranks have the same
 * notes, so they do the same. */
static tutti_status take_division(struct tutti_trainer *trainer)
{
    tutti_status status = TUTTI_OK;
    struct ranks *ranks = trainer->ranks;
    struct balance *balance = &ranks->division.balance;
    const int64_t step = trainer->course.position.steps;
    if (ranks->division.next_step > 0 && step >= ranks->division.next_step) {
        balance_adopt(balance);
        set_shares(ranks, balance->parts);
        ranks->division.next_step = 0;
        ranks->division.repartition.state = REPARTITION_ADOPTED;
    }
    if (ranks->division.preparing) TRY(look_at_plans(ranks, step));
    if (!ranks->notes[0].divides) return TUTTI_OK;
    TRY(hosts_broadcast(ranks->hosts, 0, balance->wanted, (size_t)ranks->hosts->count * sizeof(*balance->wanted)));
    ranks->division.preparing = true;
    repartition_begin(trainer, balance->wanted[ranks->hosts->rank]);
done:
    return status;
}

static void tell_division(const struct tutti_trainer *trainer)
{
    struct text text = { 0 };
    const struct ranks *ranks = trainer->ranks;
    for (int i = 0; i < ranks->hosts->count; i++)
        text_append(&text, "%s%lld", i ? "," : "", (long long)ranks->division.balance.wanted[i]);
    char *parts = text_take(&text);
    log_info(&trainer->runtime->log, "step %lld: samples of ranks %s", (long long)trainer->course.position.steps,
        parts ? parts : "");
    free(parts);
}

/* Rank 0 decides on the division after a step, from its notes. */
static void decide(struct tutti_trainer *trainer, double step_s)
{
    struct ranks *ranks = trainer->ranks;
    struct balance *balance = &ranks->division.balance;
    if (!ranks->division.automatic || ranks->hosts->rank != 0 || ranks->division.wanted || ranks->division.preparing ||
        ranks->division.next_step > 0)
        return;
    double *seconds = memory_new((size_t)ranks->hosts->count, sizeof(*seconds));
    bool same = seconds != NULL;
    for (int i = 0; same && i < ranks->hosts->count; i++) {
        same = ranks->notes[i].samples == balance->parts[i];
        seconds[i] = ranks->notes[i].seconds;
        step_s = fmax(step_s, seconds[i]);
    }
    if (same) {
        balance_add(balance, seconds, step_s);
        ranks->division.wanted = balance_decide(balance);
        if (ranks->division.wanted) tell_division(trainer);
    }
    free(seconds);
}

/* Agrees on the length of sequences; ranks without samples have none. */
static tutti_status agree_on_length(const struct ranks *ranks, int64_t *length)
{
    int first = -1;
    for (int i = 0; i < ranks->hosts->count; i++) {
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

tutti_status ranks_place(struct tutti_trainer *trainer, tutti_status read, struct batch *batch)
{
    tutti_status status;
    struct ranks *ranks = trainer->ranks;
    batch->first = 0;
    batch->whole = batch->samples;
    if (!ranks) return read;
    ranks->mine.samples = batch->samples;
    ranks->mine.hash = (uint64_t)batch->feeds.length;
    TRY(agree(trainer, read));
    TRY(agree_on_length(ranks, &batch->feeds.length));
    batch->whole = 0;
    for (int i = 0; i < ranks->hosts->count; i++) {
        if (i < ranks->hosts->rank) batch->first += ranks->notes[i].samples;
        batch->whole += ranks->notes[i].samples;
    }
done:
    return status;
}

/* -------------------------------------------------------------------------------------------- sums of gradients ----
 */

static int64_t blocks_of(const struct tutti_trainer *trainer)
{
    return divide_up(trainer->network->total_floats, EXCHANGE_BLOCK);
}

bool ranks_sums(const struct tutti_trainer *trainer)
{
    return trainer->ranks && trainer->ranks->average.every == 0;
}

void ranks_try(struct tutti_trainer *trainer)
{
    trainer->ranks->leaving.blocks_left = blocks_of(trainer);
    sync_ranks_begin(trainer);
}

void ranks_put(struct tutti_trainer *trainer, int64_t first, int64_t count, const float *sums)
{
    struct ranks *ranks = trainer->ranks;
    const int64_t left = trainer->network->trained_floats - first;
    const int64_t halves = !ranks->leaving.half || left < 0 ? 0 : left < count ? left : count;
    for (int64_t i = 0; i < halves; i++) ranks->leaving.own_half[first + i] = bf16_from_float(sums[i]);
    memcpy(ranks->leaving.own + first + halves, sums + halves, (size_t)(count - halves) * sizeof(float));
}

/* Begins the all-reduce of a range. A failure here occurs again where the sums are waited for. */
static void leave(struct tutti_trainer *trainer, int64_t begin, int64_t end)
{
    struct ranks *ranks = trainer->ranks;
    const int64_t trained = trainer->network->trained_floats;
    const int64_t middle = !ranks->leaving.half || trained < begin ? begin : trained < end ? trained : end;
    if (middle > begin)
        (void)hosts_sum_bf16(
            ranks->hosts, ranks->leaving.own_half + begin, ranks->leaving.half + begin, middle - begin);
    float *const sums = parameters_gradients(&trainer->store);
    if (end > middle) (void)hosts_sum(ranks->hosts, ranks->leaving.own + middle, sums + middle, end - middle);
}

static void widen(void *argument, int task)
{
    struct tutti_trainer *trainer = argument;
    const int64_t begin = (int64_t)task * EXCHANGE_BLOCK, left = trainer->network->trained_floats - begin;
    const int64_t count = left < EXCHANGE_BLOCK ? left : EXCHANGE_BLOCK;
    float *const gradients = parameters_gradients(&trainer->store);
    for (int64_t i = begin; i < begin + count; i++) gradients[i] = bf16_to_float(trainer->ranks->leaving.half[i]);
}

double ranks_progress(void *user)
{
    struct tutti_trainer *trainer = user;
    const bool round = sync_ranks_progress(trainer), sums = trainer->ranks && hosts_progress(trainer->ranks->hosts);
    return round ? ROUND_S : sums ? PROGRESS_S : 0;
}

void ranks_leave(struct tutti_trainer *trainer, const bool *summed)
{
    struct ranks *ranks = trainer->ranks;
    const int64_t total = trainer->network->total_floats;
    while (ranks->leaving.blocks_left > 0) {
        const int64_t last = ranks->leaving.blocks_left, first = last > GROUP ? last - GROUP : 0;
        for (int64_t block = first; summed && block < last; block++)
            if (!summed[block]) return;
        const int64_t begin = first * EXCHANGE_BLOCK;
        const int64_t end = last * EXCHANGE_BLOCK < total ? last * EXCHANGE_BLOCK : total;
        leave(trainer, begin, end);
        ranks->leaving.blocks_left = first;
    }
}

tutti_status ranks_vote(
    struct tutti_trainer *trainer, const struct vote *vote, enum verdict *all, struct step_result *result)
{
    tutti_status status = TUTTI_OK;
    struct ranks *ranks = trainer->ranks;
    struct rank_note total;
    ranks_leave(trainer, NULL); /* the others wait for all blocks, even invalid ones */
    const tutti_status waited = hosts_sums_wait(ranks->hosts);
    if (waited != TUTTI_OK && !vote_fails(vote)) return waited;
    if (ranks->leaving.half)
        thread_pool_run(
            trainer->pool, (int)divide_up(trainer->network->trained_floats, EXCHANGE_BLOCK), widen, trainer);
    ranks->mine.not_finite = result->not_finite;
    ranks->mine.largest = result->largest;
    ranks->mine.samples = result->sums.samples;
    ranks->mine.tally = result->sums.tally;
    ranks->mine.seconds = ranks->seconds;
    ranks->mine.divides = ranks->division.wanted;
    ranks->mine.repartition = (int32_t)ranks->division.repartition.state;
    TRY(exchange_notes(trainer, vote));
    add_notes(ranks, &total);
    *all = (enum verdict)total.says;
    if (*all == VOTE_AGAIN) return TUTTI_OK; /* the next vote tells the division again */
    result->not_finite = total.not_finite;
    result->largest = (float)fmin(total.largest, FLT_MAX);
    result->sums.tally = total.tally;
    if (ranks->division.automatic) TRY(take_division(trainer));
    ranks->division.wanted = false;
done:
    return status;
}

void ranks_stepped(struct tutti_trainer *trainer, double seconds)
{
    decide(trainer, seconds);
}

/* ------------------------------------------------------------------------------------------------- averages ---- */

/* Federated averaging (McMahan et al. 2017, algorithm 1): each rank goes on from the same parameters for some steps;
 * then they become the mean of all ranks', weighted by the samples that each has trained. So do running statistics, and
 * the optimizer's states (as Yu, Jin and Yang 2019 do with momentum), so that after an average all ranks are equal and
 * a checkpoint is as complete as ever. */
bool ranks_averages(const struct tutti_trainer *trainer)
{
    return trainer->ranks && trainer->ranks->average.every > 0;
}

static tutti_status average_array(struct ranks *ranks, float *values, int64_t count, float weight)
{
    enum { PIECE = GROUP * EXCHANGE_BLOCK };
    tutti_status status = TUTTI_OK;
    for (int64_t i = 0; i < count; i++) ranks->leaving.own[i] = weight * values[i];
    for (int64_t begin = 0; begin < count; begin += PIECE) {
        const int64_t left = count - begin;
        TRY(hosts_sum(ranks->hosts, ranks->leaving.own + begin, values + begin, left < PIECE ? left : PIECE));
    }
    TRY(hosts_sums_wait(ranks->hosts));
done:
    return status;
}

static tutti_status average_arenas(struct tutti_trainer *trainer, float weight)
{
    tutti_status status = TUTTI_OK;
    const tutti_network *network = trainer->network;
    const struct optimizer_arrays master = parameters_master(&trainer->store);
    TRY(average_array(trainer->ranks, master.parameters, network->total_floats, weight));
    for (int i = 0; i < optimizer_states(&trainer->optimizer); i++)
        TRY(average_array(trainer->ranks, master.states[i], network->trained_floats, weight));
    parameters_changed(&trainer->store);
done:
    return status;
}

/* Sets the sums of losses that the caller was not told yet. */
static void tell_rest(struct ranks *ranks, struct sums *sums)
{
    struct rank_note total;
    add_notes(ranks, &total);
    tally_scale(&ranks->average.told.tally, -1);
    sums->tally = total.tally;
    tally_add(&sums->tally, &ranks->average.told.tally);
    ranks->average.told = ranks->average.since = (struct rank_note) { 0 };
    ranks->average.steps = ranks->average.whole = 0;
}

tutti_status ranks_average(struct tutti_trainer *trainer, const struct vote *vote, struct sums *sums)
{
    tutti_status status = TUTTI_OK;
    struct ranks *ranks = trainer->ranks;
    const double whole = (double)ranks->average.whole, own = (double)ranks->average.since.samples;
    const int64_t steps = ranks->average.steps;
    ranks->mine = ranks->average.since;
    if (steps > 0) {
        ranks->mine.samples = (ranks->average.since.samples + steps / 2) / steps;
        ranks->mine.seconds = ranks->average.since.seconds / (double)steps;
    }
    ranks->mine.divides = ranks->division.wanted;
    ranks->mine.repartition = (int32_t)ranks->division.repartition.state;
    TRY(exchange_notes(trainer, vote));
    TRY(average_arenas(trainer, whole > 0 ? (float)(own / whole) : 0));
    if (ranks->division.automatic) TRY(take_division(trainer));
    ranks->division.wanted = false;
    tell_rest(ranks, sums);
    decide(trainer, 0);
done:
    return status;
}

void ranks_local_step(struct tutti_trainer *trainer, const struct batch *batch, struct sums *sums)
{
    struct ranks *ranks = trainer->ranks;
    hosts_progress(ranks->hosts); /* a sign of life */
    ranks->average.steps++;
    ranks->average.whole += batch->whole;
    ranks->average.since.samples += batch->samples;
    tally_add(&ranks->average.since.tally, &sums->tally);
    ranks->average.since.seconds += ranks->seconds;
    if (ranks->average.steps >= ranks->average.every) return;
    /* Until the next average, the others' samples are assumed to be like this rank's. */
    const double others = batch->samples > 0 ? (double)batch->whole / (double)batch->samples : 0;
    tally_scale(&sums->tally, others);
    tally_add(&ranks->average.told.tally, &sums->tally);
}

/* ---------------------------------------------------------------------------------------------------- public ---- */

tutti_hosts *tutti_hosts_open(const tutti_hosts_options *given)
{
    tutti_hosts_options options;
    if (OPTIONS_READ(&options, given, tutti_hosts_options) != TUTTI_OK) return NULL;
    const char *text = getenv("TUTTI_HOST_LIMIT");
    const double limit = options.limit_s != 0 ? options.limit_s : text ? number_read(text, NULL) : 0;
    if (!(limit >= 0) || !isfinite(limit)) {
        (void)fail(TUTTI_INVALID, "the time limit of hosts is %g seconds: it must be finite and not negative", limit);
        return NULL;
    }
    tutti_hosts *hosts = memory_new(1, sizeof(*hosts));
    if (!hosts) return NULL;
    hosts->limit_s = limit > 0 ? limit : 45;
    if (link_open(hosts) == TUTTI_OK) return hosts;
    tutti_hosts_close(hosts);
    return NULL;
}

bool hosts_are_whole(const struct tutti_hosts *hosts)
{
    return membership_count(&hosts->members, MEMBER_LOST) == 0;
}

void hosts_leave(struct tutti_hosts *hosts)
{
    membership_lose(&hosts->members, hosts->rank);
}

void tutti_hosts_close(tutti_hosts *hosts)
{
    if (!hosts) return;
    char message[1024];
    snprintf(message, sizeof(message), "%s", status_message());
    link_close(hosts);
    status_set_message(message);
    free(hosts);
}

int tutti_hosts_rank(const tutti_hosts *hosts)
{
    return hosts ? hosts->rank : 0;
}

int tutti_hosts_count(const tutti_hosts *hosts)
{
    return hosts ? hosts->count : 1;
}

tutti_status tutti_hosts_agree(tutti_hosts *hosts, tutti_status status)
{
    if (!hosts || hosts->count == 1) return status;
    int32_t mine = (int32_t)status;
    int32_t *all = memory_new((size_t)hosts->count, sizeof(*all));
    if (!all) return TUTTI_NO_MEMORY;
    const tutti_status gathered = hosts_gather(hosts, &mine, all, sizeof(mine));
    for (int i = 0; i < hosts->count && gathered == TUTTI_OK && status == TUTTI_OK; i++)
        if (all[i] != TUTTI_OK)
            status = fail((tutti_status)all[i], "rank %d: %s", i, tutti_status_text((tutti_status)all[i]));
    free(all);
    return status == TUTTI_OK ? gathered : status;
}
