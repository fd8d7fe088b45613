/* conv2d, plain: any convolution on any device, one work-item for each output element. */
#include "base/memory.h"
#include "layers/conv2d.h"
#include "layers/elementwise.h"
#include "layers/epilogue.h"

static void emit(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    static const char *const kernels[] = { "forward", "data_gradient", "weight_gradient" };
    const struct conv2d_sizes z = conv2d_sizes_of(problem);
    const enum conv2d_pass pass = conv2d_pass_of(problem);
    const bool forward = pass == CONV2D_FORWARD;
    const int64_t count = value_elements(problem->outputs[0]);
    const size_t group = problem->device->group_max < 64 ? problem->device->group_max : 64;
    char epilogue[128];
    struct launch *launch = launch_add(list, "conv2d_plain", kernels[pass], "-DBIAS=%d %s",
        forward && operands->inputs[2] != NULL, epilogue_options(problem->node, epilogue, sizeof epilogue));
    LAUNCH_BUFFERS(launch, operands->inputs[0], operands->inputs[1]);
    if (forward) launch_buffer(launch, operands->inputs[2]);
    LAUNCH_BUFFERS(launch, operands->add, operands->outputs[0]);
    launch_long(launch, count);
    LAUNCH_INTS(launch, z.c, z.h, z.w, z.k, z.oh, z.ow, z.r, z.s, z.c_group, z.k_group, z.stride_h, z.stride_w,
        z.padding_h, z.padding_w, z.dilation_h, z.dilation_w);
    if (pass == CONV2D_WEIGHT_GRADIENT) launch_int(launch, z.n);
    launch_grid(launch, 1, size_round_up((size_t)count, group), 1, 1, group, 1, 1);
    launch_work(launch, conv2d_flops(problem), conv2d_bytes(problem));
}

#define PLAIN(fused)                                                             \
    {                                                                            \
        .name = "plain", .fits = fits_everything, .fusions = fused, .emit = emit \
    }

const struct implementation conv2d_plain[CONV2D_PASSES] = { PLAIN(CONV2D_FORWARD_FUSIONS), PLAIN(FUSED(ADD)),
    PLAIN(FUSED(ADD)) };
