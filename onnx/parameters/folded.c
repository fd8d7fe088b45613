#include "onnx/parameters/folded.h"

#include "base/memory.h"
#include "onnx/parameters/exported_names.h"
#include "onnx/parameters/views.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------------ names ---- */

static bool is_wide(const struct onnx_value *value)
{
    int wide = 0;
    for (size_t i = 0; i < value->stored->n_dims; i++) wide += value->stored->dims[i] != 1;
    return wide > 1;
}

bool folded_order_is_known(const struct onnx_value *value, bool read_by_product)
{
    const unsigned last = operation_of(value->name);
    const bool vector = !is_wide(value);
    bool only_shapes = true, alone = true;
    const char *own = value->origin.merged_name ? value->origin.merged_name : value->origin.state_name;
    const char *at = value->origin.folded_from;
    for (char *name; (name = list_next(&at)) != NULL; free(name)) {
        if (own && !strcmp(name, own)) continue;
        alone = false;
        only_shapes &= (operation_of(name) & (RESHAPES | CREATES | (vector ? TRANSPOSES : 0))) != 0 ||
            !strncmp(name, "val_", strlen("val_"));
    }
    /* The transposed weight of a product, computed from the weight alone. */
    if (read_by_product && (last & TRANSPOSES) && alone) return true;
    /* All operations changed only the shape. */
    if ((last & RESHAPES) && only_shapes) return true;
    /* Transposing a vector changes only its shape, too. */
    return vector && (last & TRANSPOSES) && only_shapes;
}

/* ------------------------------------------------------------------------------------------------------- ties ---- */

/* A value that was merged with another one (merged.c) has the list of that one, but is of another parameter. */
static bool is_merged(const struct onnx_value *value)
{
    return value->origin.merged_name != NULL;
}

static bool has_source(const struct onnx_value *value, const char *source)
{
    bool found = false;
    if (is_merged(value)) return !strcmp(value->origin.state_name, source);
    const char *at = value->origin.folded_from;
    for (char *name; (name = list_next(&at)) != NULL; free(name)) found |= !strcmp(name, source);
    return found;
}

/* Makes the initialiser a view of an earlier one that was computed from the same parameter, too. */
static tutti_status tie_to_earlier(
    const struct import *import, struct onnx_value *value, const char *parameter, bool *same)
{
    tutti_status status = TUTTI_OK;
    for (struct onnx_value *earlier = import->values; earlier < value && !*same && status == TUTTI_OK; earlier++) {
        const struct origin *origin = &earlier->origin;
        if (!earlier->initialiser || !origin->folded_from || earlier->view.of || origin->renamed) continue;
        if (stored_elements(earlier) != stored_elements(value) || !has_source(earlier, parameter)) continue;
        status = view_find(import, value, earlier, false, same);
    }
    return status;
}

static tutti_status tie_to_source(
    const struct import *import, struct onnx_value *value, const char *source, bool transposed, bool *same)
{
    struct onnx_value *parameter = import_find(import, source);
    const bool is_there = parameter && parameter != value && parameter->initialiser && parameter->origin.kind &&
        !strcmp(parameter->origin.kind, "PARAMETER");
    if (!is_there) return tie_to_earlier(import, value, source, same);
    if (stored_elements(parameter) != stored_elements(value)) return TUTTI_OK;
    return view_find(import, value, parameter, transposed, same);
}

tutti_status folded_tie(const struct import *import, struct onnx_value *value, bool transposed, bool *same)
{
    tutti_status status = TUTTI_OK;
    const char *at = value->origin.folded_from;
    for (char *name; status == TUTTI_OK && !*same && (name = list_next(&at)) != NULL; free(name))
        if (!value->origin.state_name || !strcmp(name, value->origin.state_name))
            status = tie_to_source(import, value, name, transposed, same);
    return status;
}

/* ----------------------------------------------------------------------------------------------------- copies ---- */

static int compare_floats(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Whether a number fits float16 or bfloat16, whose numbers are short enough to be equal by chance. */
static bool is_half(float number)
{
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return (bits & 0x1fff) == 0;
}

/* Whether chance does not explain this number of copies. Both numbers leave out zeros. At least a quarter of all
 * elements must be copies, as in a matrix of relative positions; if all fit float16 or bfloat16, every one. */
static bool enough_copies(size_t copies, size_t all, bool halves)
{
    return copies > 0 && copies >= (halves ? all : all / 4 + (all % 4 > 0));
}

/* Whether there are copies among the elements. Equal elements that were looked up by indices are copies. Others may be
 * equal by chance; if all are equal, as those of norms that were never trained, they are copies only if an operation
 * repeated elements (`repeated`). */
static bool repeats(float *sorted, size_t count, bool looked_up, bool repeated)
{
    size_t different = 0, single = 0, all = 0;
    bool halves = true;
    qsort(sorted, count, sizeof *sorted, compare_floats);
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && sorted[end] == sorted[i];) end++;
        if (sorted[i] == 0) continue;
        all += end - i;
        different++;
        single += end - i == 1;
        halves &= is_half(sorted[i]);
    }
    if (looked_up && count > 1) return different < all || all + 1 < count;
    if (repeated && count > 1 && (all == 0 || (different == 1 && all == count))) return true;
    return different > 1 && enough_copies(halves ? all - single : all - different, all, halves);
}

