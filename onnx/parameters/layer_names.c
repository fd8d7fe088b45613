/* The layers of the exported module that nodes and initialisers belong to. Layers are known by the names of biases, by
 * the scopes in a node's metadata (dynamo=True), or by the path that is the node's name (dynamo=False). */
#include "onnx/parameters/exported_names.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), tail = strlen(end);
    return length > tail && !strcmp(text + length - tail, end);
}

/* A scope inside of another one: "block.fc1" of "block" and "fc1", or of "block" and "block.fc1". */
static char *inner_scope(const char *outer, const char *scope)
{
    const size_t prefix = strlen(outer);
    const bool complete = !prefix || (!strncmp(scope, outer, prefix) && scope[prefix] == '.');
    return complete ? memory_copy_text(scope) : memory_format("%s.%s", outer, scope);
}

/* The scope before the last one, which is that of the operation: "block.fc1" in "['', 'block', 'block.fc1',
 * 'linear_2']". NULL: there is none. */
static char *layer_in_scopes(const char *scopes)
{
    char *joined = memory_copy_text("");
    char *before = NULL;
    const char *at = scopes;
    for (char *scope; joined && (scope = list_next(&at)) != NULL; free(scope)) {
        char *longer = inner_scope(joined, scope);
        free(before);
        before = joined;
        joined = longer;
    }
    free(joined);
    if (before && *before) return before;
    free(before);
    return NULL;
}

/* The part before the last "/": "block.fc1" for "/block/fc1/MatMul". In containers, parts repeat the one before them:
 * "/net/body/body.0/body.0.1/Gemm" is in "net.body.0.1". */
char *import_layer_in_path(const char *path)
{
    const char *last = strrchr(path, '/');
    if (path[0] != '/' || last == path) return NULL;
    char *layer = memory_new((size_t)(last - path) + 1, 1);
    size_t end = 0, part = 0; /* where the text ends so far, and where its last part begins */
    for (const char *at = path + 1; layer && at < last;) {
        const size_t length = strcspn(at, "/"), before = end - part;
        const bool repeats = before && length > before && !strncmp(at, layer + part, before) && at[before] == '.';
        if (repeats)
            end = part;
        else if (end)
            layer[end++] = '.';
        part = end;
        memcpy(layer + end, at, length);
        end += length;
        at += length + (at + length < last);
    }
    return layer;
}

const Onnx__StringStringEntryProto *import_scopes_entry(const Onnx__NodeProto *node)
{
    for (size_t i = 0; i < node->n_metadata_props; i++)
        if (ends_with(proto_text(node->metadata_props[i]->key), "name_scopes"))
            return proto_is_plain(proto_text(node->metadata_props[i]->value)) ? node->metadata_props[i] : NULL;
    return NULL;
}

const char *import_scopes(const Onnx__NodeProto *node)
{
    const Onnx__StringStringEntryProto *entry = import_scopes_entry(node);
    return entry ? proto_text(entry->value) : NULL;
}

struct onnx_value *import_added_to(const struct import *import, size_t n)
{
    enum { FAR = 8 };
    const Onnx__GraphProto *graph = import->model->graph;
    const char *product = graph->node[n]->output[0];
    for (size_t i = n + 1; i < graph->n_node && i <= n + FAR; i++) {
        const Onnx__NodeProto *node = graph->node[i];
        if (strcmp(node->op_type, "Add") || node->n_input != 2) continue;
        for (size_t k = 0; k < 2; k++) {
            struct onnx_value *other = import_find(import, node->input[1 - k]);
            if (!strcmp(node->input[k], product) && other && other->initialiser) return other;
        }
    }
    return NULL;
}

/* The name of the bias that is added to the product, if the file has it. */
static const char *bias_after(const struct import *import, size_t n)
{
    const struct onnx_value *bias = import_added_to(import, n);
    return bias && ends_with(bias->name, "bias") ? bias->name : NULL;
}

char *import_layer(const Onnx__NodeProto *node)
{
    const char *scopes = import_scopes(node);
    return scopes ? layer_in_scopes(scopes) : import_layer_in_path(proto_text(node->name));
}

static bool is_layer(const struct import *import, const char *layer, size_t length)
{
    const Onnx__GraphProto *graph = import->model->graph;
    bool found = false;
    for (size_t i = 0; i < graph->n_node && !found; i++) {
        char *other = import_layer_in_path(proto_text(graph->node[i]->name));
        found = other && !strncmp(other, layer, length) && (other[length] == '\0' || other[length] == '.');
        free(other);
    }
    return found;
}

size_t import_length_of_first(const struct import *import, const char *layer)
{
    const size_t all = strlen(layer);
    size_t length = all;
    while (length > 0 && layer[length - 1] >= '0' && layer[length - 1] <= '9') length--;
    if (length < 2 || length == all || layer[length - 1] != '_') return all;
    return is_layer(import, layer, length - 1) ? length - 1 : all;
}

/* "fc1.weight" for the product that node n is. NULL: not known, or no memory. */
char *import_weight_name(const struct import *import, size_t n)
{
    const Onnx__NodeProto *node = import->model->graph->node[n];
    const char *bias = bias_after(import, n);
    if (bias) return memory_format("%.*sweight", (int)(strlen(bias) - strlen("bias")), bias);
    char *layer = import_layer(node);
    const int length = layer ? (int)(import_scopes(node) ? strlen(layer) : import_length_of_first(import, layer)) : 0;
    char *name = layer ? memory_format("%.*s.weight", length, layer) : NULL;
    free(layer);
    return name;
}
