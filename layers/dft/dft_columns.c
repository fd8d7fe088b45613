/* dft on CPU-class devices: as many transforms at a time, side by side, as vectors have elements. */
#include <stdio.h>

#include "base/memory.h"
#include "layers/dft/arguments/dft.h"
#include "layers/dft/dft_kernels.h"
#include "layers/elementwise.h"
#include "runtime/arguments.h"

enum { TASKS = 4, MOST_SCRATCH = 16 << 20 }; /* tasks for each unit; bytes of one */

/* Division of the transforms. */
struct tasks {
    int64_t count, each; /* tasks, and blocks of one */
    int64_t scratch;     /* floats of one */
};

static struct tasks tasks_of(const struct problem *problem, const struct dft_plan *plan, bool few)
{
    const enum dft_form form = dft_attributes(problem->node)->form;
    const int64_t width = problem->device->vector_width,
                  units = problem->device->units > 0 ? problem->device->units : 1;
    const int64_t blocks = divide_up(plan->transforms, form == DFT_COMPLEX ? width : 2 * width);
    const int64_t each = divide_up(blocks, TASKS * units);
    struct tasks tasks = { .count = divide_up(blocks, each), .each = each, .scratch = 4 * width * plan->size };
    if (few) tasks.scratch = (form == DFT_COMPLEX_TO_REAL ? 4 : 2) * width * plan->sizes.in;
    return tasks;
}

static const char *fits(const struct problem *problem, bool few)
{
    const struct dft_plan plan = few ? dft_plan_of_few(problem) : dft_plan_of(problem);
    if (problem->device->class != DEVICE_CPU) return "it needs a CPU-class device";
    if ((size_t)tasks_of(problem, &plan, few).scratch > MOST_SCRATCH / sizeof(float))
        return "a task's elements need more than 16 MiB";
    return NULL;
}

static const char *fits_few(const struct problem *problem)
{
    if (!dft_is_few(problem)) return "passes cost less for so many elements";
    return fits(problem, true);
}

static const char *fits_columns(const struct problem *problem)
{
    return fits(problem, false);
}

static size_t workspace(const struct problem *problem, bool few)
{
    const struct dft_plan plan = few ? dft_plan_of_few(problem) : dft_plan_of(problem);
    const struct tasks tasks = tasks_of(problem, &plan, few);
    return (size_t)(tasks.count * tasks.scratch) * sizeof(float);
}

static size_t workspace_few(const struct problem *problem)
{
    return workspace(problem, true);
}

static size_t workspace_columns(const struct problem *problem)
{
    return workspace(problem, false);
}

ARGUMENTS(task, DFT_TASK_ARGUMENTS)

static void emit(const struct problem *problem, const struct operands *operands, bool few, struct launch_list *list)
{
    char options[DFT_OPTIONS];
    const struct dft_plan plan = few ? dft_plan_of_few(problem) : dft_plan_of(problem);
    const struct tasks tasks = tasks_of(problem, &plan, few);
    struct launch *launch =
        launch_add(list, "dft_cpu", "dft_columns", "%s -DFEW=%d", dft_build_options(problem, plan.chirp, options), few);
    ARGUMENTS_SET(launch, task, .x = operands->inputs[0], .y = operands->outputs[0], .scratch = operands->workspace,
        DFT_SIZES_VALUES(&plan, dft_attributes(problem->node), operands->prepared), .filter = dft_filter_at(&plan),
        .each = tasks.each, .scratch_floats = tasks.scratch);
    launch_tasks(launch, (size_t)tasks.count, 1, 1);
    dft_work(problem, launch);
}

static void emit_few(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    emit(problem, operands, true, list);
}

static void emit_columns(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    emit(problem, operands, false, list);
}

const struct implementation dft_few = {
    .name = "few",
    .fits = fits_few,
    .workspace = workspace_few,
    .prepared = dft_prepared_few,
    .emit_prepare = dft_emit_prepare_few,
    .emit = emit_few,
};
const struct implementation dft_columns = {
    .name = "columns",
    .fits = fits_columns,
    .workspace = workspace_columns,
    .prepared = dft_prepared,
    .emit_prepare = dft_emit_prepare,
    .emit = emit_columns,
};
