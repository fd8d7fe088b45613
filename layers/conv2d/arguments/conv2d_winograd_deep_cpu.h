/* Arguments of conv2d_winograd_deep_cpu.cl. */
#define WINOGRAD_DEEP_ARGUMENTS(X)                                                                                  \
    X##_FIRST(const global float *restrict, workspace) X##_LONG(offset) X##_BUFFER(const global float *restrict, w) \
        X##_BUFFER(const global float *restrict, prepared) X##_BUFFER(const global float *, add)                    \
            X##_BUFFER(global float *, result) X##_INT(sources) X##_INT(source_blocks) X##_INT(results)             \
                X##_INT(result_blocks) X##_INT(result_height) X##_INT(result_width) X##_INT(tile_rows)              \
                    X##_INT(tile_columns) X##_INT(tiles) X##_INT(T) X##_INT(slice) X##_INT(tasks)                   \
                        X##_SCRATCH(SCRATCH float *, scratch) X##_INT(scratch_floats)
