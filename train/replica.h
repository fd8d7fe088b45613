/* A replica: the network on one device. It has the device's copy of the parameters, plans for the numbers of samples
 * that occur, and, where there are several devices, a thread of its own. */
#ifndef TRAIN_REPLICA_H
#define TRAIN_REPLICA_H

#include "plan/plan.h"
#include "train/batches.h"
#include "train/device_update.h"
#include "train/gradients.h"
#include "train/parameter_store.h"
#include "train/plan_cache.h"
#include "train/tally.h"
#include "train/uploads.h"
#include "train/worker.h"

#include <stdatomic.h>

struct tutti_trainer;

/* What was copied in one direction between host and device, and for how long, as the driver measures it; how much of
 * that the device computed as well. */
struct traffic {
    double bytes, seconds, beside;
};

/* What a replica does with its part of a batch. */
struct replica_work {
    enum plan_mode mode;
    struct arrays feeds, outputs; /* of the whole batch */
    bool gives_outputs;           /* some are wanted */
    int64_t first, samples;       /* this replica's part of it */
    int64_t whole, before; /* samples of the whole step, and those of them that precede the batch, on other hosts */
    struct step_constants constants; /* first_sample and runs are set for each launch */
    uint64_t number;                 /* of the batch, as in struct batch */
    struct batch next;               /* the batch that may come next, divided in the same way; number 0: none */
    struct supply supply;            /* of parameters */
    bool update;                     /* training: the device updates its parameters itself, nothing is exchanged */
    bool kept;                       /* the feeds are the trainer's memory, not the caller's */
    bool meets;                      /* others have parts of the batch, and statistics are over all of it */
    bool check; /* the device's parameters must be those of the master copy at the end, with this checksum */
    uint64_t checksum;
    bool probe; /* for its time alone: old parameters do, and results are thrown away */
    /* Results: sums over the part; the time of it, with that of what moved to the device and from it. */
    struct tally tally;
    bool not_finite; /* some gradient; a device that updates itself has updated nothing then */
    double seconds;
    struct traffic sent, received;
};

/* A device's part of the next batch. */
struct prefetch {
    cl_mem buffer;       /* all feeds, as arrays_copy() places them */
    atomic_size_t bytes; /* read by whoever asks for replica_memory() */
    uint64_t number;     /* of the batch whose part is there; 0: none */
    int64_t first, samples;
    cl_event sent; /* its upload, in this step; one of the replica's uploads; or NULL */
};

/* What a replica has done, all steps together, whether it had a part in them or not. */
struct replica_report {
    int64_t samples;
    double busy_s, build_s;
    double compute_s, transfer_s, idle_s;
    struct traffic sent, received;
};

/* Memory of the host that drivers read or write until the work at hand is done. */
struct scratch {
    struct step_constants *constants; /* of each micro-batch */
    float *losses;
    unsigned char *outputs; /* what a device with a thread gives, before it is the caller's */
    size_t output_capacity;
    float *numbers; /* of a meeting, on their way */
    size_t number_capacity;
};

/* A plan that is made while the device works by another one, see background.c. */
struct background {
    pthread_t thread;
    bool started;
    bool done, hangs;      /* guarded by the trainer's lock */
    double waited_s, seen; /* of its time limit; when it was last looked at */
    bool alone;            /* also what the device needs to update itself */
    bool plan_wanted;
    struct plan_options options;
    struct plan *plan;
    tutti_status status;
    char message[1024];
};

struct replica {
    struct tutti_trainer *trainer;
    struct device *device;
    struct worker worker;
    int number;       /* among the trainer's replicas */
    int64_t capacity; /* samples that fit at once; a larger part is run as micro-batches */
    bool doubted;     /* see replica_doubt() */
    cl_mem parameters, frozen;
    cl_mem losses; /* of the step: float[2] of each loss and micro-batch */
    struct holding holding;
    struct device_update update;
    struct gradient_port port;
    struct plan_cache plans;
    struct background background;
    struct uploads uploads;
    struct prefetch prefetch;
    struct scratch scratch;
    double parameters_s; /* of the last transfer of all parameters to the device */
    struct replica_report report;
};

/* In this order, after its trainer and device are set: measures kernels where that was asked for; how many of `samples`
 * samples fit its memory at once (0: it has no share yet); buffers and the optimizer's launches; the plan. */
