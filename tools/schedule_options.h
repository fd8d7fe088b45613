/* What steers a training: options of the schedule, clipping, averages, stopping and accumulation. */
#ifndef TOOLS_SCHEDULE_OPTIONS_H
#define TOOLS_SCHEDULE_OPTIONS_H

#include "tools/options.h"
#include "tutti.h"

struct schedule_options {
    const char *schedule, *warmup;
    int64_t step_size, patience, accumulate;
    double gamma, clip, ema;
    bool save_best, step_size_given, gamma_given;
};

extern const char *const schedule_names[];

#define SCHEDULE_OPTIONS(s)                                                                                            \
    { "schedule", OPTION((s).schedule), "KIND", "how the learning rate changes (default constant)",                    \
        .choices = schedule_names },                                                                                   \
        { "warmup", OPTION((s).warmup), "N",                                                                           \
            "raise the learning rate linearly over the first N steps; Ne: N epochs" },                                 \
        { "step-size", OPTION((s).step_size), "N",                                                                     \
            "epochs before step lowers the rate (default 30); without progress, before plateau does (10)", 1, 1e9,     \
            .given = &(s).step_size_given },                                                                           \
        { "gamma", OPTION((s).gamma), "X", "by what step and plateau multiply the rate (default 0.1)", 1e-9, 0.999999, \
            .given = &(s).gamma_given },                                                                               \
        { "clip", OPTION((s).clip), "X", "scale gradients down where the norm of all of them together exceeds X",      \
            1e-30, 1e30 },                                                                                             \
        { "ema", OPTION((s).ema), "D",                                                                                 \
            "test and save averages of the parameters that decay by D with each step, such as 0.999", 1e-9,            \
            0.9999999 },                                                                                               \
        { "patience", OPTION((s).patience), "N", "stop after N epochs without a better test result", 1, 1e9 },         \
        { "save-best", OPTION((s).save_best), NULL,                                                                    \
            "also save the weights of the best epoch, as NAME.best.safetensors" },                                     \
    {                                                                                                                  \
        "accumulate", OPTION((s).accumulate), "N",                                                                     \
            "make steps of N times the batch, whose gradients are computed batch by batch", 1, 1e6                     \
    }

/* Checks that the options fit each other. `saved`: there is a name to save to. Returns an exit status. */
int schedule_check(const struct schedule_options *options, bool saved);
/* Applies --accumulate: sets *batch to that of a step, and *micro_batch to what is computed at once. */
int schedule_accumulate(
    const struct schedule_options *options, bool sync_batchnorm, int64_t samples, int64_t *batch, int64_t *micro_batch);
void schedule_training(const struct schedule_options *options, tutti_training *training);
/* Fills `fitting`; the schedule is the caller's. `by_steps`: fitting->steps end the training, not its epochs. */
void schedule_fitting(
    const struct schedule_options *options, bool by_steps, tutti_schedule *schedule, tutti_fitting *fitting);
/* Reports on standard error if patience ended the training before its epochs. */
void schedule_report(const struct schedule_options *options, const tutti_progress *last);

#endif
