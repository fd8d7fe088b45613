/* Winograd convolution F(4x4, R x R) (Lavin and Gray, "Fast algorithms for convolutional neural
 * networks", 2015, section 4) on CPU-class devices, with stride 1, and for R = 3 with stride 2 (winograd_stride2.h):
 * tiles, shared by the three passes.
 *
 * A tile is a block of RESULTS x RESULTS results and the block of SOURCES x SOURCES sources that it depends on.
 * Transformed it is NUMBERS = POINTS x POINTS numbers, each to be multiplied by one of the KERNEL_NUMBERS of a
 * transformed kernel. Two-dimensional transforms are the one-dimensional one applied to rows and then to columns. A
 * vector holds V channels of one pixel, so that transforms are vector arithmetic without shuffles. The transformed
 * numbers of a tile or a kernel lie `step` vectors apart; callers keep `step` odd, since stores a power of two apart
 * would share a cache set.
 *
 * Macros: R (taps of a side), STRIDE, GRADIENT (with a stride of 2: 1 in the data gradient), TILES (address space of
 * transformed source tiles), NV. */
#include "conv2d_cpu_kernel.h"
#define NUMBER VF
#define TAPS (R * R)
#if STRIDE == 2
#include "winograd_stride2.h"
#else
#define LINE R
#define SIDE (R + 3)
#include "winograd_transforms.h"
#define POINTS SIDE
#define KERNEL_POINTS SIDE
#define SOURCES SIDE
#define RESULTS M
#define SOURCE_AT(y) (y)
#endif
#define NUMBERS (POINTS * POINTS)
#define KERNEL_NUMBERS (KERNEL_POINTS * KERNEL_POINTS)
#define STEP SOURCE_AT(RESULTS) /* from a tile's sources to those of the next */
typedef VF_unaligned vec;

/* EACH_NUMBER goes through the numbers i of a tile that number k of a kernel multiplies. That is one number, except
 * that the last value of a line serves all points from there on. */
#define FIRST_NUMBER(k) ((k) / KERNEL_POINTS * POINTS + (k) % KERNEL_POINTS)
#define POINTS_OF(value) ((value) == KERNEL_POINTS - 1 ? POINTS - KERNEL_POINTS + 1 : 1)
#define EACH_NUMBER(i, k)                                                      \
    for (int i##_row = 0; i##_row < POINTS_OF((k) / KERNEL_POINTS); i##_row++) \
        for (int i = FIRST_NUMBER(k) + i##_row * POINTS, i##_end = i + POINTS_OF((k) % KERNEL_POINTS); i < i##_end; i++)

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
    tile.y = RESULTS * row;
    tile.x = RESULTS * (rest - row * g.columns);
    return tile;
}

/* The tile of sources whose top left pixel is (y, x); outside the plane they are zero. */
INLINE void input_tile(
    const global vec *restrict plane, int height, int width, int y, int x, TILES vec *restrict out, int step)
{
    VF t[SOURCES][POINTS];
    const bool whole = y >= 0 && x >= 0 && y + SOURCES <= height && x + SOURCES <= width;
    LOOP for (int i = 0; i < SOURCES; i++)
    {
        const global vec *p = plane + (y + i) * width + x;
        VF d[SOURCES];
        if (whole) {
            UNROLL for (int j = 0; j < STEP; j++) PREFETCH(p + 2 * STEP + j); /* of the tile after the next one */
            UNROLL for (int j = 0; j < SOURCES; j++) d[j] = p[j];
        } else {
            const bool inside = y + i >= 0 && y + i < height;
            UNROLL for (int j = 0; j < SOURCES; j++) d[j] = inside && x + j >= 0 && x + j < width ? p[j] : (VF)(0.0f);
        }
        INPUT_1D(d, t[i]);
    }
    LOOP for (int j = 0; j < POINTS; j++, out += step)
    {
        VF c[SOURCES], r[POINTS];
        UNROLL for (int i = 0; i < SOURCES; i++) c[i] = t[i][j];
        INPUT_1D(c, r);
        UNROLL for (int i = 0; i < POINTS; i++) out[POINTS * i * step] = r[i];
    }
}

/* Tiles first .. last-1 of a block of [images][blocks][height][width], one vector apart. */
INLINE void input_tiles(const global float *restrict source, int blocks, int block, int first, int last,
    struct tiling g, TILES vec *restrict out, int step)
{
    for (int t = first; t < last; t++) {
        const struct tile tile = tile_at(t, g);
        const global vec *plane =
            (const global vec *)source + (size_t)(tile.image * blocks + block) * g.source_height * g.source_width;
        input_tile(plane, g.source_height, g.source_width, SOURCE_AT(tile.y) - g.padding_h,
            SOURCE_AT(tile.x) - g.padding_w, out + (t - first), step);
    }
}

/* Where the transformed tiles of a slice of source channels begin; the last slice may have fewer blocks. */
INLINE size_t slice_at(int chunk, int first_block, int source_blocks, int T)
{
    return ((size_t)chunk * source_blocks + first_block) * NUMBERS * (T + 1);
}
