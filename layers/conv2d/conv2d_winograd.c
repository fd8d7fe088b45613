/* conv2d by Winograd on CPU-class devices (conv2d_winograd.h): forward and data gradient. Kernels:
 * layers/conv2d/conv2d_winograd_cpu.cl, conv2d_winograd_deep_cpu.cl (with many channels),
 * conv2d_winograd_prepare_cpu.cl (what both begin with). */
#include "layers/conv2d/conv2d_winograd.h"

#include "base/memory.h"
#include "layers/conv2d/arguments/conv2d_groups.h"
#include "layers/conv2d/arguments/conv2d_winograd_cpu.h"
#include "layers/conv2d/arguments/conv2d_winograd_deep_cpu.h"
#include "layers/conv2d/arguments/conv2d_winograd_prepare_cpu.h"
#include "layers/epilogue.h"

/* Scratch and tiles of a task, and the transformed weights that a core's cache holds. With a stride of 2 a tile has
 * more numbers, and a task takes STRIDED_BYTES instead of FUSED_BYTES. */
enum {
    FUSED_BYTES = 720 << 10,
    STRIDED_BYTES = 880 << 10,
    FUSED_TILES = 28,
    CACHED_BYTES = 1 << 20,
    UNROLL = 4,
    SLICE = 64
};

static bool has_bias(const struct problem *problem)
{
    return !conv2d_is_data_gradient(problem) && problem->inputs[2];
}

struct design {
    struct conv2d_groups groups;
    struct winograd_tiles tiles;
    int64_t vectors, block; /* NV, MT */
    int64_t padded, panels, panels_max;
    struct conv2d_scratch scratch;
    int64_t tasks; /* along the chunks; deep: of all */
    bool deep;
    struct winograd_sources sources; /* where it is deep */
};

/* The most tiles whose results fit in registers, with `vectors` vectors for each. */
static int64_t most_tiles(const struct problem *problem, int64_t vectors)
{
    int64_t most = (conv2d_registers(problem) - vectors - 1) / vectors;
    return most > 14 ? 14 : most;
}

static void choose_vectors(struct design *p)
{
    double best = 0;
    for (int64_t vectors = 1; vectors <= 3; vectors++) {
        int64_t panels = divide_up(p->groups.result_blocks, vectors);
        double cost = (double)(panels * vectors) * (vectors == 1 ? 1.15 : vectors == 3 ? 1.03 : 1.0);
        if (best != 0 && cost >= best) continue;
        best = cost;
        p->vectors = vectors;
        p->panels = panels;
    }
}

/* Number of tiles in registers, up to `most`, that wastes the fewest of `count` tiles. */
static int64_t choose_tiles(int64_t most, int64_t count)
{
    int64_t best = most;
    for (int64_t tiles = most; tiles * 3 >= most * 2 && tiles > 0; tiles--)
        if (divide_up(count, tiles) * tiles < divide_up(count, best) * best) best = tiles;
    return best;
}

static size_t fused_bytes(const struct problem *problem, const struct design *p, int64_t T)
{
    int64_t v = problem->device->vector_width;
    return (size_t)(p->tiles.numbers * v * (p->groups.source_blocks * (T + 1) + p->vectors * T + 1)) * sizeof(float);
}

static size_t fused_bytes_most(const struct design *p)
{
    return p->tiles.stride == 2 ? STRIDED_BYTES : FUSED_BYTES;
}

/* Whether a core's cache is too small for the weights, or for enough tiles to fill the registers. */
static bool is_deep(const struct problem *problem, const struct design *p)
{
    double weights =
        (double)p->tiles.kernel_numbers * (double)(p->padded + 1) * (double)p->groups.results * sizeof(float);
    int64_t most = most_tiles(problem, p->vectors), least = p->tiles.stride == 2 ? most / 2 : most * 2 / 3;
    return weights > WINOGRAD_KEPT_BYTES || fused_bytes(problem, p, least) > fused_bytes_most(p);
}

