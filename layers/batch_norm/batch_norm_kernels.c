/* Batch normalisation's implementations. Kernels: layers/batch_norm/batch_norm_cpu.cl, blocked, and
 * batch_norm_plain.cl, for any device, plain or with channels last; batch_norm_join.cl where devices synchronise. */

#include "base/memory.h"
#include "base/numbers.h"
#include "layers/batch_norm/arguments/batch_norm_cpu.h"
#include "layers/batch_norm/arguments/batch_norm_plain.h"
#include "layers/batch_norm/batch_norm.h"
#include "layers/element.h"
#include "layers/elementwise.h"
#include "layers/epilogue.h"
#include "runtime/arguments.h"

static bool is_gradient(const struct problem *problem)
{
    return problem->node->operation == &operation_batch_norm_gradient;
}

/* Division of the work: blocks of channels times parts of the positions. In the blocked layout these are tasks; with
 * one part, a task makes and uses a block's statistics. Otherwise they are groups of `group` work-items, which take
 * `wide` channels. */
struct work {
    bool blocked, stream;
    int64_t n, c, pixels, floats;
    int64_t blocks, parts;
    int64_t stride; /* from one row of the statistics to the next */
    size_t group, wide;
    /* For groups: FOURS of batch_norm_plain.cl, and sizes in its vectors. */
    int fours;
    int64_t c_vectors, pixel_vectors, vectors;
};

/* CPU class: a part takes at least PART_POSITIONS positions, about 5 us of work. GPU class: a work-item takes at
 * least ITEM_VECTORS vectors. */
enum { PART_POSITIONS = 256, ITEM_VECTORS = 8, TASKS = 16, GROUPS_PER_UNIT = 16 };
enum { MOST_PARTS = 64, MOST_PARTS_OF_GROUPS = 256 };
enum { GROUP = 256, WIDE = 32, JOINED = 8, EACH = 4 };
enum { MOST_IN_TURN = 64 }; /* parts that one work-item goes through; more are joined by several */

/* Outputs of the forward pass larger than this bypass the caches. Gradients bypass them only where they are larger
 * than the last cache, because two nodes read each of them soon. */
enum { FORWARD_STREAM_BYTES = 4 << 20 };

/* Number of parts that give `wanted` pieces of work in all blocks: at most `most` and `limit`, at least 1. */
static int64_t parts_for(const struct work *work, int64_t wanted, int64_t most, int64_t limit)
{
    int64_t parts = divide_up(wanted, work->blocks);
    if (parts > most) parts = most;
    if (parts > limit) parts = limit;
    return parts < 1 ? 1 : parts;
}

/* One task for both passes of a channel block finds what the second pass reads again (x, or x and dy) in the cache.
 * This needs room there for the tasks that run at a time. Whole blocks must also divide evenly among the units, or be
 * so many that the last round does not matter. Otherwise both passes are divided finely, and so is a single pass. */
static void design_cpu(const struct problem *problem, void *design)
{
    struct work *work = design;
    const struct planes sizes = value_planes(problem->inputs[0], CHANNEL_AXIS);
    const bool gradient = is_gradient(problem);
    const bool given = node_fusion(problem->node, FUSION_GIVEN) != NULL;
    const bool single = given || problem->node->operation == &operation_batch_norm_inference;
    const int64_t width = problem->device->vector_width, units = problem->device->units, tensors = gradient ? 2 : 1;
    *work = (struct work) { .blocked = true, .n = sizes.n, .c = sizes.c, .pixels = sizes.pixels, .parts = 1 };
    work->floats = sizes.n * sizes.c * sizes.pixels;
    work->blocks = divide_up(sizes.c, width);
    work->stride = work->blocks * width;
    const size_t bytes = (size_t)(work->n * work->pixels * width) * value_type_bytes(problem->inputs[0]->type);
    const bool even = work->blocks % units == 0 || work->blocks >= 4 * units;
    const bool cached = bytes * (size_t)(tensors * units) <= STREAM_BYTES;
    if (single || !even || !cached)
        work->parts = parts_for(work, TASKS * units, work->n * work->pixels / PART_POSITIONS, MOST_PARTS);
    work->stream = bytes * (size_t)work->blocks > (gradient ? STREAM_BYTES : FORWARD_STREAM_BYTES);
}

