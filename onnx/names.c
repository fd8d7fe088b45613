/* What PyTorch's exporters did to parameters, and how it is undone. A weight that a product reads transposed is stored
 * so, under a name such as val_7: it gets the name and the shape of its layer's weight again, or is tied to the
 * parameter of that name, of which it is a copy. Layers are known by the names of biases, by the scopes in a node's
 * metadata (dynamo=True), or by the path that is the node's name (dynamo=False). */
#include "onnx/operators.h"

#include "base/memory.h"
#include "base/numbers.h"

#include <search.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void import_note(const struct import *import, const char *format, ...)
{
    char line[512];
    va_list arguments;
    if (!import->options->note) return;
    va_start(arguments, format);
    number_print_list(line, sizeof line, format, arguments);
    va_end(arguments);
    import->options->note(import->options->user, line);
}

/* "val_7", "onnx::MatMul_144": names that an exporter made. */
static bool is_nameless(const char *name)
{
    return !strncmp(name, "val_", 4) || !strncmp(name, "onnx::", 6) || !strncmp(name, "_val_", 5);
}

static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), tail = strlen(end);
    return length > tail && !strcmp(text + length - tail, end);
}

/* ------------------------------------------------------------------------------------------------ names of layers ----
 */

/* A scope inside of another one: "block.fc1" of "block" and "fc1", or of "block" and "block.fc1". */
static char *inner_scope(const char *outer, const char *scope, size_t length)
{
    const size_t prefix = strlen(outer);
    const bool whole = !prefix || (length > prefix && !strncmp(scope, outer, prefix) && scope[prefix] == '.');
    return whole ? memory_format("%.*s", (int)length, scope) : memory_format("%s.%.*s", outer, (int)length, scope);
}

/* Of "['', 'block', 'block.fc1', 'linear_2']" the scope before the last one: "block.fc1". The last one is of the
 * operation. NULL: there is none. */
static char *layer_in_scopes(const char *scopes)
{
    char *joined = memory_copy_text("");
    char *before = NULL;
    for (const char *at = strchr(scopes, '\''); at && joined;) {
        const char *end = strchr(at + 1, '\'');
        if (!end) break;
        char *longer = inner_scope(joined, at + 1, (size_t)(end - at - 1));
        free(before);
        before = joined;
        joined = longer;
        at = strchr(end + 1, '\'');
    }
    free(joined);
    if (before && *before) return before;
    free(before);
    return NULL;
}

/* Of "/block/fc1/MatMul" the part before the last "/", joined by points. */
static char *layer_in_path(const char *path)
{
    const char *last = strrchr(path, '/');
    if (path[0] != '/' || last == path) return NULL;
    char *layer = memory_format("%.*s", (int)(last - path - 1), path + 1);
    for (char *at = layer; at && *at; at++)
        if (*at == '/') *at = '.';
    return layer;
}

static const char *scopes_of(const Onnx__NodeProto *node)
{
    for (size_t i = 0; i < node->n_metadata_props; i++) {
        const char *value = proto_text(node->metadata_props[i]->value);
        if (ends_with(proto_text(node->metadata_props[i]->key), "name_scopes"))
            return proto_is_plain(value) ? value : NULL;
    }
    return NULL;
}

/* The bias that is added to the product, if one of the next nodes does that. */
static const char *bias_behind(const struct import *import, size_t n)
{
    enum { FAR = 8 };
    const Onnx__GraphProto *graph = import->model->graph;
    const char *product = graph->node[n]->output[0];
    for (size_t i = n + 1; i < graph->n_node && i <= n + FAR; i++) {
        const Onnx__NodeProto *node = graph->node[i];
        if (strcmp(node->op_type, "Add") || node->n_input != 2) continue;
        for (size_t k = 0; k < 2; k++) {
            const struct value *other = import_find(import, node->input[1 - k]);
            if (strcmp(node->input[k], product) || !other || !other->initialiser) continue;
            return ends_with(other->name, "bias") ? other->name : NULL;
        }
    }
    return NULL;
}

