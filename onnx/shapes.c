/* Operators on numbers that are known when the file is read: chains from Shape to Reshape, Expand and Slice. Sizes are
 * multiples of the number of samples, or numbers. */
#include "onnx/operators.h"

#include "base/memory.h"

#include <string.h>

/* The arrays of the first `count` inputs. */
static tutti_status read_inputs(const struct step *step, const struct array **arrays, size_t count)
{
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; i < count && status == TUTTI_OK; i++) status = step_array(step, i, &arrays[i]);
    return status;
}

static struct array *new_whole(int rank, int64_t size)
{
    return array_new(rank, &size, false);
}

/* ------------------------------------------------------------------------------------------------------- shapes ----
 */

/* The sizes of a value as the file has them, with the batch. */
static tutti_status sizes_of(const struct step *step, struct extent *sizes, int *rank)
{
    const struct value *value = step_input(step, 0);
    return value ? value_extents(step->import, value, sizes, rank) : fail(TUTTI_FORMAT, "input 0 is missing");
}

tutti_status build_shape(struct step *step)
{
    struct extent sizes[TUTTI_MAX_RANK + 1];
    int rank = 0;
    const tutti_status status = sizes_of(step, sizes, &rank);
    step_type(step, 0, ONNX_INT64);
    if (status != TUTTI_OK) return status;
    int64_t start = step_integer(step, "start", 0), end = step_integer(step, "end", rank);
    start = start < 0 ? start + rank : start;
    end = end < 0 ? end + rank : end > rank ? rank : end;
    if (start < 0 || end < start) return fail(TUTTI_FORMAT, "start and end name no axes");
    struct array *array = new_whole(1, end - start);
    for (int64_t i = start; array && i < end; i++) array->extents[i - start] = sizes[i];
    return step_known(step, array);
}

/* Products of sizes: a product with the number of samples in both is none. */
bool extent_multiply(struct extent a, struct extent b, struct extent *product)
{
    const struct extent swapped = a;
    if (b.batches) {
        a = b;
        b = swapped;
    }
    if (b.batches) return false;
    return !__builtin_mul_overflow(a.number, b.number, &product->number) &&
        !__builtin_mul_overflow(a.batches, b.number, &product->batches);
}

static tutti_status product_of(const struct step *step, const struct extent *list, size_t count, int rank, int64_t size)
{
    struct extent product = { 1, 0 };
    for (size_t i = 0; i < count; i++)
        if (!extent_multiply(product, list[i], &product)) return step_refuse("the product of sizes is too large");
    struct array *array = new_whole(rank, size);
    if (array) array->extents[0] = product;
    return step_known(step, array);
}

tutti_status build_size(struct step *step)
{
    struct extent sizes[TUTTI_MAX_RANK + 1];
    int rank = 0;
    const tutti_status status = sizes_of(step, sizes, &rank);
    return status == TUTTI_OK ? product_of(step, sizes, (size_t)rank, 0, 1) : status;
}

tutti_status fold_reduce_prod(struct step *step)
{
    const struct array *x;
    const tutti_status status = read_inputs(step, &x, 1);
    if (status != TUTTI_OK) return status;
    if (x->rank != 1) return step_refuse("only products over a list are read");
    return product_of(step, x->extents, x->count, step_integer(step, "keepdims", 1) != 0, 1);
}

/* --------------------------------------------------------------------------------------------------- arithmetic ----
 */

static bool combine(const char *name, struct extent a, struct extent b, struct extent *y)
{
    switch (name[0]) {
    case 'A':
        return !__builtin_add_overflow(a.number, b.number, &y->number) &&
            !__builtin_add_overflow(a.batches, b.batches, &y->batches);
    case 'S':
        return !__builtin_sub_overflow(a.number, b.number, &y->number) &&
            !__builtin_sub_overflow(a.batches, b.batches, &y->batches);
    case 'M': return extent_multiply(a, b, y);
    case 'E': *y = (struct extent) { a.number == b.number && a.batches == b.batches, 0 }; return true;
    default: /* Div */
        if (b.batches || b.number == 0 || b.number == -1 ||
            (a.batches && (a.number % b.number || a.batches % b.number)))
            return false;
        *y = (struct extent) { a.number / b.number, a.batches / b.number };
        return true;
    }
}

