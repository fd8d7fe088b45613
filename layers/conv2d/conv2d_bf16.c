/* conv2d, bf16: any kernel, stride, padding and dilation, by bf16 dot products, on CPU-class
 * devices whose processor has instructions for them (runtime/matrix.h). Kernels: layers/conv2d/conv2d_bf16_cpu.cl
 * (forward and data gradient), conv2d_bf16_pack_cpu.cl (their weights), conv2d_bf16_weight_gradient_cpu.cl. The forward
 * pass of bf16_image is here, too; conv2d_bf16_image.c has its weight gradient. */

#include "layers/conv2d/arguments/conv2d_bf16.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "layers/conv2d/conv2d_bf16.h"
#include "layers/conv2d/conv2d_cpu.h"
#include "layers/element.h"
#include "layers/epilogue.h"
#include "layers/remark.h"
#include "runtime/matrix.h"

enum {
    BLOCK = BF16_BLOCK,
    STEP = 32,       /* numbers that a tile sums up */
    IMAGE_PIXEL = 4, /* numbers */
    IMAGE_TAPS = 8,  /* of a row, which are a step */
    TILE_WORDS = 256,
    MOST_TAPS = 1024,
    MOST_CLASSES = 64,
    AT_ONCE_TAPS = 320, /* numbers of a lane that are packed at a time */
    UNIT_BYTES = 1 << 28,
    WEIGHTS_BLOCKS = 8,       /* of a task: of C and of K */
    WEIGHTS_POSITIONS = 1024, /* of a chunk; between chunks the sums are stored and loaded */
    WEIGHTS_BYTES = 900 << 10,
};

static enum bf16_form form_of(const struct problem *problem)
{
    return problem->device->bf16[problem->compute].form;
}

/* Whether the source is a first layer's image, which is read plain: layers/conv2d/conv2d_bf16_kernel.h, IMAGE. */
static bool is_image(const struct problem *problem)
{
    return !conv2d_is_data_gradient(problem) && conv2d_cpu_plain_image(conv2d_sizes_of(problem).c);
}

int bf16_copies(enum compute_type compute)
{
    const int parts = bf16_terms(compute);
    return parts + (parts > 1);
}

static int copies_of(const struct problem *problem)
{
    return bf16_copies(problem->compute);
}

/* ------------------------------------------------------------------------------------------------------------ grid */

/* One direction of the grid of positions, see layers/conv2d/conv2d_bf16_kernel.h. */
struct axis {
    int64_t source, grid;          /* pixels; positions with results */
    int64_t step, phases, start;   /* of the source */
    int64_t reach, shared;         /* positions that taps read after one; of zeros that also serve the next row */
    int64_t after;                 /* positions that are read, or written before zeros, after the last one */
    int64_t kernel, stride, whole; /* whole: positions of a row */
};

static int64_t clamped(int64_t value, int64_t most)
{
    return value < 0 ? 0 : value > most ? most : value;
}

/* Number of zeros that in every phase both end a row and begin one, so that rows can share them. */
static int64_t shared_zeros(const struct axis *a)
{
    int64_t shared = a->reach;
    const int64_t all = a->grid + a->reach;
    for (int64_t phase = 0; phase < a->phases; phase++) {
        const int64_t first = a->start + phase;
        const int64_t leading = clamped(conv2d_ceiling(-first, a->step), all),
                      trailing = all - clamped(conv2d_ceiling(a->source - first, a->step), all);
        if (leading < shared) shared = leading;
        if (trailing < shared) shared = trailing;
    }
    return shared;
}

static struct axis axis_of(
    bool gradient, int64_t source, int64_t result, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation)
{
    struct axis a = {
        .source = source, .grid = result, .step = stride, .start = -padding, .kernel = kernel, .stride = stride
    };
    if (gradient) { /* classes of pixels, each with positions of its own; class and tap read row + distance */
        a.grid = divide_up(result, stride);
        a.step = a.phases = 1;
        int64_t first = INT64_MAX, last = INT64_MIN;
        for (int64_t r = 0; r < kernel; r++) {
            const int64_t distance = conv2d_ceiling(padding - r * dilation, stride); /* of the tap's only class */
            if (distance < first) first = distance;
            if (distance > last) last = distance;
        }
        a.start = first;
        a.reach = last - first;
    } else {
        for (int64_t r = 0; r < kernel; r++)
            if (r * dilation % stride >= a.phases) a.phases = r * dilation % stride + 1;
        a.reach = (kernel - 1) * dilation / stride;
    }
    a.shared = shared_zeros(&a);
    a.whole = a.grid + a.reach - a.shared;
    a.after = a.reach;
    return a;
}

