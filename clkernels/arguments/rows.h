/* Arguments of rows.cl. */
#define COPY_ARGUMENTS(X)                                                                                              \
    X##_FIRST(global const float *, in) X##_ADD(global const float *, add) X##_BUFFER(global float *, out)             \
        X##_LONG(rows) X##_LONG(width) X##_LONG(in_first) X##_LONG(in_stride) X##_LONG(out_first) X##_LONG(out_stride) \
            X##_LONG(chunk)
