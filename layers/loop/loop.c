/* Nodes as loops, and the implementation `generated`, which all operations with a loop have. */
#include "layers/loop/loop.h"

#include "layers/elementwise.h"
#include "layers/operations.h"

#include <math.h>
#include <string.h>

ATTRIBUTES_DESCRIBE(loop, ATTRIBUTE(loop, OTHER, loop))

const struct reduction reductions[] = {
    [REDUCE_SUM] = { 0, &operation_add },
    [REDUCE_PRODUCT] = { 1, &operation_mul },
    [REDUCE_MAX] = { -INFINITY, &operation_max },
    [REDUCE_MIN] = { INFINITY, &operation_min },
};

void loop_begin(struct loop *loop, const struct value *over)
{
    *loop = (struct loop) { .rank = over->shape.rank, .scale = 1 };
    memcpy(loop->sizes, over->shape.sizes, sizeof loop->sizes);
    loop->out = loop_operand_of(over, &over->shape, over->batched);
}

struct loop_operand loop_operand_of(const struct value *value, const tutti_shape *shape, bool batched)
{
    struct loop_operand operand = { .type = TYPE_F32 };
    int64_t stride = 1;
    for (int i = value->shape.rank - 1; i >= 0; i--) {
        const bool batch = value->batched && i == 0;
        const int axis = batch && batched ? 0 : shape->rank - value->shape.rank + i;
        operand.strides[axis] = value->shape.sizes[i] == 1 ? 0 : stride;
        stride *= value->shape.sizes[i];
    }
    return operand;
}

int loop_add_operand(struct loop *loop, const struct problem *problem, int input)
{
    const tutti_shape shape = { .rank = loop->rank };
    loop->operands[loop->operand_count] = loop_operand_of(problem->inputs[input], &shape, problem->outputs[0]->batched);
    loop->operands[loop->operand_count].input = input;
    return loop->operand_count++;
}

void loop_guard(struct loop_operand *operand, int axis, int64_t low, int64_t high, int64_t size)
{
    if (low <= 0 && high >= size) return;
    operand->guarded |= 1u << axis;
    operand->low[axis] = low > 0 ? low : 0;
    operand->high[axis] = high < size ? high : size;
}

struct loop_expression *loop_add_expression(struct loop *loop, const struct expression *formula, float low, float high)
{
    struct loop_expression *expression = &loop->expressions[loop->expression_count++];
    *expression = (struct loop_expression) { .formula = formula, .low = low, .high = high };
    for (int i = 0; i < POINTWISE_VARIABLES; i++) expression->variables[i] = LOOP_UNUSED;
    return expression;
}

double loop_evaluate(const struct loop *loop, const double *operands)
{
    double results[LOOP_EXPRESSION + LOOP_EXPRESSIONS] = { 0 };
    memcpy(results, operands, (size_t)loop->operand_count * sizeof *operands);
    for (int s = 0; s < loop->expression_count; s++) {
        const struct loop_expression *expression = &loop->expressions[s];
        double variables[POINTWISE_VARIABLES] = { 0 };
        for (int i = 0; i < POINTWISE_VARIABLES; i++)
            if (expression->variables[i] != LOOP_UNUSED) variables[i] = results[expression->variables[i]];
        results[LOOP_EXPRESSION + s] =
            expression->formula->function(variables, (double)expression->low, (double)expression->high);
    }
    return results[loop_result(loop)];
}

/* Appends FUSION_ADD, of a tensor with the strides of the output, and FUSION_ACTIVATION as expressions. */
static void add_fusions(struct loop *loop, const struct node *node)
{
    const struct nonlinearity function = node_function(node, FUSION_ACTIVATION);
    if (node_added(node) != NO_VALUE) {
        const int last = loop_result(loop);
        struct loop_expression *expression = loop_add_expression(loop, &operation_add.pointwise->y, 0, 0);
        expression->variables[VARIABLE_A] = last;
        expression->variables[VARIABLE_B] = loop->operand_count;
        loop->operands[loop->operand_count] = loop->out;
        loop->operands[loop->operand_count++].input = LOOP_ADDED;
    }
    if (function.activation) {
        const int last = loop_result(loop);
        loop_add_expression(loop, &activations[function.activation].y, function.low, function.high)
            ->variables[VARIABLE_A] = last;
    }
}

bool loop_of(const struct problem *problem, struct loop *loop)
{
    if (!problem->node->operation->loop) return false;
    problem->node->operation->loop(problem, loop);
    if (!loop->reduction) add_fusions(loop, problem->node);
    return true;
}

/* plan/compose.c changes an existing node into a loop: its output has a value already. */
static tutti_status infer(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *made = graph_at(graph, node->outputs[0]);
    if (!made)
        return fail(
            TUTTI_INTERNAL, "a node of the operation 'loop' was appended: only plan/compose.c makes such nodes");
    outputs[0] = *made;
    return TUTTI_OK;
}

static void copy(const struct problem *problem, struct loop *loop)
{
    *loop = *loop_attributes(problem->node)->loop;
}

