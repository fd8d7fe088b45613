/* conv2d, Winograd along rows: few channels, stride 2 and a wide kernel, as the first layer of residual networks has
 * (7x7), on CPU-class devices, by a one-dimensional Winograd transform. The kernels are
 * layers/conv2d/conv2d_winograd_rows_cpu.cl. */
#include "base/memory.h"
#include "layers/conv2d/arguments/conv2d_winograd_rows_cpu.h"
#include "layers/conv2d/conv2d_cpu.h"
#include "layers/epilogue.h"
#include "runtime/gemm.h"

/* TILE: outputs of a tile. POINTS: the products that make them. */
enum { TILE = 4, POINTS = 7, PLANES = 2, ROWS_MAX = 8, SUMS_BYTES = 160 << 10 };

static const char *fits(const struct problem *problem)
{
    struct conv2d_sizes z = conv2d_sizes_of(problem);
    if (problem->exact) return "it rounds more than a plain sum, which --exact forbids";
    if (z.groups != 1) return "groups is not 1";
    if (!conv2d_cpu_plain_image(z.c)) return "there are too many channels for an image in the plain layout";
    if (z.stride_w != 2) return "stride is not 2";
    if (z.dilation_h != 1 || z.dilation_w != 1) return "dilation is not 1";
    if (z.s < 5 || z.s > 8) return "the kernel is not 5 to 8 wide";
    if (z.ow < TILE) return "the output is narrower than a tile";
    return conv2d_cpu_refusal(problem);
}

static void layouts(const struct problem *problem, enum value_layout *inputs, enum value_layout *outputs)
{
    conv2d_cpu_layouts(problem, inputs, outputs);
    inputs[0] = LAYOUT_PLAIN;
}

struct image {
    struct conv2d_sizes z;
    int64_t k_blocks, tiles, columns;                 /* TW */
    int64_t vectors, tiles_registers, rows_registers; /* NV, MT, GT */
    int64_t panels, rows, chunks_image, chunks;
    int64_t panels_max, chunks_split, splits; /* of the weight gradient */
    struct conv2d_scratch scratch;
    int64_t tasks;
};

static int64_t source_floats(const struct image *p, int64_t rows)
{
    int64_t source_rows = (rows - 1) * p->z.stride_h + p->z.r;
    return p->z.c * source_rows * PLANES * POINTS * p->columns;
}

/* Transformed source rows, a line, sums, transformed gradients; reading past the last row of a kernel is allowed. */
static size_t scratch_bytes(const struct problem *problem, const struct image *p, int64_t rows)
{
    int64_t v = problem->device->vector_width, floats = source_floats(p, rows) + 8 * p->columns + v;
    if (p->panels_max == 0)
        floats += POINTS * (p->vectors * p->columns + 1) * v;
    else
        floats += POINTS * p->vectors * v * (rows * p->tiles + p->panels_max * p->z.c * PLANES * p->z.r) +
            p->rows_registers * POINTS * p->columns;
    return (size_t)floats * sizeof(float);
}

/* Rows of a chunk: as many as the scratch holds, and yet enough chunks for all compute units. */
static void choose_rows(const struct problem *problem, struct image *p)
{
    int64_t wanted = conv2d_tasks_wanted(problem, conv2d_flops(problem)), rows = ROWS_MAX;
    while (rows > 1 &&
        (scratch_bytes(problem, p, rows) > CONV2D_SCRATCH_BYTES || p->z.n * divide_up(p->z.oh, rows) < wanted))
        rows--;
    p->rows = divide_up(p->z.oh, divide_up(p->z.oh, rows));
    p->chunks_image = divide_up(p->z.oh, p->rows);
    p->chunks = p->z.n * p->chunks_image;
    p->scratch = conv2d_scratch_of(problem, scratch_bytes(problem, p, p->rows));
}

