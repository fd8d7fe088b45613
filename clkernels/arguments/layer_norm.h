/* Arguments of layer_norm.cl. */
#define ROWS_ARGUMENTS(X)                                                                                             \
    X##_FIRST(global const float *, x) X##_BUFFER(global const float *, gamma) X##_BUFFER(global const float *, beta) \
        X##_BUFFER(global float *, y) X##_BUFFER(global float *, mean) X##_BUFFER(global float *, rstd) X##_INT(rows) \
            X##_INT(width) X##_INT(each) X##_FLOAT(epsilon)
#define ROWS_GRADIENT_ARGUMENTS(X)                                                                                   \
    X##_FIRST(global const float *, x) X##_BUFFER(global const float *, dy) X##_BUFFER(global const float *, gamma)  \
        X##_BUFFER(global const float *, mean) X##_BUFFER(global const float *, rstd) X##_BUFFER(global float *, dx) \
            X##_BUFFER(global float *, parts) X##_INT(rows) X##_INT(width) X##_INT(each)
#define GROUPS_ARGUMENTS(X)                                                                                            \
    X##_FIRST(global const float *, x) X##_BUFFER(global const float *, gamma) X##_BUFFER(global const float *, beta)  \
        X##_BUFFER(global float *, y) X##_BUFFER(global float *, mean) X##_BUFFER(global float *, rstd) X##_INT(width) \
            X##_FLOAT(epsilon)
#define GROUPS_GRADIENT_ARGUMENTS(X)                                                                                 \
    X##_FIRST(global const float *, x) X##_BUFFER(global const float *, dy) X##_BUFFER(global const float *, gamma)  \
        X##_BUFFER(global const float *, mean) X##_BUFFER(global const float *, rstd) X##_BUFFER(global float *, dx) \
            X##_INT(width)
#define SUMS_ARGUMENTS(X)                                                                                          \
    X##_FIRST(global const float *, x) X##_BUFFER(global const float *, dy) X##_BUFFER(global const float *, mean) \
        X##_BUFFER(global const float *, rstd) X##_BUFFER(global float *, parts) X##_INT(rows) X##_INT(width)      \
            X##_INT(each)
