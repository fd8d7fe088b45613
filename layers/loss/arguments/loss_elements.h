/* Arguments of loss_elements.cl. */
#define ELEMENTS_ARGUMENTS(X)                                                               \
    X##_FIRST(global const float *, x) X##_BUFFER(global const float *, targets)            \
        X##_BUFFER(global const step_constants *, constants) X##_BUFFER(global float *, dx) \
            X##_BUFFER(global float *, results) X##_FLOAT(weight) X##_FLOAT(delta) X##_LONG(n) X##_INT(each)
