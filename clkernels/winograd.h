/* Winograd convolution F(4x4, 3x3) (Lavin and Gray, "Fast algorithms for convolutional neural networks", 2015, section
 * 4.3; points 0, 1, -1, 2, -2): one-dimensional transforms and tiles, shared by the three passes.
 *
 * A tile is a 4x4 block of results and the 6x6 block of sources that it depends on. Two-dimensional transforms are the
 * one-dimensional one applied to rows and then to columns. A vector holds V channels of one pixel, so that transforms
 * are vector arithmetic without shuffles. The 36 transformed numbers of a tile lie `step` vectors apart; callers keep
 * `step` odd, since 36 stores a power of two apart would share a cache set.
 *
 * Macros: TILES (address space of transformed source tiles), NV. */
#include "conv2d_cpu.h"
typedef VF_unaligned vec;

/* B^T d: sources, 6 -> 6 */
#define INPUT_1D(d0, d1, d2, d3, d4, d5, t0, t1, t2, t3, t4, t5)                             \
    do {                                                                                     \
        VF p_ = (d4)-4.0f * (d2), q_ = (d3)-4.0f * (d1), r_ = (d4) - (d2), s_ = (d3) - (d1); \
        VF u_ = (d4) + 4.0f * (d0), w_ = (d5) + 4.0f * (d1);                                 \
        t0 = u_ - 5.0f * (d2);                                                               \
        t1 = p_ + q_;                                                                        \
        t2 = p_ - q_;                                                                        \
        t3 = r_ + 2.0f * s_;                                                                 \
        t4 = r_ - 2.0f * s_;                                                                 \
        t5 = w_ - 5.0f * (d3);                                                               \
    } while (0)

/* A^T m: results, 6 -> 4 */
#define OUTPUT_1D(m0, m1, m2, m3, m4, m5, y0, y1, y2, y3)                                                          \
    do {                                                                                                           \
        VF a_ = (m1) + (m2), b_ = (m1) - (m2), c_ = (m3) + (m4), d_ = (m3) - (m4), e_ = (m0) + a_, f_ = b_ + (m5); \
        y0 = e_ + c_;                                                                                              \
        y1 = b_ + 2.0f * d_;                                                                                       \
        y2 = a_ + 4.0f * c_;                                                                                       \
        y3 = f_ + 8.0f * d_;                                                                                       \
    } while (0)

/* G g: weights, 3 -> 6 */
#define WEIGHT_1D(g0, g1, g2, t0, t1, t2, t3, t4, t5)                            \
    do {                                                                         \
        VF a_ = ((g0) + (g2)) * (-1.0f / 6), b_ = (g1) * (1.0f / 6);             \
        VF c_ = (g0) * (1.0f / 24) + (g2) * (1.0f / 6), d_ = (g1) * (1.0f / 12); \
        t0 = (g0)*0.25f;                                                         \
        t1 = a_ - b_;                                                            \
        t2 = a_ + b_;                                                            \
        t3 = c_ + d_;                                                            \
        t4 = c_ - d_;                                                            \
        t5 = g2;                                                                 \
    } while (0)

/* A d: gradients of results, 4 -> 6 (transpose of OUTPUT_1D) */
#define GRADIENT_1D(d0, d1, d2, d3, t0, t1, t2, t3, t4, t5)                                      \
    do {                                                                                         \
        VF a_ = (d0) + (d2), b_ = (d1) + (d3), c_ = (d0) + 4.0f * (d2), e_ = (d1) + 4.0f * (d3); \
        t0 = d0;                                                                                 \
        t1 = a_ + b_;                                                                            \
        t2 = a_ - b_;                                                                            \
        t3 = c_ + 2.0f * e_;                                                                     \
        t4 = c_ - 2.0f * e_;                                                                     \
        t5 = d3;                                                                                 \
    } while (0)

/* G^T m: gradients of weights, 6 -> 3 (transpose of WEIGHT_1D) */
#define WEIGHT_GRADIENT_1D(m0, m1, m2, m3, m4, m5, g0, g1, g2)                                    \
    do {                                                                                          \
        VF a_ = ((m1) + (m2)) * (1.0f / 6), b_ = (m2) - (m1), c_ = (m3) + (m4), d_ = (m3) - (m4); \
        g0 = (m0)*0.25f - a_ + c_ * (1.0f / 24);                                                  \
        g1 = b_ * (1.0f / 6) + d_ * (1.0f / 12);                                                  \
        g2 = (m5)-a_ + c_ * (1.0f / 6);                                                           \
    } while (0)

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
    tile.y = 4 * row;
    tile.x = 4 * (rest - row * g.columns);
    return tile;
}

/* The tile of sources whose top left pixel is (y, x); outside the plane they are zero. */
INLINE void input_tile(
    const global vec *restrict plane, int height, int width, int y, int x, TILES vec *restrict out, int step)
{
    VF t[6][6];
    if (y >= 0 && x >= 0 && y + 6 <= height && x + 6 <= width) {
        const global vec *p = plane + y * width + x;
        UNROLL for (int i = 0; i < 6; i++) /* the pixels of the tile after the next one */
            UNROLL for (int j = 0; j < 4; j++) PREFETCH(p + i * width + 8 + j);
        UNROLL for (int i = 0; i < 6; i++, p += width)
            INPUT_1D(p[0], p[1], p[2], p[3], p[4], p[5], t[i][0], t[i][1], t[i][2], t[i][3], t[i][4], t[i][5]);
    } else {
        UNROLL for (int i = 0; i < 6; i++)
        {
            VF d[6];
            const bool inside = y + i >= 0 && y + i < height;
            UNROLL for (int j = 0; j < 6; j++)
            {
                d[j] = 0.0f;
                if (inside && x + j >= 0 && x + j < width) d[j] = plane[(y + i) * width + x + j];
            }
            INPUT_1D(d[0], d[1], d[2], d[3], d[4], d[5], t[i][0], t[i][1], t[i][2], t[i][3], t[i][4], t[i][5]);
        }
    }
    UNROLL for (int j = 0; j < 6; j++, out += step)
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
