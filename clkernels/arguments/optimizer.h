/* Arguments of optimizer.cl; the states are after them, and groups after those. */
#define OPTIMIZER_ARGUMENTS(X)                                                                                    \
    X##_FIRST(global float *restrict, parameters) X##_BUFFER(global const float *restrict, gradients)             \
        X##_BUFFER(global const step_constants *, constants) X##_BUFFER(global const float *, losses) X##_LONG(n) \
            X##_INT(floats) X##_FLOAT(weight_decay) X##_FLOAT(momentum) X##_FLOAT(beta1) X##_FLOAT(beta2)         \
                X##_FLOAT(epsilon)
#define GROUPS_ARGUMENTS(X) X##_BUFFER(global const float2 *restrict, groups)
