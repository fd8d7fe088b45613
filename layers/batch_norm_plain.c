/* Batch normalisation on any device: plain layout, or channels last, see clkernels/batch_norm_plain.cl. */
#include <stdio.h>

#include "base/memory.h"
#include "layers/batch_norm.h"
#include "layers/elementwise.h"
#include "layers/epilogue.h"

/* How the work is cut: groups of `group` work-items take `wide` channels and one of `parts` parts of the positions. */
struct work {
    int64_t n, c, pixels, floats;
    int64_t parts;
    size_t group, wide;
};

enum { GROUP = 256, WIDE = 32, JOINED = 8, MOST_PARTS = 64, GROUPS_PER_UNIT = 8, FLOATS_PER_ITEM = 4 };

static struct work work_of(const struct problem *problem)
{
    struct batch_norm_sizes sizes = batch_norm_sizes_of(problem);
    if (problem->inputs[NORM_X]->layout == LAYOUT_CHANNELS_LAST) /* rows of channels, as of rank 2 */
        sizes = (struct batch_norm_sizes) { sizes.n * sizes.pixels, sizes.c, 1 };
    struct work work = {
        .n = sizes.n, .c = sizes.c, .pixels = sizes.pixels, .floats = sizes.n * sizes.c * sizes.pixels
    };
    work.group = group_size(problem->device, GROUP);
    work.wide = sizes.pixels > 1 ? 1 : work.group < WIDE ? work.group : WIDE;
    int64_t groups = divide_up(sizes.c, (int64_t)work.wide), lanes = (int64_t)(work.group / work.wide);
    int64_t most = sizes.n * sizes.pixels / (lanes * FLOATS_PER_ITEM);
    work.parts = divide_up((int64_t)GROUPS_PER_UNIT * problem->device->units, groups);
    if (work.parts > most) work.parts = most;
    if (work.parts > MOST_PARTS) work.parts = MOST_PARTS;
    if (work.parts < 1) work.parts = 1;
    return work;
}

/* Count, mean and sum of squared deviations of parts of the batch: [parts][3][stride]. */
struct moments {
    cl_mem buffer;
    int64_t parts, stride;
};

/* As they are given, or as they are made here. */
static struct moments moments_of(
    const struct problem *problem, const struct operands *operands, const struct work *work)
{
    const struct value *given = problem->inputs[NORM_STATISTICS];
    if (!given) return (struct moments) { operands->workspace, work->parts, work->c };
    return (struct moments) { operands->inputs[NORM_STATISTICS], given->shape.sizes[0], given->shape.sizes[2] };
}

/* For the parts that are made here, or for the one in which those that are given are joined where devices meet. */
static size_t forward_workspace(const struct problem *problem)
{
    const struct work work = work_of(problem);
    const struct value *given = problem->inputs[NORM_STATISTICS];
    const int64_t parts = !given ? work.parts : problem->meets ? 1 : 0;
    return (size_t)(parts * 3 * (given ? given->shape.sizes[2] : work.c)) * sizeof(float);
}

/* Partial sums, and the coefficients behind them. */
static size_t gradient_workspace(const struct problem *problem)
{
    struct work work = work_of(problem);
    return (size_t)((work.parts * 2 + 2) * work.c) * sizeof(float);
}

static struct launch *add(struct launch_list *list, const char *kernel, const struct work *work, const char *options)
{
    const char *index = work->floats <= INT32_MAX ? "uint" : "ulong";
    return launch_add(list, "batch_norm_plain", kernel, "-DGROUP=%zu -DWIDE=%zu -DINDEX=%s %s", work->group, work->wide,
        index, options);
}

static void sizes_of_sum(struct launch *launch, const struct work *work, double tensors)
{
    LAUNCH_INTS(launch, work->n, work->c, work->pixels);
    size_t groups = (size_t)divide_up(work->c, (int64_t)work->wide);
    launch_grid(launch, 2, groups * work->group, (size_t)work->parts, 1, work->group, 1, 1);
    launch_work(launch, 3.0 * (double)work->floats, 4.0 * tensors * (double)work->floats);
}

