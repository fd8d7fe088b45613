/* reorder: the same values in another layout, from the plain one or to it. Plans put it where a producer and a
 * consumer want different layouts. */
#include "base/memory.h"
#include "layers/element.h"
#include "layers/elementwise.h"
#include "layers/interpreter/interpreter.h"
#include "layers/layers.h"

enum { TILE = 16 };

ATTRIBUTES_DESCRIBE(reorder, ATTRIBUTE(reorder, OTHER, layout))

static tutti_status infer(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *x = graph_at(graph, node->inputs[0]);
    if (x->shape.rank <= SPACE_AXIS)
        return fail(TUTTI_SHAPE,
            "reorder: only values with axes of space have several layouts, but this one has %d axes", x->shape.rank);
    outputs[0] = (struct value) { .type = x->type, .batched = x->batched, .shape = x->shape };
    outputs[0].axes = axes_with_channels(x->shape.rank); /* as the operation that wants another layout takes them */
    return TUTTI_OK;
}

static bool from_plain(const struct problem *problem)
{
    return reorder_attributes(problem->node)->layout != LAYOUT_PLAIN;
}

static void layouts(const struct problem *problem, enum value_layout *inputs, enum value_layout *outputs)
{
    inputs[0] = from_plain(problem) ? LAYOUT_PLAIN : problem->inputs[0]->layout;
    outputs[0] = reorder_attributes(problem->node)->layout;
}

/* Each image is a matrix of channels and pixels. */
static struct planes planes_of(const struct problem *problem)
{
    return value_planes(problem->inputs[0], CHANNEL_AXIS);
}

static const char *fits_vectors(const struct problem *problem)
{
    if (problem->device->class != DEVICE_CPU) return "it needs a CPU-class device";
    return problem->inputs[0]->type == TYPE_U8 ? "it moves elements of 16 or 32 bits, but these have 8" : NULL;
}

static const char *fits_tiles(const struct problem *problem)
{
    if (problem->device->class != DEVICE_GPU) return "it needs a GPU-class device";
    return problem->device->group_max < TILE * TILE ? "the device's work-groups are too small" : NULL;
}

static double bytes(const struct problem *problem)
{
    return (double)value_bytes(problem->inputs[0], 1) + (double)value_bytes(problem->outputs[0], 1);
}

static const char *word_of(const struct problem *problem)
{
    return problem->inputs[0]->type == TYPE_U8 ? "uchar" : "uint";
}

static struct launch *add(
    const struct problem *problem, const struct operands *operands, struct launch_list *list, const char *kernel)
{
    char elements[ELEMENT_OPTIONS];
    struct launch *launch = launch_add(list, "reorder", kernel, "-DTO_BLOCKED=%d -DTYPE=%s%s", from_plain(problem),
        word_of(problem), element_options(problem, elements, sizeof elements));
    LAUNCH_BUFFERS(launch, operands->inputs[0], operands->outputs[0]);
    launch_work(launch, 0, bytes(problem));
    return launch;
}

static void emit_vectors(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct planes z = planes_of(problem);
    int64_t v = problem->device->vector_width, blocks = divide_up(z.c, v);
    /* Some tasks for each unit, but no task smaller than a few squares. */
    int64_t parts = divide_up(4 * problem->device->units, z.n * blocks);
    int64_t chunk = divide_up(divide_up(z.pixels, parts), v) * v;
    if (chunk < 8 * v) chunk = 8 * v;
    struct launch *launch = add(problem, operands, list, "vectors");
    LAUNCH_INTS(launch, z.c, z.pixels, chunk);
    launch_tasks(launch, (size_t)divide_up(z.pixels, chunk), (size_t)blocks, (size_t)z.n);
}

static void emit_tiles(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct planes z = planes_of(problem);
    const int64_t rows = from_plain(problem) ? z.c : z.pixels, columns = from_plain(problem) ? z.pixels : z.c;
    struct launch *launch = launch_add(list, "reorder_gpu", "tiles", "-DTYPE=%s -DTILE=%d", word_of(problem), TILE);
    LAUNCH_BUFFERS(launch, operands->inputs[0], operands->outputs[0]);
    LAUNCH_INTS(launch, rows, columns);
    launch_grid(
        launch, 3, size_round_up((size_t)columns, TILE), size_round_up((size_t)rows, TILE), (size_t)z.n, TILE, TILE, 1);
    launch_work(launch, 0, bytes(problem));
}

static void emit_plain(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct planes z = planes_of(problem);
    const enum value_layout other =
        from_plain(problem) ? reorder_attributes(problem->node)->layout : problem->inputs[0]->layout;
    const bool blocked = other == LAYOUT_BLOCKED;
    int64_t v = blocked ? problem->device->vector_width : z.c;
    int64_t channels = from_plain(problem) ? divide_up(z.c, v) * v : z.c;
    int64_t count = z.n * channels * z.pixels;
    struct launch *launch = add(problem, operands, list, "plain");
    launch_long(launch, count);
    LAUNCH_INTS(launch, z.c, z.pixels, v);
    size_t group = problem->device->group_max < 64 ? problem->device->group_max : 64;
    launch_grid(launch, 1, size_round_up((size_t)count, group), 1, 1, group, 1, 1);
}

static const struct implementation vectors = {
    .name = "vectors",
    .fits = fits_vectors,
    .layouts = layouts,
    .emit = emit_vectors,
    .bf16_inputs = 1 << 0,
    .bf16_outputs = 1 << 0,
};
static const struct implementation tiles = {
    .name = "tiles",
    .fits = fits_tiles,
    .layouts = layouts,
    .emit = emit_tiles,
};
static const struct implementation plain = {
    .name = "plain",
    .layouts = layouts,
    .emit = emit_plain,
};
static const struct implementation *const implementations[] = { &vectors, &tiles, &plain, NULL };

/* No gradient: plans insert it after the gradients are made. */
const struct operation operation_reorder = {
    .name = "reorder",
    .inputs = { { "x", PORT_ANY_TYPE } },
    .outputs = { { "y" } },
    .attributes = &reorder_attributes_type,
    .infer = infer,
    .reference = interpret_copy,
    .implementations = implementations,
    .bytes = bytes,
};
