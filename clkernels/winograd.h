/* Winograd convolution F(4x4, R x R) (Lavin and Gray, "Fast algorithms for convolutional neural
 * networks", 2015, section 4) on CPU-class devices: tiles, shared by the three passes.
 *
 * A tile is a block of 4x4 results and the block of R + 3 by R + 3 sources that it depends on. Two-dimensional transforms are
 * the one-dimensional one applied to rows and then to columns. A vector holds V channels of one pixel, so that
 * transforms are vector arithmetic without shuffles. The NUMBERS transformed numbers of a tile lie `step` vectors
 * apart; callers keep `step` odd, since stores a power of two apart would share a cache set.
 *
 * Macros: R (taps of a side), TILES (address space of transformed source tiles), NV. */
#include "conv2d_cpu.h"
#define NUMBER VF
#define LINE R
#define TAPS (R * R)
#define SIDE (R + 3)
#define NUMBERS (SIDE * SIDE)
#include "winograd_transforms.h"
typedef VF_unaligned vec;

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
    VF t[SIDE][SIDE];
    const bool whole = y >= 0 && x >= 0 && y + SIDE <= height && x + SIDE <= width;
    LOOP for (int i = 0; i < SIDE; i++)
    {
        const global vec *p = plane + (y + i) * width + x;
        VF d[SIDE];
        if (whole) {
            UNROLL for (int j = 0; j < M; j++) PREFETCH(p + 2 * M + j); /* of the tile after the next one */
            UNROLL for (int j = 0; j < SIDE; j++) d[j] = p[j];
        } else {
            const bool inside = y + i >= 0 && y + i < height;
            UNROLL for (int j = 0; j < SIDE; j++) d[j] = inside && x + j >= 0 && x + j < width ? p[j] : (VF)(0.0f);
        }
        INPUT_1D(d, t[i]);
    }
    LOOP for (int j = 0; j < SIDE; j++, out += step)
    {
        VF c[SIDE], r[SIDE];
        UNROLL for (int i = 0; i < SIDE; i++) c[i] = t[i][j];
        INPUT_1D(c, r);
        UNROLL for (int i = 0; i < SIDE; i++) out[SIDE * i * step] = r[i];
    }
}

/* Where the transformed tiles of a slice of source channels begin; the last slice may have fewer blocks. */
INLINE size_t slice_at(int chunk, int first_block, int source_blocks, int T)
{
    return ((size_t)chunk * source_blocks + first_block) * NUMBERS * (T + 1);
}
