/* Runs one replica's part of the rank's batch: copies the newest parameters in (if the host changed them), then runs
 * the commands of the plan, which copy samples in and keep losses for await_results(). In training, gradients are
 * copied out or mapped if they are exchanged (in buckets, while backward goes on); with work->update, the device
 * updates itself. A part that does not fit the device's memory is run as micro-batches, whose gradients are added up.
 * Everything is enqueued, with the waits that enqueue_part() names; then the results are awaited. */
#include "replica/run.h"

#include "base/clock.h"
#include "base/memory.h"
#include "replica/replica_setup.h"
#include "replica/run_inputs.h"

#include <string.h>

/* --------------------------------------------------------------------------------------------------- times ---- */

/* Returns the seconds of a copy in which the device also computed; only copies by other queues can overlap. */
static double seconds_overlapped(const struct run *run, cl_event event)
{
    cl_command_queue queue = NULL;
    cl_ulong start = 0, end = 0, begun = 0, ended = 0;
    const size_t size = sizeof(cl_ulong);
    if (!run->begun || !run->ended ||
        clGetEventInfo(event, CL_EVENT_COMMAND_QUEUE, sizeof(queue), &queue, NULL) != CL_SUCCESS ||
        queue == run->replica->device->queue ||
        clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, size, &start, NULL) != CL_SUCCESS ||
        clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, size, &end, NULL) != CL_SUCCESS ||
        clGetEventProfilingInfo(run->begun, CL_PROFILING_COMMAND_END, size, &begun, NULL) != CL_SUCCESS ||
        clGetEventProfilingInfo(run->ended, CL_PROFILING_COMMAND_END, size, &ended, NULL) != CL_SUCCESS)
        return 0;
    if (start < begun) start = begun;
    if (end > ended) end = ended;
    return end > start ? 1e-9 * (double)(end - start) : 0;
}

static void note_times(struct run *run, double start)
{
    const struct replica *replica = run->replica;
    struct replica_work *work = run->work;
    work->result.seconds = clock_seconds() - start - run->waited;
    const struct uploads *uploads = &replica->uploads;
    const size_t count = uploads_count(uploads);
    work->result.sent = (struct traffic) { (double)uploads_bytes(uploads), uploads_seconds(uploads, count), 0 };
    for (size_t i = 0; i < count; i++)
        work->result.sent.overlapped += seconds_overlapped(run, *uploads_event(uploads, i));
    work->result.received = (struct traffic) { 0 };
    for (size_t i = 0; i < replica->gradients.delivery_count; i++) {
        const struct bucket_delivery *delivery = &replica->gradients.deliveries[i];
        work->result.received.seconds += event_seconds(delivery->event);
        work->result.received.overlapped += seconds_overlapped(run, delivery->event);
        work->result.received.bytes += (double)delivery->bytes;
    }
}

/* ---------------------------------------------------------------------------------------------- going out ---- */

/* Sets where the device's outputs go: to the caller or, as in run_stage_samples(), first to the replica's own memory.
 */
static tutti_status stage_outputs(struct run *run)
{
    struct replica *replica = run->replica;
    const struct replica_work *work = run->work;
    const struct array_list *list = run->setup->outputs;
    run->outputs = arrays_from(list, &work->input.outputs, work->offset);
    if (!work->input.gives_outputs || !worker_has_thread(&replica->worker)) return TUTTI_OK;
    void *array = replica->scratch.outputs;
    const struct bound_sizes sizes = { work->samples, work->input.outputs.length };
    const tutti_status status = memory_grow(&array, &replica->scratch.output_capacity, arrays_bytes(list, sizes), 1);
    replica->scratch.outputs = array;
    if (status == TUTTI_OK) run->outputs = arrays_at(list, replica->scratch.outputs, sizes);
    return status;
}

