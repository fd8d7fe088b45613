/* Losses by class number and their gradients, for any device; launched by layers/loss/loss_classes.c. Arrays, formulas and
 * options are those of loss_cpu.cl. results [positions][2] go to loss_sum (loss_sum.cl). */
#include "parameters.h"
#include "arguments/loss_classes.h"
#include "group.h"
#include "step.h"
#define POSITIONS 1
#define POSITION_EXP(x) exp(x)
#include "loss_classes.h"

/* inner is 1: one group of GROUP work-items for each row. */
__attribute__((reqd_work_group_size(GROUP, 1, 1))) kernel void cross_entropy(
    LABELS_ARGUMENTS(PARAMETER) WIDTH_ARGUMENTS(PARAMETER) CLASS_WEIGHT_PARAMETERS)
{
    local float scratch[GROUP];
    const int item = get_local_id(0), row = get_group_id(0), label = labels[row];
    const bool live = label >= 0 && label != IGNORED, known = label < width;
    const float own = live && known ? CLASS_WEIGHT(label) : 1.0f;
    x += (size_t)row * width;
    float most = -INFINITY, sum = 0.0f, earlier = 0.0f, mean = 0.0f, error = 0.0f, mean_error = 0.0f;
    for (int i = item; i < width; i += GROUP) most = fmax(most, x[i]);
    most = group_max(most, scratch);
    for (int i = item; i < width; i += GROUP) {
        SUM_ADD(float, sum, error, exp(x[i] - most));
        earlier += i < label && x[i] == most;
        if (SMOOTHING) SUM_ADD(float, mean, mean_error, SMOOTHED(i, x[i], most));
    }
    sum = group_sum(sum, scratch);
    earlier = group_sum(earlier, scratch);
#if SMOOTHING
    mean = group_sum(mean, scratch) / (float)width;
#endif
    if (item == 0) {
        results[2 * row] = live && known ? loss_of(most, log(sum), x[label], mean, smoothing, own, MEAN_WEIGHT)
            : live                       ? NAN
                                         : 0.0f;
        results[2 * row + 1] = live && known && x[label] == most && earlier == 0.0f && !isnan(sum);
    }
#if GRADIENT
    const float scale = weight * constants->gradient_weight, factor = LOG_PROBABILITIES ? 0.0f : scale * PULL(own) / sum;
    const float even = SMOOTHING ? scale * smoothing / (float)width : 0.0f;
    const float most_wanted = own * (SMOOTHING ? scale * (1.0f - smoothing) : scale);
    dx += (size_t)row * width;
    for (int i = item; i < width; i += GROUP)
        dx[i] = live ? exp(x[i] - most) * factor - even * CLASS_WEIGHT(i) - (i == label ? most_wanted : 0.0f) : 0.0f;
#endif
}

/* inner > 1: one work-item for each of `total` positions. */
kernel void cross_entropy_positions(LABELS_ARGUMENTS(PARAMETER) POSITIONS_ARGUMENTS(PARAMETER) CLASS_WEIGHT_PARAMETERS)
{
    const size_t row = get_global_id(0);
    if (row >= (size_t)total) return;
    positions(x, labels, weight * constants->gradient_weight, dx, results, smoothing, width, inner, row / inner,
        (int)(row % inner), 1 CLASS_WEIGHT_ARGUMENTS);
}
