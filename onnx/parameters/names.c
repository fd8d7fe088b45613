/* PyTorch's exporters store a weight that a product reads transposed in this form, under a name such as val_7: it gets
 * the name and the shape of its layer's weight again, or is tied to the parameter of that name, of which it is a copy.
 * So do a weight and a bias of channels (Mul, Add) with axes of size 1, and what the newer exporter computed by
 * movements. */
#include "onnx/parameters/exported_names.h"
#include "onnx/parameters/folded.h"
#include "onnx/parameters/views.h"

#include "base/memory.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

/* Whether a product reads this matrix: then it is the transpose of the state dict's, as of a dense layer. A Gemm reads
 * a transposed one only if the newer exporter folded the transposition into it. */
static bool is_matrix_of_product(const Onnx__NodeProto *node, size_t input, const struct onnx_value *value)
{
    if (input != 1 || value->stored->n_dims != 2) return false;
    if (!strcmp(node->op_type, "MatMul")) return true;
    const Onnx__AttributeProto *transposed = proto_attribute(node->attribute, node->n_attribute, "transB");
    return !strcmp(node->op_type, "Gemm") && value->origin.folded_from && !(transposed && transposed->i);
}

/* "gn.weight" of "/gn/Mul", "gn.bias" of "/gn/Add": an affine map of channels, whose axes of size 1 were added. */
static char *affine_name(const struct import *import, size_t n, const struct onnx_value *value)
{
    const Onnx__NodeProto *node = import->model->graph->node[n];
    const char *wanted = !strcmp(node->op_type, "Mul") ? "Add" : !strcmp(node->op_type, "Add") ? "Mul" : NULL;
    size_t wide = 0;
    bool pair = false;
    char *layer = wanted && import->paths ? import_layer_in_path(proto_text(node->name)) : NULL;
    for (size_t i = 0; i < value->stored->n_dims; i++) wide += value->stored->dims[i] != 1;
    const size_t first = n > 8 ? n - 8 : 0, last = import->model->graph->n_node;
    for (size_t i = first; layer && i < last && i <= n + 8 && !pair; i++) {
        const Onnx__NodeProto *other = import->model->graph->node[i];
        char *its = strcmp(other->op_type, wanted) ? NULL : import_layer_in_path(proto_text(other->name));
        for (size_t k = 0; its && !strcmp(its, layer) && k < other->n_input; k++) {
            const struct onnx_value *second = import_find(import, other->input[k]);
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
static tutti_status name_of(
    const struct import *import, size_t n, size_t input, const struct onnx_value *value, char **name)
{
    const Onnx__NodeProto *node = import->model->graph->node[n];
    const bool folded = value->origin.folded_from != NULL;
    *name = NULL;
    if (folded && !folded_order_is_known(value, is_matrix_of_product(node, input, value))) return TUTTI_OK;
    if (folded || value->origin.state_name) {
        if (value->origin.state_name && !(*name = memory_copy_text(value->origin.state_name))) return TUTTI_NO_MEMORY;
        return TUTTI_OK;
    }
    *name = is_matrix_of_product(node, input, value) ? import_weight_name(import, n) : affine_name(import, n, value);
    return TUTTI_OK;
}

static int compare_renamed(const void *a, const void *b)
{
    return strcmp(((const struct onnx_value *)a)->origin.renamed, ((const struct onnx_value *)b)->origin.renamed);
}

/* If a scope has two products, as an attention layer, it does not tell which is which: both weights keep the file's
 * names. But equal weights are one parameter. */
static tutti_status rename_weight(
    struct import *import, const Onnx__NodeProto *node, size_t input, struct onnx_value *value, char **name)
{
    bool same = false;
    value->origin.renamed = *name;
    *name = NULL;
    const bool transposed = is_matrix_of_product(node, input, value);
    view_transpose(&value->view, transposed ? value->stored->dims[0] : 1, transposed ? value->stored->dims[1] : 1);
    struct onnx_value **found = tsearch(value, &import->renamed, compare_renamed);
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
        struct onnx_value *value = &import->values[i];
        if (value->origin.renamed && !value->origin.ambiguous)
            import_note(import, "%s is %s in another form", value->name, value->origin.renamed);
        if (!value->origin.ambiguous) continue;
        free(value->origin.renamed);
        value->origin.renamed = NULL;
    }
}

static bool can_be_named(const struct import *import, const struct onnx_value *value)
{
    if (!value || !value->initialiser || !value->stored || value->origin.renamed || value->view.of) return false;
    bool sized = value->stored->n_dims > 0;
    for (size_t i = 0; i < value->stored->n_dims; i++) sized &= value->stored->dims[i] > 0;
    return sized && onnx_type_is_float(value->type) && import_is_nameless(import, value);
}

static tutti_status restore(
    struct import *import, struct twins *twins, size_t n, size_t input, struct onnx_value *value)
{
    const Onnx__NodeProto *node = import->model->graph->node[n];
    char *name = NULL;
    bool same = false;
    tutti_status status = name_of(import, n, input, value, &name);
    struct onnx_value *other = name ? import_find(import, name) : NULL;
    if (other == value) other = NULL;
    const bool is_matrix = is_matrix_of_product(node, input, value);
    if (status == TUTTI_OK && other && other->initialiser) status = view_find(import, value, other, is_matrix, &same);
    if (status == TUTTI_OK && !same && value->origin.folded_from) status = folded_tie(import, value, is_matrix, &same);
    if (status == TUTTI_OK && !same && !value->origin.folded_from)
        status = twins_find(twins, value, is_matrix, name, &same);
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
            struct onnx_value *value = import_find(import, graph->node[i]->input[k]);
            if (can_be_named(import, value)) status = restore(import, &twins, i, k, value);
        }
    twins_free(&twins);
    tdestroy(import->renamed, keep_value);
    import->renamed = NULL;
    finish_renaming(import);
    return status;
}
