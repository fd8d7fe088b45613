#include "onnx/parameters/graph_edit.h"

#include "base/memory.h"
#include "onnx/import.h"

#include <stdlib.h>
#include <string.h>

Onnx__TensorProto *edit_find(const struct graph_edit *edit, const char *name)
{
    for (size_t i = 0; i < edit->graph->n_initializer; i++)
        if (!strcmp(proto_text(edit->graph->initializer[i]->name), name)) return edit->graph->initializer[i];
    return NULL;
}

bool edit_is_output(const struct graph_edit *edit, const char *name)
{
    for (size_t i = 0; i < edit->graph->n_output; i++)
        if (!strcmp(proto_text(edit->graph->output[i]->name), name)) return true;
    return false;
}

static bool is_among(char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(proto_text(names[i]), name)) return true;
    return false;
}

bool edit_is_free(const struct graph_edit *edit, const char *name)
{
    const Onnx__GraphProto *graph = edit->graph;
    bool found = edit_find(edit, name) != NULL;
    for (size_t i = 0; i < graph->n_input && !found; i++) found = !strcmp(proto_text(graph->input[i]->name), name);
    for (size_t i = 0; i < graph->n_node && !found; i++)
        found = is_among(graph->node[i]->output, graph->node[i]->n_output, name);
    for (size_t i = 0; i < edit->count && !found; i++)
        found = is_among(edit->nodes[i]->output, edit->nodes[i]->n_output, name);
    return !found;
}

bool edit_is_read(const struct graph_edit *edit, const char *name)
{
    bool found = false;
    for (size_t i = 0; i < edit->graph->n_node && !found; i++)
        found = is_among(edit->graph->node[i]->input, edit->graph->node[i]->n_input, name);
    return found;
}

/* Adds an initialiser with room for its elements, which the graph owns. */
static tutti_status add_tensor(struct graph_edit *edit, const char *name, int type, size_t element, int rank,
    const int64_t *sizes, Onnx__TensorProto **made)
{
    size_t count = 0;
    Onnx__GraphProto *graph = edit->graph;
    if (!array_count(rank, sizes, &count)) return TUTTI_NO_MEMORY;
    void *list = realloc(graph->initializer, (graph->n_initializer + 1) * sizeof *graph->initializer);
    if (list) graph->initializer = list;
    Onnx__TensorProto *tensor = list ? memory_new(1, sizeof *tensor) : NULL;
    if (!tensor) return TUTTI_NO_MEMORY;
    onnx__tensor_proto__init(tensor);
    graph->initializer[graph->n_initializer++] = tensor;
    tensor->name = memory_copy_text(name);
    tensor->dims = memory_new((size_t)rank + 1, sizeof *tensor->dims);
    tensor->raw_data.data = memory_new(count + 1, element);
    if (!tensor->name || !tensor->dims || !tensor->raw_data.data) return TUTTI_NO_MEMORY;
    tensor->raw_data.len = count * element;
    tensor->n_dims = (size_t)rank;
    memcpy(tensor->dims, sizes, (size_t)rank * sizeof *sizes);
    tensor->has_data_type = tensor->has_raw_data = true;
    tensor->data_type = type;
    *made = tensor;
    return TUTTI_OK;
}

tutti_status edit_add_floats(
    struct graph_edit *edit, const char *name, int rank, const int64_t *sizes, const float *floats)
{
    Onnx__TensorProto *tensor;
    const tutti_status status = add_tensor(edit, name, ONNX_FLOAT, sizeof *floats, rank, sizes, &tensor);
    if (status == TUTTI_OK) memcpy(tensor->raw_data.data, floats, tensor->raw_data.len);
    return status;
}

tutti_status edit_add_integers(
    struct graph_edit *edit, const char *name, int rank, const int64_t *sizes, const int64_t *integers)
{
    Onnx__TensorProto *tensor;
    const tutti_status status = add_tensor(edit, name, ONNX_INT64, sizeof *integers, rank, sizes, &tensor);
    if (status == TUTTI_OK) memcpy(tensor->raw_data.data, integers, tensor->raw_data.len);
    return status;
}

void edit_remove(struct graph_edit *edit, const Onnx__TensorProto *tensor)
{
    Onnx__GraphProto *graph = edit->graph;
    size_t kept = 0;
    for (size_t i = 0; i < graph->n_initializer; i++) {
        if (graph->initializer[i] == tensor)
            proto_free_tensor(graph->initializer[i]);
        else
            graph->initializer[kept++] = graph->initializer[i];
    }
    graph->n_initializer = kept;
}

tutti_status edit_read_instead(struct graph_edit *edit, const char *from, const char *to)
{
    for (size_t i = 0; i < edit->graph->n_node; i++)
        for (size_t k = 0; k < edit->graph->node[i]->n_input; k++) {
            char **input = &edit->graph->node[i]->input[k];
            if (strcmp(proto_text(*input), from)) continue;
            char *copy = memory_copy_text(to);
            if (!copy) return TUTTI_NO_MEMORY;
            free(*input);
            *input = copy;
        }
    return TUTTI_OK;
}

