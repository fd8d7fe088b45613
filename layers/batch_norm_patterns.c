/* Rewriting around batch normalisation: statistics and gradients of activations in the nodes beside it, normalisation
 * in those that read it; and what it becomes in inference. */
#include "base/memory.h"
#include "graph/edit.h"
#include "layers/batch_norm.h"
#include "layers/conv2d.h"
#include "layers/layers.h"
#include "layers/patterns.h"

/* ------------------------------------------------------------------------------------------------ statistics ---- */

/* The value with the statistics of the first output of node n, which computes them from now on; NO_VALUE if it cannot.
 * numbers: of each part and channel. */
static int give_statistics(const struct rewriting *rewriting, int n, int64_t numbers)
{
    struct graph *graph = rewriting->graph;
    struct node *node = &graph->nodes[n];
    struct problem problem;
    const struct implementation *implementation = rewriting->choose(rewriting, node, &problem);
    if (!implementation || !implementation->statistics) return NO_VALUE;
    if (node->outputs[STATISTICS_OUTPUT] != NO_VALUE) return node->outputs[STATISTICS_OUTPUT];
    const int64_t width = problem.device->vector_width, parts = implementation->statistics(&problem);
    if (parts == 0) return NO_VALUE;
    const tutti_shape shape =
        TUTTI_SHAPE(parts, numbers, divide_up(problem.outputs[0]->shape.sizes[CHANNEL_AXIS], width) * width);
    const int value = graph_value(graph, ROLE_TEMPORARY, TYPE_F32, shape, false, NULL);
    if (value == NO_VALUE) return NO_VALUE;
    graph_at(graph, value)->producer = n;
    node->attributes.statistics = shape;
    node->outputs[STATISTICS_OUTPUT] = value;
    node->output_count = STATISTICS_OUTPUT + 1;
    return value;
}

/* Whether the node would read statistics, and does not yet. */
static bool wants_statistics(const struct rewriting *rewriting, const struct node *node)
{
    return node->inputs[STATISTICS_INPUT] == NO_VALUE && pattern_supports(rewriting, node, FUSED_GIVEN);
}

/* A batch normalisation reads the statistics of its input if the node that makes it can compute them: one pass less. */
static bool fuse_statistics(const struct rewriting *rewriting, size_t n, int producer)
{
    struct node *node = &rewriting->graph->nodes[n];
    const int statistics = wants_statistics(rewriting, node) ? give_statistics(rewriting, producer, 3) : NO_VALUE;
    if (statistics == NO_VALUE) return false;
    node->inputs[STATISTICS_INPUT] = statistics;
    node->input_count = STATISTICS_INPUT + 1;
    return true;
}

/* The gradient does so if the output's gradient is made for it alone. That is then the gradient before the activation,
 * and the addition's other branch needs the same tensor. */
