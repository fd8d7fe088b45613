/* Sums and maxima over the GROUP work-items of a group (a power of two, in one dimension), in a fixed order: the
 * upper half meets the lower one until one is left. Numbers go through local memory. Where lanes of a subgroup can
 * read one another (SHUFFLE, a form that was proven on the device: runtime/shuffle.h), the last TOGETHER need neither
 * local memory nor barriers. The order is the same, so that results are the same to the bit.
 *
 * Every work-item calls, with `scratch` of GROUP floats, and gets the result. */
#if SHUFFLE == 1 && GROUP >= 8 /* lanes of Intel's narrowest subgroups */
#pragma OPENCL EXTENSION cl_khr_subgroup_shuffle_relative : enable
#define TOGETHER 8
#define LANE_ABOVE(value, step) sub_group_shuffle_down(value, step)
#elif SHUFFLE == 2 && GROUP >= 32
#define TOGETHER 32
#define LANE_ABOVE(value, step) lane_above(value, step)
static float lane_above(float value, int step)
{
    float above;
    __asm__ volatile("shfl.sync.down.b32 %0, %1, %2, 31, 0xffffffff;" : "=f"(above) : "f"(value), "r"(step));
    return above;
}
#elif SHUFFLE == 3 && GROUP >= 32
#define TOGETHER 32
#define LANE_ABOVE(value, step) \
    as_float(__builtin_amdgcn_ds_bpermute(((int)get_local_id(0) + (step)) * 4, as_int(value)))
#else
#define TOGETHER 1
#define LANE_ABOVE(value, step) (value)
#endif

/* The last steps of a tree: `own` of the first lane becomes JOIN of the first TOGETHER. What other lanes get is of no
 * use. */
#define JOIN_LANES(own, JOIN) \
    for (int step = TOGETHER / 2; step > 0; step /= 2) own = JOIN(own, LANE_ABOVE(own, step));
#define GROUP_JOIN(value, scratch, JOIN)                                                            \
    const int item = get_local_id(0);                                                               \
    scratch[item] = value;                                                                          \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                   \
    for (int step = GROUP / 2; step >= TOGETHER; step /= 2) {                                       \
        if (item < step) scratch[item] = JOIN(scratch[item], scratch[item + step]);                 \
        barrier(CLK_LOCAL_MEM_FENCE);                                                               \
    }                                                                                               \
    if (TOGETHER > 1) {                                                                             \
        value = scratch[item];                                                                      \
        JOIN_LANES(value, JOIN)                                                                     \
        if (item == 0) scratch[0] = value;                                                          \
        barrier(CLK_LOCAL_MEM_FENCE);                                                               \
    }                                                                                               \
    value = scratch[0];                                                                             \
    barrier(CLK_LOCAL_MEM_FENCE); /* scratch is free again */                                       \
    return value;
#define SUM_OF(a, b) ((a) + (b))

/* Always inlined: POCL leaves a function out of its callers if it is called often, and at its barriers it then takes
 * the places of other groups' work-items. */
#define JOINED static inline __attribute__((always_inline)) float

JOINED group_sum(float value, local float *scratch)
{
    GROUP_JOIN(value, scratch, SUM_OF)
}

/* NaN only where all are. */
JOINED group_max(float value, local float *scratch)
{
    GROUP_JOIN(value, scratch, fmax)
}
