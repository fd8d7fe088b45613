/* conv2d on GPU-class devices by implicit matrix products: in the plain layout, for any convolution, by multiply-adds
 * or matrix instructions; and with channels last by matrix instructions, where pass_select() has found that this
 * pays. There a tile's rows are pixels and its columns channels; in the plain layout it is the other way round. */
#include "layers/conv2d/arguments/conv2d_implicit_gemm.h"
#include "base/memory.h"
#include "layers/conv2d/arguments/conv2d_channels_last.h"
#include "layers/conv2d/arguments/conv2d_channels_last_weight_gradient.h"
#include "layers/conv2d/arguments/conv2d_implicit_gemm_weight_gradient.h"
#include "layers/conv2d/arguments/conv2d_pack_gpu.h"
#include "layers/conv2d/conv2d.h"
#include "layers/epilogue.h"
#include "runtime/gemm.h"
#include "runtime/tile.h"

/* Channels last. LOCAL_BYTES: local memory, more than any tile takes. FEW_CHANNELS: with fewer channels the source of
 * a forward pass is an image, read in the plain layout. */
enum { LOCAL_BYTES = 16 << 10, FEW_CHANNELS = 16, PACK_GROUP = 128 };

/* The forward pass and the data gradient alike: from source to result. */
struct image {
    struct conv2d_sizes z;
    int64_t cs, cr;          /* channels of a group */
    int64_t sh, sw, rh, rw;  /* source and result */
    int64_t classes, pixels; /* of a gradient's pixels; pixels of the largest class, whole batch */
    enum matrix_form form;
    bool last; /* channels are */
    struct tile tile;
    int64_t pixel_tiles, channel_tiles;
    bool flat;        /* the taps are part of the steps */
    int64_t csp, crp; /* steps of a tap (flat: of all) and channels of a group in the packed weights */
};

/* The weight gradient: few results and a long sum, in `splits` parts. */
struct weights {
    struct conv2d_sizes z;
    int64_t columns; /* channels of a group times taps */
    int64_t splits, pixels_of_split;
    enum matrix_form form;
    bool last;
    struct tile tile;
};

static enum matrix_form form_of(const struct problem *problem)
{
    return problem->device->matrix[problem->compute].form;
}

static bool reads_image(const struct conv2d_sizes *z)
{
    return z->c % CHANNELS_LAST_MULTIPLE && z->c < FEW_CHANNELS;
}

/* Lists the tiles that a product may be made of, from large to small. */
static int list_tiles(const struct problem *problem, enum matrix_form form, const struct tile *list[TILES])
{
    const struct capabilities *can = problem->device;
    const int all = tile_list(form, problem->compute, list), most = form ? all : TILES_SQUARE;
    int count = 0;
    for (int i = 0; i < most; i++)
        if (tile_fits(list[i], 1, can)) list[count++] = list[i];
    return count;
}

/* Returns the largest tile that leaves no unit idle, and at most half of its rows, in `others` such products. */
static struct tile choose_tile(
    const struct problem *problem, enum matrix_form form, int64_t rows, int64_t columns, int64_t others)
{
    const struct tile *list[TILES];
    const int count = list_tiles(problem, form, list);
    for (int i = 0; i < count - 1; i++) {
        const struct tile *tile = list[i];
        int64_t groups = divide_up(rows, tile->bm) * divide_up(columns, tile->bn) * others;
        bool wide = rows > tile->bm / 2 && columns > tile->bn / 2;
        if (wide && groups >= 2 * problem->device->units) return *tile;
    }
    for (int i = 0; i < count; i++) /* too little work for all units: small tiles, no wasted rows */
        if (list[i]->bm <= 64 && list[i]->bn <= 64 && rows > list[i]->bm / 2) return *list[i];
    return *list[count - 1];
}

static struct tile smallest(const struct problem *problem, enum matrix_form form)
{
    const struct tile *list[TILES];
    return *list[list_tiles(problem, form, list) - 1];
}

/* ------------------------------------------------------------------------------- forward and data gradient ---- */

