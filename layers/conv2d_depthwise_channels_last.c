/* conv2d with one input and one output channel for each group, on GPU-class devices with channels last: what lies
 * between products that have this layout. Arithmetic is of floats: there is no sum over channels for matrix
 * instructions. */
#include "base/memory.h"
#include "layers/conv2d.h"
#include "layers/epilogue.h"

/* A work-item has STRIP pixels of four channels, with what lies under them; the weight gradient sums of all taps. */
enum { MOST_TAPS = 9, STRIP = 2, MOST_COLUMNS = 12, MOST_ITEMS = 128, MOST_QUADS = 8, LOCAL_BYTES = 8 << 10 };

static int64_t columns_of_strip(const struct conv2d_sizes *z)
{
    return (STRIP - 1) * z->stride_w + (z->s - 1) * z->dilation_w + 1;
}

static const char *fits(const struct problem *problem)
{
    if (problem->device->class != DEVICE_GPU) return "it needs a GPU-class device";
    if (!problem->channels_last)
        return "the network keeps the plain layout: converting layouts would cost more than its convolutions gain";
    const struct conv2d_sizes z = conv2d_sizes_of(problem);
    if (z.c_group != 1) return "groups is smaller than the number of input channels";
    if (z.k_group != 1) return "an input channel has several output channels";
    if (z.c % CHANNELS_LAST_MULTIPLE) return "the number of channels is not a multiple of 4";
    if (z.r * z.s > MOST_TAPS) return "the kernel has more than 9 taps";
    if (z.stride_w > 2) return "the horizontal stride is more than 2";
    if (columns_of_strip(&z) > MOST_COLUMNS) return "the windows of neighbouring outputs span more than 12 columns";
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

/* A group's fours of channels and its strips; all strips of a tensor of `rows` of `width` pixels. */
struct shape {
    int64_t quads, lines, strips, channel_groups;
};

static struct shape shape_of(const struct problem *problem, int64_t rows, int64_t width)
{
    const struct conv2d_sizes z = conv2d_sizes_of(problem);
    struct shape m = { .quads = MOST_QUADS, .lines = MOST_ITEMS / MOST_QUADS };
    m.strips = rows * divide_up(width, STRIP);
    while (m.quads > 1 && m.quads / 2 >= z.c / CHANNELS_LAST_MULTIPLE) m.quads /= 2, m.lines *= 2;
    while (m.lines > 1 && (m.lines / 2 >= m.strips || m.quads * m.lines > (int64_t)problem->device->group_max))
        m.lines /= 2;
    while (m.quads * m.lines > (int64_t)problem->device->group_max) m.quads /= 2;
    m.channel_groups = divide_up(z.c / CHANNELS_LAST_MULTIPLE, m.quads);
    return m;
}

static struct shape shape_of_outputs(const struct problem *problem)
{
    const struct conv2d_sizes z = conv2d_sizes_of(problem);
    return shape_of(problem, z.n * z.oh, z.ow);
}

static struct launch *add(const struct problem *problem, const struct operands *operands, struct launch_list *list,
    const char *kernel, const struct shape *m)
{
    const struct conv2d_sizes z = conv2d_sizes_of(problem);
    char epilogue[EPILOGUE_OPTIONS];
    struct launch *launch = launch_add(list, "conv2d_depthwise_channels_last", kernel,
        "-DR=%d -DS=%d -DSTRIDE_H=%d -DSTRIDE_W=%d -DPADDING_H=%d -DPADDING_W=%d -DDILATION_H=%d -DDILATION_W=%d "
        "-DSTRIP=%d -DQUADS=%d -DLINES=%d -DBIAS=%d -DSTATISTICS=%d %s",
        (int)z.r, (int)z.s, (int)z.stride_h, (int)z.stride_w, (int)z.padding_h, (int)z.padding_w, (int)z.dilation_h,
        (int)z.dilation_w, STRIP, (int)m->quads, (int)m->lines, operands->inputs[2] != NULL,
        problem->outputs[STATISTICS_OUTPUT] != NULL,
        epilogue_options(&problem->node->epilogue, epilogue, sizeof epilogue));
    LAUNCH_BUFFERS(launch, operands->inputs[0], operands->inputs[1]);
    launch_work(launch, conv2d_flops(problem), conv2d_bytes(problem));
    return launch;
}

static void add_sizes(struct launch *launch, const struct conv2d_sizes *z)
{
    LAUNCH_INTS(launch, z->n, z->c, z->h, z->w, z->oh, z->ow);
}

static void grid(struct launch *launch, const struct shape *m, int64_t groups)
{
    const size_t items = (size_t)(m->quads * m->lines);
    launch_grid(launch, 2, (size_t)groups * items, (size_t)m->channel_groups, 1, items, 1, 1);
}

/* ------------------------------------------------------------------------------- forward and data gradient ---- */

static int64_t statistics_parts(const struct problem *problem)
{
    const struct epilogue *epilogue = &problem->node->epilogue;
    if (epilogue->activation != ACTIVATION_NONE || epilogue->add != NO_VALUE) return 0;
    const struct shape m = shape_of_outputs(problem);
    return divide_up(m.strips, m.lines);
}

static void emit_forward(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct conv2d_sizes z = conv2d_sizes_of(problem);
    const struct shape m = shape_of_outputs(problem);
    struct launch *launch = add(problem, operands, list, "forward", &m);
    LAUNCH_BUFFERS(launch, operands->inputs[2], operands->add, operands->outputs[0]);
    add_sizes(launch, &z);
    if (problem->outputs[STATISTICS_OUTPUT]) {
        launch_buffer(launch, operands->outputs[STATISTICS_OUTPUT]);
        launch_int(launch, problem->outputs[STATISTICS_OUTPUT]->shape.sizes[2]);
    }
    grid(launch, &m, divide_up(m.strips, m.lines));
}

static void emit_data_gradient(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct conv2d_sizes z = conv2d_sizes_of(problem);
    const struct shape m = shape_of(problem, z.n * z.h, z.w);
    struct launch *launch = add(problem, operands, list, "data_gradient", &m);
    LAUNCH_BUFFERS(launch, operands->add, operands->outputs[0]);
    add_sizes(launch, &z);
    grid(launch, &m, divide_up(m.strips, m.lines));
}

/* ----------------------------------------------------------------------------------------- weight gradient ---- */

/* Strips of a part: enough groups for all units, each work-item with some strips of its own. */
static int64_t strips_of_part(const struct problem *problem, const struct shape *m)
{
    const int64_t wanted = divide_up(8 * problem->device->units, m->channel_groups);
    const int64_t possible = divide_up(m->strips, 4 * m->lines);
    return divide_up(m->strips, wanted < possible ? wanted : possible);
}

static size_t workspace(const struct problem *problem)
{
    const struct shape m = shape_of_outputs(problem);
    const int64_t parts = divide_up(m.strips, strips_of_part(problem, &m));
    return parts == 1 ? 0 : (size_t)(parts * value_elements(problem->outputs[0])) * sizeof(float);
}

static void emit_weight_gradient(
    const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct conv2d_sizes z = conv2d_sizes_of(problem);
    const struct shape m = shape_of_outputs(problem);
    const int64_t strips = strips_of_part(problem, &m), parts = divide_up(m.strips, strips);
    struct launch *launch = add(problem, operands, list, "weight_gradient", &m);
    LAUNCH_BUFFERS(launch, operands->add, parts > 1 ? operands->workspace : operands->outputs[0]);
    add_sizes(launch, &z);
    launch_int(launch, strips);
    grid(launch, &m, parts);
    if (parts > 1) conv2d_sum_parts(problem, operands, parts, list);
}

#define DEPTHWISE .name = "depthwise_channels_last", .fits = fits, .layouts = layouts, .epilogues = conv2d_epilogues

const struct implementation conv2d_depthwise_channels_last[CONV2D_PASSES] = {
    { DEPTHWISE, .statistics = statistics_parts, .emit = emit_forward },
    { DEPTHWISE, .emit = emit_data_gradient },
    { DEPTHWISE, .workspace = workspace, .emit = emit_weight_gradient },
};
