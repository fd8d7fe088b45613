/* Arguments of channel_sum.cl. */
#define SUM_ARGUMENTS(X)                                                                                             \
    X##_FIRST(global const float *restrict, dy) X##_BUFFER(global const float *, add) X##_BUFFER(global float *, db) \
        X##_INT(N) X##_INT(C)
#define PLANE_ARGUMENTS(X) X##_INT(pixels) X##_INT(blocked)
