/* The product of large matrices on GPU-class devices that copy from global into local memory in parallel with their
 * arithmetic: clkernels/gemm_pack.cl, gemm_pipelined.cl. */
#include "clkernels/arguments/gemm_pipelined.h"
#include "base/memory.h"
#include "clkernels/arguments/gemm_pack.h"
#include "runtime/gemm_implementations.h"
#include "runtime/tile.h"

enum {
    CHUNK = 16,      /* bytes that are copied at once */
    LINE_CHUNKS = 4, /* of a row or column in a step, see the kernel */
    STAGES = 3,
    PACK_GROUP = 256,
    LEAST_LINES = 256, /* rows, and columns, from which packing pays; below, steps of the sum */
    LEAST_DEPTH = 128,
};

/* The tile of each type; a step has the same number of bytes for all. */
static const struct tile tiles[COMPUTE_TYPES] = {
    [COMPUTE_TF32] = { 128, 128, 16, 8, 16 },
    [COMPUTE_BF16] = { 128, 128, 32, 8, 16 },
    [COMPUTE_FP16] = { 128, 128, 32, 8, 16 },
};

/* Layout of the workspace: the parts of the sum where there are several, then the packed operands. In chunks: the
 * strides between products of the batch (0: all have the same operand), the places of A and B, and the total. */
struct packed {
    int64_t steps, splits, steps_of_split, rows, columns, stride_a, stride_b, from_a, from_b, count;
};

/* Divides the sum into parts, whole steps of a tile each. */
static void divide(struct packed *p, const struct gemm *gemm, const struct capabilities *can)
{
    p->steps_of_split = divide_up(p->steps, gemm_fewest_parts(gemm, can));
    p->splits = divide_up(p->steps, p->steps_of_split);
    if (p->splits == 1) return;
    p->from_a = divide_up(p->splits * gemm->m * gemm->n * gemm->batch * (int64_t)sizeof(float), CHUNK);
}

static struct packed packed_of(const struct gemm *gemm, const struct capabilities *can)
{
    const struct tile *t = &tiles[gemm->compute];
    struct packed p = {
        .steps = divide_up(gemm->k, t->bk),
        .rows = divide_up(gemm->m, t->bm),
        .columns = divide_up(gemm->n, t->bn),
    };
    divide(&p, gemm, can);
    const int64_t of_a = p.rows * p.steps * t->bm * LINE_CHUNKS, of_b = p.columns * p.steps * t->bn * LINE_CHUNKS;
    const bool many_a = gemm->batch > 1 && gemm->a.stride, many_b = gemm->batch > 1 && gemm->b.stride;
    p.stride_a = many_a ? of_a : 0;
    p.stride_b = many_b ? of_b : 0;
    p.from_b = p.from_a + (many_a ? of_a * gemm->batch : of_a);
    p.count = p.from_b + (many_b ? of_b * gemm->batch : of_b);
    return p;
}

/* Tells whether packing pays: smaller products take no longer with operands as they are. */
static bool is_worth_packing(const struct gemm *gemm, const struct capabilities *can)
{
    const struct packed p = packed_of(gemm, can);
    return gemm->m >= LEAST_LINES && gemm->n >= LEAST_LINES && gemm->k >= LEAST_DEPTH &&
        2 * p.rows * p.columns * gemm->batch >= can->units;
}

static const char *refusal(const struct gemm *gemm, const struct capabilities *can)
{
    const struct matrix_ability *ability = &can->matrix[gemm->compute];
    const struct tile *t = &tiles[gemm->compute];
    if (gemm->compute == COMPUTE_FP32 || can->class != DEVICE_GPU) return tile_matrix_refusal(gemm->compute, can);
    if (!ability->pipelined)
        return ability->pipelined_refusal ? ability->pipelined_refusal
                                          : "no such product passed its check on this device";
    if (!gemm_is_small(gemm)) return "a size of the product is larger than 2^30";
    if (!gemm->tile && !is_worth_packing(gemm, can)) return "the product is too small to pay for packed operands";
    if ((size_t)(STAGES * LINE_CHUNKS * CHUNK * (t->bm + t->bn)) > can->local_bytes ||
        (size_t)tile_items(t) > can->group_max)
        return "the device's work-groups or local memory are too small";
    const struct packed p = packed_of(gemm, can);
    if ((size_t)(p.count - p.from_a) > can->allocation_max / 4 / CHUNK)
        return "the packed operands take too much memory";
    return NULL;
}

