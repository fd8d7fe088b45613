/* channel_sum: the gradient of a bias, dy summed over all axes but that of the channels or features. */
#include "clkernels/arguments/channel_sum.h"
#include "base/memory.h"
#include "layers/elementwise.h"
#include "layers/epilogue.h"
#include "layers/interpreter/interpreter.h"
#include "layers/layers.h"
#include "runtime/arguments.h"

static tutti_status infer(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *dy = graph_at(graph, node->inputs[0]);
    const int axis = axis_attributes(node)->axis;
    if (axis < 1 || axis >= dy->shape.rank)
        return fail(TUTTI_SHAPE, "channel_sum: the gradient has %d dimensions, and none has the number %d",
            dy->shape.rank, axis);
    outputs[0] = (struct value) { .type = TYPE_F32, .shape = TUTTI_SHAPE(dy->shape.sizes[axis]) };
    return TUTTI_OK;
}

static struct planes sizes_of(const struct problem *problem)
{
    return value_planes(problem->inputs[0], axis_attributes(problem->node)->axis);
}

static bool is_blocked(const struct problem *problem)
{
    return problem->inputs[0]->layout == LAYOUT_BLOCKED;
}

ARGUMENTS(sum, SUM_ARGUMENTS)
ARGUMENTS(plane, PLANE_ARGUMENTS)

static struct launch *add(const struct problem *problem, const struct operands *operands, struct launch_list *list,
    const char *kernel, int group)
{
    char epilogue[128];
    struct planes z = sizes_of(problem);
    struct launch *launch = launch_add(list, "channel_sum", kernel, "-DGROUP=%d %s", group,
        epilogue_options(problem->node, epilogue, sizeof epilogue));
    ARGUMENTS_SET(
        launch, sum, .dy = operands->inputs[0], .add = operands->add, .db = operands->outputs[0], .N = z.n, .C = z.c);
    double elements = (double)value_elements(problem->inputs[0]);
    launch_work(launch, elements, 4 * (elements + (double)z.c));
    return launch;
}

static void emit_vectors(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    struct planes z = sizes_of(problem);
    int64_t v = problem->device->vector_width;
    const bool blocked = is_blocked(problem), columns = z.pixels == 1 && !blocked;
    struct launch *launch = add(problem, operands, list, columns ? "columns" : "vectors", 1);
    if (!columns) ARGUMENTS_SET(launch, plane, .pixels = z.pixels, .blocked = blocked);
    launch_tasks(launch, (size_t)(columns || blocked ? divide_up(z.c, v) : z.c), 1, 1);
}

/* GPU class. Each channel's sum is divided into parts to keep the units busy; a second launch adds up the parts. */
enum { GROUP = 256, GROUPS_PER_UNIT = 16, MOST_PARTS = 2048, VECTORS_PER_ITEM = 8 };

struct division {
    int64_t c, pixels, rows; /* in vectors of four pixels, or of four channels where these are last */
    int64_t parts, per;      /* rows of a part */
    size_t group, wide;      /* channels of a group, by rows */
    bool fours;
};

/* Rows of channels that lie together. */
static bool by_rows(const struct problem *problem)
{
    enum { MANY = 1024 };
    const struct planes z = sizes_of(problem);
    return problem->inputs[0]->layout == LAYOUT_CHANNELS_LAST || (z.pixels == 1 && z.n >= MANY);
}

static int64_t clamp(int64_t value, int64_t most)
{
    value = value < most ? value : most;
    return value > 1 ? value : 1;
}

static size_t sum_group(const struct problem *problem)
{
    const struct capabilities *can = problem->device;
    size_t group = GROUP;
    while (group > 1 && (group > can->group_max || group * sizeof(float) > can->local_bytes)) group /= 2;
    return group;
}

static struct division divide(const struct problem *problem)
{
    const struct planes z = sizes_of(problem);
    const bool last = by_rows(problem);
    struct division d = { .c = z.c, .pixels = z.pixels, .group = sum_group(problem), .wide = 1 };
    d.fours = (last ? z.c : z.pixels) % 4 == 0;
    if (d.fours) *(last ? &d.c : &d.pixels) /= 4;
    d.rows = z.n * d.pixels;
    while (last && d.wide < d.group && (int64_t)d.wide < d.c) d.wide *= 2;
    const int64_t lanes = (int64_t)(d.group / d.wide), groups = divide_up(d.c, (int64_t)d.wide);
    const int64_t wanted = divide_up((int64_t)GROUPS_PER_UNIT * problem->device->units, groups);
    const int64_t possible = d.rows / (VECTORS_PER_ITEM * (last ? 1 : (int64_t)d.group));
    d.parts = clamp(last ? wanted * lanes : wanted, clamp(possible, MOST_PARTS));
    d.per = divide_up(d.rows, d.parts);
    if (last) d.parts = divide_up(d.rows, d.per);
    return d;
}

