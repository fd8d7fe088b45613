/* Arguments of batch_norm_cpu.cl; the last three kernels have TENSORS_ARGUMENTS before their own. */
#define TENSORS_ARGUMENTS(X)                                                                                    \
    X##_FIRST(global const in0_t *, x) X##_BUFFER(global const in1_t *, dy) X##_BUFFER(global const in5_t *, y) \
        X##_ADD(global const add_t *, add) X##_BUFFER(global out3_t *, dadd) X##_BUFFER(global out0_t *, dx)
#define BN_FORWARD_ARGUMENTS(X)                                                                          \
    X##_FIRST(global const in0_t *, x) X##_ADD(global const add_t *, add) X##_BUFFER(global out0_t *, y) \
        X##_BUFFER(global const float *, gamma) X##_BUFFER(global const float *, beta)                   \
            X##_BUFFER(global const step_constants *, constants) X##_BUFFER(global float *, save_mean)   \
                X##_BUFFER(global float *, save_rstd) X##_BUFFER(global float *, batch_mean)             \
                    X##_BUFFER(global float *, batch_var) X##_INT(N) X##_INT(CB) X##_INT(HW) X##_INT(C)  \
                        X##_INT(stream) X##_FLOAT(epsilon)
#define BN_APPLY_ARGUMENTS(X)                                                                                 \
    X##_FIRST(global const in0_t *, x) X##_ADD(global const add_t *, add) X##_BUFFER(global out0_t *, y)      \
        X##_BUFFER(global const float *, gamma) X##_BUFFER(global const float *, beta)                        \
            X##_BUFFER(global const step_constants *, constants) X##_BUFFER(global const float *, statistics) \
                X##_BUFFER(global float *, save_mean) X##_BUFFER(global float *, save_rstd)                   \
                    X##_BUFFER(global float *, batch_mean) X##_BUFFER(global float *, batch_var) X##_INT(N)   \
                        X##_INT(CB) X##_INT(HW) X##_INT(C) X##_INT(stream) X##_FLOAT(epsilon)                 \
                            X##_INT(statistics_parts)
#define BN_MOMENTS_ARGUMENTS(X)                                                                                 \
    X##_FIRST(global const step_constants *, constants) X##_BUFFER(global const float *, statistics)            \
        X##_BUFFER(global float *, save_mean) X##_BUFFER(global float *, save_rstd)                             \
            X##_BUFFER(global float *, batch_mean) X##_BUFFER(global float *, batch_var) X##_INT(N) X##_INT(CB) \
                X##_INT(C) X##_FLOAT(epsilon) X##_INT(statistics_parts)
#define BN_INFERENCE_ARGUMENTS(X)                                                                               \
    X##_FIRST(global const in0_t *, x) X##_ADD(global const add_t *, add) X##_BUFFER(global out0_t *, y)        \
        X##_BUFFER(global const float *, gamma) X##_BUFFER(global const float *, beta)                          \
            X##_BUFFER(global const float *, mean) X##_BUFFER(global const float *, var) X##_INT(N) X##_INT(CB) \
                X##_INT(HW) X##_INT(C) X##_INT(stream) X##_FLOAT(epsilon)
#define BN_GRADIENT_ARGUMENTS(X)                                                                                    \
    X##_BUFFER(global const float *, gamma) X##_BUFFER(global const float *, beta)                                  \
        X##_BUFFER(global const float *, save_mean) X##_BUFFER(global const float *, save_rstd)                     \
            X##_BUFFER(global float *, dgamma) X##_BUFFER(global float *, dbeta) X##_INT(N) X##_INT(CB) X##_INT(HW) \
                X##_INT(C) X##_INT(stream)
#define BN_REDUCE_ARGUMENTS(X)                                                                  \
    X##_BUFFER(global const float *, gamma) X##_BUFFER(global const float *, beta)              \
        X##_BUFFER(global const float *, save_mean) X##_BUFFER(global const float *, save_rstd) \
            X##_BUFFER(global float *, statistics) X##_INT(N) X##_INT(CB) X##_INT(HW) X##_INT(C) X##_INT(stream)
#define BN_DX_ARGUMENTS(X)                                                                                      \
    X##_BUFFER(global const float *, gamma) X##_BUFFER(global const float *, beta)                              \
        X##_BUFFER(global const float *, save_mean) X##_BUFFER(global const float *, save_rstd)                 \
            X##_BUFFER(global const float *, statistics) X##_BUFFER(global float *, dgamma)                     \
                X##_BUFFER(global float *, dbeta) X##_INT(N) X##_INT(CB) X##_INT(HW) X##_INT(C) X##_INT(stream) \
                    X##_INT(statistics_parts)
