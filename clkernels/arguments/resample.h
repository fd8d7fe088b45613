/* Arguments of resample.cl. */
#define RESAMPLE_ARGUMENTS(X)                                                                                         \
    X##_FIRST(global const float *, x) X##_BUFFER(global const int *, starts)                                         \
        X##_BUFFER(global const int *, positions) X##_BUFFER(global const float *, weights)                           \
            X##_BUFFER(global float *, y) X##_FLOAT(outside) X##_INT(from) X##_INT(to) X##_LONG(rows) X##_LONG(inner) \
                X##_LONG(each) X##_LONG(piece)
