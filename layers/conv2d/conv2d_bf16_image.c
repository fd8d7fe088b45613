/* conv2d, bf16_image: the weight gradient of a first layer, whose image is plain, by bf16 dot products of bfloat16
 * numbers. Kernel: layers/conv2d/conv2d_bf16_image_weight_gradient_cpu.cl. The forward pass is conv2d_bf16.c's. */
#include "base/memory.h"
#include "layers/conv2d/arguments/conv2d_bf16.h"
#include "layers/conv2d/conv2d_bf16.h"
#include "layers/conv2d/conv2d_cpu.h"
#include "layers/element.h"
#include "runtime/matrix.h"

enum {
    STEP = 32,
    TILE_BYTES = 1024, /* of operands and of sums alike */
    MOST_LINES = 256,
    K_BLOCKS = 8,
    SCRATCH_BYTES = 640 << 10,
    MOST_ROW_BYTES = 64 << 20, /* of a task with one row */
};

struct image_weights {
    int64_t tiles, positions, line;     /* of 32 positions of a row; positions and numbers of a line */
    int64_t tile_rows;                  /* of sums, a multiple of a unit's */
    int64_t rows, chunks_image, chunks; /* of a band of results */
    int64_t k_blocks, k_blocks_max, k_tasks, splits, chunks_split;
    int64_t chain; /* tiles; 0: a part is one chain of additions */
    struct conv2d_scratch scratch;
    int64_t tasks;
};

static double scratch_bytes(const struct problem *problem, const struct image_weights *w)
{
    const struct conv2d_sizes z = conv2d_sizes_of(problem);
    const double lines = (double)((w->rows - 1) * z.stride_h + z.r) * (double)z.c + BF16_BLOCK;
    const double x = lines * (double)w->line * sizeof(uint16_t),
                 dy = (double)(w->k_blocks_max * w->rows * w->tiles) * TILE_BYTES;
    return (x + dy) * bf16_copies(problem->compute) + (double)(w->tile_rows * w->k_blocks_max) * TILE_BYTES;
}

/* Sizes of a task with bands of one row. */
static struct image_weights one_row(const struct problem *problem)
{
    const struct conv2d_sizes z = conv2d_sizes_of(problem);
    const int64_t in_unit = bf16_unit_lines(problem->device->bf16[problem->compute].form) / BF16_BLOCK;
    struct image_weights w = { .tiles = divide_up(z.ow, STEP), .rows = 1 };
    w.positions = divide_up(w.tiles * STEP + (z.s - 1) / z.stride_w, STEP) * STEP;
    w.line = w.positions * z.stride_w;
    if (w.line / STEP % 2 == 0) w.line += STEP; /* keeps the rows of a tile out of one cache set */
    /* Rows of tiles: 16 lines of a row and channel, at a column of the kernel. */
    w.tile_rows = divide_up(divide_up(z.r * z.c, BF16_BLOCK) * z.s, in_unit) * in_unit;
    w.k_blocks = divide_up(z.k, BF16_BLOCK);
    w.k_tasks = divide_up(w.k_blocks, K_BLOCKS);
    w.k_blocks_max = divide_up(divide_up(w.k_blocks, w.k_tasks), in_unit) * in_unit;
    return w;
}

static const char *fits(const struct problem *problem)
{
    const struct conv2d_sizes z = conv2d_sizes_of(problem);
    const char *refusal = conv2d_bf16_image_refusal(problem);
    if (refusal) return refusal;
    if (z.r * z.c > MOST_LINES) return "the kernel has more than 256 rows of all channels";
    const struct image_weights w = one_row(problem);
    if (scratch_bytes(problem, &w) > MOST_ROW_BYTES) return "a row of the image takes too much memory";
    return NULL;
}

/* Estimates costs for a position, in cycles of floats' multiply-adds. */
static const char *passed_over(const struct problem *problem)
{
    const struct conv2d_sizes z = conv2d_sizes_of(problem);
    const struct image_weights w = one_row(problem);
    const double results = (double)(w.k_blocks * BF16_BLOCK), parts = bf16_terms(problem->compute),
                 used = (double)z.ow / (double)(w.tiles * STEP);
    const double floats = (double)(z.c * z.r * z.s) * results / STEP,
                 sums = (double)(w.tile_rows * BF16_BLOCK) * results / STEP / used,
                 packing = parts * (4.0 * (double)w.k_blocks + 1.5 * (double)(z.c * z.stride_h * z.stride_w));
    return conv2d_bf16_image_passed_over(problem, floats, sums, packing);
}

