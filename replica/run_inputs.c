/* What a part of a batch reads: samples, constants and parameters are copied to the device, read in place, or were sent
 * ahead (prefetch.c). */
#include "replica/run_inputs.h"

#include "base/memory.h"
#include "replica/replica_setup.h"

tutti_status run_write(struct replica *replica, cl_mem buffer, const void *data, size_t bytes)
{
    return uploads_write(&replica->uploads, replica->device, replica->device->queue, buffer, 0, data, bytes, NULL);
}

tutti_status run_mark(const struct run *run, cl_event *event)
{
    tutti_status status = TUTTI_OK;
    const struct device *device = run->replica->device;
    if (device->can.unified || *event) return TUTTI_OK;
    CL_TRY(
        clEnqueueMarkerWithWaitList(device->queue, 0, NULL, event), "marking the launches of '%s'", device->can.name);
done:
    return status;
}

tutti_status run_send_pieces(struct run *run, const struct plan *plan)
{
    tutti_status status = TUTTI_OK;
    struct replica *replica = run->replica;
    run->first_piece = uploads_count(&replica->uploads);
    size_t position = 0;
    const struct command *need;
    while ((need = command_next(plan, COMMAND_PIECE, &position)))
        TRY(uploads_write(&replica->uploads, replica->device, replica->device->exchange_queue, replica->parameters,
            (size_t)need->first * sizeof(float), run->work->snapshot.master.parameters + need->first,
            (size_t)need->count * sizeof(float), NULL));
    CL_TRY(clFlush(replica->device->exchange_queue), "sending parameters to '%s'", replica->device->can.name);
    run->parameter_writes = uploads_count(&replica->uploads);
done:
    return status;
}

/* Makes what is enqueued next wait for a piece, because it reads this piece or one after it. */
static tutti_status await_piece(void *user, const struct command *need)
{
    tutti_status status = TUTTI_OK;
    struct run *run = user;
    const struct device *device = run->replica->device;
    const cl_event *piece = uploads_event(&run->replica->uploads, run->first_piece + need->number);
    CL_TRY(
        clEnqueueMarkerWithWaitList(device->queue, 1, piece, NULL), "waiting for parameters of '%s'", device->can.name);
    TRY(run_mark(run, &run->begun));
done:
    return status;
}

/* Uploads frozen parameters: once, and again if the caller has changed them. */
static tutti_status upload_frozen(struct run *run)
{
    tutti_status status = TUTTI_OK;
    struct replica *replica = run->replica;
    const struct parameter_snapshot *snapshot = &run->work->snapshot;
    if (!replica->frozen || !versions_lack_frozen(&replica->versions, snapshot)) return TUTTI_OK;
    TRY(run_write(
        replica, replica->frozen, snapshot->frozen, (size_t)run->setup->network->frozen_floats * sizeof(float)));
    versions_took_frozen(&replica->versions, snapshot);
    plan_cache_invalidate(&replica->plans);
done:
    return status;
}

tutti_status run_upload_parameters(struct run *run)
{
    tutti_status status = TUTTI_OK;
    struct replica *replica = run->replica;
    const struct replica_setup *setup = run->setup;
    const struct replica_work *work = run->work;
    const struct parameter_snapshot *snapshot = &work->snapshot;
    const struct optimizer_arrays *master = &snapshot->master;
    if (work->probe) return TUTTI_OK;
    TRY(upload_frozen(run));
    if (!master->parameters) return TUTTI_OK; /* this device has the newest: parameters_snapshot() */
    if (versions_lack_parameters(&replica->versions, snapshot)) {
        plan_cache_invalidate(&replica->plans);
        run->pieces = replica->device->exchange_queue && work->input.mode == PLAN_TRAIN;
        if (!run->pieces)
            TRY(run_write(replica, replica->parameters, master->parameters,
                (size_t)setup->network->total_floats * sizeof(float)));
    }
    for (int i = 0; i < OPTIMIZER_STATES && work->update && versions_lack_states(&replica->versions, snapshot); i++)
        if (device_update_state(replica, i) && master->states[i])
            TRY(run_write(replica, device_update_state(replica, i), master->states[i],
                (size_t)setup->network->trained_floats * sizeof(float)));
    run->parameter_writes = uploads_count(&replica->uploads);
done:
    return status;
}

tutti_status run_stage_samples(struct run *run)
{
    tutti_status status = TUTTI_OK;
    struct replica *replica = run->replica;
    const struct replica_setup *setup = run->setup;
    const struct replica_work *work = run->work;
    run->feeds = arrays_from(setup->feeds, &work->input.feeds, work->offset);
    if (replica->device->can.unified && (!worker_has_thread(&replica->worker) || work->input.journaled))
        return TUTTI_OK;
    run->prefetched = prefetch_has(replica, work->input.number, work->offset, work->samples);
    if (run->prefetched) return TUTTI_OK;
    /* Room for the longest sequences: prefetch_send() puts the samples of the next step, perhaps longer ones, here. */
    const size_t bytes = arrays_bytes(setup->feeds, (struct bound_sizes) { work->samples, setup->longest });
    TRY(uploads_stage(&replica->uploads, replica->device, bytes));
    unsigned char *staging = uploads_staging(&replica->uploads);
    TRY(worker_guard_or_fail(&replica->worker));
    run->feeds = arrays_pack(setup->feeds, &run->feeds, work->samples, staging);
    worker_unguard(&replica->worker);
done:
    return status;
}

