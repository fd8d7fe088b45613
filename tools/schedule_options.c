#include "tools/schedule_options.h"

#include <stdio.h>

/* In the order of tutti_schedule_kind. */
const char *const schedule_names[] = { "constant", "cosine", "step", "one-cycle", "plateau", NULL };

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

int schedule_check(struct schedule_options *options, tutti_fitting *fitting, bool saved)
{
    tutti_schedule *schedule = &options->options;
    const bool plateau = schedule->kind == TUTTI_SCHEDULE_PLATEAU;
    if (!read_warmup(options->warmup, &schedule->warmup_steps, &schedule->warmup_epochs))
        return wrong_use(
            "train", "--warmup %s: give a number of steps, or of epochs with an e, such as 200 or 5e", options->warmup);
    if ((schedule->step_size || schedule->factor != 0) && schedule->kind != TUTTI_SCHEDULE_STEP && !plateau)
        return wrong_use("train", "--step-size and --gamma need --schedule step or plateau");
    if (fitting->save_best && !saved) return wrong_use("train", "--save-best needs a name: give --save NAME");
    if (plateau) {
        schedule->patience = schedule->step_size;
        schedule->step_size = 0;
    }
    if (schedule->kind != TUTTI_SCHEDULE_CONSTANT || options->warmup) fitting->schedule = schedule;
    return EXIT_DONE;
}

int schedule_accumulate(const struct schedule_options *options, int64_t samples, tutti_training *training)
{
    int64_t *batch = &training->batch, *micro_batch = &training->micro_batch;
    if (options->accumulate <= 1) return EXIT_DONE;
    if (training->sync_batchnorm)
        return wrong_use("train", "--sync-batchnorm needs all of a batch at once: leave --accumulate out");
    if (*batch > samples / options->accumulate)
        return wrong_use("train", "--accumulate %lld makes steps of %lld samples, but there are %lld: lower it",
            (long long)options->accumulate, (long long)(*batch * options->accumulate), (long long)samples);
    if (*micro_batch == 0 || *micro_batch > *batch) *micro_batch = *batch;
    *batch *= options->accumulate;
    return EXIT_DONE;
}

void schedule_report(const tutti_fitting *fitting, const tutti_progress *last)
{
    if (fitting->patience > 0 && last->end_of_epoch && last->epoch < last->epochs)
        fprintf(stderr, "stopped after epoch %lld of %lld: no better result for %lld epochs\n", (long long)last->epoch,
            (long long)last->epochs, (long long)fitting->patience);
}
