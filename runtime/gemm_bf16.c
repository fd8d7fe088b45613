/* The product of CPU-class devices that compute bf16 dot products: clkernels/gemm_bf16_pack.cl,
 * gemm_bf16.cl. */
#include "clkernels/arguments/gemm_bf16.h"
#include "base/memory.h"
#include "runtime/gemm_implementations.h"
#include "runtime/matrix.h"

enum {
    LINES = 16, /* rows or columns of a tile; below it the steps of its depth */
    STEPS = 32,
    WORDS = 256,
    LANES = 16, /* floats of a vector */
    TASKS_PER_UNIT = 8,
    NEAR_TILES = 12,  /* tiles of a column: those of two take half a first-level cache of 48 KiB */
    KEPT_ROWS = 1024, /* rows whose sums wait in the second-level cache */
    LEAST_LINES =
        128, /* packing a row costs as much as that many columns of the product save, and the other way round */
};

/* Where packed operands lie, in words; A comes first. */
struct packed {
    int parts, stored;     /* stored: with the first part and its infinities, where there are several */
    int64_t tiles;         /* along the sum */
    int64_t rows, columns; /* tiles of lines */
    int64_t part_a, part_b, stride_a, stride_b, from_b, flags_a, flags_b, flags_stride_a, flags_stride_b, count;
};

static struct packed packed_of(const struct gemm *gemm, enum bf16_form form)
{
    const int64_t in_unit = bf16_unit_lines(form);
    struct packed p = { .parts = bf16_terms(gemm->compute), .tiles = divide_up(gemm->k, STEPS) };
    p.stored = p.parts + (p.parts > 1);
    p.rows = divide_up(gemm->m, in_unit) * (in_unit / LINES);
    p.columns = divide_up(gemm->n, in_unit) * (in_unit / LINES);
    p.part_a = p.rows * p.tiles * WORDS;
    p.part_b = p.columns * p.tiles * WORDS;
    const bool many_a = gemm->batch > 1 && gemm->a.stride, many_b = gemm->batch > 1 && gemm->b.stride;
    p.stride_a = many_a ? p.stored * p.part_a : 0;
    p.stride_b = many_b ? p.stored * p.part_b : 0;
    p.flags_stride_a = many_a ? p.rows * p.tiles : 0;
    p.flags_stride_b = many_b ? p.columns * p.tiles : 0;
    const int64_t products_a = many_a ? gemm->batch : 1, products_b = many_b ? gemm->batch : 1;
    p.from_b = p.stored * p.part_a * products_a;
    p.flags_a = p.from_b + p.stored * p.part_b * products_b;
    p.flags_b = p.flags_a + p.rows * p.tiles * products_a;
    p.count = p.parts > 1 ? p.flags_b + p.columns * p.tiles * products_b : p.flags_a;
    return p;
}

/* The cost of packing grows with the numbers that are read and written, what the product saves with how often they
 * are used. */
static bool is_worth_packing(const struct gemm *gemm)
{
    return gemm->m * gemm->n >= LEAST_LINES * (gemm->m + gemm->n) / 2;
}

static const char *refusal(const struct gemm *gemm, const struct capabilities *can)
{
    const enum bf16_form form = can->bf16[gemm->compute].form;
    const char *none = bf16_refusal(can, gemm->compute);
    if (none) return none;
    if (!gemm_is_small(gemm)) return "a size of the product is larger than 2^30";
    const bool any = gemm->tile || form == BF16_PLAIN; /* for tests */
    if (!any && !is_worth_packing(gemm)) return "the product is too small to pay for packed operands";
    const int64_t most = (int64_t)(can->allocation_max / 4 / sizeof(uint32_t));
    const struct packed p = packed_of(gemm, form);
    if (p.part_a > most / 4 || p.part_b > most / 4 || p.count > most) return "the packed operands take too much memory";
    return NULL;
}

static size_t workspace(const struct gemm *gemm, const struct capabilities *can)
{
    return (size_t)packed_of(gemm, can->bf16[gemm->compute].form).count * sizeof(uint32_t);
}

/* Chooses rows and columns of a task, in units: the least work for the busiest device unit, and then the least
 * repeated reading. */
static struct gemm_design choose(const struct gemm *gemm, const struct capabilities *can)
{
    const int64_t lines = bf16_unit_lines(can->bf16[gemm->compute].form), units = can->units > 0 ? can->units : 1;
    const int64_t rows = divide_up(gemm->m, lines), columns = divide_up(gemm->n, lines);
    struct gemm_design best = { 0 };
    double best_cost = 0;
    for (int64_t down = 1; down <= rows && down <= TASKS_PER_UNIT * units; down++)
        for (int64_t across = 1; across <= columns && down * across <= TASKS_PER_UNIT * units; across++) {
            const int64_t tall = divide_up(rows, down), wide = divide_up(columns, across);
            const int64_t rounds = divide_up(down * across * gemm->batch, units);
            const double cost = (double)(rounds * tall * wide) + 0.02 * (double)(rounds * (tall + wide));
            if (best_cost != 0 && cost >= best_cost) continue;
            best_cost = cost;
            best = (struct gemm_design) { .rows = tall * lines, .columns = wide * lines };
        }
    return best;
}

/* One operand: the rows of op(A) or the columns of op(B). */
struct lines {
    cl_mem buffer, sums;
    bool by_line, rows;
    int64_t count, tiles, ld, stride, products, to, part, flags;
};