static struct image_weights weight_gradient_of(const struct problem *problem)
{
    const struct conv2d_sizes z = conv2d_sizes_of(problem);
    struct image_weights w = one_row(problem);
    const int64_t wanted = divide_up(conv2d_tasks_wanted(problem, conv2d_flops(problem)), w.k_tasks);
    for (int64_t bands = divide_up(wanted, z.n) < z.oh ? divide_up(wanted, z.n) : z.oh; bands <= z.oh; bands++) {
        w.rows = divide_up(z.oh, bands);
        if (scratch_bytes(problem, &w) <= SCRATCH_BYTES) break;
    }
    w.chunks_image = divide_up(z.oh, w.rows);
    w.chunks = z.n * w.chunks_image;
    w.chunks_split = divide_up(w.chunks, wanted);
    w.splits = divide_up(w.chunks, w.chunks_split);
    w.chain = conv2d_bf16_chain(problem, w.chunks_split * w.rows * w.tiles);
    const double more = w.chain ? 2.0 * (double)(w.tile_rows * w.k_blocks_max) * TILE_BYTES : 0;
    w.scratch = conv2d_scratch_of(problem, (size_t)(scratch_bytes(problem, &w) + more));
    w.tasks = conv2d_scratch_tasks(problem, &w.scratch, w.k_tasks * w.splits);
    return w;
}

static void design(const struct problem *problem, void *made)
{
    *(struct image_weights *)made = weight_gradient_of(problem);
}

static size_t parts_offset(const struct image_weights *w)
{
    return conv2d_scratch_workspace(&w->scratch, w->tasks) / sizeof(float);
}

static size_t workspace(const struct problem *problem)
{
    const struct image_weights *w = problem->design;
    return parts_offset(w) * sizeof(float) + conv2d_parts_bytes(problem, w->splits);
}

ARGUMENTS(image_weights, CONV2D_BF16_IMAGE_WEIGHTS_ARGUMENTS)

static void emit(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct image_weights *w = problem->design;
    const struct conv2d_sizes z = conv2d_sizes_of(problem);
    char elements[ELEMENT_OPTIONS];
    struct launch *launch =
        launch_add(list, "conv2d_bf16_image_weight_gradient_cpu", "conv2d_bf16_image_weight_gradient",
            "-DR=%d -DS=%d -DSTRIDE_H=%d -DSTRIDE_W=%d -DCHANNELS=%d -DGRADIENT=0 -DPARTS=%d -DBF16_FORM=%d "
            "-DSCRATCH_GLOBAL=%d -DCHAIN=%d%s",
            (int)z.r, (int)z.s, (int)z.stride_h, (int)z.stride_w, (int)z.c, bf16_terms(problem->compute),
            (int)problem->device->bf16[problem->compute].form, w->scratch.global, (int)w->chain,
            element_options(problem, elements, sizeof elements));
    ARGUMENTS_SET(launch, image_weights, .x = operands->inputs[0], .dy = operands->inputs[1],
        .workspace = operands->workspace, .offset = (int64_t)parts_offset(w), .KB = w->k_blocks, .height = z.h,
        .width = z.w, .result_height = z.oh, .result_width = z.ow, .padding_h = z.padding_h, .padding_w = z.padding_w,
        .line = w->line, .positions = w->positions, .rows_max = w->rows, .chunks_image = w->chunks_image,
        .chunks = w->chunks, .chunks_split = w->chunks_split, .k_blocks_max = w->k_blocks_max, .k_tasks = w->k_tasks,
        .splits = w->splits, SCRATCH_VALUES(&w->scratch, operands));
    launch_tasks(launch, (size_t)w->tasks, 1, 1);
    launch_work(launch, conv2d_flops(problem), conv2d_bytes(problem));
    conv2d_parts_emit(problem, operands, list, w->splits, parts_offset(w));
}

const struct implementation conv2d_bf16_image_weight_gradient = {
    .name = "bf16_image",
    .fits = fits,
    .passed_over = passed_over,
    .remark = conv2d_bf16_remark,
    .layouts = conv2d_bf16_image_layouts,
    .fusions = CONV2D_CPU_WEIGHT_GRADIENT,
    .design_bytes = sizeof(struct image_weights),
    .design = design,
    .workspace = workspace,
    .emit = emit,
    .bf16_inputs = 1 << 1,
};