/* The part of `count` that registers hold at a time, in equal parts. */
static int64_t in_registers(int64_t count)
{
    return divide_up(count, divide_up(count, 14));
}

static struct image image_of(const struct problem *problem)
{
    struct image p = { .z = conv2d_sizes_of(problem) };
    int64_t v = problem->device->vector_width;
    p.k_blocks = divide_up(p.z.k, v);
    p.vectors = conv2d_registers(problem) == 32 && p.k_blocks > 1 ? 2 : 1;
    p.panels = divide_up(p.k_blocks, p.vectors);
    p.tiles = divide_up(p.z.ow, TILE);
    p.tiles_registers = in_registers(p.tiles);
    p.rows_registers = in_registers(PLANES * p.z.r);
    int64_t tiles = divide_up(p.tiles, p.tiles_registers) * p.tiles_registers;
    p.columns = divide_up(tiles + 1, v) * v;
    return p;
}

static void design_product(const struct problem *problem, void *design)
{
    struct image *p = design;
    *p = image_of(problem);
    choose_rows(problem, p);
    p->tasks = conv2d_scratch_tasks(problem, &p->scratch, p->chunks);
}

static void design_weight_gradient(const struct problem *problem, void *design)
{
    struct image p = image_of(problem);
    int64_t v = problem->device->vector_width;
    int64_t panel = POINTS * p.z.c * PLANES * p.z.r * p.vectors * v * (int64_t)sizeof(float);
    p.panels_max = SUMS_BYTES > panel ? SUMS_BYTES / panel : 1;
    if (p.panels_max > p.panels) p.panels_max = p.panels;
    choose_rows(problem, &p);
    int64_t ranges = divide_up(p.panels, p.panels_max);
    int64_t wanted = divide_up(conv2d_tasks_wanted(problem, conv2d_flops(problem)), ranges);
    const int64_t least = divide_up(p.chunks * p.rows * p.tiles, CONV2D_LONGEST_PART);
    if (wanted < least) wanted = least;
    p.chunks_split = divide_up(p.chunks, wanted);
    p.splits = divide_up(p.chunks, p.chunks_split);
    p.tasks = p.splits * ranges;
    *(struct image *)design = p;
}

static struct launch *add_launch(
    const struct problem *problem, struct launch_list *list, const struct image *p, const char *kernel)
{
    char epilogue[256], statistics[RESULT_OPTIONS];
    return launch_add(list, "conv2d_winograd_rows_cpu", kernel,
        "-DR=%d -DS=%d -DSTRIDE_H=%d -DTW=%d -DNV=%d -DMT=%d -DGT=%d -DHAS_BIAS=%d -DSCRATCH_GLOBAL=%d %s "
        "%s",
        (int)p->z.r, (int)p->z.s, (int)p->z.stride_h, (int)p->columns, (int)p->vectors, (int)p->tiles_registers,
        (int)p->rows_registers, problem->inputs[2] != NULL, p->scratch.global,
        result_options(problem->node, statistics, sizeof statistics),
        epilogue_options(problem->node, epilogue, sizeof epilogue));
}

#define SIZES_VALUES(p)                                                                                           \
    .C = (p)->z.c, .KB = (p)->k_blocks, .height = (p)->z.h, .width = (p)->z.w, .result_height = (p)->z.oh,        \
    .result_width = (p)->z.ow, .padding_h = (p)->z.padding_h, .padding_w = (p)->z.padding_w, .tiles = (p)->tiles, \
    .rows_max = (p)->rows, .chunks_image = (p)->chunks_image, .chunks = (p)->chunks

/* -------------------------------------------------------------------------------------------------------- forward */

static size_t product_workspace(const struct problem *problem)
{
    const struct image *p = problem->design;
    return conv2d_scratch_workspace(&p->scratch, p->tasks);
}

static size_t prepared(const struct problem *problem)
{
    const struct image *p = problem->design;
    size_t panel = (size_t)(p->vectors * problem->device->vector_width) * sizeof(float);
    return (size_t)p->panels * panel * (size_t)(1 + p->z.c * p->z.r * PLANES * POINTS);
}

