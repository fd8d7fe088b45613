/* A copy of a training in memory: see include/tutti_finetune.h. */
#include "base/memory.h"
#include "graph/parameter_storage.h"
#include "parallel/newest.h"
#include "parallel/ranks_notes.h"
#include "parallel/step.h"
#include "parallel/trainer.h"
#include "runtime/forked.h"
#include "train/checks.h"
#include "train/parameters.h"
#include "tutti_finetune.h"

#include <stdlib.h>
#include <string.h>

/* A parameter or running statistic. */
struct kept {
    char *name;
    int64_t elements;
    bool trained;
    float *floats; /* its values, and if it trained, the states of the optimizer after them */
};

struct tutti_snapshot {
    struct kept *kept;
    size_t count;
    struct position position;
    struct loss_scale loss_scale;
    uint64_t seed;
    struct optimizer optimizer; /* identifies the states; its pointers are not kept */
    int states;
};

static int states_of(const tutti_trainer *trainer)
{
    return trainer->options.trains ? optimizer_states(&trainer->optimizer) : 0;
}

static tutti_status keep(
    const struct checkpoint *checkpoint, const struct parameter *parameter, int states, struct kept *kept)
{
    const size_t count = (size_t)parameter->elements;
    kept->elements = parameter->elements;
    kept->trained = parameter->kind == PARAMETER_TRAINED;
    kept->name = memory_copy_text(parameter->name);
    kept->floats = memory_new(count, (size_t)(1 + (kept->trained ? states : 0)) * sizeof(float));
    if (!kept->name || !kept->floats) return TUTTI_NO_MEMORY;
    parameter_get(parameter, &checkpoint->weights, kept->floats);
    for (int s = 0; kept->trained && s < states; s++)
        memcpy(
            kept->floats + (size_t)(1 + s) * count, checkpoint->states[s] + parameter->offset, count * sizeof(float));
    return TUTTI_OK;
}

static tutti_snapshot *take(tutti_trainer *trainer)
{
    tutti_status status;
    struct metric_totals totals;
    struct checkpoint checkpoint;
    tutti_snapshot *snapshot = NULL;
    if (!trainer) FAIL(TUTTI_INVALID, "the trainer is NULL: make one with tutti_compile()");
    TRY(forked_check());
    TRY(trainer_settle(trainer, &totals));
    TRY(trainer_checkpoint(trainer, false, true, &checkpoint));
    snapshot = memory_new(1, sizeof(*snapshot));
    if (!snapshot) return NULL;
    *snapshot = (tutti_snapshot) { .position = checkpoint.position,
        .loss_scale = checkpoint.loss_scale,
        .seed = checkpoint.seed,
        .optimizer = trainer->optimizer,
        .states = states_of(trainer) };
    snapshot->optimizer.uses = NULL;
    snapshot->optimizer.groups = NULL;
    snapshot->kept = memory_new(checkpoint.count, sizeof(*snapshot->kept));
    if (!snapshot->kept) goto done;
    for (size_t i = 0; i < checkpoint.count; i++) {
        if (checkpoint.parameters[i].kind == PARAMETER_CONSTANT) continue;
        TRY(keep(&checkpoint, &checkpoint.parameters[i], snapshot->states, &snapshot->kept[snapshot->count++]));
    }
    return snapshot;
done:
    tutti_snapshot_free(snapshot);
    return NULL;
}

tutti_snapshot *tutti_snapshot_take(tutti_trainer *trainer)
{
    trainer_lock(trainer);
    tutti_snapshot *const snapshot = take(trainer);
    trainer_unlock(trainer);
    return snapshot;
}

void tutti_snapshot_free(tutti_snapshot *snapshot)
{
    if (!snapshot) return;
    for (size_t i = 0; i < snapshot->count; i++) {
        free(snapshot->kept[i].name);
        free(snapshot->kept[i].floats);
    }
    free(snapshot->kept);
    free(snapshot);
}

