/* conv2d, direct: any kernel, stride, padding and dilation on CPU-class devices, also with several groups of channels,
 * which are divided or merged along blocks (struct conv2d_groups in conv2d_cpu.h). The kernels are
 * layers/conv2d/conv2d_direct_cpu.cl (forward and data gradient) and conv2d_direct_weight_gradient_cpu.cl. */
#include "base/memory.h"
#include "layers/conv2d/arguments/conv2d_direct_cpu.h"
#include "layers/conv2d/arguments/conv2d_direct_weight_gradient_cpu.h"
#include "layers/conv2d/arguments/conv2d_groups.h"
#include "layers/conv2d/conv2d_cpu.h"
#include "layers/epilogue.h"
#include "runtime/gemm.h"

/* CACHED_BYTES: weights that stay in a core's cache from task to task. NEAR_BYTES: weights that are multiplied for
 * all tiles of a task before the next ones. That is more than the first-level cache holds, because weights are read
 * in order while the sums that wait are not. */
enum { CACHED_BYTES = 1 << 20, NEAR_BYTES = 80 << 10 };

static const char *fits(const struct problem *problem)
{
    const char *refusal = conv2d_groups_refusal(problem);
    return refusal ? refusal : conv2d_cpu_refusal(problem);
}

/* x is read plain where it has few channels. */
static bool reads_image(const struct problem *problem)
{
    const struct conv2d_sizes z = conv2d_sizes_of(problem);
    return !conv2d_is_data_gradient(problem) && z.groups == 1 && conv2d_cpu_plain_image(z.c);
}

static void layouts(const struct problem *problem, enum value_layout *inputs, enum value_layout *outputs)
{
    conv2d_cpu_layouts(problem, inputs, outputs);
    if (reads_image(problem)) inputs[0] = LAYOUT_PLAIN;
}

/* -------------------------------------------------------------------------------- rows of pixels and their sources */

/* See layers/conv2d/conv2d_rows.h. */
struct rows {
    int64_t height, width;                           /* of a source plane */
    int64_t per_image, segments, segment, row_width; /* units */
    int64_t window;                                  /* rows of the source for a unit */
    int64_t reach; /* source pixels of a row that the taps of one pixel span, gaps included */
    int64_t step;  /* source pixels from pixel to pixel */
    int64_t row_start, column_start;
};

static struct rows rows_forward(const struct conv2d_sizes *z)
{
    return (struct rows) {
        .height = z->h,
        .width = z->w,
        .per_image = z->oh,
        .row_width = z->ow,
        .window = z->r,
        .reach = (z->s - 1) * z->dilation_w + 1,
        .step = z->stride_w,
        .row_start = -z->padding_h,
        .column_start = -z->padding_w,
    };
}

/* Pixels h = q * stride + class are one row q; its taps read the rows of dy from q + first to q + last. */
static struct rows rows_gradient(const struct conv2d_sizes *z)
{
    int64_t first_h = conv2d_ceiling(z->padding_h - (z->r - 1) * z->dilation_h, z->stride_h);
    int64_t first_w = conv2d_ceiling(z->padding_w - (z->s - 1) * z->dilation_w, z->stride_w);
    int64_t last_h = (z->stride_h - 1 + z->padding_h) / z->stride_h;
    int64_t last_w = (z->stride_w - 1 + z->padding_w) / z->stride_w;
    return (struct rows) {
        .height = z->oh,
        .width = z->ow,
        .per_image = divide_up(z->h, z->stride_h),
        .row_width = divide_up(z->w, z->stride_w),
        .window = last_h - first_h + 1,
        .reach = last_w - first_w + 1,
        .step = 1,
        .row_start = first_h,
        .column_start = first_w,
    };
}

static int64_t packed_width(const struct rows *rows)
{
    return (rows->segment - 1) * rows->step + rows->reach;
}

/* Divides rows into segments: multiples of `unit` pixels with sources in `budget` bytes; whole rows if possible. */
static void cut_rows(struct rows *rows, int64_t unit, double bytes_per_column, double budget)
{
    rows->segment = rows->row_width;
    if ((double)packed_width(rows) * bytes_per_column > budget) {
        double most = (budget / bytes_per_column - (double)rows->reach) / (double)rows->step + 1;
        int64_t fitting = most > (double)unit ? (int64_t)most / unit * unit : unit;
        if (fitting < rows->row_width) {
            int64_t segments = divide_up(rows->row_width, fitting);
            rows->segment = divide_up(divide_up(rows->row_width, segments), unit) * unit;
        }
    }
    if (rows->segment > rows->row_width) rows->segment = rows->row_width;
    rows->segments = divide_up(rows->row_width, rows->segment);
}

