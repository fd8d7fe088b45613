/* tutti_lstm(), tutti_gru() and tutti_rnn(): the products of all inputs by one matrix, then the steps, for each
 * direction. */
#include "base/options.h"
#include "layers/append.h"
#include "layers/recurrent/recurrent.h"
#include "tutti_sequences.h"

#include <math.h>

/* A layer that is built. */
struct building {
    const struct append_context *c;
    const tutti_recurrent_options *o;
    struct recurrent_attributes a; /* without the direction */
    int x, lengths, directions;
    int64_t hidden;
};

/* The results of one direction. */
struct made {
    int y, last, last_c;
};

enum { W, R, WB, RB };

static int own_parameter(const struct building *b, int part, bool reverse)
{
    static const char *const names[2][4] = { { "weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0" },
        { "weight_ih_l0_reverse", "weight_hh_l0_reverse", "bias_ih_l0_reverse", "bias_hh_l0_reverse" } };
    const int64_t rows = b->hidden * recurrent_gates(b->a.kind);
    const int64_t features = value_size(graph_at(b->c->graph, b->x), 0);
    const struct parameter how = { .fan_in = b->hidden, .fan_out = b->hidden };
    const tutti_shape shape = part == W ? TUTTI_SHAPE(rows, features)
        : part == R                     ? TUTTI_SHAPE(rows, b->hidden)
                                        : TUTTI_SHAPE(rows);
    return network_parameter(b->c->network, b->c->layer, names[reverse][part], shape, &how);
}

/* Returns the part of a direction in [directions, ...]. */
static int of_direction(const struct building *b, int value, int direction)
{
    const struct value *v = graph_at(b->c->graph, value);
    if (!v) return NO_VALUE;
    const int axis = v->batched;
    tutti_shape shape = v->shape;
    if (shape.rank <= axis || shape.sizes[axis] != b->directions)
        return append_fail(b->c,
            fail(TUTTI_SHAPE, "recurrent: the first axis of weights and states must have the %d directions",
                b->directions));
    if (b->directions > 1) value = append_slice(b->c, value, axis, direction, 1);
    for (int i = axis; i + 1 < shape.rank; i++) shape.sizes[i] = shape.sizes[i + 1];
    shape.rank--;
    return append_reshape(b->c, value, shape);
}

static int given(const struct building *b, const tutti_tensor *tensor, int direction)
{
    return tensor ? of_direction(b, tensor->id, direction) : NO_VALUE;
}

static int part_of(const struct building *b, int part, int direction)
{
    const tutti_recurrent_options *o = b->o;
    const int64_t rows = b->hidden * recurrent_gates(b->a.kind);
    if (!o->w) return (part == WB || part == RB) && o->no_bias ? NO_VALUE : own_parameter(b, part, direction > 0);
    if (part == W) return given(b, o->w, direction);
    if (part == R) return given(b, o->r, direction);
    const int both = given(b, o->b, direction);
    return both == NO_VALUE ? NO_VALUE : append_slice(b->c, both, 0, part == WB ? 0 : rows, rows);
}

/* Returns a state of each sample; one that is the same for all is repeated. */
static int state_of(const struct building *b, const tutti_tensor *tensor, int direction)
{
    const int state = given(b, tensor, direction);
    const struct value *v = graph_at(b->c->graph, state), *x = graph_at(b->c->graph, b->x);
    if (!v || !x || v->batched) return state;
    return append_expand(b->c, state, TUTTI_SHAPE(x->shape.sizes[0], b->hidden), b->x);
}

static struct made make_direction(const struct building *b, int direction)
{
    const struct append_context *c = b->c;
    struct recurrent_attributes a = b->a;
    struct made made = { NO_VALUE, NO_VALUE, NO_VALUE };
    a.reverse = direction > 0 || b->o->reverse;
    static const enum activation codes[] = { [TUTTI_RECURRENT_SIGMOID] = ACTIVATION_SIGMOID,
        [TUTTI_RECURRENT_TANH] = ACTIVATION_TANH,
        [TUTTI_RECURRENT_RELU] = ACTIVATION_RELU };
    for (int i = 0; i < 3; i++) {
        const tutti_recurrent_function function = b->o->functions[direction * 3 + i];
        if (function != TUTTI_RECURRENT_DEFAULT) a.functions[i] = codes[function];
    }
    const int w = part_of(b, W, direction), r = part_of(b, R, direction), wb = part_of(b, WB, direction);
    const int x = graph_append(c->graph, &operation_dense, NULL, (int[]) { b->x, w, wb }, 3, c->layer);
    const int inputs[] = { x, r, part_of(b, RB, direction), state_of(b, b->o->initial_h, direction),
        a.kind == RECURRENT_LSTM ? state_of(b, b->o->initial_c, direction) : NO_VALUE,
        a.kind == RECURRENT_LSTM ? given(b, b->o->p, direction) : NO_VALUE, b->lengths };
    made.y = graph_append(c->graph, &operation_recurrent, &a, inputs, 7, c->layer);
    if (made.y == NO_VALUE) return made;
    made.last = graph_last(c->graph)->outputs[RECURRENT_LAST];
    made.last_c = a.kind == RECURRENT_LSTM ? graph_last(c->graph)->outputs[RECURRENT_LAST_C] : NO_VALUE;
    return made;
}

