#include "parallel/ranks.h"

#include "base/memory.h"
#include "graph/parameter_storage.h"
#include "parallel/ranks_division.h"
#include "parallel/ranks_notes.h"
#include "parallel/ranks_sum.h"
#include "parallel/sync_ranks.h"
#include "parallel/trainer.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* Seconds between two checks for progress between ranks: of all-reduces; of a round, while devices have nothing to
 * do. */
#define PROGRESS_S 0.0005
#define ROUND_S 0.0001

/* Hash of which values of the graph are trained. */
static uint64_t objective_hash(const struct objective *objective)
{
    const int numbers[] = { objective->loss_count, objective->loss ? 1 + objective->loss->takes_classes : 0 };
    uint64_t hash = XXH3_64bits(numbers, sizeof(numbers));
    hash = XXH3_64bits_withSeed(objective->weights, sizeof(objective->weights), hash);
    hash = XXH3_64bits_withSeed(objective->losses, sizeof(objective->losses), hash);
    hash = XXH3_64bits_withSeed(objective->gradient_inputs, sizeof(objective->gradient_inputs), hash);
    return objective->loss ? XXH3_64bits_withSeed(objective->outputs, sizeof(*objective->outputs), hash) : hash;
}

static uint64_t optimizer_hash(const struct optimizer *o)
{
    const double numbers[] = { o->kind, o->learning_rate, o->momentum, o->weight_decay, o->beta1, o->beta2, o->epsilon,
        o->nesterov, o->clip_norm, o->ema_decay, o->amsgrad, o->centered };
    return XXH3_64bits(numbers, sizeof(numbers));
}

static uint64_t settings_hash(const struct tutti_trainer *trainer, const struct ranks *ranks)
{
    const int64_t numbers[] = { trainer->options.advanced.wire, ranks->average.every, ranks->division.automatic,
        trainer->options.whole_batch, trainer->state.loss_scale.on };
    return XXH3_64bits(numbers, sizeof(numbers));
}

static uint64_t parameters_hash(const tutti_network *network)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < network->parameter_count; i++) {
        const struct parameter *parameter = &network->parameters[i];
        const float own[] = { parameter->rate_factor, parameter->weight_decay, parameter->has_weight_decay,
            parameter->momentum };
        hash = XXH3_64bits_withSeed(parameter->name, strlen(parameter->name), hash + parameter->kind);
        hash += parameter_type(parameter);
        hash = XXH3_64bits_withSeed(own, sizeof(own), hash);
        hash = XXH3_64bits_withSeed(
            parameter->shape.sizes, (size_t)parameter->shape.rank * sizeof(parameter->shape.sizes[0]), hash);
        if (parameter->kind == PARAMETER_CONSTANT)
            hash = XXH3_64bits_withSeed(parameter->values, (size_t)parameter->elements * sizeof(float), hash);
    }
    return hash;
}

/* What must be equal on all ranks; of the network, what the losses depend on. */
static tutti_status find_common(const struct tutti_trainer *trainer, const struct ranks *ranks, struct common *list)
{
    const tutti_network *network = trainer->network;
    const struct objective *objective = &trainer->objective;
    bool *reached = objective->loss_count > 0 ? graph_reaches(&network->graph, objective->losses, objective->loss_count)
                                              : graph_reaches(&network->graph, objective->outputs, 1);
    if (!reached) return TUTTI_NO_MEMORY;
    *list++ = (struct common) { "seeds", trainer->state.seed };
    *list++ = (struct common) { "optimizers, or options of them", optimizer_hash(&trainer->optimizer) };
    *list++ = (struct common) { "batches", (uint64_t)trainer->options.batch };
    *list++ = (struct common) { "largest lengths of sequences", (uint64_t)trainer->feeds.longest };
    *list++ = (struct common) { "ways to exchange, average or divide", settings_hash(trainer, ranks) };
    *list++ = (struct common) { "networks", graph_hash(&network->graph, reached, 0) };
    *list++ = (struct common) { "parameters, or options of them", parameters_hash(network) };
    *list++ = (struct common) { "losses", objective_hash(objective) };
    free(reached);
    return TUTTI_OK;
}

