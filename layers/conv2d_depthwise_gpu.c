/* conv2d with one input channel for each group, on GPU-class devices: there is no sum over channels that a matrix
 * product could use, so each result is a few multiplications of what the cache holds. */
#include "base/memory.h"
#include "layers/conv2d.h"

enum { MOST_TAPS = 49 }; /* sums of a work-item in the weight gradient */

static const char *fits(const struct problem *problem)
{
    if (problem->device->class != DEVICE_GPU) return "it needs a GPU-class device";
    struct conv2d_sizes z = conv2d_sizes_of(problem);
    if (z.c_group != 1) return "groups is smaller than the number of input channels";
    if (z.r * z.s > MOST_TAPS) return "the kernel has more than 49 taps";
    const int64_t most = INT32_MAX / 2;
    if (z.n > most / (z.h * z.w) || z.n > most / (z.oh * z.ow) || z.n > most / z.k)
        return "the batch has more pixels than 32 bits can count";
    return NULL;
}

static struct launch *add(const struct problem *problem, const struct operands *operands, struct launch_list *list,
    const char *kernel, size_t group)
{
    struct conv2d_sizes z = conv2d_sizes_of(problem);
    char epilogue[128];
    struct launch *launch = launch_add(list, "conv2d_depthwise_gpu", kernel,
        "-DR=%d -DS=%d -DSTRIDE_H=%d -DSTRIDE_W=%d -DPADDING_H=%d -DPADDING_W=%d -DDILATION_H=%d -DDILATION_W=%d "
        "-DMULTIPLIER=%d -DGROUP=%d -DBIAS=%d %s",
        (int)z.r, (int)z.s, (int)z.stride_h, (int)z.stride_w, (int)z.padding_h, (int)z.padding_w, (int)z.dilation_h,
        (int)z.dilation_w, (int)z.k_group, (int)group, operands->inputs[2] != NULL,
        epilogue_options(&problem->node->epilogue, epilogue, sizeof epilogue));
    LAUNCH_BUFFERS(launch, operands->inputs[0], operands->inputs[1]);
    launch_work(launch, conv2d_flops(problem), conv2d_bytes(problem));
    return launch;
}

/* One work-item for each pixel of each plane. */
static void grid(struct launch *launch, const struct problem *problem, int64_t pixels, int64_t planes)
{
    size_t group = 128;
    while (group > 1 && (group > problem->device->group_max || group / 2 >= (size_t)pixels)) group /= 2;
    launch_grid(launch, 2, (size_t)planes, size_round_up((size_t)pixels, group), 1, 1, group, 1);
}

static void emit_forward(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    struct conv2d_sizes z = conv2d_sizes_of(problem);
    struct launch *launch = add(problem, operands, list, "forward", 1);
    LAUNCH_BUFFERS(launch, operands->inputs[2], operands->add, operands->outputs[0]);
    LAUNCH_INTS(launch, z.k, z.h, z.w, z.oh, z.ow);
    grid(launch, problem, z.oh * z.ow, z.n * z.k);
}

static void emit_data_gradient(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    struct conv2d_sizes z = conv2d_sizes_of(problem);
    struct launch *launch = add(problem, operands, list, "data_gradient", 1);
    LAUNCH_BUFFERS(launch, operands->add, operands->outputs[0]);
    LAUNCH_INTS(launch, z.c, z.h, z.w, z.oh, z.ow);
    grid(launch, problem, z.h * z.w, z.n * z.c);
}

/* ----------------------------------------------------------------------------------------- weight gradient ---- */

struct split {
    int64_t splits, pixels; /* of the batch in each */
    size_t group;
};

/* Enough groups for all units, each work-item with some pixels of its own. */
static struct split split_of(const struct problem *problem)
{
    struct conv2d_sizes z = conv2d_sizes_of(problem);
    const struct capabilities *can = problem->device;
    int64_t pixels = z.n * z.oh * z.ow;
    struct split split = { .group = 256 };
    while (split.group > 1 &&
        (split.group > can->group_max || split.group * sizeof(float) > can->local_bytes ||
            split.group / 2 >= (size_t)pixels))
        split.group /= 2;
    int64_t wanted = divide_up(8 * can->units, z.k), possible = divide_up(pixels, 8 * (int64_t)split.group);
    split.splits = wanted < possible ? wanted : possible;
    split.pixels = divide_up(pixels, split.splits);
    split.splits = divide_up(pixels, split.pixels);
    return split;
}

static size_t workspace(const struct problem *problem)
{
    struct split split = split_of(problem);
    if (split.splits == 1) return 0;
    return (size_t)(split.splits * value_elements(problem->outputs[0])) * sizeof(float);
}

static void emit_weight_gradient(
    const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    struct conv2d_sizes z = conv2d_sizes_of(problem);
    struct split split = split_of(problem);
    struct launch *launch = add(problem, operands, list, "weight_gradient", split.group);
    LAUNCH_BUFFERS(launch, operands->add, split.splits > 1 ? operands->workspace : operands->outputs[0]);
    LAUNCH_INTS(launch, z.n, z.k, z.h, z.w, z.oh, z.ow, split.splits, split.pixels);
    launch_grid(launch, 2, (size_t)z.k * split.group, (size_t)split.splits, 1, split.group, 1, 1);
    if (split.splits > 1) conv2d_sum_parts(problem, operands, split.splits, list);
}

#define DEPTHWISE .name = "depthwise_gpu", .fits = fits, .epilogues = conv2d_epilogues

const struct implementation conv2d_depthwise_gpu[CONV2D_PASSES] = {
    { DEPTHWISE, .emit = emit_forward },
    { DEPTHWISE, .emit = emit_data_gradient },
    { DEPTHWISE, .workspace = workspace, .emit = emit_weight_gradient },
};