static bool fuse_gradient_statistics(const struct rewriting *rewriting, size_t n, int producer)
{
    struct graph *graph = rewriting->graph;
    struct node *node = &graph->nodes[n];
    const int dy = node->inputs[GRADIENT_DY], other = node->outputs[GRADIENT_DADD];
    if (!wants_statistics(rewriting, node) || edit_is_kept(graph, dy) || edit_uses(graph, dy) != 1) return false;
    if (other != NO_VALUE && edit_is_kept(graph, other)) return false;
    if (graph->nodes[producer].inputs[MASK_INPUT] != NO_VALUE) return false;
    const int statistics = give_statistics(rewriting, producer, 2);
    if (statistics == NO_VALUE) return false;
    struct node *before = &graph->nodes[producer];
    before->inputs[DATA_GRADIENT_X] = node->inputs[GRADIENT_X];
    before->inputs[DATA_GRADIENT_GAMMA] = node->inputs[GRADIENT_GAMMA];
    before->inputs[DATA_GRADIENT_BETA] = node->inputs[GRADIENT_BETA];
    before->inputs[DATA_GRADIENT_MEAN] = node->inputs[GRADIENT_MEAN];
    before->inputs[DATA_GRADIENT_RSTD] = node->inputs[GRADIENT_RSTD];
    before->inputs[DATA_GRADIENT_Y] = node->inputs[GRADIENT_Y];
    before->input_count = DATA_GRADIENT_Y + 1;
    PATTERN_COPY_ACTIVATION(&before->attributes, &node->attributes);
    node->attributes.activation = ACTIVATION_NONE;
    node->inputs[GRADIENT_STATISTICS] = statistics;
    node->inputs[GRADIENT_BETA] = node->inputs[GRADIENT_Y] = NO_VALUE;
    node->input_count = GRADIENT_STATISTICS + 1;
    if (other != NO_VALUE) edit_replace(graph, other, dy, n + 1);
    node->outputs[GRADIENT_DADD] = NO_VALUE;
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
    const struct node saved = *node, *forward = forward_norm(graph, node);
    const int masked = node->inputs[GRADIENT_DY];
    if (node->attributes.activation || edit_is_kept(graph, masked)) return false;
    if (!forward || mask->epilogue.add != NO_VALUE) return false;
    if (forward->outputs[NORM_Y] != mask->inputs[0] || !forward->epilogue.activation) return false;
    if (node->epilogue.add == masked) return false; /* it would add its own output */
    if (is_read_between(graph, masked, (size_t)producer + 1, n)) return false;
    const bool others = edit_uses(graph, masked) > 1;
    PATTERN_COPY_ACTIVATION(&node->attributes, &mask->attributes);
    node->inputs[GRADIENT_DY] = mask->inputs[1];
    node->inputs[GRADIENT_Y] = forward->epilogue.add != NO_VALUE ? mask->inputs[0] : NO_VALUE;
    node->inputs[GRADIENT_BETA] = forward->inputs[NORM_BETA];
    node->input_count = GRADIENT_BETA + 1;
    node->output_count = GRADIENT_DADD + 1;
    node->outputs[GRADIENT_DADD] = others ? masked : NO_VALUE;
    if (!pattern_takes_epilogue(rewriting, (int)n, EPILOGUE_ACTIVATION)) {
        *node = saved;
        return false;
    }
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
    if (node->epilogue.activation || !pattern_supports(rewriting, node, FUSED_NORMALISATION)) return false;
    if (node->inputs[0] != value || node->epilogue.add == value) return false;
    for (int i = 1; i < node->input_count; i++)
        if (node->inputs[i] == value || i >= NORMALISED_GAMMA) return false;
    return true;
}

/* The readers of a batch normalisation compute its output from its input as they load that, if all of them can: it is
 * not stored. An activation with exp() would be evaluated for each load. */
static bool fuse_normalisation(const struct rewriting *rewriting, size_t n, int producer)
{
    struct graph *graph = rewriting->graph;
    struct node *norm = &graph->nodes[n];
    struct problem problem;
    const int y = norm->outputs[NORM_Y];
    (void)producer;
    if (norm->epilogue.add != NO_VALUE || norm->epilogue.activation > ACTIVATION_LEAKY_RELU) return false;
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
        reader->inputs[NORMALISED_GAMMA] = norm->inputs[NORM_GAMMA];
        reader->inputs[NORMALISED_BETA] = norm->inputs[NORM_BETA];
        reader->inputs[NORMALISED_MEAN] = norm->outputs[NORM_SAVED_MEAN];
        reader->inputs[NORMALISED_RSTD] = norm->outputs[NORM_SAVED_RSTD];
        reader->input_count = NORMALISED_RSTD + 1;
        PATTERN_COPY_ACTIVATION(&reader->attributes, &norm->epilogue);
    }
    norm->epilogue.activation = ACTIVATION_NONE;
    norm->outputs[NORM_Y] = NO_VALUE;
    return true;
}

const struct pattern pattern_normalisation = {
    .operation = &operation_batch_norm,
    .input = NORM_X,
    .apply = fuse_normalisation,
};

/* ------------------------------------------------------------------------------------------------- inference ---- */

/* The node that makes the input, if the batch normalisation can move into its weights; else -1. */
static int foldable(const struct graph *graph, const struct node *norm)
{
    const int producer = pattern_sole_producer(graph, norm->inputs[NORM_X]);
    if (producer < 0) return -1;
    const struct node *before = &graph->nodes[producer];
    const bool dense = before->operation == &operation_dense;
    if (!(dense || before->operation == &operation_conv2d)) return -1;
    if (before->epilogue.activation || before->epilogue.add != NO_VALUE) return -1;
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
    if (graph_append(graph, &operation_fold_batch_norm, &node.attributes, inputs, 6, target.layer) == NO_VALUE)
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
    if (graph_append(graph, &operation_batch_norm_inference, &node.attributes, node.inputs, 5, node.layer) == NO_VALUE)
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
    ++*n; /* the folding node was put in front */
    return status;
}
