/* Rewriting around batch normalisation: statistics and gradients of activations in the nodes next to it, normalisation
 * in those that read it; and what it becomes in inference. */
#include "base/memory.h"
#include "graph/edit.h"
#include "layers/batch_norm/batch_norm.h"
#include "layers/conv2d/conv2d.h"
#include "layers/layers.h"
#include "layers/patterns.h"

/* ------------------------------------------------------------------------------------------------ statistics ---- */

/* Returns a new value for statistics of the first output of node n, if the node's implementation supports the fusion
 * `kind`; else NO_VALUE. numbers: of each part and channel. */
static int statistics_of(const struct rewriting *rewriting, int n, enum fusion_kind kind, int64_t numbers)
{
    struct graph *graph = rewriting->graph;
    struct problem problem;
    const struct implementation *implementation = rewriting->choose(rewriting, &graph->nodes[n], &problem);
    if (!implementation || !(implementation->fusions >> kind & 1)) return NO_VALUE;
    if (!rewriting->design(rewriting, implementation, &problem)) return NO_VALUE;
    const int64_t width = problem.device->vector_width, parts = implementation->statistics(&problem);
    if (parts == 0) return NO_VALUE;
    const tutti_shape shape =
        TUTTI_SHAPE(parts, numbers, divide_up(problem.outputs[0]->shape.sizes[CHANNEL_AXIS], width) * width);
    const int value = graph_value(graph, ROLE_TEMPORARY, TYPE_F32, shape, false, NULL);
    if (value != NO_VALUE) graph_at(graph, value)->producer = n;
    return value;
}

/* Whether the node would read statistics, and does not yet. */
static bool wants_statistics(const struct rewriting *rewriting, const struct node *node)
{
    return !node_fusion(node, FUSION_GIVEN) && pattern_supports(rewriting, node, FUSION_GIVEN);
}

/* A batch normalisation reads the statistics of its input from the node that makes the input, if that can compute
 * them: one pass less. */
static bool fuse_statistics(const struct rewriting *rewriting, size_t n, int producer)
{
    struct node *before = &rewriting->graph->nodes[producer], *node = &rewriting->graph->nodes[n];
    if (!wants_statistics(rewriting, node)) return false;
    const struct fusion *given = node_fusion(before, FUSION_STATISTICS);
    const int statistics =
        given ? before->outputs[given->output] : statistics_of(rewriting, producer, FUSION_STATISTICS, 3);
    if (statistics == NO_VALUE) return false;
    if (!given) node_fuse(before, (struct fusion) { FUSION_STATISTICS }, NULL, statistics);
    node_fuse(node, (struct fusion) { FUSION_GIVEN }, &statistics, NO_VALUE);
    return true;
}

/* The gradient of a batch normalisation reads sums from the node that makes dy, if nothing else reads dy. dy then
 * becomes the gradient before the activation, which the addition's other branch needs, too. */
static bool fuse_gradient_statistics(const struct rewriting *rewriting, size_t n, int producer)
{
    struct graph *graph = rewriting->graph;
    struct node *node = &graph->nodes[n], *before = &graph->nodes[producer];
    const struct fusion *masked = node_fusion(node, FUSION_MASKED);
    const int dy = node->inputs[GRADIENT_DY], other = masked ? node->outputs[masked->output] : NO_VALUE;
    if (!wants_statistics(rewriting, node) || edit_is_kept(graph, dy) || edit_uses(graph, dy) != 1) return false;
    if (other != NO_VALUE && edit_is_kept(graph, other)) return false;
    if (node_fusions(before) & (FUSED(MASK) | FUSED(GATE))) return false;
    const int statistics = statistics_of(rewriting, producer, FUSION_GATE, 2);
    if (statistics == NO_VALUE) return false;
    const int inputs[GATE_INPUTS] = { node->inputs[GRADIENT_X], node->inputs[GRADIENT_GAMMA],
        masked ? node->inputs[masked->input + MASKED_BETA] : NO_VALUE, node->inputs[GRADIENT_MEAN],
        node->inputs[GRADIENT_RSTD], masked ? node->inputs[masked->input + MASKED_Y] : NO_VALUE };
    node_fuse(before, (struct fusion) { FUSION_GATE, node_function(node, FUSION_MASKED) }, inputs, statistics);
    node_separate(node, ~FUSED(MASKED));
    node_fuse(node, (struct fusion) { FUSION_GIVEN }, &statistics, NO_VALUE);
    if (other != NO_VALUE) edit_replace(graph, other, dy, n + 1);
    return true;
}