/* Makes the plan read the state in place, or copies it where the plan is for more samples or its kernels cannot. */
static tutti_status provide_carried(struct run *run, int feed, cl_mem state, size_t bytes)
{
    tutti_status status = TUTTI_OK;
    struct plan *plan = run->plan;
    if (run->micro_batch.samples == plan->options.sizes.samples) {
        if (plan_redirect_feed(plan, feed, state) == TUTTI_OK) {
            clRetainMemObject(state);
            run->borrowed[feed] = state;
            return TUTTI_OK;
        }
        TRY(plan_redirect_feed(plan, feed, NULL));
    }
    CL_TRY(clEnqueueCopyBuffer(
               run->replica->device->queue, state, plan_buffer(plan, plan->feeds[feed]), 0, 0, bytes, 0, NULL, NULL),
        "reading the state on '%s'", run->replica->device->can.name);
done:
    return status;
}

/* Makes the plan read a feed. On the host's CPU, launches read the array in place: `borrowed` is a buffer over it,
 * which must exist until the plan's launches are enqueued. Other devices get a copy. So does a CPU if the plan is for
 * more samples than there are, if kernels need another alignment, or if the samples are in staging
 * (run_stage_samples()): that is a mapped buffer already, and OpenCL does not define what launches read from two
 * buffers over one memory. */
static tutti_status provide_feed(void *user, const struct command *command)
{
    tutti_status status = TUTTI_OK;
    struct run *run = user;
    struct plan *plan = run->plan;
    const int feed = (int)command->number;
    const int64_t samples = run->micro_batch.samples;
    const void *data = arrays_from(run->setup->feeds, &run->feeds, run->micro_batch.offset).at[feed];
    const struct device *device = run->replica->device;
    const size_t bytes = (size_t)samples * arrays_sample_bytes(run->setup->feeds, feed, run->feeds.length);
    cl_mem *borrowed = &run->borrowed[feed];
    const int carried = carried_find(run->setup->carries, feed);
    if (carried >= 0) return provide_carried(run, feed, run->replica->carried.now[carried], bytes);
    cl_int error = CL_SUCCESS;
    const bool stays = run->work->input.journaled || !worker_has_thread(&run->replica->worker); /* not staging */
    const bool aligned = (uintptr_t)data % sizeof(cl_float4) == 0; /* kernels read four numbers at once */
    if (!device->host_cpu || !stays || !aligned || samples != plan->options.sizes.samples) goto copy;
    /* The kernels that get it only read it: plan/memory.c puts nothing into an input's memory. */
    *borrowed =
        clCreateBuffer(device->context, CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR, bytes, (void *)(uintptr_t)data, &error);
    if (error != CL_SUCCESS) *borrowed = NULL;
    if (*borrowed && plan_redirect_feed(plan, feed, *borrowed) == TUTTI_OK) return TUTTI_OK;
    TRY(plan_redirect_feed(plan, feed, NULL));
copy:
    TRY(run_write(run->replica, plan_buffer(plan, plan->feeds[feed]), data, bytes));
done:
    return status;
}

void run_take_feeds_back(struct run *run)
{
    for (int i = 0; i < run->plan->feed_count; i++) {
        if (!run->borrowed[i]) continue;
        (void)plan_redirect_feed(run->plan, i, NULL);
        clReleaseMemObject(run->borrowed[i]); /* it lives until the launches that read it have ended */
        run->borrowed[i] = NULL;
    }
}

static tutti_status take_prefetched(void *user, const struct command *feed)
{
    struct run *run = user;
    return prefetch_take(run->replica, run->plan, (int)feed->number, run->micro_batch.offset, run->micro_batch.samples);
}

void run_set_constants(struct run *run)
{
    struct step_constants *constants = &run->replica->scratch.constants[run->micro_batch.number];
    *constants = run->work->input.constants;
    constants->first_sample = (uint32_t)(run->work->input.global_offset + run->work->offset + run->micro_batch.offset);
    constants->micro_batches = (uint32_t)run->micro_batches;
    constants->loss_floats = 2 * (uint32_t)objective_pairs(run->setup->objective);
}

static tutti_status send_constants(void *user, const struct command *command)
{
    (void)command;
    struct run *run = user;
    const struct step_constants *constants = &run->replica->scratch.constants[run->micro_batch.number];
    return run_write(run->replica, plan_buffer(run->plan, run->plan->constants), constants, sizeof(*constants));
}

static tutti_status mark_samples_copied(void *user, const struct command *command)
{
    (void)command;
    struct run *run = user;
    return run_mark(run, &run->begun);
}

void run_choose_inputs(const struct run *run, bool pieces, command_handler **handlers)
{
    handlers[COMMAND_FEED] = run->prefetched ? take_prefetched : provide_feed;
    handlers[COMMAND_CONSTANTS] = send_constants;
    handlers[COMMAND_COPIES_DONE] = pieces ? NULL : mark_samples_copied; /* else the first await_piece() marks it */
    handlers[COMMAND_PIECE] = pieces ? await_piece : NULL;
}
