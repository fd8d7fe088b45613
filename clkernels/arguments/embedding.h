/* Arguments of embedding.cl. */
#define TASKS_ARGUMENTS(X)                                                                                      \
    X##_FIRST(global const INDEX *, ids) X##_BUFFER(global const float *, dy) X##_BUFFER(global float *, dtable)  \
        X##_BUFFER(global const float *, added) X##_BUFFER(global float *, errors) X##_INT(count) X##_INT(rows) \
            X##_INT(width) X##_INT(columns) X##_INT(parts)
