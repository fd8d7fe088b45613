/* Chooses the values that are stored as bfloat16: temporary floats where the node that makes them and every node that
 * reads them supports it. Parameters, their gradients, statistics, and what the host reads stay floats. */
#include <stdlib.h>

#include "base/memory.h"
#include "graph/edit.h"
#include "plan/node.h"
#include "runtime/verdicts.h"

/* Excludes the values that this node's kernels cannot load or store as bfloat16. */
static void strike_out(const struct plan *plan, const struct node *node, bool *possible)
{
    const struct implementation *by = NULL; /* NULL: takes none */
    if (!node->operation->alias) {
        struct problem problem;
        char key[IMPLEMENTATION_KEY];
        by = node->operation->implementations[node->implementation];
        problem_of(plan, node, &problem);
        implementation_key(&problem, by, true, key);
        if (blacklist_reason(plan->device, key)) by = NULL;
    }
    for (int i = 0; i < node->input_count; i++)
        if (node->inputs[i] != NO_VALUE && !(by && input_takes_bf16(by, node, i))) possible[node->inputs[i]] = false;
    for (int i = 0; i < node->output_count; i++)
        if (node->outputs[i] != NO_VALUE && !(by && output_takes_bf16(by, node, i))) possible[node->outputs[i]] = false;
    if (node_added(node) != NO_VALUE && !(by && by->bf16_outputs & 1)) possible[node_added(node)] = false;
}

/* Whether whole numbers may be computed from others: not by layers, which sum many terms, or by what finds positions.
 */
static bool computes_numbers(const struct node *node)
{
    for (int i = 0; i < node->input_count; i++)
        if (node_input_port(node, i)->flags & PORT_INDEX) return true;
    return node->operation->pointwise || node->operation->loop || node->operation->alias;
}

/* Excludes indices, and what they are computed from: rounded to 8 bits they would select other elements. */
static void keep_indices(const struct graph *graph, bool *possible, bool *exact)
{
    for (size_t n = graph->node_count; n-- > 0;) {
        const struct node *node = &graph->nodes[n];
        bool passed = false;
        for (int i = 0; i < node->output_count && computes_numbers(node); i++)
            passed |= node->outputs[i] != NO_VALUE && exact[node->outputs[i]];
        for (int i = 0; i < node->input_count; i++)
            if (node->inputs[i] != NO_VALUE && (passed || node_input_port(node, i)->flags & PORT_INDEX))
                exact[node->inputs[i]] = true;
        if (passed && node_added(node) != NO_VALUE) exact[node_added(node)] = true;
    }
    for (size_t v = 0; v < graph->value_count; v++) possible[v] &= !exact[v];
}

tutti_status pass_storage(struct plan *plan)
{
    struct graph *graph = &plan->graph;
    if (plan->options.precision != TUTTI_BF16) return TUTTI_OK;
    bool *possible = memory_new(graph->value_count + 1, sizeof *possible);
    bool *exact = memory_new(graph->value_count + 1, sizeof *exact);
    if (!possible || !exact) {
        free(possible);
        free(exact);
        return TUTTI_NO_MEMORY;
    }
    for (size_t n = 0; n < graph->node_count; n++)
        for (int i = 0; i < graph->nodes[n].output_count; i++) {
            const struct value *value = graph_at(graph, graph->nodes[n].outputs[i]);
            if (value && value->type == TYPE_F32 && !edit_is_kept(graph, graph->nodes[n].outputs[i]))
                possible[graph->nodes[n].outputs[i]] = true;
        }
    for (size_t n = 0; n < graph->node_count; n++) strike_out(plan, &graph->nodes[n], possible);
    keep_indices(graph, possible, exact);
    for (size_t v = 0; v < graph->value_count; v++)
        if (possible[v]) graph->values[v].type = TYPE_BF16;
    free(possible);
    free(exact);
    return TUTTI_OK;
}