#define ROWS_VALUES(rows)                                                                                        \
    .per_image = (rows)->per_image * (rows)->segments, .segments = (rows)->segments, .segment = (rows)->segment, \
    .width = (rows)->row_width, .row_start = (rows)->row_start, .column_start = (rows)->column_start,            \
    .width_packed = packed_width(rows)

/* ----------------------------------------------------------------------------------------- forward, data gradient */

/* product: the forward pass and the data gradient, which are one kernel. */
struct direct {
    struct conv2d_sizes z;
    struct conv2d_groups groups;
    struct conv2d_packing packing;
    struct rows rows;
    int64_t pixel;                                /* XV */
    int64_t block_h, block_w;                     /* MR, MW */
    int64_t units, units_max, chunks, panels_max; /* units: segments of a row of pixels (conv2d_rows.h) */
    int64_t depth, distance, shares, prefetches;
    struct conv2d_scratch scratch;
    int64_t tasks;
};

/* Rows x pixels of the register block for rows of `width` pixels, at most `most` of them; returns the cost of a pixel
 * relative to a block without waste. */
static double choose_block(int64_t width, int64_t most, int64_t *block_h, int64_t *block_w)
{
    *block_h = 1;
    *block_w = width;
    if (width <= most) {
        *block_h = most / width;
        return (double)most / (double)(*block_h * width) * 0.1 + 0.9;
    }
    double best = 0;
    for (int64_t w = most; w * 3 > most * 2; w--) {
        double cost = (double)(divide_up(width, w) * w) / (double)width * (1 + 0.3 * (double)(most - w) / (double)most);
        if (best == 0 || cost < best) {
            best = cost;
            *block_w = w;
        }
    }
    return best;
}

static void choose_registers(const struct problem *problem, struct direct *d)
{
    int64_t registers = conv2d_registers(problem), blocks = d->groups.result_blocks;
    int64_t rows = d->z.n * d->rows.per_image;
    double best = 0;
    for (int64_t vectors = 1; vectors <= 3 && vectors <= blocks; vectors++) {
        int64_t most = (registers - vectors - 1) / vectors, h, w;
        if (most > 14) most = 14;
        double cost = choose_block(d->rows.row_width, most, &h, &w) * (double)(divide_up(blocks, vectors) * vectors) *
            (double)(divide_up(rows, h) * h) / (double)rows *
            (vectors == 1          ? 1.15
                    : vectors == 3 ? 1.02
                                   : 1.0);
        if (best != 0 && cost >= best) continue;
        best = cost;
        d->packing.vectors = vectors;
        d->block_h = h;
        d->block_w = w;
    }
}

/* Cycles of a task, roughly: copying its sources, its products, and the reading of its weights, where those do not
 * stay in the core's cache from task to task. */
static double task_cycles(const struct problem *problem, const struct direct *d, double unit_bytes, int64_t panels_max)
{
    double taps = (double)(d->packing.padded * d->packing.taps), vectors = (double)(panels_max * d->packing.vectors);
    double pixels = (double)(divide_up(d->units_max, d->block_h) * d->block_h * divide_up(d->rows.segment, d->block_w) *
        d->block_w);
    double products = taps * vectors * pixels / 1.75;
    double bytes = taps * vectors * (double)problem->device->vector_width * sizeof(float);
    double reading = bytes * (double)d->packing.panels > CACHED_BYTES * (double)panels_max ? bytes / 8 : 0;
    return (double)d->units_max * unit_bytes / 8 + products + reading + 2000;
}

/* Chooses the units of a chunk, within the budget, and the panels of a task by the cycles of the busiest core. With
 * many units a task takes all panels. With few, tasks share the panels, so that each weight is read once. */
