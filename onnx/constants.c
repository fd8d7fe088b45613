/* Operators whose results are known when a file is read, and values that are one number everywhere. */
#include "onnx/known.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { MOST = 1 << 20 };

static tutti_status known_floats(const struct onnx_node *node, int rank, const float *floats, size_t count)
{
    const int64_t size = (int64_t)count;
    struct array *y = array_new(rank, &size, true);
    if (y && count) memcpy(y->floats, floats, count * sizeof *floats);
    return node_set_array(node, y);
}

static tutti_status known_integers(const struct onnx_node *node, int rank, const int64_t *numbers, size_t count)
{
    const int64_t size = (int64_t)count;
    struct array *y = array_new(rank, &size, false);
    node_set_type(node, 0, ONNX_INT64);
    for (size_t i = 0; y && i < count; i++) y->integers[i].number = numbers[i];
    return node_set_array(node, y);
}

tutti_status build_constant(struct onnx_node *node)
{
    const Onnx__AttributeProto *a = node->proto->n_attribute == 1 ? node->proto->attribute[0] : NULL;
    const char *name = a ? proto_text(a->name) : "";
    struct onnx_value *output = node_output(node, 0);
    if (!strcmp(name, "value_float")) return known_floats(node, 0, &a->f, 1);
    if (!strcmp(name, "value_floats")) return known_floats(node, 1, a->floats, a->n_floats);
    if (!strcmp(name, "value_int")) return known_integers(node, 0, &a->i, 1);
    if (!strcmp(name, "value_ints")) return known_integers(node, 1, a->ints, a->n_ints);
    if (strcmp(name, "value") || !a->t) return node_refuse("it needs one of value, value_int(s) and value_float(s)");
    const tutti_status status = tensor_check(a->t);
    if (status == TUTTI_OK && output) output->stored = a->t;
    node_set_type(node, 0, a->t->data_type);
    return status;
}

tutti_status evaluate_constant_of_shape(struct onnx_node *node)
{
    int64_t sizes[ARRAY_MAX_RANK];
    int rank;
    struct array *value = NULL, *y = NULL;
    const Onnx__AttributeProto *a = node_attribute(node, "value");
    tutti_status status = node_list(node, 0, sizes, ARRAY_MAX_RANK, &rank);
    if (status != TUTTI_OK) return status;
    if (a && a->t && (status = tensor_read(a->t, node->import->folder, &value)) != TUTTI_OK) return status;
    if (value && value->count != 1) {
        array_free(value);
        return fail(TUTTI_FORMAT, "its value is not one number");
    }
    const int type = a && a->t ? a->t->data_type : ONNX_FLOAT;
    y = known_new(rank, sizes, type);
    for (size_t i = 0; y && value && i < y->count; i++)
        known_put(y, type, i, known_at(&(struct known) { value, type }, 0));
    array_free(value);
    node_set_type(node, 0, type);
    return known_finish(node, y);
}

/* Reads the number that all elements are; 0 if the node does not state it. */
static tutti_status constant_number(const struct onnx_node *node, float *number, int *type)
{
    const Onnx__AttributeProto *a = node_attribute(node, "value");
    struct array *value = NULL;
    *number = 0;
    *type = a && a->t ? a->t->data_type : ONNX_FLOAT;
    if (!a || !a->t) return TUTTI_OK;
    const tutti_status status = tensor_read(a->t, node->import->folder, &value);
    if (status != TUTTI_OK) return status;
    const bool one = value->count == 1;
    if (one) *number = value->floats ? value->floats[0] : (float)value->integers[0].number;
    array_free(value);
    return one ? TUTTI_OK : fail(TUTTI_FORMAT, "its value is not one number");
}

tutti_status node_filled(const struct onnx_node *node, const struct symbolic_integer *sizes, size_t rank, float number,
    struct operand *filled)
{
    tutti_status status = TUTTI_OK;
    tutti_shape shape = { 0 };
    struct batch_axis batch_axis = NO_BATCH;
    if (rank >= TUTTI_MAX_RANK) return node_refuse("its shape has too many axes");
    for (int i = 0; i < (int)rank; i++) {
        const struct symbolic_integer size = sizes[i];
        if (size.batches ? size.number || size.batches < 0 || batch_axis.batched : size.number < 1)
            return node_refuse("axis %d is not a multiple of the number of samples, or the second one", i);
        if (size.batches)
            batch_axis =
                (struct batch_axis) { .batched = true, .axis = i, .rows_per_sample = size.batches, .outer = 1 };
        shape.sizes[shape.rank++] = size.batches + size.number;
    }
    struct operand y = { .tensor = node_constant(node, number), .shape = shape, .batch = batch_axis };
    if (shape.rank)
        y.tensor = node_op(node, "expand", &y.tensor, 1, "shape=%s", list_print(shape.sizes, shape.rank).text);
    if (y.tensor.id >= 0 && batch_axis.batched) status = node_spread_operand(node, &y);
    if (status == TUTTI_OK && batch_axis.batched) y.tensor = node_without_rows(node, y.tensor, batch_axis.axis);
    *filled = y;
    if (status != TUTTI_OK || y.tensor.id >= 0) return status;
    return tutti_network_status(node->import->network);
}

