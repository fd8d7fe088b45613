#include "graph/graph.h"

struct axes axes_with_channels(int rank)
{
    struct axes axes = { { [CHANNEL_AXIS] = AXIS_CHANNEL } };
    for (int i = SPACE_AXIS; i < rank; i++) axes.kinds[i] = AXIS_SPACE;
    return axes;
}

struct axes axes_with_sequences(struct axes axes, const tutti_shape *shape)
{
    for (int i = 0; i < shape->rank && i < TUTTI_MAX_RANK; i++)
        if (shape->sizes[i] == TUTTI_SEQUENCE) axes.kinds[i] = AXIS_SEQUENCE;
    return axes;
}

struct axes axes_with_features(const struct value *x, int rank)
{
    struct axes axes = x->axes;
    for (int i = 0; i < rank; i++)
        if (axes.kinds[i] == AXIS_CHANNEL) axes.kinds[i] = AXIS_NONE;
    axes.kinds[rank - 1] = AXIS_CHANNEL;
    return axes;
}

enum axis_kind value_axis(const struct value *value, int axis)
{
    return value->batched && axis == 0 ? AXIS_BATCH : (enum axis_kind)value->axes.kinds[axis];
}

bool value_has_layouts(const struct value *value)
{
    const struct axes axes = axes_with_channels(value->shape.rank);
    for (int i = CHANNEL_AXIS; i < value->shape.rank; i++)
        if (value->axes.kinds[i] != axes.kinds[i]) return false;
    return value->shape.rank > SPACE_AXIS;
}

bool value_has_channels_last(const struct value *value)
{
    return value_has_layouts(value) && value->shape.sizes[CHANNEL_AXIS] % CHANNELS_LAST_MULTIPLE == 0;
}

bool value_has_axes_of(const struct value *value, const struct value *other)
{
    return value->shape.rank == other->shape.rank && value->batched == other->batched &&
        value->role != ROLE_PARAMETER && other->role != ROLE_PARAMETER;
}

struct planes value_planes(const struct value *value, int axis)
{
    const int64_t *sizes = value->shape.sizes;
    struct planes planes = { .n = 1, .c = sizes[axis], .pixels = 1 };
    for (int i = 0; i < axis; i++) planes.n *= sizes[i];
    for (int i = axis + 1; i < value->shape.rank; i++) planes.pixels *= sizes[i];
    return planes;
}

void infer_axes(const struct graph *graph, const struct node *node, struct value *output)
{
    output->axes = (struct axes) { 0 };
    for (int i = 0; i < node->input_count; i++) {
        const struct value *input = graph_at(graph, node->inputs[i]);
        if (!input || input->shape.rank > output->shape.rank) continue;
        const int ahead = output->shape.rank - input->shape.rank;
        if (ahead == 0 && value_has_layouts(input)) {
            output->axes = input->axes;
            return;
        }
        for (int k = input->batched; k < input->shape.rank; k++)
            if (!output->axes.kinds[ahead + k]) output->axes.kinds[ahead + k] = input->axes.kinds[k];
    }
}