static void emit_prepare(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct image *p = problem->design;
    struct launch *launch = add_launch(problem, list, p, "winograd_rows_weights");
    LAUNCH_BUFFERS(
        launch, operands->inputs[1], conv2d_or(operands->inputs[2], operands->inputs[1]), operands->prepared);
    launch_int(launch, p->z.k);
    launch_tasks(launch, (size_t)p->panels, (size_t)p->z.c, 1);
    launch_work(launch, 0, 4.0 * (double)(p->z.k * p->z.c * p->z.r * (p->z.s + PLANES * POINTS)));
}

static int64_t statistics_parts(const struct problem *problem)
{
    const struct image *p = problem->design;
    return conv2d_cpu_statistics(problem) ? p->chunks : 0;
}

ARGUMENTS(product, WINOGRAD_ROWS_ARGUMENTS)

static void emit_product(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct image *p = problem->design;
    struct launch *launch = add_launch(problem, list, p, "winograd_rows");
    ARGUMENTS_SET(launch, product, .x = operands->inputs[0], .packed = operands->prepared,
        .add = conv2d_or(operands->add, operands->outputs[0]), .y = operands->outputs[0], SIZES_VALUES(p),
        .stream = conv2d_streams(problem, operands, 4.0 * (double)(p->z.n * p->z.k * p->z.oh * p->z.ow)),
        SCRATCH_VALUES(&p->scratch, operands));
    result_arguments(launch, problem, operands);
    launch_tasks(launch, (size_t)p->tasks, 1, 1);
    launch_work(launch, conv2d_flops(problem), conv2d_bytes(problem));
}

/* ------------------------------------------------------------------------------------------------ weight gradient */

static size_t parts_offset(const struct image *p)
{
    return conv2d_scratch_workspace(&p->scratch, p->tasks) / sizeof(float);
}

static size_t weight_gradient_workspace(const struct problem *problem)
{
    const struct image *p = problem->design;
    return parts_offset(p) * sizeof(float) + conv2d_parts_bytes(problem, p->splits);
}

ARGUMENTS(weights, WINOGRAD_ROWS_GRADIENT_ARGUMENTS)

static void emit_weight_gradient(
    const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct image *p = problem->design;
    struct launch *launch = add_launch(problem, list, p, "winograd_rows_gradient");
    ARGUMENTS_SET(launch, weights, .x = operands->inputs[0], .dy = operands->inputs[1],
        .workspace = operands->workspace, .offset = (int64_t)parts_offset(p), SIZES_VALUES(p),
        .chunks_split = p->chunks_split, .panels_max = p->panels_max, SCRATCH_VALUES(&p->scratch, operands));
    launch_tasks(launch, (size_t)p->splits, (size_t)divide_up(p->panels, p->panels_max), 1);
    launch_work(launch, conv2d_flops(problem), conv2d_bytes(problem));
    conv2d_parts_emit(problem, operands, list, p->splits, parts_offset(p));
}

#define COMMON .name = "winograd_rows", .fits = fits, .layouts = layouts, .design_bytes = sizeof(struct image)

const struct implementation conv2d_winograd_rows[CONV2D_PASSES] = {
    [CONV2D_FORWARD] = { COMMON, .fusions = CONV2D_CPU_FORWARD, .cannot_fuse = conv2d_cpu_cannot_fuse,
        .statistics = statistics_parts, .design = design_product, .workspace = product_workspace, .prepared = prepared,
        .emit_prepare = emit_prepare, .emit = emit_product },
    [CONV2D_WEIGHT_GRADIENT] = { COMMON, .fusions = CONV2D_CPU_WEIGHT_GRADIENT, .design = design_weight_gradient,
        .workspace = weight_gradient_workspace, .emit = emit_weight_gradient },
};
