/* Large matrix products by matrix instructions on GPU-class devices:   C = ACTIVATION(op(A) op(B) + bias + added), of
 * operands that gemm_pack.cl has packed as pipeline.h says. They are copied into local memory without passing through
 * registers, STAGES - 1 steps ahead, and read by ldmatrix.
 *
 *   m, n, ldc, from_c, stride_c, bias, added, C_FOURS: see gemm_tiled.cl. A and B begin from_a and from_b chunks into
 *   `packed`; a product begins stride_a and stride_b chunks after the one before it.
 *   The sum is made in `splits` parts of steps_of_split steps, each stored stride_split floats after the one before it:
 *   gemm_finish.cl adds them up in their order.
 *
 * The tile and its options: tile_product.h, of form 6. Launched as gemm_tiled.cl is. */
#include "parameters.h"
#include "arguments/gemm_pipelined.h"
#include "pipeline.h"
#include "gemm_finish.h"

#define STAGES 3
#define STAGE ((BM + BN) * CHUNKS)

#define COPY(to, from)                                                                                                 \
    __asm__ volatile("cp.async.cg.shared.global [%0], [%1], 16;" : : "r"((uint)(size_t)(to)), "l"(from) : "memory")
#define COPIES_END __asm__ volatile("cp.async.commit_group;" : : : "memory")
#define COPIES_WAIT(later) __asm__ volatile("cp.async.wait_group %0;" : : "n"(later) : "memory")

SUBGROUPS __attribute__((reqd_work_group_size(ITEMS, 1, 1))) kernel void gemm_pipelined(PIPELINED_ARGUMENTS(PARAMETER))
{
    /* Copies to lines of 128 bytes that begin elsewhere take twice as long. */
    local uint4 stages[STAGES * STAGE] __attribute__((aligned(128)));
    const int item = get_local_id(0), product = get_group_id(2) / splits, split = get_group_id(2) % splits;
    const int tile_row = get_group_id(1), tile_column = get_group_id(0);
    const int first_row = tile_row * BM, first_column = tile_column * BN;
    const int begin = split * steps_of_split, count = min(steps_of_split, steps - begin);
    global const uint4 *a_from =
        packed + from_a + product * stride_a + ((long)tile_row * steps + begin) * (BM * CHUNKS) + item;
    global const uint4 *b_from =
        packed + from_b + product * stride_b + ((long)tile_column * steps + begin) * (BN * CHUNKS) + item;
    /* What a lane tells ldmatrix: the line where it begins, and which of two chunks. */
    const int a_line = FIRST_ROW + LANE % 16, b_line = FIRST_COLUMN + LANE / 16 * 8 + LANE % 8;
    const int a_chunk = SWIZZLED(a_line, LANE / 16), b_chunk = SWIZZLED(b_line, LANE / 8 % 2);
    float acc[TM][TN];
    UNROLL_GPU for (int i = 0; i < TM; i++) UNROLL_GPU for (int j = 0; j < TN; j++) acc[i][j] = 0.0f;

#define FILL(stage, step)                                                                                              \
    {                                                                                                                  \
        local uint4 *to = stages + (stage) * STAGE + item;                                                             \
        UNROLL_GPU for (int q = 0; q < BM * CHUNKS / ITEMS; q++)                                                       \
            COPY(to + q * ITEMS, a_from + (long)(step) * (BM * CHUNKS) + q * ITEMS);                                   \
        UNROLL_GPU for (int q = 0; q < BN * CHUNKS / ITEMS; q++)                                                       \
            COPY(to + BM * CHUNKS + q * ITEMS, b_from + (long)(step) * (BN * CHUNKS) + q * ITEMS);                     \
    }
/* Loads the operands of one of a stage's two instructions: chunks 2 * half and the next. */
#define LOAD(half, stage)                                                                                              \
    {                                                                                                                  \
        const local uint4 *a_tile = stages + (stage) * STAGE + a_line * CHUNKS + (2 * (half) ^ a_chunk);               \
        const local uint4 *b_tile = stages + (stage) * STAGE + (BM + b_line) * CHUNKS + (2 * (half) ^ b_chunk);        \
        UNROLL_GPU for (int i = 0; i < TM / ROWS_EACH; i++) LOAD_FOUR(a[half][i][0], a[half][i][1], a[half][i][2],     \
            a[half][i][3], (const local ushort *)(a_tile + i * ROWS * CHUNKS));                                        \
        UNROLL_GPU for (int j = 0; j < TN / COLUMNS_EACH; j += 2) LOAD_FOUR(b[half][j][0], b[half][j][1],              \
            b[half][j + 1][0], b[half][j + 1][1], (const local ushort *)(b_tile + j * COLUMNS * CHUNKS));              \
    }
#define MULTIPLY_HALF(half)                                                                                            \
    UNROLL_GPU for (int i = 0; i < TM / ROWS_EACH; i++)                                                                \
        UNROLL_GPU for (int j = 0; j < TN / COLUMNS_EACH; j++)                                                         \
            MULTIPLY_ADD(a[half][i], b[half][j], i * ROWS_EACH, j * COLUMNS_EACH);
    uint a[2][TM / ROWS_EACH][OPERANDS_A], b[2][TN / COLUMNS_EACH][OPERANDS_B];
    UNROLL_GPU for (int s = 0; s < STAGES - 1; s++)
    {
        if (s < count) FILL(s, s)
        COPIES_END;
    }
    COPIES_WAIT(STAGES - 2);
    barrier(CLK_LOCAL_MEM_FENCE);
    LOAD(0, 0)
    int stage = 0, empty = STAGES - 1;
    STEPS_EXIST(count > 0);
    for (int step = 0; step < count; step++) {
        LOAD(1, stage)
        if (step + STAGES - 1 < count) FILL(empty, step + STAGES - 1)
        COPIES_END;
        MULTIPLY_HALF(0)
        empty = stage;
        stage = stage + 1 == STAGES ? 0 : stage + 1;
        COPIES_WAIT(STAGES - 2);
        barrier(CLK_LOCAL_MEM_FENCE);
        LOAD(0, stage) /* after the last step, this loads what is not used */
        MULTIPLY_HALF(1)
    }

    C += from_c + product * stride_c + split * stride_split;
    if (added) added += from_c + product * stride_c;
    UNROLL_GPU for (int i = 0; i < TM; i++)
    {
        const int row = first_row + ROW(i);
        UNROLL_GPU for (int j = 0; j < TN; j += RUN)
        {
            const int column = first_column + COLUMN(j);
            const size_t at = (size_t)row * ldc + column;
            if (row >= m || column >= n) continue;
#if C_FOURS
            *(global float2 *)(C + at) =
                (float2)(finish_float(acc[i][j], bias ? bias + column : NULL, added ? added + at : NULL),
                    finish_float(acc[i][j + 1], bias ? bias + column + 1 : NULL, added ? added + at + 1 : NULL));
#else
            UNROLL_GPU for (int l = 0; l < RUN; l++) if (column + l < n) C[at + l] =
                finish_float(acc[i][j + l], bias ? bias + column + l : NULL, added ? added + at + l : NULL);
#endif
        }
    }
}
