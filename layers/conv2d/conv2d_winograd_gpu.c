/* conv2d, Winograd F(4x4, 3x3) and F(2x2, 3x3) with stride 1 on GPU-class devices, plain layout: tiles are transformed
 * by layers/conv2d/conv2d_winograd_gpu.cl and multiplied by runtime/gemm.h. */
#include "layers/conv2d/arguments/conv2d_winograd_gpu.h"
#include "base/memory.h"
#include "layers/conv2d/conv2d.h"
#include "layers/epilogue.h"
#include "runtime/gemm.h"

/* WORKSPACE_BYTES: the most bytes of transformed tiles at a time, and at most one part in ALLOCATION_PART of a
 * device's largest allocation. LEAST_PART: tiles whose sums are worth memory of their own. GEMM_TILE: rows and
 * columns of a work-group's part of a product, roughly. */
enum {
    TAPS = 9,
    FOUR = 4,
    WORKSPACE_BYTES = 256 << 20,
    ALLOCATION_PART = 4,
    LEAST_PART = 256,
    GEMM_TILE = 64,
    GROUP = 64
};

/* The rule wants a gain of a quarter, on a device with so many FLOPs for each byte that it reads or writes. Devices
 * made for computing have half as many (13 to 20, by their vendors' figures), others up to 45, of which an implicit
 * product reaches a half or two thirds. With fewer FLOPs per byte the gain is larger. */
#define FLOPS_PER_BYTE 32.0
#define LEAST_GAIN 1.25

static int64_t in_fours(int64_t count)
{
    return divide_up(count, FOUR) * FOUR;
}

/* An image whose tiles are transformed. */
struct image {
    int64_t channels, padded, h, w, padding_h, padding_w;
};

/* A launch's sums: the tiles from first to first + part * together. */
struct plan {
    struct image source, result; /* the data gradient is a forward pass from dy to dx */
    int64_t side, points, n, rows, columns, tiles;
    int64_t part, parts, together; /* tiles of a part, parts of all, parts that are in the workspace at a time */
    int64_t results_from, sums_from, floats; /* in the workspace, which begins with the sources */
    struct gemm_design product;              /* of `together` parts */
};

/* Divides the tiles into parts of equal length that fit in the workspace. A weight gradient has one sum for each
 * part, and as many parts as keep the units busy. */
static void divide(const struct problem *problem, struct plan *p)
{
    const size_t most = problem->device->allocation_max / ALLOCATION_PART;
    const int64_t room = most < WORKSPACE_BYTES ? (int64_t)most : WORKSPACE_BYTES;
    const int64_t tile = p->points * (p->source.padded + p->result.padded) * (int64_t)sizeof(float);
    p->parts = divide_up(p->tiles, room / tile > FOUR ? room / tile : FOUR);
    if (conv2d_is_weight_gradient(problem)) {
        const int64_t groups =
            p->points * divide_up(p->result.padded, GEMM_TILE) * divide_up(p->source.padded, GEMM_TILE);
        int64_t busy = divide_up(4 * problem->device->units, groups), possible = divide_up(p->tiles, LEAST_PART);
        if (busy > possible) busy = possible;
        if (busy > p->parts) p->parts = busy;
    }
    p->part = in_fours(divide_up(p->tiles, p->parts));
    p->parts = divide_up(p->tiles, p->part);
    p->together = 1;
    if (conv2d_is_weight_gradient(problem) && room / (tile * p->part) > 1) p->together = room / (tile * p->part);
    if (p->together > p->parts) p->together = p->parts;
}

/* m: results of a tile's side. */
static struct plan plan_of(const struct problem *problem, int64_t m)
{
    const struct conv2d_sizes z = conv2d_sizes_of(problem);
    const struct image x = { z.c, in_fours(z.c), z.h, z.w, z.padding_h, z.padding_w },
                       y = { z.k, in_fours(z.k), z.oh, z.ow, z.r - 1 - z.padding_h, z.s - 1 - z.padding_w };
    const bool backward = conv2d_is_data_gradient(problem);
    struct plan p = { .side = m + 2, .n = z.n, .source = backward ? y : x, .result = backward ? x : y };
    p.points = p.side * p.side;
    p.rows = divide_up(p.result.h, m);
    p.columns = divide_up(p.result.w, m);
    p.tiles = p.n * p.rows * p.columns;
    divide(problem, &p);
    const int64_t tiles = p.together * p.points * p.part;
    p.results_from = tiles * p.source.padded;
    p.sums_from = p.results_from + tiles * p.result.padded;
    p.floats = conv2d_is_weight_gradient(problem) ? p.sums_from + p.parts * p.points * p.source.padded * p.result.padded
                                                  : p.sums_from;
    return p;
}

