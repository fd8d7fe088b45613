/* conv2d, depthwise, on GPU-class devices: there is no sum over channels that a matrix product could use, so each
 * result is a few multiplications of floats. In the plain layout a work-item makes some results in one column of what
 * the cache holds, with any number of output channels for an input channel. With channels last, which lies between
 * products that have this layout, a work-item has STRIP pixels of four channels, with what lies under them. */
#include "layers/conv2d/arguments/conv2d_depthwise_gpu.h"
#include "base/memory.h"
#include "layers/conv2d/arguments/conv2d_depthwise_channels_last.h"
#include "layers/conv2d/conv2d.h"
#include "layers/elementwise.h"
#include "layers/epilogue.h"

/* Taps: the sums of a work-item in the weight gradient; stride: its results in a row of the data gradient. */
enum { MOST_TAPS = 49, MOST_STRIDE = 8, GROUP = 256, GROUPS_PER_UNIT = 16 };
enum { STRIP = 2, STRIP_TAPS = 9, MOST_COLUMNS = 12, MOST_ITEMS = 128, MOST_QUADS = 8, LOCAL_BYTES = 8 << 10 };

/* The attributes as constants of the program. */
#define TAPS_OPTIONS \
    "-DR=%d -DS=%d -DSTRIDE_H=%d -DSTRIDE_W=%d -DPADDING_H=%d -DPADDING_W=%d -DDILATION_H=%d -DDILATION_W=%d "
#define TAPS_VALUES(z)                                                                                    \
    (int)(z).r, (int)(z).s, (int)(z).stride_h, (int)(z).stride_w, (int)(z).padding_h, (int)(z).padding_w, \
        (int)(z).dilation_h, (int)(z).dilation_w

/* ------------------------------------------------------------------------------------------------- refusals ---- */

static const char *fits_gpu(const struct problem *problem)
{
    if (problem->device->class != DEVICE_GPU) return "it needs a GPU-class device";
    struct conv2d_sizes z = conv2d_sizes_of(problem);
    if (z.c_group != 1) return "groups is smaller than the number of input channels";
    if (z.r * z.s > MOST_TAPS) return "the kernel has more than 49 taps";
    if (z.stride_h > MOST_STRIDE || z.stride_w > MOST_STRIDE) return "the stride is larger than 8";
    const int64_t most = INT32_MAX / 2;
    if (z.n > most / (z.h * z.w) || z.n > most / (z.oh * z.ow) || z.n > most / z.k)
        return "the batch has more pixels than 32 bits can count";
    return NULL;
}

static const char *fits_channels_last(const struct problem *problem)
{
    if (problem->device->class != DEVICE_GPU) return "it needs a GPU-class device";
    if (!problem->channels_last)
        return "the network keeps the plain layout: converting layouts would cost more than its convolutions gain";
    const struct conv2d_sizes z = conv2d_sizes_of(problem);
    if (z.c_group != 1) return "groups is smaller than the number of input channels";
    if (z.k_group != 1) return "an input channel has several output channels";
    if (z.c % CHANNELS_LAST_MULTIPLE) return "the number of channels is not a multiple of 4";
    if (z.r * z.s > STRIP_TAPS) return "the kernel has more than 9 taps";
    if (z.stride_w > 2) return "the horizontal stride is more than 2";
    if ((STRIP - 1) * z.stride_w + (z.s - 1) * z.dilation_w + 1 > MOST_COLUMNS)
        return "the windows of neighbouring outputs span more than 12 columns";
    if (problem->device->local_bytes < LOCAL_BYTES) return "the device's local memory is too small";
    const int64_t most = INT32_MAX / 2;
    if (z.n > most / (z.h * (z.w + STRIP)) || z.n > most / (z.oh * (z.ow + STRIP)))
        return "the batch has more pixels than 32 bits can count";
    return NULL;
}

