/* Arguments of optimizer.cl. */
#define SGD_ARGUMENTS(X)                                                                                          \
    X##_FIRST(global float *restrict, p) X##_BUFFER(global const float *restrict, g)                              \
        X##_BUFFER(global const step_constants *, constants) X##_BUFFER(global const float *, losses) X##_LONG(n) \
            X##_INT(floats) X##_FLOAT(decay)
#define SGD_MOMENTUM_ARGUMENTS(X)                                                                                     \
    X##_FIRST(global float *restrict, p) X##_BUFFER(global const float *restrict, g)                                  \
        X##_BUFFER(global float *restrict, v) X##_BUFFER(global const step_constants *, constants)                    \
            X##_BUFFER(global const float *, losses) X##_LONG(n) X##_INT(floats) X##_FLOAT(decay) X##_FLOAT(momentum) \
                X##_INT(nesterov)
#define ADAM_ARGUMENTS(X)                                                                                             \
    X##_FIRST(global float *restrict, p) X##_BUFFER(global const float *restrict, g)                                  \
        X##_BUFFER(global float *restrict, m) X##_BUFFER(global float *restrict, v)                                   \
            X##_BUFFER(global const step_constants *, constants) X##_BUFFER(global const float *, losses) X##_LONG(n) \
                X##_INT(floats) X##_FLOAT(decay) X##_FLOAT(beta1) X##_FLOAT(beta2) X##_FLOAT(epsilon)                 \
                    X##_INT(decoupled)
#define AVERAGE_ARGUMENTS(X)                                                                                      \
    X##_FIRST(global const float *restrict, p) X##_BUFFER(global float *restrict, a)                              \
        X##_BUFFER(global const step_constants *, constants) X##_BUFFER(global const float *, losses) X##_LONG(n) \
            X##_INT(floats) X##_FLOAT(rate)
#define GROUPS_ARGUMENTS(X) X##_BUFFER(global const float2 *restrict, groups)
