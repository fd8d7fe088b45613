/* matmul: products of matrices in the last two dimensions, for each index of the others. Its gradients are such
 * products, too, or those of dense where a matrix is used for all indices. */
#include "graph/network.h"
#include "layers/broadcast.h"
#include "layers/decompose.h"
#include "layers/interpreter/interpreter.h"
#include "layers/layers.h"
#include "layers/product.h"

ATTRIBUTES_DESCRIBE(matmul, ATTRIBUTE(matmul, FLAG, transpose_a), ATTRIBUTE(matmul, FLAG, transpose_b),
    ATTRIBUTE(matmul, OTHER, full_precision))

/* Whether the dimensions before the matrices, the batch's included, are those of the other value. */
static bool same_leading(const struct value *a, const struct value *b)
{
    bool same = a->shape.rank == b->shape.rank && a->batched == b->batched;
    for (int i = 0; same && i < a->shape.rank - 2; i++) same = a->shape.sizes[i] == b->shape.sizes[i];
    return same;
}

/* Whether the value is one matrix, for every index of the other value. */
static bool is_single(const struct value *value, const struct value *other)
{
    bool single = !value->batched && value->shape.rank <= other->shape.rank;
    for (int i = 0; single && i < value->shape.rank - 2; i++) single = value->shape.sizes[i] == 1;
    return single;
}

/* Kind of the axis of rows or columns: positions in a sequence remain, but a product has no features or space. */
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
    char one[BROADCAST_TEXT], other[BROADCAST_TEXT], of_a[SIZE_TEXT], of_b[SIZE_TEXT];
    broadcast_print(a, one);
    broadcast_print(b, other);
    if (a->shape.rank - a->batched < 2 || b->shape.rank - b->batched < 2)
        return fail(TUTTI_SHAPE,
            "matmul: the inputs have the shapes [%s] and [%s]: each needs at least 2 dimensions besides the batch's",
            one, other);
    if (value_size(a, ta) != value_size(b, !tb))
        return fail(TUTTI_SHAPE, "matmul: the inputs [%s]%s and [%s]%s cannot be multiplied: %s is not %s", one,
            ta ? ", transposed," : "", other, tb ? ", transposed," : "", size_print(value_size(a, ta), of_a),
            size_print(value_size(b, !tb), of_b));
    if (!same_leading(a, b) && !is_single(a, b) && !is_single(b, a))
        return fail(TUTTI_SHAPE,
            "matmul: the inputs have the shapes [%s]%s and [%s]%s: the dimensions before the last two, and the "
            "batch, must be equal, or one input must have none",
            one, a->batched ? " for each sample" : "", other, b->batched ? " for each sample" : "");
    const struct value *leading = is_single(a, b) ? b : a;
    outputs[0] = (struct value) { .type = TYPE_F32, .batched = leading->batched, .shape = leading->shape };
    outputs[0].axes = product_axes(leading, a, b, node);
    outputs[0].shape.sizes[leading->shape.rank - 2] = value_size(a, !ta);
    outputs[0].shape.sizes[leading->shape.rank - 1] = value_size(b, tb);
    return TUTTI_OK;
}

/* -------------------------------------------------------------------------------------------------- gradient ---- */

/* Appends a product with the precision of `like`. */
static int product(struct graph *graph, const struct node *like, int a, bool transpose_a, int b, bool transpose_b)
{
    const struct matmul_attributes attributes = { transpose_a, transpose_b, matmul_attributes(like)->full_precision };
    return graph_append(graph, &operation_matmul, &attributes, (int[]) { a, b }, 2, like->layer);
}

/* The gradient of b, one matrix for all rows of a: the sum over the rows is one product. */
static int gradient_of_single(struct graph *graph, const struct node *node, int dy)
{
    const int a = node->inputs[0], layer = node->layer;
    const bool tb = matmul_attributes(node)->transpose_b;
    const struct reshape_attributes shape = { .shape = graph_at(graph, node->inputs[1])->shape };
    const int inputs[] = { tb ? a : dy, tb ? dy : a };
    const int gradient = graph_append(graph, &operation_dense_weight_gradient, NULL, inputs, 2, layer);
    return shape.shape.rank == 2 ? gradient : graph_append(graph, &operation_reshape, &shape, &gradient, 1, layer);
}

