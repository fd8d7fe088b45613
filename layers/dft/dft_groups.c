/* dft in local memory: a group computes several transforms. For GPU-class devices, where others would be slower. */
#include <stdio.h>

#include "base/memory.h"
#include "layers/dft/arguments/dft.h"
#include "layers/dft/dft_kernels.h"
#include "layers/elementwise.h"
#include "runtime/arguments.h"

enum { MOST_TILE = 16, ELEMENTS = 1024, GROUP = 128 }; /* transforms of a group; their elements, about; work-items */

/* Transforms of a group, and its bytes of local memory; 0: too many for the device. */
struct tile {
    int transforms;
    size_t bytes;
};

static struct tile tile_of(const struct problem *problem, const struct dft_plan *plan, bool few)
{
    const size_t elements = few ? (size_t)plan->sizes.in : (size_t)plan->size * 2, one = elements * 2 * sizeof(float);
    int64_t most = ELEMENTS / (int64_t)elements;
    most = most < 1 ? 1 : most > MOST_TILE ? MOST_TILE : most;
    while (most > 1 && ((size_t)most * one > problem->device->local_bytes / 2 || most / 2 >= plan->transforms))
        most /= 2;
    const size_t bytes = (size_t)most * one;
    return bytes > problem->device->local_bytes ? (struct tile) { 0 } : (struct tile) { (int)most, bytes };
}

static const char *fits(const struct problem *problem, bool few)
{
    const struct dft_plan plan = few ? dft_plan_of_few(problem) : dft_plan_of(problem);
    if (problem->device->class != DEVICE_GPU) return "it needs a GPU-class device";
    if (!tile_of(problem, &plan, few).transforms) return "the device's local memory is too small";
    return NULL;
}

static const char *fits_few(const struct problem *problem)
{
    if (!dft_is_few(problem)) return "passes cost less for so many elements";
    return fits(problem, true);
}

static const char *fits_groups(const struct problem *problem)
{
    return fits(problem, false);
}

ARGUMENTS(group, DFT_GROUP_ARGUMENTS)

static void emit(const struct problem *problem, const struct operands *operands, bool few, struct launch_list *list)
{
    char options[DFT_OPTIONS];
    const struct dft_plan plan = few ? dft_plan_of_few(problem) : dft_plan_of(problem);
    const struct tile tile = tile_of(problem, &plan, few);
    const size_t group = group_size(problem->device, GROUP),
                 groups = (size_t)divide_up(plan.transforms, tile.transforms);
    struct launch *launch = launch_add(list, "dft_gpu", "dft_groups", "%s -DFEW=%d -DTILE=%d -DGROUP=%zu",
        dft_build_options(problem, plan.chirp, options), few, tile.transforms, group);
    ARGUMENTS_SET(launch, group, .x = operands->inputs[0], .y = operands->outputs[0], .space = tile.bytes,
        DFT_SIZES_VALUES(&plan, dft_attributes(problem->node), operands->prepared), .filter = dft_filter_at(&plan));
    launch_grid(launch, 1, groups * group, 1, 1, group, 1, 1);
    dft_work(problem, launch);
}

static void emit_few(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    emit(problem, operands, true, list);
}

static void emit_groups(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    emit(problem, operands, false, list);
}

const struct implementation dft_few_groups = {
    .name = "few_groups",
    .fits = fits_few,
    .prepared = dft_prepared_few,
    .emit_prepare = dft_emit_prepare_few,
    .emit = emit_few,
};
const struct implementation dft_groups = {
    .name = "groups",
    .fits = fits_groups,
    .prepared = dft_prepared,
    .emit_prepare = dft_emit_prepare,
    .emit = emit_groups,
};