/* How a task is walked: so many rows and so many tiles along the sum at a time. `chain`: tiles whose products are added
 * to one sum; planes: 3 if there are several such sums, which carry their rounding errors along; else 1. */
struct walk {
    int64_t rows, depth, chain, planes;
};

/* Dot products of a tile take four times as long as loading it, so their tiles need not stay in a near cache. */
static struct walk walk_of(
    const struct gemm_design *design, const struct packed *p, const struct capabilities *can, enum compute_type compute)
{
    const enum bf16_form form = can->bf16[compute].form;
    const int64_t lines = bf16_unit_lines(form), depth = NEAR_TILES / p->parts;
    const int64_t most = bf16_chain(compute, form);
    const int64_t chain = p->tiles * STEPS < GEMM_LONG || p->tiles < most ? p->tiles : most;
    const int64_t planes = chain < p->tiles ? 3 : 1;
    const int64_t fitting = (int64_t)(can->local_bytes / 2 / sizeof(float)) / (planes * lines * lines) * lines;
    if (fitting < lines || (planes == 1 && (form == BF16_DOTS || p->tiles <= depth)))
        return (struct walk) { design->rows, p->tiles, p->tiles, 1 };
    const int64_t rows = fitting < KEPT_ROWS ? fitting : KEPT_ROWS;
    return (struct walk) { rows < design->rows ? rows : design->rows, depth, chain, planes };
}

ARGUMENTS(bf16_pack, GEMM_BF16_PACK_ARGUMENTS)
ARGUMENTS(bf16, GEMM_BF16_ARGUMENTS)

static void emit_pack(
    const struct gemm *g, const struct packed *p, const struct lines *lines, cl_mem workspace, struct launch_list *list)
{
    struct launch *launch = launch_add(list, "gemm_bf16_pack", "gemm_bf16_pack",
        "-DPARTS=%d -DBY_LINE=%d -DROWS_OF=%d -DSUMS=%d -DSTORED=%d", p->parts, lines->by_line, lines->rows,
        lines->sums != NULL, lines->rows ? (int)GEMM_FLOATS : (int)g->stored);
    ARGUMENTS_SET(launch, bf16_pack, .from = lines->buffer, .to = workspace, .sums = lines->sums, .lines = lines->count,
        .k = g->k, .ld = lines->ld, .tiles = p->tiles, .stride = lines->stride, .first_to = lines->to,
        .part_to = lines->part, .first_flag = lines->flags);
    launch_tasks(launch, (size_t)lines->tiles, 1, (size_t)lines->products);
    const double numbers = (double)lines->count * (double)g->k * (double)lines->products;
    launch_work(launch, 0, (4 + 2 * p->parts) * numbers);
}

static void emit(const struct gemm *g, const struct gemm_buffers *buffers, struct launch_list *list)
{
    const struct capabilities *can = &list->device->can;
    const enum bf16_form form = can->bf16[g->compute].form;
    const struct packed p = packed_of(g, form);
    const struct gemm_design design = g->design ? *g->design : choose(g, can);
    if (!design.rows) return; /* refused */
    const struct lines rows = { buffers->a, g->sums, !g->transpose_a, true, g->m, p.rows, g->a.ld, g->a.stride,
        p.stride_a ? g->batch : 1, 0, p.part_a, p.flags_a };
    const struct lines columns = { buffers->b, NULL, g->transpose_b, false, g->n, p.columns, g->b.ld, g->b.stride,
        p.stride_b ? g->batch : 1, p.from_b, p.part_b, p.flags_b };
    emit_pack(g, &p, &rows, buffers->workspace, list);
    emit_pack(g, &p, &columns, buffers->workspace, list);
    const struct gemm_finish finish = gemm_finish_of(g, buffers);
    struct launch *launch =
        launch_add(list, "gemm_bf16", "gemm_bf16", "-DBF16_FORM=%d -DPARTS=%d%s", (int)form, p.parts, finish.options);
    const struct walk walk = walk_of(&design, &p, can, g->compute);
    const int64_t lines = bf16_unit_lines(form), kept = walk.depth < p.tiles ? walk.rows : lines;
    ARGUMENTS_SET(launch, bf16, .packed = buffers->workspace, .bias = finish.bias, .added = finish.added,
        .C = buffers->c, .unit = sizeof(float) * (size_t)(walk.planes * kept * lines), .depth = walk.depth,
        .kept = walk.rows, .chain = walk.chain, .m = g->m, .n = g->n, .tiles = p.tiles, .ldc = g->c.ld,
        .rows = design.rows, .columns = design.columns, .from_b = p.from_b, .part_a = p.part_a, .part_b = p.part_b,
        .stride_a = p.stride_a, .stride_b = p.stride_b, .stride_c = g->c.stride, .flags_a = p.flags_a,
        .flags_b = p.flags_b, .flags_stride_a = p.flags_stride_a, .flags_stride_b = p.flags_stride_b);
    launch_tasks(
        launch, (size_t)divide_up(g->n, design.columns), (size_t)divide_up(g->m, design.rows), (size_t)g->batch);
    gemm_work(g, launch);
}

const struct gemm_implementation gemm_bf16 = {
    .refusal = refusal,
    .design = choose,
    .workspace = workspace,
    .emit = emit,
    .takes_stored = true,
};