static tutti_status gradient(struct graph *graph, const struct node *node, const struct node_gradients *g)
{
    const int dy = g->outputs[0], a = node->inputs[0], b = node->inputs[1], layer = node->layer;
    const bool ta = matmul_attributes(node)->transpose_a, tb = matmul_attributes(node)->transpose_b;
    if (dy == NO_VALUE) return TUTTI_OK;
    if (g->wanted[1]) {
        const bool single = !same_leading(graph_at(graph, a), graph_at(graph, b)) && !ta &&
            is_single(graph_at(graph, b), graph_at(graph, a));
        if (single) {
            g->inputs[1] = gradient_of_single(graph, node, dy);
        } else {
            const int each = tb ? product(graph, node, dy, true, a, ta) : product(graph, node, a, !ta, dy, false);
            g->inputs[1] = broadcast_gradient(graph, each, b, layer);
        }
    }
    if (g->wanted[0]) {
        const int each = ta ? product(graph, node, b, tb, dy, true) : product(graph, node, dy, false, b, !tb);
        g->inputs[0] = broadcast_gradient(graph, each, a, layer);
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
    .reference = interpret_matmul,
    .implementations = product_forward,
    .stored_inputs = 1 << 1,
    .flops = product_flops,
    .bytes = product_bytes,
};

/* ---------------------------------------------------------------------------------------------- broadcasting ---- */

/* Number of axes before the matrices, without the batch's. They are counted from the last one. */
static int leading_axes(const struct value *value)
{
    return value->shape.rank - value->batched - 2;
}

static int64_t leading_size(const struct value *value, int from_last)
{
    return from_last < leading_axes(value) ? value_size(value, from_last + 2) : 1;
}

/* Makes a vector a matrix: a row where it is the first input, a column where it is the second. */
static int as_matrix(const struct append_context *c, int value, bool row)
{
    const struct value *x = graph_at(c->graph, value);
    if (!x || x->shape.rank - x->batched != 1) return value;
    tutti_shape shape = x->shape;
    shape.sizes[shape.rank++] = row ? shape.sizes[x->batched] : 1;
    if (row) shape.sizes[x->batched] = 1;
    return append_reshape(c, value, shape);
}

/* Counts the last leading axes along which b repeats while all other leading axes equal those of a; 0: something else
 * is broadcast. Along these axes the matrices of a are then one matrix of more rows. */
static int repeated_axes(const struct value *a, const struct value *b)
{
    int repeated = 0;
    if (a->batched != b->batched || leading_axes(b) > leading_axes(a)) return 0;
    while (repeated < leading_axes(a) && leading_size(b, repeated) == 1) repeated++;
    for (int i = repeated; i < leading_axes(a); i++)
        if (leading_size(a, i) != leading_size(b, i)) return 0;
    for (int i = 0; i <= repeated; i++)
        if (value_size(a, i + 1) == TUTTI_SEQUENCE) return 0;
    return repeated;
}

static int product_of_more_rows(
    const struct append_context *c, const struct matmul_attributes *attributes, int a, int b, int repeated)
{
    const struct value *left = graph_at(c->graph, a), *right = graph_at(c->graph, b);
    const int kept = left->shape.rank - 2 - repeated;
    tutti_shape rows = { .rank = kept + 2 }, matrices = rows, whole = left->shape;
    int64_t count = 1;
    for (int i = 0; i < kept; i++) matrices.sizes[i] = rows.sizes[i] = whole.sizes[i];
    for (int i = 0; i <= repeated; i++) count *= whole.sizes[kept + i];
    rows.sizes[kept] = count;
    rows.sizes[kept + 1] = value_size(left, 0);
    matrices.sizes[kept] = value_size(right, 1);
    matrices.sizes[kept + 1] = value_size(right, 0);
    whole.sizes[whole.rank - 1] = value_size(right, attributes->transpose_b);
    const int pair[] = { append_reshape(c, a, rows), append_reshape(c, b, matrices) };
    const int product = graph_append(c->graph, &operation_matmul, attributes, pair, 2, c->layer);
    return append_reshape(c, product, whole);
}

/* Expands the value to the leading axes that both have together. */
static int with_all_axes(const struct append_context *c, int value, int other)
{
    const struct value *x = graph_at(c->graph, value), *y = graph_at(c->graph, other);
    if (!x || !y) return NO_VALUE;
    const int leading = leading_axes(x) > leading_axes(y) ? leading_axes(x) : leading_axes(y);
    const bool batched = x->batched || y->batched;
    tutti_shape shape = { .rank = leading + 2 + batched };
    if (shape.rank > TUTTI_MAX_RANK)
        return append_fail(c,
            fail(TUTTI_SHAPE, "matmul: the result would have %d axes besides the batch's: %d are possible",
                shape.rank - 1, TUTTI_MAX_RANK - 1));
    if (batched) shape.sizes[0] = x->batched ? x->shape.sizes[0] : y->shape.sizes[0];
    for (int i = 0; i < leading; i++) {
        const int64_t own = leading_size(x, i);
        shape.sizes[shape.rank - 3 - i] = own == 1 ? leading_size(y, i) : own;
    }
    for (int i = 1; i <= 2; i++) shape.sizes[shape.rank - i] = x->shape.sizes[x->shape.rank - i];
    return append_expand(c, value, shape, other);
}

static tutti_status check_leading(const struct value *a, const struct value *b)
{
    const int axes = leading_axes(a) > leading_axes(b) ? leading_axes(a) : leading_axes(b);
    char one[BROADCAST_TEXT], other[BROADCAST_TEXT];
    for (int i = 0; i < axes; i++) {
        const int64_t left = leading_size(a, i), right = leading_size(b, i);
        if (left == right || left == 1 || right == 1) continue;
        broadcast_print(a, one);
        broadcast_print(b, other);
        return fail(TUTTI_SHAPE,
            "matmul: the inputs have the shapes [%s]%s and [%s]%s: the sizes before the last two must be equal, "
            "or "
            "one of them 1, counted from the last",
            one, a->batched ? " for each sample" : "", other, b->batched ? " for each sample" : "");
    }
    return TUTTI_OK;
}

/* Appends one product. Where the operation cannot read both inputs as they are, the matrices of a become one of more
 * rows, or the inputs are expanded. */
static int product_of_matrices(const struct append_context *c, const struct matmul_attributes *attributes, int a, int b)
{
    const struct value *left = graph_at(c->graph, a), *right = graph_at(c->graph, b);
    if (!left || !right) return NO_VALUE;
    const bool matrices = leading_axes(left) >= 0 && leading_axes(right) >= 0;
    if (matrices && !same_leading(left, right) && !is_single(left, right) && !is_single(right, left)) {
        const tutti_status status = check_leading(left, right);
        if (status != TUTTI_OK) return append_fail(c, status);
        const int repeated = attributes->transpose_a ? 0 : repeated_axes(left, right);
        if (repeated) return product_of_more_rows(c, attributes, a, b, repeated);
        a = with_all_axes(c, a, b);
        b = with_all_axes(c, b, a);
    }
    return graph_append(c->graph, &operation_matmul, attributes, (int[]) { a, b }, 2, c->layer);
}

/* Removes the axis that a vector got, unless the result is one number for all samples. */
static int without_axis(const struct append_context *c, int product, int from_last)
{
    const struct value *y = graph_at(c->graph, product);
    if (!y || y->shape.rank < 2) return product;
    tutti_shape shape = y->shape;
    const int axis = shape.rank - 1 - from_last;
    for (int i = axis; i + 1 < shape.rank; i++) shape.sizes[i] = shape.sizes[i + 1];
    shape.rank--;
    return append_reshape(c, product, shape);
}

int decompose_matmul(const struct append_context *c, const void *attributes, const int *inputs, int count)
{
    struct matmul_attributes how = *(const struct matmul_attributes *)attributes;
    const int a = as_matrix(c, inputs[0], true), b = as_matrix(c, inputs[1], false);
    (void)count;
    if (a != inputs[0]) how.transpose_a = false;
    if (b != inputs[1]) how.transpose_b = false;
    int y = product_of_matrices(c, &how, a, b);
    if (b != inputs[1]) y = without_axis(c, y, 0);
    return a != inputs[0] ? without_axis(c, y, b != inputs[1] ? 0 : 1) : y;
}

/* --------------------------------------------------------------------------------------------------- builder ---- */

tutti_tensor tutti_matmul(
    tutti_network *network, const char *name, tutti_tensor a, tutti_tensor b, bool transpose_a, bool transpose_b)
{
    if (!network_operand(network, a) || !network_operand(network, b)) return (tutti_tensor) { NO_VALUE };
    const struct matmul_attributes attributes = { transpose_a, transpose_b };
    const struct append_context context = { network, &network->graph, network_layer_begin(network, name, "matmul") };
    if (!network_ok(network)) return (tutti_tensor) { NO_VALUE };
    return network_close(network, context.layer, decompose_matmul(&context, &attributes, (int[]) { a.id, b.id }, 2));
}
