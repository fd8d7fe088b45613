/* Arguments of recurrent_panels_cpu.cl. */
#define PANELS_SIZES(X)                                                                                           \
    X##_LOCAL(local float *, scratch) X##_INT(samples) X##_INT(steps) X##_INT(width) X##_INT(first) X##_INT(stop) \
        X##_INT(rows) X##_INT(blocks) X##_FLOAT(clip)
#define PANELS_FORWARD_ARGUMENTS(X)                                                          \
    X##_FIRST(global const float *, panels) X##_BUFFER(global const float *, gates)          \
        X##_BUFFER(global const float *, bias) X##_BUFFER(global const float *, h0)          \
            X##_BUFFER(global const float *, c0) X##_BUFFER(global const float *, peepholes) \
                X##_BUFFER(global const float *, lengths) X##_BUFFER(global float *, y)      \
                    X##_BUFFER(global float *, last) X##_BUFFER(global float *, saved)       \
                        X##_BUFFER(global float *, last_c) X##_BUFFER(global float *, states) PANELS_SIZES(X)
#define PANELS_BACKWARD_ARGUMENTS(X)                                                                  \
    X##_FIRST(global const float *, panels) X##_BUFFER(global const float *, y)                       \
        X##_BUFFER(global const float *, saved) X##_BUFFER(global const float *, h0)                  \
            X##_BUFFER(global const float *, c0) X##_BUFFER(global const float *, peepholes)          \
                X##_BUFFER(global const float *, lengths) X##_BUFFER(global const float *, dy)        \
                    X##_BUFFER(global const float *, dlast) X##_BUFFER(global const float *, dlast_c) \
                        X##_BUFFER(global float *, dgates) X##_BUFFER(global float *, dh)             \
                            X##_BUFFER(global float *, dc) X##_BUFFER(global float *, previous)       \
                                X##_BUFFER(global float *, other) X##_BUFFER(global float *, states) PANELS_SIZES(X)
