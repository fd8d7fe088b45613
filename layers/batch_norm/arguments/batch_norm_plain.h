/* Arguments of batch_norm_plain.cl. */
#define PLAIN_FINISH_ARGUMENTS(X)                                                                              \
    X##_FIRST(global const step_constants *, constants) X##_BUFFER(global const float *, partial)              \
        X##_BUFFER(global float *, save_mean) X##_BUFFER(global float *, save_rstd)                            \
            X##_BUFFER(global float *, batch_mean) X##_BUFFER(global float *, batch_var) X##_INT(N) X##_INT(C) \
                X##_INT(parts) X##_INT(stride) X##_FLOAT(epsilon)
#define PLAIN_APPLY_ARGUMENTS(X)                                                                              \
    X##_FIRST(global const T *, x) X##_ADD(global const T *, add) X##_BUFFER(global T *, y)                   \
        X##_BUFFER(global const TC *restrict, gamma) X##_BUFFER(global const TC *restrict, beta)              \
            X##_BUFFER(global const TC *restrict, save_mean) X##_BUFFER(global const TC *restrict, save_rstd) \
                X##_INDEX(vectors) X##_INT(C) X##_INT(HW)
#define PLAIN_INFERENCE_ARGUMENTS(X)                                                                                  \
    X##_FIRST(global const T *, x) X##_ADD(global const T *, add) X##_BUFFER(global T *, y)                           \
        X##_BUFFER(global const TC *restrict, gamma) X##_BUFFER(global const TC *restrict, beta)                      \
            X##_BUFFER(global const TC *restrict, mean) X##_BUFFER(global const TC *restrict, var) X##_INDEX(vectors) \
                X##_INT(C) X##_INT(HW) X##_FLOAT(epsilon)
#define PLAIN_REDUCE_ARGUMENTS(X)                                                                            \
    X##_FIRST(global const T *, x) X##_BUFFER(global const T *, dy) X##_BUFFER(global const T *, y)          \
        X##_BUFFER(global T *, dadd) X##_BUFFER(global const TC *restrict, gamma)                            \
            X##_BUFFER(global const TC *restrict, beta) X##_BUFFER(global const TC *restrict, save_mean)     \
                X##_BUFFER(global const TC *restrict, save_rstd) X##_BUFFER(global TC *, partial) X##_INT(N) \
                    X##_INT(C) X##_INT(HW)
#define PLAIN_FINISH_GRADIENT_ARGUMENTS(X)                                                                         \
    X##_FIRST(global const float *, gamma) X##_BUFFER(global const float *, save_mean)                             \
        X##_BUFFER(global const float *, save_rstd) X##_BUFFER(global float *, partial)                            \
            X##_BUFFER(global float *, dgamma) X##_BUFFER(global float *, dbeta) X##_INT(N) X##_INT(C) X##_INT(HW) \
                X##_INT(parts)
#define PLAIN_DX_ARGUMENTS(X)                                                                                     \
    X##_FIRST(global const T *, x) X##_BUFFER(global const T *, dy) X##_BUFFER(global const T *, y)               \
        X##_BUFFER(global const T *, dadd) X##_ADD(global const T *, add) X##_BUFFER(global T *, dx)              \
            X##_BUFFER(global const TC *restrict, gamma) X##_BUFFER(global const TC *restrict, beta)              \
                X##_BUFFER(global const TC *restrict, save_mean) X##_BUFFER(global const TC *restrict, save_rstd) \
                    X##_BUFFER(global const TC *restrict, partial) X##_INT(parts) X##_INDEX(vectors) X##_INT(C)   \
                        X##_INT(HW)
#define FOLD_ARGUMENTS(X)                                                                                             \
    X##_FIRST(global const float *, w) X##_BUFFER(global const float *, bias) X##_BUFFER(global const float *, gamma) \
        X##_BUFFER(global const float *, beta) X##_BUFFER(global const float *, mean)                                 \
            X##_BUFFER(global const float *, var) X##_BUFFER(global float *, folded)                                  \
                X##_BUFFER(global float *, folded_bias) X##_INDEX(floats) X##_INT(inner) X##_FLOAT(epsilon)
