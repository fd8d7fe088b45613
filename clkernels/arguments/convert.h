/* Arguments of convert.cl. */
#define CONVERT_ARGUMENTS(X)                                                                                   \
    X##_FIRST(global const FROM *, x) X##_BUFFER(global TO *, y) X##_FLOAT(scale) X##_FLOAT(shift) X##_LONG(n) \
        X##_LONG(stride) X##_LONG(first) X##_LONG(chunk)