/* The node owns what is copied, also if not all could be. */
static tutti_status copy_names(char ***list, size_t *count, const char *const *names, size_t wanted)
{
    *list = memory_new(wanted + 1, sizeof **list);
    for (size_t i = 0; *list && i < wanted; i++) {
        if (!((*list)[i] = memory_copy_text(names[i]))) return TUTTI_NO_MEMORY;
        (*count)++;
    }
    return *list ? TUTTI_OK : TUTTI_NO_MEMORY;
}

static tutti_status add_axis(Onnx__NodeProto *node, int axis)
{
    enum { INT = 2 };
    Onnx__AttributeProto *attribute = memory_new(1, sizeof *attribute);
    node->attribute = memory_new(1, sizeof *node->attribute);
    if (attribute) onnx__attribute_proto__init(attribute);
    if (!attribute || !node->attribute) return free(attribute), TUTTI_NO_MEMORY;
    node->attribute[node->n_attribute++] = attribute;
    attribute->has_i = attribute->has_type = true;
    attribute->i = axis;
    attribute->type = INT;
    return (attribute->name = memory_copy_text("axis")) ? TUTTI_OK : TUTTI_NO_MEMORY;
}

static tutti_status copy_scopes(Onnx__NodeProto *node, const Onnx__NodeProto *like)
{
    const Onnx__StringStringEntryProto *scopes = like ? import_scopes_entry(like) : NULL;
    if (!scopes) return TUTTI_OK;
    Onnx__StringStringEntryProto *entry = memory_new(1, sizeof *entry);
    node->metadata_props = memory_new(1, sizeof *node->metadata_props);
    if (entry) onnx__string_string_entry_proto__init(entry);
    if (!entry || !node->metadata_props) return free(entry), TUTTI_NO_MEMORY;
    node->metadata_props[node->n_metadata_props++] = entry;
    entry->key = memory_copy_text(scopes->key);
    entry->value = memory_copy_text(scopes->value);
    return entry->key && entry->value ? TUTTI_OK : TUTTI_NO_MEMORY;
}

tutti_status edit_add_node(struct graph_edit *edit, const char *type, const char *const *inputs, size_t input_count,
    const char *const *outputs, size_t output_count, int axis)
{
    tutti_status status =
        memory_grow((void **)&edit->nodes, &edit->capacity, edit->count + 1, sizeof(Onnx__NodeProto *));
    Onnx__NodeProto *node = status == TUTTI_OK ? memory_new(1, sizeof *node) : NULL;
    if (!node) return TUTTI_NO_MEMORY;
    onnx__node_proto__init(node);
    edit->nodes[edit->count++] = node;
    node->op_type = memory_copy_text(type);
    node->name = memory_copy_text(outputs[0]);
    if (!node->op_type || !node->name) return TUTTI_NO_MEMORY;
    status = copy_names(&node->input, &node->n_input, inputs, input_count);
    if (status == TUTTI_OK) status = copy_names(&node->output, &node->n_output, outputs, output_count);
    if (status == TUTTI_OK && axis >= 0) status = add_axis(node, axis);
    return status == TUTTI_OK ? copy_scopes(node, edit->like) : status;
}

tutti_status edit_add_shaped(
    struct graph_edit *edit, const char *type, const char *input, const char *output, int rank, const int64_t *sizes)
{
    char *shape = memory_format("%s#shape", output);
    const int64_t count = rank;
    tutti_status status = shape ? edit_add_integers(edit, shape, 1, &count, sizes) : TUTTI_NO_MEMORY;
    if (status == TUTTI_OK)
        status = edit_add_node(edit, type, (const char *const[]) { input, shape }, 2, &output, 1, -1);
    free(shape);
    return status;
}

tutti_status edit_finish(struct graph_edit *edit, tutti_status status)
{
    Onnx__GraphProto *graph = edit->graph;
    Onnx__NodeProto **all = NULL;
    if (status == TUTTI_OK && edit->count) {
        all = memory_new(graph->n_node + edit->count, sizeof *all);
        if (!all) status = TUTTI_NO_MEMORY;
    }
    if (all) {
        memcpy(all, edit->nodes, edit->count * sizeof *all);
        if (graph->n_node) memcpy(all + edit->count, graph->node, graph->n_node * sizeof *all);
        free(graph->node);
        graph->node = all;
        graph->n_node += edit->count;
        edit->count = 0;
    }
    for (size_t i = 0; i < edit->count; i++) proto_free_node(edit->nodes[i]);
    free(edit->nodes);
    edit->nodes = NULL;
    return status;
}