static void design_plain(const struct problem *problem, void *design)
{
    struct work *work = design;
    struct planes sizes = value_planes(problem->inputs[0], CHANNEL_AXIS);
    if (problem->inputs[NORM_X]->layout == LAYOUT_CHANNELS_LAST) /* rows of channels, as of rank 2 */
        sizes = (struct planes) { sizes.n * sizes.pixels, sizes.c, 1 };
    *work = (struct work) { .n = sizes.n, .c = sizes.c, .pixels = sizes.pixels, .stride = sizes.c };
    work->floats = sizes.n * sizes.c * sizes.pixels;
    work->fours = sizes.pixels > 1 ? sizes.pixels % 4 == 0 : sizes.c % 4 == 0 ? 2 : 0;
    work->c_vectors = sizes.c / (work->fours == 2 ? 4 : 1);
    work->pixel_vectors = sizes.pixels / (work->fours == 1 ? 4 : 1);
    work->vectors = work->floats / (work->fours ? 4 : 1);
    work->group = group_size(problem->device, GROUP);
    work->wide = 1;
    while (sizes.pixels == 1 && work->wide < WIDE && work->wide < work->group && (int64_t)work->wide < work->c_vectors)
        work->wide *= 2;
    work->blocks = divide_up(work->c_vectors, (int64_t)work->wide);
    const int64_t lanes = (int64_t)(work->group / work->wide);
    work->parts = parts_for(work, (int64_t)GROUPS_PER_UNIT * problem->device->units,
        work->n * work->pixel_vectors / (lanes * ITEM_VECTORS), MOST_PARTS_OF_GROUPS);
}

/* ----------------------------------------------------------------------------------------------- statistics ---- */

/* [parts][numbers][stride]: three numbers forward, two of the gradient. They are given, or made in `parts` parts. */
struct statistics {
    cl_mem buffer; /* NULL: one task makes and uses them */
    int64_t parts, stride;
};

/* Whether separate launches make the statistics. */
static bool makes_statistics(const struct problem *problem, const struct work *work)
{
    const bool alone = !is_gradient(problem) && !problem->outputs[NORM_Y]; /* nothing else is made */
    if (node_fusion(problem->node, FUSION_GIVEN)) return false;
    return !work->blocked || work->parts > 1 || problem->synchronised || alone;
}

/* Number of parts to which given forward statistics are joined first, where one group would be too slow; else 0. */
static int64_t slices_of(const struct problem *problem, const struct work *work)
{
    enum { FEW = 512, EACH_SLICE = 256, MOST_SLICES = 128 };
    const struct value *given = fused_input(problem, FUSION_GIVEN, 0);
    const int64_t parts = given && !work->blocked && !is_gradient(problem) ? given->shape.sizes[0] : 0;
    const int64_t slices = divide_up(parts, EACH_SLICE);
    return parts <= FEW ? 0 : slices < MOST_SLICES ? slices : MOST_SLICES;
}

/* Bytes for the statistics of several parts, or of one part where devices synchronise. The gradient's are followed by
 * the coefficients of plain_dx. */
static size_t workspace(const struct problem *problem)
{
    const struct work *work = problem->design;
    const struct value *given = fused_input(problem, FUSION_GIVEN, 0);
    const int64_t slices = slices_of(problem, work), own = makes_statistics(problem, work) ? work->parts : 0;
    const int64_t parts = slices ? slices : given ? problem->synchronised : own;
    const int64_t floats = parts * (is_gradient(problem) ? 2 : 3) * (given ? given->shape.sizes[2] : work->stride);
    return (size_t)(floats + (is_gradient(problem) && !work->blocked ? 2 * work->c : 0)) * sizeof(float);
}

static struct statistics statistics_of(
    const struct problem *problem, const struct operands *operands, const struct work *work)
{
    const struct value *given = fused_input(problem, FUSION_GIVEN, 0);
    if (!given)
        return (struct statistics) { makes_statistics(problem, work) ? operands->workspace : NULL, work->parts,
            work->stride };
    return (struct statistics) { fused_input_buffer(problem, operands, FUSION_GIVEN, 0), given->shape.sizes[0],
        given->shape.sizes[2] };
}

