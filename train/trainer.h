/* The trainer: the network on all devices, and how far its training has come. */
#ifndef TRAIN_TRAINER_H
#define TRAIN_TRAINER_H

#include "train/balance.h"
#include "train/batches.h"
#include "train/checkpoint.h"
#include "train/loss_scale.h"
#include "train/membership.h"
#include "train/optimizer.h"
#include "train/replica.h"
#include "train/replica_setup.h"
#include "train/shares.h"
#include "train/sync_devices.h"
#include "train/world.h"
#include "tutti_experts.h"

#include <stdatomic.h>

/* Options of the caller, and what follows from them. */
struct trainer_options {
    bool exact, tune;
    tutti_precision precision;
    tutti_expert_options experts;
    void (*building)(void *user, int built, int total); /* of struct tutti_training */
    void *building_user;
    int64_t batch, micro_batch; /* micro_batch 0: no limit but memory */
    bool batch_given;           /* by the caller, not the default */
    bool automatic;             /* shares by speed */
    /* --sync-batchnorm, and it concerns something in the network: no device may split its part into micro-batches,
     * and devices that share a batch synchronise their statistics. */
    bool whole_batch;
};

/* How far the training has come. */
struct course {
    uint64_t seed;
    struct position position;
    struct loss_scale loss_scale;
    bool scheduled; /* a running fit sets the rate of each step */
    float rate;
    bool resumed;   /* the next fit goes on from `position` instead of beginning */
    bool moving;    /* a fit or a test of rates runs: nothing else may train or set the position */
    int depth;      /* of nested runs: a callback of one may evaluate */
    atomic_int run; /* enum run_state */
};

/* The last step. */
struct last_step {
    bool not_finite; /* some of its summed gradients are not finite */
    float largest;   /* largest magnitude of its gradients, on this rank */
    bool stepped;    /* there was a step, whose gradients can be read */
    float unscale;   /* factor of its gradients */
    float norm;      /* of its gradients, if they are clipped; else NaN */
    int64_t length;  /* of its sequences; before the first step, the longest. 0: the network has none */
};

/* Announced batches, which devices with their own memory can get before their step begins: that of the step which
 * comes now, and that of the one after it. */
struct ahead {
    struct batch expected, next;
    uint64_t announced; /* how many */
};

struct trainer_report {
    int64_t steps; /* since it was reset */
    double seconds;
    double waited;     /* seconds that steps waited for their samples */
    struct tally told; /* of the last step or evaluation, of `told_samples` samples; 0: there was none */
    int64_t told_samples;
};

struct tutti_trainer {
    tutti_network *network;
    struct tutti_runtime *runtime;
    struct trainer_options options;
    struct objective objective;
    bool trains;               /* it has a loss */
    struct feed_list feeds;    /* what a step reads */
    struct array_list outputs; /* what the caller can fetch */
    struct optimizer optimizer;
    struct parameter_store store;
    struct metadata metadata;
    struct course course;
    struct last_step last;
    struct ahead ahead;
    struct trainer_report report;

    int count; /* of devices */
    struct membership members;
    struct replica_setup setup; /* which all replicas have in common */
    struct replica *replicas;
    struct replica_work *works; /* one for each replica */
    struct share *shares;       /* given by the caller, or by `balance` */
    int64_t *parts;             /* of the batch at hand */
    struct watchdog watchdog;   /* over the replicas' workers */
    struct sync_devices sync_devices;

    struct world *world; /* trainers of other ranks; NULL: there are none */
    int64_t part;        /* this rank's initial part of a batch */
    /* Several devices or ranks: they exchange gradients, and the host updates the parameters (exchange.c). False: the
     * only device updates itself; so does the only one that automatic shares leave (rebalance.c). */
    bool exchange;
    struct thread_pool *pool;
    struct balance balance;
    struct rebalance *rebalance;
    struct journal *journal; /* of the one device that trains, while there are others */
    bool repeats;            /* the present step is one of the journal's */
};

/* State of a fit or an evaluation, including those that its callbacks make. tutti_cancel() before the first one
 * cancels that one; after one has ended, it does nothing. */
enum run_state { RUN_OPEN, RUN_CANCELLED, RUN_ENDED };
bool trainer_is_cancelled(const tutti_trainer *trainer); /* on this rank */
bool trainer_stops(const tutti_trainer *trainer);        /* all ranks have agreed on it */
void trainer_run_begin(tutti_trainer *trainer);
void trainer_run_end(tutti_trainer *trainer);

