/* Arguments of loss_cpu.cl and loss_gpu.cl: what all kernels have, what one has after it, and weights of classes. */
#define LABELS_ARGUMENTS(X)                                                                 \
    X##_FIRST(global const float *, x) X##_BUFFER(global const int *, labels)               \
        X##_BUFFER(global const step_constants *, constants) X##_BUFFER(global float *, dx) \
            X##_BUFFER(global float *, results) X##_FLOAT(weight) X##_FLOAT(smoothing)
#define ROWS_ARGUMENTS(X) X##_INT(rows) X##_INT(width) X##_INT(each)
#define PIECES_ARGUMENTS(X) X##_INT(width) X##_INT(inner) X##_INT(pieces) X##_INT(each)
#define WIDTH_ARGUMENTS(X) X##_INT(width)
#define POSITIONS_ARGUMENTS(X) X##_INT(width) X##_INT(inner) X##_LONG(total)
#define WEIGHTS_ARGUMENTS(X) X##_BUFFER(global const float *, class_weights) X##_FLOAT(mean_weight)