/* The products of `together` parts of `part` tiles from `first` on. */
static struct gemm product_of(const struct problem *problem, const struct plan *p, int64_t first)
{
    const int64_t left = divide_up(p->tiles - first, p->part), together = left < p->together ? left : p->together;
    const int64_t sources = p->source.padded, results = p->result.padded;
    if (conv2d_is_weight_gradient(problem))
        return (struct gemm) { .m = results,
            .n = sources,
            .k = p->part,
            .batch = p->points * together,
            .transpose_b = true,
            .a = { .stride = results * p->part, .from = p->results_from },
            .b = { .stride = sources * p->part },
            .c = { .stride = results * sources,
                .from = p->sums_from + first / p->part * p->points * results * sources },
            .design = together == p->together ? &p->product : NULL,
            .splits = 1 };
    return (struct gemm) { .m = results,
        .n = p->part,
        .k = p->source.channels,
        .batch = p->points,
        .transpose_a = true,
        .a = { .stride = p->source.channels * results },
        .b = { .stride = sources * p->part },
        .c = { .stride = results * p->part, .from = p->results_from },
        .design = &p->product,
        .splits = 1 };
}

static const char *fits(const struct problem *problem, int64_t m)
{
    const struct conv2d_sizes z = conv2d_sizes_of(problem);
    const int64_t most = INT32_MAX / 64, most_channels = 65535;
    if (problem->device->class != DEVICE_GPU) return "it needs a GPU-class device";
    if (z.r != 3 || z.s != 3) return "the kernel is not 3x3";
    if (z.stride_h != 1 || z.stride_w != 1) return "stride is not 1";
    const char *refusal = conv2d_winograd_refusal(problem);
    if (refusal) return refusal;
    if (z.groups != 1) return "groups is not 1";
    if (z.c < FOUR || z.k < FOUR) return "there are fewer than 4 channels: it would multiply mostly zeros";
    if (z.h > most / z.w || z.oh > most / z.ow) return "an image has more pixels than 32 bits can count";
    if (z.n > most / ((z.h + 3) * (z.w + 3)) || z.n > most / (z.oh * z.ow))
        return "the batch has more pixels than 32 bits can count";
    if (z.c > most_channels || z.k > most_channels)
        return "there are more channels than one dimension of a launch can have";
    const struct plan p = plan_of(problem, m);
    if (m > 2 && (p.result.h <= 2 || p.result.w <= 2))
        return "the result is so small that tiles of 2x2 need fewer multiplications";
    if ((double)p.floats * sizeof(float) > (double)problem->device->allocation_max)
        return "its transformed tiles need a larger buffer than the device allows";
    const struct gemm gemm = product_of(problem, &p, 0);
    return gemm_refusal(&gemm_tiled, &gemm, problem->device);
}

/* Estimates the time as the bytes that a device could move in it, if it computes or moves at its best;
 * docs/performance.md. Each transform reads and writes everything once, and so do the products, which wait for memory
 * or for arithmetic. */
static double cost_of(const struct problem *problem, const struct plan *p)
{
    const double points = (double)p->points, sources = (double)p->source.channels, results = (double)p->result.channels;
    const double transformed = points * (double)p->tiles * (sources + results), weights = sources * results;
    const double pixels = (double)p->n * (double)(p->source.h * p->source.w) * sources +
        (double)p->n * (double)(p->result.h * p->result.w) * results;
    const double products = 2 * points * (double)p->tiles * weights / FLOPS_PER_BYTE,
                 moved = 4 * (transformed + points * weights);
    const double prepared = problem->training ? 4 * (TAPS + points) * weights : 0;
    return 4 * (pixels + transformed) + prepared + (products > moved ? products : moved);
}

