/* Arguments of gemm_bf16_pack.cl. */
#define GEMM_BF16_PACK_ARGUMENTS(X)                                                                                    \
    X##_FIRST(global const stored_t *, from) X##_BUFFER(global uint *, to) X##_BUFFER(global float *, sums)           \
        X##_INT(lines) X##_INT(k) X##_INT(ld) X##_INT(tiles) X##_LONG(stride) X##_LONG(first_to) X##_LONG(part_to) \
            X##_LONG(first_flag)
/* Arguments of gemm_bf16.cl. */
#define GEMM_BF16_ARGUMENTS(X)                                                                                             \
    X##_FIRST(global const uint *, packed) X##_BUFFER(global const float *, bias)                                      \
        X##_BUFFER(global const float *, added) X##_BUFFER(global float *, C) X##_LOCAL(local float *, unit)           \
            X##_INT(m) X##_INT(n) X##_INT(tiles) X##_INT(ldc) X##_INT(rows) X##_INT(columns) X##_INT(depth)            \
                X##_INT(kept) X##_INT(chain) X##_LONG(from_b) X##_LONG(part_a) X##_LONG(part_b) X##_LONG(stride_a)     \
                    X##_LONG(stride_b) X##_LONG(stride_c) X##_LONG(flags_a) X##_LONG(flags_b) X##_LONG(flags_stride_a) \
                        X##_LONG(flags_stride_b)
