/* Updates [samples][rows][count][inner] of elements of y [samples][rows][axis][inner], and their gradients; launched by
 * layers/scatter.c. indices.h says of which element each one is; those of elements that do not exist are left out.
 *
 * scatter_begin: y = data, of `floats` floats, as often as y has them; 0 without data (DATA 0); errors = 0 (ERRORS 1).
 *
 * scatter: an update u of an element e, one after the other along `count`. JOINED(e, u) is u, e + u, e u, their maximum
 * or minimum, by REDUCTION 0 to 4.
 *   MODE FORWARD          e = JOINED(e, u); with ERRORS 1, of sums, as sum.h says, with `errors` as y
 *   MODE FORWARD_SAVING   the same, and the update's place in dupdates becomes e as it was before
 *   MODE BACKWARD         from the last one to the first: y is the gradient g of what came out, and dupdates as
 *                         FORWARD_SAVING left it. dupdates = g * dJOINED/du; g = g * dJOINED/de
 * A work-item, in the CPU class a task, alone writes `columns` of the columns [sample, row, i] and `each` of their
 * elements, and reads all indices of these columns. get_global_id(1): which elements. Where TOGETHER is 1, y has no
 * samples: the updates of all samples go there, in their order. */
#include "indices.h"
#include "parameters.h"
#include "arguments/gather.h"
#include "sum.h"
#include "vector.h"

enum { FORWARD, FORWARD_SAVING, BACKWARD };

kernel void scatter_begin(
    global const float *data, global float *y, global float *errors, long floats, long all, long chunk)
{
    long i = (long)get_global_id(0) * chunk;
    const long end = min(i + chunk, all);
    for (; i < end; i++) {
        y[i] = DATA ? data[i % floats] : 0.0f;
        if (ERRORS) errors[i] = 0.0f;
    }
}

/* NaN wins. */
INLINE bool wins(float e, float u)
{
    return REDUCTION == 3 ? !(u <= e) && e == e : !(u >= e) && e == e;
}

INLINE float joined(float e, float u)
{
    return REDUCTION == 0 ? u : REDUCTION == 1 ? e + u : REDUCTION == 2 ? e * u : wins(e, u) ? u : e;
}

INLINE void apply_update(global float *y, global float *error, float u, global float *du)
{
    const float e = *y;
    if (ERRORS) {
        float sum = e, lost = *error;
        SUM_ADD(float, sum, lost, u);
        *y = sum;
        *error = lost;
        return;
    }
    if (MODE == FORWARD_SAVING) *du = e;
    if (MODE != BACKWARD) {
        *y = joined(e, u);
        return;
    }
    const float before = REDUCTION < 2 ? 0.0f : *du;
    const bool taken = REDUCTION == 0 || (REDUCTION > 2 && wins(before, u));
    *du = REDUCTION == 1 ? e : REDUCTION == 2 ? e * before : taken ? e : 0.0f;
    *y = REDUCTION == 2 ? e * u : taken ? 0.0f : e;
}

kernel void scatter(SCATTER_ARGUMENTS(PARAMETER) INDICES_ARGUMENTS(PARAMETER))
{
    const int sizes[] = SIZES;
    const int pieces = (inner + columns - 1) / columns;
    const long id = get_global_id(0), line = id / pieces;
    const int begin = id % pieces * columns, end = min(begin + columns, inner);
    const int low = get_global_id(1) * each, high = min(low + each, axis);
    const long row = line % rows, first = TOGETHER ? 0 : line / rows, last = TOGETHER ? samples : first + 1;
    if (line >= outer) return;
    y += line * axis * inner;
    errors += line * axis * inner;
    for (long sample = first; sample < last; sample++)
        for (int step = 0; step < count; step++) {
            const int k = MODE != BACKWARD ? step : count - 1 - step;
            global const INDEX *at = indices + sample * index_sample + row * index_row + (long)k * index_next;
            const long place = (row * count + k) * inner, made = sample * rows * count * inner + place;
            int element = index_inner ? 0 : element_of(at, numbers, sizes);
            for (int i = begin; i < end; i++) {
                if (index_inner) element = element_of(at + (long)i * index_inner, numbers, sizes);
                if (MODE != FORWARD && element < 0 && low == 0) dupdates[made + i] = 0.0f;
                if (element < low || element >= high) continue;
                const float u = READS ? updates[sample * update_sample + place + i] : 0.0f;
                const long to = (long)element * inner + i;
                apply_update(y + to, errors + to, u, dupdates + made + i);
            }
        }
}
