/* V vectors as a matrix; needs vector.h. */
#ifndef DFT_TRANSPOSE_H
#define DFT_TRANSPOSE_H
#if V == 16
#define ZIP(a, b) (VF)(a.s0, b.s0, a.s1, b.s1, a.s2, b.s2, a.s3, b.s3, a.s4, b.s4, a.s5, b.s5, a.s6, b.s6, a.s7, b.s7)
#define ZIP_HIGH(a, b) \
    (VF)(a.s8, b.s8, a.s9, b.s9, a.sa, b.sa, a.sb, b.sb, a.sc, b.sc, a.sd, b.sd, a.se, b.se, a.sf, b.sf)
#elif V == 8
#define ZIP(a, b) (VF)(a.s0, b.s0, a.s1, b.s1, a.s2, b.s2, a.s3, b.s3)
#define ZIP_HIGH(a, b) (VF)(a.s4, b.s4, a.s5, b.s5, a.s6, b.s6, a.s7, b.s7)
#else
#define ZIP(a, b) (VF)(a.s0, b.s0, a.s1, b.s1)
#define ZIP_HIGH(a, b) (VF)(a.s2, b.s2, a.s3, b.s3)
#endif

/* Turns rows into columns: vectors of both halves are interleaved, as often as V is halved to 1. */
INLINE void transpose(VF *rows)
{
    UNROLL for (int round = 1; round < V; round *= 2)
    {
        VF zipped[V];
        UNROLL for (int i = 0; i < V / 2; i++)
        {
            zipped[2 * i] = ZIP(rows[i], rows[i + V / 2]);
            zipped[2 * i + 1] = ZIP_HIGH(rows[i], rows[i + V / 2]);
        }
        UNROLL for (int i = 0; i < V; i++) rows[i] = zipped[i];
    }
}
#endif