const struct pattern pattern_norm_statistics = {
    .operation = &operation_batch_norm,
    .input = NORM_X,
    .producer = &operation_conv2d,
    .apply = fuse_statistics,
};
const struct pattern pattern_norm_gradient_statistics = {
    .operation = &operation_batch_norm_gradient,
    .input = GRADIENT_DY,
    .producer = &operation_conv2d_data_gradient,
    .apply = fuse_gradient_statistics,
};

/* ------------------------------------------------------------------------------------ gradient of activations ---- */

/* The forward batch normalisation whose statistics this gradient node reads. */
static const struct node *forward_norm(const struct graph *graph, const struct node *gradient)
{
    const int producer = graph_at(graph, gradient->inputs[GRADIENT_MEAN])->producer;
    return producer < 0 ? NULL : &graph->nodes[producer];
}

static bool is_read_between(const struct graph *graph, int value, size_t first, size_t last)
{
    for (size_t i = first; i < last; i++)
        if (graph->nodes[i].operation && edit_reads(&graph->nodes[i], value)) return true;
    return false;
}

/* gradient of an activation -> gradient of the batch normalisation that applied it: one pass less over dy. If the
 * forward node also added something, that branch gets the masked gradient too. */
static bool fuse_gradient_activation(const struct rewriting *rewriting, size_t n, int producer)
{
    struct graph *graph = rewriting->graph;
    struct node *node = &graph->nodes[n], *mask = &graph->nodes[producer];
    const struct node *forward = forward_norm(graph, node);
    const int masked = node->inputs[GRADIENT_DY];
    if (node_fusion(node, FUSION_MASKED) || edit_is_kept(graph, masked)) return false;
    if (!forward || node_added(mask) != NO_VALUE) return false;
    if (forward->outputs[NORM_Y] != mask->inputs[0] || !node_fusion(forward, FUSION_ACTIVATION)) return false;
    if (node_added(node) == masked) return false; /* it would add its own output */
    if (is_read_between(graph, masked, (size_t)producer + 1, n)) return false;
    const bool others = edit_uses(graph, masked) > 1;
    const int inputs[MASKED_INPUTS] = { node_added(forward) != NO_VALUE ? mask->inputs[0] : NO_VALUE,
        forward->inputs[NORM_BETA] };
    const struct fusion fusion = { FUSION_MASKED, activation_attributes(mask)->function };
    if (!pattern_fuse(rewriting, (int)n, fusion, inputs, others ? masked : NO_VALUE)) return false;
    node->inputs[GRADIENT_DY] = mask->inputs[1];
    mask->operation = NULL;
    if (others) graph_at(graph, masked)->producer = (int)n;
    return true;
}

const struct pattern pattern_norm_gradient_activation = {
    .operation = &operation_batch_norm_gradient,
    .input = GRADIENT_DY,
    .producer = &operation_activation_gradient,
    .apply = fuse_gradient_activation,
};

/* --------------------------------------------------------------------------------------------- normalisation ---- */

/* Whether the node reads the value as its first input alone, and can normalise it as it loads it. */
static bool takes_normalisation(const struct rewriting *rewriting, const struct node *node, int value)
{
    if (node_fusion(node, FUSION_ACTIVATION) || !pattern_supports(rewriting, node, FUSION_NORMALISED)) return false;
    if (node->inputs[0] != value || node_added(node) == value) return false;
    for (int i = 1; i < node->input_count; i++)
        if (node->inputs[i] == value) return false;
    return !node_fusion(node, FUSION_NORMALISED);
}

/* The readers of a batch normalisation compute its output from its input as they load that, if all of them can. The
 * output is then not stored. Not for an activation with exp(), which would be evaluated for each load. */
