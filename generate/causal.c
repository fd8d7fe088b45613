#include "generate/causal.h"

#include "base/memory.h"
#include "base/random.h"
#include "layers/interpreter/interpreter.h"
#include "layers/layers.h"

#include <stdlib.h>
#include <string.h>

enum { SHORT_TEXT = 16, TOO_LONG = 1 << 24 };

tutti_status causal_open(struct causal *causal, const tutti_network *network, int64_t capacity)
{
    const int64_t length = capacity < SHORT_TEXT ? capacity : SHORT_TEXT;
    *causal = (struct causal) { .network = network };
    const tutti_status status = graph_bind(&network->graph, (struct bound_sizes) { 1, length }, &causal->graph);
    if (status != TUTTI_OK) return status;
    causal->numbers = memory_new(causal->graph.value_count + 1, sizeof *causal->numbers);
    return causal->numbers ? TUTTI_OK : TUTTI_NO_MEMORY;
}

void causal_close(struct causal *causal)
{
    for (size_t v = 0; causal->numbers && v < causal->graph.value_count; v++) free(causal->numbers[v]);
    free(causal->numbers);
    graph_free(&causal->graph);
}

/* A product stands for any number: masks do not depend on it. So does a parameter. */
static bool is_any_number(const struct causal *causal, int value)
{
    const struct value *of = graph_at(&causal->graph, value);
    if (of->parameter >= 0) return causal->network->parameters[of->parameter].kind != PARAMETER_CONSTANT;
    if (of->producer < 0) return false;
    const struct operation *operation = causal->graph.nodes[of->producer].operation;
    return operation == &operation_matmul || operation == &operation_dense || operation == &operation_embedding ||
        operation == &operation_recurrent;
}

static void fill(const struct causal *causal, int value, double *numbers)
{
    const struct value *of = graph_at(&causal->graph, value);
    const struct parameter *parameter = of->parameter >= 0 ? &causal->network->parameters[of->parameter] : NULL;
    for (int64_t i = 0; i < value_elements(of); i++) {
        int32_t whole;
        if (is_any_number(causal, value)) {
            numbers[i] = 2 * (double)random_uniform(1, RANDOM_LAYERS, (uint64_t)i) - 1;
        } else if (parameter && parameter->values) {
            memcpy(&whole, &parameter->values[i], sizeof whole);
            numbers[i] = of->type == TYPE_I32 ? (double)whole : (double)parameter->values[i];
        } /* else tokens, which are 0 */
    }
}

static tutti_status evaluate(struct causal *causal, int value);

static tutti_status run_node(struct causal *causal, const struct node *node)
{
    tutti_status status = TUTTI_OK;
    const struct step_constants constants = { 0 };
    struct problem problem = { .node = node };
    struct node_arrays arrays = { .constants = &constants, .inference = true };
    for (int i = 0; i < node->input_count; i++) {
        if (node->inputs[i] == NO_VALUE) continue;
        TRY(evaluate(causal, node->inputs[i]));
        problem.inputs[i] = graph_at(&causal->graph, node->inputs[i]);
        arrays.inputs[i] = causal->numbers[node->inputs[i]];
    }
    for (int i = 0; i < node->output_count; i++) {
        problem.outputs[i] = graph_at(&causal->graph, node->outputs[i]);
        arrays.outputs[i] = causal->numbers[node->outputs[i]];
    }
    status = interpret_node(&problem, &arrays);
done:
    return status;
}

static tutti_status evaluate(struct causal *causal, int value)
{
    tutti_status status = TUTTI_OK;
    const struct value *of = graph_at(&causal->graph, value);
    const struct node *node = of->producer < 0 ? NULL : &causal->graph.nodes[of->producer];
    if (causal->numbers[value]) return TUTTI_OK;
    const int outputs = node ? node->output_count : 1;
    for (int i = 0; i < outputs; i++) {
        const int output = node ? node->outputs[i] : value;
        const int64_t elements = output == NO_VALUE ? 0 : value_elements(graph_at(&causal->graph, output));
        if (elements > TOO_LONG) FAIL(TUTTI_UNSUPPORTED, "a mask of %lld numbers is too large", (long long)elements);
        if (output == NO_VALUE || causal->numbers[output]) continue;
        causal->numbers[output] = memory_new((size_t)elements + 1, sizeof **causal->numbers);
        if (!causal->numbers[output]) return TUTTI_NO_MEMORY;
    }
    if (!node || is_any_number(causal, value))
        fill(causal, value, causal->numbers[value]);
    else
        TRY(run_node(causal, node));
done:
    return status;
}

tutti_status causal_check(struct causal *causal, int value, bool *holds)
{
    const struct value *of = graph_at(&causal->graph, value);
    const tutti_status status = evaluate(causal, value);
    *holds = status == TUTTI_OK;
    if (status != TUTTI_OK) return status;
    const int64_t tokens = value_size(of, 1), seen = value_size(of, 0);
    for (int64_t i = 0; i < value_elements(of); i++)
        if (i % seen > i / seen % tokens && causal->numbers[value][i] != 0) *holds = false;
    return TUTTI_OK;
}
