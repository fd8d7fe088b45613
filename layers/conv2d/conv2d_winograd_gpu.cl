/* conv2d, 3x3 with stride 1, by Winograd F(M x M, 3x3) on GPU-class devices (Lavin and Gray, "Fast algorithms for
 * convolutional neural networks", 2015, section 4): what goes before the products and after them. Plain layout.
 *
 *   forward          y = A^T [ sum over c of U * V ] A,   V = B^T x B,   U = G w G^T
 *   data gradient    the same of dy, with K and C exchanged and the kernels rotated by 180 degrees
 *   weight gradient  dw = G^T [ sum over tiles of (A dy A^T) * V ] G, the transpose of forward
 *
 * The sums are those of SIDE * SIDE matrix products, which runtime/gemm.h makes. A tile is an M x M block of results; tiles
 * are counted through the rows of an image and then through the images, and neighbouring work-items do neighbouring tiles,
 * so that all but the rows of images are read and written side by side. The transformed numbers of tiles lie as
 * [part][SIDE * SIDE][channels][tiles of a part]; those of channels or tiles that do not exist are zeros.
 *
 * Launched by layers/conv2d/conv2d_winograd_gpu.c with a work-item for each tile (kernels: each channel of results, input channel)
 * and each channel: global size (tiles or channels, rounded up to the group; channels). SIDE: 6 or 4. ACTIVATE: see
 * epilogue.h; bias and add may be NULL. */
#include "parameters.h"
#include "arguments/conv2d_winograd_gpu.h"
#include "epilogue.h"
#include "vector.h"
#define NUMBER float
#define R 3
#define LINE R
#define TAPS (R * R)
#include "winograd_transforms.h"
#define POINTS (SIDE * SIDE)

#if SIDE == 6
typedef float4 row_t;
#define ROW_OF(y) (row_t)(y[0], y[1], y[2], y[3])
#else
typedef float2 row_t;
#define ROW_OF(y) (row_t)(y[0], y[1])
#endif

/* Finds where tile number `tile` has its first result; an image has `rows` x `columns` tiles. */
INLINE void locate(int tile, int rows, int columns, int *image, int *y, int *x)
{
    const int whole = tile / (rows * columns), place = tile - whole * (rows * columns), row = place / columns;
    *image = whole;
    *y = M * row;
    *x = M * (place - row * columns);
}

/* Transforms a tile of a plane with its first pixel at (y, x), either of sources or of results' gradients. What lies
 * outside the plane, and all of a tile that does not exist, is zero. */
INLINE void transform(global const float *plane, bool exists, int height, int width, int y, int x, bool of_results,
    global float *to, size_t step)
{
    const int size = of_results ? M : SIDE;
    float t[SIDE][SIDE];
    UNROLL for (int i = 0; i < SIDE; i++)
    {
        const bool inside = exists && y + i >= 0 && y + i < height;
        float d[SIDE];
        if (i >= size) continue;
        UNROLL for (int j = 0; j < SIDE; j++) d[j] =
            j < size && inside && x + j >= 0 && x + j < width ? plane[(y + i) * width + x + j] : 0.0f;
        if (of_results)
            RESULT_GRADIENTS_1D(d, t[i]);
        else
            INPUT_1D(d, t[i]);
    }
    UNROLL for (int j = 0; j < SIDE; j++)
    {
        float c[SIDE], r[SIDE];
        UNROLL for (int i = 0; i < SIDE; i++) c[i] = i < size ? t[i][j] : 0.0f;
        if (of_results)
            RESULT_GRADIENTS_1D(c, r);
        else
            INPUT_1D(c, r);
        UNROLL for (int i = 0; i < SIDE; i++) to[(SIDE * i + j) * step] = r[i];
    }
}

/* image [N][C][height][width] -> tiles, `padded` channels of them, from float `from` on: `length` of them, from tile `first` of
 * `count` on. */
#define TRANSFORM_TILES(of_results)                                                                                    \
    const int t = get_global_id(0), c = get_global_id(1);                                                              \
    if (t >= length) return;                                                                                           \
    int n, y, x;                                                                                                       \
    locate(first + t, rows, columns, &n, &y, &x);                                                                      \
    transform(image + ((size_t)n * C + c) * height * width, first + t < count && c < C, height, width, y - padding_h,  \
        x - padding_w, of_results,                                                                                     \
        tiles + from + ((size_t)(t / part) * POINTS * padded + c) * part + t % part, (size_t)padded * part)

kernel void winograd_sources(TILES_ARGUMENTS(PARAMETER))
{
    TRANSFORM_TILES(false);
}