/* For public calls: checks that there is a trainer, which has a loss if `trains`, and at least one sample. */
tutti_status trainer_check(const tutti_trainer *trainer, bool trains, int64_t samples);
/* Checks that the call is not made by a callback of a fit of this trainer. */
tutti_status trainer_check_still(const tutti_trainer *trainer, const char *call);
/* Call it before all ranks do something together, with a failure if this rank cannot. The other ranks, which wait for
 * it in the same call, then get the failure. */
tutti_status trainer_begin_call(tutti_trainer *trainer, tutti_status status);

/* objective.c: reads outputs and losses; returns how many nodes use each parameter (struct optimizer), to be freed by
 * free(), NULL without memory. */
tutti_status trainer_read_objective(tutti_trainer *trainer, tutti_tensor output, const tutti_training *training);
int *trainer_count_uses(const tutti_trainer *trainer);
/* Refuses a loss that depends on no parameter, and warns of parameters on which it does not depend. */
tutti_status trainer_check_reached(const tutti_trainer *trainer);

/* Makes the host's arenas the newest. */
tutti_status trainer_fetch(tutti_trainer *trainer);
/* If parameters are averaged: shows the averages (`average`), to be evaluated or saved, or the trained parameters. */
tutti_status trainer_show(tutti_trainer *trainer, bool average);
/* division.c: divides a batch over the replicas that are not lost. */
tutti_status trainer_divide(const tutti_trainer *trainer, enum plan_mode mode, int64_t samples, int64_t *parts);
/* Does one step. *sums: its losses and correct samples, of all ranks. `read`: whether this rank's batch could be
 * read; if not, the others get the failure. */
tutti_status trainer_step(
    tutti_trainer *trainer, const struct vote *read, const struct batch *batch, struct sums *sums);
/* If ranks average parameters: averages what is not averaged yet. Call it before anything that needs the
 * parameters. */
tutti_status trainer_settle(tutti_trainer *trainer, struct sums *sums);
/* Announces the batch after that of the next trainer_step(). It must not change until its own step, or another one in
 * its place, has ended. */
void trainer_announce(tutti_trainer *trainer, const struct batch *next);
/* Ends announcements: their arrays may have other contents by now. */
void trainer_forget_announced(tutti_trainer *trainer);
/* Gives the training as a checkpoint, with the newest values on the host. `average`, for files: if parameters are
 * averaged, the weights are the averages, and the trained parameters are a state. Otherwise the weights are the
 * trained parameters. */
tutti_status trainer_checkpoint(tutti_trainer *trainer, bool average, struct checkpoint *checkpoint);
/* Does what tutti_resume() does. */
tutti_status trainer_resume(tutti_trainer *trainer, const char *name);
/* Does what tutti_save() does, but without the other ranks: saves this rank's parameters and states if it is the one
 * that writes. */
tutti_status trainer_save(tutti_trainer *trainer, const char *name);
bool trainer_writes(const tutti_trainer *trainer); /* rank 0 has the files */
/* step.c: runs the work on this rank's devices until it succeeds, and adds up their results. */
tutti_status trainer_run(tutti_trainer *trainer, const struct replica_work *work, struct sums *sums);
/* Call it then, before the check whether the step may update: computes the norm of its gradients if they are clipped.
 * If it is not finite, the step updates nothing. */
tutti_status trainer_measure(tutti_trainer *trainer, const struct step_constants *constants);
/* Returns the next batch, if it will be divided like that of the work. */
struct batch trainer_next(const tutti_trainer *trainer, const struct replica_work *work);
/* After all parts of a training step have succeeded: makes the parameters those after it. */
void trainer_update(tutti_trainer *trainer, const struct step_constants *constants);
/* Returns whether the exchange keeps summed gradients, from which trainer_update() updates: with several ranks, or to
 * clip them. */
bool trainer_keeps_sums(const tutti_trainer *trainer);
/* tries.c: does what trainer_run() does on several devices; on all ranks, whose gradients are summed while they
 * arrive. If one rank has to repeat its part, all sum again. `ready`: whether this rank can do its part. */
tutti_status tries_run(tutti_trainer *trainer, const struct replica_work *work, struct sums *sums);
tutti_status tries_run_ranks(
    tutti_trainer *trainer, const struct vote *ready, const struct replica_work *work, struct sums *sums);
/* Returns the replica that does the whole step and updates itself; NULL if gradients are exchanged. */
struct replica *trainer_alone(tutti_trainer *trainer);
/* redo.c: repeats the steps of a device that trained alone and was lost since. They are not counted in `position`. A
 * failure leaves the rest in the journal: nothing is saved or trained from these parameters before they are repeated.
 */
