/* Arguments of dft_plain.cl, dft_cpu.cl and dft_gpu.cl. layers/dft/dft.h says what they are; size: the length that
 * passes transform. */
#define DFT_SIZES(X)                                                                                       \
    X##_BUFFER(global const float2 *, table) X##_LONG(transforms) X##_LONG(inner) X##_INT(in) X##_INT(out) \
        X##_INT(length) X##_INT(size) X##_INT(from) X##_INT(to) X##_FLOAT(scale)
#define DFT_READ_ARGUMENTS(X) \
    X##_FIRST(global const float *, x) X##_BUFFER(global float2 *, a) DFT_SIZES(X) X##_LONG(first) X##_LONG(count)
#define DFT_WRITE_ARGUMENTS(X)                                                                                      \
    X##_FIRST(global const float2 *, a) X##_LONG(a_from) X##_BUFFER(global float *, y) DFT_SIZES(X) X##_LONG(first) \
        X##_LONG(count)
#define DFT_PASS_ARGUMENTS(X)                                                                            \
    X##_FIRST(global const float2 *, a) X##_LONG(a_from) X##_BUFFER(global float2 *, b) X##_LONG(b_from) \
        X##_BUFFER(global const float2 *, table) X##_INT(size) X##_INT(radix) X##_INT(stride) X##_LONG(elements)
#define DFT_TASK_ARGUMENTS(X)                                                                                         \
    X##_FIRST(global const float *, x) X##_BUFFER(global float *, y) X##_BUFFER(global float *, scratch) DFT_SIZES(X) \
        X##_LONG(filter) X##_LONG(each) X##_LONG(scratch_floats)
#define DFT_GROUP_ARGUMENTS(X)                                                                                    \
    X##_FIRST(global const float *, x) X##_BUFFER(global float *, y) X##_LOCAL(local float *, space) DFT_SIZES(X) \
        X##_LONG(filter)
