/* recurrent KIND1 n t f hidden [bi rev init lengths clip relu before forget onnx peep last nobias]: samples [t][f].
 *   KIND      lstm, gru, rnn
 *   init      initial states are parameters, for all samples; 2: for each sample, from the mean of its input
 *   lengths   samples have 1 to t steps, from the sum of their inputs
 *   relu      f is relu; of an LSTM or GRU g, too
 *   onnx      weights are given as ONNX has them; peep: with peepholes
 *   last      the last states are added to the result */
#include <math.h>

#include "tests/layers/cases.h"
#include "tutti_sequences.h"

static tutti_tensor parameter(tutti_network *network, const char *name, tutti_shape shape)
{
    return tutti_parameter(network, name, shape, NULL);
}

/* 1 to t, and for some samples more. */
static tutti_tensor lengths_of(tutti_network *network, tutti_tensor x, int64_t steps)
{
    tutti_tensor y = tutti_op(network, "reduce_sum", &x, 1, "keepdims=0");
    y = tutti_reshape_sized(network, y, (int64_t[]) { 1 }, 1);
    y = tutti_op(network, "abs", &y, 1, NULL);
    const float most = (float)steps + 1, one = 1;
    y = tutti_op(
        network, "fmod", (tutti_tensor[]) { y, tutti_constant(network, NULL, TUTTI_SHAPE(1), &most) }, 2, NULL);
    y = tutti_op(network, "ceil", &y, 1, NULL);
    y = tutti_op(network, "max", (tutti_tensor[]) { y, tutti_constant(network, NULL, TUTTI_SHAPE(1), &one) }, 2, NULL);
    return tutti_op(network, "reshape", &y, 1, "shape=");
}

struct tensors {
    tutti_tensor h0, c0, lengths, last_h, last_c, w, r, b, p;
};

static void give_weights(
    tutti_network *network, const struct test_case *c, int64_t gates, struct tensors *t, tutti_recurrent_options *o)
{
    const int64_t directions = o->bidirectional ? 2 : 1, hidden = case_get(c, "hidden", 1), rows = gates * hidden;
    t->w = parameter(network, "w", TUTTI_SHAPE(directions, rows, case_get(c, "f", 1)));
    t->r = parameter(network, "r", TUTTI_SHAPE(directions, rows, hidden));
    t->b = parameter(network, "b", TUTTI_SHAPE(directions, 2 * rows));
    o->w = &t->w;
    o->r = &t->r;
    o->b = &t->b;
    if (!case_get(c, "peep", 0)) return;
    t->p = parameter(network, "p", TUTTI_SHAPE(directions, 3 * hidden));
    o->p = &t->p;
}

static void give_states(
    tutti_network *network, const struct test_case *c, tutti_tensor x, struct tensors *t, tutti_recurrent_options *o)
{
    const tutti_shape state = TUTTI_SHAPE(o->bidirectional ? 2 : 1, case_get(c, "hidden", 1));
    const tutti_tensor mean = tutti_op(network, "reduce_mean", &x, 1, "keepdims=0");
    t->h0 = parameter(network, "h0", state);
    if (case_get(c, "init", 0) == 2) t->h0 = tutti_mul(network, t->h0, mean);
    o->initial_h = &t->h0;
    if (!case_get(c, "lstm", 0)) return;
    t->c0 = parameter(network, "c0", state);
    if (case_get(c, "init", 0) == 2) t->c0 = tutti_mul(network, t->c0, mean);
    o->initial_c = &t->c0;
}