static size_t parts_workspace(const struct problem *problem)
{
    const struct division d = divide(problem);
    return d.parts > 1 || by_rows(problem) ? (size_t)(d.parts * sizes_of(problem).c) * sizeof(float) : 0;
}

static void emit_rows(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct division d = divide(problem);
    struct launch *launch = launch_add(list, "channel_sum", "rows", "-DGROUP=%zu -DFOURS=%d", d.group, d.fours);
    LAUNCH_BUFFERS(launch, operands->inputs[0], operands->workspace);
    LAUNCH_INTS(launch, d.rows, d.c, d.per);
    const size_t lanes = d.group / d.wide;
    launch_grid(
        launch, 2, size_round_up((size_t)d.c, d.wide), size_round_up((size_t)d.parts, lanes), 1, d.wide, lanes, 1);
    const double floats = (double)value_elements(problem->inputs[0]);
    launch_work(launch, floats, 4 * (floats + (double)(d.parts * sizes_of(problem).c)));
}

/* [n][c][pixels], in vectors, to [parts][c]. node: what is fused; NULL: nothing. */
static void emit_sum(const struct problem *problem, const struct node *node, cl_mem from, cl_mem added, cl_mem to,
    int64_t n, int64_t pixels, bool fours, int64_t parts, struct launch_list *list)
{
    char options[EPILOGUE_OPTIONS];
    const int64_t c = sizes_of(problem).c;
    size_t group = sum_group(problem);
    while (group > 32 && (int64_t)group > n * pixels) group /= 2;
    struct launch *launch = launch_add(list, "channel_sum", "groups", "-DGROUP=%zu -DFOURS=%d %s", group, fours,
        epilogue_options(node, options, sizeof options));
    LAUNCH_BUFFERS(launch, from, added, to);
    LAUNCH_INTS(launch, n, c, pixels);
    launch_grid(launch, 2, (size_t)c * group, (size_t)parts, 1, group, 1, 1);
    const double floats = (double)(n * c * pixels) * (fours ? 4 : 1);
    launch_work(launch, floats, 4 * (floats + (double)(parts * c)));
}

static void emit_groups(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct node *node = problem->node;
    const struct division d = divide(problem);
    const bool last = by_rows(problem), direct = !last && d.parts == 1;
    const cl_mem added = direct ? operands->add : NULL, to = direct ? operands->outputs[0] : operands->workspace;
    if (last)
        emit_rows(problem, operands, list);
    else
        emit_sum(problem, direct ? node : NULL, operands->inputs[0], added, to, sizes_of(problem).n, d.pixels, d.fours,
            d.parts, list);
    if (!direct)
        emit_sum(problem, node, operands->workspace, operands->add, operands->outputs[0], d.parts, 1, false, 1, list);
}

static void emit_plain(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    struct planes z = sizes_of(problem);
    struct launch *launch = add(problem, operands, list, "plain", 1);
    ARGUMENTS_SET(launch, plane, .pixels = z.pixels, .blocked = is_blocked(problem));
    size_t group = problem->device->group_max < 64 ? problem->device->group_max : 64;
    launch_grid(launch, 1, size_round_up((size_t)z.c, group), 1, 1, group, 1, 1);
}

static const struct implementation vectors = {
    .name = "vectors",
    .fits = fits_cpu_class,
    .any_layout = IN_PLAIN | IN_BLOCKED,
    .fusions = FUSED(ADD),
    .emit = emit_vectors,
};
static const struct implementation groups = {
    .name = "groups",
    .fits = fits_gpu_class,
    .any_layout = IN_PLAIN | IN_CHANNELS_LAST,
    .fusions = FUSED(ADD),
    .workspace = parts_workspace,
    .emit = emit_groups,
};
static const struct implementation plain = {
    .name = "plain",
    .any_layout = IN_PLAIN | IN_BLOCKED,
    .fusions = FUSED(ADD),
    .emit = emit_plain,
};
static const struct implementation *const implementations[] = { &vectors, &groups, &plain, NULL };

const struct operation operation_channel_sum = {
    .name = "channel_sum",
    .inputs = { { "dy" } },
    .outputs = { { "db" } },
    .attributes = &axis_attributes_type,
    .infer = infer,
    .reference = interpret_channel_sum,
    .implementations = implementations,
};
