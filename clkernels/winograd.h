/* Winograd convolution F(M x M, R x R) with M + R = 7 (Lavin and Gray, "Fast algorithms for convolutional neural
 * networks", 2015, section 4): one-dimensional transforms and tiles, shared by the three passes.
 *
 * A tile is an M x M block of results and the 6x6 block of sources that it depends on. Two-dimensional transforms are
 * the one-dimensional one applied to rows and then to columns. A vector holds V channels of one pixel, so that
 * transforms are vector arithmetic without shuffles. The 36 transformed numbers of a tile lie `step` vectors apart;
 * callers keep `step` odd, since 36 stores a power of two apart would share a cache set.
 *
 * Toom and Cook: sequences are polynomials; the product of two is known by its values at 0, +-P, +-Q and infinity. The
 * transform of sources B^T depends on these points alone, so it is the same for all R. With P 3/4 and Q 3/2 rounding
 * errors are half of those with the usual 1 and 2 (measured: rms 0.53, largest 0.3 of theirs, for R 3 and 5), and the
 * coefficients of B^T are exact.
 *
 * Macros: R (taps of a side), TILES (address space of transformed source tiles), NV. */
#include "conv2d_cpu.h"
typedef VF_unaligned vec;

#define M (7 - R)
#define TAPS (R * R)
#define P 0.75f
#define Q 1.5f

/* B^T d: sources, 6 -> 6 */
#define INPUT_1D(d0, d1, d2, d3, d4, d5, t0, t1, t2, t3, t4, t5)                                         \
    do {                                                                                                 \
        VF p_ = (d4) - Q * Q * (d2), q_ = (d3) - Q * Q * (d1), r_ = (d4) - P * P * (d2);                 \
        VF s_ = (d3) - P * P * (d1), u_ = (d4) + P * P * Q * Q * (d0), w_ = (d5) + P * P * Q * Q * (d1); \
        t0 = u_ - (P * P + Q * Q) * (d2);                                                                \
        t1 = p_ + P * q_;                                                                                \
        t2 = p_ - P * q_;                                                                                \
        t3 = r_ + Q * s_;                                                                                \
        t4 = r_ - Q * s_;                                                                                \
        t5 = w_ - (P * P + Q * Q) * (d3);                                                                \
    } while (0)

/* The scales of a kernel's values at 0, +-P and +-Q: products of the distances to the other points, inverted. */
#define SCALE_0 (1.0f / (P * P * Q * Q))
#define SCALE_P (1.0f / (2.0f * P * P * (P * P - Q * Q)))
#define SCALE_Q (1.0f / (2.0f * Q * Q * (Q * Q - P * P)))

/* `scale` times the polynomial with these coefficients at `point` and at -`point`. */
INLINE void values(const VF *c, int count, float scale, float point, VF *plus, VF *minus)
{
    VF even = scale * c[0], odd = scale * c[1];
    float power = scale;
    UNROLL for (int k = 2; k < count; k++)
    {
        if (k % 2) {
            odd += power * c[k];
        } else {
            power *= point * point;
            even += power * c[k];
        }
    }
    *plus = even + point * odd;
    *minus = even - point * odd;
}

/* `count` coefficients -> values at the 6 points. A d: gradients of results, scales 1; G g: weights. */
INLINE void evaluate(const VF *c, int count, float scale_0, float scale_p, float scale_q, VF *t)
{
    t[0] = scale_0 * c[0];
    values(c, count, scale_p, P, &t[1], &t[2]);
    values(c, count, scale_q, Q, &t[3], &t[4]);
    t[5] = c[count - 1];
}

/* The transpose of evaluate(). A^T m: results, scales 1; G^T m: gradients of weights. */
INLINE void evaluate_transposed(const VF *t, int count, float scale_0, float scale_p, float scale_q, VF *c)
{
    const VF sum_p = t[1] + t[2], difference_p = t[1] - t[2], sum_q = t[3] + t[4], difference_q = t[3] - t[4];
    float power_p = scale_p, power_q = scale_q;
    c[0] = scale_0 * t[0] + power_p * sum_p + power_q * sum_q;
    UNROLL for (int k = 1; k < count; k++)
    {
        power_p *= P;
        power_q *= Q;
        c[k] = k % 2 ? power_p * difference_p + power_q * difference_q : power_p * sum_p + power_q * sum_q;
    }
    c[count - 1] += t[5];
}

#define RESULTS_1D(t, y) evaluate_transposed(t, M, 1.0f, 1.0f, 1.0f, y)
#define RESULT_GRADIENTS_1D(dy, t) evaluate(dy, M, 1.0f, 1.0f, 1.0f, t)
#define WEIGHTS_1D(g, t) evaluate(g, R, SCALE_0, SCALE_P, SCALE_Q, t)
#define WEIGHT_GRADIENTS_1D(t, g) evaluate_transposed(t, R, SCALE_0, SCALE_P, SCALE_Q, g)

struct tiling {
    int rows, columns, per_image; /* of tiles */
    int source_height, source_width, result_height, result_width, padding_h, padding_w;
};

struct tile {
    int image, y, x; /* of the first result */
};

INLINE struct tile tile_at(int t, struct tiling g)
{
    struct tile tile;
    tile.image = t / g.per_image;
    const int rest = t - tile.image * g.per_image, row = rest / g.columns;
    tile.y = M * row;
    tile.x = M * (rest - row * g.columns);
    return tile;
}

/* The tile of sources whose top left pixel is (y, x); outside the plane they are zero. */
INLINE void input_tile(
    const global vec *restrict plane, int height, int width, int y, int x, TILES vec *restrict out, int step)
{
    VF t[6][6];
    const bool whole = y >= 0 && x >= 0 && y + 6 <= height && x + 6 <= width;
    LOOP for (int i = 0; i < 6; i++)
    {
        const global vec *p = plane + (y + i) * width + x;
        VF d[6];
        if (whole) {
            UNROLL for (int j = 0; j < M; j++) PREFETCH(p + 2 * M + j); /* of the tile after the next one */
            UNROLL for (int j = 0; j < 6; j++) d[j] = p[j];
        } else {
            const bool inside = y + i >= 0 && y + i < height;
            UNROLL for (int j = 0; j < 6; j++) d[j] = inside && x + j >= 0 && x + j < width ? p[j] : (VF)(0.0f);
        }
        INPUT_1D(d[0], d[1], d[2], d[3], d[4], d[5], t[i][0], t[i][1], t[i][2], t[i][3], t[i][4], t[i][5]);
    }
    LOOP for (int j = 0; j < 6; j++, out += step)
    {
        VF r0, r1, r2, r3, r4, r5;
        INPUT_1D(t[0][j], t[1][j], t[2][j], t[3][j], t[4][j], t[5][j], r0, r1, r2, r3, r4, r5);
        out[0] = r0;
        out[6 * step] = r1;
        out[12 * step] = r2;
        out[18 * step] = r3;
        out[24 * step] = r4;
        out[30 * step] = r5;
    }
}

/* Where the transformed tiles of a slice of source channels begin; the last slice may have fewer blocks. */
INLINE size_t slice_at(int chunk, int first_block, int source_blocks, int T)
{
    return ((size_t)chunk * source_blocks + first_block) * 36 * (T + 1);
}
