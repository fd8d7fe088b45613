/* Proves that a device multiplies matrices by single instructions: D = A B + C with every element of A 2, of B 3 and of C 1,
 * so that D is 6 K + 1 however the instruction spreads the matrices over the work-items. Launched by runtime/check.c with
 * one subgroup, only where the device advertises such instructions; it is built with one of
 *   -DNVIDIA           mma.sync.m16n8k8, TF32, K = 8, 32 work-items with 4 floats of D each (PTX ISA, "mma", since sm_80)
 *   -DINTEL -DLANES=L  intel_sub_group_f16_f16_matrix_mad_k16, K = 16, L = 8 or 16 work-items with 8 floats of D each
 *                      (extension cl_intel_subgroup_matrix_multiply_accumulate)
 * d holds what each work-item has, one after another. */
#ifdef NVIDIA

kernel void check_matrix(global float *d)
{
    float d0, d1, d2, d3, c = 1.f;
    uint a = as_uint(2.f), b = as_uint(3.f);
    __asm__ volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %4, %4, %4}, {%5, %5}, {%6, %6, %6, %6};"
                     : "=f"(d0), "=f"(d1), "=f"(d2), "=f"(d3)
                     : "r"(a), "r"(b), "f"(c));
    d += 4 * get_local_id(0);
    d[0] = d0;
    d[1] = d1;
    d[2] = d2;
    d[3] = d3;
}

#else

#pragma OPENCL EXTENSION cl_intel_subgroups : enable
#if LANES == 8
typedef int8 rows; /* two halves in each */
#else
typedef short8 rows;
#endif

__attribute__((intel_reqd_sub_group_size(LANES))) kernel void check_matrix(global float *d)
{
    const int twos = 0x40004000, threes = 0x42004200; /* pairs of halves */
#if LANES == 8
    rows a = (rows)(twos);
#else
    rows a = (rows)((short)0x4000);
#endif
    int8 b = (int8)(threes);
    float8 c = (float8)(1.f);
    vstore8(intel_sub_group_f16_f16_matrix_mad_k16(a, b, c), get_local_id(0), d);
}

#endif
