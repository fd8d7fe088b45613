/* Tiles of conv2d by Winograd on CPU-class devices, and the preparations of conv2d_winograd.c and
 * conv2d_winograd_weight_gradient.c. Kernels: layers/conv2d/conv2d_winograd_prepare_cpu.cl. */
#include "base/memory.h"
#include "layers/conv2d/arguments/conv2d_winograd_prepare_cpu.h"
#include "layers/conv2d/conv2d_winograd.h"

/* TILE: side of a tile of a forward pass's results. TRANSFORM_PRODUCTS: products that cost as much as transforming a
 * kernel's weights. */
enum { TILE = 4, TRANSFORM_PRODUCTS = 1000 };

/* Numbers of a transformed kernel. */
static int64_t kernel_numbers_of(const struct conv2d_sizes *z)
{
    return (TILE + z->r - 1) * (TILE + z->s - 1);
}

/* Numbers of a transformed tile. With stride 2 (winograd_stride2.h) the last one of a kernel's line serves TILE of
 * these. */
static int64_t numbers_of(const struct conv2d_sizes *z)
{
    int64_t more = z->stride_h == 2 ? TILE - 1 : 0;
    return (TILE + z->r - 1 + more) * (TILE + z->s - 1 + more);
}

/* FLOPs of the products, by their number for a tile: a direct sum has TILE^2 R^2. */
double winograd_flops(const struct problem *problem)
{
    struct conv2d_sizes z = conv2d_sizes_of(problem);
    return conv2d_flops(problem) * (double)numbers_of(&z) / (double)(TILE * TILE * z.r * z.s);
}

const char *conv2d_winograd_refusal(const struct problem *problem)
{
    const struct conv2d_sizes z = conv2d_sizes_of(problem);
    if (problem->exact) return "it rounds about ten times more than a plain sum, which --exact forbids";
    if (z.dilation_h != 1 || z.dilation_w != 1) return "dilation is not 1";
    if (z.padding_h >= z.r || z.padding_w >= z.r) return "padding is not smaller than the kernel";
    return NULL;
}

const char *winograd_fits(const struct problem *problem)
{
    struct conv2d_sizes z = conv2d_sizes_of(problem);
    if (z.r != z.s || (z.r != 3 && z.r != 5)) return "the kernel is neither 3x3 nor 5x5";
    const char *refusal = conv2d_winograd_refusal(problem);
    if (refusal) return refusal;
    if (z.stride_h != z.stride_w || z.stride_h > 2) return "stride is neither 1 nor 2";
    if (z.stride_h == 2 && (z.r != 3 || z.padding_h != 1 || z.padding_w != 1))
        return "stride is 2, but the kernel is not 3x3 with padding 1";
    refusal = conv2d_groups_refusal(problem);
    if (refusal) return refusal;
    const struct conv2d_groups groups = conv2d_groups_of(problem, false);
    if (groups.sources < 16 || groups.results < 16)
        return "there are fewer than 16 channels: its transforms would cost more than they save";
    int64_t rows = divide_up(z.oh, TILE), columns = divide_up(z.ow, TILE), numbers = numbers_of(&z);
    int64_t kernel_numbers = kernel_numbers_of(&z);
    if (rows * TILE * columns * TILE > 3 * z.oh * z.ow)
        return "the output is so small that most of its tiles would be empty";
    const double weights =
        (double)kernel_numbers * (double)groups.sources * (double)groups.results * (double)sizeof(float);
    if (groups.count > 1 && weights > WINOGRAD_KEPT_BYTES) return "the groups are too wide for the kernels of several";
    if (weights * (double)groups.count > WINOGRAD_KEPT_BYTES &&
        (double)(numbers * z.n * rows * columns) + TRANSFORM_PRODUCTS >
            (double)(z.r * z.s) * (double)(z.n * z.oh * z.ow))
        return "there are so few tiles that transforming the weights would cost more than it saves";
    return conv2d_cpu_refusal(problem);
}

struct winograd_tiles winograd_tiles_of(const struct problem *problem, bool gradient)
{
    struct conv2d_sizes z = conv2d_sizes_of(problem);
    struct winograd_tiles p = { .taps = z.r, .stride = z.stride_h };
    p.numbers = numbers_of(&z);
    p.kernel_numbers = kernel_numbers_of(&z);
    p.side = gradient ? TILE * z.stride_h : TILE;
    p.source_h = gradient ? z.oh : z.h;
    p.source_w = gradient ? z.ow : z.w;
    p.result_h = gradient ? z.h : z.oh;
    p.result_w = gradient ? z.w : z.ow;
    p.padding_h = gradient ? z.r - z.stride_h - z.padding_h : z.padding_h;
    p.padding_w = gradient ? z.s - z.stride_w - z.padding_w : z.padding_w;
    p.rows = divide_up(p.result_h, p.side);
    p.columns = divide_up(p.result_w, p.side);
    p.count = z.n * p.rows * p.columns;
    return p;
}

struct launch *winograd_add_preparation(struct launch_list *list, const struct winograd_tiles *tiles, int64_t vectors,
    const char *kernel, bool gradient, bool bias, const struct conv2d_groups *groups)
{
    return launch_add(list, "conv2d_winograd_prepare_cpu", kernel,
        "-DR=%d -DSTRIDE=%d -DGRADIENT=%d -DNV=%d -DHAS_BIAS=%d %s", (int)tiles->taps, (int)tiles->stride, gradient,
        (int)vectors, bias, conv2d_halves_option(groups));
}

ARGUMENTS(input, WINOGRAD_INPUT_ARGUMENTS)

void winograd_emit_sources(const struct operands *operands, struct launch_list *list,
    const struct winograd_tiles *tiles, int64_t vectors, const struct winograd_sources *sources)
{
    struct launch *launch =
        winograd_add_preparation(list, tiles, vectors, "winograd_input", tiles->side > TILE, false, NULL);
    ARGUMENTS_SET(launch, input, .source = operands->inputs[0], .workspace = operands->workspace,
        .offset = (int64_t)sources->from, .source_blocks = sources->blocks, WINOGRAD_TILES_VALUES(tiles),
        .slice = sources->slice);
    launch_tasks(launch, (size_t)sources->blocks, (size_t)tiles->chunks, 1);
    launch_work(launch, 0, 4.0 * (double)sources->floats * (1 + (double)(TILE * TILE) / (double)tiles->numbers));
}