/* Frees elements whose order is lost. */
static void drop_array(struct onnx_value *value)
{
    array_free(value->array);
    value->array = NULL;
}

/* Whether an operation that does this took part. */
static bool is_made_by(const struct onnx_value *value, unsigned does)
{
    bool found = (operation_of(value->name) & does) != 0;
    const char *at = value->origin.folded_from;
    for (char *name; (name = list_next(&at)) != NULL; free(name)) found |= (operation_of(name) & does) != 0;
    return found;
}

/* Finds whether an initialiser that the exporter computed from a parameter has elements several times, as a table's
 * rows in an order. Copies that train apart would be another network, so the initialiser does not train then. */
static tutti_status find_copies(const struct import *import, struct onnx_value *value, bool *copies)
{
    const tutti_status status = import_load(import, value);
    if (status != TUTTI_OK || !value->array || !value->array->floats) return status;
    *copies =
        repeats(value->array->floats, value->array->count, is_made_by(value, LOOKS_UP), is_made_by(value, REPEATS));
    drop_array(value);
    return TUTTI_OK;
}

/* Counts the elements other than 0 that both have. */
static size_t count_common(const float *a, size_t a_count, const float *b, size_t b_count, bool *halves)
{
    size_t common = 0;
    for (size_t i = 0, k = 0; i < a_count && k < b_count;) {
        common += a[i] == b[k] && a[i] != 0;
        *halves &= is_half(a[i]) && is_half(b[k]);
        const bool first = a[i] <= b[k], second = b[k] <= a[i];
        i += first;
        k += second;
    }
    return common;
}

static size_t count_nonzero(const struct array *array)
{
    size_t count = 0;
    for (size_t i = 0; i < array->count; i++) count += array->floats[i] != 0;
    return count;
}

/* Whether two initialisers hold the same elements of a parameter. */
static tutti_status overlap(const struct import *import, struct onnx_value *a, struct onnx_value *b, bool *same)
{
    bool halves = true;
    tutti_status status = import_load(import, a);
    if (status == TUTTI_OK) status = import_load(import, b);
    if (status == TUTTI_OK && a->array && b->array && a->array->floats && b->array->floats) {
        const size_t a_count = count_nonzero(a->array), b_count = count_nonzero(b->array);
        qsort(a->array->floats, a->array->count, sizeof(float), compare_floats);
        qsort(b->array->floats, b->array->count, sizeof(float), compare_floats);
        const size_t common =
            count_common(a->array->floats, a->array->count, b->array->floats, b->array->count, &halves);
        *same = enough_copies(common, a_count < b_count ? a_count : b_count, halves);
    }
    drop_array(a);
    drop_array(b);
    return status;
}

/* ------------------------------------------------------------------------------------------------- what trains ---- */

static bool is_parameter(const struct signature *signature, const char *name)
{
    const struct signature_entry *entry = signature_find(signature, name);
    return entry && entry->parameter;
}

bool folded_has_parameter(const struct signature *signature, const struct onnx_value *value)
{
    bool found = false;
    const char *at = value->origin.folded_from;
    for (char *name; (name = list_next(&at)) != NULL; free(name)) found |= is_parameter(signature, name);
    return found;
}

/* Whether an operation that does more than move elements took part. Names that are not of operations are those of
 * parameters, and of inputs whose sizes alone were needed. */
static bool is_computed(const struct import *import, const struct signature *signature, const struct onnx_value *value)
{
    bool computed = false;
    char *name = memory_copy_text(value->name);
    for (const char *at = value->origin.folded_from; name; name = list_next(&at)) {
        const struct onnx_value *known = import_find(import, name);
        const bool moved = operation_of(name) || (known && known != value && !known->initialiser);
        computed |= !moved && !signature_find(signature, name);
        free(name);
    }
    return computed;
}

/* Finds another initialiser with elements of the parameter: its own, or one computed from it. NULL: there is none. */
static tutti_status find_other(struct import *import, const struct signature *signature, struct onnx_value *value,
    const char *parameter, const struct onnx_value **other)
{
    const struct onnx_value *own = import_find(import, parameter);
    tutti_status status = TUTTI_OK;
    if (own && own != value && own->initialiser && own->usage.nodes) return *other = own, TUTTI_OK;
    for (size_t i = 0; i < import->value_count && status == TUTTI_OK && !*other; i++) {
        struct onnx_value *of = &import->values[i];
        bool same = false;
        if (of == value || !of->initialiser || !of->stored || !of->origin.folded_from || !of->usage.nodes) continue;
        if (of->view.of || !onnx_type_is_float(of->type) || !has_source(of, parameter)) continue;
        same = is_computed(import, signature, value) || is_computed(import, signature, of);
        if (!same) status = overlap(import, value, of, &same);
        if (same) *other = of;
    }
    return status;
}

