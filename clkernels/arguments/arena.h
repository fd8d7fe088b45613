/* Arguments of arena.cl. */
#define EMA_ARGUMENTS(X)                                                                                          \
    X##_FIRST(global const float *restrict, p) X##_BUFFER(global float *restrict, a)                              \
        X##_BUFFER(global const step_constants *, constants) X##_BUFFER(global const float *, losses) X##_LONG(n) \
            X##_INT(floats) X##_FLOAT(rate)