static void layouts(const struct problem *problem, enum value_layout *inputs, enum value_layout *outputs)
{
    const bool weights = conv2d_is_weight_gradient(problem);
    inputs[0] = LAYOUT_CHANNELS_LAST;
    inputs[1] = weights ? LAYOUT_CHANNELS_LAST : LAYOUT_PLAIN;
    outputs[0] = weights ? LAYOUT_PLAIN : LAYOUT_CHANNELS_LAST;
}

/* --------------------------------------------------------------------------- forward and data gradient ---- */

/* Plain layout: rows of y for a work-item. With few taps the registers suffice for more rows. */
static int64_t rows_of(const struct conv2d_sizes *z)
{
    return z->r * z->s <= 9 && z->oh > 4 ? 8 : 4;
}

/* Rows of a work-item in the data gradient: the first one begins at a multiple of the stride. */
static int64_t gradient_rows(const struct conv2d_sizes *z)
{
    const int64_t rows = rows_of(z);
    return z->stride_h < rows ? rows / z->stride_h * z->stride_h : z->stride_h;
}

/* Whether 32 bits can count the numbers of each tensor. */
static bool is_short(const struct conv2d_sizes *z)
{
    const int64_t planes = z->n * z->k, most = INT32_MAX / planes;
    return z->h * z->w <= most && z->oh * z->ow <= most;
}

/* Channels last. For a group: fours of channels, and strips. For the tensor that is walked: all strips, and groups
 * along the channels. */
struct shape {
    int64_t quads, lines, strips, channel_groups;
};

static struct shape shape_of(const struct problem *problem)
{
    const struct conv2d_sizes z = conv2d_sizes_of(problem);
    const bool gradient = conv2d_is_data_gradient(problem);
    struct shape m = { .quads = MOST_QUADS, .lines = MOST_ITEMS / MOST_QUADS };
    m.strips = z.n * (gradient ? z.h * divide_up(z.w, STRIP) : z.oh * divide_up(z.ow, STRIP));
    while (m.quads > 1 && m.quads / 2 >= z.c / CHANNELS_LAST_MULTIPLE) m.quads /= 2, m.lines *= 2;
    while (m.lines > 1 && (m.lines / 2 >= m.strips || m.quads * m.lines > (int64_t)problem->device->group_max))
        m.lines /= 2;
    while (m.quads * m.lines > (int64_t)problem->device->group_max) m.quads /= 2;
    m.channel_groups = divide_up(z.c / CHANNELS_LAST_MULTIPLE, m.quads);
    return m;
}

static void design_strips(const struct problem *problem, void *design)
{
    *(struct shape *)design = shape_of(problem);
}

static int64_t statistics_parts(const struct problem *problem)
{
    if (node_fusions(problem->node) & (FUSED(ADD) | FUSED(ACTIVATION))) return 0;
    const struct shape *m = problem->design;
    return divide_up(m->strips, m->lines);
}

/* Adds a launch. m: channels last; NULL: plain layout, where `group` work-items add up. */
static struct launch *add(const struct problem *problem, const struct operands *operands, struct launch_list *list,
    const char *kernel, const struct shape *m, size_t group)
{
    const struct conv2d_sizes z = conv2d_sizes_of(problem);
    const bool bias = operands->inputs[2] != NULL;
    char epilogue[EPILOGUE_OPTIONS];
    epilogue_options(problem->node, epilogue, sizeof epilogue);
    struct launch *launch = m
        ? launch_add(list, "conv2d_depthwise_channels_last", kernel,
              TAPS_OPTIONS "-DSTRIP=%d -DQUADS=%d -DLINES=%d -DBIAS=%d -DSTATISTICS=%d %s", TAPS_VALUES(z), STRIP,
              (int)m->quads, (int)m->lines, bias, gives_statistics(problem->node), epilogue)
        : launch_add(list, "conv2d_depthwise_gpu", kernel,
              TAPS_OPTIONS "-DMULTIPLIER=%d -DROWS=%d -DROWS_DX=%d -DINDEX=%s -DGROUP=%d -DBIAS=%d %s", TAPS_VALUES(z),
              (int)z.k_group, (int)rows_of(&z), (int)gradient_rows(&z), is_short(&z) ? "uint" : "ulong", (int)group,
              bias, epilogue);
    launch_work(launch, conv2d_flops(problem), conv2d_bytes(problem));
    return launch;
}

