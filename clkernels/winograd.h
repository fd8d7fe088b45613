/* Winograd convolution F(M x M, R x R) with M + R = 7 (Lavin and Gray, "Fast algorithms for convolutional neural
 * networks", 2015, section 4) on CPU-class devices: tiles, shared by the three passes.
 *
 * A tile is an M x M block of results and the 6x6 block of sources that it depends on. Two-dimensional transforms are
 * the one-dimensional one applied to rows and then to columns. A vector holds V channels of one pixel, so that
 * transforms are vector arithmetic without shuffles. The 36 transformed numbers of a tile lie `step` vectors apart;
 * callers keep `step` odd, since 36 stores a power of two apart would share a cache set.
 *
 * Macros: R (taps of a side), TILES (address space of transformed source tiles), NV. */
#include "conv2d_cpu.h"
#define NUMBER VF
#define SIDE 6
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
        INPUT_1D(d, t[i]);
    }
    LOOP for (int j = 0; j < 6; j++, out += step)
    {
        VF c[6], r[6];
        UNROLL for (int i = 0; i < 6; i++) c[i] = t[i][j];
        INPUT_1D(c, r);
        UNROLL for (int i = 0; i < 6; i++) out[6 * i * step] = r[i];
    }
}

/* Where the transformed tiles of a slice of source channels begin; the last slice may have fewer blocks. */
INLINE size_t slice_at(int chunk, int first_block, int source_blocks, int T)
{
    return ((size_t)chunk * source_blocks + first_block) * 36 * (T + 1);
}
