/* Initialisers that repeat elements of a parameter in an order of their own, as a table of relative positions that was
 * looked up by known indices: equal elements are one. They become Gather of the different ones. */
#include "onnx/parameters/unfolded.h"

#include "base/memory.h"
#include "onnx/parameters/exported_names.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rows of a table lie along an axis, as attention heads do, or have one element. */
struct row {
    const float *first;
    size_t stride, length;
    size_t position; /* among the rows */
};

/* Which rows are equal. */
struct ties {
    size_t count, length; /* of rows */
    size_t different;
    size_t *class_of; /* of each row, numbered by their first rows */
};

static int compare_rows(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    for (size_t i = 0; i < x->length; i++) {
        const float p = x->first[i * x->stride], q = y->first[i * y->stride];
        if (p != q) return p < q ? -1 : 1;
    }
    return (x->position > y->position) - (x->position < y->position);
}

static bool rows_equal(const struct row *a, const struct row *b)
{
    size_t i = 0;
    while (i < a->length && a->first[i * a->stride] == b->first[i * b->stride]) i++;
    return i == a->length;
}

static size_t inner_of(const struct array *array, int axis)
{
    size_t inner = 1;
    for (int i = axis + 1; i < array->rank; i++) inner *= (size_t)array->sizes[i];
    return inner;
}

/* Finds equal rows along an axis; -1: equal elements. */
static tutti_status find_ties(const struct array *array, int axis, struct ties *ties)
{
    const size_t length = axis < 0 ? 1 : (size_t)array->sizes[axis], inner = axis < 0 ? 1 : inner_of(array, axis);
    const size_t count = array->count / length;
    struct row *rows = memory_new(count + 1, sizeof *rows);
    size_t *first_of = memory_new(count + 1, sizeof *first_of);
    *ties = (struct ties) { .count = count, .length = length, .class_of = memory_new(count + 1, sizeof(size_t)) };
    const bool there = rows && first_of && ties->class_of;
    for (size_t i = 0; there && i < count; i++)
        rows[i] = (struct row) { array->floats + i / inner * inner * length + i % inner, inner, length, i };
    if (there) qsort(rows, count, sizeof *rows, compare_rows);
    for (size_t i = 0, first = 0; there && i < count; i++) { /* of equal rows, the first position comes first */
        if (!rows_equal(&rows[first], &rows[i])) first = i;
        first_of[rows[i].position] = rows[first].position;
    }
    for (size_t i = 0; there && i < count; i++)
        ties->class_of[i] = first_of[i] == i ? ties->different++ : ties->class_of[first_of[i]];
    free(rows);
    free(first_of);
    return there ? TUTTI_OK : TUTTI_NO_MEMORY;
}

/* ----------------------------------------------------------------------------------------------------- by chance ----
 */

/* The largest number of bits that an element needs; 0: an element is 0, 1 or -1, to which functions such as relu bring
 * several numbers, or is not finite. */
static int bits_of(const struct array *array)
{
    int most = 0;
    for (size_t i = 0; i < array->count; i++) {
        uint32_t bits;
        const float number = array->floats[i];
        memcpy(&bits, &number, sizeof bits);
        if (!isfinite(number) || number == 0 || fabsf(number) == 1) return 0;
        const uint32_t mantissa = (bits & 0x7fffff) | 0x800000;
        const int own = 24 - __builtin_ctz(mantissa);
        most = own > most ? own : most;
    }
    return most;
}

/* Whether fewer than one in a hundred such tables would have two equal rows by chance. */
static bool is_no_chance(size_t different, size_t length, int bits)
{
    const double pairs = 0.5 * (double)different * (double)(different - 1);
    return pairs * 100 <= exp2((double)bits * (double)length);
}

/* At least a quarter of the elements are copies. */
static bool are_copies(const struct ties *ties)
{
    return ties->different > 1 && ties->count - ties->different >= (ties->count + 3) / 4;
}

/* Rows along an axis explain all equal elements, but for those that are equal by chance. */
static bool explains(const struct ties *rows, const struct ties *elements, int bits)
{
    const double all = (double)rows->different * (double)rows->length, chance = 2 * all * all / exp2(bits);
    return rows->length > 1 && are_copies(rows) && is_no_chance(rows->different, rows->length, bits) &&
        all <= (double)elements->different + chance;
}

