/* Initialisers that have elements of a parameter several times: a class token for each sample, the bias of a step whose
 * state is 0. They become nodes that read the parameter, once. Tables are in unfolded_tables.c. */
#include "onnx/parameters/unfolded.h"

#include "base/memory.h"
#include "onnx/parameters/exported_names.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What the list of an initialiser's sources says. */
struct sources {
    const char *list;
    char *parameter;                 /* the last parameter of the list */
    int parameters, others;          /* others: buffers of the state dict */
    bool expands, looks_up, inserts; /* operations of the list, and the one that the initialiser is named after */
    bool moves_only;                 /* all names are of operations that move elements */
    bool keeps_order;                /* all operations keep the elements' order; the exporter's own may transpose */
    bool may_transpose;              /* the initialiser is named after a transposition, or is called val_7 */
};

static bool is_input_or_output(const struct unfolding *u, const char *name)
{
    return !edit_is_free(&u->edit, name) && !edit_find(&u->edit, name);
}

static void add_operation(const struct unfolding *u, struct sources *s, const char *name, bool own)
{
    const unsigned does = operation_of(name);
    const bool exporters = !strncmp(name, "val_", strlen("val_"));
    const bool sized = !own && is_input_or_output(u, name); /* its sizes were read */
    s->expands |= (does & REPEATS) != 0;
    s->looks_up |= (does & LOOKS_UP) != 0 && !sized;
    s->inserts |= !strncmp(name, "unsqueeze", strlen("unsqueeze"));
    s->moves_only &= does != 0 || sized;
    s->keeps_order &= (own && (does & TRANSPOSES)) || exporters || sized || (does & (RESHAPES | CREATES | REPEATS));
    if (own) s->may_transpose = (does & TRANSPOSES) != 0;
}

static tutti_status read_sources(const struct unfolding *u, const char *own, const char *list, struct sources *s)
{
    *s = (struct sources) { .list = list, .moves_only = true, .keeps_order = true };
    add_operation(u, s, own, true);
    const char *at = list;
    for (char *name; (name = list_next(&at)) != NULL;) {
        const struct signature_entry *entry = signature_find(&u->signature, name);
        if (!entry) add_operation(u, s, name, false);
        s->others += entry && !entry->parameter;
        s->parameters += entry && entry->parameter;
        if (entry && entry->parameter) {
            free(s->parameter);
            s->parameter = name;
        } else {
            free(name);
        }
    }
    return s->parameters && !s->parameter ? TUTTI_NO_MEMORY : TUTTI_OK;
}

static bool is_uniform(const struct array *array)
{
    size_t i = 1;
    while (i < array->count && array->floats[i] == array->floats[0]) i++;
    return i >= array->count;
}

static tutti_status read_floats(const struct unfolding *u, const Onnx__TensorProto *tensor, struct array **array)
{
    *array = NULL;
    if (!tensor || tensor->data_type != ONNX_FLOAT || tensor_check(tensor) != TUTTI_OK) return TUTTI_OK;
    return tensor_read(tensor, u->import->folder, array);
}

/* -------------------------------------------------------------------------------------------------- along an axis ----
 */

/* Whether an input of the file has this number of samples. Where no axis is the batch (the option `whole`), the first
 * one counts. */
static bool is_batch(const struct unfolding *u, int64_t size)
{
    const Onnx__GraphProto *graph = u->edit.graph;
    bool found = false;
    for (size_t i = 0; i < graph->n_input; i++) {
        const Onnx__TypeProto *type = graph->input[i]->type;
        const Onnx__TensorShapeProto *sizes = type && type->tensor_type ? type->tensor_type->shape : NULL;
        const int batch = import_batch_axis(u->import, proto_text(graph->input[i]->name));
        const size_t axis = batch == NO_AXIS ? 0 : (size_t)batch;
        found |= sizes && sizes->n_dim > axis && sizes->dim[axis]->dim_value == size;
    }
    return found;
}

/* The only axis along which all parts are equal, if it has the size of the batch; -1: there is no such axis. Parameters
 * may have equal rows at first: with several such axes it is not known which one was repeated. */
static int repeated_axis(const struct unfolding *u, const struct array *array)
{
    int found = -1;
    for (int i = 0; i < array->rank; i++) {
        int64_t factor;
        if (array->sizes[i] == 1 || !array_is_linear(array, i, &factor)) continue;
        if (found >= 0) return -1;
        found = i;
    }
    return found >= 0 && is_batch(u, array->sizes[found]) ? found : -1;
}

