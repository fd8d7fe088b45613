/* Arguments of conv2d_sum_cpu.cl. */
#define SUM_ARGUMENTS(X)                                                                                    \
    X##_FIRST(const global float *, workspace) X##_LONG(offset) X##_BUFFER(const global float *, add)       \
        X##_BUFFER(global float *, dw) X##_INT(K) X##_INT(length) X##_INT(part_blocks) X##_INT(part_length) \
            X##_INT(parts) X##_INT(share)
