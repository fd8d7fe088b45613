/* What the devices did, and why their plans are as they are. */
#include "base/memory.h"
#include "base/options.h"
#include "base/text.h"
#include "parallel/division.h"
#include "parallel/ranks_division.h"
#include "parallel/trainer.h"
#include "runtime/forked.h"
#include "train/checks.h"
#include "tutti_inspect.h"

#include <stdlib.h>

tutti_status tutti_report(const tutti_trainer *trainer, int position, tutti_device_report *report)
{
    tutti_status status = TUTTI_OK;
    int64_t *parts = NULL, first, samples;
    if (!trainer || !report) FAIL(TUTTI_INVALID, "the trainer or the report is NULL: pass both");
    if (position < 0 || position >= trainer->count)
        FAIL(TUTTI_INVALID, "device %d does not exist: the trainer has %d, counted from 0", position, trainer->count);
    const struct replica *replica = &trainer->replicas[position];
    const struct replica_report *all = &replica->report;
    *report = (tutti_device_report) { .index = replica->device->index,
        .name = replica->device->can.name,
        .samples = all->samples,
        .busy_s = all->busy_s,
        .samples_per_s = all->busy_s > 0 ? (double)all->samples / all->busy_s : 0,
        .memory_bytes = replica_memory(replica),
        .build_s = all->build_s };
    parts = memory_new((size_t)trainer->count, sizeof(*parts));
    if (!parts) {
        status = TUTTI_NO_MEMORY;
        goto done;
    }
    samples = trainer->options.batch;
    if (trainer->ranks)
        TRY(ranks_own_samples(trainer->ranks, trainer->state.position.steps, trainer->options.batch, &first, &samples));
    TRY(divide_over_devices(trainer, PLAN_TRAIN, samples, parts));
    report->share = parts[position];
done:
    free(parts);
    return status;
}

tutti_status tutti_report_times(const tutti_trainer *trainer, int position, tutti_device_times *times)
{
    if (!trainer || !times) return fail(TUTTI_INVALID, "the trainer or the times are NULL: pass both");
    if (position < 0 || position >= trainer->count)
        return fail(
            TUTTI_INVALID, "device %d does not exist: the trainer has %d, counted from 0", position, trainer->count);
    const struct replica_report *all = &trainer->replicas[position].report;
    tutti_device_times known = { .steps = trainer->report.steps,
        .step_s = trainer->report.seconds,
        .compute_s = all->compute_s,
        .transfer_s = all->transfer_s,
        .idle_s = all->idle_s,
        .data_s = trainer->report.waited,
        .sent_bytes = all->sent.bytes,
        .sent_s = all->sent.seconds,
        .received_bytes = all->received.bytes,
        .received_s = all->received.seconds,
        .sent_overlapped_s = all->sent.overlapped,
        .received_overlapped_s = all->received.overlapped,
        .automatic = trainer->options.automatic,
        .settled = !trainer->options.automatic || trainer->balance.settled };
    if (trainer->options.automatic && trainer->balance.parts[position] == 0) {
        known.with_s = trainer->balance.devices[position].with;
        known.without_s = trainer->balance.devices[position].without;
    }
    return RESULT_WRITE(times, &known, tutti_device_times);
}

void tutti_report_reset(tutti_trainer *trainer)
{
    if (!trainer) return;
    trainer->report.steps = 0;
    trainer->report.seconds = 0;
    trainer->report.waited = 0;
    for (int i = 0; i < trainer->count; i++) {
        struct replica_report *report = &trainer->replicas[i].report;
        *report = (struct replica_report) { .build_s = report->build_s };
    }
}

/* For a job of the replica: makes its plan for the longest sequences again, with the texts that are not kept
 * otherwise. */
struct explanation {
    int64_t samples;
    bool passes;
    char *text;
};

static tutti_status explain(struct replica *replica, void *argument)
{
    struct explanation *explanation = argument;
    const struct plan_key key = { replica->setup->trains ? PLAN_TRAIN : PLAN_INFER,
        { explanation->samples, replica->setup->longest } };
    struct plan *plan = NULL;
    const tutti_status status = replica_explain(replica, key, &plan);
    if (status != TUTTI_OK) return status;
    explanation->text = explanation->passes ? plan->explanation.passes : plan->explanation.choices;
    *(explanation->passes ? &plan->explanation.passes : &plan->explanation.choices) = NULL;
    plan_free(plan);
    return TUTTI_OK;
}

char *tutti_explain(tutti_trainer *trainer, int position, bool passes)
{
    if (!trainer || position < 0 || position >= trainer->count) {
        fail(TUTTI_INVALID, "device %d cannot be explained: the trainer is NULL, or the device does not exist",
            position);
        return NULL;
    }
    if (forked_check() != TUTTI_OK || trainer_check_views(trainer) != TUTTI_OK) return NULL;
    struct replica *replica = &trainer->replicas[position];
    if (replica_is_lost(replica)) {
        fail(TUTTI_DEVICE_LOST, "device %d, '%s', is lost", replica->device->index, replica->device->can.name);
        return NULL;
    }
    tutti_device_report report;
    if (tutti_report(trainer, position, &report) != TUTTI_OK) return NULL;
    struct explanation *explanation = memory_new(1, sizeof(*explanation));
    if (!explanation) return NULL;
    explanation->passes = passes;
    explanation->samples = report.share > 0 ? report.share : trainer->options.batch;
    if (explanation->samples > replica->capacity) explanation->samples = replica->capacity;
    worker_start(&replica->worker, explain, explanation);
    const tutti_status status = worker_wait(&replica->worker);
    if (worker_is_abandoned(&replica->worker)) return NULL; /* it may still be written to */
    char *text = status == TUTTI_OK && !explanation->text ? memory_copy_text("") : explanation->text;
    free(explanation);
    return text;
}