static void choose_tasks(const struct problem *problem, struct direct *d, double unit_bytes)
{
    int64_t compute_units = problem->device->units, panels = d->packing.panels, groups = d->groups.count;
    int64_t fitting = (int64_t)(CONV2D_SCRATCH_BYTES / unit_bytes), units_best = d->block_h, most = d->units;
    if (most > fitting) most = fitting > 0 ? fitting : 1;
    double best = 0;
    for (d->units_max = d->block_h; d->units_max < most + d->block_h; d->units_max += d->block_h) {
        int64_t chunks = divide_up(d->units, d->units_max);
        if (best != 0 && (d->units_max > fitting || groups * chunks * panels < 2 * compute_units)) break;
        for (int64_t ranges = 1; ranges <= panels; ranges++) {
            int64_t panels_max = divide_up(panels, ranges), tasks = groups * chunks * divide_up(panels, panels_max);
            double rounds = (double)divide_up(tasks, compute_units);
            double cost = rounds * task_cycles(problem, d, unit_bytes, panels_max);
            if (best != 0 && cost >= best) continue;
            best = cost;
            units_best = d->units_max;
            d->panels_max = panels_max;
        }
    }
    d->units_max = units_best;
    d->chunks = divide_up(d->units, d->units_max);
}

/* Chooses the source channels that are multiplied for all tiles of a chunk before the next ones, and how the tiles
 * share the prefetching of the next ones. Returns the floats of sums that wait meanwhile. */
static int64_t choose_depth(const struct problem *problem, struct direct *d, bool gradient)
{
    int64_t v = problem->device->vector_width, classes = gradient ? d->z.stride_h * d->z.stride_w : 1;
    int64_t tiles = divide_up(d->units_max, d->block_h) * divide_up(d->rows.segment, d->block_w) * classes;
    int64_t channel = d->packing.taps * d->packing.vectors * v, lines = d->packing.vectors;
    int64_t fitting = NEAR_BYTES / (channel * (int64_t)sizeof(float)) / d->pixel * d->pixel;
    d->depth = fitting > d->pixel ? fitting : d->pixel;
    d->shares = tiles < lines ? tiles : lines;
    d->distance = d->depth * channel;
    bool whole = d->pixel == 1 || tiles == 1 || d->depth >= d->packing.padded;
    if (whole) {
        d->depth = d->packing.padded + d->pixel; /* a group may begin within a block */
        d->shares = 1;
        d->distance = 16 * d->packing.vectors * v;
    }
    d->prefetches = divide_up(lines, d->shares);
    return whole ? 0 : tiles * d->block_h * d->block_w * d->packing.vectors * v;
}

static void design_product(const struct problem *problem, void *design)
{
    bool gradient = conv2d_is_data_gradient(problem);
    struct direct d = { .z = conv2d_sizes_of(problem), .groups = conv2d_groups_of(problem, gradient) };
    int64_t v = problem->device->vector_width;
    d.rows = gradient ? rows_gradient(&d.z) : rows_forward(&d.z);
    d.pixel = reads_image(problem) ? 1 : v;
    choose_registers(problem, &d);
    if (d.pixel == 1) d.groups.source_blocks = d.groups.all_source_blocks = d.groups.sources;
    d.packing.padded = d.groups.sources;
    d.packing.source_block = d.pixel;
    d.packing.taps = d.z.r * d.z.s;
    d.packing.panels = divide_up(d.groups.result_blocks, d.packing.vectors);
    double column = (double)(d.groups.source_blocks * d.pixel * d.rows.window) * sizeof(float);
    cut_rows(&d.rows, d.block_w, column * (double)d.block_h, CONV2D_SCRATCH_BYTES);
    d.units = d.z.n * d.rows.per_image * d.rows.segments;
    double unit_bytes = column * (double)packed_width(&d.rows);
    choose_tasks(problem, &d, unit_bytes);
    size_t sums = (size_t)choose_depth(problem, &d, gradient) * sizeof(float);
    d.scratch = conv2d_scratch_of(problem, (size_t)(unit_bytes * (double)d.units_max) + sums);
    d.tasks = conv2d_scratch_group_tasks(problem, &d.scratch, d.chunks, d.groups.count);
    *(struct direct *)design = d;
}

static size_t product_workspace(const struct problem *problem)
{
    const struct direct *d = problem->design;
    return conv2d_scratch_workspace(
        &d->scratch, d->groups.count * d->tasks * divide_up(d->packing.panels, d->panels_max));
}

