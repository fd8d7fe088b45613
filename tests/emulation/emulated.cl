/* Matrix instructions on devices without them, put before a kernel of clkernels/ that multiplies by MULTIPLY_ADD of
 * matrix_product.h. Each work-item puts its operands where the vendors' manuals say that the instruction takes them to be,
 * in local memory, and multiplies what all have put there.
 *
 * EMULATED: the only form that there is. FAULT: 1 it does not build, 2 two rows of the result are in each other's place.
 * The macros say where a work-item's numbers belong. Operand r, element e (0, or 1 of two 16-bit numbers in one register):
 * A's row and step, B's column and step. Result i, j: its row and column. */
#if MATRIX
#if MATRIX != EMULATED || COMPUTE == 3 || FAULT == 1
#error "these matrix instructions are not emulated"
#endif

#if MATRIX == 1 || MATRIX == 6 /* PTX ISA, mma.m16n8k8 with .tf32, mma.m16n8k16 with .bf16: groupID = lane >> 2 */
#define A_LINE(r) ((LANE >> 2) + ((r) & 1 ? 8 : 0))
#define B_LINE(r) (LANE >> 2)
#if COMPUTE == 1
#define A_STEP(r, e) ((LANE & 3) + ((r) > 1 ? 4 : 0))
#define B_STEP(r, e) ((LANE & 3) + ((r) > 0 ? 4 : 0))
#else
#define A_STEP(r, e) ((LANE & 3) * 2 + (e) + ((r) > 1 ? 8 : 0))
#define B_STEP(r, e) ((LANE & 3) * 2 + (e) + ((r) > 0 ? 8 : 0))
#endif
#define D_ROW(i) ((LANE >> 2) + ((i) ? 8 : 0))
#define D_COLUMN(j) ((LANE & 3) * 2 + (j))

#elif MATRIX == 2 /* CDNA2: four k of a lane's block of four; results in fours of rows */
#define A_LINE(r) (LANE & 15)
#define B_LINE(r) (LANE & 15)
#define A_STEP(r, e) ((LANE >> 4) * 4 + 2 * (r) + (e))
#define B_STEP(r, e) A_STEP(r, e)
#define D_ROW(i) ((LANE >> 4) * 4 + (i))
#define D_COLUMN(j) (LANE & 15)

#elif MATRIX == 3 /* RDNA3: a lane has a row of A and a column of B, and every other row of the result */
#define A_LINE(r) (LANE & 15)
#define B_LINE(r) (LANE & 15)
#define A_STEP(r, e) (2 * (r) + (e))
#define B_STEP(r, e) (2 * (r) + (e))
#define D_ROW(i) (2 * (i) + (LANE >> 4))
#define D_COLUMN(j) (LANE & 15)

#else /* cl_intel_subgroup_matrix_multiply_accumulate: component r of A is row r, of B the steps 2 r and 2 r + 1 */
#define A_LINE(r) (r)
#define B_LINE(r) LANE
#define A_STEP(r, e) (MATRIX == 4 ? LANE : 2 * LANE + (e))
#define B_STEP(r, e) (2 * (r) + (e))
#define D_ROW(i) (i)
#define D_COLUMN(j) LANE
#endif

#define ELEMENTS_A (COMPUTE == 1 || MATRIX == 4 ? 1 : 2)
#define ELEMENTS_B (COMPUTE == 1 ? 1 : 2)
#define ELEMENT(x, e, count)                                                                                           \
    (COMPUTE == 1 ? as_float(x) : as_float((count) == 2 && (e) ? (x) & 0xffff0000u : (x) << 16))

#if MATRIX == 6 /* PTX ISA, ldmatrix .x4, and .trans: addresses of the rows of matrix r by threads 8 r to 8 r + 7 */
#if TOGETHER
#define LOADED(r, e) emulated_rows[item / LANES][8 * (r) + (LANE >> 2)][(LANE & 3) * 2 + (e)]
#else
#define LOADED(r, e) emulated_rows[item / LANES][8 * (r) + (LANE & 3) * 2 + (e)][LANE >> 2]
#endif
#undef LOAD_FOUR
#define LOAD_FOUR(w, x, y, z, from)                                                                                    \
    {                                                                                                                  \
        barrier(CLK_LOCAL_MEM_FENCE);                                                                                  \
        emulated_rows[item / LANES][LANE] = (from);                                                                    \
        barrier(CLK_LOCAL_MEM_FENCE);                                                                                  \
        w = LOADED(0, 0) | (uint)LOADED(0, 1) << 16;                                                                   \
        x = LOADED(1, 0) | (uint)LOADED(1, 1) << 16;                                                                   \
        y = LOADED(2, 0) | (uint)LOADED(2, 1) << 16;                                                                   \
        z = LOADED(3, 0) | (uint)LOADED(3, 1) << 16;                                                                   \
    }
#define EMULATED_ROWS const local ushort *local emulated_rows[ITEMS / LANES][LANES];
#else
#define EMULATED_ROWS
#endif

#ifdef COPY /* PTX ISA, cp.async: what was copied is there after the wait and a barrier */
#undef COPY
#define COPY(to, from) (*(to) = *(from))
#undef COPIES_END
#define COPIES_END
#undef COPIES_WAIT
#define COPIES_WAIT(later)
#endif

#if PAIR_ROUNDS /* PTX ISA, cvt.rn.bf16x2.f32: to nearest, ties to even; the first of its operands is the upper half */
#undef PAIR
#define PAIR(low, high) ((as_uint(computed_float(high)) & 0xffff0000u) | as_uint(computed_float(low)) >> 16)
#endif

#undef SUBGROUPS
#define SUBGROUPS
#undef MULTIPLY_ADD
#define MULTIPLY_ADD(a, b, i, j)                                                                                       \
    {                                                                                                                  \
        const int subgroup = item / LANES;                                                                             \
        barrier(CLK_LOCAL_MEM_FENCE);                                                                                  \
        for (int r = 0; r < OPERANDS_A; r++)                                                                           \
            for (int e = 0; e < ELEMENTS_A; e++)                                                                       \
                emulated_a[subgroup][A_LINE(r)][A_STEP(r, e)] = ELEMENT(a[r], e, ELEMENTS_A);                          \
        for (int r = 0; r < OPERANDS_B; r++)                                                                           \
            for (int e = 0; e < ELEMENTS_B; e++)                                                                       \
                emulated_b[subgroup][B_STEP(r, e)][B_LINE(r)] = ELEMENT(b[r], e, ELEMENTS_B);                          \
        barrier(CLK_LOCAL_MEM_FENCE);                                                                                  \
        for (int u = 0; u < ROWS_EACH; u++)                                                                            \
            for (int v = 0; v < COLUMNS_EACH; v++)                                                                     \
                for (int k = 0; k < DEPTH; k++)                                                                        \
                    acc[(i) + u][(j) + v] +=                                                                           \
                        emulated_a[subgroup][D_ROW(FAULT ? u ^ 1 : u)][k] * emulated_b[subgroup][k][D_COLUMN(v)];      \
    }
#define EMULATED_MEMORY                                                                                                \
    local float emulated_a[ITEMS / LANES][ROWS][DEPTH], emulated_b[ITEMS / LANES][DEPTH][COLUMNS];                     \
    EMULATED_ROWS
#else
#define EMULATED_MEMORY
#endif