tutti_status replica_tune(struct replica *replica, int64_t samples);
tutti_status replica_measure(struct replica *replica, int64_t samples);
tutti_status replica_init(struct replica *replica);
void replica_load_ahead(struct replica *replica, int64_t samples); /* the programs of that first plan */
tutti_status replica_plan_first(struct replica *replica, int64_t samples);
/* After background_free(). False where a thread is stuck in the driver: then nothing is freed, ever. */
bool replica_free(struct replica *replica);
/* After the device had no memory left: it takes half as many samples at once from now on. False where that is none. It
 * calls no driver, which may hang: the replica's thread frees the present plans by replica_make_room(). */
bool replica_shrink(struct replica *replica);
void replica_make_room(struct replica *replica);
/* CL_OUT_OF_RESOURCES is what drivers say of a kernel that crashed or was stopped, and of memory that they allocate as
 * late as at the first launch. While a plan has not run yet, it is taken for a lack of memory, once for each replica.
 */
tutti_status replica_doubt(struct replica *replica, tutti_status status);
/* Whether it is a lost member (membership.h). */
bool replica_is_lost(const struct replica *replica);
/* The plan with this key, from the cache, or made. */
tutti_status replica_plan(struct replica *replica, struct plan_key key, struct cached_plan **cached);
/* Puts a plan that was made into the cache. */
struct cached_plan *replica_keep(struct replica *replica, struct plan *plan);
/* How a plan with this key is made. */
struct plan_options replica_options(struct replica *replica, struct plan_key key);
/* The same plan once more, outside of the cache, with the texts of its making. */
tutti_status replica_explain(struct replica *replica, struct plan_key key, struct plan **plan);
uint64_t replica_memory(const struct replica *replica); /* bytes on the device */

/* background.c: has what a part of `samples` needs made by a thread of its own; nothing is started where all is there.
 * Between two runs of the replica, by the trainer's thread, as are the others. */
tutti_status background_start(struct replica *replica, int64_t samples, bool alone);
bool background_is_done(struct replica *replica);
/* Waits for the end, no longer than making plans may take; its status. */
tutti_status background_wait(struct replica *replica);
/* A job: takes what was made into use. */
tutti_status background_adopt(struct replica *replica, void *unused);
/* Waits likewise and frees what was made, unless that hangs: why not. */
tutti_status background_free(struct replica *replica);
/* The same on all devices that have a part; a failure to start is the status of its background_wait(). *failed: the
 * first device that could not take what was made into use, or NULL. */
void background_start_all(struct tutti_trainer *trainer, const int64_t *parts, bool alone);
bool background_all_done(struct tutti_trainer *trainer);
tutti_status background_adopt_all(struct tutti_trainer *trainer, const int64_t *parts, struct replica **failed);

/* Reads the device's parameters, and the states where it has them. */
tutti_status replica_read(const struct replica *replica, const struct optimizer_arrays *to);

/* Jobs (run.c). */
tutti_status replica_run(struct replica *replica, void *work); /* struct replica_work */

/* prefetch.c, in this order: before the step's launches, room for the next step's samples; when they are enqueued,
 * these are sent, as soon as the step's own have been taken from where they were; at the end it is waited for. None of
 * it fails the step. */
void prefetch_prepare(struct replica *replica, const struct replica_work *work);
void prefetch_send(struct replica *replica, const struct replica_work *work, cl_event samples_taken);
void prefetch_wait(struct replica *replica, const struct replica_work *work);
/* In the next step: whether its samples are there, and enqueues the copy of a feed to where the plan reads it. */
bool prefetch_has(const struct replica *replica, uint64_t number, int64_t first, int64_t samples);
tutti_status prefetch_take(struct replica *replica, const struct plan *plan, int feed, int64_t first, int64_t samples);
void prefetch_free(struct replica *replica);

/* Forgets the gradients that arrived, and which version of the parameters a device has where the exchange may have
 * written it; between two runs, by the trainer's thread, which never calls a driver that may hang. Nothing of a device
 * that was given up is touched. */
void replica_forget(struct replica *replica);
/* Second set of gradients for micro-batches, and their launches. */
tutti_status replica_make_sum(struct replica *replica);

#endif
