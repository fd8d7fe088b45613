/* The transport of gradients from a device to the exchange: one implementation for devices with memory of their own
 * (copied) and one for devices that share the host's memory (mapped). */
#ifndef REPLICA_GRADIENTS_H
#define REPLICA_GRADIENTS_H

#include "plan/plan.h"
#include "runtime/memory.h"

#include <stdatomic.h>

struct replica;

/* The delivery of a bucket to the host, a copy or a mapping that is enqueued: floats first .. first + count - 1 of the
 * gradients. */
struct bucket_delivery {
    int64_t first, count;
    size_t bytes;         /* that are copied; 0: mapped */
    const float *data;    /* NULL: they are in `bf16` */
    const uint16_t *bf16; /* as the wire has them */
    float *parameters;    /* of the same range, in the device's memory, for the exchange to write; or NULL */
    cl_event event;
};

/* A range of a buffer that the host may use until it is unmapped. */
struct mapping {
    cl_mem buffer;
    void *pointer;
};

/* A replica's gradients, on the device and on their way to the host. */
struct replica_gradients {
    cl_mem buffer; /* of the device, for one micro-batch */
    /* Sum over all micro-batches; not made until there is more than one. */
    cl_mem sum;
    struct launch_list add;
    atomic_bool sum_made; /* read by replica_memory(), also in other threads */
    bool has_last;        /* the device had a part in the last step, whose gradients it has */
    bool last_is_sum;     /* they are in `sum` */
    /* To the host, in the order in which they are enqueued. The first `arrived` are complete, which the watchdog's lock
     * guards. */
    struct bucket_delivery *deliveries;
    size_t delivery_count, arrived, delivery_capacity;
    /* Page-locked memory; gradients as bfloat16, and the launches that round them: to_wire one for each bucket, in the
     * order of the arena; sum_to_wire one for all trained parameters. */
    struct {
        struct staging download;
        cl_mem wire;
        struct launch_list to_wire, sum_to_wire;
    } copied;
    /* Mapped until the next work: gradients and, if `parameters_mapped`, parameters, which the exchange writes
     * there. */
    struct {
        struct mapping *mappings;
        size_t count, capacity;
        bool parameters_mapped;
    } mapped;
};

/* A bucket to be sent to the host. */
struct bucket_request {
    const struct plan *plan; /* whose bucket it is */
    int64_t first, count;    /* floats */
    bool sum;                /* of micro-batches */
    bool map_parameters;     /* of the same range, too, if the transport can: the exchange may write new ones there */
};

/* An implementation. Its functions are called by the replica's thread. */
struct gradient_transport {
    bool can_map_parameters; /* so that the exchange may write them in place as soon as gradients leave */
    size_t (*device_bytes)(const struct replica *replica);
    /* Makes kernels for the buckets of the plan (all plans have the same buckets) or, if `plan` is NULL, for the sum
     * of micro-batches, unless they are made. */
    tutti_status (*build)(struct replica *replica, const struct plan *plan);
    /* Before the first bucket: makes the queue, the staging memory and the rounding kernels that are missing. */
    tutti_status (*prepare)(struct replica *replica, const struct plan *plan);
    /* After the launch that completes a bucket: sends it while backward continues. */
    tutti_status (*send_bucket)(struct replica *replica, const struct bucket_request *request);
    /* After the last micro-batch, if no bucket was sent: sends all gradients. */
    tutti_status (*send_all)(struct replica *replica, const struct bucket_request *request);
    /* As gradients_unmap(). NULL: nothing is ever mapped. */
    tutti_status (*unmap)(struct replica *replica);
    void (*free)(struct replica *replica); /* frees what needs calls of the driver */
};
extern const struct gradient_transport gradients_copied, gradients_mapped;
const struct gradient_transport *gradient_transport(const struct replica *replica);

/* Makes the gradients on the device; makes what their sum over micro-batches needs. After a failure of the latter,
 * call gradients_drop_sum(). */
tutti_status gradients_open(struct replica *replica);
tutti_status gradients_make_sum(struct replica *replica);
void gradients_drop_sum(struct replica *replica);
bool gradients_have_sum(const struct replica_gradients *gradients);
cl_mem gradients_buffer(const struct replica_gradients *gradients, bool sum); /* one of the two */
/* After the launches of one of several micro-batches: adds its gradients to those before it. */
tutti_status gradients_accumulate(struct replica *replica, int64_t micro_batch);
/* When work begins: notes whether its gradients will be in `sum`. When the step has succeeded: notes whether the
 * device had a part in it. */
void gradients_note_work(struct replica_gradients *gradients, bool sum);
void gradients_note_step(struct replica_gradients *gradients, bool has_part);
cl_mem gradients_last(const struct replica_gradients *gradients); /* those of the last step, or NULL */
/* Under the watchdog's lock: returns whether some have not reached the host. */
bool gradients_are_expected(const struct replica_gradients *gradients);
/* Before the device's next work: gives it back what is mapped for the exchange. */
tutti_status gradients_unmap(struct replica *replica);
/* Returns whether the exchange may have written parameters to the device's memory in this step. */
bool gradients_mapped_parameters(const struct replica_gradients *gradients);

/* Emits sum += gradients over the whole arena: micro-batches. */
void gradients_emit_add(const tutti_network *network, cl_mem sum, cl_mem gradients, struct launch_list *list);
/* Emits the floats first .. first + count - 1 of the gradients as bfloat16 to the same place of `wire`. */
void gradients_emit_bf16(cl_mem gradients, cl_mem wire, int64_t first, int64_t count, struct launch_list *list);

/* For the implementations: adds an enqueued delivery. Takes over its event, also on failure. */
tutti_status gradients_append_delivery(struct replica *replica, const struct bucket_delivery *delivery);
/* Waits for each delivery in turn, and wakes the exchange, which waits on the watchdog's condition. */
tutti_status gradients_await(struct replica *replica);
/* Resets what arrived; calls no driver that may hang. */
void gradients_reset(struct replica *replica);
void gradients_free_buffers(struct replica *replica); /* frees what else needs calls of the driver */
void gradients_free(struct replica *replica);         /* frees the host's memory, after that and gradients_reset() */

#endif
