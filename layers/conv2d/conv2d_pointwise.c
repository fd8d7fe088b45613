/* conv2d, pointwise: 1x1 with stride 1 or 2 on CPU-class devices. Kernels: layers/conv2d/conv2d_pointwise_cpu.cl. */
#include "base/memory.h"
#include "layers/conv2d/arguments/conv2d_pointwise_cpu.h"
#include "layers/conv2d/conv2d_cpu.h"
#include "layers/element.h"
#include "layers/epilogue.h"
#include "layers/remark.h"
#include "runtime/matrix.h"

/* Bytes of packed weights that stay in a core's second-level cache next to everything else that is read meanwhile. */
#define CACHED_WEIGHTS_BYTES (1 << 20)

static const char *fits(const struct problem *problem)
{
    struct conv2d_sizes z = conv2d_sizes_of(problem);
    if (z.r != 1 || z.s != 1) return "the kernel is not 1x1";
    if (z.stride_h != z.stride_w || z.stride_h > 2) return "stride is neither 1 nor 2";
    if (z.padding_h || z.padding_w) return "padding is not 0";
    if (z.groups != 1) return "groups is not 1";
    if (conv2d_cpu_plain_image(z.c)) return "the image has so few channels that it keeps the plain layout";
    return conv2d_cpu_refusal(problem);
}

/* Relative cost of few tasks, which cannot be shared out evenly. */
static double few(int64_t tasks)
{
    return tasks < 8 ? 1.5 : tasks < 16 ? 1.1 : tasks < 24 ? 1.03 : 1;
}

/* Floats at the beginning of the workspace for the pixels of x that a stride of 2 uses; 0 for a stride of 1. */
static size_t gathered_floats(const struct problem *problem)
{
    struct conv2d_sizes z = conv2d_sizes_of(problem);
    int64_t v = problem->device->vector_width;
    return z.stride_h == 1 ? 0 : (size_t)(z.n * divide_up(z.c, v) * z.oh * z.ow * v);
}

static size_t gathered_bytes(const struct problem *problem)
{
    return gathered_floats(problem) * sizeof(float);
}

ARGUMENTS(gather, GATHER_ARGUMENTS)

/* Gathers the pixels of x that are used, and returns their buffer; x itself where all are used. */
static cl_mem emit_gather(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    struct conv2d_sizes z = conv2d_sizes_of(problem);
    size_t floats = gathered_floats(problem);
    if (!floats) return operands->inputs[0];
    char elements[ELEMENT_OPTIONS];
    struct launch *launch =
        launch_add(list, "conv2d_pointwise_cpu", "gather", "%s", element_options(problem, elements, sizeof elements));
    ARGUMENTS_SET(launch, gather, .x = operands->inputs[0], .gathered = operands->workspace, .height = z.h,
        .width = z.w, .OH = z.oh, .OW = z.ow, .stride = z.stride_h);
    launch_tasks(launch, (size_t)(z.n * divide_up(z.c, problem->device->vector_width)), 1, 1);
    launch_work(launch, 0, 8.0 * (double)floats);
    return operands->workspace;
}

/* Returns NULL, or why floats are multiplied and not bfloat16 numbers. Dot products need bfloat16 numbers in
 * memory: the source, or one of the two images whose product is the weight gradient. They are multiplied as dot
 * products, or in C for tests. */
static const char *refused_bf16(const struct problem *problem)
{
    const char *refusal = bf16_refusal(problem->device, COMPUTE_BF16);
    const bool weights = conv2d_pass_of(problem) == CONV2D_WEIGHT_GRADIENT;
    const bool stored = problem->inputs[0]->type == TYPE_BF16 || (weights && problem->inputs[1]->type == TYPE_BF16);
    if (problem->compute != COMPUTE_BF16) return "this kernel multiplies them with --precision bf16 alone";
    if (refusal) return refusal;
    if (problem->device->bf16[COMPUTE_BF16].form == BF16_TILES)
        return "the device multiplies them by tiles, this kernel by dot products";
    if (!stored) return weights ? "neither image is stored as bfloat16" : "the image is stored as floats";
    return NULL;
}

static enum bf16_form bf16_of(const struct problem *problem)
{
    return refused_bf16(problem) ? BF16_NONE : problem->device->bf16[COMPUTE_BF16].form;
}

static void remark(const struct problem *problem, struct text *text)
{
    const char *refusal = refused_bf16(problem);
    if (refusal)
        remark_floats(problem, refusal, text);
    else
        remark_bf16(bf16_of(problem), 1, text);
}

/* ----------------------------------------------------------------------------------------- forward, data gradient */

