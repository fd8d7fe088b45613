/* Arguments of one_hot.cl. */
#define ONE_HOT_ARGUMENTS(X)                                                                                    \
    X##_FIRST(global const INDEX *, indices) X##_BUFFER(global float *, y) X##_LONG(elements) X##_LONG(chunk)   \
        X##_INT(depth) X##_INT(inner) X##_FLOAT(off) X##_FLOAT(on)