tutti_status redo_lost(tutti_trainer *trainer);
/* Evaluation or inference of any number of samples. */
tutti_status trainer_forward(tutti_trainer *trainer, enum plan_mode mode, const struct arrays *feeds, int64_t samples,
    struct sums *sums, const struct arrays *outputs);
/* Means from sums. *metrics may be NULL; `tally` is kept for tutti_loss_metrics(). */
void metrics_set(const tutti_trainer *trainer, const struct tally *tally, int64_t samples, tutti_metrics *metrics);
void metrics_tell(tutti_trainer *trainer, const struct tally *tally, int64_t samples, tutti_metrics *metrics);

/* rebalance.c: automatic shares. rebalance_open() is called after the replicas are made, rebalance_close() after they
 * were freed. rebalance_before_step() adopts a division whose plans are ready; rebalance_after_step() is told that the
 * step took `seconds`. rebalance_lost() is called before a batch is divided, because replicas may be lost. */
tutti_status rebalance_open(tutti_trainer *trainer);
void rebalance_close(tutti_trainer *trainer);
tutti_status rebalance_before_step(tutti_trainer *trainer, int64_t samples);
tutti_status rebalance_after_step(tutti_trainer *trainer, const struct replica_work *work, double seconds);
tutti_status rebalance_lost(tutti_trainer *trainer);
/* Starts building the plans for balance.wanted in the background; returns whether such plans are being built. */
void rebalance_start(tutti_trainer *trainer);
bool rebalance_is_changing(const tutti_trainer *trainer);
/* The only replica that trains, which updates itself; NULL if gradients are exchanged. */
struct replica *rebalance_alone(tutti_trainer *trainer);

/* journal.c: what a device that trains alone has learnt is not lost with it.
 * - journal_take() copies the samples of a step before such a device runs it; journal_take_ahead() copies those of the
 *   next step meanwhile, if they are known.
 * - journal_note() is called after each step, which took `seconds`.
 * - journal_claim() returns the number of steps to repeat because that device is lost, and the caller promises to
 *   repeat them: each is journal_next(), ended by journal_note(). A caller that fails calls journal_return() with the
 *   number that is left: until they are repeated, the parameters are those of an older step than
 * trainer->course.position.
 * - journal_copy() makes the host's parameters the newest, if the device works. */
tutti_status journal_open(tutti_trainer *trainer);
void journal_free(tutti_trainer *trainer);
tutti_status journal_take(tutti_trainer *trainer, struct replica_work *work);
void journal_take_ahead(tutti_trainer *trainer);
tutti_status journal_note(tutti_trainer *trainer, const struct replica_work *work, double seconds);
size_t journal_claim(tutti_trainer *trainer);
void journal_return(tutti_trainer *trainer, size_t left);
struct replica_work journal_next(const tutti_trainer *trainer);
tutti_status journal_copy(tutti_trainer *trainer);

/* faults.c. Handles a replica's failure. Returns TUTTI_OK if others can do its work; the last device is never given
 * up, unless it hangs. */
tutti_status trainer_lose(tutti_trainer *trainer, struct replica *replica, tutti_status status);
/* Handles a failure like trainer_lose(), but a device whose memory is full goes on with fewer samples at once. */
tutti_status trainer_shrink_or_lose(tutti_trainer *trainer, struct replica *replica, tutti_status status);
/* For struct replica_setup: returns whether the replica with this number is lost (membership.h). */
bool trainer_has_lost(const void *trainer, int replica);
/* Returns whether a failure is a device's, not the caller's or the host's. */
bool is_device_fault(tutti_status status);
/* After a training step in which no device failed: votes whether its numbers can be trusted, or it is repeated
 * without some of the devices. */
struct vote faults_check(tutti_trainer *trainer);
/* Returns whether a device that hangs may still read samples, which are then never freed. */
bool trainer_may_be_read(const tutti_trainer *trainer);

/* exchange.c: sums the replicas' gradients while they arrive, block by block, and updates the next parameters and
 * states. With other ranks, puts the sums into world->leaving.own instead. Returns when all replicas are done. */
enum { EXCHANGE_BLOCK = 1 << 16 }; /* floats: what a thread takes at once */
tutti_status exchange_run(tutti_trainer *trainer, const struct step_constants *constants);
/* After the step has succeeded: adopts the next parameters and states as the newest of trainer->store. */
void exchange_adopt(tutti_trainer *trainer);
bool exchange_not_finite(const float *values, int64_t count); /* any of them */

#endif
