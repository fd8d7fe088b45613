/* LSTM, GRU and RNN in ONNX. In the network, a separate dense layer computes the products of the inputs, which are
 * part of ONNX's operator. Gates are in PyTorch's order or in ONNX's. */
#include "onnx/export/export.h"
#include "tutti_inspect.h"

#include <string.h>

enum { GATES, R, BIAS, H0, C0, PEEPHOLES, LENGTHS }; /* inputs; GATES: of the dense layer */
enum { Y, LAST, SAVED, LAST_C };                     /* outputs */
enum { LSTM = 1, GRU, SIMPLE };                      /* enum recurrent_kind of layers/recurrent/recurrent.h */

bool export_absorbed(const struct export *export, const tutti_node_info *node, tutti_node_info *dense)
{
    if (strcmp(node->operation, "recurrent") != 0) return false;
    for (int i = tutti_network_nodes(export->network) - 1; i >= 0; i--) {
        *dense = (tutti_node_info) { .size = sizeof *dense };
        if (tutti_network_node(export->network, i, dense) != TUTTI_OK) return false;
        if (dense->output_count > 0 && dense->outputs[0].id == node->inputs[GATES].id)
            return !strcmp(dense->operation, "dense");
    }
    return false;
}

struct recurrent {
    int kind, gates;
    int64_t width;
    bool torch;
};

/* Rows of the gates in ONNX's order, with a leading axis of directions: [1, rows, ..]. */
static const char *in_order(struct source *source, const struct recurrent *r, const char *from)
{
    static const int lstm[] = { 0, 3, 1, 2 },
                     gru[] = { 1, 0, 2 }; /* as recurrent_place() of layers/recurrent/recurrent.c */
    const char *parts[4], *joined = from;
    const int64_t first = 0;
    if (r->torch && r->kind != SIMPLE) {
        for (int i = 0; i < r->gates; i++) {
            const int64_t begin = (r->kind == LSTM ? lstm : gru)[i] * r->width;
            parts[i] = source_slice(source, from, 0, begin, begin + r->width, NULL);
        }
        joined = source_temporary(source);
        made_integer(source_node_of(source, "Concat", parts, r->gates, joined), "axis", 0);
    }
    return source_step(source, "Unsqueeze", joined, source_integers(source, &first, 1));
}

static const char *zeros(struct source *source, const struct recurrent *r)
{
    float *values = export_new(source->export, (size_t)(r->gates * r->width), sizeof *values);
    return values ? source_matrix(source, values, 1, r->gates * r->width) : "";
}

/* Biases [1, 2 rows]: that of the inputs, then that of the state; "" if there is none. */
static const char *biases(struct source *source, const struct recurrent *r, struct source *dense)
{
    const bool first = source_is(dense, 2), second = source_is(source, BIAS);
    if (!first && !second) return "";
    const char *const both[] = { first ? in_order(source, r, source_input(dense, 2)) : zeros(source, r),
        second ? in_order(source, r, source_input(source, BIAS)) : zeros(source, r) };
    const char *joined = source_temporary(source);
    made_integer(source_node_of(source, "Concat", both, 2, joined), "axis", 1);
    return joined;
}

static const char *with_direction(struct source *source, int input)
{
    const int64_t first = 0;
    if (!source_is(source, input)) return "";
    return source_step(source, "Unsqueeze", source_input(source, input), source_integers(source, &first, 1));
}

static void write_attributes(struct source *source, const struct recurrent *r, struct made made)
{
    /* enum activation of graph/fusion.h */
    static const char *const names[] = { [1] = "Relu", [4] = "Sigmoid", [5] = "Tanh" };
    enum { FUNCTIONS = sizeof names / sizeof *names };
    int64_t functions[3] = { 5, 5, 5 };
    const char *texts[3] = { "Tanh", "Tanh", "Tanh" };
    (void)source_list(source, "functions", functions, 3);
    for (int i = 0; i < 3; i++) {
        if (functions[i] < 0 || functions[i] >= FUNCTIONS || !names[functions[i]])
            source_refuse(source, "one of its functions is unknown");
        else
            texts[i] = names[functions[i]];
    }
    const float clip = (float)source_number(source, "clip", 0);
    made_texts(made, "activations", texts, r->kind == LSTM ? 3 : r->kind == GRU ? 2 : 1);
    made_integer(made, "hidden_size", r->width);
    if (source_number(source, "reverse", 0) != 0) made_text(made, "direction", "reverse");
    if (clip > 0) made_number(made, "clip", clip);
    if (r->kind == LSTM) made_integer(made, "input_forget", source_number(source, "coupled", 0) != 0);
    if (r->kind == GRU) made_integer(made, "linear_before_reset", source_number(source, "after", 0) != 0);
}

/* Removes the axis of the directions; the steps [length, N, width] become [N, length, width]. */
static void write_result(struct source *source, const char *from, int64_t direction, bool steps, const char *to)
{
    const char *without = steps ? source_temporary(source) : to;
    (void)source_node(source, "Squeeze", from, source_integers(source, &direction, 1), NULL, without);
    if (steps) (void)source_transpose(source, without, (int64_t[]) { 1, 0, 2 }, 3, to);
}

/* Adds an output of the operator, if the network reads it: its name before write_result(). */
static const char *result(struct source *source, int output)
{
    return source_output_at(source, output) ? source_temporary(source) : "";
}

void export_recurrent(struct source *source)
{
    static const char *const types[] = { [LSTM] = "LSTM", [GRU] = "GRU", [SIMPLE] = "RNN" };
    struct source dense = { .export = source->export };
    const int kind = (int)source_number(source, "kind", SIMPLE);
    const tutti_tensor_info state = source_tensor(source, source->info.inputs[R]);
    const struct recurrent r = { kind,
        kind == LSTM      ? 4
            : kind == GRU ? 3
                          : 1,
        state.shape.sizes[1], source_number(source, "torch", 0) != 0 };
    if (!export_absorbed(source->export, &source->info, &dense.info)) {
        source_refuse(source, "its inputs are not multiplied by one matrix");
        return;
    }
    const char *lengths =
        source_is(source, LENGTHS) ? source_cast(source, source_input(source, LENGTHS), ONNX_INT32) : "";
    const char *const inputs[] = { source_transpose(source, source_input(&dense, 0), (int64_t[]) { 1, 0, 2 }, 3, NULL),
        in_order(source, &r, source_input(&dense, 1)), in_order(source, &r, source_input(source, R)),
        biases(source, &r, &dense), lengths, with_direction(source, H0), with_direction(source, C0),
        with_direction(source, PEEPHOLES) };
    const char *results[] = { result(source, Y), result(source, LAST), kind == LSTM ? result(source, LAST_C) : "" };
    const struct made made = source_node_of(source, types[kind], inputs, kind == LSTM ? 8 : 6, results[0]);
    made_output(made, results[1]);
    if (kind == LSTM) made_output(made, results[2]);
    write_attributes(source, &r, made);
    if (*results[0]) write_result(source, results[0], 1, true, source_output_at(source, Y));
    if (*results[1]) write_result(source, results[1], 0, false, source_output_at(source, LAST));
    if (*results[2]) write_result(source, results[2], 0, false, source_output_at(source, LAST_C));
}
