/* A recurrent layer in one direction: all steps of a sample, one after another; launched by layers/recurrent/recurrent.c, whose
 * head has the formulas.
 *   recurrent_forward    y, the last states, and what the gradient needs, from the products of the inputs (`gates`)
 *   recurrent_backward   the gradients of `gates` and of the first states; previous: h before each step
 *   recurrent_turn       the transpose of r, or of any matrix
 *
 * gates [samples][steps][GATES][width], r [GATES width][width], y, previous [samples][steps][width], saved
 * [samples][steps][SAVED][width]; h0, c0, last, dh, dc [samples][width]. Buffers that are NULL: there is none.
 *
 * ROWS 1, CPU class: a task for each sample, which multiplies rows of r by vectors. ROWS 0, any device: a group of
 * GROUP work-items for each sample, each of which has some of the units; r is turned, so that neighbours read
 * neighbours.
 * KIND 1 is an LSTM, 2 a GRU, 3 a simple layer. F, G, H: 1 relu, 4 sigmoid, 5 tanh. I, O, FORGET, C (LSTM), Z, RESET
 * (GRU): places of the gates; those of a GRU's new value are last. REVERSE: from the last step to the first.
 * AFTER: a GRU's reset gate multiplies the product, not h. COUPLED: the LSTM's forget gate is 1 less the input gate.
 * CLIP 1: arguments of functions are clipped to [-clip, clip]. */
#include "parameters.h"
#include "arguments/recurrent.h"
#include "vector.h"

#define APPLY_1(x) ((x) < 0.0f ? 0.0f : (x))
#define APPLY_4(x) (1.0f / (1.0f + exp(-(x))))
#define APPLY_5(x) tanh(x)
#define SLOPE_1(y) ((y) > 0.0f ? 1.0f : 0.0f)
#define SLOPE_4(y) ((y) * (1.0f - (y)))
#define SLOPE_5(y) (1.0f - (y) * (y))
#define APPLY(function, x) CONCATENATE(APPLY_, function)(x)
#if CLIP
#define CLIPPED(x) ((x) < -clip ? -clip : (x) > clip ? clip : (x))
#define INSIDE(function, y) ((y) < APPLY(function, clip) && (y) > APPLY(function, -clip))
#else
#define CLIPPED(x) (x)
#define INSIDE(function, y) true
#endif
#define SQUASH(function, x) APPLY(function, CLIPPED(x))
/* The derivative of a function where its result is y; 0 where the argument was clipped. */
#define SLOPE(function, y) (INSIDE(function, y) ? CONCATENATE(SLOPE_, function)(y) : 0.0f)

/* The product of row `row` of a matrix with a vector: UP of r; DOWN of its transpose, from element `from` of the row
 * on. */
#if ROWS
#define FOR_UNITS(j) for (int j = 0; j < width; j++)
#define GROUP_BARRIER
#define KERNEL TASK
#define UP(row, v) product(r, v, row, width, width)
#define DOWN(row, from, v, count) product(r + (from), v, row, GATES * width, count)
static float product(global const float *m, global const float *v, int row, int stride, int count)
{
    VF sums = (VF)(0.0f);
    float sum = 0.0f;
    const int whole = count / V * V;
    m += (size_t)row * stride;
    for (int i = 0; i < whole; i += V) sums = fma(VLOAD(0, m + i), VLOAD(0, v + i), sums);
    for (int i = whole; i < count; i++) sum = fma(m[i], v[i], sum);
    return sum + vector_sum(sums);
}
#else
#define FOR_UNITS(j) for (int j = get_local_id(0); j < width; j += GROUP)
#define GROUP_BARRIER barrier(CLK_GLOBAL_MEM_FENCE)
#define KERNEL __attribute__((reqd_work_group_size(GROUP, 1, 1))) kernel
#define UP(row, v) product(r, v, row, GATES *width, width)
#define DOWN(row, from, v, count) product(r + (size_t)(from)*width, v, row, width, count)
static float product(global const float *m, global const float *v, int row, int stride, int count)
{
    float sum = 0.0f;
    for (int i = 0; i < count; i++) sum = fma(m[(size_t)i * stride + row], v[i], sum);
    return sum;
}
#endif

/* Returns the number of steps of this sample; what is after them is 0. */
static int steps_of(global const float *lengths, int sample, int steps)
{
    const float length = lengths ? lengths[sample] : steps;
    return length >= steps ? steps : length > 0.0f ? (int)length : 0;
}

