/* The mean of x as a loss, and its gradient; launched by layers/loss/loss_mean.c. dx = weight * gradient_weight, for each of n
 * elements. Each task (CPU class) or group of GROUP work-items works on EACH of them; results [pieces][2], the sum of its elements
 * and 0, go to loss_sum (loss_sum.cl). The sums carry their rounding error along (sum.h). GRADIENT 1: dx is wanted. */
#include "sum.h"
#include "vector.h"
#include "step.h"

#define PIECE                                                                                          \
    const size_t piece = get_group_id(0), first = piece * EACH, end = min(first + EACH, (size_t)n);    \
    const float derivative = weight * constants->gradient_weight;                                      \
    float sum = 0.0f, error = 0.0f;
#define TAKE(i)                             \
    {                                       \
        SUM_ADD(float, sum, error, x[i]);   \
        if (GRADIENT) dx[i] = derivative;   \
    }

#if TUTTI_GPU
#include "group.h"

__attribute__((reqd_work_group_size(GROUP, 1, 1))) kernel void loss_mean(global const float *x,
    global const step_constants *constants, global float *dx, global float *results, float weight, long n)
{
    local float scratch[GROUP];
    PIECE
    for (size_t i = first + get_local_id(0); i < end; i += GROUP) TAKE(i)
    sum = group_sum(sum, scratch);
    if (get_local_id(0) == 0) {
        results[2 * piece] = sum;
        results[2 * piece + 1] = 0.0f;
    }
}
#else
TASK void loss_mean(global const float *x, global const step_constants *constants, global float *dx, global float *results,
    float weight, long n)
{
    PIECE
    VF sums = (VF)(0.0f), errors = (VF)(0.0f);
    size_t i = first;
    while (i + V <= end) {
        const size_t stop = min(i + SUM_BLOCK * V, end);
        VF block = (VF)(0.0f);
        for (; i + V <= stop; i += V) {
            block += VLOAD(0, x + i);
            if (GRADIENT) VSTORE((VF)(derivative), 0, dx + i);
        }
        SUM_ADD(VF, sums, errors, block);
    }
    for (; i < end; i++) TAKE(i)
    SUM_ADD(float, sum, error, vector_sum(sums));
    results[2 * piece] = sum;
    results[2 * piece + 1] = 0.0f;
}
#endif
