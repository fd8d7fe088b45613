/* What a program reads and changes between the steps: see include/tutti_steps.h. tutti_backward() is in trainer.c, with
 * the steps. */
#include "base/memory.h"
#include "base/options.h"
#include "parallel/backward.h"
#include "parallel/newest.h"
#include "parallel/trainer.h"
#include "runtime/forked.h"
#include "train/checks.h"
#include "train/parameters.h"
#include "tutti_finetune.h"
#include "tutti_steps.h"

#include <string.h>

/* ----------------------------------------------------------------------------------------------- gradients ---- */

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
    TRY(trainer_check_not_in_fit(trainer, "tutti_apply()"));
    TRY(trainer_apply(trainer, trainer_check(trainer, true, 1)));
done:
    return status;
}

/* -------------------------------------------------------------------------------------------------- states ---- */

tutti_status tutti_get_state(tutti_trainer *trainer, const char *name, const char *state, float *values, int64_t count)
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

tutti_status tutti_set_state(
    tutti_trainer *trainer, const char *name, const char *state, const float *values, int64_t count)
{
    tutti_status status;
    const struct parameter *parameter = NULL;
    float *found = NULL;
    TRY(trainer_find_state(trainer, name, state, &parameter, &found));
    TRY(trainer_check_array(parameter, values, count));
    memcpy(found, values, (size_t)count * sizeof(float));
    parameters_changed(&trainer->store);
done:
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
    TRY(trainer_check_not_in_fit(trainer, "tutti_set_position()"));
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
    if (!pattern) FAIL(TUTTI_INVALID, "the pattern is NULL: pass a name");
    TRY(network_read_group(&options, given));
    TRY(newest_to_host(trainer)); /* steps of a device that is lost later are not replayed with the new rates */
    TRY(optimizer_set_group(&trainer->optimizer, trainer->network, pattern, &options));
done:
    return status;
}