/* What becomes of an initialiser that was computed from parameters. An initialiser of one number trains
 * only if it is RESTORED (find_numbers() in trained.c). */
struct decision {
    enum {
        UNUSED,     /* no node reads it */
        RESTORED,   /* it trains as the parameter `renamed` */
        REORDERED,  /* it trains under the file's name: the order of its elements is not known */
        COMPUTED,   /* it trains in place of the parameters */
        HAS_COPIES, /* constant: it has elements of its parameter several times */
        SHARES      /* constant: another initialiser has elements of a parameter, too */
    } outcome;
    struct name_list parameters;
    const struct onnx_value *other; /* of SHARES; else NULL */
};

static tutti_status decide(
    struct import *import, const struct signature *signature, struct onnx_value *value, struct decision *decision)
{
    bool copies = false;
    tutti_status status = value->origin.state_name ? find_copies(import, value, &copies) : TUTTI_OK;
    decision->outcome = copies ? HAS_COPIES : UNUSED;
    if (status != TUTTI_OK || copies || !value->usage.nodes) return status;
    const char *at = value->origin.folded_from;
    for (char *name; status == TUTTI_OK && (name = list_next(&at)) != NULL; free(name)) {
        if (!is_parameter(signature, name)) continue;
        const char *parameter = is_merged(value) ? value->origin.state_name : name;
        name_list_add(&decision->parameters, parameter);
        if (!decision->other) status = find_other(import, signature, value, parameter, &decision->other);
    }
    if (decision->other)
        decision->outcome = SHARES;
    else if (is_computed(import, signature, value))
        decision->outcome = COMPUTED;
    else
        decision->outcome = value->origin.renamed ? RESTORED : REORDERED;
    return status;
}

static void note(const struct import *import, const struct onnx_value *value, const struct decision *decision)
{
    const char *name = value->name, *names = decision->parameters.names, *end = name_list_end(&decision->parameters);
    const bool one = decision->parameters.count == 1;
    if (decision->outcome == HAS_COPIES)
        import_note(import,
            "warning: the exporter folded the parameter %s into %s, which has elements several times: it does not "
            "train; torch.onnx.export(..., optimize=False) keeps the parameter",
            value->origin.state_name, name);
    else if (decision->outcome == SHARES)
        import_note(import,
            "warning: the exporter computed %s from %s%s, of which %s has elements, too: %s does not train; "
            "torch.onnx.export(..., optimize=False) keeps the parameters",
            name, names, end, decision->other->name, name);
    else if ((decision->outcome == COMPUTED || decision->outcome == REORDERED) && stored_elements(value) == 1)
        import_note(import,
            "warning: the exporter computed %s from %s%s: it is one number, and does not train; "
            "torch.onnx.export(..., optimize=False) keeps %s",
            name, names, end, one ? "the parameter" : "the parameters");
    else if (decision->outcome == COMPUTED)
        import_note(import,
            "warning: the exporter computed %s from %s%s: %s trains in %s place; "
            "torch.onnx.export(..., optimize=False) keeps %s",
            name, names, end, name, one ? "its" : "their", one ? "it" : "them");
    else if (decision->outcome == REORDERED)
        import_note(import, "%s holds %s%s in an order that the file does not tell: it keeps the file's name", name,
            names, end);
}

tutti_status folded_check(struct import *import, const struct signature *signature, struct onnx_value *value)
{
    struct decision decision = { .outcome = UNUSED };
    const tutti_status status = decide(import, signature, value, &decision);
    if (status != TUTTI_OK) return status;
    value->constant = value->noted = decision.outcome == HAS_COPIES || decision.outcome == SHARES;
    note(import, value, &decision);
    return TUTTI_OK;
}

/* --------------------------------------------------------------------------------------------- normalisations ---- */

/* PyTorch's newer exporter folds a batch normalisation into a convolution, and gives this the scope of the
 * normalisation. */
void folded_note_norms(const struct import *import)
{
    const Onnx__GraphProto *graph = import->model->graph;
    size_t count = 0;
    const char *first = NULL;
    for (size_t i = 0; i < graph->n_node; i++) {
        const char *scopes = import_scopes(graph->node[i]);
        if (!scopes || strcmp(graph->node[i]->op_type, "Conv") || !strstr(scopes, "batch_norm")) continue;
        if (count++ == 0) first = proto_text(graph->node[i]->name);
    }
    if (count)
        import_note(import,
            "the exporter folded the batch normalisation after %zu convolution%s (the first: '%s') into their "
            "weights: they train without it; torch.onnx.export(..., optimize=False) keeps it",
            count, count == 1 ? "" : "s", first);
}
