/* Batch normalisation for CPU-class devices: blocked layout, see clkernels/batch_norm_cpu.cl. */
#include "base/memory.h"
#include "layers/batch_norm.h"
#include "layers/element.h"
#include "layers/elementwise.h"
#include "layers/epilogue.h"

static const char *fits(const struct problem *problem)
{
    const tutti_shape *shape = &problem->inputs[0]->shape;
    if (problem->device->class != DEVICE_CPU) return "it needs a CPU-class device";
    if (shape->rank == 2 && shape->sizes[1] % problem->device->vector_width)
        return "the number of features is not a multiple of the vector width";
    return NULL;
}

/* x, y, dy, dx, dadd are blocked where they have four dimensions; rank 2 is the same with one pixel. */
static void blocked_where_rank_4(const struct value *const *values, int count, enum value_layout *layouts)
{
    for (int i = 0; i < count; i++)
        if (values[i]) layouts[i] = values[i]->shape.rank == 4 ? LAYOUT_BLOCKED : LAYOUT_PLAIN;
}

static void layouts(const struct problem *problem, enum value_layout *inputs, enum value_layout *outputs)
{
    blocked_where_rank_4(problem->inputs, problem->node->input_count, inputs);
    blocked_where_rank_4(problem->outputs, problem->node->output_count, outputs);
}

/* Padding lanes hold 0 before the activation. */
static unsigned epilogues(const struct problem *problem)
{
    bool padding = problem->inputs[0]->shape.sizes[1] % problem->device->vector_width != 0;
    bool safe = !padding || epilogue_keeps_zero(&problem->node->epilogue);
    return EPILOGUE_ADD | (safe ? EPILOGUE_ACTIVATION : 0);
}

/* ------------------------------------------------------------------------------------------------ tasks ---- */

/* Kernel arguments in common, and how the work is cut. */
struct work {
    int64_t n, blocks, pixels, c;
    int64_t parts; /* 1: one task does both passes of a channel block */
    int stream;
};

/* A part takes at least this many positions, about 5 us of work. */
enum { PART_POSITIONS = 256, MOST_PARTS = 64, TASKS = 16 };

/* Outputs of the forward pass beyond this are written around the caches. Gradients only where they are larger than the
 * last one: two nodes read each of them soon. */
enum { FORWARD_STREAM_BYTES = 4 << 20 };

static int64_t parts_for(const struct work *work, int64_t tasks)
{
    int64_t parts = divide_up(tasks, work->blocks), most = work->n * work->pixels / PART_POSITIONS;
    if (parts > most) parts = most;
    if (parts > MOST_PARTS) parts = MOST_PARTS;
    return parts < 1 ? 1 : parts;
}

/* tensors: how many the second pass reads again. One task for both passes of a channel block finds it in the cache, if
 * those that run at a time fit there, and if whole blocks divide evenly among the units or are so many that the last
 * round does not matter. Else both passes are cut finely. */
static struct work work_of(const struct problem *problem, int64_t tensors, size_t stream_from)
{
    struct batch_norm_sizes sizes = batch_norm_sizes_of(problem);
    int64_t width = problem->device->vector_width, units = problem->device->units;
    struct work work = {
        .n = sizes.n, .blocks = divide_up(sizes.c, width), .pixels = sizes.pixels, .c = sizes.c, .parts = 1
    };
    size_t block_bytes = (size_t)(work.n * work.pixels * width) * value_type_bytes(problem->inputs[0]->type);
    bool even = work.blocks % units == 0 || work.blocks >= 4 * units;
    bool cached = block_bytes * (size_t)(tensors * units) <= STREAM_BYTES;
    if (!even || !cached) work.parts = parts_for(&work, TASKS * units);
    work.stream = block_bytes * (size_t)work.blocks > stream_from;
    return work;
}

/* x, and x and dy. */
static struct work forward_work(const struct problem *problem)
{
    return work_of(problem, 1, FORWARD_STREAM_BYTES);
}

static struct work gradient_work(const struct problem *problem)
{
    return work_of(problem, 2, STREAM_BYTES);
}

/* So many numbers of each part and channel. */
static size_t bytes_of_parts(const struct problem *problem, const struct work *work, int64_t numbers)
{
    return (size_t)(work->parts * numbers * work->blocks * problem->device->vector_width) * sizeof(float);
}

/* Own statistics of several parts, or those of all parts for the devices to meet at. alone: nothing else is made. */
static size_t workspace(const struct problem *problem, struct work work, int64_t numbers, bool alone)
{
    const bool given = problem->inputs[STATISTICS_INPUT] != NULL;
    if (given) work.parts = 1;
    return work.parts == 1 && !problem->meets && (given || !alone) ? 0 : bytes_of_parts(problem, &work, numbers);
}

static size_t forward_workspace(const struct problem *problem)
{
    return workspace(problem, forward_work(problem), 3, !problem->outputs[NORM_Y]);
}

static size_t gradient_workspace(const struct problem *problem)
{
    return workspace(problem, gradient_work(problem), 2, false);
}

