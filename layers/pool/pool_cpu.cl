/* Pooling on a CPU-class device: x [N][CB][H][W][V], y [N][CB][OH][OW][V], one SIMD lane a channel. Options and rules as
 * in pool_plain.cl. Tasks: (channel block, image, part of the rows); parts are get_global_size(2).
 * Launched by layers/pool/pool_kernels.c.
 *
 * The gradient of max pooling has three forms, FORM: 0 gather, each pixel asks the windows that cover it; 1 windows do not
 * overlap (kernel = stride, no padding): each window writes its own pixels; 2 kernel 3x3, stride 2, padding 1: 2x2 pixels
 * for each output, since an even row or column lies in one window and an odd one in two. */
#include "channels.h"
#include "element.h"
#include "epilogue.h"
#include "pool_window.h"
#include "sum.h"

#ifndef STREAM
#define STREAM 0
#endif
#if STREAM
#define PUT_(v, i, p) STREAM_AS(OUT0_TYPE, v, i, p)
#else
#define PUT_(v, i, p) STORE_AS(OUT0_TYPE, v, i, p)
#endif
#if ADD
#define PUT(v, i, p) PUT_((v) + LOAD_AS(ADD_TYPE, i, added), i, p)
#else
#define PUT(v, i, p) PUT_(v, i, p)
#endif
#define VX CONCATENATE(INDEX, V)
typedef VX VX_unaligned __attribute__((aligned(1)));
#define INDEX_LOAD(i, p) TO_INT(*(global const VX_unaligned *)((p) + (size_t)(i) * V))
#define INDEX_STORE(v, i, p) (*(global VX_unaligned *)((p) + (size_t)(i) * V) = TO_INDEX(v))
#define TO_INDEX CONCATENATE(CONCATENATE(convert_, INDEX), V)
#define TO_INT CONCATENATE(convert_int, V)
/* Windows this small are unrolled: more costs compile time and gains nothing. */
#if KH * KW <= 16
#define UNROLL_WINDOW _Pragma("unroll")
#else
#define UNROLL_WINDOW _Pragma("nounroll")
#endif

/* This task's plane and its rows of `rows`. */
#define PLANE(rows)                                                                                                    \
    const size_t plane = get_global_id(1) * get_global_size(0) + get_global_id(0);                                     \
    const int row0 = (int)((long)(rows) * get_global_id(2) / get_global_size(2));                                      \
    const int row1 = (int)((long)(rows) * (get_global_id(2) + 1) / get_global_size(2));
#if ADD
#define ADDED_PLANE global const add_t *added = add + plane * H * W * V;
#else
#define ADDED_PLANE
#endif

/* The output at (oy, ox); INNER (constant): the window lies inside the columns. */
#define MAX_AT(ox, INNER)                                                                                              \
    {                                                                                                                  \
        VF most = (VF)(-INFINITY);                                                                                     \
        VI place = (VI)(FIRST_INSIDE(oy, ox));                                                                         \
        UNROLL_WINDOW for (int ky = 0; ky < KH; ky++) {                                                                \
            const int iy = oy * SH - PH + ky;                                                                          \
            if (iy < 0 || iy >= H) continue;                                                                           \
            UNROLL_WINDOW for (int kx = 0; kx < KW; kx++) {                                                            \
                const int ix = (ox) * SW - PW + kx;                                                                    \
                if (!(INNER) && (ix < 0 || ix >= W)) continue;                                                         \
                VF v = LOAD_AS(IN0_TYPE, iy * W + ix, from);                                                           \
                VI more = (v > most) | (v != v);                                                                       \
                most = more ? v : most;                                                                                \
                if (WITH_INDEX) place = more ? (VI)(ky * KW + kx) : place;                                             \
            }                                                                                                          \
        }                                                                                                              \
        PUT_(most, oy * OW + (ox), to);                                                                                \
        if (WITH_INDEX) INDEX_STORE(place, oy * OW + (ox), places);                                                    \
    }

/* The columns whose windows lie inside. */
#define INNER0 min((PW + SW - 1) / SW, OW)
#define INNER1 (W - KW + PW < 0 ? 0 : min((W - KW + PW) / SW + 1, OW))

TASK void max_pool(global const in0_t *x, global out0_t *y, global INDEX *index)
{
    PLANE(OH)
    global const in0_t *from = x + plane * H * W * V;
    global out0_t *to = y + plane * OH * OW * V;
    global INDEX *places = WITH_INDEX ? index + plane * OH * OW * V : index;
    for (int oy = row0; oy < row1; oy++) {
        for (int ox = 0; ox < INNER0; ox++) MAX_AT(ox, 0)
        for (int ox = INNER0; ox < INNER1; ox++) MAX_AT(ox, 1)
        for (int ox = max(INNER0, INNER1); ox < OW; ox++) MAX_AT(ox, 0)
    }
}