/* One work-item per channel. */
static void channel_grid(struct launch *launch, const struct problem *problem, const struct work *work)
{
    size_t group = group_size(problem->device, 64);
    launch_grid(launch, 1, size_round_up((size_t)work->c, group), 1, 1, group, 1, 1);
    launch_work(launch, 0, 8.0 * (double)(work->parts * work->c));
}

/* One work-item per float. */
static void float_grid(struct launch *launch, const struct work *work, double tensors)
{
    if (work->floats <= INT32_MAX)
        launch_int(launch, work->floats);
    else
        launch_long(launch, work->floats);
    LAUNCH_INTS(launch, work->c, work->pixels);
    launch_grid(launch, 1, size_round_up((size_t)work->floats, work->group), 1, 1, work->group, 1, 1);
    launch_work(launch, 2.0 * (double)work->floats, 4.0 * tensors * (double)work->floats);
}

/* ---------------------------------------------------------------------------------------------- forward ---- */

static struct launch *apply(const struct problem *problem, const struct operands *operands, struct launch_list *list,
    const char *kernel, const struct work *work, const char *options)
{
    struct launch *launch = add(list, kernel, work, options);
    launch_buffer(launch, operands->inputs[NORM_X]);
    if (problem->node->epilogue.add != NO_VALUE) launch_buffer(launch, operands->add);
    LAUNCH_BUFFERS(launch, operands->outputs[NORM_Y], operands->inputs[NORM_GAMMA], operands->inputs[NORM_BETA]);
    return launch;
}

static void emit_finish(const struct problem *problem, const struct operands *operands, struct launch_list *list,
    const struct work *work, const char *options)
{
    struct moments moments = moments_of(problem, operands, work);
    if (problem->meets) {
        batch_norm_meet(
            problem, list, MEETING_MOMENTS, moments.buffer, moments.parts, moments.stride, operands->workspace);
        moments.buffer = operands->workspace;
        moments.parts = 1; /* of the samples of all devices */
    }
    struct launch *finish = add(list, "plain_finish", work, options);
    LAUNCH_BUFFERS(finish, operands->inputs[NORM_CONSTANTS], moments.buffer);
    for (int i = NORM_SAVED_MEAN; i <= NORM_BATCH_VAR; i++) launch_buffer(finish, operands->outputs[i]);
    LAUNCH_INTS(finish, batch_norm_sizes_of(problem).n, work->c, moments.parts, moments.stride);
    launch_float(finish, (double)problem->node->attributes.epsilon);
    size_t wide = work->group < JOINED ? work->group : JOINED;
    launch_grid(finish, 1, (size_t)divide_up(work->c, (int64_t)wide) * work->group, 1, 1, work->group, 1, 1);
    launch_work(finish, 0, 12.0 * (double)(moments.parts * work->c));
}

static void emit_forward(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    struct work work = work_of(problem);
    char options[EPILOGUE_OPTIONS];
    epilogue_options(&problem->node->epilogue, options, sizeof options);
    if (!problem->inputs[NORM_STATISTICS]) {
        struct launch *stats = add(list, "plain_stats", &work, options);
        LAUNCH_BUFFERS(stats, operands->inputs[NORM_X], operands->workspace);
        sizes_of_sum(stats, &work, 1);
    }
    emit_finish(problem, operands, list, &work, options);

    struct launch *launch = apply(problem, operands, list, "plain_apply", &work, options);
    LAUNCH_BUFFERS(launch, operands->outputs[NORM_SAVED_MEAN], operands->outputs[NORM_SAVED_RSTD]);
    float_grid(launch, &work, 2);
}

static void emit_inference(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    struct work work = work_of(problem);
    char options[EPILOGUE_OPTIONS];
    epilogue_options(&problem->node->epilogue, options, sizeof options);
    struct launch *launch = apply(problem, operands, list, "plain_inference", &work, options);
    LAUNCH_BUFFERS(launch, operands->inputs[NORM_MEAN], operands->inputs[NORM_VAR]);
    float_grid(launch, &work, 2);
    launch_float(launch, (double)problem->node->attributes.epsilon);
}