/* Columns of an image: a position is `stride` pixels. */
static struct axis image_columns(int64_t source, int64_t result, int64_t kernel, int64_t stride, int64_t padding)
{
    struct axis a = { .source = source,
        .grid = result,
        .step = stride,
        .phases = stride,
        .start = -padding,
        .kernel = kernel,
        .stride = stride,
        .reach = (kernel - 1) / stride };
    a.shared = shared_zeros(&a);
    a.whole = a.grid + a.reach - a.shared;
    a.after = divide_up(2 * divide_up(kernel, IMAGE_TAPS) * IMAGE_TAPS, stride);
    a.phases = 1;
    return a;
}

struct grid {
    struct axis h, w;
    int64_t phases, classes, taps, numbers; /* taps: steps of a position's sum; numbers: of a position in a plane */
};

static struct grid grid_of(const struct problem *problem, bool gradient)
{
    const struct conv2d_sizes z = conv2d_sizes_of(problem);
    struct grid g;
    if (gradient) {
        g.h = axis_of(true, z.oh, z.h, z.r, z.stride_h, z.padding_h, z.dilation_h);
        g.w = axis_of(true, z.ow, z.w, z.s, z.stride_w, z.padding_w, z.dilation_w);
    } else {
        g.h = axis_of(false, z.h, z.oh, z.r, z.stride_h, z.padding_h, z.dilation_h);
        g.w = is_image(problem) ? image_columns(z.w, z.ow, z.s, z.stride_w, z.padding_w)
                                : axis_of(false, z.w, z.ow, z.s, z.stride_w, z.padding_w, z.dilation_w);
    }
    g.phases = g.h.phases * g.w.phases;
    g.classes = gradient ? z.stride_h * z.stride_w : 1;
    g.taps = z.r * (is_image(problem) ? divide_up(z.s, IMAGE_TAPS) : z.s);
    g.numbers = is_image(problem) ? IMAGE_PIXEL * z.stride_w : STEP;
    return g;
}

/* Division of the images: a chunk is units_max bands of rows, each of which lies in rows x pitch positions. */
struct cut {
    int64_t per_image, band, rows, units, units_max;
    int64_t end; /* positions that are computed: a multiple of the unit of sums */
};

/* Sets division number `number`; false past the last one. First come numbers of whole images, from all down to one,
 * then bands of one image. */
static bool cut_by(const struct grid *g, int64_t images, int64_t number, int64_t multiple, struct cut *cut)
{
    if (number >= images + g->h.grid - 1) return false;
    cut->units_max = number < images ? images - number : 1;
    const int64_t bands = number < images ? 1 : number - images + 2;
    cut->band = divide_up(g->h.grid, bands);
    cut->per_image = divide_up(g->h.grid, cut->band);
    cut->rows = cut->per_image == 1 ? g->h.whole : cut->band + g->h.reach;
    cut->units = images * cut->per_image;
    cut->end = divide_up(cut->units_max * cut->rows * g->w.whole, multiple) * multiple;
    return true;
}

/* Positions of a phase, including those that taps read after the last one. */
static int64_t positions_of(const struct grid *g, const struct cut *cut)
{
    return cut->end + g->h.reach * g->w.whole + g->w.after;
}

#define CUT_VALUES(g, cut)                                                                                   \
    .per_image = (cut)->per_image, .band = (cut)->band, .grid_rows = (cut)->rows, .pitch = (g)->w.whole,     \
    .grid_height = (g)->h.grid, .grid_width = (g)->w.grid, .start_h = (g)->h.start, .start_w = (g)->w.start, \
    .units_all = (cut)->units, .units_max = (cut)->units_max

