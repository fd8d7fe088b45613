/* Joining along axes: sums, means, products and extremes. */
#include "graph/network.h"
#include "layers/layers.h"
#include "layers/loop/loop.h"
#include "layers/pointwise.h"

#include <string.h>

ATTRIBUTES_DESCRIBE(
    reduce, ATTRIBUTE(reduce, AXES, axes), ATTRIBUTE(reduce, SHAPE, shape), ATTRIBUTE(reduce, OTHER, kinds))

static bool is_joined(const struct node *node, int axis)
{
    return reduce_attributes(node)->axes >> axis & 1;
}

/* The shape of x with 1 for the axes that are reduced. */
static tutti_shape kept_shape(const struct node *node, const struct value *x)
{
    tutti_shape shape = x->shape;
    for (int i = 0; i < shape.rank; i++)
        if (is_joined(node, i)) shape.sizes[i] = 1;
    return shape;
}

static tutti_status infer(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *x = graph_at(graph, node->inputs[0]);
    const struct reduce_attributes *a = reduce_attributes(node);
    const tutti_shape kept = kept_shape(node, x), *shape = a->shape.rank ? &a->shape : &kept;
    if (a->axes >> x->shape.rank)
        return fail(TUTTI_INVALID, "%s: an axis does not exist: the input has %d, the batch's included",
            node->operation->name, x->shape.rank);
    if (shape_elements(&kept) != shape_elements(shape) || shape_sequences(&kept) != shape_sequences(shape))
        return fail(TUTTI_SHAPE, "%s: the result has %lld elements, but the shape asked for has %lld",
            node->operation->name, (long long)shape_elements(&kept), (long long)shape_elements(shape));
    outputs[0] = (struct value) { .type = TYPE_F32,
        .batched = x->batched && !is_joined(node, 0),
        .shape = *shape,
        .axes = a->shape.rank ? a->kinds : x->axes };
    return TUTTI_OK;
}

/* The gradient of x for a sum is the sum's gradient, repeated. */
static int repeat(struct graph *graph, const struct node *node, int dy, float scale)
{
    const struct value x = *graph_at(graph, node->inputs[0]);
    const struct reshape_attributes kept = { kept_shape(node, &x), x.axes };
    const struct expand_attributes whole = { x.shape, scale };
    const int gradient = graph_append(graph, &operation_reshape, &kept, &dy, 1, node->layer);
    return graph_append(graph, &operation_expand, &whole, &gradient, 1, node->layer);
}

/* The largest or smallest elements share the gradient evenly, as PyTorch's amax and amin. */
static int gradient_of_extreme(struct graph *graph, const struct node *node, int dy)
{
    const int layer = node->layer, y = repeat(graph, node, node->outputs[0], 1), g = repeat(graph, node, dy, 1);
    const int equal = graph_append(graph, &operation_equal, NULL, (int[]) { node->inputs[0], y }, 2, layer);
    const struct reduce_attributes axes = { .axes = reduce_attributes(node)->axes };
    const int number = graph_append(graph, &operation_reduce_sum, &axes, &equal, 1, layer);
    const int share = graph_append(graph, &operation_div, NULL, (int[]) { equal, number }, 2, layer);
    return graph_append(graph, &operation_mul, NULL, (int[]) { share, g }, 2, layer);
}

/* The gradient of a product is dy times the product of the other elements. That is the product of all that are not 0,
 * divided by the element; or 0 if another element is 0. */
static int gradient_of_product(struct graph *graph, const struct node *node, int dy)
{
    const int layer = node->layer, x = node->inputs[0], g = repeat(graph, node, dy, 1);
    const struct reduce_attributes axes = { .axes = reduce_attributes(node)->axes };
    const int zero = graph_append(graph, &operation_not, NULL, &x, 1, layer);
    const int factor = graph_append(graph, &operation_add, NULL, (int[]) { x, zero }, 2, layer);
    const int product = graph_append(graph, &operation_reduce_prod, &axes, &factor, 1, layer);
    const int zeros = graph_append(graph, &operation_reduce_sum, &axes, &zero, 1, layer);
    const int others = graph_append(graph, &operation_div, NULL, (int[]) { product, factor }, 2, layer);
    const int other_zeros = graph_append(graph, &operation_sub, NULL, (int[]) { zeros, zero }, 2, layer);
    const int none = graph_append(graph, &operation_not, NULL, &other_zeros, 1, layer);
    const int derivative = graph_append(graph, &operation_mul, NULL, (int[]) { others, none }, 2, layer);
    return graph_append(graph, &operation_mul, NULL, (int[]) { derivative, g }, 2, layer);
}

static tutti_status gradient(struct graph *graph, const struct node *node, const struct node_gradients *g)
{
    const tutti_shape whole = graph_at(graph, node->inputs[0])->shape,
                      kept = kept_shape(node, graph_at(graph, node->inputs[0]));
    if (g->outputs[0] == NO_VALUE || !g->wanted[0]) return TUTTI_OK;
    if (node->operation == &operation_reduce_max || node->operation == &operation_reduce_min)
        g->inputs[0] = gradient_of_extreme(graph, node, g->outputs[0]);
    else if (node->operation == &operation_reduce_prod)
        g->inputs[0] = gradient_of_product(graph, node, g->outputs[0]);
    else if (node->operation == &operation_reduce_mean)
        g->inputs[0] = repeat(graph, node, g->outputs[0], (float)shape_elements(&kept) / (float)shape_elements(&whole));
    else
        g->inputs[0] = repeat(graph, node, g->outputs[0], 1);
    return graph->status;
}

/* ------------------------------------------------------------------------------------------- implementations ---- */

static enum loop_reduction reduction_of(const struct operation *operation)
{
    if (operation == &operation_reduce_max) return REDUCE_MAX;
    if (operation == &operation_reduce_min) return REDUCE_MIN;
    return operation == &operation_reduce_prod ? REDUCE_PRODUCT : REDUCE_SUM;
}

static void describe(const struct problem *problem, struct loop *loop)
{
    const struct node *node = problem->node;
    const struct value *x = problem->inputs[0];
    struct value kept = *problem->outputs[0];
    kept.shape = kept_shape(node, x);
    loop_begin(loop, x);
    loop_add_operand(loop, problem, 0);
    loop->out = loop_operand_of(&kept, &x->shape, x->batched);
    loop->reduced = reduce_attributes(node)->axes;
    loop->reduction = reduction_of(node->operation);
    if (node->operation == &operation_reduce_mean)
        loop->scale = (double)value_elements(&kept) / (double)value_elements(x);
}

#define REDUCE(name_)                            \
    const struct operation operation_##name_ = { \
        .name = #name_,                          \
        .inputs = { { "x" } },                   \
        .outputs = { { "y" } },                  \
        .attributes = &reduce_attributes_type,   \
        .infer = infer,                          \
        .gradient = gradient,                    \
        .loop = describe,                        \
        .implementations = loop_implementations, \
        .flops = loop_flops,                     \
    };
REDUCE(reduce_sum)
REDUCE(reduce_mean)
REDUCE(reduce_max)
REDUCE(reduce_min)
REDUCE(reduce_prod)