/* Cycles of a task of the fused kernel, roughly: its transforms, as they were timed with 36 numbers of a tile, and
 * products, and the reading of its weights, where those do not stay in the core's cache from task to task. */
static double fused_cycles(
    const struct problem *problem, const struct design *p, int64_t block, int64_t T, int64_t panels)
{
    double vectors = (double)(panels * p->vectors), numbers = (double)p->tiles.numbers;
    double channels = numbers * (double)p->padded, kernels = (double)(p->tiles.kernel_numbers * p->padded);
    double transforms = (double)T * numbers / 36 * (250.0 * (double)p->groups.source_blocks + 200.0 * vectors);
    double each = (double)(block * p->vectors) / 2 + 2 * (double)(p->vectors + 1);
    double products = channels * (double)(panels * divide_up(T, block)) * each;
    double bytes = kernels * vectors * (double)problem->device->vector_width * sizeof(float);
    double reading = bytes * (double)p->panels > CACHED_BYTES * (double)panels ? bytes / 8 : 0;
    return transforms + products + reading;
}

/* Chooses tiles and panels of a task by the cycles of the busiest core. With many tiles a task takes all panels; with
 * few, tasks share the panels, so that each weight is read once. */
static void design_fused(const struct problem *problem, struct design *p)
{
    int64_t most = most_tiles(problem, p->vectors), units = problem->device->units, panels = p->panels;
    const int64_t groups = p->groups.count;
    double best = 0;
    for (int64_t block = divide_up(most, 2); block <= most; block++)
        for (int64_t T = block; T <= FUSED_TILES && T < p->tiles.count + block; T += block) {
            int64_t chunks = divide_up(p->tiles.count, T);
            if (best != 0 &&
                (fused_bytes(problem, p, T) > fused_bytes_most(p) || groups * chunks * p->panels < 2 * units))
                break;
            for (int64_t ranges = 1; ranges <= p->panels; ranges++) {
                int64_t panels_max = divide_up(p->panels, ranges);
                int64_t tasks = groups * chunks * divide_up(p->panels, panels_max);
                double cost = (double)divide_up(tasks, units) * fused_cycles(problem, p, block, T, panels_max);
                if (best != 0 && cost >= best) continue;
                best = cost;
                p->block = block;
                p->tiles.T = T;
                panels = panels_max;
            }
        }
    p->tiles.chunks = divide_up(p->tiles.count, p->tiles.T);
    p->panels_max = panels;
    p->scratch = conv2d_scratch_of(problem, fused_bytes(problem, p, p->tiles.T));
    p->tasks = conv2d_scratch_group_tasks(problem, &p->scratch, p->tiles.chunks, groups);
}

static void design_deep(const struct problem *problem, struct design *p, int64_t wanted)
{
    int64_t v = problem->device->vector_width, most = most_tiles(problem, p->vectors);
    int64_t chunks = divide_up(p->tiles.count, 72), spread = divide_up(wanted, p->panels);
    if (chunks < spread) chunks = spread < divide_up(p->tiles.count, most) ? spread : divide_up(p->tiles.count, most);
    int64_t each = divide_up(p->tiles.count, chunks);
    p->block = choose_tiles(most, each);
    p->tiles.T = divide_up(each, p->block) * p->block;
    p->tiles.chunks = divide_up(p->tiles.count, p->tiles.T);
    p->sources = (struct winograd_sources) { .blocks = p->groups.source_blocks, .slice = SLICE };
    int64_t vectors = p->tiles.kernel_numbers * p->vectors * (p->sources.slice + 1) +
        p->tiles.numbers * (p->vectors * p->tiles.T + 1);
    p->scratch = conv2d_scratch_of(problem, (size_t)(vectors * v) * sizeof(float));
    p->tasks = conv2d_scratch_tasks(problem, &p->scratch, p->panels * p->tiles.chunks);
    p->sources.floats = (size_t)(p->tiles.chunks * p->sources.blocks * p->tiles.numbers * (p->tiles.T + 1) * v);
    p->sources.from = conv2d_scratch_workspace(&p->scratch, p->tasks) / sizeof(float);
}

