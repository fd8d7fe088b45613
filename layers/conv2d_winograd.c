/* conv2d, Winograd F(4x4, 3x3) with stride 1 or 2, and F(4x4, 5x5), on CPU-class devices. Kernels:
 * clkernels/conv2d_winograd_cpu.cl (forward and data gradient), conv2d_winograd_deep_cpu.cl (the same with many
 * channels), conv2d_winograd_prepare_cpu.cl (what both begin with), conv2d_winograd_weights_cpu.cl (weight gradient),
 * conv2d_winograd_weights_deep_cpu.cl (the same with many channels). */
#include "base/memory.h"
#include "layers/conv2d_cpu.h"
#include "layers/layers.h"

/* DEEP_...: of weight gradients whose tiles are all transformed once: tiles at a time, tasks that would else transform
 * the same ones, the least tiles for which the sums in memory pay, and the most memory. The others: scratch and tiles
 * of a task, the transformed weights up to which they are kept in memory, those that a core's cache holds, and what
 * transforming a kernel's weights costs, in products. With a stride of 2 a tile has more numbers and takes
 * STRIDED_BYTES for FUSED_BYTES. */
enum {
    FUSED_BYTES = 720 << 10,
    STRIDED_BYTES = 880 << 10,
    FUSED_TILES = 28,
    FUSED_WEIGHTS_BYTES = 10 << 20,
    CACHED_BYTES = 1 << 20,
    TRANSFORM_PRODUCTS = 1000,
    WEIGHTS_BYTES = 1 << 20,
    UNROLL = 4,
    SLICE = 64,
    DEEP_TILES = 196,
    DEEP_REPEATS = 8,
    DEEP_LEAST = 100,
    DEEP_BYTES = 100 << 20,
    TILE = 4 /* a side of a tile of results */
};

/* In a transformed kernel. */
static int64_t kernel_numbers_of(const struct conv2d_sizes *z)
{
    return (TILE + z->r - 1) * (TILE + z->s - 1);
}

/* In a transformed tile, each of which is a product for each pair of channels. With a stride of 2 (winograd_stride2.h)
 * the last one of a kernel's line serves TILE of them. */
static int64_t numbers_of(const struct conv2d_sizes *z)
{
    int64_t more = z->stride_h == 2 ? TILE - 1 : 0;
    return (TILE + z->r - 1 + more) * (TILE + z->s - 1 + more);
}

/* Of the products; a direct sum has TILE^2 R^2 for a tile. */
static double product_flops(const struct problem *problem)
{
    struct conv2d_sizes z = conv2d_sizes_of(problem);
    return conv2d_flops(problem) * (double)numbers_of(&z) / (double)(TILE * TILE * z.r * z.s);
}

const char *conv2d_winograd_refusal(const struct problem *problem)
{
    const struct conv2d_sizes z = conv2d_sizes_of(problem);
    if (problem->exact) return "exact arithmetic is asked for, and it rounds about ten times more than the plain sum";
    if (z.dilation_h != 1 || z.dilation_w != 1) return "dilation is not 1";
    if (z.padding_h >= z.r || z.padding_w >= z.r) return "padding is as wide as the kernel";
    return z.groups != 1 ? "groups is not 1" : NULL;
}

static const char *fits(const struct problem *problem)
{
    struct conv2d_sizes z = conv2d_sizes_of(problem);
    if (z.r != z.s || (z.r != 3 && z.r != 5)) return "the kernel is neither 3x3 nor 5x5";
    const char *refusal = conv2d_winograd_refusal(problem);
    if (refusal) return refusal;
    if (z.stride_h != z.stride_w || z.stride_h > 2) return "stride is neither 1 nor 2";
    if (z.stride_h == 2 && (z.r != 3 || z.padding_h != 1 || z.padding_w != 1))
        return "stride is 2, and the kernel not 3x3 with a padding of 1";
    if (z.c < 16 || z.k < 16) return "there are fewer than 16 channels: its transforms would cost more than they save";
    int64_t rows = divide_up(z.oh, TILE), columns = divide_up(z.ow, TILE), numbers = numbers_of(&z);
    int64_t kernel_numbers = kernel_numbers_of(&z);
    if (rows * TILE * columns * TILE > 3 * z.oh * z.ow)
        return "the output is so small that most of its tiles would be empty";
    if ((double)kernel_numbers * (double)z.c * (double)z.k * sizeof(float) > FUSED_WEIGHTS_BYTES &&
        (double)(numbers * z.n * rows * columns) + TRANSFORM_PRODUCTS >
            (double)(z.r * z.s) * (double)(z.n * z.oh * z.ow))
        return "there are so few tiles that transforming the many weights would cost more than it saves";
    return conv2d_cpu_refusal(problem);
}

