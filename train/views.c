/* Views of parameters, gradients, states and outputs: see tutti_view in include/tutti_steps.h. */
#include "train/views.h"

#include "base/memory.h"
#include "base/options.h"
#include "graph/parameter_storage.h"
#include "parallel/newest.h"
#include "parallel/trainer.h"
#include "replica/run.h"
#include "runtime/forked.h"
#include "train/checks.h"
#include "train/parameters.h"
#include "tutti_steps.h"

#include <stddef.h>
#include <stdlib.h>

static tutti_status check(const tutti_view *view)
{
    if (!view) return fail(TUTTI_INVALID, "the view is NULL: pass one whose size is set");
    if (view->size != 0 && view->size < offsetof(tutti_view, number) + sizeof view->number)
        return fail(TUTTI_INVALID,
            "tutti_view.size is %zu, which leaves out the values or the number: set it to sizeof(tutti_view) or to 0",
            view->size);
    return TUTTI_OK;
}

/* Writes the view to *view and notes that it is open. `found` has what is particular to it. */
static tutti_status open_view(tutti_trainer *trainer, tutti_view found, struct open_view open, tutti_view *view)
{
    tutti_status status = TUTTI_OK;
    struct open_views *views = &trainer->state.views;
    void *items = views->items;
    TRY(memory_grow(&items, &views->capacity, views->count + 1, sizeof(*views->items)));
    views->items = items;
    found.trainer = trainer;
    found.generation = parameters_version(trainer->store);
    found.number = open.number = views->last + 1;
    TRY(RESULT_WRITE(view, &found, tutti_view));
    views->items[views->count++] = open;
    views->parameters += open.of_parameters;
    views->last++;
done:
    return status;
}

static tutti_status open_parameter(
    tutti_trainer *trainer, tutti_view_kind kind, const struct parameter *parameter, float *values, tutti_view *view)
{
    const tutti_view found = {
        .kind = kind, .name = parameter->name, .values = values, .count = parameter->elements, .shape = parameter->shape
    };
    const struct open_view open = { .of_parameters = kind != TUTTI_VIEW_GRADIENT };
    const tutti_status status = check(view);
    return status == TUTTI_OK ? open_view(trainer, found, open, view) : status;
}

static tutti_status view_parameter(tutti_trainer *trainer, const char *name, tutti_view *view)
{
    const struct parameter *parameter = NULL;
    tutti_status status = trainer_find_parameter(trainer, name, &parameter);
    if (status == TUTTI_OK) status = trainer_check_owns(trainer, "tutti_view_parameter()");
    if (status != TUTTI_OK) return status;
    if (parameter_type(parameter) != TYPE_F32)
        return fail(TUTTI_UNSUPPORTED,
            "'%s' is not stored as floats since tutti_store(): tutti_get_parameter() and tutti_set_parameter() convert "
            "it",
            name);
    const struct parameter_arenas arenas = parameters_arenas(trainer->store);
    return open_parameter(trainer, TUTTI_VIEW_PARAMETER, parameter, parameter_in(parameter, &arenas), view);
}

tutti_status tutti_view_parameter(tutti_trainer *trainer, const char *name, tutti_view *view)
{
    trainer_lock(trainer);
    const tutti_status status = view_parameter(trainer, name, view);
    trainer_unlock(trainer);
    return status;
}

tutti_status tutti_view_gradient(tutti_trainer *trainer, const char *name, tutti_view *view)
{
    const struct parameter *parameter = NULL;
    float *values = NULL;
    const tutti_status status = trainer_find_gradient(trainer, name, &parameter, &values);
    return status == TUTTI_OK ? open_parameter(trainer, TUTTI_VIEW_GRADIENT, parameter, values, view) : status;
}

static tutti_status view_state(tutti_trainer *trainer, const char *name, const char *state, tutti_view *view)
{
    const struct parameter *parameter = NULL;
    float *values = NULL;
    const tutti_status status = trainer_find_state(trainer, name, state, &parameter, &values);
    return status == TUTTI_OK ? open_parameter(trainer, TUTTI_VIEW_STATE, parameter, values, view) : status;
}

tutti_status tutti_view_state(tutti_trainer *trainer, const char *name, const char *state, tutti_view *view)
{
    trainer_lock(trainer);
    const tutti_status status = view_state(trainer, name, state, view);
    trainer_unlock(trainer);
    return status;
}

/* ------------------------------------------------------------------------------------------------- outputs ---- */

void views_keep_outputs(tutti_trainer *trainer, int64_t samples, int64_t length)
{
    struct kept_outputs *kept = &trainer->last.outputs;
    kept->valid = false;
    for (int i = 0; i < ARRAYS_MAX; i++) kept->valid |= kept->wanted[i];
    kept->arrays.length = length;
    kept->samples = samples;
    kept->plan = trainer->options.exchange ? NULL : trainer->works[0].result.kept;
}

