/* Parameters, gradients and states in place: see tutti_view in include/tutti_steps.h. */
#include "base/options.h"
#include "parallel/newest.h"
#include "parallel/trainer.h"
#include "train/parameters.h"
#include "tutti_steps.h"

#include <stddef.h>

static tutti_status open_view(
    tutti_trainer *trainer, tutti_view_kind kind, const struct parameter *parameter, float *values, tutti_view *view)
{
    if (!view) return fail(TUTTI_INVALID, "the view is NULL: pass one whose size is set");
    if (view->size != 0 && view->size < offsetof(tutti_view, values) + sizeof view->values)
        return fail(TUTTI_INVALID,
            "tutti_view.size is %zu, which leaves out the values: set it to sizeof(tutti_view) or to 0", view->size);
    const tutti_view opened = { .trainer = trainer,
        .kind = kind,
        .name = parameter->name,
        .values = values,
        .count = parameter->elements,
        .shape = parameter->shape,
        .generation = parameters_version(&trainer->store) };
    const tutti_status status = RESULT_WRITE(view, &opened, tutti_view);
    if (status == TUTTI_OK) trainer->state.views++;
    return status;
}

tutti_status tutti_view_parameter(tutti_trainer *trainer, const char *name, tutti_view *view)
{
    const struct parameter *parameter = NULL;
    float *values = NULL;
    const tutti_status status = trainer_find_parameter(trainer, name, &parameter, &values);
    return status == TUTTI_OK ? open_view(trainer, TUTTI_VIEW_PARAMETER, parameter, values, view) : status;
}

tutti_status tutti_view_gradient(tutti_trainer *trainer, const char *name, tutti_view *view)
{
    const struct parameter *parameter = NULL;
    float *values = NULL;
    const tutti_status status = trainer_find_gradient(trainer, name, &parameter, &values);
    return status == TUTTI_OK ? open_view(trainer, TUTTI_VIEW_GRADIENT, parameter, values, view) : status;
}

tutti_status tutti_view_state(tutti_trainer *trainer, const char *name, const char *state, tutti_view *view)
{
    const struct parameter *parameter = NULL;
    float *values = NULL;
    const tutti_status status = trainer_find_state(trainer, name, state, &parameter, &values);
    return status == TUTTI_OK ? open_view(trainer, TUTTI_VIEW_STATE, parameter, values, view) : status;
}

tutti_status tutti_view_close(tutti_trainer *trainer, tutti_view *view, bool changed)
{
    tutti_status status;
    tutti_view closed;
    if (!trainer || !view) FAIL(TUTTI_INVALID, "the trainer or the view is NULL: pass both");
    TRY(OPTIONS_READ(&closed, view, tutti_view));
    if (!closed.values || closed.trainer != trainer || trainer->state.views == 0)
        FAIL(TUTTI_INVALID, "the view is not open: close a view of this trainer, once");
    trainer->state.views--;
    if (changed && closed.kind == TUTTI_VIEW_PARAMETER)
        trainer_parameter_changed(trainer, network_find(trainer->network, closed.name));
    if (changed && closed.kind == TUTTI_VIEW_STATE) parameters_changed(&trainer->store);
    view->values = NULL;
done:
    return status;
}
