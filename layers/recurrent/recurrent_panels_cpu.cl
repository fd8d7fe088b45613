/* A recurrent layer in one direction on CPU-class devices: the products of the state of many samples at once, from
 * packed weights, with the gates' functions in their epilogue. Launched by layers/recurrent/recurrent_panels.c; the
 * head of layers/recurrent/recurrent.c has the formulas, and recurrent.cl the arguments' layouts.
 *   recurrent_panels_forward    y, the last states, and what the gradient needs
 *   recurrent_panels_backward   the gradients of `gates` and of the first states; previous: h before each step
 *   recurrent_panels_pack       the panels of r
 *
 * A task has `rows` samples and `blocks` blocks of columns, and runs steps `first` to the one before `stop` of them, the
 * gradient's downwards. A launch of several steps has tasks with all blocks, since they read what the step before made of all
 * units; otherwise each step is a launch.
 * A block is of NV vectors of V columns: forward those of all gates of V units, so that a tile's registers have all that
 * its units need; backward NV V units. Its panel [depth][NV][V] is read in pieces of PIECE rows, which stay in the
 * first-level cache while tiles of up to MR samples are multiplied by them; the next piece is fetched meanwhile.
 *   depth: forward width, backward GATES width. The last panel's columns past the end are 0.
 * states: what the products read, in rows of ROW(depth), of two steps in turns: forward h, then the cells of an LSTM
 * [samples][ROW(width)]; backward the gradients of the gates (of a GRU: as the product of the state had them).
 * The rows are not a power of two apart, as those of y and dgates may be, which would share few sets of the caches.
 * scratch: [rows][NV][V], sums of products. They are made of chains of PIECE multiply-adds.
 * Step -1 of the gradient gives that of the first states.
 * KIND, F, G, H, I, O, FORGET, C, Z, RESET, REVERSE, COUPLED, CLIP, GATES, SAVED, OTHER: as in recurrent.cl. */
#include "parameters.h"
#include "arguments/recurrent_panels.h"
#include "vector.h"
#include "transpose.h"
#include "exponential.h"

enum { PIECE = 128 };
#define COLUMNS (NV * V)
#define ROW(depth) (((depth) + V - 1) / V * V + V)

EXPONENTIAL_OF_ANY(exp_of_any, VF, VI, AS_VF, TO_VI)
TRANSPOSE(transpose, VF)

/* S. Moshier: Cephes, tanhf. */
INLINE VF tangent(VF x)
{
    const VF t = fabs(x), s = x * x, large = 1.0f - 2.0f / (exp_of_any(2.0f * t) + 1.0f);
    VF small = (VF)(-5.70498872745e-3f);
    small = fma(small, s, (VF)(2.06390887954e-2f));
    small = fma(small, s, (VF)(-5.37397155531e-2f));
    small = fma(small, s, (VF)(1.33314422036e-1f));
    small = fma(small, s, (VF)(-3.33332819422e-1f));
    small = fma(small * s, x, x);
    return t < 0.625f ? small : x < 0.0f ? -large : large;
}

#define ZERO ((VF)(0.0f))
#define ONE ((VF)(1.0f))
#define APPLY_1(x) ((x) < 0.0f ? ZERO : (x))
#define APPLY_4(x) (1.0f / (1.0f + exp_of_any(-(x))))
#define APPLY_5(x) tangent(x)
#define SLOPE_1(y) ((y) > 0.0f ? ONE : ZERO)
#define SLOPE_4(y) ((y) * (1.0f - (y)))
#define SLOPE_5(y) (1.0f - (y) * (y))
#define FUNCTIONS(name, number)                                                                                  \
    INLINE VF name(VF x, float clip)                                                                             \
    {                                                                                                            \
        if (CLIP) x = x < -clip ? (VF)(-clip) : x > clip ? (VF)(clip) : x;                                       \
        return CONCATENATE(APPLY_, number)(x);                                                                   \
    }                                                                                                            \
    /* The derivative where the result is y; 0 where the argument was clipped. */                                \
    INLINE VF slope_##name(VF y, float clip)                                                                     \
    {                                                                                                            \
        const VF slope = CONCATENATE(SLOPE_, number)(y);                                                         \
        if (!CLIP) return slope;                                                                                 \
        const VF most = CONCATENATE(APPLY_, number)((VF)(clip)), least = CONCATENATE(APPLY_, number)((VF)(-clip)); \
        return y < most ? y > least ? slope : ZERO : ZERO;                                                       \
    }
FUNCTIONS(gate, F)
FUNCTIONS(fresh, G)
INLINE VF squash(VF x) { return CONCATENATE(APPLY_, H)(x); }
INLINE VF slope_squash(VF y) { return CONCATENATE(SLOPE_, H)(y); }

