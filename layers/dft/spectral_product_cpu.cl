/* The product of channels at each frequency and its gradients, on CPU-class devices; launched by
 * layers/dft/spectral_product.c with a task for TB channels b and CHUNK vectors of frequencies:
 *
 *   result[a, b, p] = sum over k of left[a, k, p] * right[k, b, p]      p: complex numbers
 *
 * FORM 0: of these; 1: of left and conj(right); 2: of conj(left) and right. A vector has V / 2 complex numbers, real
 * and imaginary parts in turns: sums of both parts of left times right are exchanged and added after the last k. */
#include "parameters.h"
#include "arguments/spectral_product.h"
#include "vector.h"

#if V == 16
#define EVEN_TWICE(v) (VF)(v.s0, v.s0, v.s2, v.s2, v.s4, v.s4, v.s6, v.s6, v.s8, v.s8, v.sa, v.sa, v.sc, v.sc, v.se, v.se)
#define ODD_TWICE(v) (VF)(v.s1, v.s1, v.s3, v.s3, v.s5, v.s5, v.s7, v.s7, v.s9, v.s9, v.sb, v.sb, v.sd, v.sd, v.sf, v.sf)
#define EXCHANGED(v) (VF)(v.s1, v.s0, v.s3, v.s2, v.s5, v.s4, v.s7, v.s6, v.s9, v.s8, v.sb, v.sa, v.sd, v.sc, v.sf, v.se)
#elif V == 8
#define EVEN_TWICE(v) (VF)(v.s0, v.s0, v.s2, v.s2, v.s4, v.s4, v.s6, v.s6)
#define ODD_TWICE(v) (VF)(v.s1, v.s1, v.s3, v.s3, v.s5, v.s5, v.s7, v.s7)
#define EXCHANGED(v) (VF)(v.s1, v.s0, v.s3, v.s2, v.s5, v.s4, v.s7, v.s6)
#else
#define EVEN_TWICE(v) (VF)(v.s0, v.s0, v.s2, v.s2)
#define ODD_TWICE(v) (VF)(v.s1, v.s1, v.s3, v.s3)
#define EXCHANGED(v) (VF)(v.s1, v.s0, v.s3, v.s2)
#endif
/* What the parts of the sums are multiplied with: of re(left) right, and of im(left) right with exchanged parts. */
#if FORM == 0
#define SUM(re, im) ((re) + SIGNED(EXCHANGED(im), -1.0f, 1.0f))
#elif FORM == 1
#define SUM(re, im) (SIGNED(re, 1.0f, -1.0f) + EXCHANGED(im))
#else
#define SUM(re, im) ((re) + SIGNED(EXCHANGED(im), 1.0f, -1.0f))
#endif
#define SIGNED(v, even, odd) ((v) * SELECT_PARTS(even, odd))
#if V == 16
#define SELECT_PARTS(e, o) (VF)(e, o, e, o, e, o, e, o, e, o, e, o, e, o, e, o)
#elif V == 8
#define SELECT_PARTS(e, o) (VF)(e, o, e, o, e, o, e, o)
#else
#define SELECT_PARTS(e, o) (VF)(e, o, e, o)
#endif

/* TA times TB vectors of the result. Rows and columns past the last one repeat it. */
INLINE void tile(long p, int a, int b, SPECTRAL_PRODUCT_ARGUMENTS(PARAMETER))
{
    const global float *l[TA], *r[TB];
    VF re[TA][TB], im[TA][TB];
    UNROLL for (int i = 0; i < TA; i++)
    {
        l[i] = left + p + min(a + i, as - 1) * left_a;
        UNROLL for (int j = 0; j < TB; j++) re[i][j] = im[i][j] = (VF)(0.0f);
    }
    UNROLL for (int j = 0; j < TB; j++) r[j] = right + p + min(b + j, bs - 1) * right_b;
    LOOP for (int k = 0; k < ks; k++)
    {
        VF w[TB];
        UNROLL for (int j = 0; j < TB; j++) w[j] = VLOAD(0, r[j] + k * right_k);
        UNROLL for (int i = 0; i < TA; i++)
        {
            const VF v = VLOAD(0, l[i] + k * left_k), even = EVEN_TWICE(v), odd = ODD_TWICE(v);
            UNROLL for (int j = 0; j < TB; j++)
            {
                re[i][j] = fma(even, w[j], re[i][j]);
                im[i][j] = fma(odd, w[j], im[i][j]);
            }
        }
    }
    UNROLL for (int i = 0; i < TA; i++)
    UNROLL for (int j = 0; j < TB; j++)
        if (a + i < as && b + j < bs)
            VSTORE(SUM(re[i][j], im[i][j]), 0, result + p + (a + i) * result_a + (b + j) * result_b);
}

/* The same of one frequency, for those that fill no vector. */
OUTLINE void single(long p, int b, SPECTRAL_PRODUCT_ARGUMENTS(PARAMETER))
{
    for (int a = 0; a < as; a++)
        for (int j = b; j < min(b + TB, bs); j++) {
            float re = 0.0f, im = 0.0f;
            for (int k = 0; k < ks; k++) {
                const global float *l = left + p + a * left_a + k * left_k, *r = right + p + k * right_k + j * right_b;
                const float li = FORM == 2 ? -l[1] : l[1], ri = FORM == 1 ? -r[1] : r[1];
                re = fma(l[0], r[0], fma(-li, ri, re));
                im = fma(l[0], ri, fma(li, r[0], im));
            }
            result[p + a * result_a + j * result_b] = re;
            result[p + a * result_a + j * result_b + 1] = im;
        }
}

OUTLINE void part(long block, long chunk, SPECTRAL_PRODUCT_ARGUMENTS(PARAMETER))
{
    const int b = (int)block * TB;
    const long begin = chunk * CHUNK * V, end = min(begin + CHUNK * V, (long)floats), whole = end - (end - begin) % V;
    for (int a = 0; a < as; a += TA)
        for (long p = begin; p < whole; p += V) tile(p, a, b, SPECTRAL_PRODUCT_ARGUMENTS(NAME));
    for (long p = whole; p < end; p += 2) single(p, b, SPECTRAL_PRODUCT_ARGUMENTS(NAME));
}

TASK void spectral_product(SPECTRAL_PRODUCT_ARGUMENTS(PARAMETER))
{
    part(get_group_id(0), get_group_id(1), SPECTRAL_PRODUCT_ARGUMENTS(NAME));
}
