/* Lets nodes read frozen matrices as they are stored (graph/stored.h). Where no kernel of a node does, a node before it
 * makes floats of the matrix. */
#include "graph/edit.h"
#include "graph/parameter_storage.h"
#include "plan/node.h"

static bool is_stored(const struct graph *graph, int value)
{
    const struct value *v = graph_at(graph, value);
    return v && v->role == ROLE_PARAMETER && v->type != TYPE_F32 && value_is_float(v);
}

/* Whether a kernel of node n reads input i as it is stored. */
static bool takes_stored(struct plan *plan, struct node *node, int i)
{
    const struct operation *operation = node->operation;
    if (operation->from_stored) {
        node->operation = operation = operation->from_stored;
        return true;
    }
    return operation->stored_inputs >> i & 1 && choose_implementation(plan, node);
}

/* Puts a node that makes floats of the value before node *n, which moves up; the node reads these. */
static tutti_status insert_floats(struct graph *graph, size_t *n, int value)
{
    const int made = graph_append(graph, structural.floats, NULL, &value, 1, graph->nodes[*n].layer);
    if (made == NO_VALUE) return graph->status;
    edit_move_last(graph, *n);
    struct node *node = &graph->nodes[++*n];
    for (int i = 0; i < node->input_count; i++)
        if (node->inputs[i] == value) node->inputs[i] = made;
    if (node_added(node) == value) node_set_added(node, made);
    return TUTTI_OK;
}

/* A node that has the value twice, or adds it, gets floats. */
static tutti_status visit(struct plan *plan, size_t *n)
{
    tutti_status status = TUTTI_OK;
    struct graph *graph = &plan->graph;
    const int added = node_added(&graph->nodes[*n]);
    if (is_stored(graph, added)) TRY(insert_floats(graph, n, added));
    for (int i = 0; i < graph->nodes[*n].input_count; i++) {
        const int value = graph->nodes[*n].inputs[i];
        if (is_stored(graph, value) && !takes_stored(plan, &graph->nodes[*n], i)) TRY(insert_floats(graph, n, value));
    }
done:
    return status;
}

tutti_status pass_stored(struct plan *plan)
{
    tutti_status status = TUTTI_OK;
    struct graph *graph = &plan->graph;
    bool any = false;
    for (size_t v = 0; v < graph->value_count; v++) {
        struct value *value = &graph->values[v];
        if (value->role != ROLE_PARAMETER) continue;
        value->type = parameter_type(&plan->network->parameters[value->parameter]);
        any |= is_stored(graph, (int)v);
    }
    for (size_t n = 0; any && n < graph->node_count; n++)
        if (graph->nodes[n].operation != structural.floats) TRY(visit(plan, &n));
done:
    return status;
}
