/* Losses of elements x and targets t of one shape, and their gradients; launched by layers/loss/loss_elements.c, which
 * chooses a formula:
 *
 *   LOSS_mean_squared_error  (x - t)^2
 *   LOSS_l1                  |x - t|
 *   LOSS_huber               (x - t)^2 / 2 where |x - t| <= delta, else delta (|x - t| - delta / 2)
 *   LOSS_bce_with_logits     max(x, 0) - x t + log(1 + exp(-|x|)); correct: x > 0 where t > 0.5, and only there
 *
 * dx = the loss's derivative * weight * gradient_weight. Each task (CPU class) or group of GROUP work-items works on `each`
 * of n elements; results [pieces][2], the sum of losses and the number of correct elements, go to loss_sum
 * (loss_sum.cl). The sums carry their rounding error along (sum.h). GRADIENT 1: dx is wanted. */
#include "parameters.h"
#include "arguments/loss_elements.h"
#include "sum.h"
#include "vector.h"
#include "step.h"

#if defined(LOSS_mean_squared_error)
#define LOSS(x, t) (((x) - (t)) * ((x) - (t)))
#define DERIVATIVE(x, t) (2.0f * ((x) - (t)))
#elif defined(LOSS_l1)
#define LOSS(x, t) fabs((x) - (t))
#define DERIVATIVE(x, t) sign((x) - (t))
#elif defined(LOSS_huber)
#define WITHIN(d) fmin(fmax(d, -delta), delta)
#define LOSS(x, t) (WITHIN((x) - (t)) * ((x) - (t) - 0.5f * WITHIN((x) - (t))))
#define DERIVATIVE(x, t) WITHIN((x) - (t))
#elif defined(LOSS_bce_with_logits)
#define LOSS(x, t) (fmax(x, 0.0f) - (x) * (t) + log1p(exp(-fabs(x))))
#define DERIVATIVE(x, t) (1.0f / (1.0f + exp(-(x))) - (t))
#define CORRECT(x, t) ((x) > 0.0f == (t) > 0.5f)
#endif
#ifdef CORRECT
#define COUNT(x, t) (CORRECT(x, t) ? 1.0f : 0.0f)
/* A vector's comparison gives -1 where it holds. */
#define COUNT_VECTOR(x, t) (-CONCATENATE(convert_float, V)(((x) > 0.0f) == ((t) > 0.5f)))
#else
#define COUNT(x, t) 0.0f
#define COUNT_VECTOR(x, t) (VF)(0.0f)
#endif

/* PIECE: the elements of a task or group. TAKE: one of them. */
#define PIECE                                                                                                       \
    const size_t piece = get_group_id(0), first = piece * each, end = min(first + each, (size_t)n);                 \
    const float factor = weight * constants->gradient_weight;                                                       \
    float sum = 0.0f, error = 0.0f, hits = 0.0f;
#define TAKE(i)                                                                                                     \
    {                                                                                                               \
        const float v = x[i], t = targets[i];                                                                       \
        SUM_ADD(float, sum, error, LOSS(v, t));                                                                     \
        hits += COUNT(v, t);                                                                                        \
        if (GRADIENT) dx[i] = DERIVATIVE(v, t) * factor;                                                            \
    }

#if TUTTI_GPU
#include "group.h"

__attribute__((reqd_work_group_size(GROUP, 1, 1))) kernel void loss_elements(ELEMENTS_ARGUMENTS(PARAMETER))
{
    local float scratch[GROUP];
    PIECE
    for (size_t i = first + get_local_id(0); i < end; i += GROUP) TAKE(i)
    sum = group_sum(sum, scratch);
    hits = group_sum(hits, scratch);
    if (get_local_id(0) == 0) {
        results[2 * piece] = sum;
        results[2 * piece + 1] = hits;
    }
}
#else
TASK void loss_elements(ELEMENTS_ARGUMENTS(PARAMETER))
{
    PIECE
    VF sums = (VF)(0.0f), errors = (VF)(0.0f), more = (VF)(0.0f);
    size_t i = first;
    while (i + V <= end) {
        const size_t stop = min(i + SUM_BLOCK * V, end);
        VF block = (VF)(0.0f);
        for (; i + V <= stop; i += V) {
            const VF v = VLOAD(0, x + i), t = VLOAD(0, targets + i);
            block += LOSS(v, t);
            more += COUNT_VECTOR(v, t);
            if (GRADIENT) VSTORE(DERIVATIVE(v, t) * factor, 0, dx + i);
        }
        SUM_ADD(VF, sums, errors, block);
    }
    for (; i < end; i++) TAKE(i)
    SUM_ADD(float, sum, error, vector_sum(sums));
    results[2 * piece] = sum;
    results[2 * piece + 1] = hits + vector_sum(more);
}
#endif
