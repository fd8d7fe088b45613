/* Inside run.c: a part of a batch that runs, and what it reads. */
#ifndef REPLICA_RUN_INPUTS_H
#define REPLICA_RUN_INPUTS_H

#include "plan/commands.h"
#include "replica/run.h"

struct run {
    struct replica *replica;
    struct replica_setup *setup; /* of the replica */
    struct replica_work *work;
    int64_t micro_batches, samples_each; /* samples_each: of all micro-batches but the last */
    struct arrays feeds;                 /* of this part: the caller's memory, the journal's or staging */
    struct arrays outputs;               /* of this part: the caller's memory or the replica's own */
    cl_mem borrowed[PLAN_MAX_FEEDS];     /* feeds that the micro-batch's launches read in place; else NULL */
    struct {
        int64_t number, offset, samples; /* offset: in this part */
    } micro_batch;                       /* the one at hand, and its plan */
    struct plan *plan;
    size_t parameter_writes; /* number of writes of parameters, which come first */
    size_t first_piece;      /* number of the first write of a piece */
    bool pieces;     /* parameters are sent in ranges (pieces), in parallel with launches that do not need them yet */
    bool prefetched; /* its samples are on the device */
    /* Events of a device with its own memory: the first micro-batch's samples, and the parameters that it needs
     * first, are on the device; the last launch is done. */
    cl_event begun, ended;
    double waited; /* seconds, for statistics of other devices */
    bool new_plan; /* a plan of this work has not run before */
};

/* Copies to the device, in the order of its launches. */
tutti_status run_write(struct replica *replica, cl_mem buffer, const void *data, size_t bytes);
/* On devices with their own memory: makes an event of what the queue has so far; the first call counts. It serves
 * times of copies, and prefetch_send(), which waits for `begun` before it overwrites the staging memory. */
tutti_status run_mark(const struct run *run, cl_event *event);

/* Sends parameters and states that the device lacks, or decides to send parameters in pieces. */
tutti_status run_upload_parameters(struct run *run);
/* Sends parameters by the exchange queue, in the order of the arena, in which forward usually needs them. Nothing on
 * the device uses them now. */
tutti_status run_send_pieces(struct run *run, const struct plan *plan);
/* Sets where the part's samples are read from. Devices with their own memory read samples from page-locked memory. So
 * do devices that share the host's, if they have a thread and the samples are the caller's: a device that hangs must
 * not read them, because the caller does not wait for it. Samples in the journal stay, so it may read these. */
tutti_status run_stage_samples(struct run *run);
void run_set_constants(struct run *run);
/* Sets the handlers of commands that copy to the device. pieces: the launches wait for parameters that are sent in
 * pieces. */
void run_choose_inputs(const struct run *run, bool pieces, command_handler **handlers);
/* Makes the plan read its own buffers again. If that fails, it is tried again before the plan's next run. */
void run_take_feeds_back(struct run *run);

#endif
