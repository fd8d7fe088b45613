/* Arguments of conv2d_winograd_cpu.cl. */
#define WINOGRAD_ARGUMENTS(X)                                                                                          \
    X##_FIRST(const global float *restrict, source) X##_BUFFER(const global float *restrict, prepared)                 \
        X##_BUFFER(const global float *, add) X##_BUFFER(global float *, result) X##_INT(source_blocks)                \
            X##_INT(padded) X##_INT(result_blocks) X##_INT(source_height) X##_INT(source_width) X##_INT(result_height) \
                X##_INT(result_width) X##_INT(padding_h) X##_INT(padding_w) X##_INT(tile_rows) X##_INT(tile_columns)   \
                    X##_INT(tiles) X##_INT(T) X##_INT(chunks) X##_INT(panels) X##_INT(panels_max)                      \
                        CONV2D_GROUPS_ARGUMENTS(X) X##_SCRATCH(SCRATCH float *, scratch) X##_INT(scratch_floats)