static bool is_gradient(const struct problem *problem)
{
    return problem->node->operation == &operation_conv2d_data_gradient;
}

static bool has_bias(const struct problem *problem)
{
    return !is_gradient(problem) && problem->inputs[2];
}

/* ----------------------------------------------------------------------------------------- forward, data gradient */

/* What the kernel computes: the data gradient is a forward pass with another padding. */
struct plan {
    struct conv2d_channels channels;
    int64_t n, source_h, source_w, result_h, result_w, padding_h, padding_w;
    int64_t taps, stride;                  /* R */
    int64_t numbers, kernel_numbers, side; /* of a tile, of a kernel; of a tile of results */
    int64_t rows, columns, tiles;          /* of tiles */
    int64_t vectors, block;                /* NV, MT */
    int64_t padded, panels;
    bool deep;
    int64_t T, chunks, panels_max, slice; /* slice: of source channels, deep */
    struct conv2d_scratch scratch;
    int64_t tasks;           /* along the chunks; deep: of all */
    size_t transformed;      /* floats of transformed sources; deep */
    size_t transformed_from; /* floats into the workspace */
};

/* Blocks of results in registers, and the most tiles beside them. */
static int64_t most_tiles(const struct problem *problem, int64_t vectors)
{
    int64_t most = (conv2d_registers(problem) - vectors - 1) / vectors;
    return most > 14 ? 14 : most;
}

static void choose_vectors(struct plan *p)
{
    double best = 0;
    for (int64_t vectors = 1; vectors <= 3; vectors++) {
        int64_t panels = divide_up(p->channels.result_blocks, vectors);
        double cost = (double)(panels * vectors) * (vectors == 1 ? 1.15 : vectors == 3 ? 1.03 : 1.0);
        if (best != 0 && cost >= best) continue;
        best = cost;
        p->vectors = vectors;
        p->panels = panels;
    }
}

/* Tiles in registers that waste the fewest of `count`. */
static int64_t choose_tiles(int64_t most, int64_t count)
{
    int64_t best = most;
    for (int64_t tiles = most; tiles * 3 >= most * 2 && tiles > 0; tiles--)
        if (divide_up(count, tiles) * tiles < divide_up(count, best) * best) best = tiles;
    return best;
}

static size_t fused_bytes(const struct problem *problem, const struct plan *p, int64_t T)
{
    int64_t v = problem->device->vector_width;
    return (size_t)(p->numbers * v * (p->channels.source_blocks * (T + 1) + p->vectors * T + 1)) * sizeof(float);
}

static size_t fused_bytes_most(const struct plan *p)
{
    return p->stride == 2 ? STRIDED_BYTES : FUSED_BYTES;
}

/* Whether the weights, or tiles enough for the registers, are more than a core's cache holds. */
static bool is_deep(const struct problem *problem, const struct plan *p)
{
    double weights = (double)p->kernel_numbers * (double)(p->padded + 1) * (double)p->channels.results * sizeof(float);
    int64_t most = most_tiles(problem, p->vectors), least = p->stride == 2 ? most / 2 : most * 2 / 3;
    return weights > FUSED_WEIGHTS_BYTES || fused_bytes(problem, p, least) > fused_bytes_most(p);
}

/* Cycles of a task of the fused kernel, roughly: its transforms, as they were timed with 36 numbers of a tile, and
 * products, and the reading of its weights, where those do not stay in the core's cache from task to task. */
