#include "layers/composition.h"

int compose_fail(const struct composing *c, tutti_status status)
{
    if (c->graph->status == TUTTI_OK) c->graph->status = status;
    return NO_VALUE;
}

int compose_one(const struct composing *c, const struct operation *operation, int a)
{
    return graph_append(c->graph, operation, NULL, &a, 1, c->layer);
}

int compose_two(const struct composing *c, const struct operation *operation, int a, int b)
{
    return graph_append(c->graph, operation, NULL, (int[]) { a, b }, 2, c->layer);
}

int compose_number(const struct composing *c, const struct operation *operation, int a, float number)
{
    const struct pointwise_attributes attributes = { .low = number };
    return graph_append(c->graph, operation, &attributes, &a, 1, c->layer);
}

int compose_reshape(const struct composing *c, int x, tutti_shape shape)
{
    struct reshape_attributes attributes = { .shape = shape };
    const struct value *value = graph_at(c->graph, x);
    if (!value) return NO_VALUE;
    if (shape_equal(value->shape, shape)) return x;
    const tutti_status status = reshape_resolve(value, &attributes);
    if (status != TUTTI_OK) return compose_fail(c, status);
    return graph_append(c->graph, &operation_reshape, &attributes, &x, 1, c->layer);
}

int compose_reduce(const struct composing *c, const struct operation *operation, int x, unsigned axes)
{
    const struct reduce_attributes attributes = { .axes = axes };
    return graph_append(c->graph, operation, &attributes, &x, 1, c->layer);
}

int compose_transpose(const struct composing *c, int x, const int *order)
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

int compose_window(const struct composing *c, int x, int axis, int64_t begin, int64_t size)
{
    struct window_attributes attributes = { 0 };
    const struct value *value = graph_at(c->graph, x);
    if (!value) return NO_VALUE;
    attributes.shape = value->shape;
    attributes.shape.sizes[axis] = size;
    attributes.begins[axis] = begin;
    return graph_append(c->graph, &operation_window, &attributes, &x, 1, c->layer);
}

int compose_expand(const struct composing *c, int x, tutti_shape shape, int like)
{
    const struct value *value = graph_at(c->graph, x), *other = graph_at(c->graph, like);
    if (!value || !other) return NO_VALUE;
    const int64_t rows = !value->batched && other->batched ? other->rows : 0;
    const struct expand_attributes attributes = { .shape = shape, .factor = 1, .rows = rows };
    if (shape_equal(value->shape, shape) && rows == 0) return x;
    return graph_append(c->graph, &operation_expand, &attributes, &x, 1, c->layer);
}
