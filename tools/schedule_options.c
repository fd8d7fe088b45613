#include "tools/schedule_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In the order of tutti_schedule_kind, from COSINE on. */
const char *const schedule_names[] = { "cosine", "step", "one-cycle", "plateau", NULL };

static tutti_schedule_kind kind_of(const struct schedule_options *options)
{
    for (int i = 0; options->schedule && schedule_names[i]; i++)
        if (!strcmp(options->schedule, schedule_names[i])) return (tutti_schedule_kind)(TUTTI_SCHEDULE_COSINE + i);
    return TUTTI_SCHEDULE_CONSTANT;
}

/* "200" or "5e". */
static bool read_warmup(const char *text, int64_t *steps, int64_t *epochs)
{
    enum { LARGEST = 1000000000 };
    int64_t number = 0;
    *steps = *epochs = 0;
    if (!text) return true;
    const char *c = text;
    for (; *c >= '0' && *c <= '9' && number <= LARGEST; c++) number = 10 * number + (*c - '0');
    const bool by_epochs = *c == 'e';
    if (c == text || c[by_epochs] || number < 1 || number > LARGEST) return false;
    *(by_epochs ? epochs : steps) = number;
    return true;
}

int schedule_check(const struct schedule_options *options, bool saved)
{
    int64_t steps, epochs;
    const tutti_schedule_kind kind = kind_of(options);
    if (!read_warmup(options->warmup, &steps, &epochs))
        return wrong_use(
            "train", "--warmup %s: give a number of steps, or of epochs with an e, such as 200 or 5e", options->warmup);
    if ((options->step_size_given || options->gamma_given) && kind != TUTTI_SCHEDULE_STEP &&
        kind != TUTTI_SCHEDULE_PLATEAU)
        return wrong_use("train", "--step-size and --gamma need --schedule step or plateau");
    if (options->save_best && !saved) return wrong_use("train", "--save-best needs a name: give --save NAME");
    return EXIT_DONE;
}

int schedule_accumulate(
    const struct schedule_options *options, bool sync_batchnorm, int64_t samples, int64_t *batch, int64_t *micro_batch)
{
    if (options->accumulate <= 1) return EXIT_DONE;
    if (sync_batchnorm)
        return wrong_use("train", "--sync-batchnorm needs all of a batch at once: leave --accumulate out");
    if (*batch > samples / options->accumulate)
        return wrong_use("train", "--accumulate %lld makes steps of %lld samples, but there are %lld: lower it",
            (long long)options->accumulate, (long long)(*batch * options->accumulate), (long long)samples);
    if (*micro_batch == 0 || *micro_batch > *batch) *micro_batch = *batch;
    *batch *= options->accumulate;
    return EXIT_DONE;
}

void schedule_training(const struct schedule_options *options, tutti_training *training)
{
    training->clip_norm = (float)options->clip;
    training->ema_decay = (float)options->ema;
}

void schedule_fitting(
    const struct schedule_options *options, bool by_steps, tutti_schedule *schedule, tutti_fitting *fitting)
{
    *schedule = (tutti_schedule) {
        .kind = kind_of(options), .steps = by_steps ? TUTTI_SCHEDULE_CALL : 0, .factor = (float)options->gamma
    };
    (void)read_warmup(options->warmup, &schedule->warmup_steps, &schedule->warmup_epochs);
    *(schedule->kind == TUTTI_SCHEDULE_PLATEAU ? &schedule->patience : &schedule->step_size) = options->step_size;
    if (options->schedule || options->warmup) fitting->schedule = schedule;
    fitting->patience = options->patience;
    fitting->save_best = options->save_best;
}

void schedule_report(const struct schedule_options *options, const tutti_progress *last)
{
    if (options->patience > 0 && last->end_of_epoch && last->epoch < last->epochs)
        fprintf(stderr, "stopped after epoch %lld of %lld: no better result for %lld epochs\n", (long long)last->epoch,
            (long long)last->epochs, (long long)options->patience);
}