/* The statistics that both directions go on with, given or made in so many parts. */
struct statistics {
    cl_mem buffer; /* NULL: one task makes and uses them */
    int64_t parts;
};

static void meet(const struct problem *problem, const struct operands *operands, struct launch_list *list,
    const struct work *work, enum meeting_kind kind, struct statistics *statistics)
{
    if (!problem->meets) return;
    batch_norm_meet(problem, list, kind, statistics->buffer, statistics->parts,
        work->blocks * problem->device->vector_width, operands->workspace);
    *statistics = (struct statistics) { operands->workspace, 1 };
}

static void sizes_and_tasks(struct launch *launch, const struct work *work, double tensors)
{
    LAUNCH_INTS(launch, work->n, work->blocks, work->pixels, work->c, work->stream);
    launch_tasks(launch, (size_t)work->blocks, (size_t)work->parts, 1);
    double elements = (double)work->n * (double)work->c * (double)work->pixels;
    launch_work(launch, elements * 2 * tensors, elements * 4 * tensors);
}

/* ---------------------------------------------------------------------------------------------- forward ---- */

/* All forward kernels are of one program. */
static struct launch *add(const struct problem *problem, struct launch_list *list, const char *kernel)
{
    char options[EPILOGUE_OPTIONS], elements[ELEMENT_OPTIONS];
    return launch_add(list, "batch_norm_cpu", kernel, "%s%s",
        epilogue_options(&problem->node->epilogue, options, sizeof options),
        element_options(problem, elements, sizeof elements));
}

static void forward_launch(const struct problem *problem, const struct operands *operands, struct launch_list *list,
    const struct work *work, const struct statistics *statistics)
{
    const struct epilogue *epilogue = &problem->node->epilogue;
    struct launch *launch = add(problem, list, statistics->buffer ? "bn_apply" : "bn_forward");
    launch_buffer(launch, operands->inputs[NORM_X]);
    if (epilogue->add != NO_VALUE) launch_buffer(launch, operands->add);
    LAUNCH_BUFFERS(launch, operands->outputs[NORM_Y], operands->inputs[NORM_GAMMA], operands->inputs[NORM_BETA],
        operands->inputs[NORM_CONSTANTS]);
    if (statistics->buffer) launch_buffer(launch, statistics->buffer);
    for (int i = NORM_SAVED_MEAN; i <= NORM_BATCH_VAR; i++) launch_buffer(launch, operands->outputs[i]);
    sizes_and_tasks(launch, work, epilogue->add != NO_VALUE ? 3 : 2);
    launch_float(launch, (double)problem->node->attributes.epsilon);
    if (statistics->buffer) launch_int(launch, statistics->parts);
}

/* Where those that would read y normalise x as they load it. */
static void moments_launch(const struct problem *problem, const struct operands *operands, struct launch_list *list,
    const struct work *work, const struct statistics *statistics)
{
    struct launch *launch = add(problem, list, "bn_moments");
    LAUNCH_BUFFERS(launch, operands->inputs[NORM_CONSTANTS], statistics->buffer);
    for (int i = NORM_SAVED_MEAN; i <= NORM_BATCH_VAR; i++) launch_buffer(launch, operands->outputs[i]);
    LAUNCH_INTS(launch, work->n, work->blocks, work->c);
    launch_float(launch, (double)problem->node->attributes.epsilon);
    launch_int(launch, statistics->parts);
    launch_tasks(launch, (size_t)work->blocks, 1, 1);
    launch_work(launch, 0, 12.0 * (double)statistics->parts * (double)work->c);
}

static void statistics_launch(
    const struct problem *problem, const struct operands *operands, struct launch_list *list, const struct work *work)
{
    struct launch *launch = add(problem, list, "bn_stats");
    LAUNCH_BUFFERS(launch, operands->inputs[NORM_X], operands->workspace);
    LAUNCH_INTS(launch, work->n, work->blocks, work->pixels);
    launch_tasks(launch, (size_t)work->blocks, (size_t)work->parts, 1);
    launch_work(launch, 0, 4.0 * (double)work->n * (double)work->c * (double)work->pixels);
}

static void emit_forward(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    struct work work = forward_work(problem);
    struct statistics statistics = { NULL, work.parts };
    if (problem->inputs[NORM_STATISTICS]) {
        work.parts = parts_for(&work, TASKS * (int64_t)problem->device->units);
        statistics.buffer = operands->inputs[NORM_STATISTICS];
        statistics.parts = problem->inputs[NORM_STATISTICS]->shape.sizes[0];
    } else if (work.parts > 1 || problem->meets || !problem->outputs[NORM_Y]) {
        statistics_launch(problem, operands, list, &work);
        statistics.buffer = operands->workspace;
    }
    meet(problem, operands, list, &work, MEETING_MOMENTS, &statistics);
    if (!problem->outputs[NORM_Y])
        moments_launch(problem, operands, list, &work, &statistics);
    else
        forward_launch(problem, operands, list, &work, &statistics);
}

