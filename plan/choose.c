/* Chooses the implementation of each node and the layout of each value. Inserts reorders only where a producer and a
 * consumer want different layouts, one for each value and layout. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "graph/edit.h"
#include "layers/layers.h"
#include "layers/loop/loop.h"
#include "plan/node.h"
#include "plan/outputs.h"
#include "runtime/tuning.h"
#include "runtime/verdicts.h"

/* Whether `force` ("conv2d=winograd|direct,dense=clblast") names implementations of this operation but not this
 * one. */
static bool forced_away(const char *force, const char *operation, const char *implementation)
{
    size_t length = strlen(operation);
    for (const char *at = force; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        if (strncmp(at, operation, length) || at[length] != '=') continue;
        const char *name = at + length;
        do {
            const size_t size = strcspn(++name, "|,");
            if (size == strlen(implementation) && !strncmp(name, implementation, size)) return false;
            name += size;
        } while (*name == '|');
        return true;
    }
    return false;
}

static const char *force_of(const struct plan *plan)
{
    return plan->options.force ? plan->options.force : getenv("TUTTI_IMPLEMENTATION");
}

const char *implementation_refusal(
    const struct plan *plan, const struct problem *problem, const struct implementation *implementation)
{
    const char *operation = problem->node->operation->name;
    if (forced_away(force_of(plan), operation, implementation->name)) return "TUTTI_IMPLEMENTATION selects another one";
    char key[IMPLEMENTATION_KEY];
    implementation_key(problem, implementation, false, key);
    const char *reason = blacklist_reason(plan->device, key);
    if (reason) return reason;
    return implementation->fits ? implementation->fits(problem) : NULL;
}

struct choice {
    const struct implementation *implementation; /* NULL: none takes the problem */
    enum tuning_level level;                     /* TUNING_LEVELS: the rule */
    const char *measured;                        /* what the table says */
};

/* Like implementation_refusal(), but a table can also refuse it, except the last one, which takes everything. */
static const char *refusal(const struct plan *plan, const struct problem *problem, const char *name,
    const struct implementation *const *implementation)
{
    const char *reason = implementation_refusal(plan, problem, *implementation);
    return reason || !implementation[1] ? reason : tuning_refusal(plan->device, name, (*implementation)->name);
}

static const char *passed_over(const struct problem *problem, const struct implementation *implementation)
{
    return implementation->passed_over ? implementation->passed_over(problem) : NULL;
}

/* Returns the first implementation in the list that takes the problem. One that the rule passes over is returned only
 * where there is no other. */
static const struct implementation *by_rule(const struct plan *plan, const struct problem *problem, const char *name)
{
    const struct implementation *other = NULL;
    for (const struct implementation *const *i = problem->node->operation->implementations; i && *i; i++) {
        if (refusal(plan, problem, name, i)) continue;
        if (!passed_over(problem, *i)) return *i;
        if (!other) other = *i;
    }
    return other;
}

/* Chooses by the first tuning level that names an implementation which takes the problem, else by the rule. */
static struct choice find_choice(const struct plan *plan, const struct problem *problem, const char *name)
{
    const struct implementation *const *list = problem->node->operation->implementations;
    const bool several = list && list[0] && list[1];
    for (enum tuning_level level = 0; several && level < TUNING_LEVELS; level++) {
        const char *entry = tuning_choice(plan->device, level, name);
        const size_t length = entry ? strcspn(entry, " ") : 0;
        for (const struct implementation *const *i = list; entry && *i; i++)
            if (strlen((*i)->name) == length && !memcmp((*i)->name, entry, length) && !refusal(plan, problem, name, i))
                return (struct choice) { .implementation = *i, .level = level, .measured = entry };
    }
    return (struct choice) { .implementation = by_rule(plan, problem, name), .level = TUNING_LEVELS };
}

const struct implementation *choose_implementation(const struct plan *plan, const struct node *node)
{
    struct problem problem;
    char name[PROBLEM_NAME];
    problem_of(plan, node, &problem);
    problem_name(&problem, name);
    const struct choice choice = find_choice(plan, &problem, name);
    if (!choice.implementation)
        fail(TUTTI_UNSUPPORTED, "no kernel of %s on %s supports this problem: see tutti show --why",
            node->operation->name, plan->device->can.name);
    return choice.implementation;
}

