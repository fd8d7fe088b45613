/* What a program reads and changes between the steps: see include/tutti_steps.h. tutti_backward() is in trainer.c, with
 * the steps. */
#include "base/memory.h"
#include "base/options.h"
#include "parallel/backward.h"
#include "parallel/newest.h"
#include "parallel/ranks_sum.h"
#include "parallel/trainer.h"
#include "runtime/forked.h"
#include "train/checks.h"
#include "train/parameters.h"
#include "tutti_finetune.h"
#include "tutti_steps.h"

#include <stdlib.h>
#include <string.h>

/* ----------------------------------------------------------------------------------------------- gradients ---- */

/* Sums the gradients of the devices that had a part in the last step, which still have them. */
static tutti_status add_gradients(const tutti_trainer *trainer, const struct parameter *parameter, float *values)
{
    tutti_status status = TUTTI_OK;
    const size_t count = (size_t)parameter->elements;
    float *one = memory_new(count, sizeof(float));
    if (!one) return TUTTI_NO_MEMORY;
    memset(values, 0, count * sizeof(float));
    for (int i = 0; i < trainer->count; i++) {
        const struct replica *replica = &trainer->replicas[i];
        const cl_mem last = gradients_last(&replica->gradients);
        if (!last) continue;
        if (replica_is_lost(replica))
            FAIL(TUTTI_DEVICE_LOST, "device %d, '%s', was lost with its gradients of the last step",
                replica->device->index, replica->device->can.name);
        TRY(buffer_read(replica->device, last, (size_t)parameter->offset * sizeof(float), one, count * sizeof(float)));
        for (size_t j = 0; j < count; j++) values[j] += one[j];
    }
done:
    free(one);
    return status;
}

tutti_status tutti_get_gradient(tutti_trainer *trainer, const char *name, float *values, int64_t count)
{
    tutti_status status;
    const struct parameter *parameter = NULL;
    TRY(trainer_find_trained(trainer, name, &parameter));
    TRY(trainer_check_array(parameter, values, count));
    if (trainer->last.kept.valid) {
        memcpy(values, trainer->last.kept.sums + parameter->offset, (size_t)count * sizeof(float));
        return TUTTI_OK;
    }
    if (!trainer->last.stepped)
        FAIL(TUTTI_INVALID, "'%s' has no gradient: there was no step, or the last tutti_backward() failed", name);
    if (ranks_sum_mode(trainer))
        memcpy(values, parameters_gradients(trainer->store) + parameter->offset, (size_t)count * sizeof(float));
    else
        TRY(add_gradients(trainer, parameter, values));
    for (int64_t i = 0; i < count; i++) values[i] *= trainer->last.unscale;
done:
    return status;
}

tutti_status tutti_set_gradient(tutti_trainer *trainer, const char *name, const float *values, int64_t count)
{
    tutti_status status;
    const struct parameter *parameter = NULL;
    TRY(trainer_find_trained(trainer, name, &parameter));
    TRY(trainer_check_array(parameter, values, count));
    const struct kept_gradients *kept = &trainer->last.kept;
    if (!kept->valid || kept->applied)
        FAIL(TUTTI_INVALID, "there are no gradients to be applied: call tutti_backward() first");
    memcpy(kept->sums + parameter->offset, values, (size_t)count * sizeof(float));
done:
    return status;
}

tutti_status tutti_get_input_gradient(tutti_trainer *trainer, tutti_tensor input, float *values, int64_t count)
{
    if (!trainer || !values) return fail(TUTTI_INVALID, "the trainer or the array is NULL: pass both");
    const struct objective *objective = &trainer->objective;
    const struct kept_gradients *kept = &trainer->last.kept;
    int number = 0;
    while (number < objective->gradient_input_count && objective->gradient_inputs[number] != input.id) number++;
    if (number == objective->gradient_input_count)
        return fail(TUTTI_INVALID, "tensor %d is none of tutti_training.gradient_inputs", input.id);
    if (!kept->valid) return fail(TUTTI_INVALID, "there is no gradient of an input: call tutti_backward() first");
    number += objective->output_count;
    const size_t bytes = (size_t)kept->samples * arrays_sample_bytes(&trainer->outputs, number, kept->inputs.length);
    if (count < 0 || (size_t)count != bytes / sizeof(float))
        return fail(TUTTI_INVALID, "the gradient of the input has %zu elements, but the array has %lld",
            bytes / sizeof(float), (long long)count);
    memcpy(values, kept->inputs.at[number], bytes);
    return TUTTI_OK;
}

