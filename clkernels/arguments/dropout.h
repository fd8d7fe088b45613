/* Arguments of dropout.cl. */
#define DROPOUT_ARGUMENTS(X)                                                                                           \
    X##_FIRST(global const float *, x) X##_BUFFER(global const step_constants *, constants) X##_BUFFER(global float *, \
        y) X##_LONG(elements_of_sample) X##_LONG(total) X##_UINT(threshold) X##_FLOAT(scale) X##_UINT(stream)
#define TASK_ARGUMENTS(X) X##_INT(each)