static tutti_status map(const tutti_trainer *trainer, int number, size_t bytes, struct open_view *open)
{
    tutti_status status = TUTTI_OK;
    const struct replica *replica = &trainer->replicas[0];
    const struct plan *plan = trainer->last.outputs.plan;
    cl_int error = CL_SUCCESS;
    open->buffer = plan_buffer(plan, plan->outputs[number]);
    open->mapped =
        clEnqueueMapBuffer(replica->device->queue, open->buffer, CL_TRUE, CL_MAP_READ, 0, bytes, 0, NULL, NULL, &error);
    CL_TRY(error, "mapping an output of '%s'", replica->device->can.name);
done:
    return status;
}

static void unmap(const tutti_trainer *trainer, const struct open_view *open)
{
    if (open->buffer)
        (void)clEnqueueUnmapMemObject(trainer->replicas[0].device->queue, open->buffer, open->mapped, 0, NULL, NULL);
}

/* Finds the output among those that the last inference kept. */
static tutti_status find_output(const tutti_trainer *trainer, tutti_tensor output, int *number)
{
    const struct kept_outputs *kept = &trainer->last.outputs;
    const struct objective *objective = &trainer->objective;
    for (*number = 0; *number < objective->output_count; ++*number)
        if (objective->outputs[*number] == output.id && kept->wanted[*number]) break;
    if (*number == objective->output_count)
        return fail(TUTTI_INVALID, "tensor %d is not an output that the last tutti_infer_keep() kept", output.id);
    const bool overwritten = kept->plan && trainer->replicas[0].plans.last != kept->plan;
    if (kept->valid && !overwritten) return TUTTI_OK;
    return fail(TUTTI_INVALID,
        "the outputs that tutti_infer_keep() kept are gone, as the trainer has computed since: "
        "view them before other calls");
}

static tutti_shape shape_of_kept(const tutti_trainer *trainer, tutti_tensor output)
{
    const struct kept_outputs *kept = &trainer->last.outputs;
    tutti_shape sample = { 0 }, shape = { .rank = 1, .sizes = { kept->samples } };
    (void)tutti_shape_of(trainer->network, output, &sample);
    for (int i = 0; i < sample.rank; i++)
        shape.sizes[shape.rank++] = sample.sizes[i] == TUTTI_SEQUENCE ? kept->arrays.length : sample.sizes[i];
    return shape;
}

tutti_status tutti_view_output(tutti_trainer *trainer, tutti_tensor output, tutti_view *view)
{
    tutti_status status;
    int number = 0;
    struct open_view open = { 0 };
    if (!trainer) FAIL(TUTTI_INVALID, "the trainer is NULL: make one with tutti_compile()");
    TRY(forked_check());
    TRY(check(view));
    TRY(find_output(trainer, output, &number));
    const struct kept_outputs *kept = &trainer->last.outputs;
    const size_t bytes = (size_t)kept->samples * arrays_sample_bytes(&trainer->outputs, number, kept->arrays.length);
    if (kept->plan) TRY(map(trainer, number, bytes, &open));
    tutti_view found = { .kind = TUTTI_VIEW_OUTPUT,
        .values = kept->plan ? open.mapped : kept->arrays.at[number],
        .count = (int64_t)(bytes / sizeof(float)) };
    found.shape = shape_of_kept(trainer, output);
    status = open_view(trainer, found, open, view);
    if (status != TUTTI_OK) unmap(trainer, &open);
done:
    return status;
}

/* ------------------------------------------------------------------------------------------------- closing ---- */

static tutti_status close_view(tutti_trainer *trainer, tutti_view *view, bool changed)
{
    tutti_status status;
    tutti_view closed;
    size_t i = 0;
    if (!trainer || !view) FAIL(TUTTI_INVALID, "the trainer or the view is NULL: pass both");
    TRY(OPTIONS_READ(&closed, view, tutti_view));
    struct open_views *views = &trainer->state.views;
    while (i < views->count && views->items[i].number != closed.number) i++;
    if (!closed.values || closed.trainer != trainer || i == views->count)
        FAIL(TUTTI_INVALID, "the view is not open: close a view of this trainer, or a copy of it, once");
    unmap(trainer, &views->items[i]);
    views->parameters -= views->items[i].of_parameters;
    views->items[i] = views->items[--views->count];
    if (changed && closed.kind == TUTTI_VIEW_PARAMETER)
        trainer_parameter_changed(trainer, network_find(trainer->network, closed.name));
    if (changed && closed.kind == TUTTI_VIEW_STATE) parameters_changed(trainer->store);
    view->values = NULL;
done:
    return status;
}

tutti_status tutti_view_close(tutti_trainer *trainer, tutti_view *view, bool changed)
{
    trainer_lock(trainer);
    const tutti_status status = close_view(trainer, view, changed);
    trainer_unlock(trainer);
    return status;
}

void views_close_all(tutti_trainer *trainer)
{
    struct open_views *views = &trainer->state.views;
    while (views->count > 0) unmap(trainer, &views->items[--views->count]);
    views->parameters = 0;
}

void views_free(tutti_trainer *trainer)
{
    free(trainer->state.views.items);
    for (int i = 0; i < ARRAYS_MAX; i++) free(trainer->last.outputs.arrays.at[i]);
}