static size_t workspace(const struct gemm *gemm, const struct capabilities *can)
{
    return (size_t)packed_of(gemm, can).count * CHUNK;
}

/* One operand: the rows of op(A) or the columns of op(B). */
struct lines {
    cl_mem buffer;
    bool by_line; /* the steps of a line follow one another */
    int64_t count, tiles, ld, from, stride, products, to;
};

ARGUMENTS(pack, PACK_ARGUMENTS)
ARGUMENTS(pipelined, PIPELINED_ARGUMENTS)

static void emit_pack(
    const struct gemm *g, const struct lines *lines, int64_t steps, cl_mem workspace, struct launch_list *list)
{
    const struct tile *t = &tiles[g->compute];
    const bool fours = lines->by_line && g->k % 4 == 0 && lines->ld % 4 == 0 && lines->from % 4 == 0 &&
        (lines->products == 1 || lines->stride % 4 == 0);
    const int64_t items = t->bm * LINE_CHUNKS * steps; /* a tile has as many columns as rows */
    struct launch *launch = launch_add(list, "gemm_pack", "gemm_pack", TILE_OPTIONS " -DBY_LINE=%d -DFOURS=%d",
        TILE_VALUES(t, MATRIX_MMA_LDMATRIX, g->compute), lines->by_line, fours);
    ARGUMENTS_SET(launch, pack, .from = lines->buffer, .to = workspace, .lines = lines->count, .k = g->k,
        .steps = steps, .ld = lines->ld, .first = lines->from, .stride = lines->stride, .first_to = lines->to);
    launch_grid(launch, 3, (size_t)items, (size_t)lines->tiles, (size_t)lines->products, PACK_GROUP, 1, 1);
    const double floats = (double)lines->count * (double)g->k * (double)lines->products;
    launch_work(launch, 0, 4 * floats + CHUNK * (double)(items * lines->tiles * lines->products));
}

static void emit(const struct gemm *g, const struct gemm_buffers *buffers, struct launch_list *list)
{
    const struct packed p = packed_of(g, &list->device->can);
    const struct tile *t = &tiles[g->compute];
    const struct lines rows = { buffers->a, !g->transpose_a, g->m, p.rows, g->a.ld, g->a.from, g->a.stride,
        p.stride_a ? g->batch : 1, p.from_a };
    const struct lines columns = { buffers->b, g->transpose_b, g->n, p.columns, g->b.ld, g->b.from, g->b.stride,
        p.stride_b ? g->batch : 1, p.from_b };
    emit_pack(g, &rows, p.steps, buffers->workspace, list);
    emit_pack(g, &columns, p.steps, buffers->workspace, list);
    const bool parts = p.splits > 1;
    const int64_t from_c = parts ? 0 : g->c.from;
    const struct gemm_sums to = gemm_sums_of(g, buffers, p.splits);
    const struct gemm_finish finish = gemm_finish_of(g, buffers);
    const bool fours = gemm_in_fours(g->n, from_c, to.ld, to.stride, g->batch * p.splits);
    struct launch *launch = launch_add(list, "gemm_pipelined", "gemm_pipelined", TILE_OPTIONS " -DC_FOURS=%d%s",
        TILE_VALUES(t, MATRIX_MMA_LDMATRIX, g->compute), fours, parts ? "" : finish.options);
    ARGUMENTS_SET(launch, pipelined, .packed = buffers->workspace, .bias = parts ? NULL : finish.bias,
        .added = parts ? NULL : finish.added, .C = to.buffer, .m = g->m, .n = g->n, .steps = p.steps, .ldc = to.ld,
        .splits = p.splits, .steps_of_split = p.steps_of_split, .from_a = p.from_a, .from_b = p.from_b,
        .from_c = from_c, .stride_a = p.stride_a, .stride_b = p.stride_b, .stride_c = to.stride,
        .stride_split = parts ? to.stride_part : 0);
    launch_grid(launch, 3, (size_t)(p.columns * tile_items(t)), (size_t)p.rows, (size_t)(g->batch * p.splits),
        (size_t)tile_items(t), 1, 1);
    gemm_work(g, launch);
    if (parts) gemm_emit_finish(g, &to, buffers->c, buffers->bias, list);
}

const struct gemm_implementation gemm_pipelined = {
    .refusal = refusal,
    .workspace = workspace,
    .emit = emit,
};