enum { MACROS = 400 };
/* The macros of layers/conv2d/conv2d_bf16_kernel.h. */
static const char *macros(
    const struct problem *problem, const struct grid *g, bool gradient, bool scratch_global, char text[MACROS])
{
    const struct conv2d_sizes z = conv2d_sizes_of(problem);
    text[0] = '\0';
    number_append(text, MACROS,
        "-DR=%d -DS=%d -DSTRIDE_H=%d -DSTRIDE_W=%d -DDILATION_H=%d -DDILATION_W=%d -DGRADIENT=%d -DPHASES_H=%d "
        "-DPHASES_W=%d -DPADDING_H=%d -DPADDING_W=%d -DPARTS=%d -DBF16_FORM=%d -DSCRATCH_GLOBAL=%d -DIMAGE=%d",
        (int)z.r, (int)z.s, (int)z.stride_h, (int)z.stride_w, (int)z.dilation_h, (int)z.dilation_w, gradient,
        (int)g->h.phases, (int)g->w.phases, gradient ? (int)z.padding_h : 0, gradient ? (int)z.padding_w : 0,
        bf16_terms(problem->compute), (int)form_of(problem), scratch_global, is_image(problem));
    return text;
}

/* --------------------------------------------------------------------------------------------------------- refusals */

static const char *any_fits(const struct problem *problem)
{
    const struct conv2d_sizes z = conv2d_sizes_of(problem);
    const bool gradient = conv2d_is_data_gradient(problem);
    const char *refusal = conv2d_cpu_refusal(problem);
    if (!refusal) refusal = bf16_refusal(problem->device, problem->compute);
    if (refusal) return refusal;
    if (problem->device->vector_width != BLOCK) return "the device's vectors do not have 16 floats";
    if (z.groups != 1 && (z.c_group % STEP || z.k_group % STEP)) return "the channels of a group do not fill tiles";
    if (z.r * z.s > MOST_TAPS) return "the kernel has more than 1024 taps";
    if (z.stride_h * z.stride_w > MOST_CLASSES) return "the stride is larger than 8";
    const struct grid g = grid_of(problem, gradient);
    const double row = (double)(g.w.grid + g.w.reach) * (double)(1 + g.h.reach) * (double)g.phases,
                 planes = (double)(z.c > z.k ? z.c : z.k) / STEP + 1;
    if (row * planes * 2 * STEP * copies_of(problem) > UNIT_BYTES) return "a row of pixels takes too much memory";
    return NULL;
}

static const char *fits(const struct problem *problem)
{
    return is_image(problem) ? "the image has so few channels that it keeps the plain layout" : any_fits(problem);
}

const char *conv2d_bf16_image_refusal(const struct problem *problem)
{
    if (!is_image(problem)) return "there are too many channels for an image in the plain layout";
    const struct conv2d_sizes z = conv2d_sizes_of(problem);
    if (z.dilation_h != 1 || z.dilation_w != 1) return "dilation is not 1";
    return any_fits(problem);
}

/* Products of bfloat16 parts that one product of numbers takes, by the number of parts. */
static const double products[] = { 0, 1, 3, 6 };

/* Speed relative to multiply-adds of floats, which take `floats` cycles. sums: cycles of the products in tiles, if
 * they were of floats. packing: cycles of packing. See docs/experiments/bf16_dots.md. */
static double gain_of(const struct problem *problem, double floats, double sums, double packing)
{
    const double rate = form_of(problem) == BF16_DOTS ? 1.57 : 6.5;
    return floats / (sums * products[bf16_terms(problem->compute)] / rate + packing);
}

/* Least gain with fp32, whose users did not ask for bf16: these figures are estimates. `tutti tune` measures. */
static const double LEAST_GAIN_OF_FP32 = 1.25;

/* NULL, or why this implementation is not chosen; `winograd`: the gain of what would be chosen otherwise. */
static const char *judge(const struct problem *problem, double gain, double winograd)
{
    if (gain < winograd) return "Winograd's algorithm saves more than bf16 dot products do";
    if (gain < (problem->compute == COMPUTE_FP32 ? LEAST_GAIN_OF_FP32 : 1))
        return "packing would take longer than bf16 dot products save";
    return NULL;
}