/* ------------------------------------------------------------------------------------------------ layouts ---- */

struct wanted {
    enum value_layout inputs[GRAPH_MAX_INPUTS], outputs[GRAPH_MAX_OUTPUTS], add;
};

/* Elementwise nodes follow their inputs. Returns the first input whose layout is not plain and which the node takes.
 * NULL: all values of the node are plain. */
static const struct value *leader_of(const struct problem *problem, unsigned taken)
{
    const struct value *leader = NULL;
    if (taken & WHERE_FLAT && !loop_is_flat(problem)) return NULL;
    for (int i = 0; i < problem->node->input_count && !leader; i++) {
        const struct value *input = problem->inputs[i];
        if (input && input->layout != LAYOUT_PLAIN && taken >> input->layout & 1) leader = input;
    }
    for (int i = 0; i < problem->node->output_count && leader; i++) {
        const struct value *output = problem->outputs[i];
        if (output && value_has_axes_of(output, leader) && !value_has_layouts(output)) leader = NULL;
    }
    return leader;
}

static void follow(const struct value *leader, const struct value *const *values, int count, enum value_layout *layouts)
{
    for (int i = 0; i < count; i++)
        if (values[i] && value_has_axes_of(values[i], leader)) layouts[i] = leader->layout;
}

static void wanted_layouts(
    const struct problem *problem, const struct implementation *implementation, struct wanted *wanted)
{
    memset(wanted, 0, sizeof *wanted); /* plain */
    const struct node *node = problem->node;
    if (implementation->any_layout) {
        const struct value *leader = leader_of(problem, implementation->any_layout);
        if (leader) follow(leader, problem->inputs, node->input_count, wanted->inputs);
        if (leader) follow(leader, problem->outputs, node->output_count, wanted->outputs);
    } else if (implementation->layouts) {
        implementation->layouts(problem, wanted->inputs, wanted->outputs);
    }
    wanted->add = wanted->outputs[0];
}

struct chooser {
    struct plan *plan;
    int *twins; /* per value: its copy in the other layout, or NO_VALUE */
    size_t twin_capacity;
};

static int position_of(const struct operation *operation, const struct implementation *implementation)
{
    for (int i = 0; operation->implementations[i]; i++)
        if (operation->implementations[i] == implementation) return i;
    return -1;
}

/* Sets *value to the value in this layout. If there is none, inserts a reorder before node *n, which moves up. */
static tutti_status in_layout(struct chooser *c, size_t *n, int *value, enum value_layout layout)
{
    struct graph *graph = &c->plan->graph;
    if (*value == NO_VALUE || graph_at(graph, *value)->layout == layout) return TUTTI_OK;
    if ((size_t)*value < c->twin_capacity && c->twins[*value] != NO_VALUE) {
        *value = c->twins[*value];
        return TUTTI_OK;
    }
    const struct reorder_attributes attributes = { layout };
    int made = graph_append(graph, structural.reorder, &attributes, value, 1, graph->nodes[*n].layer);
    if (made == NO_VALUE) return graph->status;
    graph_at(graph, made)->layout = layout;
    edit_move_last(graph, *n);
    const struct implementation *reorder = choose_implementation(c->plan, &graph->nodes[*n]);
    if (!reorder) return TUTTI_UNSUPPORTED;
    graph->nodes[*n].implementation = position_of(structural.reorder, reorder);
    size_t old = c->twin_capacity;
    tutti_status status = memory_grow((void **)&c->twins, &c->twin_capacity, graph->value_count, sizeof *c->twins);
    if (status != TUTTI_OK) return status;
    for (size_t i = old; i < c->twin_capacity; i++) c->twins[i] = NO_VALUE;
    c->twins[*value] = made;
    c->twins[made] = *value;
    *n += 1;
    *value = made;
    return TUTTI_OK;
}

