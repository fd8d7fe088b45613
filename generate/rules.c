/* Which nodes work on some tokens of a text as on all of them, and what of their inputs they need. */
#include "generate/rules.h"

#include "layers/layers.h"
#include "layers/recurrent/recurrent.h"

#include <math.h>
#include <string.h>

typedef int rule(struct walk *walk, const struct node *node, int output);

static const char across_tokens[] = "joins numbers of several tokens";

static const struct value *input_of(const struct walk *walk, const struct node *node, int i)
{
    return i < node->input_count ? walk_value(walk, node->inputs[i]) : NULL;
}

static int local_input(struct walk *walk, const struct node *node, int i)
{
    return node->inputs[i] == NO_VALUE ? NO_VALUE : walk_local(walk, node->inputs[i]);
}

/* Appends the node with these inputs, and returns its output. */
static int append(struct walk *walk, const struct node *node, const int *inputs, int output)
{
    struct node copy = *node;
    struct graph *graph = &walk->made->network->graph;
    walk_bind(walk, &copy, 1);
    const int first = walk_append(walk, node->operation, copy.attributes.bytes, inputs, node->input_count, node->layer);
    return first == NO_VALUE ? NO_VALUE : graph->nodes[graph_at(graph, first)->producer].outputs[output];
}

/* Operations whose inputs are broadcast: of each the rows of the tokens or, at the second axis of tokens, all. */
static int elementwise(struct walk *walk, const struct node *node, int output)
{
    const struct value *y = walk_value(walk, node->outputs[output]);
    const struct token_axes axes = token_axes(y);
    int inputs[GRAPH_MAX_INPUTS] = { 0 };
    for (int i = 0; i < node->input_count; i++) {
        const struct value *x = input_of(walk, node, i);
        const struct token_axes of = token_axes(x);
        const bool seen = of.count == 1 && axes.count == 2 && of.row == axes.column;
        if (of.count > 0 && !seen && of.row != axes.row) return walk_refuse(walk, node, across_tokens);
        inputs[i] = !x ? NO_VALUE : seen ? walk_whole(walk, node->inputs[i]) : walk_local(walk, node->inputs[i]);
        if (x) inputs[i] = walk_align(walk, inputs[i], x, y->shape.rank - y->batched);
    }
    return append(walk, node, inputs, output);
}

static int all_local(struct walk *walk, const struct node *node, int output)
{
    int inputs[GRAPH_MAX_INPUTS] = { 0 };
    for (int i = 0; i < node->input_count; i++) inputs[i] = local_input(walk, node, i);
    return append(walk, node, inputs, output);
}

/* Whether what the value has of later tokens is this number. */
static bool is_causal(struct walk *walk, const struct node *node, int value, double later)
{
    bool holds = true;
    const tutti_status status = causal_check(&walk->causal, value, later, &holds);
    if (status != TUTTI_OK)
        (void)walk_fail(walk, status);
    else if (!holds)
        (void)walk_refuse(walk, node, "lets tokens see later tokens");
    return walk->status == TUTTI_OK;
}

static int softmax(struct walk *walk, const struct node *node, int output)
{
    const struct token_axes axes = token_axes(input_of(walk, node, 0));
    if (axes.row == 0) return walk_refuse(walk, node, across_tokens);
    if (axes.column == 0 && !is_causal(walk, node, node->outputs[output], 0)) return NO_VALUE;
    return all_local(walk, node, output);
}

/* Work along the last axis. */
static int dense(struct walk *walk, const struct node *node, int output)
{
    const struct token_axes axes = token_axes(input_of(walk, node, 0));
    if (axes.row == 0 || axes.column == 0) return walk_refuse(walk, node, across_tokens);
    return all_local(walk, node, output);
}

/* Masks are the same for all texts in the network, but rows of them differ, so they have got a batch. */
static void add_batch(struct reduce_attributes *attributes)
{
    tutti_shape *shape = &attributes->shape;
    attributes->axes <<= 1;
    if (shape->rank == 0) return;
    memmove(shape->sizes + 1, shape->sizes, (size_t)shape->rank++ * sizeof *shape->sizes);
    shape->sizes[0] = BATCH;
    memmove(attributes->kinds.kinds + 1, attributes->kinds.kinds, sizeof attributes->kinds.kinds - 1);
}

/* Seen tokens can be summed, or the largest taken, as a softmax by hand does, if later ones do not count. */
static bool reduces_causally(struct walk *walk, const struct node *node, const struct value *x, unsigned axes)
{
    const int column = token_axes(x).column;
    const bool adds = node->operation == &operation_reduce_sum;
    if (column < 0 || !(axes >> (x->shape.rank - 1 - column) & 1) || !walk->depends[node->inputs[0]]) return true;
    if (column == 0 && (adds || node->operation == &operation_reduce_max))
        return is_causal(walk, node, node->inputs[0], adds ? 0 : -INFINITY);
    (void)walk_refuse(walk, node, across_tokens);
    return false;
}

