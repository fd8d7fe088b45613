/* Exporters merge initialisers that are equal, as those of layers that were never trained or that are copies of each
 * other. They are taken apart here, so that each layer of the exported module has its own again. Tied parameters, which
 * the module itself has only once, stay one.
 *
 * TorchScript (dynamo=False) replaces an initialiser that it merged by an Identity, but not a tied one. torch.export
 * (dynamo=True) writes all names of the state dict, and the layer of each node, into the file. It keeps the first of
 * merged tensors, and the last name of tied ones. If a file tells neither, initialisers whose elements are all equal
 * are taken apart, and others stay one. If it tells layers alone, those of copies of a layer are taken apart, too. */
#include "onnx/parameters/exported_names.h"
#include "onnx/parameters/graph_edit.h"
#include "onnx/parameters/signature.h"
#include "onnx/parameters/views.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

struct separation {
    struct import *import;
    const struct signature *signature;
    const Onnx__NodeProto *node;
    const char *layer; /* of the node; "": the whole module */
    bool scoped;       /* the file tells the layer */
};

/* --------------------------------------------------------------------------------------------------- Identity ---- */

/* "Identity_7" */
static bool is_mark_of_merging(const struct import *import, const Onnx__NodeProto *node)
{
    const char *name = proto_text(node->name);
    static const char begin[] = "Identity_";
    return import->paths && !strcmp(node->op_type, "Identity") && node->n_input == 1 && node->n_output == 1 &&
        !strncmp(name, begin, sizeof begin - 1) &&
        strspn(name + sizeof begin - 1, "0123456789") == strlen(name + sizeof begin - 1);
}

static void become_copy(struct onnx_value *value, const struct onnx_value *from)
{
    value->stored = from->stored;
    value->type = from->type;
    value->initialiser = value->apart = true;
}

/* Makes the output, which has the name that the exporter replaced, an initialiser. */
static void undo_identity(const struct import *import, const Onnx__NodeProto *node)
{
    const struct onnx_value *from = import_find(import, node->input[0]);
    struct onnx_value *to = import_find(import, node->output[0]);
    const struct graph_edit edit = { .graph = import->model->graph };
    if (from && from->initialiser && to && !edit_is_output(&edit, to->name)) become_copy(to, from);
}

/* -------------------------------------------------------------------------------------------------- new names ---- */

/* Makes the node read `name`, which has the numbers of `value`, instead. Takes the name. */
static tutti_status read_instead(
    struct import *import, const Onnx__NodeProto *node, size_t input, struct onnx_value *value, char *name)
{
    tutti_status status = TUTTI_OK;
    if (!name) return TUTTI_NO_MEMORY;
    free(node->input[input]);
    node->input[input] = name;
    struct onnx_value *other = import_find(import, name);
    if (!other) status = import_add_name(import, name, &other);
    if (status != TUTTI_OK) return status;
    if (!other->initialiser) become_copy(other, value);
    value->usage.nodes--;
    other->usage.nodes++;
    return TUTTI_OK;
}

/* "NAME#2", or a later number. */
static char *numbered(const struct import *import, const struct onnx_value *value)
{
    for (int i = 2;; i++) {
        char *name = memory_format("%s#%d", value->name, i);
        if (!name || !import_find(import, name)) return name;
        free(name);
    }
}

/* ------------------------------------------------------------------------------------------- names of a layer ---- */

/* The name that PyTorch's layers have for an input of the node. NULL: any name. */
static const char *role(const Onnx__NodeProto *node, size_t input)
{
    static const char *const norm[] = { NULL, "weight", "bias", "running_mean", "running_var" };
    const bool batch_norm = !strcmp(node->op_type, "BatchNormalization");
    const bool others = !strcmp(node->op_type, "LayerNormalization") || !strcmp(node->op_type, "Conv") ||
        !strcmp(node->op_type, "Gemm");
    return input < 5 && (batch_norm || (others && input < 3)) ? norm[input] : NULL;
}