static const char *passed_over(const struct problem *problem, int64_t m)
{
    const struct plan p = plan_of(problem, m);
    const double flops = conv2d_flops(problem) / FLOPS_PER_BYTE, bytes = conv2d_bytes(problem);
    if (LEAST_GAIN * cost_of(problem, &p) <= (flops > bytes ? flops : bytes)) return NULL;
    return "with so few channels or tiles, transforms may cost more than they save: a tuning table can select it";
}

static size_t workspace(const struct problem *problem)
{
    const struct plan *p = problem->design;
    return (size_t)p->floats * sizeof(float);
}

/* --------------------------------------------------------------------------------------------------- launches ---- */

/* `width` times `height` work-items. */
static void set_grid(struct launch *launch, const struct launch_list *list, int64_t width, int64_t height)
{
    const size_t most = list->device->can.group_max, group = most < GROUP ? most : GROUP;
    launch_grid(launch, 2, size_round_up((size_t)width, group), (size_t)height, 1, group, 1, 1);
}

/* Sets the work of a launch that reads `images` floats and writes `transformed` ones, or the reverse. Each
 * transformed float is summed up in rows and in columns, with about two operations for each number of a side. */
static void set_work(struct launch *launch, const struct plan *p, double images, double transformed)
{
    launch_work(launch, 4 * (double)p->side * transformed, 4 * (images + transformed));
}

static size_t prepared(const struct problem *problem)
{
    const struct plan *p = problem->design;
    return (size_t)(p->points * p->source.channels * p->result.padded) * sizeof(float);
}

static void emit_weights(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct plan *p = problem->design;
    struct launch *launch = launch_add(list, "conv2d_winograd_gpu", "winograd_weights", "-DSIDE=%d", (int)p->side);
    LAUNCH_BUFFERS(launch, operands->inputs[1], operands->prepared);
    LAUNCH_INTS(launch, p->source.channels, p->result.channels, p->result.padded, conv2d_is_data_gradient(problem));
    set_grid(launch, list, p->result.padded, p->source.channels);
    const double kernels = (double)p->source.channels * (double)p->result.channels;
    set_work(launch, p, TAPS * kernels, (double)p->points * kernels);
}

ARGUMENTS(tiles, TILES_ARGUMENTS)

/* Transforms the tiles of an image from `first` on into the workspace, from float `from` on. */
static void emit_tiles(const struct plan *p, const struct image *image, const char *kernel, cl_mem from_image,
    cl_mem workspace, int64_t from, int64_t first, struct launch_list *list)
{
    const int64_t left = divide_up(p->tiles - first, p->part), parts = left < p->together ? left : p->together;
    const bool of_results = image == &p->result;
    struct launch *launch = launch_add(list, "conv2d_winograd_gpu", kernel, "-DSIDE=%d", (int)p->side);
    ARGUMENTS_SET(launch, tiles, .image = from_image, .tiles = workspace, .from = from, .C = image->channels,
        .padded = image->padded, .height = image->h, .width = image->w, .rows = p->rows, .columns = p->columns,
        .count = p->tiles, .first = first, .part = p->part, .length = parts * p->part,
        .padding_h = of_results ? 0 : image->padding_h, .padding_w = of_results ? 0 : image->padding_w);
    set_grid(launch, list, parts * p->part, image->padded);
    const double share = (double)(parts * p->part) / (double)p->tiles, channels = (double)image->channels;
    set_work(launch, p, share * (double)(p->n * image->h * image->w) * channels,
        (double)(p->points * parts * p->part) * channels);
}

ARGUMENTS(results, RESULTS_ARGUMENTS)

static void emit_results(const struct problem *problem, const struct plan *p, const struct operands *operands,
    int64_t first, struct launch_list *list)
{
    char activation[EPILOGUE_OPTIONS];
    const bool bias = !conv2d_is_data_gradient(problem) && operands->inputs[2];
    const struct image *result = &p->result;
    struct launch *launch = launch_add(list, "conv2d_winograd_gpu", "winograd_results", "-DSIDE=%d %s", (int)p->side,
        activation_options(node_function(problem->node, FUSION_ACTIVATION), activation, sizeof activation));
    ARGUMENTS_SET(launch, results, .products = operands->workspace, .from = p->results_from,
        .bias = bias ? operands->inputs[2] : NULL, .add = operands->add, .result = operands->outputs[0],
        .K = result->channels, .padded = result->padded, .height = result->h, .width = result->w, .rows = p->rows,
        .columns = p->columns, .count = p->tiles, .first = first, .part = p->part);
    set_grid(launch, list, p->part, result->channels);
    const double tiles = (double)(p->tiles - first < p->part ? p->tiles - first : p->part);
    const double pixels = tiles / (double)p->tiles * (double)(p->n * result->h * result->w);
    set_work(launch, p, pixels * (double)result->channels * (operands->add ? 2 : 1),
        (double)p->points * tiles * (double)result->channels);
}

