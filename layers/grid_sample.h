/* grid_sample: samples an image with two or three axes of space at the positions of a grid. */
#ifndef LAYERS_GRID_SAMPLE_H
#define LAYERS_GRID_SAMPLE_H

#include "layers/operations.h"

#define GRID_MODES "linear nearest cubic"
#define GRID_PADDINGS "zeros border reflection"
enum grid_mode { GRID_LINEAR, GRID_NEAREST, GRID_CUBIC };
enum grid_padding { GRID_ZEROS, GRID_BORDER, GRID_REFLECTION };
struct grid_sample_attributes {
    int mode, padding;
    bool align_corners;
    tutti_shape shape; /* of x, for its gradient */
};
ATTRIBUTES(grid_sample)

/* x [N, C, spaces], grid [N, places, axes of space] -> y [N, C, places]; the grid may be the same for all samples.
 * data_gradient: grid, dy -> dx; grid_gradient: x, grid, dy -> dgrid, which always has the batch. */

struct grid_sizes {
    int64_t samples, channels, depth, height, width, outputs, grid_stride; /* grid_stride: 0, the grid is one for all */
    int axes;
};
struct grid_sizes grid_sizes_of(const struct value *x, const struct value *grid);

#endif