static struct image image_sizes(const struct problem *problem)
{
    struct image m = { .z = conv2d_sizes_of(problem), .classes = 1 };
    const struct conv2d_sizes *z = &m.z;
    if (conv2d_is_data_gradient(problem)) {
        m.cs = z->k_group, m.cr = z->c_group, m.sh = z->oh, m.sw = z->ow, m.rh = z->h, m.rw = z->w;
        m.classes = z->stride_h * z->stride_w;
        m.pixels = z->n * divide_up(z->h, z->stride_h) * divide_up(z->w, z->stride_w);
    } else {
        m.cs = z->c_group, m.cr = z->k_group, m.sh = z->h, m.sw = z->w, m.rh = z->oh, m.rw = z->ow;
        m.pixels = z->n * z->oh * z->ow;
    }
    return m;
}

/* The sum is flat, over channels and taps, with few source channels; with channels last, only for a plain image. */
static struct image image_of(const struct problem *problem, enum matrix_form form, bool last)
{
    struct image m = image_sizes(problem);
    m.form = form;
    m.last = last;
    const int64_t others = m.z.groups * m.classes;
    const bool gradient = conv2d_is_data_gradient(problem);
    m.tile = choose_tile(problem, form, last ? m.pixels : m.cr, last ? m.cr : m.pixels, others);
    const int64_t pixels = last ? m.tile.bm : m.tile.bn, channels = last ? m.tile.bn : m.tile.bm;
    m.pixel_tiles = divide_up(m.pixels, pixels);
    m.channel_tiles = divide_up(m.cr, channels);
    m.flat = !gradient && (last ? m.cs % CHANNELS_LAST_MULTIPLE != 0 : m.cs < m.tile.bk);
    m.csp = divide_up(m.flat ? m.cs * m.z.r * m.z.s : m.cs, m.tile.bk) * m.tile.bk;
    m.crp = m.channel_tiles * channels;
    return m;
}

static int64_t packed_count(const struct image *m)
{
    return m->z.groups * (m->flat ? 1 : m->z.r * m->z.s) * m->csp * m->crp;
}

/* Packed weights are floats. With channels last and other types than TF32, they take half as many bytes. */
static size_t image_prepared(const struct problem *problem)
{
    const struct image *m = problem->design;
    return (size_t)packed_count(m) * (m->last && problem->compute != COMPUTE_TF32 ? 2 : 4);
}

/* Each tile of pixels is a part. This saves one reading of the tensor, and a launch. It costs 6 floats written and
 * read per channel and part, which has at least 32 pixels where there are so many. So it always pays. */
static int64_t statistics_parts(const struct problem *problem)
{
    const struct image *m = problem->design;
    if (conv2d_is_data_gradient(problem) || node_fusions(problem->node) & (FUSED(ADD) | FUSED(ACTIVATION))) return 0;
    return m->pixel_tiles;
}

/* Whether each pixel of the result corresponds to one of the source, and four successive ones lie in one image. */
static bool is_pointwise(const struct conv2d_sizes *z)
{
    return z->r == 1 && z->s == 1 && z->stride_h == 1 && z->stride_w == 1 && z->padding_h == 0 && z->padding_w == 0 &&
        z->h == z->oh && z->w == z->ow && z->h * z->w % 4 == 0;
}

/* With channels last, both kernels of a node come from one program. */
static struct launch *add(
    const struct problem *problem, const struct image *m, struct launch_list *list, const char *kernel)
{
    char activation[EPILOGUE_OPTIONS];
    return launch_add(list, m->last ? "conv2d_channels_last" : "conv2d_implicit_gemm", kernel,
        TILE_OPTIONS " -DGRADIENT=%d -DFLAT=%d -DFLAT_CHANNELS=%d -DFLAT_WIDTH=%d -DPOINT=%d -DSTATISTICS=%d %s",
        TILE_VALUES(&m->tile, m->form, problem->compute), conv2d_is_data_gradient(problem), m->flat,
        m->flat ? (int)m->cs : 1, m->flat ? (int)m->z.s : 1, !m->last && !m->flat && is_pointwise(&m->z),
        gives_statistics(problem->node),
        activation_options(node_function(problem->node, FUSION_ACTIVATION), activation, sizeof activation));
}

