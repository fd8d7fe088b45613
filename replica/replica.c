#include "replica/replica.h"

#include "base/log.h"
#include "base/memory.h"
#include "plan/ahead.h"
#include "plan/tune.h"

#include <stdio.h>
#include <stdlib.h>

/* ------------------------------------------------------------------------------------------------- buffers ---- */

/* Returns the key of a replica's usual work, with the longest sequences. */
static struct plan_key usual(const struct replica *replica, int64_t samples)
{
    const enum plan_mode mode = replica->setup->trains ? PLAN_TRAIN : PLAN_INFER;
    return (struct plan_key) { mode, { samples, replica->setup->longest } };
}

tutti_status replica_make_sum(struct replica *replica)
{
    tutti_status status = TUTTI_OK;
    if (gradients_have_sum(&replica->gradients)) return TUTTI_OK;
    TRY(gradients_make_sum(replica));
    TRY(device_update_build_sum_launches(replica));
done:
    if (status != TUTTI_OK) {
        device_update_free_sum_launches(replica);
        gradients_drop_sum(replica);
    }
    return status;
}

static void log_precision(const struct replica *replica)
{
    const tutti_precision precision = replica->setup->precision;
    if (replica->device->can.class != DEVICE_CPU || (precision != TUTTI_TF32 && precision != TUTTI_FP16)) return;
    log_info(replica->setup->log, "device %d, '%s', computes in fp32: it does not support %s", replica->device->index,
        replica->device->can.name, precision == TUTTI_TF32 ? "tf32" : "fp16");
}

tutti_status replica_init(struct replica *replica)
{
    tutti_status status = TUTTI_OK;
    const struct replica_setup *setup = replica->setup;
    const size_t bytes = (size_t)setup->network->total_floats * sizeof(float);
    const size_t frozen = (size_t)setup->network->frozen_floats * sizeof(float);
    const size_t micro_batches =
        (size_t)divide_up(setup->batch, replica_min_micro_batch(setup->batch)); /* of a step, at most */
    const size_t metrics = 2 * (size_t)objective_pairs(setup->objective);
    log_precision(replica);
    replica->scratch.constants = memory_new(micro_batches, sizeof(*replica->scratch.constants));
    replica->scratch.losses = memory_new(metrics * micro_batches, sizeof(float));
    if (!replica->scratch.constants || !replica->scratch.losses) return TUTTI_NO_MEMORY;
    TRY(buffer_new(replica->device, bytes, &replica->parameters));
    if (frozen > 0) TRY(buffer_new(replica->device, frozen, &replica->frozen));
    TRY(buffer_new(replica->device, metrics * micro_batches * sizeof(float), &replica->losses));
    if (!replica->setup->trains) goto done;
    TRY(gradients_open(replica));
    if (setup->exchange && !replica->device->can.unified)
        TRY(device_open_queue(replica->device, &replica->device->exchange_queue));
    if (setup->exchange) goto done;
    TRY(device_update_make(replica));
    TRY(device_update_warm_up(replica));
done:
    return status;
}

tutti_status replica_read(const struct replica *replica, const struct optimizer_arrays *to)
{
    tutti_status status = TUTTI_OK;
    const tutti_network *network = replica->setup->network;
    const size_t total = (size_t)network->total_floats * sizeof(float);
    const size_t trained = (size_t)network->trained_floats * sizeof(float);
    TRY(buffer_read(replica->device, replica->parameters, 0, to->parameters, total));
    for (int i = 0; i < OPTIMIZER_STATES; i++)
        if (to->states[i])
            TRY(buffer_read(replica->device, device_update_state(replica, i), 0, to->states[i], trained));
done:
    return status;
}

void replica_allow_step(struct replica *replica, int64_t samples)
{
    const int64_t longest = replica->setup->longest;
    worker_allow(&replica->worker, worker_step_limit(&replica->worker, longest > 0 ? samples * longest : samples));
}

void replica_end_attempt(struct replica *replica)
{
    if (worker_is_abandoned(&replica->worker)) return; /* its thread may be there */
    gradients_reset(replica);
    if (gradients_mapped_parameters(&replica->gradients)) versions_invalidate_parameters(&replica->versions);
}

