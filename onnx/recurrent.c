/* LSTM, GRU and RNN; onnxruntime's DynamicQuantizeLSTM. */
#include "onnx/operators.h"
#include "tutti_sequences.h"

#include <inttypes.h>
#include <string.h>

enum { X, WEIGHTS, STATE_WEIGHTS, BIAS, LENGTHS, INITIAL_H, INITIAL_C, PEEPHOLES, INPUTS };

struct reading {
    struct operand x, others[INPUTS]; /* x: samples [steps, features] */
    int64_t steps, directions, hidden;
    bool by_samples; /* layout 1: the batch is the file's first axis */
};

static bool is_quantised(const struct step *step)
{
    return !strcmp(step->node->op_type, "DynamicQuantizeLSTM");
}

static bool is_lstm(const struct step *step)
{
    return !strcmp(step->node->op_type, "LSTM") || is_quantised(step);
}

/* Reads the layer's samples: the axis of the file that is the batch, or becomes part of it. */
static tutti_status read_samples(const struct step *step, struct reading *r)
{
    struct operand *x = &r->x;
    const int axis = r->by_samples ? 0 : 1;
    tutti_status status = step_batched(step, X, x);
    if (status != TUTTI_OK) return status;
    if (operand_rank(x) != 3) return step_refuse("its input has %d axes, not 3", operand_rank(x));
    if (x->place.axis != HIDDEN) {
        if (x->place.axis != axis || x->place.ahead != 1)
            return step_refuse(
                "the batch is axis %d of its input, and must be axis %d: if the file has it there, say so "
                "(batch_axis)",
                x->place.axis, axis);
    } else {
        if (axis == 1) x->tensor = step_permuted(step, x->tensor, (int[]) { 1, 0, 2 }, 3);
        x->place.rows = x->shape.sizes[axis];
        x->shape.sizes[0] = x->shape.sizes[!axis];
        x->shape.sizes[1] = x->shape.sizes[2];
        x->shape.rank = 2;
        x->tensor = step_plain(step, "fold", &x->tensor, 1);
    }
    r->steps = x->shape.sizes[0];
    return x->tensor.id < 0 ? tutti_network_status(step->import->network) : TUTTI_OK;
}

/* Reads an initial state [directions, batch, hidden], or [batch, directions, hidden], as samples [directions,
 * hidden]. */
static tutti_status read_state(const struct step *step, size_t position, struct reading *r)
{
    struct operand *state = &r->others[position];
    const int axis = r->by_samples ? 0 : 1;
    tutti_status status = step_operand(step, position, state);
    if (status != TUTTI_OK) return status;
    if (operand_rank(state) != 3) return step_refuse("input %zu has %d axes, not 3", position, operand_rank(state));
    if (!state->place.batched && r->x.place.axis != HIDDEN)
        return step_drop_axis(step, position, axis, r->x.place.rows, state);
    if (!state->place.batched) status = step_spread(step, &state->tensor);
    if (status != TUTTI_OK) return status;
    if (r->x.place.axis != HIDDEN)
        return state->place.axis == axis && state->place.rows == r->x.place.rows && state->place.ahead == 1
            ? TUTTI_OK
            : step_refuse("axis %d of input %zu, a state, is not the batch as in its first input", axis, position);
    if (axis == 1) state->tensor = step_permuted(step, state->tensor, (int[]) { 1, 0, 2 }, 3);
    state->tensor = step_plain(step, "fold", &state->tensor, 1);
    return state->tensor.id < 0 ? tutti_network_status(step->import->network) : TUTTI_OK;
}

/* One number of steps for each sample. */
static tutti_status read_lengths(const struct step *step, struct reading *r)
{
    struct operand *lengths = &r->others[LENGTHS];
    tutti_status status = step_operand(step, LENGTHS, lengths);
    if (status != TUTTI_OK) return status;
    if (operand_rank(lengths) != 1) return step_refuse("sequence_lens has %d axes, not 1", operand_rank(lengths));
    if (r->x.place.axis != HIDDEN)
        return lengths->place.batched ? TUTTI_OK : step_drop_axis(step, LENGTHS, 0, r->x.place.rows, lengths);
    if (!lengths->place.batched) status = step_spread(step, &lengths->tensor);
    if (status != TUTTI_OK) return status;
    lengths->tensor = step_plain(step, "fold", &lengths->tensor, 1);
    return lengths->tensor.id < 0 ? tutti_network_status(step->import->network) : TUTTI_OK;
}

static tutti_status read_function(const Onnx__AttributeProto *names, size_t i, tutti_recurrent_function *function)
{
    static const struct {
        const char *name;
        tutti_recurrent_function function;
    } known[] = { { "Sigmoid", TUTTI_RECURRENT_SIGMOID }, { "Tanh", TUTTI_RECURRENT_TANH },
        { "Relu", TUTTI_RECURRENT_RELU } };
    const ProtobufCBinaryData *text = &names->strings[i];
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        if (text->len != strlen(known[k].name) || memcmp(text->data, known[k].name, text->len)) continue;
        *function = known[k].function;
        return TUTTI_OK;
    }
    return step_refuse("the function '%.*s' is not available: Sigmoid, Tanh and Relu are",
        (int)(text->len < 40 ? text->len : 40), (const char *)text->data);
}