static size_t product_prepared(const struct problem *problem)
{
    const struct direct *d = problem->design;
    return conv2d_packing_bytes(problem, &d->packing);
}

static void emit_prepare(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct direct *d = problem->design;
    conv2d_packing_emit(problem, operands, list, &d->packing, conv2d_is_data_gradient(problem));
}

static int64_t statistics_parts(const struct problem *problem)
{
    const struct direct *d = problem->design;
    return conv2d_cpu_statistics(problem) ? d->chunks : 0;
}

ARGUMENTS(direct, DIRECT_ARGUMENTS)

static void emit_product(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct direct *d = problem->design;
    const struct conv2d_sizes *z = &d->z;
    bool gradient = conv2d_is_data_gradient(problem);
    double result_bytes =
        (double)(z->n * d->groups.results * d->groups.count) * 4 * (double)(gradient ? z->h * z->w : z->oh * z->ow);
    char epilogue[256], statistics[RESULT_OPTIONS];
    struct launch *launch = launch_add(list, "conv2d_direct_cpu", "conv2d_direct",
        "-DR=%d -DS=%d -DSTRIDE_H=%d -DSTRIDE_W=%d -DDILATION_H=%d -DDILATION_W=%d -DGRADIENT=%d -DWINDOW=%d "
        "-DORIGIN_H=%d -DORIGIN_W=%d -DXV=%d -DMR=%d "
        "-DMW=%d "
        "-DNV=%d -DPREFETCHES=%d -DSTREAM=%d -DSCRATCH_GLOBAL=%d %s %s %s",
        (int)z->r, (int)z->s, (int)z->stride_h, (int)z->stride_w, (int)z->dilation_h, (int)z->dilation_w, gradient,
        (int)d->rows.window, (int)(z->padding_h - d->rows.row_start * z->stride_h),
        (int)(z->padding_w - d->rows.column_start * z->stride_w), (int)d->pixel, (int)d->block_h, (int)d->block_w,
        (int)d->packing.vectors, (int)d->prefetches, conv2d_streams(problem, operands, (double)result_bytes),
        d->scratch.global, conv2d_halves_option(&d->groups),
        result_options(problem->node, statistics, sizeof statistics),
        epilogue_options(problem->node, epilogue, sizeof epilogue));
    ARGUMENTS_SET(launch, direct, .source = operands->inputs[0], .packed = operands->prepared,
        .add = conv2d_or(operands->add, operands->outputs[0]), .result = operands->outputs[0],
        .source_height = d->rows.height, .source_width = d->rows.width, .result_height = gradient ? z->h : z->oh,
        .result_width = gradient ? z->w : z->ow, .units_all = d->units, .units_max = d->units_max, .chunks = d->chunks,
        ROWS_VALUES(&d->rows), .panels_max = d->panels_max, .depth = d->depth, .distance = d->distance,
        .shares = d->shares, CONV2D_GROUPS_VALUES(&d->groups), SCRATCH_VALUES(&d->scratch, operands));
    result_arguments(launch, problem, operands);
    launch_tasks(
        launch, (size_t)d->tasks, (size_t)divide_up(d->packing.panels, d->panels_max), (size_t)d->groups.count);
    launch_work(launch, conv2d_flops(problem), conv2d_bytes(problem));
}

/* ------------------------------------------------------------------------------------------------ weight gradient */

struct direct_weights {
    struct conv2d_sizes z;
    struct conv2d_groups groups;
    struct rows rows;
    bool image;
    int64_t c_blocks, k_blocks;                /* of V channels, that hold those of a group */
    int64_t vectors, channels, taps_h, taps_w; /* registers: NV, CT, RT, ST */
    int64_t task_c, task_k;                    /* blocks of a task */
    int64_t units, units_split, units_max, splits;
    int64_t tasks;       /* that are launched */
    size_t parts_offset; /* floats */
    struct conv2d_scratch scratch;
};

static int64_t round_up(int64_t value, int64_t unit)
{
    return divide_up(value, unit) * unit;
}

