/* PyTorch's TorchScript exporter (dynamo=False) folds what torch.nn.MultiheadAttention does to its parameters: it
 * stores the rows of in_proj_weight and in_proj_bias for queries, keys and values apart, under names such as
 * onnx::MatMul_143. Here the parameters are joined again, and the file's initialisers become views of their rows. An
 * attention whose keys or values have other sizes has weights q_proj_weight, k_proj_weight and v_proj_weight, but
 * still one bias. */
#include "onnx/parameters/exported_names.h"
#include "onnx/parameters/views.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

/* FAR: largest number of nodes between the products of an attention. */
enum { MOST_PIECES = 3, FAR = 32 };

/* The projections of one attention: matrices [rows][features] as products read them, and their biases. */
struct projections {
    struct import *import;
    const char *call; /* "attention_1" for the second call of "attention" */
    int layer_length; /* length of its part that names the layer */
    struct onnx_value *weights[MOST_PIECES], *biases[MOST_PIECES];
    int count, bias_count;
    int64_t size, features; /* size: the attention's; features: of the matrices so far, side by side */
    bool alike;             /* all matrices have as many rows as the attention's size */
};

static char *name_in(const struct projections *p, const char *part)
{
    return memory_format("%.*s.%s", p->layer_length, p->call, part);
}

static struct onnx_value *made_up(const struct import *import, const char *name)
{
    struct onnx_value *value = import_find(import, name);
    const bool is = value && value->initialiser && value->stored && !value->view.of && !value->origin.renamed &&
        onnx_type_is_float(value->type) && import_is_nameless(import, value);
    return is ? value : NULL;
}

static struct onnx_value *initialiser_in(const struct projections *p, const char *part)
{
    char *name = name_in(p, part);
    struct onnx_value *value = name ? import_find(p->import, name) : NULL;
    free(name);
    return value && value->initialiser && value->stored ? value : NULL;
}

/* The bias that is added to the product, or NULL. */
static struct onnx_value *bias_of(const struct import *import, size_t product, int64_t features)
{
    const struct onnx_value *added = import_added_to(import, product);
    struct onnx_value *bias = added ? made_up(import, added->name) : NULL;
    return bias && bias->stored->n_dims == 1 && bias->stored->dims[0] == features ? bias : NULL;
}

/* Adds a matrix of the attention, by which node n multiplies. */
static bool add_projection(struct projections *p, size_t n, struct onnx_value *weight)
{
    const int64_t rows = weight->stored->n_dims == 2 ? weight->stored->dims[0] : 0;
    const int64_t features = rows > 0 ? weight->stored->dims[1] : 0;
    if (features <= 0 || features % p->size || p->features + features > 3 * p->size) return false;
    for (int i = 0; i < p->count; i++)
        if (p->weights[i] == weight) return false;
    struct onnx_value *bias = bias_of(p->import, n, features);
    for (int i = 0; i < p->bias_count; i++)
        if (p->biases[i] == bias) return false;
    p->weights[p->count++] = weight;
    if (bias) p->biases[p->bias_count++] = bias;
    p->alike &= rows == p->size;
    p->features += features;
    return true;
}

/* Finds the products of the layer from node n on, until they have three times the attention's features. */
static bool find_projections(struct projections *p, size_t n)
{
    const Onnx__GraphProto *graph = p->import->model->graph;
    const struct onnx_value *last = initialiser_in(p, "out_proj.weight");
    if (!last || last->stored->n_dims != 2 || last->stored->dims[0] <= 0) return false;
    p->size = last->stored->dims[0];
    p->alike = true;
    for (size_t i = n; i < graph->n_node && i <= n + FAR && p->count < MOST_PIECES && p->features < 3 * p->size; i++) {
        const Onnx__NodeProto *node = graph->node[i];
        if (strcmp(node->op_type, "MatMul") || node->n_input != 2) continue;
        char *layer = import_layer(node);
        const bool inside = layer && !strcmp(layer, p->call);
        free(layer);
        if (!inside) continue;
        struct onnx_value *weight = made_up(p->import, node->input[1]);
        if (!weight || !add_projection(p, i, weight)) return false;
    }
    return p->features == 3 * p->size && (p->alike ? p->count > 1 : p->count == MOST_PIECES) &&
        (p->bias_count == 0 || p->bias_count == p->count);
}

