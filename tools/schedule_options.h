/* What steers a training: options of the schedule, clipping, averages, stopping and accumulation. */
#ifndef TOOLS_SCHEDULE_OPTIONS_H
#define TOOLS_SCHEDULE_OPTIONS_H

#include "tools/options.h"
#include "tutti.h"

struct schedule_options {
    tutti_schedule options;
    bool kind_given;
    const char *warmup;
    int64_t accumulate;
};

extern const char *const schedule_names[];

/* Lines of a table of options, over a struct schedule_options, a tutti_fitting and a tutti_training. */
#define SCHEDULE_OPTIONS(s, fitting, training)                                                                        \
    { "schedule", OPTION((s).options.kind), "KIND",                                                                   \
        "how the learning rate changes (default constant; for tables cosine)", .choices = schedule_names,             \
        .given = &(s).kind_given },                                                                                   \
        { "warmup", OPTION((s).warmup), "N",                                                                          \
            "raise the learning rate linearly over the first N steps; Ne: N epochs" },                                \
        { "step-size", OPTION((s).options.step_size), "N",                                                            \
            "epochs before step lowers the rate (default 30); without progress, before plateau does (10)", 1, 1e9 },  \
        { "gamma", OPTION((s).options.factor), "X", "by what step and plateau multiply the rate (default 0.1)", 1e-9, \
            0.999999 },                                                                                               \
        { "clip", OPTION((training).clip_norm), "X",                                                                  \
            "scale gradients down where the norm of all of them together exceeds X", 1e-30, 1e30 },                   \
        { "ema", OPTION((training).ema_decay), "D",                                                                   \
            "test and save averages of the parameters that decay by D with each step, such as 0.999", 1e-9,           \
            0.9999999 },                                                                                              \
        { "patience", OPTION((fitting).patience), "N", "stop after N epochs without a better test result", 1, 1e9 },  \
        { "save-best", OPTION((fitting).save_best), NULL,                                                             \
            "also save the weights of the best epoch, as NAME.best.safetensors" },                                    \
    {                                                                                                                 \
        "accumulate", OPTION((s).accumulate), "N",                                                                    \
            "make steps of N times the batch, whose gradients are computed batch by batch", 1, 1e6                    \
    }

/* Checks that the options fit each other, and sets fitting->schedule to `options` if they ask for one. `saved`: there
 * is a name to save to. Returns an exit status. */
int schedule_check(struct schedule_options *options, tutti_fitting *fitting, bool saved);
/* Applies --accumulate: sets the batch to that of a step, and the micro-batch to what is computed at once. */
int schedule_accumulate(const struct schedule_options *options, int64_t samples, tutti_training *training);
/* Reports on standard error if patience ended the training before its epochs. */
void schedule_report(const tutti_fitting *fitting, const tutti_progress *last);

#endif
