/* Arguments of loss_ctc.cl: those of all its kernels, and the rows of a task after them. */
#define CTC_ARGUMENTS(X)                                                                                            \
    X##_FIRST(global const float *, x) X##_BUFFER(global const int *, targets)                                      \
        X##_BUFFER(global const float *, lengths) X##_BUFFER(global const step_constants *, constants)              \
            X##_BUFFER(global float *, dx) X##_BUFFER(global float *, workspace) X##_FLOAT(weight) X##_INT(samples) \
                X##_INT(frames) X##_INT(classes) X##_INT(listed) X##_INT(blank) X##_INT(pitch)
#define CTC_ROWS_ARGUMENTS(X) X##_INT(each)