/* Copies a piece, transposed if `turned`, to the rows of `joined` from `first` on. */
static void copy_rows(struct array *joined, int64_t first, const struct array *piece, bool turned)
{
    const int64_t columns = joined->rank == 2 ? joined->sizes[1] : 1, rows = (int64_t)piece->count / columns;
    for (int64_t row = 0; row < rows; row++)
        for (int64_t column = 0; column < columns; column++)
            joined->floats[(first + row) * columns + column] =
                piece->floats[turned ? column * rows + row : row * columns + column];
}

static void become_view(struct onnx_value *piece, struct onnx_value *joined, int64_t first, int64_t rows)
{
    piece->view = (struct view) { .of = joined, .first = first, .rows = rows };
    view_transpose(&piece->view, rows, joined->array->rank == 2 ? joined->array->sizes[1] : 1);
}

/* Joins the pieces as rows of the layer's parameter `part`. At an attention's second call the parameter exists
 * already; if the pieces differ from it, they stay as they are. */
static tutti_status join(struct projections *p, struct onnx_value **pieces, const char *part, int rank)
{
    tutti_status status = TUTTI_OK;
    const int64_t sizes[] = { p->features, p->size };
    struct array *array = array_new(rank, sizes, true);
    char *name = name_in(p, part);
    int64_t first = 0;
    if (!array || !name) FAIL(TUTTI_NO_MEMORY, "there is no memory for the parameter %s of %s", part, p->call);
    for (int i = 0; i < p->count; i++) {
        TRY(import_load(p->import, pieces[i]));
        copy_rows(array, first, pieces[i]->array, rank == 2);
        first += (int64_t)pieces[i]->array->count / (rank == 2 ? p->size : 1);
    }
    struct onnx_value *joined = import_find(p->import, name);
    if (joined &&
        (!joined->initialiser || !joined->array || joined->array->count != array->count ||
            memcmp(joined->array->floats, array->floats, array->count * sizeof(float)) != 0))
        goto done;
    if (!joined) {
        TRY(import_add_name(p->import, name, &joined));
        joined->origin.state_name = name; /* import_free() frees it */
        joined->array = array;
        joined->initialiser = true;
        joined->type = ONNX_FLOAT;
        joined->usage.nodes = 1;
        name = NULL;
        array = NULL;
    }
    first = 0;
    for (int i = 0; i < p->count; i++) {
        const int64_t rows = (int64_t)pieces[i]->array->count / (rank == 2 ? p->size : 1);
        become_view(pieces[i], joined, first, rows);
        first += rows;
    }
    import_note(
        p->import, "%s and the next %d are %s, cut into %d", pieces[0]->name, p->count - 1, joined->name, p->count);
done:
    for (int i = 0; i < p->count; i++) {
        array_free(pieces[i]->array);
        pieces[i]->array = NULL;
    }
    array_free(array);
    free(name);
    return status;
}

static tutti_status join_projections(struct projections *p)
{
    static const char *const names[] = { "q_proj_weight", "k_proj_weight", "v_proj_weight" };
    tutti_status status = TUTTI_OK;
    if (p->alike) status = join(p, p->weights, "in_proj_weight", 2);
    for (int i = 0; !p->alike && i < p->count; i++) {
        struct onnx_value *weight = p->weights[i];
        weight->origin.renamed = name_in(p, names[i]);
        if (!weight->origin.renamed) return TUTTI_NO_MEMORY;
        view_transpose(&weight->view, weight->stored->dims[0], weight->stored->dims[1]);
    }
    if (status == TUTTI_OK && p->bias_count) status = join(p, p->biases, "in_proj_bias", 1);
    return status;
}

tutti_status import_join_cut(struct import *import)
{
    const Onnx__GraphProto *graph = import->model->graph;
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; import->paths && i < graph->n_node && status == TUTTI_OK; i++) {
        const Onnx__NodeProto *node = graph->node[i];
        if (strcmp(node->op_type, "MatMul") || node->n_input != 2 || !made_up(import, node->input[1])) continue;
        char *call = import_layer(node);
        if (!call) continue;
        struct projections p = {
            .import = import, .call = call, .layer_length = (int)import_length_of_first(import, call)
        };
        if (find_projections(&p, i)) status = join_projections(&p);
        free(call);
    }
    return status;
}
