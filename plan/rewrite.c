/* Fusions, as rules over nodes. A rule looks at one node and says whether it changed the graph; rules run until none
 * does. A rule sets an epilogue only where the implementation that will be chosen takes it, so nothing is ever undone.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "layers/batch_norm.h"
#include "layers/conv2d.h"
#include "layers/layers.h"
#include "plan/edit.h"
#include "plan/node.h"

/* The node that makes `value`, if the value has no other use than one more, and the node's first output is it. */
static int sole_producer(const struct graph *graph, int value)
{
    const struct value *v = graph_at(graph, value);
    if (!v || v->producer < 0 || edit_is_kept(graph, value) || edit_uses(graph, value) != 1) return -1;
    return graph->nodes[v->producer].outputs[0] == value ? v->producer : -1;
}

/* Whether the implementation of node `n` would take the epilogue that it now has. */
static bool takes(const struct plan *plan, int n, unsigned wanted)
{
    const struct node *node = &plan->graph.nodes[n];
    const struct implementation *implementation = choose_implementation(plan, node);
    if (!implementation || !implementation->epilogues) return false;
    if (implementation->statistics && node->outputs[STATISTICS_OUTPUT] != NO_VALUE) return false; /* without epilogue */
    if (implementation->takes_mask && node->inputs[MASK_INPUT] != NO_VALUE) return false;
    if (implementation->takes_normalisation && node->inputs[NORMALISED_GAMMA] != NO_VALUE) return false;
    struct problem problem;
    problem_of(plan, node, &problem);
    return (implementation->epilogues(&problem) & wanted) == wanted;
}

/* Node `before` now makes what node n made; n is dropped. */
static void take_output(struct graph *graph, int before, size_t n)
{
    graph->nodes[before].outputs[0] = graph->nodes[n].outputs[0];
    graph_at(graph, graph->nodes[n].outputs[0])->producer = before;
    graph->nodes[n].operation = NULL;
}

/* result -> activation: the activation moves into the node before. Its gradient reads its output only. */
static bool fuse_activation(struct plan *plan, size_t n)
{
    struct graph *graph = &plan->graph;
    struct node *node = &graph->nodes[n];
    if (node->operation != &operation_activation || node->epilogue.add != NO_VALUE) return false;
    int before = sole_producer(graph, node->inputs[0]);
    if (before < 0 || graph->nodes[before].epilogue.activation) return false;
    struct node saved = graph->nodes[before], *target = &graph->nodes[before];
    target->epilogue.activation = node->attributes.activation;
    target->epilogue.low = node->attributes.low;
    target->epilogue.high = node->attributes.high;
    if (!takes(plan, before, EPILOGUE_ACTIVATION)) {
        *target = saved;
        return false;
    }
    take_output(graph, before, n);
    return true;
}

/* a + b, where the later of both is made for this sum alone: it adds the other one while it writes. */
static bool fuse_add(struct plan *plan, size_t n)
{
    struct graph *graph = &plan->graph;
    struct node *node = &graph->nodes[n];
    if (node->operation != &operation_add || node->epilogue.activation || node->inputs[0] == node->inputs[1])
        return false;
    if (!shape_equal(graph_at(graph, node->inputs[0])->shape, graph_at(graph, node->inputs[1])->shape)) return false;
    for (int side = 0; side < 2; side++) {
        int before = sole_producer(graph, node->inputs[side]), other = node->inputs[1 - side];
        if (before < 0 || graph_at(graph, other)->producer >= before) continue;
        struct node saved = graph->nodes[before], *target = &graph->nodes[before];
        if (target->epilogue.activation || target->epilogue.add != NO_VALUE) continue;
        target->epilogue.add = other;
        if (takes(plan, before, EPILOGUE_ADD)) {
            take_output(graph, before, n);
            return true;
        }
        *target = saved;
    }
    return false;
}

/* The value with the statistics of what node n makes first, which it gives from now on; NO_VALUE where it cannot.
 * numbers: of each part and channel. */
