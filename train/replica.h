/* A replica: the network on one device. It has the device's copy of the parameters, plans for the numbers of samples
 * that occur, and, where there are several devices, a thread of its own. */
#ifndef TRAIN_REPLICA_H
#define TRAIN_REPLICA_H

#include "train/background.h"
#include "train/batches.h"
#include "train/device_update.h"
#include "train/gradients.h"
#include "train/parameter_store.h"
#include "train/plan_cache.h"
#include "train/prefetch.h"
#include "train/tally.h"
#include "train/uploads.h"
#include "train/worker.h"

struct tutti_trainer;

/* What was copied in one direction between host and device, and for how long, as the driver measures it; how much of
 * that the device computed as well. */
struct traffic {
    double bytes, seconds, beside;
};

/* What became of a replica's part of a batch. */
struct result {
    struct tally tally;
    bool not_finite; /* some gradient; a device that updates itself has updated nothing then */
    float norm;      /* of the gradients, where such a device clips them */
    double seconds;
    struct traffic sent, received;
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
    bool probe;            /* for its time alone: old parameters do, and results are thrown away */
    struct tally excluded; /* of the whole batch: labels that do not count */
    struct result result;
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
    float *numbers; /* statistics that are exchanged */
    size_t number_capacity;
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
/* The least samples that a device must take at once, so that a step has no more than MOST_RUNS micro-batches: there are
 * arrays with an element for each. */
enum { MOST_RUNS = 1 << 16 };
int64_t replica_least(const struct tutti_trainer *trainer);
bool replica_shrink(struct replica *replica);
void replica_make_room(struct replica *replica);
/* CL_OUT_OF_RESOURCES is what drivers say of a kernel that crashed or was stopped, and of memory that they allocate as
 * late as at the first launch. While a plan has not run yet, it is taken for a lack of memory, once for each replica.
 */
tutti_status replica_doubt(struct replica *replica, tutti_status status);
/* Whether it is a lost member (membership.h). */
bool replica_is_lost(const struct replica *replica);
/* A job: what it does next may take as long as a step with this many samples of the longest sequences. */
void replica_allow_step(struct replica *replica, int64_t samples);
/* The plan with this key, from the cache, or made. */
tutti_status replica_plan(struct replica *replica, struct plan_key key, struct cached_plan **cached);
/* Puts a plan that was made into the cache. */
struct cached_plan *replica_keep(struct replica *replica, struct plan *plan);
/* How a plan with this key is made. */
struct plan_options replica_options(struct replica *replica, struct plan_key key);
/* The same plan once more, outside of the cache, with the texts of its making. */
tutti_status replica_explain(struct replica *replica, struct plan_key key, struct plan **plan);
uint64_t replica_memory(const struct replica *replica); /* bytes on the device */

/* Reads the device's parameters, and the states where it has them. */
tutti_status replica_read(const struct replica *replica, const struct optimizer_arrays *to);

/* Jobs (run.c). */
tutti_status replica_run(struct replica *replica, void *work); /* struct replica_work */

/* Forgets the gradients that arrived, and which version of the parameters a device has where the exchange may have
 * written it; between two runs, by the trainer's thread, which never calls a driver that may hang. Nothing of a device
 * that was given up is touched. */
void replica_forget(struct replica *replica);
/* Second set of gradients for micro-batches, and their launches. */
tutti_status replica_make_sum(struct replica *replica);

#endif