static int reduce(struct walk *walk, const struct node *node, int output)
{
    const struct value *x = input_of(walk, node, 0);
    const int token = x->shape.rank - 1 - token_axes(x).row;
    const unsigned axes = reduce_attributes(node)->axes;
    if (token_axes(x).count == 0 || axes >> token & 1 || (x->batched && axes & 1))
        return walk_refuse(walk, node, across_tokens);
    if (!reduces_causally(walk, node, x, axes)) return NO_VALUE;
    struct node copy = *node;
    const int made = walk_local(walk, node->inputs[0]);
    const struct value *value = graph_at(&walk->made->network->graph, made);
    struct reduce_attributes attributes = *reduce_attributes(node);
    if (value && value->batched && !x->batched) add_batch(&attributes);
    node_set_operation(&copy, node->operation, &attributes);
    return append(walk, &copy, &made, output);
}

static int embedding(struct walk *walk, const struct node *node, int output)
{
    if (token_axes(input_of(walk, node, 1)).count > 0) return walk_refuse(walk, node, across_tokens);
    return all_local(walk, node, output);
}

static int transpose(struct walk *walk, const struct node *node, int output)
{
    const struct value *x = input_of(walk, node, 0);
    const int *order = transpose_attributes(node)->order;
    int found = -1;
    for (int i = 0; i < x->shape.rank; i++) {
        if (x->shape.sizes[order[i]] != TUTTI_SEQUENCE) continue;
        if (order[i] < found) return walk_refuse(walk, node, "exchanges the axes of tokens");
        found = order[i];
    }
    return all_local(walk, node, output);
}

/* A part of x that has all tokens. */
static int window(struct walk *walk, const struct node *node, int output)
{
    const struct value *x = input_of(walk, node, 0);
    const struct window_attributes *a = window_attributes(node);
    for (int i = 0; i < x->shape.rank; i++) {
        const bool tokens = x->shape.sizes[i] == TUTTI_SEQUENCE;
        if (!tokens && a->shape.sizes[i] != TUTTI_SEQUENCE) continue;
        if (!tokens || a->shape.sizes[i] != TUTTI_SEQUENCE || a->begins[i] != 0 || a->reversed >> i & 1)
            return walk_refuse(walk, node, "takes a part of the tokens, or adds some");
    }
    return all_local(walk, node, output);
}

static int concat(struct walk *walk, const struct node *node, int output)
{
    const struct value *y = walk_value(walk, node->outputs[output]);
    const int axis = axis_attributes(node)->axis;
    for (int i = 0; i < node->input_count; i++) {
        const struct value *x = input_of(walk, node, i);
        if (x->batched != y->batched || token_axes(x).row != token_axes(y).row ||
            token_axes(x).column != token_axes(y).column || x->shape.sizes[axis] == TUTTI_SEQUENCE)
            return walk_refuse(walk, node, across_tokens);
    }
    return all_local(walk, node, output);
}

/* a [..., m, k] b [..., k, n]: b of each token by itself, or of all that are seen. */
static int matmul(struct walk *walk, const struct node *node, int output)
{
    const struct matmul_attributes *attributes = matmul_attributes(node);
    const struct value *a = input_of(walk, node, 0), *b = input_of(walk, node, 1);
    const struct token_axes of_a = token_axes(a), of_b = token_axes(b);
    /* Places of m, k and n, counted from the last axis. */
    const int m = attributes->transpose_a ? 0 : 1, k_of_a = 1 - m, k_of_b = attributes->transpose_b ? 0 : 1;
    const int n = 1 - k_of_b;
    const bool each = of_b.count == 0 && of_a.count == 1 && of_a.row != k_of_a;
    const bool along = of_a.count == 1 && of_b.count == 1 && of_a.row > 1 && of_a.row == of_b.row;
    const bool scores = of_a.count == 1 && of_a.row == m && of_b.count == 1 && of_b.row == n;
    const bool sums =
        of_a.count == 2 && of_a.row == m && of_a.column == k_of_a && of_b.count == 1 && of_b.row == k_of_b;
    if (!each && !along && !scores && !sums) return walk_refuse(walk, node, across_tokens);
    if (sums && !is_causal(walk, node, node->inputs[0], 0)) return NO_VALUE;
    const int inputs[] = { walk_local(walk, node->inputs[0]),
        scores || sums ? walk_whole(walk, node->inputs[1]) : walk_local(walk, node->inputs[1]) };
    return append(walk, node, inputs, output);
}

