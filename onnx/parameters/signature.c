#include "onnx/parameters/signature.h"

#include "base/memory.h"
#include "onnx/parameters/exported_names.h"

#include <stdlib.h>
#include <string.h>

static const char *metadata(Onnx__StringStringEntryProto *const *entries, size_t count, const char *key)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(proto_text(entries[i]->key), key)) return proto_text(entries[i]->value);
    return NULL;
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct signature_entry *)a)->name, ((const struct signature_entry *)b)->name);
}

struct signature_entry *signature_find(const struct signature *signature, const char *name)
{
    const struct signature_entry key = { .name = (char *)name };
    return signature->count ? bsearch(&key, signature->entries, signature->count, sizeof key, compare) : NULL;
}

bool signature_is_of(const char *name, const char *layer)
{
    const size_t length = strlen(layer);
    return length == 0 || (!strncmp(name, layer, length) && name[length] == '.');
}

size_t signature_layer(const struct signature *signature, const char *layer)
{
    size_t low = 0, high = *layer ? signature->count : 0;
    const size_t length = strlen(layer);
    while (low < high) { /* names in the layer begin with it and a point, and follow each other */
        const size_t middle = low + (high - low) / 2;
        const char *name = signature->entries[middle].name;
        const int order = strncmp(name, layer, length);
        if (order < 0 || (order == 0 && name[length] < '.'))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* A line such as "p_fc_weight: PARAMETER target='fc.weight'" or "b_fc_mean: BUFFER target='fc.mean' persistent=True".
 */
static tutti_status add_line(
    struct signature *signature, size_t *capacity, const char *line, size_t length, size_t position)
{
    static const char mark[] = " target='";
    char *copy = memory_format("%.*s", (int)length, line), *end = NULL;
    if (!copy) return TUTTI_NO_MEMORY;
    char *target = strstr(copy, mark);
    const bool parameter = strstr(copy, ": PARAMETER ") != NULL;
    if (target) end = strchr(target += sizeof mark - 1, '\'');
    if (end) *end = '\0';
    tutti_status status = TUTTI_OK;
    if (end && *target && proto_is_plain(target)) {
        status = memory_grow((void **)&signature->entries, capacity, signature->count + 1, sizeof *signature->entries);
        char *name = status == TUTTI_OK ? memory_copy_text(target) : NULL;
        if (status == TUTTI_OK && !name) status = TUTTI_NO_MEMORY;
        if (name)
            signature->entries[signature->count++] =
                (struct signature_entry) { .name = name, .position = position, .parameter = parameter };
    }
    free(copy);
    return status;
}

/* If two entries have one name, the first one stays. */
static void sort(struct signature *signature)
{
    size_t kept = 0;
    if (signature->count == 0) return;
    qsort(signature->entries, signature->count, sizeof *signature->entries, compare);
    for (size_t i = 1; i < signature->count; i++) {
        if (compare(&signature->entries[i], &signature->entries[kept]))
            signature->entries[++kept] = signature->entries[i];
        else
            free(signature->entries[i].name);
    }
    signature->count = kept + 1;
}

/* Marks the names in "['fc.weight', 'val_1']" as present. */
static tutti_status mark_sources(const struct signature *signature, const char *list)
{
    for (char *name; (name = list_next(&list)) != NULL; free(name)) {
        struct signature_entry *entry = signature_find(signature, name);
        if (entry) entry->present = true;
    }
    return list ? TUTTI_NO_MEMORY : TUTTI_OK;
}

static const char folded_from[] = "pkg.onnxscript.optimizer.folded_from";

const char *signature_folded_from(const Onnx__GraphProto *graph, const char *name)
{
    for (size_t i = 0; i < graph->n_value_info; i++) {
        const Onnx__ValueInfoProto *info = graph->value_info[i];
        if (!strcmp(proto_text(info->name), name))
            return metadata(info->metadata_props, info->n_metadata_props, folded_from);
    }
    return NULL;
}

/* Reads what the file states about its initialisers. */
static tutti_status read_initialisers(struct import *import, const struct signature *signature)
{
    const Onnx__GraphProto *graph = import->model->graph;
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; i < graph->n_value_info && status == TUTTI_OK; i++) {
        const Onnx__ValueInfoProto *info = graph->value_info[i];
        struct onnx_value *value = import_find(import, proto_text(info->name));
        if (!value || !value->initialiser) continue;
        value->origin.kind =
            metadata(info->metadata_props, info->n_metadata_props, "pkg.torch.export.graph_signature.InputSpec.kind");
        value->origin.folded_from = metadata(info->metadata_props, info->n_metadata_props, folded_from);
        if (value->origin.folded_from) status = mark_sources(signature, value->origin.folded_from);
    }
    for (size_t i = 0; i < graph->n_initializer; i++) {
        struct signature_entry *entry = signature_find(signature, graph->initializer[i]->name);
        if (entry) entry->present = true;
    }
    return status;
}

tutti_status signature_read_names(const Onnx__GraphProto *graph, struct signature *signature)
{
    const char *text =
        metadata(graph->metadata_props, graph->n_metadata_props, "pkg.torch.export.ExportedProgram.graph_signature");
    tutti_status status = TUTTI_OK;
    size_t capacity = 0, position = 0;
    for (const char *at = text; at && *at && status == TUTTI_OK;) {
        const size_t length = strcspn(at, "\n");
        status = add_line(signature, &capacity, at, length, position++);
        at += length + (at[length] == '\n');
    }
    sort(signature);
    return status;
}

tutti_status signature_read(struct import *import, struct signature *signature)
{
    const tutti_status status = signature_read_names(import->model->graph, signature);
    return status == TUTTI_OK ? read_initialisers(import, signature) : status;
}

/* The state dict's name of the tensor that an initialiser is, or was computed from. NULL: there is no such tensor or
 * more than one, or no memory. */
static char *state_name(const struct signature *signature, const struct onnx_value *value)
{
    char *found = NULL;
    if (!value->origin.folded_from)
        return signature_find(signature, value->name) ? memory_copy_text(value->name) : NULL;
    const char *at = value->origin.folded_from;
    size_t count = 0;
    for (char *name; (name = list_next(&at)) != NULL; free(name))
        if (signature_find(signature, name) && count++ == 0) found = memory_copy_text(name);
    if (count <= 1) return found;
    free(found);
    return NULL;
}

void signature_find_state_names(struct import *import, const struct signature *signature)
{
    for (size_t i = 0; i < import->value_count; i++) {
        struct onnx_value *value = &import->values[i];
        if (value->initialiser && signature->count) value->origin.state_name = state_name(signature, value);
    }
}

void signature_free(struct signature *signature)
{
    for (size_t i = 0; i < signature->count; i++) free(signature->entries[i].name);
    free(signature->entries);
}
