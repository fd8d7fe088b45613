/* The operation and its gradient. attention_problem.c has what implementations read of a problem. */
#include "graph/network.h"
#include "layers/attention/attention.h"

#include <math.h>

ATTRIBUTES_DESCRIBE(attention, ATTRIBUTE(attention, FLAG, q_joined), ATTRIBUTE(attention, FLAG, k_joined),
    ATTRIBUTE(attention, FLAG, v_joined), ATTRIBUTE(attention, FLAG, y_joined), ATTRIBUTE(attention, FLAG, open),
    ATTRIBUTE(attention, NUMBER, scale), ATTRIBUTE(attention, NUMBER, probability), ATTRIBUTE(attention, OTHER, stream))

/* ------------------------------------------------------------------------------------------------------ shapes ---- */

static bool fits_axis(const struct value *bias, int from_last, int64_t size)
{
    return from_last >= bias->shape.rank - bias->batched || value_size(bias, from_last) == size ||
        (from_last > 0 && value_size(bias, from_last) == 1);
}

static bool bias_fits(const struct value *bias, const struct value *q, int64_t heads, int64_t length, int64_t keys)
{
    const int axes = bias->shape.rank - bias->batched;
    return axes >= 1 && axes <= 3 && (!bias->batched || bias->shape.sizes[0] == q->shape.sizes[0]) &&
        fits_axis(bias, 0, keys) && fits_axis(bias, 1, length) && fits_axis(bias, 2, heads);
}

static tutti_status check_inputs(const struct graph *graph, const struct node *node)
{
    const struct attention_attributes *a = attention_attributes(node);
    const struct value *q = graph_at(graph, node->inputs[ATTENTION_Q]), *k = graph_at(graph, node->inputs[ATTENTION_K]);
    const struct value *v = graph_at(graph, node->inputs[ATTENTION_V]);
    const struct value *bias = graph_at(graph, node->inputs[ATTENTION_BIAS]);
    if (q->shape.rank != 4 || k->shape.rank != 4 || v->shape.rank != 4 || !q->batched || !k->batched || !v->batched)
        return fail(TUTTI_SHAPE, "attention: queries, keys and values must have two axes before their width");
    const int64_t heads = attention_heads(q, a->q_joined), keys = attention_length(k, a->k_joined);
    if (k->shape.sizes[0] != q->shape.sizes[0] || v->shape.sizes[0] != q->shape.sizes[0] ||
        attention_heads(k, a->k_joined) != heads || attention_heads(v, a->v_joined) != heads ||
        value_size(q, 0) != value_size(k, 0) || attention_length(v, a->v_joined) != keys)
        return fail(TUTTI_SHAPE, "attention: the shapes of queries, keys and values do not match");
    if (bias && !bias_fits(bias, q, heads, attention_length(q, a->q_joined), keys))
        return fail(TUTTI_SHAPE, "attention: the bias does not have the shape of the scores");
    if (!(a->probability >= 0 && a->probability < 1) || !isfinite(a->scale) ||
        (a->probability > 0 && node->inputs[ATTENTION_CONSTANTS] == NO_VALUE))
        return fail(TUTTI_INVALID, "attention: the scale or the probability of dropout is invalid");
    return TUTTI_OK;
}

static tutti_status infer(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct attention_attributes *a = attention_attributes(node);
    const struct value *q = graph_at(graph, node->inputs[ATTENTION_Q]), *v = graph_at(graph, node->inputs[ATTENTION_V]);
    const tutti_status status = check_inputs(graph, node);
    if (status != TUTTI_OK) return status;
    const int64_t heads = attention_heads(q, a->q_joined), length = attention_length(q, a->q_joined),
                  samples = q->shape.sizes[0];
    const int64_t width = value_size(v, 0);
    outputs[0] = (struct value) { .type = TYPE_F32, .batched = true };
    outputs[0].shape =
        a->y_joined ? TUTTI_SHAPE(samples, length, heads, width) : TUTTI_SHAPE(samples, heads, length, width);
    outputs[1] = (struct value) { .type = TYPE_F32, .batched = true, .shape = TUTTI_SHAPE(samples, heads, length, 2) };
    node->output_count = 2;
    return TUTTI_OK;
}

static tutti_status infer_gradient(const struct graph *graph, struct node *node, struct value *outputs)
{
    const tutti_status status = check_inputs(graph, node);
    const struct value *y = graph_at(graph, node->inputs[ATTENTION_Y]),
                       *dy = graph_at(graph, node->inputs[ATTENTION_DY]);
    if (status != TUTTI_OK) return status;
    if (!shape_equal(y->shape, dy->shape))
        return fail(TUTTI_SHAPE, "attention_gradient: the output and its gradient must have the same shape");
    for (int i = 0; i < 3; i++) {
        const struct value *of = graph_at(graph, node->inputs[ATTENTION_Q + i]);
        outputs[i] = (struct value) { .type = TYPE_F32, .batched = true, .shape = of->shape, .axes = of->axes };
    }
    node->output_count = 3;
    return TUTTI_OK;
}

static tutti_status gradient(struct graph *graph, const struct node *node, const struct node_gradients *g)
{
    if (g->outputs[0] == NO_VALUE) return TUTTI_OK;
    int inputs[ATTENTION_INPUTS];
    for (int i = 0; i < ATTENTION_Y; i++) inputs[i] = i < node->input_count ? node->inputs[i] : NO_VALUE;
    inputs[ATTENTION_Y] = node->outputs[0];
    inputs[ATTENTION_SOFTMAX] = node->outputs[1];
    inputs[ATTENTION_DY] = g->outputs[0];
    if (graph_append(graph, &operation_attention_gradient, attention_attributes(node), inputs, ATTENTION_INPUTS,
            node->layer) == NO_VALUE)
        return graph->status;
    for (int i = 0; i < 3; i++)
        if (g->wanted[i]) g->inputs[i] = graph_last(graph)->outputs[i];
    return TUTTI_OK;
}

static const struct implementation *const implementations[] = { &attention_blocks, &attention_plain, NULL };

const struct operation operation_attention = {
    .name = "attention",
    .inputs = { { "q" }, { "k" }, { "v" }, { "bias", PORT_OPTIONAL }, { "constants", PORT_OPTIONAL } },
    .outputs = { { "y" }, { "softmax" } },
    .attributes = &attention_attributes_type,
    .infer = infer,
    .gradient = gradient,
    .reference = attention_interpret,
    .implementations = implementations,
    .flops = attention_flops,
    .bytes = attention_bytes,
};
const struct operation operation_attention_gradient = {
    .name = "attention_gradient",
    .inputs = { { "q" }, { "k" }, { "v" }, { "bias", PORT_OPTIONAL }, { "constants", PORT_OPTIONAL }, { "y" },
        { "softmax" }, { "dy" } },
    .outputs = { { "dq" }, { "dk" }, { "dv" } },
    .attributes = &attention_attributes_type,
    .infer = infer_gradient,
    .reference = attention_interpret_gradient,
    .implementations = implementations,
    .flops = attention_flops,
    .bytes = attention_bytes,
};