tutti_status fold_arithmetic(struct step *step)
{
    const struct array *x[2];
    const tutti_status status = read_inputs(step, x, 2);
    if (status != TUTTI_OK) return status;
    const struct array *larger = x[0]->count >= x[1]->count && x[0]->rank >= x[1]->rank ? x[0] : x[1];
    for (int i = 0; i < 2; i++)
        if (x[i]->count != larger->count && x[i]->count != 1) return step_refuse("only lists and numbers are read");
    struct array *y = array_new(larger->rank, larger->sizes, false);
    for (size_t i = 0; y && i < y->count; i++) {
        if (combine(step->node->op_type, x[0]->extents[x[0]->count == 1 ? 0 : i],
                x[1]->extents[x[1]->count == 1 ? 0 : i], &y->extents[i]))
            continue;
        array_free(y);
        return step_refuse("its result is no whole multiple of the number of samples, or does not fit 64 bits");
    }
    return step_known(step, y);
}

tutti_status fold_where(struct step *step)
{
    const struct array *x[3];
    const tutti_status status = read_inputs(step, x, 3);
    if (status != TUTTI_OK) return status;
    const struct array *largest = x[0];
    for (int i = 1; i < 3; i++)
        if (x[i]->count > largest->count) largest = x[i];
    for (int i = 0; i < 3; i++)
        if (x[i]->count != largest->count && x[i]->count != 1) return step_refuse("only lists and numbers are read");
    struct array *y = array_new(largest->rank, largest->sizes, false);
    for (size_t i = 0; y && i < y->count; i++) {
        const struct extent condition = x[0]->extents[x[0]->count == 1 ? 0 : i];
        const struct array *from = condition.number || condition.batches ? x[1] : x[2];
        y->extents[i] = from->extents[from->count == 1 ? 0 : i];
    }
    return step_known(step, y);
}

tutti_status fold_cast(struct step *step)
{
    const struct array *x;
    const int64_t to = step_integer(step, "to", 0);
    const tutti_status status = read_inputs(step, &x, 1);
    if (status != TUTTI_OK) return status;
    if (!onnx_type_is_float((int)to)) return step_same(step);
    struct array *y = array_new(x->rank, x->sizes, true);
    for (size_t i = 0; y && i < y->count; i++) {
        if (x->extents[i].batches) {
            array_free(y);
            return step_refuse("the number of samples cannot become a float");
        }
        y->floats[i] = (float)x->extents[i].number;
    }
    return step_known(step, y);
}

/* ---------------------------------------------------------------------------------------------------- movement ---- */

tutti_status fold_gather(struct step *step)
{
    const struct array *x[2];
    const tutti_status status = read_inputs(step, x, 2);
    if (status != TUTTI_OK) return status;
    if (x[0]->rank != 1) return step_refuse("only lists are read");
    struct array *y = array_new(x[1]->rank, x[1]->sizes, false);
    for (size_t i = 0; y && i < y->count; i++) {
        const int64_t index = x[1]->extents[i].number, size = x[0]->sizes[0], at = index < 0 ? index + size : index;
        if (x[1]->extents[i].batches || at < 0 || at >= size) {
            array_free(y);
            return fail(TUTTI_FORMAT, "index %lld lies outside of %lld elements", (long long)index, (long long)size);
        }
        y->extents[i] = x[0]->extents[at];
    }
    return step_known(step, y);
}

tutti_status fold_concat(struct step *step)
{
    tutti_status status = TUTTI_OK;
    const struct array *x = NULL;
    size_t count = 0, done = 0;
    for (size_t i = 0; i < step->node->n_input; i++) {
        status = step_array(step, i, &x);
        if (status != TUTTI_OK) return status;
        if (x->rank != 1 || !size_add(count, x->count, &count)) return step_refuse("only lists are read");
    }
    struct array *y = new_whole(1, (int64_t)count);
    for (size_t i = 0; y && i < step->node->n_input; i++) {
        status = step_array(step, i, &x);
        if (status != TUTTI_OK) break; /* cannot be: it was read above */
        memcpy(y->extents + done, x->extents, x->count * sizeof *x->extents);
        done += x->count;
    }
    return step_known(step, y);
}

