/* Kernels that go through arenas, ranges of floats that are processed element by element. CPU class: one task per
 * `floats` floats (a multiple of 16). GPU class: one work-item per 4 neighbouring floats, in groups of GROUP (256 if
 * not defined).
 *
 * KERNEL         begins such a kernel
 * FOR_RANGE(i)   the vectors of this work-item, of the arguments n (a multiple of 16) and floats */
#ifndef ARENA_H
#define ARENA_H
#if TUTTI_GPU
#undef V
#define V 4
#ifndef GROUP
#define GROUP 256
#endif
#define KERNEL __attribute__((reqd_work_group_size(GROUP, 1, 1))) kernel
#else
#define KERNEL TASK
#endif
#include "vector.h"

#define FOR_RANGE(i) \
    const long end = min((long)(get_global_id(0) + 1) * floats, n); \
    for (long i = (long)get_global_id(0) * floats; i < end; i += V)

#endif