static void design(const struct problem *problem, void *design)
{
    bool gradient = conv2d_is_data_gradient(problem);
    struct design p = { .groups = conv2d_groups_of(problem, gradient), .tiles = winograd_tiles_of(problem, gradient) };
    p.padded = divide_up(p.groups.sources, UNROLL) * UNROLL;
    choose_vectors(&p);
    p.deep = p.groups.count == 1 && is_deep(problem, &p);
    if (p.deep)
        design_deep(problem, &p, conv2d_tasks_wanted(problem, winograd_flops(problem)));
    else
        design_fused(problem, &p);
    *(struct design *)design = p;
}

static size_t product_workspace(const struct problem *problem)
{
    const struct design *p = problem->design;
    if (p->deep) return (p->sources.from + p->sources.floats) * sizeof(float);
    return conv2d_scratch_workspace(&p->scratch, p->groups.count * p->tasks * divide_up(p->panels, p->panels_max));
}

static int64_t statistics_parts(const struct problem *problem)
{
    const struct design *p = problem->design;
    return conv2d_cpu_statistics(problem) ? p->tiles.chunks : 0;
}

static size_t prepared(const struct problem *problem)
{
    const struct design *p = problem->design;
    size_t panel = (size_t)(p->vectors * problem->device->vector_width) * sizeof(float);
    return (size_t)(p->groups.count * p->panels) * panel *
        (p->deep ? 1 : (size_t)(1 + p->tiles.kernel_numbers * (p->padded + 1)));
}

/* Adds the launch of the products. Where it is not deep, the weights are already transformed and the bias is padded.
 * So forward and gradient share their programs, except with a stride of 2, where their tiles differ. */
static struct launch *add_product(const struct problem *problem, const struct operands *operands,
    struct launch_list *list, const struct design *p, const char *kernel)
{
    const struct conv2d_sizes z = conv2d_sizes_of(problem);
    double bytes = 4.0 * (double)(z.n * (z.c + z.k) * p->tiles.result_h * p->tiles.result_w);
    char epilogue[256], statistics[RESULT_OPTIONS];
    return launch_add(list, p->deep ? "conv2d_winograd_deep_cpu" : "conv2d_winograd_cpu", kernel,
        "-DR=%d -DSTRIDE=%d -DGRADIENT=%d -DNV=%d -DMT=%d -DKU=%d -DSTREAM=%d -DSCRATCH_GLOBAL=%d %s %s %s",
        (int)p->tiles.taps, (int)p->tiles.stride, (p->deep || p->tiles.stride == 2) && conv2d_is_data_gradient(problem),
        (int)p->vectors, (int)p->block, UNROLL, conv2d_streams(problem, operands, bytes), p->scratch.global,
        conv2d_halves_option(&p->groups), result_options(problem->node, statistics, sizeof statistics),
        epilogue_options(problem->node, epilogue, sizeof epilogue));
}

ARGUMENTS(kernels, WINOGRAD_KERNELS_ARGUMENTS)

static void emit_prepare(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct design *p = problem->design;
    cl_mem bias = has_bias(problem) ? operands->inputs[2] : operands->inputs[1];
    if (p->deep) {
        struct launch *launch = winograd_add_preparation(
            list, &p->tiles, p->vectors, "winograd_bias", false, has_bias(problem), &p->groups);
        LAUNCH_BUFFERS(launch, bias, operands->prepared);
        LAUNCH_INTS(launch, p->groups.results, p->panels * p->vectors * problem->device->vector_width);
        launch_tasks(launch, 1, 1, 1);
        return;
    }
    struct launch *launch = winograd_add_preparation(list, &p->tiles, p->vectors, "winograd_weights",
        conv2d_is_data_gradient(problem), has_bias(problem), &p->groups);
    ARGUMENTS_SET(launch, kernels, .w = operands->inputs[1], .bias = bias, .prepared = operands->prepared,
        .sources = p->groups.sources, .results = p->groups.results, .padded = p->padded, .merged = p->groups.merged);
    launch_tasks(launch, (size_t)p->groups.source_blocks, (size_t)p->panels, (size_t)p->groups.count);
    launch_work(launch, 0,
        4.0 * (double)(p->tiles.taps * p->tiles.taps + p->tiles.kernel_numbers) *
            (double)(p->groups.count * p->groups.sources * p->groups.results));
}