/* Adds a layer that gives each sample the same number. */
tutti_status build_constant_of_shape(struct onnx_node *node)
{
    const struct array *asked = NULL;
    struct operand y = { .tensor = { -1 } };
    float number = 0;
    int type = 0;
    tutti_status status = node_array(node, 0, &asked);
    if (status == TUTTI_OK) status = constant_number(node, &number, &type);
    if (status != TUTTI_OK) return status;
    if (!asked->integers) return node_refuse("its shape is not of integers");
    status = node_filled(node, asked->integers, asked->count, number, &y);
    node_set_type(node, 0, type);
    return status == TUTTI_OK ? node_set_output(node, y.tensor, y.batch) : status;
}

/* A matrix of the input's shape, with ones along a diagonal. */
tutti_status build_eye_like(struct onnx_node *node)
{
    struct symbolic_integer sizes[TUTTI_MAX_RANK + 1];
    int rank = 0;
    const struct onnx_value *x = node_input(node, 0);
    tutti_status status = x ? value_sizes(node->import, x, sizes, &rank) : fail(TUTTI_FORMAT, "input 0 is missing");
    if (status != TUTTI_OK) return status;
    if (rank != 2 || sizes[0].batches || sizes[1].batches) return node_refuse("its shape must be two known sizes");
    const int64_t k = node_integer(node, "k", 0), type = node_integer(node, "dtype", x->type);
    const int64_t shape[] = { sizes[0].number, sizes[1].number };
    size_t count;
    if (!array_count(2, shape, &count) || count > MOST) return node_refuse("it has more than %d elements", MOST);
    struct array *y = array_new(2, shape, onnx_type_is_float((int)type));
    const bool outside = k <= -shape[0] || k >= shape[1]; /* i + k could overflow */
    for (int64_t i = 0; y && !outside && i < shape[0]; i++) {
        if (i + k < 0 || i + k >= shape[1]) continue;
        if (y->floats) y->floats[i * shape[1] + i + k] = 1;
        if (y->integers) y->integers[i * shape[1] + i + k].number = 1;
    }
    node_set_type(node, 0, (int)type);
    return node_set_array(node, y);
}

/* Makes ranges of floats; evaluate_range() makes those of integers. */
tutti_status build_range(struct onnx_node *node)
{
    struct known given[3];
    double number[3];
    for (size_t i = 0; i < 3; i++) {
        const tutti_status status = known_input(node, i, &given[i]);
        if (status != TUTTI_OK) return status;
        if (given[i].array->count != 1) return fail(TUTTI_FORMAT, "input %zu must be one number", i);
        number[i] = known_at(&given[i], 0).real;
    }
    const double length = ceil((number[1] - number[0]) / number[2]);
    if (!(length <= KNOWN_MOST)) return node_refuse("it has more than %d numbers", KNOWN_MOST);
    const int64_t size = length > 0 ? (int64_t)length : 0;
    struct array *y = known_new(1, &size, given[0].type);
    for (int64_t i = 0; y && i < size; i++)
        known_put(y, given[0].type, (size_t)i, (struct number) { .real = number[0] + (double)i * number[2] });
    return known_finish(node, y);
}

/* One output of an If whose branches were inlined. Inputs: the condition, and the result of each branch. */
tutti_status build_if(struct onnx_node *node)
{
    const struct array *condition = NULL;
    const tutti_status status = node_array(node, 0, &condition);
    if (status != TUTTI_OK) return status;
    if (condition->count != 1 || !condition->integers) return fail(TUTTI_FORMAT, "its condition is not one truth");
    struct onnx_value *value =
        node_input(node, condition->integers[0].number || condition->integers[0].batches ? 1 : 2);
    return value ? node_copy(node, value) : fail(TUTTI_FORMAT, "a branch has no result");
}

/* The coordinates of elements that are not 0: a row for each axis. */
tutti_status build_non_zero(struct onnx_node *node)
{
    const struct array *x = NULL;
    int64_t sizes[2] = { 0 }, found = 0;
    const tutti_status status = node_array(node, 0, &x);
    if (status != TUTTI_OK) return status;
    for (int pass = 0; pass < 2; pass++) {
        struct array *y = NULL;
        if (pass && !(y = array_new(2, sizes, false))) return TUTTI_NO_MEMORY;
        found = 0;
        for (size_t i = 0; i < x->count; i++) {
            if (x->integers && x->integers[i].batches) return array_free(y), node_refuse("it depends on the samples");
            if (x->floats ? x->floats[i] == 0 : x->integers[i].number == 0) continue;
            size_t rest = i;
            for (int axis = x->rank - 1; y && axis >= 0; rest /= (size_t)x->sizes[axis--])
                y->integers[axis * sizes[1] + found].number = (int64_t)(rest % (size_t)x->sizes[axis]);
            found++;
        }
        sizes[0] = x->rank;
        sizes[1] = found;
        node_set_type(node, 0, ONNX_INT64);
        if (pass) return node_set_array(node, y);
    }
    return TUTTI_OK;
}
