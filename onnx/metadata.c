#include "onnx/metadata.h"

#include "base/memory.h"
#include "tutti_onnx.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

const char *metadata_find(const Onnx__ModelProto *model, const char *key)
{
    for (size_t i = 0; i < model->n_metadata_props; i++)
        if (!strcmp(proto_text(model->metadata_props[i]->key), key)) return model->metadata_props[i]->value;
    return NULL;
}

char *tutti_onnx_metadata(const char *path, const char *key)
{
    Onnx__ModelProto *model = NULL;
    if (!path || !key || proto_read(path, &model) != TUTTI_OK) return NULL;
    const char *text = metadata_find(model, key);
    char *copy = text ? memory_copy_text(text) : NULL;
    proto_free(model);
    return copy;
}

/* --------------------------------------------------------------------------------------------------- nodes ---- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void keep_name(void *name)
{
    (void)name; /* it is in the model */
}

static bool is_needed(void *const *needed, const Onnx__NodeProto *node)
{
    for (size_t i = 0; i < node->n_output; i++)
        if (tfind(node->output[i], needed, compare_names)) return true;
    return false;
}

/* Moves the nodes that the end needs, back to the begin, to the end of the list. Returns where they are; SIZE_MAX:
 * there is no memory. Nodes come after those that they read. */
static size_t move_needed(Onnx__GraphProto *graph, const char *begin, const char *end)
{
    void *needed = NULL;
    size_t first = graph->n_node;
    bool good = tsearch(end, &needed, compare_names) != NULL;
    for (size_t i = graph->n_node; i-- > 0 && good;) {
        Onnx__NodeProto *node = graph->node[i];
        if (!is_needed(&needed, node)) continue;
        for (size_t k = 0; k < node->n_input && good; k++)
            if (strcmp(node->input[k], begin) != 0) good = tsearch(node->input[k], &needed, compare_names) != NULL;
        first--;
        graph->node[i] = graph->node[first];
        graph->node[first] = node;
    }
    tdestroy(needed, keep_name);
    return good ? first : SIZE_MAX;
}

static tutti_status cut_nodes(Onnx__GraphProto *graph, const char *begin, const char *end)
{
    const size_t first = move_needed(graph, begin, end);
    if (first == SIZE_MAX) return fail(TUTTI_NO_MEMORY, "no memory for the names of nodes");
    for (size_t i = 0; i < first; i++) proto_free_node(graph->node[i]);
    graph->n_node -= first;
    if (graph->n_node) memmove(graph->node, graph->node + first, graph->n_node * sizeof(void *));
    return TUTTI_OK;
}

/* --------------------------------------------------------------------------------------------------- ports ---- */

static Onnx__ValueInfoProto **find_port(Onnx__ValueInfoProto **list, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(proto_text(list[i]->name), name)) return &list[i];
    return NULL;
}

/* Makes a port the only one of the list. */
static void take_port(Onnx__ValueInfoProto **list, size_t *count, Onnx__ValueInfoProto **port)
{
    Onnx__ValueInfoProto *taken = *port;
    *port = list[0];
    list[0] = taken;
    for (size_t i = 1; i < *count; i++) proto_free_value(list[i]);
    *count = 1;
}

tutti_status metadata_cut(Onnx__ModelProto *model)
{
    Onnx__GraphProto *graph = model->graph;
    const char *begin = metadata_find(model, METADATA_BEGIN), *end = metadata_find(model, METADATA_END);
    if (!begin || !end || graph->n_input == 0 || graph->n_output == 0) return TUTTI_OK;
    Onnx__ValueInfoProto **input = find_port(graph->input, graph->n_input, begin);
    if (!input) input = find_port(graph->value_info, graph->n_value_info, begin);
    if (!input) return TUTTI_OK;
    Onnx__ValueInfoProto **output = find_port(graph->output, graph->n_output, end);
    if (!output) output = find_port(graph->value_info, graph->n_value_info, end);
    if (!output || output == input) return TUTTI_OK;
    take_port(graph->input, &graph->n_input, input);
    take_port(graph->output, &graph->n_output, output);
    return cut_nodes(graph, begin, end);
}