tutti_status fold_slice(struct step *step)
{
    const struct array *x;
    int64_t start[1], end[1], axis[1] = { 0 }, stride[1] = { 1 };
    int counts[4];
    tutti_status status = read_inputs(step, &x, 1);
    if (status == TUTTI_OK) status = step_list(step, 1, start, 1, &counts[0]);
    if (status == TUTTI_OK) status = step_list(step, 2, end, 1, &counts[1]);
    if (status == TUTTI_OK) status = step_list(step, 3, axis, 1, &counts[2]);
    if (status == TUTTI_OK) status = step_list(step, 4, stride, 1, &counts[3]);
    if (status != TUTTI_OK) return status;
    if (x->rank != 1 || counts[0] != 1 || counts[1] != 1 || (axis[0] != 0 && axis[0] != -1) || stride[0] != 1)
        return step_refuse("only slices of lists with steps of 1 are read");
    const int64_t size = x->sizes[0];
    const int64_t from = start[0] < -size ? 0 : start[0] < 0 ? start[0] + size : start[0] > size ? size : start[0];
    const int64_t to = end[0] < -size ? 0 : end[0] < 0 ? end[0] + size : end[0] > size ? size : end[0];
    struct array *y = new_whole(1, to > from ? to - from : 0);
    if (y) memcpy(y->extents, x->extents + from, y->count * sizeof *y->extents);
    return step_known(step, y);
}

/* Squeeze, Unsqueeze and Reshape between a number and a list: the elements are the same. */
tutti_status fold_same_elements(struct step *step)
{
    const struct array *x;
    const tutti_status status = read_inputs(step, &x, 1);
    if (status != TUTTI_OK) return status;
    const bool squeeze = step->node->op_type[0] == 'S';
    if (x->rank > 1 || (x->rank == 1 && squeeze && x->count != 1) || (x->rank == 1 && step->node->op_type[0] == 'U'))
        return step_refuse("only numbers and lists are read");
    struct array *y = new_whole(!squeeze, (int64_t)x->count);
    if (y) memcpy(y->extents, x->extents, x->count * sizeof *x->extents);
    return step_known(step, y);
}

/* ---------------------------------------------------------------------------------------------------- constants ----
 */

static tutti_status known_floats(const struct step *step, int rank, const float *floats, size_t count)
{
    const int64_t size = (int64_t)count;
    struct array *y = array_new(rank, &size, true);
    if (y && count) memcpy(y->floats, floats, count * sizeof *floats);
    return step_known(step, y);
}

static tutti_status known_integers(const struct step *step, int rank, const int64_t *numbers, size_t count)
{
    struct array *y = new_whole(rank, (int64_t)count);
    for (size_t i = 0; y && i < count; i++) y->extents[i].number = numbers[i];
    return step_known(step, y);
}

tutti_status build_constant(struct step *step)
{
    const Onnx__AttributeProto *a = step->node->n_attribute == 1 ? step->node->attribute[0] : NULL;
    const char *name = a ? proto_text(a->name) : "";
    struct value *output = step_output(step, 0);
    if (!strcmp(name, "value_float")) return known_floats(step, 0, &a->f, 1);
    if (!strcmp(name, "value_floats")) return known_floats(step, 1, a->floats, a->n_floats);
    if (!strcmp(name, "value_int")) return known_integers(step, 0, &a->i, 1);
    if (!strcmp(name, "value_ints")) return known_integers(step, 1, a->ints, a->n_ints);
    if (strcmp(name, "value") || !a->t) return step_refuse("it needs one of value, value_int(s) and value_float(s)");
    const tutti_status status = tensor_check(a->t);
    if (status == TUTTI_OK && output) output->stored = a->t;
    return status;
}

tutti_status build_constant_of_shape(struct step *step)
{
    enum { MOST = 1 << 20 };
    int64_t sizes[ARRAY_MAX_RANK];
    int rank;
    size_t count;
    struct array *value = NULL, *y = NULL;
    const Onnx__AttributeProto *a = step_attribute(step, "value");
    tutti_status status = step_list(step, 0, sizes, ARRAY_MAX_RANK, &rank);
    if (status != TUTTI_OK) return status;
    if (!array_count(rank, sizes, &count) || count > MOST)
        return step_refuse("its shape is none, or has more than %d elements", MOST);
    if (a && a->t && (status = tensor_read(a->t, step->import->folder, &value)) != TUTTI_OK) return status;
    if (value && value->count != 1) {
        array_free(value);
        return fail(TUTTI_FORMAT, "its value is not one number");
    }
    y = array_new(rank, sizes, !value || value->floats);
    for (size_t i = 0; y && value && i < count; i++) {
        if (y->floats) y->floats[i] = value->floats[0];
        if (y->extents) y->extents[i] = value->extents[0];
    }
    array_free(value);
    return step_known(step, y);
}
