/* expand and transpose: the same numbers elsewhere. */
#include "layers/broadcast.h"
#include "layers/elementwise.h"
#include "layers/layers.h"
#include "layers/loop.h"
#include "layers/reduce.h"

#include <string.h>

static tutti_status infer_expand(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *x = graph_at(graph, node->inputs[0]);
    outputs[0] = (struct value) { .type = TYPE_F32, .batched = x->batched, .shape = node->attributes.shape };
    const int ahead = outputs[0].shape.rank - x->shape.rank;
    for (int i = x->batched; i < x->shape.rank; i++) {
        const int64_t from = x->shape.sizes[i], to = ahead < 0 ? 0 : outputs[0].shape.sizes[ahead + i];
        if (from != to && from != 1)
            return fail(TUTTI_SHAPE, "expand: size %lld of axis %d cannot become %lld", (long long)from, i - x->batched,
                (long long)to);
    }
    node->output_count = 1;
    return TUTTI_OK;
}

static tutti_status gradient_of_expand(
    struct graph *graph, const struct node *node, const int *output_gradients, const bool *wanted, int *input_gradients)
{
    if (output_gradients[0] == NO_VALUE || !wanted[0]) return TUTTI_OK;
    input_gradients[0] = broadcast_gradient(graph, output_gradients[0], node->inputs[0], node->layer);
    const struct attributes attributes = { .shape = graph_at(graph, node->inputs[0])->shape,
        .low = node->attributes.low };
    if (node->attributes.low != 1)
        input_gradients[0] = graph_append(graph, &operation_expand, &attributes, input_gradients, 1, node->layer);
    return graph->status;
}

static tutti_status infer_transpose(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *x = graph_at(graph, node->inputs[0]);
    unsigned seen = 0;
    outputs[0] = (struct value) { .type = TYPE_F32, .batched = x->batched, .shape = x->shape };
    for (int i = 0; i < x->shape.rank; i++) {
        const int from = node->attributes.order[i];
        if (from < 0 || from >= x->shape.rank || seen >> from & 1 || (x->batched && i == 0 && from != 0))
            return fail(
                TUTTI_INVALID, "transpose: the order must name each of the %d axes once", x->shape.rank - x->batched);
        seen |= 1u << from;
        outputs[0].shape.sizes[i] = x->shape.sizes[from];
    }
    node->output_count = 1;
    return TUTTI_OK;
}

static tutti_status gradient_of_transpose(
    struct graph *graph, const struct node *node, const int *output_gradients, const bool *wanted, int *input_gradients)
{
    if (output_gradients[0] == NO_VALUE || !wanted[0]) return TUTTI_OK;
    struct attributes attributes = { 0 };
    for (int i = 0; i < graph_at(graph, node->inputs[0])->shape.rank; i++)
        attributes.order[node->attributes.order[i]] = i;
    input_gradients[0] = graph_append(graph, &operation_transpose, &attributes, output_gradients, 1, node->layer);
    return graph->status;
}

static void emit(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct node *node = problem->node;
    const struct value *x = problem->inputs[0], *y = problem->outputs[0];
    struct loop loop = { .rank = y->shape.rank, .operand_count = 1 };
    memcpy(loop.sizes, y->shape.sizes, sizeof loop.sizes);
    loop.operands[0] = loop_operand(x, operands->inputs[0], &y->shape, y->batched);
    loop.out = loop_operand(y, operands->outputs[0], &y->shape, y->batched);
    if (node->operation == &operation_transpose) {
        const struct loop_operand plain = loop_operand(x, operands->inputs[0], &x->shape, x->batched);
        for (int i = 0; i < y->shape.rank; i++) loop.operands[0].strides[i] = plain.strides[node->attributes.order[i]];
    } else if (node->attributes.low != 1) {
        loop.steps[0] = loop_step("a * low", node->attributes.low, 0);
        loop.steps[loop.step_count++].variables[VARIABLE_A] = 0;
    }
    loop_add_epilogue_of(&loop, problem, operands->add);
    loop_emit(&loop, NULL, list);
}

static const struct implementation generated = {
    .name = "generated",
    .fits = fits_everything,
    .epilogues = epilogues_all,
    .emit = emit,
    .bf16_inputs = 1,
    .bf16_outputs = 1,
};
static const struct implementation *const implementations[] = { &generated, NULL };

const struct operation operation_expand = {
    .name = "expand",
    .infer = infer_expand,
    .gradient = gradient_of_expand,
    .implementations = implementations,
};
const struct operation operation_transpose = {
    .name = "transpose",
    .infer = infer_transpose,
    .gradient = gradient_of_transpose,
    .implementations = implementations,
};
