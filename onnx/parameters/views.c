#include "onnx/parameters/views.h"

#include "base/memory.h"
#include "onnx/parameters/exported_names.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------------ arrays ---- */

/* Reads the numbers; value_drop() frees them again, if they were read for this. */
static tutti_status value_take(const struct import *import, struct onnx_value *value, bool *taken)
{
    *taken = !value->array;
    return import_load(import, value);
}

static void value_drop(struct onnx_value *value, bool taken)
{
    if (!taken) return;
    array_free(value->array);
    value->array = NULL;
}

static bool all_equal(const struct array *array)
{
    bool equal = array->floats && array->count > 1 && isfinite(array->floats[0]);
    for (size_t i = 1; equal && i < array->count; i++) equal = array->floats[i] == array->floats[0];
    return equal;
}

tutti_status value_is_uniform(const struct import *import, struct onnx_value *value, bool *uniform)
{
    bool taken;
    const tutti_status status = value_take(import, value, &taken);
    *uniform = status == TUTTI_OK && value->array && all_equal(value->array);
    if (status == TUTTI_OK) value_drop(value, taken);
    return status;
}

/* ------------------------------------------------------------------------------------------------------- views ---- */

/* Sizes without those that are 1. */
static int squeeze(const struct array *array, int64_t *sizes)
{
    int rank = 0;
    for (int i = 0; i < array->rank; i++)
        if (array->sizes[i] != 1) sizes[rank++] = array->sizes[i];
    return rank;
}

void view_transpose(struct view *view, int64_t rows, int64_t columns)
{
    for (int i = 0; i < ARRAY_MAX_RANK; i++) view->order[i] = i;
    if (rows == 1 || columns == 1) return;
    view->order[0] = 1;
    view->order[1] = 0;
}

/* Whether axis i of a is axis order[i] of b, which has the same number of axes. */
static bool is_in_order(const struct array *a, const struct array *b, const int *order)
{
    int64_t of_a[ARRAY_MAX_RANK], of_b[ARRAY_MAX_RANK], strides[ARRAY_MAX_RANK], at[ARRAY_MAX_RANK] = { 0 }, stride = 1;
    const int rank = squeeze(a, of_a);
    if (squeeze(b, of_b) != rank) return false;
    for (int i = rank - 1; i >= 0; stride *= of_b[i--]) strides[i] = stride;
    for (int i = 0; i < rank; i++)
        if (of_a[i] != of_b[order[i]]) return false;
    for (size_t i = 0; i < a->count; i++) {
        int64_t offset = 0;
        for (int k = 0; k < rank; k++) offset += at[k] * strides[order[k]];
        if (a->floats[i] != b->floats[offset]) return false;
        for (int k = rank - 1; k >= 0 && ++at[k] == of_a[k]; k--) at[k] = 0;
    }
    return true;
}

/* The next order in lexicographic order; false after the last one. */
static bool next_order(int *order, int rank)
{
    int i = rank - 2, k = rank - 1;
    while (i >= 0 && order[i] > order[i + 1]) i--;
    if (i < 0) return false;
    while (order[k] < order[i]) k--;
    const int swapped = order[i];
    order[i] = order[k];
    order[k] = swapped;
    for (int low = i + 1, high = rank - 1; low < high; low++, high--) {
        const int other = order[low];
        order[low] = order[high];
        order[high] = other;
    }
    return true;
}

static bool find_order(const struct array *a, const struct array *b, bool transposed, int *order)
{
    enum { MOST_AXES = 4 };
    static const int swapped[] = { 1, 0 };
    int64_t sizes[ARRAY_MAX_RANK];
    const int rank = squeeze(a, sizes);
    for (int i = 0; i < ARRAY_MAX_RANK; i++) order[i] = i;
    if (!a->floats || !b->floats || a->count != b->count) return false;
    if (rank != squeeze(b, sizes) || rank > MOST_AXES) return !memcmp(a->floats, b->floats, a->count * sizeof(float));
    if (transposed && rank == 2 && is_in_order(a, b, swapped)) return memcpy(order, swapped, sizeof swapped), true;
    do
        if (is_in_order(a, b, order)) return true;
    while (next_order(order, rank));
    return false;
}

tutti_status view_find(
    const struct import *import, struct onnx_value *value, struct onnx_value *of, bool transposed, bool *same)
{
    bool taken = false, other_taken = false;
    int order[ARRAY_MAX_RANK];
    *same = false;
    if (!onnx_type_is_float(value->type) || !onnx_type_is_float(of->type)) return TUTTI_OK;
    tutti_status status = value_take(import, value, &taken);
    if (status == TUTTI_OK) status = value_take(import, of, &other_taken);
    if (status == TUTTI_OK && value->array && of->array) *same = find_order(value->array, of->array, transposed, order);
    if (*same) {
        value->view.of = of;
        memcpy(value->view.order, order, sizeof order);
    }
    value_drop(value, taken);
    value_drop(of, other_taken);
    return status;
}

/* ------------------------------------------------------------------------------------------------------- twins ---- */

