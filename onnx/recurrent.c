/* LSTM, GRU and RNN; onnxruntime's DynamicQuantizeLSTM. */
#include "onnx/operators.h"
#include "tutti_sequences.h"

#include <inttypes.h>
#include <string.h>

enum { X, WEIGHTS, STATE_WEIGHTS, BIAS, LENGTHS, INITIAL_H, INITIAL_C, PEEPHOLES, INPUTS };

struct recurrent {
    struct operand x, others[INPUTS]; /* x: samples [steps, features] */
    int64_t steps, directions, hidden;
    bool by_samples; /* layout 1: the batch is the file's first axis */
};

static bool is_quantised(const struct onnx_node *node)
{
    return !strcmp(node->proto->op_type, "DynamicQuantizeLSTM");
}

static bool is_lstm(const struct onnx_node *node)
{
    return !strcmp(node->proto->op_type, "LSTM") || is_quantised(node);
}

/* Reads the layer's samples: the axis of the file that is the batch, or becomes part of it. */
static tutti_status read_samples(const struct onnx_node *node, struct recurrent *r)
{
    struct operand *x = &r->x;
    const int axis = r->by_samples ? 0 : 1;
    tutti_status status = node_batched(node, X, x);
    if (status != TUTTI_OK) return status;
    if (operand_rank(x) != 3) return node_refuse("its input has %d axes, not 3", operand_rank(x));
    if (operand_has_batch_axis(x)) {
        if (x->batch.axis != axis || x->batch.outer != 1)
            return node_refuse(
                "the batch is axis %d of its input, and must be axis %d: if the file has it there, say so "
                "(batch_axis)",
                x->batch.axis, axis);
    } else {
        if (axis == 1) x->tensor = node_permuted(node, x->tensor, (int[]) { 1, 0, 2 }, 3);
        x->batch.rows_per_sample = x->shape.sizes[axis];
        x->shape.sizes[0] = x->shape.sizes[!axis];
        x->shape.sizes[1] = x->shape.sizes[2];
        x->shape.rank = 2;
        x->tensor = node_plain(node, "fold", &x->tensor, 1);
    }
    r->steps = x->shape.sizes[0];
    return x->tensor.id < 0 ? tutti_network_status(node->import->network) : TUTTI_OK;
}

/* Reads an initial state [directions, batch, hidden], or [batch, directions, hidden], as samples [directions,
 * hidden]. */
static tutti_status read_state(const struct onnx_node *node, size_t position, struct recurrent *r)
{
    struct operand *state = &r->others[position];
    const int axis = r->by_samples ? 0 : 1;
    tutti_status status = node_operand(node, position, state);
    if (status != TUTTI_OK) return status;
    if (operand_rank(state) != 3) return node_refuse("input %zu has %d axes, not 3", position, operand_rank(state));
    if (!state->batch.batched && operand_has_batch_axis(&r->x))
        return node_drop_axis(node, position, axis, r->x.batch.rows_per_sample, state);
    if (!state->batch.batched) status = node_spread(node, &state->tensor);
    if (status != TUTTI_OK) return status;
    if (operand_has_batch_axis(&r->x))
        return state->batch.axis == axis && state->batch.rows_per_sample == r->x.batch.rows_per_sample &&
                state->batch.outer == 1
            ? TUTTI_OK
            : node_refuse("axis %d of input %zu, a state, is not the batch as in its first input", axis, position);
    if (axis == 1) state->tensor = node_permuted(node, state->tensor, (int[]) { 1, 0, 2 }, 3);
    state->tensor = node_plain(node, "fold", &state->tensor, 1);
    return state->tensor.id < 0 ? tutti_network_status(node->import->network) : TUTTI_OK;
}

/* One number of steps for each sample. */
static tutti_status read_lengths(const struct onnx_node *node, struct recurrent *r)
{
    struct operand *lengths = &r->others[LENGTHS];
    tutti_status status = node_operand(node, LENGTHS, lengths);
    if (status != TUTTI_OK) return status;
    if (operand_rank(lengths) != 1) return node_refuse("sequence_lens has %d axes, not 1", operand_rank(lengths));
    if (operand_has_batch_axis(&r->x))
        return lengths->batch.batched ? TUTTI_OK
                                      : node_drop_axis(node, LENGTHS, 0, r->x.batch.rows_per_sample, lengths);
    if (!lengths->batch.batched) status = node_spread(node, &lengths->tensor);
    if (status != TUTTI_OK) return status;
    lengths->tensor = node_plain(node, "fold", &lengths->tensor, 1);
    return lengths->tensor.id < 0 ? tutti_network_status(node->import->network) : TUTTI_OK;
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
    return node_refuse("the function '%.*s' is not available: Sigmoid, Tanh and Relu are",
        (int)(text->len < 40 ? text->len : 40), (const char *)text->data);
}