struct design {
    struct conv2d_sizes z;
    struct conv2d_channels channels;
    bool gradient;
    struct conv2d_packing packing;
    int64_t unroll;                    /* CU */
    int64_t length;                    /* pixels of an image that are walked */
    int64_t group_count, group_pixels; /* MG, MW */
    int64_t groups_image, groups;
    int64_t groups_max, panels_max; /* of a task */
    int64_t depth;                  /* source channels multiplied at a time */
    size_t sums;                    /* bytes of local memory: sums of a task's groups; 0: all channels at once */
};

/* Chooses groups x pixels x vectors in registers: little waste at the ends, much work for each load. */
static void choose_registers(const struct problem *problem, struct design *p)
{
    int64_t registers = conv2d_registers(problem), blocks = p->channels.result_blocks, length = p->length;
    double best = 0;
    for (int64_t vectors = 1; vectors <= 4; vectors++) {
        if (vectors == 4 && registers < 32) continue;
        int64_t most = (registers - vectors - 1) / vectors;
        if (registers == 32 && (vectors == 2 || vectors == 3)) most = vectors == 2 ? 7 : 8; /* 9 x 3 spill */
        if (most > 14) most = 14;
        static const double dearer[] = { 0, 1.1, 1.02, 1.01, 0.95 };
        double outputs = (double)(divide_up(blocks, vectors) * vectors) * dearer[vectors];
        for (int64_t pixels = length < most ? length : most; pixels * 3 >= most || pixels == length; pixels--) {
            int64_t groups = pixels == length || vectors == 4 ? most / pixels : 1;
            if (pixels < length && groups > 3) break;
            double cost = outputs * (double)(divide_up(length, pixels) * pixels) *
                (1 + 0.3 * (double)(most - groups * pixels) / (double)most) *
                (1 + 0.025 * (double)(groups - 1)); /* where each of them begins has to be found */
            if (best == 0 || cost < best) {
                best = cost;
                p->packing.vectors = vectors;
                p->group_count = groups;
                p->group_pixels = pixels;
            }
            if (pixels == 1) break;
        }
    }
}

/* Chooses tiles and panels of a task by the busiest core's cycles, with a charge for what does not fit its caches. */
static void choose_tasks(const struct problem *problem, struct design *p)
{
    int64_t tiles = divide_up(p->groups, p->group_count), panels = p->packing.panels, cores = problem->device->units;
    double pixels = (double)(p->group_count * p->group_pixels), vectors = (double)p->packing.vectors;
    double channels = (double)p->packing.padded, best = 0;
    int64_t tiles_best = tiles;
    p->panels_max = panels;
    for (int64_t ranges = 1; ranges <= panels; ranges++) {
        int64_t panels_max = divide_up(panels, ranges);
        if (divide_up(panels, panels_max) != ranges) continue;
        for (int64_t chunks = 1; chunks <= tiles && chunks <= 128 * cores; chunks++) {
            int64_t tiles_max = divide_up(tiles, chunks), tasks = ranges * chunks;
            if (divide_up(tiles, tiles_max) != chunks) continue;
            double work = (double)(tiles_max * panels_max) * pixels * vectors * channels / 2;
            if (tasks > 2 * cores && work < 3e4) continue; /* below some 7 us a task costs too much */
            double rounds = tasks < 32 * cores ? (double)divide_up(tasks, cores) : (double)tasks / (double)cores;
            double source = (double)tiles_max * pixels * channels * 4;
            double weights = (double)(panels_max * problem->device->vector_width) * vectors * channels * 4;
            double cycles = work + source / 30 + weights / ((double)ranges * weights > 600e3 ? 30 : 60);
            if (source > 400e3 && panels_max > 1) cycles += source * (double)panels_max / 60;
            double cost = rounds * (cycles + 2000) * few(tasks);
            if (best != 0 && cost >= best * 0.999) continue;
            best = cost;
            tiles_best = tiles_max;
            p->panels_max = panels_max;
        }
    }
    p->groups_max = tiles_best * p->group_count;
}

/* Divides the channels into equal parts, unless there is no room for the sums between them. */
static void choose_depth(const struct problem *problem, struct design *p)
{
    int64_t v = problem->device->vector_width, channels = p->packing.padded, panel = p->packing.vectors * v;
    /* Packed weights stay in the first-level cache, of 48 KiB where vectors have 16 floats, else of 32. */
    int64_t parts = divide_up(channels * panel * (int64_t)sizeof(float), v == 16 ? 32 << 10 : 20 << 10);
    size_t sums = (size_t)(p->groups_max * p->group_pixels * panel) * sizeof(float);
    p->depth = divide_up(divide_up(channels, parts), v) * v;
    if (p->depth < channels && sums <= problem->device->local_bytes)
        p->sums = sums;
    else
        p->depth = channels;
}

