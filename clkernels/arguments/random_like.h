/* Arguments of random_like.cl. */
#define RANDOM_ARGUMENTS(X)                                                                                        \
    X##_FIRST(global const step_constants *, constants) X##_BUFFER(global float *, y) X##_LONG(elements_of_sample) \
        X##_LONG(total) X##_FLOAT(offset) X##_FLOAT(scale) X##_UINT(stream)
