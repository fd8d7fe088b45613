/* The master copy of the parameters and of the optimizer's states, and where newer ones are. If devices exchange
 * gradients, the newest are on the host after each step; a sole replica keeps them until they are needed
 * elsewhere.
 *
 * Only the caller changes frozen parameters, so the host always has the newest. */
#ifndef PARALLEL_PARAMETER_STORE_H
#define PARALLEL_PARAMETER_STORE_H

#include "graph/network.h"
#include "replica/parameter_versions.h"

#include <pthread.h>

struct replica;
struct tutti_trainer;

/* Where the newest parameters are. The transitions are functions of parameter_store.c:
 *
 *   ON_HOST    parameters_commit(device): it has updated itself                ON_DEVICE
 *   ON_DEVICE  parameters_fetched(): they were copied                          ON_HOST
 *   ON_DEVICE  parameters_lose(): with the device                              LOST
 *   LOST       parameters_claim(): others replay its steps, see journal.c      ON_HOST */
enum newest { NEWEST_ON_HOST, NEWEST_ON_DEVICE, NEWEST_LOST };

/* A lock whose threads take turns, in the order in which they asked: a mutex alone would let one that locks again at
 * once go before those that sleep. */
struct turns {
    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t next;
    uint64_t tickets, served; /* given out; whose turn it is */
    pthread_t thread;         /* that has its turn, while `depth` is above 0 */
    int depth;                /* of nested calls */
};

struct parameter_store {
    const tutti_network *network;
    const struct optimizer *optimizer;
    enum newest newest;
    struct replica *holder;         /* the device that has them; else NULL */
    struct optimizer_arrays master; /* on the host; freed while the only device has newer ones */
    /* The next copy: results of a step in progress, if devices exchange gradients and no sums are kept; else none. */
    struct optimizer_arrays next;
    float *gradients; /* their sum over devices and ranks; NULL if it is not kept */
    float *frozen;
    uint64_t version, frozen_version; /* count changes */
    bool uses_ema;                    /* the master copy's trained parameters and their EMA are swapped */
    struct tutti_trainer *owner;      /* the trainer that changes them; NULL: it was freed */
    int users;                        /* the owner, and trainers that read them (tutti_training.parameters_of) */
    /* A device of a reader hangs and may come back and read: the present arrays are not freed, nor the frozen ones. */
    bool leaked, frozen_leaked;
    struct turns turns; /* a step of the owner, a forward pass of it or of a reader */
};

/* Makes a store with one user, its owner, or returns NULL. */
struct parameter_store *parameters_open(
    struct tutti_trainer *owner, const tutti_network *network, const struct optimizer *optimizer);
/* A reader begins to use it. Returns the store. */
struct parameter_store *parameters_share(struct parameter_store *store);
/* A user leaves. The owner's leaving frees the arrays, the last user's the store. Accepts NULL. */
void parameters_close(struct parameter_store *store, const struct tutti_trainer *user);
/* Instead, for a user that cannot be freed because a device hangs: nothing is freed. */
void parameters_abandon(struct parameter_store *store, const struct tutti_trainer *user);
struct tutti_trainer *parameters_owner(struct parameter_store *store);
void parameters_leak(struct parameter_store *store); /* the present arrays are never freed */
/* One thread at a time computes with the parameters, in turn. Calls nest. */
void parameters_lock(struct parameter_store *store);
void parameters_unlock(struct parameter_store *store);
/* Makes the host's arrays as a training begins. `exchanges`: devices exchange gradients; `sums`: summed gradients are
 * kept, and the update begins when all are there. */
tutti_status parameters_make(struct parameter_store *store, bool exchanges, bool sums);
/* Makes the optimizer's states, which the host does not have before the first step, and never without a loss; makes
 * the parameters after they were dropped. */
tutti_status parameters_make_states(struct parameter_store *store);
tutti_status parameters_make_parameters(struct parameter_store *store);
void parameters_drop(struct parameter_store *store); /* all but the frozen ones */

/* Makes arrays like those of the master copy. If there are no parameters in the result, the host has no memory. */
struct optimizer_arrays parameters_copy_new(const struct parameter_store *store);
void parameters_copy_free(struct optimizer_arrays *copy);
/* Swaps `copy` and the master copy. */
void parameters_swap(struct parameter_store *store, struct optimizer_arrays *copy);

/* Return the arrays, which do not move until the next step. */
struct optimizer_arrays parameters_master(const struct parameter_store *store);
struct optimizer_arrays parameters_next(const struct parameter_store *store);
struct parameter_arenas parameters_arenas(const struct parameter_store *store); /* for parameter_in() */
float *parameters_gradients(const struct parameter_store *store);

/* If there is an EMA of the parameters (optimizer.h), and the newest are on the host: makes the master copy's
 * parameters the EMA (`use`), which is evaluated and saved, or the trained ones. The EMA begins as the parameters, and
 * begins again where the caller sets these. */
void parameters_use_ema(struct parameter_store *store, bool use);
bool parameters_are_ema(const struct parameter_store *store);
void parameters_begin_ema(struct parameter_store *store, int64_t first, int64_t count);

struct replica *parameters_holder(const struct parameter_store *store); /* NULL: not a device */
/* Transitions. After an update or an average, declares where the newest parameters are (NULL: on the host), and counts
 * a version. adopt_next: the step wrote the next copy, which becomes the master copy. */
void parameters_commit(struct parameter_store *store, struct replica *holder, bool adopt_next);
void parameters_fetched(struct parameter_store *store);
void parameters_lose(struct parameter_store *store, const struct replica *replica); /* if it is the holder */
bool parameters_are_lost(const struct parameter_store *store);
bool parameters_claim(struct parameter_store *store);   /* whether there is something to replay */
void parameters_changed(struct parameter_store *store); /* the caller has changed the host's: devices get all again */

/* Returns what a replica gets before its work; returns the version of the newest parameters. */
struct parameter_snapshot parameters_snapshot(const struct parameter_store *store, const struct replica *replica);
uint64_t parameters_version(const struct parameter_store *store);

#endif