static void design_product(const struct problem *problem, void *design)
{
    struct design p = { .z = conv2d_sizes_of(problem) };
    p.gradient = conv2d_is_data_gradient(problem);
    p.channels = conv2d_channels_of(problem, p.gradient);
    p.length = p.z.oh * p.z.ow;
    int64_t v = problem->device->vector_width;
    choose_registers(problem, &p);
    p.packing.taps = 1;
    p.packing.source_block = v;
    /* With 8 floats, a block at once takes 5 % off deep layers; with 16, 1 and 4 channels were within noise of 2. */
    p.unroll = v == 8 && p.channels.sources % v == 0 ? v : 2;
    p.packing.padded = divide_up(p.channels.sources, p.unroll) * p.unroll;
    p.packing.panels = divide_up(p.channels.result_blocks, p.packing.vectors);
    p.groups_image = divide_up(p.length, p.group_pixels);
    p.groups = p.groups_image * p.z.n;
    choose_tasks(problem, &p);
    choose_depth(problem, &p);
    *(struct design *)design = p;
}

static size_t prepared(const struct problem *problem)
{
    const struct design *p = problem->design;
    return conv2d_packing_bytes(problem, &p->packing);
}

static void emit_prepare(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct design *p = problem->design;
    struct conv2d_packing packing = p->packing;
    packing.bf16 = bf16_of(problem) != BF16_NONE;
    conv2d_packing_emit(problem, operands, list, &packing, p->gradient);
}

/* Vectors of the next weights to be prefetched with each block of channels: evenly by all tiles of a task, not in
 * bursts. 0 where all weights together stay in a core's second-level cache from one task to the next. */
static int64_t following(const struct problem *problem, const struct design *p)
{
    const int64_t vectors = p->packing.vectors * problem->device->vector_width;
    const int64_t each = divide_up(vectors * p->group_count, p->groups_max);
    if (p->packing.panels * vectors * p->packing.padded * (int64_t)sizeof(float) <= CACHED_WEIGHTS_BYTES) return 0;
    return each < 8 ? each : 8;
}

static int64_t statistics_parts(const struct problem *problem)
{
    const struct design *p = problem->design;
    if (p->gradient && p->z.stride_h > 1) return 0; /* zeros between the pixels are written apart */
    return conv2d_cpu_statistics(problem) ? divide_up(p->groups, p->groups_max) : 0;
}

ARGUMENTS(pointwise, POINTWISE_ARGUMENTS)

static void emit_product(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct design *p = problem->design;
    size_t result_bytes = value_bytes(problem->outputs[0], 1);
    cl_mem source = p->gradient ? operands->inputs[0] : emit_gather(problem, operands, list);
    bool scatter = p->gradient && p->z.stride_h > 1;
    bool keep =
        operands->add && operands->add == operands->outputs[0] && !node_fusion(problem->node, FUSION_ACTIVATION);
    /* Prefetch some 3000 cycles ahead. */
    int64_t ahead = divide_up(6000, p->depth * p->group_count * p->group_pixels * p->packing.vectors);
    char epilogue[256], statistics[RESULT_OPTIONS], elements[ELEMENT_OPTIONS];
    struct launch *launch = launch_add(list, "conv2d_pointwise_cpu", "pointwise",
        "-DMG=%d -DMW=%d -DNV=%d -DCU=%d -DYS=%d -DKEEP_OTHERS=%d -DBF16_FORM=%d %s %s%s", (int)p->group_count,
        (int)p->group_pixels, (int)p->packing.vectors, (int)p->unroll, scatter ? 2 : 1, scatter && keep,
        (int)bf16_of(problem), result_options(problem->node, statistics, sizeof statistics),
        epilogue_options(problem->node, epilogue, sizeof epilogue),
        element_options(problem, elements, sizeof elements));
    ARGUMENTS_SET(launch, pointwise, .source = source, .packed = operands->prepared,
        .add = conv2d_or(operands->add, operands->outputs[0]), .result = operands->outputs[0],
        .padded = p->packing.padded, .source_blocks = p->channels.source_blocks,
        .result_blocks = p->channels.result_blocks, .length = p->length, .columns = p->z.ow,
        .height = p->gradient ? p->z.h : p->z.oh, .width = p->gradient ? p->z.w : p->z.ow,
        .groups_image = p->groups_image, .groups = p->groups, .groups_max = p->groups_max, .panels = p->packing.panels,
        .panels_max = p->panels_max, .depth = p->depth, .ahead = ahead < 8 ? ahead : 8,
        .following = following(problem, p), .stream = conv2d_streams(problem, operands, 2.0 * (double)result_bytes),
        .sums = p->sums ? p->sums : sizeof(float));
    result_arguments(launch, problem, operands);
    launch_tasks(
        launch, (size_t)divide_up(p->packing.panels, p->panels_max), (size_t)divide_up(p->groups, p->groups_max), 1);
    launch_work(launch, conv2d_flops(problem), conv2d_bytes(problem));
}

