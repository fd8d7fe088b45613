#include "generate/causal.h"

#include "base/memory.h"
#include "base/random.h"
#include "layers/interpreter/interpreter.h"
#include "layers/layers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SHORT_TEXT = 8, LONGER_TEXT = 16, TOO_LONG = 1 << 24 };

static tutti_status open_text(struct short_text *text, const tutti_network *network, int64_t length)
{
    const tutti_status status = graph_bind(&network->graph, (struct bound_sizes) { 1, length }, &text->graph);
    if (status != TUTTI_OK) return status;
    text->numbers = memory_new(text->graph.value_count + 1, sizeof *text->numbers);
    return text->numbers ? TUTTI_OK : TUTTI_NO_MEMORY;
}

tutti_status causal_open(struct causal *causal, const tutti_network *network, const bool *depends, int64_t capacity)
{
    causal->network = network;
    causal->depends = depends;
    const tutti_status status = open_text(&causal->shorter, network, capacity < SHORT_TEXT ? capacity : SHORT_TEXT);
    if (status != TUTTI_OK) return status;
    return open_text(&causal->longer, network, capacity < LONGER_TEXT ? capacity : LONGER_TEXT);
}

static void close_text(struct short_text *text)
{
    for (size_t v = 0; text->numbers && v < text->graph.value_count; v++) free(text->numbers[v]);
    free(text->numbers);
    graph_free(&text->graph);
}

void causal_close(struct causal *causal)
{
    close_text(&causal->shorter);
    close_text(&causal->longer);
}

/* A product of the text stands for any number: masks do not depend on it. So does a parameter. */
static bool is_any_number(const struct causal *causal, const struct short_text *text, int value)
{
    const struct value *of = graph_at(&text->graph, value);
    if (of->parameter >= 0) return causal->network->parameters[of->parameter].kind != PARAMETER_CONSTANT;
    if (of->producer < 0 || !causal->depends[value]) return false;
    const struct operation *operation = text->graph.nodes[of->producer].operation;
    return operation == &operation_matmul || operation == &operation_dense || operation == &operation_embedding ||
        operation == &operation_recurrent;
}

static void fill(const struct causal *causal, const struct short_text *text, int value)
{
    const struct value *of = graph_at(&text->graph, value);
    const struct parameter *parameter = of->parameter >= 0 ? &causal->network->parameters[of->parameter] : NULL;
    double *numbers = text->numbers[value];
    for (int64_t i = 0; i < value_elements(of); i++) {
        int32_t whole;
        if (is_any_number(causal, text, value)) {
            numbers[i] = 2 * (double)random_uniform(1, RANDOM_LAYERS, (uint64_t)i) - 1;
        } else if (parameter && parameter->values) {
            memcpy(&whole, &parameter->values[i], sizeof whole);
            numbers[i] = of->type == TYPE_I32 ? (double)whole : (double)parameter->values[i];
        } /* else tokens, which are 0 */
    }
}

static tutti_status evaluate(const struct causal *causal, struct short_text *text, int value);

static tutti_status run_node(const struct causal *causal, struct short_text *text, const struct node *node)
{
    tutti_status status = TUTTI_OK;
    const struct step_constants constants = { 0 };
    struct problem problem = { .node = node };
    struct node_arrays arrays = { .constants = &constants, .inference = true };
    for (int i = 0; i < node->input_count; i++) {
        if (node->inputs[i] == NO_VALUE) continue;
        TRY(evaluate(causal, text, node->inputs[i]));
        problem.inputs[i] = graph_at(&text->graph, node->inputs[i]);
        arrays.inputs[i] = text->numbers[node->inputs[i]];
    }
    for (int i = 0; i < node->output_count; i++) {
        problem.outputs[i] = graph_at(&text->graph, node->outputs[i]);
        arrays.outputs[i] = text->numbers[node->outputs[i]];
    }
    status = interpret_node(&problem, &arrays);
done:
    return status;
}

static tutti_status make_room(struct short_text *text, int value)
{
    const int64_t elements = value_elements(graph_at(&text->graph, value));
    if (text->numbers[value]) return TUTTI_OK;
    if (elements > TOO_LONG)
        return fail(TUTTI_UNSUPPORTED, "a mask of %lld numbers is too large for a generator", (long long)elements);
    text->numbers[value] = memory_new((size_t)elements + 1, sizeof **text->numbers);
    return text->numbers[value] ? TUTTI_OK : TUTTI_NO_MEMORY;
}

static tutti_status evaluate(const struct causal *causal, struct short_text *text, int value)
{
    tutti_status status = TUTTI_OK;
    const struct value *of = graph_at(&text->graph, value);
    const struct node *node = of->producer < 0 ? NULL : &text->graph.nodes[of->producer];
    if (text->numbers[value]) return TUTTI_OK;
    TRY(make_room(text, value));
    if (!node || is_any_number(causal, text, value)) {
        fill(causal, text, value);
    } else {
        for (int i = 0; i < node->output_count; i++) TRY(make_room(text, node->outputs[i]));
        TRY(run_node(causal, text, node));
    }
done:
    return status;
}

tutti_status causal_check(struct causal *causal, int value, double later, bool *holds)
{
    const struct value *of = graph_at(&causal->longer.graph, value);
    const tutti_status status = evaluate(causal, &causal->longer, value);
    *holds = status == TUTTI_OK;
    if (status != TUTTI_OK) return status;
    const int64_t tokens = value_size(of, 1), seen = value_size(of, 0);
    for (int64_t i = 0; i < value_elements(of); i++)
        if (i % seen > i / seen % tokens && causal->longer.numbers[value][i] != later) *holds = false;
    return TUTTI_OK;
}

/* Where an element of a value lies in another one with longer axes. */
static int64_t place_in(const struct value *longer, const struct value *shorter, int64_t index)
{
    int64_t place = 0, stride = 1;
    for (int i = shorter->shape.rank - 1; i >= 0; i--) {
        place += index % shorter->shape.sizes[i] * stride;
        index /= shorter->shape.sizes[i];
        stride *= longer->shape.sizes[i];
    }
    return place;
}

tutti_status causal_check_lengths(struct causal *causal, int value, bool *holds)
{
    tutti_status status;
    const struct value *shorter = graph_at(&causal->shorter.graph, value),
                       *longer = graph_at(&causal->longer.graph, value);
    *holds = true;
    TRY(evaluate(causal, &causal->shorter, value));
    TRY(evaluate(causal, &causal->longer, value));
    for (int64_t i = 0; i < value_elements(shorter); i++) {
        const double a = causal->shorter.numbers[value][i];
        const double b = causal->longer.numbers[value][place_in(longer, shorter, i)];
        if (a != b && !(isnan(a) && isnan(b))) *holds = false;
    }
done:
    return status;
}
