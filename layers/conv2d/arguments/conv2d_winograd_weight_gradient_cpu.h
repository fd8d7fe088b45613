/* Arguments of conv2d_winograd_weight_gradient_cpu.cl. */
#define WINOGRAD_WEIGHTS_ARGUMENTS(X)                                                                                 \
    X##_FIRST(const global float *restrict, x) X##_BUFFER(const global float *restrict, dy)                           \
        X##_BUFFER(global float *, workspace) X##_LONG(offset) X##_BUFFER(const global float *, add)                  \
            X##_BUFFER(global float *, dw) X##_INT(groups) X##_INT(source_height) X##_INT(source_width)               \
                X##_INT(result_height) X##_INT(result_width) X##_INT(padding_h) X##_INT(padding_w) X##_INT(tile_rows) \
                    X##_INT(tile_columns) X##_INT(tiles) X##_INT(T) X##_INT(tiles_split) X##_INT(channel_blocks)      \
                        X##_INT(output_blocks) X##_INT(splits) X##_INT(merged) CONV2D_GROUPS_ARGUMENTS(X)             \
                            X##_SCRATCH(SCRATCH float *, scratch) X##_INT(scratch_floats)
