/* The state of a training: its position, its rate, and the runs (fits and evaluations) that the caller may cancel. */
#ifndef PARALLEL_TRAINING_STATE_H
#define PARALLEL_TRAINING_STATE_H

#include "parallel/loss_scale.h"
#include "parallel/position.h"
#include "parallel/views.h"
#include "tutti.h"

#include <stdatomic.h>

struct tutti_trainer;

/* How far the training has come. */
struct training_state {
    uint64_t seed;
    struct position position;
    struct loss_scale loss_scale;
    bool scheduled; /* a running fit sets the rate of each step */
    float rate;
    bool resumed; /* the next fit goes on from `position` instead of beginning */
    bool in_fit;  /* a fit or a test of rates runs: nothing else may train or set the position */
    struct open_views views;
    int depth;      /* of nested runs: a callback of one may evaluate */
    atomic_int run; /* enum run_state */
};

/* State of a fit or an evaluation, including those that its callbacks make. tutti_cancel() before the first one
 * cancels that one; after one has ended, it does nothing. */
enum run_state { RUN_OPEN, RUN_CANCELLED, RUN_ENDED };
bool trainer_is_cancelled(const struct tutti_trainer *trainer); /* on this rank */
bool trainer_stops(const struct tutti_trainer *trainer);        /* all ranks have agreed on it */
void trainer_run_begin(struct tutti_trainer *trainer);
void trainer_run_end(struct tutti_trainer *trainer);

/* Checks that the program reads and writes no parameter in place, see tutti_view, by this trainer or by the one whose
 * parameters it reads. */
tutti_status trainer_check_views(const struct tutti_trainer *trainer);
tutti_status trainer_check_own_views(const struct tutti_trainer *trainer); /* by this trainer */

int64_t training_state_updates(const struct training_state *state); /* steps that the optimizer's states include */
float trainer_learning_rate(const struct tutti_trainer *trainer);   /* of the next step */

#endif