/* The first `count` of V floats; the others are 0, and are not stored. No floats where there is no buffer. */
INLINE VF load(global const float *from, size_t at, int count)
{
    if (!from) return ZERO;
    if (count >= V) return VLOAD(0, from + at);
    VF v = ZERO;
    for (int l = 0; l < count; l++) ((float *)&v)[l] = from[at + l];
    return v;
}

INLINE void store(VF v, global float *to, size_t at, int count)
{
    if (!to) return;
    if (count >= V) {
        VSTORE(v, 0, to + at);
        return;
    }
    for (int l = 0; l < count; l++) to[at + l] = ((float *)&v)[l];
}

/* Returns the number of steps of this sample; what is after them is 0. */
INLINE int steps_of(global const float *lengths, int sample, int steps)
{
    const float length = lengths ? lengths[sample] : steps;
    return length >= steps ? steps : length > 0.0f ? (int)length : 0;
}

#define PLACE(s, count) (REVERSE ? (count)-1 - (s) : (s))

/* sums [M][NV][V] = or += M rows of `a` times a piece of a panel. Fetches `each` lines, 1 or 2, from `next` on for each row
 * of the piece. */
INLINE void multiply(const int M, global const float *a, int lda, int depth, global const float *panel,
    global const float *next, int each, bool begin, local float *sums)
{
    VF c[MR][NV];
    UNROLL for (int i = 0; i < M; i++) UNROLL for (int j = 0; j < NV; j++) c[i][j] = ZERO;
    for (int k = 0; k < depth; k++) {
        VF b[NV];
        UNROLL for (int j = 0; j < NV; j++) b[j] = VLOAD(j, panel + k * COLUMNS);
        PREFETCH(next + k * each * V);
        PREFETCH(next + (k * each + each - 1) * V);
        UNROLL for (int i = 0; i < M; i++)
        {
            const VF x = (VF)(a[(size_t)i * lda + k]);
            UNROLL for (int j = 0; j < NV; j++) c[i][j] = fma(x, b[j], c[i][j]);
            IN_ORDER;
        }
    }
    UNROLL for (int i = 0; i < M; i++) UNROLL for (int j = 0; j < NV; j++)
    {
        local float *to = sums + i * COLUMNS;
        LOCAL_STORE(begin ? c[i][j] : c[i][j] + LOCAL_LOAD(j, to), j, to);
    }
}

/* sums [rows][NV][V] = rows of `a` times a panel. Tiles differ by one row at most. */
OUTLINE void multiply_panel(global const float *a, int lda, int rows, int depth, global const float *panel,
    global const float *after, local float *sums)
{
    const int tiles = (rows + MR - 1) / MR, each = tiles < NV ? 2 : 1;
    for (int k = 0; k < depth; k += PIECE) {
        const int kn = min((int)PIECE, depth - k);
        global const float *now = panel + (size_t)k * COLUMNS, *next = k + kn < depth ? now + kn * COLUMNS : after;
        for (int tile = 0, i = 0; tile < tiles; tile++) {
            const int count = (rows - i) / (tiles - tile);
            global const float *from = a + (size_t)i * lda + k, *fetched = next + tile * kn * each * V;
            local float *to = sums + i * COLUMNS;
#define TILE(M) case M: if (M <= MR) multiply(M, from, lda, kn, now, fetched, each, k == 0, to); break;
            switch (count) {
                TILE(1) TILE(2) TILE(3) TILE(4) TILE(5) TILE(6)
#if MR > 6
                TILE(7) TILE(8)
#endif
#if MR > 8
                TILE(9) TILE(10) TILE(11) TILE(12)
#endif
            }
            i += count;
        }
    }
}

#if !BACKWARD
/* The argument of gate g before its function, of V units from j on: the products of the input and the state, and the bias.
 */
struct place {
    global const float *now, *bias;
    local const float *sums; /* or 0: there was no state */
    int width, j, count;
};
INLINE VF state_part(const struct place *p, int g)
{
    const VF b = load(p->bias, (size_t)g * p->width + p->j, p->count);
    return p->sums ? b + LOCAL_LOAD(g, p->sums) : b;
}
INLINE VF argument(const struct place *p, int g)
{
    return load(p->now, (size_t)g * p->width + p->j, p->count) + state_part(p, g);
}

