/* The product of GPU-class devices: clkernels/gemm_tiled.cl, by multiply-adds or by matrix instructions, and the choice
 * of its tile and of the sum's parts. */
#include "clkernels/arguments/gemm_tiled.h"
#include "base/memory.h"
#include "runtime/gemm_implementations.h"
#include "runtime/tile.h"

enum {
    BUFFERS = 2,           /* of local memory, see the kernel */
    LONGEST_ROW = 1 << 23, /* floats: offsets in a tile are ints */
    MOST_SPLITS = 64,
    LEAST_STEPS = 64, /* of a part of the sum */
};
/* Costs in multiply-adds of a unit: of bringing a float into local memory, and of a launch of its own, which takes
 * some microseconds. ITEMS_BUSY: with fewer work-items, a unit waits for memory more than it computes. */
#define FLOAT_COST 8.0
#define LAUNCH_COST 3e5
#define ITEMS_BUSY 256.0

/* Returns the time of the busiest unit. A work-item reads tm + tn numbers of local memory for tm * tn
 * multiply-adds. */
static double cost_of(const struct gemm *gemm, const struct capabilities *can, const struct gemm_design *choice)
{
    const struct tile *t = choice->tile;
    const double units = can->units > 0 ? can->units : 1, items = (double)tile_items(t);
    const int64_t groups = divide_up(gemm->m, t->bm) * divide_up(gemm->n, t->bn) * (gemm->batch * choice->splits);
    const double rounds = (double)divide_up(groups, (int64_t)units);
    const double busy = rounds * items < ITEMS_BUSY ? rounds * items / ITEMS_BUSY : 1;
    const double step = items * (double)(t->tm * t->tn + t->tm + t->tn) + FLOAT_COST * (double)(t->bm + t->bn);
    const double results = (double)gemm->m * (double)gemm->n * (double)gemm->batch;
    const double second =
        choice->splits > 1 ? LAUNCH_COST + 2 * FLOAT_COST * results * (double)choice->splits / units : 0;
    return rounds * (double)choice->k_of_split * step / busy + second;
}

/* Chooses the cheapest tile and division of the sum; what the caller has fixed stays. */
static struct gemm_design choose(const struct gemm *gemm, enum matrix_form form, const struct capabilities *can)
{
    struct gemm_design best = { 0 };
    const struct tile *tiles[TILES];
    const int count = tile_list(form, gemm->compute, tiles);
    const int64_t least = gemm_fewest_parts(gemm, can);
    const int64_t most = gemm->splits || least > MOST_SPLITS ? least : MOST_SPLITS;
    double best_cost = 0;
    for (int t = 0; t < count; t++) {
        if (!tile_fits(tiles[t], BUFFERS, can) || (gemm->tile && gemm->tile != t + 1)) continue;
        for (int64_t splits = least; splits <= most; splits *= 2) {
            struct gemm_design choice = { .tile = tiles[t] };
            choice.k_of_split = (int64_t)size_round_up((size_t)divide_up(gemm->k, splits), (size_t)tiles[t]->bk);
            choice.splits = divide_up(gemm->k, choice.k_of_split);
            if (splits > least && (!gemm_has_room(gemm, can, splits) || choice.k_of_split < LEAST_STEPS)) break;
            const double cost = cost_of(gemm, can, &choice);
            if (best_cost == 0 || cost < best_cost) {
                best_cost = cost;
                best = choice;
            }
        }
    }
    return best;
}

static struct gemm_design design_of(const struct gemm *gemm, enum matrix_form form, const struct capabilities *can)
{
    return gemm->design ? *gemm->design : choose(gemm, form, can);
}

static bool fits_any(const struct gemm *gemm, enum matrix_form form, const struct capabilities *can)
{
    const struct tile *tiles[TILES];
    const int count = tile_list(form, gemm->compute, tiles);
    for (int t = 0; t < count; t++)
        if (tile_fits(tiles[t], BUFFERS, can) && (!gemm->tile || gemm->tile == t + 1)) return true;
    return false;
}

static const char *refusal(const struct gemm *gemm, enum matrix_form form, const struct capabilities *can)
{
    if (can->class != DEVICE_GPU) return "it needs a GPU-class device";
    if (!gemm_is_small(gemm)) return "a size of the product is larger than 2^30";
    if (gemm->a.ld > LONGEST_ROW || gemm->b.ld > LONGEST_ROW) return "a row of a matrix has more than 2^23 numbers";
    if (!fits_any(gemm, form, can)) return "the device's work-groups or local memory are too small";
    return NULL;
}

