/* Arguments of conv2d_direct_weight_gradient_cpu.cl. */
#define DIRECT_WEIGHTS_ARGUMENTS(X)                                                                               \
    X##_FIRST(const global float *restrict, x) X##_BUFFER(const global float *restrict, dy)                       \
        X##_BUFFER(global float *, workspace) X##_LONG(offset) X##_INT(C) X##_INT(CB) X##_INT(KB) X##_INT(height) \
            X##_INT(width_source) X##_INT(units_all) X##_INT(units_split) X##_INT(units_max) X##_INT(per_image)   \
                X##_INT(segments) X##_INT(segment) X##_INT(width) X##_INT(row_start) X##_INT(column_start)        \
                    X##_INT(width_packed) X##_INT(channel_blocks) X##_INT(output_blocks) X##_INT(splits)          \
                        X##_INT(groups) X##_INT(merged) CONV2D_GROUPS_ARGUMENTS(X)                                \
                            X##_SCRATCH(SCRATCH float *, scratch) X##_INT(scratch_floats)
