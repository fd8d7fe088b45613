/* Connectionist temporal classification (Graves, Fernandez, Gomez, Schmidhuber 2006) of logits x
 * [samples][frames][classes], and its gradient, on any device; launched by layers/loss/loss_ctc.c in this order:
 * ctc_lists, ctc_frames, ctc_paths and, if a gradient is wanted, ctc_gradient.
 *
 * targets [samples][listed] are labels, up to the first one below 0. lengths [samples] of LENGTHS 1: the frames of a
 * sample, from 0 to `frames`; else all. A path has a state for each frame: the L labels with a blank before, between
 * and after them, 2 L + 1 states. It goes on by 0 or 1 states, or by 2 over a blank between different labels.
 *
 *   loss      -log(sum over all paths of the product of softmax(x) of their states' classes), over max(L, 1) unless SUM
 *   dx        (softmax(x)[c] - share of the paths that have class c in this frame) * weight * gradient_weight; 0 after
 *             the last frame
 *   no path   loss infinite, dx NaN; ZERO_INFINITY 1: both 0
 *   a label that is `blank`, or not below `classes`: loss and dx NaN, so that the step is refused
 *
 * Sums of paths are logarithms. Each frame's are kept relative to the largest of the frame before, so that they stay
 * near 0 however long the path is; what was subtracted goes into the loss, with its rounding errors (sum.h). A frame's
 * shares of paths are a softmax over its states, so that they need no such sum at all.
 *
 * A row of states has `pitch` floats: two that are -infinity, the states, and -infinity from there on, two at least.
 * GROUP work-items do a sample or a frame; where it is one, vectors of V states. */
#include "parameters.h"
#include "arguments/loss_ctc.h"
#include "step.h"
#if GROUP == 1
#include "row.h"
#define T VF
#define STEP V
#define EXP(x) vector_exp(x)
#define AT(p) VLOAD(0, p)
#define PUT(v, p) VSTORE(v, 0, p)
#define LARGEST(v) vector_max(v)
#define STORED
#else
#include "group.h"
#include "sum.h"
#include "vector.h"
#define T float
#define STEP 1
#define EXP(x) exp(x)
#define AT(p) (*(p))
#define PUT(v, p) (*(p) = (v))
#define LARGEST(v) group_max(v, scratch)
#define STORED barrier(CLK_GLOBAL_MEM_FENCE)
#endif
#define CTC(name) __attribute__((reqd_work_group_size(GROUP, 1, 1))) kernel void name

/* The workspace. results: a sample's loss and 0. factors: of its gradient. counts: its states, 0 if a label is wrong,
 * and frames. norms: of a frame, the largest of x and log(sum of exp(x - it)). state_classes: the class of each state,
 * -1 outside. skips: 0 where a path may skip the state before, else -infinity. emitted, summed: of each frame and state.
 */
#define RESULTS workspace
#define FACTORS (workspace + 2 * (size_t)samples)
#define COUNTS ((global int *)(workspace + 3 * (size_t)samples))
#define NORMS (workspace + 5 * (size_t)samples)
#define STATE_CLASSES ((global int *)(NORMS + 2 * (size_t)samples * frames))
#define SKIPS (NORMS + (size_t)samples * (2 * (size_t)frames + pitch))
#define EMITTED (SKIPS + (size_t)samples * pitch)
#define SUMMED (EMITTED + (size_t)samples * frames * pitch)
enum { MARGIN = 2 };

/* ceil(samples / GROUP) groups: a work-item for each sample. */
CTC(ctc_lists)(CTC_ARGUMENTS(PARAMETER))
{
    const int n = get_global_id(0);
    if (n >= samples) return;
    global const int *list = targets + (size_t)n * listed;
    global int *own = STATE_CLASSES + (size_t)n * pitch;
    global float *skip = SKIPS + (size_t)n * pitch;
    bool wrong = false;
    int count = 0;
    for (; count < listed && list[count] >= 0; count++) wrong |= list[count] >= classes || list[count] == blank;
    for (int p = 0; p < pitch; p++) {
        const int s = p - MARGIN;
        const bool label = s >= 0 && s < 2 * count && (s & 1);
        own[p] = wrong || s < 0 || s > 2 * count ? -1 : label ? list[s / 2] : blank;
        skip[p] = label && s > 1 && list[s / 2] != list[s / 2 - 1] ? 0.0f : -INFINITY;
    }
    COUNTS[2 * n] = wrong ? 0 : 2 * count + 1;
#if LENGTHS
    COUNTS[2 * n + 1] = lengths[n] > 0.0f ? (int)fmin(lengths[n], (float)frames) : 0;
#else
    COUNTS[2 * n + 1] = frames;
#endif
}

/* ---------------------------------------------------------------------------------------------------- frames ---- */

