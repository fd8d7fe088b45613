/* Joins chains of nodes with generated kernels (layers/loop/loop.h) into one node, which stores no intermediate result.
 */
#include "graph/edit.h"
#include "layers/loop/loop.h"
#include "plan/node.h"
#include "plan/passes.h"

/* Describes a node with a generated kernel as a loop, in which the operands' `input` is the number of a value. */
static bool loop_of_node(const struct plan *plan, const struct node *node, struct loop *loop)
{
    struct problem problem;
    if (node->operation->alias || !node->operation->loop || node->implementation < 0) return false;
    if (node->operation->implementations[node->implementation] != &loop_generated) return false;
    problem_of(plan, node, &problem);
    if (!loop_of(&problem, loop)) return false;
    for (int i = 0; i < loop->operand_count; i++) {
        const int input = loop->operands[i].input;
        loop->operands[i].input = input == LOOP_ADDED ? node_added(node) : node->inputs[input];
    }
    return true;
}

static int64_t elements_of(const struct loop *loop)
{
    int64_t elements = 1;
    for (int i = 0; i < loop->rank; i++) elements *= loop->sizes[i];
    return elements;
}

/* Returns the node that computes a value, looking through reshapes; NULL for inputs and parameters. Sets *alone to
 * whether `reader` is the only reader. */
static const struct node *producer_of(const struct graph *graph, int value, const struct node *reader, bool *alone)
{
    for (*alone = true;;) {
        int uses = edit_uses(graph, value);
        for (int i = 0; reader && i < reader->input_count; i++) uses -= reader->inputs[i] == value;
        if (reader && node_added(reader) == value) uses--;
        if (uses > 0 || edit_is_kept(graph, value)) *alone = false;
        const struct value *v = graph_at(graph, value);
        if (v->producer < 0) return NULL;
        const struct node *node = &graph->nodes[v->producer];
        if (!node->operation->alias) return node;
        reader = node;
        value = node->inputs[0];
    }
}

/* Whether a composed loop can address the output: its layout is plain, or the loop reads everything in memory order. */
static bool lies_plain(const struct plan *plan, const struct node *node)
{
    struct problem problem;
    problem_of(plan, node, &problem);
    return problem.outputs[0]->layout == LAYOUT_PLAIN || loop_is_flat(&problem);
}

static bool has_vectors(struct loop loop)
{
    loop_simplify(&loop);
    return loop_has_vectors(&loop);
}

/* Whether composing pays: it must neither compute an element several times nor lose the vectors of CPU kernels. */
static bool pays(const struct plan *plan, const struct loop *producer, bool alone, const struct loop *before,
    const struct loop *after)
{
    const bool vectors = plan->device->can.class != DEVICE_CPU || has_vectors(*after) ||
        !(has_vectors(*before) || (producer->expression_count && has_vectors(*producer)));
    return vectors && (producer->expression_count == 0 || (alone && elements_of(before) <= elements_of(producer)));
}

/* Composes the loop with the producer of one of its operands; false if none can be. */
static bool compose_operand(const struct plan *plan, const struct node *node, struct loop *loop)
{
    for (int i = 0; i < loop->operand_count; i++) {
        struct loop producer, made;
        bool alone = false;
        const struct node *from = producer_of(&plan->graph, loop->operands[i].input, node, &alone);
        if (!from || !loop_of_node(plan, from, &producer)) continue;
        if (!lies_plain(plan, from) || !lies_plain(plan, node)) continue;
        if (!loop_compose(loop, i, &producer, &made) || !pays(plan, &producer, alone, loop, &made)) continue;
        *loop = made;
        return true;
    }
    return false;
}

/* Changes the node into a node of operation_loop. */
static tutti_status set_loop(struct graph *graph, struct node *node, const struct loop *loop)
{
    struct loop *kept = graph_new(graph, sizeof *kept);
    if (!kept) return TUTTI_NO_MEMORY;
    *kept = *loop;
    node->input_count = 0;
    for (int i = 0; i < loop->operand_count; i++) {
        int input = 0;
        while (input < node->input_count && node->inputs[input] != loop->operands[i].input) input++;
        if (input == node->input_count) node->inputs[node->input_count++] = loop->operands[i].input;
        kept->operands[i].input = input;
    }
    for (int i = node->input_count; i < GRAPH_MAX_INPUTS; i++) node->inputs[i] = NO_VALUE;
    node_set_operation(node, structural.loop, &(struct loop_attributes) { kept });
    node->implementation = 0;
    node->fusion_count = 0;
    return TUTTI_OK;
}

tutti_status pass_compose(struct plan *plan)
{
    tutti_status status = TUTTI_OK;
    struct graph *graph = &plan->graph;
    for (size_t n = 0; n < graph->node_count; n++) {
        struct node *node = &graph->nodes[n];
        struct loop loop;
        if (!loop_of_node(plan, node, &loop) || !compose_operand(plan, node, &loop)) continue;
        TRY(set_loop(graph, node, &loop));
        n--; /* visit it again: another operand may be composed */
    }
done:
    return status;
}