/* A job: frees what needs calls of the driver, which may hang. */
static tutti_status free_objects(struct replica *replica, void *unused)
{
    (void)unused;
    replica_allow_step(replica, replica->setup->batch);
    gradient_transport(replica)->free(replica);
    plan_cache_free(&replica->plans);
    device_update_free(replica);
    gradients_free_buffers(replica);
    buffer_free(&replica->parameters);
    buffer_free(&replica->frozen);
    buffer_free(&replica->losses);
    carried_free(replica);
    prefetch_free(replica);
    uploads_free_staging(&replica->uploads);
    (void)device_wait(replica->device); /* else tutti_close() would wait for it, without a limit */
    return TUTTI_OK;
}

/* Returns false if the device hangs, now or before. */
static bool end_device(struct replica *replica)
{
    struct worker *worker = &replica->worker;
    if (worker_is_abandoned(worker) || background_hangs(replica)) return false;
    worker_start(worker, free_objects, NULL); /* after a probe */
    (void)worker_wait(worker);
    if (!worker_is_abandoned(worker)) return true;
    log_warn(replica->setup->log, "nothing of a device is freed: %s", worker_message(worker));
    return false;
}

bool replica_free(struct replica *replica)
{
    if (!replica->device) return true;
    const bool freed = end_device(replica);
    if (!worker_close(&replica->worker) || !freed) {
        replica->device->abandoned = replica->setup->network->held = true;
        return false;
    }
    plan_cache_close(&replica->plans);
    replica_end_attempt(replica);
    free(replica->scratch.constants);
    free(replica->scratch.losses);
    free(replica->scratch.statistics);
    uploads_free(&replica->uploads);
    free(replica->scratch.outputs);
    gradients_free(replica);
    return true;
}

int64_t replica_min_micro_batch(int64_t batch)
{
    return divide_up(batch, MOST_MICRO_BATCHES);
}

/* --------------------------------------------------------------------------------------------------- plans ---- */

static tutti_status make_plan(struct replica *replica, struct plan_key key, struct cached_plan **cached)
{
    tutti_status status = TUTTI_OK;
    worker_allow(&replica->worker, worker_build_limit(&replica->worker));
    struct plan *plan = NULL;
    plan_cache_make_place(&replica->plans); /* before memory is asked for */
    struct plan_options options = replica_options(replica, key);
    status = plan_new(replica->device, replica->setup->network, &options, &plan);
    if (status == TUTTI_DEVICE_MEMORY && options.arena) { /* arenas of other plans may take up the memory */
        prefetch_free(replica);
        plan_cache_drop(&replica->plans);
        options.arena = NULL;
        status = plan_new(replica->device, replica->setup->network, &options, &plan);
    }
    if (status == TUTTI_OK) *cached = replica_keep(replica, plan);
    return status;
}

tutti_status replica_plan(struct replica *replica, struct plan_key key, struct cached_plan **cached)
{
    *cached = plan_cache_find(&replica->plans, key);
    if (*cached) {
        plan_cache_use(&replica->plans, *cached);
        return TUTTI_OK;
    }
    worker_allow(&replica->worker,
        worker_build_limit(&replica->worker)); /* a plan in the background may hold the lock as long */
    plan_cache_lock(&replica->plans);
    const tutti_status status = make_plan(replica, key, cached);
    plan_cache_unlock(&replica->plans);
    return replica_suspect_memory(replica, status);
}

tutti_status replica_explain(struct replica *replica, struct plan_key key, struct plan **plan)
{
    struct plan_options options = replica_options(replica, key);
    options.explain = true;
    plan_cache_overwritten(&replica->plans);
    plan_cache_lock(&replica->plans);
    const tutti_status status = plan_new(replica->device, replica->setup->network, &options, plan);
    plan_cache_unlock(&replica->plans);
    return status;
}

tutti_status replica_tune(struct replica *replica, int64_t samples)
{
    const int64_t limit = replica->setup->micro_batch;
    struct plan_options options = replica_options(replica, usual(replica, limit && limit < samples ? limit : samples));
    return samples ? plan_tune(replica->device, replica->setup->network, &options) : TUTTI_OK;
}

/* Determines whether the device has room for the plan of this many samples. */
static tutti_status measure(struct replica *replica, int64_t samples, bool micro_batches, bool *fits, size_t *bytes)
{
    struct plan_options options = replica_options(replica, usual(replica, samples));
    options.arena = NULL;
    *bytes = 0;
    tutti_status status = plan_measure(replica->device, replica->setup->network, &options, bytes);
    *fits = status == TUTTI_OK;
    if (status == TUTTI_DEVICE_MEMORY) return TUTTI_OK; /* e.g. one value larger than the largest allocation */
    if (!size_add(*bytes, replica_fixed_bytes(replica, micro_batches), bytes)) *fits = false;
    if (*bytes > replica->device->can.memory_bytes) *fits = false;
    return status;
}