/* --------------------------------------------------------------------------------------------- implementation ---- */

/* Whether the operand has the strides of the output. */
static bool lies_as_output(const struct loop *loop, const struct loop_operand *o)
{
    return o->offset == 0 && !o->guarded && !o->indexed && !memcmp(o->strides, loop->out.strides, sizeof o->strides);
}

/* Whether all operands and the output are read and written in the same order of memory. */
static bool is_flat(const struct loop *loop)
{
    if (loop->reduction || loop->out.offset) return false;
    for (int i = 0; i < loop->operand_count; i++)
        if (!lies_as_output(loop, &loop->operands[i])) return false;
    return true;
}

bool loop_is_flat(const struct problem *problem)
{
    struct loop loop;
    for (int i = 0; i < problem->node->input_count; i++) {
        const struct value *input = problem->inputs[i];
        if (input && (input->role == ROLE_PARAMETER || !shape_equal(input->shape, problem->outputs[0]->shape)))
            return false;
    }
    return loop_of(problem, &loop) && is_flat(&loop);
}

/* One axis over all elements in memory, including the padding of the layout. */
static void make_flat(const struct problem *problem, struct loop *loop)
{
    const struct value *y = problem->outputs[0];
    loop->rank = 1;
    loop->sizes[0] = (int64_t)(value_bytes(y, problem->device->vector_width) / value_type_bytes(y->type));
    for (int i = 0; i < loop->operand_count; i++) loop->operands[i].strides[0] = 1;
    loop->out.strides[0] = 1;
}

/* Whether channels of padding, which are 0 in all operands, are 0 in the output. */
static bool padding_stays_zero(const struct loop *loop)
{
    const double operands[LOOP_OPERANDS] = { 0 };
    return loop_evaluate(loop, operands) == 0;
}

static void emit(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    struct loop loop;
    loop_of(problem, &loop);
    for (int i = 0; i < loop.operand_count; i++) {
        struct loop_operand *operand = &loop.operands[i];
        const bool added = operand->input == LOOP_ADDED;
        operand->buffer = added ? operands->add : operands->inputs[operand->input];
        operand->type = (added ? problem->add : problem->inputs[operand->input])->type;
    }
    loop.out.buffer = operands->outputs[0];
    loop.out.type = problem->outputs[0]->type;
    const bool clear = problem->outputs[0]->layout == LAYOUT_BLOCKED && !padding_stays_zero(&loop);
    if (is_flat(&loop)) make_flat(problem, &loop);
    loop_emit(&loop, operands->workspace, list);
    if (clear) elementwise_clear_padding(list, problem->outputs[0], operands->outputs[0]);
}

static size_t workspace(const struct problem *problem)
{
    struct loop loop;
    return loop_of(problem, &loop) ? loop_workspace(&loop, problem->device) : 0;
}

static const char *cannot_fuse(const struct problem *problem)
{
    struct loop loop;
    problem->node->operation->loop(problem, &loop);
    const bool room = loop.operand_count < LOOP_OPERANDS && loop.expression_count + 2 <= LOOP_EXPRESSIONS;
    return loop.reduction ? "a reduction stores its result elsewhere"
        : room            ? NULL
                          : "the loop has no room for more expressions";
}

/* Whether each element of the input is read only where the output's element at the same place is written. Never for
 * copy, which exists to give a value its own memory. */
static bool in_place(const struct problem *problem, int input)
{
    struct loop loop;
    if (!loop_of(problem, &loop) || loop.reduction || problem->node->operation == &operation_copy) return false;
    for (int i = 0; i < loop.operand_count; i++) {
        const struct loop_operand *o = &loop.operands[i];
        if (o->input == input && !lies_as_output(&loop, o)) return false;
    }
    return shape_equal(problem->inputs[input]->shape, problem->outputs[0]->shape);
}

const struct implementation loop_generated = {
    .name = "generated",
    .any_layout = IN_ANY_LAYOUT | WHERE_FLAT,
    .fusions = FUSED(ADD) | FUSED(ACTIVATION),
    .cannot_fuse = cannot_fuse,
    .workspace = workspace,
    .in_place = in_place,
    .emit = emit,
    .bf16_inputs = (1 << GRAPH_MAX_INPUTS) - 1,
    .bf16_outputs = 1,
};
const struct implementation *const loop_implementations[] = { &loop_generated, NULL };

double loop_flops(const struct problem *problem)
{
    struct loop loop;
    double elements = 1;
    if (!loop_of(problem, &loop)) return 0;
    for (int i = 0; i < loop.rank; i++) elements *= (double)loop.sizes[i];
    return elements * (loop.reduction ? loop.expression_count + 1 : loop.expression_count);
}

const struct operation operation_loop = {
    .name = "loop",
    .inputs = { { "x", PORT_REPEATED | PORT_ANY_TYPE } },
    .outputs = { { "y" } },
    .attributes = &loop_attributes_type,
    .infer = infer,
    .loop = copy,
    .implementations = loop_implementations,
    .flops = loop_flops,
};
