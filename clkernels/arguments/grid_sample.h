/* Arguments of grid_sample.cl: sizes of x [channels][depth][height][width] and of the grid, which has `outputs` places
 * for each sample. grid_stride: floats from one sample's grid to the next. */
#define GRID_SIZES(X)                                                                           \
    X##_INT(channels) X##_INT(depth) X##_INT(height) X##_INT(width) X##_LONG(outputs)           \
        X##_LONG(grid_stride) X##_LONG(all)
#define GRID_SAMPLE_ARGUMENTS(X)                                                                                    \
    X##_FIRST(global const float *, x) X##_BUFFER(global const float *, grid) X##_BUFFER(global float *, y)         \
        X##_LONG(chunk)
#define GRID_DATA_ARGUMENTS(X)                                                                                      \
    X##_FIRST(global const float *, grid) X##_BUFFER(global const float *, dy) X##_BUFFER(global float *, dx)       \
        X##_LONG(each)
#define GRID_GRID_ARGUMENTS(X)                                                                                      \
    X##_FIRST(global const float *, x) X##_BUFFER(global const float *, grid) X##_BUFFER(global const float *, dy)  \
        X##_BUFFER(global float *, dgrid) X##_LONG(chunk)
