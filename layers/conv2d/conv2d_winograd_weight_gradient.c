/* conv2d by Winograd on CPU-class devices (conv2d_winograd.h): weight gradient. Kernels:
 * layers/conv2d/conv2d_winograd_weight_gradient_cpu.cl, conv2d_winograd_weight_gradient_deep_cpu.cl (with many
 * channels). */
#include "base/memory.h"
#include "layers/conv2d/arguments/conv2d_groups.h"
#include "layers/conv2d/arguments/conv2d_winograd_weight_gradient_cpu.h"
#include "layers/conv2d/arguments/conv2d_winograd_weight_gradient_deep_cpu.h"
#include "layers/conv2d/conv2d_winograd.h"
#include "layers/epilogue.h"

/* WEIGHTS_BYTES: scratch of a task. The others are for transforming all tiles once. DEEP_TILES: tiles at a time.
 * DEEP_REPEATS: tasks that would otherwise transform the same tiles. DEEP_LEAST: least tiles for which the sums in
 * memory pay. DEEP_BYTES: the most memory. */
enum { WEIGHTS_BYTES = 1 << 20, DEEP_TILES = 196, DEEP_REPEATS = 8, DEEP_LEAST = 100, DEEP_BYTES = 100 << 20 };

static size_t weights_scratch(const struct problem *problem, const struct winograd_weights *p)
{
    int64_t v = problem->device->vector_width;
    int64_t vectors = p->tiles.numbers * (p->task_c + p->task_k) * (p->tiles.T + 1) +
        p->tiles.kernel_numbers * (p->task_c * v * p->task_k + 1);
    return (size_t)(vectors * v) * sizeof(float);
}

/* Chooses blocks of 64 x 64 channels, 20 tiles of 36 numbers at a time: as much as a core's second-level cache holds.
 * Less where local memory is less; more tiles where there are fewer channels, because each chunk of tiles reads and
 * writes all sums. */
static void choose_block(const struct problem *problem, struct winograd_weights *p)
{
    int64_t v = problem->device->vector_width, c_blocks = p->groups.source_blocks, k_blocks = p->groups.result_blocks;
    p->vectors = k_blocks == 1 ? 1 : k_blocks % 3 == 0 && k_blocks % 2 ? 3 : 2;
    p->channels = v == 16 ? (p->vectors == 1 && !p->groups.halves ? 16 : 8) : 4;
    p->tiles.T = 20 * 36 / p->tiles.numbers / 4 * 4;
    for (int64_t side = 64; side >= v; side /= 2) {
        int64_t most = side / v;
        p->task_c = divide_up(c_blocks, divide_up(c_blocks, most));
        p->task_k = divide_up(divide_up(k_blocks, divide_up(k_blocks, most)), p->vectors) * p->vectors;
        if (weights_scratch(problem, p) <= problem->device->local_bytes || side <= 32) break;
    }
    size_t room = problem->device->local_bytes < WEIGHTS_BYTES ? problem->device->local_bytes : WEIGHTS_BYTES;
    for (p->tiles.T += 4; p->tiles.T <= 48 && weights_scratch(problem, p) <= room;) p->tiles.T += 4;
    p->tiles.T -= 4;
    p->c_tasks = divide_up(c_blocks, p->task_c);
    p->k_tasks = divide_up(k_blocks, p->task_k);
}

/* Decides whether all tiles are transformed once: where each block of tiles would otherwise be transformed for at
 * least DEEP_REPEATS tasks, unless that takes too much memory. T is then as many tiles as the first-level cache holds
 * of NV blocks of gradients. */
