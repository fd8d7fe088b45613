/* Arguments of conv2d_winograd_rows_cpu.cl. */
#define WINOGRAD_ROWS_ARGUMENTS(X)                                                                                 \
    X##_FIRST(const global float *restrict, x) X##_BUFFER(const global float *restrict, packed)                    \
        X##_BUFFER(const global float *, add) X##_BUFFER(global float *, y) X##_INT(C) X##_INT(KB) X##_INT(height) \
            X##_INT(width) X##_INT(result_height) X##_INT(result_width) X##_INT(padding_h) X##_INT(padding_w)      \
                X##_INT(tiles) X##_INT(rows_max) X##_INT(chunks_image) X##_INT(chunks) X##_INT(stream)             \
                    X##_SCRATCH(SCRATCH float *, scratch) X##_INT(scratch_floats)
#define WINOGRAD_ROWS_GRADIENT_ARGUMENTS(X)                                                                          \
    X##_FIRST(const global float *restrict, x) X##_BUFFER(const global float *restrict, dy)                          \
        X##_BUFFER(global float *, workspace) X##_LONG(offset) X##_INT(C) X##_INT(KB) X##_INT(height) X##_INT(width) \
            X##_INT(result_height) X##_INT(result_width) X##_INT(padding_h) X##_INT(padding_w) X##_INT(tiles)        \
                X##_INT(rows_max) X##_INT(chunks_image) X##_INT(chunks) X##_INT(chunks_split) X##_INT(panels_max)    \
                    X##_SCRATCH(SCRATCH float *, scratch) X##_INT(scratch_floats)