static size_t workspace(const struct gemm *gemm, enum matrix_form form, const struct capabilities *can)
{
    const struct gemm_design choice = design_of(gemm, form, can);
    if (choice.splits <= 1) return 0;
    return (size_t)(choice.splits * gemm->batch * gemm->m * gemm->n) * sizeof(float);
}

ARGUMENTS(tiled, TILED_ARGUMENTS)

static void emit(
    const struct gemm *g, enum matrix_form form, const struct gemm_buffers *buffers, struct launch_list *list)
{
    const struct gemm_design choice = design_of(g, form, &list->device->can);
    const struct tile *t = choice.tile;
    const bool parts = choice.splits > 1;
    const int64_t from_c = parts ? 0 : g->c.from;
    const struct gemm_sums to = gemm_sums_of(g, buffers, choice.splits);
    const struct gemm_finish finish = gemm_finish_of(g, buffers);
    struct launch *launch = launch_add(list, "gemm_tiled", "gemm_tiled",
        TILE_OPTIONS " -DTA=%d -DTB=%d -DA_FOURS=%d -DB_FOURS=%d -DC_FOURS=%d%s%s", TILE_VALUES(t, form, g->compute),
        g->transpose_a, g->transpose_b,
        gemm_in_fours(g->transpose_a ? g->m : g->k, g->a.from, g->a.ld, g->a.stride, g->batch),
        gemm_in_fours(g->transpose_b ? g->k : g->n, g->b.from, g->b.ld, g->b.stride, g->batch),
        gemm_in_fours(g->n, from_c, to.ld, to.stride, g->batch), TILE_CHAINS(form, g->k, choice.k_of_split),
        parts ? "" : finish.options);
    ARGUMENTS_SET(launch, tiled, .A = buffers->a, .B = buffers->b, .bias = parts ? NULL : finish.bias,
        .added = parts ? NULL : finish.added, .C = to.buffer, .m = g->m, .n = g->n, .k = g->k, .lda = g->a.ld,
        .ldb = g->b.ld, .ldc = to.ld, .from_a = g->a.from, .from_b = g->b.from, .from_c = from_c,
        .stride_a = g->a.stride, .stride_b = g->b.stride, .stride_c = to.stride,
        .stride_split = parts ? to.stride_part : 0, .splits = choice.splits, .k_of_split = choice.k_of_split);
    launch_grid(launch, 3, (size_t)(divide_up(g->n, t->bn) * tile_items(t)), (size_t)divide_up(g->m, t->bm),
        (size_t)(g->batch * choice.splits), (size_t)tile_items(t), 1, 1);
    gemm_work(g, launch);
    if (parts) gemm_emit_finish(g, &to, buffers->c, buffers->bias, list);
}

/* ---- by multiply-adds ---- */

static const char *refusal_tiled(const struct gemm *gemm, const struct capabilities *can)
{
    return refusal(gemm, MATRIX_NONE, can);
}

static struct gemm_design design_tiled(const struct gemm *gemm, const struct capabilities *can)
{
    return choose(gemm, MATRIX_NONE, can);
}

static size_t workspace_tiled(const struct gemm *gemm, const struct capabilities *can)
{
    return workspace(gemm, MATRIX_NONE, can);
}

static void emit_tiled(const struct gemm *gemm, const struct gemm_buffers *buffers, struct launch_list *list)
{
    emit(gemm, MATRIX_NONE, buffers, list);
}

const struct gemm_implementation gemm_tiled = {
    .refusal = refusal_tiled,
    .design = design_tiled,
    .workspace = workspace_tiled,
    .emit = emit_tiled,
};

/* ---- by matrix instructions ---- */

static const char *refusal_matrix(const struct gemm *gemm, const struct capabilities *can)
{
    const enum matrix_form form = can->matrix[gemm->compute].form;
    return form ? refusal(gemm, form, can) : tile_matrix_refusal(gemm->compute, can);
}

static struct gemm_design design_matrix(const struct gemm *gemm, const struct capabilities *can)
{
    return choose(gemm, can->matrix[gemm->compute].form, can);
}

static size_t workspace_matrix(const struct gemm *gemm, const struct capabilities *can)
{
    return workspace(gemm, can->matrix[gemm->compute].form, can);
}

static void emit_matrix(const struct gemm *gemm, const struct gemm_buffers *buffers, struct launch_list *list)
{
    emit(gemm, list->device->can.matrix[gemm->compute].form, buffers, list);
}

const struct gemm_implementation gemm_matrix = {
    .refusal = refusal_matrix,
    .design = design_matrix,
    .workspace = workspace_matrix,
    .emit = emit_matrix,
};