/* The fraction of the tiles' products that is not padding, of channels and of positions. */
static double part_used(const struct problem *problem)
{
    const struct conv2d_sizes z = conv2d_sizes_of(problem);
    const struct grid g = grid_of(problem, conv2d_is_data_gradient(problem));
    const int64_t lines = bf16_unit_lines(form_of(problem)),
                  sources = conv2d_is_data_gradient(problem) ? z.k_group : z.c_group,
                  results = conv2d_is_data_gradient(problem) ? z.c_group : z.k_group,
                  step = conv2d_is_weight_gradient(problem) ? lines : STEP;
    const double channels =
        (double)(sources * results) / (double)(divide_up(sources, step) * step * divide_up(results, lines) * lines);
    return channels * (double)(g.h.grid * g.w.grid) / (double)(g.h.whole * g.w.whole);
}

/* Gain of bf16 dot products, for one position and 32 sources: floats take a cycle for each result and tap. */
static double gain_of_bf16(const struct problem *problem)
{
    const struct conv2d_sizes z = conv2d_sizes_of(problem);
    const enum conv2d_pass pass = conv2d_pass_of(problem);
    const int64_t in_task = WEIGHTS_BLOCKS * BLOCK, k = z.k_group < in_task ? z.k_group : in_task;
    const int parts = bf16_terms(problem->compute);
    const int64_t results = pass == CONV2D_WEIGHT_GRADIENT ? k : pass == CONV2D_FORWARD ? z.k_group : z.c_group;
    const double floats = (double)(results * z.r * z.s),
                 packing = pass == CONV2D_WEIGHT_GRADIENT ? 12 + 13 * parts : 6 * parts;
    return part_used(problem) * gain_of(problem, floats, floats, packing);
}

/* Speed of Winograd's algorithm, with its transforms, relative to multiply-adds of floats. */
static double gain_of_winograd(const struct problem *problem)
{
    const struct conv2d_sizes z = conv2d_sizes_of(problem);
    if (conv2d_winograd[conv2d_pass_of(problem)].fits(problem)) return 0; /* refused */
    return z.stride_h == 1 ? 2.5 : 1.45;
}

static const char *passed_over(const struct problem *problem)
{
    const enum conv2d_pass pass = conv2d_pass_of(problem);
    const bool dots = form_of(problem) == BF16_DOTS;
    if (dots && !conv2d_pointwise[pass].fits(problem))
        return "pointwise computes bf16 dot products without packing the image";
    if (dots && pass == CONV2D_WEIGHT_GRADIENT) return "dot products save less than packing the images takes";
    return judge(problem, gain_of_bf16(problem), gain_of_winograd(problem));
}

/* Speed of winograd_rows relative to multiply-adds of floats. */
static const double GAIN_OF_WINOGRAD_ROWS = 1.7;

const char *conv2d_bf16_image_passed_over(const struct problem *problem, double floats, double sums, double packing)
{
    const bool other = !conv2d_winograd_rows[conv2d_pass_of(problem)].fits(problem);
    return judge(problem, gain_of(problem, floats, sums, packing), other ? GAIN_OF_WINOGRAD_ROWS : 0);
}

static const char *image_passed_over(const struct problem *problem)
{
    const struct conv2d_sizes z = conv2d_sizes_of(problem);
    const struct grid g = grid_of(problem, false);
    const int64_t lines = bf16_unit_lines(form_of(problem));
    const double floats = (double)(z.c * z.r * z.s * divide_up(z.k, BLOCK) * BLOCK) / STEP,
                 sums = (double)(divide_up(z.k, lines) * lines * g.taps),
                 packing = 3.0 * bf16_terms(problem->compute) * (double)(g.phases * z.stride_w);
    return conv2d_bf16_image_passed_over(problem, floats, sums, packing);
}

void conv2d_bf16_image_layouts(const struct problem *problem, enum value_layout *inputs, enum value_layout *outputs)
{
    conv2d_cpu_layouts(problem, inputs, outputs);
    inputs[0] = LAYOUT_PLAIN;
}