/* `each`: number of functions of a direction. */
static tutti_status read_functions(
    const struct step *step, int64_t directions, size_t each, tutti_recurrent_options *options)
{
    const Onnx__AttributeProto *names = step_attribute(step, "activations");
    tutti_status status = TUTTI_OK;
    if (!names || names->n_strings == 0) return TUTTI_OK;
    if (names->n_strings != each * (size_t)directions)
        return fail(TUTTI_FORMAT, "activations has %zu names", names->n_strings);
    for (size_t i = 0; i < names->n_strings && status == TUTTI_OK; i++)
        status = read_function(names, i, &options->functions[i / each * 3 + i % each]);
    return status;
}

static tutti_status read_options(const struct step *step, struct reading *r, tutti_recurrent_options *options)
{
    const bool lstm = is_lstm(step), gru = !strcmp(step->node->op_type, "GRU");
    options->bidirectional = step_says(step, "direction", "bidirectional");
    options->reverse = step_says(step, "direction", "reverse");
    options->clip = step_number(step, "clip", 0);
    options->reset_before = gru && step_integer(step, "linear_before_reset", 0) == 0;
    options->input_forget = lstm && step_integer(step, "input_forget", 0) != 0;
    r->directions = options->bidirectional ? 2 : 1;
    r->by_samples = step_integer(step, "layout", 0) != 0;
    return read_functions(step, r->directions, lstm ? 3 : gru ? 2 : 1, options);
}

static tutti_status read_inputs(const struct step *step, struct reading *r, tutti_recurrent_options *options)
{
    const bool lstm = is_lstm(step);
    const tutti_tensor **const targets[INPUTS] = { NULL, &options->w, &options->r, &options->b, &options->lengths,
        &options->initial_h, lstm ? &options->initial_c : NULL, lstm ? &options->p : NULL };
    tutti_status status = read_samples(step, r);
    for (size_t i = WEIGHTS; i < INPUTS && status == TUTTI_OK; i++) {
        if (!targets[i] || (i > STATE_WEIGHTS && !step_input(step, i))) continue;
        status = i == LENGTHS                  ? read_lengths(step, r)
            : i == INITIAL_H || i == INITIAL_C ? read_state(step, i, r)
                                               : step_fixed(step, i, &r->others[i]);
        *targets[i] = &r->others[i].tensor;
    }
    if (status != TUTTI_OK) return status;
    if (r->others[STATE_WEIGHTS].shape.rank != 3) return step_refuse("its weights must have 3 axes");
    r->hidden = r->others[STATE_WEIGHTS].shape.sizes[2];
    return TUTTI_OK;
}

/* Converts samples [steps, directions hidden] or [directions, hidden] to the file's order of axes. */
static tutti_status make_output(
    const struct step *step, size_t output, const struct reading *r, tutti_tensor tensor, bool sequence)
{
    const bool whole = r->x.place.axis == HIDDEN;
    const int axis = r->by_samples ? 0 : sequence ? 2 : 1; /* of the batch */
    struct place place = r->x.place;
    if (sequence) tensor = step_reshape(step, tensor, &TUTTI_SHAPE(r->steps, r->directions, r->hidden));
    if (!whole) {
        place.axis = axis;
        return step_made(step, output, tensor, place);
    }
    place.rows = 1;
    tensor = step_op(step, "unfold", &tensor, 1, "size=%" PRId64, r->x.place.rows);
    static const int orders[3][4] = { { 0, 1, 2, 3 }, { 1, 0, 2, 3 }, { 1, 2, 0, 3 } };
    return step_made(step, output, step_permuted(step, tensor, orders[axis], sequence ? 4 : 3), place);
}

tutti_status build_recurrent(struct step *step)
{
    struct reading r = { .steps = 0 };
    tutti_tensor last_h, last_c;
    tutti_recurrent_options options = { .last_h = &last_h };
    tutti_network *network = step->import->network;
    const bool lstm = is_lstm(step), gru = !strcmp(step->node->op_type, "GRU");
    tutti_status status = read_options(step, &r, &options);
    for (size_t i = WEIGHTS; i < BIAS && status == TUTTI_OK && is_quantised(step); i++)
        status = step_quantised_gates(step, i, i == WEIGHTS ? 8 : 10);
    if (status == TUTTI_OK) status = read_inputs(step, &r, &options);
    if (status != TUTTI_OK) return status;
    if (lstm) options.last_c = &last_c;
    const tutti_tensor y = lstm ? tutti_lstm(network, r.x.tensor, r.hidden, &options)
        : gru                   ? tutti_gru(network, r.x.tensor, r.hidden, &options)
                                : tutti_rnn(network, r.x.tensor, r.hidden, &options);
    if (y.id < 0) return tutti_network_status(network);
    if (step_output(step, 0)) status = make_output(step, 0, &r, y, true);
    if (status == TUTTI_OK && step_output(step, 1)) status = make_output(step, 1, &r, last_h, false);
    if (status == TUTTI_OK && lstm && step_output(step, 2)) status = make_output(step, 2, &r, last_c, false);
    return status;
}
