/* Arguments of spectral_product_cpu.cl: `floats` of all frequencies, channels or samples a, b and k, and the steps from
 * one to the next. */
#define SPECTRAL_PRODUCT_ARGUMENTS(X)                                                                  \
    X##_FIRST(global const float *restrict, left) X##_BUFFER(global const float *restrict, right)      \
        X##_BUFFER(global float *restrict, result) X##_INT(floats) X##_INT(as) X##_INT(bs) X##_INT(ks) \
            X##_LONG(left_a) X##_LONG(left_k) X##_LONG(right_k) X##_LONG(right_b) X##_LONG(result_a)   \
                X##_LONG(result_b)
