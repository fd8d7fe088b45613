/* reshape, flatten, fold and unfold: the same memory under another shape; no launches. */
#include "graph/network.h"
#include "layers/interpreter/interpreter.h"
#include "layers/layers.h"

ATTRIBUTES_DESCRIBE(reshape, ATTRIBUTE(reshape, SHAPE, shape), ATTRIBUTE(reshape, OTHER, axes))

/* Checks that the length of sequences stays an axis, wherever: it has no number to be multiplied by. */
static tutti_status check_sequences(const tutti_shape *from, const tutti_shape *to)
{
    const int before = shape_sequences(from), after = shape_sequences(to);
    if (before == after) return TUTTI_OK;
    return fail(TUTTI_SHAPE,
        "reshape: the length of sequences, TUTTI_SEQUENCE, is %d of the input's sizes and %d of the shape's: it cannot "
        "be joined with another size",
        before, after);
}

/* Rows of a sample in a shape with the first size `to`, for a value with the first size x->shape.sizes[0]. 0: none. */
static int64_t rows_in(const struct value *x, int64_t to)
{
    const int64_t from = x->shape.sizes[0];
    const int64_t was = shape_elements(&(tutti_shape) { 1, { from } }),
                  is = shape_elements(&(tutti_shape) { 1, { to } });
    if (size_is_batch(from) != size_is_batch(to) || is * x->rows % was != 0) return 0;
    return is * x->rows / was;
}

static tutti_status infer(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *x = graph_at(graph, node->inputs[0]);
    const tutti_shape to = reshape_attributes(node)->shape;
    if (to.rank < 1 || to.rank > TUTTI_MAX_RANK)
        return fail(TUTTI_SHAPE, "reshape: the shape has %d dimensions: 1 to %d are possible", to.rank, TUTTI_MAX_RANK);
    const int64_t rows = x->batched ? rows_in(x, to.sizes[0]) : 0;
    if (shape_elements(&x->shape) != shape_elements(&to) || (x->batched && rows == 0))
        return fail(TUTTI_SHAPE, "reshape: the input has %lld elements, but the shape has %lld",
            (long long)shape_elements(&x->shape), (long long)shape_elements(&to));
    outputs[0] = (struct value) {
        .type = x->type, .batched = x->batched, .rows = rows, .shape = to, .axes = reshape_attributes(node)->axes
    };
    return check_sequences(&x->shape, &to);
}

static tutti_status gradient(struct graph *graph, const struct node *node, const struct node_gradients *g)
{
    if (g->outputs[0] == NO_VALUE || !g->wanted[0]) return TUTTI_OK;
    const struct value *x = graph_at(graph, node->inputs[0]);
    const struct reshape_attributes attributes = { x->shape, x->axes };
    g->inputs[0] = graph_append(graph, &operation_reshape, &attributes, g->outputs, 1, node->layer);
    return graph->status;
}

static const struct implementation *const implementations[] = { NULL };

const struct operation operation_reshape = {
    .name = "reshape",
    .inputs = { { "x", PORT_ANY_TYPE } },
    .outputs = { { "y" } },
    .attributes = &reshape_attributes_type,
    .infer = infer,
    .gradient = gradient,
    .reference = interpret_copy,
    .implementations = implementations,
    .alias = true,
};

/* -------------------------------------------------------------------------------------------------- builders ---- */

/* Sample axes that are counted from the last one stay what they are. */
static tutti_status with_rows(const struct value *x, tutti_shape shape, struct reshape_attributes *attributes)
{
    const int less = x->shape.rank < shape.rank ? x->shape.rank : shape.rank;
    *attributes = (struct reshape_attributes) { .shape = shape };
    for (int i = 1; i < less; i++) attributes->axes.kinds[shape.rank - i] = x->axes.kinds[x->shape.rank - i];
    return TUTTI_OK;
}

/* Axes stay what they are up to the first one that is divided or joined with others, and from the last one on. */
static struct axes axes_of(const struct value *x, const tutti_shape *shape)
{
    struct axes axes = { 0 };
    const int rank = x->shape.rank;
    for (int i = 0; i < rank && i < shape->rank && x->shape.sizes[i] == shape->sizes[i]; i++)
        axes.kinds[i] = x->axes.kinds[i];
    for (int i = 1; i <= rank && i <= shape->rank; i++) {
        if (x->shape.sizes[rank - i] != shape->sizes[shape->rank - i]) break;
        axes.kinds[shape->rank - i] = x->axes.kinds[rank - i];
    }
    return axes_with_sequences(axes, shape);
}

