/* The product of CPU-class devices: clkernels/gemm_packed.cl; chooses its tile, its tasks and the parts of its sum. */
#include "clkernels/arguments/gemm_packed.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "runtime/gemm_implementations.h"

/* Rows and vectors of a register tile, and how much slower than the best one its loop is: where rows of A are read in
 * place, and where a transposed A is packed. */
struct tile {
    int rows, vectors;
    double in_place, packed;
};
/* Which tiles fit depends on the number of vector registers: 32 where vectors are of 16 floats. Narrower ones are taken
 * to have 16, as AVX2 and SSE have. */
static const struct tile wide_tiles[] = { { 6, 4, 1, 1 }, { 8, 3, 1.02, 1.01 }, { 12, 2, 1.03, 1.08 },
    { 8, 2, 1.05, 1.08 }, { 12, 1, 1.18, 1.22 } };
static const struct tile narrow_tiles[] = { { 6, 2, 1, 1 }, { 4, 3, 1, 1 }, { 4, 2, 1.1, 1.1 }, { 8, 1, 1.15, 1.15 } };

enum {
    DEPTH = 800, /* rows of B packed at a time: more reads and writes C less often, until the panel leaves the cache */
    DEPTH_LEAST = 64,     /* below that, packing is not worth it */
    BLOCK = 1 << 18,      /* floats of a task's block of A: it is to stay in the second-level cache, */
    BLOCK_MOST = 1 << 19, /* which local memory is part of: larger where that is larger */
    ROWS_LEAST = 4,       /* tiles of rows per task, where rows are divided among tasks at all */
    PACKING = 10,         /* packing a column of B costs as much as this many rows of the product, */
    PACKING_ACROSS = 20,  /* as this many if it is transposed, */
    PACKING_ROWS = 40,    /* and packing a row of A, from memory, as this many columns */
    TASKS_PER_UNIT = 4,
    CHAIN = 128,        /* steps between additions to the sum of a long product, for some percent of the time */
    SPLIT = 16 * DEPTH, /* steps of a part of the sum, at most */
};
/* This fraction of a task is added to the cost, for a unit that starts late or is disturbed: other units make up for
 * it if tasks are not too large. */
#define IDLE 0.05

/* Returns the floats of local memory, as clkernels/gemm_packed.cl divides it. */
static int64_t scratch_floats(const struct gemm *gemm, const struct capabilities *can, const struct gemm_design *choice)
{
    const int64_t width = can->vector_width, wide = choice->tile_vectors * width;
    const int64_t strips = gemm->transpose_a ? choice->rows / choice->tile_rows : 0;
    const int64_t errors = gemm->transpose_a ? choice->rows : 0;
    return strips * (choice->depth * choice->tile_rows + width) + (choice->depth + 2 * choice->tile_rows) * wide +
        errors;
}

/* Divides k evenly into parts, which are packed as deep as local memory allows; false if that is not deep enough. */
static bool set_depth(const struct gemm *gemm, const struct capabilities *can, struct gemm_design *choice)
{
    const int64_t width = can->vector_width;
    for (choice->depth = DEPTH; choice->depth >= DEPTH_LEAST; choice->depth -= width)
        if ((size_t)scratch_floats(gemm, can, choice) <= can->local_bytes / sizeof(float)) break;
    if (choice->depth < DEPTH_LEAST) return false;
    const double room = (double)can->allocation_max / 4 / sizeof(float);
    const double most = room / ((double)gemm->m * (double)gemm->n * (double)gemm->batch);
    choice->splits = divide_up(gemm->k, SPLIT);
    if ((double)choice->splits > most) choice->splits = most > 1 ? (int64_t)most : 1;
    const int64_t steps = divide_up(gemm->k, choice->splits), parts = divide_up(steps, choice->depth);
    choice->depth = (int64_t)size_round_up((size_t)divide_up(steps, parts), (size_t)width);
    choice->k_of_split = choice->splits > 1 ? parts * choice->depth : gemm->k;
    choice->splits = divide_up(gemm->k, choice->k_of_split);
    return true;
}

/* Returns the work of the busiest unit: padded rows times padded columns, and packing, in whole rounds of tasks. */
static double cost_of(
    const struct gemm *gemm, const struct capabilities *can, const struct gemm_design *choice, double slowness)
{
    const double units = can->units > 0 ? can->units : 1, rows = (double)choice->rows,
                 columns = (double)choice->columns;
    const int64_t tasks =
        divide_up(gemm->n, choice->columns) * divide_up(gemm->m, choice->rows) * gemm->batch * choice->splits;
    const double task = rows * columns * slowness + (gemm->transpose_b ? PACKING_ACROSS : PACKING) * columns +
        (gemm->transpose_a ? PACKING_ROWS * rows : 0);
    double rounds = (double)tasks / units;
    if (rounds < 32) rounds = (double)divide_up(tasks, (int64_t)units);
    return (rounds + IDLE) * task;
}

static int64_t block_of(const struct capabilities *can)
{
    const int64_t local = (int64_t)(can->local_bytes / sizeof(float));
    return local < BLOCK ? BLOCK : local < BLOCK_MOST ? local : BLOCK_MOST;
}

static int tiles_of(const struct capabilities *can, const struct tile **tiles)
{
    const bool wide = can->vector_width >= 16;
    *tiles = wide ? wide_tiles : narrow_tiles;
    return wide ? (int)(sizeof wide_tiles / sizeof **tiles) : (int)(sizeof narrow_tiles / sizeof **tiles);
}

/* Chooses the cheapest tile and division. What is lost on edges and by uneven rounds matters more than the tile
 * itself. */