static uint64_t hash(float number)
{
    uint32_t bits;
    const float positive = number == 0 ? 0 : number; /* -0 is 0 */
    memcpy(&bits, &positive, sizeof bits);
    uint64_t x = bits + 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static int compare_twins(const void *a, const void *b)
{
    const struct twin *x = a, *y = b;
    if (x->count != y->count) return x->count < y->count ? -1 : 1;
    if (x->sum != y->sum) return x->sum < y->sum ? -1 : 1;
    return (x->value > y->value) - (x->value < y->value);
}

static size_t elements_of(const struct onnx_value *value)
{
    return value->initialiser && onnx_type_is_float(value->type) ? stored_elements(value) : 0;
}

/* Adds the sum of an initialiser that has as many elements as some nameless one, which may be itself. */
static tutti_status add_sum(struct twins *twins, struct onnx_value *value)
{
    struct twin *twin = &twins->list[twins->count];
    bool taken;
    *twin = (struct twin) { .count = elements_of(value), .value = value };
    const tutti_status status = value_take(twins->import, value, &taken);
    if (status != TUTTI_OK) return status;
    const bool useful = value->array && value->array->floats && !all_equal(value->array);
    for (size_t i = 0; useful && i < value->array->count; i++) twin->sum += hash(value->array->floats[i]);
    value_drop(value, taken);
    twins->count += useful;
    return TUTTI_OK;
}

static int compare_counts(const void *a, const void *b)
{
    const size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

tutti_status twins_new(struct import *import, struct twins *twins)
{
    tutti_status status = TUTTI_OK;
    size_t *counts = memory_new(import->value_count + 1, sizeof *counts), wanted = 0;
    *twins = (struct twins) { .import = import, .list = memory_new(import->value_count + 1, sizeof *twins->list) };
    if (!counts || !twins->list) status = TUTTI_NO_MEMORY;
    for (size_t i = 0; status == TUTTI_OK && i < import->value_count; i++) {
        const struct onnx_value *value = &import->values[i];
        const size_t count = elements_of(value);
        if (count > 1 && !value->origin.folded_from && import_is_nameless(import, value)) counts[wanted++] = count;
    }
    if (wanted) qsort(counts, wanted, sizeof *counts, compare_counts);
    for (size_t i = 0; wanted && status == TUTTI_OK && i < import->value_count; i++) {
        const size_t count = elements_of(&import->values[i]);
        if (bsearch(&count, counts, wanted, sizeof *counts, compare_counts))
            status = add_sum(twins, &import->values[i]);
    }
    if (twins->list) qsort(twins->list, twins->count, sizeof *twins->list, compare_twins);
    free(counts);
    return status;
}

void twins_free(struct twins *twins)
{
    for (size_t i = 0; i < twins->count; i++) free(twins->list[i].name);
    free(twins->list);
}

/* The bias next to a weight, if the file has it. */
static struct onnx_value *bias_of(const struct import *import, const char *weight)
{
    char *name = bias_name(weight);
    struct onnx_value *bias = name ? import_find(import, name) : NULL;
    free(name);
    return bias && bias->initialiser ? bias : NULL;
}

/* "a.0.fc.weight" and "b.0.fc.weight" are of the same layer in two blocks. */
static bool end_alike(const char *a, const char *b)
{
    size_t x = strlen(a), y = strlen(b);
    int points = 0;
    while (x > 0 && y > 0 && a[x - 1] == b[y - 1] && points < 2) {
        points += a[--x] == '.';
        y--;
    }
    return points == 2;
}

/* Two equal weights are of copies of a layer if the layers have separate biases that are equal, too. Without biases,
 * the names of the layers decide. */
static tutti_status are_copies(const struct import *import, const char *a, const char *b, bool *copies)
{
    struct onnx_value *x = bias_of(import, a), *y = bias_of(import, b);
    struct view kept;
    *copies = strcmp(a, b) && !x && !y && end_alike(a, b);
    if (!x || !y || x == y) return TUTTI_OK;
    kept = x->view;
    const tutti_status status = view_find(import, x, y, false, copies);
    x->view = kept;
    return status;
}

/* Ties the value to the twin, or notes that both are copies. `name`: as of twins_find(). */
static tutti_status try_twin(struct twins *twins, struct onnx_value *value, const struct twin *twin, bool transposed,
    const char *name, bool *same)
{
    struct import *import = twins->import;
    struct onnx_value *of = twin->value;
    bool copies = false;
    const char *other = twin->name ? twin->name : of->name;
    if (of == value || of->view.of || (import_is_nameless(import, of) && !of->origin.renamed && !twin->name))
        return TUTTI_OK;
    tutti_status status = name ? are_copies(import, name, other, &copies) : TUTTI_OK;
    if (status == TUTTI_OK && !copies)
        status = view_find(import, value, of, transposed && !import_is_nameless(import, of), same);
    if (*same || copies)
        import_note(import, "%s and %s have the same elements: %s", name ? name : value->name, other,
            copies ? "they are copies, and each is a parameter" : "they are tied, one parameter");
    return status;
}

tutti_status twins_find(struct twins *twins, struct onnx_value *value, bool transposed, const char *name, bool *same)
{
    tutti_status status = TUTTI_OK;
    struct twin *own = NULL;
    *same = false;
    for (size_t i = 0; i < twins->count && !own; i++)
        if (twins->list[i].value == value) own = &twins->list[i];
    if (!own) return TUTTI_OK;
    size_t first = (size_t)(own - twins->list);
    while (first > 0 && twins->list[first - 1].count == own->count && twins->list[first - 1].sum == own->sum) first--;
    for (int nameless = 0; nameless < 2; nameless++) /* a parameter with a name of the state dict comes first */
        for (size_t i = first; i < twins->count && !*same && status == TUTTI_OK; i++) {
            const struct twin *twin = &twins->list[i];
            if (twin->count != own->count || twin->sum != own->sum) break;
            if (import_is_nameless(twins->import, twin->value) == nameless)
                status = try_twin(twins, value, twin, transposed, name, same);
        }
    if (status == TUTTI_OK && !*same && name && !own->name && !(own->name = memory_copy_text(name)))
        status = TUTTI_NO_MEMORY;
    return status;
}
