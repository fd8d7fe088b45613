/* attention (ONNX's, which is PyTorch's scaled_dot_product_attention with more options) and rotary_embedding, as
 * decompositions. When a plan is made, attention/attention_pattern.c makes one node of an attention's where that is
 * faster. Axes are counted from the last one: [..., heads, length, width]. Further axes of samples come first;
 * mostly there are none. */
#include "layers/decompose.h"
#include "layers/lines.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/options.h"
#include "tutti_sequences.h"

struct attention {
    const struct append_context *c;
    const tutti_attention_options *o;
    int q, k, v; /* [..., heads, length, width] */
    int64_t length, keys, past;
    bool joined; /* q was [..., length, heads width] */
};

static int64_t size_of(const struct append_context *c, int value, int from_last)
{
    const struct value *x = graph_at(c->graph, value);
    return x && from_last < x->shape.rank - x->batched ? value_size(x, from_last) : 0;
}

static int64_t rank_of(const struct append_context *c, int value)
{
    const struct value *x = graph_at(c->graph, value);
    return x ? x->shape.rank - x->batched : 0;
}

/* Exchanges the axes `first` and `second`, counted from the last one. */
static int exchanged(const struct append_context *c, int x, int first, int second)
{
    const struct value *value = graph_at(c->graph, x);
    int order[TUTTI_MAX_RANK] = { 0 };
    if (!value) return NO_VALUE;
    const int last = value->shape.rank - 1;
    for (int i = 0; i <= last; i++) order[i] = i;
    order[last - first] = last - second;
    order[last - second] = last - first;
    return append_transpose(c, x, order);
}

/* The axis that is `from_last` before the last one. */
static int axis_of(const struct append_context *c, int value, int from_last)
{
    const struct value *x = graph_at(c->graph, value);
    return x ? x->shape.rank - 1 - from_last : 0;
}

/* Divides the last axis in two; the first has size `outer`. */
static int last_divided(const struct append_context *c, int x, int64_t outer)
{
    const struct value *value = graph_at(c->graph, x);
    if (!value) return NO_VALUE;
    const int64_t size = value_size(value, 0);
    if (value->shape.rank == TUTTI_MAX_RANK || outer < 1 || size % outer != 0)
        return append_fail(
            c, fail(TUTTI_SHAPE, "%lld heads do not divide the last axis, of %lld", (long long)outer, (long long)size));
    return append_split(c, x, value->shape.rank - 1, outer);
}

static int last_joined(const struct append_context *c, int x)
{
    return append_join(c, x, axis_of(c, x, 1));
}

/* [..., length, heads width] as [..., heads, length, width]. */
static int with_heads(const struct append_context *c, int x, int64_t heads)
{
    return exchanged(c, last_divided(c, x, heads), 1, 2);
}

static int number(const struct append_context *c, tutti_shape shape, const float *values)
{
    return network_constant(c->network, NULL, TYPE_F32, shape, values);
}

/* ------------------------------------------------------------------------------------------------------ masks ---- */

/* Returns, for each query and key, how far the key's position is after the query's. NULL: no memory. */
static float *distances(const struct attention *a)
{
    float *values = memory_new((size_t)(a->length * a->keys), sizeof *values);
    for (int64_t i = 0; values && i < a->length * a->keys; i++)
        values[i] = (float)(i % a->keys - i / a->keys - a->past);
    return values;
}

/* Returns 0, 1, ... for an axis of this size; `from_end`: how many elements there are from each one on. The length of
 * sequences is known only when a plan is made: a sum of ones counts it. */
static int counted(const struct append_context *c, int64_t size, bool from_end)
{
    if (size == TUTTI_SEQUENCE) {
        const struct scan_attributes scan = { .exclusive = !from_end, .reverse = from_end };
        const int one = number(c, TUTTI_SHAPE(1), (float[]) { 1 });
        const int ones = append_expand(c, one, TUTTI_SHAPE(TUTTI_SEQUENCE), one);
        return graph_append(c->graph, &operation_cumsum, &scan, &ones, 1, c->layer);
    }
    float *values = memory_new((size_t)size, sizeof *values);
    if (!values) return append_fail(c, TUTTI_NO_MEMORY);
    for (int64_t i = 0; i < size; i++) values[i] = (float)(from_end ? size - i : i);
    const int made = number(c, TUTTI_SHAPE(size), values);
    free(values);
    return made;
}

/* Returns distances() as a value, also for sequences of any length. counts: each sample's number of keys, so that its
 * last query is at its last key; or NO_VALUE. */