#ifndef FORM
#define FORM 0
#endif
#define PICK(g, place, k) (place == (VI)(k) ? g : (VF)(0.0f))

/* Tasks are cut by the rows of y for forms 1 and 2, by those of x for form 0. */
TASK void max_pool_gradient(global const in0_t *dy, global const INDEX *index, ADD_PARAMETER(add_t) global out0_t *dx)
{
    PLANE(FORM ? OH : H)
    global const in0_t *from = dy + plane * OH * OW * V;
    global const INDEX *places = index + plane * OH * OW * V;
    global out0_t *to = dx + plane * H * W * V;
    ADDED_PLANE
#if FORM == 1
    for (int oy = row0; oy < row1; oy++) {
        for (int ox = 0; ox < OW; ox++) {
            VF g = LOAD_AS(IN0_TYPE, oy * OW + ox, from);
            VI place = INDEX_LOAD(oy * OW + ox, places);
            UNROLL_WINDOW for (int k = 0; k < KH * KW; k++)
                PUT(PICK(g, place, k), (oy * SH + k / KW) * W + ox * SW + k % KW, to);
        }
        for (int iy = oy * SH; iy < (oy + 1) * SH; iy++)
            for (int ix = OW * SW; ix < W; ix++) PUT((VF)(0.0f), iy * W + ix, to);
    }
    for (int i = OH * SH * W; i < H * W && row1 == OH; i++) PUT((VF)(0.0f), i, to);
#elif FORM == 2
    const VF zero = (VF)(0.0f);
    const VI none = (VI)(-1);
#define QUAD(ox, DOWN, RIGHT)                                                                                          \
    {                                                                                                                  \
        const int o = oy * OW + (ox), i = 2 * oy * W + 2 * (ox);                                                       \
        VF a = LOAD_AS(IN0_TYPE, o, from), b = RIGHT ? LOAD_AS(IN0_TYPE, o + 1, from) : zero;                          \
        VF d = DOWN ? LOAD_AS(IN0_TYPE, o + OW, from) : zero;                                                          \
        VF e = (DOWN && RIGHT) ? LOAD_AS(IN0_TYPE, o + OW + 1, from) : zero;                                           \
        VI pa = INDEX_LOAD(o, places), pb = RIGHT ? INDEX_LOAD(o + 1, places) : none;                                  \
        VI pd = DOWN ? INDEX_LOAD(o + OW, places) : none;                                                              \
        VI pe = (DOWN && RIGHT) ? INDEX_LOAD(o + OW + 1, places) : none;                                               \
        PUT(PICK(a, pa, 4), i, to);                                                                                    \
        if (2 * (ox) + 1 < W) PUT(PICK(a, pa, 5) + PICK(b, pb, 3), i + 1, to);                                         \
        if (2 * oy + 1 < H) {                                                                                          \
            PUT(PICK(a, pa, 7) + PICK(d, pd, 1), i + W, to);                                                           \
            if (2 * (ox) + 1 < W)                                                                                      \
                PUT((PICK(a, pa, 8) + PICK(b, pb, 6)) + (PICK(d, pd, 2) + PICK(e, pe, 0)), i + W + 1, to);             \
        }                                                                                                              \
    }
    for (int oy = row0; oy < min(row1, OH - 1); oy++) {
        for (int ox = 0; ox < OW - 1; ox++) QUAD(ox, 1, 1)
        QUAD(OW - 1, 1, 0)
    }
    for (int oy = max(row0, OH - 1); oy < row1; oy++) {
        for (int ox = 0; ox < OW - 1; ox++) QUAD(ox, 0, 1)
        QUAD(OW - 1, 0, 0)
    }
#else
    for (int iy = row0; iy < row1; iy++) {
        for (int ix = 0; ix < W; ix++) {
            VF sum = (VF)(0.0f);
            for (int oy = FIRST_WINDOW(iy, PH, KH, SH); oy <= LAST_WINDOW(iy, PH, SH, OH); oy++) {
                for (int ox = FIRST_WINDOW(ix, PW, KW, SW); ox <= LAST_WINDOW(ix, PW, SW, OW); ox++) {
                    VI place = INDEX_LOAD(oy * OW + ox, places);
                    VF g = LOAD_AS(IN0_TYPE, oy * OW + ox, from);
                    sum += PICK(g, place, (iy + PH - oy * SH) * KW + ix + PW - ox * SW);
                }
            }
            PUT(sum, iy * W + ix, to);
        }
    }
#endif
}

