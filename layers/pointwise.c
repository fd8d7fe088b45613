#include "layers/pointwise.h"

#include "graph/network.h"
#include "layers/broadcast.h"
#include "layers/elementwise.h"
#include "layers/epilogue.h"
#include "layers/layers.h"
#include "layers/loop.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

/* ----------------------------------------------------------------------------------------------- expressions ---- */

#define where(condition, x, y) ((condition) ? (x) : (y))
#define larger(x, y) where(isnan(x) || (x) > (y), x, y)
#define smaller(x, y) where(isnan(x) || (x) < (y), x, y)
#define sigmoid(x) (1 / (1 + exp(-(x))))

/* The function of an expression; without one, 0. */
#define FUNCTION(name, expression)                                                                    \
    static double name(const double *variables, double low, double high)                              \
    {                                                                                                 \
        const double a = variables[VARIABLE_A], b = variables[VARIABLE_B], c = variables[VARIABLE_C]; \
        const double y = variables[VARIABLE_Y], g = variables[VARIABLE_G];                            \
        (void)a, (void)b, (void)c, (void)y, (void)g, (void)low, (void)high;                           \
        return expression + 0.0;                                                                      \
    }
#define FUNCTIONS(name, inputs, y, by_a, by_b, by_c) \
    FUNCTION(value_of_##name, y)                     \
    FUNCTION(a_of_##name, by_a)                      \
    FUNCTION(b_of_##name, by_b)                      \
    FUNCTION(c_of_##name, by_c)
POINTWISE_TABLE(FUNCTIONS)
ACTIVATION_TABLE(FUNCTIONS)

/* clang-format off */
#define POINTWISE(name, inputs, y, by_a, by_b, by_c)                                                                   \
    { #name, inputs, { #y, value_of_##name },                                                                          \
      { { #by_a, a_of_##name }, { #by_b, b_of_##name }, { #by_c, c_of_##name } } },
/* clang-format on */
const struct pointwise activations[] = { { 0 }, ACTIVATION_TABLE(POINTWISE) };
static const struct pointwise table[] = { POINTWISE_TABLE(POINTWISE) };
#define POSITION(name, ...) POSITION_##name,
enum { POINTWISE_TABLE(POSITION) };

/* Whether a text names the variable. */
static bool expression_names(const char *text, enum pointwise_variable variable)
{
    const char name = "gabcy"[variable];
    for (const char *at = text; *at; at++) {
        const bool begins = at == text || !(isalnum((unsigned char)at[-1]) || at[-1] == '_' || at[-1] == '.');
        if (*at == name && begins && !(isalnum((unsigned char)at[1]) || at[1] == '_')) return true;
    }
    return false;
}

/* ---------------------------------------------------------------------------------------------------- graph ---- */

static tutti_status infer(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct pointwise *pointwise = node->operation->pointwise;
    if (node->input_count != pointwise->inputs)
        return fail(
            TUTTI_INVALID, "%s: it got %d inputs: it takes %d", pointwise->name, node->input_count, pointwise->inputs);
    return broadcast_infer(graph, node, &outputs[0]);
}

static tutti_status infer_gradient(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *g = graph_at(graph, node->inputs[VARIABLE_G]);
    outputs[0] = (struct value) { .type = TYPE_F32, .batched = g->batched, .shape = g->shape };
    node->output_count = 1;
    return TUTTI_OK;
}

static int append_gradient(struct graph *graph, const struct node *node, int input, int dy)
{
    const char *text = node->operation->pointwise->derivatives[input].text;
    int inputs[POINTWISE_VARIABLES] = { NO_VALUE, NO_VALUE, NO_VALUE, NO_VALUE, NO_VALUE };
    if (!strcmp(text, "g")) return dy;
    for (int i = 0; i < node->input_count; i++)
        if (expression_names(text, (enum pointwise_variable)(VARIABLE_A + i))) inputs[VARIABLE_A + i] = node->inputs[i];
    if (expression_names(text, VARIABLE_Y)) inputs[VARIABLE_Y] = node->outputs[0];
    inputs[VARIABLE_G] = dy;
    struct attributes attributes = { .pointwise = node->operation->pointwise,
        .axis = input,
        .low = node->attributes.low,
        .high = node->attributes.high };
    return graph_append(graph, &operation_pointwise_gradient, &attributes, inputs, POINTWISE_VARIABLES, node->layer);
}

static tutti_status gradient(
    struct graph *graph, const struct node *node, const int *output_gradients, const bool *wanted, int *input_gradients)
{
    if (output_gradients[0] == NO_VALUE) return TUTTI_OK;
    for (int i = 0; i < node->input_count; i++) {
        if (!wanted[i] || !*node->operation->pointwise->derivatives[i].text) continue;
        const int whole = append_gradient(graph, node, i, output_gradients[0]);
        input_gradients[i] = broadcast_gradient(graph, whole, node->inputs[i], node->layer);
    }
    return graph->status;
}

/* --------------------------------------------------------------------------------------------------- kernels ---- */

static const struct expression *expression_of(const struct node *node)
{
    const struct attributes *a = &node->attributes;
    if (node->operation == &operation_activation) return &activations[a->activation].y;
    if (node->operation == &operation_activation_gradient) return &activations[a->activation].derivatives[0];
    if (node->operation == &operation_pointwise_gradient) return &a->pointwise->derivatives[a->axis];
    return &node->operation->pointwise->y;
}

/* What an input is in the expression. */
static enum pointwise_variable variable_of(const struct node *node, int input)
{
    if (node->operation == &operation_activation_gradient) return input == 0 ? VARIABLE_Y : VARIABLE_G;
    const int first = node->operation == &operation_pointwise_gradient ? VARIABLE_G : VARIABLE_A;
    return (enum pointwise_variable)(first + input);
}

static bool has_output_shape(const struct problem *problem, int input)
{
    return shape_equal(problem->inputs[input]->shape, problem->outputs[0]->shape);
}

static bool shapes_are_equal(const struct problem *problem)
{
    for (int i = 0; i < problem->node->input_count; i++)
        if (problem->inputs[i] && !has_output_shape(problem, i)) return false;
    return true;
}

/* Values of one shape lie in one layout, and are read as they lie. */
static void make_flat(const struct problem *problem, struct loop *loop)
{
    loop->rank = 1;
    loop->sizes[0] = (int64_t)(value_bytes(problem->outputs[0], problem->device->vector_width) /
        value_type_bytes(problem->outputs[0]->type));
    for (int i = 0; i < loop->operand_count; i++) loop->operands[i].strides[0] = 1;
    loop->out.strides[0] = 1;
}

/* Whether the channels of padding, which are 0, become 0. */
static bool keeps_zero(const struct node *node)
{
    const double zeros[POINTWISE_VARIABLES] = { 0 };
    return expression_of(node)->function(zeros, (double)node->attributes.low, (double)node->attributes.high) == 0 &&
        epilogue_keeps_zero(&node->epilogue);
}

static void emit(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct node *node = problem->node;
    const struct value *y = problem->outputs[0];
    struct loop loop = { .rank = y->shape.rank, .step_count = 1 };
    struct loop_step *step = &loop.steps[0];
    *step = loop_step(expression_of(node)->text, node->attributes.low, node->attributes.high);
    memcpy(loop.sizes, y->shape.sizes, sizeof loop.sizes);
    for (int i = 0; i < node->input_count; i++) {
        if (!problem->inputs[i]) continue;
        step->variables[variable_of(node, i)] = loop.operand_count;
        loop.operands[loop.operand_count++] =
            loop_operand(problem->inputs[i], operands->inputs[i], &y->shape, y->batched);
    }
    loop.out = loop_operand(y, operands->outputs[0], &y->shape, y->batched);
    if (shapes_are_equal(problem)) make_flat(problem, &loop);
    loop_add_epilogue_of(&loop, problem, operands->add);
    loop_emit(&loop, NULL, list);
    if (!keeps_zero(node)) elementwise_clear_padding(list, y, operands->outputs[0]);
}

/* A copy has memory of its own: that is what it is for. */
static bool in_place(const struct problem *problem, int input)
{
    return problem->inputs[input] && has_output_shape(problem, input) && problem->node->operation != &operation_copy;
}

static const struct implementation generated = {
    .name = "generated",
    .fits = fits_everything,
    .any_layout = IN_ANY_LAYOUT | WHERE_SHAPES_ARE_EQUAL,
    .epilogues = epilogues_all,
    .in_place = in_place,
    .emit = emit,
    .bf16_inputs = (1 << POINTWISE_VARIABLES) - 1,
    .bf16_outputs = 1,
};
const struct implementation *const pointwise_implementations[] = { &generated, NULL };

static double flops(const struct problem *problem)
{
    return (double)value_elements(problem->outputs[0]);
}

#define OPERATION(name_, ...)                         \
    const struct operation operation_##name_ = {      \
        .name = #name_,                               \
        .infer = infer,                               \
        .gradient = gradient,                         \
        .implementations = pointwise_implementations, \
        .flops = flops,                               \
        .pointwise = &table[POSITION_##name_],        \
    };
POINTWISE_TABLE(OPERATION)

const struct operation operation_pointwise_gradient = {
    .name = "pointwise_gradient",
    .infer = infer_gradient,
    .implementations = pointwise_implementations,
    .flops = flops,
};

/* -------------------------------------------------------------------------------------------------- builders ---- */

static tutti_tensor append(tutti_network *network, tutti_tensor a, tutti_tensor b, const struct operation *operation)
{
    if (!network_operand(network, a) || !network_operand(network, b)) return (tutti_tensor) { NO_VALUE };
    const int inputs[2] = { a.id, b.id }, layer = network_layer_begin(network, NULL, operation->name);
    return network_append(network, layer, operation, NULL, inputs, 2);
}

tutti_tensor tutti_add(tutti_network *network, tutti_tensor a, tutti_tensor b)
{
    return append(network, a, b, &operation_add);
}

tutti_tensor tutti_mul(tutti_network *network, tutti_tensor a, tutti_tensor b)
{
    return append(network, a, b, &operation_mul);
}
