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

#define SCHEDULE_OPTIONS(s)                                                                                          \
    { .name = "schedule",                                                                                            \
        .kind = OPTION_TEXT,                                                                                         \
        .value = &(s).schedule,                                                                                      \
        .noun = "KIND",                                                                                              \
        .choices = schedule_names,                                                                                   \
        .help = "how the learning rate changes (default constant)" },                                                \
        { .name = "warmup",                                                                                          \
            .kind = OPTION_TEXT,                                                                                     \
            .value = &(s).warmup,                                                                                    \
            .noun = "N",                                                                                             \
            .help = "raise the learning rate linearly over the first N steps; Ne: N epochs" },                       \
        { .name = "step-size",                                                                                       \
            .kind = OPTION_INTEGER,                                                                                  \
            .value = &(s).step_size,                                                                                 \
            .noun = "N",                                                                                             \
            .low = 1,                                                                                                \
            .high = 1e9,                                                                                             \
            .given = &(s).step_size_given,                                                                           \
            .help = "epochs before step lowers the rate (default 30); without progress, before plateau does (10)" }, \
        { .name = "gamma",                                                                                           \
            .kind = OPTION_NUMBER,                                                                                   \
            .value = &(s).gamma,                                                                                     \
            .noun = "X",                                                                                             \
            .low = 1e-9,                                                                                             \
            .high = 0.999999,                                                                                        \
            .given = &(s).gamma_given,                                                                               \
            .help = "by what step and plateau multiply the rate (default 0.1)" },                                    \
        { .name = "clip",                                                                                            \
            .kind = OPTION_NUMBER,                                                                                   \
            .value = &(s).clip,                                                                                      \
            .noun = "X",                                                                                             \
            .low = 1e-30,                                                                                            \
            .high = 1e30,                                                                                            \
            .help = "scale gradients down where the norm of all of them together exceeds X" },                       \
        { .name = "ema",                                                                                             \
            .kind = OPTION_NUMBER,                                                                                   \
            .value = &(s).ema,                                                                                       \
            .noun = "D",                                                                                             \
            .low = 1e-9,                                                                                             \
            .high = 0.9999999,                                                                                       \
            .help = "test and save averages of the parameters that decay by D with each step, such as 0.999" },      \
        { .name = "patience",                                                                                        \
            .kind = OPTION_INTEGER,                                                                                  \
            .value = &(s).patience,                                                                                  \
            .noun = "N",                                                                                             \
            .low = 1,                                                                                                \
            .high = 1e9,                                                                                             \
            .help = "stop after N epochs without a better test result" },                                            \
        { .name = "save-best",                                                                                       \
            .kind = OPTION_FLAG,                                                                                     \
            .value = &(s).save_best,                                                                                 \
            .help = "also save the weights of the best epoch, as NAME.best.safetensors" },                           \
    {                                                                                                                \
        .name = "accumulate", .kind = OPTION_INTEGER, .value = &(s).accumulate, .noun = "N", .low = 1, .high = 1e6,  \
        .help = "make steps of N times the batch, whose gradients are computed batch by batch"                       \
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