INLINE void ctc_frame(CTC_ARGUMENTS(PARAMETER), const size_t row, local float *scratch)
{
    const int item = get_local_id(0), n = row / frames;
    global const float *from = x + row * classes;
    global const int *own = STATE_CLASSES + (size_t)n * pitch;
    global float *emitted = EMITTED + row * pitch;
#if GROUP == 1
    const float most = row_max(from, classes), log_sum = log(row_exp(from, most, classes, 0, dx));
#else
    float most = -INFINITY, sum = 0.0f, error = 0.0f;
    for (int c = item; c < classes; c += GROUP) most = fmax(most, from[c]);
    most = group_max(most, scratch);
    for (int c = item; c < classes; c += GROUP) SUM_ADD(float, sum, error, exp(from[c] - most));
    const float log_sum = log(group_sum(sum, scratch));
#endif
    for (int p = item; p < pitch; p += GROUP)
        emitted[p] = own[p] >= 0 ? from[own[p]] - most - log_sum : -INFINITY;
    if (item == 0) {
        NORMS[2 * row] = most;
        NORMS[2 * row + 1] = log_sum;
    }
}

/* ceil(samples * frames / each) groups of `each` frames. */
CTC(ctc_frames)(CTC_ARGUMENTS(PARAMETER) CTC_ROWS_ARGUMENTS(PARAMETER))
{
    local float scratch[GROUP];
    const size_t first = (size_t)get_group_id(0) * each, end = min(first + each, (size_t)samples * frames);
    for (size_t row = first; row < end; row++) ctc_frame(CTC_ARGUMENTS(NAME), row, scratch);
}

/* ----------------------------------------------------------------------------------------------------- paths ---- */

/* log(exp(a) + exp(b) + exp(c)); all may be -infinity. */
INLINE T log_add(T a, T b, T c)
{
    const T most = fmax(fmax(a, b), fmax(c, (T)(-1e30f)));
    return most + log(EXP(a - most) + EXP(b - most) + EXP(c - most));
}

INLINE float shift_of(float most)
{
    return most > -INFINITY ? most : 0.0f;
}

/* Sums the paths from the first frame to each state of each frame. Returns minus the logarithm of the sum of all. */
INLINE float sum_forward(global const float *emitted, global const float *skip, global float *summed, const int states,
    const int length, const int pitch, local float *scratch)
{
    const int item = get_local_id(0), end = pitch - MARGIN;
    float offset = 0.0f, error = 0.0f, most = fmax(emitted[MARGIN], emitted[MARGIN + 1]);
    for (int p = item; p < pitch; p += GROUP)
        summed[p] = p == MARGIN || p == MARGIN + 1 ? emitted[p] : -INFINITY;
    STORED;
    for (int t = 1; t < length; t++) {
        const float shift = shift_of(most);
        global const float *before = summed;
        T largest = (T)(-INFINITY);
        emitted += pitch;
        summed += pitch;
        for (int p = MARGIN + item * STEP; p < end; p += GROUP * STEP) {
            const T v = AT(emitted + p) - shift +
                log_add(AT(before + p), AT(before + p - 1), AT(before + p - 2) + AT(skip + p));
            PUT(v, summed + p);
            largest = fmax(largest, v);
        }
        if (item < MARGIN) summed[item] = -INFINITY;
#if GROUP == 1
        summed[1] = -INFINITY;
#endif
        SUM_ADD(float, offset, error, shift);
        STORED;
        most = LARGEST(largest);
    }
    const float last = summed[MARGIN + states - 1], label = summed[MARGIN + states - 2], end_most = fmax(last, label);
    const float sum = end_most > -INFINITY ? exp(last - end_most) + exp(label - end_most) : 0.0f;
    return sum != 0.0f ? -(offset + (error + (end_most + log(sum)))) : isnan(last + label) ? NAN : INFINITY;
}

/* Adds to `summed` the sums of the paths from each state on, which take the place of `emitted`, with it included. */
INLINE void sum_backward(global float *emitted, global const float *skip, global float *summed, const int states,
    const int length, const int pitch, local float *scratch)
{
    const int item = get_local_id(0), end = pitch - MARGIN, last = MARGIN + states - 1;
    emitted += (size_t)(length - 1) * pitch;
    summed += (size_t)(length - 1) * pitch;
    float most = fmax(emitted[last], emitted[last - 1]);
    STORED; /* all have read */
    for (int p = MARGIN + item; p < end; p += GROUP) {
        const float from_here = p == last || p == last - 1 ? 0.0f : -INFINITY;
        summed[p] += from_here;
        emitted[p] += from_here;
    }
    STORED;
    for (int t = length - 2; t >= 0; t--) {
        const float shift = shift_of(most);
        global const float *after = emitted;
        T largest = (T)(-INFINITY);
        emitted -= pitch;
        summed -= pitch;
        for (int p = MARGIN + item * STEP; p < end; p += GROUP * STEP) {
            const T from_here =
                log_add(AT(after + p), AT(after + p + 1), AT(after + p + 2) + AT(skip + p + 2)) - shift;
            const T v = AT(emitted + p) + from_here;
            PUT(AT(summed + p) + from_here, summed + p);
            PUT(v, emitted + p);
            largest = fmax(largest, v);
        }
        STORED;
        most = LARGEST(largest);
    }
}