/* Taps and vectors in registers for a plain image. */
static void choose_taps(const struct problem *problem, struct direct_weights *d)
{
    int64_t registers = conv2d_registers(problem), best = 0;
    for (int64_t vectors = d->k_blocks < 4 ? d->k_blocks : 4; vectors > 0; vectors--)
        for (int64_t slices = 1; slices <= d->z.s; slices++) {
            int64_t taps_w = divide_up(d->z.s, slices), most = (registers - vectors - 1) / vectors / taps_w;
            if (most < 1) continue;
            int64_t taps_h = most < d->z.r ? divide_up(d->z.r, divide_up(d->z.r, most)) : d->z.r;
            /* useful products of a block, in percent of all, times the block's size */
            int64_t waste = 100 * d->z.s * d->z.r * d->k_blocks /
                (round_up(d->z.s, taps_w) * round_up(d->z.r, taps_h) * round_up(d->k_blocks, vectors));
            int64_t worth = waste * (taps_w * taps_h * vectors + 12);
            if (worth > best) {
                best = worth;
                d->taps_w = taps_w;
                d->taps_h = taps_h;
                d->vectors = vectors;
            }
            break;
        }
}

/* Blocks of channels of a task: about 64 x 64 channels whose sums fit in half the scratch. */
static void choose_channels(const struct problem *problem, struct direct_weights *d)
{
    int64_t v = problem->device->vector_width, registers = conv2d_registers(problem);
    d->vectors = d->k_blocks % 3 == 0 && d->k_blocks % 2 ? 3 : d->k_blocks > 1 ? 2 : 1;
    d->channels = registers == 32 ? (d->vectors == 1 ? 16 : 8) : 4;
    if (d->vectors == 1 && v == 8) d->channels = 8;
    if (d->channels > v) d->channels = v;
    if (d->groups.halves && d->channels > v / 2) d->channels = v / 2;
    int64_t most_c = 64 / v, most_k = 64 / v;
    while (most_c * most_k > 1 &&
        (double)(most_c * most_k) * (double)(v * v * d->z.r * d->z.s) * sizeof(float) > 0.6 * CONV2D_SCRATCH_BYTES) {
        if (most_k > most_c || most_c == 1)
            most_k /= 2;
        else
            most_c /= 2;
    }
    d->task_c = divide_up(d->c_blocks, divide_up(d->c_blocks, most_c));
    d->task_k = round_up(divide_up(d->k_blocks, divide_up(d->k_blocks, most_k)), d->vectors);
}

static void choose_splits(const struct problem *problem, struct direct_weights *d, double unit_bytes, double budget)
{
    int64_t blocks =
        d->image ? 1 : d->groups.count * divide_up(d->c_blocks, d->task_c) * divide_up(d->k_blocks, d->task_k);
    int64_t wanted = divide_up(conv2d_tasks_wanted(problem, conv2d_flops(problem)), blocks);
    const int64_t least = divide_up(d->units * d->rows.segment, CONV2D_LONGEST_PART);
    if (wanted < least) wanted = least;
    if (wanted > d->units) wanted = d->units;
    d->units_split = divide_up(d->units, wanted);
    d->splits = divide_up(d->units, d->units_split);
    d->units_max = budget > unit_bytes ? (int64_t)(budget / unit_bytes) : 1;
    if (d->units_max > d->units_split) d->units_max = d->units_split;
    d->units_max = divide_up(d->units_split, divide_up(d->units_split, d->units_max));
}

static void design_weight_gradient(const struct problem *problem, void *design)
{
    struct direct_weights d = {
        .z = conv2d_sizes_of(problem), .groups = conv2d_groups_of(problem, false), .image = reads_image(problem)
    };
    int64_t v = problem->device->vector_width, taps = d.z.r * d.z.s;
    d.rows = rows_forward(&d.z);
    d.c_blocks = d.groups.source_blocks;
    d.k_blocks = d.groups.result_blocks;
    double sums, source_column, gradient_column = 0;
    if (d.image) {
        choose_taps(problem, &d);
        d.task_c = 1;
        d.task_k = d.k_blocks;
        source_column = (double)(d.z.c * d.z.r) * sizeof(float);
        sums = (double)(d.k_blocks * v * d.z.c * taps) * sizeof(float);
    } else {
        choose_channels(problem, &d);
        source_column = (double)(d.task_c * v * d.z.r) * sizeof(float);
        gradient_column = (double)(d.task_k * v) * sizeof(float);
        sums = (double)(d.task_c * v * d.task_k * v * taps) * sizeof(float);
    }
    double budget = d.image ? 64 << 10 : sums < 0.6 * CONV2D_SCRATCH_BYTES ? CONV2D_SCRATCH_BYTES - sums : 200 << 10;
    cut_rows(&d.rows, 1, source_column + gradient_column / (double)d.rows.step, budget);
    d.units = d.z.n * d.rows.per_image * d.rows.segments;
    double unit = source_column * (double)packed_width(&d.rows) + gradient_column * (double)d.rows.segment;
    choose_splits(problem, &d, unit, budget);
    double slack = (double)(d.taps_w * d.z.dilation_w) * sizeof(float); /* taps that do not exist are read */
    d.scratch = conv2d_scratch_of(problem, (size_t)(sums + unit * (double)d.units_max + slack));
    d.tasks = conv2d_scratch_tasks(problem, &d.scratch,
        d.groups.count * d.splits * divide_up(d.c_blocks, d.task_c) * divide_up(d.k_blocks, d.task_k));
    d.parts_offset = conv2d_scratch_workspace(&d.scratch, d.tasks) / sizeof(float);
    *(struct direct_weights *)design = d;
}

