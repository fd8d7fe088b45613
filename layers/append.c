#include "layers/append.h"

#include <string.h>

int append_fail(const struct append_context *c, tutti_status status)
{
    if (c->graph->status == TUTTI_OK) c->graph->status = status;
    return NO_VALUE;
}

int append_one(const struct append_context *c, const struct operation *operation, int a)
{
    return a == NO_VALUE ? NO_VALUE : graph_append(c->graph, operation, NULL, &a, 1, c->layer);
}

int append_two(const struct append_context *c, const struct operation *operation, int a, int b)
{
    return graph_append(c->graph, operation, NULL, (int[]) { a, b }, 2, c->layer);
}

int append_number(const struct append_context *c, const struct operation *operation, int a, float number)
{
    const struct pointwise_attributes attributes = { .low = number };
    return graph_append(c->graph, operation, &attributes, &a, 1, c->layer);
}

int append_reshape(const struct append_context *c, int x, tutti_shape shape)
{
    struct reshape_attributes attributes = { .shape = shape };
    const struct value *value = graph_at(c->graph, x);
    if (!value) return NO_VALUE;
    if (shape_equal(value->shape, shape)) return x;
    const tutti_status status = reshape_resolve(value, &attributes);
    if (status != TUTTI_OK) return append_fail(c, status);
    return graph_append(c->graph, &operation_reshape, &attributes, &x, 1, c->layer);
}

int append_split(const struct append_context *c, int x, int axis, int64_t front)
{
    const struct value *value = graph_at(c->graph, x);
    if (!value) return NO_VALUE;
    tutti_shape shape = value->shape;
    if (shape.rank == TUTTI_MAX_RANK)
        return append_fail(c,
            fail(TUTTI_SHAPE, "an intermediate result would have %d dimensions: %d are possible", shape.rank + 1,
                TUTTI_MAX_RANK));
    memmove(shape.sizes + axis + 1, shape.sizes + axis, (size_t)(shape.rank++ - axis) * sizeof *shape.sizes);
    shape.sizes[axis] = front;
    shape.sizes[axis + 1] /= front;
    return append_reshape(c, x, shape);
}

int append_join(const struct append_context *c, int x, int axis)
{
    const struct value *value = graph_at(c->graph, x);
    if (!value) return NO_VALUE;
    tutti_shape shape = value->shape;
    shape.sizes[axis] *= shape.sizes[axis + 1];
    memmove(shape.sizes + axis + 1, shape.sizes + axis + 2, (size_t)(--shape.rank - axis - 1) * sizeof *shape.sizes);
    return append_reshape(c, x, shape);
}

int append_reduce(const struct append_context *c, const struct operation *operation, int x, unsigned axes)
{
    const struct reduce_attributes attributes = { .axes = axes };
    return graph_append(c->graph, operation, &attributes, &x, 1, c->layer);
}

int append_transpose(const struct append_context *c, int x, const int *order)
{
    struct transpose_attributes attributes = { 0 };
    const struct value *value = graph_at(c->graph, x);
    bool same = true;
    if (!value) return NO_VALUE;
    for (int i = 0; i < value->shape.rank; i++) {
        attributes.order[i] = order[i];
        same &= order[i] == i;
    }
    return same ? x : graph_append(c->graph, &operation_transpose, &attributes, &x, 1, c->layer);
}

int append_window(const struct append_context *c, int x, const struct window_attributes *attributes)
{
    return x == NO_VALUE ? NO_VALUE : graph_append(c->graph, &operation_window, attributes, &x, 1, c->layer);
}

int append_slice(const struct append_context *c, int x, int axis, int64_t begin, int64_t size)
{
    const struct value *value = graph_at(c->graph, x);
    if (!value) return NO_VALUE;
    struct window_attributes attributes = { .shape = value->shape };
    attributes.shape.sizes[axis] = size;
    attributes.begins[axis] = begin;
    return append_window(c, x, &attributes);
}

int append_expand(const struct append_context *c, int x, tutti_shape shape, int like)
{
    const struct value *value = graph_at(c->graph, x), *other = graph_at(c->graph, like);
    if (!value || !other) return NO_VALUE;
    const int64_t rows = !value->batched && other->batched ? other->rows : 0;
    const struct expand_attributes attributes = { .shape = shape, .factor = 1, .rows = rows };
    if (shape_equal(value->shape, shape) && rows == 0) return x;
    return graph_append(c->graph, &operation_expand, &attributes, &x, 1, c->layer);
}