/* Joins the statistics of all parts into one part, which the sync point takes. */
static void add_sync(const struct problem *problem, const struct operands *operands, struct launch_list *list,
    enum sync_kind kind, struct statistics *statistics)
{
    const int64_t parts = statistics->parts, stride = statistics->stride;
    if (!problem->synchronised) return;
    if (batch_norm_attributes(problem->node)->biased_variance && kind == SYNC_MOMENTS && list->status == TUTTI_OK)
        list->status = fail(TUTTI_UNSUPPORTED,
            "batch_norm: biased_variance is not possible where several devices have common statistics "
            "(tutti_training.sync_batchnorm)");
    if (parts > 1 || statistics->buffer != operands->workspace) {
        const bool many = parts > MOST_IN_TURN;
        const size_t group = group_size(problem->device, many ? 256 : 64), together = many && group > 8 ? 8 : group;
        struct launch *launch = launch_add(list, "batch_norm_join", kind == SYNC_MOMENTS ? "join_moments" : "join_sums",
            "-DGROUP=%zu -DJOINED=%zu", group, together);
        LAUNCH_BUFFERS(launch, statistics->buffer, operands->workspace);
        LAUNCH_INTS(launch, parts, stride);
        launch_grid(launch, 1, (size_t)divide_up(stride, (int64_t)together) * group, 1, 1, group, 1, 1);
        launch_work(launch, 0, 8.0 * (double)(parts * stride));
    }
    launch_sync(list, kind, operands->workspace, problem->inputs[0]->shape.sizes[CHANNEL_AXIS], stride);
    *statistics = (struct statistics) { operands->workspace, 1, stride };
}

/* -------------------------------------------------------------------------------------------------- launches ---- */

/* Build options of the gradient's kernels: mask, outputs, and that of epilogue.h for the addition to dx. */
static const char *gradient_options(const struct problem *problem, char *buffer, size_t size)
{
    const struct nonlinearity function = node_function(problem->node, FUSION_MASKED);
    int mask = function.activation == ACTIVATION_RELU ? 1 : function.activation == ACTIVATION_CLIP ? 2 : 0;
    buffer[0] = '\0';
    number_append(buffer, size, "-DMASK=%d -DMASK_FROM_Y=%d -DDADD=%d -DDX=%d -DADD=%d", mask,
        fused_input(problem, FUSION_MASKED, MASKED_Y) != NULL, fused_output(problem, FUSION_MASKED) != NULL,
        problem->outputs[GRADIENT_DX] != NULL, problem->add != NULL);
    if (mask == 2) append_bounds(function, buffer, size);
    return buffer;
}

/* Adds a launch; all kernels of a node come from one program. */
static struct launch *add(
    const struct problem *problem, struct launch_list *list, const struct work *work, const char *kernel)
{
    char options[320], elements[ELEMENT_OPTIONS];
    if (is_gradient(problem))
        gradient_options(problem, options, sizeof options);
    else
        epilogue_options(problem->node, options, sizeof options);
    if (work->blocked)
        return launch_add(
            list, "batch_norm_cpu", kernel, "%s%s", options, element_options(problem, elements, sizeof elements));
    return launch_add(list, "batch_norm_plain", kernel, "-DGROUP=%zu -DWIDE=%zu -DINDEX=%s -DFOURS=%d %s", work->group,
        work->wide, work->floats <= INT32_MAX ? "uint" : "ulong", work->fours, options);
}

/* Size arguments of kernels that go over blocks of channels, or over vectors. */
#define BLOCKS_VALUES(work) \
    .N = (work)->n, .CB = (work)->blocks, .HW = (work)->pixels, .C = (work)->c, .stream = (work)->stream
#define VECTORS_VALUES(work)                                                                        \
    .vectors = index_argument((work)->vectors, (work)->floats > INT32_MAX), .C = (work)->c_vectors, \
    .HW = (work)->pixel_vectors

/* Sets the grid of a launch that makes parts of sums from `tensors` tensors. */
static void sums_grid(struct launch *launch, const struct work *work, double tensors)
{
    if (work->blocked)
        launch_tasks(launch, (size_t)work->blocks, (size_t)work->parts, 1);
    else
        launch_grid(launch, 2, (size_t)work->blocks * work->group, (size_t)work->parts, 1, work->group, 1, 1);
    launch_work(launch, work->blocked ? 0 : 3.0 * (double)work->floats, 4.0 * tensors * (double)work->floats);
}

