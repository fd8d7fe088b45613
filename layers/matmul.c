/* matmul: products of matrices in the last two dimensions, for each index of the others. Its gradients are such
 * products, too, or those of dense where a matrix is used for all indices. */
#include "graph/network.h"
#include "layers/broadcast.h"
#include "layers/layers.h"
#include "layers/product.h"

ATTRIBUTES_DESCRIBE(matmul, ATTRIBUTE(matmul, FLAG, transpose_a), ATTRIBUTE(matmul, FLAG, transpose_b))

/* Whether the dimensions in front of the matrices, the batch's included, are those of the other value. */
static bool same_leading(const struct value *a, const struct value *b)
{
    bool same = a->shape.rank == b->shape.rank && a->batched == b->batched;
    for (int i = 0; same && i < a->shape.rank - 2; i++) same = a->shape.sizes[i] == b->shape.sizes[i];
    return same;
}

/* Whether it is one matrix, for every index of the other value. */
static bool is_single(const struct value *value, const struct value *other)
{
    bool single = !value->batched && value->shape.rank <= other->shape.rank;
    for (int i = 0; single && i < value->shape.rank - 2; i++) single = value->shape.sizes[i] == 1;
    return single;
}

/* Of rows or columns: positions in a sequence stay what they are, but a product has no features or space. */
static uint8_t kind_of(const struct value *value, int from_last)
{
    const enum axis_kind kind = value_axis(value, value->shape.rank - 1 - from_last);
    return kind == AXIS_SEQUENCE ? AXIS_SEQUENCE : AXIS_NONE;
}

static struct axes product_axes(
    const struct value *leading, const struct value *a, const struct value *b, const struct node *node)
{
    struct axes axes = leading->axes;
    axes.kinds[leading->shape.rank - 2] = kind_of(a, !matmul_attributes(node)->transpose_a);
    axes.kinds[leading->shape.rank - 1] = kind_of(b, matmul_attributes(node)->transpose_b);
    return axes;
}

static tutti_status infer(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *a = graph_at(graph, node->inputs[0]), *b = graph_at(graph, node->inputs[1]);
    const bool ta = matmul_attributes(node)->transpose_a, tb = matmul_attributes(node)->transpose_b;
    char one[128], other[128], of_a[SIZE_TEXT], of_b[SIZE_TEXT];
    broadcast_print(a, one, sizeof one);
    broadcast_print(b, other, sizeof other);
    if (a->shape.rank - a->batched < 2 || b->shape.rank - b->batched < 2)
        return fail(TUTTI_SHAPE,
            "matmul: the inputs have the shapes [%s] and [%s]: each needs at least 2 dimensions beside the batch's",
            one, other);
    if (value_size(a, ta) != value_size(b, !tb))
        return fail(TUTTI_SHAPE, "matmul: the inputs [%s]%s and [%s]%s cannot be multiplied: %s is not %s", one,
            ta ? ", transposed," : "", other, tb ? ", transposed," : "", size_print(value_size(a, ta), of_a),
            size_print(value_size(b, !tb), of_b));
    if (!same_leading(a, b) && !is_single(a, b) && !is_single(b, a))
        return fail(TUTTI_SHAPE,
            "matmul: the inputs have the shapes [%s]%s and [%s]%s: the dimensions in front of the last two, and the "
            "batch, must be equal, or one input must have none",
            one, a->batched ? " for each sample" : "", other, b->batched ? " for each sample" : "");
    const struct value *leading = is_single(a, b) ? b : a;
    outputs[0] = (struct value) { .type = TYPE_F32, .batched = leading->batched, .shape = leading->shape };
    outputs[0].axes = product_axes(leading, a, b, node);
    outputs[0].shape.sizes[leading->shape.rank - 2] = value_size(a, !ta);
    outputs[0].shape.sizes[leading->shape.rank - 1] = value_size(b, tb);
    node->output_count = 1;
    return TUTTI_OK;
}

/* -------------------------------------------------------------------------------------------------- gradient ---- */

static int product(struct graph *graph, int a, bool transpose_a, int b, bool transpose_b, int layer)
{
    const struct matmul_attributes attributes = { transpose_a, transpose_b };
    return graph_append(graph, &operation_matmul, &attributes, (int[]) { a, b }, 2, layer);
}

/* Of b, one matrix for all rows of a: the sum over them is one product. */
static int gradient_of_single(struct graph *graph, const struct node *node, int dy)
{
    const int a = node->inputs[0], layer = node->layer;
    const bool tb = matmul_attributes(node)->transpose_b;
    const struct reshape_attributes shape = { .shape = graph_at(graph, node->inputs[1])->shape };
    const int inputs[] = { tb ? a : dy, tb ? dy : a };
    const int gradient = graph_append(graph, &operation_dense_weight_gradient, NULL, inputs, 2, layer);
    return shape.shape.rank == 2 ? gradient : graph_append(graph, &operation_reshape, &shape, &gradient, 1, layer);
}

static tutti_status gradient(
    struct graph *graph, const struct node *node, const int *output_gradients, const bool *wanted, int *input_gradients)
{
    const struct node forward = *node; /* appending may move the nodes */
    const int dy = output_gradients[0], a = forward.inputs[0], b = forward.inputs[1], layer = forward.layer;
    const bool ta = matmul_attributes(node)->transpose_a, tb = matmul_attributes(node)->transpose_b;
    if (dy == NO_VALUE) return TUTTI_OK;
    if (wanted[1]) {
        const bool single = !same_leading(graph_at(graph, a), graph_at(graph, b)) && !ta &&
            is_single(graph_at(graph, b), graph_at(graph, a));
        if (single) {
            input_gradients[1] = gradient_of_single(graph, &forward, dy);
        } else {
            const int each = tb ? product(graph, dy, true, a, ta, layer) : product(graph, a, !ta, dy, false, layer);
            input_gradients[1] = broadcast_gradient(graph, each, b, layer);
        }
    }
    if (wanted[0]) {
        const int each = ta ? product(graph, b, tb, dy, true, layer) : product(graph, dy, false, b, !tb, layer);
        input_gradients[0] = broadcast_gradient(graph, each, a, layer);
    }
    return graph->status;
}

const struct operation operation_matmul = {
    .name = "matmul",
    .inputs = { { "a" }, { "b" } },
    .outputs = { { "y" } },
    .attributes = &matmul_attributes_type,
    .infer = infer,
    .gradient = gradient,
    .implementations = product_forward,
    .flops = product_flops,
    .bytes = product_bytes,
};

/* --------------------------------------------------------------------------------------------------- builder ---- */

tutti_tensor tutti_matmul(
    tutti_network *network, const char *name, tutti_tensor a, tutti_tensor b, bool transpose_a, bool transpose_b)
{
    if (!network_operand(network, a) || !network_operand(network, b)) return (tutti_tensor) { NO_VALUE };
    const struct matmul_attributes attributes = { transpose_a, transpose_b };
    const int layer = network_layer_begin(network, name, "matmul");
    return network_append(network, layer, &operation_matmul, &attributes, (int[]) { a.id, b.id }, 2);
}
