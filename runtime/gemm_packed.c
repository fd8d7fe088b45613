/* The product of CPU-class devices: clkernels/gemm_packed.cl, and the choice of its tile. */
#include "base/memory.h"
#include "runtime/gemm_implementations.h"

/* Rows and vectors of a register tile, and how much slower than the best one its inner loop is. */
struct tile {
    int rows, vectors;
    double slowness;
};
/* Which tiles fit depends on the number of vector registers: 32 where vectors are of 16 floats. Narrower ones are taken
 * to have 16, as AVX2 and SSE have. */
static const struct tile wide_tiles[] = { { 12, 2, 1 }, { 6, 4, 1 }, { 8, 3, 1 }, { 8, 2, 1.06 }, { 12, 1, 1.15 } };
static const struct tile narrow_tiles[] = { { 6, 2, 1 }, { 4, 3, 1 }, { 4, 2, 1.1 }, { 8, 1, 1.15 } };

enum {
    DEPTH = 512, /* rows of B packed at a time: more reads and writes C less often, until the panel leaves the cache */
    DEPTH_LEAST = 64, /* below that, packing is not worth it */
    ROWS_LEAST = 4,   /* tiles of rows per task, where rows are divided among tasks at all */
    PACKING = 40,     /* packing a column of B costs as much as this many rows of the product */
};

struct choice {
    struct tile tile;
    int64_t rows; /* of a task */
};

/* The cheapest tile by the work of the busiest core: padded rows times padded columns, and packing, in whole rounds of
 * tasks. What is lost on edges and by uneven rounds matters more than the tile itself. */
static struct choice choose(const struct gemm *gemm, const struct capabilities *can)
{
    const bool wide = can->vector_width >= 16;
    const struct tile *tiles = wide ? wide_tiles : narrow_tiles;
    const int count = wide ? (int)(sizeof wide_tiles / sizeof *tiles) : (int)(sizeof narrow_tiles / sizeof *tiles);
    const int64_t units = can->units > 0 ? can->units : 1, parts_most = units > 4 ? 2 * units : 8;
    struct choice best = { tiles[0], divide_up(gemm->m, tiles[0].rows) * tiles[0].rows };
    double best_cost = 0;
    for (int t = 0; t < count; t++) {
        const int64_t columns = (int64_t)tiles[t].vectors * can->vector_width, panels = divide_up(gemm->n, columns);
        for (int64_t parts = 1; parts <= parts_most; parts++) {
            const int64_t rows = divide_up(divide_up(gemm->m, parts), tiles[t].rows) * tiles[t].rows;
            if (parts > 1 && rows < (int64_t)ROWS_LEAST * tiles[t].rows) break;
            /* The block of A is to stay in the second-level cache. */
            if (rows * gemm->k * 4 > 1 << 20 && rows > 512 && parts < parts_most) continue;
            const double tasks = (double)panels * (double)divide_up(gemm->m, rows) * (double)gemm->batch;
            double rounds = tasks / (double)units;
            if (rounds < 32) rounds = (double)divide_up((int64_t)tasks, units);
            const double cost = rounds * (double)(rows + PACKING) * (double)columns * tiles[t].slowness;
            if (best_cost == 0 || cost < best_cost * 0.995) {
                best_cost = cost;
                best = (struct choice) { tiles[t], rows };
            }
        }
    }
    return best;
}

/* The most rows of B that local memory holds beside the other scratch; 0: too few. */
static int depth_of(const struct gemm *gemm, const struct tile *tile, const struct capabilities *can)
{
    const int64_t columns = (int64_t)tile->vectors * can->vector_width;
    const int64_t floats = (int64_t)(can->local_bytes / sizeof(float)) - columns * tile->rows - 64;
    int64_t depth = floats / (columns + (gemm->transpose_a ? tile->rows : 0));
    depth = depth / can->vector_width * can->vector_width;
    return depth < DEPTH_LEAST ? 0 : depth < DEPTH ? (int)depth : DEPTH;
}

static const char *refusal(const struct gemm *gemm, const struct capabilities *can)
{
    if (can->class != DEVICE_CPU) return "it is made for CPU-class devices";
    if (!gemm_is_small(gemm)) return "a size of the product is larger than 2^30";
    const struct choice choice = choose(gemm, can);
    if (depth_of(gemm, &choice.tile, can) == 0) return "the device's local memory is too small for a panel";
    return NULL;
}

static void emit(const struct gemm *gemm, const struct gemm_buffers *buffers, struct launch_list *list)
{
    const struct capabilities *can = &list->device->can;
    const struct choice choice = choose(gemm, can);
    const int depth = depth_of(gemm, &choice.tile, can);
    const int64_t columns = (int64_t)choice.tile.vectors * can->vector_width;
    char options[256];
    struct launch *launch = launch_add(list, "gemm_packed", "gemm_packed", "-DMR=%d -DNV=%d -DKC=%d -DTA=%d -DTB=%d %s",
        choice.tile.rows, choice.tile.vectors, depth, gemm->transpose_a, gemm->transpose_b,
        gemm_options(gemm, options, sizeof options));
    launch_buffer(launch, buffers->a);
    launch_buffer(launch, buffers->b);
    launch_buffer(launch, buffers->c);
    launch_buffer(launch, buffers->bias);
    launch_buffer(launch, buffers->added);
    launch_int(launch, gemm->m);
    launch_int(launch, gemm->n);
    launch_int(launch, gemm->k);
    launch_int(launch, gemm->lda);
    launch_int(launch, gemm->ldb);
    launch_int(launch, gemm->ldc);
    launch_long(launch, gemm->stride_a);
    launch_long(launch, gemm->stride_b);
    launch_long(launch, gemm->stride_c);
    launch_int(launch, choice.rows);
    launch_int(launch, divide_up(gemm->k, divide_up(gemm->k, depth))); /* evenly divided */
    launch_tasks(
        launch, (size_t)divide_up(gemm->n, columns), (size_t)divide_up(gemm->m, choice.rows), (size_t)gemm->batch);
    gemm_work(gemm, launch);
}

const struct gemm_implementation gemm_packed = { .name = "packed", .refusal = refusal, .emit = emit };
