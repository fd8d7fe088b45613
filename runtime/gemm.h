/* Matrix products behind one call: C = op(A) op(B) (+ bias over columns) (+ C or another matrix), then an activation.
 * Row-major. op(A) is m x k, op(B) is k x n, C is m x n. Implementations: "packed" and "skinny" (CPU class), "clblast"
 * (GPU class), "plain" (anything). */
#ifndef RUNTIME_GEMM_H
#define RUNTIME_GEMM_H

#include "runtime/launch.h"

struct gemm {
    int64_t m, n, k, batch; /* batch 1 for one product */
    bool transpose_a, transpose_b;
    int64_t lda, ldb, ldc;                /* 0: tight */
    int64_t stride_a, stride_b, stride_c; /* floats between products of a batch */
    bool bias;                            /* a vector of n floats added to each row */
    bool accumulate;                      /* added to what C holds, or to what `add` holds */
    cl_mem add; /* with accumulate: laid out as C, and may be the memory of C; NULL: C itself */
    /* "packed" alone, others pass over these. mask: laid out as C, the output of an activation behind which C goes, and
     * `masking` the options that clkernels/derivative.h reads; without accumulate and activation. sums: m floats, the
     * sums of op(A)'s rows, of a transposed A. NULL: none. */
    cl_mem mask, sums;
    const char *masking;
    /* Build options as clkernels/epilogue.h reads them and epilogue_options() writes them ("-DACTIVATE=1"; ADD is set
     * by the implementation); NULL: none. The caller's until gemm_emit() returns. */
    const char *activation;
};

enum gemm_choice { GEMM_SKINNY, GEMM_PACKED, GEMM_CLBLAST, GEMM_PLAIN, GEMM_IMPLEMENTATIONS };
/* By position in this list, best first: its name, and NULL or why it refuses this product on this device. */
const char *gemm_implementation_name(int implementation);
const char *gemm_refusal(int implementation, const struct gemm *gemm, const struct capabilities *can);
/* Bytes of scratch that it needs. */
size_t gemm_workspace(int implementation, const struct gemm *gemm, const struct capabilities *can);
/* Appends the launches. bias and workspace may be NULL where there is none. */
void gemm_emit(int implementation, const struct gemm *gemm, cl_mem a, cl_mem b, cl_mem c, cl_mem bias, cl_mem workspace,
    struct launch_list *list);

#endif
