/* Gradients of a device with memory of its own: copied by its exchange queue, rounded to bfloat16 if that is wanted. */
#include "plan/commands.h"
#include "replica/replica.h"

/* Returns whether gradients leave as bfloat16, in half the bytes. */
static bool rounds(const struct replica *replica)
{
    const struct replica_setup *setup = replica->setup;
    return setup->wire == TUTTI_BF16 && setup->exchange && setup->trains;
}

static size_t device_bytes(const struct replica *replica)
{
    return rounds(replica) ? (size_t)replica->setup->network->trained_floats * sizeof(uint16_t) : 0;
}

/* ------------------------------------------------------------------------------------------------ kernels ---- */

static const struct command *bucket_at(const struct plan *plan, int64_t first)
{
    size_t position = 0;
    const struct command *ready;
    while ((ready = command_next(plan, COMMAND_BUCKET, &position)) && ready->first != first) continue;
    return ready;
}

/* Emits a launch for each bucket of the plan; plan NULL: one launch for all trained parameters. */
static tutti_status emit(struct replica *replica, const struct plan *plan, struct launch_list *list)
{
    const int64_t trained = replica->setup->network->trained_floats;
    if (!plan) gradients_emit_bf16(replica->gradients.sum, replica->gradients.copied.wire, 0, trained, list);
    for (int64_t first = 0; plan && first < trained;) {
        const struct command *ready = bucket_at(plan, first);
        if (!ready) return fail(TUTTI_INTERNAL, "no bucket begins at offset %lld", (long long)first);
        gradients_emit_bf16(replica->gradients.buffer, replica->gradients.copied.wire, first, ready->count, list);
        first += ready->count;
    }
    return TUTTI_OK;
}

static tutti_status build(struct replica *replica, const struct plan *plan)
{
    tutti_status status = TUTTI_OK;
    struct replica_gradients *gradients = &replica->gradients;
    struct launch_list *list = plan ? &gradients->copied.to_wire : &gradients->copied.sum_to_wire;
    if (!rounds(replica) || list->count > 0) return TUTTI_OK;
    launch_list_init(list, replica->device);
    if (!gradients->copied.wire) TRY(buffer_new(replica->device, device_bytes(replica), &gradients->copied.wire));
    TRY(emit(replica, plan, list));
    TRY(launch_list_realise(list, NULL, NULL));
    TRY(launch_list_warm_up(list));
done:
    if (status != TUTTI_OK) launch_list_free(list);
    return status;
}

/* ------------------------------------------------------------------------------------------------- leaving ---- */

static tutti_status make_download(struct replica *replica)
{
    struct staging *download = &replica->gradients.copied.download;
    const size_t bytes = (size_t)replica->setup->network->total_floats * sizeof(float);
    return download->bytes >= bytes ? TUTTI_OK : staging_new(replica->device, bytes, download);
}

static tutti_status prepare(struct replica *replica, const struct plan *plan)
{
    tutti_status status = TUTTI_OK;
    /* The only device has none before its first tutti_backward(). */
    TRY(device_open_queue(replica->device, &replica->device->exchange_queue));
    TRY(make_download(replica));
    TRY(build(replica, plan));
done:
    return status;
}

/* Copies a range of gradients to the host, after the event `after` (NULL: after what is in the queue). */
static tutti_status read_range(
    struct replica *replica, cl_command_queue queue, cl_mem from, int64_t first, int64_t count, const cl_event *after)
{
    tutti_status status = TUTTI_OK;
    struct replica_gradients *gradients = &replica->gradients;
    const bool bf16 = from == gradients->copied.wire;
    const size_t size = bf16 ? sizeof(uint16_t) : sizeof(float);
    unsigned char *to = (unsigned char *)gradients->copied.download.pointer + (size_t)first * size;
    struct bucket_delivery delivery = { .first = first, .count = count, .bytes = (size_t)count * size };
    if (bf16)
        delivery.bf16 = (uint16_t *)(void *)to;
    else
        delivery.data = (float *)(void *)to;
    CL_TRY(clEnqueueReadBuffer(
               queue, from, CL_FALSE, (size_t)first * size, delivery.bytes, to, after ? 1 : 0, after, &delivery.event),
        "reading gradients from '%s'", replica->device->can.name);
    status = gradients_append_delivery(replica, &delivery);
done:
    return status;
}

/* Rounds the bucket, if that is wanted. *from: the buffer that it leaves from. */
static tutti_status round_bucket(struct replica *replica, const struct bucket_request *request, cl_mem *from)
{
    struct replica_gradients *gradients = &replica->gradients;
    size_t launch = 0, position = 0;
    const struct command *ready;
    *from = gradients->buffer;
    if (gradients->copied.to_wire.count == 0 || request->first >= replica->setup->network->trained_floats)
        return TUTTI_OK;
    while ((ready = command_next(request->plan, COMMAND_BUCKET, &position))) launch += ready->first < request->first;
    *from = gradients->copied.wire;
    return launch_list_enqueue(&gradients->copied.to_wire, launch, launch + 1, NULL);
}

/* Sends the bucket by the exchange queue. */
static tutti_status copied_send_bucket(struct replica *replica, const struct bucket_request *request)
{
    tutti_status status = TUTTI_OK;
    const struct device *device = replica->device;
    cl_event complete = NULL;
    cl_mem from;
    TRY(round_bucket(replica, request, &from));
    CL_TRY(
        clEnqueueMarkerWithWaitList(device->queue, 0, NULL, &complete), "marking gradients of '%s'", device->can.name);
    CL_TRY(clFlush(device->queue), "sending work to '%s'", device->can.name);
    TRY(read_range(replica, device->exchange_queue, from, request->first, request->count, &complete));
    CL_TRY(clFlush(device->exchange_queue), "reading gradients from '%s'", device->can.name);
done:
    if (complete) clReleaseEvent(complete);
    return status;
}

static tutti_status send_all(struct replica *replica, const struct bucket_request *request)
{
    tutti_status status = TUTTI_OK;
    struct replica_gradients *gradients = &replica->gradients;
    const cl_command_queue queue = replica->device->queue;
    const int64_t trained = replica->setup->network->trained_floats, rest = request->count - trained;
    const cl_mem buffer = gradients_buffer(gradients, request->sum);
    const bool bf16 = request->sum && gradients->copied.sum_to_wire.count > 0;
    TRY(make_download(replica));
    if (bf16) TRY(launch_list_enqueue(&gradients->copied.sum_to_wire, 0, gradients->copied.sum_to_wire.count, NULL));
    TRY(read_range(replica, queue, bf16 ? gradients->copied.wire : buffer, 0, trained, NULL));
    if (rest > 0) TRY(read_range(replica, queue, buffer, trained, rest, NULL));
done:
    return status;
}

static void free_all(struct replica *replica)
{
    struct replica_gradients *gradients = &replica->gradients;
    launch_list_free(&gradients->copied.to_wire);
    launch_list_free(&gradients->copied.sum_to_wire);
    buffer_free(&gradients->copied.wire);
    if (gradients->copied.download.buffer) staging_free(&gradients->copied.download);
}

const struct gradient_transport gradients_copied = {
    .device_bytes = device_bytes,
    .build = build,
    .prepare = prepare,
    .send_bucket = copied_send_bucket,
    .send_all = send_all,
    .free = free_all,
};
