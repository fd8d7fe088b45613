/* A replica: the network on one device. It has the device's copy of the parameters, plans for the numbers of samples
 * that occur, and, if gradients are exchanged or steps have a time limit, a thread of its own. */
#ifndef REPLICA_REPLICA_H
#define REPLICA_REPLICA_H

#include "base/memory.h"
#include "replica/background.h"
#include "replica/carried.h"
#include "replica/device_update.h"
#include "replica/gradients.h"
#include "replica/parameter_versions.h"
#include "replica/plan_cache.h"
#include "replica/prefetch.h"
#include "replica/replica_setup.h"
#include "replica/uploads.h"
#include "replica/worker.h"

/* Copies in one direction between host and device: bytes; seconds, as the driver measures them; seconds of these in
 * which the device also computed. */
struct traffic {
    double bytes, seconds, overlapped;
};

/* Totals of a replica over all steps, also those in which it had no part. */
struct replica_report {
    int64_t samples;
    double busy_s, build_s;
    double compute_s, transfer_s, idle_s;
    struct traffic sent, received;
};

/* Host memory that drivers read or write until the present work is done. */
struct scratch {
    struct step_constants *constants; /* of each micro-batch */
    float *losses;
    unsigned char *outputs; /* outputs of a device with a thread, before they are copied to the caller */
    size_t output_capacity;
    float *statistics; /* of --sync-batchnorm, while they are exchanged */
    size_t statistics_capacity;
};

struct replica {
    struct replica_setup *setup;
    struct device *device;
    struct worker worker;
    int number;            /* among the trainer's replicas */
    int64_t capacity;      /* samples that fit at once; a larger part is run as micro-batches */
    bool memory_suspected; /* see replica_suspect_memory() */
    cl_mem parameters, frozen;
    cl_mem losses; /* of the step: float[2] of each loss and micro-batch */
    struct parameter_versions versions;
    struct device_update update;
    struct replica_gradients gradients;
    struct plan_cache plans;
    struct background background;
    struct uploads uploads;
    struct prefetch prefetch;
    struct scratch scratch;
    struct carried carried;
    double parameters_s;      /* of the last transfer of all parameters to the device */
    bool ran[PLAN_INFER + 1]; /* it has done work of these modes */
    struct replica_report report;
};

/* Called in this order by build() (train/trainer.c), after setup and device are set. If it was asked for: measures
 * kernels. */
tutti_status replica_tune(struct replica *replica, int64_t samples);
/* Finds how many of `samples` samples fit the memory at once (0: it has no share yet). */
tutti_status replica_measure(struct replica *replica, int64_t samples);
/* Begins to load the programs of the first plan, in a thread, if the driver has them. */
void replica_load_ahead(struct replica *replica, int64_t samples);
/* Makes buffers and the optimizer's launches. */
tutti_status replica_init(struct replica *replica);
/* Makes the first plan. */
tutti_status replica_plan_first(struct replica *replica, int64_t samples);
/* Call it after background_free(). Returns false if a thread is stuck in the driver: then nothing is ever freed. */
bool replica_free(struct replica *replica);
/* Most micro-batches of a step: there are arrays with an element for each. replica_min_micro_batch() returns how many
 * samples a device must therefore take at once, at least. */
enum { MOST_MICRO_BATCHES = 1 << 16 };
int64_t replica_min_micro_batch(int64_t batch);
/* Returns how many of a part's samples, of which there is at least one, the device takes at once: all micro-batches but
 * the last have so many. */
static inline int64_t replica_micro_batch(const struct replica *replica, int64_t samples)
{
    return divide_up(samples, divide_up(samples, replica->capacity));
}
/* From now on the device takes at most half of `samples` at once. Returns false if that is impossible. */
bool replica_halve(struct replica *replica, int64_t samples);
/* After the device ran out of memory: halves the samples that it takes at once, and marks the present plans to be
 * freed. Returns false if that is impossible. Does not call the driver, which may hang: the replica's thread frees the
 * plans by replica_make_room(). */
bool replica_shrink(struct replica *replica);
void replica_make_room(struct replica *replica);
/* Drivers return CL_OUT_OF_RESOURCES if a kernel crashed or was stopped, but also if memory is lacking that they
 * allocate only at the first launch. Until a plan has run, it counts as a lack of memory, once for each replica. */
tutti_status replica_suspect_memory(struct replica *replica, tutti_status status);
/* Returns whether the trainer has lost the device: it gets no more work, and nothing waits long for it. */
static inline bool replica_is_lost(const struct replica *replica)
{
    return replica->setup->callbacks.is_lost(replica->setup->callbacks.trainer, replica->number);
}
/* Called by a job: its next phase may take as long as a step with this many samples of the longest sequences. */
void replica_allow_step(struct replica *replica, int64_t samples);
/* Gets the plan with this key from the cache, or makes it. */
tutti_status replica_plan(struct replica *replica, struct plan_key key, struct cached_plan **cached);
/* Puts a plan that was made into the cache. */
struct cached_plan *replica_keep(struct replica *replica, struct plan *plan);
/* Returns the options that a plan with this key is made with. */
struct plan_options replica_options(struct replica *replica, struct plan_key key);
/* Makes the plan with this key again, outside of the cache, with the texts that explain it. */
tutti_status replica_explain(struct replica *replica, struct plan_key key, struct plan **plan);
/* Returns the bytes that the replica takes on the device now. */
uint64_t replica_memory(const struct replica *replica);
/* Returns those that do not depend on plans: parameters, gradients, optimizer states. micro_batches: with the arena
 * that sums their gradients. */
size_t replica_fixed_bytes(const struct replica *replica, bool micro_batches);

/* Reads the device's parameters, and the states for which `to` has arrays. */
tutti_status replica_read(const struct replica *replica, const struct optimizer_arrays *to);

/* After every attempt at a step, failed or not: discards the buckets that arrived. Marks the device's parameters
 * invalid if the exchange could write to them: exchange_mark_devices() marks them valid if the step is committed;
 * otherwise run_upload_parameters() sends them again. The trainer's thread calls it, so it calls nothing in a driver
 * that may hang; or a probe's job, after gradients_unmap(). Does nothing if the device was given up. */
void replica_end_attempt(struct replica *replica);
/* Makes the sum of gradients over micro-batches, and its launches. */
tutti_status replica_make_sum(struct replica *replica);

#endif