static double fused_cycles(
    const struct problem *problem, const struct plan *p, int64_t block, int64_t T, int64_t panels)
{
    double vectors = (double)(panels * p->vectors), numbers = (double)p->numbers;
    double channels = numbers * (double)p->padded, kernels = (double)(p->kernel_numbers * p->padded);
    double transforms = (double)T * numbers / 36 * (250.0 * (double)p->channels.source_blocks + 200.0 * vectors);
    double each = (double)(block * p->vectors) / 2 + 2 * (double)(p->vectors + 1);
    double products = channels * (double)(panels * divide_up(T, block)) * each;
    double bytes = kernels * vectors * (double)problem->device->vector_width * sizeof(float);
    double reading = bytes * (double)p->panels > CACHED_BYTES * (double)panels ? bytes / 8 : 0;
    return transforms + products + reading;
}

/* Tiles and panels of a task, by the cycles of the busiest core. With many tiles a task takes all panels; with few,
 * tasks share the panels, so that each weight is read once. */
static void plan_fused(const struct problem *problem, struct plan *p)
{
    int64_t most = most_tiles(problem, p->vectors), units = problem->device->units, panels = p->panels;
    double best = 0;
    for (int64_t block = divide_up(most, 2); block <= most; block++)
        for (int64_t T = block; T <= FUSED_TILES && T < p->tiles + block; T += block) {
            int64_t chunks = divide_up(p->tiles, T);
            if (best != 0 && (fused_bytes(problem, p, T) > fused_bytes_most(p) || chunks * p->panels < 2 * units))
                break;
            for (int64_t ranges = 1; ranges <= p->panels; ranges++) {
                int64_t panels_max = divide_up(p->panels, ranges), tasks = chunks * divide_up(p->panels, panels_max);
                double cost = (double)divide_up(tasks, units) * fused_cycles(problem, p, block, T, panels_max);
                if (best != 0 && cost >= best) continue;
                best = cost;
                p->block = block;
                p->T = T;
                panels = panels_max;
            }
        }
    p->chunks = divide_up(p->tiles, p->T);
    p->panels_max = panels;
    p->scratch = conv2d_scratch_of(problem, fused_bytes(problem, p, p->T));
    p->tasks = conv2d_scratch_tasks(problem, &p->scratch, p->chunks);
}

static void plan_deep(const struct problem *problem, struct plan *p, int64_t wanted)
{
    int64_t v = problem->device->vector_width, most = most_tiles(problem, p->vectors);
    int64_t chunks = divide_up(p->tiles, 72), spread = divide_up(wanted, p->panels);
    if (chunks < spread) chunks = spread < divide_up(p->tiles, most) ? spread : divide_up(p->tiles, most);
    int64_t each = divide_up(p->tiles, chunks);
    p->block = choose_tiles(most, each);
    p->T = divide_up(each, p->block) * p->block;
    p->chunks = divide_up(p->tiles, p->T);
    p->slice = SLICE;
    int64_t vectors = p->kernel_numbers * p->vectors * (p->slice + 1) + p->numbers * (p->vectors * p->T + 1);
    p->scratch = conv2d_scratch_of(problem, (size_t)(vectors * v) * sizeof(float));
    p->tasks = conv2d_scratch_tasks(problem, &p->scratch, p->panels * p->chunks);
    p->transformed = (size_t)(p->chunks * p->channels.source_blocks * p->numbers * (p->T + 1) * v);
    p->transformed_from = conv2d_scratch_workspace(&p->scratch, p->tasks) / sizeof(float);
}

