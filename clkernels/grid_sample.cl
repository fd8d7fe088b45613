/* x [n][channels][depth][height][width] at the places of grid [n][outputs][AXES]: y [n][channels][outputs]. Coordinates
 * go from -1 to 1, that of the last axis comes first, as in PyTorch's grid_sample. Without depth, AXES is 2 and depth 1.
 * Launched by layers/grid_sample.c.
 *   MODE 0 linear, 1 nearest, 2 cubic: R. Keys, Cubic convolution interpolation, IEEE Trans. ASSP 29, 1981, a = -0.75
 *   PADDING 0 zeros, 1 the border's element, 2 reflection at the border
 *   ALIGN 1: -1 and 1 are the centres of the outer elements, else their outer edges
 *
 * grid_sample: a work-item or task has `chunk` elements of y, of `all`. grid_data_gradient: one has a channel of a
 * sample, of `all`, and in it alone writes `each` elements of dx, to which it adds in the order of outputs.
 * grid_grid_gradient: one has `chunk` places of the grid, of `all`. */
#include "parameters.h"
#include "arguments/grid_sample.h"
#include "vector.h"

/* Where elements along an axis lie (-1: none), and their weights. slopes: derivatives of the weights by the
 * coordinate. */
struct taps {
    int places[TAPS];
    float weights[TAPS], slopes[TAPS];
};

/* Reflects p until it is inside. *slope: 1 or -1, or 0. */
static float reflected(float p, int size, float *slope)
{
    const float low = ALIGN ? 0.0f : -0.5f, span = ALIGN ? (float)(size - 1) : (float)size;
    *slope = 0.0f;
    if (span == 0.0f) return 0.0f;
    const float distance = fabs(p - low), times = floor(distance / span), rest = distance - times * span;
    const bool even = times * 0.5f == floor(times * 0.5f);
    *slope = (p < low) == even ? -1.0f : 1.0f;
    return low + (even ? rest : span - rest);
}

static float clipped(float p, int size, float *slope)
{
    const float most = (float)(size - 1);
    if (p > 0.0f && p < most) return p;
    *slope = p == 0.0f || p == most ? *slope : 0.0f;
    return p < most ? 0.0f : most;
}

/* An element of a cubic spline. */
static int place_of(float p, int size)
{
    float slope;
    if (PADDING == 2) p = reflected(p, size, &slope);
    if (PADDING != 0) p = clipped(p, size, &slope);
    return p >= 0.0f && p < (float)size ? (int)p : -1;
}

static struct taps taps_of(float coordinate, int size)
{
    struct taps t;
    const float scale = 0.5f * (ALIGN ? (float)(size - 1) : (float)size);
    float p = (coordinate + 1.0f) * scale - (ALIGN ? 0.0f : 0.5f), slope = 1.0f;
#if MODE < 2
    if (PADDING == 2) p = reflected(p, size, &slope);
    if (PADDING != 0) p = clipped(p, size, &slope);
#endif
    if ((MODE < 2 || PADDING == 0) && !(p > -4.0f && p < (float)size + 4.0f)) p = -4.0f; /* fits an int */
    const float below = floor(p), f = p - below;
#if MODE == 0
    for (int i = 0; i < 2; i++) {
        const int place = (int)below + i;
        t.places[i] = place >= 0 && place < size ? place : -1;
        t.weights[i] = i ? f : 1.0f - f;
        t.slopes[i] = (i ? slope : -slope) * scale;
    }
#elif MODE == 1
    const float odd = below * 0.5f != floor(below * 0.5f) ? 1.0f : 0.0f;
    const float place = f < 0.5f || (f == 0.5f && odd == 0.0f) ? below : below + 1.0f;
    t.places[0] = place >= 0.0f && place < (float)size ? (int)place : -1;
    t.weights[0] = 1.0f;
    t.slopes[0] = 0.0f;
#else
    const float a = -0.75f;
    for (int i = 0; i < 4; i++) {
        const float d = fabs(f + 1.0f - (float)i), sign = f + 1.0f < (float)i ? -1.0f : 1.0f;
        const bool inner = i == 1 || i == 2;
        t.places[i] = place_of(below - 1.0f + (float)i, size);
        t.weights[i] =
            inner ? ((a + 2.0f) * d - (a + 3.0f)) * d * d + 1.0f : ((a * d - 5.0f * a) * d + 8.0f * a) * d - 4.0f * a;
        t.slopes[i] = sign * scale *
            (inner ? (3.0f * (a + 2.0f) * d - 2.0f * (a + 3.0f)) * d : (3.0f * a * d - 10.0f * a) * d + 8.0f * a);
    }
#endif
    return t;
}