static bool fuse_normalisation(const struct rewriting *rewriting, size_t n, int producer)
{
    struct graph *graph = rewriting->graph;
    struct node *norm = &graph->nodes[n];
    struct problem problem;
    const int y = norm->outputs[NORM_Y];
    const struct nonlinearity function = node_function(norm, FUSION_ACTIVATION);
    const int coefficients[NORMALISED_INPUTS] = { norm->inputs[NORM_GAMMA], norm->inputs[NORM_BETA],
        norm->outputs[NORM_SAVED_MEAN], norm->outputs[NORM_SAVED_RSTD] };
    (void)producer;
    if (node_added(norm) != NO_VALUE || function.activation > ACTIVATION_LEAKY_RELU) return false;
    const struct implementation *implementation = rewriting->choose(rewriting, norm, &problem);
    if (!implementation || !implementation->leaves_normalising || y == NO_VALUE || edit_is_kept(graph, y)) return false;
    for (size_t i = n + 1; i < graph->node_count; i++) {
        const struct node *reader = &graph->nodes[i];
        if (reader->operation && edit_reads(reader, y) && !takes_normalisation(rewriting, reader, y)) return false;
    }
    for (size_t i = n + 1; i < graph->node_count; i++) {
        struct node *reader = &graph->nodes[i];
        if (!reader->operation || reader->inputs[0] != y) continue;
        reader->inputs[0] = norm->inputs[NORM_X];
        node_fuse(reader, (struct fusion) { FUSION_NORMALISED, function }, coefficients, NO_VALUE);
    }
    node_separate(norm, ~FUSED(ACTIVATION));
    norm->outputs[NORM_Y] = NO_VALUE;
    return true;
}

const struct pattern pattern_normalisation = {
    .operation = &operation_batch_norm,
    .input = NORM_X,
    .apply = fuse_normalisation,
};

/* ------------------------------------------------------------------------------------------------- inference ---- */

/* Returns the node that makes the input, if the batch normalisation can move into its weights; else -1. */
static int foldable(const struct graph *graph, const struct node *norm)
{
    const int producer = pattern_sole_producer(graph, norm->inputs[NORM_X]);
    if (producer < 0) return -1;
    const struct node *before = &graph->nodes[producer];
    const bool dense = before->operation == &operation_dense;
    if (!(dense || before->operation == &operation_conv2d)) return -1;
    if (before->fusion_count) return -1;
    const int features = graph_at(graph, norm->inputs[NORM_X])->shape.rank - 1;
    if (dense && features != CHANNEL_AXIS) return -1;
    return graph_at(graph, before->inputs[1])->role == ROLE_PARAMETER ? producer : -1;
}

/* w' = w gamma / sqrt(var + epsilon), b' = beta + (b - mean) gamma / sqrt(var + epsilon), made once. */
static tutti_status fold(struct graph *graph, size_t norm, int before)
{
    struct node node = graph->nodes[norm], target = graph->nodes[before];
    const int bias = target.input_count > 2 ? target.inputs[2] : NO_VALUE;
    const int inputs[6] = { target.inputs[1], bias, node.inputs[NORM_GAMMA], node.inputs[NORM_BETA],
        node.inputs[NORM_MEAN], node.inputs[NORM_VAR] };
    if (graph_append(graph, &operation_fold_batch_norm, batch_norm_attributes(&node), inputs, 6, target.layer) ==
        NO_VALUE)
        return graph->status;
    const struct node folded = *graph_last(graph);
    target.inputs[1] = folded.outputs[0];
    target.inputs[2] = folded.outputs[1];
    target.input_count = 3;
    target.outputs[0] = node.outputs[NORM_Y];
    graph->nodes[before] = target;
    graph->nodes[norm].operation = NULL;
    edit_move_last(graph, (size_t)before);
    return TUTTI_OK;
}

static tutti_status scale_and_shift(struct graph *graph, size_t norm)
{
    const struct node node = graph->nodes[norm];
    if (graph_append(graph, &operation_batch_norm_inference, batch_norm_attributes(&node), node.inputs, 5,
            node.layer) == NO_VALUE)
        return graph->status;
    struct node made = *graph_last(graph);
    graph->node_count--;
    made.outputs[0] = node.outputs[NORM_Y]; /* the value that it appended stays behind, unused */
    graph->nodes[norm] = made;
    return TUTTI_OK;
}

tutti_status batch_norm_in_inference(struct graph *graph, size_t *n, int *same)
{
    const int before = foldable(graph, &graph->nodes[*n]);
    (void)same;
    if (before < 0) return scale_and_shift(graph, *n);
    const tutti_status status = fold(graph, *n, before);
    ++*n; /* the folding node was inserted before it */
    return status;
}
