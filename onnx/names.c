/* PyTorch's exporters store a weight that a product reads transposed in this form, under a name such as val_7: it gets
 * the name and the shape of its layer's weight again, or is tied to the parameter of that name, of which it is a copy.
 * Layers are known by the names of biases, by the scopes in a node's metadata (dynamo=True), or by the path that is the
 * node's name (dynamo=False). */
#include "onnx/operators.h"
#include "onnx/views.h"

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

enum { NAMED = 6 };

void name_list_add(struct name_list *list, const char *name)
{
    const size_t length = strlen(name);
    if (list->count++ >= NAMED || length + 3 > sizeof list->names - list->length) return;
    if (list->length) list->names[list->length++] = ',', list->names[list->length++] = ' ';
    memcpy(list->names + list->length, name, length + 1);
    list->length += length;
}

const char *name_list_end(const struct name_list *list)
{
    return list->count > NAMED ? ", ..." : "";
}

/* "val_7", "onnx::MatMul_144", and of torch.export the names of operations, as "permute_1". */
bool import_is_nameless(const struct import *import, const struct value *value)
{
    static const char *const made[] = { "val", "_val", "t", "T", "mT", "numpy_T", "transpose", "permute", "unsqueeze",
        "squeeze", "view", "reshape", "_unsafe_view", "contiguous", "clone", "alias", "detach", "expand" };
    const char *name = value->name;
    if (value->origin.folded_from || !strncmp(name, "onnx::", 6)) return true;
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        const size_t length = strlen(made[i]);
        const char *rest = name + length;
        if (strncmp(name, made[i], length) || (*rest && *rest != '_')) continue;
        const bool number = *rest == '_' && rest[1] && strspn(rest + 1, "0123456789") == strlen(rest + 1);
        if (number ? i < 2 || import->scopes : import->scopes && !*rest) return true;
    }
    return false;
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

/* The scope before the last one, which is that of the operation: "block.fc1" in "['', 'block', 'block.fc1',
 * 'linear_2']". NULL: there is none. */
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

/* The part before the last "/": "block.fc1" for "/block/fc1/MatMul". In containers, parts repeat the one before them:
 * "/net/body/body.0/body.0.1/Gemm" is in "net.body.0.1". */