/* The last `count` parts of a name, or NULL if it has fewer. */
static const char *tail(const char *name, int count)
{
    const char *at = name + strlen(name);
    while (count > 0 && at > name)
        if (*--at == '.' && --count == 0) return at + 1;
    return count == 1 && at == name ? name : NULL;
}

static struct signature_entry *find_in_layer(const struct separation *s, const char *part)
{
    char *name = *s->layer ? memory_format("%s.%s", s->layer, part) : memory_copy_text(part);
    struct signature_entry *entry = name ? signature_find(s->signature, name) : NULL;
    free(name);
    return entry;
}

/* The tensor of the node's layer with the same name within the layer: "b.norm.weight" for "a.norm.weight" in b. */
static struct signature_entry *same_in_layer(const struct separation *s, const char *own, size_t input)
{
    enum { MOST = 8 };
    const char *wanted = role(s->node, input);
    struct signature_entry *called = wanted ? find_in_layer(s, wanted) : NULL;
    if (called) return called;
    for (int i = 1; i <= MOST && tail(own, i); i++) {
        struct signature_entry *entry = find_in_layer(s, tail(own, i));
        if (entry) return entry;
    }
    return NULL;
}

/* Finds another tensor of the node's layer that the file does not have: preferably one after `own`, because the
 * exporter keeps the first of merged tensors; otherwise any, because it writes parameters of some layers later. */
static struct signature_entry *missing_in_layer(const struct separation *s, const struct signature_entry *own)
{
    struct signature_entry *found = NULL;
    bool found_after = false;
    for (size_t i = signature_layer(s->signature, s->layer); i < s->signature->count; i++) {
        struct signature_entry *entry = &s->signature->entries[i];
        if (!signature_is_of(entry->name, s->layer)) break;
        const char *rest = entry->name + strlen(s->layer) + (*s->layer != '\0');
        if (strchr(rest, '.') || entry->present || entry->value || !strcmp(rest, "num_batches_tracked")) continue;
        const bool after = entry->position > own->position;
        if (found && (found_after != after ? found_after : entry->position > found->position)) continue;
        found = entry;
        found_after = after;
    }
    return found;
}

/* ----------------------------------------------------------------------------------------------- torch.export ---- */

/* Initialisers keep the state dict's names, unless they have them in another form. */
static tutti_status read_entry(
    const struct separation *s, size_t input, struct onnx_value *value, struct signature_entry *entry)
{
    struct import *import = s->import;
    const bool named = !value->origin.folded_from;
    char *name = entry->value ? memory_copy_text(entry->value->name)
        : named               ? memory_copy_text(entry->name)
                              : numbered(import, value);
    const tutti_status status = read_instead(import, s->node, input, value, name);
    if (status != TUTTI_OK) return status;
    if (entry->value) return TUTTI_OK;
    struct onnx_value *made = import_find(import, s->node->input[input]);
    made->origin.kind = entry->parameter ? "PARAMETER" : "BUFFER";
    made->origin.folded_from = value->origin.folded_from;
    if (!named) made->origin.merged_name = value->origin.state_name;
    entry->value = made;
    if (!named && !(made->origin.state_name = memory_copy_text(entry->name))) return TUTTI_NO_MEMORY;
    import_note(import, "%s has the numbers of %s: in node '%s' it is a tensor of its own", entry->name, value->name,
        proto_text(s->node->name));
    return TUTTI_OK;
}

/* Separates a constant that was merged with a parameter, for example because both are all ones. */
static tutti_status read_constant(const struct separation *s, size_t input, struct onnx_value *value)
{
    const tutti_status status = read_instead(s->import, s->node, input, value, numbered(s->import, value));
    if (status == TUTTI_OK) import_find(s->import, s->node->input[input])->origin.kind = "CONSTANT_TENSOR";
    return status;
}