/* Sets the grid of a launch that goes through whole tensors. Not blocked, each work-item takes EACH vectors. */
static void elements_grid(struct launch *launch, const struct work *work, double tensors)
{
    const double floats = (double)work->floats;
    launch_work(launch, 2.0 * floats * (work->blocked ? tensors : 1), 4.0 * tensors * floats);
    if (work->blocked) {
        launch_tasks(launch, (size_t)work->blocks, (size_t)work->parts, 1);
        return;
    }
    const size_t groups = (size_t)divide_up(work->vectors, (int64_t)work->group * EACH);
    launch_grid(launch, 1, groups * work->group, 1, 1, work->group, 1, 1);
}

/* Sets a grid with a group for each JOINED channels and each of the slices. */
static void set_channels(struct launch *launch, const struct work *work, int64_t slices)
{
    const size_t wide = work->group < JOINED ? work->group : JOINED;
    launch_grid(
        launch, 2, (size_t)divide_up(work->c, (int64_t)wide) * work->group, (size_t)slices, 1, work->group, 1, 1);
}

/* ---------------------------------------------------------------------------------------------- forward ---- */

/* Joins given parts into fewer parts in the workspace, where they are many. */
static void emit_join(const struct problem *problem, const struct operands *operands, struct launch_list *list,
    const struct work *work, struct statistics *statistics)
{
    const int64_t slices = slices_of(problem, work);
    if (!slices) return;
    struct launch *join = add(problem, list, work, "plain_join");
    LAUNCH_BUFFERS(join, statistics->buffer, operands->workspace);
    LAUNCH_INTS(join, work->c, statistics->parts, statistics->stride);
    set_channels(join, work, slices);
    launch_work(join, 0, 12.0 * (double)((statistics->parts + slices) * work->c));
    statistics->buffer = operands->workspace;
    statistics->parts = slices;
}

ARGUMENTS(bn_forward, BN_FORWARD_ARGUMENTS)
ARGUMENTS(bn_apply, BN_APPLY_ARGUMENTS)
ARGUMENTS(bn_moments, BN_MOMENTS_ARGUMENTS)
ARGUMENTS(bn_inference, BN_INFERENCE_ARGUMENTS)
ARGUMENTS(plain_finish, PLAIN_FINISH_ARGUMENTS)
ARGUMENTS(plain_apply, PLAIN_APPLY_ARGUMENTS)
ARGUMENTS(plain_inference, PLAIN_INFERENCE_ARGUMENTS)
#define APPLIED_VALUES(given)                                                         \
    .x = (given)->inputs[NORM_X], .add = (given)->add, .y = (given)->outputs[NORM_Y], \
    .gamma = (given)->inputs[NORM_GAMMA], .beta = (given)->inputs[NORM_BETA]
#define SAVED_VALUES(given) \
    .save_mean = (given)->outputs[NORM_SAVED_MEAN], .save_rstd = (given)->outputs[NORM_SAVED_RSTD]
#define MOMENTS_VALUES(given)                                          \
    .constants = (given)->inputs[NORM_CONSTANTS], SAVED_VALUES(given), \
    .batch_mean = (given)->outputs[NORM_BATCH_MEAN], .batch_var = (given)->outputs[NORM_BATCH_VAR]

/* Makes mean and variance from all parts. In the blocked layout this is only needed where the readers of y normalise
 * x as they load it. */
static void emit_moments(const struct problem *problem, const struct operands *operands, struct launch_list *list,
    const struct work *work, const struct statistics *statistics)
{
    const double epsilon = (double)batch_norm_attributes(problem->node)->epsilon;
    struct launch *launch = add(problem, list, work, work->blocked ? "bn_moments" : "plain_finish");
    launch_work(launch, 0, 12.0 * (double)(statistics->parts * work->c));
    if (work->blocked) {
        ARGUMENTS_SET(launch, bn_moments, MOMENTS_VALUES(operands), .statistics = statistics->buffer, .N = work->n,
            .CB = work->blocks, .C = work->c, .epsilon = epsilon, .statistics_parts = statistics->parts);
        launch_tasks(launch, (size_t)work->blocks, 1, 1);
        return;
    }
    ARGUMENTS_SET(launch, plain_finish, MOMENTS_VALUES(operands), .partial = statistics->buffer,
        .N = value_planes(problem->inputs[0], CHANNEL_AXIS).n, .C = work->c, .parts = statistics->parts,
        .stride = statistics->stride, .epsilon = epsilon);
    set_channels(launch, work, 1);
}