/* ------------------------------------------------------------------------------------------------ weight gradient */

struct weights_design {
    struct conv2d_sizes z;
    int64_t c_blocks, k_blocks;
    int64_t vectors, channels; /* NV, CT */
    int64_t length, run, runs_image, runs, runs_split, chunk;
    int64_t channels_max, blocks_max, splits; /* of a task */
    int64_t splits_least;
    size_t parts_from; /* floats */
};

/* Pixels of a chunk, which are a chain: at most, and as a rule. x and dy of a pass stay in the first-level cache. */
enum { CHUNK = 72, CHUNK_USUAL = CHUNK * 7 / 8 };

/* Cost of one way to divide the work into channel blocks and panels of a task, and splits of the pixels: cycles of
 * the busiest core. */
static double cost_of(const struct problem *problem, const struct weights_design *w, int64_t channels_max,
    int64_t blocks_max, int64_t splits, int64_t runs_split)
{
    double v = problem->device->vector_width, pixels = (double)(runs_split * w->run);
    double channels = (double)(channels_max < w->z.c ? channels_max : w->z.c), blocks = (double)blocks_max;
    int64_t cores = problem->device->units;
    int64_t tasks = divide_up(w->z.c, channels_max) * divide_up(w->k_blocks, blocks_max) * splits;
    double work = pixels * channels * blocks / 2, sums = channels * blocks * v * 4;
    if (tasks > 2 * cores && work < 3e4) return 0;
    double chunk = CHUNK_USUAL, read = pixels + 3 * chunk; /* the first chunk is not prefetched */
    double cycles =
        work + read * ((double)channels_max + blocks * v) * 4 / 16 + sums * pixels / chunk / (sums < 500e3 ? 20 : 8);
    double rounds = tasks < 32 * cores ? (double)divide_up(tasks, cores) : (double)tasks / (double)cores;
    double joining = (25000 + (double)(splits * w->z.c * w->k_blocks) * v * 4 / 25) * (splits > 1);
    return rounds * (cycles + 2000) * few(tasks) + joining;
}

static void choose_tasks_weights(const struct problem *problem, struct weights_design *w)
{
    static const int64_t splits_tried[] = { 1, 2, 4, 6, 8, 12, 16, 24, 32 };
    int64_t v = problem->device->vector_width, panels = divide_up(w->k_blocks, w->vectors);
    double best = 0;
    for (int64_t c_tasks = 1; c_tasks <= w->c_blocks; c_tasks++) {
        int64_t channels_max = divide_up(w->c_blocks, c_tasks) * v;
        if (divide_up(w->c_blocks * v, channels_max) != c_tasks) continue;
        for (int64_t k_tasks = 1; k_tasks <= panels; k_tasks++) {
            int64_t blocks_max = divide_up(panels, k_tasks) * w->vectors;
            if (divide_up(panels * w->vectors, blocks_max) != k_tasks) continue;
            for (size_t i = 0; i < sizeof splits_tried / sizeof *splits_tried; i++) {
                const int64_t tried = splits_tried[i] > w->splits_least ? splits_tried[i] : w->splits_least;
                int64_t per = divide_up(divide_up(w->runs, tried), w->chunk) * w->chunk;
                if (divide_up(w->runs, per) != tried) continue;
                double cost = cost_of(problem, w, channels_max, blocks_max, tried, per);
                if (cost == 0 || (best != 0 && cost >= best * 0.999)) continue;
                best = cost;
                w->channels_max = channels_max;
                w->blocks_max = blocks_max;
                w->splits = tried;
                w->runs_split = per;
            }
        }
    }
}

