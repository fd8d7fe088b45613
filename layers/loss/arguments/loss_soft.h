/* Arguments of loss_soft.cl: what both kernels have, what each has after it, and weights of classes. */
#define SOFT_ARGUMENTS(X)                                                                   \
    X##_FIRST(global const float *, x) X##_BUFFER(global const float *, targets)            \
        X##_BUFFER(global const step_constants *, constants) X##_BUFFER(global float *, dx) \
            X##_BUFFER(global float *, results) X##_FLOAT(weight) X##_FLOAT(smoothing) X##_INT(width)
#define SOFT_ROWS_ARGUMENTS(X) X##_INT(rows) X##_INT(each)
#define SOFT_POSITIONS_ARGUMENTS(X) X##_INT(inner) X##_LONG(total)
#define SOFT_WEIGHTS_ARGUMENTS(X) X##_BUFFER(global const float *, class_weights)
