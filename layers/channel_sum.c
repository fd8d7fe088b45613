/* channel_sum: the gradient of a bias, dy summed over all but the channels (dimension 1 of [N, C, H, W], the last of
 * [N, features]). */
#include "base/memory.h"
#include "layers/elementwise.h"
#include "layers/epilogue.h"
#include "layers/layers.h"

static tutti_status infer(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *dy = graph_at(graph, node->inputs[0]);
    if (dy->shape.rank < 2)
        return fail(TUTTI_SHAPE, "channel_sum: the gradient has %d dimensions: it needs at least 2", dy->shape.rank);
    int channel = dy->shape.rank == 4 ? 1 : dy->shape.rank - 1;
    outputs[0] = (struct value) { .type = TYPE_F32, .shape = TUTTI_SHAPE(dy->shape.sizes[channel]) };
    node->output_count = 1;
    return TUTTI_OK;
}

/* dy as [n][c][pixels]; other ranks than 4 are rows of c numbers. */
struct sizes {
    int64_t n, c, pixels;
    bool blocked;
};

static struct sizes sizes_of(const struct problem *problem)
{
    const struct value *dy = problem->inputs[0];
    const tutti_shape *shape = &dy->shape;
    if (shape->rank == 4)
        return (struct sizes) { shape->sizes[0], shape->sizes[1], shape->sizes[2] * shape->sizes[3],
            dy->layout == LAYOUT_BLOCKED };
    int64_t c = shape->sizes[shape->rank - 1];
    return (struct sizes) { value_elements(dy) / c, c, 1, false };
}

static bool channels_last(const struct problem *problem)
{
    return problem->inputs[0]->layout == LAYOUT_CHANNELS_LAST;
}

static struct launch *add(const struct problem *problem, const struct operands *operands, struct launch_list *list,
    const char *kernel, int group)
{
    char epilogue[128];
    struct sizes z = sizes_of(problem);
    struct launch *launch = launch_add(list, "channel_sum", kernel, "-DGROUP=%d %s", group,
        epilogue_options(&problem->node->epilogue, epilogue, sizeof epilogue));
    LAUNCH_BUFFERS(launch, operands->inputs[0], operands->add, operands->outputs[0]);
    LAUNCH_INTS(launch, z.n, z.c);
    double elements = (double)value_elements(problem->inputs[0]);
    launch_work(launch, elements, 4 * (elements + (double)z.c));
    return launch;
}

static void emit_vectors(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    struct sizes z = sizes_of(problem);
    int64_t v = problem->device->vector_width;
    bool columns = z.pixels == 1 && !z.blocked;
    struct launch *launch = add(problem, operands, list, columns ? "columns" : "vectors", 1);
    if (!columns) {
        LAUNCH_INTS(launch, z.pixels, z.blocked);
    }
    launch_tasks(launch, (size_t)(columns || z.blocked ? divide_up(z.c, v) : z.c), 1, 1);
}

/* Rows of channels, in parts that keep the units busy; then the parts, which are rows too. */
enum { ROWS_GROUP = 64, GROUPS_PER_UNIT = 8, MOST_PARTS = 1024 };

static int64_t parts_of(const struct problem *problem)
{
    const struct sizes z = sizes_of(problem);
    const int64_t groups = divide_up(z.c, ROWS_GROUP), rows = z.n * z.pixels;
    int64_t parts = divide_up((int64_t)GROUPS_PER_UNIT * problem->device->units, groups);
    if (parts > MOST_PARTS) parts = MOST_PARTS;
    const int64_t per = divide_up(rows, parts < rows ? parts : rows);
    return divide_up(rows, per);
}

static size_t rows_workspace(const struct problem *problem)
{
    return channels_last(problem) ? (size_t)(parts_of(problem) * sizes_of(problem).c) * sizeof(float) : 0;
}

static void emit_sum_of_rows(const struct problem *problem, const struct epilogue *epilogue, cl_mem from, cl_mem added,
    cl_mem to, int64_t rows, int64_t parts, struct launch_list *list)
{
    char options[EPILOGUE_OPTIONS];
    const int64_t c = sizes_of(problem).c;
    const size_t group = group_size(problem->device, ROWS_GROUP);
    struct launch *launch =
        launch_add(list, "channel_sum", "rows", "-DGROUP=1 %s", epilogue_options(epilogue, options, sizeof options));
    LAUNCH_BUFFERS(launch, from, added, to);
    LAUNCH_INTS(launch, rows, c, divide_up(rows, parts));
    launch_grid(launch, 2, size_round_up((size_t)c, group), (size_t)parts, 1, group, 1, 1);
    launch_work(launch, (double)(rows * c), 4.0 * (double)((rows + parts) * c));
}

static void emit_rows(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct epilogue none = { .add = NO_VALUE };
    const struct sizes z = sizes_of(problem);
    const int64_t parts = parts_of(problem);
    emit_sum_of_rows(problem, &none, operands->inputs[0], NULL, operands->workspace, z.n * z.pixels, parts, list);
    emit_sum_of_rows(
        problem, &problem->node->epilogue, operands->workspace, operands->add, operands->outputs[0], parts, 1, list);
}

static void emit_groups(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    if (channels_last(problem)) {
        emit_rows(problem, operands, list);
        return;
    }
    struct sizes z = sizes_of(problem);
    const struct capabilities *can = problem->device;
    size_t group = 256;
    while (group > 1 && (group > can->group_max || group * sizeof(float) > can->local_bytes)) group /= 2;
    struct launch *launch = add(problem, operands, list, "groups", (int)group);
    launch_int(launch, z.pixels);
    launch_grid(launch, 1, (size_t)z.c * group, 1, 1, group, 1, 1);
}

static void emit_plain(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    struct sizes z = sizes_of(problem);
    struct launch *launch = add(problem, operands, list, "plain", 1);
    LAUNCH_INTS(launch, z.pixels, z.blocked);
    size_t group = problem->device->group_max < 64 ? problem->device->group_max : 64;
    launch_grid(launch, 1, size_round_up((size_t)z.c, group), 1, 1, group, 1, 1);
}

static const struct implementation vectors = {
    .name = "vectors",
    .fits = fits_cpu_class,
    .any_layout = IN_PLAIN | IN_BLOCKED,
    .epilogues = epilogues_add,
    .emit = emit_vectors,
};
static const struct implementation groups = {
    .name = "groups",
    .fits = fits_gpu_class,
    .any_layout = IN_PLAIN | IN_CHANNELS_LAST,
    .epilogues = epilogues_add,
    .workspace = rows_workspace,
    .emit = emit_groups,
};
static const struct implementation plain = {
    .name = "plain",
    .fits = fits_everything,
    .any_layout = IN_PLAIN | IN_BLOCKED,
    .epilogues = epilogues_add,
    .emit = emit_plain,
};
static const struct implementation *const implementations[] = { &vectors, &groups, &plain, NULL };

const struct operation operation_channel_sum = {
    .name = "channel_sum",
    .inputs = { { "dy" } },
    .outputs = { { "db" } },
    .infer = infer,
    .implementations = implementations,
};