kernel void winograd_result_gradients(TILES_ARGUMENTS(PARAMETER))
{
    TRANSFORM_TILES(true);
}

/* Kernels w [K][C][3][3] -> [SIDE * SIDE][sources][results, up to `padded`, with zeros]; sources and results are C and K, or
 * K and C where the kernels are rotated. */
kernel void winograd_weights(
    global const float *restrict w, global float *restrict u, int sources, int results, int padded, int rotated)
{
    const int result = get_global_id(0), source = get_global_id(1);
    if (result >= padded) return;
    const bool exists = result < results;
    w += (rotated ? (size_t)source * results + result : (size_t)result * sources + source) * TAPS;
    u += (size_t)source * padded + result;
    float t[R][SIDE];
    UNROLL for (int i = 0; i < R; i++)
    {
        float g[R];
        UNROLL for (int j = 0; j < R; j++) g[j] = exists ? w[rotated ? TAPS - 1 - R * i - j : R * i + j] : 0.0f;
        WEIGHTS_1D(g, t[i]);
    }
    UNROLL for (int j = 0; j < SIDE; j++)
    {
        float c[R], r[SIDE];
        UNROLL for (int i = 0; i < R; i++) c[i] = t[i][j];
        WEIGHTS_1D(c, r);
        UNROLL for (int i = 0; i < SIDE; i++) u[(SIDE * i + j) * (size_t)sources * padded] = r[i];
    }
}

/* products [SIDE * SIDE][padded][part], from float `from` on -> result [N][K][height][width]. */
kernel void winograd_results(RESULTS_ARGUMENTS(PARAMETER))
{
    const int tile = get_global_id(0), k = get_global_id(1);
    if (tile >= part || first + tile >= count) return;
    int n, at_y, at_x;
    locate(first + tile, rows, columns, &n, &at_y, &at_x);
    products += from + (size_t)k * part + tile;
    float t[SIDE][M];
    UNROLL for (int j = 0; j < SIDE; j++)
    {
        float c[SIDE];
        UNROLL for (int i = 0; i < SIDE; i++) c[i] = products[(SIDE * i + j) * (size_t)padded * part];
        RESULTS_1D(c, t[j]);
    }
    const float shift = bias ? bias[k] : 0.0f;
    size_t to = (((size_t)n * K + k) * height + at_y) * width + at_x;
    UNROLL for (int i = 0; i < M; i++, to += width)
    {
        float c[SIDE], y[M];
        if (at_y + i >= height) continue;
        UNROLL for (int j = 0; j < SIDE; j++) c[j] = t[j][i];
        RESULTS_1D(c, y);
        if (width % M == 0) {
            row_t row = ROW_OF(y) + shift;
            if (add) row += *(global const row_t *)(add + to);
            *(global row_t *)(result + to) = ACTIVATION(row);
        } else {
            UNROLL for (int j = 0; j < M; j++)
            {
                if (at_x + j >= width) continue;
                const float value = y[j] + shift + (add ? add[to + j] : 0.0f);
                result[to + j] = ACTIVATION(value);
            }
        }
    }
}

/* sums [parts][SIDE * SIDE][K, up to a multiple][padded C], from float `from` on -> dw [K][C][3][3], with the parts added up in
 * their order. */
kernel void winograd_weight_gradient(WEIGHT_GRADIENT_ARGUMENTS(PARAMETER))
{
    const int channel = get_global_id(0), k = get_global_id(1);
    if (channel >= C) return;
    sums += from + (size_t)k * padded + channel;
    float t[SIDE][R];
    UNROLL for (int j = 0; j < SIDE; j++) UNROLL for (int i = 0; i < R; i++) t[j][i] = 0.0f;
    for (int p = 0; p < parts; p++, sums += (size_t)POINTS * padded_k * padded)
        UNROLL for (int j = 0; j < SIDE; j++)
        {
            float c[SIDE], g[R];
            UNROLL for (int i = 0; i < SIDE; i++) c[i] = sums[(SIDE * i + j) * (size_t)padded_k * padded];
            WEIGHT_GRADIENTS_1D(c, g);
            UNROLL for (int i = 0; i < R; i++) t[j][i] += g[i];
        }
    const size_t at = ((size_t)k * C + channel) * TAPS;
    UNROLL for (int i = 0; i < R; i++)
    {
        float c[SIDE], g[R];
        UNROLL for (int j = 0; j < SIDE; j++) c[j] = t[j][i];
        WEIGHT_GRADIENTS_1D(c, g);
        UNROLL for (int j = 0; j < R; j++) dw[at + R * i + j] = g[j] + (add ? add[at + R * i + j] : 0.0f);
    }
}