static tutti_status no_room(const struct replica *replica, size_t bytes)
{
    char samples[64] = "one sample";
    const int64_t least = replica_min_micro_batch(replica->setup->batch);
    const struct device *device = replica->device;
    if (least > 1) snprintf(samples, sizeof(samples), "%lld samples, the least of this batch", (long long)least);
    if (bytes == 0) return status_context(TUTTI_DEVICE_MEMORY, "the network does not fit with %s", samples);
    const tutti_network *network = replica->setup->network;
    const char *name = network->layer_count ? network->layers[0].name : "?";
    return fail(TUTTI_DEVICE_MEMORY,
        "the network of %zu layers ('%s' ...) needs %.1f MiB for %s, but device %d, '%s', has only %.1f MiB: "
        "use a smaller network or input, or a device with more memory",
        network->layer_count, name, (double)bytes / 0x1p20, samples, device->index, device->can.name,
        (double)device->can.memory_bytes / 0x1p20);
}

/* The largest number of samples up to `most` that fits the device's memory. */
static tutti_status find_capacity(struct replica *replica, int64_t most, int64_t share)
{
    tutti_status status = TUTTI_OK;
    bool fits = false;
    size_t bytes = 0;
    int64_t low = replica_min_micro_batch(replica->setup->batch), high = most; /* low fits, high does not */
    TRY(measure(replica, most, most < share, &fits, &bytes));
    replica->capacity = most;
    if (fits) goto done;
    if (most > low) TRY(measure(replica, low, share > low, &fits, &bytes));
    if (!fits) {
        status = no_room(replica, bytes);
        goto done;
    }
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        TRY(measure(replica, middle, true, &fits, &bytes));
        *(fits ? &low : &high) = middle;
    }
    replica->capacity = low;
done:
    return status;
}

tutti_status replica_measure(struct replica *replica, int64_t samples)
{
    /* Automatic shares may take any size; given ones are not exceeded later. */
    const bool any = replica->setup->automatic || replica->setup->ranks || replica->setup->whole_batch;
    const int64_t share = samples > 0 && !any ? samples : replica->setup->batch;
    const int64_t limit = replica->setup->micro_batch;
    return find_capacity(replica, limit > 0 && limit < share ? limit : share, share);
}

void replica_load_ahead(struct replica *replica, int64_t samples)
{
    if (samples == 0) return;
    const struct plan_options options = replica_options(replica, usual(replica, replica_micro_batch(replica, samples)));
    plan_load_ahead(replica->device, replica->setup->network, &options);
}

tutti_status replica_plan_first(struct replica *replica, int64_t samples)
{
    tutti_status status = TUTTI_OK;
    struct cached_plan *cached;
    if (samples == 0) goto done; /* a plan is made if it ever gets work */
    do {                         /* the device may have less memory than it says */
        replica_make_room(replica);
        const int64_t each = replica_micro_batch(replica, samples);
        status = replica_plan(replica, usual(replica, each), &cached);
        if (status == TUTTI_OK && each < samples && replica->setup->trains) status = replica_make_sum(replica);
        if (status == TUTTI_OK && each == samples && replica->setup->trains)
            status = gradient_transport(replica)->build(replica, cached->plan);
    } while (status == TUTTI_DEVICE_MEMORY && replica_shrink(replica));
done:
    return status;
}

tutti_status replica_suspect_memory(struct replica *replica, tutti_status status)
{
    if (status != TUTTI_DEVICE_RESOURCES || replica->memory_suspected) return status;
    replica->memory_suspected = true;
    return TUTTI_DEVICE_MEMORY;
}

bool replica_halve(struct replica *replica, int64_t samples)
{
    const int64_t least = replica_min_micro_batch(replica->setup->batch);
    if (samples <= least) return false;
    replica->capacity = samples / 2 > least ? samples / 2 : least;
    return true;
}

bool replica_shrink(struct replica *replica)
{
    if (worker_is_abandoned(&replica->worker) || !replica_halve(replica, replica->capacity)) return false;
    plan_cache_mark_full(&replica->plans);
    return true;
}

void replica_make_room(struct replica *replica)
{
    if (plan_cache_empty(&replica->plans)) prefetch_free(replica);
}