static char *layer_in_path(const char *path)
{
    const char *last = strrchr(path, '/');
    if (path[0] != '/' || last == path) return NULL;
    char *layer = memory_new((size_t)(last - path) + 1, 1);
    size_t end = 0, part = 0; /* of what is written, and where its last part begins */
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

static const char *scopes_of(const Onnx__NodeProto *node)
{
    for (size_t i = 0; i < node->n_metadata_props; i++) {
        const char *value = proto_text(node->metadata_props[i]->value);
        if (ends_with(proto_text(node->metadata_props[i]->key), "name_scopes"))
            return proto_is_plain(value) ? value : NULL;
    }
    return NULL;
}

struct value *import_added_to(const struct import *import, size_t n)
{
    enum { FAR = 8 };
    const Onnx__GraphProto *graph = import->model->graph;
    const char *product = graph->node[n]->output[0];
    for (size_t i = n + 1; i < graph->n_node && i <= n + FAR; i++) {
        const Onnx__NodeProto *node = graph->node[i];
        if (strcmp(node->op_type, "Add") || node->n_input != 2) continue;
        for (size_t k = 0; k < 2; k++) {
            struct value *other = import_find(import, node->input[1 - k]);
            if (!strcmp(node->input[k], product) && other && other->initialiser) return other;
        }
    }
    return NULL;
}

/* The name of the bias that is added to the product, if the file has it. */
static const char *bias_after(const struct import *import, size_t n)
{
    const struct value *bias = import_added_to(import, n);
    return bias && ends_with(bias->name, "bias") ? bias->name : NULL;
}

char *import_layer(const Onnx__NodeProto *node)
{
    const char *scopes = scopes_of(node);
    return scopes ? layer_in_scopes(scopes) : layer_in_path(proto_text(node->name));
}

bool import_has_scopes(const Onnx__NodeProto *node)
{
    return scopes_of(node) != NULL;
}

static bool is_layer(const struct import *import, const char *layer, size_t length)
{
    const Onnx__GraphProto *graph = import->model->graph;
    bool found = false;
    for (size_t i = 0; i < graph->n_node && !found; i++) {
        char *other = layer_in_path(proto_text(graph->node[i]->name));
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
static char *weight_name(const struct import *import, size_t n)
{
    const Onnx__NodeProto *node = import->model->graph->node[n];
    const char *bias = bias_after(import, n);
    if (bias) return memory_format("%.*sweight", (int)(strlen(bias) - strlen("bias")), bias);
    char *layer = import_layer(node);
    const int length =
        layer ? (int)(import_has_scopes(node) ? strlen(layer) : import_length_of_first(import, layer)) : 0;
    char *name = layer ? memory_format("%.*s.weight", length, layer) : NULL;
    free(layer);
    return name;
}

/* --------------------------------------------------------------------------------------------------- parameters ----
 */

/* Whether a product reads this matrix: then it is the transpose of the state dict's, as of a dense layer. */
static bool is_matrix_of_product(const Onnx__NodeProto *node, size_t input, const struct value *value)
{
    return input == 1 && !strcmp(node->op_type, "MatMul") && value->stored->n_dims == 2;
}

/* "gn.weight" of "/gn/Mul", "gn.bias" of "/gn/Add": an affine map of channels, whose axes of size 1 were added. */
static char *affine_name(const struct import *import, size_t n, const struct value *value)
{
    const Onnx__NodeProto *node = import->model->graph->node[n];
    const char *wanted = !strcmp(node->op_type, "Mul") ? "Add" : !strcmp(node->op_type, "Add") ? "Mul" : NULL;
    size_t wide = 0;
    bool pair = false;
    char *layer = wanted && import->paths ? layer_in_path(proto_text(node->name)) : NULL;
    for (size_t i = 0; i < value->stored->n_dims; i++) wide += value->stored->dims[i] != 1;
    const size_t first = n > 8 ? n - 8 : 0, last = import->model->graph->n_node;
    for (size_t i = first; layer && i < last && i <= n + 8 && !pair; i++) {
        const Onnx__NodeProto *other = import->model->graph->node[i];
        char *its = strcmp(other->op_type, wanted) ? NULL : layer_in_path(proto_text(other->name));
        for (size_t k = 0; its && !strcmp(its, layer) && k < other->n_input; k++) {
            const struct value *second = import_find(import, other->input[k]);
            pair |= second && second->initialiser && second->stored &&
                second->stored->n_dims == value->stored->n_dims &&
                !memcmp(second->stored->dims, value->stored->dims, value->stored->n_dims * sizeof *value->stored->dims);
        }
        free(its);
    }
    char *name = pair && wide == 1 ? memory_format("%.*s.%s", (int)import_length_of_first(import, layer), layer,
                                         *wanted == 'A' ? "weight" : "bias")
                                   : NULL;
    free(layer);
    return name;
}

/* The name of the parameter that a nameless initialiser was computed from, or NULL. */
static tutti_status name_of(const struct import *import, size_t n, size_t input, const struct value *value, char **name)
{
    const Onnx__NodeProto *node = import->model->graph->node[n];
    *name = NULL;
    if (value->origin.folded_from || value->origin.state_name) {
        if (value->origin.state_name && !(*name = memory_copy_text(value->origin.state_name))) return TUTTI_NO_MEMORY;
        return TUTTI_OK;
    }
    *name = is_matrix_of_product(node, input, value) ? weight_name(import, n) : affine_name(import, n, value);
    return TUTTI_OK;
}

static int compare_renamed(const void *a, const void *b)
{
    return strcmp(((const struct value *)a)->origin.renamed, ((const struct value *)b)->origin.renamed);
}

void import_transpose(struct view *view, int64_t rows, int64_t columns)
{
    for (int i = 0; i < ARRAY_MAX_RANK; i++) view->order[i] = i;
    if (rows == 1 || columns == 1) return;
    view->order[0] = 1;
    view->order[1] = 0;
}

/* If a scope has two products, as an attention layer, it does not tell which is which: both weights keep the file's
 * names. But equal weights are one parameter. */
static tutti_status rename_weight(
    struct import *import, const Onnx__NodeProto *node, size_t input, struct value *value, char **name)
{
    bool same = false;
    value->origin.renamed = *name;
    *name = NULL;
    const bool transposed = is_matrix_of_product(node, input, value);
    import_transpose(&value->view, transposed ? value->stored->dims[0] : 1, transposed ? value->stored->dims[1] : 1);
    struct value **found = tsearch(value, &import->renamed, compare_renamed);
    if (!found) return fail(TUTTI_NO_MEMORY, "there is no memory for the file's names");
    if (*found == value) return TUTTI_OK;
    const tutti_status status = view_find(import, value, *found, false, &same);
    if (same) {
        free(value->origin.renamed);
        value->origin.renamed = NULL;
    } else {
        value->origin.ambiguous = (*found)->origin.ambiguous = true;
    }
    return status;
}

static void finish_renaming(struct import *import)
{
    for (size_t i = 0; i < import->value_count; i++) {
        struct value *value = &import->values[i];
        if (value->origin.renamed && !value->origin.ambiguous)
            import_note(import, "%s is %s in another form", value->name, value->origin.renamed);
        if (!value->origin.ambiguous) continue;
        free(value->origin.renamed);
        value->origin.renamed = NULL;
    }
}

static bool can_be_named(const struct import *import, const struct value *value)
{
    if (!value || !value->initialiser || !value->stored || value->origin.renamed || value->view.of) return false;
    bool sized = value->stored->n_dims > 0;
    for (size_t i = 0; i < value->stored->n_dims; i++) sized &= value->stored->dims[i] > 0;
    return sized && onnx_type_is_float(value->type) && import_is_nameless(import, value);
}

static tutti_status restore(struct import *import, struct twins *twins, size_t n, size_t input, struct value *value)
{
    const Onnx__NodeProto *node = import->model->graph->node[n];
    char *name = NULL;
    bool same = false;
    tutti_status status = name_of(import, n, input, value, &name);
    struct value *other = name ? import_find(import, name) : NULL;
    if (other == value) other = NULL;
    if (status == TUTTI_OK && other && other->initialiser)
        status = view_find(import, value, other, is_matrix_of_product(node, input, value), &same);
    if (status == TUTTI_OK && !same && !value->origin.folded_from)
        status = twins_find(twins, value, is_matrix_of_product(node, input, value), name, &same);
    if (status == TUTTI_OK && !same && name && !other) status = rename_weight(import, node, input, value, &name);
    if (same && value->view.of)
        import_note(import, "%s is %s in another form: both are one parameter", value->name,
            value->view.of->origin.renamed ? value->view.of->origin.renamed : value->view.of->name);
    free(name);
    return status;
}

static void keep_value(void *value)
{
    (void)value; /* it is in import.values */
}

tutti_status import_restore_names(struct import *import)
{
    const Onnx__GraphProto *graph = import->model->graph;
    struct twins twins;
    tutti_status status = twins_new(import, &twins);
    for (size_t i = 0; i < graph->n_node && status == TUTTI_OK; i++)
        for (size_t k = 0; k < graph->node[i]->n_input && status == TUTTI_OK; k++) {
            struct value *value = import_find(import, graph->node[i]->input[k]);
            if (can_be_named(import, value)) status = restore(import, &twins, i, k, value);
        }
    twins_free(&twins);
    tdestroy(import->renamed, keep_value);
    import->renamed = NULL;
    finish_renaming(import);
    return status;
}

/* ---------------------------------------------------------------------------------------------------- what is gone
 * ---- */

/* PyTorch's newer exporter folds a batch normalisation into a convolution, and gives this the scope of the
 * normalisation. */
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
            "the exporter folded the batch normalisation after %zu convolution%s (the first: '%s') into their "
            "weights: "
            "they train without it; torch.onnx.export(..., optimize=False) keeps it",
            count, count == 1 ? "" : "s", first);
}
