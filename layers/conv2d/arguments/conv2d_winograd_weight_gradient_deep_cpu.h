/* Arguments of conv2d_winograd_weight_gradient_deep_cpu.cl. */
#define WINOGRAD_GRADIENTS_ARGUMENTS(X)                                                                      \
    X##_FIRST(const global float *restrict, dy) X##_BUFFER(global float *restrict, workspace) X##_LONG(d_at) \
        X##_INT(K) X##_INT(result_height) X##_INT(result_width) X##_INT(tile_rows) X##_INT(tile_columns)     \
            X##_INT(tiles) X##_INT(T)
#define WINOGRAD_PRODUCTS_ARGUMENTS(X)                                                                    \
    X##_FIRST(global float *restrict, workspace) X##_LONG(v_at) X##_LONG(d_at) X##_LONG(m_at) X##_INT(CB) \
        X##_INT(panels) X##_INT(panels_max) X##_INT(tiles) X##_INT(T)
#define WINOGRAD_RESULTS_ARGUMENTS(X)                                                                       \
    X##_FIRST(const global float *restrict, workspace) X##_LONG(m_at) X##_BUFFER(const global float *, add) \
        X##_BUFFER(global float *, dw) X##_INT(C) X##_INT(K) X##_INT(panels)