static void strip_grid(struct launch *launch, const struct shape *m, int64_t groups)
{
    const size_t items = (size_t)(m->quads * m->lines);
    launch_grid(launch, 2, (size_t)groups * items, (size_t)m->channel_groups, 1, items, 1, 1);
}

ARGUMENTS(forward, FORWARD_ARGUMENTS)
ARGUMENTS(data_gradient, DATA_GRADIENT_ARGUMENTS)
ARGUMENTS(forward_last, FORWARD_LAST_ARGUMENTS)
ARGUMENTS(data_gradient_last, DATA_GRADIENT_LAST_ARGUMENTS)

static void set_strips(struct launch *launch, const struct problem *problem, const struct operands *operands)
{
    const struct conv2d_sizes z = conv2d_sizes_of(problem);
    const struct shape *m = problem->design;
    const cl_mem *inputs = operands->inputs, result = operands->outputs[0];
    if (conv2d_is_data_gradient(problem))
        ARGUMENTS_SET(launch, data_gradient_last, .dy = inputs[0], .w = inputs[1], .add = operands->add, .dx = result,
            .N = z.n, .C = z.c, PLANE_VALUES(&z));
    else
        ARGUMENTS_SET(launch, forward_last, .x = inputs[0], .w = inputs[1], .bias = inputs[2], .add = operands->add,
            .y = result, .N = z.n, .C = z.c, PLANE_VALUES(&z));
    statistics_arguments(launch, problem, operands);
    strip_grid(launch, m, divide_up(m->strips, m->lines));
}

static void set_items(struct launch *launch, const struct problem *problem, const struct operands *operands)
{
    const struct conv2d_sizes z = conv2d_sizes_of(problem);
    const cl_mem *inputs = operands->inputs, result = operands->outputs[0];
    const bool gradient = conv2d_is_data_gradient(problem);
    const int64_t count = gradient ? z.n * z.c * divide_up(z.h, gradient_rows(&z)) * divide_up(z.w, z.stride_w)
                                   : z.n * z.k * divide_up(z.oh, rows_of(&z)) * z.ow;
    const struct index_argument items = index_argument(count, !is_short(&z));
    if (gradient)
        ARGUMENTS_SET(launch, data_gradient, .dy = inputs[0], .weights = inputs[1], .add = operands->add, .dx = result,
            .C = z.c, PLANE_VALUES(&z), .items = items);
    else
        ARGUMENTS_SET(launch, forward, .x = inputs[0], .weights = inputs[1], .bias = inputs[2], .add = operands->add,
            .y = result, .K = z.k, PLANE_VALUES(&z), .items = items);
    items_launch(launch, problem->device, GROUP, count, 0);
}

static void emit_image(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    struct launch *launch = add(problem, operands, list, conv2d_is_data_gradient(problem) ? "data_gradient" : "forward",
        problem->design, group_size(problem->device, GROUP));
    if (problem->design)
        set_strips(launch, problem, operands);
    else
        set_items(launch, problem, operands);
}

/* ----------------------------------------------------------------------------------------- weight gradient ---- */

/* Division of the batch: enough groups for all units, and several tiles of pixels, or strips, per work-item. */
struct parts {
    bool last; /* channels are */
    struct shape shape;
    int64_t count, each, all; /* tiles, or strips */
    size_t group;
};

