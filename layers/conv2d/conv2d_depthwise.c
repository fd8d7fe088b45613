/* conv2d, depthwise: one kernel for each channel, on CPU-class devices. Kernels: layers/conv2d/conv2d_depthwise_cpu.cl.
 */
#include "base/memory.h"
#include "layers/conv2d/arguments/conv2d_depthwise_cpu.h"
#include "layers/conv2d/conv2d_cpu.h"
#include "layers/element.h"
#include "layers/epilogue.h"

enum { MOST_TAPS = 81, MOST_STRIDE = 4 }; /* their products are unrolled */

static const char *fits(const struct problem *problem)
{
    struct conv2d_sizes z = conv2d_sizes_of(problem);
    if (z.groups == 1 || z.groups != z.c || z.c != z.k)
        return "groups, input channels and output channels are not equal";
    if (z.r * z.s > MOST_TAPS) return "the kernel has more than 81 taps, too many to unroll";
    if (z.stride_h > MOST_STRIDE || z.stride_w > MOST_STRIDE) return "stride is more than 4, too large to unroll";
    return conv2d_cpu_refusal(problem);
}

/* ---------------------------------------------------------------------------------------------------------- tiles */

/* See the kernel's macros. */
struct tiles {
    int64_t columns; /* of a row of results; data gradient: groups of stride columns */
    int64_t T, reach, left, right, edge;
    int64_t first, last; /* data gradient: offsets of the source */
    bool guard;
};

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Whether tiles of T columns can be told apart into first, middle and last ones. before, after: columns at the ends of
 * a row that read outside. */
static bool separable(int64_t T, int64_t columns, int64_t before, int64_t after)
{
    return T == columns || (columns - T >= most(before, after) && T >= before + after);
}

/* `registers` accumulators at most. Few columns are repeated where T divides them. */
static void choose_T(struct tiles *t, int64_t registers, int64_t before, int64_t after)
{
    double best = 0;
    t->guard = true;
    for (int64_t T = registers < t->columns ? registers : t->columns; T > 0; T--) {
        if (!separable(T, t->columns, before, after)) continue;
        double cost = (double)(divide_up(t->columns, T) * (T + 1)); /* 1: the start of a tile */
        if (!t->guard && cost >= best) continue;
        best = cost;
        t->T = T;
        t->guard = false;
    }
    if (t->guard) t->T = t->columns < 4 ? t->columns : 4;
}

static struct tiles tiles_forward(const struct conv2d_sizes *z, int64_t registers)
{
    struct tiles t = { .columns = z->ow };
    int64_t span = (z->s - 1) * z->dilation_w;
    int64_t over = (z->ow - 1) * z->stride_w + span - z->padding_w - (z->w - 1);
    t.edge = most(0, conv2d_ceiling(over, z->stride_w));
    choose_T(&t, registers, conv2d_ceiling(z->padding_w, z->stride_w), t.edge);
    t.reach = (t.T - 1) * z->stride_w + span + 1;
    t.left = z->padding_w;
    t.right = z->w - ((z->ow - t.T) * z->stride_w - z->padding_w);
    return t;
}

static struct tiles tiles_gradient(const struct conv2d_sizes *z, int64_t registers)
{
    struct tiles t = { .columns = divide_up(z->w, z->stride_w) };
    t.first = conv2d_ceiling(z->padding_w - (z->s - 1) * z->dilation_w, z->stride_w);
    t.last = (z->stride_w - 1 + z->padding_w) / z->stride_w;
    t.edge = most(0, t.columns - 1 + t.last - (z->ow - 1));
    choose_T(&t, most(1, registers / z->stride_w), most(0, -t.first), t.edge);
    t.reach = t.T + t.last - t.first;
    t.left = most(0, -t.first);
    t.right = z->ow - (t.columns - t.T) - t.first;
    return t;
}

/* Whether a data gradient makes the weights' gradient, too. */
static bool makes_weights(const struct problem *problem)
{
    return node_fusion(problem->node, FUSION_WEIGHTS);
}

/* The number of accumulators in registers, next to the weights, which stay in registers if there are few. */
static int64_t accumulators(const struct problem *problem, const struct conv2d_sizes *z)
{
    if (conv2d_registers(problem) == 16) return makes_weights(problem) ? 4 : 6;
    if (makes_weights(problem)) return 6; /* and as many vectors of the source, and sums of the weights */
    return z->r * z->s <= 9 ? 14 : 7;
}

/* The function of ACTIVATE in these kernels: that of the input which they normalise as they load it, if any, else
 * that of the result. */
static struct nonlinearity kernel_function(const struct node *node)
{
    const unsigned fused = node_fusions(node);
    return node_function(node,
        fused & FUSED(NORMALISED)    ? FUSION_NORMALISED
            : fused & FUSED(WEIGHTS) ? FUSION_GATE
                                     : FUSION_ACTIVATION);
}