/* Makes y. statistics: NULL in inference. */
static void emit_results(const struct problem *problem, const struct operands *operands, struct launch_list *list,
    const struct work *work, const struct statistics *statistics)
{
    const bool joins = work->blocked && statistics && statistics->buffer;
    const double epsilon = (double)batch_norm_attributes(problem->node)->epsilon;
    const cl_mem mean = operands->inputs[NORM_MEAN], var = operands->inputs[NORM_VAR];
    const char *blocked = joins ? "bn_apply" : statistics ? "bn_forward" : "bn_inference";
    const char *plain = statistics ? "plain_apply" : "plain_inference";
    struct launch *launch = add(problem, list, work, work->blocked ? blocked : plain);
    if (joins)
        ARGUMENTS_SET(launch, bn_apply, APPLIED_VALUES(operands), MOMENTS_VALUES(operands), BLOCKS_VALUES(work),
            .statistics = statistics->buffer, .epsilon = epsilon, .statistics_parts = statistics->parts);
    else if (work->blocked && statistics)
        ARGUMENTS_SET(launch, bn_forward, APPLIED_VALUES(operands), MOMENTS_VALUES(operands), BLOCKS_VALUES(work),
            .epsilon = epsilon);
    else if (work->blocked)
        ARGUMENTS_SET(launch, bn_inference, APPLIED_VALUES(operands), .mean = mean, .var = var, BLOCKS_VALUES(work),
            .epsilon = epsilon);
    else if (statistics)
        ARGUMENTS_SET(launch, plain_apply, APPLIED_VALUES(operands), SAVED_VALUES(operands), VECTORS_VALUES(work));
    else
        ARGUMENTS_SET(launch, plain_inference, APPLIED_VALUES(operands), .mean = mean, .var = var, VECTORS_VALUES(work),
            .epsilon = epsilon);
    elements_grid(launch, work, work->blocked && problem->add ? 3 : 2);
}

static void emit_forward(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct work *work = problem->design;
    struct statistics statistics = statistics_of(problem, operands, work);
    if (makes_statistics(problem, work)) {
        struct launch *launch = add(problem, list, work, work->blocked ? "bn_stats" : "plain_stats");
        LAUNCH_BUFFERS(launch, operands->inputs[NORM_X], operands->workspace);
        LAUNCH_INTS(launch, work->n, work->blocked ? work->blocks : work->c_vectors,
            work->blocked ? work->pixels : work->pixel_vectors);
        sums_grid(launch, work, 1);
    }
    emit_join(problem, operands, list, work, &statistics);
    add_sync(problem, operands, list, SYNC_MOMENTS, &statistics);
    if (!work->blocked || !problem->outputs[NORM_Y]) emit_moments(problem, operands, list, work, &statistics);
    if (problem->outputs[NORM_Y]) emit_results(problem, operands, list, work, &statistics);
}

static void emit_inference(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    emit_results(problem, operands, list, problem->design, NULL);
}

/* --------------------------------------------------------------------------------------------- gradient ---- */

ARGUMENTS(tensors, TENSORS_ARGUMENTS)
ARGUMENTS(bn_gradient, BN_GRADIENT_ARGUMENTS)
ARGUMENTS(bn_reduce, BN_REDUCE_ARGUMENTS)
ARGUMENTS(bn_dx, BN_DX_ARGUMENTS)
ARGUMENTS(plain_reduce, PLAIN_REDUCE_ARGUMENTS)
ARGUMENTS(plain_finish_gradient, PLAIN_FINISH_GRADIENT_ARGUMENTS)
ARGUMENTS(plain_dx, PLAIN_DX_ARGUMENTS)
#define TENSORS_VALUES(problem, given)                                    \
    .x = (given)->inputs[GRADIENT_X], .dy = (given)->inputs[GRADIENT_DY], \
    .y = fused_input_buffer((problem), (given), FUSION_MASKED, MASKED_Y), \
    .dadd = fused_output_buffer((problem), (given), FUSION_MASKED)
#define CHANNEL_VALUES(problem, given)                                          \
    .gamma = (given)->inputs[GRADIENT_GAMMA],                                   \
    .beta = fused_input_buffer((problem), (given), FUSION_MASKED, MASKED_BETA), \
    .save_mean = (given)->inputs[GRADIENT_MEAN], .save_rstd = (given)->inputs[GRADIENT_RSTD]
