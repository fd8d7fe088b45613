/* Matrix products through one call: C = op(A) op(B) (+ bias over columns) (+ C or another matrix), then an activation.
 * Row-major. op(A) is m x k, op(B) is k x n, C is m x n. */
#ifndef RUNTIME_GEMM_H
#define RUNTIME_GEMM_H

#include "runtime/compute.h"
#include "runtime/launch.h"

/* Where a matrix lies in its buffer, in floats. */
struct gemm_matrix {
    int64_t ld;     /* between rows; 0: tight */
    int64_t stride; /* between the products of a batch */
    int64_t from;   /* before the first one; only "pipelined", "matrix" and "tiled" take other than 0 */
};

/* The implementations, best first, for layers/product.c: X(name, whether it looks at `mask`, and at `sums`). "skinny",
 * "bf16" and "packed" are for CPU-class devices, "plain" for all, the others for GPU-class ones. */
#define GEMM_IMPLEMENTATIONS(X) \
    X(skinny, false, false)     \
    X(bf16, true, true)         \
    X(packed, true, true)       \
    X(pipelined, true, false)   \
    X(matrix, true, false)      \
    X(tiled, true, false)       \
    X(clblast, false, false)    \
    X(plain, false, false)

#define GEMM_DECLARE(name, ...) extern const struct gemm_implementation gemm_##name;
GEMM_IMPLEMENTATIONS(GEMM_DECLARE)

/* What B consists of: floats, or a parameter as graph/stored.h describes it. */
enum gemm_stored { GEMM_FLOATS, GEMM_BF16, GEMM_INT8 };

struct gemm {
    int64_t m, n, k, batch; /* batch 1 for one product */
    bool transpose_a, transpose_b;
    enum gemm_stored stored;    /* b.ld counts its elements: of GEMM_INT8 bytes, scales included */
    struct gemm_matrix a, b, c; /* c: of what is added, too */
    bool bias;                  /* a vector of n floats added to each row */
    bool accumulate;            /* added to what C holds, or to what `add` holds */
    cl_mem add;                 /* with accumulate: laid out as C, and may be the memory of C; NULL: C itself */
    /* mask: the output of an activation, laid out as C; C becomes the gradient of that activation's input. masking: the
     * options that clkernels/derivative.h reads. Implementations that do not look at them ignore them. Not with bias,
     * accumulate or activation. NULL: none. */
    cl_mem mask;
    const char *masking;
    cl_mem sums; /* m floats, the sums of op(A)'s rows, of a transposed A. NULL: none */
    /* Build options as clkernels/epilogue.h reads them and epilogue_options() writes them ("-DACTIVATE=1"; ADD is set
     * by the implementation); NULL: none. The caller's until gemm_emit() returns. */
    const char *activation;
    enum compute_type compute; /* of "bf16", "pipelined", "matrix" and "tiled": what A and B are rounded to; others
                                  take them as they are */
    const struct gemm_design *design; /* what gemm_design() made for these sizes; NULL: made where it is needed */
    int tile, splits; /* of "matrix" and "tiled": 1 + number of the tile (runtime/tile.h), parts of the sum, which
                         "pipelined" has, too; 0: chosen by rule. With a tile, "bf16" and "pipelined" take products
                         that do not pay for it */
};

/* How an implementation divides a product. It is found by trying, and is the same for each epilogue. */
struct gemm_design {
    const struct tile *tile;    /* "matrix" and "tiled": NULL where no tile (runtime/tile.h) fits the device */
    int64_t splits, k_of_split; /* "matrix", "tiled" and "packed": the sum's parts */
    /* tile_rows, tile_vectors: the register tile of "packed". The others: a task of "packed" and "bf16"; 0 where the
     * device's local memory is too small. */
    int tile_rows, tile_vectors;
    int64_t rows, columns, depth;
};

/* Returns NULL, or why it refuses this product on this device. */
const char *gemm_refusal(
    const struct gemm_implementation *implementation, const struct gemm *gemm, const struct capabilities *can);
struct gemm_design gemm_design(
    const struct gemm_implementation *implementation, const struct gemm *gemm, const struct capabilities *can);
/* Bytes of scratch that the implementation needs. */
size_t gemm_workspace(
    const struct gemm_implementation *implementation, const struct gemm *gemm, const struct capabilities *can);
/* Appends the launches. bias and workspace may be NULL where there is none. */
void gemm_emit(const struct gemm_implementation *implementation, const struct gemm *gemm, cl_mem a, cl_mem b, cl_mem c,
    cl_mem bias, cl_mem workspace, struct launch_list *list);

/* The longest part of a long sum: the error of a chain grows with its length. These are a hundred chains of
 * clkernels/sum.h's SUM_CHAIN, or one on devices of GPU class. */
enum { GEMM_LONGEST_PART = 12800 };
/* Where the unfinished sums of a product lie: the number of parts, and the floats between rows, between the products
 * of a batch, and between parts. */
struct gemm_sums {
    cl_mem buffer;
    int64_t parts, ld, stride, stride_part;
};
/* Appends the launch that adds the parts up in their order and makes C of them, with the product's epilogue. */
void gemm_emit_finish(
    const struct gemm *gemm, const struct gemm_sums *sums, cl_mem c, cl_mem bias, struct launch_list *list);

/* Releases the programs that libraries keep for all devices. It is called when the last runtime closes: at the
 * process's end, when they would do it themselves, drivers have freed what they need for it. */
void gemm_forget_programs(void);

#endif