#define PLACE(s, count) (REVERSE ? (count)-1 - (s) : (s))
#define BIAS(row) (bias ? bias[row] : 0.0f)
/* The argument of gate g for unit j: the product of the input, the bias, and the product of the state. */
#define GATE(g, j) (now[(g)*width + (j)] + BIAS((g)*width + (j)) + (h ? UP((g)*width + (j), h) : 0.0f))
#define PEEP(number, state) (peepholes ? peepholes[(number)*width + j] * (state) : 0.0f)

KERNEL void recurrent_forward(FORWARD_ARGUMENTS(PARAMETER))
{
    const int sample = get_group_id(0), count = steps_of(lengths, sample, steps);
    gates += (size_t)sample * steps * GATES * width;
    y += (size_t)sample * steps * width;
    saved += (size_t)sample * steps * SAVED * width;
    h0 += h0 ? (size_t)sample * width : 0;
    c0 += c0 ? (size_t)sample * width : 0;
    for (int s = 0; s < count; s++) {
        const int t = PLACE(s, count), before = PLACE(s - 1, count);
        global const float *now = gates + (size_t)t * GATES * width, *h = s ? y + (size_t)before * width : h0;
        global float *to = y + (size_t)t * width, *keep = saved + (size_t)t * SAVED * width;
#if KIND == 1
        global const float *cells = s ? saved + ((size_t)before * SAVED + 4) * width : c0;
        FOR_UNITS(j)
        {
            const float c = cells ? cells[j] : 0.0f;
            const float i = SQUASH(F, GATE(I, j) + PEEP(0, c));
            const float f = COUPLED ? 1.0f - i : SQUASH(F, GATE(FORGET, j) + PEEP(2, c));
            const float g = SQUASH(G, GATE(C, j)), cell = f * c + i * g;
            const float o = SQUASH(F, GATE(O, j) + PEEP(1, cell));
            keep[j] = i;
            keep[width + j] = o;
            keep[2 * width + j] = f;
            keep[3 * width + j] = g;
            keep[4 * width + j] = cell;
            to[j] = o * APPLY(H, cell);
        }
#elif KIND == 2
        FOR_UNITS(j)
        {
            keep[j] = SQUASH(F, GATE(Z, j));
            keep[width + j] = SQUASH(F, GATE(RESET, j));
            keep[3 * width + j] =
                AFTER ? BIAS(2 * width + j) + (h ? UP(2 * width + j, h) : 0.0f) : h ? keep[width + j] * h[j] : 0.0f;
        }
#if !AFTER
        GROUP_BARRIER;
#endif
        FOR_UNITS(j)
        {
            const float z = keep[j];
            const float more = AFTER ? keep[width + j] * keep[3 * width + j]
                                     : BIAS(2 * width + j) + (h ? UP(2 * width + j, keep + 3 * width) : 0.0f);
            const float n = SQUASH(G, now[2 * width + j] + more);
            keep[2 * width + j] = n;
            to[j] = (1.0f - z) * n + (h ? z * h[j] : 0.0f);
        }
#else
        FOR_UNITS(j) to[j] = SQUASH(F, GATE(0, j));
#endif
        GROUP_BARRIER;
    }
    for (int t = count; t < steps; t++)
    {
        FOR_UNITS(j) y[(size_t)t * width + j] = 0.0f;
        for (int g = 0; g < SAVED; g++) FOR_UNITS(j) saved[((size_t)t * SAVED + g) * width + j] = 0.0f;
    }
    const int final = PLACE(count - 1, count);
    if (last)
        FOR_UNITS(j)
            last[(size_t)sample * width + j] = count ? y[(size_t)final * width + j] : h0 ? h0[j] : 0.0f;
#if KIND == 1
    if (last_c)
        FOR_UNITS(j)
            last_c[(size_t)sample * width + j] =
                count ? saved[((size_t)final * SAVED + 4) * width + j] : c0 ? c0[j] : 0.0f;
#endif
}

#define GIVEN(buffer, place) (buffer ? buffer[place] : 0.0f)

