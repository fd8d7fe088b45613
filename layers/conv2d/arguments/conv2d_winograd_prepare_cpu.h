/* Arguments of conv2d_winograd_prepare_cpu.cl. */
#define WINOGRAD_INPUT_ARGUMENTS(X)                                                                                \
    X##_FIRST(const global float *restrict, source) X##_BUFFER(global float *restrict, workspace) X##_LONG(offset) \
        X##_INT(source_blocks) X##_INT(source_height) X##_INT(source_width) X##_INT(result_height)                 \
            X##_INT(result_width) X##_INT(padding_h) X##_INT(padding_w) X##_INT(tile_rows) X##_INT(tile_columns)   \
                X##_INT(tiles) X##_INT(T) X##_INT(slice)
#define WINOGRAD_KERNELS_ARGUMENTS(X)                                                         \
    X##_FIRST(const global float *restrict, w) X##_BUFFER(const global float *restrict, bias) \
        X##_BUFFER(global float *restrict, prepared) X##_INT(sources) X##_INT(results) X##_INT(padded) X##_INT(merged)