static void plan_weight_gradient_deep(const struct problem *problem, struct winograd_weights *p)
{
    int64_t v = problem->device->vector_width, k_blocks = divide_up(p->z.k, v), numbers = p->tiles.numbers;
    p->c_blocks = divide_up(p->z.c, v);
    p->panels = divide_up(k_blocks, p->vectors);
    p->tiles.chunks = divide_up(p->tiles.count, DEEP_TILES);
    int64_t T = divide_up(p->tiles.count, p->tiles.chunks);
    size_t block = (size_t)(p->tiles.chunks * numbers * (T + 1) * v),
           sums = (size_t)(p->panels * p->c_blocks * v * p->vectors + 1);
    p->gradients_from = block * (size_t)p->c_blocks;
    p->products_from = p->gradients_from + block * (size_t)(p->panels * p->vectors);
    p->deep_bytes = (p->products_from + (size_t)p->tiles.kernel_numbers * sums * (size_t)v) * sizeof(float);
    p->deep = p->c_tasks + p->k_tasks >= DEEP_REPEATS && p->tiles.count >= DEEP_LEAST && p->deep_bytes <= DEEP_BYTES;
    if (!p->deep) return;
    p->tiles.T = T;
    int64_t ranges = divide_up(32 * (int64_t)problem->device->units, p->tiles.kernel_numbers);
    p->panels_max = divide_up(p->panels, ranges);
}

static struct winograd_weights weight_gradient_of(const struct problem *problem)
{
    struct winograd_weights p = { .z = conv2d_sizes_of(problem),
        .groups = conv2d_groups_of(problem, false),
        .tiles = winograd_tiles_of(problem, false) };
    choose_block(problem, &p);
    if (p.groups.count == 1) plan_weight_gradient_deep(problem, &p);
    if (p.deep) return p;
    const int64_t blocks = p.c_tasks * p.k_tasks * p.groups.count;
    int64_t wanted = divide_up(conv2d_tasks_wanted(problem, winograd_flops(problem)), blocks);
    int64_t most = p.tiles.count / (4 * p.tiles.T);
    p.splits = wanted < most ? wanted : most;
    const int64_t least = divide_up(p.tiles.count, p.tiles.T * CONV2D_CHAINS);
    if (p.splits < least) p.splits = least;
    p.tiles_split = divide_up(p.tiles.count, p.splits);
    p.splits = divide_up(p.tiles.count, p.tiles_split);
    p.scratch = conv2d_scratch_of(problem, weights_scratch(problem, &p));
    p.tasks = conv2d_scratch_tasks(problem, &p.scratch, blocks * p.splits);
    p.parts_from = conv2d_scratch_workspace(&p.scratch, p.tasks) / sizeof(float);
    return p;
}

void winograd_design_weight_gradient(const struct problem *problem, void *design)
{
    *(struct winograd_weights *)design = weight_gradient_of(problem);
}

size_t winograd_weight_gradient_workspace(const struct problem *problem)
{
    const struct winograd_weights *p = problem->design;
    if (p->deep) return p->deep_bytes;
    return p->parts_from * sizeof(float) + (p->splits > 1 ? conv2d_parts_bytes(problem, p->splits) : 0);
}

static struct launch *add_weights(const struct problem *problem, struct launch_list *list,
    const struct winograd_weights *p, const char *text, const char *kernel)
{
    char epilogue[256];
    return launch_add(list, text, kernel, "-DR=%d -DSTRIDE=%d -DNV=%d -DCT=%d -DSCRATCH_GLOBAL=%d %s %s", (int)p->z.r,
        (int)p->z.stride_h, (int)p->vectors, (int)p->channels, !p->deep && p->scratch.global,
        conv2d_halves_option(&p->groups), epilogue_options(problem->node, epilogue, sizeof epilogue));
}

ARGUMENTS(gradients, WINOGRAD_GRADIENTS_ARGUMENTS)
ARGUMENTS(products, WINOGRAD_PRODUCTS_ARGUMENTS)
ARGUMENTS(results, WINOGRAD_RESULTS_ARGUMENTS)