/* The array with one part along an axis. NULL: no memory. */
static struct array *first_part(const struct array *array, int axis)
{
    int64_t sizes[ARRAY_MAX_RANK];
    size_t inner = 1, count = 0;
    memcpy(sizes, array->sizes, sizeof sizes);
    sizes[axis] = 1;
    struct array *part = array_new(array->rank, sizes, true);
    for (int i = axis + 1; i < array->rank; i++) inner *= (size_t)array->sizes[i];
    const size_t line = inner * (size_t)array->sizes[axis];
    for (size_t i = 0; part && i < array->count; i++)
        if (i % line < inner) part->floats[count++] = array->floats[i];
    return part;
}

static bool is_vector(const struct array *array)
{
    int wide = 0;
    for (int i = 0; i < array->rank; i++) wide += array->sizes[i] != 1;
    return wide <= 1;
}

/* Makes the initialiser one part of itself, under its own name, because the order of the parameter's elements is not
 * known. All nodes read an Expand of it, NAME#all. */
static tutti_status expand_under_own_name(
    struct unfolding *u, Onnx__TensorProto *tensor, const struct array *array, const struct array *part)
{
    char *own = memory_copy_text(tensor->name), *all = memory_format("%s#all", tensor->name);
    tutti_status status = own && all ? TUTTI_OK : TUTTI_NO_MEMORY;
    if (status == TUTTI_OK) edit_remove(&u->edit, tensor);
    if (status == TUTTI_OK) status = edit_add_floats(&u->edit, own, part->rank, part->sizes, part->floats);
    if (status == TUTTI_OK) status = edit_read_instead(&u->edit, own, all);
    if (status == TUTTI_OK) status = edit_add_shaped(&u->edit, "Expand", own, all, array->rank, array->sizes);
    free(own);
    free(all);
    return status;
}

/* Makes the initialiser the result of Expand, of a parameter that is an initialiser. sizes: the shape that the
 * parameter gets first; NULL: its own. */
static tutti_status expand(struct unfolding *u, Onnx__TensorProto *tensor, const struct array *array,
    const char *parameter, const int64_t *sizes)
{
    char *own = memory_copy_text(tensor->name), *shaped = memory_format("%s#one", tensor->name);
    tutti_status status = own && shaped ? TUTTI_OK : TUTTI_NO_MEMORY;
    if (status == TUTTI_OK) edit_remove(&u->edit, tensor);
    if (status == TUTTI_OK && sizes)
        status = edit_add_shaped(&u->edit, "Reshape", parameter, shaped, array->rank, sizes);
    if (status == TUTTI_OK)
        status = edit_add_shaped(&u->edit, "Expand", sizes ? shaped : parameter, own, array->rank, array->sizes);
    if (status == TUTTI_OK) import_note(u->import, "%s is %s, repeated: it is one parameter", own, parameter);
    free(own);
    free(shaped);
    return status;
}

/* A parameter that was repeated along an axis, as a class token for each sample. */
static tutti_status unfold_expansion(
    struct unfolding *u, Onnx__TensorProto *tensor, const struct sources *s, const struct array *array, bool *done)
{
    const int axis = repeated_axis(u, array);
    if (!s->expands || s->parameters != 1 || s->others || !s->moves_only || axis < 0 || is_uniform(array))
        return TUTTI_OK;
    struct array *part = first_part(array, axis), *known = NULL;
    const Onnx__TensorProto *there = edit_find(&u->edit, s->parameter);
    tutti_status status = part ? read_floats(u, there, &known) : TUTTI_NO_MEMORY;
    const bool same = known && part && known->count == part->count &&
        !memcmp(known->floats, part->floats, part->count * sizeof *part->floats);
    const bool whole = !unfold_is_used_again(u, tensor, s->parameter); /* others may have other parts of it */
    const bool ordered = part && whole && s->keeps_order && (!s->may_transpose || is_vector(part));
    const bool unsqueezed = axis == 0 && s->inserts && array->rank > 1;
    *done = status == TUTTI_OK && (same || !there);
    if (status == TUTTI_OK && !there && ordered && edit_is_free(&u->edit, s->parameter))
        status =
            edit_add_floats(&u->edit, s->parameter, part->rank - unsqueezed, part->sizes + unsqueezed, part->floats);
    if (status == TUTTI_OK && *done)
        status = same || edit_find(&u->edit, s->parameter)
            ? expand(u, tensor, array, s->parameter, same ? part->sizes : NULL)
            : expand_under_own_name(u, tensor, array, part);
    array_free(part);
    array_free(known);
    return status;
}