/* In one direction; what is left of the tokens before is its state. All tokens of a call count. */
static int recurrent(struct walk *walk, const struct node *node, int output)
{
    const int64_t width = value_size(input_of(walk, node, RECURRENT_R), 0);
    const bool lstm = recurrent_attributes(node)->kind == RECURRENT_LSTM;
    int inputs[GRAPH_MAX_INPUTS];
    if (recurrent_attributes(node)->reverse) return walk_refuse(walk, node, "begins with the last token");
    if (output != RECURRENT_Y) return walk_refuse(walk, node, "gives the state after the last token");
    for (int i = RECURRENT_H0; i <= RECURRENT_C0; i++)
        if (i < node->input_count && node->inputs[i] != NO_VALUE)
            return walk_refuse(walk, node, "begins with a state that is not zero");
    for (int i = 0; i < GRAPH_MAX_INPUTS; i++) {
        const bool reads = i < node->input_count && i != RECURRENT_H0 && i != RECURRENT_C0 && i != RECURRENT_LENGTHS;
        inputs[i] = reads ? local_input(walk, node, i) : NO_VALUE;
    }
    inputs[RECURRENT_H0] = walk_state(walk, TUTTI_SHAPE(width));
    if (lstm) inputs[RECURRENT_C0] = walk_state(walk, TUTTI_SHAPE(width));
    struct graph *graph = &walk->made->network->graph;
    const int y =
        walk_append(walk, node->operation, node->attributes.bytes, inputs, RECURRENT_LENGTHS + 1, node->layer);
    if (y == NO_VALUE) return NO_VALUE;
    const struct node *made = &graph->nodes[graph_at(graph, y)->producer];
    const int last = made->outputs[RECURRENT_LAST], last_c = lstm ? made->outputs[RECURRENT_LAST_C] : NO_VALUE;
    walk_carry(walk, last, inputs[RECURRENT_H0]);
    if (lstm) walk_carry(walk, last_c, inputs[RECURRENT_C0]);
    return y;
}

/* Dropout does nothing in inference. */
static int same(struct walk *walk, const struct node *node, int output)
{
    (void)output;
    return walk_local(walk, node->inputs[0]);
}

static const struct {
    const struct operation *operation;
    rule *rule;
} table[] = {
    { &operation_activation, elementwise },
    { &operation_cast, all_local },
    { &operation_convert, all_local },
    { &operation_expand, elementwise },
    { &operation_reshape, all_local },
    { &operation_transpose, transpose },
    { &operation_window, window },
    { &operation_concat, concat },
    { &operation_dense, dense },
    { &operation_matmul, matmul },
    { &operation_embedding, embedding },
    { &operation_layer_norm, dense },
    { &operation_softmax, softmax },
    { &operation_reduce_sum, reduce },
    { &operation_reduce_mean, reduce },
    { &operation_reduce_max, reduce },
    { &operation_reduce_min, reduce },
    { &operation_reduce_prod, reduce },
    { &operation_recurrent, recurrent },
    { &operation_dropout, same },
};

static int local(struct walk *walk, const struct node *node, int output)
{
    const struct value *y = walk_value(walk, node->outputs[output]);
    if (token_axes(y).count == 0) return walk_refuse(walk, node, "computes one number of all tokens of a text");
    if (token_axes(y).count > 2 || y->rows > 1)
        return walk_refuse(walk, node, "has more than two axes of tokens, or moves them into the batch");
    if (node->operation->pointwise) return elementwise(walk, node, output);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].operation == node->operation) return table[i].rule(walk, node, output);
    return walk_refuse(walk, node, "is not known to work on each token by itself");
}

/* Whether the value, or what it is moved from, repeats numbers: a cache of it would keep copies. */
static bool repeats(const struct walk *walk, int value)
{
    const struct value *of = walk_value(walk, value);
    const struct node *node = of && of->producer >= 0 ? &walk->from->graph.nodes[of->producer] : NULL;
    if (!node || node->input_count != 1 || token_axes(input_of(walk, node, 0)).count != 1) return false;
    if (node->operation == &operation_expand) return true;
    const bool passes = node->operation == &operation_transpose || node->operation == &operation_reshape ||
        node->operation == &operation_scale || node->operation == &operation_copy;
    return passes && repeats(walk, node->inputs[0]);
}

/* A cache lies behind a transpose, so that a token transposes its own rows and not those of all positions. */
static bool moves(const struct walk *walk, const struct node *node)
{
    static const struct operation *const list[] = { &operation_transpose, &operation_reshape, &operation_expand,
        &operation_scale, &operation_copy };
    if (node->input_count != 1 || token_axes(input_of(walk, node, 0)).count != 1) return false;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (list[i] == node->operation)
            return node->operation != &operation_transpose || repeats(walk, node->inputs[0]);
    return false;
}

const struct rules token_rules = { .local = local, .moves = moves };