ARGUMENTS(winograd, WINOGRAD_ARGUMENTS)

static void emit_fused(
    const struct problem *problem, const struct operands *operands, struct launch_list *list, const struct design *p)
{
    struct launch *launch = add_product(problem, operands, list, p, "winograd");
    ARGUMENTS_SET(launch, winograd, .source = operands->inputs[0], .prepared = operands->prepared,
        .add = conv2d_or(operands->add, operands->outputs[0]), .result = operands->outputs[0],
        .source_blocks = p->groups.source_blocks, .padded = p->padded, .result_blocks = p->groups.result_blocks,
        WINOGRAD_TILES_VALUES(&p->tiles), .chunks = p->tiles.chunks, .panels = p->panels, .panels_max = p->panels_max,
        CONV2D_GROUPS_VALUES(&p->groups), SCRATCH_VALUES(&p->scratch, operands));
    result_arguments(launch, problem, operands);
    launch_tasks(launch, (size_t)p->tasks, (size_t)divide_up(p->panels, p->panels_max), (size_t)p->groups.count);
    launch_work(launch, conv2d_flops(problem), conv2d_bytes(problem));
}

ARGUMENTS(deep, WINOGRAD_DEEP_ARGUMENTS)

static void emit_deep(
    const struct problem *problem, const struct operands *operands, struct launch_list *list, const struct design *p)
{
    winograd_emit_sources(operands, list, &p->tiles, p->vectors, &p->sources);
    struct launch *launch = add_product(problem, operands, list, p, "winograd_deep");
    ARGUMENTS_SET(launch, deep, .workspace = operands->workspace, .offset = (int64_t)p->sources.from,
        .w = operands->inputs[1], .prepared = operands->prepared, .add = conv2d_or(operands->add, operands->outputs[0]),
        .result = operands->outputs[0], .sources = p->groups.sources, .source_blocks = p->groups.source_blocks,
        .results = p->groups.results, .result_blocks = p->groups.result_blocks, .result_height = p->tiles.result_h,
        .result_width = p->tiles.result_w, .tile_rows = p->tiles.rows, .tile_columns = p->tiles.columns,
        .tiles = p->tiles.count, .T = p->tiles.T, .slice = p->sources.slice, .tasks = p->panels * p->tiles.chunks,
        SCRATCH_VALUES(&p->scratch, operands));
    result_arguments(launch, problem, operands);
    launch_tasks(launch, (size_t)p->tasks, 1, 1);
    launch_work(launch, conv2d_flops(problem), conv2d_bytes(problem));
}

static void emit_product(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct design *p = problem->design;
    if (p->deep)
        emit_deep(problem, operands, list, p);
    else
        emit_fused(problem, operands, list, p);
}

#define COMMON .name = "winograd", .fits = winograd_fits, .layouts = conv2d_cpu_layouts
#define PRODUCT                                                                                      \
    COMMON, .cannot_fuse = conv2d_cpu_cannot_fuse, .statistics = statistics_parts,                   \
            .design_bytes = sizeof(struct design), .design = design, .workspace = product_workspace, \
            .prepared = prepared, .emit_prepare = emit_prepare, .emit = emit_product

const struct implementation conv2d_winograd[CONV2D_PASSES] = {
    { PRODUCT, .fusions = CONV2D_CPU_FORWARD },
    { PRODUCT, .fusions = CONV2D_CPU_DATA_GRADIENT, .in_place = conv2d_mask_in_place },
    { COMMON, .fusions = CONV2D_CPU_WEIGHT_GRADIENT, .design_bytes = sizeof(struct winograd_weights),
        .design = winograd_design_weight_gradient, .workspace = winograd_weight_gradient_workspace,
        .emit = winograd_emit_weight_gradient },
};