ARGUMENTS(pack, PACK_ARGUMENTS)
ARGUMENTS(pack_last, PACK_LAST_ARGUMENTS)
#define PACK_VALUES(m, given, numbers)                                                                     \
    .w = (given)->inputs[1], .packed = (given)->prepared, .count = (numbers), .taps = (m)->z.r * (m)->z.s, \
    .CS = (m)->cs, .CR = (m)->cr, .CSP = (m)->csp, .CRP = (m)->crp

static void emit_pack(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct image *m = problem->design;
    const int64_t count = packed_count(m);
    const size_t most = problem->device->group_max, group = most < PACK_GROUP ? most : PACK_GROUP;
    struct launch *launch =
        m->last ? add(problem, m, list, "pack") : launch_add(list, "conv2d_pack_gpu", "pack", "%s", "");
    if (m->last)
        ARGUMENTS_SET(launch, pack_last, PACK_VALUES(m, operands, count));
    else
        ARGUMENTS_SET(launch, pack, PACK_VALUES(m, operands, count), .gradient = conv2d_is_data_gradient(problem),
            .flat = m->flat);
    launch_grid(launch, 1, size_round_up((size_t)count, group), 1, 1, group, 1, 1);
    launch_work(launch, 0, 4.0 * (double)count + (double)image_prepared(problem));
}

ARGUMENTS(image, IMAGE_ARGUMENTS)
ARGUMENTS(image_last, IMAGE_LAST_ARGUMENTS)
#define IMAGE_VALUES(m, given)                                                                                      \
    .source = (given)->inputs[0], .weights = (given)->prepared, .add = (given)->add, .result = (given)->outputs[0], \
    .N = (m)->z.n, .CS = (m)->cs, .CR = (m)->cr, .CSP = (m)->csp, .CRP = (m)->crp, .SH = (m)->sh, .SW = (m)->sw,    \
    .RH = (m)->rh, .RW = (m)->rw, .R = (m)->z.r, .S = (m)->z.s, WINDOW_VALUES(&(m)->z)

static void emit_image(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct image *m = problem->design;
    const struct conv2d_sizes *z = &m->z;
    const cl_mem bias = conv2d_is_data_gradient(problem) ? NULL : operands->inputs[2];
    struct launch *launch = add(problem, m, list, "image");
    if (m->last)
        ARGUMENTS_SET(launch, image_last, IMAGE_VALUES(m, operands), .bias = bias);
    else
        ARGUMENTS_SET(launch, image, IMAGE_VALUES(m, operands), .bias = bias, .groups = z->groups);
    statistics_arguments(launch, problem, operands);
    const size_t group = (size_t)tile_items(&m->tile);
    launch_grid(launch, 3, (size_t)m->pixel_tiles * group, (size_t)m->channel_tiles, (size_t)(z->groups * m->classes),
        group, 1, 1);
    launch_work(launch, conv2d_flops(problem), conv2d_bytes(problem));
}

/* ----------------------------------------------------------------------------------------- weight gradient ---- */

/* Divides the sum into as many parts as keep the units busy, each worth its own pass over the partial sums. */
static struct weights weight_gradient_of(const struct problem *problem, enum matrix_form form, bool last)
{
    struct weights m = { .z = conv2d_sizes_of(problem), .form = form, .last = last };
    const struct conv2d_sizes *z = &m.z;
    int64_t pixels = z->n * z->oh * z->ow;
    m.columns = z->c_group * z->r * z->s;
    int64_t parts_possible = divide_up(pixels, 256);
    m.tile = choose_tile(problem, form, z->k_group, m.columns, z->groups * parts_possible);
    m.tile.bk = 16;
    if (tile_local_bytes(&m.tile, 1) > problem->device->local_bytes) m.tile = smallest(problem, form);
    int64_t groups = divide_up(z->k_group, m.tile.bm) * divide_up(m.columns, m.tile.bn) * z->groups;
    int64_t splits = divide_up(4 * problem->device->units, groups), least = divide_up(pixels, GEMM_LONGEST_PART),
            room = (int64_t)(problem->device->allocation_max / 4);
    int64_t most = room / (z->k * m.columns * (int64_t)sizeof(float));
    if (splits < least) splits = least;
    if (splits > parts_possible) splits = parts_possible;
    if (splits > most) splits = most;
    if (splits < 1) splits = 1;
    m.pixels_of_split = divide_up(divide_up(pixels, splits), m.tile.bk) * m.tile.bk;
    m.splits = divide_up(pixels, m.pixels_of_split);
    return m;
}