static struct gemm_design choose(const struct gemm *gemm, const struct capabilities *can)
{
    struct gemm_design best = { 0 };
    const struct tile *tiles;
    const int count = tiles_of(can, &tiles);
    const int64_t units = can->units > 0 ? can->units : 1;
    double best_cost = 0;
    for (int t = 0; t < count; t++) {
        const int64_t wide_of = (int64_t)tiles[t].vectors * can->vector_width;
        const int64_t panels = divide_up(gemm->n, wide_of), strips = divide_up(gemm->m, tiles[t].rows);
        int64_t tried = 0;
        for (int64_t parts = 1; parts <= strips && tried < TASKS_PER_UNIT * units; parts++) {
            struct gemm_design choice = { .tile_rows = tiles[t].rows,
                .tile_vectors = tiles[t].vectors,
                .rows = divide_up(strips, parts) * tiles[t].rows };
            if (!set_depth(gemm, can, &choice)) continue;
            if (parts > 1 && tried > 0 && choice.rows < (int64_t)ROWS_LEAST * tiles[t].rows) break;
            if (choice.rows * choice.depth > block_of(can) && parts < strips) continue;
            tried++;
            for (int each = 1; each <= TASKS_PER_UNIT; each++) {
                const int64_t across = divide_up(each * units, parts * gemm->batch * choice.splits);
                choice.columns = divide_up(panels, across < panels ? across : panels) * wide_of;
                const double cost =
                    cost_of(gemm, can, &choice, gemm->transpose_a ? tiles[t].packed : tiles[t].in_place);
                if (best_cost != 0 && cost >= best_cost) continue;
                best_cost = cost;
                best = choice;
            }
        }
    }
    return best;
}

/* Tells whether a task of one tile fits: tasks with more rows need no less memory. */
static bool fits_any(const struct gemm *gemm, const struct capabilities *can)
{
    const struct tile *tiles;
    const int count = tiles_of(can, &tiles);
    for (int t = 0; t < count; t++) {
        struct gemm_design choice = {
            .tile_rows = tiles[t].rows, .tile_vectors = tiles[t].vectors, .rows = tiles[t].rows
        };
        if (set_depth(gemm, can, &choice)) return true;
    }
    return false;
}

static const char *refusal(const struct gemm *gemm, const struct capabilities *can)
{
    if (can->class != DEVICE_CPU) return "it needs a CPU-class device";
    if (!gemm_is_small(gemm)) return "a size of the product is larger than 2^30";
    if (!fits_any(gemm, can)) return "the device's local memory is too small for a panel";
    return NULL;
}

static size_t workspace(const struct gemm *gemm, const struct capabilities *can)
{
    const struct gemm_design choice = gemm->design ? *gemm->design : choose(gemm, can);
    if (choice.splits <= 1) return 0;
    return (size_t)(choice.splits * gemm->batch * gemm->m * gemm->n) * sizeof(float);
}

ARGUMENTS(packed, PACKED_ARGUMENTS)

static void emit(const struct gemm *gemm, const struct gemm_buffers *buffers, struct launch_list *list)
{
    const struct capabilities *can = &list->device->can;
    const struct gemm_design choice = gemm->design ? *gemm->design : choose(gemm, can);
    if (!choice.rows) return; /* refused */
    const struct gemm_sums parts = {
        .buffer = buffers->workspace,
        .parts = choice.splits,
        .ld = gemm->n,
        .stride = gemm->m * gemm->n,
        .stride_part = gemm->batch * gemm->m * gemm->n,
    };
    struct gemm product = *gemm; /* what the packed product makes of it: parts have no epilogue */
    if (choice.splits > 1) {
        product.bias = product.accumulate = false;
        product.mask = NULL;
        product.activation = NULL;
        product.c.ld = parts.ld;
        product.c.stride = parts.stride;
    }
    char options[256], more[256] = "";
    if (product.mask || product.sums)
        number_append(more, sizeof more, " -DSUMS=%d %s", product.sums != NULL, product.mask ? product.masking : "");
    struct launch *launch = launch_add(list, "gemm_packed", "gemm_packed", "-DMR=%d -DNV=%d -DTA=%d -DTB=%d %s%s",
        choice.tile_rows, choice.tile_vectors, gemm->transpose_a, gemm->transpose_b,
        gemm_options(&product, options, sizeof options), more);
    ARGUMENTS_SET(launch, packed, .A = buffers->a, .B = buffers->b, .C = choice.splits > 1 ? parts.buffer : buffers->c,
        .bias = buffers->bias, .added = product.mask ? product.mask : buffers->added,
        .sums = gemm->sums ? gemm->sums : buffers->c,
        .scratch = (size_t)scratch_floats(gemm, can, &choice) * sizeof(float), GEMM_SIZES_VALUES(&product),
        .rows = choice.rows, .columns = choice.columns, .depth = choice.depth,
        .chain = gemm->k < GEMM_LONG ? choice.depth : CHAIN, .splits = choice.splits, .k_of_split = choice.k_of_split,
        .stride_split = choice.splits > 1 ? parts.stride_part : 0);
    launch_tasks(launch, (size_t)divide_up(gemm->n, choice.columns), (size_t)divide_up(gemm->m, choice.rows),
        (size_t)(gemm->batch * choice.splits));
    gemm_work(gemm, launch);
    if (choice.splits > 1) gemm_emit_finish(gemm, &parts, buffers->c, buffers->bias, list);
}

const struct gemm_implementation gemm_packed = {
    .refusal = refusal,
    .design = choose,
    .workspace = workspace,
    .emit = emit,
    .takes_stored = true,
};