static struct plan plan_of(const struct problem *problem)
{
    struct conv2d_sizes z = conv2d_sizes_of(problem);
    bool gradient = is_gradient(problem);
    struct plan p = { .channels = conv2d_channels_of(problem, gradient), .n = z.n };
    p.source_h = gradient ? z.oh : z.h;
    p.source_w = gradient ? z.ow : z.w;
    p.result_h = gradient ? z.h : z.oh;
    p.result_w = gradient ? z.w : z.ow;
    p.taps = z.r;
    p.stride = z.stride_h;
    p.numbers = numbers_of(&z);
    p.kernel_numbers = kernel_numbers_of(&z);
    p.side = gradient ? TILE * z.stride_h : TILE;
    p.padding_h = gradient ? z.r - z.stride_h - z.padding_h : z.padding_h;
    p.padding_w = gradient ? z.s - z.stride_w - z.padding_w : z.padding_w;
    p.rows = divide_up(p.result_h, p.side);
    p.columns = divide_up(p.result_w, p.side);
    p.tiles = z.n * p.rows * p.columns;
    p.padded = divide_up(p.channels.sources, UNROLL) * UNROLL;
    choose_vectors(&p);
    int64_t wanted = conv2d_tasks_wanted(problem, product_flops(problem));
    p.deep = is_deep(problem, &p);
    if (p.deep)
        plan_deep(problem, &p, wanted);
    else
        plan_fused(problem, &p);
    return p;
}

static size_t product_workspace(const struct problem *problem)
{
    struct plan p = plan_of(problem);
    if (p.deep) return (p.transformed_from + p.transformed) * sizeof(float);
    return conv2d_scratch_workspace(&p.scratch, p.tasks * divide_up(p.panels, p.panels_max));
}

static int64_t statistics_parts(const struct problem *problem)
{
    return conv2d_cpu_statistics(problem) ? plan_of(problem).chunks : 0;
}

static size_t prepared(const struct problem *problem)
{
    struct plan p = plan_of(problem);
    size_t panel = (size_t)(p.vectors * problem->device->vector_width) * sizeof(float);
    return (size_t)p.panels * panel * (p.deep ? 1 : (size_t)(1 + p.kernel_numbers * (p.padded + 1)));
}

/* The products. What is not deep finds the weights transformed and the bias padded, so that forward and gradient share
 * their programs. */
static struct launch *add_product(const struct problem *problem, const struct operands *operands,
    struct launch_list *list, const struct plan *p, const char *kernel)
{
    double bytes = 4.0 * (double)(p->n * (p->channels.sources + p->channels.results) * p->result_h * p->result_w);
    char epilogue[256], statistics[STATISTICS_OPTIONS];
    return launch_add(list, p->deep ? "conv2d_winograd_deep_cpu" : "conv2d_winograd_cpu", kernel,
        "-DR=%d -DSTRIDE=%d -DGRADIENT=%d -DNV=%d -DMT=%d -DKU=%d -DSTREAM=%d -DSCRATCH_GLOBAL=%d %s %s", (int)p->taps,
        (int)p->stride, (p->deep || p->stride == 2) && is_gradient(problem), (int)p->vectors, (int)p->block, UNROLL,
        conv2d_streams(problem, operands, bytes), p->scratch.global,
        conv2d_statistics_options(problem, statistics, sizeof statistics),
        epilogue_options(&problem->node->epilogue, epilogue, sizeof epilogue));
}

/* `gradient`: where the kernel looks at it. */
static struct launch *add_preparation(
    struct launch_list *list, const struct plan *p, const char *kernel, bool gradient, bool bias)
{
    return launch_add(list, "conv2d_winograd_prepare_cpu", kernel,
        "-DR=%d -DSTRIDE=%d -DGRADIENT=%d -DNV=%d -DHAS_BIAS=%d", (int)p->taps, (int)p->stride, gradient,
        (int)p->vectors, bias);
}

static void emit_prepare(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    struct plan p = plan_of(problem);
    cl_mem bias = has_bias(problem) ? operands->inputs[2] : operands->inputs[1];
    if (p.deep) {
        struct launch *launch = add_preparation(list, &p, "winograd_bias", false, has_bias(problem));
        launch_buffer(launch, bias);
        launch_buffer(launch, operands->prepared);
        launch_int(launch, p.channels.results);
        launch_int(launch, p.panels * p.vectors * problem->device->vector_width);
        launch_tasks(launch, 1, 1, 1);
        return;
    }
    struct launch *launch = add_preparation(list, &p, "winograd_weights", is_gradient(problem), has_bias(problem));
    launch_buffer(launch, operands->inputs[1]);
    launch_buffer(launch, bias);
    launch_buffer(launch, operands->prepared);
    launch_int(launch, p.channels.sources);
    launch_int(launch, p.channels.results);
    launch_int(launch, p.padded);
    launch_tasks(launch, (size_t)p.channels.source_blocks, (size_t)p.panels, 1);
    launch_work(launch, 0,
        4.0 * (double)(p.taps * p.taps + p.kernel_numbers) * (double)(p.channels.sources * p.channels.results));
}

