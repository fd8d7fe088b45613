/* Adds the remarks of implementations on their nodes, once all passes have run: `tutti show MODEL --why`. */
#include <stdlib.h>

#include "base/memory.h"
#include "base/text.h"
#include "plan/node.h"

/* Returns the node of a remark; NULL: passes after the choice have joined it with others. */
static const struct node *node_at(const struct graph *graph, const struct remark_place *place)
{
    const struct value *value = graph_at(graph, place->value);
    if (!value || value->producer < 0 || (size_t)value->producer >= graph->node_count) return NULL;
    const struct node *node = &graph->nodes[value->producer];
    bool makes = false;
    for (int i = 0; i < node->output_count; i++) makes |= node->outputs[i] == place->value;
    if (!makes || node->operation->alias) return NULL;
    return node->operation->implementations[node->implementation] == place->implementation ? node : NULL;
}

static void append_remark(const struct plan *plan, const struct remark_place *place, struct text *text)
{
    struct text sentence = { 0 };
    struct problem problem;
    const struct node *node = node_at(&plan->graph, place);
    if (!node) return;
    problem_of(plan, node, &problem);
    place->implementation->remark(&problem, &sentence);
    if (sentence.size) text_append(text, "        it %s\n", sentence.data);
    text->failed |= sentence.failed;
    text_free(&sentence);
}

tutti_status pass_remark(struct plan *plan)
{
    struct text text = { 0 };
    size_t from = 0;
    if (!plan->explanation.choices) return TUTTI_OK;
    for (size_t i = 0; i < plan->explanation.count; i++) {
        const struct remark_place *place = &plan->explanation.places[i];
        text_append(&text, "%.*s", (int)(place->at - from), plan->explanation.choices + from);
        append_remark(plan, place, &text);
        from = place->at;
    }
    text_append(&text, "%s", plan->explanation.choices + from);
    free(plan->explanation.choices);
    plan->explanation.choices = text_take(&text);
    return plan->explanation.choices ? TUTTI_OK : TUTTI_NO_MEMORY;
}
