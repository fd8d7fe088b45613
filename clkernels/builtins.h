/* The built-in functions that the kernels use, declared for drivers that would read a header of a megabyte at each build
 * otherwise (QUIRK_READS_HEADER in runtime/device.h). Stands before every text; the compiler names what is missing here. */
#ifdef DECLARE_BUILTINS
#define PURE __attribute__((overloadable, const))
size_t PURE get_global_id(uint);
size_t PURE get_global_size(uint);
size_t PURE get_group_id(uint);
size_t PURE get_local_id(uint);
size_t PURE get_local_size(uint);
size_t PURE get_num_groups(uint);
void __attribute__((overloadable, convergent)) barrier(cl_mem_fence_flags);
float __attribute__((overloadable, convergent)) sub_group_shuffle_down(float, uint);
int PURE isfinite(float);
int PURE isinf(float);
int PURE isnan(float);
#define WIDTHS(DECLARE) DECLARE() DECLARE(2) DECLARE(4) DECLARE(8) DECLARE(16)
#define FLOATS(N)                                                                                                      \
    float##N PURE cos(float##N);                                                                                       \
    float##N PURE exp(float##N);                                                                                       \
    float##N PURE fabs(float##N);                                                                                      \
    float##N PURE floor(float##N);                                                                                     \
    float##N PURE log(float##N);                                                                                       \
    float##N PURE sin(float##N);                                                                                       \
    float##N PURE sqrt(float##N);                                                                                      \
    float##N PURE tanh(float##N);                                                                                      \
    float##N PURE fma(float##N, float##N, float##N);                                                                   \
    float##N PURE fmax(float##N, float##N);                                                                            \
    float##N PURE fmin(float##N, float##N);                                                                            \
    float##N PURE fmax(float##N, float);                                                                               \
    float##N PURE fmin(float##N, float);                                                                               \
    float##N PURE log1p(float##N);                                                                                     \
    float##N PURE sign(float##N);                                                                                      \
    float##N PURE select(float##N, float##N, int##N);                                                                  \
    float##N PURE select(float##N, float##N, uint##N);                                                                 \
    float##N PURE convert_float##N(int##N);                                                                            \
    float##N PURE convert_float##N(uint##N);                                                                           \
    int##N PURE convert_int##N(float##N);                                                                              \
    int##N PURE convert_int##N(int##N);                                                                                \
    int##N PURE convert_int##N(uchar##N);                                                                              \
    int##N PURE convert_int##N(ushort##N);                                                                             \
    uchar##N PURE convert_uchar##N(int##N);                                                                            \
    ushort##N PURE convert_ushort##N(int##N);                                                                          \
    uint##N PURE convert_uint##N(ushort##N);                                                                           \
    ushort##N PURE convert_ushort##N(uint##N);                                                                         \
    uint##N PURE mul_hi(uint##N, uint##N);                                                                             \
    int##N PURE max(int##N, int##N);                                                                                   \
    int PURE any(int##N);
WIDTHS(FLOATS)
#define STORES(N) void __attribute__((overloadable)) vstore##N(uint##N, size_t, uint *);
STORES(4) STORES(8) STORES(16)
#define INTEGERS(T)                                                                                                    \
    T PURE min(T, T);                                                                                                  \
    T PURE max(T, T);                                                                                                  \
    T PURE clamp(T, T, T);
INTEGERS(int)
INTEGERS(uint)
INTEGERS(long)
INTEGERS(ulong)
float __attribute__((overloadable)) vload_half(size_t, const global half *);
uint __attribute__((overloadable)) atomic_or(volatile global uint *, uint);
#undef PURE
#undef WIDTHS
#undef FLOATS
#undef STORES
#undef INTEGERS
#endif