static struct launch *add_launch(const struct problem *problem, const struct operands *operands,
    struct launch_list *list, const char *kernel, const char *what, const struct tiles *t)
{
    struct conv2d_sizes z = conv2d_sizes_of(problem);
    bool forward = conv2d_pass_of(problem) == CONV2D_FORWARD, weights = conv2d_is_weight_gradient(problem);
    size_t bytes = weights ? 0 : value_bytes(problem->outputs[0], 1);
    const struct nonlinearity function = kernel_function(problem->node);
    char epilogue[256], statistics[RESULT_OPTIONS], elements[ELEMENT_OPTIONS];
    return launch_add(list, "conv2d_depthwise_cpu", kernel,
        "-D%s -DR=%d -DS=%d -DSTRIDE_H=%d -DSTRIDE_W=%d -DDILATION_H=%d -DDILATION_W=%d -DPADDING_H=%d -DPADDING_W=%d "
        "-DT=%d "
        "-DGUARD=%d -DREACH=%d -DLEFT=%d -DRIGHT=%d -DEDGE=%d -DFIRST=%d -DHAS_BIAS=%d -DSTREAM=%d -DBOTH=%d %s %s "
        "%s%s",
        what, (int)z.r, (int)z.s, (int)z.stride_h, (int)z.stride_w, (int)z.dilation_h, (int)z.dilation_w,
        (int)z.padding_h, (int)z.padding_w, (int)t->T, t->guard, (int)t->reach, (int)t->left, (int)t->right,
        (int)t->edge, (int)t->first, forward && problem->inputs[2], conv2d_streams(problem, operands, bytes),
        makes_weights(problem), result_options(problem->node, statistics, sizeof statistics),
        normalised_option(problem->node), epilogue_options_with(problem->node, function, epilogue, sizeof epilogue),
        element_options(problem, elements, sizeof elements));
}

/* ----------------------------------------------------------------------------------------- forward, data gradient */

static int64_t blocks_of(const struct problem *problem)
{
    return divide_up(conv2d_sizes_of(problem).c, problem->device->vector_width);
}

static size_t prepared(const struct problem *problem)
{
    struct conv2d_sizes z = conv2d_sizes_of(problem);
    return (size_t)(blocks_of(problem) * problem->device->vector_width * (1 + z.r * z.s)) * sizeof(float);
}

static void emit_prepare(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    bool bias = problem->inputs[2] != NULL && !conv2d_is_data_gradient(problem);
    struct conv2d_sizes z = conv2d_sizes_of(problem);
    struct launch *launch = launch_add(list, "conv2d_depthwise_cpu", "depthwise_pack",
        "-DR=%d -DS=%d -DHAS_BIAS=%d -DGUARD=1", (int)z.r, (int)z.s, bias);
    LAUNCH_BUFFERS(launch, operands->inputs[1], bias ? operands->inputs[2] : operands->inputs[1], operands->prepared);
    launch_int(launch, z.c);
    launch_tasks(launch, (size_t)blocks_of(problem), 1, 1);
    launch_work(launch, 0, 8.0 * (double)(z.c * z.r * z.s));
}

/* Rows of a task: whole planes, unless there are too few of them. */
static int64_t rows_of_task(const struct problem *problem, int64_t planes, int64_t rows)
{
    int64_t wanted = conv2d_tasks_wanted(problem, 4 * conv2d_flops(problem)); /* they are bound by memory */
    int64_t ranges = divide_up(wanted, planes);
    return divide_up(rows, ranges < rows ? ranges : rows);
}

static int64_t statistics_parts(const struct problem *problem)
{
    struct conv2d_sizes z = conv2d_sizes_of(problem);
    int64_t rows = conv2d_is_data_gradient(problem) ? z.h : z.oh;
    int64_t rows_max = rows_of_task(problem, z.n * blocks_of(problem), rows);
    return conv2d_cpu_statistics(problem) ? z.n * divide_up(rows, rows_max) : 0;
}

/* Parts of the weights' gradient, one for each image and range of rows. */
static size_t gradient_workspace(const struct problem *problem)
{
    struct conv2d_sizes z = conv2d_sizes_of(problem);
    int64_t parts = z.n * divide_up(z.h, rows_of_task(problem, z.n * blocks_of(problem), z.h));
    return makes_weights(problem) ? conv2d_parts_bytes(problem, parts) : 0;
}

ARGUMENTS(product, DEPTHWISE_ARGUMENTS)
ARGUMENTS(parts, DEPTHWISE_PARTS_ARGUMENTS)