tutti_status reshape_fold(const struct value *x, struct reshape_attributes *attributes)
{
    tutti_shape shape = { .rank = x->shape.rank - 1 };
    if (!x->batched || x->shape.rank < 2 || x->shape.sizes[1] == TUTTI_SEQUENCE)
        return fail(TUTTI_SHAPE, "fold: a sample needs a first axis with a number of elements");
    shape.sizes[0] = BATCH_ROWS(x->rows * x->shape.sizes[1]);
    for (int i = 1; i < shape.rank; i++) shape.sizes[i] = x->shape.sizes[i + 1];
    return with_rows(x, shape, attributes);
}

tutti_status reshape_unfold(const struct value *x, int64_t size, struct reshape_attributes *attributes)
{
    tutti_shape shape = { .rank = x->shape.rank + 1 };
    if (!x->batched || size < 1 || x->rows % size != 0 || shape.rank > TUTTI_MAX_RANK)
        return fail(TUTTI_SHAPE, "unfold: the size is %lld, and a sample has %lld rows: it must divide them",
            (long long)size, (long long)x->rows);
    shape.sizes[0] = BATCH_ROWS(x->rows / size);
    shape.sizes[1] = size;
    for (int i = 2; i < shape.rank; i++) shape.sizes[i] = x->shape.sizes[i - 1];
    return with_rows(x, shape, attributes);
}

tutti_status reshape_resolve(const struct value *x, struct reshape_attributes *attributes)
{
    tutti_shape *shape = &attributes->shape;
    const int first = x->batched;
    const tutti_shape batch = { .rank = first, .sizes = { x->shape.sizes[0] } };
    const int64_t have = shape_elements(&x->shape) / shape_elements(&batch);
    int64_t known = 1;
    int open = -1;
    if (shape->rank < 1 || shape->rank < first || shape->rank > TUTTI_MAX_RANK)
        return fail(TUTTI_SHAPE, "reshape: the shape has %d dimensions: 1 to %d are possible", shape->rank - first,
            TUTTI_MAX_RANK - first);
    for (int i = first; i < shape->rank; i++) {
        const int64_t size = shape->sizes[i];
        if (size == -1 && open < 0) {
            open = i;
            continue;
        }
        if (size == TUTTI_SEQUENCE) continue;
        if (size < 1 || size > have)
            return fail(TUTTI_SHAPE, "reshape: size %lld in dimension %d does not fit an input of %lld elements%s",
                (long long)size, i - first, (long long)have, size == -1 ? "; only one size may be -1" : "");
        known = known > have / size ? have + 1 : known * size;
    }
    if (open >= 0 ? have % known : have != known)
        return fail(TUTTI_SHAPE,
            "reshape: the input has %lld elements: the sizes of the shape do not multiply to this number",
            (long long)have);
    if (open >= 0) shape->sizes[open] = have / known;
    if (open >= 0 && have == known && shape_sequences(&x->shape) > shape_sequences(shape))
        shape->sizes[open] = TUTTI_SEQUENCE;
    attributes->axes = axes_of(x, shape);
    return check_sequences(&x->shape, shape);
}

static tutti_tensor append(tutti_network *network, tutti_tensor x, const char *name, tutti_shape asked)
{
    const struct value *value = network_value(network, x);
    if (!value) return (tutti_tensor) { NO_VALUE };
    struct reshape_attributes attributes = { .shape = { .rank = asked.rank + value->batched } };
    attributes.shape.sizes[0] = value->shape.sizes[0];
    for (int i = 0; i < asked.rank && i + value->batched < TUTTI_MAX_RANK; i++)
        attributes.shape.sizes[i + value->batched] = asked.sizes[i];
    tutti_status status = reshape_resolve(value, &attributes);
    if (status != TUTTI_OK) return network_fail(network, status);
    int layer = network_layer_begin(network, NULL, name);
    return network_append(network, layer, &operation_reshape, &attributes, &x.id, 1);
}

tutti_tensor tutti_reshape(tutti_network *network, tutti_tensor x, tutti_shape shape)
{
    return append(network, x, "reshape", shape);
}

tutti_tensor tutti_reshape_sized(tutti_network *network, tutti_tensor x, const int64_t *sizes, int rank)
{
    tutti_shape shape = { 0 };
    if (network_ok(network) && !shape_read(sizes, rank, &shape))
        return network_fail(network,
            fail(TUTTI_SHAPE, "reshape: the shape has %d sizes%s: 1 to %d are possible", rank, sizes ? "" : " at NULL",
                TUTTI_MAX_RANK - 1));
    return append(network, x, "reshape", shape);
}

tutti_tensor tutti_flatten(tutti_network *network, tutti_tensor x)
{
    return append(network, x, "flatten", TUTTI_SHAPE(-1));
}