/* V units of a sample in one step; returns the new state. keep: what is saved for the gradient, at the first unit. */
INLINE VF forward_units(const struct place *p, VF h, VF *cell, global const float *peepholes, global float *keep, float clip)
{
    const int width = p->width, n = p->count;
#if KIND == 1
    const VF c = *cell;
    const VF i = gate(argument(p, I) + load(peepholes, p->j, n) * c, clip);
    const VF f = COUPLED ? 1.0f - i : gate(argument(p, FORGET) + load(peepholes, 2 * (size_t)width + p->j, n) * c, clip);
    const VF g = fresh(argument(p, C), clip), next = f * c + i * g;
    const VF o = gate(argument(p, O) + load(peepholes, (size_t)width + p->j, n) * next, clip);
    store(i, keep, 0, n);
    store(o, keep, width, n);
    store(f, keep, 2 * (size_t)width, n);
    store(g, keep, 3 * (size_t)width, n);
    store(next, keep, 4 * (size_t)width, n);
    *cell = next;
    return o * squash(next);
#elif KIND == 2
    const VF z = gate(argument(p, Z), clip), r = gate(argument(p, RESET), clip), q = state_part(p, 2);
    const VF new = fresh(load(p->now, 2 * (size_t)width + p->j, n) + r * q, clip);
    store(z, keep, 0, n);
    store(r, keep, width, n);
    store(new, keep, 2 * (size_t)width, n);
    store(q, keep, 3 * (size_t)width, n);
    return (1.0f - z) * new + z * h;
#else
    return gate(argument(p, 0), clip);
#endif
}

/* Fetches what a step of a task's samples reads and writes of V units, while their products are made: each line lies in
 * another page. */
INLINE void fetch_block(PANELS_FORWARD_ARGUMENTS(PARAMETER), int sample, int count, int j, int s)
{
    for (int n = sample; n < sample + count; n++) {
        const int length = steps_of(lengths, n, steps);
        const size_t at = (size_t)n * steps + (s < length ? PLACE(s, length) : s);
        for (int g = 0; g < GATES; g++) PREFETCH(gates + (at * GATES + g) * width + j);
        for (int g = 0; g < SAVED; g++) PREFETCH(saved + (at * SAVED + g) * width + j);
        PREFETCH(y + at * width + j);
    }
}

/* One step of a task's samples, for V units from j on. h: the states before it, or 0. */
INLINE void forward_block(PANELS_FORWARD_ARGUMENTS(PARAMETER), int sample, int count, int j, int s, global const float *h,
    int ldh)
{
    const int part = min((int)V, width - j), ld = ROW(width);
    global float *cells = states + 2 * (size_t)samples * ld, *next = states + (size_t)((s + 1) & 1) * samples * ld;
    for (int r = 0; r < count; r++) {
        const int n = sample + r, length = steps_of(lengths, n, steps), t = s < length ? PLACE(s, length) : s;
        const size_t at = (size_t)n * steps + t;
        const VF before = load(h, (size_t)r * ldh + j, part);
        VF cell = s ? load(cells, (size_t)n * ld + j, V) : load(c0, (size_t)n * width + j, part), state = before;
        if (s < length) {
            const struct place p = { gates + at * GATES * width, bias, h ? scratch + r * COLUMNS : 0, width, j, part };
            state = forward_units(&p, before, &cell, peepholes, SAVED ? saved + at * SAVED * width + j : 0, clip);
            store(state, y, at * width + j, part);
        } else {
            store(ZERO, y, at * width + j, part);
            for (int g = 0; g < SAVED; g++) store(ZERO, saved, (at * SAVED + g) * width + j, part);
        }
        store(state, next, (size_t)n * ld + j, V);
        if (KIND == 1) store(cell, cells, (size_t)n * ld + j, V);
        if (s < steps - 1) continue;
        store(state, last, (size_t)n * width + j, part);
        if (KIND == 1) store(cell, last_c, (size_t)n * width + j, part);
    }
}

OUTLINE void forward_body(PANELS_FORWARD_ARGUMENTS(PARAMETER), int column_task, int row_task)
{
    const int sample = row_task * rows, count = min(rows, samples - sample), ld = ROW(width);
    const int all = (width + V - 1) / V, block = column_task * blocks, end = min(block + blocks, all);
    const size_t panel = (size_t)width * COLUMNS;
    for (int s = first; s < stop; s++) {
        global const float *h = s ? states + ((size_t)(s & 1) * samples + sample) * ld : h0 ? h0 + (size_t)sample * width : 0;
        const int ldh = s ? ld : width;
        for (int b = block; b < end; b++) {
            const int after = b + 1 < end ? b + 1 : block;
            fetch_block(PANELS_FORWARD_ARGUMENTS(NAME), sample, count, b * V, s);
            if (h) multiply_panel(h, ldh, count, width, panels + b * panel, panels + after * panel, scratch);
            forward_block(PANELS_FORWARD_ARGUMENTS(NAME), sample, count, b * V, s, h, ldh);
        }
    }
}