KERNEL void recurrent_backward(BACKWARD_ARGUMENTS(PARAMETER))
{
    const int sample = get_group_id(0), count = steps_of(lengths, sample, steps);
    const size_t first = (size_t)sample * width;
    y += first * steps;
    saved += first * steps * SAVED;
    dgates += first * steps * GATES;
    dy += dy ? first * steps : 0;
    previous += previous ? first * steps : 0;
    other += other ? first * steps * OTHER : 0;
    h0 += h0 ? first : 0;
    c0 += c0 ? first : 0;
    dh += first;
    dc += dc ? first : 0;
    FOR_UNITS(j)
    {
        dh[j] = GIVEN(dlast, first + j);
        if (KIND == 1) dc[j] = GIVEN(dlast_c, first + j);
    }
    for (int s = count - 1; s >= 0; s--) {
        const int t = PLACE(s, count), before = PLACE(s - 1, count);
        global const float *h = s ? y + (size_t)before * width : h0, *keep = saved + (size_t)t * SAVED * width;
        global float *d = dgates + (size_t)t * GATES * width;
#if KIND == 1
        global const float *cells = s ? saved + ((size_t)before * SAVED + 4) * width : c0;
        FOR_UNITS(j)
        {
            const float i = keep[j], o = keep[width + j], f = keep[2 * width + j], g = keep[3 * width + j];
            const float cell = keep[4 * width + j], squashed = APPLY(H, cell), c = cells ? cells[j] : 0.0f;
            const float dhidden = dh[j] + GIVEN(dy, (size_t)t * width + j);
            const float dout = dhidden * squashed * SLOPE(F, o);
            const float dcell = dc[j] + dhidden * o * CONCATENATE(SLOPE_, H)(squashed) + PEEP(1, dout);
            const float dforget = COUPLED ? 0.0f : dcell * c * SLOPE(F, f);
            const float din = dcell * (COUPLED ? g - c : g) * SLOPE(F, i);
            d[I * width + j] = din;
            d[O * width + j] = dout;
            d[FORGET * width + j] = dforget;
            d[C * width + j] = dcell * i * SLOPE(G, g);
            dc[j] = dcell * f + PEEP(0, din) + PEEP(2, dforget);
            if (other) other[(size_t)t * width + j] = c;
        }
        GROUP_BARRIER;
        FOR_UNITS(j) dh[j] = DOWN(j, 0, d, 4 * width);
#elif KIND == 2
        global float *e = other ? other + (size_t)t * 3 * width : d;
        FOR_UNITS(j)
        {
            const float z = keep[j], reset = keep[width + j], n = keep[2 * width + j];
            const float dhidden = dh[j] + GIVEN(dy, (size_t)t * width + j), state = h ? h[j] : 0.0f;
            const float dn = dhidden * (1.0f - z) * SLOPE(G, n), dz = dhidden * (state - n) * SLOPE(F, z);
            d[Z * width + j] = dz;
            d[2 * width + j] = dn;
            dh[j] = dhidden * z;
#if AFTER
            const float dr = dn * keep[3 * width + j] * SLOPE(F, reset);
            d[RESET * width + j] = dr;
            e[Z * width + j] = dz;
            e[RESET * width + j] = dr;
            e[2 * width + j] = dn * reset;
#endif
        }
        GROUP_BARRIER;
#if AFTER
        FOR_UNITS(j) dh[j] += DOWN(j, 0, e, 3 * width);
#else
        FOR_UNITS(j)
        {
            const float reset = keep[width + j], dstate = DOWN(j, 2 * width, d + 2 * width, width);
            d[RESET * width + j] = dstate * (h ? h[j] : 0.0f) * SLOPE(F, reset);
            dh[j] += dstate * reset;
        }
        GROUP_BARRIER;
        FOR_UNITS(j) dh[j] += DOWN(j, 0, d, 2 * width);
#endif
#else
        FOR_UNITS(j) d[j] = (dh[j] + GIVEN(dy, (size_t)t * width + j)) * SLOPE(F, y[(size_t)t * width + j]);
        GROUP_BARRIER;
        FOR_UNITS(j) dh[j] = DOWN(j, 0, d, width);
#endif
        if (previous) FOR_UNITS(j) previous[(size_t)t * width + j] = h ? h[j] : 0.0f;
        GROUP_BARRIER;
    }
    for (int t = count; t < steps; t++) {
        for (int g = 0; g < GATES; g++) FOR_UNITS(j) dgates[((size_t)t * GATES + g) * width + j] = 0.0f;
        if (previous) FOR_UNITS(j) previous[(size_t)t * width + j] = 0.0f;
        for (int g = 0; other && g < OTHER; g++) FOR_UNITS(j) other[((size_t)t * OTHER + g) * width + j] = 0.0f;
    }
}

kernel void recurrent_turn(global const float *from, global float *to, int rows, int columns)
{
    const int i = get_global_id(0);
    if (i < rows * columns) to[i] = from[(size_t)(i % rows) * columns + i / rows];
}
