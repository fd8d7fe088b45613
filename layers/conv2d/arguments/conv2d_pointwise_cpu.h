/* Arguments of conv2d_pointwise_cpu.cl. */
#define POINTWISE_ARGUMENTS(X)                                                                             \
    X##_FIRST(const global in0_t *restrict, source) X##_BUFFER(const global float *restrict, packed)       \
        X##_BUFFER(const global add_t *, add) X##_BUFFER(global out0_t *, result) X##_INT(padded)          \
            X##_INT(source_blocks) X##_INT(result_blocks) X##_INT(length) X##_INT(columns) X##_INT(height) \
                X##_INT(width) X##_INT(groups_image) X##_INT(groups) X##_INT(groups_max) X##_INT(panels)   \
                    X##_INT(panels_max) X##_INT(depth) X##_INT(ahead) X##_INT(following) X##_INT(stream)   \
                        X##_LOCAL(local float *, sums)
#define GATHER_ARGUMENTS(X)                                                                                 \
    X##_FIRST(const global in0_t *restrict, x) X##_BUFFER(global in0_t *restrict, gathered) X##_INT(height) \
        X##_INT(width) X##_INT(OH) X##_INT(OW) X##_INT(stride)
#define POINTWISE_WEIGHTS_ARGUMENTS(X)                                                                             \
    X##_FIRST(const global in0_t *restrict, x) X##_BUFFER(const global in1_t *restrict, dy)                        \
        X##_BUFFER(global float *, workspace) X##_LONG(offset) X##_INT(C) X##_INT(KB) X##_INT(length) X##_INT(run) \
            X##_INT(runs_image) X##_INT(runs) X##_INT(runs_split) X##_INT(chunk) X##_INT(channels_max)             \
                X##_INT(blocks_max)