static int distance_of(const struct attention *a, int counts)
{
    const struct append_context *c = a->c;
    const bool counting = counts != NO_VALUE;
    if (a->length != TUTTI_SEQUENCE && a->keys != TUTTI_SEQUENCE) {
        float *values = distances(a);
        if (!values) return append_fail(c, TUTTI_NO_MEMORY);
        const int distance = number(c, TUTTI_SHAPE(a->length, a->keys), values);
        free(values);
        if (!counting) return distance;
        return append_two(c, &operation_sub, append_number(c, &operation_shift, distance, (float)a->length), counts);
    }
    const int keys = counted(c, a->keys, false);
    const int queries = append_reshape(c, counted(c, a->length, counting), TUTTI_SHAPE(a->length, 1));
    int distance = append_two(c, counting ? &operation_add : &operation_sub, keys, queries);
    if (a->past > 0) distance = append_number(c, &operation_shift, distance, -(float)a->past);
    return counting ? append_two(c, &operation_sub, distance, counts) : distance;
}

/* Returns 1 where the distance is in the window. The distance may include a term for each sample. */
static int in_window(const struct attention *a, int distance)
{
    const struct append_context *c = a->c;
    const tutti_attention_options *o = a->o;
    int allowed = NO_VALUE;
    if (o->causal || o->window_after)
        allowed = append_two(c, &operation_less_or_equal, distance,
            number(c, TUTTI_SHAPE(1), (float[]) { o->causal ? 0 : (float)o->window_after - 1 }));
    if (o->window_before) {
        const int near = append_two(c, &operation_greater_or_equal, distance,
            number(c, TUTTI_SHAPE(1), (float[]) { 1 - (float)o->window_before }));
        allowed = allowed == NO_VALUE ? near : append_two(c, &operation_and, allowed, near);
    }
    return allowed;
}

/* The number of keys of each sample as [..., 1, 1, 1]. */
static int key_counts(const struct attention *a)
{
    const struct append_context *c = a->c;
    const struct value *value = graph_at(c->graph, a->o->key_counts->id);
    if (!value) return NO_VALUE;
    const int64_t further = rank_of(c, a->q) - 3;
    tutti_shape shape = value->shape;
    while (shape.rank - value->batched > further && shape.sizes[shape.rank - 1] == 1) shape.rank--;
    if (shape.rank - value->batched > further || shape.rank + 3 > TUTTI_MAX_RANK)
        return append_fail(c, fail(TUTTI_SHAPE, "attention: key_counts must be one number for each sample"));
    for (int i = 0; i < 3; i++) shape.sizes[shape.rank++] = 1;
    const int id = a->o->key_counts->id;
    return append_reshape(c, value->type == TYPE_F32 ? id : append_one(c, &operation_cast, id), shape);
}

/* Returns which keys a query may see, judged by positions: 1 or 0; NO_VALUE: all. */
static int seen_by_position(const struct attention *a)
{
    const struct append_context *c = a->c;
    const tutti_attention_options *o = a->o;
    const bool windows = o->causal || o->window_before || o->window_after;
    if (!windows && !o->key_counts) return NO_VALUE;
    if ((a->length < 1 && a->length != TUTTI_SEQUENCE) || (a->keys < 1 && a->keys != TUTTI_SEQUENCE))
        return append_fail(c,
            fail(TUTTI_UNSUPPORTED,
                "attention: the batch is the axis of queries or keys: causal, windows and key_counts "
                "need a length that is a number or TUTTI_SEQUENCE"));
    const int counts = o->key_counts ? key_counts(a) : NO_VALUE;
    if (c->graph->status != TUTTI_OK) return NO_VALUE;
    const int seen = windows ? in_window(a, distance_of(a, counts)) : NO_VALUE;
    if (counts == NO_VALUE) return seen;
    const int present = append_two(c, &operation_less, counted(c, a->keys, false), counts);
    return seen == NO_VALUE ? present : append_two(c, &operation_and, seen, present);
}

/* Returns the whole mask. The given one may end before the last key: keys after it are not seen. */
static int whole_mask(const struct attention *a)
{
    const struct append_context *c = a->c;
    const struct value *mask = graph_at(c->graph, a->o->mask->id);
    if (!mask) return NO_VALUE;
    const int axis = mask->shape.rank - 1;
    struct window_attributes window = { .shape = mask->shape, .outside = a->o->mask_is_boolean ? 0 : -INFINITY };
    if (a->keys < 1 || axis < mask->batched || mask->shape.sizes[axis] < 1 || mask->shape.sizes[axis] >= a->keys)
        return a->o->mask->id;
    window.shape.sizes[axis] = a->keys;
    return graph_append(c->graph, &operation_window, &window, &a->o->mask->id, 1, c->layer);
}

