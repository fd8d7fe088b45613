/* conv2d, plain: any convolution on any device, one work-item for each output element. */
#include "layers/conv2d/arguments/conv2d_plain.h"
#include "base/memory.h"
#include "layers/conv2d/conv2d.h"
#include "layers/elementwise.h"
#include "layers/epilogue.h"

ARGUMENTS(forward, PLAIN_FORWARD_ARGUMENTS)
ARGUMENTS(data_gradient, PLAIN_DATA_GRADIENT_ARGUMENTS)
ARGUMENTS(weight_gradient, PLAIN_WEIGHT_GRADIENT_ARGUMENTS)
ARGUMENTS(sizes, PLAIN_SIZES)
ARGUMENTS(samples, PLAIN_SAMPLES)

static void set_arguments(struct launch *launch, const struct problem *problem, const struct operands *operands)
{
    const struct conv2d_sizes z = conv2d_sizes_of(problem);
    const cl_mem *inputs = operands->inputs, output = operands->outputs[0];
    const enum conv2d_pass pass = conv2d_pass_of(problem);
    if (pass == CONV2D_FORWARD)
        ARGUMENTS_SET(
            launch, forward, .x = inputs[0], .weight = inputs[1], .bias = inputs[2], .add = operands->add, .y = output);
    else if (pass == CONV2D_DATA_GRADIENT)
        ARGUMENTS_SET(launch, data_gradient, .dy = inputs[0], .weight = inputs[1], .add = operands->add, .dx = output);
    else
        ARGUMENTS_SET(launch, weight_gradient, .x = inputs[0], .dy = inputs[1], .add = operands->add, .dw = output);
    ARGUMENTS_SET(launch, sizes, .count = value_elements(problem->outputs[0]), .C = z.c, .K = z.k, .R = z.r, .S = z.s,
        .CG = z.c_group, .KG = z.k_group, PLANE_VALUES(&z), WINDOW_VALUES(&z));
    if (pass == CONV2D_WEIGHT_GRADIENT) ARGUMENTS_SET(launch, samples, .N = z.n);
}

static void emit(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    static const char *const kernels[] = { "forward", "data_gradient", "weight_gradient" };
    const enum conv2d_pass pass = conv2d_pass_of(problem);
    const bool forward = pass == CONV2D_FORWARD;
    const int64_t count = value_elements(problem->outputs[0]);
    const size_t group = problem->device->group_max < 64 ? problem->device->group_max : 64;
    char epilogue[128];
    struct launch *launch = launch_add(list, "conv2d_plain", kernels[pass], "-DBIAS=%d %s",
        forward && operands->inputs[2] != NULL, epilogue_options(problem->node, epilogue, sizeof epilogue));
    set_arguments(launch, problem, operands);
    launch_grid(launch, 1, size_round_up((size_t)count, group), 1, 1, group, 1, 1);
    launch_work(launch, conv2d_flops(problem), conv2d_bytes(problem));
}

#define PLAIN(fused)                                    \
    {                                                   \
        .name = "plain", .fusions = fused, .emit = emit \
    }

const struct implementation conv2d_plain[CONV2D_PASSES] = { PLAIN(CONV2D_FORWARD_FUSIONS), PLAIN(FUSED(ADD)),
    PLAIN(FUSED(ADD)) };
