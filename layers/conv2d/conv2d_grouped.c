/* conv2d on CPU-class devices with groups of channels that the blocked kernels refuse, such as narrow ones that do not
 * fill blocks (conv2d_groups_refusal()): plain layout, vectors along rows of pixels. */
#include "base/memory.h"
#include "layers/conv2d/arguments/conv2d_grouped_cpu.h"
#include "layers/conv2d/conv2d.h"
#include "layers/epilogue.h"

enum { KB = 4, MOST_TAPS_AT_ONCE = 5 }; /* channels that share what is loaded; sums in registers are KB times as many */

static const char *fits(const struct problem *problem)
{
    if (problem->device->class != DEVICE_CPU) return "it needs a CPU-class device";
    struct conv2d_sizes z = conv2d_sizes_of(problem);
    if (z.groups == 1) return "groups is 1";
    const int64_t most = INT32_MAX / 2;
    if (z.h > most / z.w || z.oh > most / z.ow || z.k * z.c_group > most / (z.r * z.s))
        return "a plane or the weights have more elements than 32 bits can count";
    return NULL;
}

static struct launch *add(const struct problem *problem, struct launch_list *list, const char *kernel, bool bias)
{
    struct conv2d_sizes z = conv2d_sizes_of(problem);
    char epilogue[128];
    struct launch *launch = launch_add(list, "conv2d_grouped_cpu", kernel,
        "-DGRADIENT=%d -DR=%d -DS=%d -DSTRIDE_H=%d -DSTRIDE_W=%d -DKB=%d -DSB=%d -DBIAS=%d %s",
        conv2d_is_data_gradient(problem), (int)z.r, (int)z.s, (int)z.stride_h, (int)z.stride_w, KB,
        z.s <= MOST_TAPS_AT_ONCE ? (int)z.s : 1, bias, epilogue_options(problem->node, epilogue, sizeof epilogue));
    launch_work(launch, conv2d_flops(problem), conv2d_bytes(problem));
    return launch;
}

ARGUMENTS(image, GROUPED_ARGUMENTS)

static void emit_image(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    struct conv2d_sizes z = conv2d_sizes_of(problem);
    bool gradient = conv2d_is_data_gradient(problem), bias = !gradient && operands->inputs[2];
    int64_t results = gradient ? z.c_group : z.k_group, height = gradient ? z.h : z.oh;
    int64_t others = z.groups * divide_up(results, KB) * z.n;
    int64_t rows = divide_up(height, divide_up(8 * problem->device->units, others));
    struct launch *launch = add(problem, list, "image", bias);
    ARGUMENTS_SET(launch, image, .source = operands->inputs[0], .weights = operands->inputs[1],
        .bias = bias ? operands->inputs[2] : NULL, .add = operands->add, .result = operands->outputs[0],
        .groups = z.groups, .CS = gradient ? z.k_group : z.c_group, .CR = results, .SH = gradient ? z.oh : z.h,
        .SW = gradient ? z.ow : z.w, .RH = height, .RW = gradient ? z.w : z.ow, .padding_h = z.padding_h,
        .padding_w = z.padding_w, .dilation_h = z.dilation_h, .dilation_w = z.dilation_w, .rows = rows);
    launch_tasks(launch, (size_t)divide_up(height, rows), (size_t)(z.groups * divide_up(results, KB)), (size_t)z.n);
}

ARGUMENTS(weights, GROUPED_WEIGHTS_ARGUMENTS)

static void emit_weight_gradient(
    const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    struct conv2d_sizes z = conv2d_sizes_of(problem);
    struct launch *launch = add(problem, list, "weight_gradient", false);
    ARGUMENTS_SET(launch, weights, .x = operands->inputs[0], .dy = operands->inputs[1], .add = operands->add,
        .dw = operands->outputs[0], .N = z.n, .groups = z.groups, .C = z.c_group, .K = z.k_group, .H = z.h, .W = z.w,
        .OH = z.oh, .OW = z.ow, .padding_h = z.padding_h, .padding_w = z.padding_w, .dilation_h = z.dilation_h,
        .dilation_w = z.dilation_w);
    launch_tasks(launch, (size_t)(z.groups * divide_up(z.k_group, KB)), (size_t)z.c_group, 1);
}

#define GROUPED .name = "grouped", .fits = fits

const struct implementation conv2d_grouped[CONV2D_PASSES] = {
    { GROUPED, .fusions = CONV2D_FORWARD_FUSIONS, .emit = emit_image },
    { GROUPED, .fusions = FUSED(ADD), .emit = emit_image },
    { GROUPED, .fusions = FUSED(ADD), .emit = emit_weight_gradient },
};