/* Returns the term that is added to the scores: 0 or minus infinity, or the mask's numbers; NO_VALUE: none. The
 * logarithm of 1 is 0, and that of 0 minus infinity. */
static int bias_of(const struct attention *a)
{
    const struct append_context *c = a->c;
    int seen = seen_by_position(a), bias = NO_VALUE;
    if (a->o->mask) {
        const int mask = whole_mask(a);
        if (!a->o->mask_is_boolean)
            bias = mask;
        else if (seen == NO_VALUE)
            seen = append_one(c, &operation_not, append_one(c, &operation_not, mask));
        else
            seen = append_two(c, &operation_and, seen, mask);
    }
    if (seen != NO_VALUE) seen = append_one(c, &operation_log, seen);
    if (seen == NO_VALUE || bias == NO_VALUE) return seen == NO_VALUE ? bias : seen;
    return append_two(c, &operation_add, bias, seen);
}

/* ---------------------------------------------------------------------------------------------------- product ---- */

static int product(const struct append_context *c, int a, int b, bool transpose_b)
{
    const struct matmul_attributes attributes = { .transpose_b = transpose_b };
    const int64_t heads = size_of(c, a, 2), of_b = size_of(c, b, 2);
    if (of_b < 1 || heads % of_b != 0)
        return append_fail(c,
            fail(TUTTI_SHAPE, "attention: %lld heads of queries, and %lld of keys or values, which do not divide them",
                (long long)heads, (long long)of_b));
    if (heads == of_b) return decompose_matmul(c, &attributes, (int[]) { a, b }, 2);
    /* Grouped queries: [..., heads of b, queries of each, length, width]. */
    const int pair[] = { append_split(c, a, axis_of(c, a, 2), of_b), append_split(c, b, axis_of(c, b, 2), of_b) };
    const int y = decompose_matmul(c, &attributes, pair, 2);
    return append_join(c, y, axis_of(c, y, 3));
}

static int with_past(const struct attention *a, const tutti_tensor *past, int x)
{
    const struct value *value = graph_at(a->c->graph, x);
    if (!past || !value) return x;
    const struct axis_attributes axis = { value->shape.rank - 2 };
    return graph_append(a->c->graph, &operation_concat, &axis, (int[]) { past->id, x }, 2, a->c->layer);
}

static void expose(tutti_tensor *to, int value)
{
    if (to) *to = (tutti_tensor) { value };
}

static void expose_scores(const struct attention *a, tutti_attention_stage stage, int value)
{
    if (a->o->scores && a->o->scores_stage == stage) *a->o->scores = (tutti_tensor) { value };
}

/* Computes the softmax. Rows without any key have probabilities of 0: their bias is removed before the softmax, where
 * it would give NaN. */
static int probabilities(const struct attention *a, int scores, int bias)
{
    const struct append_context *c = a->c;
    if (bias == NO_VALUE) return append_one(c, &operation_softmax, scores);
    const struct value *value = graph_at(c->graph, bias);
    if (!value) return NO_VALUE;
    const int best = append_reduce(c, &operation_reduce_max, bias, 1u << (value->shape.rank - 1));
    const int blocked = append_one(c, &operation_is_inf, best), open = append_one(c, &operation_not, blocked);
    bias = graph_append(c->graph, &operation_where, NULL, (int[]) { blocked, open, bias }, 3, c->layer);
    const int p = append_one(c, &operation_softmax, append_two(c, &operation_add, scores, bias));
    return append_two(c, &operation_mul, p, open);
}

