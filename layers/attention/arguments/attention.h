/* Arguments of attention_cpu.cl and attention_plain_cpu.cl. */
#define ATTENTION_INPUTS(X)                                                                                    \
    X##_FIRST(global const float *, q) X##_BUFFER(global const float *, k) X##_BUFFER(global const float *, v) \
        X##_BUFFER(global const float *, bias) X##_BUFFER(global const step_constants *, constants)
#define ATTENTION_SIZES(X)                                                                                       \
    X##_INT(heads) X##_INT(length) X##_INT(keys) X##_INT(width) X##_INT(width_v) X##_LONG(bias_sample)           \
        X##_LONG(bias_head) X##_LONG(bias_row) X##_FLOAT(scale) X##_LONG(elements_of_sample) X##_UINT(threshold) \
            X##_FLOAT(drop_scale) X##_UINT(stream)
#define ATTENTION_ARGUMENTS(X) \
    ATTENTION_INPUTS(X) X##_BUFFER(global float *, y) X##_BUFFER(global float *, softmax) ATTENTION_SIZES(X)
#define ATTENTION_GRADIENT_ARGUMENTS(X)                                                                                \
    ATTENTION_INPUTS(X)                                                                                                \
    X##_BUFFER(global const float *, y) X##_BUFFER(global const float *, softmax) X##_BUFFER(global const float *, dy) \
        X##_BUFFER(global float *, dq) X##_BUFFER(global float *, dk) X##_BUFFER(global float *, dv)                   \
            ATTENTION_SIZES(X)
#define BLOCKS_ARGUMENTS(X) X##_LOCAL(local float *, scratch) X##_INT(rows) X##_INT(block)