static tutti_status separate_by_state(const struct separation *s, size_t input, struct onnx_value *value)
{
    struct signature_entry *own =
        value->origin.state_name ? signature_find(s->signature, value->origin.state_name) : NULL;
    if (!own) return TUTTI_OK;
    bool uniform = false;
    const char *called = role(s->node, input);
    if (called && find_in_layer(s, called) == own) return TUTTI_OK; /* also where the layer is used again */
    struct signature_entry *other = same_in_layer(s, own->name, input);
    if (other == own || (other && other->present)) other = NULL;
    if (!other && !signature_is_of(own->name, s->layer)) {
        const tutti_status status = value_is_uniform(s->import, value, &uniform);
        if (status == TUTTI_OK && uniform) other = missing_in_layer(s, own);
        if (status != TUTTI_OK || !uniform) return status;
        return other ? read_entry(s, input, value, other) : read_constant(s, input, value);
    }
    const bool read_before = value->usage.reads > 0;
    if (!other) value->usage.reads++;
    if (!other && read_before) {
        const tutti_status status = value_is_uniform(s->import, value, &uniform);
        if (status != TUTTI_OK) return status;
        if (uniform) other = missing_in_layer(s, own);
    }
    if (!other) return TUTTI_OK;
    if (other->position < own->position) { /* tied, unless all elements are equal, as those of new layers */
        const tutti_status status = value_is_uniform(s->import, value, &uniform);
        if (status != TUTTI_OK || !uniform) return status;
    }
    return read_entry(s, input, value, other);
}

/* ------------------------------------------------------------------------------------------- no state dict ---- */

/* "a.0.fc" and "b.0.fc" */
static bool is_copy_of_layer(const char *layer, const char *name)
{
    const char *end = strrchr(name, '.');
    char *own = end ? memory_format("%.*s", (int)(end - name), name) : NULL;
    const bool copy = own && *layer && strcmp(own, layer) && !strcmp(tail(own, 1), tail(layer, 1));
    free(own);
    return copy;
}

/* The name of a parameter if the file tells layers, but not the state dict. */
static char *name_by_layer(const struct separation *s, const struct onnx_value *value)
{
    const char *last = strrchr(value->name, '.');
    char *name = last && *s->layer ? memory_format("%s%s", s->layer, last) : NULL;
    struct onnx_value *other = name ? import_find(s->import, name) : NULL;
    if (!other || other->apart) return name;
    free(name);
    return NULL;
}

static tutti_status separate_by_guess(const struct separation *s, size_t input, struct onnx_value *value)
{
    bool uniform = false;
    char *name = NULL;
    const bool own = *s->layer && signature_is_of(value->name, s->layer);
    if (value->usage.nodes + value->usage.reads < 2 || own) return TUTTI_OK;
    const tutti_status status = value_is_uniform(s->import, value, &uniform);
    if (status != TUTTI_OK || (!uniform && !is_copy_of_layer(s->layer, value->name))) return status;
    name = name_by_layer(s, value);
    if (!name) {
        value->usage.reads++;
        if (value->usage.reads == 1) return TUTTI_OK; /* the first node without a name keeps the initialiser */
        name = numbered(s->import, value);
    }
    if (name)
        import_note(s->import, "%s is read by several layers: in node '%s' it is a parameter of its own, %s",
            value->name, proto_text(s->node->name), name);
    return read_instead(s->import, s->node, input, value, name);
}

/* --------------------------------------------------------------------------------------------------- the file ---- */

static bool can_be_apart(const struct onnx_value *value)
{
    return value && value->initialiser && value->stored && onnx_type_is_float(value->type) && value->usage.nodes > 1 &&
        !value->apart;
}

/* Renames a tied tensor: the file has the last of its names, and PyTorch's parameter the first one, which is that of
 * the node's layer. */