static tutti_status deliver_outputs(struct run *run)
{
    struct replica *replica = run->replica;
    const struct replica_work *work = run->work;
    const struct array_list *list = run->setup->outputs;
    if (!work->input.gives_outputs || !worker_has_thread(&replica->worker)) return TUTTI_OK;
    const tutti_status status = worker_guard_or_fail(&replica->worker);
    if (status != TUTTI_OK) return status;
    const struct arrays to = arrays_from(list, &work->input.outputs, work->offset);
    arrays_copy(list, &run->outputs, work->samples, &to);
    worker_unguard(&replica->worker);
    return TUTTI_OK;
}

/* Makes memory for the largest exchange, so that it is not moved while the device reads it. */
static tutti_status reserve_statistics(struct replica *replica, const struct plan *plan)
{
    tutti_status status = TUTTI_OK;
    void *array = replica->scratch.statistics;
    for (size_t i = 0; i < plan->launches.sync_point_count && status == TUTTI_OK; i++)
        status = memory_grow(&array, &replica->scratch.statistics_capacity,
            (size_t)sync_floats(&plan->launches.sync_points[i]), sizeof(*replica->scratch.statistics));
    replica->scratch.statistics = array;
    return status;
}

/* The device is idle meanwhile, because all of its next work depends on these numbers. */
static tutti_status sync_statistics(void *user, const struct command *command)
{
    tutti_status status = TUTTI_OK;
    struct run *run = user;
    struct replica *replica = run->replica;
    const struct sync_point *point = &run->plan->launches.sync_points[command->number];
    const size_t bytes = (size_t)sync_floats(point) * sizeof(float);
    TRY(buffer_read(replica->device, point->buffer, 0, replica->scratch.statistics, bytes));
    const double start = clock_seconds();
    status = replica->setup->callbacks.statistics_exchange(
        replica->setup->callbacks.trainer, replica->number, point, run->work->samples, replica->scratch.statistics);
    run->waited += clock_seconds() - start;
    if (status == TUTTI_OK) status = run_write(replica, point->buffer, replica->scratch.statistics, bytes);
done:
    return status;
}

/* Returns whether the exchange may write new parameters to the device's memory in this step. */
static bool maps_parameters(const struct run *run)
{
    return run->work->snapshot.has_next_copy && !run->work->probe && !run->work->keeps_gradients;
}

/* Called as soon as the launch that completes the bucket is enqueued. */
static tutti_status on_bucket_ready(void *user, const struct command *ready)
{
    struct run *run = user;
    const struct bucket_request request = {
        .plan = run->plan, .first = ready->first, .count = ready->count, .map_parameters = maps_parameters(run)
    };
    return gradient_transport(run->replica)->send_bucket(run->replica, &request);
}

static tutti_status send_gradients(struct run *run)
{
    const struct bucket_request request = { .count = run->setup->network->total_floats,
        .sum = run->micro_batches > 1,
        .map_parameters = maps_parameters(run) };
    return gradient_transport(run->replica)->send_all(run->replica, &request);
}

/* ---------------------------------------------------------------------------------------------- in between ---- */

static tutti_status keep_metrics(void *user, const struct command *command)
{
    (void)command;
    tutti_status status = TUTTI_OK;
    struct run *run = user;
    struct replica *replica = run->replica;
    const size_t bytes = 2 * sizeof(float) * (size_t)objective_pairs(run->setup->objective);
    CL_TRY(clEnqueueCopyBuffer(replica->device->queue, plan_buffer(run->plan, run->plan->metrics), replica->losses, 0,
               (size_t)run->micro_batch.number * bytes, bytes, 0, NULL, NULL),
        "copying losses on '%s'", replica->device->can.name);
done:
    return status;
}

/* Returns whether outputs that may stay in the plan's buffers do: nothing else of this work overwrites them, and the
 * host can map them without a copy. */
