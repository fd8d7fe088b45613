/* dft2 on CPU-class devices with many frequencies: dft2_passes_cpu.cl. */
#include "base/memory.h"
#include "layers/dft/arguments/dft2.h"
#include "layers/dft/dft2.h"
#include "layers/dft/dft_kernels.h"
#include "layers/elementwise.h"
#include "runtime/arguments.h"

enum {
    TASKS = 4,               /* for each unit */
    MOST_SCRATCH = 16 << 20, /* bytes of one */
};

struct design {
    int64_t each, tasks;   /* images of a task; tasks */
    int64_t step, scratch; /* vectors of V columns; floats of a task's scratch */
};

static int64_t longest(const struct dft2_attributes *a)
{
    return a->height > a->width ? a->height : a->width;
}

static int64_t round_up(int64_t n, int64_t unit)
{
    return divide_up(n, unit) * unit;
}

static struct design design_of(const struct problem *problem)
{
    const struct dft2_attributes *a = dft2_attributes(problem->node);
    const int64_t lanes = problem->device->vector_width, images = dft2_images(problem),
                  units = problem->device->units > 0 ? problem->device->units : 1;
    struct design d = { .each = divide_up(images, TASKS * units) };
    d.tasks = divide_up(images, d.each);
    d.step = 2 * round_up(a->height, 2 * lanes) + 4; /* 4 more: rows of different columns use different cache sets */
    d.scratch = lanes * (4 * longest(a) + divide_up(a->columns, lanes) * d.step);
    return d;
}

/* The same for both directions, since each is the gradient of the other. */
static const char *fits(const struct problem *problem)
{
    const struct dft2_attributes *a = dft2_attributes(problem->node);
    if (problem->device->class != DEVICE_CPU) return "it needs a CPU-class device";
    if (!dft_has_passes((int)a->height) || !dft_has_passes((int)a->width))
        return "passes cost too much for a length with a large prime factor";
    const int64_t lanes = problem->device->vector_width;
    if (2 * round_up(a->height, 2 * lanes) > 3 * a->height || round_up(a->columns, lanes) > 2 * a->columns)
        return "lanes would be empty: an axis is too short";
    if (dft2_images(problem) < problem->device->units) return "there are fewer images than the device has units";
    if ((size_t)design_of(problem).scratch > MOST_SCRATCH / sizeof(float))
        return "a task's spectrum needs more than 16 MiB";
    return NULL;
}

static size_t workspace(const struct problem *problem)
{
    const struct design d = design_of(problem);
    return (size_t)(d.tasks * d.scratch) * sizeof(float);
}

/* The turns of the width, then of the height. While they are computed, either has its place at the beginning. */
static size_t prepared(const struct problem *problem)
{
    const struct dft2_attributes *a = dft2_attributes(problem->node);
    return (size_t)(longest(a) + a->height) * 2 * sizeof(float);
}

ARGUMENTS(passes, DFT2_PASSES_ARGUMENTS)
ARGUMENTS(copy, DFT2_COPY_ARGUMENTS)

static struct launch *add(const struct problem *problem, const char *kernel, struct launch_list *list)
{
    const struct dft2_attributes *a = dft2_attributes(problem->node);
    return launch_add(list, "dft2_passes_cpu", kernel, "-DINVERSE=%d -DDOUBLED=%d", a->inverse, a->doubled);
}

static void emit_turns(int64_t length, cl_mem buffer, struct launch_list *list)
{
    struct launch *launch =
        launch_add(list, "dft_plain", "dft_table", "%s", "-DFORM=0 -DINVERSE=0 -DDOUBLED=0 -DCHIRP=1");
    launch_buffer(launch, buffer);
    LAUNCH_INTS(launch, length, 0);
    items_launch(launch, &list->device->can, 64, length, 0);
    launch_work(launch, 0, 8 * (double)length);
}

static void emit_prepare(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct dft2_attributes *a = dft2_attributes(problem->node);
    emit_turns(a->height, operands->prepared, list);
    struct launch *launch = add(problem, "dft2_copy", list);
    ARGUMENTS_SET(launch, copy, .table = operands->prepared, .at = longest(a), .length = a->height);
    launch_tasks(launch, 1, 1, 1);
    launch_work(launch, 0, 16 * (double)a->height);
    emit_turns(a->width, operands->prepared, list);
}

static void emit(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct dft2_attributes *a = dft2_attributes(problem->node);
    const struct design d = design_of(problem);
    struct launch *launch = add(problem, "dft2_passes", list);
    ARGUMENTS_SET(launch, passes, .x = operands->inputs[0], .y = operands->outputs[0], .scratch = operands->workspace,
        .table = operands->prepared, .turns_at = longest(a), .step = d.step, .height = a->height, .width = a->width,
        .rows = a->rows, .columns = a->columns, .first = a->first, .scale = (double)a->scale,
        .images = dft2_images(problem), .each = d.each, .scratch_floats = d.scratch);
    launch_tasks(launch, (size_t)d.tasks, 1, 1);
    launch_work(launch, problem->node->operation->flops(problem),
        4 * (double)(value_elements(problem->inputs[0]) + value_elements(problem->outputs[0])));
}

const struct implementation dft2_passes = {
    .name = "passes",
    .fits = fits,
    .workspace = workspace,
    .prepared = prepared,
    .emit_prepare = emit_prepare,
    .emit = emit,
};