static void emit_inference(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    struct work work = forward_work(problem);
    const struct epilogue *epilogue = &problem->node->epilogue;
    work.parts = parts_for(&work, TASKS * (int64_t)problem->device->units);
    struct launch *launch = add(problem, list, "bn_inference");
    launch_buffer(launch, operands->inputs[NORM_X]);
    if (epilogue->add != NO_VALUE) launch_buffer(launch, operands->add);
    launch_buffer(launch, operands->outputs[NORM_Y]);
    for (int i = NORM_GAMMA; i <= NORM_VAR; i++) launch_buffer(launch, operands->inputs[i]);
    sizes_and_tasks(launch, &work, epilogue->add != NO_VALUE ? 3 : 2);
    launch_float(launch, (double)problem->node->attributes.epsilon);
}

/* --------------------------------------------------------------------------------------------- gradient ---- */

/* bn_gradient, bn_reduce and bn_dx take the tensors, then what belongs to a channel. */
static struct launch *gradient_launch(const struct problem *problem, const struct operands *operands,
    struct launch_list *list, const char *kernel, cl_mem statistics)
{
    char options[NORM_OPTIONS], elements[ELEMENT_OPTIONS];
    struct launch *launch = launch_add(list, "batch_norm_cpu", kernel, "%s%s",
        batch_norm_gradient_options(problem, options, sizeof options),
        element_options(problem, elements, sizeof elements));
    LAUNCH_BUFFERS(launch, operands->inputs[GRADIENT_X], operands->inputs[GRADIENT_DY], operands->inputs[GRADIENT_Y]);
    if (problem->node->epilogue.add != NO_VALUE) launch_buffer(launch, operands->add);
    LAUNCH_BUFFERS(launch, operands->outputs[GRADIENT_DADD], operands->outputs[GRADIENT_DX],
        operands->inputs[GRADIENT_GAMMA], operands->inputs[GRADIENT_BETA], operands->inputs[GRADIENT_MEAN],
        operands->inputs[GRADIENT_RSTD]);
    if (statistics) launch_buffer(launch, statistics);
    return launch;
}

static void emit_gradient(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    struct work work = gradient_work(problem);
    struct statistics statistics = { NULL, work.parts };
    double inputs = problem->inputs[GRADIENT_Y] ? 3 : 2, kept = problem->outputs[GRADIENT_DADD] ? 1 : 0;
    if (problem->inputs[GRADIENT_STATISTICS]) {
        work.parts = parts_for(&work, TASKS * (int64_t)problem->device->units);
        statistics.buffer = operands->inputs[GRADIENT_STATISTICS];
        statistics.parts = problem->inputs[GRADIENT_STATISTICS]->shape.sizes[0];
    } else if (work.parts > 1 || problem->meets) {
        statistics.buffer = operands->workspace;
        struct launch *reduce = gradient_launch(problem, operands, list, "bn_reduce", statistics.buffer);
        sizes_and_tasks(reduce, &work, inputs + kept);
    }
    meet(problem, operands, list, &work, MEETING_SUMS, &statistics);
    const char *kernel = statistics.buffer ? "bn_dx" : "bn_gradient";
    struct launch *launch = gradient_launch(problem, operands, list, kernel, statistics.buffer);
    LAUNCH_BUFFERS(launch, operands->outputs[GRADIENT_DGAMMA], operands->outputs[GRADIENT_DBETA]);
    sizes_and_tasks(launch, &work, statistics.buffer ? 3 : inputs + 1 + kept);
    if (statistics.buffer) launch_int(launch, statistics.parts);
}

const struct implementation batch_norm_cpu_forward = {
    .name = "cpu",
    .fits = fits,
    .layouts = layouts,
    .epilogues = epilogues,
    .fusions = FUSED_GIVEN,
    .leaves_normalising = true,
    .workspace = forward_workspace,
    .in_place = in_place_first,
    .emit = emit_forward,
    .bf16_inputs = 1 << NORM_X,
    .bf16_outputs = 1 << NORM_Y,
};
const struct implementation batch_norm_cpu_gradient = {
    .name = "cpu",
    .fits = fits,
    .layouts = layouts,
    .epilogues = batch_norm_gradient_epilogues,
    .fusions = FUSED_GIVEN,
    .workspace = gradient_workspace,
    .in_place = in_place_first_two,
    .emit = emit_gradient,
    .bf16_inputs = 1 << GRADIENT_X | 1 << GRADIENT_DY | 1 << GRADIENT_Y,
    .bf16_outputs = 1 << GRADIENT_DX | 1 << GRADIENT_DADD,
};
const struct implementation batch_norm_cpu_inference = {
    .name = "cpu",
    .fits = fits,
    .layouts = layouts,
    .epilogues = epilogues,
    .in_place = in_place_first,
    .emit = emit_inference,
    .bf16_inputs = 1 << NORM_X,
    .bf16_outputs = 1 << NORM_Y,
};