static bool keeps_outputs(const struct run *run)
{
    const struct replica *replica = run->replica;
    return run->work->input.keeps && run->micro_batches == 1 && run->work->samples == run->work->input.samples &&
        replica->device->can.unified && !worker_has_thread(&replica->worker);
}

/* The buffer that has an output: the state on the device, where the plan has written the output over it. */
static cl_mem buffer_of_output(const struct run *run, size_t output)
{
    const struct plan *plan = run->plan;
    const int feed = plan->options.objective.carried[output] - 1;
    const cl_mem buffer = plan_buffer(plan, plan->outputs[output]);
    const bool over = feed >= 0 && run->borrowed[feed] && buffer == plan_buffer(plan, plan->feeds[feed]);
    return over ? run->borrowed[feed] : buffer;
}

static tutti_status read_output(void *user, const struct command *output)
{
    tutti_status status = TUTTI_OK;
    struct run *run = user;
    const struct device *device = run->replica->device;
    const struct array_list *list = run->setup->outputs;
    const size_t i = output->number;
    const cl_mem buffer = buffer_of_output(run, i);
    TRY(carried_keep(run->replica, (int)i, buffer, run->micro_batch.samples));
    if (!run->work->input.outputs.at[i]) return TUTTI_OK;
    if (keeps_outputs(run) && run->work->input.keeps[i]) return TUTTI_OK;
    CL_TRY(clEnqueueReadBuffer(device->queue, buffer, CL_FALSE, 0,
               (size_t)run->micro_batch.samples * arrays_sample_bytes(list, (int)i, run->outputs.length),
               arrays_from(list, &run->outputs, run->micro_batch.offset).at[i], 0, NULL, NULL),
        "reading outputs from '%s'", device->can.name);
done:
    return status;
}

/* Inference uses the plan for the next power of two, instead of one plan for each number of samples: its samples do
 * not influence each other. */
static struct plan_key key_of(const struct run *run, int64_t samples)
{
    const enum plan_mode mode = run->work->input.mode;
    const int64_t length = run->work->input.feeds.length, capacity = run->replica->capacity;
    int64_t power = 1;
    if (mode != PLAN_INFER || samples >= capacity) return (struct plan_key) { mode, { samples, length } };
    while (power < samples) power *= 2;
    return (struct plan_key) { mode, { power < capacity ? power : capacity, length } };
}

/* Warns once: batch normalisation of one value for each channel gives its bias, whatever the value is. If devices
 * synchronise, the others have further values. */
static void check_statistics(const struct run *run)
{
    int count;
    if (run->work->input.mode != PLAN_TRAIN || run->work->synchronised || run->micro_batch.samples > 1) return;
    const char *name = plan_single_values(run->plan, &count);
    if (!name || atomic_exchange(&run->setup->reported_single_values, true)) return;
    log_warn(run->setup->log,
        "layer '%s' has statistics of one value for each channel, as device %d computes 1 sample: it gives its bias, "
        "whatever its input is%s; use larger batches, no batch that is left over, fewer devices, or --sync-batchnorm",
        name, run->replica->device->index, count > 1 ? ", and so do other such layers" : "");
}

static void set_micro_batch(struct run *run, int64_t number)
{
    const int64_t offset = number * run->samples_each, left = run->work->samples - offset;
    run->micro_batch.number = number;
    run->micro_batch.offset = offset;
    run->micro_batch.samples = left < run->samples_each ? left : run->samples_each;
}

/* Returns whether gradients leave in buckets while the launches of backward still run. */
static bool sends_buckets(const struct run *run)
{
    const struct replica_work *work = run->work;
    if (work->verify_parameters && gradient_transport(run->replica)->can_map_parameters)
        return false; /* they are checked before the exchange may write new parameters */
    return work->input.mode == PLAN_TRAIN && !work->update && run->micro_batches == 1;
}

