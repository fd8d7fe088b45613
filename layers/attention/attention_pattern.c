/* Finds attention among the nodes of a network, before their gradients are appended:
 *   dropout(softmax(scale q k^T + bias)) v
 * with transposes of q, k, v and the result, as tutti_attention() appends them (layers/attention.c), or as they are
 * written by hand. All of it becomes one node, if the device's kernels profit. */
#include "graph/edit.h"
#include "layers/attention/attention.h"
#include "layers/patterns.h"

struct found {
    const struct rewriting *rewriting;
    struct attention_attributes attributes;
    int inputs[ATTENTION_Y];
};

/* The node that makes the value for nobody else, if it is of this operation; else NULL. */
static const struct node *sole(const struct found *found, int value, const struct operation *operation)
{
    const struct graph *graph = found->rewriting->graph;
    const int producer = pattern_sole_producer(graph, value);
    return producer >= 0 && graph->nodes[producer].operation == operation ? &graph->nodes[producer] : NULL;
}

/* The same where others may read the value, too. */
static const struct node *made_by(const struct found *found, int value, const struct operation *operation)
{
    const struct graph *graph = found->rewriting->graph;
    const struct value *v = graph_at(graph, value);
    const struct node *node = v && v->producer >= 0 ? &graph->nodes[v->producer] : NULL;
    return node && node->operation == operation ? node : NULL;
}

/* Whether the value is a transpose of four axes in this order; then sets it to what is transposed. */
static bool transposed(const struct found *found, int *value, const int order[4])
{
    const struct node *node = made_by(found, *value, &operation_transpose);
    if (!node || graph_at(found->rewriting->graph, *value)->shape.rank != 4) return false;
    for (int i = 0; i < 4; i++)
        if (transpose_attributes(node)->order[i] != order[i]) return false;
    *value = node->inputs[0];
    return true;
}

static bool is_plain_product(const struct node *node)
{
    return node && !matmul_attributes(node)->transpose_a;
}

/* Follows factors back to what they multiply. */
static int without_factors(struct found *found, int value)
{
    for (const struct node *node; (node = sole(found, value, &operation_scale));) {
        found->attributes.scale *= pointwise_attributes(node)->low;
        value = node->inputs[0];
    }
    return value;
}

static bool find_scores(struct found *found, int scores)
{
    static const int across[] = { 0, 1, 3, 2 }, joined_across[] = { 0, 2, 3, 1 }, joined[] = { 0, 2, 1, 3 };
    struct attention_attributes *a = &found->attributes;
    a->scale = 1;
    const struct node *node = sole(found, without_factors(found, scores), &operation_matmul);
    if (!is_plain_product(node)) return false;
    int q = without_factors(found, node->inputs[0]), k = without_factors(found, node->inputs[1]);
    if (!matmul_attributes(node)->transpose_b) {
        a->k_joined = transposed(found, &k, joined_across);
        if (!a->k_joined && !transposed(found, &k, across)) return false;
        k = without_factors(found, k);
    } else {
        a->k_joined = transposed(found, &k, joined);
    }
    a->q_joined = transposed(found, &q, joined);
    found->inputs[ATTENTION_Q] = q;
    found->inputs[ATTENTION_K] = k;
    return true;
}

/* layers/attention.c replaces the bias of queries that see no key, and multiplies their probabilities by 0: returns the
 * bias. NO_VALUE: `guarded` is something else. */
static int unguarded(const struct found *found, int guarded, int open)
{
    const struct node *where = made_by(found, guarded, &operation_where), *not = made_by(found, open, &operation_not);
    if (!where || !not || where->inputs[1] != open || where->inputs[0] != not ->inputs[0]) return NO_VALUE;
    const struct node *blocked = made_by(found, where->inputs[0], &operation_is_inf);
    const struct node *best = blocked ? made_by(found, blocked->inputs[0], &operation_reduce_max) : NULL;
    const int bias = where->inputs[2];
    const struct value *value = graph_at(found->rewriting->graph, bias);
    const bool last = best && best->inputs[0] == bias && reduce_attributes(best)->axes == 1u << (value->shape.rank - 1);
    return last ? bias : NO_VALUE;
}

