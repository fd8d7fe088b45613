/* The pass, the sizes and the cost of a node, for implementations and the reference. */
#include "layers/conv2d/conv2d.h"

#include "layers/layers.h"

enum conv2d_pass conv2d_pass_of(const struct problem *problem)
{
    const struct operation *operation = problem->node->operation;
    return operation == &operation_conv2d_data_gradient  ? CONV2D_DATA_GRADIENT
        : operation == &operation_conv2d_weight_gradient ? CONV2D_WEIGHT_GRADIENT
                                                         : CONV2D_FORWARD;
}

bool conv2d_is_data_gradient(const struct problem *problem)
{
    return conv2d_pass_of(problem) == CONV2D_DATA_GRADIENT;
}

bool conv2d_is_weight_gradient(const struct problem *problem)
{
    return conv2d_pass_of(problem) == CONV2D_WEIGHT_GRADIENT;
}

struct conv2d_sizes conv2d_sizes_of(const struct problem *problem)
{
    const struct node *node = problem->node;
    const struct value *x = problem->inputs[0], *w = problem->inputs[1], *y = problem->outputs[0];
    if (node->operation == &operation_conv2d_data_gradient) {
        x = problem->outputs[0];
        y = problem->inputs[0];
    } else if (node->operation == &operation_conv2d_weight_gradient) {
        w = problem->outputs[0];
        y = problem->inputs[1];
    }
    const struct window *a = &conv2d_attributes(node)->window;
    int64_t groups = a->groups;
    return (struct conv2d_sizes) {
        .n = x->shape.sizes[0],
        .c = x->shape.sizes[CHANNEL_AXIS],
        .h = x->shape.sizes[SPACE_AXIS],
        .w = x->shape.sizes[SPACE_AXIS + 1],
        .k = y->shape.sizes[CHANNEL_AXIS],
        .oh = y->shape.sizes[SPACE_AXIS],
        .ow = y->shape.sizes[SPACE_AXIS + 1],
        .r = w->shape.sizes[2],
        .s = w->shape.sizes[3],
        .groups = groups,
        .c_group = x->shape.sizes[CHANNEL_AXIS] / groups,
        .k_group = y->shape.sizes[CHANNEL_AXIS] / groups,
        .stride_h = a->stride[0],
        .stride_w = a->stride[1],
        .padding_h = a->padding[0],
        .padding_w = a->padding[1],
        .dilation_h = a->dilation[0],
        .dilation_w = a->dilation[1],
    };
}

/* The three passes do the same multiplications. */
double conv2d_flops(const struct problem *problem)
{
    struct conv2d_sizes z = conv2d_sizes_of(problem);
    return 2.0 * (double)(z.n * z.k) * (double)(z.oh * z.ow) * (double)(z.c_group * z.r * z.s);
}

double conv2d_bytes(const struct problem *problem)
{
    struct conv2d_sizes z = conv2d_sizes_of(problem);
    return 4.0 *
        ((double)(z.n * z.c) * (double)(z.h * z.w) + (double)(z.n * z.k) * (double)(z.oh * z.ow) +
            (double)(z.k * z.c_group) * (double)(z.r * z.s));
}
