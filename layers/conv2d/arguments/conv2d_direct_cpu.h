/* Arguments of conv2d_direct_cpu.cl. */
#define DIRECT_ARGUMENTS(X)                                                                                           \
    X##_FIRST(const global float *restrict, source) X##_BUFFER(const global float *restrict, packed)                  \
        X##_BUFFER(const global float *, add) X##_BUFFER(global float *, result) X##_INT(source_height)               \
            X##_INT(source_width) X##_INT(result_height) X##_INT(result_width) X##_INT(units_all) X##_INT(units_max)  \
                X##_INT(chunks) X##_INT(per_image) X##_INT(segments) X##_INT(segment) X##_INT(width)                  \
                    X##_INT(row_start) X##_INT(column_start) X##_INT(width_packed) X##_INT(panels_max) X##_INT(depth) \
                        X##_INT(distance) X##_INT(shares) CONV2D_GROUPS_ARGUMENTS(X)                                  \
                            X##_SCRATCH(SCRATCH float *, scratch) X##_INT(scratch_floats)