/* p: the softmax, times `open` if that is a value. */
static bool find_softmax(struct found *found, int p)
{
    const struct node *node = sole(found, p, &operation_mul);
    const int open = node ? node->inputs[1] : NO_VALUE;
    const struct node *softmax = sole(found, node ? node->inputs[0] : p, &operation_softmax);
    if (!softmax) return false;
    const struct node *sum = sole(found, softmax->inputs[0], &operation_add);
    found->attributes.open = node != NULL;
    if (!sum) return !node && find_scores(found, softmax->inputs[0]);
    if (node) {
        found->inputs[ATTENTION_BIAS] = unguarded(found, sum->inputs[1], open);
        return found->inputs[ATTENTION_BIAS] != NO_VALUE && find_scores(found, sum->inputs[0]);
    }
    for (int i = 0; i < 2; i++) {
        found->inputs[ATTENTION_BIAS] = sum->inputs[1 - i];
        if (find_scores(found, sum->inputs[i])) return true;
    }
    return false;
}

static bool find_probabilities(struct found *found, int p)
{
    const struct node *dropout = sole(found, p, &operation_dropout);
    if (dropout) {
        found->attributes.probability = dropout_attributes(dropout)->probability;
        found->attributes.stream = dropout_attributes(dropout)->stream;
        if (found->attributes.probability > 0) found->inputs[ATTENTION_CONSTANTS] = dropout->inputs[1];
        p = dropout->inputs[0];
    }
    return find_softmax(found, p);
}

/* The node that reads the value alone and transposes it back; -1: none. */
static int transpose_of(const struct graph *graph, int value)
{
    static const int joined[] = { 0, 2, 1, 3 };
    if (edit_is_kept(graph, value) || edit_uses(graph, value) != 1) return -1;
    for (size_t n = 0; n < graph->node_count; n++) {
        const struct node *node = &graph->nodes[n];
        if (node->operation != &operation_transpose || node->inputs[0] != value) continue;
        for (int i = 0; i < 4; i++)
            if (transpose_attributes(node)->order[i] != joined[i]) return -1;
        return (int)n;
    }
    return -1;
}

/* Whether the node is valid, its bias needs no gradient, and the kernels that it will have profit. */
static bool profits(const struct found *found, const struct node *node)
{
    const struct rewriting *rewriting = found->rewriting;
    struct value outputs[GRAPH_MAX_OUTPUTS] = { 0 };
    struct problem problem;
    struct node copy = *node;
    const int bias = found->inputs[ATTENTION_BIAS];
    if (bias != NO_VALUE &&
        (graph_at(rewriting->graph, bias)->type != TYPE_F32 || rewriting->needs_gradient(rewriting, bias)))
        return false;
    if (node->operation->infer(rewriting->graph, &copy, outputs) != TUTTI_OK) return false;
    copy.output_count = 0;
    const struct implementation *chosen = rewriting->choose(rewriting, &copy, &problem);
    return chosen && !(chosen->passed_over && chosen->passed_over(&problem));
}

static bool fuse(const struct rewriting *rewriting, size_t n, int producer)
{
    static const int joined[] = { 0, 2, 1, 3 };
    struct graph *graph = rewriting->graph;
    struct found found = { .rewriting = rewriting };
    const struct node product = graph->nodes[n]; /* a copy: appending moves the array */
    (void)producer;
    for (int i = 0; i < ATTENTION_Y; i++) found.inputs[i] = NO_VALUE;
    if (!is_plain_product(&product) || matmul_attributes(&product)->transpose_b) return false;
    if (!find_probabilities(&found, product.inputs[0])) return false;
    found.inputs[ATTENTION_V] = product.inputs[1];
    found.attributes.v_joined = transposed(&found, &found.inputs[ATTENTION_V], joined);
    const int back = transpose_of(graph, product.outputs[0]);
    found.attributes.y_joined = back >= 0;
    struct node node = { .input_count = ATTENTION_Y, .layer = product.layer };
    node_set_operation(&node, &operation_attention, &found.attributes);
    for (int i = 0; i < ATTENTION_Y; i++) node.inputs[i] = found.inputs[i];
    if (!profits(&found, &node)) return false;
    if (graph_append(graph, &operation_attention, &found.attributes, found.inputs, ATTENTION_Y, product.layer) ==
        NO_VALUE)
        return false;
    graph_last(graph)->outputs[0] = back >= 0 ? graph->nodes[back].outputs[0] : product.outputs[0];
    graph->nodes[n].operation = NULL;
    if (back >= 0) graph->nodes[back].operation = NULL;
    edit_move_last(graph, n);
    return true;
}

const struct pattern pattern_attention = {
    .operation = &operation_matmul,
    .sole = true,
    .apply = fuse,
};
