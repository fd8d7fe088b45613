/* loss_sum: metrics[0], metrics[1] = `factor` times the sums of results [rows][0] and [rows][1], always in the same order: one
 * group of GROUP work-items, launched by layers/loss/loss.c. Both carry their rounding error along (sum.h): floats count one by one
 * up to 2^24 only. */
#include "group.h"
#include "sum.h"

__attribute__((reqd_work_group_size(GROUP, 1, 1))) kernel void loss_sum(
    global const float2 *results, global float *metrics, float factor, int rows)
{
    local float scratch[GROUP];
    const int item = get_local_id(0);
    float2 sum = (float2)(0.0f), error = (float2)(0.0f);
    for (int i = item; i < rows;) {
        const int stop = min(i + SUM_BLOCK * GROUP, rows);
        float2 block = (float2)(0.0f);
        for (; i < stop; i += GROUP) block += results[i];
        SUM_ADD(float2, sum, error, block);
    }
    const float loss = group_sum(sum.x, scratch), hits = group_sum(sum.y, scratch);
    if (item == 0) {
        metrics[0] = factor * loss;
        metrics[1] = factor * hits;
    }
}

/* One of several losses goes into their total, in one work-item, launched by layers/loss/loss_total.c for each in turn:
 * total[0] += weight * metrics[0], total[1] = metrics[1] where `counted`, and both are kept at `number`. */
kernel void loss_add(global const float *metrics, global float *total, float weight, int number, int counted)
{
    const float loss = metrics[0], correct = metrics[1];
    if (number == 0) total[0] = total[1] = 0.0f;
    if (weight != 0.0f) total[0] += weight * loss;
    if (counted) total[1] = correct;
    total[2 + 2 * number] = loss;
    total[3 + 2 * number] = correct;
}