#define SUMS_VALUES(given) .dgamma = (given)->outputs[GRADIENT_DGAMMA], .dbeta = (given)->outputs[GRADIENT_DBETA]

/* Adds a launch of a blocked kernel, whose arguments are the tensors, then those of the channels. */
static struct launch *add_blocked(const struct problem *problem, const struct operands *operands,
    struct launch_list *list, const struct work *work, const char *kernel)
{
    struct launch *launch = add(problem, list, work, kernel);
    ARGUMENTS_SET(
        launch, tensors, TENSORS_VALUES(problem, operands), .add = operands->add, .dx = operands->outputs[GRADIENT_DX]);
    return launch;
}

/* Makes dgamma, dbeta, and each channel's coefficients for plain_dx. */
static void emit_coefficients(const struct problem *problem, const struct operands *operands, struct launch_list *list,
    const struct work *work, int64_t parts)
{
    struct launch *launch = add(problem, list, work, "plain_finish_gradient");
    ARGUMENTS_SET(launch, plain_finish_gradient, .gamma = operands->inputs[GRADIENT_GAMMA],
        .save_mean = operands->inputs[GRADIENT_MEAN], .save_rstd = operands->inputs[GRADIENT_RSTD],
        .partial = operands->workspace, SUMS_VALUES(operands), .N = work->n, .C = work->c, .HW = work->pixels,
        .parts = parts);
    set_channels(launch, work, 1);
    launch_work(launch, 0, 8.0 * (double)(parts * work->c));
}

static void emit_reduce(const struct problem *problem, const struct operands *operands, struct launch_list *list,
    const struct work *work, double tensors)
{
    if (work->blocked) {
        struct launch *launch = add_blocked(problem, operands, list, work, "bn_reduce");
        ARGUMENTS_SET(launch, bn_reduce, CHANNEL_VALUES(problem, operands), .statistics = operands->workspace,
            BLOCKS_VALUES(work));
        elements_grid(launch, work, tensors);
        return;
    }
    struct launch *launch = add(problem, list, work, "plain_reduce");
    ARGUMENTS_SET(launch, plain_reduce, TENSORS_VALUES(problem, operands), CHANNEL_VALUES(problem, operands),
        .partial = operands->workspace, .N = work->n, .C = work->c_vectors, .HW = work->pixel_vectors);
    sums_grid(launch, work, 2);
}

static struct launch *emit_dx(const struct problem *problem, const struct operands *operands, struct launch_list *list,
    const struct work *work, const struct statistics *statistics)
{
    struct launch *launch;
    if (!work->blocked) {
        launch = add(problem, list, work, "plain_dx");
        ARGUMENTS_SET(launch, plain_dx, TENSORS_VALUES(problem, operands), CHANNEL_VALUES(problem, operands),
            .add = operands->add, .dx = operands->outputs[GRADIENT_DX], .partial = statistics->buffer,
            .parts = statistics->parts, VECTORS_VALUES(work));
    } else if (statistics->buffer) {
        launch = add_blocked(problem, operands, list, work, "bn_dx");
        ARGUMENTS_SET(launch, bn_dx, CHANNEL_VALUES(problem, operands), .statistics = statistics->buffer,
            SUMS_VALUES(operands), BLOCKS_VALUES(work), .statistics_parts = statistics->parts);
    } else {
        launch = add_blocked(problem, operands, list, work, "bn_gradient");
        ARGUMENTS_SET(
            launch, bn_gradient, CHANNEL_VALUES(problem, operands), SUMS_VALUES(operands), BLOCKS_VALUES(work));
    }
    return launch;
}

static void emit_gradient(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct work *work = problem->design;
    const double read = fused_input(problem, FUSION_MASKED, MASKED_Y) ? 3 : 2;
    const double kept = fused_output(problem, FUSION_MASKED) ? 1 : 0;
    struct statistics statistics = statistics_of(problem, operands, work);
    if (makes_statistics(problem, work)) emit_reduce(problem, operands, list, work, read + kept);
    add_sync(problem, operands, list, SYNC_SUMS, &statistics);
    if (!work->blocked) emit_coefficients(problem, operands, list, work, statistics.parts);
    if (!work->blocked && !problem->outputs[GRADIENT_DX]) return;
    struct launch *launch = emit_dx(problem, operands, list, work, &statistics);
    elements_grid(launch, work, statistics.buffer ? 3 : read + 1 + kept);
}

