/* Expands the tables of pointwise.h: operations, and functions in double precision. */
#include "layers/pointwise.h"

#include "graph/network.h"
#include "layers/broadcast.h"
#include "layers/layers.h"
#include "layers/loop/loop.h"
#include "layers/patterns.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

/* ----------------------------------------------------------------------------------------------- expressions ---- */

#define where(condition, x, y) ((condition) ? (x) : (y))
#define larger(x, y) where(isnan(x) || (x) > (y), x, y)
#define smaller(x, y) where(isnan(x) || (x) < (y), x, y)
#define sigmoid(x) (1 / (1 + exp(-(x))))

/* The function of an expression; an empty expression is 0. */
#define FUNCTION(name, expression)                                                                    \
    static double name(const double *variables, double low, double high)                              \
    {                                                                                                 \
        const double a = variables[VARIABLE_A], b = variables[VARIABLE_B], c = variables[VARIABLE_C]; \
        const double y = variables[VARIABLE_Y], g = variables[VARIABLE_G];                            \
        (void)a, (void)b, (void)c, (void)y, (void)g, (void)low, (void)high;                           \
        return expression + 0.0;                                                                      \
    }
#define FUNCTIONS(name, onnx, inputs, text, attributes, y, by_a, by_b, by_c) \
    FUNCTION(value_of_##name, y)                                             \
    FUNCTION(a_of_##name, by_a)                                              \
    FUNCTION(b_of_##name, by_b)                                              \
    FUNCTION(c_of_##name, by_c)
POINTWISE_TABLE(FUNCTIONS)
ACTIVATION_TABLE(FUNCTIONS)

/* clang-format off */
#define POINTWISE(name, onnx, inputs, text, attributes, y, by_a, by_b, by_c)                                                 \
    { #name, inputs, { #y, value_of_##name },                                                                          \
      { { #by_a, a_of_##name }, { #by_b, b_of_##name }, { #by_c, c_of_##name } } },
/* clang-format on */
const struct pointwise activations[] = { { 0 }, ACTIVATION_TABLE(POINTWISE) };
static const struct pointwise table[] = { POINTWISE_TABLE(POINTWISE) };
#define POSITION(name, ...) POSITION_##name,
enum { POINTWISE_TABLE(POSITION) };

/* Whether an expression uses the variable. */
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

ATTRIBUTES_DESCRIBE(pointwise, ATTRIBUTE(pointwise, NUMBER, low), ATTRIBUTE(pointwise, NUMBER, high))
ATTRIBUTES_DESCRIBE(pointwise_gradient, ATTRIBUTE(pointwise_gradient, OTHER, derivative),
    ATTRIBUTE(pointwise_gradient, NUMBER, low), ATTRIBUTE(pointwise_gradient, NUMBER, high))

static tutti_status infer(const struct graph *graph, struct node *node, struct value *outputs)
{
    const float low = pointwise_attributes(node)->low;
    if (node->operation == &operation_celu && !isnormal(low)) /* a / low: 0 / 0 is not a number */
        return fail(TUTTI_INVALID, "celu: alpha is %g: it must be finite and not 0", (double)low);
    return broadcast_infer(graph, node, &outputs[0]);
}

static tutti_status infer_gradient(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *g = graph_at(graph, node->inputs[VARIABLE_G]);
    outputs[0] = (struct value) { .type = TYPE_F32, .batched = g->batched, .shape = g->shape };
    infer_axes(graph, node, &outputs[0]);
    return TUTTI_OK;
}

static int append_gradient(struct graph *graph, const struct node *node, int input, int dy)
{
    const struct expression *derivative = &node->operation->pointwise->derivatives[input];
    const char *text = derivative->text;
    int inputs[POINTWISE_VARIABLES] = { NO_VALUE, NO_VALUE, NO_VALUE, NO_VALUE, NO_VALUE };
    if (!strcmp(text, "g")) return dy;
    for (int i = 0; i < node->input_count; i++)
        if (expression_names(text, (enum pointwise_variable)(VARIABLE_A + i))) inputs[VARIABLE_A + i] = node->inputs[i];
    if (expression_names(text, VARIABLE_Y)) inputs[VARIABLE_Y] = node->outputs[0];
    inputs[VARIABLE_G] = dy;
    const struct pointwise_attributes *a = pointwise_attributes(node);
    const struct pointwise_gradient_attributes attributes = { derivative, a->low, a->high };
    return graph_append(graph, &operation_pointwise_gradient, &attributes, inputs, POINTWISE_VARIABLES, node->layer);
}

static tutti_status gradient(struct graph *graph, const struct node *node, const struct node_gradients *g)
{
    if (g->outputs[0] == NO_VALUE) return TUTTI_OK;
    for (int i = 0; i < node->input_count; i++) {
        if (!g->wanted[i] || !*node->operation->pointwise->derivatives[i].text) continue;
        const int whole = append_gradient(graph, node, i, g->outputs[0]);
        g->inputs[i] = broadcast_gradient(graph, whole, node->inputs[i], node->layer);
    }
    return graph->status;
}

/* --------------------------------------------------------------------------------------------------- kernels ---- */

/* Appends the expression of a node, with low and high. */
static struct loop_expression *add_expression(const struct node *node, struct loop *loop)
{
    const bool gradient = node->operation == &operation_activation_gradient;
    if (gradient || node->operation == &operation_activation) {
        const struct nonlinearity *a = &activation_attributes(node)->function;
        const struct pointwise *activation = &activations[a->activation];
        return loop_add_expression(loop, gradient ? activation->derivatives : &activation->y, a->low, a->high);
    }
    if (node->operation == &operation_pointwise_gradient) {
        const struct pointwise_gradient_attributes *a = pointwise_gradient_attributes(node);
        return loop_add_expression(loop, a->derivative, a->low, a->high);
    }
    const struct pointwise_attributes *a = pointwise_attributes(node);
    return loop_add_expression(loop, &node->operation->pointwise->y, a->low, a->high);
}

/* The variable that stands for an input of the node. */
static enum pointwise_variable variable_of(const struct node *node, int input)
{
    if (node->operation == &operation_activation_gradient) return input == 0 ? VARIABLE_Y : VARIABLE_G;
    const int first = node->operation == &operation_pointwise_gradient ? VARIABLE_G : VARIABLE_A;
    return (enum pointwise_variable)(first + input);
}

void pointwise_loop(const struct problem *problem, struct loop *loop)
{
    const struct node *node = problem->node;
    loop_begin(loop, problem->outputs[0]);
    struct loop_expression *expression = add_expression(node, loop);
    for (int i = 0; i < node->input_count; i++)
        if (problem->inputs[i]) expression->variables[variable_of(node, i)] = loop_add_operand(loop, problem, i);
}

#define PORTS_1 \
    {           \
        "a"     \
    }
#define PORTS_2 \
    PORTS_1,    \
    {           \
        "b"     \
    }
#define PORTS_3 \
    PORTS_2,    \
    {           \
        "c"     \
    }
#define OPERATION(name_, onnx, inputs_, ...)      \
    const struct operation operation_##name_ = {  \
        .name = #name_,                           \
        .inputs = { PORTS_##inputs_ },            \
        .outputs = { { "y" } },                   \
        .attributes = &pointwise_attributes_type, \
        .infer = infer,                           \
        .gradient = gradient,                     \
        .loop = pointwise_loop,                   \
        .implementations = loop_implementations,  \
        .flops = loop_flops,                      \
        .pointwise = &table[POSITION_##name_],    \
    };
POINTWISE_TABLE(OPERATION)

const struct operation operation_pointwise_gradient = {
    .name = "pointwise_gradient",
    .inputs = { [VARIABLE_G] = { "g" },
        [VARIABLE_A] = { "a", PORT_OPTIONAL },
        [VARIABLE_B] = { "b", PORT_OPTIONAL },
        [VARIABLE_C] = { "c", PORT_OPTIONAL },
        [VARIABLE_Y] = { "y", PORT_OPTIONAL } },
    .outputs = { { "d" } },
    .attributes = &pointwise_gradient_attributes_type,
    .infer = infer_gradient,
    .loop = pointwise_loop,
    .implementations = loop_implementations,
    .flops = loop_flops,
};

/* -------------------------------------------------------------------------------------------------- patterns ---- */

/* a + b: of the nodes that make a and b, the later one adds the other value as it stores its result, if only this sum
 * reads that result. */
static bool fuse_add(const struct rewriting *rewriting, size_t n, int producer)
{
    struct graph *graph = rewriting->graph;
    struct node *node = &graph->nodes[n];
    (void)producer;
    if (node_fusion(node, FUSION_ACTIVATION) || node->inputs[0] == node->inputs[1]) return false;
    if (!shape_equal(graph_at(graph, node->inputs[0])->shape, graph_at(graph, node->inputs[1])->shape)) return false;
    for (int side = 0; side < 2; side++) {
        int before = pattern_sole_producer(graph, node->inputs[side]), other = node->inputs[1 - side];
        if (before < 0 || graph_at(graph, other)->producer >= before) continue;
        if (node_fusions(&graph->nodes[before]) & (FUSED(ACTIVATION) | FUSED(ADD))) continue;
        if (!pattern_fuse(rewriting, before, (struct fusion) { FUSION_ADD, .added = other }, NULL, NO_VALUE)) continue;
        pattern_take_output(graph, before, n);
        return true;
    }
    return false;
}

const struct pattern pattern_add = {
    .operation = &operation_add,
    .apply = fuse_add,
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