/* Finds the rows of the table, or elements. *found: whether there are, and not by chance. The caller frees
 * ties->class_of. */
static tutti_status find_table(const struct array *array, int *axis, struct ties *ties, bool *found)
{
    struct ties elements;
    const int bits = bits_of(array);
    tutti_status status = find_ties(array, -1, &elements);
    *found = false;
    *ties = (struct ties) { 0 };
    for (int i = 0; i < array->rank && status == TUTTI_OK && !*found && bits && are_copies(&elements); i++) {
        free(ties->class_of);
        *axis = i;
        status = find_ties(array, i, ties);
        *found = status == TUTTI_OK && explains(ties, &elements, bits);
    }
    if (*found || status != TUTTI_OK) return free(elements.class_of), status;
    free(ties->class_of);
    *ties = elements;
    *axis = -1;
    *found = bits && are_copies(ties) && is_no_chance(ties->different, 1, bits);
    return TUTTI_OK;
}

/* -------------------------------------------------------------------------------------------------------- nodes ----
 */

static tutti_status add_nodes(
    struct unfolding *u, Onnx__TensorProto *tensor, const struct array *array, const struct ties *ties, int axis)
{
    const size_t inner = axis < 0 ? 1 : inner_of(array, axis);
    const int64_t count = (int64_t)(ties->different * ties->length);
    int64_t *indices = memory_new(array->count, sizeof *indices);
    int64_t *positions = memory_new((size_t)count, sizeof *positions), made = 0; /* of elements of rows, from 1 on */
    float *floats = memory_new((size_t)count, sizeof *floats);
    char *own = memory_copy_text(tensor->name), *all = memory_format("%s#all", tensor->name);
    char *index = memory_format("%s#index", tensor->name);
    tutti_status status = indices && positions && floats && own && all && index ? TUTTI_OK : TUTTI_NO_MEMORY;
    for (size_t i = 0; status == TUTTI_OK && i < array->count; i++) {
        const size_t column = i / inner % ties->length, row = i / inner / ties->length * inner + i % inner;
        int64_t *position = &positions[ties->class_of[row] * ties->length + column];
        if (!*position) { /* elements are in the order of their first uses */
            floats[made] = array->floats[i];
            *position = ++made;
        }
        indices[i] = *position - 1;
    }
    if (status == TUTTI_OK) edit_remove(&u->edit, tensor);
    if (status == TUTTI_OK) status = edit_add_floats(&u->edit, own, 1, &count, floats);
    if (status == TUTTI_OK) status = edit_add_integers(&u->edit, index, array->rank, array->sizes, indices);
    if (status == TUTTI_OK) status = edit_read_instead(&u->edit, own, all);
    if (status == TUTTI_OK)
        status = edit_add_node(
            &u->edit, "Gather", (const char *const[]) { own, index }, 2, (const char *const[]) { all }, 1, 0);
    free(indices);
    free(positions);
    free(floats);
    free(own);
    free(all);
    free(index);
    return status;
}

bool unfold_is_used_again(const struct unfolding *u, const Onnx__TensorProto *tensor, const char *parameter)
{
    const Onnx__GraphProto *graph = u->edit.graph;
    bool found = false;
    for (size_t i = 0; i < graph->n_initializer && !found; i++) {
        const Onnx__TensorProto *other = graph->initializer[i];
        if (other == tensor || !onnx_type_is_float(other->data_type)) continue;
        const char *list = signature_folded_from(graph, other->name);
        for (char *name; (name = list_next(&list)) != NULL; free(name)) found |= !strcmp(name, parameter);
    }
    return found;
}

tutti_status unfold_table(
    struct unfolding *u, Onnx__TensorProto *tensor, const char *parameter, const struct array *array)
{
    struct ties ties;
    int axis = -1;
    bool found = false;
    if (edit_find(&u->edit, parameter) || unfold_is_used_again(u, tensor, parameter)) return TUTTI_OK;
    tutti_status status = find_table(array, &axis, &ties, &found);
    if (status == TUTTI_OK && found) {
        import_note(u->import,
            "warning: the exporter looked up %s in %s: elements that are equal train as one, under the file's name; "
            "torch.onnx.export(..., optimize=False) keeps the parameter",
            tensor->name, parameter);
        status = add_nodes(u, tensor, array, &ties, axis);
    }
    free(ties.class_of);
    return status;
}