/* ----------------------------------------------------------------------------------------------- a state of zeros ----
 */

/* Whether a matrix has a row or a column of zeros, which makes products of other numbers 0, too. */
static bool has_zero_line(const struct array *array)
{
    const size_t columns = array->rank ? (size_t)array->sizes[array->rank - 1] : 1, rows = array->count / columns;
    for (size_t r = 0; r < rows; r++) {
        size_t c = 0;
        while (c < columns && array->floats[r * columns + c] == 0) c++;
        if (c == columns) return true;
    }
    for (size_t c = 0; c < columns; c++) {
        size_t r = 0;
        while (r < rows && array->floats[r * columns + c] == 0) r++;
        if (r == rows) return true;
    }
    return false;
}

/* Whether the array is the bias, once or several times. */
static bool is_bias_alone(const struct array *array, const struct array *bias)
{
    if (bias->count < 2 || array->count % bias->count || is_uniform(bias)) return false;
    size_t trailing = 1;
    for (int i = array->rank - 1; i >= 0 && trailing < bias->count; i--) trailing *= (size_t)array->sizes[i];
    if (trailing != bias->count) return false;
    for (size_t i = 0; i < array->count; i++)
        if (array->floats[i] != bias->floats[i % bias->count]) return false;
    return true;
}

/* Finds the parameter of the list that the array repeats. All others must be weights that are in the file, too, and
 * would have made another result of any other state than 0. */
static tutti_status find_bias(
    const struct unfolding *u, const struct sources *s, const struct array *array, char **bias)
{
    tutti_status status = TUTTI_OK;
    bool sure = true;
    const char *at = s->list;
    for (char *name; status == TUTTI_OK && (name = list_next(&at)) != NULL; free(name)) {
        struct array *known = NULL;
        if (!signature_find(&u->signature, name)) continue;
        status = read_floats(u, edit_find(&u->edit, name), &known);
        const bool is_bias = known && is_bias_alone(array, known);
        sure &= known && (is_bias ? !*bias : !has_zero_line(known));
        if (is_bias && !*bias && !(*bias = memory_copy_text(name))) status = TUTTI_NO_MEMORY;
        array_free(known);
    }
    if (status == TUTTI_OK && sure) return TUTTI_OK;
    free(*bias);
    *bias = NULL;
    return status;
}

/* The first step of a cell whose state is 0 gives the bias, for each sample. */
static tutti_status unfold_first_step(
    struct unfolding *u, Onnx__TensorProto *tensor, const struct sources *s, const struct array *array, bool *done)
{
    char *bias = NULL;
    int64_t sizes[ARRAY_MAX_RANK];
    size_t trailing = 1, count = 1;
    if (s->parameters < 2 || s->others) return TUTTI_OK;
    tutti_status status = find_bias(u, s, array, &bias);
    const Onnx__TensorProto *of = bias ? edit_find(&u->edit, bias) : NULL;
    for (size_t i = 0; of && i < of->n_dims; i++) count *= (size_t)of->dims[i];
    for (int i = array->rank - 1; i >= 0; i--) {
        sizes[i] = trailing < count ? array->sizes[i] : 1;
        trailing *= (size_t)sizes[i];
    }
    *done = of && count < array->count;
    if (status == TUTTI_OK && *done) status = expand(u, tensor, array, bias, sizes);
    free(bias);
    return status;
}

tutti_status unfold_copies(struct unfolding *u, Onnx__TensorProto *tensor, const char *folded_from)
{
    struct sources s;
    struct array *array = NULL;
    bool done = false;
    tutti_status status = read_sources(u, tensor->name, folded_from, &s);
    const bool possible = s.parameters > 1 || (s.parameters && (s.expands || s.looks_up)); /* others are not read */
    if (status == TUTTI_OK && possible) status = read_floats(u, tensor, &array);
    if (status == TUTTI_OK && array && array->count > 1) {
        status = unfold_expansion(u, tensor, &s, array, &done);
        if (status == TUTTI_OK && !done) status = unfold_first_step(u, tensor, &s, array, &done);
        if (status == TUTTI_OK && !done && s.looks_up && s.parameters == 1) /* indices may be buffers */
            status = unfold_table(u, tensor, s.parameter, array);
    }
    array_free(array);
    free(s.parameter);
    return status;
}
