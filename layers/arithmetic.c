/* add, mul, copy: element by element, on values of one shape. */
#include <stdio.h>

#include "graph/network.h"
#include "layers/elementwise.h"
#include "layers/epilogue.h"
#include "layers/layers.h"

static void print_shape(const struct value *value, char *text, size_t size)
{
    size_t used = 0;
    text[0] = 0;
    for (int i = value->batched ? 1 : 0; i < value->shape.rank && used + 24 < size; i++)
        used +=
            (size_t)snprintf(text + used, size - used, "%s%lld", used ? ", " : "", (long long)value->shape.sizes[i]);
}

static tutti_status infer(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *first = graph_at(graph, node->inputs[0]);
    for (int i = 1; i < node->input_count; i++) {
        const struct value *other = graph_at(graph, node->inputs[i]);
        if (shape_equal(first->shape, other->shape) && first->type == other->type) continue;
        char a[128], b[128];
        print_shape(first, a, sizeof a);
        print_shape(other, b, sizeof b);
        return fail(TUTTI_SHAPE, "%s: the inputs have the shapes [%s] and [%s]: they must be equal",
            node->operation->name, a, b);
    }
    outputs[0] = *first;
    node->output_count = 1;
    return TUTTI_OK;
}

/* The gradient of both is the sum's. */
static tutti_status gradient_of_add(
    struct graph *graph, const struct node *node, const int *output_gradients, const bool *wanted, int *input_gradients)
{
    (void)graph;
    for (int i = 0; i < node->input_count; i++)
        if (wanted[i]) input_gradients[i] = output_gradients[0];
    return TUTTI_OK;
}

static tutti_status gradient_of_mul(
    struct graph *graph, const struct node *node, const int *output_gradients, const bool *wanted, int *input_gradients)
{
    if (output_gradients[0] == NO_VALUE) return TUTTI_OK;
    int factors[2] = { node->inputs[0], node->inputs[1] }, layer = node->layer;
    for (int i = 0; i < 2; i++) {
        int inputs[2] = { output_gradients[0], factors[1 - i] };
        if (wanted[i]) input_gradients[i] = graph_append(graph, &operation_mul, NULL, inputs, 2, layer);
    }
    return graph->status;
}

static bool in_place(const struct problem *problem, int input)
{
    (void)problem;
    (void)input;
    return true;
}

/* a + b, a b or a, then the epilogue. A sum's second operand is the kernel's addition, so it has room for no other. */
static void emit(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct node *node = problem->node;
    const struct value *y = problem->outputs[0];
    bool sum = node->operation == &operation_add, product = node->operation == &operation_mul;
    struct epilogue what = node->epilogue;
    if (sum) what.add = node->inputs[1];
    char options[EPILOGUE_OPTIONS];
    epilogue_options(&what, options, sizeof options);
    cl_mem buffers[4];
    int count = 0;
    for (int i = 0; i < node->input_count; i++) buffers[count++] = operands->inputs[i];
    if (!sum && what.add != NO_VALUE) buffers[count++] = operands->add;
    buffers[count++] = operands->outputs[0];
    const char *kernel = product ? "elementwise_product" : "elementwise_sum";
    elementwise_emit(list, kernel, options, buffers, count, elementwise_floats(y, problem->device), count - 2);
    if (!epilogue_keeps_zero(&what)) elementwise_clear_padding(list, y, operands->outputs[0]);
}

static unsigned epilogues_of_add(const struct problem *problem)
{
    (void)problem;
    return EPILOGUE_ACTIVATION;
}

static const struct implementation add_elementwise = {
    .name = "elementwise",
    .fits = fits_everything,
    .any_layout = IN_ANY_LAYOUT,
    .epilogues = epilogues_of_add,
    .in_place = in_place,
    .emit = emit,
};
static const struct implementation mul_elementwise = {
    .name = "elementwise",
    .fits = fits_everything,
    .any_layout = IN_ANY_LAYOUT,
    .epilogues = epilogues_all,
    .in_place = in_place,
    .emit = emit,
};
/* A copy has memory of its own: that is what it is for. */
static const struct implementation copy_elementwise = {
    .name = "elementwise",
    .fits = fits_everything,
    .any_layout = IN_ANY_LAYOUT,
    .epilogues = epilogues_all,
    .emit = emit,
};
static const struct implementation *const add_implementations[] = { &add_elementwise, NULL };
static const struct implementation *const mul_implementations[] = { &mul_elementwise, NULL };
static const struct implementation *const copy_implementations[] = { &copy_elementwise, NULL };

static double flops(const struct problem *problem)
{
    return (double)value_elements(problem->outputs[0]);
}

const struct operation operation_add = {
    .name = "add",
    .infer = infer,
    .gradient = gradient_of_add,
    .implementations = add_implementations,
    .flops = flops,
};
const struct operation operation_mul = {
    .name = "mul",
    .infer = infer,
    .gradient = gradient_of_mul,
    .implementations = mul_implementations,
    .flops = flops,
};
const struct operation operation_copy = {
    .name = "copy",
    .infer = infer,
    .gradient = gradient_of_add,
    .implementations = copy_implementations,
};

/* -------------------------------------------------------------------------------------------------- builders ---- */

static tutti_tensor append(tutti_network *network, tutti_tensor a, tutti_tensor b, const struct operation *operation)
{
    if (!network_value(network, a) || !network_value(network, b)) return (tutti_tensor) { NO_VALUE };
    int inputs[2] = { a.id, b.id };
    int layer = network_layer_begin(network, NULL, operation->name);
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