static void emit_weight_gradient_deep(const struct problem *problem, const struct operands *operands,
    struct launch_list *list, const struct winograd_weights *p)
{
    const struct conv2d_sizes *z = &p->z;
    const char *text = "conv2d_winograd_weight_gradient_deep_cpu";
    const int64_t v = problem->device->vector_width, numbers = p->tiles.numbers,
                  kernel_numbers = p->tiles.kernel_numbers;
    winograd_emit_sources(operands, list, &p->tiles, p->vectors,
        &(struct winograd_sources) { .blocks = p->c_blocks, .slice = v, .floats = p->gradients_from });

    struct launch *launch = add_weights(problem, list, p, text, "winograd_gradients");
    ARGUMENTS_SET(launch, gradients, .dy = operands->inputs[1], .workspace = operands->workspace,
        .d_at = (int64_t)p->gradients_from, .K = z->k, .result_height = z->oh, .result_width = z->ow,
        .tile_rows = p->tiles.rows, .tile_columns = p->tiles.columns, .tiles = p->tiles.count, .T = p->tiles.T);
    launch_tasks(launch, (size_t)(p->panels * p->vectors), (size_t)p->tiles.chunks, 1);
    launch_work(
        launch, 0, 4.0 * (double)(z->n * z->k * z->oh * z->ow) + 4.0 * (double)(numbers * p->tiles.count * z->k));

    launch = add_weights(problem, list, p, text, "winograd_weight_products");
    ARGUMENTS_SET(launch, products, .workspace = operands->workspace, .v_at = 0, .d_at = (int64_t)p->gradients_from,
        .m_at = (int64_t)p->products_from, .CB = p->c_blocks, .panels = p->panels, .panels_max = p->panels_max,
        .tiles = p->tiles.count, .T = p->tiles.T);
    launch_tasks(launch, (size_t)kernel_numbers, (size_t)divide_up(p->panels, p->panels_max), 1);
    launch_work(launch, conv2d_flops(problem),
        4.0 * (double)(numbers * p->tiles.count * (z->k + z->c) + kernel_numbers * z->k * z->c));

    launch = add_weights(problem, list, p, text, "winograd_weight_results");
    ARGUMENTS_SET(launch, results, .workspace = operands->workspace, .m_at = (int64_t)p->products_from,
        .add = conv2d_or(operands->add, operands->outputs[0]), .dw = operands->outputs[0], .C = z->c, .K = z->k,
        .panels = p->panels);
    launch_tasks(launch, (size_t)p->c_blocks, (size_t)p->panels, 1);
    launch_work(launch, 0, 4.0 * (double)(kernel_numbers + z->r * z->s) * (double)(z->k * z->c));
}

ARGUMENTS(weights, WINOGRAD_WEIGHTS_ARGUMENTS)

void winograd_emit_weight_gradient(
    const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct winograd_weights *p = problem->design;
    if (p->deep) {
        emit_weight_gradient_deep(problem, operands, list, p);
        return;
    }
    struct launch *launch =
        add_weights(problem, list, p, "conv2d_winograd_weight_gradient_cpu", "winograd_weight_gradient");
    ARGUMENTS_SET(launch, weights, .x = operands->inputs[0], .dy = operands->inputs[1],
        .workspace = conv2d_or(operands->workspace, operands->outputs[0]), .offset = (int64_t)p->parts_from,
        .add = conv2d_or(operands->add, operands->outputs[0]), .dw = operands->outputs[0], .groups = p->groups.count,
        WINOGRAD_TILES_VALUES(&p->tiles), .tiles_split = p->tiles_split, .channel_blocks = p->task_c,
        .output_blocks = p->task_k, .splits = p->splits, .merged = p->groups.merged, CONV2D_GROUPS_VALUES(&p->groups),
        SCRATCH_VALUES(&p->scratch, operands));
    launch_tasks(launch, (size_t)p->tasks, 1, 1);
    launch_work(launch, conv2d_flops(problem), conv2d_bytes(problem));
    if (p->splits > 1) conv2d_parts_emit(problem, operands, list, p->splits, p->parts_from);
}
