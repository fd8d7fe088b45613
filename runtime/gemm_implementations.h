/* The implementations of gemm.h, for gemm.c alone. They get a product whose leading sizes are filled in. */
#ifndef RUNTIME_GEMM_IMPLEMENTATIONS_H
#define RUNTIME_GEMM_IMPLEMENTATIONS_H

#include "runtime/arguments.h"
#include "runtime/gemm.h"

/* Terms of a sum from which on a single chain of multiply-adds would round too much. */
enum { GEMM_LONG = 4096 };

struct gemm_buffers {
    cl_mem a, b, c;
    cl_mem bias;  /* a where there is none: a kernel's argument must be something */
    cl_mem added; /* what is added where gemm.accumulate: c or another; else c */
    cl_mem workspace;
};

/* Arguments of kernels, but for A. */
#define GEMM_BUFFERS_VALUES(given) .B = (given)->b, .C = (given)->c, .bias = (given)->bias, .added = (given)->added
#define GEMM_SIZES_VALUES(gemm)                                                                                    \
    .m = (gemm)->m, .n = (gemm)->n, .k = (gemm)->k, .lda = (gemm)->a.ld, .ldb = (gemm)->b.ld, .ldc = (gemm)->c.ld, \
    .stride_a = (gemm)->a.stride, .stride_b = (gemm)->b.stride, .stride_c = (gemm)->c.stride

struct gemm_implementation {
    const char *(*refusal)(const struct gemm *gemm, const struct capabilities *can);
    struct gemm_design (*design)(const struct gemm *gemm, const struct capabilities *can); /* NULL: none is needed */
    size_t (*workspace)(const struct gemm *gemm, const struct capabilities *can);          /* NULL: none */
    void (*emit)(const struct gemm *gemm, const struct gemm_buffers *buffers, struct launch_list *list);
    bool takes_stored; /* reads B of each enum gemm_stored: its kernels get it as STORED (clkernels/stored.h) */
};

/* Whether all sizes fit the 32-bit integers of the kernels. */
bool gemm_is_small(const struct gemm *gemm);
/* Whether so many parts of the sum take at most a quarter of the device's largest buffer. */
bool gemm_has_room(const struct gemm *gemm, const struct capabilities *can, int64_t parts);
/* Returns the fewest parts of which none is longer than GEMM_LONGEST_PART, a power of two, as far as there is room for
 * them; or as many as the caller has fixed. */
int64_t gemm_fewest_parts(const struct gemm *gemm, const struct capabilities *can);
/* Where a kernel stores: several parts one after the other in the workspace, from its beginning; one in C. */
struct gemm_sums gemm_sums_of(const struct gemm *gemm, const struct gemm_buffers *buffers, int64_t parts);
/* Whether rows of `length` numbers, ld apart, are whole fours. */
bool gemm_in_fours(int64_t length, int64_t from, int64_t ld, int64_t stride, int64_t batch);
/* Options that every kernel takes: BIAS, ACCUMULATE and the activation's. */
const char *gemm_options(const struct gemm *gemm, char *buffer, size_t size);

/* What clkernels/gemm_finish.h reads: its options, with a space before them, and the buffers, NULL where there is none.
 */
struct gemm_finish {
    char options[256];
    cl_mem bias, added;
};
struct gemm_finish gemm_finish_of(const struct gemm *gemm, const struct gemm_buffers *buffers);
/* Sets the launch's work: a multiply-add counts as two operations, operands are read once, and C is written once. */
void gemm_work(const struct gemm *gemm, struct launch *launch);

#endif