/* Chooses the implementation of node *n. Reorders may be inserted before the node; *n follows it. */
static tutti_status choose_node(struct chooser *c, size_t *n)
{
    struct graph *graph = &c->plan->graph;
    if (graph->nodes[*n].operation->alias) { /* reshapes are plain on both sides */
        int value = graph->nodes[*n].inputs[0];
        tutti_status status = in_layout(c, n, &value, LAYOUT_PLAIN);
        graph->nodes[*n].inputs[0] = value;
        return status;
    }
    const struct implementation *implementation = choose_implementation(c->plan, &graph->nodes[*n]);
    if (!implementation) return TUTTI_UNSUPPORTED;
    struct problem problem;
    struct wanted wanted;
    problem_of(c->plan, &graph->nodes[*n], &problem);
    wanted_layouts(&problem, implementation, &wanted);
    for (int i = 0; i < graph->nodes[*n].input_count; i++) {
        int value = graph->nodes[*n].inputs[i];
        tutti_status status = in_layout(c, n, &value, wanted.inputs[i]);
        if (status != TUTTI_OK) return status;
        graph->nodes[*n].inputs[i] = value;
    }
    int added = node_added(&graph->nodes[*n]);
    tutti_status status = in_layout(c, n, &added, wanted.add);
    if (status != TUTTI_OK) return status;
    node_set_added(&graph->nodes[*n], added);
    struct node *node = &graph->nodes[*n];
    for (int i = 0; i < node->output_count; i++)
        if (node->outputs[i] != NO_VALUE) graph_at(graph, node->outputs[i])->layout = wanted.outputs[i];
    node->implementation = position_of(node->operation, implementation);
    return TUTTI_OK;
}

/* The host reads plain values: appends a reorder for an output in another layout. */
static tutti_status plain_output(struct chooser *c, int *value)
{
    struct graph *graph = &c->plan->graph;
    if (*value == NO_VALUE || graph_at(graph, *value)->layout == LAYOUT_PLAIN) return TUTTI_OK;
    graph_at(graph, *value)->output = false;
    const struct reorder_attributes attributes = { LAYOUT_PLAIN };
    int made = graph_append(graph, structural.reorder, &attributes, value, 1, -1);
    if (made == NO_VALUE) return graph->status;
    struct node *node = graph_last(graph);
    const struct implementation *implementation = choose_implementation(c->plan, node);
    if (!implementation) return TUTTI_UNSUPPORTED;
    node->implementation = position_of(node->operation, implementation);
    graph_at(graph, made)->output = true;
    *value = made;
    return TUTTI_OK;
}

/* Makes all outputs plain. Two outputs may be one value. */
static tutti_status plain_outputs(struct chooser *c)
{
    int *outputs = c->plan->outputs;
    const int count = c->plan->options.objective.output_count + plan_input_gradients(&c->plan->options);
    for (int i = 0; i < count; i++) {
        const int before = outputs[i];
        const tutti_status status = plain_output(c, &outputs[i]);
        if (status != TUTTI_OK) return status;
        for (int j = i + 1; j < count; j++)
            if (outputs[j] == before) outputs[j] = outputs[i];
    }
    return TUTTI_OK;
}

/* Bytes of a node's values with channels last. */
static double channels_last_bytes(const struct graph *graph, const struct node *node)
{
    double bytes = 0;
    for (int i = 0; i < node->input_count + node->output_count; i++) {
        const struct value *value =
            graph_at(graph, i < node->input_count ? node->inputs[i] : node->outputs[i - node->input_count]);
        if (value && value->layout == LAYOUT_CHANNELS_LAST) bytes += (double)value_bytes(value, 1);
    }
    return bytes;
}

/* Cost of a reordered byte in gains of a byte of a convolution with channels last: a guess on the safe side. */
enum { GAIN_OF_REORDER = 4 };

/* Whether channels last pays: the reorders of a plan may move only a part of the bytes that its convolutions move. A
 * reorder reads and writes a value once more, which is pure loss. A convolution with channels last reads and writes
 * the same values as before, in fewer steps. */
bool channels_last_pays(const struct plan *plan)
{
    const struct graph *graph = &plan->graph;
    double gaining = 0, reordered = 0;
    const char *force = force_of(plan);
    if (force && strstr(force, "channels_last")) return true; /* what is forced is not weighed */
    for (size_t n = 0; n < graph->node_count; n++) {
        const struct node *node = &graph->nodes[n];
        if (node->operation->alias) continue;
        const double bytes = channels_last_bytes(graph, node);
        if (node->operation == structural.reorder)
            reordered += 2 * bytes;
        else if (node->operation->implementations[node->implementation]->layouts)
            gaining += bytes;
    }
    return reordered * GAIN_OF_REORDER <= gaining;
}