void conv2d_bf16_remark(const struct problem *problem, struct text *text)
{
    remark_bf16(form_of(problem), bf16_terms(problem->compute), text);
}

/* ----------------------------------------------------------------------------------------- forward, data gradient */

struct product {
    struct grid grid;
    struct cut cut;
    struct conv2d_channels channels;
    int64_t steps, planes; /* of 32 sources: of a group, of all */
    int64_t columns, panels, panels_group, panels_max;
    int64_t positions, chunks, tasks;
    struct conv2d_scratch scratch;
};

/* Bytes of a task: where results go, a unit of sums, and the pixels. */
static double scratch_bytes(const struct problem *problem, const struct product *p)
{
    const double pixels = (double)(copies_of(problem) * p->planes * p->grid.phases) * (double)p->positions,
                 numbers = (double)p->grid.numbers;
    return (double)(p->grid.classes * p->cut.end) * sizeof(int64_t) +
        (double)(p->columns * p->columns) * sizeof(float) + pixels * numbers * sizeof(uint16_t);
}

/* Cycles of a task, roughly: its pixels are packed, its weights are read from beyond the caches, products, results. */
static double task_cycles(const struct problem *problem, const struct product *p)
{
    const double taps = (double)p->grid.taps, tiles = (double)(p->cut.end / p->columns);
    const double product = form_of(problem) == BF16_DOTS ? 280 : 90;
    const double packing = 6.0 * bf16_terms(problem->compute) * (double)(p->planes * p->grid.phases * p->positions);
    const double panel = taps * (double)p->steps * products[bf16_terms(problem->compute)] * tiles * product +
        10.0 * tiles * (double)(p->grid.classes * p->columns * p->columns / BLOCK);
    const double reading = taps * (double)(p->steps * p->columns * STEP * 2 * copies_of(problem)) / 8;
    return 5000 + packing + (double)p->panels_max * (panel + reading);
}

static void choose_product(const struct problem *problem, struct product *p)
{
    const int64_t images = conv2d_sizes_of(problem).n, units = problem->device->units;
    struct product best = *p;
    double best_cost = 0;
    for (int64_t i = 0; cut_by(&p->grid, images, i, p->columns, &p->cut); i++) {
        p->positions = positions_of(&p->grid, &p->cut);
        p->chunks = divide_up(p->cut.units, p->cut.units_max);
        const double fill = scratch_bytes(problem, p) / CONV2D_SCRATCH_BYTES, dearer = fill > 1 ? 2 + 2 * fill : 1;
        for (int64_t ranges = 1; ranges <= p->panels; ranges++) {
            p->panels_max = divide_up(p->panels, ranges);
            const int64_t tasks = p->chunks * divide_up(p->panels, p->panels_max);
            const double cost = (double)divide_up(tasks, units) * task_cycles(problem, p) * dearer;
            if (best_cost != 0 && cost >= best_cost) continue;
            best_cost = cost;
            best = *p;
        }
    }
    *p = best;
}

static void design_product(const struct problem *problem, void *design)
{
    const bool gradient = conv2d_is_data_gradient(problem);
    const struct conv2d_sizes z = conv2d_sizes_of(problem);
    struct product p = { .grid = grid_of(problem, gradient), .channels = conv2d_channels_of(problem, gradient) };
    p.steps = divide_up(gradient ? z.k_group : z.c_group, STEP);
    p.planes = p.steps * z.groups;
    p.columns = bf16_unit_lines(form_of(problem));
    p.panels_group = divide_up(gradient ? z.c_group : z.k_group, p.columns);
    p.panels = p.panels_group * z.groups;
    choose_product(problem, &p);
    p.scratch = conv2d_scratch_of(problem, (size_t)scratch_bytes(problem, &p));
    p.tasks = conv2d_scratch_tasks(problem, &p.scratch, p.chunks);
    *(struct product *)design = p;
}

static size_t product_workspace(const struct problem *problem)
{
    const struct product *p = problem->design;
    return conv2d_scratch_workspace(&p->scratch, p->tasks * divide_up(p->panels, p->panels_max));
}