/* "fc1.weight" for the product that node n is. NULL: not known, or no memory. */
static char *weight_name(const struct import *import, size_t n)
{
    const Onnx__NodeProto *node = import->model->graph->node[n];
    const char *bias = bias_behind(import, n), *scopes = scopes_of(node);
    if (bias) return memory_format("%.*sweight", (int)(strlen(bias) - strlen("bias")), bias);
    char *layer = scopes ? layer_in_scopes(scopes) : layer_in_path(proto_text(node->name));
    char *name = layer ? memory_format("%s.weight", layer) : NULL;
    free(layer);
    return name;
}

/* --------------------------------------------------------------------------------------------------- parameters ----
 */

/* Whether the second input of this product is a matrix under a name that an exporter made. */
static struct value *nameless_weight(const struct import *import, const Onnx__NodeProto *node)
{
    struct value *value = NULL;
    if (strcmp(node->op_type, "MatMul") || node->n_input != 2) return NULL;
    value = import_find(import, node->input[1]);
    const bool matrix = value && value->initialiser && value->stored && value->stored->n_dims == 2 &&
        onnx_type_is_float(value->type) && value->stored->dims[0] > 0 && value->stored->dims[1] > 0;
    return matrix && is_nameless(value->name) && !value->renamed && !value->tied ? value : NULL;
}

static bool is_transposed(const struct array *a, const struct array *b)
{
    const int64_t rows = a->sizes[0], columns = a->sizes[1];
    if (b->rank != 2 || b->sizes[0] != columns || b->sizes[1] != rows || !a->floats || !b->floats) return false;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            if (a->floats[i * columns + j] != b->floats[j * rows + i]) return false;
    return true;
}

static int compare_renamed(const void *a, const void *b)
{
    return strcmp(((const struct value *)a)->renamed, ((const struct value *)b)->renamed);
}

/* A scope with two products, as an attention layer, says of neither what it is: both keep the file's names. */
static tutti_status rename_weight(struct import *import, struct value *value, char **name)
{
    value->renamed = *name;
    *name = NULL;
    struct value **found = tsearch(value, &import->renamed, compare_renamed);
    if (!found) return fail(TUTTI_NO_MEMORY, "there is no memory for the file's names");
    if (*found != value) value->ambiguous = (*found)->ambiguous = true;
    return TUTTI_OK;
}

static void finish_renaming(struct import *import)
{
    for (size_t i = 0; i < import->value_count; i++) {
        struct value *value = &import->values[i];
        if (value->renamed && !value->ambiguous)
            import_note(import, "%s is %s, transposed", value->name, value->renamed);
        if (!value->ambiguous) continue;
        free(value->renamed);
        value->renamed = NULL;
    }
}

static tutti_status tie(struct import *import, struct value *value, struct value *other)
{
    tutti_status status = TUTTI_OK;
    if (!other->initialiser || !other->stored || other->stored->n_dims != 2 || !onnx_type_is_float(other->type))
        return status;
    status = import_load(import, value);
    if (status == TUTTI_OK) status = import_load(import, other);
    if (status != TUTTI_OK || !is_transposed(value->array, other->array)) return status;
    value->tied = other;
    import_note(import, "%s is a transposed copy of %s: both are one parameter", value->name, other->name);
    return TUTTI_OK;
}

static void keep_value(void *value)
{
    (void)value; /* it is in import.values */
}

tutti_status import_restore_names(struct import *import)
{
    tutti_status status = TUTTI_OK;
    const Onnx__GraphProto *graph = import->model->graph;
    for (size_t i = 0; i < graph->n_node && status == TUTTI_OK; i++) {
        struct value *value = nameless_weight(import, graph->node[i]);
        char *name = value ? weight_name(import, i) : NULL;
        if (!name) continue;
        struct value *other = import_find(import, name);
        status = other ? tie(import, value, other) : rename_weight(import, value, &name);
        free(name);
    }
    tdestroy(import->renamed, keep_value);
    import->renamed = NULL;
    finish_renaming(import);
    return status;
}

