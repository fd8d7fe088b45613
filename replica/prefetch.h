/* A device's part of the next batch, which is uploaded while the device computes (prefetch.c). */
#ifndef REPLICA_PREFETCH_H
#define REPLICA_PREFETCH_H

#include "plan/plan.h"

#include <stdatomic.h>

struct replica;
struct replica_work;

struct prefetch {
    cl_mem buffer;           /* all feeds, as arrays_pack() places them */
    atomic_size_t bytes;     /* read by replica_memory(), also in other threads */
    uint64_t number;         /* of the batch whose part is there; 0: none */
    int64_t offset, samples; /* of that part, in the rank's batch */
    cl_event sent;           /* its upload, in this step; one of the replica's uploads; or NULL */
};

/* Call them in this order. Before the step's launches: makes room for the next step's samples. When the launches are
 * enqueued: sends these samples as soon as the step's own have left the staging memory. At the end: waits for the
 * upload. A failure does not fail the step. */
void prefetch_reserve(struct replica *replica, const struct replica_work *work);
void prefetch_send(struct replica *replica, const struct replica_work *work, cl_event samples_taken);
void prefetch_wait(struct replica *replica, const struct replica_work *work);
/* In the next step: returns whether its samples are there; enqueues the copy of a feed to where the plan reads it,
 * from sample `offset` of the part on. */
bool prefetch_has(const struct replica *replica, uint64_t number, int64_t offset, int64_t samples);
tutti_status prefetch_take(struct replica *replica, const struct plan *plan, int feed, int64_t offset, int64_t samples);
static inline size_t prefetch_bytes(const struct prefetch *prefetch) /* on the device */
{
    return prefetch->bytes;
}
void prefetch_free(struct replica *replica);

#endif