static size_t product_prepared(const struct problem *problem)
{
    const struct product *p = problem->design;
    const int64_t flags = divide_up(p->panels * p->steps, BLOCK) * BLOCK, bias = p->panels * p->columns,
                  copy = p->panels * p->steps * p->grid.taps * (p->columns / BLOCK) * TILE_WORDS;
    return (size_t)(flags + bias + copies_of(problem) * copy) * sizeof(uint32_t);
}

static int64_t statistics_parts(const struct problem *problem)
{
    const struct product *p = problem->design;
    return conv2d_cpu_statistics(problem) ? p->chunks : 0;
}

/* Sources that are packed at a time: an even number that divides a step. */
static int64_t sources_at_once(int64_t taps)
{
    int64_t count = STEP;
    while (count > 2 && count * taps > AT_ONCE_TAPS) count /= 2;
    return count;
}

ARGUMENTS(bf16_pack, CONV2D_BF16_PACK_ARGUMENTS)
ARGUMENTS(bf16, CONV2D_BF16_ARGUMENTS)

static void emit_prepare(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct product *p = problem->design;
    const struct conv2d_sizes z = conv2d_sizes_of(problem);
    const bool gradient = conv2d_is_data_gradient(problem);
    cl_mem bias = gradient ? NULL : operands->inputs[2];
    struct launch *launch = launch_add(list, "conv2d_bf16_pack_cpu", "conv2d_bf16_pack",
        "-DTAPS=%d -DS=%d -DIMAGE=%d -DAT_ONCE=%d -DGRADIENT=%d -DHAS_BIAS=%d -DPARTS=%d -DBF16_FORM=%d",
        (int)p->grid.taps, (int)z.s, is_image(problem), (int)sources_at_once(p->grid.taps), gradient, bias != NULL,
        bf16_terms(problem->compute), (int)form_of(problem));
    ARGUMENTS_SET(launch, bf16_pack, .w = operands->inputs[1], .bias = conv2d_or(bias, operands->inputs[1]),
        .packed = operands->prepared, .sources = gradient ? z.k_group : z.c_group,
        .results = gradient ? z.c_group : z.k_group, .steps = p->steps, .panels = p->panels,
        .panels_group = p->panels_group);
    launch_tasks(launch, (size_t)p->steps, (size_t)p->panels, 1);
    launch_work(launch, 0, (4.0 + 2.0 * copies_of(problem)) * (double)(z.k * z.c_group * z.r * z.s));
}

static void emit_product(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct product *p = problem->design;
    const struct conv2d_sizes z = conv2d_sizes_of(problem);
    const bool gradient = conv2d_is_data_gradient(problem);
    const int64_t height = gradient ? z.h : z.oh, width = gradient ? z.w : z.ow;
    const double bytes = (double)(z.n * p->channels.results) * (double)(height * width) *
        (double)value_type_bytes(problem->outputs[0]->type);
    char shape[MACROS], epilogue[EPILOGUE_OPTIONS], results[RESULT_OPTIONS], elements[ELEMENT_OPTIONS];
    struct launch *launch = launch_add(list, "conv2d_bf16_cpu", "conv2d_bf16", "%s -DSTREAM=%d %s %s%s",
        macros(problem, &p->grid, gradient, p->scratch.global, shape), conv2d_streams(problem, operands, bytes),
        result_options(problem->node, results, sizeof results),
        epilogue_options(problem->node, epilogue, sizeof epilogue),
        element_options(problem, elements, sizeof elements));
    ARGUMENTS_SET(launch, bf16, .source = operands->inputs[0], .packed = operands->prepared,
        .add = conv2d_or(operands->add, operands->outputs[0]), .result = operands->outputs[0],
        .source_blocks = is_image(problem) ? z.c : p->channels.source_blocks, .source_height = p->grid.h.source,
        .source_width = p->grid.w.source, .result_blocks = p->channels.result_blocks, .result_height = height,
        .result_width = width, CUT_VALUES(&p->grid, &p->cut), .positions = p->positions, .steps = p->steps,
        .panels = p->panels, .panels_group = p->panels_group, .panels_max = p->panels_max,
        SCRATCH_VALUES(&p->scratch, operands));
    result_arguments(launch, problem, operands);
    launch_tasks(launch, (size_t)p->tasks, (size_t)divide_up(p->panels, p->panels_max), 1);
    launch_work(launch, conv2d_flops(problem), conv2d_bytes(problem));
}