tutti_status tutti_apply(tutti_trainer *trainer)
{
    tutti_status status;
    TRY(forked_check());
    if (!trainer) return trainer_check(trainer, true, 1);
    TRY(trainer_check_trains(trainer, "tutti_apply()"));
    TRY(trainer_apply(trainer, trainer_check(trainer, true, 1)));
done:
    return status;
}

/* -------------------------------------------------------------------------------------------------- states ---- */

static tutti_status get_state(tutti_trainer *trainer, const char *name, const char *state, float *values, int64_t count)
{
    tutti_status status;
    const struct parameter *parameter = NULL;
    float *found = NULL;
    TRY(trainer_find_state(trainer, name, state, &parameter, &found));
    TRY(trainer_check_array(parameter, values, count));
    memcpy(values, found, (size_t)count * sizeof(float));
done:
    return status;
}

tutti_status tutti_get_state(tutti_trainer *trainer, const char *name, const char *state, float *values, int64_t count)
{
    trainer_lock(trainer);
    const tutti_status status = get_state(trainer, name, state, values, count);
    trainer_unlock(trainer);
    return status;
}

static tutti_status set_state(
    tutti_trainer *trainer, const char *name, const char *state, const float *values, int64_t count)
{
    tutti_status status;
    const struct parameter *parameter = NULL;
    float *found = NULL;
    TRY(trainer_find_state(trainer, name, state, &parameter, &found));
    TRY(trainer_check_array(parameter, values, count));
    memcpy(found, values, (size_t)count * sizeof(float));
    parameters_changed(trainer->store);
done:
    return status;
}

tutti_status tutti_set_state(
    tutti_trainer *trainer, const char *name, const char *state, const float *values, int64_t count)
{
    trainer_lock(trainer);
    const tutti_status status = set_state(trainer, name, state, values, count);
    trainer_unlock(trainer);
    return status;
}

/* ------------------------------------------------------------------------------------------------ position ---- */

tutti_status tutti_get_position(const tutti_trainer *trainer, tutti_position *position)
{
    if (!trainer || !position) return fail(TUTTI_INVALID, "the trainer or the position is NULL: pass both");
    const tutti_position found = { .steps = trainer->state.position.steps,
        .updates = training_state_updates(&trainer->state),
        .epoch = trainer->state.position.epoch };
    return RESULT_WRITE(position, &found, tutti_position);
}

tutti_status tutti_set_position(tutti_trainer *trainer, const tutti_position *given)
{
    tutti_status status;
    tutti_position position;
    TRY(trainer_check(trainer, true, 1));
    TRY(trainer_check_trains(trainer, "tutti_set_position()"));
    if (!given) FAIL(TUTTI_INVALID, "the position is NULL: pass one");
    TRY(OPTIONS_READ(&position, given, tutti_position));
    if (position.steps < 0 || position.epoch < 0 || position.updates < 0 || position.updates > position.steps)
        FAIL(TUTTI_INVALID,
            "the position has %lld steps, %lld updates and %lld epochs: they cannot be negative, nor updates more than "
            "steps",
            (long long)position.steps, (long long)position.updates, (long long)position.epoch);
    trainer->state.position = (struct position) { .steps = position.steps, .epoch = position.epoch };
    trainer->state.loss_scale.skipped = position.steps - position.updates;
    trainer->state.resumed = true;
done:
    return status;
}

/* ------------------------------------------------------------------------------------------------- groups ---- */

tutti_status tutti_set_group(tutti_trainer *trainer, const char *pattern, const tutti_group_options *given)
{
    tutti_status status;
    tutti_group_options options;
    TRY(trainer_check(trainer, true, 1));
    TRY(trainer_check_owns(trainer, "tutti_set_group()"));
    if (!pattern) FAIL(TUTTI_INVALID, "the pattern is NULL: pass a name");
    TRY(network_read_group(&options, given));
    TRY(newest_to_host(trainer)); /* steps of a device that is lost later are not replayed with the new rates */
    TRY(optimizer_set_group(&trainer->optimizer, trainer->network, pattern, &options));
done:
    return status;
}