static int attend(struct attention *a)
{
    const struct append_context *c = a->c;
    const tutti_attention_options *o = a->o;
    const float scale = o->scale != 0 ? o->scale : 1 / sqrtf((float)size_of(c, a->q, 0));
    int scores = product(c, append_number(c, &operation_scale, a->q, scale), a->k, true);
    expose_scores(a, TUTTI_SCORES, scores);
    if (o->softcap > 0) {
        const struct activation_attributes tangent = { .function = { .activation = ACTIVATION_TANH } };
        scores = append_number(c, &operation_scale, scores, 1 / o->softcap);
        scores = graph_append(c->graph, &operation_activation, &tangent, &scores, 1, c->layer);
        scores = append_number(c, &operation_scale, scores, o->softcap);
    }
    expose_scores(a, TUTTI_SCORES_CAPPED, scores);
    const int bias = bias_of(a);
    if (o->scores && o->scores_stage == TUTTI_SCORES_MASKED)
        expose_scores(a, TUTTI_SCORES_MASKED, bias == NO_VALUE ? scores : append_two(c, &operation_add, scores, bias));
    int p = probabilities(a, scores, bias);
    expose_scores(a, TUTTI_SCORES_SOFTMAX, p);
    if (o->dropout > 0 && c->graph->status == TUTTI_OK) p = append_dropout(c, p, o->dropout);
    const int y = product(c, p, a->v, false);
    return a->joined ? last_joined(c, exchanged(c, y, 1, 2)) : y;
}

static int decompose_attention(struct attention *a)
{
    const struct append_context *c = a->c;
    const tutti_attention_options *o = a->o;
    const int64_t kv_heads = o->kv_heads ? o->kv_heads : o->heads;
    const int64_t rank = o->heads > 0 ? 2 : 3;
    a->joined = o->heads > 0;
    if (rank_of(c, a->q) < rank || rank_of(c, a->k) < rank || rank_of(c, a->v) < rank)
        return append_fail(c,
            fail(TUTTI_SHAPE,
                "attention: queries, keys and values must be [heads, length, width], or [length, heads width] with the "
                "option `heads`"));
    if (a->joined) {
        a->q = with_heads(c, a->q, o->heads);
        a->k = with_heads(c, a->k, kv_heads);
        a->v = with_heads(c, a->v, kv_heads);
    }
    if (c->graph->status != TUTTI_OK) return NO_VALUE;
    const int64_t without = size_of(c, a->k, 1);
    a->k = with_past(a, o->past_key, a->k);
    a->v = with_past(a, o->past_value, a->v);
    expose(o->present_key, a->k);
    expose(o->present_value, a->v);
    a->length = size_of(c, a->q, 1);
    a->keys = size_of(c, a->k, 1);
    a->past = a->keys - without;
    return attend(a);
}

tutti_tensor tutti_attention(
    tutti_network *network, tutti_tensor q, tutti_tensor k, tutti_tensor v, const tutti_attention_options *options)
{
    tutti_attention_options read;
    const tutti_attention_options *o = &read;
    const tutti_status readable = OPTIONS_READ(&read, options, tutti_attention_options);
    if (readable != TUTTI_OK) return network_fail(network, readable);
    const tutti_tensor *const others[] = { &q, &k, &v, o->mask, o->past_key, o->past_value, o->key_counts };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i] && !network_operand(network, *others[i])) return (tutti_tensor) { NO_VALUE };
    const struct append_context c = { network, &network->graph, network_layer_begin(network, o->name, "attention") };
    struct attention attention = { .c = &c, .o = o, .q = q.id, .k = k.id, .v = v.id };
    if (!network_ok(network)) return (tutti_tensor) { NO_VALUE };
    if (o->heads < 0 || o->kv_heads < 0 || o->window_before < 0 || o->window_after < 0 || !(o->softcap >= 0) ||
        (o->softcap != 0 && !isnormal(o->softcap)) || isnan(o->scale) || isinf(o->scale))
        return network_fail(network,
            fail(TUTTI_INVALID,
                "attention: a number of heads, a window or softcap is negative, a number is not finite, or softcap "
                "is too small to divide by"));
    if (!(o->dropout >= 0 && o->dropout < 1))
        return network_fail(network,
            fail(TUTTI_INVALID, "attention: dropout is %g: it must be at least 0 and less than 1", (double)o->dropout));
    return network_close(network, c.layer, decompose_attention(&attention));
}

/* ---------------------------------------------------------------------------------------- rotary_embedding ---- */

ATTRIBUTES_DESCRIBE(
    rotary, ATTRIBUTE(rotary, LONG, heads), ATTRIBUTE(rotary, LONG, width), ATTRIBUTE(rotary, FLAG, interleaved))

/* Returns the table's rows for each position, as a factor of [..., heads, length, half] or, if `joined`, of [...,
 * length, heads, half]. */