static tutti_status name_tied(const struct separation *s, size_t input, struct onnx_value *value)
{
    if (!value || !value->initialiser || value->origin.folded_from || !value->origin.state_name) return TUTTI_OK;
    const struct signature_entry *first = same_in_layer(s, value->origin.state_name, input);
    const struct signature_entry *so_far =
        signature_find(s->signature, value->origin.label ? value->origin.label : value->origin.state_name);
    if (!first || !first->parameter || first->present || first->value || so_far->position <= first->position)
        return TUTTI_OK;
    free(value->origin.label);
    value->origin.label = memory_copy_text(first->name);
    return value->origin.label ? TUTTI_OK : TUTTI_NO_MEMORY;
}

static tutti_status take_node_apart(const struct separation *s)
{
    tutti_status status = TUTTI_OK;
    const bool state = s->signature->count && s->scoped;
    for (size_t i = 0; i < s->node->n_input && status == TUTTI_OK; i++) {
        struct onnx_value *value = *s->node->input[i] ? import_find(s->import, s->node->input[i]) : NULL;
        if (state) status = name_tied(s, i, value);
        if (status != TUTTI_OK) break;
        /* usage.nodes is 1, too, once the other nodes read other names. */
        if (!can_be_apart(value) && !(value && value->usage.reads)) continue;
        if (state)
            status = separate_by_state(s, i, value);
        else if (!s->import->paths)
            status = separate_by_guess(s, i, value);
    }
    return status;
}

/* Notes parameters of several nodes if the file does not tell whether they were merged. */
static void note_shared(const struct import *import)
{
    struct name_list list = { .length = 0 };
    if (import->paths || import->scopes) return;
    for (size_t i = 0; i < import->value_count; i++) {
        const struct onnx_value *value = &import->values[i];
        if (can_be_apart(value) && !value->usage.reads && value->stored->n_dims > 0) name_list_add(&list, value->name);
    }
    if (list.count)
        import_note(import,
            "warning: several nodes read %zu initialiser%s: the file does not tell tied parameters from equal ones "
            "that the exporter merged, so each is one parameter: %s%s",
            list.count, list.count == 1 ? "" : "s", list.names, name_list_end(&list));
}

static bool reads(const Onnx__NodeProto *node, const Onnx__NodeProto *from)
{
    for (size_t i = 0; i < node->n_input; i++)
        for (size_t k = 0; k < from->n_output; k++)
            if (*from->output[k] && !strcmp(node->input[i], from->output[k])) return true;
    return false;
}

/* Returns the node itself if it tells its scopes. Some nodes that the exporter made do not: then the first later node
 * that depends on its outputs and tells them. */
static const Onnx__NodeProto *find_scoped(const Onnx__GraphProto *graph, size_t n)
{
    enum { MOST_NODES = 64 };
    const Onnx__NodeProto *node = graph->node[n];
    const size_t end = graph->n_node - n > MOST_NODES ? n + MOST_NODES : graph->n_node;
    for (size_t i = n + 1; !import_scopes(node) && i < end; i++)
        if (reads(graph->node[i], node)) node = graph->node[i];
    return import_scopes(node) ? node : graph->node[n];
}

void import_find_paths(struct import *import)
{
    const Onnx__GraphProto *graph = import->model->graph;
    for (size_t i = 0; i < graph->n_node; i++) {
        import->paths |= proto_text(graph->node[i]->name)[0] == '/';
        import->scopes |= import_scopes(graph->node[i]) != NULL;
    }
}

tutti_status import_take_apart(struct import *import, const struct signature *signature)
{
    const Onnx__GraphProto *graph = import->model->graph;
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; i < graph->n_node && status == TUTTI_OK; i++) {
        char *layer = NULL;
        if (is_mark_of_merging(import, graph->node[i])) undo_identity(import, graph->node[i]);
        const Onnx__NodeProto *scoped = import->scopes ? find_scoped(graph, i) : graph->node[i];
        if (!import->paths) layer = import_layer(scoped);
        const struct separation s = { import, signature, graph->node[i], layer ? layer : "", import_scopes(scoped) };
        status = take_node_apart(&s);
        free(layer);
    }
    note_shared(import);
    return status;
}