static void emit_image(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct plan *p = problem->design;
    for (int64_t first = 0; first < p->tiles; first += p->part) {
        const struct gemm gemm = product_of(problem, p, first);
        emit_tiles(p, &p->source, "winograd_sources", operands->inputs[0], operands->workspace, 0, first, list);
        gemm_emit(&gemm_tiled, &gemm, operands->prepared, operands->workspace, operands->workspace, NULL, NULL, list);
        emit_results(problem, p, operands, first, list);
    }
}

ARGUMENTS(weight_gradient, WEIGHT_GRADIENT_ARGUMENTS)

static void emit_weight_gradient(
    const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct plan *p = problem->design;
    const cl_mem scratch = operands->workspace;
    for (int64_t first = 0; first < p->tiles; first += p->part * p->together) {
        const struct gemm gemm = product_of(problem, p, first);
        emit_tiles(p, &p->source, "winograd_sources", operands->inputs[0], scratch, 0, first, list);
        emit_tiles(
            p, &p->result, "winograd_result_gradients", operands->inputs[1], scratch, p->results_from, first, list);
        gemm_emit(&gemm_tiled, &gemm, scratch, scratch, scratch, NULL, NULL, list);
    }
    struct launch *launch =
        launch_add(list, "conv2d_winograd_gpu", "winograd_weight_gradient", "-DSIDE=%d", (int)p->side);
    ARGUMENTS_SET(launch, weight_gradient, .sums = scratch, .from = p->sums_from, .add = operands->add,
        .dw = operands->outputs[0], .C = p->source.channels, .padded = p->source.padded, .padded_k = p->result.padded,
        .parts = p->parts);
    set_grid(launch, list, p->source.channels, p->result.channels);
    const double kernels = (double)p->source.channels * (double)p->result.channels;
    set_work(launch, p, TAPS * kernels * (operands->add ? 2 : 1), (double)(p->points * p->parts) * kernels);
}

/* ----------------------------------------------------------------------------------------------------- tables ---- */

static void design(const struct problem *problem, int64_t m, struct plan *p)
{
    *p = plan_of(problem, m);
    const struct gemm gemm = product_of(problem, p, 0);
    p->product = gemm_design(&gemm_tiled, &gemm, problem->device);
}

#define WINOGRAD(M)                                                                                                   \
    static const char *fits_##M(const struct problem *problem)                                                        \
    {                                                                                                                 \
        return fits(problem, M);                                                                                      \
    }                                                                                                                 \
    static const char *passed_over_##M(const struct problem *problem)                                                 \
    {                                                                                                                 \
        return passed_over(problem, M);                                                                               \
    }                                                                                                                 \
    static void design_##M(const struct problem *problem, void *made)                                                 \
    {                                                                                                                 \
        design(problem, M, made);                                                                                     \
    }                                                                                                                 \
    const struct implementation conv2d_winograd_##M##x##M[CONV2D_PASSES] = { { IMAGE(M),                              \
                                                                                 .fusions = CONV2D_FORWARD_FUSIONS }, \
        { IMAGE(M), .fusions = FUSED(ADD) }, { COMMON(M), .fusions = FUSED(ADD), .emit = emit_weight_gradient } };
#define COMMON(M)                                                                    \
    .name = "winograd_" #M "x" #M, .fits = fits_##M, .passed_over = passed_over_##M, \
    .design_bytes = sizeof(struct plan), .design = design_##M, .workspace = workspace
#define IMAGE(M) COMMON(M), .prepared = prepared, .emit_prepare = emit_weights, .emit = emit_image

WINOGRAD(4)
WINOGRAD(2)