static size_t weight_gradient_workspace(const struct problem *problem)
{
    const struct weights *m = problem->design;
    return m->splits > 1 ? (size_t)(m->splits * m->z.k * m->columns) * sizeof(float) : 0;
}

void conv2d_sum_parts(
    const struct problem *problem, const struct operands *operands, int64_t splits, struct launch_list *list)
{
    const int64_t count = value_elements(problem->outputs[0]);
    const struct gemm whole = {
        .m = 1, .n = count, .batch = 1, .c.ld = count, .accumulate = operands->add != NULL, .add = operands->add
    };
    const struct gemm_sums parts = { .buffer = operands->workspace, .parts = splits, .stride_part = count };
    gemm_emit_finish(&whole, &parts, operands->outputs[0], NULL, list);
}

ARGUMENTS(weights, IMAGE_WEIGHTS_ARGUMENTS)
ARGUMENTS(weights_last, IMAGE_LAST_WEIGHTS_ARGUMENTS)
#define WEIGHTS_VALUES(m, given)                                                                                \
    .x = (given)->inputs[0], .dy = (given)->inputs[1], .add = (given)->add, .N = (m)->z.n, .C = (m)->z.c_group, \
    .K = (m)->z.k_group, PLANE_VALUES(&(m)->z), .R = (m)->z.r, .S = (m)->z.s, WINDOW_VALUES(&(m)->z),           \
    .pixels_of_split = (m)->pixels_of_split

static void emit_weight_gradient(
    const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct weights *m = problem->design;
    const struct conv2d_sizes *z = &m->z;
    const struct tile *t = &m->tile;
    struct launch *launch = m->last
        ? launch_add(list, "conv2d_channels_last_weight_gradient", "weight_gradient", TILE_OPTIONS " -DFLAT=%d",
              TILE_VALUES(t, m->form, problem->compute), reads_image(z))
        : launch_add(list, "conv2d_implicit_gemm_weight_gradient", "weight_gradient", TILE_OPTIONS " -DPOINT=%d%s",
              TILE_VALUES(t, m->form, problem->compute), is_pointwise(z),
              TILE_CHAINS(m->form, z->n * z->oh * z->ow, m->pixels_of_split));
    const cl_mem dw = m->splits > 1 ? operands->workspace : operands->outputs[0];
    if (m->last)
        ARGUMENTS_SET(launch, weights_last, WEIGHTS_VALUES(m, operands), .dw = dw);
    else
        ARGUMENTS_SET(launch, weights, WEIGHTS_VALUES(m, operands), .dw = dw, .groups = z->groups, .splits = m->splits);
    const size_t group = (size_t)tile_items(t);
    launch_grid(launch, 3, (size_t)divide_up(m->columns, t->bn) * group, (size_t)divide_up(z->k_group, t->bm),
        (size_t)(z->groups * m->splits), group, 1, 1);
    launch_work(launch, conv2d_flops(problem), conv2d_bytes(problem));
    if (m->splits > 1) conv2d_sum_parts(problem, operands, m->splits, list);
}

/* ---------------------------------------------------------------------------------------------------- tables ---- */

/* Why products of this form cannot do the convolution; NULL: they can. */
static const char *refusal(const struct problem *problem, enum matrix_form form)
{
    const struct capabilities *can = problem->device;
    const struct tile *list[TILES];
    if (can->class != DEVICE_GPU) return "it needs a GPU-class device";
    if (list_tiles(problem, form, list) == 0) return "the device's work-groups or local memory are too small";
    struct conv2d_sizes z = conv2d_sizes_of(problem);
    const int64_t most = INT32_MAX / 2;
    if (z.c * z.h > most / z.w || z.k * z.oh > most / z.ow) return "an image has more elements than 32 bits can count";
    if (z.n > most / (z.h * z.w) || z.n > most / (z.oh * z.ow))
        return "the batch has more pixels than 32 bits can count";
    if (z.k * z.c_group > most / 4 / (z.r * z.s)) return "there are more weights than 32 bits can count";
    return NULL;
}