/* Returns the milliseconds after an implementation's name in a table's entry; NULL: it was not measured. */
static const char *measured_of(const char *entry, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = entry; at && *at; at += strspn(at, " ")) {
        const size_t size = strcspn(at, " ");
        if (size == length && !memcmp(at, name, length) && at[size]) return at + size + 1;
        at += size;
    }
    return NULL;
}

/* Marks where the implementation's remark will be inserted, if it has any: the types of values are not known yet. */
static void mark_remark(
    struct plan *plan, const struct node *node, const struct implementation *implementation, struct text *text)
{
    int value = NO_VALUE;
    for (int i = node->output_count - 1; i >= 0; i--)
        if (node->outputs[i] != NO_VALUE) value = node->outputs[i];
    if (!implementation->remark || value == NO_VALUE) return;
    void *places = plan->explanation.places;
    if (memory_grow(&places, &plan->explanation.capacity, plan->explanation.count + 1,
            sizeof *plan->explanation.places) == TUTTI_OK) {
        plan->explanation.places = places;
        plan->explanation.places[plan->explanation.count++] =
            (struct remark_place) { .at = text->size, .value = value, .implementation = implementation };
    } else {
        text->failed = true;
    }
}

/* Explains where the choice comes from, and why each other implementation was not chosen. */
static void explain_node(struct plan *plan, const struct node *node, struct text *text)
{
    struct problem problem;
    char name[PROBLEM_NAME];
    problem_of(plan, node, &problem);
    problem_name(&problem, name);
    const struct choice choice = find_choice(plan, &problem, name);
    const struct implementation *const *list = node->operation->implementations;
    const bool ruled = choice.level == TUNING_LEVELS;
    if (ruled)
        text_append(text, "        by the rule: the first that supports it\n");
    else
        text_append(text, "        by the %s's table, in ms: %s\n", tuning_level_name(choice.level), choice.measured);
    mark_remark(plan, node, choice.implementation, text);
    for (bool after = false; *list; list++) {
        const char *reason = refusal(plan, &problem, name, list);
        const char *measured = ruled ? NULL : measured_of(choice.measured, (*list)->name);
        if (*list == choice.implementation) {
            after = true;
            continue;
        }
        text_append(text, "        not %s: ", (*list)->name);
        if (reason)
            text_append(text, "%s\n", reason);
        else if (measured)
            text_append(text, "it was measured at %.*s ms\n", (int)strcspn(measured, " "), measured);
        else if (ruled)
            text_append(text, after ? "it comes after %s in the list\n" : "%s\n",
                after ? choice.implementation->name : passed_over(&problem, *list));
        else
            text_append(text, "the table selects another one\n");
    }
}

static void explain(struct plan *plan)
{
    struct text text = { 0 };
    for (size_t n = 0; n < plan->graph.node_count; n++) {
        const struct node *node = &plan->graph.nodes[n];
        const char *layer = node->layer >= 0 ? plan->network->layers[node->layer].name : "";
        if (node->operation->alias) continue;
        text_append(&text, "%4zu  %-28s %-24s %s\n", n, layer, node->operation->name,
            node->operation->implementations[node->implementation]->name);
        explain_node(plan, node, &text);
    }
    plan->explanation.choices = text_take(&text);
}

tutti_status pass_select(struct plan *plan)
{
    tutti_status status = TUTTI_OK;
    struct chooser chooser = { .plan = plan };
    TRY(memory_grow(
        (void **)&chooser.twins, &chooser.twin_capacity, plan->graph.value_count + 1, sizeof *chooser.twins));
    for (size_t i = 0; i < chooser.twin_capacity; i++) chooser.twins[i] = NO_VALUE;
    for (size_t n = 0; n < plan->graph.node_count; n++) TRY(choose_node(&chooser, &n));
    TRY(plain_outputs(&chooser));
    TRY(plain_output(&chooser, &plan->input_gradient));
    if (plan->options.explain) explain(plan);
done:
    free(chooser.twins);
    return status;
}