static struct parts parts_of(const struct problem *problem, bool last)
{
    const struct conv2d_sizes z = conv2d_sizes_of(problem);
    const struct capabilities *can = problem->device;
    struct parts parts = { .last = last, .group = GROUP };
    if (last) parts.shape = shape_of(problem);
    const struct shape *m = &parts.shape;
    const int64_t all = parts.all = last ? m->strips : z.n * divide_up(z.oh, rows_of(&z)) * z.ow;
    const int64_t groups = last ? m->channel_groups : z.k;
    while (parts.group > 1 &&
        (parts.group > can->group_max || parts.group * sizeof(float) > can->local_bytes ||
            parts.group / 2 >= (size_t)all))
        parts.group /= 2;
    const int64_t wanted = divide_up((last ? 8 : GROUPS_PER_UNIT) * can->units, groups);
    const int64_t possible = divide_up(all, last ? 4 * m->lines : 2 * (int64_t)parts.group);
    parts.each = divide_up(all, wanted < possible ? wanted : possible);
    parts.count = divide_up(all, parts.each);
    return parts;
}

static void design_parts(const struct problem *problem, void *design)
{
    *(struct parts *)design = parts_of(problem, false);
}

static void design_parts_of_strips(const struct problem *problem, void *design)
{
    *(struct parts *)design = parts_of(problem, true);
}

static size_t workspace(const struct problem *problem)
{
    const struct parts *parts = problem->design;
    return parts->count == 1 ? 0 : (size_t)(parts->count * value_elements(problem->outputs[0])) * sizeof(float);
}

ARGUMENTS(weight_gradient, WEIGHT_GRADIENT_ARGUMENTS)
ARGUMENTS(weight_gradient_last, WEIGHT_GRADIENT_LAST_ARGUMENTS)

static void emit_weight_gradient(
    const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct conv2d_sizes z = conv2d_sizes_of(problem);
    const struct parts *parts = problem->design;
    const cl_mem x = operands->inputs[0], dy = operands->inputs[1];
    const cl_mem dw = parts->count > 1 ? operands->workspace : operands->outputs[0];
    struct launch *launch =
        add(problem, operands, list, "weight_gradient", parts->last ? &parts->shape : NULL, parts->group);
    if (parts->last) {
        ARGUMENTS_SET(launch, weight_gradient_last, .x = x, .dy = dy, .add = operands->add, .dw = dw, .N = z.n,
            .C = z.c, PLANE_VALUES(&z), .strips_of_part = parts->each);
        strip_grid(launch, &parts->shape, parts->count);
    } else {
        ARGUMENTS_SET(launch, weight_gradient, .x = x, .dy = dy, .add = operands->add, .dw = dw, .N = z.n, .K = z.k,
            PLANE_VALUES(&z), .splits = parts->count, .tiles_of_split = parts->each, .tiles = parts->all);
        launch_grid(launch, 2, (size_t)z.k * parts->group, (size_t)parts->count, 1, parts->group, 1, 1);
    }
    if (parts->count > 1) conv2d_sum_parts(problem, operands, parts->count, list);
}

#define PLAIN .name = "depthwise_gpu", .fits = fits_gpu
#define CHANNELS_LAST .name = "depthwise_channels_last", .fits = fits_channels_last, .layouts = layouts
#define STRIPS .design_bytes = sizeof(struct shape), .design = design_strips, .emit = emit_image
#define PARTS .design_bytes = sizeof(struct parts), .workspace = workspace, .emit = emit_weight_gradient

const struct implementation conv2d_depthwise_gpu[CONV2D_PASSES] = {
    { PLAIN, .fusions = CONV2D_FORWARD_FUSIONS, .emit = emit_image },
    { PLAIN, .fusions = FUSED(ADD), .emit = emit_image },
    { PLAIN, .fusions = FUSED(ADD), .design = design_parts, PARTS },
};
const struct implementation conv2d_depthwise_channels_last[CONV2D_PASSES] = {
    { CHANNELS_LAST, .fusions = CONV2D_FORWARD_FUSIONS | FUSED(STATISTICS), .statistics = statistics_parts, STRIPS },
    { CHANNELS_LAST, .fusions = FUSED(ADD), STRIPS },
    { CHANNELS_LAST, .fusions = FUSED(ADD), .design = design_parts_of_strips, PARTS },
};