TASK void recurrent_panels_forward(PANELS_FORWARD_ARGUMENTS(PARAMETER))
{
    forward_body(PANELS_FORWARD_ARGUMENTS(NAME), get_group_id(0), get_group_id(1));
}
#else
/* V units of a sample in one step of the gradient, from unit j on. dstate: the gradient of what the state was multiplied
 * by, which the step before this one reads. Returns what dh is without the product. */
struct back {
    global const float *keep, *peepholes; /* keep: at the first unit */
    global float *d, *other, *dstate;     /* at the first unit */
    VF h, c, y;                           /* before the step; y: after it */
    int width, j, count;
};
INLINE VF backward_units(const struct back *p, VF dhidden, VF *dcell, float clip)
{
    const int n = p->count;
    const size_t width = p->width;
#if KIND == 1
    const VF i = load(p->keep, 0, n), o = load(p->keep, width, n), f = load(p->keep, 2 * width, n);
    const VF g = load(p->keep, 3 * width, n), squashed = squash(load(p->keep, 4 * width, n));
    const VF dout = dhidden * squashed * slope_gate(o, clip);
    const VF d = *dcell + dhidden * o * slope_squash(squashed) + load(p->peepholes, width + p->j, n) * dout;
    const VF dforget = COUPLED ? ZERO : d * p->c * slope_gate(f, clip);
    const VF din = d * (COUPLED ? g - p->c : g) * slope_gate(i, clip);
    VF gradients[4];
    gradients[I] = din;
    gradients[O] = dout;
    gradients[FORGET] = dforget;
    gradients[C] = d * i * slope_fresh(g, clip);
    UNROLL for (int k = 0; k < 4; k++)
    {
        store(gradients[k], p->d, k * width, n);
        store(gradients[k], p->dstate, k * width, n);
    }
    *dcell = d * f + load(p->peepholes, p->j, n) * din + load(p->peepholes, 2 * width + p->j, n) * dforget;
    store(p->c, p->other, 0, n);
    return ZERO;
#elif KIND == 2
    const VF z = load(p->keep, 0, n), r = load(p->keep, width, n), new = load(p->keep, 2 * width, n);
    VF gradients[3];
    gradients[2] = dhidden * (1.0f - z) * slope_fresh(new, clip);
    gradients[Z] = dhidden * (p->h - new) * slope_gate(z, clip);
    gradients[RESET] = gradients[2] * load(p->keep, 3 * width, n) * slope_gate(r, clip);
    UNROLL for (int k = 0; k < 3; k++)
    {
        const VF of_product = k == 2 ? gradients[2] * r : gradients[k];
        store(gradients[k], p->d, k * width, n);
        store(of_product, p->dstate, k * width, n);
        store(of_product, p->other, k * width, n);
    }
    return dhidden * z;
#else
    const VF d = dhidden * slope_gate(p->y, clip);
    store(d, p->d, 0, n);
    store(d, p->dstate, 0, n);
    return ZERO;
#endif
}

/* Fetches what a step of a task's samples reads and writes of a block's units, while their products are made: each few
 * lines lie in another page. */
INLINE void fetch_block(PANELS_BACKWARD_ARGUMENTS(PARAMETER), int sample, int count, int j, int s)
{
    for (int n = sample; n < sample + count; n++) {
        const int length = steps_of(lengths, n, steps);
        const size_t at = (size_t)n * steps + (s < length ? PLACE(s, length) : s);
        for (int v = 0; v < NV; v++) {
            for (int g = 0; g < SAVED; g++) PREFETCH(saved + (at * SAVED + g) * width + j + v * V);
            for (int g = 0; g < GATES; g++) PREFETCH(dgates + (at * GATES + g) * width + j + v * V);
            for (int g = 0; other && g < OTHER; g++) PREFETCH(other + (at * OTHER + g) * width + j + v * V);
            if (dy) PREFETCH(dy + at * width + j + v * V);
            if (previous) PREFETCH(previous + at * width + j + v * V);
        }
    }
}