/* ------------------------------------------------------------------------------------------------ weight gradient */

int64_t conv2d_bf16_chain(const struct problem *problem, int64_t tiles)
{
    const int64_t chain = bf16_chain(problem->compute, form_of(problem));
    return tiles > chain ? chain : 0;
}

struct weights {
    struct grid grid;
    struct cut cut;
    int64_t c_blocks, k_blocks, c_blocks_max, k_blocks_max; /* of 16 channels: of a group, of a task */
    int64_t c_tasks, k_tasks, splits, units_split;
    int64_t positions, row, tasks;
    int64_t chain; /* tiles; 0: a part is one chain of additions */
    struct conv2d_parts parts;
    struct conv2d_scratch scratch;
};

static double weights_bytes(const struct problem *problem, const struct weights *w)
{
    return (double)(copies_of(problem) * sizeof(uint16_t) * BLOCK) *
        ((double)w->c_blocks_max * (double)w->row + (double)w->k_blocks_max * (double)w->cut.end) +
        (double)(sizeof(float) * BLOCK) * (double)w->positions;
}

/* Chooses the first division with few enough positions and bytes, or the last one. */
static void choose_chunk(const struct problem *problem, struct weights *w)
{
    struct cut cut;
    const int64_t images = conv2d_sizes_of(problem).n;
    for (int64_t i = 0; cut_by(&w->grid, images, i, STEP, &cut); i++) {
        w->cut = cut;
        w->positions = divide_up(positions_of(&w->grid, &cut), STEP) * STEP;
        w->row = w->grid.phases * w->positions;
        if (w->row / STEP % 2 == 0) w->row += STEP; /* keeps the rows of a tile out of one cache set */
        if (cut.end <= WEIGHTS_POSITIONS && weights_bytes(problem, w) <= WEIGHTS_BYTES) break;
    }
}

static int64_t even_share(int64_t all, int64_t most, int64_t multiple)
{
    return divide_up(divide_up(all, divide_up(all, most)), multiple) * multiple;
}

/* Returns the floats of all parts, with the sums and errors of their chains. */
static int64_t parts_floats(const struct weights *w)
{
    return (w->chain ? 3 : 1) * w->parts.count * w->parts.blocks * w->parts.length * BLOCK;
}

static void design_weight_gradient(const struct problem *problem, void *design)
{
    const struct conv2d_sizes z = conv2d_sizes_of(problem);
    struct weights w = { .grid = grid_of(problem, false) };
    const int64_t in_unit = bf16_unit_lines(form_of(problem)) / BLOCK;
    w.c_blocks = divide_up(z.c_group, BLOCK);
    w.k_blocks = divide_up(z.k_group, BLOCK);
    w.c_blocks_max = even_share(w.c_blocks, WEIGHTS_BLOCKS, in_unit);
    w.k_blocks_max = even_share(w.k_blocks, WEIGHTS_BLOCKS, in_unit);
    w.c_tasks = divide_up(w.c_blocks, w.c_blocks_max);
    w.k_tasks = divide_up(w.k_blocks, w.k_blocks_max) * z.groups;
    choose_chunk(problem, &w);
    const int64_t chunks = divide_up(w.cut.units, w.cut.units_max),
                  wanted = divide_up(conv2d_tasks_wanted(problem, conv2d_flops(problem)), w.c_tasks * w.k_tasks);
    w.units_split = divide_up(chunks, wanted < chunks ? wanted : chunks) * w.cut.units_max;
    w.splits = divide_up(w.cut.units, w.units_split);
    w.chain = conv2d_bf16_chain(problem, divide_up(w.units_split, w.cut.units_max) * w.cut.end / STEP);
    w.scratch = conv2d_scratch_of(problem, (size_t)weights_bytes(problem, &w));
    w.tasks = conv2d_scratch_tasks(problem, &w.scratch, w.c_tasks * w.k_tasks * w.splits);
    w.parts = (struct conv2d_parts) { .count = w.splits,
        .blocks = divide_up(w.k_blocks * z.groups, in_unit) * in_unit,
        .length = divide_up(w.c_blocks, in_unit) * in_unit * BLOCK * z.r * z.s,
        .offset = conv2d_scratch_workspace(&w.scratch, w.tasks) / sizeof(float) };
    /* Without room for their sums and errors, parts are chains. */
    if ((size_t)parts_floats(&w) * sizeof(float) > problem->device->allocation_max / 4) w.chain = 0;
    *(struct weights *)design = w;
}