static tutti_tensor build(tutti_network *network, const struct test_case *c)
{
    const int64_t steps = case_get(c, "t", 1), hidden = case_get(c, "hidden", 1);
    const bool lstm = case_get(c, "lstm", 0), gru = case_get(c, "gru", 0);
    const tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(steps, case_get(c, "f", 1)));
    struct tensors t;
    tutti_recurrent_options o = { .name = "layer",
        .no_bias = case_get(c, "nobias", 0),
        .bidirectional = case_get(c, "bi", 0),
        .reverse = case_get(c, "rev", 0),
        .clip = (float)case_get_real(c, "clip", 0),
        .reset_before = case_get(c, "before", 0),
        .input_forget = case_get(c, "forget", 0) };
    if (case_get(c, "relu", 0)) o.functions[lstm || gru] = o.functions[3] = TUTTI_RECURRENT_RELU;
    if (case_get(c, "onnx", 0)) give_weights(network, c, lstm ? 4 : gru ? 3 : 1, &t, &o);
    if (case_get(c, "init", 0)) give_states(network, c, x, &t, &o);
    if (case_get(c, "lengths", 0)) {
        t.lengths = lengths_of(network, x, steps);
        o.lengths = &t.lengths;
    }
    if (case_get(c, "last", 0)) {
        o.last_h = &t.last_h;
        if (lstm) o.last_c = &t.last_c;
    }
    tutti_tensor y = lstm ? tutti_lstm(network, x, hidden, &o)
        : gru             ? tutti_gru(network, x, hidden, &o)
                          : tutti_rnn(network, x, hidden, &o);
    const int64_t all = hidden * (o.bidirectional ? 2 : 1);
    if (o.last_h) y = tutti_add(network, y, tutti_reshape_sized(network, t.last_h, &all, 1));
    if (o.last_c) y = tutti_add(network, y, tutti_reshape_sized(network, t.last_c, &all, 1));
    return y;
}

static const char *const cases[] = {
    "recurrent lstm1 n3 t4 f3 hidden5",
    "recurrent lstm1 n2 t2 f7 hidden19 nobias1",
    "recurrent lstm1 n3 t4 f3 hidden5 bi1 init2 last1",
    "recurrent lstm1 n5 t5 f3 hidden4 rev1 lengths1 last1 init1",
    "recurrent lstm1 n2 t3 f4 hidden17 onnx1 peep1 last1",
    "recurrent lstm1 n4 t4 f3 hidden5 onnx1 peep1 bi1 init2 lengths1 forget1 last1",
    "recurrent lstm1 n3 t4 f3 hidden5 onnx1 clip0.25 relu1",
    "recurrent lstm1 n70 t2 f3 hidden70",
    "recurrent lstm1 n1 t1 f7 hidden1 onnx1 init1",
    "recurrent lstm1 n32 t2 f2 hidden16 last1",
    "recurrent lstm1 n1 t128 f1 hidden7",
    "recurrent lstm1 n3 t2 f2 hidden260 lengths1 last1 init2 nobias1",
    "recurrent lstm1 n9 t2 f2 hidden260 rev1 lengths1 last1",
    "recurrent gru1 n3 t4 f3 hidden5",
    "recurrent gru1 n3 t4 f3 hidden5 before1",
    "recurrent gru1 n4 t5 f3 hidden19 bi1 init2 lengths1 last1",
    "recurrent gru1 n4 t5 f3 hidden5 rev1 before1 onnx1 init1 lengths1 last1",
    "recurrent gru1 n2 t3 f3 hidden33 onnx1 clip0.25 before1",
    "recurrent gru1 n32 t2 f2 hidden33 last1",
    "recurrent gru1 n3 t128 f2 hidden16",
    "recurrent gru1 n3 t3 f3 hidden300 rev1 lengths1 last1 init1",
    "recurrent rnn1 n3 t4 f3 hidden5",
    "recurrent rnn1 n4 t5 f3 hidden19 bi1 init2 lengths1 last1",
    "recurrent rnn1 n3 t4 f3 hidden5 relu1 onnx1 rev1 clip0.5",
    "recurrent rnn1 n13 t3 f3 hidden33 last1 lengths1",
    "recurrent rnn1 n3 t2 f3 hidden520 last1",
    NULL,
};

static const struct operation_test test_recurrent = {
    .name = "recurrent",
    .build = build,
    .cases = cases,
    .tolerance = TOLERANCE_NORMALISED,
};

OPERATION_TESTS(test_recurrent, &test_recurrent)