/* Joins [.., hidden] of both directions one after another, or as [directions, hidden]. */
static int joined(const struct building *b, int one, int other, bool states)
{
    const struct value *v = graph_at(b->c->graph, one);
    if (!v) return NO_VALUE;
    tutti_shape shape = v->shape;
    const struct axis_attributes axis = { states ? 1 : shape.rank - 1 };
    if (states) {
        shape.sizes[shape.rank++] = b->hidden;
        shape.sizes[1] = 1;
        one = append_reshape(b->c, one, shape);
        other = other == NO_VALUE ? NO_VALUE : append_reshape(b->c, other, shape);
    }
    if (b->directions == 1) return one;
    return graph_append(b->c->graph, &operation_concat, &axis, (int[]) { one, other }, 2, b->c->layer);
}

/* Lengths as floats, of each sample. */
static int lengths_of(const struct building *b)
{
    if (!b->o->lengths) return NO_VALUE;
    int lengths = b->o->lengths->id;
    const struct value *v = graph_at(b->c->graph, lengths), *x = graph_at(b->c->graph, b->x);
    const tutti_shape one = TUTTI_SHAPE(x->shape.sizes[0]);
    const bool batched = v->batched;
    if (v->type != TYPE_F32) lengths = append_one(b->c, &operation_cast, lengths);
    return batched ? lengths : append_expand(b->c, lengths, one, b->x);
}

static int build(struct building *b)
{
    const tutti_recurrent_options *o = b->o;
    struct made made[2];
    b->lengths = lengths_of(b);
    for (int d = 0; d < b->directions; d++) made[d] = make_direction(b, d);
    if (b->directions == 1) made[1] = (struct made) { NO_VALUE, NO_VALUE, NO_VALUE };
    if (b->c->graph->status != TUTTI_OK) return NO_VALUE;
    if (o->last_h) *o->last_h = (tutti_tensor) { joined(b, made[0].last, made[1].last, true) };
    if (o->last_c) *o->last_c = (tutti_tensor) { joined(b, made[0].last_c, made[1].last_c, true) };
    return joined(b, made[0].y, made[1].y, false);
}

static tutti_status check(const struct value *x, int64_t hidden, const tutti_recurrent_options *o)
{
    if (!x->batched || x->shape.rank != 3)
        return fail(TUTTI_SHAPE, "recurrent: the input must be [length, features] for each sample");
    if (hidden < 1 || hidden > INT32_MAX / 8)
        return fail(TUTTI_INVALID, "recurrent: the hidden size is %lld", (long long)hidden);
    if (!(o->clip >= 0) || isinf(o->clip))
        return fail(TUTTI_INVALID, "recurrent: clip is %g: it must be finite and not negative", (double)o->clip);
    if (!o->w != !o->r || (!o->w && (o->b || o->p)) || (o->bidirectional && o->reverse))
        return fail(TUTTI_INVALID,
            "recurrent: `w` and `r` must be given together, `b` and `p` with them, and one of "
            "`bidirectional` and `reverse`");
    for (int i = 0; i < 6; i++)
        if (o->functions[i] < TUTTI_RECURRENT_DEFAULT || o->functions[i] > TUTTI_RECURRENT_RELU)
            return fail(TUTTI_UNSUPPORTED, "recurrent: function %d is %d: sigmoid, tanh and relu are possible", i,
                (int)o->functions[i]);
    return TUTTI_OK;
}

static tutti_tensor append(tutti_network *network, tutti_tensor x, int64_t hidden, const char *operation,
    const tutti_recurrent_options *options, struct recurrent_attributes a)
{
    tutti_recurrent_options read;
    const tutti_recurrent_options *o = &read;
    const tutti_status readable = OPTIONS_READ(&read, options, tutti_recurrent_options);
    if (readable != TUTTI_OK) return network_fail(network, readable);
    const tutti_tensor *const others[] = { &x, o->initial_h, o->initial_c, o->lengths, o->w, o->r, o->b, o->p };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i] && !network_operand(network, *others[i])) return (tutti_tensor) { NO_VALUE };
    const struct value *value = network_value(network, x);
    const struct append_context c = { network, &network->graph, network_layer_begin(network, o->name, operation) };
    if (!value || !network_ok(network)) return (tutti_tensor) { NO_VALUE };
    const tutti_status status = check(value, hidden, o);
    if (status != TUTTI_OK) return network_fail(network, status);
    a.clip = o->clip;
    a.coupled = o->input_forget;
    a.after = a.kind == RECURRENT_GRU && !o->reset_before;
    a.torch = !o->w;
    struct building building = { &c, o, a, x.id, NO_VALUE, o->bidirectional ? 2 : 1, hidden };
    const int y = build(&building);
    return network_ok(network) ? network_close(network, c.layer, y) : (tutti_tensor) { NO_VALUE };
}

tutti_tensor tutti_lstm(tutti_network *network, tutti_tensor x, int64_t hidden, const tutti_recurrent_options *options)
{
    const struct recurrent_attributes a = { .kind = RECURRENT_LSTM,
        .functions = { ACTIVATION_SIGMOID, ACTIVATION_TANH, ACTIVATION_TANH } };
    return append(network, x, hidden, "lstm", options, a);
}

tutti_tensor tutti_gru(tutti_network *network, tutti_tensor x, int64_t hidden, const tutti_recurrent_options *options)
{
    const struct recurrent_attributes a = { .kind = RECURRENT_GRU,
        .functions = { ACTIVATION_SIGMOID, ACTIVATION_TANH, ACTIVATION_TANH } };
    return append(network, x, hidden, "gru", options, a);
}

tutti_tensor tutti_rnn(tutti_network *network, tutti_tensor x, int64_t hidden, const tutti_recurrent_options *options)
{
    const struct recurrent_attributes a = { .kind = RECURRENT_SIMPLE,
        .functions = { ACTIVATION_TANH, ACTIVATION_TANH, ACTIVATION_TANH } };
    return append(network, x, hidden, "rnn", options, a);
}