static size_t weight_gradient_workspace(const struct problem *problem)
{
    const struct direct_weights *d = problem->design;
    return d->parts_offset * sizeof(float) + conv2d_parts_bytes(problem, d->splits);
}

ARGUMENTS(direct_weights, DIRECT_WEIGHTS_ARGUMENTS)

static void emit_weight_gradient(
    const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct direct_weights *d = problem->design;
    const struct conv2d_sizes *z = &d->z;
    struct launch *launch = launch_add(list, "conv2d_direct_weight_gradient_cpu",
        d->image ? "conv2d_direct_weight_gradient_image" : "conv2d_direct_weight_gradient",
        "-DR=%d -DS=%d -DSTRIDE_H=%d -DSTRIDE_W=%d -DDILATION_H=%d -DDILATION_W=%d -DXV=%d -DCT=%d -DRT=%d -DST=%d "
        "-DNV=%d -DSCRATCH_GLOBAL=%d %s",
        (int)z->r, (int)z->s, (int)z->stride_h, (int)z->stride_w, (int)z->dilation_h, (int)z->dilation_w,
        d->image ? 1 : problem->device->vector_width, (int)d->channels, (int)d->taps_h, (int)d->taps_w, (int)d->vectors,
        d->scratch.global, conv2d_halves_option(&d->groups));
    ARGUMENTS_SET(launch, direct_weights, .x = operands->inputs[0], .dy = operands->inputs[1],
        .workspace = operands->workspace, .offset = (int64_t)d->parts_offset, .C = d->groups.sources, .CB = d->c_blocks,
        .KB = d->k_blocks, .height = z->h, .width_source = z->w, .units_all = d->units, .units_split = d->units_split,
        .units_max = d->units_max, ROWS_VALUES(&d->rows), .channel_blocks = d->task_c, .output_blocks = d->task_k,
        .splits = d->splits, .groups = d->groups.count, .merged = d->groups.merged, CONV2D_GROUPS_VALUES(&d->groups),
        SCRATCH_VALUES(&d->scratch, operands));
    launch_tasks(launch, (size_t)d->tasks, 1, 1);
    launch_work(launch, conv2d_flops(problem), conv2d_bytes(problem));
    conv2d_parts_emit(problem, operands, list, d->splits, d->parts_offset);
}

#define COMMON .name = "direct", .fits = fits, .layouts = layouts
#define PRODUCT                                                                                              \
    COMMON, .cannot_fuse = conv2d_cpu_cannot_fuse, .statistics = statistics_parts,                           \
            .design_bytes = sizeof(struct direct), .design = design_product, .workspace = product_workspace, \
            .prepared = product_prepared, .emit_prepare = emit_prepare, .emit = emit_product

const struct implementation conv2d_direct[CONV2D_PASSES] = {
    { PRODUCT, .fusions = CONV2D_CPU_FORWARD },
    { PRODUCT, .fusions = CONV2D_CPU_DATA_GRADIENT, .in_place = conv2d_mask_in_place },
    { COMMON, .fusions = CONV2D_CPU_WEIGHT_GRADIENT, .design_bytes = sizeof(struct direct_weights),
        .design = design_weight_gradient, .workspace = weight_gradient_workspace, .emit = emit_weight_gradient },
};