/* pieces: the launches wait for parameters that are sent in pieces. */
static void choose_handlers(const struct run *run, bool pieces, command_handler **handlers)
{
    const struct replica_work *work = run->work;
    run_choose_inputs(run, pieces, handlers);
    handlers[COMMAND_SYNC] = work->synchronised ? sync_statistics : NULL;
    handlers[COMMAND_BUCKET] = sends_buckets(run) ? on_bucket_ready : NULL;
    handlers[COMMAND_METRICS] = keep_metrics;
    handlers[COMMAND_OUTPUT] = work->input.gives_outputs ? read_output : NULL;
}

static tutti_status enqueue_micro_batch(struct run *run, int64_t number)
{
    tutti_status status = TUTTI_OK;
    struct replica *replica = run->replica;
    const struct replica_work *work = run->work;
    const bool pieces = run->pieces && number == 0;
    command_handler *handlers[COMMAND_KINDS] = { NULL };
    struct cached_plan *cached;
    choose_handlers(run, pieces, handlers);
    set_micro_batch(run, number);
    TRY(replica_plan(replica, key_of(run, run->micro_batch.samples), &cached));
    run->plan = cached->plan;
    check_statistics(run);
    if (sends_buckets(run)) TRY(gradient_transport(replica)->prepare(replica, run->plan));
    if (work->synchronised) TRY(reserve_statistics(replica, run->plan));
    TRY(plan_cache_prepare(&replica->plans, cached));
    if (pieces) TRY(run_send_pieces(run, run->plan));
    run_set_constants(run);
    /* A former run may have failed to give a feed back. */
    for (int i = 0; i < run->plan->feed_count; i++) TRY(plan_redirect_feed(run->plan, i, NULL));
    status = plan_enqueue(run->plan, handlers, run);
    run_take_feeds_back(run);
    if (status != TUTTI_OK) goto done;
    plan_cache_enqueued(&replica->plans, cached);
    if (work->input.mode == PLAN_TRAIN && run->micro_batches > 1) TRY(gradients_accumulate(replica, number));
done:
    return status;
}

static int64_t last_samples(const struct run *run)
{
    return run->work->samples - (run->micro_batches - 1) * run->samples_each;
}

/* Splits the part into micro-batches and makes their plans, before the clock starts. If the device has less memory
 * than it reported, makes smaller plans. */
static tutti_status split_into_micro_batches(struct run *run)
{
    tutti_status status = TUTTI_OK;
    struct replica *replica = run->replica;
    const int64_t samples = run->work->samples;
    struct cached_plan *cached;
    replica_make_room(replica);
    do {
        run->samples_each = replica_micro_batch(replica, samples);
        run->micro_batches = divide_up(samples, run->samples_each);
        status = replica_plan(replica, key_of(run, run->samples_each), &cached);
        if (run->setup->whole_batch && run->work->input.mode == PLAN_TRAIN) break; /* others take what it cannot */
        /* Other plans need not be freed for the smaller one: make_plan() has done so. */
    } while (status == TUTTI_DEVICE_MEMORY && replica_halve(replica, run->samples_each));
    if (status != TUTTI_OK) return status;
    if (run->setup->carries->count > 0 && run->micro_batches > 1)
        FAIL(TUTTI_INVALID,
            "a trainer that carries state computes its samples at once, and device %d takes %lld, but the call has "
            "%lld: use fewer, or a device with more memory",
            replica->device->index, (long long)run->samples_each, (long long)samples);
    run->new_plan = !cached->ran;
    TRY(replica_plan(replica, key_of(run, last_samples(run)), &cached));
    run->new_plan |= !cached->ran;
    if (run->work->input.mode == PLAN_TRAIN && run->micro_batches > 1) TRY(replica_make_sum(replica));
done:
    return status;
}

/* ------------------------------------------------------------------------------------------------- waiting ---- */