static int give_statistics(struct plan *plan, int n, int64_t numbers)
{
    struct graph *graph = &plan->graph;
    struct node *node = &graph->nodes[n];
    const struct implementation *implementation = choose_implementation(plan, node);
    if (!implementation || !implementation->statistics) return NO_VALUE;
    if (node->outputs[STATISTICS_OUTPUT] != NO_VALUE) return node->outputs[STATISTICS_OUTPUT];
    struct problem problem;
    problem_of(plan, node, &problem);
    int64_t width = plan->device->can.vector_width, parts = implementation->statistics(&problem);
    if (parts == 0) return NO_VALUE;
    tutti_shape shape = TUTTI_SHAPE(parts, numbers, divide_up(problem.outputs[0]->shape.sizes[1], width) * width);
    int value = graph_value(graph, ROLE_TEMPORARY, TYPE_F32, shape, false, NULL);
    if (value == NO_VALUE) return NO_VALUE;
    graph_at(graph, value)->producer = n;
    node->attributes.statistics = shape;
    node->outputs[STATISTICS_OUTPUT] = value;
    node->output_count = STATISTICS_OUTPUT + 1;
    return value;
}

/* The node of this operation whose first output is an input of node n, if n would take statistics of it and has none
 * yet; -1: there is none. */
static int statistics_producer(const struct plan *plan, size_t n, int input, const struct operation *operation)
{
    const struct node *node = &plan->graph.nodes[n];
    if (node->inputs[STATISTICS_INPUT] != NO_VALUE) return -1;
    int producer = graph_at(&plan->graph, node->inputs[input])->producer;
    const struct implementation *implementation = choose_implementation(plan, node);
    if (producer < 0 || !implementation || !implementation->takes_statistics) return -1;
    const struct node *before = &plan->graph.nodes[producer];
    return before->operation == operation && before->outputs[0] == node->inputs[input] ? producer : -1;
}

/* A batch normalisation reads the statistics of its input where the node that makes it can give them: one pass less. */
static bool fuse_statistics(struct plan *plan, size_t n)
{
    struct node *node = &plan->graph.nodes[n];
    if (node->operation != &operation_batch_norm) return false;
    int producer = statistics_producer(plan, n, NORM_X, &operation_conv2d);
    int statistics = producer < 0 ? NO_VALUE : give_statistics(plan, producer, 3);
    if (statistics == NO_VALUE) return false;
    node->inputs[STATISTICS_INPUT] = statistics;
    node->input_count = STATISTICS_INPUT + 1;
    return true;
}

/* The same for its gradient, where the output's gradient is made for it alone: it then arrives behind the activation,
 * and what the addition's other branch needs is the same tensor. */
static bool fuse_gradient_statistics(struct plan *plan, size_t n)
{
    struct graph *graph = &plan->graph;
    struct node *node = &graph->nodes[n];
    if (node->operation != &operation_batch_norm_gradient) return false;
    int dy = node->inputs[GRADIENT_DY];
    int producer = statistics_producer(plan, n, GRADIENT_DY, &operation_conv2d_data_gradient);
    if (producer < 0 || edit_is_kept(graph, dy) || edit_uses(graph, dy) != 1) return false;
    int other = node->outputs[GRADIENT_DADD];
    if (other != NO_VALUE && edit_is_kept(graph, other)) return false;
    if (graph->nodes[producer].inputs[MASK_INPUT] != NO_VALUE) return false;
    int statistics = give_statistics(plan, producer, 2);
    if (statistics == NO_VALUE) return false;
    struct node *before = &graph->nodes[producer];
    before->inputs[DATA_GRADIENT_X] = node->inputs[GRADIENT_X];
    before->inputs[DATA_GRADIENT_GAMMA] = node->inputs[GRADIENT_GAMMA];
    before->inputs[DATA_GRADIENT_BETA] = node->inputs[GRADIENT_BETA];
    before->inputs[DATA_GRADIENT_MEAN] = node->inputs[GRADIENT_MEAN];
    before->inputs[DATA_GRADIENT_RSTD] = node->inputs[GRADIENT_RSTD];
    before->inputs[DATA_GRADIENT_Y] = node->inputs[GRADIENT_Y];
    before->input_count = DATA_GRADIENT_Y + 1;
    before->attributes.activation = node->attributes.activation;
    before->attributes.low = node->attributes.low;
    before->attributes.high = node->attributes.high;
    node->attributes.activation = ACTIVATION_NONE;
    node->inputs[GRADIENT_STATISTICS] = statistics;
    node->inputs[GRADIENT_BETA] = node->inputs[GRADIENT_Y] = NO_VALUE;
    node->input_count = GRADIENT_STATISTICS + 1;
    if (other != NO_VALUE) edit_replace(graph, other, dy, n + 1);
    node->outputs[GRADIENT_DADD] = NO_VALUE;
    return true;
}

