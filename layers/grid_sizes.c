/* The sizes of a grid_sample node, for its implementation and the reference. */
#include "layers/grid_sample.h"

struct grid_sizes grid_sizes_of(const struct value *x, const struct value *grid)
{
    const int64_t *sizes = x->shape.sizes, each = value_elements(grid) / (grid->batched ? grid->shape.sizes[0] : 1);
    const int axes = x->shape.rank - SPACE_AXIS;
    return (struct grid_sizes) { .samples = sizes[0],
        .channels = sizes[CHANNEL_AXIS],
        .depth = axes == 3 ? sizes[SPACE_AXIS] : 1,
        .height = value_size(x, 1),
        .width = value_size(x, 0),
        .outputs = each / axes,
        .grid_stride = grid->batched ? each : 0,
        .axes = axes };
}