static tutti_status allocate(struct tutti_trainer *trainer, struct ranks *ranks)
{
    tutti_status status = TUTTI_OK;
    const size_t count = (size_t)ranks->comm->count;
    ranks->division.shares = memory_new(count, sizeof(*ranks->division.shares));
    ranks->division.next = memory_new(count, sizeof(*ranks->division.next));
    int64_t *limits = memory_new(count, sizeof(*limits));
    if (!ranks->division.shares || !ranks->division.next || !limits) {
        status = TUTTI_NO_MEMORY;
        goto done;
    }
    /* Less than the batch: a rank alone would gain nothing, since the others have to follow it. */
    for (size_t i = 0; i < count; i++) limits[i] = trainer->options.batch > 1 ? trainer->options.batch - 1 : 1;
    if (ranks->division.automatic)
        TRY(balance_init(&ranks->division.balance, ranks->comm->count, trainer->options.batch, limits));
    TRY(repartition_open(trainer));
done:
    free(limits);
    return status;
}

static double weight_of(const struct tutti_trainer *trainer, bool automatic)
{
    double weight = 0;
    for (int i = 0; i < trainer->count; i++) weight += trainer->device_division.shares[i].weight;
    return automatic ? 1 : weight;
}

tutti_status ranks_open(struct tutti_trainer *trainer, const tutti_training *training, tutti_status status)
{
    tutti_hosts *hosts = training ? training->hosts : NULL;
    int64_t first;
    trainer->device_division.rank_batch = trainer->options.batch;
    if (!hosts || hosts->count == 1 || !trainer->options.trains) return status;
    struct ranks *ranks = memory_new(1, sizeof(*ranks));
    if (!ranks) return TUTTI_NO_MEMORY;
    trainer->ranks = ranks;
    ranks->comm = hosts;
    pthread_mutex_init(&ranks->division.lock, NULL);
    ranks->average.every = trainer->options.advanced.average_every;
    ranks->division.automatic =
        !training->shares && training->sharing == TUTTI_SHARES_AUTO && trainer->options.batch > 1;
    /* Also without a division of its own, a rank that fails tells the others. */
    ranks->notes = memory_new((size_t)hosts->count, sizeof(*ranks->notes));
    if (!ranks->notes) return TUTTI_NO_MEMORY;
    if (status == TUTTI_OK) status = allocate(trainer, ranks);
    if (status == TUTTI_OK) ranks->mine.weight = weight_of(trainer, ranks->division.automatic);
    struct common common[COMMON] = { { 0 } };
    if (status == TUTTI_OK) status = find_common(trainer, ranks, common);
    TRY(ranks_same(trainer, status, common, COMMON));
    /* All begin with the same division: equal if it follows speed later, else by the shares of their devices. */
    for (int i = 0; i < hosts->count; i++)
        ranks->division.shares[i] = (struct share) { .weight = ranks->notes[i].weight, .limit = INT64_MAX };
    TRY(ranks_own_samples(ranks, 0, trainer->options.batch, &first, &trainer->device_division.rank_batch));
    if (trainer->device_division.rank_batch == 0) trainer->device_division.rank_batch = 1; /* for evaluation */
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
    if (comm_is_whole(ranks->comm)) { /* else a sum may still be under way, from and to these arrays */
        parameters_copy_free(&ranks->average.result);
        free(ranks->buffers.send);
        free(ranks->buffers.send_bf16);
        free(ranks->buffers.receive_bf16);
    }
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
    for (int i = 0; ranks->division.automatic && i < ranks->comm->count; i++)
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
        ranks->buffers.send = memory_new((size_t)trainer->network->total_floats, sizeof(float));
        if (!ranks->buffers.send) status = TUTTI_NO_MEMORY;
    }
    if (status == TUTTI_OK && trainer->options.advanced.wire == TUTTI_BF16 && ranks_sum_mode(trainer)) {
        ranks->buffers.send_bf16 =
            memory_new((size_t)trainer->network->trained_floats, sizeof(*ranks->buffers.send_bf16));
        ranks->buffers.receive_bf16 =
            memory_new((size_t)trainer->network->trained_floats, sizeof(*ranks->buffers.receive_bf16));
        if (!ranks->buffers.send_bf16 || !ranks->buffers.receive_bf16) status = TUTTI_NO_MEMORY;
    }
    if (status == TUTTI_OK) status = sync_ranks_open(trainer);
    /* The arenas that are shared below are those of all ranks. An only device does not need states on the host. */
    if (status == TUTTI_OK) status = parameters_make_states(trainer->store);
    ranks->mine.capacity = capacity_of(trainer);
    TRY(ranks_agree(trainer, status));
    TRY(limit_parts(ranks));
    TRY(ranks_share_arenas(trainer));
done:
    return status;
}

double ranks_progress(void *user)
{
    struct tutti_trainer *trainer = user;
    const bool round = sync_ranks_progress(trainer), sums = trainer->ranks && comm_progress(trainer->ranks->comm);
    return round ? ROUND_S : sums ? PROGRESS_S : 0;
}