/* `each`: number of functions of a direction. */
static tutti_status read_functions(
    const struct onnx_node *node, int64_t directions, size_t each, tutti_recurrent_options *options)
{
    const Onnx__AttributeProto *names = node_attribute(node, "activations");
    tutti_status status = TUTTI_OK;
    if (!names || names->n_strings == 0) return TUTTI_OK;
    if (names->n_strings != each * (size_t)directions)
        return fail(TUTTI_FORMAT, "activations has %zu names", names->n_strings);
    for (size_t i = 0; i < names->n_strings && status == TUTTI_OK; i++)
        status = read_function(names, i, &options->functions[i / each * 3 + i % each]);
    return status;
}

static tutti_status read_options(const struct onnx_node *node, struct recurrent *r, tutti_recurrent_options *options)
{
    const bool lstm = is_lstm(node), gru = !strcmp(node->proto->op_type, "GRU");
    options->bidirectional = node_attribute_is(node, "direction", "bidirectional");
    options->reverse = node_attribute_is(node, "direction", "reverse");
    options->clip = node_number(node, "clip", 0);
    options->reset_before = gru && node_integer(node, "linear_before_reset", 0) == 0;
    options->input_forget = lstm && node_integer(node, "input_forget", 0) != 0;
    r->directions = options->bidirectional ? 2 : 1;
    r->by_samples = node_integer(node, "layout", 0) != 0;
    return read_functions(node, r->directions, lstm ? 3 : gru ? 2 : 1, options);
}

static tutti_status read_inputs(const struct onnx_node *node, struct recurrent *r, tutti_recurrent_options *options)
{
    const bool lstm = is_lstm(node);
    const tutti_tensor **const targets[INPUTS] = { NULL, &options->w, &options->r, &options->b, &options->lengths,
        &options->initial_h, lstm ? &options->initial_c : NULL, lstm ? &options->p : NULL };
    tutti_status status = read_samples(node, r);
    for (size_t i = WEIGHTS; i < INPUTS && status == TUTTI_OK; i++) {
        if (!targets[i] || (i > STATE_WEIGHTS && !node_input(node, i))) continue;
        status = i == LENGTHS                  ? read_lengths(node, r)
            : i == INITIAL_H || i == INITIAL_C ? read_state(node, i, r)
                                               : node_fixed(node, i, &r->others[i]);
        *targets[i] = &r->others[i].tensor;
    }
    if (status != TUTTI_OK) return status;
    if (r->others[STATE_WEIGHTS].shape.rank != 3) return node_refuse("its weights must have 3 axes");
    r->hidden = r->others[STATE_WEIGHTS].shape.sizes[2];
    return TUTTI_OK;
}

/* Converts samples [steps, directions hidden] or [directions, hidden] to the file's order of axes. */
static tutti_status make_output(
    const struct onnx_node *node, size_t output, const struct recurrent *r, tutti_tensor tensor, bool sequence)
{
    const bool whole = batch_is_whole(&r->x.batch);
    const int axis = r->by_samples ? 0 : sequence ? 2 : 1; /* of the batch */
    struct batch_axis batch_axis = r->x.batch;
    if (sequence) tensor = node_reshape(node, tensor, &TUTTI_SHAPE(r->steps, r->directions, r->hidden));
    if (!whole) {
        batch_axis.axis = axis;
        return node_set_output_at(node, output, tensor, batch_axis);
    }
    batch_axis.rows_per_sample = 1;
    tensor = node_op(node, "unfold", &tensor, 1, "size=%" PRId64, r->x.batch.rows_per_sample);
    static const int orders[3][4] = { { 0, 1, 2, 3 }, { 1, 0, 2, 3 }, { 1, 2, 0, 3 } };
    return node_set_output_at(node, output, node_permuted(node, tensor, orders[axis], sequence ? 4 : 3), batch_axis);
}

tutti_status build_recurrent(struct onnx_node *node)
{
    struct recurrent r = { .steps = 0 };
    tutti_tensor last_h, last_c;
    tutti_recurrent_options options = { .last_h = &last_h };
    tutti_network *network = node->import->network;
    const bool lstm = is_lstm(node), gru = !strcmp(node->proto->op_type, "GRU");
    tutti_status status = read_options(node, &r, &options);
    for (size_t i = WEIGHTS; i < BIAS && status == TUTTI_OK && is_quantised(node); i++)
        status = node_quantised_gates(node, i, i == WEIGHTS ? 8 : 10);
    if (status == TUTTI_OK) status = read_inputs(node, &r, &options);
    if (status != TUTTI_OK) return status;
    if (lstm) options.last_c = &last_c;
    const tutti_tensor y = lstm ? tutti_lstm(network, r.x.tensor, r.hidden, &options)
        : gru                   ? tutti_gru(network, r.x.tensor, r.hidden, &options)
                                : tutti_rnn(network, r.x.tensor, r.hidden, &options);
    if (y.id < 0) return tutti_network_status(network);
    if (node_output(node, 0)) status = make_output(node, 0, &r, y, true);
    if (status == TUTTI_OK && node_output(node, 1)) status = make_output(node, 1, &r, last_h, false);
    if (status == TUTTI_OK && lstm && node_output(node, 2)) status = make_output(node, 2, &r, last_c, false);
    return status;
}