/* Finds the taps along the axis before the others, if there is one. */
static struct taps outer_taps(global const float *place, int depth)
{
    struct taps t;
    if (AXES == 3) return taps_of(place[2], depth);
    t.places[0] = 0;
    t.weights[0] = 1.0f;
    t.slopes[0] = 0.0f;
    return t;
}

#define OUTER (AXES == 3 ? TAPS : 1)

kernel void grid_sample(GRID_SAMPLE_ARGUMENTS(PARAMETER) GRID_SIZES(PARAMETER))
{
    const long begin = (long)get_global_id(0) * chunk, end = min(begin + chunk, all);
    for (long e = begin; e < end; e++) {
        const long sample = e / outputs / channels;
        global const float *place = grid + sample * grid_stride + e % outputs * AXES;
        global const float *from = x + e / outputs * depth * height * width;
        const struct taps z = outer_taps(place, depth), h = taps_of(place[1], height), w = taps_of(place[0], width);
        float sum = 0.0f;
        for (int i = 0; i < OUTER; i++)
            for (int j = 0; j < TAPS; j++)
                for (int k = 0; k < TAPS; k++)
                    if (z.places[i] >= 0 && h.places[j] >= 0 && w.places[k] >= 0)
                        sum += z.weights[i] * h.weights[j] * w.weights[k] *
                            from[((long)z.places[i] * height + h.places[j]) * width + w.places[k]];
        y[e] = sum;
    }
}

kernel void grid_data_gradient(GRID_DATA_ARGUMENTS(PARAMETER) GRID_SIZES(PARAMETER))
{
    const long line = get_global_id(0), pixels = (long)depth * height * width;
    const long low = get_global_id(1) * each, high = min(low + each, pixels);
    if (line >= all) return;
    dx += line * pixels;
    dy += line * outputs;
    grid += line / channels * grid_stride;
    for (long i = low; i < high; i++) dx[i] = 0.0f;
    for (long o = 0; o < outputs; o++) {
        global const float *place = grid + o * AXES;
        const struct taps z = outer_taps(place, depth), h = taps_of(place[1], height), w = taps_of(place[0], width);
        for (int i = 0; i < OUTER; i++)
            for (int j = 0; j < TAPS; j++)
                for (int k = 0; k < TAPS; k++) {
                    const long at = ((long)z.places[i] * height + h.places[j]) * width + w.places[k];
                    if (z.places[i] < 0 || h.places[j] < 0 || w.places[k] < 0 || at < low || at >= high) continue;
                    dx[at] += z.weights[i] * h.weights[j] * w.weights[k] * dy[o];
                }
    }
}

kernel void grid_grid_gradient(GRID_GRID_ARGUMENTS(PARAMETER) GRID_SIZES(PARAMETER))
{
    const long begin = (long)get_global_id(0) * chunk, end = min(begin + chunk, all);
    for (long e = begin; e < end; e++) {
        const long sample = e / outputs, o = e % outputs, pixels = (long)depth * height * width;
        global const float *place = grid + sample * grid_stride + o * AXES;
        const struct taps z = outer_taps(place, depth), h = taps_of(place[1], height), w = taps_of(place[0], width);
        float of_z = 0.0f, of_h = 0.0f, of_w = 0.0f;
        for (int c = 0; c < channels; c++) {
            global const float *from = x + (sample * channels + c) * pixels;
            const float g = dy[(sample * channels + c) * outputs + o];
            for (int i = 0; i < OUTER; i++)
                for (int j = 0; j < TAPS; j++)
                    for (int k = 0; k < TAPS; k++) {
                        if (z.places[i] < 0 || h.places[j] < 0 || w.places[k] < 0) continue;
                        const float v = g * from[((long)z.places[i] * height + h.places[j]) * width + w.places[k]];
                        of_z += v * z.slopes[i] * h.weights[j] * w.weights[k];
                        of_h += v * z.weights[i] * h.slopes[j] * w.weights[k];
                        of_w += v * z.weights[i] * h.weights[j] * w.slopes[k];
                    }
        }
        dgrid[e * AXES] = of_w;
        dgrid[e * AXES + 1] = of_h;
        if (AXES == 3) dgrid[e * AXES + 2] = of_z;
    }
}