/* --------------------------------------------------------------------------------------------- gradient ---- */

static struct launch *tensors(const struct problem *problem, const struct operands *operands, struct launch_list *list,
    const char *kernel, const struct work *work)
{
    char options[NORM_OPTIONS];
    struct launch *launch = add(list, kernel, work, batch_norm_gradient_options(problem, options, sizeof options));
    LAUNCH_BUFFERS(launch, operands->inputs[GRADIENT_X], operands->inputs[GRADIENT_DY], operands->inputs[GRADIENT_Y],
        operands->outputs[GRADIENT_DADD]);
    return launch;
}

static void of_channel(struct launch *launch, const struct operands *operands)
{
    LAUNCH_BUFFERS(launch, operands->inputs[GRADIENT_GAMMA], operands->inputs[GRADIENT_BETA],
        operands->inputs[GRADIENT_MEAN], operands->inputs[GRADIENT_RSTD]);
}

static void emit_finish_gradient(
    const struct problem *problem, const struct operands *operands, struct launch_list *list, const struct work *work)
{
    char options[NORM_OPTIONS];
    struct launch *finish =
        add(list, "plain_finish_gradient", work, batch_norm_gradient_options(problem, options, sizeof options));
    LAUNCH_BUFFERS(finish, operands->inputs[GRADIENT_GAMMA], operands->inputs[GRADIENT_MEAN],
        operands->inputs[GRADIENT_RSTD], operands->workspace, operands->outputs[GRADIENT_DGAMMA],
        operands->outputs[GRADIENT_DBETA]);
    LAUNCH_INTS(finish, work->n, work->c, work->pixels, work->parts);
    channel_grid(finish, problem, work);
}

static void emit_gradient(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    struct work work = work_of(problem);
    struct launch *reduce = tensors(problem, operands, list, "plain_reduce", &work);
    of_channel(reduce, operands);
    launch_buffer(reduce, operands->workspace);
    sizes_of_sum(reduce, &work, 2);
    if (problem->meets) {
        batch_norm_meet(problem, list, MEETING_SUMS, operands->workspace, work.parts, work.c, operands->workspace);
        work.parts = 1; /* this device's share of the sums over all devices */
    }
    emit_finish_gradient(problem, operands, list, &work);
    if (!problem->outputs[GRADIENT_DX]) return;
    struct launch *dx = tensors(problem, operands, list, "plain_dx", &work);
    if (problem->node->epilogue.add != NO_VALUE) launch_buffer(dx, operands->add);
    launch_buffer(dx, operands->outputs[GRADIENT_DX]);
    of_channel(dx, operands);
    launch_buffer(dx, operands->workspace);
    launch_int(dx, work.parts);
    float_grid(dx, &work, 3);
}

const struct implementation batch_norm_plain_forward = {
    .name = "plain",
    .fits = fits_everything,
    .any_layout = IN_PLAIN | IN_CHANNELS_LAST,
    .epilogues = epilogues_all,
    .fusions = FUSED_GIVEN,
    .workspace = forward_workspace,
    .in_place = in_place_first,
    .emit = emit_forward,
};
const struct implementation batch_norm_plain_gradient = {
    .name = "plain",
    .fits = fits_everything,
    .any_layout = IN_PLAIN | IN_CHANNELS_LAST,
    .epilogues = batch_norm_gradient_epilogues,
    .workspace = gradient_workspace,
    .in_place = in_place_first_two,
    .emit = emit_gradient,
};
const struct implementation batch_norm_plain_inference = {
    .name = "plain",
    .fits = fits_everything,
    .any_layout = IN_PLAIN | IN_CHANNELS_LAST,
    .epilogues = epilogues_all,
    .in_place = in_place_first,
    .emit = emit_inference,
};