static void launch_planes(struct launch *launch, const struct plan *p)
{
    launch_int(launch, p->source_h);
    launch_int(launch, p->source_w);
    launch_int(launch, p->result_h);
    launch_int(launch, p->result_w);
    launch_int(launch, p->padding_h);
    launch_int(launch, p->padding_w);
    launch_int(launch, p->rows);
    launch_int(launch, p->columns);
    launch_int(launch, p->tiles);
    launch_int(launch, p->T);
}

static void emit_fused(
    const struct problem *problem, const struct operands *operands, struct launch_list *list, const struct plan *p)
{
    struct launch *launch = add_product(problem, operands, list, p, "winograd");
    launch_buffer(launch, operands->inputs[0]);
    launch_buffer(launch, operands->prepared);
    launch_buffer(launch, conv2d_or(operands->add, operands->outputs[0]));
    launch_buffer(launch, operands->outputs[0]);
    launch_int(launch, p->channels.source_blocks);
    launch_int(launch, p->padded);
    launch_int(launch, p->channels.result_blocks);
    launch_planes(launch, p);
    launch_int(launch, p->chunks);
    launch_int(launch, p->panels);
    launch_int(launch, p->panels_max);
    conv2d_scratch_arguments(launch, &p->scratch, operands);
    conv2d_statistics_arguments(launch, problem, operands);
    launch_tasks(launch, (size_t)p->tasks, (size_t)divide_up(p->panels, p->panels_max), 1);
    launch_work(launch, conv2d_flops(problem), conv2d_bytes(problem));
}

/* All sources transformed once, into the workspace. */
static void emit_input(const struct operands *operands, struct launch_list *list, const struct plan *p)
{
    struct launch *launch = add_preparation(list, p, "winograd_input", p->side > TILE, false);
    launch_buffer(launch, operands->inputs[0]);
    launch_buffer(launch, operands->workspace);
    launch_long(launch, (int64_t)p->transformed_from);
    launch_int(launch, p->channels.source_blocks);
    launch_planes(launch, p);
    launch_int(launch, p->slice);
    launch_tasks(launch, (size_t)p->channels.source_blocks, (size_t)p->chunks, 1);
    launch_work(launch, 0, 4.0 * (double)p->transformed * (1 + (double)(TILE * TILE) / (double)p->numbers));
}

static void emit_deep(
    const struct problem *problem, const struct operands *operands, struct launch_list *list, const struct plan *p)
{
    emit_input(operands, list, p);
    struct launch *launch = add_product(problem, operands, list, p, "winograd_deep");
    launch_buffer(launch, operands->workspace);
    launch_long(launch, (int64_t)p->transformed_from);
    launch_buffer(launch, operands->inputs[1]);
    launch_buffer(launch, operands->prepared);
    launch_buffer(launch, conv2d_or(operands->add, operands->outputs[0]));
    launch_buffer(launch, operands->outputs[0]);
    launch_int(launch, p->channels.sources);
    launch_int(launch, p->channels.source_blocks);
    launch_int(launch, p->channels.results);
    launch_int(launch, p->channels.result_blocks);
    launch_int(launch, p->result_h);
    launch_int(launch, p->result_w);
    launch_int(launch, p->rows);
    launch_int(launch, p->columns);
    launch_int(launch, p->tiles);
    launch_int(launch, p->T);
    launch_int(launch, p->slice);
    launch_int(launch, p->panels * p->chunks);
    conv2d_scratch_arguments(launch, &p->scratch, operands);
    conv2d_statistics_arguments(launch, problem, operands);
    launch_tasks(launch, (size_t)p->tasks, 1, 1);
    launch_work(launch, conv2d_flops(problem), conv2d_bytes(problem));
}

static void emit_product(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    struct plan p = plan_of(problem);
    if (p.deep)
        emit_deep(problem, operands, list, &p);
    else
        emit_fused(problem, operands, list, &p);
}

