/* Arguments of dft2_products_cpu.cl and dft2_passes_cpu.cl. layers/dft/dft2.h says what they are; half_rows:
 * frequencies of the height without their signs; rows_at, columns_at: where their tables begin, in float2; each: groups
 * of V images of a task. */
#define DFT2_SIZES(X)                                                                                                \
    X##_BUFFER(global const float2 *, table) X##_LONG(columns_at) X##_LONG(rows_at) X##_LONG(images) X##_INT(height) \
        X##_INT(width) X##_INT(rows) X##_INT(columns) X##_INT(first) X##_INT(half_rows) X##_FLOAT(scale)
#define DFT2_ARGUMENTS(X)                                                                                              \
    X##_FIRST(global const float *, x) X##_BUFFER(global float *, y) X##_BUFFER(global float *, scratch) DFT2_SIZES(X) \
        X##_LONG(each) X##_LONG(scratch_floats)
#define DFT2_TABLE_ARGUMENTS(X) \
    X##_FIRST(global float2 *, table) X##_LONG(at) X##_INT(length) X##_INT(loops) X##_INT(tile)
/* turns_at: where the turns of the height begin, in float2; step: vectors from V columns to the next ones; each: images
 * of a task. */
#define DFT2_PASSES_SIZES(X)                                                                                  \
    X##_BUFFER(global const float2 *, table) X##_LONG(turns_at) X##_LONG(step) X##_INT(height) X##_INT(width) \
        X##_INT(rows) X##_INT(columns) X##_INT(first) X##_FLOAT(scale)
#define DFT2_PASSES_ARGUMENTS(X)                                                                         \
    X##_FIRST(global const float *, x) X##_BUFFER(global float *, y) X##_BUFFER(global float *, scratch) \
        DFT2_PASSES_SIZES(X) X##_LONG(images) X##_LONG(each) X##_LONG(scratch_floats)
#define DFT2_COPY_ARGUMENTS(X) X##_FIRST(global float2 *, table) X##_LONG(at) X##_INT(length)
