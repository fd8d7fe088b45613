/* expand and transpose: move numbers without changing them. */
#include "layers/broadcast.h"
#include "layers/layers.h"
#include "layers/loop/loop.h"

#include <string.h>

ATTRIBUTES_DESCRIBE(
    expand, ATTRIBUTE(expand, SHAPE, shape), ATTRIBUTE(expand, NUMBER, factor), ATTRIBUTE(expand, LONG, rows))
ATTRIBUTES_DESCRIBE(transpose, ATTRIBUTE(transpose, ORDER, order))

static tutti_status infer_expand(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *x = graph_at(graph, node->inputs[0]);
    const struct expand_attributes *a = expand_attributes(node);
    outputs[0] =
        (struct value) { .type = TYPE_F32, .batched = x->batched || a->rows > 0, .rows = a->rows, .shape = a->shape };
    infer_axes(graph, node, &outputs[0]);
    const int ahead = outputs[0].shape.rank - x->shape.rank;
    for (int i = x->batched; i < x->shape.rank; i++) {
        const int64_t from = x->shape.sizes[i], to = ahead < 0 ? 0 : outputs[0].shape.sizes[ahead + i];
        if (from != to && from != 1)
            return fail(TUTTI_SHAPE, "expand: size %s of axis %d cannot become %s",
                size_print(from, (char[SIZE_TEXT]) { 0 }), i - x->batched, size_print(to, (char[SIZE_TEXT]) { 0 }));
    }
    return TUTTI_OK;
}

static tutti_status gradient_of_expand(struct graph *graph, const struct node *node, const struct node_gradients *g)
{
    if (g->outputs[0] == NO_VALUE || !g->wanted[0]) return TUTTI_OK;
    const float factor = expand_attributes(node)->factor;
    g->inputs[0] = broadcast_gradient(graph, g->outputs[0], node->inputs[0], node->layer);
    const struct pointwise_attributes scale = { .low = factor };
    if (factor != 1) g->inputs[0] = graph_append(graph, &operation_scale, &scale, g->inputs, 1, node->layer);
    return graph->status;
}

static tutti_status infer_transpose(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *x = graph_at(graph, node->inputs[0]);
    unsigned seen = 0;
    outputs[0] = (struct value) { .type = TYPE_F32, .batched = x->batched, .shape = x->shape };
    for (int i = 0; i < x->shape.rank; i++) {
        const int from = transpose_attributes(node)->order[i];
        if (from < 0 || from >= x->shape.rank || seen >> from & 1 || (x->batched && i == 0 && from != 0))
            return fail(
                TUTTI_INVALID, "transpose: the order must name each of the %d axes once", x->shape.rank - x->batched);
        seen |= 1u << from;
        outputs[0].shape.sizes[i] = x->shape.sizes[from];
        outputs[0].axes.kinds[i] = x->axes.kinds[from];
    }
    return TUTTI_OK;
}

static tutti_status gradient_of_transpose(struct graph *graph, const struct node *node, const struct node_gradients *g)
{
    if (g->outputs[0] == NO_VALUE || !g->wanted[0]) return TUTTI_OK;
    struct transpose_attributes attributes = { 0 };
    for (int i = 0; i < graph_at(graph, node->inputs[0])->shape.rank; i++)
        attributes.order[transpose_attributes(node)->order[i]] = i;
    g->inputs[0] = graph_append(graph, &operation_transpose, &attributes, g->outputs, 1, node->layer);
    return graph->status;
}

static void describe(const struct problem *problem, struct loop *loop)
{
    const struct node *node = problem->node;
    const struct value *x = problem->inputs[0], *y = problem->outputs[0];
    loop_begin(loop, y);
    const int operand = loop_add_operand(loop, problem, 0);
    if (node->operation == &operation_transpose) {
        const struct loop_operand plain = loop_operand_of(x, &x->shape, x->batched);
        for (int i = 0; i < y->shape.rank; i++)
            loop->operands[operand].strides[i] = plain.strides[transpose_attributes(node)->order[i]];
    } else if (expand_attributes(node)->factor != 1) {
        const float factor = expand_attributes(node)->factor;
        loop_add_expression(loop, &operation_scale.pointwise->y, factor, 0)->variables[VARIABLE_A] = operand;
    }
}

const struct operation operation_expand = {
    .name = "expand",
    .inputs = { { "x" } },
    .outputs = { { "y" } },
    .attributes = &expand_attributes_type,
    .infer = infer_expand,
    .gradient = gradient_of_expand,
    .loop = describe,
    .implementations = loop_implementations,
};
const struct operation operation_transpose = {
    .name = "transpose",
    .inputs = { { "x" } },
    .outputs = { { "y" } },
    .attributes = &transpose_attributes_type,
    .infer = infer_transpose,
    .gradient = gradient_of_transpose,
    .loop = describe,
    .implementations = loop_implementations,
};