/* Step s of sample n, for V units from j on. `product`: of the gates' gradients of the step after it. */
INLINE void backward_sample(PANELS_BACKWARD_ARGUMENTS(PARAMETER), int n, int j, int s, VF product)
{
    const int part = min((int)V, width - j), length = steps_of(lengths, n, steps), ld = ROW(GATES * width);
    const size_t of_sample = (size_t)n * width + j;
    global float *dstate = states + ((size_t)(s & 1) * samples + n) * ld + j;
    if (s >= length) {
        const size_t at = (size_t)n * steps + s;
        for (int g = 0; g < GATES; g++) {
            store(ZERO, dgates, (at * GATES + g) * width + j, part);
            store(ZERO, dstate, (size_t)g * width, part);
        }
        for (int g = 0; g < OTHER; g++) store(ZERO, other, (at * OTHER + g) * width + j, part);
        store(ZERO, previous, at * width + j, part);
        return;
    }
    const bool final = s == length - 1;
    VF dhidden = final ? load(dlast, of_sample, part) : KIND == 2 ? product + load(dh, of_sample, part) : product;
    VF dcell = KIND != 1 ? ZERO : final ? load(dlast_c, of_sample, part) : load(dc, of_sample, part);
    if (s >= 0) {
        const int t = PLACE(s, length);
        const size_t at = (size_t)n * steps + t, before = (size_t)n * steps + PLACE(s - 1, length);
        struct back p = { SAVED ? saved + at * SAVED * width + j : 0, peepholes, dgates + at * GATES * width + j,
            other ? other + at * OTHER * width + j : 0, dstate, ZERO, ZERO, ZERO, width, j, part };
        p.h = s ? load(y, before * width + j, part) : load(h0, of_sample, part);
        if (KIND == 1) p.c = s ? load(saved, (before * SAVED + 4) * width + j, part) : load(c0, of_sample, part);
        if (KIND == 3) p.y = load(y, at * width + j, part);
        dhidden = backward_units(&p, dhidden + load(dy, at * width + j, part), &dcell, clip);
        store(p.h, previous, at * width + j, part);
    }
    if (KIND == 2 || s < 0) store(dhidden, dh, of_sample, part);
    if (KIND == 1) store(dcell, dc, of_sample, part);
}

OUTLINE void backward_body(PANELS_BACKWARD_ARGUMENTS(PARAMETER), int column_task, int row_task)
{
    const int sample = row_task * rows, count = min(rows, samples - sample), depth = GATES * width, ld = ROW(depth);
    const int all = (width + COLUMNS - 1) / COLUMNS, block = column_task * blocks, end = min(block + blocks, all);
    const size_t panel = (size_t)depth * COLUMNS;
    for (int s = first; s > stop; s--) {
        global const float *d = states + ((size_t)((s + 1) & 1) * samples + sample) * ld;
        for (int b = block; b < end; b++) {
            const int after = b + 1 < end ? b + 1 : block;
            const bool has_product = s < steps - 1;
            if (s >= 0) fetch_block(PANELS_BACKWARD_ARGUMENTS(NAME), sample, count, b * COLUMNS, s);
            if (has_product) multiply_panel(d, ld, count, depth, panels + b * panel, panels + after * panel, scratch);
            for (int r = 0; r < count; r++)
                for (int v = 0; v < NV; v++) {
                    const int j = b * COLUMNS + v * V;
                    if (j >= width) break;
                    backward_sample(PANELS_BACKWARD_ARGUMENTS(NAME), sample + r, j, s,
                        has_product ? LOCAL_LOAD(v, scratch + r * COLUMNS) : ZERO);
                }
        }
    }
}

TASK void recurrent_panels_backward(PANELS_BACKWARD_ARGUMENTS(PARAMETER))
{
    backward_body(PANELS_BACKWARD_ARGUMENTS(NAME), get_group_id(0), get_group_id(1));
}
#endif

/* A task makes the panel of a block. Forward, column l of gate g is row g width + j + l of r; backward, r's own. */
TASK void recurrent_panels_pack(global const float *r, global float *panels, int width)
{
    const int b = get_group_id(0), depth = BACKWARD ? GATES * width : width;
    global float *panel = panels + (size_t)b * depth * COLUMNS;
    for (int v = 0; v < NV; v++) {
#if BACKWARD
        const int j = b * COLUMNS + v * V, part = min((int)V, width - j);
        for (int k = 0; k < depth; k++)
            VSTORE(part > 0 ? load(r, (size_t)k * width + j, part) : ZERO, v, panel + k * COLUMNS);
#else
        const int j = b * V, part = min((int)V, width - j);
        global const float *from = r + ((size_t)v * width + j) * width;
        for (int k = 0; k < depth; k += V) {
            const int kn = min((int)V, depth - k);
            VF m[V];
            UNROLL for (int l = 0; l < V; l++) m[l] = l < part ? load(from, (size_t)l * width + k, kn) : ZERO;
            transpose(m);
            for (int i = 0; i < kn; i++) VSTORE(m[i], v, panel + (k + i) * COLUMNS);
        }
#endif
    }
}
