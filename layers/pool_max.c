/* max_pool and its gradient. The forward pass notes where in the window each maximum was, so that the gradient reads
 * neither x nor y. */
#include <stdio.h>

#include "base/memory.h"
#include "layers/elementwise.h"
#include "layers/layers.h"
#include "layers/patterns.h"
#include "layers/pool.h"

static tutti_status infer(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *x = graph_at(graph, node->inputs[0]);
    tutti_shape shape = { 0 };
    tutti_status status = pool_shape("max_pool", &node->attributes, x, &shape);
    if (status != TUTTI_OK) return status;
    bool small = node->attributes.kernel[0] * node->attributes.kernel[1] <= UINT8_MAX;
    outputs[0] = (struct value) { .type = TYPE_F32, .batched = x->batched, .shape = shape };
    outputs[1] = (struct value) { .type = small ? TYPE_U8 : TYPE_I32, .batched = x->batched, .shape = shape };
    node->output_count = 2;
    return TUTTI_OK;
}

static tutti_status gradient(
    struct graph *graph, const struct node *node, const int *output_gradients, const bool *wanted, int *input_gradients)
{
    if (output_gradients[0] == NO_VALUE || !wanted[0]) return TUTTI_OK;
    struct attributes attributes = node->attributes;
    attributes.shape = graph_at(graph, node->inputs[0])->shape;
    int inputs[2] = { output_gradients[0], node->outputs[1] };
    input_gradients[0] = graph_append(graph, &operation_max_pool_gradient, &attributes, inputs, 2, node->layer);
    return graph->status;
}

static const char *index_options(const struct value *index, char *buffer, size_t size)
{
    const char *type = index && index->type == TYPE_I32 ? "int" : "uchar";
    snprintf(buffer, size, "-DINDEX=%s -DWITH_INDEX=%d", type, index != NULL);
    return buffer;
}

/* ------------------------------------------------------------------------------------------- implementations ---- */

static void emit(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const bool blocked = pool_is_blocked(problem);
    char index[64], options[96];
    const struct value *y = problem->outputs[0];
    index_options(problem->outputs[1], index, sizeof index);
    snprintf(options, sizeof options, "%s%s", index, blocked ? pool_stream(value_elements(y)) : "");
    struct launch *launch = pool_launch(problem, list, blocked ? "pool_cpu" : "pool_plain", "max_pool", options);
    LAUNCH_BUFFERS(launch, operands->inputs[0], operands->outputs[0], operands->outputs[1]);
    if (blocked)
        pool_tasks(launch, problem, pool_sizes_of(problem).oh);
    else
        pool_items(launch, problem, value_elements(y));
}

/* See pool_cpu.cl. */
static int form_of(const struct problem *problem)
{
    const struct attributes *a = &problem->node->attributes;
    struct pool_sizes z = pool_sizes_of(problem);
    bool apart = a->kernel[0] == a->stride[0] && a->kernel[1] == a->stride[1] && !a->padding[0] && !a->padding[1];
    if (apart && z.oh * a->stride[0] <= z.h && z.ow * a->stride[1] <= z.w) return 1;
    for (int i = 0; i < 2; i++)
        if (a->kernel[i] != 3 || a->stride[i] != 2 || a->padding[i] != 1) return 0;
    return z.oh == (z.h + 1) / 2 && z.ow == (z.w + 1) / 2 ? 2 : 0;
}

static void emit_gradient(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const bool blocked = pool_is_blocked(problem);
    char index[64], options[128];
    const struct value *dx = problem->outputs[0];
    int form = blocked ? form_of(problem) : 0;
    index_options(problem->inputs[1], index, sizeof index);
    snprintf(options, sizeof options, "%s -DFORM=%d%s", index, form, blocked ? pool_stream(value_elements(dx)) : "");
    struct launch *launch =
        pool_launch(problem, list, blocked ? "pool_cpu" : "pool_plain", "max_pool_gradient", options);
    launch_buffer(launch, operands->inputs[0]);
    launch_buffer(launch, operands->inputs[1]);
    if (problem->node->epilogue.add != NO_VALUE) launch_buffer(launch, operands->add);
    launch_buffer(launch, operands->outputs[0]);
    struct pool_sizes z = pool_sizes_of(problem);
    if (blocked)
        pool_tasks(launch, problem, form ? z.oh : z.h);
    else
        pool_items(launch, problem, value_elements(dx));
}

