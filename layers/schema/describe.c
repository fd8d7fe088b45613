/* Describes a network's nodes to programs: operations, tensors, and attributes as text. */
#include "base/options.h"
#include "base/text.h"
#include "graph/network.h"
#include "layers/layers.h"
#include "layers/schema/op.h"
#include "tutti_inspect.h"

#include <inttypes.h>
#include <string.h>

int tutti_network_nodes(const tutti_network *network)
{
    return (int)network->graph.node_count;
}

static tutti_status no_node(const tutti_network *network, int position)
{
    return fail(TUTTI_INVALID, "node %d does not exist: the network has %zu nodes, counted from 0", position,
        network->graph.node_count);
}

/* Copies tensors, except the constants of a step, which are not a tensor that programs know. */
static int copy_tensors(const struct graph *graph, const int *values, int count, tutti_tensor *tensors)
{
    int last = 0;
    for (int i = 0; i < count; i++) {
        const struct value *value = graph_at(graph, values[i]);
        tensors[i] = (tutti_tensor) { value && value->role != ROLE_CONSTANTS ? values[i] : NO_VALUE };
        if (tensors[i].id != NO_VALUE) last = i + 1;
    }
    return last;
}

tutti_status tutti_network_node(const tutti_network *network, int position, tutti_node_info *info)
{
    tutti_node_info known = { 0 };
    const struct graph *graph = &network->graph;
    if (position < 0 || (size_t)position >= graph->node_count) return no_node(network, position);
    const struct node *node = &graph->nodes[position];
    known.operation = op_name(node);
    known.layer = node->layer >= 0 ? network->layers[node->layer].name : NULL;
    known.input_count = copy_tensors(graph, node->inputs, node->input_count, known.inputs);
    known.output_count = copy_tensors(graph, node->outputs, node->output_count, known.outputs);
    return RESULT_WRITE(info, &known, tutti_node_info);
}

/* ---------------------------------------------------------------------------------------------- attributes ---- */

/* "key=" or, after the first number, ",". */
static void begin_number(struct text *text, const char *name, int i)
{
    text_append(text, "%s%s%s", i || !text->size ? "" : " ", i ? "" : name, i ? "," : "=");
}

static void append_whole(struct text *text, const char *name, int i, int64_t number)
{
    begin_number(text, name, i);
    text_append(text, "%" PRId64, number);
}

static void append_list(struct text *text, const char *name, const int64_t *numbers, int count)
{
    for (int i = 0; i < count; i++) append_whole(text, name, i, numbers[i]);
}

/* The axes of a sample of x that are in the set. */
static void append_axes(struct text *text, const char *name, const struct value *x, unsigned axes)
{
    int count = 0;
    for (int i = x->batched; i < x->shape.rank; i++)
        if (axes >> i & 1) append_whole(text, name, count++, i - x->batched);
}

static void append_member(struct text *text, const struct value *x, const struct value *y, const char *name,
    enum attribute_kind kind, const void *from, size_t bytes)
{
    const tutti_shape *shape = from;
    const int rank = x->shape.rank - x->batched, *ints = from;
    switch (kind) {
    case ATTRIBUTE_NUMBER:
    case ATTRIBUTE_NUMBERS:
        for (int i = 0; i < (int)(bytes / sizeof(float)); i++) {
            begin_number(text, name, i);
            text_append(text, "%.9g", (double)((const float *)from)[i]);
        }
        break;
    case ATTRIBUTE_FLAG: append_whole(text, name, 0, *(const bool *)from); break;
    case ATTRIBUTE_INT:
        for (int i = 0; i < (int)(bytes / sizeof(int)); i++) append_whole(text, name, i, ints[i]);
        break;
    case ATTRIBUTE_AXIS:
        if (*ints >= x->batched) append_whole(text, name, 0, *ints - x->batched);
        break;
    case ATTRIBUTE_AXES: append_axes(text, name, x, *(const unsigned *)from); break;
    case ATTRIBUTE_ORDER:
        for (int i = 0; i < rank; i++) append_whole(text, name, i, ints[i + x->batched] - x->batched);
        break;
    case ATTRIBUTE_SHAPE:
        if (shape->rank > 0) append_list(text, name, shape->sizes + y->batched, shape->rank - y->batched);
        break;
    case ATTRIBUTE_PLACES: append_list(text, name, (const int64_t *)from + x->batched, rank); break;
    case ATTRIBUTE_LONG:
    case ATTRIBUTE_SIZES: append_list(text, name, from, (int)(bytes / sizeof(int64_t))); break;
    case ATTRIBUTE_ACTIVATION: /* the operation's name has it */
    case ATTRIBUTE_POINTER:
    case ATTRIBUTE_OTHER: break;
    }
}

/* The word that tutti_op() takes for a number. */
static void append_choice(struct text *text, const char *name, const char *choices, int number)
{
    for (; number > 0; number--) choices += strcspn(choices, " "), choices += strspn(choices, " ");
    text_append(text, "%s%s=%.*s", text->size ? " " : "", name, (int)strcspn(choices, " "), choices);
}

char *tutti_network_attributes(const tutti_network *network, int position)
{
    const struct graph *graph = &network->graph;
    struct text text = { 0 };
    if (position < 0 || (size_t)position >= graph->node_count) {
        (void)no_node(network, position);
        return NULL;
    }
    const struct node *node = &graph->nodes[position];
    const struct value *x = graph_at(graph, node->inputs[0]), *y = graph_at(graph, node->outputs[0]);
    text_append(&text, "%s", "");
    for (const struct attribute *member = attribute_members(node->operation->attributes); member->name; member++) {
        const char *choices, *name = op_attribute_name(node, member, &choices);
        const void *from = node->attributes.bytes + member->offset;
        if (name && choices)
            append_choice(&text, name, choices, *(const int *)from);
        else if (name)
            append_member(&text, x, y, name, member->kind, from, member->bytes);
    }
    char *taken = text_take(&text);
    if (!taken) (void)fail(TUTTI_NO_MEMORY, "no memory for the attributes of node %d", position);
    return taken;
}
