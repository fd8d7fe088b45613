/* The steps of many samples at once on CPU-class devices: recurrent_panels_cpu.cl multiplies their states by panels of
 * the packed weights. Tasks divide the samples and run all steps without waiting. With few samples and weights that
 * outgrow a core's cache, each core would wait for all weights in each step: then each step is a launch, whose tasks
 * divide the units, so that a core reads its part of the weights alone. docs/experiments/recurrent.md has both. */
#include "layers/recurrent/arguments/recurrent_panels.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "layers/elementwise.h"
#include "layers/recurrent/recurrent.h"
#include "runtime/arguments.h"

enum {
    OPTIONS = 320,
    ROWS = 64,            /* samples of a task at most: their sums stay in the first-level cache */
    TASKS_PER_UNIT = 4,   /* of a step's launch */
    KEPT_BYTES = 1 << 20, /* weights that a core's second-level cache keeps */
    SAMPLES_PER_UNIT = 4, /* from so many on, tasks divide the samples */
    STEPS = 4096,         /* launches of a node at most */
    LOCAL_BYTES = 3072,   /* the sums of twelve samples at least */
};

struct panels {
    int64_t vectors, tile_rows;          /* the register tile: NV, MR */
    int64_t depth, blocks, panel_floats; /* of a step's product: its depth, blocks of columns, floats of one's panel */
    int64_t samples, steps, width, row;  /* row: floats of a row of the states */
    int64_t rows, task_blocks;           /* of a task */
    bool stepwise;                       /* each step is a launch */
};

/* Forward, a tile has the vectors of all gates; backward up to four, unless fewer are all. */
static void set_tile(const struct problem *problem, struct panels *p)
{
    const int64_t lanes = problem->device->vector_width;
    const bool wide = lanes >= 16;
    p->vectors = recurrent_gates(recurrent_attributes(problem->node)->kind);
    if (recurrent_is_backward(problem)) {
        const int64_t vectors = divide_up(p->width, lanes);
        p->vectors = vectors >= 4 && wide ? 4 : vectors >= 2 ? 2 : 1;
    }
    static const int tile_rows[2][4] = { { 6, 6, 4, 2 }, { 12, 12, 8, 6 } }; /* of narrow and of wide vectors */
    p->tile_rows = tile_rows[wide][p->vectors - 1];
}

static void divide(const struct problem *problem, struct panels *p)
{
    const int64_t units = problem->device->units > 0 ? problem->device->units : 1;
    const bool fits = (size_t)value_elements(recurrent_matrix(problem)) * sizeof(float) <= KEPT_BYTES;
    int64_t most =
        (int64_t)(problem->device->local_bytes / sizeof(float)) / (p->vectors * problem->device->vector_width);
    if (most > ROWS) most = ROWS;
    p->stepwise = !fits && p->samples < SAMPLES_PER_UNIT * units && p->steps <= STEPS;
    const int64_t groups = divide_up(p->samples, most);
    int64_t tasks = groups > units || p->stepwise ? groups : p->samples < units ? p->samples : units;
    p->rows = divide_up(p->samples, tasks);
    tasks = divide_up(TASKS_PER_UNIT * units, divide_up(p->samples, p->rows));
    p->task_blocks = p->stepwise ? divide_up(p->blocks, tasks < p->blocks ? tasks : p->blocks) : p->blocks;
}

static struct panels panels_of(const struct problem *problem)
{
    const struct value *x = problem->inputs[recurrent_is_backward(problem) ? BACKWARD_Y : RECURRENT_GATES];
    const struct value *r = recurrent_matrix(problem);
    const int64_t lanes = problem->device->vector_width;
    struct panels p = { .samples = x->shape.sizes[0], .steps = x->shape.sizes[1], .width = value_size(r, 0) };
    set_tile(problem, &p);
    p.depth = recurrent_is_backward(problem) ? value_size(r, 1) : p.width;
    p.blocks = divide_up(p.width, recurrent_is_backward(problem) ? lanes * p.vectors : lanes);
    p.panel_floats = p.depth * p.vectors * lanes;
    p.row = (int64_t)size_round_up((size_t)p.depth, (size_t)lanes) + lanes;
    divide(problem, &p);
    return p;
}

static const char *fits(const struct problem *problem)
{
    const struct recurrent_attributes *a = recurrent_attributes(problem->node);
    const char *refusal = fits_cpu_class(problem);
    if (refusal) return refusal;
    if (a->kind == RECURRENT_GRU && !a->after)
        return "a reset gate that multiplies the state makes two products of a step";
    if (problem->device->local_bytes < LOCAL_BYTES) return "the device's local memory is too small";
    return NULL;
}

static size_t workspace(const struct problem *problem)
{
    const struct panels p = panels_of(problem);
    const bool cells = !recurrent_is_backward(problem) && recurrent_attributes(problem->node)->kind == RECURRENT_LSTM;
    return (size_t)((2 + cells) * p.samples * p.row) * sizeof(float);
}

