/* loss_sum: metrics[0], metrics[1] = `factor` times the sums of results [rows][0] and [rows][1], always in the same order: one
 * group of GROUP work-items, launched by layers/loss.c. Each work-item sums every GROUP-th loss with the rounding error carried
 * along (Kahan's summation as improved by Neumaier, ZAMM 54, 1974), so that the sum is as good as one in double. */
#include "group.h"

__attribute__((reqd_work_group_size(GROUP, 1, 1))) kernel void loss_sum(
    global const float *results, global float *metrics, float factor, int rows)
{
    local float scratch[GROUP];
    const int item = get_local_id(0);
    float sum = 0.0f, error = 0.0f, hits = 0.0f;
    for (int i = item; i < rows; i += GROUP) {
        const float next = results[2 * i], total = sum + next;
        error += fabs(sum) >= fabs(next) ? (sum - total) + next : (next - total) + sum;
        sum = total;
        hits += results[2 * i + 1];
    }
    /* An infinite sum has no error: infinity minus infinity would turn it into NaN, which says less. */
    sum = group_sum(isinf(sum) ? sum : sum + error, scratch);
    hits = group_sum(hits, scratch);
    if (item == 0) {
        metrics[0] = factor * sum;
        metrics[1] = factor * hits;
    }
}

/* One of several losses goes into their total, in one work-item, launched by layers/loss_total.c for each in turn:
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