/* The forward batch normalisation whose statistics this gradient node reads. */
static const struct node *forward_norm(const struct graph *graph, const struct node *gradient)
{
    int producer = graph_at(graph, gradient->inputs[3])->producer;
    return producer < 0 ? NULL : &graph->nodes[producer];
}

/* gradient of an activation -> gradient of the batch normalisation that applied it: one pass less over dy. Where the
 * forward node also added something, the masked gradient goes to that branch too. */
static bool fuse_norm_gradient(struct plan *plan, size_t n)
{
    struct graph *graph = &plan->graph;
    struct node *node = &graph->nodes[n];
    if (node->operation != &operation_batch_norm_gradient || node->attributes.activation) return false;
    const struct value *dy = graph_at(graph, node->inputs[1]);
    if (dy->producer < 0 || edit_is_kept(graph, node->inputs[1])) return false;
    struct node *mask = &graph->nodes[dy->producer];
    const struct node *forward = forward_norm(graph, node);
    if (!forward || mask->operation != &operation_activation_gradient || mask->epilogue.add != NO_VALUE) return false;
    if (forward->outputs[0] != mask->inputs[0] || !forward->epilogue.activation) return false;
    if (node->epilogue.add == node->inputs[1]) return false; /* it would add its own output */
    for (size_t i = (size_t)dy->producer + 1; i < n; i++) {  /* nobody may need the masked gradient earlier */
        const struct node *between = &graph->nodes[i];
        if (!between->operation) continue;
        for (int k = 0; k < between->input_count; k++)
            if (between->inputs[k] == node->inputs[1]) return false;
        if (between->epilogue.add == node->inputs[1]) return false;
    }
    bool added = forward->epilogue.add != NO_VALUE;
    struct node saved = *node;
    int masked = node->inputs[1];
    bool others = edit_uses(graph, masked) > 1;
    node->attributes.activation = mask->attributes.activation;
    node->attributes.low = mask->attributes.low;
    node->attributes.high = mask->attributes.high;
    node->inputs[1] = mask->inputs[1];
    node->inputs[GRADIENT_Y] = added ? mask->inputs[0] : NO_VALUE;
    node->inputs[GRADIENT_BETA] = forward->inputs[NORM_BETA];
    node->input_count = GRADIENT_BETA + 1;
    node->output_count = 4;
    node->outputs[3] = others ? masked : NO_VALUE;
    if (!takes(plan, (int)n, EPILOGUE_ACTIVATION)) {
        *node = saved;
        return false;
    }
    mask->operation = NULL;
    if (others) graph_at(graph, masked)->producer = (int)n;
    return true;
}

/* Whether the node reads the value as its first input alone, and can normalise it as it loads it. */
static bool takes_normalisation(const struct plan *plan, const struct node *node, int value)
{
    const struct implementation *implementation = choose_implementation(plan, node);
    if (!implementation || !implementation->takes_normalisation || node->epilogue.activation) return false;
    if (node->inputs[0] != value || node->epilogue.add == value) return false;
    for (int i = 1; i < node->input_count; i++)
        if (node->inputs[i] == value || i >= NORMALISED_GAMMA) return false;
    return true;
}

/* A batch normalisation whose output only nodes read that can make it of its input as they load that: it is not
 * stored. An activation with exp() would be evaluated for each load. */