static const char *fits_plain(const struct problem *problem)
{
    return refusal(problem, MATRIX_NONE);
}

static const char *fits_matrix(const struct problem *problem)
{
    return form_of(problem) ? refusal(problem, form_of(problem))
                            : tile_matrix_refusal(problem->compute, problem->device);
}

static const char *fits_last(const struct problem *problem)
{
    const enum matrix_form form = form_of(problem);
    const struct conv2d_sizes z = conv2d_sizes_of(problem);
    if (!form) return tile_matrix_refusal(problem->compute, problem->device);
    if (!problem->channels_last)
        return "the network keeps the plain layout: converting layouts would cost more than its convolutions gain";
    if (z.groups > 1) return "groups is not 1";
    if (z.k % CHANNELS_LAST_MULTIPLE) return "the number of output channels is not a multiple of 4";
    if (z.c % CHANNELS_LAST_MULTIPLE && (conv2d_is_data_gradient(problem) || !reads_image(&z)))
        return "the number of input channels is not a multiple of 4";
    if (problem->device->local_bytes < LOCAL_BYTES) return "the device's local memory is too small";
    return refusal(problem, form);
}

/* With these forms the compiled kernel `image` spills up to 4 KiB per thread, that of the plain layout 512 bytes. */
static const char *passed_over(const struct problem *problem)
{
    const enum matrix_form form = form_of(problem);
    return form == MATRIX_MAD_16 || form == MATRIX_MAD_8
        ? "with this form of matrix instructions it needs more registers than the device has"
        : NULL;
}

static void layouts(const struct problem *problem, enum value_layout *inputs, enum value_layout *outputs)
{
    const struct conv2d_sizes z = conv2d_sizes_of(problem);
    const bool weights = conv2d_is_weight_gradient(problem);
    inputs[0] = reads_image(&z) ? LAYOUT_PLAIN : LAYOUT_CHANNELS_LAST;
    inputs[1] = weights ? LAYOUT_CHANNELS_LAST : LAYOUT_PLAIN;
    outputs[0] = weights ? LAYOUT_PLAIN : LAYOUT_CHANNELS_LAST;
}

/* Defines the three passes by multiply-adds, by matrix instructions, and with channels last: designs differ. */
#define FORM(label, called, form, last, ...)                                                           \
    static void design_image_##label(const struct problem *problem, void *design)                      \
    {                                                                                                  \
        *(struct image *)design = image_of(problem, form, last);                                       \
    }                                                                                                  \
    static void design_weight_gradient_##label(const struct problem *problem, void *design)            \
    {                                                                                                  \
        *(struct weights *)design = weight_gradient_of(problem, form, last);                           \
    }                                                                                                  \
    const struct implementation conv2d_##called[CONV2D_PASSES] = {                                     \
        { IMAGE(label, #called), .fusions = CONV2D_FORWARD_FUSIONS | FUSED(STATISTICS), __VA_ARGS__ }, \
        { IMAGE(label, #called), .fusions = FUSED(ADD), __VA_ARGS__ },                                 \
        { COMMON(label, #called), .fusions = FUSED(ADD), .design_bytes = sizeof(struct weights),       \
            .design = design_weight_gradient_##label, .workspace = weight_gradient_workspace,          \
            .emit = emit_weight_gradient, __VA_ARGS__ }                                                \
    };
#define COMMON(label, text) .name = text, .fits = fits_##label
#define IMAGE(label, text)                                                                                      \
    COMMON(label, text), .statistics = statistics_parts, .design_bytes = sizeof(struct image),                  \
                         .design = design_image_##label, .prepared = image_prepared, .emit_prepare = emit_pack, \
                         .emit = emit_image

FORM(plain, implicit_gemm, MATRIX_NONE, false, .layouts = NULL)
FORM(matrix, implicit_gemm_matrix, form_of(problem), false, .layouts = NULL)
FORM(last, channels_last, form_of(problem), true, .layouts = layouts, .passed_over = passed_over)
