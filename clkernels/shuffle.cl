/* The proof that lanes of a subgroup can read one another, launched by runtime/shuffle.c with groups of GROUP work-items:
 * results [work-items][2], the sum and the largest of its group's numbers for each. */
#include "group.h"

__attribute__((reqd_work_group_size(GROUP, 1, 1))) kernel void shuffle_trial(global const float *numbers, global float *results)
{
    local float scratch[GROUP];
    const size_t i = get_global_id(0);
    const float sum = group_sum(numbers[i], scratch);
    results[2 * i] = sum;
    results[2 * i + 1] = group_max(numbers[i], scratch);
}