static bool fuse_normalisation(struct plan *plan, size_t n)
{
    struct graph *graph = &plan->graph;
    struct node *norm = &graph->nodes[n];
    if (norm->operation != &operation_batch_norm || norm->epilogue.add != NO_VALUE) return false;
    if (norm->epilogue.activation > ACTIVATION_LEAKY_RELU) return false;
    const struct implementation *implementation = choose_implementation(plan, norm);
    const int y = norm->outputs[NORM_Y];
    if (!implementation || !implementation->leaves_normalising || y == NO_VALUE || edit_is_kept(graph, y)) return false;
    for (size_t i = n + 1; i < graph->node_count; i++) {
        const struct node *reader = &graph->nodes[i];
        if (reader->operation && edit_reads(reader, y) && !takes_normalisation(plan, reader, y)) return false;
    }
    for (size_t i = n + 1; i < graph->node_count; i++) {
        struct node *reader = &graph->nodes[i];
        if (!reader->operation || reader->inputs[0] != y) continue;
        reader->inputs[0] = norm->inputs[NORM_X];
        reader->inputs[NORMALISED_GAMMA] = norm->inputs[NORM_GAMMA];
        reader->inputs[NORMALISED_BETA] = norm->inputs[NORM_BETA];
        reader->inputs[NORMALISED_MEAN] = norm->outputs[NORM_SAVED_MEAN];
        reader->inputs[NORMALISED_RSTD] = norm->outputs[NORM_SAVED_RSTD];
        reader->input_count = NORMALISED_RSTD + 1;
        reader->attributes.activation = norm->epilogue.activation;
        reader->attributes.low = norm->epilogue.low;
        reader->attributes.high = norm->epilogue.high;
    }
    norm->epilogue.activation = ACTIVATION_NONE;
    norm->outputs[NORM_Y] = NO_VALUE;
    return true;
}

/* gradient of max pooling -> gradient of the activation that was pooled: they change places. An activation's gradient
 * is a factor that depends on its output, and where pooling puts a gradient that output is the window's maximum: so the
 * factor is applied to the smaller tensor, and the activation's output is not read again. */
static bool swap_pool_gradient(struct plan *plan, size_t n)
{
    struct graph *graph = &plan->graph;
    struct node factor = graph->nodes[n];
    if (factor.operation != &operation_activation_gradient || factor.epilogue.add != NO_VALUE) return false;
    int before = sole_producer(graph, factor.inputs[1]);
    if (before < 0) return false;
    struct node pool = graph->nodes[before];
    if (pool.operation != &operation_max_pool_gradient || pool.epilogue.add != NO_VALUE) return false;
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
    graph->nodes[before] = factor;
    graph->nodes[n] = pool;
    return true;
}

/* gradient of max pooling -> sum over each channel (a bias's gradient): pooling only moves what it is given, so the sum
 * of that is the same, over the smaller tensor. */
static bool sum_before_pool_gradient(struct plan *plan, size_t n)
{
    struct graph *graph = &plan->graph;
    struct node *sum = &graph->nodes[n];
    int producer = graph_at(graph, sum->inputs[0])->producer;
    if (sum->operation != &operation_channel_sum || producer < 0) return false;
    const struct node *pool = &graph->nodes[producer];
    if (pool->operation != &operation_max_pool_gradient || pool->epilogue.add != NO_VALUE) return false;
    sum->inputs[0] = pool->inputs[0];
    return true;
}

/* data gradient -> gradient of an activation: the data gradient stores its result behind the activation. */
static bool fuse_mask(struct plan *plan, size_t n)
{
    struct graph *graph = &plan->graph;
    const struct node *factor = &graph->nodes[n];
    if (factor->operation != &operation_activation_gradient || factor->epilogue.add != NO_VALUE) return false;
    int before = sole_producer(graph, factor->inputs[1]);
    if (before < 0 || graph_at(graph, factor->inputs[0])->producer >= before) return false;
    struct node *target = &graph->nodes[before];
    const struct implementation *implementation = choose_implementation(plan, target);
    if (!implementation || !implementation->takes_mask || target->inputs[MASK_INPUT] != NO_VALUE) return false;
    if (target->epilogue.activation || target->epilogue.add != NO_VALUE || target->output_count > 1) return false;
    target->inputs[MASK_INPUT] = factor->inputs[0];
    target->input_count = MASK_INPUT + 1;
    target->attributes.activation = factor->attributes.activation;
    target->attributes.low = factor->attributes.low;
    target->attributes.high = factor->attributes.high;
    take_output(graph, before, n);
    return true;
}

/* weight gradient, and the sum of the same gradient over each channel (a bias's gradient): the former makes both. */
static bool fuse_sum(struct plan *plan, size_t n)
{
    struct graph *graph = &plan->graph;
    const struct node *sum = &graph->nodes[n];
    if (sum->operation != &operation_channel_sum || sum->epilogue.add != NO_VALUE) return false;
    if (edit_uses(graph, sum->outputs[0]) > 0) return false; /* it might be read before the weight gradient is made */
    for (size_t i = 0; i < graph->node_count; i++) {
        struct node *target = &graph->nodes[i];
        if (target->operation != &operation_dense_weight_gradient || target->inputs[1] != sum->inputs[0]) continue;
        const struct implementation *implementation = choose_implementation(plan, target);
        if (!implementation || !implementation->gives_sum || target->outputs[SUM_OUTPUT] != NO_VALUE) continue;
        target->outputs[SUM_OUTPUT] = sum->outputs[0];
        target->output_count = SUM_OUTPUT + 1;
        graph_at(graph, sum->outputs[0])->producer = (int)i;
        graph->nodes[n].operation = NULL;
        return true;
    }
    return false;
}