TASK void average_pool(global const in0_t *x, global out0_t *y)
{
    PLANE(OH)
    global const in0_t *from = x + plane * H * W * V;
    global out0_t *to = y + plane * OH * OW * V;
    for (int oy = row0; oy < row1; oy++) {
#if !ADAPTIVE && KH * KW <= 64 && PH == 0 && PW == 0 && (OH - 1) * SH + KH <= H && (OW - 1) * SW + KW <= W
        _Pragma("unroll 4") for (int ox = 0; ox < OW; ox++) {
            VF sum = (VF)(0.0f);
            UNROLL_WINDOW for (int ky = 0; ky < KH; ky++)
                UNROLL_WINDOW for (int kx = 0; kx < KW; kx++)
                    sum += LOAD_AS(IN0_TYPE, (oy * SH + ky) * W + ox * SW + kx, from);
            PUT_(sum * (1.0f / (KH * KW)), oy * OW + ox, to);
        }
#else
        for (int ox = 0; ox < OW; ox++) {
            VF sum = (VF)(0.0f), error = (VF)(0.0f);
            for (int iy = BEGIN_Y(oy); iy < END_Y(oy); iy++)
                for (int ix = BEGIN_X(ox); ix < END_X(ox);) {
                    const int stop = min(ix + SUM_BLOCK, END_X(ox));
                    VF block = (VF)(0.0f);
                    for (; ix < stop; ix++) block += LOAD_AS(IN0_TYPE, iy * W + ix, from);
                    SUM_ADD(VF, sum, error, block);
                }
            PUT_(sum / (float)DIVISOR(oy, ox), oy * OW + ox, to);
        }
#endif
    }
}

TASK void average_pool_gradient(global const in0_t *dy, ADD_PARAMETER(add_t) global out0_t *dx)
{
    PLANE(H)
    global const in0_t *from = dy + plane * OH * OW * V;
    global out0_t *to = dx + plane * H * W * V;
    ADDED_PLANE
    for (int iy = row0; iy < row1; iy++) {
        for (int ix = 0; ix < W; ix++) {
            VF sum = (VF)(0.0f);
            for (int oy = FIRST_Y(iy); oy <= LAST_Y(iy); oy++)
                for (int ox = FIRST_X(ix); ox <= LAST_X(ix); ox++)
                    sum += LOAD_AS(IN0_TYPE, oy * OW + ox, from) * (1.0f / (float)DIVISOR(oy, ox));
            PUT(sum, iy * W + ix, to);
        }
    }
}

/* Global average pooling hands over to dense layers: y and dy are plain, [N][C]. Tasks: (`per` channel blocks, image). */
TASK void global_average_pool(global const in0_t *x, global float *y, int CB, int C, int per)
{
    const int n = get_global_id(1), first = get_global_id(0) * per;
    for (int cb = first; cb < min(CB, first + per); cb++) {
        global const in0_t *from = x + ((size_t)n * CB + cb) * H * W * V;
        VF sum = (VF)(0.0f), error = sum;
        for (int i = 0; i < H * W;) {
            const int stop = min(i + 4 * SUM_BLOCK, H * W);
            VF a = (VF)(0.0f), b = a, c = a, d = a;
            for (; i + 4 <= stop; i += 4) {
                a += LOAD_AS(IN0_TYPE, i, from);
                b += LOAD_AS(IN0_TYPE, i + 1, from);
                c += LOAD_AS(IN0_TYPE, i + 2, from);
                d += LOAD_AS(IN0_TYPE, i + 3, from);
            }
            for (; i < stop; i++) a += LOAD_AS(IN0_TYPE, i, from);
            SUM_ADD(VF, sum, error, (a + b) + (c + d));
        }
        sum *= 1.0f / (H * W);
        channels_store(sum, y + (size_t)n * C, cb, C);
    }
}

TASK void global_average_pool_gradient(
    global const float *dy, ADD_PARAMETER(add_t) global out0_t *dx, int CB, int C, int per)
{
    const int n = get_global_id(1), first = get_global_id(0) * per;
    for (int cb = first; cb < min(CB, first + per); cb++) {
        const size_t plane = (size_t)n * CB + cb;
        global out0_t *to = dx + plane * H * W * V;
        ADDED_PLANE
        const VF g = channels_load(dy + (size_t)n * C, cb, C) * (1.0f / (H * W));
        _Pragma("unroll 4") for (int i = 0; i < H * W; i++) PUT(g, i, to);
    }
}