static void design_weight_gradient(const struct problem *problem, void *design)
{
    struct weights_design w = { .z = conv2d_sizes_of(problem) };
    int64_t v = problem->device->vector_width;
    w.c_blocks = divide_up(w.z.c, v);
    w.k_blocks = divide_up(w.z.k, v);
    /* Few vectors are added to make whole panels; the sums of 3 x 4 leave 16 registers no room for what is broadcast.
     */
    bool thirds = conv2d_registers(problem) == 32 && divide_up(w.k_blocks, 3) * 3 * 16 <= w.k_blocks * 17;
    w.vectors = thirds ? 3 : w.k_blocks > 1 ? 2 : 1;
    w.channels = v == 16 ? (w.vectors == 1 && w.z.c > 8 ? 16 : 8) : 4;
    w.length = w.z.oh * w.z.ow;
    w.run = w.length <= CHUNK ? w.length : divide_up(w.length, divide_up(w.length, CHUNK_USUAL));
    w.runs_image = divide_up(w.length, w.run);
    w.runs = w.runs_image * w.z.n;
    w.chunk = w.run < CHUNK_USUAL ? CHUNK_USUAL / w.run : 1;
    w.channels_max = w.c_blocks * v; /* one task, where no other way is worth it */
    w.blocks_max = divide_up(w.k_blocks, w.vectors) * w.vectors;
    w.runs_split = divide_up(divide_up(w.runs, divide_up(w.runs, CONV2D_CHAINS * w.chunk)), w.chunk) * w.chunk;
    w.splits = w.splits_least = divide_up(w.runs, w.runs_split);
    choose_tasks_weights(problem, &w);
    w.parts_from = gathered_floats(problem);
    *(struct weights_design *)design = w;
}

static size_t weight_gradient_workspace(const struct problem *problem)
{
    const struct weights_design *w = problem->design;
    return w->parts_from * sizeof(float) + conv2d_parts_bytes(problem, w->splits);
}

ARGUMENTS(pointwise_weights, POINTWISE_WEIGHTS_ARGUMENTS)

static void emit_weight_gradient(
    const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct weights_design *w = problem->design;
    cl_mem x = emit_gather(problem, operands, list);
    int64_t passes =
        divide_up(w->channels_max < w->z.c ? w->channels_max : w->z.c, w->channels) * (w->blocks_max / w->vectors);
    int64_t planes = divide_up(w->channels_max, problem->device->vector_width) + w->blocks_max;
    char elements[ELEMENT_OPTIONS];
    struct launch *launch = launch_add(list, "conv2d_pointwise_cpu", "pointwise_weights",
        "-DNV=%d -DCT=%d -DPLANES_AHEAD=%d -DBF16_FORM=%d%s", (int)w->vectors, (int)w->channels,
        (int)divide_up(planes, passes), (int)bf16_of(problem), element_options(problem, elements, sizeof elements));
    ARGUMENTS_SET(launch, pointwise_weights, .x = x, .dy = operands->inputs[1], .workspace = operands->workspace,
        .offset = (int64_t)w->parts_from, .C = w->z.c, .KB = w->k_blocks, .length = w->length, .run = w->run,
        .runs_image = w->runs_image, .runs = w->runs, .runs_split = w->runs_split, .chunk = w->chunk,
        .channels_max = w->channels_max, .blocks_max = w->blocks_max);
    launch_tasks(launch, (size_t)divide_up(w->z.c, w->channels_max), (size_t)divide_up(w->k_blocks, w->blocks_max),
        (size_t)w->splits);
    launch_work(launch, conv2d_flops(problem), conv2d_bytes(problem));
    conv2d_parts_emit(problem, operands, list, w->splits, w->parts_from);
}

#define COMMON .name = "pointwise", .fits = fits, .remark = remark, .layouts = conv2d_cpu_layouts
#define PRODUCT                                                                                    \
    COMMON, .cannot_fuse = conv2d_cpu_cannot_fuse, .statistics = statistics_parts,                 \
            .design_bytes = sizeof(struct design), .design = design_product, .prepared = prepared, \
            .emit_prepare = emit_prepare, .emit = emit_product, .bf16_outputs = 1 << 0

const struct implementation conv2d_pointwise[CONV2D_PASSES] = {
    { PRODUCT, .fusions = CONV2D_CPU_FORWARD, .workspace = gathered_bytes, .bf16_inputs = 1 << 0 },
    { PRODUCT, .fusions = CONV2D_CPU_DATA_GRADIENT, .in_place = conv2d_mask_in_place, .bf16_inputs = 1 << 0 },
    { COMMON, .fusions = CONV2D_CPU_WEIGHT_GRADIENT, .design_bytes = sizeof(struct weights_design),
        .design = design_weight_gradient, .workspace = weight_gradient_workspace, .emit = emit_weight_gradient,
        .bf16_inputs = 1 << 0 | 1 << 1 },
};