/* Whether node `weights` is the weights' gradient of the convolution whose data gradient is `data`, of the tensor that
 * this one's gate normalises. */
static bool is_of_gate(const struct node *weights, const struct node *data)
{
    const struct attributes *a = &weights->attributes, *b = &data->attributes;
    if (weights->operation != &operation_conv2d_weight_gradient || weights->epilogue.add != NO_VALUE) return false;
    if (weights->inputs[0] != data->inputs[DATA_GRADIENT_X] || weights->inputs[1] != data->inputs[0]) return false;
    for (int i = NORMALISED_GAMMA; i <= NORMALISED_RSTD; i++)
        if (weights->inputs[i] == NO_VALUE || weights->inputs[i] != data->inputs[i]) return false;
    return a->activation == b->activation && a->low == b->low && a->high == b->high &&
        data->inputs[DATA_GRADIENT_Y] == NO_VALUE;
}

/* Data gradient behind a gate, and weight gradient of what the gate normalises: both read the same two tensors, so the
 * former makes both. */
static bool fuse_weights(struct plan *plan, size_t n)
{
    struct graph *graph = &plan->graph;
    struct node *data = &graph->nodes[n];
    if (data->operation != &operation_conv2d_data_gradient || data->inputs[DATA_GRADIENT_GAMMA] == NO_VALUE)
        return false;
    if (data->outputs[STATISTICS_OUTPUT] == NO_VALUE || data->outputs[WEIGHTS_OUTPUT] != NO_VALUE) return false;
    const struct implementation *implementation = choose_implementation(plan, data);
    if (!implementation || !implementation->gives_weights) return false;
    for (size_t i = 0; i < n; i++) {
        struct node *weights = &graph->nodes[i];
        if (!weights->operation || !is_of_gate(weights, data)) continue;
        if (edit_uses(graph, weights->outputs[0]) > 0)
            return false; /* it might be read before the data gradient is made */
        data->outputs[WEIGHTS_OUTPUT] = weights->outputs[0];
        data->output_count = WEIGHTS_OUTPUT + 1;
        graph_at(graph, weights->outputs[0])->producer = (int)n;
        weights->operation = NULL;
        return true;
    }
    return false;
}

typedef bool (*rule)(struct plan *plan, size_t n);

tutti_status pass_rewrite(struct plan *plan)
{
    /* Sums before what follows them; a batch normalisation takes an activation's gradient before pooling does, and a
     * data gradient takes what is left. Who reads a batch normalisation is known when all that is done. */
    static const rule rules[] = { fuse_add, fuse_activation, fuse_norm_gradient, fuse_statistics, swap_pool_gradient,
        sum_before_pool_gradient, fuse_gradient_statistics, fuse_mask, fuse_sum, fuse_normalisation, fuse_weights };
    bool changed = true;
    while (changed) {
        changed = false;
        for (size_t r = 0; r < sizeof rules / sizeof *rules; r++)
            for (size_t n = 0; n < plan->graph.node_count; n++)
                if (plan->graph.nodes[n].operation && rules[r](plan, n)) changed = true;
        edit_compact(&plan->graph);
    }
    return TUTTI_OK;
}

tutti_status pass_sweep(struct plan *plan)
{
    struct graph *graph = &plan->graph;
    for (size_t n = graph->node_count; n-- > 0;) {
        struct node *node = &graph->nodes[n];
        bool wanted = false;
        for (int i = 0; i < node->output_count; i++) {
            if (node->outputs[i] == NO_VALUE) continue;
            const bool used = edit_is_kept(graph, node->outputs[i]) || edit_uses(graph, node->outputs[i]) > 0;
            if (!used && !(node->operation->outputs[i].flags & PORT_OWN)) node->outputs[i] = NO_VALUE;
            wanted |= used;
        }
        if (!wanted) node->operation = NULL;
    }
    edit_compact(graph);
    return TUTTI_OK;
}
