/* Arguments of recurrent.cl. */
#define FORWARD_ARGUMENTS(X)                                                                                          \
    X##_FIRST(global const float *, gates) X##_BUFFER(global const float *, r) X##_BUFFER(global const float *, bias) \
        X##_BUFFER(global const float *, h0) X##_BUFFER(global const float *, c0)                                     \
            X##_BUFFER(global const float *, peepholes) X##_BUFFER(global const float *, lengths)                     \
                X##_BUFFER(global float *, y) X##_BUFFER(global float *, last) X##_BUFFER(global float *, saved)      \
                    X##_BUFFER(global float *, last_c) X##_INT(steps) X##_INT(width) X##_FLOAT(clip)
#define BACKWARD_ARGUMENTS(X)                                                                                      \
    X##_FIRST(global const float *, r) X##_BUFFER(global const float *, y) X##_BUFFER(global const float *, saved) \
        X##_BUFFER(global const float *, h0) X##_BUFFER(global const float *, c0)                                  \
            X##_BUFFER(global const float *, peepholes) X##_BUFFER(global const float *, lengths)                  \
                X##_BUFFER(global const float *, dy) X##_BUFFER(global const float *, dlast)                       \
                    X##_BUFFER(global const float *, dlast_c) X##_BUFFER(global float *, dgates)                   \
                        X##_BUFFER(global float *, dh) X##_BUFFER(global float *, dc)                              \
                            X##_BUFFER(global float *, previous) X##_BUFFER(global float *, other) X##_INT(steps)  \
                                X##_INT(width) X##_FLOAT(clip)
