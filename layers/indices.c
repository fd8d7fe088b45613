#include "layers/indices.h"

#include "clkernels/arguments/gather.h"
#include "runtime/arguments.h"

ATTRIBUTES_DESCRIBE(indexed, ATTRIBUTE(indexed, INT, kind), ATTRIBUTE(indexed, AXIS, axis),
    ATTRIBUTE(indexed, INT, reduction), ATTRIBUTE(indexed, OTHER, batched), ATTRIBUTE(indexed, SHAPE, shape))

static bool add_size(tutti_shape *shape, int64_t size)
{
    if (shape->rank == TUTTI_MAX_RANK) return false;
    shape->sizes[shape->rank++] = size;
    return true;
}

/* Number of axes of data along which the indices select. */
static int axes_of(const struct indexed_attributes *a, const struct value *indices)
{
    return a->kind == INDEXED_ND ? (int)value_size(indices, 0) : 1;
}

static tutti_status check_indices(
    const char *name, const struct indexed_attributes *a, const struct value *data, const struct value *indices)
{
    const int rank = indices->shape.rank, given = rank - indices->batched, before = a->axis - data->batched;
    if (data->type != TYPE_F32 || (indices->type != TYPE_F32 && indices->type != TYPE_I32))
        return fail(
            TUTTI_INVALID, "%s: the data must be of float32, and the indices whole numbers of int32 or float32", name);
    if (before < 0 || a->axis >= data->shape.rank)
        return fail(TUTTI_INVALID, "%s: axis %d does not exist: the data have %d", name, before,
            data->shape.rank - data->batched);
    if (a->kind == INDEXED_ELEMENTS && given != data->shape.rank - data->batched)
        return fail(TUTTI_SHAPE, "%s: the indices have %d axes, and the data %d: they must have equally many", name,
            given, data->shape.rank - data->batched);
    if (a->kind == INDEXED_ND &&
        (given <= before || value_size(indices, 0) < 1 || value_size(indices, 0) > data->shape.rank - a->axis))
        return fail(TUTTI_SHAPE, "%s: the last axis of the indices has %lld numbers: 1 to %d are possible", name,
            given ? (long long)value_size(indices, 0) : 0, data->shape.rank - a->axis);
    for (int i = 0; i < given && a->kind != INDEXED_AXIS; i++) {
        const bool equal = a->kind == INDEXED_ELEMENTS ? i != before : i < before;
        const int64_t size = indices->shape.sizes[i + indices->batched], wanted = data->shape.sizes[i + data->batched];
        if (equal && size != wanted)
            return fail(TUTTI_SHAPE, "%s: axis %d of the indices has size %s, and that of the data %s", name, i,
                size_print(size, (char[SIZE_TEXT]) { 0 }), size_print(wanted, (char[SIZE_TEXT]) { 0 }));
    }
    return TUTTI_OK;
}

tutti_status indexed_shape(
    const struct node *node, const struct value *data, const struct value *indices, struct value *y)
{
    const struct indexed_attributes *a = indexed_attributes(node);
    const char *name = node->operation->name;
    const tutti_shape *d = &data->shape, *n = &indices->shape;
    tutti_status status = check_indices(name, a, data, indices);
    if (status != TUTTI_OK) return status;
    *y = (struct value) { .type = TYPE_F32, .batched = data->batched || indices->batched };
    const int axes = axes_of(a, indices), first = a->kind == INDEXED_ND ? a->axis - data->batched : 0;
    bool fits = true;
    if (y->batched) fits = add_size(&y->shape, data->batched ? d->sizes[0] : n->sizes[0]);
    for (int i = data->batched; i < a->axis; i++) fits &= add_size(&y->shape, d->sizes[i]);
    if (a->kind == INDEXED_ELEMENTS)
        fits &= add_size(&y->shape, n->sizes[a->axis - data->batched + indices->batched]);
    else
        for (int i = first + indices->batched; i < n->rank - (a->kind == INDEXED_ND); i++)
            fits &= add_size(&y->shape, n->sizes[i]);
    for (int i = a->axis + axes; i < d->rank; i++) fits &= add_size(&y->shape, d->sizes[i]);
    if (!fits) return fail(TUTTI_SHAPE, "%s: the result would have more than %d axes", name, TUTTI_MAX_RANK);
    if (y->shape.rank == 0) y->shape = TUTTI_SHAPE(1);
    return TUTTI_OK;
}

struct indexed_sizes indexed_sizes_of(
    const struct indexed_attributes *a, const struct value *data, const struct value *indices)
{
    const tutti_shape *d = &data->shape;
    const int axes = axes_of(a, indices);
    struct indexed_sizes z = { .samples = 1, .outer = 1, .inner = 1, .axis = 1, .index_length = axes };
    if (data->batched || indices->batched) z.samples = data->batched ? d->sizes[0] : indices->shape.sizes[0];
    for (int i = data->batched; i < d->rank; i++)
        *(i < a->axis ? &z.outer : i < a->axis + axes ? &z.axis : &z.inner) *= d->sizes[i];
    for (int i = 0; i < axes; i++) z.sizes[i] = d->sizes[a->axis + i];
    const int64_t each = value_elements(indices) / (indices->batched ? indices->shape.sizes[0] : 1);
    z.index_sample = indices->batched ? each : 0;
    z.index_next = a->kind == INDEXED_ELEMENTS ? z.inner : axes;
    z.index_inner = a->kind == INDEXED_ELEMENTS;
    z.index_outer = a->kind == INDEXED_AXIS ? 0 : each / z.outer;
    z.count = each / (a->kind == INDEXED_AXIS ? 1 : z.outer) / z.index_next;
    return z;
}

ARGUMENTS(indices, INDICES_ARGUMENTS)

void indexed_arguments(struct launch *launch, const struct indexed_sizes *z)
{
    ARGUMENTS_SET(launch, indices, .rows = z->outer, .count = z->count, .inner = z->inner, .axis = z->axis,
        .index_sample = z->index_sample, .index_row = z->index_outer, .index_next = z->index_next,
        .index_inner = z->index_inner, .numbers = z->index_length, .size0 = z->sizes[0], .size1 = z->sizes[1],
        .size2 = z->sizes[2], .size3 = z->sizes[3], .size4 = z->sizes[4], .size5 = z->sizes[5]);
}

const char *indexed_options(const struct value *indices)
{
    return indices->type == TYPE_I32 ? "-DWHOLE=1" : "-DWHOLE=0";
}
