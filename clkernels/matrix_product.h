/* The tile product of tile_product.h by matrix instructions, which a subgroup of LANES work-items carries out together:
 * ROWS x COLUMNS results, DEPTH steps of the sum. COMPUTE (1 TF32, 2 bfloat16, 3 half): the operands' type, to which they
 * are rounded in local memory already, or by PAIR; results are floats. A work-item has ROWS_EACH x COLUMNS_EACH of them, at ROW_IN(i)
 * and COLUMN_IN(j). MATRIX is the form, as enum matrix_form of runtime/device.h counts them; runtime/tile.c knows ROWS to
 * COLUMNS_EACH, too:
 *
 *   1   mma.sync.m16n8k8 (TF32), m16n8k16: PTX ISA, "Matrix fragments for mma", since sm_80
 *   2   v_mfma_f32_16x16x16 of waves of 64: AMD, "CDNA2 instruction set architecture", since gfx90a
 *   3   v_wmma_f32_16x16x16 of waves of 32: AMD, "RDNA3 instruction set architecture"
 *   4   intel_sub_group_*_matrix_mad_k16 of 16 work-items: extension cl_intel_subgroup_matrix_multiply_accumulate
 *   5   the same of 8
 *   6   1 of operands with 16 bits, which lie so in local memory and are loaded by ldmatrix: PTX ISA, "ldmatrix"
 *
 * BM is a multiple of (TM / ROWS_EACH) * ROWS, BN of (TN / COLUMNS_EACH) * COLUMNS, BK of DEPTH. */

/* HALVED: the 16 bits of a float that is such a number. PAIR: the bits of two of them, the first in the lower half.
 * PAIR_ROUNDS 1: PAIR takes any floats, as one instruction rounds two of them as computed_float() does. */
