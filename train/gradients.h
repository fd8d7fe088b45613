/* How gradients leave a device for the exchange: one port, with an implementation for devices with memory of their own
 * (copied) and one for devices that share the host's memory (mapped). */
#ifndef TRAIN_GRADIENTS_H
#define TRAIN_GRADIENTS_H

#include "plan/plan.h"
#include "runtime/memory.h"

#include <stdatomic.h>

struct replica;

/* A range of gradients that has reached the host: of `count` floats from `first` on, at `data`. */
struct arrival {
    int64_t first, count;
    size_t bytes;         /* that were copied */
    const float *data;    /* NULL: they are in */
    const uint16_t *half; /* bfloat16 */
    float *parameters;    /* of the same range, where the device has them: for the exchange to write; or NULL */
    cl_event event;
};

/* A range of a buffer that the host may use until it is released. */
struct mapping {
    cl_mem buffer;
    void *pointer;
};

struct gradient_port {
    cl_mem gradients; /* on the device */
    /* Of all micro-batches; not made until there is more than one. */
    cl_mem sum;
    struct launch_list add;
    atomic_bool sum_made; /* read by whoever asks for replica_memory() */
    bool has_last;        /* gradients of the last step, in part */
    bool last_is_sum;     /* they are in `sum` */
    /* Gradients on the host, in the order of their arrival; `arrived` of them, guarded by the watchdog's lock. */
    struct arrival *arrivals;
    size_t arrival_count, arrived, arrival_capacity;
    /* Page-locked memory; gradients as bfloat16, and the launches that round them: a bucket each, in the order of the
     * arena; the sum's. */
    struct {
        struct staging download;
        cl_mem wire;
        struct launch_list to_wire, sum_to_wire;
    } copied;
    /* Until they are released: gradients, and parameters (`exposed`), which the exchange writes there. */
    struct {
        struct mapping *mappings;
        size_t count, capacity;
        bool exposed;
    } mapped;
};

/* What leaves: a range of the gradients that a step has enqueued. */
struct departure {
    const struct plan *plan; /* whose bucket it is */
    int64_t first, count;    /* floats */
    bool sum;                /* of micro-batches */
    bool exposes;            /* the exchange may write new parameters where the device has them */
};

/* An implementation. Its functions are called by the replica's thread. */
struct gradient_way {
    bool exposes; /* the exchange may write parameters as soon as gradients leave */
    size_t (*device_bytes)(const struct replica *replica);
    /* Makes kernels for the buckets of the plan (all plans have the same), or for the sum of micro-batches (NULL),
     * where that has not been done. */
    tutti_status (*build)(struct replica *replica, const struct plan *plan);
    /* Before launches whose buckets leave: makes what is not there yet. */
    tutti_status (*open)(struct replica *replica, const struct plan *plan);
    /* Behind the launch that completes a bucket: it leaves beside the rest of backward. */
    tutti_status (*bucket)(struct replica *replica, const struct departure *departure);
    /* Behind the step: all gradients. */
    tutti_status (*whole)(struct replica *replica, const struct departure *departure);
    /* Gives the device back what the host may use, before its next work. */
    tutti_status (*release)(struct replica *replica);
    void (*free)(struct replica *replica); /* what is freed by calls of the driver */
};
extern const struct gradient_way gradients_copied, gradients_mapped;
const struct gradient_way *gradient_way(const struct replica *replica);

/* Makes the gradients on the device; what is needed for their sum over micro-batches, which a failure leaves to
 * gradients_drop_sum(). */
tutti_status gradients_open(struct replica *replica);
tutti_status gradients_make_sum(struct replica *replica);
void gradients_drop_sum(struct replica *replica);
bool gradients_have_sum(const struct gradient_port *port);
cl_mem gradients_buffer(const struct gradient_port *port, bool sum); /* one of the two */
/* Behind the launches of one of several micro-batches: its gradients are added to those before it. */
tutti_status gradients_add_up(struct replica *replica, int64_t micro_batch);
/* As work begins: in which of them its gradients will be. When the step has succeeded: whether there are some. */
void gradients_note_work(struct gradient_port *port, bool sum);
void gradients_note_step(struct gradient_port *port, bool has_part);
cl_mem gradients_last(const struct gradient_port *port); /* those of the last step, or NULL */
/* Under the watchdog's lock: they have not all reached the host. */
bool gradients_are_expected(const struct gradient_port *port);
/* The exchange may write parameters in the device's memory in this step. */
bool gradients_are_exposed(const struct gradient_port *port);

/* For the implementations: takes the arrival's event over, also on failure. */
tutti_status gradients_add(struct replica *replica, const struct arrival *arrival);
/* Waits for each arrival in turn and tells the exchange. */
tutti_status gradients_await(struct replica *replica);
/* Forgets what arrived; calls no driver that may hang. */
void gradients_forget(struct replica *replica);
void gradients_free_buffers(struct replica *replica); /* what is freed by calls of the driver, besides `free` */
void gradients_free(struct replica *replica);         /* the host's memory, after that and gradients_forget() */

#endif
