/* conv2d on GPU-class devices: implicit matrix products in the plain layout, for any convolution. */
#include "layers/conv2d_implicit_gemm.h"

#include "base/memory.h"
#include "layers/epilogue.h"
#include "runtime/gemm.h"

/* ------------------------------------------------------------------------------- forward and data gradient ---- */

/* Those that a product may be made of, from large to small. */
static int list_tiles(const struct problem *problem, enum matrix_form form, const struct tile *list[TILES])
{
    const struct capabilities *can = problem->device;
    const int all = tile_list(form, problem->compute, list), most = form ? all : TILES_SQUARE;
    int count = 0;
    for (int i = 0; i < most; i++)
        if (tile_fits(list[i], 1, can)) list[count++] = list[i];
    return count;
}

/* The largest that leaves no unit idle and wastes no more than half of its rows, of `others` such products. */
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

static struct conv2d_gemm_image image_sizes(const struct problem *problem)
{
    struct conv2d_gemm_image m = { .z = conv2d_sizes_of(problem), .classes = 1 };
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

/* Flat are few source channels; with channels last those of an image, which is plain. */
struct conv2d_gemm_image conv2d_gemm_image_of(
    const struct problem *problem, enum matrix_form form, enum value_layout layout)
{
    struct conv2d_gemm_image m = image_sizes(problem);
    m.form = form;
    const int64_t others = m.z.groups * m.classes;
    const bool last = layout == LAYOUT_CHANNELS_LAST, gradient = conv2d_is_data_gradient(problem);
    m.tile = choose_tile(problem, form, last ? m.pixels : m.cr, last ? m.cr : m.pixels, others);
    const int64_t pixels = last ? m.tile.bm : m.tile.bn, channels = last ? m.tile.bn : m.tile.bm;
    m.pixel_tiles = divide_up(m.pixels, pixels);
    m.channel_tiles = divide_up(m.cr, channels);
    m.flat = !gradient && (last ? m.cs % CHANNELS_LAST_MULTIPLE != 0 : m.cs < m.tile.bk);
    m.csp = divide_up(m.flat ? m.cs * m.z.r * m.z.s : m.cs, m.tile.bk) * m.tile.bk;
    m.crp = m.channel_tiles * channels;
    return m;
}

int64_t conv2d_gemm_packed_count(const struct conv2d_gemm_image *m)
{
    return m->z.groups * (m->flat ? 1 : m->z.r * m->z.s) * m->csp * m->crp;
}

const char *conv2d_gemm_refusal(const struct problem *problem, enum matrix_form form)
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

static size_t image_prepared(const struct problem *problem)
{
    return (size_t)conv2d_gemm_packed_count(problem->design) * sizeof(float);
}

/* Each tile of pixels is a part. The tensor is read once less, for 6 floats written and read per channel and part,
 * which has at least 32 pixels of it where there are so many; and there is no launch for them. So it always pays. */
int64_t conv2d_gemm_statistics_parts(const struct problem *problem, enum matrix_form form, enum value_layout layout)
{
    const struct epilogue *epilogue = &problem->node->epilogue;
    if (conv2d_is_data_gradient(problem) || epilogue->activation != ACTIVATION_NONE || epilogue->add != NO_VALUE)
        return 0;
    return conv2d_gemm_image_of(problem, form, layout).pixel_tiles;
}

static void emit_pack(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct conv2d_gemm_image *m = problem->design;
    struct launch *launch = launch_add(list, "conv2d_pack_gpu", "pack", "%s", "");
    const int64_t count = conv2d_gemm_packed_count(m);
    LAUNCH_BUFFERS(launch, operands->inputs[1], operands->prepared);
    LAUNCH_INTS(
        launch, count, m->z.r * m->z.s, m->cs, m->cr, m->csp, m->crp, conv2d_is_data_gradient(problem), m->flat);
    size_t group = problem->device->group_max < 128 ? problem->device->group_max : 128;
    launch_grid(launch, 1, size_round_up((size_t)count, group), 1, 1, group, 1, 1);
    launch_work(launch, 0, 8.0 * (double)count);
}

/* Whether a pixel of the result is one of the source, and four that follow one another are in one image. */
static bool is_pointwise(const struct conv2d_sizes *z)
{
    return z->r == 1 && z->s == 1 && z->stride_h == 1 && z->stride_w == 1 && z->padding_h == 0 && z->padding_w == 0 &&
        z->h == z->oh && z->w == z->ow && z->h * z->w % 4 == 0;
}

static void emit_image(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct conv2d_gemm_image *m = problem->design;
    const struct conv2d_sizes *z = &m->z;
    char activation[EPILOGUE_OPTIONS];
    const bool bias = !conv2d_is_data_gradient(problem) && operands->inputs[2];
    const struct tile *t = &m->tile;
    const bool statistics = problem->outputs[STATISTICS_OUTPUT] != NULL;
    struct launch *launch = launch_add(list, "conv2d_implicit_gemm", "image",
        TILE_OPTIONS " -DGRADIENT=%d -DFLAT=%d -DFLAT_CHANNELS=%d -DFLAT_WIDTH=%d -DPOINT=%d -DSTATISTICS=%d %s",
        TILE_VALUES(t, m->form, problem->compute), conv2d_is_data_gradient(problem), m->flat, m->flat ? (int)m->cs : 1,
        m->flat ? (int)m->z.s : 1, !m->flat && is_pointwise(z), statistics,
        activation_options(&problem->node->epilogue, activation, sizeof activation));
    LAUNCH_BUFFERS(launch, operands->inputs[0], operands->prepared, bias ? operands->inputs[2] : NULL, operands->add,
        operands->outputs[0]);
    LAUNCH_INTS(launch, z->n, z->groups, m->cs, m->cr, m->csp, m->crp, m->sh, m->sw, m->rh, m->rw, z->r, z->s,
        z->stride_h, z->stride_w, z->padding_h, z->padding_w, z->dilation_h, z->dilation_w);
    if (statistics) {
        launch_buffer(launch, operands->outputs[STATISTICS_OUTPUT]);
        launch_int(launch, problem->outputs[STATISTICS_OUTPUT]->shape.sizes[2]);
    }
    size_t group = (size_t)tile_items(&m->tile);
    launch_grid(launch, 3, (size_t)m->pixel_tiles * group, (size_t)m->channel_tiles, (size_t)(z->groups * m->classes),
        group, 1, 1);
    launch_work(launch, conv2d_flops(problem), conv2d_bytes(problem));
}

/* ----------------------------------------------------------------------------------------- weight gradient ---- */

/* As many parts of the sum as keep the units busy, each worth its own pass over the partial sums. */
struct conv2d_gemm_weights conv2d_gemm_weights_of(const struct problem *problem, enum matrix_form form)
{
    struct conv2d_gemm_weights m = { .z = conv2d_sizes_of(problem), .form = form };
    const struct conv2d_sizes *z = &m.z;
    int64_t pixels = z->n * z->oh * z->ow;
    m.columns = z->c_group * z->r * z->s;
    int64_t parts_possible = divide_up(pixels, 256);
    m.tile = choose_tile(problem, form, z->k_group, m.columns, z->groups * parts_possible);
    m.tile.bk = 16;
    if (tile_local_bytes(&m.tile, 1) > problem->device->local_bytes) m.tile = smallest(problem, form);
    int64_t groups = divide_up(z->k_group, m.tile.bm) * divide_up(m.columns, m.tile.bn) * z->groups;
    int64_t splits = divide_up(4 * problem->device->units, groups),
            room = (int64_t)(problem->device->allocation_max / 4);
    int64_t most = room / (z->k * m.columns * (int64_t)sizeof(float));
    if (splits > parts_possible) splits = parts_possible;
    if (splits > most) splits = most;
    if (splits < 1) splits = 1;
    m.pixels_of_split = divide_up(divide_up(pixels, splits), m.tile.bk) * m.tile.bk;
    m.splits = divide_up(pixels, m.pixels_of_split);
    return m;
}

size_t conv2d_gemm_weights_workspace(const struct problem *problem)
{
    const struct conv2d_gemm_weights *m = problem->design;
    return m->splits > 1 ? (size_t)(m->splits * m->z.k * m->columns) * sizeof(float) : 0;
}

void conv2d_sum_parts(
    const struct problem *problem, const struct operands *operands, int64_t splits, struct launch_list *list)
{
    const int64_t count = value_elements(problem->outputs[0]);
    const struct gemm whole = {
        .m = 1, .n = count, .batch = 1, .ldc = count, .accumulate = operands->add != NULL, .add = operands->add
    };
    const struct gemm_sums parts = { .buffer = operands->workspace, .parts = splits, .stride_part = count };
    gemm_emit_finish(&whole, &parts, operands->outputs[0], NULL, list);
}

static void emit_weights(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct conv2d_gemm_weights *m = problem->design;
    const struct conv2d_sizes *z = &m->z;
    const struct tile *t = &m->tile;
    struct launch *launch = launch_add(list, "conv2d_implicit_gemm_weights", "weight_gradient",
        TILE_OPTIONS " -DPOINT=%d", TILE_VALUES(t, m->form, problem->compute), is_pointwise(z));
    LAUNCH_BUFFERS(launch, operands->inputs[0], operands->inputs[1], operands->add,
        m->splits > 1 ? operands->workspace : operands->outputs[0]);
    LAUNCH_INTS(launch, z->n, z->groups, z->c_group, z->k_group, z->h, z->w, z->oh, z->ow, z->r, z->s, z->stride_h,
        z->stride_w, z->padding_h, z->padding_w, z->dilation_h, z->dilation_w, m->splits, m->pixels_of_split);
    size_t group = (size_t)tile_items(t);
    launch_grid(launch, 3, (size_t)divide_up(m->columns, t->bn) * group, (size_t)divide_up(z->k_group, t->bm),
        (size_t)(z->groups * m->splits), group, 1, 1);
    launch_work(launch, conv2d_flops(problem), conv2d_bytes(problem));
    if (m->splits > 1) conv2d_sum_parts(problem, operands, m->splits, list);
}

/* -------------------------------------------------------------------------------------------------- tables ---- */

static enum matrix_form form_of(const struct problem *problem)
{
    return problem->device->matrix[problem->compute].form;
}

static const char *fits_plain(const struct problem *problem)
{
    return conv2d_gemm_refusal(problem, MATRIX_NONE);
}

static const char *fits_matrix(const struct problem *problem)
{
    return form_of(problem) ? conv2d_gemm_refusal(problem, form_of(problem))
                            : tile_matrix_refusal(problem->compute, problem->device);
}

/* The same three by multiply-adds and by matrix instructions: their designs differ. */
#define FORM(label, called, form)                                                                \
    static void design_image_##label(const struct problem *problem, void *design)                \
    {                                                                                            \
        *(struct conv2d_gemm_image *)design = conv2d_gemm_image_of(problem, form, LAYOUT_PLAIN); \
    }                                                                                            \
    static void design_weights_##label(const struct problem *problem, void *design)              \
    {                                                                                            \
        *(struct conv2d_gemm_weights *)design = conv2d_gemm_weights_of(problem, form);           \
    }                                                                                            \
    static int64_t statistics_##label(const struct problem *problem)                             \
    {                                                                                            \
        return conv2d_gemm_statistics_parts(problem, form, LAYOUT_PLAIN);                        \
    }                                                                                            \
    const struct implementation conv2d_##called[CONV2D_PASSES] = { { IMAGE(label, #called) },    \
        { IMAGE(label, #called) },                                                               \
        { COMMON(label, #called), .design_bytes = sizeof(struct conv2d_gemm_weights),            \
            .design = design_weights_##label, .workspace = conv2d_gemm_weights_workspace, .emit = emit_weights } };
#define COMMON(label, text) .name = text, .fits = fits_##label, .epilogues = conv2d_epilogues
#define IMAGE(label, text)                                                                                      \
    COMMON(label, text), .statistics = statistics_##label, .design_bytes = sizeof(struct conv2d_gemm_image),    \
                         .design = design_image_##label, .prepared = image_prepared, .emit_prepare = emit_pack, \
                         .emit = emit_image

FORM(plain, implicit_gemm, MATRIX_NONE)
FORM(matrix, implicit_gemm_matrix, form_of(problem))