/* ------------------------------------------------------------------------------------------- merged initialisers ----
 */

static int compare_parts(const void *a, const void *b)
{
    return strcmp(((const struct part *)a)->name, ((const struct part *)b)->name);
}

static void free_part(void *part)
{
    free(((struct part *)part)->name);
    free(part);
}

void import_free_parts(struct import *import)
{
    tdestroy(import->parts, free_part);
}

/* Whether a parameter is of this layer, or of the one that this is a second call of, as attention_1. */
static bool is_of_layer(const char *name, const char *layer)
{
    size_t length = strlen(layer);
    if (!strncmp(name, layer, length) && name[length] == '.') return true;
    while (length > 0 && layer[length - 1] >= '0' && layer[length - 1] <= '9') length--;
    return length > 1 && layer[length - 1] == '_' && !strncmp(name, layer, length - 1) && name[length - 1] == '.';
}

/* For norm1.weight in the layer norm2: "norm2.weight". In norm1 it is the initialiser's own name. The output of an
 * Identity has the name that the exporter replaced. A layer that the file does not tell, or a name that stands for
 * something else, gives NAME, NAME#2 and so on. */
static char *part_name(const struct import *import, const Onnx__NodeProto *node, const struct value *value)
{
    const char *scopes = scopes_of(node), *last = strrchr(value->name, '.');
    if (value->uses < 2) return memory_copy_text(value->name);
    if (!strcmp(node->op_type, "Identity")) return memory_copy_text(node->output[0]);
    char *layer = scopes ? layer_in_scopes(scopes) : layer_in_path(proto_text(node->name));
    const bool own = layer && is_of_layer(value->name, layer);
    char *name = own ? memory_copy_text(value->name) : layer && last ? memory_format("%s%s", layer, last) : NULL;
    const bool known = layer != NULL && last != NULL;
    free(layer);
    if (own || (name && !import_find(import, name))) return name;
    free(name);
    if (known && !name) return NULL;
    return value->parameters ? memory_format("%s#%d", value->name, value->parameters + 1)
                             : memory_copy_text(value->name);
}

tutti_status import_part(struct import *import, const Onnx__NodeProto *node, struct value *value, struct part **part)
{
    struct part *made = memory_new(1, sizeof *made);
    if (!made) return TUTTI_NO_MEMORY;
    *made = (struct part) { .name = part_name(import, node, value), .tensor = { -1 } };
    struct part **found = made->name ? tsearch(made, &import->parts, compare_parts) : NULL;
    if (!found || *found != made) free_part(made);
    if (!found) return fail(TUTTI_NO_MEMORY, "there is no memory for the file's names");
    *part = *found;
    if ((*found)->tensor.id >= 0) return TUTTI_OK;
    value->parameters++;
    if (strcmp((*found)->name, value->name))
        import_note(import,
            "%s has equal elements and is of several layers: in node '%s' it is a parameter of its own, %s",
            value->name, proto_text(node->name), (*found)->name);
    return TUTTI_OK;
}

/* ---------------------------------------------------------------------------------------------------- what is gone
 * ---- */

/* PyTorch's newer exporter gives a convolution with which it joined a batch normalisation the scope of this. */
void import_note_folded(const struct import *import)
{
    const Onnx__GraphProto *graph = import->model->graph;
    size_t count = 0;
    const char *first = NULL;
    for (size_t i = 0; i < graph->n_node; i++) {
        const char *scopes = scopes_of(graph->node[i]);
        if (!scopes || strcmp(graph->node[i]->op_type, "Conv") || !strstr(scopes, "batch_norm")) continue;
        if (count++ == 0) first = proto_text(graph->node[i]->name);
    }
    if (count)
        import_note(import,
            "the exporter folded the batch normalisation behind %zu convolution%s (the first: '%s') into their "
            "weights: "
            "they train without it; torch.onnx.export(..., optimize=False) keeps it",
            count, count == 1 ? "" : "s", first);
}
