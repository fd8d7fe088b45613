/* Vectors of V floats for CPU-class kernels, in which one work-item is one task and SIMD is explicit.
 * Loads and stores need the alignment of an element only. Not vloadN and vstoreN: POCL 3.1 compiles vstore16 into four
 * stores of a quarter each. */
#ifndef VECTOR_H
#define VECTOR_H
#define CONCATENATE_(a, b) a##b
#define CONCATENATE(a, b) CONCATENATE_(a, b)
#define VF CONCATENATE(float, V)
#define VI CONCATENATE(int, V)
#define VU CONCATENATE(uint, V)
typedef VF VF_unaligned __attribute__((aligned(4)));
/* The i-th vector after p, in global or in local memory. */
#define VLOAD(i, p) (*(const global VF_unaligned *)((p) + (size_t)(i) * V))
#define VSTORE(v, i, p) (*(global VF_unaligned *)((p) + (size_t)(i) * V) = (v))
#define LOCAL_LOAD(i, p) (*(const local VF_unaligned *)((p) + (i) * V))
#define LOCAL_STORE(v, i, p) (*(local VF_unaligned *)((p) + (i) * V) = (v))
#define UNROLL _Pragma("unroll")
/* IN_ORDER stands between the multiply-adds of a register tile: what is loaded after it is not loaded before it. It
 * is for compilers (KEEP_ORDER) that would load so far ahead that the tile's sums leave their registers. */
#ifdef KEEP_ORDER
#define IN_ORDER __asm__ volatile("" ::: "memory")
#else
#define IN_ORDER
#endif
/* Keeps a loop from being unrolled or vectorised. For code that runs seldom or waits for memory, since compiling
 * costs by the size of the code. */
#define LOOP _Pragma("clang loop unroll(disable) vectorize(disable)")
#define TASK __attribute__((reqd_work_group_size(1, 1, 1))) kernel
#define INLINE static inline __attribute__((always_inline))
/* Keeps a function from being inlined. POCL copies a kernel, with what is inlined into it or asks for the numbers of
 * its group, twice, and compiles all three. So kernels only pass their arguments, and those numbers, to the functions
 * that do the work. */
#define OUTLINE static __attribute__((noinline))

/* PREFETCH loads towards the second-level cache, PREFETCH_SUMS loads sums that will be read and written into the
 * first one. OpenCL's own prefetch() does nothing on POCL; the cast is needed because C 1.2 has no generic address
 * space. */
#if defined(__clang__)
#define PREFETCH(p) __builtin_prefetch((const void *)(uintptr_t)(p), 0, 2)
#define PREFETCH_SUMS(p) __builtin_prefetch((const void *)(uintptr_t)(p), 1, 3)
#else
#define PREFETCH(p)
#define PREFETCH_SUMS(p)
#endif

/* The numbers of the lanes, of type T. */
#if V == 16
#define LANE_NUMBERS(T) (T)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
#elif V == 8
#define LANE_NUMBERS(T) (T)(0, 1, 2, 3, 4, 5, 6, 7)
#else
#define LANE_NUMBERS(T) (T)(0, 1, 2, 3)
#endif

/* The sum of a vector's elements, by halves. */
INLINE float vector_sum(VF v)
{
#if V == 16
    float8 h = v.lo + v.hi;
    float4 q = h.lo + h.hi;
#elif V == 8
    float4 q = v.lo + v.hi;
#else
    float4 q = v;
#endif
    return (q.x + q.y) + (q.z + q.w);
}
#endif