/* Checks that the snapshot is of this network; all trainers of a network have its parameters in the same order. */
static tutti_status check(const tutti_snapshot *snapshot, const tutti_network *network)
{
    size_t count = 0;
    for (size_t i = 0; i < network->parameter_count; i++) {
        const struct parameter *parameter = &network->parameters[i];
        if (parameter->kind == PARAMETER_CONSTANT) continue;
        const struct kept *kept = count < snapshot->count ? &snapshot->kept[count] : NULL;
        if (!kept || strcmp(kept->name, parameter->name) != 0 || kept->elements != parameter->elements)
            return fail(TUTTI_MISMATCH, "the snapshot is of another network: it lacks '%s', or has it in another shape",
                parameter->name);
        count++;
    }
    if (count == snapshot->count) return TUTTI_OK;
    return fail(TUTTI_MISMATCH, "the snapshot is of another network: it has '%s', which this one lacks",
        snapshot->kept[count].name);
}

/* The snapshot's state that `state` of this optimizer continues, by its name as in checkpoints; -1: none. Rules that
 * differ share nothing but the EMA of the parameters. */
static int matching_state(
    const tutti_snapshot *snapshot, const struct kept *kept, const struct optimizer *to, int state)
{
    const struct optimizer *from = &snapshot->optimizer;
    const bool ema = state == optimizer_ema_state(to);
    if (!kept->trained || (!ema && from->kind != to->kind)) return -1;
    for (int s = 0; s < snapshot->states; s++)
        if (!strcmp(optimizer_state_name(from, s), optimizer_state_name(to, state))) return s;
    return -1;
}

/* Returns whether the snapshot lacks states of the rule, which then begin. */
static bool copy(const tutti_snapshot *snapshot, struct checkpoint *checkpoint, int states)
{
    bool begun = false;
    const struct kept *kept = snapshot->kept;
    for (size_t i = 0; i < checkpoint->count; i++) {
        const struct parameter *parameter = &checkpoint->parameters[i];
        if (parameter->kind == PARAMETER_CONSTANT) continue;
        const size_t count = (size_t)kept->elements, bytes = count * sizeof(float);
        parameter_set(parameter, &checkpoint->weights, kept->floats);
        for (int s = 0; parameter->kind == PARAMETER_TRAINED && s < states; s++) {
            const int from = matching_state(snapshot, kept, checkpoint->optimizer, s);
            begun |= from < 0 && s != optimizer_ema_state(checkpoint->optimizer);
            if (from >= 0)
                memcpy(checkpoint->states[s] + parameter->offset, kept->floats + (size_t)(1 + from) * count, bytes);
            else
                checkpoint_begin_state(checkpoint, parameter, s);
        }
        kept++;
    }
    return begun;
}

static tutti_status restore(tutti_trainer *trainer, const tutti_snapshot *snapshot)
{
    tutti_status status;
    struct metric_totals totals;
    struct checkpoint checkpoint;
    TRY(forked_check());
    if (!trainer) FAIL(TUTTI_INVALID, "the trainer is NULL: make one with tutti_compile()");
    TRY(trainer_check_trains(trainer, "tutti_snapshot_restore()"));
    status = snapshot ? check(snapshot, trainer->network) : fail(TUTTI_INVALID, "the snapshot is NULL: pass one");
    if (status == TUTTI_OK) status = trainer_check_views(trainer);
    TRY(ranks_report_failure(trainer, status));
    TRY(trainer_settle(trainer, &totals));
    TRY(ranks_agree(trainer, trainer_checkpoint(trainer, false, true, &checkpoint)));
    checkpoint.position = snapshot->position;
    checkpoint.loss_scale = snapshot->loss_scale;
    if (copy(snapshot, &checkpoint, states_of(trainer))) checkpoint_begin_states(&checkpoint);
    trainer->state.position = checkpoint.position;
    loss_scale_resume(&trainer->state.loss_scale, &checkpoint.loss_scale);
    trainer->state.seed = snapshot->seed;
    trainer->state.resumed = checkpoint.position.epoch > 0 || checkpoint.position.samples > 0;
    parameters_changed(trainer->store);
done:
    return status;
}

tutti_status tutti_snapshot_restore(tutti_trainer *trainer, const tutti_snapshot *snapshot)
{
    trainer_lock(trainer);
    const tutti_status status = restore(trainer, snapshot);
    trainer_unlock(trainer);
    return status;
}