static size_t weight_gradient_workspace(const struct problem *problem)
{
    const struct weights *w = problem->design;
    return (w->parts.offset + (size_t)parts_floats(w)) * sizeof(float);
}

ARGUMENTS(bf16_weights, CONV2D_BF16_WEIGHTS_ARGUMENTS)

static void emit_weight_gradient(
    const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct weights *w = problem->design;
    const struct conv2d_sizes z = conv2d_sizes_of(problem);
    char shape[MACROS], elements[ELEMENT_OPTIONS];
    struct launch *launch = launch_add(list, "conv2d_bf16_weight_gradient_cpu", "conv2d_bf16_weight_gradient",
        "%s -DCHAIN=%d%s", macros(problem, &w->grid, false, w->scratch.global, shape), (int)w->chain,
        element_options(problem, elements, sizeof elements));
    ARGUMENTS_SET(launch, bf16_weights, .x = operands->inputs[0], .dy = operands->inputs[1],
        .workspace = operands->workspace, .offset = (int64_t)w->parts.offset, .CB = divide_up(z.c, BLOCK),
        .KB = divide_up(z.k, BLOCK), .c_blocks_group = w->c_blocks, .k_blocks_group = w->k_blocks, .height = z.h,
        .width = z.w, CUT_VALUES(&w->grid, &w->cut), .positions = w->positions, .row = w->row,
        .units_split = w->units_split, .c_blocks_max = w->c_blocks_max, .k_blocks_max = w->k_blocks_max,
        .part_rows = w->parts.length / (z.r * z.s), .part_blocks = w->parts.blocks, .c_tasks = w->c_tasks,
        .k_tasks = w->k_tasks, .splits = w->splits, SCRATCH_VALUES(&w->scratch, operands));
    launch_tasks(launch, (size_t)w->tasks, 1, 1);
    launch_work(launch, conv2d_flops(problem), conv2d_bytes(problem));
    conv2d_parts_emit_padded(problem, operands, list, &w->parts);
}

#define COMMON .remark = conv2d_bf16_remark
#define BLOCKED COMMON, .name = "bf16", .fits = fits, .passed_over = passed_over, .layouts = conv2d_cpu_layouts
#define PRODUCT                                                                                                    \
    .cannot_fuse = conv2d_cpu_cannot_fuse, .statistics = statistics_parts, .design_bytes = sizeof(struct product), \
    .design = design_product, .workspace = product_workspace, .prepared = product_prepared,                        \
    .emit_prepare = emit_prepare, .emit = emit_product, .bf16_outputs = 1 << 0

const struct implementation conv2d_bf16[CONV2D_PASSES] = {
    { BLOCKED, PRODUCT, .fusions = CONV2D_CPU_FORWARD, .bf16_inputs = 1 << 0 },
    { BLOCKED, PRODUCT, .fusions = CONV2D_CPU_DATA_GRADIENT, .in_place = conv2d_mask_in_place, .bf16_inputs = 1 << 0 },
    { BLOCKED, .fusions = CONV2D_CPU_WEIGHT_GRADIENT, .design_bytes = sizeof(struct weights),
        .design = design_weight_gradient, .workspace = weight_gradient_workspace, .emit = emit_weight_gradient,
        .bf16_inputs = 1 << 0 | 1 << 1 },
};

const struct implementation conv2d_bf16_image = { COMMON, PRODUCT, .name = "bf16_image",
    .fits = conv2d_bf16_image_refusal, .passed_over = image_passed_over, .layouts = conv2d_bf16_image_layouts,
    .fusions = CONV2D_CPU_FORWARD };