static tutti_status await_results(struct run *run)
{
    tutti_status status = TUTTI_OK;
    struct replica *replica = run->replica;
    struct replica_work *work = run->work;
    cl_event checked = NULL;
    work->result.metrics = (struct metric_sums) { 0 };
    if (work->input.mode == PLAN_INFER) {
        TRY(device_wait(replica->device));
        work->result.kept = keeps_outputs(run) ? run->plan : NULL;
        return deliver_outputs(run);
    }
    if (work->update) TRY(device_update_enqueue_read(replica, &checked)); /* arrives with the losses */
    const int pairs = objective_pairs(run->setup->objective);
    TRY(buffer_read(replica->device, replica->losses, 0, replica->scratch.losses,
        2 * (size_t)pairs * (size_t)run->micro_batches * sizeof(float)));
    for (int64_t i = 0; i < run->micro_batches; i++)
        metric_sums_add_metrics(&work->result.metrics, replica->scratch.losses + 2 * pairs * i, pairs);
    TRY(deliver_outputs(run));
    if (!checked) goto done;
    TRY(event_wait(replica->device, checked));
    work->result.not_finite = device_update_not_finite(replica);
    work->result.norm = device_update_norm(replica);
done:
    if (checked) clReleaseEvent(checked);
    return status;
}

/* Checks that the device has computed with the parameters that it was given, to the bit. */
static tutti_status check_parameters(struct replica *replica, uint64_t wanted)
{
    tutti_status status = TUTTI_OK;
    const struct replica_setup *setup = replica->setup;
    const size_t bytes = (size_t)setup->network->total_floats * sizeof(float);
    cl_int error = CL_SUCCESS;
    cl_event event = NULL;
    float *mapped = clEnqueueMapBuffer(
        replica->device->queue, replica->parameters, CL_FALSE, CL_MAP_READ, 0, bytes, 0, NULL, &event, &error);
    CL_TRY(error, "mapping parameters of '%s'", replica->device->can.name);
    status = event_wait(replica->device, event);
    const uint64_t found = status == TUTTI_OK ? parameters_checksum(setup->network, mapped) : 0;
    CL_TRY(clEnqueueUnmapMemObject(replica->device->queue, replica->parameters, mapped, 0, NULL, NULL),
        "unmapping parameters of '%s'", replica->device->can.name);
    if (status == TUTTI_OK && found != wanted)
        FAIL(TUTTI_WRONG_RESULT,
            "its parameters have the checksum %016llx, but the master copy has %016llx: see 'tutti devices --check'",
            (unsigned long long)found, (unsigned long long)wanted);
done:
    if (event) clReleaseEvent(event);
    return status;
}

/* The next phase may take as long as a step; in the first work of a mode as long as a plan, because drivers may compile
 * or load kernels in it, too. */
static void allow_step(const struct run *run)
{
    struct replica *replica = run->replica;
    if (replica->ran[run->work->input.mode])
        replica_allow_step(replica, run->work->samples);
    else
        worker_allow(&replica->worker, worker_build_limit(&replica->worker));
}

/* Notes the time of a step, of which the slowest counts; except the first, as in allow_step(). */
static void note_pace(struct replica *replica, const struct replica_work *work)
{
    const int64_t length = work->input.feeds.length, positions = length > 0 ? work->samples * length : work->samples;
    if (replica->ran[PLAN_TRAIN]) worker_note_pace(&replica->worker, work->result.seconds / (double)positions);
}

/* After a failure: waits for what is still queued, which reads the caller's memory, and invalidates what the device
 * has. */
static void drop_work(struct replica *replica)
{
    char message[1024];
    const tutti_status status = status_last();
    strncpy(message, status_message(), sizeof(message) - 1);
    message[sizeof(message) - 1] = '\0';
    if (!worker_is_abandoned(&replica->worker)) device_wait(replica->device);
    status_set(status, message);
    versions_invalidate(&replica->versions);
    plan_cache_overwritten(&replica->plans);
}

/* Enqueues the whole part. It waits only for what is needed meanwhile: statistics of all devices, a checksum, and the
 * device's copy of the samples, whose staging memory the next ones take. */