static void emit_product(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    struct conv2d_sizes z = conv2d_sizes_of(problem);
    bool gradient = conv2d_is_data_gradient(problem);
    int64_t registers = accumulators(problem, &z), rows = gradient ? z.h : z.oh, blocks = blocks_of(problem);
    struct tiles tiles = gradient ? tiles_gradient(&z, registers) : tiles_forward(&z, registers);
    int64_t rows_max = rows_of_task(problem, z.n * blocks, rows);
    struct launch *launch = gradient ? add_launch(problem, operands, list, "depthwise_gradient", "GRADIENT", &tiles)
                                     : add_launch(problem, operands, list, "depthwise_forward", "FORWARD", &tiles);
    ARGUMENTS_SET(launch, product, .source = operands->inputs[0], .packed = operands->prepared,
        .add = conv2d_or(operands->add, operands->outputs[0]), .result = operands->outputs[0], .height = z.h,
        .width = z.w, .OH = z.oh, .OW = z.ow, .rows_max = rows_max);
    result_arguments(launch, problem, operands);
    normalised_arguments(launch, problem, operands);
    if (makes_weights(problem)) ARGUMENTS_SET(launch, parts, .workspace = operands->workspace);
    launch_tasks(launch, (size_t)blocks, (size_t)z.n, (size_t)divide_up(rows, rows_max));
    launch_work(launch, conv2d_flops(problem) * (makes_weights(problem) ? 2 : 1), conv2d_bytes(problem));
    if (makes_weights(problem)) conv2d_parts_emit(problem, operands, list, z.n * divide_up(rows, rows_max), 0);
}

/* ------------------------------------------------------------------------------------------------ weight gradient */

struct weights_design {
    int64_t images_max, rows_max, parts; /* of a task */
};

static struct weights_design weight_gradient_of(const struct problem *problem)
{
    struct conv2d_sizes z = conv2d_sizes_of(problem);
    struct weights_design w;
    int64_t blocks = blocks_of(problem), wanted = conv2d_tasks_wanted(problem, 4 * conv2d_flops(problem));
    w.images_max = divide_up(z.n, most(1, divide_up(wanted, blocks)));
    int64_t chunks = divide_up(z.n, w.images_max);
    w.rows_max = rows_of_task(problem, blocks * chunks, z.oh);
    w.parts = chunks * divide_up(z.oh, w.rows_max);
    return w;
}

static size_t weight_gradient_workspace(const struct problem *problem)
{
    return conv2d_parts_bytes(problem, weight_gradient_of(problem).parts);
}

ARGUMENTS(weights, DEPTHWISE_WEIGHTS_ARGUMENTS)

static void emit_weight_gradient(
    const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    struct conv2d_sizes z = conv2d_sizes_of(problem);
    struct weights_design w = weight_gradient_of(problem);
    struct tiles tiles = tiles_forward(&z, accumulators(problem, &z));
    struct launch *launch = add_launch(problem, operands, list, "depthwise_weights", "WEIGHTS", &tiles);
    ARGUMENTS_SET(launch, weights, .x = operands->inputs[0], .dy = operands->inputs[1],
        .workspace = operands->workspace, .count = z.n, .count_max = w.images_max, .height = z.h, .width = z.w,
        .OH = z.oh, .OW = z.ow, .rows_max = w.rows_max);
    normalised_arguments(launch, problem, operands);
    launch_tasks(
        launch, (size_t)blocks_of(problem), (size_t)divide_up(z.n, w.images_max), (size_t)divide_up(z.oh, w.rows_max));
    launch_work(launch, conv2d_flops(problem), conv2d_bytes(problem));
    conv2d_parts_emit(problem, operands, list, w.parts, 0);
}

#define COMMON .name = "depthwise", .fits = fits, .layouts = conv2d_cpu_layouts
#define PRODUCT                                                                                          \
    COMMON, .cannot_fuse = conv2d_cpu_cannot_fuse, .statistics = statistics_parts, .prepared = prepared, \
            .emit_prepare = emit_prepare, .emit = emit_product, .bf16_outputs = 1 << 0

const struct implementation conv2d_depthwise[CONV2D_PASSES] = {
    { PRODUCT, .fusions = CONV2D_CPU_FORWARD | FUSED(NORMALISED), .bf16_inputs = 1 << 0 },
    { PRODUCT, .fusions = CONV2D_CPU_DATA_GRADIENT | FUSED(WEIGHTS), .workspace = gradient_workspace,
        .in_place = conv2d_mask_in_place, .bf16_inputs = 1 << 0 },
    { COMMON, .fusions = CONV2D_CPU_WEIGHT_GRADIENT | FUSED(NORMALISED), .workspace = weight_gradient_workspace,
        .emit = emit_weight_gradient, .bf16_inputs = 1 << 0 | 1 << 1 },
};