INLINE void ctc_sample(CTC_ARGUMENTS(PARAMETER), const int n, local float *scratch)
{
    const size_t first = (size_t)n * frames * pitch;
    const int states = COUNTS[2 * n], length = COUNTS[2 * n + 1];
    global const float *skip = SKIPS + (size_t)n * pitch;
    float loss = states == 0 ? NAN : states == 1 ? 0.0f : INFINITY; /* without a frame */
    if (states > 0 && length > 0)
        loss = sum_forward(EMITTED + first, skip, SUMMED + first, states, length, pitch, scratch);
#if GRADIENT
    if (states > 0 && length > 0 && loss < INFINITY)
        sum_backward(EMITTED + first, skip, SUMMED + first, states, length, pitch, scratch);
#endif
    if (get_local_id(0) > 0) return;
    const float share = SUM ? 1.0f : 1.0f / (float)max(states / 2, 1);
    const bool none = loss == INFINITY;
    RESULTS[2 * n] = none && ZERO_INFINITY ? 0.0f : loss * share;
    RESULTS[2 * n + 1] = 0.0f;
    FACTORS[n] = none && ZERO_INFINITY ? 0.0f : none || isnan(loss) ? NAN : share;
}

/* A group for each sample. */
CTC(ctc_paths)(CTC_ARGUMENTS(PARAMETER))
{
    local float scratch[GROUP];
    ctc_sample(CTC_ARGUMENTS(NAME), get_group_id(0), scratch);
}

/* -------------------------------------------------------------------------------------------------- gradient ---- */

#if GRADIENT
INLINE void ctc_frame_gradient(CTC_ARGUMENTS(PARAMETER), const size_t row, local float *scratch)
{
    const int item = get_local_id(0), n = row / frames, states = COUNTS[2 * n], length = COUNTS[2 * n + 1];
    const float factor = FACTORS[n], norm = NORMS[2 * row], log_sum = NORMS[2 * row + 1];
    const float scale = factor * weight * constants->gradient_weight;
    global const int *own = STATE_CLASSES + (size_t)n * pitch + MARGIN;
    global const float *summed = SUMMED + row * pitch + MARGIN;
    x += row * classes;
    dx += row * classes;
    if ((int)(row % frames) >= length || !(factor > 0.0f)) {
        for (int c = item; c < classes; c += GROUP) dx[c] = (int)(row % frames) >= length ? 0.0f : factor;
        return;
    }
#if GROUP == 1
    const int whole = classes / V * V;
    const float most = row_max(summed, states), paths = row_exp(summed, most, states, 0, dx);
    for (int c = 0; c < whole; c += V)
        VSTORE(vector_exp(VLOAD(0, x + c) - norm - log_sum) * scale, 0, dx + c);
    for (int c = whole; c < classes; c++) dx[c] = scalar_exp(x[c] - norm - log_sum) * scale;
    for (int s = 0; s < states; s++) dx[own[s]] -= scalar_exp(summed[s] - most) / paths * scale;
#else
    float most = -INFINITY, paths = 0.0f, error = 0.0f;
    for (int s = item; s < states; s += GROUP) most = fmax(most, summed[s]);
    most = group_max(most, scratch);
    for (int s = item; s < states; s += GROUP) SUM_ADD(float, paths, error, exp(summed[s] - most));
    paths = group_sum(paths, scratch);
    for (int c = item; c < classes; c += GROUP) {
        float through = 0.0f, through_error = 0.0f;
        for (int s = c == blank ? 0 : 1; s < states; s += 2)
            if (own[s] == c) SUM_ADD(float, through, through_error, exp(summed[s] - most));
        dx[c] = (exp(x[c] - norm - log_sum) - through / paths) * scale;
    }
#endif
}

/* As ctc_frames. */
CTC(ctc_gradient)(CTC_ARGUMENTS(PARAMETER) CTC_ROWS_ARGUMENTS(PARAMETER))
{
    local float scratch[GROUP];
    const size_t first = (size_t)get_group_id(0) * each, end = min(first + each, (size_t)samples * frames);
    for (size_t row = first; row < end; row++) ctc_frame_gradient(CTC_ARGUMENTS(NAME), row, scratch);
}
#endif