static const struct implementation forward_cpu = { POOL_CPU, .emit = emit };
static const struct implementation forward_plain = { POOL_PLAIN, .any_layout = IN_PLAIN | IN_CHANNELS_LAST,
    .emit = emit };
static const struct implementation gradient_cpu = { POOL_CPU, .epilogues = pool_epilogues_of_gradient,
    .emit = emit_gradient };
static const struct implementation gradient_plain = { POOL_PLAIN, .any_layout = IN_PLAIN | IN_CHANNELS_LAST,
    .epilogues = pool_epilogues_of_gradient, .emit = emit_gradient };
static const struct implementation *const forward_implementations[] = { &forward_cpu, &forward_plain, NULL };
static const struct implementation *const gradient_implementations[] = { &gradient_cpu, &gradient_plain, NULL };

const struct operation operation_max_pool = {
    .name = "max_pool",
    .inputs = { { "x" } },
    .outputs = { { "y" }, { "index" } },
    .infer = infer,
    .gradient = gradient,
    .implementations = forward_implementations,
    .flops = pool_flops,
};
const struct operation operation_max_pool_gradient = {
    .name = "max_pool_gradient",
    .inputs = { { "dy" }, { "index", PORT_ANY_TYPE } },
    .outputs = { { "dx" } },
    .infer = pool_infer_gradient,
    .implementations = gradient_implementations,
    .flops = pool_flops,
};

/* -------------------------------------------------------------------------------------------------- patterns ---- */

/* gradient of max pooling -> gradient of the activation that was pooled: they change places. An activation's gradient
 * is a factor that depends on its output, and where pooling puts a gradient that output is the window's maximum. So the
 * factor is applied to the smaller tensor, and the activation's output is not read again. */
static bool swap_pool_gradient(const struct rewriting *rewriting, size_t n, int producer)
{
    struct graph *graph = rewriting->graph;
    struct node factor = graph->nodes[n], pool = graph->nodes[producer];
    if (factor.epilogue.add != NO_VALUE || pool.epilogue.add != NO_VALUE) return false;
    const struct node *forward = &graph->nodes[graph_at(graph, pool.inputs[1])->producer];
    if (forward->inputs[0] != factor.inputs[0] || forward->outputs[0] == NO_VALUE) return false;
    if (forward->epilogue.activation || forward->epilogue.add != NO_VALUE) return false;
    int between = factor.inputs[1];
    factor.inputs[0] = forward->outputs[0];
    factor.inputs[1] = pool.inputs[0];
    pool.inputs[0] = between;
    pool.outputs[0] = factor.outputs[0];
    factor.outputs[0] = between;
    graph_at(graph, between)->shape = graph_at(graph, factor.inputs[1])->shape;
    graph_at(graph, pool.outputs[0])->producer = (int)n;
    graph->nodes[producer] = factor;
    graph->nodes[n] = pool;
    return true;
}

const struct pattern pattern_pool_gradient = {
    .operation = &operation_activation_gradient,
    .input = 1,
    .producer = &operation_max_pool_gradient,
    .sole = true,
    .apply = swap_pool_gradient,
};

/* gradient of max pooling -> sum over each channel (a bias's gradient): pooling only moves what it is given, so the sum
 * of that is the same, over the smaller tensor. */
static bool sum_before_pool_gradient(const struct rewriting *rewriting, size_t n, int producer)
{
    const struct node *pool = &rewriting->graph->nodes[producer];
    if (pool->epilogue.add != NO_VALUE) return false;
    rewriting->graph->nodes[n].inputs[0] = pool->inputs[0];
    return true;
}

const struct pattern pattern_sum_of_pool_gradient = {
    .operation = &operation_channel_sum,
    .producer = &operation_max_pool_gradient,
    .apply = sum_before_pool_gradient,
};