/* ------------------------------------------------------------------------------------------------ weight gradient */

struct weights_plan {
    struct conv2d_sizes z;
    int64_t rows, columns, tiles, tiles_split, splits, T;
    int64_t vectors, channels;       /* NV, CT */
    int64_t task_c, task_k;          /* blocks of a task */
    int64_t c_tasks, k_tasks, tasks; /* tasks: that are launched */
    struct conv2d_scratch scratch;
    size_t parts_from; /* floats into the workspace */
    bool deep;         /* all tiles are transformed once; then: */
    int64_t c_blocks, chunks, panels, panels_max;
    size_t gradients_from, products_from; /* floats into the workspace, which begins with the sources */
    size_t deep_bytes;
};

static size_t weights_scratch(const struct problem *problem, const struct weights_plan *p)
{
    int64_t v = problem->device->vector_width;
    int64_t vectors = numbers_of(&p->z) * (p->task_c + p->task_k) * (p->T + 1) +
        kernel_numbers_of(&p->z) * (p->task_c * v * p->task_k + 1);
    return (size_t)(vectors * v) * sizeof(float);
}

/* Blocks of 64 x 64 channels, 20 tiles of 36 numbers at a time: as much as a core's second-level cache holds. Less
 * where local memory is less; more tiles where there are fewer channels, because each chunk of tiles reads and writes
 * all sums. */
static void choose_block(const struct problem *problem, struct weights_plan *p)
{
    int64_t v = problem->device->vector_width, c_blocks = divide_up(p->z.c, v), k_blocks = divide_up(p->z.k, v);
    p->vectors = k_blocks == 1 ? 1 : k_blocks % 3 == 0 && k_blocks % 2 ? 3 : 2;
    p->channels = v == 16 ? (p->vectors == 1 ? 16 : 8) : 4;
    p->T = 20 * 36 / numbers_of(&p->z) / 4 * 4;
    for (int64_t side = 64; side >= v; side /= 2) {
        int64_t most = side / v;
        p->task_c = divide_up(c_blocks, divide_up(c_blocks, most));
        p->task_k = divide_up(divide_up(k_blocks, divide_up(k_blocks, most)), p->vectors) * p->vectors;
        if (weights_scratch(problem, p) <= problem->device->local_bytes || side <= 32) break;
    }
    size_t room = problem->device->local_bytes < WEIGHTS_BYTES ? problem->device->local_bytes : WEIGHTS_BYTES;
    for (p->T += 4; p->T <= 48 && weights_scratch(problem, p) <= room;) p->T += 4;
    p->T -= 4;
    p->c_tasks = divide_up(c_blocks, p->task_c);
    p->k_tasks = divide_up(k_blocks, p->task_k);
}

/* Transformed once where each block of tiles would be transformed for at least so many tasks, unless that takes too
 * much memory. Then tiles at a time: as many as the first-level cache holds of NV blocks of gradients. */
static void plan_weights_deep(const struct problem *problem, struct weights_plan *p)
{
    int64_t v = problem->device->vector_width, k_blocks = divide_up(p->z.k, v), numbers = numbers_of(&p->z);
    p->c_blocks = divide_up(p->z.c, v);
    p->panels = divide_up(k_blocks, p->vectors);
    p->chunks = divide_up(p->tiles, DEEP_TILES);
    int64_t T = divide_up(p->tiles, p->chunks);
    size_t block = (size_t)(p->chunks * numbers * (T + 1) * v),
           sums = (size_t)(p->panels * p->c_blocks * v * p->vectors + 1);
    p->gradients_from = block * (size_t)p->c_blocks;
    p->products_from = p->gradients_from + block * (size_t)(p->panels * p->vectors);
    p->deep_bytes = (p->products_from + (size_t)kernel_numbers_of(&p->z) * sums * (size_t)v) * sizeof(float);
    p->deep = p->c_tasks + p->k_tasks >= DEEP_REPEATS && p->tiles >= DEEP_LEAST && p->deep_bytes <= DEEP_BYTES;
    if (!p->deep) return;
    p->T = T;
    int64_t ranges = divide_up(32 * (int64_t)problem->device->units, kernel_numbers_of(&p->z));
    p->panels_max = divide_up(p->panels, ranges);
}