#if COMPUTE >= 2 && (MATRIX == 1 || MATRIX == 6)
#define PAIR_ROUNDS 1
INLINE uint pair(float low, float high)
{
    uint both;
#if COMPUTE == 2
    __asm__("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
#else
    __asm__("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
#endif
    return both;
}
#define PAIR(low, high) pair(low, high)
#elif COMPUTE == 2
#define HALVED(x) (as_uint(x) >> 16)
#define PAIR(low, high) ((as_uint(high) & 0xffff0000u) | HALVED(low))
#elif COMPUTE == 3
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#define HALVED(x) as_ushort((half)(x))
#define PAIR(low, high) as_uint((half2)((half)(low), (half)(high)))
#endif
/* ONE_OF: what lies in a tile at a step of a line. HALF_OF: its 16 bits. PAIR_OF: those and the 16 bits of the next
 * step. */
#if TOGETHER
#define LINE_AT(stride, line) ((line) * (stride))
#define ONE_OF(tile, step, stride, line) ((tile)[LINE_AT(stride, line) + (step)])
#define HALF_OF ONE_OF
#define PAIR_OF(tile, step, stride, line) (*(const local uint *)((tile) + LINE_AT(stride, line) + (step)))
#else
#define LINE_AT(stride, line) (line)
#define ONE_OF(tile, step, stride, line) ((tile)[(step) * (stride) + (line)])
#define HALF_OF(tile, step, stride, line) HALVED(ONE_OF(tile, step, stride, line))
#define PAIR_OF(tile, step, stride, line) PAIR(ONE_OF(tile, step, stride, line), ONE_OF(tile, (step) + 1, stride, line))
#endif

/* The step and the line (row or column) where a work-item's operands begin, r of OPERANDS_A and OPERANDS_B. */
#if MATRIX == 1 || MATRIX == 6
#define LANES 32
#define ROWS 16
#define COLUMNS 8
#define ROWS_EACH 2
#define COLUMNS_EACH 2
#define ROW_IN(i) (LANE / 4 + 8 * (i))
#define COLUMN_IN(j) (LANE % 4 * 2 + (j))
#define OPERANDS_A 4
#define OPERANDS_B 2
#define LINE_A(r) (LANE / 4 + (r) % 2 * 8)
#define LINE_B(r) (LANE / 4)
#if COMPUTE == 1
#define DEPTH 8
#define STEP_A(r) (LANE % 4 + (r) / 2 * 4)
#define STEP_B(r) (LANE % 4 + (r) * 4)
#define OPERAND_A(tile, step, stride, line) as_uint(ONE_OF(tile, step, stride, line))
#define INSTRUCTION "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
#else
#define DEPTH 16
#define STEP_A(r) (LANE % 4 * 2 + (r) / 2 * 8)
#define STEP_B(r) (LANE % 4 * 2 + (r) * 8)
#define OPERAND_A PAIR_OF
#if COMPUTE == 2
#define INSTRUCTION "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
#else
#define INSTRUCTION "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
#endif
#endif
#define OPERAND_B OPERAND_A
#define MULTIPLY_ADD(a, b, i, j)                                                                                       \
    __asm__ volatile(INSTRUCTION " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                    \
                     : "+f"(acc[i][j]), "+f"(acc[i][j + 1]), "+f"(acc[i + 1][j]), "+f"(acc[i + 1][j + 1])              \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))

#elif MATRIX == 2
#define LANES 64
#define ROWS 16
#define COLUMNS 16
#define DEPTH 16
#define ROWS_EACH 4
#define COLUMNS_EACH 1
#define ROW_IN(i) (LANE / 16 * 4 + (i))
#define COLUMN_IN(j) (LANE % 16)
#define OPERANDS_A 2
#define OPERANDS_B 2
#define STEP_A(r) (LANE / 16 * 4 + (r) * 2)
#define STEP_B(r) STEP_A(r)
#define LINE_A(r) (LANE % 16)
#define LINE_B(r) (LANE % 16)
#define OPERAND_A PAIR_OF
#define OPERAND_B PAIR_OF
#if COMPUTE == 2
#define INSTRUCTION(a, b, c) __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(as_short4(a), as_short4(b), c, 0, 0, 0)
#else
#define INSTRUCTION(a, b, c) __builtin_amdgcn_mfma_f32_16x16x16f16(as_half4(a), as_half4(b), c, 0, 0, 0)
#endif
#define MULTIPLY_ADD(a, b, i, j)                                                                                       \
    {                                                                                                                  \
        const float4 c = (float4)(acc[i][j], acc[i + 1][j], acc[i + 2][j], acc[i + 3][j]);                             \
        const float4 d = INSTRUCTION((uint2)(a[0], a[1]), (uint2)(b[0], b[1]), c);                                     \
        acc[i][j] = d.x, acc[i + 1][j] = d.y, acc[i + 2][j] = d.z, acc[i + 3][j] = d.w;                                \
    }

#else
#define ROWS_EACH 8
#define COLUMNS_EACH 1
#define EIGHT(from) (from[0], from[1], from[2], from[3], from[4], from[5], from[6], from[7])
#define MULTIPLY_ADD(a, b, i, j)                                                                                       \
    {                                                                                                                  \
        const float8 c = (float8)(acc[i][j], acc[i + 1][j], acc[i + 2][j], acc[i + 3][j], acc[i + 4][j],               \
            acc[i + 5][j], acc[i + 6][j], acc[i + 7][j]);                                                              \
        const float8 d = INSTRUCTION(a, b, c);                                                                         \
        acc[i][j] = d.s0, acc[i + 1][j] = d.s1, acc[i + 2][j] = d.s2, acc[i + 3][j] = d.s3;                            \
        acc[i + 4][j] = d.s4, acc[i + 5][j] = d.s5, acc[i + 6][j] = d.s6, acc[i + 7][j] = d.s7;                        \
    }
#define DEPTH 16
#define OPERANDS_A 8
#define OPERANDS_B 8
#define OPERAND_B PAIR_OF
#define STEP_B(r) (2 * (r))

#if MATRIX == 3 /* both halves of a wave have the operands */
#define LANES 32
#define ROWS 16
#define COLUMNS 16
#define ROW_IN(i) (2 * (i) + LANE / 16)
#define COLUMN_IN(j) (LANE % 16)
#define STEP_A(r) (2 * (r))
#define LINE_A(r) (LANE % 16)
#define LINE_B(r) (LANE % 16)
#define OPERAND_A PAIR_OF
#if COMPUTE == 2
#define INSTRUCTION(a, b, c)                                                                                           \
    __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(as_short16((uint8)EIGHT(a)), as_short16((uint8)EIGHT(b)), c)
#else
#define INSTRUCTION(a, b, c)                                                                                           \
    __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(as_half16((uint8)EIGHT(a)), as_half16((uint8)EIGHT(b)), c)
#endif

#else
#pragma OPENCL EXTENSION cl_intel_subgroups : enable
#define ROWS 8
#define ROW_IN(i) (i)
#define COLUMN_IN(j) LANE
#define LINE_A(r) (r)
#define LINE_B(r) LANE
#if MATRIX == 4
#define LANES 16
#define COLUMNS 16
#define STEP_A(r) LANE
#define OPERAND_A HALF_OF
#define EIGHT_A(a) as_short8(convert_ushort8((uint8)EIGHT(a)))
#else
#define LANES 8
#define COLUMNS 8
#define STEP_A(r) (2 * LANE)
#define OPERAND_A PAIR_OF
#define EIGHT_A(a) as_int8((uint8)EIGHT(a))
#endif
#if COMPUTE == 2
#define INSTRUCTION(a, b, c) intel_sub_group_bf16_bf16_matrix_mad_k16(EIGHT_A(a), as_int8((uint8)EIGHT(b)), c)
#else
#define INSTRUCTION(a, b, c) intel_sub_group_f16_f16_matrix_mad_k16(EIGHT_A(a), as_int8((uint8)EIGHT(b)), c)
#endif
#define SUBGROUPS __attribute__((intel_reqd_sub_group_size(LANES)))
#endif
#endif

/* A subgroup's part of the tile; work-items of a group follow one another in subgroups. */
#define PART_ROWS (TM / ROWS_EACH * ROWS)
#define PART_COLUMNS (TN / COLUMNS_EACH * COLUMNS)
#define LANE (item % LANES)
#define FIRST_ROW (item / LANES / (BN / PART_COLUMNS) * PART_ROWS)
#define FIRST_COLUMN (item / LANES % (BN / PART_COLUMNS) * PART_COLUMNS)

#define RUN COLUMNS_EACH
#define ROW(i) (FIRST_ROW + (i) / ROWS_EACH * ROWS + ROW_IN((i) % ROWS_EACH))
#define COLUMN(j) (FIRST_COLUMN + (j) / COLUMNS_EACH * COLUMNS + COLUMN_IN((j) % COLUMNS_EACH))
/* Lanes that follow one another have the same rows. */
#define LANES_ACROSS (COLUMNS / COLUMNS_EACH)
#define SLOT                                                                                                           \
    ((item / LANES / (BN / PART_COLUMNS) * (LANES / LANES_ACROSS) + LANE / LANES_ACROSS) * ACROSS +                    \
        item / LANES % (BN / PART_COLUMNS) * LANES_ACROSS + LANE % LANES_ACROSS)
#define COLUMN_SLOT (SLOT % ACROSS * DOWN + SLOT / ACROSS)

#if MATRIX == 6
/* Loads four matrices of 8 x 8. Across lines, lane 8 i + s tells where step s of matrix i begins, and the matrices
 * are transposed. Along lines, it tells where line s of matrix i begins. A lane gets line LANE / 4 of each matrix, at
 * steps LANE % 4 * 2 and the next. */
#define LOAD_BY(how, w, x, y, z, from)                                                                                 \
    __asm__ volatile("ldmatrix.sync.aligned.m8n8.x4" how ".shared.b16 {%0, %1, %2, %3}, [%4];"                         \
                     : "=r"(w), "=r"(x), "=r"(y), "=r"(z)                                                              \
                     : "r"((uint)(size_t)(from))                                                                       \
                     : "memory")
/* A's matrices: eight rows and the next eight rows at eight steps, then both at the next eight steps. B's matrices:
 * eight columns at eight steps and at the next eight steps, then the next eight columns at both. */
#if TOGETHER
#define LOAD_FOUR(w, x, y, z, from) LOAD_BY("", w, x, y, z, from)
#define A_FROM(step, stride) (FIRST_ROW + LANE % 16) * (stride) + (step) + LANE / 16 * 8
#define B_FROM(step, stride) (FIRST_COLUMN + LANE / 16 * 8 + LANE % 8) * (stride) + (step) + LANE / 8 % 2 * 8
#else
#define LOAD_FOUR(w, x, y, z, from) LOAD_BY(".trans", w, x, y, z, from)
#define A_FROM(step, stride) ((step) + LANE / 16 * 8 + LANE % 8) * (stride) + FIRST_ROW + LANE / 8 % 2 * 8
#define B_FROM(step, stride) ((step) + LANE % 16) * (stride) + FIRST_COLUMN + LANE / 16 * 8
#endif
#define MULTIPLY(a_tile, b_tile, A_STRIDE, B_STRIDE)                                                                   \
    UNROLL_GPU for (int step = 0; step < BK; step += DEPTH)                                                            \
    {                                                                                                                  \
        const local ushort *a_from = (const local ushort *)(a_tile) + A_FROM(step, A_STRIDE);                          \
        const local ushort *b_from = (const local ushort *)(b_tile) + B_FROM(step, B_STRIDE);                          \
        uint b[TN / COLUMNS_EACH][OPERANDS_B];                                                                         \
        UNROLL_GPU for (int j = 0; j < TN / COLUMNS_EACH; j += 2)                                                      \
            LOAD_FOUR(b[j][0], b[j][1], b[j + 1][0], b[j + 1][1], b_from + LINE_AT(B_STRIDE, j * COLUMNS));            \
        UNROLL_GPU for (int i = 0; i < TM / ROWS_EACH; i++)                                                            \
        {                                                                                                              \
            uint a[OPERANDS_A];                                                                                        \
            LOAD_FOUR(a[0], a[1], a[2], a[3], a_from + LINE_AT(A_STRIDE, i * ROWS));                                   \
            UNROLL_GPU for (int j = 0; j < TN / COLUMNS_EACH; j++)                                                     \
                MULTIPLY_ADD(a, b[j], i * ROWS_EACH, j * COLUMNS_EACH);                                                \
        }                                                                                                              \
    }
#else
#define MULTIPLY(a_tile, b_tile, A_STRIDE, B_STRIDE)                                                                   \
    UNROLL_GPU for (int step = 0; step < BK; step += DEPTH)                                                            \
    {                                                                                                                  \
        const local tile_t *a_from = (const local tile_t *)(a_tile) + LINE_AT(A_STRIDE, FIRST_ROW);                    \
        const local tile_t *b_from = (const local tile_t *)(b_tile) + LINE_AT(B_STRIDE, FIRST_COLUMN);                 \
        uint b[TN / COLUMNS_EACH][OPERANDS_B];                                                                         \
        UNROLL_GPU for (int j = 0; j < TN / COLUMNS_EACH; j++)                                                         \
            UNROLL_GPU for (int r = 0; r < OPERANDS_B; r++) b[j][r] =                                                  \
                OPERAND_B(b_from, step + STEP_B(r), B_STRIDE, j * COLUMNS + LINE_B(r));                                \
        UNROLL_GPU for (int i = 0; i < TM / ROWS_EACH; i++)                                                            \
        {                                                                                                              \
            uint a[OPERANDS_A];                                                                                        \
            UNROLL_GPU for (int r = 0; r < OPERANDS_A; r++) a[r] =                                                     \
                OPERAND_A(a_from, step + STEP_A(r), A_STRIDE, i * ROWS + LINE_A(r));                                   \
            UNROLL_GPU for (int j = 0; j < TN / COLUMNS_EACH; j++)                                                     \
                MULTIPLY_ADD(a, b[j], i * ROWS_EACH, j * COLUMNS_EACH);                                                \
        }                                                                                                              \
    }
#endif