/* ---------------------------------------------------------------------------------------------------- tables ---- */

static bool has_space(const struct problem *problem)
{
    return problem->inputs[0]->shape.rank > SPACE_AXIS;
}

static const char *fits_cpu(const struct problem *problem)
{
    if (problem->device->class != DEVICE_CPU) return "it needs a CPU-class device";
    if (!has_space(problem) && problem->inputs[0]->shape.sizes[CHANNEL_AXIS] % problem->device->vector_width)
        return "the number of features is not a multiple of the vector width";
    return NULL;
}

/* x, y, dy, dx, dadd are blocked where they have space; features are the same with one pixel. */
static void block(const struct value *x, const struct value *const *values, int count, enum value_layout *layouts)
{
    for (int i = 0; i < count; i++)
        if (values[i] && value_has_axes_of(values[i], x)) layouts[i] = LAYOUT_BLOCKED;
}

static void layouts(const struct problem *problem, enum value_layout *inputs, enum value_layout *outputs)
{
    if (!has_space(problem)) return;
    block(problem->inputs[0], problem->inputs, problem->node->input_count, inputs);
    block(problem->inputs[0], problem->outputs, problem->node->output_count, outputs);
}

/* Padding lanes hold 0 before the activation. */
static const char *cannot_fuse(const struct problem *problem)
{
    bool padding = problem->inputs[0]->shape.sizes[CHANNEL_AXIS] % problem->device->vector_width != 0;
    bool safe = !padding || keeps_zero(node_function(problem->node, FUSION_ACTIVATION));
    return safe ? NULL : "the function would make padding other than zero";
}

/* relu and clip can be undone in the gradient's pass. */
static const char *cannot_fuse_gradient(const struct problem *problem)
{
    enum activation activation = node_function(problem->node, FUSION_MASKED).activation;
    bool mask = activation == ACTIVATION_NONE || activation == ACTIVATION_RELU || activation == ACTIVATION_CLIP;
    return mask ? NULL : "its kernels have the derivatives of relu and clip alone";
}

#define CPU \
    .name = "cpu", .fits = fits_cpu, .layouts = layouts, .design_bytes = sizeof(struct work), .design = design_cpu
#define PLAIN                                                                                        \
    .name = "plain", .any_layout = IN_PLAIN | IN_CHANNELS_LAST, .design_bytes = sizeof(struct work), \
    .design = design_plain
/* Each output is written after its own input was read for the last time. */
#define FORWARD                                                                                                   \
    .fusions = FUSED(GIVEN) | FUSED(ADD) | FUSED(ACTIVATION), .workspace = workspace, .in_place = in_place_first, \
    .emit = emit_forward
#define GRADIENT \
    .cannot_fuse = cannot_fuse_gradient, .workspace = workspace, .in_place = in_place_first_two, .emit = emit_gradient
#define INFERENCE .fusions = FUSED(ADD) | FUSED(ACTIVATION), .in_place = in_place_first, .emit = emit_inference
#define BF16_FORWARD .bf16_inputs = 1 << NORM_X, .bf16_outputs = 1 << NORM_Y

static const struct implementation cpu = { CPU, FORWARD, BF16_FORWARD, .cannot_fuse = cannot_fuse,
    .leaves_normalising = true };
static const struct implementation cpu_gradient = { CPU, GRADIENT, .fusions = FUSED(MASKED) | FUSED(GIVEN) | FUSED(ADD),
    .bf16_inputs = 1 << GRADIENT_X | 1 << GRADIENT_DY, .bf16_outputs = 1 << GRADIENT_DX };
static const struct implementation cpu_inference = { CPU, INFERENCE, BF16_FORWARD, .cannot_fuse = cannot_fuse };
static const struct implementation plain = { PLAIN, FORWARD };
static const struct implementation plain_gradient = { PLAIN, GRADIENT, .fusions = FUSED(MASKED) | FUSED(ADD) };
static const struct implementation plain_inference = { PLAIN, INFERENCE };

const struct implementation *const norm_forward[] = { &cpu, &plain, NULL };
const struct implementation *const norm_gradient[] = { &cpu_gradient, &plain_gradient, NULL };
const struct implementation *const norm_inference[] = { &cpu_inference, &plain_inference, NULL };