static struct weights_plan weights_of(const struct problem *problem)
{
    struct weights_plan p = { .z = conv2d_sizes_of(problem) };
    p.rows = divide_up(p.z.oh, TILE);
    p.columns = divide_up(p.z.ow, TILE);
    p.tiles = p.z.n * p.rows * p.columns;
    choose_block(problem, &p);
    plan_weights_deep(problem, &p);
    if (p.deep) return p;
    int64_t wanted = divide_up(conv2d_tasks_wanted(problem, product_flops(problem)), p.c_tasks * p.k_tasks);
    int64_t most = p.tiles / (4 * p.T);
    p.splits = wanted < most ? wanted : most;
    if (p.splits < 1) p.splits = 1;
    p.tiles_split = divide_up(p.tiles, p.splits);
    p.splits = divide_up(p.tiles, p.tiles_split);
    p.scratch = conv2d_scratch_of(problem, weights_scratch(problem, &p));
    p.tasks = conv2d_scratch_tasks(problem, &p.scratch, p.c_tasks * p.k_tasks * p.splits);
    p.parts_from = conv2d_scratch_workspace(&p.scratch, p.tasks) / sizeof(float);
    return p;
}

static size_t weights_workspace(const struct problem *problem)
{
    struct weights_plan p = weights_of(problem);
    if (p.deep) return p.deep_bytes;
    return p.parts_from * sizeof(float) + (p.splits > 1 ? conv2d_parts_bytes(problem, p.splits) : 0);
}

static struct launch *add_weights(const struct problem *problem, struct launch_list *list, const struct weights_plan *p,
    const char *text, const char *kernel)
{
    char epilogue[256];
    return launch_add(list, text, kernel, "-DR=%d -DSTRIDE=%d -DNV=%d -DCT=%d -DSCRATCH_GLOBAL=%d %s", (int)p->z.r,
        (int)p->z.stride_h, (int)p->vectors, (int)p->channels, !p->deep && p->scratch.global,
        epilogue_options(&problem->node->epilogue, epilogue, sizeof epilogue));
}

static void emit_weights_deep(const struct problem *problem, const struct operands *operands, struct launch_list *list,
    const struct weights_plan *p)
{
    const struct conv2d_sizes *z = &p->z;
    const char *text = "conv2d_winograd_weights_deep_cpu";
    const int64_t v = problem->device->vector_width, numbers = numbers_of(z), kernel_numbers = kernel_numbers_of(z);
    struct plan sources = { .taps = z->r,
        .stride = z->stride_h,
        .side = TILE,
        .numbers = numbers,
        .vectors = p->vectors,
        .channels.source_blocks = p->c_blocks,
        .source_h = z->h,
        .source_w = z->w,
        .result_h = z->oh,
        .result_w = z->ow,
        .padding_h = z->padding_h,
        .padding_w = z->padding_w,
        .rows = p->rows,
        .columns = p->columns,
        .tiles = p->tiles,
        .T = p->T,
        .chunks = p->chunks,
        .slice = v,
        .transformed = p->gradients_from };
    emit_input(operands, list, &sources);

    struct launch *launch = add_weights(problem, list, p, text, "winograd_gradients");
    launch_buffer(launch, operands->inputs[1]);
    launch_buffer(launch, operands->workspace);
    launch_long(launch, (int64_t)p->gradients_from);
    launch_int(launch, z->k);
    launch_int(launch, z->oh);
    launch_int(launch, z->ow);
    launch_int(launch, p->rows);
    launch_int(launch, p->columns);
    launch_int(launch, p->tiles);
    launch_int(launch, p->T);
    launch_tasks(launch, (size_t)(p->panels * p->vectors), (size_t)p->chunks, 1);
    launch_work(launch, 0, 4.0 * (double)(z->n * z->k * z->oh * z->ow) + 4.0 * (double)(numbers * p->tiles * z->k));

    launch = add_weights(problem, list, p, text, "winograd_weight_products");
    launch_buffer(launch, operands->workspace);
    launch_long(launch, 0);
    launch_long(launch, (int64_t)p->gradients_from);
    launch_long(launch, (int64_t)p->products_from);
    launch_int(launch, p->c_blocks);
    launch_int(launch, p->panels);
    launch_int(launch, p->panels_max);
    launch_int(launch, p->tiles);
    launch_int(launch, p->T);
    launch_tasks(launch, (size_t)kernel_numbers, (size_t)divide_up(p->panels, p->panels_max), 1);
    launch_work(launch, conv2d_flops(problem),
        4.0 * (double)(numbers * p->tiles * (z->k + z->c) + kernel_numbers * z->k * z->c));

    launch = add_weights(problem, list, p, text, "winograd_weight_results");
    launch_buffer(launch, operands->workspace);
    launch_long(launch, (int64_t)p->products_from);
    launch_buffer(launch, conv2d_or(operands->add, operands->outputs[0]));
    launch_buffer(launch, operands->outputs[0]);
    launch_int(launch, z->c);
    launch_int(launch, z->k);
    launch_int(launch, p->panels);
    launch_tasks(launch, (size_t)p->c_blocks, (size_t)p->panels, 1);
    launch_work(launch, 0, 4.0 * (double)(kernel_numbers + z->r * z->s) * (double)(z->k * z->c));
}