static int turned_by(const struct append_context *c, int table, int ids, bool joined)
{
    if (ids != NO_VALUE) {
        const struct embedding_attributes from_end = { true }; /* as ONNX's */
        const int inputs[] = { table == NO_VALUE ? NO_VALUE : ids, table };
        table = graph_append(c->graph, &operation_embedding, &from_end, inputs, 2, c->layer);
    }
    const struct value *value = graph_at(c->graph, table);
    if (!value) return NO_VALUE;
    tutti_shape shape = value->shape;
    const int axis = shape.rank - 2 + joined; /* of the heads */
    if (axis < value->batched || shape.rank == TUTTI_MAX_RANK)
        return append_fail(c, fail(TUTTI_SHAPE, "rotary_embedding: cos and sin must be [length, width / 2]"));
    for (int i = shape.rank; i > axis; i--) shape.sizes[i] = shape.sizes[i - 1];
    shape.sizes[axis] = 1;
    shape.rank++;
    return append_reshape(c, table, shape);
}

/* Returns one part of the pairs (first, second) of the last axis: its halves, or neighbours. */
static int part_of(const struct append_context *c, int x, int64_t half, bool interleaved, int number_of_part)
{
    const struct value *value = graph_at(c->graph, x);
    if (!value) return NO_VALUE;
    tutti_shape shape = value->shape;
    const int last = shape.rank - 1;
    if (!interleaved) return append_slice(c, x, last, number_of_part * half, half);
    shape.sizes[last] = half;
    x = append_slice(c, last_divided(c, x, half), last + 1, number_of_part, 1);
    return append_reshape(c, x, shape);
}

static int joined_last(const struct append_context *c, const int *parts, int count)
{
    const struct value *value = graph_at(c->graph, parts[0]);
    if (!value) return NO_VALUE;
    const struct axis_attributes axis = { value->shape.rank - 1 };
    return graph_append(c->graph, &operation_concat, &axis, parts, count, c->layer);
}

static int from_parts(const struct append_context *c, int first, int second, bool interleaved)
{
    if (!interleaved) return joined_last(c, (int[]) { first, second }, 2);
    const struct value *value = graph_at(c->graph, first);
    if (!value) return NO_VALUE;
    tutti_shape shape = value->shape;
    shape.sizes[shape.rank++] = 1;
    const int columns[] = { append_reshape(c, first, shape), append_reshape(c, second, shape) };
    return last_joined(c, joined_last(c, columns, 2));
}

static int turned(const struct append_context *c, int x, int cosine, int sine, int64_t width, bool interleaved)
{
    const int64_t all = size_of(c, x, 0), half = width / 2;
    const struct value *value = graph_at(c->graph, x);
    if (!value || c->graph->status != TUTTI_OK) return NO_VALUE;
    const int last = value->shape.rank - 1;
    if (width < 2 || width % 2 != 0 || width > all)
        return append_fail(c,
            fail(TUTTI_INVALID, "rotary_embedding: the width is %lld: it must be even, and at most %lld",
                (long long)width, (long long)all));
    const int part = width == all ? x : append_slice(c, x, last, 0, width);
    const int first = part_of(c, part, half, interleaved, 0), second = part_of(c, part, half, interleaved, 1);
    const int real = append_two(
        c, &operation_sub, append_two(c, &operation_mul, first, cosine), append_two(c, &operation_mul, second, sine));
    const int other = append_two(
        c, &operation_add, append_two(c, &operation_mul, first, sine), append_two(c, &operation_mul, second, cosine));
    const int y = from_parts(c, real, other, interleaved);
    if (width == all) return y;
    return joined_last(c, (int[]) { y, append_slice(c, x, last, width, all - width) }, 2);
}

int decompose_rotary_embedding(const struct append_context *c, const void *attributes, const int *inputs, int count)
{
    const struct rotary_attributes *a = attributes;
    const int ids = count > 3 ? inputs[3] : NO_VALUE;
    const bool joined = a->heads != 0;
    const int x = joined ? last_divided(c, inputs[0], a->heads) : inputs[0];
    if (rank_of(c, x) < 3)
        return append_fail(c,
            fail(TUTTI_SHAPE,
                "rotary_embedding: the input must be [heads, length, width], or [length, heads width] "
                "with the attribute `heads`"));
    const int cosine = turned_by(c, inputs[1], ids, joined), sine = turned_by(c, inputs[2], ids, joined);
    const int64_t width = a->width != 0 ? a->width : size_of(c, x, 0);
    const int y = turned(c, x, cosine, sine, width, a->interleaved);
    const struct value *from = graph_at(c->graph, x), *to = graph_at(c->graph, y);
    if (from && to && !shape_equal(from->shape, to->shape))
        return append_fail(c, fail(TUTTI_SHAPE, "rotary_embedding: cos and sin have more positions or axes than x"));
    return joined ? last_joined(c, y) : y;
}
