/* conv2d, plain: any convolution on any device, one work-item for each output element. */
#include "base/memory.h"
#include "layers/conv2d.h"

static const char *fits_all(const struct problem *problem)
{
    (void)problem;
    return NULL;
}

/* One work-item for each output element. */
static void grid(struct launch *launch, const struct problem *problem)
{
    size_t group = problem->device->group_max < 64 ? problem->device->group_max : 64;
    size_t count = (size_t)value_elements(problem->outputs[0]);
    launch_grid(launch, 1, size_round_up(count, group), 1, 1, group, 1, 1);
}

static void sizes(struct launch *launch, const struct problem *problem)
{
    struct conv2d_sizes z = conv2d_sizes_of(problem);
    launch_long(launch, value_elements(problem->outputs[0]));
    const int64_t all[] = { z.c, z.h, z.w, z.k, z.oh, z.ow, z.r, z.s, z.c_group, z.k_group, z.stride_h, z.stride_w,
        z.padding_h, z.padding_w, z.dilation_h, z.dilation_w };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) launch_int(launch, all[i]);
    launch_work(launch, conv2d_flops(problem), conv2d_bytes(problem));
}

static void emit_forward(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    char epilogue[128];
    struct launch *launch = launch_add(list, "conv2d_plain", "forward", "-DBIAS=%d %s", operands->inputs[2] != NULL,
        epilogue_options(&problem->node->epilogue, epilogue, sizeof epilogue));
    launch_buffer(launch, operands->inputs[0]);
    launch_buffer(launch, operands->inputs[1]);
    launch_buffer(launch, operands->inputs[2]);
    launch_buffer(launch, operands->add);
    launch_buffer(launch, operands->outputs[0]);
    sizes(launch, problem);
    grid(launch, problem);
}

static struct launch *add_gradient(
    const struct problem *problem, const struct operands *operands, struct launch_list *list, const char *kernel)
{
    char epilogue[128];
    struct launch *launch = launch_add(list, "conv2d_plain", kernel, "-DBIAS=0 %s",
        epilogue_options(&problem->node->epilogue, epilogue, sizeof epilogue));
    launch_buffer(launch, operands->inputs[0]);
    launch_buffer(launch, operands->inputs[1]);
    launch_buffer(launch, operands->add);
    launch_buffer(launch, operands->outputs[0]);
    sizes(launch, problem);
    grid(launch, problem);
    return launch;
}

static void emit_data_gradient(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    add_gradient(problem, operands, list, "data_gradient");
}

static void emit_weight_gradient(
    const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    launch_int(add_gradient(problem, operands, list, "weight_gradient"), conv2d_sizes_of(problem).n);
}

const struct implementation conv2d_plain_forward = {
    .name = "plain",
    .fits = fits_all,
    .epilogues = conv2d_epilogues,
    .emit = emit_forward,
};
const struct implementation conv2d_plain_data_gradient = {
    .name = "plain",
    .fits = fits_all,
    .epilogues = conv2d_epilogues,
    .emit = emit_data_gradient,
};
const struct implementation conv2d_plain_weight_gradient = {
    .name = "plain",
    .fits = fits_all,
    .epilogues = conv2d_epilogues,
    .emit = emit_weight_gradient,
};
