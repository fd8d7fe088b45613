/* Arguments of reverse_sequence.cl. */
#define REVERSE_ARGUMENTS(X)                                                                                       \
    X##_FIRST(global const float *, x) X##_BUFFER(global const INDEX *, lengths) X##_BUFFER(global float *, y)     \
        X##_LONG(elements) X##_LONG(chunk) X##_LONG(sample) X##_INT(times) X##_LONG(inner) X##_INT(batches)        \
            X##_LONG(batch_inner) X##_INT(length_sample) X##_INT(length_next)