static void emit_weights(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    struct weights_plan p = weights_of(problem);
    if (p.deep) {
        emit_weights_deep(problem, operands, list, &p);
        return;
    }
    struct launch *launch = add_weights(problem, list, &p, "conv2d_winograd_weights_cpu", "winograd_weight_gradient");
    launch_buffer(launch, operands->inputs[0]);
    launch_buffer(launch, operands->inputs[1]);
    launch_buffer(launch, conv2d_or(operands->workspace, operands->outputs[0]));
    launch_long(launch, (int64_t)p.parts_from);
    launch_buffer(launch, conv2d_or(operands->add, operands->outputs[0]));
    launch_buffer(launch, operands->outputs[0]);
    launch_int(launch, p.z.c);
    launch_int(launch, p.z.k);
    launch_int(launch, p.z.h);
    launch_int(launch, p.z.w);
    launch_int(launch, p.z.oh);
    launch_int(launch, p.z.ow);
    launch_int(launch, p.z.padding_h);
    launch_int(launch, p.z.padding_w);
    launch_int(launch, p.rows);
    launch_int(launch, p.columns);
    launch_int(launch, p.tiles);
    launch_int(launch, p.tiles_split);
    launch_int(launch, p.T);
    launch_int(launch, p.task_c);
    launch_int(launch, p.task_k);
    launch_int(launch, p.splits);
    conv2d_scratch_arguments(launch, &p.scratch, operands);
    launch_tasks(launch, (size_t)p.tasks, 1, 1);
    launch_work(launch, conv2d_flops(problem), conv2d_bytes(problem));
    if (p.splits > 1) conv2d_parts_emit(problem, operands, list, p.splits, p.parts_from);
}

const struct implementation conv2d_winograd_forward = {
    .name = "winograd",
    .fits = fits,
    .layouts = conv2d_cpu_layouts,
    .epilogues = conv2d_cpu_epilogues,
    .statistics = statistics_parts,
    .workspace = product_workspace,
    .prepared = prepared,
    .emit_prepare = emit_prepare,
    .emit = emit_product,
};
const struct implementation conv2d_winograd_data_gradient = {
    .name = "winograd",
    .fits = fits,
    .layouts = conv2d_cpu_layouts,
    .epilogues = conv2d_cpu_epilogues,
    .statistics = statistics_parts,
    .takes_mask = true,
    .in_place = conv2d_mask_in_place,
    .workspace = product_workspace,
    .prepared = prepared,
    .emit_prepare = emit_prepare,
    .emit = emit_product,
};
const struct implementation conv2d_winograd_weight_gradient = {
    .name = "winograd",
    .fits = fits,
    .layouts = conv2d_cpu_layouts,
    .epilogues = conv2d_cpu_sum_epilogues,
    .workspace = weights_workspace,
    .emit = emit_weights,
};