static size_t prepared(const struct problem *problem)
{
    const struct panels p = panels_of(problem);
    return (size_t)(p.blocks * p.panel_floats) * sizeof(float);
}

static void write_options(const struct problem *problem, const struct panels *p, char *options)
{
    options[0] = '\0';
    number_append(options, OPTIONS, "-DBACKWARD=%d -DMR=%d -DNV=%d ", recurrent_is_backward(problem), (int)p->tile_rows,
        (int)p->vectors);
    recurrent_options(recurrent_attributes(problem->node), options, OPTIONS);
}

static void emit_prepare(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct panels p = panels_of(problem);
    char options[OPTIONS];
    write_options(problem, &p, options);
    struct launch *launch = launch_add(list, "recurrent_panels_cpu", "recurrent_panels_pack", "%s", options);
    LAUNCH_BUFFERS(
        launch, operands->inputs[recurrent_is_backward(problem) ? BACKWARD_R : RECURRENT_R], operands->prepared);
    LAUNCH_INTS(launch, p.width);
    launch_tasks(launch, (size_t)p.blocks, 1, 1);
    launch_work(launch, 0, 4 * (double)(value_elements(recurrent_matrix(problem)) + p.blocks * p.panel_floats));
}

ARGUMENTS(panels_forward, PANELS_FORWARD_ARGUMENTS)
ARGUMENTS(panels_backward, PANELS_BACKWARD_ARGUMENTS)

/* Steps `first` to the one before `stop`; the gradient's down to the one after it. */
static void emit_steps(const struct problem *problem, const struct operands *operands, const struct panels *p,
    int64_t first, int64_t stop, struct launch_list *list)
{
    char options[OPTIONS];
    const cl_mem *in = operands->inputs, *out = operands->outputs;
    const size_t scratch = (size_t)(p->rows * p->vectors * problem->device->vector_width) * sizeof(float);
    const double clip = (double)recurrent_attributes(problem->node)->clip;
    write_options(problem, p, options);
    struct launch *launch = launch_add(list, "recurrent_panels_cpu",
        recurrent_is_backward(problem) ? "recurrent_panels_backward" : "recurrent_panels_forward", "%s", options);
#define SIZES                                                                                                      \
    .scratch = scratch, .samples = p->samples, .steps = p->steps, .width = p->width, .first = first, .stop = stop, \
    .rows = p->rows, .blocks = p->task_blocks, .clip = clip
    if (recurrent_is_backward(problem))
        ARGUMENTS_SET(launch, panels_backward, .panels = operands->prepared, .y = in[BACKWARD_Y],
            .saved = in[BACKWARD_SAVED], .h0 = in[BACKWARD_H0], .c0 = in[BACKWARD_C0],
            .peepholes = in[BACKWARD_PEEPHOLES], .lengths = in[BACKWARD_LENGTHS], .dy = in[BACKWARD_DY],
            .dlast = in[BACKWARD_DLAST], .dlast_c = in[BACKWARD_DLAST_C], .dgates = out[BACKWARD_DGATES],
            .dh = out[BACKWARD_DH0], .dc = out[BACKWARD_DC0], .previous = out[BACKWARD_PREVIOUS],
            .other = out[BACKWARD_OTHER], .states = operands->workspace, SIZES);
    else
        ARGUMENTS_SET(launch, panels_forward, .panels = operands->prepared, .gates = in[RECURRENT_GATES],
            .bias = in[RECURRENT_BIAS], .h0 = in[RECURRENT_H0], .c0 = in[RECURRENT_C0],
            .peepholes = in[RECURRENT_PEEPHOLES], .lengths = in[RECURRENT_LENGTHS], .y = out[RECURRENT_Y],
            .last = out[RECURRENT_LAST], .saved = out[RECURRENT_SAVED], .last_c = out[RECURRENT_LAST_C],
            .states = operands->workspace, SIZES);
    launch_tasks(launch, (size_t)divide_up(p->blocks, p->task_blocks), (size_t)divide_up(p->samples, p->rows), 1);
    const double steps = (double)(first < stop ? stop - first : first - stop),
                 weights = (double)value_elements(recurrent_matrix(problem));
    launch_work(launch, 2 * steps * weights * (double)p->samples, 4 * weights);
}

static void emit(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct panels p = panels_of(problem);
    const bool backward = recurrent_is_backward(problem);
    const int64_t count = p.steps + backward; /* the gradient of the first states comes after the steps */
    const int64_t each = p.stepwise ? 1 : count;
    for (int64_t s = 0; s < count; s += each) {
        if (backward)
            emit_steps(problem, operands, &p, p.steps - 1 - s, p.steps - 1 - s - each, list);
        else
            emit_steps(problem, operands, &p, s, s + each, list);
    }
}

const struct implementation recurrent_panels = { .name = "panels",
    .fits = fits,
    .workspace = workspace,
    .prepared = prepared,
    .emit_prepare = emit_prepare,
    .emit = emit };