static tutti_status enqueue_part(struct run *run)
{
    tutti_status status = TUTTI_OK;
    struct replica *replica = run->replica;
    const struct replica_work *work = run->work;
    const bool training = work->input.mode == PLAN_TRAIN;
    if (run->setup->carries->count > 0) TRY(carried_prepare(replica, work->samples));
    TRY(run_stage_samples(run));
    prefetch_reserve(replica, work); /* makes memory before the device is busy */
    TRY(stage_outputs(run));
    TRY(run_upload_parameters(run)); /* may decide to send pieces, which the first micro-batch's launches wait for */
    if (training) gradients_note_work(&replica->gradients, run->micro_batches > 1);
    for (int64_t number = 0; number < run->micro_batches; number++) TRY(enqueue_micro_batch(run, number));
    if (work->update) TRY(device_update_enqueue(replica, run->micro_batches > 1, &replica->scratch.constants[0]));
    TRY(run_mark(run, &run->ended)); /* after the last launch: copies from here on do not overlap with any */
    if (work->verify_parameters)     /* before send_gradients(): then the exchange may write new ones */
        TRY(check_parameters(replica, work->checksum));
    if (training && !work->update && replica->gradients.delivery_count == 0) TRY(send_gradients(run));
    CL_TRY(clFlush(replica->device->queue), "sending work to '%s'", replica->device->can.name);
    prefetch_send(replica, work, run->begun); /* last: waits until the device has this part's samples */
done:
    return status;
}

static tutti_status await_part(struct run *run)
{
    tutti_status status = TUTTI_OK;
    TRY(gradients_await(run->replica)); /* first: the exchange sums each bucket as it arrives */
    TRY(await_results(run));
    prefetch_wait(run->replica, run->work); /* no upload is in progress between two steps */
done:
    return status;
}

/* Notes what has succeeded. */
static void note_part(struct run *run, double start)
{
    struct replica *replica = run->replica;
    const struct replica_work *work = run->work;
    note_times(run, start);
    plan_cache_ran(&replica->plans, key_of(run, run->samples_each));
    plan_cache_ran(&replica->plans, key_of(run, last_samples(run)));
    versions_mark_partial(&replica->versions, false); /* device_update_enqueue() set it */
    if (work->probe) return;
    if (run->setup->carries->count > 0) carried_advance(replica, work->samples);
    versions_took(&replica->versions, &work->snapshot, work->update);
    if (run->parameter_writes > 0) replica->parameters_s = uploads_seconds(&replica->uploads, run->parameter_writes);
    if (work->input.mode != PLAN_TRAIN) return;
    note_pace(replica, work);
    replica->report.busy_s += work->result.seconds;
    replica->report.samples += work->samples;
}

tutti_status replica_run(struct replica *replica, void *argument)
{
    tutti_status status = TUTTI_OK;
    struct run run = { .replica = replica, .setup = replica->setup, .work = argument };
    allow_step(&run);
    TRY(gradients_unmap(replica));       /* before anything uses what was mapped for the exchange */
    TRY(split_into_micro_batches(&run)); /* may make plans, which has its own limit and takes its time */
    const double start = clock_seconds();
    allow_step(&run); /* again: from here on, the time of the step alone */
    TRY(enqueue_part(&run));
    TRY(await_part(&run));
    note_part(&run, start);
    replica->ran[run.work->input.mode] = true;
done:
    uploads_reset(&replica->uploads);
    if (!run.work->probe)
        replica->setup->callbacks.statistics_leave(replica->setup->callbacks.trainer, replica->number);
    if (run.begun) clReleaseEvent(run.begun);
    if (run.ended) clReleaseEvent(run.ended);
    if (status != TUTTI_OK) drop_work(replica);
    return run.new_plan ? replica_suspect_memory(replica, status) : status;
}
